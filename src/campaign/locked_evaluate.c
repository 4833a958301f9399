/* locked_evaluate.c - evaluates a locked campaign once.
 *
 * Invariants
 *   1. Everything that bj_verify checks is checked before the first scene is read. If a file
 *      differs, it is named and nothing is evaluated. The pass hashes the bytes that it loads.
 *      Files that change during the evaluation are detected at the end by inode, size and times.
 *   2. DIR/locked appears in one step with its three files. An evaluation that is killed before
 *      leaves the lock unused, except for a hidden folder that the next evaluation removes.
 *   3. If DIR/locked exists, nothing is evaluated again. A second evaluation at the same time is
 *      rejected.
 *   4. Scenes are read from the cache, and only sums are written. No argument changes that.
 * Test: tests/campaign/test_locked.c, tests/cli/evaluate.sh
 */
#define _DEFAULT_SOURCE /* flock; includes POSIX.1-2008 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "campaign/locked_verify.h"
#include "core/file.h"
#include "core/file_internal.h"

static const char *const files[] = {BJ_LOCKED_SUMMARY, BJ_LOCKED_SEEDS, BJ_LOCKED_COMPLETION, NULL};

/* Opens lock.json and locks it until the descriptor is closed. */
static bj_status open_alone(int *fd, const char *dir, bj_error *err) {
    char path[BJ_FOLDER_PATH];
    BJ_TRY(bj_lock_path(path, dir, BJ_LOCK_FILE, err));
    *fd = bj_file_open(path, O_RDONLY);
    if (*fd < 0 && errno == ENOENT)
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign is not locked", path);
    if (*fd < 0) return bj_file_fail(err, errno, path, "open");
    if (flock(*fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return BJ_FAIL(err, BJ_ELOCKED, "%s: another process is evaluating the campaign", path);
    return bj_lock_unevaluated(dir, err);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bj_status evaluate(bj_locked_report *report, const char *dir,
                          const bj_locked_options *options, bj_error *err) {
    const bj_locked_watch watch = {options->progress, options->context};
    bj_locked_facts facts = {.threads = options->threads, .started = now()};
    bj_locked_results results = {0};
    bj_folder_writer *writer = NULL;
    bj_verified v;
    bj_lock *const lock = &v.records.lock;
    bj_status status;
    BJ_GOTO(status, done, bj_verify(&v, report, dir, options, err));
    memcpy(facts.lock_sha256, v.records.text[BJ_RECORD_LOCK].sha256, sizeof facts.lock_sha256);
    /* Open the folder before the long computation, so that a write problem is detected early. */
    BJ_GOTO(status, done, bj_folder_writer_open(&writer, v.records.folder, files, err));
    BJ_GOTO(status, done,
            bj_locked_pass(&results, lock, v.campaign, options->threads, options->isa, 1, &watch,
                           err));
    BJ_GOTO(status, done,
            bj_lock_untouched(lock, &v.hashes, dir, options->evaluator,
                              "during the evaluation; nothing was written", err));
    facts.finished = now();
    BJ_GOTO(status, done,
            bj_locked_write(report->digest, &results, lock, &facts, bj_folder_writer_path(writer),
                            err));
    status = bj_folder_writer_commit(&writer, err);
done:
    bj_folder_writer_abort(&writer);
    bj_locked_results_reset(&results);
    bj_verified_reset(&v);
    return status;
}

bj_status bj_campaign_evaluate(bj_locked_report *report, const char *dir,
                               const bj_locked_options *options, bj_error *err) {
    int fd = -1;
    *report = (bj_locked_report){0};
    if (!options || !options->evaluator)
        return BJ_FAIL(err, BJ_EARG, "evaluate: the evaluator is not given");
    bj_locked_options all = *options;
    all.partial = all.repeat = 0;
    bj_status status = open_alone(&fd, dir, err);
    if (status == BJ_OK) status = evaluate(report, dir, &all, err);
    if (fd >= 0) close(fd); /* also releases the flock */
    return status;
}
