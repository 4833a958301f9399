/* locked_verify.c - see locked_verify.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "campaign/locked_verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "campaign/locked_check.h"
#include "campaign/locked_signature.h"
#include "core/alloc.h"
#include "core/file.h"

void bj_verified_reset(bj_verified *v) {
    bj_records_reset(&v->records);
    bj_campaign_free(v->campaign);
    bj_free(v->hashes.stamps);
    v->campaign = NULL;
    v->hashes.stamps = NULL;
}

/* ----------------------------------------------------------------------------------- evaluator */

/* Chooses whether this program is compared with the lock. A newer version may verify an older
 * evaluation, and a repeated evaluation compares the results instead. */
static bj_status choose_evaluator(bj_verified *v, bj_locked_report *report,
                                  const bj_locked_options *options, bj_error *err) {
    const bj_records *r = &v->records;
    char hex[BJ_SHA256_HEX];
    v->evaluator = options->evaluator;
    if (!v->evaluator) return BJ_OK;
    const int older =
        r->evaluated && (r->completion.schema == 1 || strcmp(r->lock.version, bj_version()));
    if (older || (r->evaluated && (options->partial || options->repeat))) {
        BJ_TRY(bj_sha256_file(hex, v->evaluator, err));
        report->other_program = strcmp(hex, r->lock.evaluator_sha256) != 0;
        if (report->other_program) v->evaluator = NULL;
    } else if (strcmp(r->lock.version, bj_version())) {
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: locked by version %s, but this program is %s",
                       r->path[BJ_RECORD_LOCK], r->lock.version, bj_version());
    }
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- runs */

/* Turns a failed check of a run into a difference between the lock and the run. */
static bj_status differs(const bj_verified *v, bj_status status, bj_error *err) {
    if (status != BJ_ELOCKED || !err) return status == BJ_ELOCKED ? BJ_EMISMATCH : status;
    const bj_error was = *err;
    return BJ_FAIL(err, BJ_EMISMATCH, "%.200s: %.300s", v->records.path[BJ_RECORD_LOCK],
                   was.message);
}

static bj_status check_run(bj_verified *v, bj_lock_run *run, bj_lock_facts *facts, int index,
                           bj_error *err) {
    const bj_lock_run *locked = &v->records.lock.runs[index];
    const bj_campaign_run from = bj_campaign_run_at(v->campaign, index);
    BJ_TRY(bj_lock_check_run(run, facts, v->campaign, index, err));
    if (run->best_epoch != locked->best_epoch || run->dev != locked->dev)
        return BJ_FAIL(err, BJ_ELOCKED,
                       "%s, seed %lld: is from epoch %d (%.6g), but the development rule chooses "
                       "epoch %d (%.6g)",
                       locked->arm, (long long)locked->seed, locked->best_epoch, locked->dev,
                       run->best_epoch, run->dev);
    return bj_lock_check_checkpoint(locked, facts, &from, NULL, err);
}

/* Checks every run whose files exist. */
static bj_status check_runs(bj_verified *v, bj_error *err) {
    const int count = v->records.lock.count;
    bj_lock_facts *facts = NULL;
    bj_lock_run *runs = NULL;
    bj_status status;
    int checked = 0;
    BJ_GOTO(status, done, BJ_ALLOC(facts, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(runs, (size_t)count, err));
    for (int i = 0; i < count; i++) {
        if (!bj_lock_has_run(&v->hashes, i)) continue;
        BJ_GOTO(status, done, check_run(v, &runs[i], &facts[i], i, err));
        checked++;
    }
    if (checked == count) status = bj_lock_check_grid(runs, facts, count, err);
done:
    bj_free(runs);
    bj_free(facts);
    return differs(v, status, err);
}

/* ---------------------------------------------------------------------------------------- data */

static bj_status check_data(const bj_records *r, bj_error *err) {
    const bj_lock *lock = &r->lock;
    bj_cache *cache;
    struct stat info;
    BJ_TRY(bj_cache_open(&cache, lock->data, 0, err));
    const int64_t scenes = bj_cache_count(cache);
    const int same = !strcmp(bj_cache_digest(cache), lock->data_digest) &&
                     scenes == lock->scenes && !stat(lock->data, &info) &&
                     info.st_size == lock->data_bytes;
    bj_cache_free(cache);
    return same ? BJ_OK
                : BJ_FAIL(err, BJ_EMISMATCH,
                          "%s: has %lld scenes of %lld bytes with the digest %.16s..., but %s is "
                          "another file with %lld scenes",
                          r->path[BJ_RECORD_LOCK], (long long)lock->scenes,
                          (long long)lock->data_bytes, lock->data_digest, lock->data,
                          (long long)scenes);
}

/* ----------------------------------------------------------------------------------------- all */

static bj_status verify(bj_verified *v, bj_locked_report *report, const char *dir,
                        const bj_locked_options *options, bj_error *err) {
    const bj_locked_watch watch = {options->progress, options->context};
    const bj_lock_hashing how = options->partial ? BJ_LOCK_PRESENT : BJ_LOCK_COMPARE;
    bj_records *r = &v->records;
    BJ_TRY(bj_records_read(r, dir, err));
    BJ_TRY(choose_evaluator(v, report, options, err));
    BJ_TRY(BJ_ALLOC(v->hashes.stamps, (size_t)bj_lock_bound_count(&r->lock), err));
    BJ_TRY(bj_lock_hash(&r->lock, &v->hashes, dir, v->evaluator, how, &watch, err));
    BJ_TRY(bj_campaign_open(&v->campaign, dir, err));
    BJ_TRY(bj_records_check(r, v->campaign, err));
    BJ_TRY(check_runs(v, err));
    if (bj_lock_has_data(&v->hashes)) BJ_TRY(check_data(r, err));
    if (r->evaluated) BJ_TRY(bj_signature_check(report->signer, r, options->key, err));
    BJ_TRY(bj_lock_untouched(&r->lock, &v->hashes, dir, v->evaluator, "during the verification", err));
    report->checkpoints = bj_lock_evaluated(&r->lock);
    report->scenes = r->lock.scenes;
    report->files = bj_lock_bound_count(&r->lock);
    report->missing = v->hashes.missing;
    snprintf(report->first, sizeof report->first, "%.255s", v->hashes.first);
    snprintf(report->evaluator, sizeof report->evaluator, "%s", r->lock.version);
    memcpy(report->digest, r->text[BJ_RECORD_COMPLETION].sha256, sizeof report->digest);
    return BJ_OK;
}

bj_status bj_verify(bj_verified *v, bj_locked_report *report, const char *dir,
                    const bj_locked_options *options, bj_error *err) {
    *v = (bj_verified){0};
    *report = (bj_locked_report){0};
    return verify(v, report, dir, options, err);
}

/* ---------------------------------------------------------------------------------------- repeat */

/* Evaluates again with the recorded instruction set and compares the two files that do not depend
 * on time. */
static bj_status repeat(bj_verified *v, const char *dir, const bj_locked_options *options,
                        bj_error *err) {
    const bj_locked_watch watch = {options->progress, options->context};
    bj_records *r = &v->records;
    const char *sha256 = r->text[BJ_RECORD_LOCK].sha256;
    bj_locked_results results = {0};
    bj_locked_text summary = {0}, seeds = {0};
    bj_status status;
    if (!r->evaluated)
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign has not been evaluated", dir);
    if (v->hashes.missing)
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: is missing, so the evaluation cannot be repeated",
                       v->hashes.first);
    BJ_GOTO(status, done,
            bj_locked_pass(&results, &r->lock, v->campaign, options->threads, r->completion.isa,
                           0, &watch, err));
    BJ_GOTO(status, done,
            bj_lock_untouched(&r->lock, &v->hashes, dir, v->evaluator, "during the evaluation", err));
    BJ_GOTO(status, done, bj_locked_summary_text(&summary, &results, &r->lock, sha256, 0, err));
    BJ_GOTO(status, done, bj_locked_seeds_text(&seeds, &results, &r->lock, sha256, err));
    const struct {
        const bj_locked_text *again;
        int record;
    } files[] = {{&seeds, BJ_RECORD_SEEDS}, {&summary, BJ_RECORD_SUMMARY}};
    for (int i = 0; i < 2; i++)
        if (strcmp(files[i].again->sha256, r->text[files[i].record].sha256)) {
            status = BJ_FAIL(err, BJ_EMISMATCH,
                             "%s: a repeated evaluation gives other bytes, with SHA-256 %.16s... "
                             "instead of %.16s...",
                             r->path[files[i].record], files[i].again->sha256,
                             r->text[files[i].record].sha256);
            goto done;
        }
done:
    bj_locked_text_reset(&seeds);
    bj_locked_text_reset(&summary);
    bj_locked_results_reset(&results);
    return status;
}

bj_status bj_campaign_verify(bj_locked_report *report, const char *dir,
                             const bj_locked_options *options, bj_error *err) {
    bj_verified v;
    if (!options || !options->evaluator) {
        *report = (bj_locked_report){0};
        return BJ_FAIL(err, BJ_EARG, "verify: the evaluator is not given");
    }
    bj_status status = bj_verify(&v, report, dir, options, err);
    if (status == BJ_OK && options->repeat) status = repeat(&v, dir, options, err);
    bj_verified_reset(&v);
    return status;
}

/* --------------------------------------------------------------------------------------- reader */

struct bj_locked {
    bj_verified v;
};

bj_status bj_locked_open(bj_locked **out, bj_locked_report *report, const char *dir,
                         bj_error *err) {
    const bj_locked_options options = {.partial = 1};
    bj_locked_report ignored;
    bj_locked *locked;
    char folder[BJ_FOLDER_PATH];
    *out = NULL;
    BJ_TRY(bj_lock_path(folder, dir, BJ_LOCKED_DIR, err));
    if (!bj_file_exists(folder))
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign has not been evaluated", dir);
    BJ_TRY(BJ_ALLOC(locked, 1, err));
    const bj_status status = bj_verify(&locked->v, report ? report : &ignored, dir, &options, err);
    if (status == BJ_OK) *out = locked;
    else bj_locked_free(locked);
    return status;
}

void bj_locked_free(bj_locked *locked) {
    if (!locked) return;
    bj_verified_reset(&locked->v);
    bj_free(locked);
}

const char *bj_locked_bytes(const bj_locked *locked, const char *name, size_t *size) {
    const bj_records *r = &locked->v.records;
    for (int i = 0; i < BJ_RECORDS; i++) {
        const char *slash = strrchr(r->path[i], '/');
        if (strcmp(slash + 1, name)) continue;
        *size = r->text[i].size;
        return r->text[i].bytes;
    }
    return NULL;
}

bj_status bj_locked_seeds(bj_seeds **out, const bj_locked *locked, bj_error *err) {
    const bj_records *r = &locked->v.records;
    const int metrics = bj_metric_count();
    bj_seed_value *values;
    int count = 0;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(values, (size_t)r->results.count * (size_t)(metrics + BJ_LOCKED_MAP + 1), err));
    for (int i = 0; i < r->results.count; i++)
        for (int m = 0; m < metrics + BJ_LOCKED_MAP + 1; m++) {
            const bj_locked_result *of = &r->results.of[i];
            const int extra = m - metrics;
            const double value = extra < 0               ? bj_metric_value(&of->values, m)
                                 : extra < BJ_LOCKED_MAP ? of->map[extra]
                                 : r->completion.latency_count
                                     ? r->completion.latency[i].median_ms
                                     : (double)NAN;
            if (isnan(value)) continue; /* not measured */
            values[count++] =
                (bj_seed_value){of->arm, extra < 0 ? bj_metric_at(m).name : bj_locked_extra_name(extra),
                                of->seed, value};
        }
    const bj_status status =
        bj_seeds_create(out, r->path[BJ_RECORD_SEEDS], values, count, err);
    bj_free(values);
    return status;
}
