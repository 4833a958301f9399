/* locked_write.c - see locked_write.h. */
#define _POSIX_C_SOURCE 200809L /* gmtime_r */
#include "campaign/locked_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "campaign/locked_json.h"
#include "core/alloc.h"

/* ------------------------------------------------------------------------------------ few scenes
 */

void bj_locked_shown(uint8_t *shown, const double *counts, int n) {
    double hidden = 0;
    for (int i = 0; i < n; i++) {
        shown[i] =
            counts[i] == 0 || counts[i] >= BJ_LOCK_LEAST; /* there is no mean of zero values */
        if (!shown[i]) hidden += counts[i];
    }
    if (hidden == 0 || hidden >= BJ_LOCK_LEAST) return;
    int least = -1;
    for (int i = 0; i < n; i++)
        if (shown[i] && counts[i] > 0 && (least < 0 || counts[i] < counts[least])) least = i;
    if (least >= 0) shown[least] = 0;
}

/* -------------------------------------------------------------------------------------- summary */

/* The checkpoints of one arm. members (count) are indices into `results`. */
typedef struct arm {
    const bj_locked_results *results;
    const int *members;
    int count;
    double *values; /* (count) scratch */
    double *counts; /* (groups), same meaning */
    uint8_t *shown; /* (groups) */
} arm;

static const bj_locked_result *member(const arm *a, int i) {
    return &a->results->of[a->members[i]];
}

static void write_metrics(bj_doc *out, yyjson_mut_val *object, const arm *a, int group) {
    for (int m = 0; m < bj_metric_count(); m++) {
        int n = 0;
        for (int i = 0; i < a->count; i++) {
            const double value = bj_metric_value(&member(a, i)->groups[group].values, m);
            if (!isnan(value)) a->values[n++] = value;
        }
        if (!n) continue; /* not measured */
        const bj_summary s = bj_summarize(a->values, n);
        yyjson_mut_val *metric = bj_doc_child(out, object, bj_metric_at(m).name);
        bj_doc_add_number(out, metric, "mean", s.mean);
        bj_doc_add_number(out, metric, "sd", s.sd);
        bj_doc_add_integer(out, metric, "n", s.n);
    }
}

/* Writes the groups [first, end), which are of one kind and partition all scenes. */
static void write_kind(bj_doc *out, yyjson_mut_val *list, const arm *a, int first, int end) {
    const bj_evaluation_group *groups = member(a, 0)->groups;
    for (int g = first; g < end; g++) a->counts[g] = groups[g].values.scenes;
    bj_locked_shown(a->shown + first, a->counts + first, end - first);
    for (int g = first; g < end; g++) {
        yyjson_mut_val *group = bj_doc_item(out, list);
        bj_doc_add_text(out, group, "by", groups[g].by);
        bj_doc_add_text(out, group, "key", groups[g].key);
        bj_doc_add_integer(out, group, "scenes", (int64_t)a->counts[g]);
        if (a->shown[g]) write_metrics(out, bj_doc_child(out, group, "metrics"), a, g);
        else bj_doc_add_null(out, group, "metrics");
    }
}

static void write_groups(bj_doc *out, yyjson_mut_val *object, const arm *a) {
    const bj_locked_result *of = member(a, 0);
    yyjson_mut_val *list = bj_doc_list(out, object, "groups");
    for (int first = 1, end; first < of->group_count; first = end) {
        for (end = first + 1;
             end < of->group_count && !strcmp(of->groups[end].by, of->groups[first].by);)
            end++;
        write_kind(out, list, a, first, end);
    }
}

/* Writes calibration bins. Pairs of a scene and a seed are binned by the probability of the most
 * likely maneuver. */
static void write_calibration(bj_doc *out, yyjson_mut_val *object, const arm *a) {
    double counts[BJ_CALIBRATION_BINS] = {0}, confidence[BJ_CALIBRATION_BINS] = {0};
    double hits[BJ_CALIBRATION_BINS] = {0};
    uint8_t shown[BJ_CALIBRATION_BINS];
    for (int i = 0; i < a->count; i++)
        for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
            const bj_calibration_bin *bin = &member(a, i)->bins[b];
            if (!(bin->count > 0)) continue;
            counts[b] += bin->count;
            confidence[b] += bin->count * bin->confidence;
            hits[b] += bin->count * bin->hits;
        }
    bj_locked_shown(shown, counts, BJ_CALIBRATION_BINS);
    yyjson_mut_val *list = bj_doc_list(out, object, "calibration");
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
        const int there = shown[b] && counts[b] > 0;
        yyjson_mut_val *bin = bj_doc_item(out, list);
        bj_doc_add_number(out, bin, "from", b / (double)BJ_CALIBRATION_BINS);
        bj_doc_add_number(out, bin, "to", (b + 1) / (double)BJ_CALIBRATION_BINS);
        bj_doc_add_integer(out, bin, "count", (int64_t)counts[b]);
        bj_doc_add_number(out, bin, "confidence", there ? confidence[b] / counts[b] : NAN);
        bj_doc_add_number(out, bin, "hits", there ? hits[b] / counts[b] : NAN);
    }
}

static void write_arm(bj_doc *out, yyjson_mut_val *list, const arm *a) {
    yyjson_mut_val *object = bj_doc_item(out, list);
    const int atoms = member(a, 0)->atoms;
    bj_doc_add_text(out, object, "arm", member(a, 0)->arm);
    bj_doc_add_integer(out, object, "branches", atoms);
    yyjson_mut_val *seeds = bj_doc_list(out, object, "seeds");
    for (int i = 0; i < a->count; i++) bj_doc_item_integer(out, seeds, member(a, i)->seed);
    write_metrics(out, bj_doc_child(out, object, "metrics"), a, 0);
    yyjson_mut_val *usage = bj_doc_list(out, object, "usage"); /* mean over seeds */
    for (int k = 0; k < atoms; k++) {
        double sum = 0;
        for (int i = 0; i < a->count; i++) sum += member(a, i)->usage[k];
        bj_doc_item_number(out, usage, sum / a->count);
    }
    write_calibration(out, object, a);
    write_groups(out, object, a);
}

/* Writes the summary of every arm. `members` is scratch memory for results->count indices. */
static void write_arms(bj_doc *out, yyjson_mut_val *list, arm *a, int *members) {
    const bj_locked_results *r = a->results;
    for (int i = 0; i < r->count; i++) {
        int known = 0, n = 0;
        for (int j = 0; j < i; j++) known |= !strcmp(r->of[j].arm, r->of[i].arm);
        if (known) continue;
        for (int j = i; j < r->count; j++)
            if (!strcmp(r->of[j].arm, r->of[i].arm)) members[n++] = j;
        a->count = n;
        write_arm(out, list, a);
    }
}

static bj_status write_summary(char hex[BJ_SHA256_HEX], const bj_locked_results *r,
                               const bj_lock *lock, const bj_locked_facts *facts, const char *path,
                               bj_error *err) {
    const size_t groups = r->count ? (size_t)r->of[0].group_count : 0;
    int *members = NULL;
    arm a = {.results = r};
    bj_status status;
    bj_doc out;
    BJ_GOTO(status, done, BJ_ALLOC(members, (size_t)r->count, err));
    BJ_GOTO(status, done, BJ_ALLOC(a.values, (size_t)r->count, err));
    BJ_GOTO(status, done, BJ_ALLOC(a.counts, groups, err));
    BJ_GOTO(status, done, BJ_ALLOC(a.shown, groups, err));
    a.members = members;
    BJ_GOTO(status, done, bj_doc_begin(&out, "branchjepa.run_summary/1", err));
    yyjson_mut_val *const root = out.root;
    bj_doc_add_text(&out, root, "campaign", lock->campaign);
    bj_doc_add_text(&out, root, "lock_sha256", facts->lock_sha256);
    bj_doc_add_integer(&out, root, "scenes", r->scenes);
    bj_doc_add_integer(&out, root, "checkpoints", r->count);
    bj_doc_add_integer(&out, root, "least_scenes", BJ_LOCK_LEAST);
    write_arms(&out, bj_doc_list(&out, root, "arms"), &a, members);
    status = bj_locked_commit(&out, path, hex, err);
done:
    bj_free(a.shown);
    bj_free(a.counts);
    bj_free(a.values);
    bj_free(members);
    return status;
}

/* ----------------------------------------------------------------------------------- seed table */

static bj_status write_seeds(char hex[BJ_SHA256_HEX], const bj_locked_results *r,
                             const bj_lock *lock, const bj_locked_facts *facts, const char *path,
                             bj_error *err) {
    bj_doc out;
    BJ_TRY(bj_doc_begin(&out, BJ_LOCKED_SEEDS_SCHEMA, err));
    yyjson_mut_val *const root = out.root;
    bj_doc_add_text(&out, root, "campaign", lock->campaign);
    bj_doc_add_text(&out, root, "lock_sha256", facts->lock_sha256);
    bj_doc_add_integer(&out, root, "scenes", r->scenes);
    yyjson_mut_val *rows = bj_doc_list(&out, root, "rows");
    for (int i = 0; i < r->count; i++)
        for (int m = 0; m < bj_metric_count(); m++) {
            const double value = bj_metric_value(&r->of[i].values, m);
            if (isnan(value)) continue;
            yyjson_mut_val *row = bj_doc_item(&out, rows);
            bj_doc_add_text(&out, row, "arm", r->of[i].arm);
            bj_doc_add_integer(&out, row, "seed", r->of[i].seed);
            bj_doc_add_text(&out, row, "metric", bj_metric_at(m).name);
            bj_doc_add_number(&out, row, "value", value);
        }
    yyjson_mut_val *usages = bj_doc_list(&out, root, "usage");
    for (int i = 0; i < r->count; i++) {
        yyjson_mut_val *row = bj_doc_item(&out, usages);
        bj_doc_add_text(&out, row, "arm", r->of[i].arm);
        bj_doc_add_integer(&out, row, "seed", r->of[i].seed);
        yyjson_mut_val *shares = bj_doc_list(&out, row, "shares");
        for (int k = 0; k < r->of[i].atoms; k++)
            bj_doc_item_number(&out, shares, r->of[i].usage[k]);
    }
    return bj_locked_commit(&out, path, hex, err);
}

/* ----------------------------------------------------------------------------------- completion */

static void write_time(bj_doc *out, yyjson_mut_val *object, const char *key, double seconds) {
    const time_t whole = (time_t)seconds;
    struct tm utc;
    char text[40] = "";
    if (gmtime_r(&whole, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    bj_doc_add_text(out, object, key, text);
}

bj_status bj_locked_write(char digest[BJ_SHA256_HEX], const bj_locked_results *r,
                          const bj_lock *lock, const bj_locked_facts *facts, const char *folder,
                          bj_error *err) {
    char path[BJ_FOLDER_PATH], summary[BJ_SHA256_HEX], seeds[BJ_SHA256_HEX];
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_SUMMARY, err));
    BJ_TRY(write_summary(summary, r, lock, facts, path, err));
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_SEEDS, err));
    BJ_TRY(write_seeds(seeds, r, lock, facts, path, err));

    bj_doc out;
    BJ_TRY(bj_doc_begin(&out, BJ_LOCKED_COMPLETION_SCHEMA, err));
    yyjson_mut_val *const root = out.root;
    bj_doc_add_text(&out, root, "campaign", lock->campaign);
    yyjson_mut_val *files = bj_doc_child(&out, root, "sha256");
    bj_doc_add_text(&out, files, BJ_LOCKED_SUMMARY, summary);
    bj_doc_add_text(&out, files, BJ_LOCKED_SEEDS, seeds);
    bj_doc_add_text(&out, files, BJ_LOCK_FILE, facts->lock_sha256);
    bj_doc_add_text(&out, files, "evaluator", lock->evaluator_sha256);
    bj_doc_add_text(&out, files, "data", lock->data_sha256);
    bj_doc_add_text(&out, root, "version", bj_version());
    bj_doc_add_integer(&out, root, "scenes", r->scenes);
    bj_doc_add_integer(&out, root, "checkpoints", r->count);
    bj_doc_add_text(&out, root, "isa", r->isa);
    bj_doc_add_text(&out, root, "real", sizeof(bj_real) == sizeof(double) ? "double" : "float");
    bj_doc_add_integer(&out, root, "threads", facts->threads);
    write_time(&out, root, "started", facts->started);
    write_time(&out, root, "finished", facts->finished);
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_COMPLETION, err));
    return bj_locked_commit(&out, path, digest, err);
}

/* --------------------------------------------------------------------------------------- check */

bj_status bj_locked_check(char digest[BJ_SHA256_HEX], const bj_lock *lock, const char *lock_sha256,
                          const char *folder, bj_error *err) {
    char path[BJ_FOLDER_PATH], summary[BJ_SHA256_HEX], seeds[BJ_SHA256_HEX], file[BJ_FOLDER_PATH];
    yyjson_doc *doc;
    bj_status status;
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_SUMMARY, err));
    BJ_TRY(bj_sha256_file(summary, path, err));
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_SEEDS, err));
    BJ_TRY(bj_sha256_file(seeds, path, err));
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_COMPLETION, err));
    BJ_TRY(bj_locked_open(&doc, digest, path, BJ_LOCKED_COMPLETION_SCHEMA, err));
    const struct {
        const char *name, *found;
    } bound[] = {{BJ_LOCKED_SUMMARY, summary},
                 {BJ_LOCKED_SEEDS, seeds},
                 {BJ_LOCK_FILE, lock_sha256},
                 {"evaluator", lock->evaluator_sha256},
                 {"data", lock->data_sha256}};
    yyjson_val *files;
    BJ_GOTO(status, done,
            bj_locked_get_object(&files, yyjson_doc_get_root(doc), "sha256", path, err));
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++) {
        char hex[BJ_SHA256_HEX];
        BJ_GOTO(status, done, bj_locked_get_sha256(hex, files, bound[i].name, path, err));
        if (!strcmp(hex, bound[i].found)) continue;
        BJ_GOTO(status, done, bj_lock_path(file, folder, bound[i].name, err));
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s: the file was changed; its SHA-256 is %.16s..., but %s has %.16s...",
                         i < 2 ? file : bound[i].name, bound[i].found, BJ_LOCKED_COMPLETION, hex);
        goto done;
    }
done:
    yyjson_doc_free(doc);
    return status;
}
