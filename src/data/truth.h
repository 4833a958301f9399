/* truth.h - the true future of a scenario's focal track, from a cache or from scenario files.
 *
 * The frame is that of the features: origin and x axis are position and heading at the last
 * observed step. Future steps without a row are interpolated, as in the features: linear in time
 * between the nearest rows, the last observed one included, and constant after the last row. From
 * files the numbers are the file's doubles; from a cache they are single precision in the scene's
 * frame. Test: tests/eval/test_score.c
 */
#ifndef BJ_DATA_TRUTH_H
#define BJ_DATA_TRUTH_H

#include <branchjepa/branchjepa.h>

enum { BJ_TRUTH_STEPS = BJ_SUBMISSION_STEPS };

typedef struct bj_truth_scene {
    const char *scenario_id, *focal_id, *focal_type, *city; /* live as long as the truth */
    const char *failure;                                    /* NULL: the scene is readable */
    int has_future, gaps;                                   /* gaps: steps without a row */
    double origin[2], heading;
    double speed;       /* m/s at the last observed step */
    double velocity[2]; /* m/s at the last observed step, in the scene frame */
    double city_future[2 * BJ_TRUTH_STEPS], future[2 * BJ_TRUTH_STEPS]; /* of both frames */
} bj_truth_scene;

/* Wraps a cache that the caller keeps open; bj_truth_free leaves the cache alone. */
BJ_CHECK bj_status bj_truth_borrow(bj_truth **out, const bj_cache *cache, bj_error *err);
void bj_truth_scene_at(bj_truth_scene *out, const bj_truth *truth, int64_t index);
/* Number of the scene of that id, or -1. */
int64_t bj_truth_find(const bj_truth *truth, const char *scenario_id);

#endif
