/* features.h - from a scenario and its map to the arrays the network sees.
 *
 * Everything is computed in double and rounded once to float. The frame has its origin at the focal
 * position of the last observed step and its x axis along the focal heading there.
 *
 *   focal, neighbors   x, y, vx, vy, cos h, sin h, type     neighbors nearest first
 *   polylines          x, y, cos d, sin d, intersection, crosswalk     nearest first
 *   future             x, y
 *
 * docs/DATA.md states every rule, with the tie-breaks.
 * Tests: tests/data/test_features.c, test_golden.c, peer_features.py
 */
#ifndef BJ_DATA_FEATURES_H
#define BJ_DATA_FEATURES_H

#include <stdint.h>

#include "data/map.h"
#include "data/scenario.h"

/* Changes whenever the same files would give other numbers. */
#define BJ_FEATURES_VERSION "av2-1"

enum {
    BJ_AV2_OBS = 50,
    BJ_AV2_FUT = 60,
    BJ_AV2_NEIGHBORS = 16,
    BJ_AV2_POLYLINES = 48,
    BJ_AV2_POINTS = 10,
    BJ_AV2_TRACK = BJ_AV2_OBS * 7,   /* floats of a track */
    BJ_AV2_LINE = BJ_AV2_POINTS * 6, /* floats of a polyline */
    BJ_AV2_FUTURE = BJ_AV2_FUT * 2   /* floats of a future */
};

typedef struct bj_features {
    double origin[2], heading;                    /* of the frame, in city coordinates */
    int neighbors, polylines;                     /* used */
    int neighbors_available, polylines_available; /* before the cut to the nearest */
    uint64_t focal_valid;  /* bit t: the focal track has a row at step t < 50 */
    uint64_t future_valid; /* bit k: ... at step 50 + k; 0: the future is unknown */
    uint64_t neighbor_valid[BJ_AV2_NEIGHBORS];
    int neighbor_track[BJ_AV2_NEIGHBORS];  /* of the scenario; -1: slot not used */
    int64_t polyline_id[BJ_AV2_POLYLINES]; /* -1 in slots that are not used */
    float focal[BJ_AV2_TRACK];
    float future[BJ_AV2_FUTURE]; /* zero when unknown */
    float neighbor[BJ_AV2_NEIGHBORS][BJ_AV2_TRACK];
    float polyline[BJ_AV2_POLYLINES][BJ_AV2_LINE];
} bj_features;

/* Scratch that is kept between scenes. */
typedef struct bj_features_maker bj_features_maker;

BJ_CHECK bj_status bj_features_maker_create(bj_features_maker **out, bj_error *err);
void bj_features_maker_free(bj_features_maker *maker); /* accepts NULL */
/* Refuses a focal track without a row at step 49, and whatever does not fit a float. `label` opens
 * the messages. */
BJ_CHECK bj_status bj_features_make(bj_features *out, bj_features_maker *maker,
                                    const bj_scenario *scenario, const bj_map *map,
                                    const char *label, bj_error *err);
/* Splits bj_features_make for many scenes of one map: resamples the polylines once, then makes each
 * scene from them, with the same bits. The map must be the prepared one. */
BJ_CHECK bj_status bj_features_prepare(bj_features_maker *maker, const bj_map *map, bj_error *err);
BJ_CHECK bj_status bj_features_make_prepared(bj_features *out, bj_features_maker *maker,
                                             const bj_scenario *scenario, const bj_map *map,
                                             const char *label, bj_error *err);

/* Parts of the rules that the simulated world applies too, so that its law looks at nothing else.
 *
 * Resamples a lane's boundaries to the points of its center line; `scratch` has room for as many
 * numbers as the longer boundary has points. */
void bj_features_center_line(bj_point out[BJ_AV2_POINTS], bj_points left, bj_points right,
                             double *scratch);
/* Resamples a crossing's edge in the same way. */
void bj_features_resample(bj_point out[BJ_AV2_POINTS], bj_points line, double *scratch);
/* Returns the rank by which the nearest are chosen: the distance in tenths of a millimeter. */
double bj_features_rank(double squared_distance);
/* Returns the squared distance of a polyline's nearest point, or NaN if a coordinate is not finite.
 */
double bj_features_nearest_squared(const bj_point line[BJ_AV2_POINTS], const double origin[2]);

#endif
