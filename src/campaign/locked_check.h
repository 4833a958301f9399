/* locked_check.h - checks whether a grid of runs can be locked. Messages name the run and the
 * reason.
 *
 *   - A run is done and has the settings and the data of the campaign. Its history is complete. Its
 *     checkpoint is of the epoch that the development rule chooses, with the digests in
 *     result.json.
 *   - Runs of a seed have the same data, split and order of scenes. Models of the same sizes start
 *     with the same weights. Stage B runs use the same anchor.
 *   - All held-out scenes have futures, and none of them was used for training.
 * A failed check returns BJ_ELOCKED.
 * Test: tests/campaign/test_lock.c, tests/cli/lock.sh
 */
#ifndef BJ_CAMPAIGN_LOCKED_CHECK_H
#define BJ_CAMPAIGN_LOCKED_CHECK_H

#include "campaign/locked_file.h"
#include "core/safetensors.h"

/* Applies the development rule, starting at epoch 1. Returns the first row with the lowest
 * trajectory Energy Score or, for stage A, with the lowest decoder ADE among the rows that passed
 * every gate. Returns -1 if there is no such row. */
int bj_lock_choose(bj_objective_kind kind, const bj_epoch *rows, int count);

/* Properties of a run that are compared with those of other runs. */
typedef struct bj_lock_facts {
    bj_arch arch;
    int stage_b;
    char data[BJ_SHA256_HEX], order[BJ_SHA256_HEX], split[BJ_SHA256_HEX];
    char initial[BJ_SHA256_HEX];       /* weights before the first step */
    char anchor[BJ_SHA256_HEX];        /* stage B: digest of the anchor; otherwise "" */
    char target[BJ_SHA256_HEX];        /* first target encoder with `init`; otherwise "" */
    int extended;                      /* epochs of all extensions */
    char checkpoint[2][BJ_SHA256_HEX]; /* model and state, from result.json */
} bj_lock_facts;

/* Fills arm, seed, dir and evaluated from the campaign. */
BJ_CHECK bj_status bj_lock_describe(bj_lock_run *run, const bj_campaign *campaign, int index,
                                    bj_error *err);
/* Describes the run, checks its folder and fills best_epoch and dev. */
BJ_CHECK bj_status bj_lock_check_run(bj_lock_run *run, bj_lock_facts *facts,
                                     const bj_campaign *campaign, int index, bj_error *err);
/* runs and facts (count). */
BJ_CHECK bj_status bj_lock_check_grid(const bj_lock_run *runs, const bj_lock_facts *facts,
                                      int count, bj_error *err);
/* Checks the facts inside a checkpoint: arm, seed, settings, data and the chosen epoch. */
BJ_CHECK bj_status bj_lock_check_facts(const bj_lock_run *run, const bj_settings *settings,
                                       const char *data_digest, const bj_safetensors *model,
                                       bj_error *err);
/* Checks after hashing that the checkpoint is the one in result.json and has the facts of the run.
 * With `scenes`, also checks that it can be read and fits the scenes. */
BJ_CHECK bj_status bj_lock_check_checkpoint(const bj_lock_run *run, const bj_lock_facts *facts,
                                            const bj_campaign_run *from, const bj_arch *scenes,
                                            bj_error *err);
/* Opens the held-out cache and checks that it shares no scenes with the campaign's caches. Fills in
 * path, bytes, digest and number of scenes. dev may be NULL. */
BJ_CHECK bj_status bj_lock_check_data(bj_lock *lock, bj_arch *scenes, const char *data,
                                      const char *train, const char *train_digest, const char *dev,
                                      bj_error *err);

#endif
