/* locked_verify.h - verifies a lock and its evaluation. Every reader of a locked evaluation calls
 * bj_verify, through bj_campaign_verify or bj_locked_open.
 *
 *   1. the JSON files against each other (locked_records.h)
 *   2. the SHA-256 of every locked file
 *   3. the grid in campaign.json against lock.json and against settings, history and result of
 *      every run, and against the facts inside every checkpoint (locked_check.h)
 *   4. size, digest and number of scenes of the held-out cache
 *   5. the signature of completion.json, if there is one
 * Test: tests/campaign/test_locked.c, tests/cli/evaluate.sh, tests/cli/tamper.sh
 */
#ifndef BJ_CAMPAIGN_LOCKED_VERIFY_H
#define BJ_CAMPAIGN_LOCKED_VERIFY_H

#include "campaign/locked_records.h"

typedef struct bj_verified {
    bj_records records;
    bj_campaign *campaign;
    bj_lock_hashes hashes;
    const char *evaluator; /* as given; NULL if it was not compared */
} bj_verified;

/* Sets `v` to zero first. */
BJ_CHECK bj_status bj_verify(bj_verified *v, bj_locked_report *report, const char *dir,
                             const bj_locked_options *options, bj_error *err);
void bj_verified_reset(bj_verified *v); /* accepts `v` that is all zero */

#endif
