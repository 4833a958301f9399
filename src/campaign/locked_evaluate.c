/* locked_evaluate.c - evaluates a locked campaign once, and verifies the evaluation later.
 *
 * Invariants
 *   1. Every locked byte is hashed before the first scene is read. If a file differs, it is named
 *      and nothing is evaluated. Files that change during the evaluation are detected at the end.
 *   2. DIR/locked appears in one step with its three files. An evaluation that is killed before
 *      leaves the lock unused, except for a hidden folder that the next evaluation removes.
 *   3. If DIR/locked exists, nothing is evaluated again. A second evaluation at the same time is
 *      rejected.
 *   4. Scenes are read from the cache, and only sums are written. No argument changes that.
 * Test: tests/campaign/test_lock.c, tests/cli/evaluate.sh
 */
#define _DEFAULT_SOURCE /* flock; includes POSIX.1-2008 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "campaign/locked_write.h"
#include "core/file.h"
#include "core/alloc.h"
#include "core/file_internal.h"

static const char *const files[] = {BJ_LOCKED_SUMMARY, BJ_LOCKED_SEEDS, BJ_LOCKED_COMPLETION, NULL};

/* The state that evaluating and verifying share. */
typedef struct opened {
    bj_lock lock;
    char sha256[BJ_SHA256_HEX];  /* digest of lock.json */
    char folder[BJ_FOLDER_PATH]; /* DIR/locked */
    int evaluated;
    int fd; /* descriptor of lock.json; -1 if closed */
} opened;

static void opened_reset(opened *o) {
    if (o->fd >= 0) close(o->fd); /* also releases the flock */
    bj_lock_reset(&o->lock);
}

static bj_status open_lock(opened *o, const char *dir, int alone, bj_error *err) {
    char path[BJ_FOLDER_PATH];
    *o = (opened){.fd = -1};
    BJ_TRY(bj_lock_path(path, dir, BJ_LOCK_FILE, err));
    BJ_TRY(bj_lock_path(o->folder, dir, BJ_LOCKED_DIR, err));
    o->fd = bj_file_open(path, O_RDONLY);
    if (o->fd < 0 && errno == ENOENT)
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign is not locked",
                       path);
    if (o->fd < 0) return bj_file_fail(err, errno, path, "open");
    if (alone && flock(o->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return BJ_FAIL(err, BJ_ELOCKED, "%s: another process is evaluating the campaign", path);
    o->evaluated = bj_file_exists(o->folder);
    return bj_lock_read(&o->lock, path, o->sha256, err);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ------------------------------------------------------------------------------------- evaluate */

static bj_status evaluate(bj_locked_report *report, opened *o, const char *dir,
                          const bj_locked_options *options, bj_error *err) {
    const bj_locked_watch watch = {options->progress, options->context};
    bj_locked_facts facts = {.threads = options->threads, .started = now()};
    bj_locked_results results = {0};
    bj_folder_writer *writer = NULL;
    bj_lock_stamp *stamps = NULL;
    bj_status status;
    memcpy(facts.lock_sha256, o->sha256, sizeof facts.lock_sha256);
    BJ_TRY(BJ_ALLOC(stamps, (size_t)bj_lock_bound_count(&o->lock), err));
    BJ_GOTO(status, done, bj_lock_hash(&o->lock, stamps, dir, options->evaluator, 0, &watch, err));
    /* Open the folder before the long computation, so that a write problem is detected early. */
    BJ_GOTO(status, done, bj_folder_writer_open(&writer, o->folder, files, err));
    BJ_GOTO(status, done,
            bj_locked_pass(&results, &o->lock, dir, options->threads, options->isa, &watch, err));
    BJ_GOTO(status, done, bj_lock_untouched(&o->lock, stamps, dir, options->evaluator, err));
    facts.finished = now();
    BJ_GOTO(status, done,
            bj_locked_write(report->digest, &results, &o->lock, &facts,
                            bj_folder_writer_path(writer), err));
    BJ_GOTO(status, done, bj_folder_writer_commit(&writer, err));
    report->checkpoints = results.count;
    report->scenes = results.scenes;
done:
    bj_folder_writer_abort(&writer);
    bj_locked_results_reset(&results);
    bj_free(stamps);
    return status;
}

bj_status bj_campaign_evaluate(bj_locked_report *report, const char *dir,
                               const bj_locked_options *options, bj_error *err) {
    opened o;
    *report = (bj_locked_report){0};
    if (!options || !options->evaluator)
        return BJ_FAIL(err, BJ_EARG, "evaluate: the evaluator is not given");
    bj_status status = open_lock(&o, dir, 1, err);
    if (status == BJ_OK && o.evaluated)
        status = BJ_FAIL(
            err, BJ_ELOCKED,
            "%s: the campaign was already evaluated; a lock allows only one evaluation", o.folder);
    if (status == BJ_OK) status = evaluate(report, &o, dir, options, err);
    opened_reset(&o);
    return status;
}

/* --------------------------------------------------------------------------------------- verify */

/* Checks that the folder contains the three result files and nothing else. */
static bj_status check_content(const char *folder, bj_error *err) {
    DIR *list = opendir(folder);
    int found[3] = {0};
    bj_status status = BJ_OK;
    if (!list)
        return errno == ENOTDIR ? BJ_FAIL(err, BJ_EMISMATCH, "%s: is not a folder", folder)
                                : bj_file_fail(err, errno, folder, "list");
    for (const struct dirent *entry; status == BJ_OK && (entry = readdir(list));) {
        int known = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
        for (int i = 0; i < 3; i++)
            if (!strcmp(entry->d_name, files[i])) known = found[i] = 1;
        if (!known)
            status = BJ_FAIL(err, BJ_EMISMATCH,
                             "%s: contains '%.100s', which does not belong to the evaluation",
                             folder, entry->d_name);
    }
    closedir(list);
    for (int i = 0; i < 3 && status == BJ_OK; i++)
        if (!found[i]) status = BJ_FAIL(err, BJ_EMISMATCH, "%s/%s: is missing", folder, files[i]);
    return status;
}

bj_status bj_campaign_verify(bj_locked_report *report, const char *dir,
                             const bj_locked_options *options, bj_error *err) {
    opened o;
    bj_status status;
    *report = (bj_locked_report){0};
    if (!options || !options->evaluator)
        return BJ_FAIL(err, BJ_EARG, "verify: the evaluator is not given");
    const bj_locked_watch watch = {options->progress, options->context};
    BJ_GOTO(status, done, open_lock(&o, dir, 0, err));
    if (o.evaluated) {
        BJ_GOTO(status, done, check_content(o.folder, err));
        BJ_GOTO(status, done, bj_locked_check(report->digest, &o.lock, o.sha256, o.folder, err));
    }
    BJ_GOTO(status, done, bj_lock_hash(&o.lock, NULL, dir, options->evaluator, 0, &watch, err));
    for (int i = 0; i < o.lock.count; i++) report->checkpoints += o.lock.runs[i].evaluated;
    report->scenes = o.lock.scenes;
done:
    opened_reset(&o);
    return status;
}
