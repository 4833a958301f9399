/* rules.h - forecasts made by a fixed rule from what was observed; no training, no law.
 *
 *   constant-velocity     y_t = v t: the velocity of step 49 is kept
 *   constant-velocity-6   the same with six speeds f_k |v|, each with probability 1/6
 *   constant-turn-rate    speed |v| and yaw rate w are kept: an arc
 *   lane-following        routes through the lane graph at two speed profiles (lanes.c)
 *
 * The yaw rate is the least-squares slope of the heading over the rows of steps 40 to 49. The speed
 * factors are f_k = 1 + 0.3 z_k, where z_k are the standard normal quantiles at (k + 1/2) / 6.
 *
 * Shapes  y (K,60,2) in the scene frame, meters; p (K)
 * Edge    at speed 0 the six speeds coincide, so constant-velocity-6 gives one trajectory
 * Tests   tests/rules/test_rules.c, tests/rules/peer_rules.py
 */
#ifndef BJ_RULES_RULES_H
#define BJ_RULES_RULES_H

#include <branchjepa/branchjepa.h>

#include "data/map.h"

enum { BJ_RULE_MODES = BJ_SUBMISSION_MODES, BJ_RULE_ROW = 2 * BJ_SUBMISSION_STEPS };

/* What a rule may use of a scene. */
typedef struct bj_rule_scene {
    const float *focal;   /* (50,7) as in bj_scene */
    uint64_t focal_valid; /* bit t is set if the focal track has a row at step t */
    const char *focal_type;
    double origin[2], heading; /* scene frame in city coordinates */
    const bj_map *map;         /* city coordinates; NULL: not available */
} bj_rule_scene;

typedef struct bj_rule_forecast {
    int K;
    double p[BJ_RULE_MODES], y[BJ_RULE_MODES][BJ_RULE_ROW];
} bj_rule_forecast;

/* Fills y (60,2) with positions at constant velocity from the origin. */
void bj_rule_velocity(double *y, const double velocity[2]);
/* Fills y (60,2) with an arc that starts with `velocity` at step 49 and turns left at `rate`
 * radians per second. */
void bj_rule_turn(double *y, const double velocity[2], double rate);

/* Scratch memory of the lane rule, reused between scenes. */
typedef struct bj_lane_rule bj_lane_rule;
BJ_CHECK bj_status bj_lane_rule_create(bj_lane_rule **out, bj_error *err);
void bj_lane_rule_free(bj_lane_rule *rule); /* accepts NULL */
/* Requires scene->map. */
BJ_CHECK bj_status bj_lane_rule_forecast(bj_rule_forecast *out, bj_lane_rule *rule,
                                         const bj_rule_scene *scene, bj_error *err);

/* Applies a rule to one scene. Only BJ_RULE_LANES needs `lanes`. */
BJ_CHECK bj_status bj_rule_apply(bj_rule_forecast *out, bj_rule rule, bj_lane_rule *lanes,
                                 const bj_rule_scene *scene, bj_error *err);

#endif
