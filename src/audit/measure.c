/* measure.c - the seven map metrics of one scene.
 *
 * With weights p_k, trajectories y_k (F points) and n_k points inside the drivable areas:
 *
 *   f_k                     1 if n_k >= .95 F, which means that candidate k is feasible
 *   point_mass              sum_k p_k n_k / F
 *   trajectory_mass         m = sum_k p_k f_k
 *   components              feasible candidates connected by RMS_t |y_k - y_l| <= .5 m, directly or
 *                           through other candidates
 *   unique_support          number of components with a weight of at least .01
 *   entropy_support         exp(- sum_c q_c ln q_c), q_c = weight of c / m; 0 if m is 0
 *   mass_weighted_support   entropy_support m
 *   trajectory_diversity    sum_kl p_k p_l f_k f_l RMS_t |y_k - y_l|
 *   endpoint_diversity      sum_kl p_k p_l f_k f_l |y_kF - y_lF|
 *
 * p contains the unmodified router weights. Only q is normalized. Paper: Official Raw-Map Audits.
 * Shapes  p (K)   y (K,F,2), city coordinates
 * Tests   tests/audit/test_measure.c, test_audit_golden.c
 */
#include <math.h>
#include <string.h>

#include "core/status.h"

#define FRACTION 0.95
#define DUPLICATE 0.5 /* m */
#define LEAST_MASS 0.01

bj_metric_info bj_audit_metric_at(int metric) {
    static const bj_metric_info infos[BJ_AUDIT_METRICS] = {
        [BJ_AUDIT_POINT_MASS] = {"point_mass", "drivable point mass", 1, 5, ""},
        [BJ_AUDIT_TRAJECTORY_MASS] = {"trajectory_mass", "drivable trajectory mass", 1, 5, ""},
        [BJ_AUDIT_UNIQUE_SUPPORT] = {"unique_support", "feasible unique support", 1, 3, "branches"},
        [BJ_AUDIT_ENTROPY_SUPPORT] = {"entropy_support", "feasible entropy support (empty = 0)", 1,
                                      3, "branches"},
        [BJ_AUDIT_MASS_WEIGHTED_SUPPORT] = {"mass_weighted_support",
                                            "mass-weighted feasible support", 1, 3, "branches"},
        [BJ_AUDIT_TRAJECTORY_DIVERSITY] = {"trajectory_diversity",
                                           "feasible trajectory diversity", 0, 3, "m"},
        [BJ_AUDIT_ENDPOINT_DIVERSITY] = {"endpoint_diversity", "feasible endpoint diversity", 0, 3, "m"},
    };
    return infos[metric];
}

int bj_audit_takes(const char *focal_type) {
    return !strcmp(focal_type, "vehicle") || !strcmp(focal_type, "bus");
}

/* Returns the sum of |a - b|^2 over the steps, computed with eight independent partial sums. */
static double sum_squares(const double *a, const double *b, int F) {
    double strand[8] = {0}, rest = 0;
    int t = 0;
    for (; t + 8 <= F; t += 8)
        for (int i = 0; i < 8; i++) {
            const double dx = a[2 * (t + i)] - b[2 * (t + i)];
            const double dy = a[2 * (t + i) + 1] - b[2 * (t + i) + 1];
            strand[i] += dx * dx + dy * dy;
        }
    rest = ((strand[0] + strand[1]) + (strand[2] + strand[3])) +
           ((strand[4] + strand[5]) + (strand[6] + strand[7]));
    for (; t < F; t++) {
        const double dx = a[2 * t] - b[2 * t], dy = a[2 * t + 1] - b[2 * t + 1];
        rest += dx * dx + dy * dy;
    }
    return rest;
}

/* Merges the components of candidates that are close together, and adds up the diversities.
 * component[k] must be k if candidate k is feasible, otherwise -1. */
static void look_at_pairs(bj_audit_scene *s, const double *p, const double *y) {
    const size_t row = 2 * (size_t)s->F;
    double trajectory = 0, endpoint = 0;
    for (int k = 0; k < s->K; k++)
        for (int l = 0; l < k && s->component[k] >= 0; l++) {
            if (s->component[l] < 0) continue;
            const double *a = y + (size_t)k * row, *b = y + (size_t)l * row;
            const double dx = a[row - 2] - b[row - 2], dy = a[row - 1] - b[row - 1];
            const double rms = sqrt(sum_squares(a, b, s->F) / s->F);
            trajectory += p[k] * p[l] * rms;
            endpoint += p[k] * p[l] * sqrt(dx * dx + dy * dy);
            if (!(rms <= DUPLICATE) || s->component[k] == s->component[l]) continue;
            const int from = s->component[k] > s->component[l] ? s->component[k] : s->component[l];
            const int to = s->component[k] > s->component[l] ? s->component[l] : s->component[k];
            for (int i = 0; i <= k; i++)
                if (s->component[i] == from) s->component[i] = to;
        }
    s->value[BJ_AUDIT_TRAJECTORY_DIVERSITY] = 2 * trajectory; /* each pair is counted once above */
    s->value[BJ_AUDIT_ENDPOINT_DIVERSITY] = 2 * endpoint;
}

static void look_at_components(bj_audit_scene *s, const double *p) {
    double mass[BJ_MAX_ATOMS] = {0}, total = 0, entropy = 0;
    int unique = 0, any = 0;
    for (int k = 0; k < s->K; k++)
        if (s->component[k] >= 0) {
            mass[s->component[k]] += p[k];
            total += p[k];
        }
    for (int c = 0; c < s->K; c++) {
        unique += mass[c] >= LEAST_MASS;
        if (!(mass[c] > 0 && total > 0)) continue;
        entropy -= mass[c] / total * log(mass[c] / total);
        any = 1;
    }
    s->value[BJ_AUDIT_TRAJECTORY_MASS] = total;
    s->value[BJ_AUDIT_UNIQUE_SUPPORT] = unique;
    s->value[BJ_AUDIT_ENTROPY_SUPPORT] = any ? exp(entropy) : 0;
    s->value[BJ_AUDIT_MASS_WEIGHTED_SUPPORT] = s->value[BJ_AUDIT_ENTROPY_SUPPORT] * total;
}

void bj_audit_measure(bj_audit_scene *s, const bj_drivable *areas, int K, int F, const double *p,
                      const double *y) {
    double point_mass = 0;
    memset(s, 0, sizeof *s);
    s->K = K;
    s->F = F;
    s->contained = 1;
    for (int k = 0; k < K; k++) {
        const int n = (int)bj_drivable_contains(NULL, areas, y + (size_t)k * 2 * (size_t)F, F);
        s->inside[k] = n;
        s->component[k] = n >= FRACTION * F - 1e-9 ? k : -1;
        s->contained &= n == F;
        point_mass += p[k] * n / F;
    }
    s->value[BJ_AUDIT_POINT_MASS] = point_mass;
    look_at_pairs(s, p, y);
    look_at_components(s, p);
}
