/* locked_check.c - checks the runs and the grid of a campaign before it is locked; see
 * locked_check.h. The data is checked in locked_data.c. */
#include "campaign/locked_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "campaign/campaign_internal.h"
#include "core/alloc.h"

static const char result_schema[] = "branchjepa.result/1";

/* Largest seed of a seed table. */
static const uint64_t most_seed = UINT64_C(999999999999999999);

static bj_status refuse(bj_error *err, const bj_lock_run *run, const char *fmt, ...)
    BJ_PRINTF(3, 4);

/* Fills the message and returns the code. */
static bj_status refuse(bj_error *err, const bj_lock_run *run, const char *fmt, ...) {
    char reason[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return BJ_FAIL(err, BJ_ELOCKED, "%s, seed %lld: %.400s", run->arm, (long long)run->seed, reason);
}

/* ----------------------------------------------------------------------------- development rule */

static double criterion(bj_objective_kind kind, const bj_epoch *row) {
    return kind == BJ_ANCHOR_A ? row->decoder_ade : row->dev.traj_es;
}

int bj_lock_choose(bj_objective_kind kind, const bj_epoch *rows, int count) {
    int best = -1;
    for (int i = 0; i < count; i++) {
        const double value = criterion(kind, &rows[i]);
        if (rows[i].epoch < 1 || isnan(value)) continue;
        if (kind == BJ_ANCHOR_A && !rows[i].eligible) continue;
        if (best < 0 || value < criterion(kind, &rows[best])) best = i;
    }
    return best;
}

/* ------------------------------------------------------------------------------------ one run */

/* Reads a required fact of the manifest. */
static bj_status take_fact(char out[BJ_SHA256_HEX], const bj_lock_run *run, const bj_run *from,
                           const char *key, bj_error *err) {
    const char *found = bj_run_fact(from, key);
    if (!found || strlen(found) != BJ_SHA256_HEX - 1)
        return refuse(err, run, "manifest.json: %s is '%.70s', expected 64 hexadecimal digits", key,
                      found ? found : "missing");
    memcpy(out, found, BJ_SHA256_HEX);
    return BJ_OK;
}

static bj_status check_settings(const bj_lock_run *run, const bj_run *from,
                                const bj_settings *settings, bj_error *err) {
    char found[BJ_SHA256_HEX], expected[BJ_SHA256_HEX];
    BJ_TRY(bj_settings_digest(found, bj_run_settings(from), err));
    BJ_TRY(bj_settings_digest(expected, settings, err));
    if (!strcmp(found, expected)) return BJ_OK;
    for (int i = 0; i < bj_setting_count(); i++) { /* ambiguous */
        char a[BJ_SETTING_TEXT_SIZE], b[BJ_SETTING_TEXT_SIZE];
        bj_setting_text(a, bj_run_settings(from), i);
        bj_setting_text(b, settings, i);
        if (strcmp(a, b))
            return refuse(err, run,
                          "config.resolved.json: %s is %.100s, but campaign.json has %.100s",
                          bj_setting_at(i).key, a, b);
    }
    return refuse(err, run,
                  "the digest of config.resolved.json differs from the digest in campaign.json");
}

static bj_status check_data(const bj_lock_run *run, bj_lock_facts *facts, const bj_run *from,
                            const char *data_digest, const char *dev_digest, bj_error *err) {
    const char *dev = bj_run_fact(from, "dev_data.digest");
    BJ_TRY(take_fact(facts->data, run, from, "data.digest", err));
    BJ_TRY(take_fact(facts->order, run, from, "order.sha256", err));
    BJ_TRY(take_fact(facts->split, run, from, "split.dev_sha256", err));
    BJ_TRY(take_fact(facts->initial, run, from, "initial.sha256", err));
    if (facts->stage_b) BJ_TRY(take_fact(facts->anchor, run, from, "anchor.sha256", err));
    if (bj_run_settings(from)->init[0])
        BJ_TRY(take_fact(facts->target, run, from, "init.target_sha256", err));
    if (strcmp(facts->data, data_digest))
        return refuse(err, run,
                      "the run was trained on data with the digest %.16s..., "
                      "but the campaign has %.16s...",
                      facts->data, data_digest);
    if (!dev != !dev_digest || (dev && strcmp(dev, dev_digest)))
        return refuse(err, run,
                      "the run was evaluated on development data with the digest %.16s, "
                      "but the campaign has %.16s",
                      dev ? dev : "of training", dev_digest ? dev_digest : "of training");
    return BJ_OK;
}

/* Checks that all epochs were trained or that patience ended the run. */
static bj_status check_history(bj_lock_run *run, const bj_run *from, bj_error *err) {
    const bj_objective_kind kind = bj_run_settings(from)->objective.kind;
    const int count = bj_run_epochs(from);
    bj_epoch *rows;
    if (!count) return refuse(err, run, "metrics.jsonl has no epochs");
    BJ_TRY(BJ_ALLOC(rows, (size_t)count, err));
    for (int i = 0; i < count; i++) rows[i] = bj_run_epoch(from, i);
    const int best = bj_lock_choose(kind, rows, count), last = rows[count - 1].epoch;
    bj_status status = BJ_OK;
    if (best < 0)
        status =
            refuse(err, run, "metrics.jsonl has no epoch for choosing a checkpoint");
    else if (!bj_run_complete(from))
        status = refuse(err, run, "metrics.jsonl ends with epoch %d of %d", last,
                        bj_run_planned(from));
    if (status == BJ_OK) {
        run->best_epoch = rows[best].epoch;
        run->dev = criterion(kind, &rows[best]);
    }
    bj_free(rows);
    return status;
}

static bj_status check_result(const bj_lock_run *run, bj_lock_facts *facts, yyjson_val *root,
                              const char *path, bj_error *err) {
    static const char *const files[2] = {BJ_CHECKPOINT_MODEL, BJ_CHECKPOINT_STATE};
    yyjson_val *checkpoint;
    int64_t epoch;
    BJ_TRY(bj_locked_get_integer(&epoch, root, "best_epoch", path, err));
    if (epoch != run->best_epoch)
        return refuse(
            err, run,
            "its checkpoint is from epoch %lld, but the development rule chooses epoch %d (%.6g)",
            (long long)epoch, run->best_epoch, run->dev);
    BJ_TRY(bj_locked_get_object(&checkpoint, root, "checkpoint", path, err));
    for (int i = 0; i < 2; i++)
        BJ_TRY(bj_locked_get_sha256(facts->checkpoint[i], checkpoint, files[i], path, err));
    yyjson_val *anchor = yyjson_obj_get(root, "anchor");
    if (!facts->stage_b) return BJ_OK;
    const char *before = yyjson_get_str(yyjson_obj_get(anchor, "sha256_before"));
    const char *after = yyjson_get_str(yyjson_obj_get(anchor, "sha256_after"));
    if (!before || !after || strcmp(before, after) || strcmp(before, facts->anchor))
        return refuse(err, run, "result.json does not show that the anchor is unchanged");
    return BJ_OK;
}

bj_status bj_lock_describe(bj_lock_run *run, const bj_campaign *campaign, int index,
                           bj_error *err) {
    const bj_campaign_run from = bj_campaign_run_at(campaign, index);
    const char *root = bj_campaign_dir(campaign);
    const size_t length = strlen(root); /* the run folder starts with "ROOT/" */
    *run = (bj_lock_run){.seed = (int64_t)(from.settings->seed & INT64_MAX),
                         .evaluated = from.settings->objective.kind != BJ_ANCHOR_A};
    snprintf(run->arm, sizeof run->arm, "%s", bj_campaign_label(campaign, index));
    if (from.settings->seed > most_seed)
        return refuse(err, run, "seed %llu is too large for a table",
                      (unsigned long long)from.settings->seed);
    if (strlen(from.dir + length + 1) >= sizeof run->dir)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: the path is too long", from.dir);
    memcpy(run->dir, from.dir + length + 1, strlen(from.dir + length + 1) + 1);
    return BJ_OK;
}

bj_status bj_lock_check_run(bj_lock_run *run, bj_lock_facts *facts, const bj_campaign *campaign,
                            int index, bj_error *err) {
    const bj_campaign_run at = bj_campaign_run_at(campaign, index);
    const bj_settings *settings = at.settings;
    const char *dir = at.dir, *dev = bj_campaign_dev(campaign) ? campaign->dev_digest : NULL;
    char path[BJ_FOLDER_PATH];
    bj_run *from = NULL;
    yyjson_doc *result = NULL;
    bj_locked_text text = {0};
    bj_error detail = {0};
    bj_status status;
    BJ_TRY(bj_lock_describe(run, campaign, index, err));
    status = bj_run_open(&from, dir, &detail);
    if (status == BJ_ENOMEM) return BJ_FAIL(err, status, "%s", detail.message);
    if (status != BJ_OK) return refuse(err, run, "%s", detail.message);
    if (!bj_run_finished(from)) {
        status = refuse(err, run, "is not done: %s has no result.json", dir);
        goto done;
    }
    facts->arch = settings->arch;
    facts->extended = bj_run_extended(from);
    facts->stage_b = settings->objective.kind == BJ_ANCHOR_B;
    BJ_GOTO(status, done, check_settings(run, from, settings, err));
    BJ_GOTO(status, done, check_data(run, facts, from, at.data_digest, dev, err));
    BJ_GOTO(status, done, bj_lock_path(path, dir, "result.json", err));
    BJ_GOTO(status, done, bj_locked_text_read(&text, path, err));
    BJ_GOTO(status, done, bj_locked_parse(&result, &text, path, result_schema, err));
    /* A run without a checkpoint has no selection, so there is nothing to check. */
    const char *outcome = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(result), "outcome"));
    if (!outcome || strcmp(outcome, "done")) {
        status = refuse(err, run, "is not done: its outcome is '%.40s'", outcome ? outcome : "");
        goto done;
    }
    BJ_GOTO(status, done, check_history(run, from, err));
    status = check_result(run, facts, yyjson_doc_get_root(result), path, err);
done:
    yyjson_doc_free(result);
    bj_locked_text_reset(&text);
    bj_run_free(from);
    return status;
}

/* ---------------------------------------------------------------------------------------- grid */

/* Returns 1 if two models must start with the same weights when they have the same seed, which
 * requires equal sizes. The source of the branch weights may differ. */
static int same_weights(const bj_lock_facts *a, const bj_lock_facts *b) {
    const bj_arch x = a->arch, y = b->arch;
    return a->stage_b == b->stage_b && x.kind == y.kind && x.scales == y.scales && x.obs == y.obs &&
           x.fut == y.fut && x.neighbors == y.neighbors && x.polylines == y.polylines &&
           x.points == y.points && x.embed == y.embed && x.heads == y.heads &&
           x.token_hidden == y.token_hidden && x.latent == y.latent &&
           x.proj_hidden == y.proj_hidden && x.atoms == y.atoms && x.atom_hidden == y.atom_hidden &&
           x.router_hidden == y.router_hidden && x.decoder_hidden == y.decoder_hidden &&
           x.trunk == y.trunk;
}

static bj_status check_pair(const bj_lock_run *a, const bj_lock_facts *f, const bj_lock_run *b,
                            const bj_lock_facts *g, bj_error *err) {
    const struct {
        const char *what, *x, *y;
        int compared;
    } facts[] = {
        {"data", f->data, g->data, 1},
        {"development scenes", f->split, g->split, 1},
        {"order of scenes", f->order, g->order, 1},
        {"initial weights", f->initial, g->initial, same_weights(f, g)},
        {"frozen anchor", f->anchor, g->anchor, f->stage_b && g->stage_b},
        {"first target encoders", f->target, g->target, *f->target && *g->target},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].compared && strcmp(facts[i].x, facts[i].y))
            return refuse(err, b,
                          "its %s (%.16s...) differ from those of %s (%.16s...), "
                          "although the seed is the same",
                          facts[i].what, facts[i].y, a->arm, facts[i].x);
    return BJ_OK;
}

bj_status bj_lock_check_grid(const bj_lock_run *runs, const bj_lock_facts *facts, int count,
                             bj_error *err) {
    int evaluated = 0, first = -1;
    for (int i = 0; i < count; i++) {
        evaluated += runs[i].evaluated;
        if (runs[i].evaluated && first < 0) first = i;
        if (runs[i].evaluated && facts[i].extended != facts[first].extended)
            return refuse(err, &runs[i],
                          "the run was extended by %d epochs, but %s seed %lld was extended by %d",
                          facts[i].extended, runs[first].arm, (long long)runs[first].seed,
                          facts[first].extended);
        for (int j = 0; j < i; j++)
            if (runs[j].seed == runs[i].seed)
                BJ_TRY(check_pair(&runs[j], &facts[j], &runs[i], &facts[i], err));
    }
    return evaluated
               ? BJ_OK
               : BJ_FAIL(err, BJ_ELOCKED, "no run of the campaign makes forecasts");
}

/* ---------------------------------------------------------------------------------- checkpoint */

bj_status bj_lock_check_facts(const bj_lock_run *run, const bj_settings *settings,
                              const char *data_digest, const bj_safetensors *model,
                              bj_error *err) {
    char seed[32], epoch[32], digest[BJ_SHA256_HEX];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)settings->seed);
    snprintf(epoch, sizeof epoch, "%d", run->best_epoch);
    BJ_TRY(bj_settings_digest(digest, settings, err));
    const struct {
        const char *key, *expected, *source;
    } facts[] = {{"run.arm", settings->arm, "the campaign has"},
                 {"run.seed", seed, "the campaign has"},
                 {"run.settings_sha256", digest, "the campaign has"},
                 {"run.data_digest", data_digest, "the campaign has"},
                 {"run.evaluated", epoch, "the development rule chooses epoch"}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *found = bj_safetensors_metadata(model, facts[i].key);
        if (!found || strcmp(found, facts[i].expected))
            return refuse(err, run, "%s: %s is '%.64s', but %s %.64s",
                          bj_lock_run_files[BJ_LOCK_MODEL], facts[i].key,
                          found ? found : "missing", facts[i].source, facts[i].expected);
    }
    return BJ_OK;
}

bj_status bj_lock_check_checkpoint(const bj_lock_run *run, const bj_lock_facts *facts,
                                   const bj_campaign_run *from, const bj_arch *scenes,
                                   bj_error *err) {
    char path[BJ_FOLDER_PATH], folder[BJ_FOLDER_PATH];
    bj_safetensors *file;
    bj_model *model = NULL;
    bj_target *target = NULL;
    bj_status status;
    for (int i = 0; i < 2; i++)
        if (strcmp(run->sha256[i], facts->checkpoint[i]))
            return refuse(err, run, "%s: its SHA-256 is %.16s..., but result.json has %.16s...",
                          bj_lock_run_files[i], run->sha256[i], facts->checkpoint[i]);
    BJ_TRY(bj_lock_path(path, from->dir, bj_lock_run_files[BJ_LOCK_MODEL], err));
    BJ_TRY(bj_lock_path(folder, from->dir, "ckpt/best", err));
    BJ_TRY(bj_safetensors_open(&file, path, err));
    status = bj_lock_check_facts(run, from->settings, from->data_digest, file, err);
    bj_safetensors_close(file);
    if (status != BJ_OK || !scenes || !run->evaluated) return status;
    BJ_GOTO(status, done, bj_model_load(&model, path, err));
    BJ_GOTO(status, done, bj_target_load(&target, folder, err));
    bj_error detail = {0};
    if (bj_arch_fits(bj_model_arch(model), scenes, &detail) != BJ_OK)
        status = refuse(err, run, "does not fit the held-out scenes: %s", detail.message);
done:
    bj_target_free(target);
    bj_model_free(model);
    return status;
}
