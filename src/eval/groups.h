/* groups.h - scenes that have something in common: everything, and by maneuver, type, city, speed.
 *
 * Order   by kind as in enum below; maneuvers and speeds in their own order, types and cities by
 *         name
 * Every scene is in one group of each kind. A group comes into being with its first scene.
 * Tests: tests/eval/test_score.c, tests/eval/test_evaluator.c
 */
#ifndef BJ_EVAL_GROUPS_H
#define BJ_EVAL_GROUPS_H

#include "core/status.h"
#include "eval/forecast.h"

enum { BJ_BY_ALL, BJ_BY_MANEUVER, BJ_BY_TYPE, BJ_BY_CITY, BJ_BY_SPEED, BJ_GROUP_KINDS };

/* Bins of a speed in m/s: "0-2", "2-5", ... */
enum { BJ_SPEED_BINS = 5 };
int bj_speed_bin(double speed);
const char *bj_speed_bin_name(int bin);

/* What decides where a scene belongs. */
typedef struct bj_scene_class {
    bj_maneuver maneuver; /* of the true future */
    const char *type, *city;
    double speed; /* m/s at the last observed step */
} bj_scene_class;

typedef struct bj_group {
    int kind, place; /* place: order within a kind where it is not that of the keys */
    char *key;
    bj_metrics *metrics;
    double *sums; /* (bj_groups.sums) for whatever else is summed */
} bj_group;

typedef struct bj_groups {
    int K, latents, D; /* of the metrics, see bj_metrics_create; scenes are measured elsewhere */
    int sums;
    bj_group *list; /* (count) in order */
    int count, room;
} bj_groups;

const char *bj_group_by(const bj_group *group); /* "all", "maneuver", ... */

/* Makes the group of everything. */
BJ_CHECK bj_status bj_groups_start(bj_groups *groups, bj_error *err);
/* Makes whatever group of the scene is missing. */
BJ_CHECK bj_status bj_groups_admit(bj_groups *groups, const bj_scene_class *scene, bj_error *err);
/* The groups of an admitted scene; valid until another one is admitted. */
void bj_groups_find(bj_group *found[BJ_GROUP_KINDS], const bj_groups *groups,
                    const bj_scene_class *scene);
/* Forgets groups without a scene, but for the group of everything. */
void bj_groups_trim(bj_groups *groups);
void bj_groups_reset(bj_groups *groups);

#endif
