/* locked_pass.h - evaluates all checkpoints in one pass over the held-out scenes.
 *
 * Every batch of scenes is read once and passed to each evaluator. The results are sums over all
 * scenes. No function returns results of a single scene.
 *
 * The bytes that are loaded are the bytes that are hashed: both files of a checkpoint are read into
 * memory once, compared with the lock and loaded from there, and scenes are read from the mapping
 * that was hashed. A file that is exchanged between verification and loading is rejected.
 * Test: tests/campaign/test_locked.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_PASS_H
#define BJ_CAMPAIGN_LOCKED_PASS_H

#include "campaign/locked_file.h"
#include "core/file.h"

/* Results of one checkpoint. */
typedef struct bj_locked_result {
    const char *arm; /* in the lock */
    int64_t seed;
    int atoms;
    bj_metric_values values;
    double usage[BJ_MAX_ATOMS]; /* (atoms) */
    bj_calibration_bin bins[BJ_CALIBRATION_BINS];
    bj_evaluation_group *groups; /* (group_count), the same groups for every checkpoint */
    int group_count;
} bj_locked_result;

typedef struct bj_locked_results {
    bj_locked_result *of; /* (count) in the order of the lock */
    int count;
    int64_t scenes;
    char isa[32];
    /* owners of the group names */
    bj_file_map data;
    bj_cache *cache;
    bj_evaluator **evaluators; /* (count) */
} bj_locked_results;

/* Sets `results` to zero first. The lock must have been verified against the campaign. */
BJ_CHECK bj_status bj_locked_pass(bj_locked_results *results, const bj_lock *lock,
                                  const bj_campaign *campaign, int threads, const char *isa,
                                  const bj_locked_watch *watch, bj_error *err);
void bj_locked_results_reset(bj_locked_results *results); /* accepts results that are all zero */

#endif
