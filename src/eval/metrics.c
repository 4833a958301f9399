/* metrics.c - evaluation metrics of weighted forecasts, accumulated scene by scene.
 *
 * All sums are in double. An accumulator stores sums, the ten calibration bins and the mass of each
 * branch, but no scenes. The formulas of one scene are in eval/forecast.h. With weights p, latents
 * u_k and target z, the additional values are
 *
 *   traj_es = traj_obs - traj_disp     Energy Score with the RMS distance over time steps
 *   latent_es                          Energy Score of the latents; for one latent, its distance
 *                                      from z
 *   top1_*                             values of the branch with the largest weight
 *   min_*                              values of the best branch (diagnostic only)
 *   *_mr                               share of final displacements above 2 m
 *   *_1, *_6                           Argoverse 2 metrics, see eval/forecast.h
 *   ece                                ECE of the most likely maneuver, over ten bins of its mass
 *   neff_collision                     1 / sum_kl p_k p_l [|u_k - u_l| <= .10]
 *   active_heads                       branches with at least 1 % of the total mass
 *
 * Invariants
 *   1. The values do not depend on how the scenes are divided into calls, except for the rounding
 *      of the sums.
 *   2. A failed call leaves the accumulator unchanged.
 *   3. Ties (largest weight, most likely maneuver) go to the lowest index.
 * Test  tests/eval/test_metrics.c
 */
#include "eval/metrics.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "eval/distance.h"

enum { BINS = BJ_CALIBRATION_BINS };

struct bj_metrics {
    int K, latents, D, F;
    double *p, *y, *t;         /* (K), (K,F,2), (F,2): the current scene in double */
    bj_metric_values sum;      /* sums over scenes, for the fields that are means */
    double mass[BJ_MAX_ATOMS]; /* (K) sum of weights */
    double bin_count[BINS], bin_conf[BINS], bin_hit[BINS];
};

/* The outputs for one scene. */
typedef struct scene {
    int K;
    const bj_real *u, *p, *y, *z, *t;
    size_t u_stride, y_stride;
} scene;

bj_status bj_metrics_create(bj_metrics **out, int K, int latents, int D, int F, bj_error *err) {
    bj_metrics *metrics;
    if (!out) return BJ_FAIL(err, BJ_EARG, "metrics: output is missing");
    *out = NULL;
    if (K < 1 || K > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EARG, "metrics: K is %d, expected 1 to %d", K, BJ_MAX_ATOMS);
    if (latents != K && latents != 1 && latents != 0)
        return BJ_FAIL(err, BJ_EARG, "metrics: latents is %d, expected 0, 1 or K = %d", latents, K);
    if (latents && D < 1) return BJ_FAIL(err, BJ_EARG, "metrics: D is %d, expected at least 1", D);
    if (F < 1) return BJ_FAIL(err, BJ_EARG, "metrics: F is %d, expected at least 1", F);
    BJ_TRY(BJ_ALLOC(metrics, 1, err));
    const size_t row = 2 * (size_t)F, numbers = (size_t)K + ((size_t)K + 1) * row;
    const bj_status status = BJ_ALLOC(metrics->p, numbers, err);
    if (status != BJ_OK) {
        bj_free(metrics);
        return status;
    }
    metrics->y = metrics->p + K;
    metrics->t = metrics->y + (size_t)K * row;
    metrics->K = K;
    metrics->latents = latents;
    metrics->D = D;
    metrics->F = F;
    *out = metrics;
    return BJ_OK;
}

void bj_metrics_free(bj_metrics *metrics) {
    if (!metrics) return;
    bj_free(metrics->p);
    bj_free(metrics);
}

void bj_metrics_reset(bj_metrics *metrics) {
    memset(&metrics->sum, 0, sizeof metrics->sum);
    memset(metrics->mass, 0, sizeof metrics->mass);
    memset(metrics->bin_count, 0, sizeof metrics->bin_count);
    memset(metrics->bin_conf, 0, sizeof metrics->bin_conf);
    memset(metrics->bin_hit, 0, sizeof metrics->bin_hit);
}

/* -------------------------------------------------------------------------------------- checks */

static bj_status check_size(const char *name, int found, int expected, bj_error *err) {
    if (found == expected) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "metrics: %s is %d, expected %d", name, found, expected);
}

static bj_status check_finite(const bj_real *x, int n, int scene_index, const char *name,
                              bj_error *err) {
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "metrics: scene %d: %s [%d] is %g, expected a finite number",
                           scene_index, name, i, (double)x[i]);
    return BJ_OK;
}

static scene scene_at(const bj_metrics *m, const bj_outputs *o, const bj_real *future, int b) {
    scene s = {.K = o->K,
               .p = o->weights + (size_t)b * (size_t)o->K,
               .y = o->decoded + (size_t)b * (size_t)o->K * o->decoded_stride,
               .t = future,
               .u_stride = o->atom_stride,
               .y_stride = o->decoded_stride};
    if (!m->latents) return s; /* the latent pointers may be NULL */
    s.u = o->atoms + (size_t)b * (size_t)m->latents * o->atom_stride;
    s.z = o->target + (size_t)b * o->atom_stride;
    return s;
}

bj_status bj_metrics_check_scene(const bj_metrics *m, const bj_outputs *o, const bj_real *future,
                                 int index, bj_error *err) {
    const scene at = scene_at(m, o, future, index), *const s = &at;
    BJ_TRY(check_finite(s->t, 2 * m->F, index, "true future", err));
    if (m->latents) BJ_TRY(check_finite(s->z, m->D, index, "target latent", err));
    for (int k = 0; k < m->latents; k++)
        BJ_TRY(check_finite(s->u + k * s->u_stride, m->D, index, "latent", err));
    for (int k = 0; k < s->K; k++)
        BJ_TRY(check_finite(s->y + k * s->y_stride, 2 * m->F, index, "trajectory", err));
    BJ_TRY(check_finite(s->p, s->K, index, "weight", err));
    for (int k = 0; k < s->K; k++)
        if (s->p[k] < 0 || s->p[k] > 1 + 1e-4)
            return BJ_FAIL(err, BJ_EARG,
                           "metrics: scene %d: weight [%d] is %g, expected a number in [0,1]",
                           index, k, (double)s->p[k]);
    return BJ_OK;
}

bj_status check_outputs(const bj_metrics *m, const bj_outputs *o, const bj_real *future,
                                   bj_error *err) {
    if (!m || !o) return BJ_FAIL(err, BJ_EARG, "metrics: accumulator or outputs are missing");
    if (m->latents) BJ_TRY(check_size("K", o->K, m->K, err));
    if (o->K < 1 || o->K > m->K)
        return BJ_FAIL(err, BJ_EARG, "metrics: K is %d, expected 1 to %d", o->K, m->K);
    BJ_TRY(check_size("latents", o->latents, m->latents, err));
    if (m->latents) BJ_TRY(check_size("D", o->D, m->D, err));
    BJ_TRY(check_size("F", o->F, m->F, err));
    if (o->B < 0) return BJ_FAIL(err, BJ_EARG, "metrics: B is %d, expected at least 0", o->B);
    if (o->B == 0) return BJ_OK;
    const char *const missing = m->latents && !o->atoms    ? "atoms are"
                                : !o->weights              ? "weights are"
                                : !o->decoded              ? "decoded trajectories are"
                                : m->latents && !o->target ? "target latents are"
                                : !future                  ? "true futures are"
                                                           : NULL;
    if (missing)
        return BJ_FAIL(err, BJ_EARG, "metrics: %s missing, expected values of %d scenes", missing,
                       o->B);
    if (m->latents && o->atom_stride < (size_t)m->D)
        return BJ_FAIL(err, BJ_EARG, "metrics: atom_stride is %zu, expected at least %d",
                       o->atom_stride, m->D);
    if (o->decoded_stride < 2 * (size_t)m->F)
        return BJ_FAIL(err, BJ_EARG, "metrics: decoded_stride is %zu, expected at least %d",
                       o->decoded_stride, 2 * m->F);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------- parts of a scene */

static void measure_latents(bj_scene_values *out, const bj_metrics *m, const scene *s) {
    double es = 0, colliding = 0;
    out->latent_es = out->neff_collision = 0;
    if (!m->latents) return;
    if (m->latents != m->K) {
        out->latent_es = bj_distance(bj_sum_squares_real(s->u, s->z, m->D));
        return;
    }
    for (int k = 0; k < m->K; k++) {
        const bj_real *u_k = s->u + k * s->u_stride;
        const double p_k = s->p[k];
        es += p_k * bj_distance(bj_sum_squares_real(u_k, s->z, m->D));
        colliding += p_k * p_k;
        for (int l = 0; l < k; l++) {
            const double d = bj_distance(bj_sum_squares_real(u_k, s->u + l * s->u_stride, m->D));
            es -= p_k * s->p[l] * d;
            if (d <= 0.10) colliding += 2 * p_k * s->p[l];
        }
    }
    out->latent_es = es;
    out->neff_collision = 1 / colliding;
}

void bj_metrics_count(bj_metrics *m, const bj_forecast_values *v, const double *p, int K) {
    bj_metric_values *const sum = &m->sum;
    sum->traj_es += v->traj_obs - v->traj_disp;
    sum->traj_obs += v->traj_obs;
    sum->traj_disp += v->traj_disp;
    sum->end_es += v->end_es;
    sum->exp_ade += v->exp_ade;
    sum->exp_fde += v->exp_fde;
    sum->top1_ade += v->ade[v->top];
    sum->top1_fde += v->fde[v->top];
    sum->top1_mr += v->fde[v->top] > 2;
    sum->min_ade += v->ade[v->least_ade];
    sum->min_fde += v->fde[v->least_fde];
    sum->min_mr += v->fde[v->least_fde] > 2;
    const bj_official_modes best = bj_official_choose(p, v->ade, v->fde, K);
    sum->brier_min_fde_1 += v->fde[best.top] + bj_official_penalty(p[best.top]);
    sum->min_ade_6 += v->ade[best.least_ade];
    sum->min_fde_6 += v->fde[best.least_fde];
    sum->mr_6 += v->fde[best.least_fde] > 2;
    sum->brier_min_fde_6 += v->fde[best.least_fde] + bj_official_penalty(p[best.least_fde]);
    sum->brier += v->brier;
    sum->exp_entropy += v->exp_entropy;
    sum->dedup_support += v->dedup_support;
    int bin = (int)(v->confidence * BINS); /* [0,.1) ... [.9,1] */
    if (bin >= BINS) bin = BINS - 1;
    m->bin_count[bin]++;
    m->bin_conf[bin] += v->confidence;
    m->bin_hit[bin] += v->likeliest == v->truth;
    for (int k = 0; k < K; k++) m->mass[k] += p[k];
    sum->scenes++;
}

/* Converts a scene to double, in the accumulator's scratch memory. */
static bj_forecast widen(const bj_metrics *m, const scene *s) {
    const int n = 2 * m->F;
    for (int k = 0; k < s->K; k++) m->p[k] = s->p[k];
    for (int k = 0; k < s->K; k++)
        for (int i = 0; i < n; i++)
            m->y[(size_t)k * (size_t)n + (size_t)i] = s->y[(size_t)k * s->y_stride + (size_t)i];
    for (int i = 0; i < n; i++) m->t[i] = s->t[i];
    return (bj_forecast){s->K, m->F, m->p, m->y, m->t};
}

void bj_metrics_measure(bj_scene_values *out, bj_metrics *m, const bj_outputs *outputs,
                        const bj_real *future, int b) {
    const scene s = scene_at(m, outputs, future, b);
    const bj_forecast forecast = widen(m, &s);
    bj_forecast_measure(&out->forecast, &forecast);
    measure_latents(out, m, &s);
}

void bj_metrics_count_latents(bj_metrics *m, const bj_scene_values *v) {
    m->sum.latent_es += v->latent_es;
    m->sum.neff_collision += v->neff_collision;
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_metrics_add(bj_metrics *metrics, const bj_outputs *outputs, const bj_real *future,
                         bj_error *err) {
    BJ_TRY(check_outputs(metrics, outputs, future, err));
    const size_t line = 2 * (size_t)metrics->F;
    for (int b = 0; b < outputs->B; b++)
        BJ_TRY(bj_metrics_check_scene(metrics, outputs, future + (size_t)b * line, b, err));
    for (int b = 0; b < outputs->B; b++) {
        bj_scene_values values;
        bj_metrics_measure(&values, metrics, outputs, future + (size_t)b * line, b);
        bj_metrics_count_latents(metrics, &values);
        bj_metrics_count(metrics, &values.forecast, metrics->p, outputs->K);
    }
    return BJ_OK;
}

const double *bj_metrics_mass(const bj_metrics *metrics) { return metrics->mass; }

void bj_metrics_calibration(bj_calibration_bin bins[BINS], const bj_metrics *m) {
    for (int i = 0; i < BINS; i++) {
        const double n = m->bin_count[i];
        bins[i] = (bj_calibration_bin){n, n > 0 ? m->bin_conf[i] / n : NAN,
                                       n > 0 ? m->bin_hit[i] / n : NAN};
    }
}

bj_metric_values bj_metrics_values(const bj_metrics *metrics) {
    bj_metric_values v = metrics->sum;
    const double scenes = v.scenes;
    double *const means[] = {&v.traj_es,        &v.traj_obs,      &v.traj_disp,   &v.end_es,
                             &v.latent_es,      &v.exp_ade,       &v.exp_fde,     &v.top1_ade,
                             &v.top1_fde,       &v.top1_mr,       &v.min_ade,     &v.min_fde,
                             &v.min_mr,         &v.brier,         &v.ece,         &v.exp_entropy,
                             &v.neff_collision, &v.dedup_support, &v.active_heads,
                             &v.brier_min_fde_1, &v.min_ade_6,    &v.min_fde_6,   &v.mr_6,
                             &v.brier_min_fde_6};
    v.ece = v.active_heads = 0;
    for (int i = 0; i < BINS; i++) v.ece += fabs(metrics->bin_hit[i] - metrics->bin_conf[i]);
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] = scenes > 0 ? *means[i] / scenes : NAN;
    if (scenes > 0) /* active_heads is a count, not a mean */
        for (int k = 0; k < metrics->K; k++) v.active_heads += metrics->mass[k] / scenes >= 0.01;
    if (metrics->latents != metrics->K) v.neff_collision = NAN;
    if (!metrics->latents) v.latent_es = NAN;
    return v;
}
