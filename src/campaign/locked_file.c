/* locked_file.c - see locked_file.h. */
#include "campaign/locked_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "campaign/locked_map.h"
#include "core/alloc.h"

static const char *const schemas[] = {"branchjepa.lock/1", "branchjepa.lock/2"};
static const char rule_forecast[] = "traj_es", rule_anchor[] = "decoder_ade";

const char *const bj_lock_run_files[BJ_LOCK_RUN_FILES] = {
    [BJ_LOCK_MODEL] = "ckpt/best/" BJ_CHECKPOINT_MODEL,
    [BJ_LOCK_STATE] = "ckpt/best/" BJ_CHECKPOINT_STATE,
    "config.resolved.json",
    "manifest.json",
    "metrics.jsonl",
    "result.json",
};

const char *bj_lock_real(void) {
    return sizeof(bj_real) == sizeof(double) ? "double" : "float";
}

bj_status bj_lock_path(char path[BJ_FOLDER_PATH], const char *dir, const char *name,
                       bj_error *err) {
    const int length = snprintf(path, BJ_FOLDER_PATH, "%s/%s", dir, name);
    return length >= 0 && length < BJ_FOLDER_PATH
               ? BJ_OK
               : BJ_FAIL(err, BJ_EARG, "%.100s.../%s: the path is too long", dir, name);
}

int bj_lock_evaluated(const bj_lock *lock) {
    int count = 0;
    for (int i = 0; i < lock->count; i++) count += lock->runs[i].evaluated;
    return count;
}

bj_status bj_lock_unevaluated(const char *dir, bj_error *err) {
    char path[BJ_FOLDER_PATH];
    BJ_TRY(bj_lock_path(path, dir, BJ_LOCKED_DIR, err));
    if (!bj_file_exists(path)) return BJ_OK;
    return BJ_FAIL(err, BJ_ELOCKED,
                   "%s: the campaign was already evaluated; a lock allows only one evaluation",
                   path);
}

/* Names of the metrics in evaluation order, terminated by NULL. */
static const char *metric_name(int index) {
    static const bj_metric_values zero;
    for (int m = 0; m < bj_metric_count(); m++)
        if (!isnan(bj_metric_value(&zero, m)) && !index--) return bj_metric_at(m).name;
    return NULL;
}

void bj_lock_reset(bj_lock *lock) {
    bj_free(lock->runs);
    *lock = (bj_lock){0};
}

/* ------------------------------------------------------------------------------------- writing */

static void write_run(bj_doc *out, yyjson_mut_val *list, const bj_lock_run *run) {
    yyjson_mut_val *object = bj_doc_item(out, list);
    bj_doc_add_text(out, object, "arm", run->arm);
    bj_doc_add_integer(out, object, "seed", run->seed);
    bj_doc_add_text(out, object, "dir", run->dir);
    bj_doc_add_bool(out, object, "evaluated", run->evaluated);
    bj_doc_add_text(out, object, "rule", run->evaluated ? rule_forecast : rule_anchor);
    bj_doc_add_integer(out, object, "best_epoch", run->best_epoch);
    bj_doc_add_number(out, object, "dev", run->dev);
    yyjson_mut_val *files = bj_doc_child(out, object, "sha256");
    for (int i = 0; i < BJ_LOCK_RUN_FILES; i++)
        bj_doc_add_text(out, files, bj_lock_run_files[i], run->sha256[i]);
}

bj_status bj_lock_text(bj_locked_text *text, const bj_lock *lock, bj_error *err) {
    bj_doc out;
    BJ_TRY(bj_doc_begin(&out, schemas[lock->schema - 1], err));
    yyjson_mut_val *const root = out.root;

    yyjson_mut_val *object = bj_doc_child(&out, root, "campaign");
    bj_doc_add_text(&out, object, "name", lock->campaign);
    bj_doc_add_text(&out, object, "sha256", lock->campaign_sha256);

    object = bj_doc_child(&out, root, "evaluator");
    bj_doc_add_text(&out, object, "version", lock->version);
    bj_doc_add_text(&out, object, "sha256", lock->evaluator_sha256);

    object = bj_doc_child(&out, root, "data");
    bj_doc_add_text(&out, object, "path", lock->data);
    bj_doc_add_integer(&out, object, "bytes", lock->data_bytes);
    bj_doc_add_text(&out, object, "sha256", lock->data_sha256);
    bj_doc_add_text(&out, object, "digest", lock->data_digest);
    bj_doc_add_integer(&out, object, "scenes", lock->scenes);

    object = bj_doc_child(&out, root, "protocol");
    yyjson_mut_val *metrics = bj_doc_list(&out, object, "metrics");
    for (int m = 0; metric_name(m); m++) bj_doc_item_text(&out, metrics, metric_name(m));
    bj_doc_add_text(&out, object, "precision", "full");
    bj_doc_add_text(&out, object, "real", bj_lock_real());
    bj_doc_add_integer(&out, object, "batch", BJ_LOCK_BATCH);
    bj_doc_add_integer(&out, object, "least_scenes", BJ_LOCK_LEAST);
    if (lock->schema > 1) {
        yyjson_mut_val *map = bj_doc_list(&out, object, "map");
        for (int i = 0; i < BJ_LOCKED_MAP; i++)
            bj_doc_item_text(&out, map, bj_locked_extra_name(i));
        bj_doc_add_integer(&out, object, "latency_batch", BJ_LATENCY_BATCH);
    }

    yyjson_mut_val *runs = bj_doc_list(&out, root, "runs");
    for (int i = 0; i < lock->count; i++) write_run(&out, runs, &lock->runs[i]);
    return bj_locked_text_of(text, &out, BJ_LOCK_FILE, err);
}

/* ------------------------------------------------------------------------------------- reading */

static bj_status read_run(bj_lock_run *run, yyjson_val *object, const char *path, int index,
                          bj_error *err) {
    char where[BJ_FOLDER_PATH + 32];
    yyjson_val *files;
    int64_t epoch;
    snprintf(where, sizeof where, "%s: run %d", path, index);
    BJ_TRY(bj_locked_get_text(run->arm, sizeof run->arm, object, "arm", where, err));
    BJ_TRY(bj_locked_get_integer(&run->seed, object, "seed", where, err));
    BJ_TRY(bj_locked_get_text(run->dir, sizeof run->dir, object, "dir", where, err));
    if (run->dir[0] == '/' || strstr(run->dir, ".."))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: 'dir' is '%.100s', expected a folder in the campaign folder",
                       where, run->dir);
    yyjson_val *evaluated = yyjson_obj_get(object, "evaluated");
    if (!yyjson_is_bool(evaluated))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: 'evaluated' is not true or false", where);
    run->evaluated = yyjson_get_bool(evaluated);
    BJ_TRY(bj_locked_get_integer(&epoch, object, "best_epoch", where, err));
    run->best_epoch = epoch > 1 << 30 ? 1 << 30 : (int)epoch;
    run->dev = yyjson_get_num(yyjson_obj_get(object, "dev"));
    BJ_TRY(bj_locked_get_object(&files, object, "sha256", where, err));
    for (int i = 0; i < BJ_LOCK_RUN_FILES; i++)
        BJ_TRY(bj_locked_get_sha256(run->sha256[i], files, bj_lock_run_files[i], where, err));
    return BJ_OK;
}

/* Checks that the metrics, the precision and the batch size in the file match those of this
 * library. */
static bj_status check_protocol(yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *object, *metrics;
    char text[BJ_NAME_SIZE];
    int64_t batch, least;
    BJ_TRY(bj_locked_get_object(&object, root, "protocol", path, err));
    BJ_TRY(bj_locked_get_list(&metrics, object, "metrics", path, err));
    size_t m = 0;
    while (metric_name((int)m) &&
           yyjson_equals_str(yyjson_arr_get(metrics, m), metric_name((int)m)))
        m++;
    if (metric_name((int)m) || yyjson_arr_size(metrics) != m)
        return BJ_FAIL(err, BJ_EVERSION,
                       "%s: the list of metrics differs from the list in version %s", path,
                       bj_version());
    BJ_TRY(bj_locked_get_text(text, sizeof text, object, "real", path, err));
    if (strcmp(text, bj_lock_real()))
        return BJ_FAIL(err, BJ_EVERSION,
                       "%s: was locked with the number type %s, but this program uses %s", path,
                       text, bj_lock_real());
    BJ_TRY(bj_locked_get_integer(&batch, object, "batch", path, err));
    BJ_TRY(bj_locked_get_integer(&least, object, "least_scenes", path, err));
    if (batch != BJ_LOCK_BATCH || least != BJ_LOCK_LEAST)
        return BJ_FAIL(err, BJ_EVERSION,
                       "%s: batch is %lld and least_scenes is %lld, "
                       "but this version uses %d and %d",
                       path, (long long)batch, (long long)least, BJ_LOCK_BATCH, BJ_LOCK_LEAST);
    return BJ_OK;
}

static bj_status read_all(bj_lock *lock, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *object, *runs;
    BJ_TRY(bj_locked_get_object(&object, root, "campaign", path, err));
    BJ_TRY(bj_locked_get_text(lock->campaign, sizeof lock->campaign, object, "name", path, err));
    BJ_TRY(bj_locked_get_sha256(lock->campaign_sha256, object, "sha256", path, err));
    BJ_TRY(bj_locked_get_object(&object, root, "evaluator", path, err));
    BJ_TRY(bj_locked_get_text(lock->version, sizeof lock->version, object, "version", path, err));
    BJ_TRY(bj_locked_get_sha256(lock->evaluator_sha256, object, "sha256", path, err));
    BJ_TRY(bj_locked_get_object(&object, root, "data", path, err));
    BJ_TRY(bj_locked_get_text(lock->data, sizeof lock->data, object, "path", path, err));
    BJ_TRY(bj_locked_get_integer(&lock->data_bytes, object, "bytes", path, err));
    BJ_TRY(bj_locked_get_sha256(lock->data_sha256, object, "sha256", path, err));
    BJ_TRY(bj_locked_get_sha256(lock->data_digest, object, "digest", path, err));
    BJ_TRY(bj_locked_get_integer(&lock->scenes, object, "scenes", path, err));
    BJ_TRY(check_protocol(root, path, err));
    BJ_TRY(bj_locked_get_list(&runs, root, "runs", path, err));
    const size_t count = yyjson_arr_size(runs);
    if (count < 1 || count > BJ_LOCK_RUNS_MAX)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: has %zu runs, expected 1 to %d", path, count,
                       BJ_LOCK_RUNS_MAX);
    BJ_TRY(BJ_ALLOC(lock->runs, count, err));
    yyjson_val *run;
    yyjson_arr_iter iter = yyjson_arr_iter_with(runs);
    while ((run = yyjson_arr_iter_next(&iter))) {
        BJ_TRY(read_run(&lock->runs[lock->count], run, path, lock->count, err));
        lock->count++;
    }
    return BJ_OK;
}

/* Checks that a path is absolute and has one spelling: no "//", "." or "..". */
static int is_plain_path(const char *path) {
    if (*path != '/') return 0;
    for (const char *part = path; *part; part += 1 + strcspn(part + 1, "/")) {
        const size_t length = strcspn(part + 1, "/");
        if (!length || (part[1] == '.' && (length == 1 || (length == 2 && part[2] == '.'))))
            return 0;
    }
    return 1;
}

bj_status bj_lock_parse(bj_lock *lock, const bj_locked_text *text, const char *path,
                        bj_error *err) {
    bj_locked_text again = {0};
    yyjson_doc *doc = NULL;
    bj_status status;
    int schema;
    *lock = (bj_lock){0};
    BJ_TRY(bj_locked_parse_either(&doc, &schema, text, path, schemas, err));
    lock->schema = schema;
    BJ_GOTO(status, done, read_all(lock, yyjson_doc_get_root(doc), path, err));
    if (!is_plain_path(lock->data)) {
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: the path of the data is '%.200s', expected an "
                                          "absolute path without '.', '..' and '//'",
                         path, lock->data);
        goto done;
    }
    BJ_GOTO(status, done, bj_lock_text(&again, lock, err));
    status = bj_locked_same_text(text, &again, path, err);
done:
    bj_locked_text_reset(&again);
    yyjson_doc_free(doc);
    if (status != BJ_OK) bj_lock_reset(lock);
    return status;
}
