/* law.h - the law: the distribution of the focal vehicle's future given the observed scene.
 *
 *   y = mean_m + sum_r z_r factor_m,r + sigma e      m with probability weight_m
 *
 * y (60,2) are the positions at steps 50 .. 109. The z_r are independent standard normal, and e is
 * independent with mean 0 and variance 1 (bj_world_jitter). Modes are the options of the vehicle:
 * its routes through the lanes ahead, combined with keeping its speed, slowing down, accelerating,
 * stopping, yielding or changing lanes. Weights are an explicit function of the observed rows and
 * the map. docs/WORLD.md has the equations.
 * Tests: tests/world/test_law.c
 */
#ifndef BJ_WORLD_LAW_H
#define BJ_WORLD_LAW_H

#include "world/traffic.h"

enum {
    BJ_LAW_MODES = 8,
    BJ_LAW_FACTORS = 4,
    BJ_LAW_STEPS = BJ_WORLD_STEPS - BJ_WORLD_OBSERVED,
    BJ_LAW_LEADERS = 3
};

#define BJ_LAW_JITTER 0.004                        /* sigma in meters */
#define BJ_LAW_JITTER_TEXT "0.0040000000000000001" /* in files, with 17 digits */

typedef enum bj_intent {
    BJ_INTENT_KEEP,
    BJ_INTENT_SLOW,
    BJ_INTENT_ACCELERATE,
    BJ_INTENT_STOP,
    BJ_INTENT_YIELD,
    BJ_INTENT_STRAIGHT,
    BJ_INTENT_LEFT,
    BJ_INTENT_RIGHT,
    BJ_INTENT_BACK,
    BJ_INTENT_CHANGE_LEFT,
    BJ_INTENT_CHANGE_RIGHT,
    BJ_INTENTS
} bj_intent;

const char *bj_intent_name(bj_intent intent);

/* One stored row of the scenario, including noise. */
typedef struct bj_row {
    double x, y, vx, vy, heading;
} bj_row;

/* The polylines of the map that the law uses. Version 1 uses all polylines. Version 2 ignores
 * polylines that are farther from the focal vehicle than the farthest polyline in the features. */
typedef struct bj_view {
    uint64_t lanes[BJ_TOWN_LANES / 64];
    uint32_t crossings;
    double reach; /* rank of the farthest polyline used, or 1e300; see bj_features_rank */
} bj_view;

static inline int bj_view_lane(const bj_view *view, int lane) {
    return view->lanes[lane / 64] >> lane % 64 & 1;
}

/* The inputs of the law. Everything is computed from stored rows up to step 49 and the map. */
typedef struct bj_observed {
    bj_view view;
    int lane;
    double s, offset;        /* arc length along the lane; distance to the left of its center
                                line */
    double v, a;             /* speed and acceleration, from a least-squares fit over the last
                                second */
    double drift;            /* lateral speed to the left, relative to the lane */
    double limit;            /* speed limit of the lane */
    double line;             /* distance to the next stop line, 1e9 if none is near */
    int node;                /* junction of the stop line, or -1 */
    int minor;               /* 1 if vehicles at this stop line yield to the other street */
    double walked;           /* distance to the next occupied crossing, 1e9 if none */
    double lead_gap, lead_v; /* gap to the vehicle ahead on the lane (1e9 if none) and its speed */
} bj_observed;

typedef struct bj_mode {
    bj_intent intent;
    double weight;
    int route[BJ_WORLD_ROUTE], route_count; /* starts at the observed lane */
    double stop;                            /* distance to the stopping point, or 1e9 */
    int hold;                               /* number of steps that the vehicle waits at the stop;
                                               1000 means forever */
    double wanted;                          /* desired speed */
    double shift;                           /* lateral target, positive to the left */
    int green; /* light at the junction ahead: 1 green, 0 red, -1 irrelevant */
    /* Filled by bj_law_roll, in city coordinates. */
    double mean[BJ_LAW_STEPS][2], heading[BJ_LAW_STEPS], speed[BJ_LAW_STEPS];
    double factor[BJ_LAW_FACTORS][BJ_LAW_STEPS][2];
    bj_script scripts[1 + BJ_LAW_LEADERS]; /* scripts of the focal vehicle and its leaders */
    bj_motion leader_path[BJ_LAW_LEADERS][BJ_LAW_STEPS];
} bj_mode;

typedef struct bj_law_state {
    bj_observed observed;
    bj_mode modes[BJ_LAW_MODES];
    int count;
} bj_law_state;

/* The stored rows of an agent at all 110 steps. The law reads only steps 38 .. 49. */
typedef const bj_row *bj_rows;

/* Computes the law of a scene after step 49. rows[i] are the stored rows of agent i. rows[i] must
 * be NULL if agent i is not visible in steps 38 .. 49 or, in version 2, if it is not one of the
 * neighbors in the features. */
void bj_law_make(bj_law_state *law, const bj_traffic *traffic, const bj_rows *rows);

/* ---------------------------------------------------------------------------------------- parts */

/* Computes the speed and the acceleration at the last observed step. */
void bj_law_motion(double *v, double *a, bj_rows rows);
/* Finds the lanes and crossings in view of the focal vehicle. In version 2 the functions below
 * depend only on the view and the rows. In version 1 they use the state of the simulator. */
void bj_view_make(bj_view *view, const bj_town *town, const bj_row *focal);
/* Lists the successors of a lane that are in view. Returns their number. */
int bj_view_next(const bj_view *view, const bj_road_lane *lane, int next[BJ_TOWN_SUCC]);
/* Returns the lane of the focal vehicle. */
int bj_view_own_lane(const bj_view *view, const bj_traffic *traffic, const bj_row *focal);
/* Returns 1 if it can be seen how the junction at the end of the lane is controlled. */
int bj_view_junction(const bj_view *view, const bj_town *town, const bj_row *focal, int lane);
/* Returns 1 if there is a pedestrian on the crossing. */
int bj_view_walked(const bj_traffic *traffic, const bj_rows *rows, int crossing);

/* Position of a vehicle on a lane. `rough` is used to order vehicles. s and offset are measured
 * from the stored row. */
typedef struct bj_on_lane {
    double rough, s, offset;
} bj_on_lane;

/* Returns 1 if agent i drives on the lane, and sets its position. */
int bj_view_on_lane(bj_on_lane *out, const bj_traffic *traffic, const bj_rows *rows, int i,
                    int lane);

void bj_law_observe(bj_observed *out, const bj_traffic *traffic, const bj_rows *rows);
/* Computes the modes and their weights, most likely first, without trajectories. */
void bj_law_weigh(bj_law_state *law, const bj_traffic *traffic);
/* Computes the mean trajectory, the factors and the scripts of a mode. */
void bj_law_roll(bj_mode *mode, const bj_observed *observed, const bj_traffic *traffic,
                 const bj_rows *rows);

/* Draws one future. Returns its mode and fills `smooth` with the positions without jitter. */
int bj_law_draw(const bj_law_state *law, bj_rng *rng, double smooth[BJ_LAW_STEPS][2]);

#endif
