/* develop.c - evaluates a model on development scenes and chooses the checkpoint.
 *
 * For forecasting arms, every metric of docs/EVALUATE.md is computed, and the checkpoint with the
 * lowest trajectory Energy Score is chosen. Stage A of the frozen anchor makes no forecasts. Its
 * encoder reads the futures and its decoder reconstructs them, and the epoch with the lowest mean
 * distance (decoder ADE) is chosen among those that pass every gate. Ties go to the earlier epoch.
 * Test: tests/run/test_develop.c, tests/run/test_train.c, tests/run/test_arms.c
 */
#include <math.h>

#include "core/alloc.h"
#include "run/run.h"

static const bj_metric_values unknown = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                                         NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                                         NAN, NAN, NAN, NAN, NAN};
_Static_assert(sizeof unknown == 25 * sizeof(double), "a metric is not in the list");

/* Passes all development scenes to `consume` in batches. If `head` is not 0, the first batch
 * contains exactly the first `head` scenes. */
static bj_status each_batch(bj_train_run *r, int *stopped, int head,
                            bj_status (*consume)(void *context, const bj_batch *batch,
                                                 bj_error *err),
                            void *context, bj_error *err) {
    for (int64_t step = 0; step < bj_run_dev_steps(r) && !*stopped; step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        bj_error found = {0};
        BJ_TRY(bj_run_dev_batch(&batch, &numbers, r, step, err));
        for (int begin = 0, end; begin < batch->B; begin = end) {
            end = step == 0 && begin < head ? head : batch->B;
            const bj_batch part = {.B = end - begin, .scenes = batch->scenes + begin};
            if (consume(context, &part, &found) != BJ_OK)
                return bj_run_explain(r, "development scenes", 1, numbers + begin, part.B, &found,
                                      err);
        }
        *stopped = bj_run_tell(r, "evaluate") == BJ_RUN_STOP;
    }
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ forecasts */

int bj_exchange_scenes(int64_t fit, int64_t dev) {
    const int64_t share = fit / 32 > 128 ? fit / 32 : 128;
    const int64_t most = dev < BJ_EXCHANGE_SCENES ? dev : BJ_EXCHANGE_SCENES;
    return (int)(share < most ? share : most);
}

typedef struct forecasts {
    bj_evaluator *evaluator;
    int head;     /* number of scenes on which parts are exchanged */
    double plain; /* their score; NaN before they are counted */
} forecasts;

static bj_status count(void *context, const bj_batch *batch, bj_error *err) {
    forecasts *f = context;
    BJ_TRY(bj_evaluator_add(f->evaluator, batch, NULL, err));
    if (isnan(f->plain)) f->plain = bj_evaluator_values(f->evaluator).traj_es;
    return BJ_OK;
}

/* Measures the exchange loss on the first development scenes, which are all in the first batch. */
static bj_status exchange(bj_exchange_values *out, bj_train_run *r, const forecasts *f,
                          bj_error *err) {
    const bj_exchange_options options = {.max_batch = BJ_DEVELOP_BATCH,
                                         .threads = r->options->threads,
                                         .isa = r->options->isa,
                                         .plain = &f->plain};
    const bj_batch *batch;
    const int64_t *numbers;
    BJ_TRY(bj_run_dev_batch(&batch, &numbers, r, 0, err));
    return bj_exchange_measure(out, r->model, batch->scenes, f->head, &options, err);
}

static bj_status forecast(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err) {
    const bj_evaluator_options options = {
        .max_batch = BJ_DEVELOP_BATCH, .threads = r->options->threads, .isa = r->options->isa};
    forecasts f = {.head = bj_exchange_scenes(r->steps * r->settings.batch, bj_run_dev_count(r)),
                   .plain = NAN};
    bj_target *target = NULL;
    bj_status status;
    BJ_GOTO(status, done, bj_target_from_trainer(&target, r->trainer, err));
    BJ_GOTO(status, done, bj_evaluator_create(&f.evaluator, r->model, target, &options, err));
    BJ_GOTO(status, done, each_batch(r, stopped, f.head, count, &f, err));
    if (*stopped) goto done;
    BJ_GOTO(status, done, exchange(&row->exchange, r, &f, err));
    double usage[BJ_MAX_ATOMS];
    row->dev = bj_evaluator_values(f.evaluator);
    row->encoder = bj_evaluator_encoder(f.evaluator);
    BJ_GOTO(status, done, bj_evaluator_health(&row->health, f.evaluator, err));
    bj_evaluator_usage(usage, f.evaluator);
    row->usage_least = row->usage_most = usage[0];
    for (int k = 1; k < r->arch.atoms; k++) {
        row->usage_least = fmin(row->usage_least, usage[k]);
        row->usage_most = fmax(row->usage_most, usage[k]);
    }
    row->decoder_ade = row->decoder_fde = NAN;
    row->eligible = 1;
done:
    bj_evaluator_free(f.evaluator);
    bj_target_free(target);
    return status;
}

/* ------------------------------------------------------------------------------------- stage A */

typedef struct stage_a {
    bj_future_encoder *encoder;
    bj_real *latents, *recon; /* (scenes,D), (BJ_DEVELOP_BATCH,F,2) */
    size_t D, F;
    double ade, fde; /* sums over scenes */
    int64_t scenes;
} stage_a;

/* Adds the mean and final displacement of the decoded futures from the true futures. */
static bj_status measure(void *context, const bj_batch *batch, bj_error *err) {
    stage_a *a = context;
    BJ_TRY(
        bj_future_encode(a->encoder, batch, a->latents + (size_t)a->scenes * a->D, a->recon, err));
    for (int b = 0; b < batch->B; b++) {
        const bj_real *found = a->recon + 2 * (size_t)b * a->F, *actual = batch->scenes[b].future;
        double sum = 0, last = 0;
        for (size_t f = 0; f < a->F; f++, found += 2, actual += 2) {
            last =
                hypot((double)found[0] - (double)actual[0], (double)found[1] - (double)actual[1]);
            sum += last;
        }
        if (!isfinite(sum))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "scene %d of the batch: "
                           "the decoded future is %g m from the true future",
                           b, sum);
        a->ade += sum / (double)a->F;
        a->fde += last;
    }
    a->scenes += batch->B;
    return BJ_OK;
}

int bj_run_passes(const bj_settings *s, const bj_epoch *row) {
    return row->decoder_ade <= s->gate_ade && row->decoder_fde <= s->gate_fde &&
           row->health.mean_std >= s->gate_std && row->health.low_std_fraction <= s->gate_low_std &&
           row->health.entropy_rank >= s->gate_rank;
}

static bj_status reconstruct(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err) {
    const bj_predictor_options options = {
        .max_batch = BJ_DEVELOP_BATCH, .threads = r->options->threads, .isa = r->options->isa};
    stage_a a = {.D = (size_t)r->arch.latent, .F = (size_t)r->arch.fut};
    bj_target *target = NULL;
    bj_status status;
    BJ_GOTO(status, done, bj_target_from_model(&target, r->model, err));
    BJ_GOTO(status, done, bj_future_encoder_create(&a.encoder, r->model, target, &options, err));
    BJ_GOTO(status, done, BJ_ALLOC(a.latents, (size_t)bj_run_dev_count(r) * a.D, err));
    BJ_GOTO(status, done, BJ_ALLOC(a.recon, BJ_DEVELOP_BATCH * a.F * 2, err));
    BJ_GOTO(status, done, each_batch(r, stopped, 0, measure, &a, err));
    if (*stopped) goto done;
    const int used = (int)(a.scenes < BJ_HEALTH_SCENES ? a.scenes : BJ_HEALTH_SCENES);
    BJ_GOTO(status, done,
            bj_latent_health_measure(&row->health, a.latents, a.D, used, (int)a.D, err));
    row->dev = unknown;
    row->dev.scenes = (double)a.scenes;
    row->usage_least = row->usage_most = NAN;
    row->decoder_ade = a.ade / (double)a.scenes;
    row->decoder_fde = a.fde / (double)a.scenes;
    row->eligible = bj_run_passes(&r->settings, row);
done:
    bj_free(a.recon);
    bj_free(a.latents);
    bj_future_encoder_free(a.encoder);
    bj_target_free(target);
    return status;
}

bj_status bj_run_develop(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err) {
    *stopped = 0;
    row->encoder = (bj_encoder_values){NAN, NAN};
    row->exchange = (bj_exchange_values){NAN, NAN, NAN, NAN, NAN};
    if (r->maze) {
        row->dev = unknown;
        return bj_run_develop_maze(row, r, err);
    }
    return r->settings.objective.kind == BJ_ANCHOR_A ? reconstruct(row, stopped, r, err)
                                                     : forecast(row, stopped, r, err);
}

/* Limits used by bj_epoch_blind: two fractions of the plain score, and a number of updates. */
static const double blind_map = 0.02, reads_focal = 0.2;
enum { BLIND_UPDATES = 1000 };

int bj_epoch_blind(const bj_settings *settings, const bj_epoch *row) {
    const bj_exchange_values *x = &row->exchange;
    const int64_t epoch = row->epoch, epochs = settings->epochs;
    const int late = 2 * epoch > epochs || (10 * epoch > epochs && row->step >= BLIND_UPDATES);
    return late && x->focal >= reads_focal * x->plain && x->map < blind_map * x->plain;
}

/* ------------------------------------------------------------------------------------ selection */

double bj_run_criterion(const bj_settings *settings, const bj_epoch *row) {
    /* Choose the last epoch for mazes, because their metrics use the true graph. */
    if (settings->arch.encoder != BJ_ENCODER_SCENE) return -row->epoch;
    return settings->objective.kind == BJ_ANCHOR_A ? row->decoder_ade : row->dev.traj_es;
}

double bj_run_shown(const bj_settings *settings, const bj_epoch *row) {
    if (settings->arch.encoder == BJ_ENCODER_SCENE) return bj_run_criterion(settings, row);
    return row->eligible ? row->maze.cov_r : NAN;
}

int bj_run_choose(const bj_settings *settings, const bj_epoch *rows, int count) {
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        const double value = bj_run_criterion(settings, &rows[i]);
        if (rows[i].epoch < 1 || !rows[i].eligible || !(value < least)) continue;
        best = i;
        least = value;
    }
    return best;
}

int bj_run_over(const bj_settings *settings, const bj_plan *plan, const bj_epoch *rows, int count) {
    const int last = count ? rows[count - 1].epoch : -1;
    const int begin = plan->segment[plan->count - 1].begin;
    if (last >= bj_plan_end(plan)) return 1;
    const int best = bj_run_choose(settings, rows, count);
    if (settings->patience <= 0 || best < 0) return 0;
    const int since = rows[best].epoch > begin ? rows[best].epoch : begin;
    return last - since >= settings->patience;
}
