/* groups.h - groups of scenes: all scenes, and scenes by maneuver, type, city and speed.
 *
 * Order by kind, as in the enum below. Within a kind, maneuvers and speeds have a fixed order, and
 *         types and cities are sorted by name.
 * Every scene is in one group of each kind. A group is created when its first scene is added.
 * Tests: tests/eval/test_score.c, tests/eval/test_evaluator.c
 */
#ifndef BJ_EVAL_GROUPS_H
#define BJ_EVAL_GROUPS_H

#include "core/status.h"
#include "eval/forecast.h"

enum { BJ_BY_ALL, BJ_BY_MANEUVER, BJ_BY_TYPE, BJ_BY_CITY, BJ_BY_SPEED, BJ_GROUP_KINDS };

/* Speed bins in m/s: "0-2", "2-5", ... */
enum { BJ_SPEED_BINS = 5 };
int bj_speed_bin(double speed);
const char *bj_speed_bin_name(int bin);

/* Properties that determine the groups of a scene. */
typedef struct bj_scene_class {
    bj_maneuver maneuver; /* maneuver of the true future */
    const char *type, *city;
    double speed; /* m/s at the last observed step */
} bj_scene_class;

typedef struct bj_group {
    int kind, place; /* place: order within a kind; groups with the same place are ordered by key */
    char *key;
    bj_metrics *metrics;
    double *sums; /* (bj_groups.sums) additional sums, defined by the caller */
} bj_group;

typedef struct bj_groups {
    int K, latents, D; /* sizes of the metrics, see bj_metrics_create */
    int sums;
    bj_group *list; /* (count) groups in order */
    int count, room;
} bj_groups;

const char *bj_group_by(const bj_group *group); /* "all", "maneuver", ... */

/* Creates the group of all scenes. */
BJ_CHECK bj_status bj_groups_start(bj_groups *groups, bj_error *err);
/* Creates the groups of a scene that do not exist yet. */
BJ_CHECK bj_status bj_groups_admit(bj_groups *groups, const bj_scene_class *scene, bj_error *err);
/* Finds the groups of a scene that has been admitted. The pointers are valid until the next
 * bj_groups_admit. */
void bj_groups_find(bj_group *found[BJ_GROUP_KINDS], const bj_groups *groups,
                    const bj_scene_class *scene);
/* Removes groups without scenes, except for the group of all scenes. */
void bj_groups_trim(bj_groups *groups);
void bj_groups_reset(bj_groups *groups);

#endif
