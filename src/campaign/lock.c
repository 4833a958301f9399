/* lock.c - locks a finished campaign before its only evaluation.
 *
 * Invariants
 *   1. Nothing is written unless every check in locked_check.h passes. Cheap checks run first.
 *   2. A campaign can be locked only once. A campaign with results but without a lock is rejected.
 *   3. lock.json is renamed only when it is complete, and while this process has locked the folder.
 * Test: tests/campaign/test_lock.c, tests/cli/lock.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "campaign/campaign_internal.h"
#include "campaign/locked_check.h"
#include "core/alloc.h"
#include "core/file.h"

static bj_status check_unlocked(const char *dir, bj_error *err) {
    char path[BJ_FOLDER_PATH];
    BJ_TRY(bj_lock_path(path, dir, BJ_LOCK_FILE, err));
    if (bj_file_exists(path))
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign is already locked", path);
    return bj_lock_unevaluated(dir, err);
}

/* Fails if any run has no result. The message names the first such run. */
static bj_status check_finished(const bj_campaign *campaign, bj_error *err) {
    const int count = bj_campaign_runs(campaign);
    char named[256] = "";
    int missing = 0, used = 0;
    for (int i = 0; i < count; i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        char path[BJ_FOLDER_PATH];
        BJ_TRY(bj_lock_path(path, run.dir, "result.json", err));
        if (bj_file_exists(path)) continue;
        if (missing++ < 4)
            used += snprintf(named + used, sizeof named - (size_t)used, "%s%.40s seed %llu",
                             used ? ", " : "", bj_campaign_label(campaign, i),
                             (unsigned long long)run.settings->seed);
    }
    if (!missing) return BJ_OK;
    return BJ_FAIL(err, BJ_ELOCKED, "not locked: %d of %d runs are not done: %s%s", missing, count,
                   named, missing > 4 ? ", ..." : "");
}

static void count_grid(bj_lock_report *report, const bj_lock *lock) {
    report->runs = lock->count;
    for (int i = 0; i < lock->count; i++) {
        int new_arm = 1, new_seed = 1;
        for (int j = 0; j < i; j++) {
            new_arm &= strcmp(lock->runs[j].arm, lock->runs[i].arm) != 0;
            new_seed &= lock->runs[j].seed != lock->runs[i].seed;
        }
        report->arms += new_arm;
        report->seeds += new_seed;
    }
    report->scenes = lock->scenes;
}

static bj_status publish(bj_lock_report *report, const bj_lock *lock, const char *dir,
                         bj_error *err) {
    char path[BJ_FOLDER_PATH];
    int turn;
    BJ_TRY(bj_lock_path(path, dir, BJ_LOCK_FILE, err));
    BJ_TRY(bj_campaign_turn(&turn, dir, err));
    bj_locked_text text = {0};
    bj_status status = check_unlocked(dir, err);
    if (status == BJ_OK) status = bj_lock_text(&text, lock, err);
    if (status == BJ_OK) status = bj_file_write(path, text.bytes, text.size, err);
    memcpy(report->digest, text.sha256, sizeof report->digest);
    bj_locked_text_reset(&text);
    bj_campaign_turn_end(turn);
    return status;
}

static int tell(void *context, const char *phase, int64_t done, int64_t total) {
    const bj_lock_options *options = context;
    (void)phase;
    return options->progress(options->context, done, total);
}

/* Adds to the message of a failed check that nothing was locked. */
static bj_status not_locked(bj_status status, bj_error *err) {
    if (status != BJ_ELOCKED || !err) return status;
    const bj_error was = *err;
    return BJ_FAIL(err, status, "not locked: %.480s", was.message);
}

static bj_status fill(bj_lock *lock, bj_lock_facts *facts, bj_lock_hashes *hashes,
                      const bj_campaign *campaign, bj_lock_options *options, bj_error *err) {
    const char *dir = bj_campaign_dir(campaign);
    const bj_locked_watch watch = {options->progress ? tell : NULL, options};
    bj_arch scenes;
    snprintf(lock->campaign, sizeof lock->campaign, "%s", bj_campaign_name(campaign));
    lock->schema = 2;
    snprintf(lock->version, sizeof lock->version, "%s", bj_version());
    for (int i = 0; i < lock->count; i++)
        BJ_TRY(not_locked(bj_lock_check_run(&lock->runs[i], &facts[i], campaign, i, err), err));
    BJ_TRY(not_locked(bj_lock_check_grid(lock->runs, facts, lock->count, err), err));
    BJ_TRY(bj_lock_check_data(lock, &scenes, options->data, bj_campaign_data(campaign),
                              bj_campaign_data_digest(campaign), bj_campaign_dev(campaign), err));
    BJ_TRY(bj_lock_hash(lock, hashes, dir, options->evaluator, BJ_LOCK_FILL, &watch, err));
    for (int i = 0; i < lock->count; i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        BJ_TRY(not_locked(
            bj_lock_check_checkpoint(&lock->runs[i], &facts[i], &run, &scenes, err), err));
    }
    return bj_lock_untouched(lock, hashes, dir, options->evaluator,
                             "during the lock; nothing was written", err);
}

bj_status bj_campaign_lock(bj_lock_report *report, const char *dir, const bj_lock_options *given,
                           bj_error *err) {
    bj_lock lock = {0};
    bj_lock_hashes hashes = {0};
    bj_lock_facts *facts = NULL;
    bj_campaign *campaign = NULL;
    bj_status status;
    *report = (bj_lock_report){0};
    if (!given || !given->data || !given->evaluator)
        return BJ_FAIL(err, BJ_EARG, "lock: held-out data or evaluator is not given");
    bj_lock_options options = *given;
    BJ_TRY(bj_campaign_open(&campaign, dir, err));
    BJ_GOTO(status, done, check_unlocked(bj_campaign_dir(campaign), err));
    BJ_GOTO(status, done, check_finished(campaign, err));
    if (bj_campaign_data_count(campaign) > 1) {
        status = BJ_FAIL(err, BJ_EARG, "%s: has %d datasets, expected one", dir,
                         bj_campaign_data_count(campaign));
        goto done;
    }
    const int count = bj_campaign_runs(campaign);
    if (count < 1 || count > BJ_LOCK_RUNS_MAX) {
        status = BJ_FAIL(err, BJ_EARG, "%s: has %d runs, expected 1 to %d", dir, count,
                         BJ_LOCK_RUNS_MAX);
        goto done;
    }
    BJ_GOTO(status, done, BJ_ALLOC(lock.runs, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(facts, (size_t)count, err));
    lock.count = count;
    BJ_GOTO(status, done, BJ_ALLOC(hashes.stamps, (size_t)bj_lock_bound_count(&lock), err));
    BJ_GOTO(status, done, fill(&lock, facts, &hashes, campaign, &options, err));
    BJ_GOTO(status, done, publish(report, &lock, bj_campaign_dir(campaign), err));
    count_grid(report, &lock);
done:
    bj_free(hashes.stamps);
    bj_free(facts);
    bj_lock_reset(&lock);
    bj_campaign_free(campaign);
    return status;
}
