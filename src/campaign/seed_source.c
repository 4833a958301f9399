/* seed_source.c - creates a table of arms, metrics and seeds from a campaign.
 *
 * Locked        DIR/locked/seed_table.json, after the evaluation was verified (bj_locked_open)
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

#include "campaign/locked_file.h"
#include "core/file.h"
#include "core/alloc.h"
#include "run/epoch_fields.h"

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

static bj_status read_locked(bj_seeds **out, const char *dir, bj_error *err) {
    bj_locked *locked;
    BJ_TRY(bj_locked_open(&locked, NULL, dir, err));
    const bj_status status = bj_locked_seeds(out, locked, err);
    bj_locked_free(locked);
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
