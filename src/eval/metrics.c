/* metrics.c - evaluation metrics of weighted forecasts, accumulated scene by scene.
 *
 * Everything is in double and nothing of a scene is kept: an accumulator holds sums, the ten
 * calibration bins and the mass of each branch. Per scene, with weights p, trajectories y_k, true
 * future t, endpoints e_k and e_t, latents u_k and target z:
 *
 *   traj_es = traj_obs - traj_disp     Energy Score with the RMS distance over time steps
 *   end_es                             Energy Score of the endpoints, metres
 *   latent_es                          Energy Score of the latents; one latent: its distance
 *   exp_ade, exp_fde                   sum_k p_k of mean and final displacement
 *   top1_*, min_*                      of the heaviest branch; the best branch (diagnostic only);
 *                                      _mr is the share of final displacements above 2 m
 *   brier, ece                         of the maneuver distribution: stop (< 2 m), left, right
 *                                      (30 degrees or more), straight
 *   exp_entropy                        exp H(p)
 *   neff_collision                     1 / sum_kl p_k p_l [|u_k - u_l| <= .10]
 *   dedup_support                      exp H of the mass of endpoint clusters, linked within 1 m
 *   active_heads                       branches with at least 1 % of all mass
 *
 * Invariants
 *   1. Any split of the scenes into calls gives the same values up to rounding of the sums.
 *   2. A refused call leaves the accumulator as it was.
 *   3. Ties (heaviest branch, likeliest maneuver) go to the first index.
 * Test  tests/eval/test_metrics.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

enum { MANEUVERS = 4, BINS = 10 };
enum maneuver { STOP, STRAIGHT, LEFT, RIGHT };

struct bj_metrics {
    int K, latents, D, F;
    bj_metric_values sum;      /* sums over scenes of the fields that are means */
    double mass[BJ_MAX_ATOMS]; /* (K) sum of weights */
    double bin_conf[BINS], bin_hit[BINS];
};

/* One scene, in the layout of the outputs. */
typedef struct scene {
    const bj_real *u, *p, *y, *z, *t;
    size_t u_stride, y_stride;
} scene;

bj_status bj_metrics_create(bj_metrics **out, int K, int latents, int D, int F, bj_error *err) {
    bj_metrics *metrics;
    if (!out) return BJ_FAIL(err, BJ_EARG, "metrics: output is missing");
    *out = NULL;
    if (K < 1 || K > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EARG, "metrics: K is %d, expected 1 to %d", K, BJ_MAX_ATOMS);
    if (latents != K && latents != 1)
        return BJ_FAIL(err, BJ_EARG, "metrics: latents is %d, expected 1 or K = %d", latents, K);
    if (D < 1) return BJ_FAIL(err, BJ_EARG, "metrics: D is %d, expected at least 1", D);
    if (F < 1) return BJ_FAIL(err, BJ_EARG, "metrics: F is %d, expected at least 1", F);
    BJ_TRY(BJ_ALLOC(metrics, 1, err));
    metrics->K = K;
    metrics->latents = latents;
    metrics->D = D;
    metrics->F = F;
    *out = metrics;
    return BJ_OK;
}

void bj_metrics_free(bj_metrics *metrics) { bj_free(metrics); }

void bj_metrics_reset(bj_metrics *metrics) {
    memset(&metrics->sum, 0, sizeof metrics->sum);
    memset(metrics->mass, 0, sizeof metrics->mass);
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

static bj_status check_scene(const bj_metrics *m, const scene *s, int index, bj_error *err) {
    BJ_TRY(check_finite(s->t, 2 * m->F, index, "true future", err));
    BJ_TRY(check_finite(s->z, m->D, index, "target latent", err));
    for (int k = 0; k < m->latents; k++)
        BJ_TRY(check_finite(s->u + k * s->u_stride, m->D, index, "latent", err));
    for (int k = 0; k < m->K; k++)
        BJ_TRY(check_finite(s->y + k * s->y_stride, 2 * m->F, index, "trajectory", err));
    BJ_TRY(check_finite(s->p, m->K, index, "weight", err));
    for (int k = 0; k < m->K; k++)
        if (s->p[k] < 0 || s->p[k] > 1 + 1e-4)
            return BJ_FAIL(err, BJ_EARG, "metrics: scene %d: weight [%d] is %g, expected [0,1]",
                           index, k, (double)s->p[k]);
    return BJ_OK;
}

static scene scene_at(const bj_metrics *m, const bj_outputs *o, const bj_real *future, int b) {
    return (scene){.u = o->atoms + (size_t)b * m->latents * o->atom_stride,
                   .p = o->weights + (size_t)b * m->K,
                   .y = o->decoded + (size_t)b * m->K * o->decoded_stride,
                   .z = o->target + (size_t)b * o->atom_stride,
                   .t = future + (size_t)b * 2 * m->F,
                   .u_stride = o->atom_stride,
                   .y_stride = o->decoded_stride};
}

static bj_status check_outputs(const bj_metrics *m, const bj_outputs *o, const bj_real *future,
                               bj_error *err) {
    if (!m || !o) return BJ_FAIL(err, BJ_EARG, "metrics: accumulator or outputs are missing");
    BJ_TRY(check_size("K", o->K, m->K, err));
    BJ_TRY(check_size("latents", o->latents, m->latents, err));
    BJ_TRY(check_size("D", o->D, m->D, err));
    BJ_TRY(check_size("F", o->F, m->F, err));
    if (o->B < 0) return BJ_FAIL(err, BJ_EARG, "metrics: B is %d, expected at least 0", o->B);
    if (o->B == 0) return BJ_OK;
    if (!o->atoms || !o->weights || !o->decoded || !o->target || !future)
        return BJ_FAIL(err, BJ_EARG, "metrics: %s missing, expected values of %d scenes",
                       !o->atoms     ? "atoms are"
                       : !o->weights ? "weights are"
                       : !o->decoded ? "decoded trajectories are"
                       : !o->target  ? "target latents are"
                                     : "true futures are",
                       o->B);
    if (o->atom_stride < (size_t)m->D)
        return BJ_FAIL(err, BJ_EARG, "metrics: atom_stride is %zu, expected at least %d",
                       o->atom_stride, m->D);
    if (o->decoded_stride < 2 * (size_t)m->F)
        return BJ_FAIL(err, BJ_EARG, "metrics: decoded_stride is %zu, expected at least %d",
                       o->decoded_stride, 2 * m->F);
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------- distances */

static double sum_squares(const bj_real *a, const bj_real *b, int n) {
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const double e = (double)a[i + j] - b[i + j];
            lane[j] += e * e;
        }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    for (; i < n; i++) {
        const double e = (double)a[i] - b[i];
        sum += e * e;
    }
    return sum;
}

/* As in training: a squared distance of at most 1e-12 counts as zero. */
static double distance(double squared) { return squared <= 1e-12 ? 0 : sqrt(squared); }

static double step_distance(const bj_real *a, const bj_real *b) {
    const double x = (double)a[0] - b[0], y = (double)a[1] - b[1];
    return sqrt(x * x + y * y);
}

/* ------------------------------------------------------------------------------ parts of a scene
 */

static void add_trajectories(bj_metric_values *sum, const bj_metrics *m, const scene *s) {
    const int K = m->K, n = 2 * m->F;
    double observation = 0, dispersion = 0, end_es = 0, exp_ade = 0, exp_fde = 0;
    double ade[BJ_MAX_ATOMS] = {0}, fde[BJ_MAX_ATOMS] = {0};
    int top = 0, least_ade = 0, least_fde = 0;
    for (int k = 0; k < K; k++) {
        const bj_real *y_k = s->y + k * s->y_stride;
        const double p_k = s->p[k];
        ade[k] = 0;
        for (int t = 0; t < m->F; t++) ade[k] += step_distance(y_k + 2 * t, s->t + 2 * t);
        ade[k] /= m->F;
        fde[k] = step_distance(y_k + n - 2, s->t + n - 2);
        observation += p_k * distance(sum_squares(y_k, s->t, n) / m->F);
        end_es += p_k * fde[k];
        exp_ade += p_k * ade[k];
        exp_fde += p_k * fde[k];
        for (int l = 0; l < k; l++) { /* each pair once, which absorbs the 1/2 */
            const bj_real *y_l = s->y + l * s->y_stride;
            const double p_kl = p_k * s->p[l];
            dispersion += p_kl * distance(sum_squares(y_k, y_l, n) / m->F);
            end_es -= p_kl * step_distance(y_k + n - 2, y_l + n - 2);
        }
        if (s->p[k] > s->p[top]) top = k;
        if (ade[k] < ade[least_ade]) least_ade = k;
        if (fde[k] < fde[least_fde]) least_fde = k;
    }
    sum->traj_es += observation - dispersion;
    sum->traj_obs += observation;
    sum->traj_disp += dispersion;
    sum->end_es += end_es;
    sum->exp_ade += exp_ade;
    sum->exp_fde += exp_fde;
    sum->top1_ade += ade[top];
    sum->top1_fde += fde[top];
    sum->top1_mr += fde[top] > 2;
    sum->min_ade += ade[least_ade];
    sum->min_fde += fde[least_fde];
    sum->min_mr += fde[least_fde] > 2;
}

static void add_latents(bj_metric_values *sum, const bj_metrics *m, const scene *s) {
    double es = 0, colliding = 0;
    if (m->latents != m->K) {
        sum->latent_es += distance(sum_squares(s->u, s->z, m->D));
        return;
    }
    for (int k = 0; k < m->K; k++) {
        const bj_real *u_k = s->u + k * s->u_stride;
        const double p_k = s->p[k];
        es += p_k * distance(sum_squares(u_k, s->z, m->D));
        colliding += p_k * p_k;
        for (int l = 0; l < k; l++) {
            const double d = distance(sum_squares(u_k, s->u + l * s->u_stride, m->D));
            es -= p_k * s->p[l] * d;
            if (d <= 0.10) colliding += 2 * p_k * s->p[l];
        }
    }
    sum->latent_es += es;
    sum->neff_collision += 1 / colliding;
}

static enum maneuver maneuver_of(const bj_real *end) {
    const double pi = 3.14159265358979323846, x = end[0], y = end[1];
    const double degrees = atan2(y, x) * 180 / pi;
    if (sqrt(x * x + y * y) < 2) return STOP;
    return degrees >= 30 ? LEFT : degrees <= -30 ? RIGHT : STRAIGHT;
}

static void add_maneuvers(bj_metrics *m, const scene *s) {
    double mass[MANEUVERS] = {0};
    const int end = 2 * m->F - 2, truth = maneuver_of(s->t + end);
    int likeliest = 0;
    for (int k = 0; k < m->K; k++) mass[maneuver_of(s->y + k * s->y_stride + end)] += s->p[k];
    for (int c = 0; c < MANEUVERS; c++) {
        const double miss = mass[c] - (c == truth);
        m->sum.brier += miss * miss;
        if (mass[c] > mass[likeliest]) likeliest = c;
    }
    int bin = (int)(mass[likeliest] * BINS); /* [0,.1) ... [.9,1] */
    if (bin >= BINS) bin = BINS - 1;
    m->bin_conf[bin] += mass[likeliest];
    m->bin_hit[bin] += likeliest == truth;
}

static double exp_entropy(const double *p, int n) {
    double entropy = 0;
    for (int i = 0; i < n; i++)
        if (p[i] > 0) entropy -= p[i] * log(p[i]);
    return exp(entropy);
}

/* Mass of the clusters of endpoints that chains of steps of at most 1 m connect. */
static void add_support(bj_metric_values *sum, const bj_metrics *m, const scene *s) {
    const int K = m->K, end = 2 * m->F - 2;
    double weight[BJ_MAX_ATOMS], mass[BJ_MAX_ATOMS] = {0};
    int label[BJ_MAX_ATOMS];
    for (int k = 0; k < K; k++) {
        weight[k] = s->p[k];
        label[k] = k;
    }
    for (int k = 0; k < K; k++)
        for (int l = 0; l < k; l++) {
            const bj_real *e_k = s->y + k * s->y_stride + end, *e_l = s->y + l * s->y_stride + end;
            if (label[k] == label[l] || !(step_distance(e_k, e_l) <= 1)) continue;
            const int from = label[k], to = label[l];
            for (int i = 0; i <= k; i++)
                if (label[i] == from) label[i] = to;
        }
    for (int k = 0; k < K; k++) mass[label[k]] += weight[k];
    sum->exp_entropy += exp_entropy(weight, K);
    sum->dedup_support += exp_entropy(mass, K);
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_metrics_add(bj_metrics *metrics, const bj_outputs *outputs, const bj_real *future,
                         bj_error *err) {
    BJ_TRY(check_outputs(metrics, outputs, future, err));
    for (int b = 0; b < outputs->B; b++) {
        const scene s = scene_at(metrics, outputs, future, b);
        BJ_TRY(check_scene(metrics, &s, b, err));
    }
    for (int b = 0; b < outputs->B; b++) {
        const scene s = scene_at(metrics, outputs, future, b);
        add_trajectories(&metrics->sum, metrics, &s);
        add_latents(&metrics->sum, metrics, &s);
        add_maneuvers(metrics, &s);
        add_support(&metrics->sum, metrics, &s);
        for (int k = 0; k < metrics->K; k++) metrics->mass[k] += s.p[k];
        metrics->sum.scenes++;
    }
    return BJ_OK;
}

bj_metric_values bj_metrics_values(const bj_metrics *metrics) {
    bj_metric_values v = metrics->sum;
    const double scenes = v.scenes;
    double *const means[] = {&v.traj_es,        &v.traj_obs,      &v.traj_disp,   &v.end_es,
                             &v.latent_es,      &v.exp_ade,       &v.exp_fde,     &v.top1_ade,
                             &v.top1_fde,       &v.top1_mr,       &v.min_ade,     &v.min_fde,
                             &v.min_mr,         &v.brier,         &v.ece,         &v.exp_entropy,
                             &v.neff_collision, &v.dedup_support, &v.active_heads};
    v.ece = v.active_heads = 0;
    for (int i = 0; i < BINS; i++) v.ece += fabs(metrics->bin_hit[i] - metrics->bin_conf[i]);
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] = scenes > 0 ? *means[i] / scenes : NAN;
    if (scenes > 0) /* a count, not a mean */
        for (int k = 0; k < metrics->K; k++) v.active_heads += metrics->mass[k] / scenes >= 0.01;
    if (metrics->latents != metrics->K) v.neff_collision = NAN;
    return v;
}
