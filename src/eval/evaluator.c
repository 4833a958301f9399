/* evaluator.c - evaluates a model on a stream of scenes, with metrics by group.
 *
 *   bj_predict       weights (B,K), trajectories (B,K,F,2), latents (B,L,D)
 *   bj_future_encode target latents (B,D), if a target was given
 *   measure          computes the values of each scene; the scenes are divided among the workers
 *   count            adds the values scene by scene to all groups of a scene
 *
 * Invariants
 *   1. The values of group 0 are bit-identical to those of bj_metrics_add on the same outputs,
 *      because a scene's values depend only on that scene and one thread adds them in stream order.
 *      The results do not depend on the number of threads or the batch size.
 *   2. A failed call leaves all sums and groups unchanged.
 *   3. After creation, memory is allocated only for the first scene of a group.
 * Test: tests/eval/test_evaluator.c
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check_batch.h"
#include "eval/evaluator.h"
#include "eval/groups.h"
#include "eval/metrics.h"
#include "model/future_encoder.h"
#include "model/predictor.h"

enum { ITEM = 8 /* scenes per work item */ };

struct bj_evaluator {
    bj_arch arch;
    int max_batch, grouped, latents; /* latents: number per scene, 0 without a target */
    bj_predictor *predictor;         /* provides the worker pool for all work */
    bj_future_encoder *encoder;      /* NULL without a target */
    bj_metrics **measures;           /* (threads) scratch memory of the workers */
    bj_groups groups;
    bj_real *weights, *trajectories, *atoms, *target; /* (max_batch,...) */
    bj_scene_values *values;                          /* (max_batch) */
    bj_scene_class *classes;                          /* (max_batch) if grouped */
    bj_encoding *encodings;                           /* (max_batch) written by the predictor */
    bj_encoding encoded;                              /* sums over the scenes */
    bj_real *sample; /* (BJ_HEALTH_SCENES,D) the first target latents; NULL if there is no target
                        encoder */
    int sampled;
    /* State of the current call. */
    const bj_batch *batch;
    bj_outputs outputs;
    atomic_int bad_scene;
};

/* ----------------------------------------------------------------------------------- measuring */

static void measure_item(void *context, int item, int worker) {
    bj_evaluator *e = context;
    bj_metrics *m = e->measures[worker];
    const int end = (item + 1) * ITEM < e->batch->B ? (item + 1) * ITEM : e->batch->B;
    for (int b = item * ITEM; b < end; b++) {
        const bj_real *future = e->batch->scenes[b].future;
        if (bj_metrics_check_scene(m, &e->outputs, future, b, NULL) != BJ_OK) {
            bj_note_first(&e->bad_scene, b);
            return;
        }
        bj_metrics_measure(&e->values[b], m, &e->outputs, future, b);
    }
}

static bj_status measure(bj_evaluator *e, const bj_batch *batch, bj_error *err) {
    e->batch = batch;
    e->outputs = (bj_outputs){.B = batch->B,
                              .K = e->arch.atoms,
                              .latents = e->latents,
                              .D = e->arch.latent,
                              .F = e->arch.fut,
                              .atoms = e->atoms,
                              .weights = e->weights,
                              .decoded = e->trajectories,
                              .target = e->target,
                              .atom_stride = (size_t)e->arch.latent,
                              .decoded_stride = 2 * (size_t)e->arch.fut};
    atomic_store(&e->bad_scene, INT_MAX);
    bj_pool_run(e->predictor->pool, measure_item, e, (batch->B + ITEM - 1) / ITEM);
    const int bad = atomic_load(&e->bad_scene);
    if (bad == INT_MAX) return BJ_OK;
    return bj_metrics_check_scene(e->measures[0], &e->outputs, batch->scenes[bad].future, bad, err);
}

/* ------------------------------------------------------------------------------------ counting */

static bj_status admit(bj_evaluator *e, const bj_scene_info *infos, bj_error *err) {
    const size_t last = (size_t)(e->arch.obs - 1) * BJ_FOCAL_FEATURES;
    for (int b = 0; b < e->batch->B; b++) {
        const bj_real *focal = e->batch->scenes[b].focal + last;
        e->classes[b] = (bj_scene_class){.maneuver = e->values[b].forecast.truth,
                                         .type = infos[b].focal_type,
                                         .city = infos[b].city,
                                         .speed = hypot((double)focal[2], (double)focal[3])};
        if (!infos[b].focal_type || !infos[b].city)
            return BJ_FAIL(err, BJ_EARG, "scene %d of the batch: its type or city is missing", b);
        BJ_TRY(bj_groups_admit(&e->groups, &e->classes[b], err));
    }
    return BJ_OK;
}

static void count(bj_evaluator *e) {
    const int K = e->arch.atoms;
    for (int b = 0; b < e->batch->B; b++) {
        bj_group *groups[BJ_GROUP_KINDS] = {e->groups.list};
        double p[BJ_MAX_ATOMS];
        for (int k = 0; k < K; k++) p[k] = e->weights[(size_t)b * (size_t)K + (size_t)k];
        if (e->grouped) bj_groups_find(groups, &e->groups, &e->classes[b]);
        for (int i = 0; i < (e->grouped ? BJ_GROUP_KINDS : 1); i++) {
            bj_metrics_count_latents(groups[i]->metrics, &e->values[b]);
            bj_metrics_count(groups[i]->metrics, &e->values[b].forecast, p, K);
        }
        e->encoded.entropy += e->encodings[b].entropy;
        e->encoded.norm += e->encodings[b].norm;
    }
    const size_t D = (size_t)e->arch.latent;
    const int left = BJ_HEALTH_SCENES - e->sampled, taken = e->batch->B < left ? e->batch->B : left;
    if (!e->sample || taken < 1) return;
    memcpy(e->sample + (size_t)e->sampled * D, e->target, (size_t)taken * D * sizeof *e->sample);
    e->sampled += taken;
}

bj_status bj_evaluator_add(bj_evaluator *e, const bj_batch *batch, const bj_scene_info *infos,
                           bj_error *err) {
    BJ_TRY(bj_batch_check(batch, &e->arch, e->max_batch, 1, err));
    if (e->grouped && !infos)
        return BJ_FAIL(err, BJ_EARG, "infos is NULL, but metrics per group need scene information");
    BJ_TRY(bj_predict(e->predictor, batch, e->weights, e->trajectories, e->atoms, err));
    if (e->encoder) BJ_TRY(bj_future_encode(e->encoder, batch, e->target, NULL, err));
    BJ_TRY(measure(e, batch, err));
    if (e->grouped) {
        const bj_status status = admit(e, infos, err);
        if (status != BJ_OK) {
            bj_groups_trim(&e->groups);
            return status;
        }
    }
    count(e);
    return BJ_OK;
}

bj_evaluator_forecasts bj_evaluator_last(const bj_evaluator *e) {
    return (bj_evaluator_forecasts){e->arch.atoms, e->arch.fut, e->weights, e->trajectories};
}

bj_status bj_evaluator_predict(bj_evaluator *e, const bj_batch *batch, bj_error *err) {
    return bj_predict(e->predictor, batch, e->weights, e->trajectories, NULL, err);
}

/* ------------------------------------------------------------------------------------ lifetime */

static bj_status build(bj_evaluator *e, const bj_model *model, const bj_target *target,
                       const bj_evaluator_options *o, bj_error *err) {
    const bj_predictor_options how = {o->max_batch, o->threads, o->precision, o->isa};
    const bj_arch *a = &e->arch;
    const size_t K = (size_t)a->atoms, D = (size_t)a->latent, line = 2 * (size_t)a->fut;
    BJ_TRY(bj_predictor_create(&e->predictor, model, &how, err));
    const size_t B = (size_t)o->max_batch;
    bj_pool *const pool = e->predictor->pool;
    if (target) {
        e->latents = a->kind == BJ_MODEL_BRANCH ? a->atoms : 1;
        BJ_TRY(bj_future_encoder_create_on(&e->encoder, model, target, o->max_batch, o->isa, pool,
                                           err));
        BJ_TRY(BJ_ALLOC(e->atoms, B * (size_t)e->latents * D, err));
        BJ_TRY(BJ_ALLOC(e->target, B * D, err));
        BJ_TRY(BJ_ALLOC(e->sample, BJ_HEALTH_SCENES * D, err));
    }
    BJ_TRY(BJ_ALLOC(e->weights, B * K, err));
    BJ_TRY(BJ_ALLOC(e->trajectories, B * K * line, err));
    BJ_TRY(BJ_ALLOC(e->values, B, err));
    BJ_TRY(BJ_ALLOC(e->encodings, B, err));
    e->predictor->encodings = e->encodings;
    if (e->grouped) BJ_TRY(BJ_ALLOC(e->classes, B, err));
    BJ_TRY(BJ_ALLOC(e->measures, (size_t)bj_pool_threads(pool), err));
    for (int i = 0; i < bj_pool_threads(pool); i++)
        BJ_TRY(bj_metrics_create(&e->measures[i], a->atoms, e->latents, a->latent, a->fut, err));
    e->groups = (bj_groups){.K = a->atoms, .latents = e->latents, .D = a->latent};
    return bj_groups_start(&e->groups, err);
}

bj_status bj_evaluator_create(bj_evaluator **out, const bj_model *model, const bj_target *target,
                              const bj_evaluator_options *options, bj_error *err) {
    bj_evaluator *e;
    if (!out || !model || !options)
        return BJ_FAIL(err, BJ_EARG, "evaluator: output, model or options are missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(e, 1, err));
    e->arch = *bj_model_arch(model);
    e->max_batch = options->max_batch;
    e->grouped = options->grouped != 0;
    const bj_status status = build(e, model, target, options, err);
    if (status != BJ_OK) {
        bj_evaluator_free(e);
        return status;
    }
    *out = e;
    return BJ_OK;
}

void bj_evaluator_free(bj_evaluator *e) {
    if (!e) return;
    for (int i = 0; e->measures && i < bj_pool_threads(e->predictor->pool); i++)
        bj_metrics_free(e->measures[i]);
    bj_free(e->measures);
    bj_groups_reset(&e->groups);
    bj_free(e->weights);
    bj_free(e->trajectories);
    bj_free(e->atoms);
    bj_free(e->target);
    bj_free(e->values);
    bj_free(e->classes);
    bj_free(e->encodings);
    bj_free(e->sample);
    bj_future_encoder_free(e->encoder); /* free it before the predictor, because it uses the
                                           predictor's workers */
    bj_predictor_free(e->predictor);
    bj_free(e);
}

bj_status bj_evaluator_clear(bj_evaluator *e, bj_error *err) {
    e->encoded = (bj_encoding){0, 0};
    e->sampled = 0;
    bj_groups_reset(&e->groups);
    return bj_groups_start(&e->groups, err);
}

/* ------------------------------------------------------------------------------------- results */

bj_metric_values bj_evaluator_values(const bj_evaluator *e) {
    return bj_metrics_values(e->groups.list[0].metrics);
}

void bj_evaluator_usage(double *shares, const bj_evaluator *e) {
    const double *mass = bj_metrics_mass(e->groups.list[0].metrics);
    double sum = 0;
    for (int k = 0; k < e->arch.atoms; k++) sum += mass[k];
    for (int k = 0; k < e->arch.atoms; k++) shares[k] = sum > 0 ? mass[k] / sum : NAN;
}

bj_status bj_evaluator_health(bj_latent_health *out, const bj_evaluator *e, bj_error *err) {
    *out = (bj_latent_health){NAN, NAN, NAN, NAN};
    if (!e->sampled) return BJ_OK;
    return bj_latent_health_measure(out, e->sample, (size_t)e->arch.latent, e->sampled,
                                    e->arch.latent, err);
}

bj_encoder_values bj_evaluator_encoder(const bj_evaluator *e) {
    const double scenes = bj_evaluator_values(e).scenes;
    if (!(scenes > 0)) return (bj_encoder_values){NAN, NAN};
    return (bj_encoder_values){exp(e->encoded.entropy / scenes), e->encoded.norm / scenes};
}

int bj_evaluator_groups(const bj_evaluator *e) { return e->groups.count; }

bj_evaluation_group bj_evaluator_group_at(const bj_evaluator *e, int index) {
    const bj_group *g = &e->groups.list[index];
    return (bj_evaluation_group){bj_group_by(g), g->key, bj_metrics_values(g->metrics)};
}

void bj_evaluator_calibration(bj_calibration_bin bins[BJ_CALIBRATION_BINS], const bj_evaluator *e) {
    bj_metrics_calibration(bins, e->groups.list[0].metrics);
}
