/* forecast.c - see forecast.h for the formulas. Test: tests/eval/test_metrics.c */
#include "eval/forecast.h"

#include <math.h>

#include "eval/distance.h"

static double step_distance(const double *a, const double *b) {
    const double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(x * x + y * y);
}

static void measure_trajectories(bj_forecast_values *v, const bj_forecast *f) {
    const int n = 2 * f->F;
    v->top = v->least_ade = v->least_fde = 0;
    v->traj_obs = v->traj_disp = v->end_es = v->exp_ade = v->exp_fde = 0;
    for (int k = 0; k < f->K; k++) {
        const double *y_k = f->y + (size_t)k * (size_t)n;
        const double p_k = f->p[k];
        double ade = 0;
        for (int t = 0; t < f->F; t++) ade += step_distance(y_k + 2 * t, f->t + 2 * t);
        v->ade[k] = ade / f->F;
        v->fde[k] = step_distance(y_k + n - 2, f->t + n - 2);
        v->traj_obs += p_k * bj_distance(bj_sum_squares_double(y_k, f->t, n) / f->F);
        v->end_es += p_k * v->fde[k];
        v->exp_ade += p_k * v->ade[k];
        v->exp_fde += p_k * v->fde[k];
        for (int l = 0; l < k; l++) { /* visits each pair once, which replaces the factor 1/2 */
            const double *y_l = f->y + (size_t)l * (size_t)n;
            const double p_kl = p_k * f->p[l];
            v->traj_disp += p_kl * bj_distance(bj_sum_squares_double(y_k, y_l, n) / f->F);
            v->end_es -= p_kl * step_distance(y_k + n - 2, y_l + n - 2);
        }
        if (f->p[k] > f->p[v->top]) v->top = k;
        if (v->ade[k] < v->ade[v->least_ade]) v->least_ade = k;
        if (v->fde[k] < v->fde[v->least_fde]) v->least_fde = k;
    }
}

bj_maneuver bj_maneuver_of(const double end[2]) {
    const double pi = 3.14159265358979323846, x = end[0], y = end[1];
    const double degrees = atan2(y, x) * 180 / pi;
    if (sqrt(x * x + y * y) < 2) return BJ_STOP;
    return degrees >= 30 ? BJ_LEFT : degrees <= -30 ? BJ_RIGHT : BJ_STRAIGHT;
}

const char *bj_maneuver_name(bj_maneuver maneuver) {
    static const char *const names[BJ_MANEUVERS] = {"stop", "straight", "left", "right"};
    return names[maneuver];
}

static void measure_maneuvers(bj_forecast_values *v, const bj_forecast *f) {
    double mass[BJ_MANEUVERS] = {0};
    const size_t n = 2 * (size_t)f->F, end = n - 2;
    int likeliest = 0;
    v->truth = bj_maneuver_of(f->t + end);
    v->brier = 0;
    for (int k = 0; k < f->K; k++) mass[bj_maneuver_of(f->y + (size_t)k * n + end)] += f->p[k];
    for (int c = 0; c < BJ_MANEUVERS; c++) {
        const double miss = mass[c] - (c == (int)v->truth);
        v->brier += miss * miss;
        if (mass[c] > mass[likeliest]) likeliest = c;
    }
    v->likeliest = (bj_maneuver)likeliest;
    v->confidence = mass[likeliest];
}

static double exp_entropy(const double *p, int n) {
    double entropy = 0;
    for (int i = 0; i < n; i++)
        if (p[i] > 0) entropy -= p[i] * log(p[i]);
    return exp(entropy);
}

/* Computes exp H, where H is the entropy of the masses of the endpoint clusters. Two endpoints
 * belong to the same cluster if a chain of endpoints with gaps of at most 1 m connects them. */
static void measure_support(bj_forecast_values *v, const bj_forecast *f) {
    const size_t n = 2 * (size_t)f->F;
    const double *ends = f->y + n - 2; /* stride n */
    double mass[BJ_MAX_ATOMS] = {0};
    int label[BJ_MAX_ATOMS];
    for (int k = 0; k < f->K; k++) label[k] = k;
    for (int k = 0; k < f->K; k++)
        for (int l = 0; l < k; l++) {
            const int from = label[k], to = label[l];
            if (from == to || !(step_distance(ends + (size_t)k * n, ends + (size_t)l * n) <= 1))
                continue;
            for (int i = 0; i <= k; i++)
                if (label[i] == from) label[i] = to;
        }
    for (int k = 0; k < f->K; k++) mass[label[k]] += f->p[k];
    v->exp_entropy = exp_entropy(f->p, f->K);
    v->dedup_support = exp_entropy(mass, f->K);
}

void bj_forecast_measure(bj_forecast_values *out, const bj_forecast *forecast) {
    measure_trajectories(out, forecast);
    measure_maneuvers(out, forecast);
    measure_support(out, forecast);
}

/* -------------------------------------------------------------------------- Argoverse 2 metrics */

bj_official_modes bj_official_choose(const double *p, const double *ade, const double *fde, int K) {
    int order[BJ_MAX_ATOMS] = {0}; /* by descending probability */
    for (int k = 0; k < K; k++) {
        int at = k;
        for (; at > 0 && p[order[at - 1]] < p[k]; at--) order[at] = order[at - 1];
        order[at] = k;
    }
    bj_official_modes out = {order[0], order[0], order[0]};
    for (int i = 1; i < K && i < BJ_SUBMISSION_MODES; i++) {
        if (ade[order[i]] < ade[out.least_ade]) out.least_ade = order[i];
        if (fde[order[i]] < fde[out.least_fde]) out.least_fde = order[i];
    }
    return out;
}

double bj_official_penalty(double p) { return (1 - p) * (1 - p); }
