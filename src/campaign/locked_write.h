/* locked_write.h - builds the three files of a locked evaluation (docs/LOCK.md lists their
 * members).
 *
 *   run_summary.json   per arm: mean and SD over seeds of every metric, usage of branches, groups
 *                      of scenes, calibration
 *   seed_table.json    per arm and seed: every metric, usage of branches
 *   completion.json    digests of the two files, the lock and the evaluator; time and machine
 *
 * Invariants
 *   1. Every number is a mean over at least BJ_LOCK_LEAST scenes. Groups and bins with fewer scenes
 *      have only their count. If the hidden groups of a kind have fewer scenes together, the
 *      smallest visible group is hidden, too, so the hidden values cannot be computed as a
 *      difference.
 *   2. The first two files depend only on the lock and the numbers, not on time or paths.
 *   3. No file contains the name of a scene.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_WRITE_H
#define BJ_CAMPAIGN_LOCKED_WRITE_H

#include "campaign/locked_completion.h"
#include "campaign/locked_pass.h"

#define BJ_LOCKED_SUMMARY_SCHEMA "branchjepa.run_summary/1"
#define BJ_LOCKED_SEEDS_SCHEMA "branchjepa.seed_table/1"

/* Sets shown (n) to 1 for groups that have enough scenes to be published. counts (n) are the group
 * sizes, and the groups partition all scenes. */
void bj_locked_shown(uint8_t *shown, const double *counts, int n);

/* Return the text of a file. */
BJ_CHECK bj_status bj_locked_seeds_text(bj_locked_text *out, const bj_locked_results *results,
                                        const bj_lock *lock, const char *lock_sha256,
                                        bj_error *err);
/* With `brief`, leaves out calibration and groups, so the text depends only on the content of
 * seed_table.json. */
BJ_CHECK bj_status bj_locked_summary_text(bj_locked_text *out, const bj_locked_results *results,
                                          const bj_lock *lock, const char *lock_sha256, int brief,
                                          bj_error *err);

/* Further content of completion.json. */
typedef struct bj_locked_facts {
    char lock_sha256[BJ_SHA256_HEX];
    int threads;
    double started, finished; /* seconds since 1970 */
} bj_locked_facts;

/* Writes the three files to `folder`. `digest` receives the SHA-256 of completion.json. */
BJ_CHECK bj_status bj_locked_write(char digest[BJ_SHA256_HEX], const bj_locked_results *results,
                                   const bj_lock *lock, const bj_locked_facts *facts,
                                   const char *folder, bj_error *err);

#endif
