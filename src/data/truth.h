/* truth.h - the true future of a scenario's focal track, from a cache or from scenario files.
 *
 * The frame is the feature frame: its origin and x axis are position and heading at the last
 * observed step. Future steps without a row are interpolated as in the features: linearly in time
 * between the nearest rows, including the last observed one, and constant after the last row.
 * Futures from scenario files have the double precision of the file. Futures from a cache have
 * single precision in the scene frame.
 * Test: tests/eval/test_score.c
 */
#ifndef BJ_DATA_TRUTH_H
#define BJ_DATA_TRUTH_H

#include <branchjepa/branchjepa.h>

enum { BJ_TRUTH_STEPS = BJ_SUBMISSION_STEPS };

typedef struct bj_truth_scene {
    const char *scenario_id, *focal_id, *focal_type, *city; /* valid until the bj_truth is freed */
    const char *failure;                                    /* NULL if the scene is readable */
    int has_future, gaps;                                   /* gaps: steps without a row */
    double origin[2], heading;
    double speed;       /* m/s at the last observed step */
    double velocity[2]; /* speed in m/s at the last observed step, in the scene frame */
    double city_future[2 * BJ_TRUTH_STEPS], future[2 * BJ_TRUTH_STEPS]; /* city and scene frame */
} bj_truth_scene;

/* Wraps a cache that the caller keeps open. bj_truth_free does not close the cache. */
BJ_CHECK bj_status bj_truth_borrow(bj_truth **out, const bj_cache *cache, bj_error *err);
void bj_truth_scene_at(bj_truth_scene *out, const bj_truth *truth, int64_t index);
/* Checks the content of a scene of a cache against its digest. Scenario files need no check. */
BJ_CHECK bj_status bj_truth_check(const bj_truth *truth, int64_t index, bj_error *err);
/* Returns the index of the scene with that id, or -1. */
int64_t bj_truth_find(const bj_truth *truth, const char *scenario_id);

#endif
