/* features.h - converts a scenario and its map to the input arrays of the network.
 *
 * Everything is computed in double and rounded once to float. The origin of the frame is the focal
 * position at the last observed step, and the x axis is the focal heading at this step.
 *
 *   focal, neighbors   x, y, vx, vy, cos h, sin h, type               neighbors nearest first
 *   polylines          x, y, cos d, sin d, intersection, crosswalk    nearest first
 *   future             x, y
 *
 * docs/DATA.md states every rule, including the tie-breaks.
 * Tests: tests/data/test_features.c, test_golden.c, peer_features.py
 */
#ifndef BJ_DATA_FEATURES_H
#define BJ_DATA_FEATURES_H

#include <stdint.h>

#include "data/map.h"
#include "data/scenario.h"

/* Increment this number whenever the features of an unchanged input file change. */
#define BJ_FEATURES_VERSION "av2-1"

enum {
    BJ_AV2_OBS = 50,
    BJ_AV2_FUT = 60,
    BJ_AV2_NEIGHBORS = 16,
    BJ_AV2_POLYLINES = 48,
    BJ_AV2_POINTS = 10,
    BJ_AV2_TRACK = BJ_AV2_OBS * 7,   /* floats per track */
    BJ_AV2_LINE = BJ_AV2_POINTS * 6, /* floats per polyline */
    BJ_AV2_FUTURE = BJ_AV2_FUT * 2   /* floats per future */
};

typedef struct bj_features {
    double origin[2], heading;                    /* frame in city coordinates */
    int neighbors, polylines;                     /* number of used slots */
    int neighbors_available, polylines_available; /* counts before the selection of the nearest */
    uint64_t focal_valid;  /* bit t is set if the focal track has a row at step t < 50 */
    uint64_t future_valid; /* bit k is set if there is a row at step 50 + k; 0 if the future is
                              unknown */
    uint64_t neighbor_valid[BJ_AV2_NEIGHBORS];
    int neighbor_track[BJ_AV2_NEIGHBORS];  /* track of the scenario, -1 in unused slots */
    int64_t polyline_id[BJ_AV2_POLYLINES]; /* -1 in unused slots */
    float focal[BJ_AV2_TRACK];
    float future[BJ_AV2_FUTURE]; /* zero if unknown */
    float neighbor[BJ_AV2_NEIGHBORS][BJ_AV2_TRACK];
    float polyline[BJ_AV2_POLYLINES][BJ_AV2_LINE];
} bj_features;

/* Scratch memory that is reused between scenes. */
typedef struct bj_features_maker bj_features_maker;

BJ_CHECK bj_status bj_features_maker_create(bj_features_maker **out, bj_error *err);
void bj_features_maker_free(bj_features_maker *maker); /* accepts NULL */
/* Computes the features of a scene. Fails if the focal track has no row at step 49 or a number does
 * not fit a float. Messages start with `label`. */
BJ_CHECK bj_status bj_features_make(bj_features *out, bj_features_maker *maker,
                                    const bj_scenario *scenario, const bj_map *map,
                                    const char *label, bj_error *err);
/* Split bj_features_make for many scenes with one map: bj_features_prepare resamples the polylines
 * once, then bj_features_make_prepared computes each scene with bit-identical results. `map` must
 * be the map that was prepared. */
BJ_CHECK bj_status bj_features_prepare(bj_features_maker *maker, const bj_map *map, bj_error *err);
BJ_CHECK bj_status bj_features_make_prepared(bj_features *out, bj_features_maker *maker,
                                             const bj_scenario *scenario, const bj_map *map,
                                             const char *label, bj_error *err);

/* The functions below implement parts of the rules. The simulated world also uses them, so that its
 * law depends only on model inputs.
 *
 * Resamples a lane's boundaries and computes its center line. `scratch` has room for as many
 * numbers as the longer boundary has points. */
void bj_features_center_line(bj_point out[BJ_AV2_POINTS], bj_points left, bj_points right,
                             double *scratch);
/* Resamples a crossing's edge. `scratch` has room for line.count numbers. */
void bj_features_resample(bj_point out[BJ_AV2_POINTS], bj_points line, double *scratch);
/* Returns the rank by which the nearest objects are selected, which is the distance in tenths of a
 * millimeter. */
double bj_features_rank(double squared_distance);
/* Returns the squared distance to a polyline's nearest point, or NaN if a coordinate is not
 * finite. */
double bj_features_nearest_squared(const bj_point line[BJ_AV2_POINTS], const double origin[2]);

#endif
