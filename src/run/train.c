/* train.c - the training loop.
 *
 *   epoch 0      evaluates the initial weights
 *   epoch e      trains on all fit scenes in the order of (seed, e - 1), then evaluates the
 *                development scenes
 *
 * The learning rate depends only on the number of the update. ckpt/last contains the complete
 * training state, so a run that is killed at any time and then resumed ends with the same weights.
 * Test  tests/run/test_train.c, tests/cli/train.sh, tests/cli/train_kill.sh
 */
#define _POSIX_C_SOURCE 200809L /* close */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/folder.h"
#include "data/loader.h"
#include "objective/regularizers.h"
#include "run/history.h"
#include "run/run.h"
#include "train/trainer.h"

enum { STATUS_SECONDS = 1, RECENT = 50 /* updates */ };

/* ------------------------------------------------------------------------------------- progress */

static bj_run_progress where(const bj_train_run *r, const char *phase) {
    const int epochs = bj_plan_end(&r->plan);
    const int64_t step = bj_trainer_updates(r->trainer), total = r->steps * epochs;
    const double spent = bj_seconds() - r->started;
    const int64_t done = step - r->first_step;
    const int epoch = r->evaluated + 1;
    return (bj_run_progress){
        .phase = phase,
        .epoch = epoch < 0        ? 0
                 : epoch > epochs ? epochs
                                  : epoch,
        .epochs = epochs,
        .step = step,
        .steps = total,
        .scenes_per_s = r->epoch_seconds > 0 ? (double)r->epoch_scenes / r->epoch_seconds
                        : r->evaluated > 0   ? r->rows[r->evaluated].scenes_per_s
                                             : NAN,
        .eta_s = done > 0 ? spent / (double)done * (double)(total - step) : NAN,
        .loss = r->recent,
        .last = r->evaluated >= 0 ? &r->rows[r->evaluated] : NULL,
        .best = r->best >= 0 ? &r->rows[r->best] : NULL};
}

bj_run_answer bj_run_tell(bj_train_run *r, const char *phase) {
    const double now = bj_seconds();
    const bj_run_progress p = where(r, phase);
    if (now - r->told >= STATUS_SECONDS) {
        bj_run_write_status(r, &p);
        r->told = now;
    }
    const bj_run_answer answer =
        r->options->progress ? r->options->progress(r->options->context, &p) : BJ_RUN_GO_ON;
    if (answer == BJ_RUN_STOP) r->stop = 1;
    return answer;
}

/* ----------------------------------------------------------------------------------------- step */

/* Computes sum += by * loss. Every member of bj_loss is a double. */
static void add_loss(bj_loss *sum, const bj_loss *loss, double keep, double by) {
    double a[sizeof(bj_loss) / sizeof(double)], b[sizeof(bj_loss) / sizeof(double)];
    memcpy(a, sum, sizeof a);
    memcpy(b, loss, sizeof b);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) a[i] = keep * a[i] + by * b[i];
    memcpy(sum, a, sizeof a);
}
_Static_assert(sizeof(bj_loss) % sizeof(double) == 0, "a loss is doubles and nothing else");

bj_status bj_run_explain(const bj_train_run *r, const char *where, int dev, const int64_t *numbers,
                         int B, const bj_error *found, bj_error *err) {
    int b;
    const char *at = strstr(found->message, r->maze ? "transition " : "scene ");
    char id[BJ_RUN_ID] = "";
    if (r->maze) {
        long long row = -1;
        if (at && sscanf(at, "transition %d", &b) == 1 && b >= 0 && b < B) row = numbers[b];
        return row < 0 ? BJ_FAIL(err, found->code, "epoch %d, %s: %.300s", r->evaluated + 1, where,
                                 found->message)
                       : BJ_FAIL(err, found->code, "epoch %d, %s (row %lld of the data): %.300s",
                                 r->evaluated + 1, where, row, found->message);
    }
    if (at && sscanf(at, "scene %d", &b) == 1 && b >= 0 && b < B)
        bj_run_scene_id(id, r, dev, numbers[b]);
    return BJ_FAIL(err, found->code, "epoch %d, %s%s%.64s%s: %.300s", r->evaluated + 1, where,
                   *id ? " (scenario " : "", id, *id ? ")" : "", found->message);
}

static bj_status step(bj_train_run *r, bj_error *err) {
    const int64_t done = bj_trainer_updates(r->trainer);
    const bj_batch *batch;
    const int64_t *numbers;
    bj_step_report report;
    bj_error detail = {0};
    const double start = bj_seconds();
    const bj_segment in = bj_plan_at(&r->plan, done, r->steps);
    const bj_schedule schedule = bj_segment_schedule(in, &r->settings, r->steps);
    const double lr = bj_lr_at(&schedule, (long)(done - r->steps * in.begin));
    BJ_TRY(bj_run_batch(&batch, &numbers, r, done / r->steps, done % r->steps, err));
    const bj_status status = bj_trainer_step(r->trainer, batch, lr, &report, &detail);
    if (status != BJ_OK) {
        char where[40];
        snprintf(where, sizeof where, "update %lld", (long long)done + 1);
        return bj_run_explain(r, where, 0, numbers, batch->B, &detail, err);
    }
    add_loss(&r->sums.loss, &report.loss, 1, 1);
    r->sums.grad_norm += report.grad_norm;
    r->sums.updates++;
    r->sums.lr = lr;
    const double keep = 1 - 1.0 / fmin(RECENT, (double)(done - r->first_step + 1));
    add_loss(&r->recent, &report.loss, keep, 1 - keep);
    r->epoch_seconds += bj_seconds() - start;
    r->epoch_scenes += batch->B;
    return BJ_OK;
}

/* Handles a non-finite number by saving the state before the failed update. */
static bj_status diverged(const bj_train_run *r, bj_error *err) {
    const bj_error found = *err;
    bj_error trouble;
    const bj_status status = bj_run_save(r, "last", &trouble);
    if (status == BJ_OK)
        return BJ_FAIL(err, found.code, "%.400s; the previous state is in ckpt/last",
                       found.message);
    if (status == BJ_ENONFINITE) /* an update overflowed, and the next one detected it */
        return BJ_FAIL(err, found.code,
                       "%.400s; ckpt/last contains the last finite state that was saved",
                       found.message);
    return BJ_FAIL(err, found.code, "%.300s; saving the previous state also failed: %.150s",
                   found.message, trouble.message);
}

/* ---------------------------------------------------------------------------------------- epoch */

static bj_status save(bj_train_run *r, const char *name, bj_error *err) {
    bj_error detail;
    const bj_status status = bj_run_save(r, name, &detail);
    r->saved = bj_seconds();
    if (status == BJ_ENONFINITE) /* an update overflowed */
        return BJ_FAIL(err, status,
                       "after update %ld: %.400s; "
                       "ckpt/last contains the last finite state that was saved",
                       bj_trainer_updates(r->trainer), detail.message);
    if (status != BJ_OK && err) *err = detail;
    return status;
}

/* Does the remaining updates of the current epoch, or stops when requested. */
static bj_status train_epoch(bj_train_run *r, bj_error *err) {
    const int64_t end = (int64_t)(r->evaluated + 1) * r->steps;
    while (bj_trainer_updates(r->trainer) < end && !r->stop) {
        const bj_status status = step(r, err);
        if (status == BJ_ENONFINITE) return diverged(r, err);
        BJ_TRY(status);
        const int due = bj_seconds() - r->saved >= 60 * r->settings.save_minutes;
        if (bj_run_tell(r, "train") == BJ_RUN_SAVE || due) BJ_TRY(save(r, "last", err));
    }
    return BJ_OK;
}

/* Checks that the frozen anchor has not changed during stage B. */
static bj_status check_drift(const bj_train_run *r, bj_error *err) {
    char now[BJ_SHA256_HEX];
    if (!*r->anchor_digest) return BJ_OK;
    BJ_TRY(bj_trainer_anchor_digest(r->trainer, now, err));
    if (strcmp(now, r->anchor_digest))
        return BJ_FAIL(err, BJ_EMISMATCH, "the frozen anchor changed: SHA-256 was %s and is now %s",
                       r->anchor_digest, now);
    return BJ_OK;
}

/* Sets the regularizer terms to NaN if the run has no regularizers, so that its files do not list
 * them. */
static void forget_regularizers(bj_loss *loss, const bj_objective *objective) {
    if (bj_regularizers_active(objective)) return;
    loss->sigreg = loss->vicreg_variance = loss->vicreg_covariance = NAN;
}

static bj_epoch summarize(const bj_train_run *r) {
    bj_epoch row = {.epoch = r->evaluated + 1, .step = bj_trainer_updates(r->trainer)};
    const double n = r->sums.updates;
    row.lr = n > 0 ? r->sums.lr : NAN;
    row.grad_norm = n > 0 ? r->sums.grad_norm / n : NAN;
    add_loss(&row.train, &r->sums.loss, 0, n > 0 ? 1 / n : NAN);
    forget_regularizers(&row.train, &r->settings.objective);
    row.scenes_per_s = r->epoch_seconds > 0 ? (double)r->epoch_scenes / r->epoch_seconds : NAN;
    row.maze = (bj_maze_values){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return row;
}

/* Evaluates, saves checkpoints and metrics, and starts the next epoch. */
static bj_status close_epoch(bj_train_run *r, bj_error *err) {
    bj_epoch row = summarize(r);
    int stopped;
    BJ_TRY(check_drift(r, err));
    const bj_status status = bj_run_develop(&row, &stopped, r, err);
    if (status == BJ_ENONFINITE) return diverged(r, err);
    BJ_TRY(status);
    if (stopped) return BJ_OK;
    row.wall_s = r->wall + bj_seconds() - r->started;
    r->rows[++r->evaluated] = row;
    const int before = r->best, count = r->evaluated + 1;
    r->best = bj_run_choose(&r->settings, r->rows, count);
    for (int i = 0; i < count; i++) r->rows[i].best = i == r->best;
    r->sums = (bj_epoch_sums){0};
    r->epoch_seconds = 0;
    r->epoch_scenes = 0;
    bj_run_tell(r, "save");
    if (r->best != before) BJ_TRY(save(r, "best", err));
    BJ_TRY(bj_history_write(r->options->dir, r->rows, count, err));
    BJ_TRY(bj_events_epoch(r->events, &row, err));
    BJ_TRY(bj_events_flush(r->events, err));
    return save(r, "last", err);
}

static bj_status loop(bj_train_run *r, bj_error *err) {
    while (!r->stop && !bj_run_over(&r->settings, &r->plan, r->rows, r->evaluated + 1)) {
        BJ_TRY(train_epoch(r, err));
        if (!r->stop) BJ_TRY(close_epoch(r, err));
    }
    return r->stop ? save(r, "last", err) : BJ_OK;
}

/* --------------------------------------------------------------------------------------- set up */

/* Loads the initial weights from the checkpoint of the setting `init`. */
static bj_status load_init(bj_train_run *r, bj_error *err) {
    BJ_TRY(bj_init_pin(&r->settings, err));
    BJ_TRY(bj_init_load(&r->init, r->model, r->trainer, &r->settings, err));
    bj_init_tell(&r->init, r->options);
    return BJ_OK;
}

static bj_status build(bj_train_run *r, bj_error *err) {
    const bj_settings *s = &r->settings;
    const bj_trainer_options options = {.objective = s->objective,
                                        .optim = s->optim,
                                        .max_batch = s->batch,
                                        .threads = r->options->threads,
                                        .isa = r->options->isa,
                                        .seed = s->seed,
                                        .precision = strcmp(s->precision, "mixed")
                                                         ? BJ_PRECISION_FULL
                                                         : BJ_PRECISION_BF16};
    BJ_TRY(bj_model_create(&r->model, &r->arch, s->seed, err));
    if (s->optim.conditioned) bj_model_condition(r->model, s->seed);
    if (r->maze) BJ_TRY(bj_maze_source_standardize(r->model, r->maze, err));
    BJ_TRY(bj_trainer_create(&r->trainer, r->model, &options, err));
    if (r->fit) bj_loader_use_pool(r->fit, r->trainer->pool);
    if (s->init[0] && !bj_file_exists(r->options->dir)) BJ_TRY(load_init(r, err));
    if (s->objective.kind != BJ_ANCHOR_B) return BJ_OK;
    char path[BJ_RUN_FILE];
    BJ_TRY(bj_run_path(path, s->anchor, BJ_CHECKPOINT_MODEL, err));
    BJ_TRY(bj_trainer_load_anchor(r->trainer, path, err));
    return bj_trainer_anchor_digest(r->trainer, r->anchor_digest, err);
}

/* Sets *found to 1 if there is a checkpoint with that name, even if a crash interrupted its
 * replacement. */
static bj_status find_checkpoint(int *found, const char *dir, const char *name, bj_error *err) {
    char folder[BJ_RUN_FILE], file[BJ_FOLDER_PATH];
    BJ_TRY(bj_run_path(folder, dir, name, err));
    BJ_TRY(bj_folder_find(file, folder, BJ_CHECKPOINT_MODEL, err));
    *found = bj_file_exists(file);
    return BJ_OK;
}

/* Checks an existing run, or starts a new one. `fresh` is set if there is no checkpoint yet. */
static bj_status begin(bj_train_run *r, int exists, int fresh, bj_error *err) {
    r->plan = bj_plan_of(&r->settings);
    if (exists) {
        BJ_TRY(bj_init_recall(&r->settings, r->options->dir, err));
        BJ_TRY(bj_run_check_manifest(r, err));
        BJ_TRY(bj_run_read_plan(r, err));
    }
    const size_t rows = (size_t)bj_plan_end(&r->plan) + (size_t)r->options->extend + 1;
    BJ_TRY(BJ_ALLOC(r->rows, rows, err));
    if (fresh && r->settings.init[0] && !r->init.file[0]) BJ_TRY(load_init(r, err));
    if (exists && r->init.file[0]) BJ_TRY(bj_run_check_target(r, err));
    return exists ? BJ_OK : bj_run_write_manifest(r, err);
}

/* Starts or resumes a run. Sets *finished if nothing is left to do. */
static bj_status enter(bj_train_run *r, int *finished, bj_run_report *report, bj_error *err) {
    char manifest[BJ_RUN_FILE], result[BJ_RUN_FILE];
    const char *dir = r->options->dir;
    int last, best;
    BJ_TRY(bj_run_path(manifest, dir, "manifest.json", err));
    BJ_TRY(bj_run_path(result, dir, "result.json", err));
    if (r->options->extend && !bj_file_exists(manifest))
        return BJ_FAIL(err, BJ_EARG, "%s: contains no run to extend", dir);
    BJ_TRY(bj_run_enter(&r->lock, dir, err)); /* before reading, because another process may be
                                                 writing */
    BJ_TRY(find_checkpoint(&last, dir, "ckpt/last", err));
    BJ_TRY(find_checkpoint(&best, dir, "ckpt/best", err));
    const int exists = bj_file_exists(manifest);
    if (exists && !r->options->resume)
        return BJ_FAIL(err, BJ_EARG, "%s: already contains a run\n"
                                     "hint: continue it with --resume, or choose another folder",
                       dir);
    if (!exists && (last || best)) /* because they would be mistaken for checkpoints of the new
                                      run */
        return BJ_FAIL(err, BJ_EARG,
                       "%s: contains checkpoints but no manifest.json, "
                       "so it is unknown which run they belong to\n"
                       "hint: choose another folder",
                       dir);
    BJ_TRY(begin(r, exists, !last, err));
    if (last) {
        BJ_TRY(bj_run_restore(r, err));
        report->resumed_at = r->evaluated + 1;
    }
    r->first_step = bj_trainer_updates(r->trainer);
    BJ_TRY(bj_run_extend(r, err));
    *finished = bj_file_exists(result);
    if (*finished) return BJ_OK;
    /* The first step that is written again is the one after the last epoch that is kept. */
    const int64_t first = r->evaluated >= 0 ? r->rows[r->evaluated].step + 1 : 0;
    return bj_events_create(&r->events, dir, first, err);
}

static void leave(bj_train_run *r) {
    bj_events_free(r->events);
    bj_trainer_free(r->trainer);
    bj_model_free(r->model);
    bj_run_close_data(r);
    bj_init_reset(&r->init);
    bj_free(r->rows);
    if (r->lock >= 0) close(r->lock);
}

/* Reads the outcome of a finished run. */
static bj_run_outcome ended(const bj_train_run *r) {
    if (r->maze && r->evaluated >= 0 && !r->rows[r->evaluated].eligible) return BJ_RUN_COLLAPSED;
    return r->best < 0 ? BJ_RUN_NO_PASS : BJ_RUN_DONE;
}

static bj_status work(bj_train_run *r, bj_run_report *report, bj_error *err) {
    r->started = r->saved = bj_seconds();
    if (r->evaluated < 0) BJ_TRY(close_epoch(r, err));
    BJ_TRY(loop(r, err));
    report->outcome = r->stop ? BJ_RUN_STOPPED : ended(r);
    return r->stop ? BJ_OK : bj_run_write_result(r, report->outcome, err);
}

static bj_status conduct(bj_train_run *r, bj_run_report *report, bj_error *err) {
    int finished;
    BJ_TRY(bj_run_open_data(r, err));
    BJ_TRY(build(r, err));
    BJ_TRY(enter(r, &finished, report, err));
    report->fit = bj_run_fit_count(r);
    report->dev = bj_run_dev_count(r);
    report->outcome = ended(r);
    const bj_status status = finished ? BJ_OK : work(r, report, err);
    report->epochs = r->evaluated;
    report->step = bj_trainer_updates(r->trainer);
    if (r->best >= 0) report->best = r->rows[r->best];
    if (finished) return status;
    const bj_run_progress end = where(r, status != BJ_OK                     ? "failed"
                                         : report->outcome == BJ_RUN_STOPPED ? "stopped"
                                                                             : "done");
    bj_run_write_status(r, &end);
    if (status != BJ_OK) (void)!bj_run_note_failure(r, err->message, NULL);
    return status;
}

bj_status bj_run_train(bj_run_report *report, const bj_settings *settings,
                       const bj_run_options *options, bj_error *err) {
    bj_error detail = {0};
    bj_train_run *r;
    *report = (bj_run_report){.resumed_at = -1};
    BJ_TRY(BJ_ALLOC(r, 1, err));
    r->settings = *settings;
    r->options = options;
    r->lock = -1;
    r->evaluated = r->best = -1;
    r->started = bj_seconds();
    const bj_status status = conduct(r, report, &detail);
    leave(r);
    bj_free(r);
    if (status != BJ_OK && err) *err = detail;
    return status;
}
