/* seed_source.c - creates a table of arms, metrics and seeds from a campaign.
 *
 * Locked        DIR/locked/seed_table.json, which must have the digest in completion.json
 * Development   the row of the chosen epoch in metrics.jsonl of each finished run: decoder errors
 *               and gate values for stage A; graph metrics and the spread of the latents for mazes,
 *               unless the latents collapsed
 * Test: tests/campaign/test_lock.c, tests/cli/evaluate.sh
 */
#define _POSIX_C_SOURCE 200809L /* lstat */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "campaign/locked_check.h"
#include "campaign/locked_json.h"
#include "campaign/locked_write.h"
#include "core/file.h"
#include "core/alloc.h"
#include "run/epoch_fields.h"

enum { ROWS_MAX = 1 << 20 };

/* A growing list of values. The names are not owned by the list. */
typedef struct list {
    bj_seed_value *values; /* (count), room for `room` */
    int count, room;
} list;

static bj_status add(list *l, const char *arm, int64_t seed, const char *metric, double value,
                     bj_error *err) {
    if (!isfinite(value)) return BJ_OK; /* not measured */
    if (l->count == l->room) {
        bj_seed_value *larger;
        const int room = l->room ? 2 * l->room : 256;
        BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
        if (l->count) memcpy(larger, l->values, (size_t)l->count * sizeof *larger);
        bj_free(l->values);
        l->values = larger;
        l->room = room;
    }
    l->values[l->count++] = (bj_seed_value){arm, metric, seed, value};
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- locked */

static bj_status read_rows(list *l, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *rows, *row;
    BJ_TRY(bj_locked_get_list(&rows, root, "rows", path, err));
    if (yyjson_arr_size(rows) > ROWS_MAX)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: has %zu rows, expected at most %d", path,
                       yyjson_arr_size(rows), ROWS_MAX);
    yyjson_arr_iter iter = yyjson_arr_iter_with(rows);
    while ((row = yyjson_arr_iter_next(&iter))) {
        char where[BJ_FOLDER_PATH + 32];
        int64_t seed;
        snprintf(where, sizeof where, "%s: row %d", path, l->count);
        const char *arm = yyjson_get_str(yyjson_obj_get(row, "arm"));
        const char *metric = yyjson_get_str(yyjson_obj_get(row, "metric"));
        yyjson_val *value = yyjson_obj_get(row, "value");
        BJ_TRY(bj_locked_get_integer(&seed, row, "seed", where, err));
        if (!arm || !metric || !yyjson_is_num(value))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: expected arm, seed, metric and value", where);
        BJ_TRY(add(l, arm, seed, metric, yyjson_get_num(value), err));
    }
    return BJ_OK;
}

/* Checks that seed_table.json has the digest in completion.json. */
static bj_status check_bound(const char *folder, const char *found, bj_error *err) {
    char path[BJ_FOLDER_PATH], bound[BJ_SHA256_HEX];
    yyjson_doc *doc;
    yyjson_val *files;
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_COMPLETION, err));
    BJ_TRY(bj_locked_open(&doc, NULL, path, BJ_LOCKED_COMPLETION_SCHEMA, err));
    bj_status status = bj_locked_get_object(&files, yyjson_doc_get_root(doc), "sha256", path, err);
    if (status == BJ_OK) status = bj_locked_get_sha256(bound, files, BJ_LOCKED_SEEDS, path, err);
    yyjson_doc_free(doc);
    if (status == BJ_OK && strcmp(bound, found))
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s/%s: the file was changed; its SHA-256 is %.16s..., "
                         "but %s has %.16s...",
                         folder, BJ_LOCKED_SEEDS, found, BJ_LOCKED_COMPLETION, bound);
    return status;
}

static bj_status read_locked(bj_seeds **out, const char *dir, bj_error *err) {
    char folder[BJ_FOLDER_PATH], path[BJ_FOLDER_PATH], hex[BJ_SHA256_HEX];
    list l = {0};
    yyjson_doc *doc = NULL;
    bj_status status;
    BJ_TRY(bj_lock_path(folder, dir, BJ_LOCKED_DIR, err));
    BJ_TRY(bj_lock_path(path, folder, BJ_LOCKED_SEEDS, err));
    if (!bj_file_exists(folder))
        return BJ_FAIL(err, BJ_ELOCKED, "%s: the campaign has not been evaluated", dir);
    BJ_GOTO(status, done, bj_locked_open(&doc, hex, path, BJ_LOCKED_SEEDS_SCHEMA, err));
    BJ_GOTO(status, done, check_bound(folder, hex, err));
    BJ_GOTO(status, done, read_rows(&l, yyjson_doc_get_root(doc), path, err));
    status = bj_seeds_create(out, path, l.values, l.count, err);
done:
    if (doc) yyjson_doc_free(doc);
    bj_free(l.values);
    return status;
}

/* ---------------------------------------------------------------------------------- development */

/* Adds every number of a maze row that is not NaN. */
static bj_status add_maze(list *l, const char *arm, int64_t seed, const bj_epoch *row,
                          bj_error *err) {
    for (int i = 0; i < bj_epoch_field_count; i++) {
        const bj_epoch_field *field = &bj_epoch_fields[i];
        if (bj_epoch_field_in(field, "maze") || field->spread)
            BJ_TRY(add(l, arm, seed, bj_epoch_field_name(field), bj_epoch_real(row, field), err));
    }
    return BJ_OK;
}

/* Rows of several datasets are "SET/ARM". */
static bj_status add_run(list *l, const bj_campaign_run *run, const bj_epoch *row, bj_error *err) {
    const bj_settings *settings = run->settings;
    const int64_t seed = (int64_t)(settings->seed & INT64_MAX);
    if (settings->arch.encoder != BJ_ENCODER_SCENE) return add_maze(l, run->name, seed, row, err);
    if (settings->objective.kind != BJ_ANCHOR_A) {
        for (int m = 0; m < bj_metric_count(); m++)
            BJ_TRY(
                add(l, run->name, seed, bj_metric_at(m).name, bj_metric_value(&row->dev, m), err));
        return BJ_OK;
    }
    const struct {
        const char *name;
        double value;
    } gates[] = {{"decoder_ade", row->decoder_ade},
                 {"decoder_fde", row->decoder_fde},
                 {"mean_std", row->health.mean_std},
                 {"low_std_fraction", row->health.low_std_fraction},
                 {"entropy_rank", row->health.entropy_rank}};
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        BJ_TRY(add(l, run->name, seed, gates[i].name, gates[i].value, err));
    return BJ_OK;
}

static bj_status read_development(bj_seeds **out, const char *dir, bj_error *err) {
    bj_campaign *campaign;
    bj_run *run = NULL;
    list l = {0};
    bj_status status = BJ_OK;
    BJ_TRY(bj_campaign_open(&campaign, dir, err));
    for (int i = 0; i < bj_campaign_runs(campaign); i++) {
        const bj_campaign_run at = bj_campaign_run_at(campaign, i);
        char path[BJ_FOLDER_PATH];
        BJ_GOTO(status, done, bj_lock_path(path, at.dir, "result.json", err));
        if (!bj_file_exists(path)) continue;
        BJ_GOTO(status, done, bj_run_open(&run, at.dir, err));
        const int best = bj_run_best(run);
        if (best >= 0) {
            const bj_epoch row = bj_run_epoch(run, best);
            BJ_GOTO(status, done, add_run(&l, &at, &row, err));
        }
        bj_run_free(run);
        run = NULL;
    }
    if (!l.count) status = BJ_FAIL(err, BJ_ELOCKED, "%s: no run of the campaign is finished", dir);
    else status = bj_seeds_create(out, dir, l.values, l.count, err);
done:
    bj_run_free(run);
    bj_campaign_free(campaign);
    bj_free(l.values);
    return status;
}

bj_status bj_campaign_seeds(bj_seeds **out, const char *dir, bj_seed_source source, bj_error *err) {
    *out = NULL;
    return source == BJ_SEEDS_LOCKED ? read_locked(out, dir, err) : read_development(out, dir, err);
}
