/* locked_records.c - see locked_records.h. */
#define _POSIX_C_SOURCE 200809L /* opendir */
#include "campaign/locked_records.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "campaign/campaign_internal.h"
#include "campaign/locked_check.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_internal.h"

void bj_records_reset(bj_records *r) {
    for (int i = 0; i < BJ_RECORDS; i++) bj_locked_text_reset(&r->text[i]);
    bj_locked_results_reset(&r->results);
    bj_completion_reset(&r->completion);
    bj_lock_reset(&r->lock);
    r->evaluated = 0;
}

/* ------------------------------------------------------------------------------------- reading */

/* Checks that the folder contains the three files, perhaps a signature, and nothing else. */
static bj_status check_folder(const char *folder, bj_error *err) {
    static const char *const known[] = {BJ_LOCKED_SUMMARY,
                                        BJ_LOCKED_SEEDS,
                                        BJ_LOCKED_COMPLETION,
                                        BJ_LOCKED_SIGNATURE,
                                        BJ_LOCKED_KEY,
                                        ".",
                                        ".."};
    DIR *list = opendir(folder);
    bj_status status = BJ_OK;
    if (!list)
        return errno == ENOTDIR ? BJ_FAIL(err, BJ_EMISMATCH, "%s: is not a folder", folder)
                                : bj_file_fail(err, errno, folder, "list");
    for (const struct dirent *entry; status == BJ_OK && (entry = readdir(list));) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(entry->d_name, known[i])) i++;
        if (i == sizeof known / sizeof *known)
            status = BJ_FAIL(err, BJ_EMISMATCH,
                             "%s: contains '%.100s', which is not an evaluation result", folder,
                             entry->d_name);
    }
    closedir(list);
    return status;
}

/* Compares completion.json with the lock and with the digests of the files. The digest of lock.json
 * was compared before the lock was parsed. */
static bj_status check_completion(const bj_records *r, bj_error *err) {
    const bj_completion *c = &r->completion;
    const char *path = r->path[BJ_RECORD_COMPLETION];
    const int evaluated = bj_lock_evaluated(&r->lock);
    const struct {
        int index;
        const char *found, *path;
    } bound[] = {
        {BJ_DONE_SUMMARY, r->text[BJ_RECORD_SUMMARY].sha256, r->path[BJ_RECORD_SUMMARY]},
        {BJ_DONE_SEEDS, r->text[BJ_RECORD_SEEDS].sha256, r->path[BJ_RECORD_SEEDS]},
        {BJ_DONE_EVALUATOR, r->lock.evaluator_sha256, r->path[BJ_RECORD_LOCK]},
        {BJ_DONE_DATA, r->lock.data_sha256, r->path[BJ_RECORD_LOCK]},
    };
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
        if (strcmp(c->sha256[bound[i].index], bound[i].found))
            return BJ_FAIL(
                err, BJ_EMISMATCH,
                "%s: the file was changed: the SHA-256 of %s is %.16s..., but %s has %.16s...",
                bound[i].path, bj_completion_files[bound[i].index], bound[i].found, path,
                c->sha256[bound[i].index]);
    if (c->scenes != r->lock.scenes || c->checkpoints != evaluated)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: has %lld scenes and %lld checkpoints, but lock.json has %lld and %d",
                       path, (long long)c->scenes, (long long)c->checkpoints,
                       (long long)r->lock.scenes, evaluated);
    if (strcmp(c->campaign, r->lock.campaign) || strcmp(c->version, r->lock.version))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: is of campaign '%s' and version %s, but lock.json has '%s' and %s",
                       path, c->campaign, c->version, r->lock.campaign, r->lock.version);
    return BJ_OK;
}

/* Checks that the latencies are those of the evaluated runs, in their order. */
static bj_status check_latency(const bj_records *r, bj_error *err) {
    const bj_completion *c = &r->completion;
    int same = !c->latency_count || c->latency_count == c->checkpoints;
    for (int i = 0, at = 0; i < r->lock.count && same && c->latency_count; i++) {
        const bj_lock_run *run = &r->lock.runs[i];
        if (!run->evaluated) continue;
        const bj_latency *of = &c->latency[at++];
        same = !strcmp(of->arm, run->arm) && of->seed == run->seed && of->median_ms > 0;
    }
    return same ? BJ_OK
                : BJ_FAIL(err, BJ_EMISMATCH,
                          "%s: its latencies are not those of the evaluated runs in lock.json",
                          r->path[BJ_RECORD_COMPLETION]);
}

bj_status bj_records_read(bj_records *r, const char *dir, bj_error *err) {
    static const char *const names[BJ_RECORDS] = {[BJ_RECORD_LOCK] = BJ_LOCK_FILE,
                                                  [BJ_RECORD_COMPLETION] = BJ_LOCKED_COMPLETION,
                                                  [BJ_RECORD_SUMMARY] = BJ_LOCKED_SUMMARY,
                                                  [BJ_RECORD_SEEDS] = BJ_LOCKED_SEEDS};
    *r = (bj_records){0};
    BJ_TRY(bj_lock_path(r->folder, dir, BJ_LOCKED_DIR, err));
    for (int i = 0; i < BJ_RECORDS; i++)
        BJ_TRY(bj_lock_path(r->path[i], i == BJ_RECORD_LOCK ? dir : r->folder, names[i], err));
    if (!bj_file_exists(r->path[BJ_RECORD_LOCK]))
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign is not locked", r->path[BJ_RECORD_LOCK]);
    const int evaluated = bj_file_exists(r->folder);
    if (evaluated) BJ_TRY(check_folder(r->folder, err));
    for (int i = 0; i < (evaluated ? BJ_RECORDS : 1); i++)
        BJ_TRY(bj_locked_text_read(&r->text[i], r->path[i], err));
    if (evaluated) {
        const bj_locked_text *text = &r->text[BJ_RECORD_COMPLETION];
        BJ_TRY(bj_completion_parse(&r->completion, text, r->path[BJ_RECORD_COMPLETION], err));
    }
    /* A changed lock.json is named as changed even if it cannot be parsed. */
    const char *bound = r->completion.sha256[BJ_DONE_LOCK];
    if (evaluated && strcmp(bound, r->text[BJ_RECORD_LOCK].sha256))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the file was changed: its SHA-256 is %.16s..., but %s has "
                       "%.16s...",
                       r->path[BJ_RECORD_LOCK], r->text[BJ_RECORD_LOCK].sha256,
                       BJ_LOCKED_COMPLETION, bound);
    BJ_TRY(bj_lock_parse(&r->lock, &r->text[BJ_RECORD_LOCK], r->path[BJ_RECORD_LOCK], err));
    r->evaluated = evaluated;
    if (!evaluated) return BJ_OK;
    BJ_TRY(check_completion(r, err));
    return check_latency(r, err);
}

/* ---------------------------------------------------------------------------------------- grid */

static bj_status check_grid(const bj_records *r, const bj_campaign *campaign, bj_error *err) {
    const char *path = r->path[BJ_RECORD_LOCK];
    const bj_lock *lock = &r->lock;
    if (strcmp(campaign->digest, lock->campaign_sha256) || strcmp(campaign->name, lock->campaign))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s/campaign.json: was changed: campaign '%s' with SHA-256 %.16s..., but "
                       "lock.json has '%s' with %.16s...",
                       campaign->dir, campaign->name, campaign->digest, lock->campaign,
                       lock->campaign_sha256);
    if (campaign->count != lock->count)
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: has %d runs, but campaign.json has %d", path,
                       lock->count, campaign->count);
    for (int i = 0; i < lock->count; i++) {
        const bj_lock_run *run = &lock->runs[i];
        bj_lock_run expected;
        BJ_TRY(bj_lock_describe(&expected, campaign, i, err));
        if (strcmp(run->arm, expected.arm) || run->seed != expected.seed ||
            strcmp(run->dir, expected.dir) || run->evaluated != expected.evaluated)
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: run %d is %s, seed %lld, in '%.100s'%s, but campaign.json has %s, "
                           "seed %lld, in '%.100s'%s",
                           path, i, run->arm, (long long)run->seed, run->dir,
                           run->evaluated ? "" : ", not evaluated", expected.arm,
                           (long long)expected.seed, expected.dir,
                           expected.evaluated ? "" : ", not evaluated");
    }
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------- seed table */

static bj_status read_row(bj_locked_result *of, yyjson_val *row, const char *where, bj_error *err) {
    char name[BJ_NAME_SIZE];
    yyjson_val *value = yyjson_obj_get(row, "value");
    BJ_TRY(bj_locked_get_text(name, sizeof name, row, "metric", where, err));
    const int metric = bj_metric_find(name);
    for (int m = 0; m < BJ_LOCKED_MAP; m++)
        if (!strcmp(name, bj_locked_extra_name(m)) && yyjson_is_num(value)) {
            of->map[m] = yyjson_get_num(value);
            return BJ_OK;
        }
    if (metric < 0 || !yyjson_is_num(value) ||
        !bj_metric_set(&of->values, metric, yyjson_get_num(value)))
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: '%s' is not a metric of an evaluation with a value",
                       where, name);
    return BJ_OK;
}

static int is_of(yyjson_val *row, const bj_locked_result *of) {
    yyjson_val *seed = yyjson_obj_get(row, "seed");
    return yyjson_equals_str(yyjson_obj_get(row, "arm"), of->arm) && yyjson_is_uint(seed) &&
           yyjson_get_uint(seed) == (uint64_t)of->seed;
}

/* Reads the rows of every run. The order is checked later, by writing the table again. */
static bj_status read_table(bj_locked_results *to, yyjson_val *root, const char *path,
                            bj_error *err) {
    yyjson_val *rows, *usage, *row;
    BJ_TRY(bj_locked_get_list(&rows, root, "rows", path, err));
    BJ_TRY(bj_locked_get_list(&usage, root, "usage", path, err));
    yyjson_arr_iter iter = yyjson_arr_iter_with(rows);
    for (int i = 0, number = 0; (row = yyjson_arr_iter_next(&iter)); number++) {
        char where[BJ_FOLDER_PATH + 32];
        snprintf(where, sizeof where, "%s: row %d", path, number);
        while (i < to->count && !is_of(row, &to->of[i])) i++;
        if (i == to->count)
            return BJ_FAIL(err, BJ_EMISMATCH, "%s: is of no run of the lock, or out of order",
                           where);
        BJ_TRY(read_row(&to->of[i], row, where, err));
    }
    for (int i = 0; i < to->count; i++) {
        yyjson_val *shares = yyjson_obj_get(yyjson_arr_get(usage, (size_t)i), "shares");
        if (yyjson_arr_size(shares) != (size_t)to->of[i].atoms)
            return BJ_FAIL(err, BJ_EMISMATCH, "%s: usage %d has %zu shares, expected %d", path, i,
                           yyjson_arr_size(shares), to->of[i].atoms);
        for (int k = 0; k < to->of[i].atoms; k++)
            to->of[i].usage[k] = yyjson_get_num(yyjson_arr_get(shares, (size_t)k));
        if (isnan(to->of[i].values.traj_es))
            return BJ_FAIL(err, BJ_EMISMATCH, "%s: has no row of %s, seed %lld", path,
                           to->of[i].arm, (long long)to->of[i].seed);
        to->of[i].groups[0].values = to->of[i].values;
    }
    return BJ_OK;
}

/* Creates empty results for the evaluated runs of the lock. */
static bj_status describe(bj_locked_results *to, const bj_lock *lock, const bj_campaign *campaign,
                          bj_error *err) {
    const int count = bj_lock_evaluated(lock);
    BJ_TRY(BJ_ALLOC(to->of, (size_t)count, err));
    to->count = count;
    to->scenes = lock->scenes;
    for (int i = 0, at = 0; i < lock->count; i++) {
        if (!lock->runs[i].evaluated) continue;
        bj_locked_result *of = &to->of[at++];
        of->arm = lock->runs[i].arm;
        of->seed = lock->runs[i].seed;
        of->atoms = campaign->runs[i].settings.arch.atoms;
        for (int m = 0; m < bj_metric_count(); m++) bj_metric_set(&of->values, m, NAN);
        for (int m = 0; m < BJ_LOCKED_MAP; m++) of->map[m] = NAN;
        BJ_TRY(BJ_ALLOC(of->groups, 1, err));
        of->group_count = 1;
    }
    return BJ_OK;
}

static bj_status check_table(bj_records *r, const bj_campaign *campaign, bj_error *err) {
    const bj_locked_text *text = &r->text[BJ_RECORD_SEEDS];
    const char *path = r->path[BJ_RECORD_SEEDS];
    bj_locked_text again = {0};
    yyjson_doc *doc = NULL;
    bj_status status;
    BJ_TRY(describe(&r->results, &r->lock, campaign, err));
    BJ_TRY(bj_locked_parse(&doc, text, path, BJ_LOCKED_SEEDS_SCHEMA, err));
    BJ_GOTO(status, done, read_table(&r->results, yyjson_doc_get_root(doc), path, err));
    BJ_GOTO(
        status, done,
        bj_locked_seeds_text(&again, &r->results, &r->lock, r->text[BJ_RECORD_LOCK].sha256, err));
    status = bj_locked_same_text(text, &again, path, err);
done:
    bj_locked_text_reset(&again);
    yyjson_doc_free(doc);
    return status;
}

bj_status bj_records_check(bj_records *r, const bj_campaign *campaign, bj_error *err) {
    BJ_TRY(check_grid(r, campaign, err));
    if (!r->evaluated) return BJ_OK;
    BJ_TRY(check_table(r, campaign, err));
    return bj_records_check_summary(r, err);
}
