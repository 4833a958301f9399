/* router_weights.c - computes branch weights from router logits.
 *
 *   pi = softmax(logits),   dlogits_k = pi_k (dpi_k - sum_l pi_l dpi_l)
 *
 * Shapes  logits, pi, dlogits (K)
 * Edge    The largest logit is subtracted first, so nothing overflows. For K = 1 the logits are not
 *         read, because that network has no router.
 * Test    tests/objective/test_energy_score.c, test_mixture.c
 */
#include <math.h>

#include "objective/parts.h"

static double largest(const double *x, int n) {
    double max = x[0];
    for (int i = 1; i < n; i++)
        if (x[i] > max) max = x[i];
    return max;
}

double bj_log_sum_exp(const double *x, int n) {
    const double max = largest(x, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

void bj_softmax(double *p, const double *x, int n) {
    const double max = largest(x, n);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        p[i] = exp(x[i] - max);
        sum += p[i];
    }
    for (int i = 0; i < n; i++) p[i] /= sum;
}

void bj_router_weights(bj_real *pi, const bj_real *logits, int K) {
    double p[BJ_MAX_ATOMS] = {0};
    if (K == 1) {
        pi[0] = 1;
        return;
    }
    for (int k = 0; k < K; k++) p[k] = logits[k];
    bj_softmax(p, p, K);
    for (int k = 0; k < K; k++) pi[k] = (bj_real)p[k];
}

void bj_router_log_weights(double *log_pi, const bj_real *logits, int K) {
    if (K == 1) {
        log_pi[0] = 0;
        return;
    }
    for (int k = 0; k < K; k++) log_pi[k] = logits[k];
    const double norm = bj_log_sum_exp(log_pi, K);
    for (int k = 0; k < K; k++) log_pi[k] -= norm;
}

void bj_router_backward(bj_real *dlogits, const double *dpi, const bj_real *pi, int K) {
    double mean = 0, mass = 0;
    for (int k = 0; k < K; k++) {
        mean += pi[k] * dpi[k];
        mass += pi[k];
    }
    mean /= mass; /* mass equals 1 except for rounding; without this division, adding a constant to
                     dpi would change dlogits */
    for (int k = 0; k < K; k++) dlogits[k] = (bj_real)(pi[k] * (dpi[k] - mean));
}
