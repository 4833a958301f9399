/* law.h - the distribution of the focal vehicle's future, given what was observed.
 *
 *   y = mean_m + sum_r z_r factor_m,r + sigma e      m with probability weight_m
 *
 * y (60,2) positions at steps 50 .. 109; z_r independent standard normal; e independent with mean 0
 * and variance 1 (bj_world_jitter). Modes come from what the vehicle may do next: its routes
 * through the lanes ahead, combined with going on, slowing down, speeding up, stopping, yielding or
 * changing lanes. Weights are an explicit function of the observed rows and the map;
 * docs/WORLD.md has the equations.
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

#define BJ_LAW_JITTER 0.004 /* sigma, meters */

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

/* A row of the scenario, as stored: with noise. */
typedef struct bj_row {
    double x, y, vx, vy, heading;
} bj_row;

/* The polylines of the map that the law looks at: in version 1 all of them, in version 2 those
 * nearer to the focal vehicle than the farthest one that features show. */
typedef struct bj_view {
    uint64_t lanes[BJ_TOWN_LANES / 64];
    uint32_t crossings;
    double reach; /* rank of the farthest one, or 1e300; see bj_features_rank */
} bj_view;

static inline int bj_view_lane(const bj_view *view, int lane) {
    return view->lanes[lane / 64] >> lane % 64 & 1;
}

/* What the law looks at. Everything is computed from stored rows up to step 49 and the map. */
typedef struct bj_observed {
    bj_view view;
    int lane;
    double s, offset;        /* place on the lane, left of its center line */
    double v, a;             /* along the track: least squares over the last second */
    double drift;            /* speed to the left, against the lane */
    double limit;            /* speed the lane allows */
    double line;             /* way to the next stop line; 1e9 when none is near */
    int node;                /* its junction, or -1 */
    int minor;               /* 1: who waits there yields to the other street */
    double walked;           /* way to the next crossing with a pedestrian on it; 1e9 without */
    double lead_gap, lead_v; /* vehicle ahead on the lane; gap 1e9 without */
} bj_observed;

typedef struct bj_mode {
    bj_intent intent;
    double weight;
    int route[BJ_WORLD_ROUTE], route_count; /* from the observed lane on */
    double stop;                            /* way to where it stops; 1e9: does not */
    int hold;      /* steps it waits there before it goes on; 1000: for good */
    double wanted; /* speed */
    double shift;  /* lateral target, to the left */
    int green;     /* 1, 0: the light of the junction ahead is green or red; -1: plays no role */
    /* filled by bj_law_roll; city coordinates */
    double mean[BJ_LAW_STEPS][2], heading[BJ_LAW_STEPS], speed[BJ_LAW_STEPS];
    double factor[BJ_LAW_FACTORS][BJ_LAW_STEPS][2];
    bj_script scripts[1 + BJ_LAW_LEADERS]; /* of the focal vehicle and those ahead of it */
    bj_motion leader_path[BJ_LAW_LEADERS][BJ_LAW_STEPS];
} bj_mode;

typedef struct bj_law_state {
    bj_observed observed;
    bj_mode modes[BJ_LAW_MODES];
    int count;
} bj_law_state;

/* Stored rows of an agent, all 110 steps; those of steps 38 .. 49 are read. */
typedef const bj_row *bj_rows;

/* The law of a scene after step 49; rows[i] are the stored rows of agent i, or NULL when it is not
 * seen then, or, in version 2, not one of the neighbors that features keep. */
void bj_law_make(bj_law_state *law, const bj_traffic *traffic, const bj_rows *rows);

/* ---------------------------------------------------------------------------------------- parts */

/* Speed and acceleration at the last observed step. */
void bj_law_motion(double *v, double *a, bj_rows rows);
/* Finds the lanes and crossings within view of the focal vehicle. The calls below decide by the
 * view and the rows alone in version 2, and by what the simulator knows in version 1. */
void bj_view_make(bj_view *view, const bj_town *town, const bj_row *focal);
/* Lists the lanes in view that follow a lane, and returns their count. */
int bj_view_next(const bj_view *view, const bj_road_lane *lane, int next[BJ_TOWN_SUCC]);
/* Returns the lane the focal vehicle is on. */
int bj_view_own_lane(const bj_view *view, const bj_traffic *traffic, const bj_row *focal);
/* Returns 1 if the control of the junction that the lane leads into is within view. */
int bj_view_junction(const bj_view *view, const bj_town *town, const bj_row *focal, int lane);
/* Returns 1 if somebody walks on the crossing. */
int bj_view_walked(const bj_traffic *traffic, const bj_rows *rows, int crossing);

/* Where a vehicle is on a lane: `rough` decides who comes first, the others are measured. */
typedef struct bj_on_lane {
    double rough, s, offset;
} bj_on_lane;

/* Returns 1 if agent i drives on the lane. */
int bj_view_on_lane(bj_on_lane *out, const bj_traffic *traffic, const bj_rows *rows, int i,
                    int lane);

void bj_law_observe(bj_observed *out, const bj_traffic *traffic, const bj_rows *rows);
/* Modes with their weights, most likely first; the trajectories are still to be computed. */
void bj_law_weigh(bj_law_state *law, const bj_traffic *traffic);
/* Mean trajectory, factors and scripts of a mode. */
void bj_law_roll(bj_mode *mode, const bj_observed *observed, const bj_traffic *traffic,
                 const bj_rows *rows);

/* One draw of the future: mode, and smooth positions (without jitter) and speeds. */
int bj_law_draw(const bj_law_state *law, bj_rng *rng, double smooth[BJ_LAW_STEPS][2]);

#endif
