/* campaign_arms.h - the arms and sweeps of a campaign file.
 *
 *   arms: [fullset, {name: hot, arm: fullset, set: {optim.lr: 3e-3}}]
 *   sweep: {optim.lr: [1e-3, 3e-4], train.batch: [64, 128]}
 *
 * An entry of `arms` is a built-in arm, or a named arm: a built-in arm with settings of its own. A
 * sweep trains every entry once with every combination of the listed values; the first key varies
 * slowest. The arms of a sweep are called NAME+KEY=VALUE, with the last part of the key if that is
 * unambiguous: "hot+lr=1e-3+batch=64".
 */
#ifndef BJ_CAMPAIGN_ARMS_H
#define BJ_CAMPAIGN_ARMS_H

#include "campaign/campaign_internal.h"

enum { BJ_ARM_SETS = 32, BJ_SWEEP_KEYS = 8, BJ_SWEEP_VALUES = 32, BJ_SWEEP_KEY = 64 };

typedef struct bj_listed_arm {
    const char *name, *origin;
    bj_assignment arm; /* value NULL: not given */
    bj_assignment set[BJ_ARM_SETS];
    int set_count;
} bj_listed_arm;

typedef struct bj_sweep {
    char key[BJ_SWEEP_KEY];
    bj_assignment values[BJ_SWEEP_VALUES];
    int count;
} bj_sweep;

/* Texts belong to the configuration. */
typedef struct bj_arm_plan {
    bj_listed_arm listed[BJ_CAMPAIGN_ARMS];
    int count;
    bj_sweep sweeps[BJ_SWEEP_KEYS];
    int sweep_count;
} bj_arm_plan;

/* One arm of the grid. */
typedef struct bj_planned_arm {
    char name[BJ_NAME_SIZE];
    bj_assignment arm;
    bj_assignment set[BJ_ARM_SETS + BJ_SWEEP_KEYS]; /* settings of this arm, then of the sweep */
    int set_count;
} bj_planned_arm;

/* Parses the line `arms.BELOW` or `sweep.BELOW` of a campaign file. */
BJ_CHECK bj_status bj_arm_plan_take_arm(bj_arm_plan *plan, const char *below,
                                        const bj_assignment *line, bj_error *err);
BJ_CHECK bj_status bj_arm_plan_take_sweep(bj_arm_plan *plan, const char *below,
                                          const bj_assignment *line, bj_error *err);
/* Fails if an arm is incomplete, two arms have the same name, or there are too many arms. */
BJ_CHECK bj_status bj_arm_plan_check(const bj_arm_plan *plan, const char *file, bj_error *err);

/* Returns the number of combinations of the swept values, which is 1 without a sweep. */
int bj_arm_plan_combinations(const bj_arm_plan *plan);
/* Builds the arm for one entry and one combination of swept values. */
BJ_CHECK bj_status bj_arm_plan_at(bj_planned_arm *out, const bj_arm_plan *plan, int entry,
                                  int combination, bj_error *err);

/* Fails for settings that the campaign sets itself: arm, seed and anchor. */
BJ_CHECK bj_status bj_campaign_check_key(const bj_assignment *setting, bj_error *err);
/* Returns 1 if the name can be part of a path: it consists of letters, digits and "-_.=+" and does
 * not start with a dot. */
int bj_campaign_is_arm_name(const char *name);

#endif
