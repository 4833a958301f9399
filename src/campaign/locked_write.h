/* locked_write.h - the three files of a locked evaluation (docs/LOCK.md has their members).
 *
 *   run_summary.json   per arm: mean and SD over seeds of every metric, usage of branches, groups
 * of scenes, calibration seed_table.json    per arm and seed: every metric, usage of branches
 *   completion.json    binds the two, the lock and the evaluator; when and how it ran
 *
 * Invariants
 *   1. Every number is a mean over at least BJ_LOCK_LEAST scenes. Groups and bins with fewer have
 *      only their count; when the hidden ones of a kind hold fewer than that together, the smallest
 *      of the others is hidden with them, so that no difference to the whole gives it away.
 *   2. The first two files depend on the lock and on the numbers alone: no time, no path.
 *   3. Nothing names a scene.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_WRITE_H
#define BJ_CAMPAIGN_LOCKED_WRITE_H

#include "campaign/locked_pass.h"

#define BJ_LOCKED_SEEDS_SCHEMA "branchjepa.seed_table/1"
#define BJ_LOCKED_COMPLETION_SCHEMA "branchjepa.completion/1"

/* shown (n): 1 where the numbers behind counts (n), which divide one whole, may be shown. */
void bj_locked_shown(uint8_t *shown, const double *counts, int n);

/* What completion.json says besides. */
typedef struct bj_locked_facts {
    char lock_sha256[BJ_SHA256_HEX];
    int threads;
    double started, finished; /* seconds since 1970 */
} bj_locked_facts;

/* Writes the three files into `folder`; digest is that of completion.json. */
BJ_CHECK bj_status bj_locked_write(char digest[BJ_SHA256_HEX], const bj_locked_results *results,
                                   const bj_lock *lock, const bj_locked_facts *facts,
                                   const char *folder, bj_error *err);

/* Checks the files in DIR/locked against each other and against the lock: BJ_EMISMATCH names what
 * was changed. */
BJ_CHECK bj_status bj_locked_check(char digest[BJ_SHA256_HEX], const bj_lock *lock,
                                   const char *lock_sha256, const char *folder, bj_error *err);

#endif
