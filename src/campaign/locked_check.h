/* locked_check.h - may this grid of runs be locked? Every refusal names the run and why.
 *
 * A run      is done; has the settings of the campaign and its data; its history is complete; its
 *            checkpoint is of the epoch that the development rule chooses, with the bytes that
 *            result.json states.
 * The grid   runs of a seed have the same data, split and order of scenes; models of the same sizes
 *            begin with the same weights; runs of stage B stand on the same anchor.
 * The data   held-out scenes all have futures, and training knows none of them.
 * Test: tests/campaign/test_lock.c, tests/cli/lock.sh
 */
#ifndef BJ_CAMPAIGN_LOCKED_CHECK_H
#define BJ_CAMPAIGN_LOCKED_CHECK_H

#include "campaign/locked_file.h"

/* The development rule: number of the first row, of epoch 1 on, with the least trajectory Energy
 * Score; of stage A the least decoder ADE among the rows that passed every gate. -1: there is none.
 */
int bj_lock_choose(bj_objective_kind kind, const bj_epoch *rows, int count);

/* What a run says about where it came from, for comparing it with others. */
typedef struct bj_lock_facts {
    bj_arch arch;
    int stage_b;
    char data[BJ_SHA256_HEX], order[BJ_SHA256_HEX], split[BJ_SHA256_HEX];
    char initial[BJ_SHA256_HEX];       /* weights before the first step */
    char anchor[BJ_SHA256_HEX];        /* stage B; else "" */
    char target[BJ_SHA256_HEX];        /* first target encoder of a run with `init`; else "" */
    int extended;                      /* epochs of all extensions */
    char checkpoint[2][BJ_SHA256_HEX]; /* model and state, as result.json has them */
} bj_lock_facts;

/* Checks the run in `dir` and fills arm, seed, evaluated, best_epoch and dev. data_digest and
 * dev_digest (NULL: no other cache) are the campaign's. */
BJ_CHECK bj_status bj_lock_check_run(bj_lock_run *run, bj_lock_facts *facts, const char *name,
                                     const char *dir,
                                     const bj_settings *settings, const char *data_digest,
                                     const char *dev_digest, bj_error *err);
/* runs and facts (count). */
BJ_CHECK bj_status bj_lock_check_grid(const bj_lock_run *runs, const bj_lock_facts *facts,
                                      int count, bj_error *err);
/* After hashing: the checkpoint is the one that result.json tells of, it can be read, it is of the
 * chosen epoch, and it fits the scenes. */
BJ_CHECK bj_status bj_lock_check_checkpoint(const bj_lock_run *run, const bj_lock_facts *facts,
                                            const char *dir, const bj_arch *scenes, bj_error *err);
/* Opens the held-out cache and checks it against those of the campaign; fills path, bytes, digest
 * and number of scenes. dev may be NULL. */
BJ_CHECK bj_status bj_lock_check_data(bj_lock *lock, bj_arch *scenes, const char *data,
                                      const char *train, const char *train_digest, const char *dev,
                                      bj_error *err);

#endif
