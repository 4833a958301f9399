/* variational.c - KL divergence of the posterior from the prior of the variational model.
 *
 *   q = N(m_q, exp(2 s_q)),  p = N(m_p, exp(2 s_p)),  diagonal, s the log of a standard deviation
 *   KL(q | p) = sum_i s_p - s_q + (exp(2 s_q) + (m_q - m_p)^2) / (2 exp(2 s_p)) - 1/2
 *
 *   dKL/dm_q = (m_q - m_p) exp(-2 s_p) = - dKL/dm_p
 *   dKL/ds_q = exp(2 (s_q - s_p)) - 1
 *   dKL/ds_p = 1 - (exp(2 s_q) + (m_q - m_p)^2) exp(-2 s_p)
 *
 * The latent term is the distance of energy_score.c with one latent, which the network computes
 * from the context and a sample of q.
 *
 * Shapes  prior, posterior (B,2V): m (V), then s (V)
 * Test    tests/train/test_observed.c, tests/train/peer_observed.py
 */
#include <math.h>

#include "objective/parts.h"

void bj_variational_forward(bj_objective_io *io, int b0, int b1) {
    const int V = io->V;
    for (int b = b0; b < b1; b++) {
        const bj_real *p = io->prior + 2 * (size_t)b * (size_t)V;
        const bj_real *q = io->posterior + 2 * (size_t)b * (size_t)V;
        double sum = 0;
        for (int i = 0; i < V; i++) {
            const double away = (double)q[i] - (double)p[i], s_p = (double)p[V + i];
            const double s_q = (double)q[V + i];
            sum += s_p - s_q + 0.5 * (exp(2 * s_q) + away * away) * exp(-2 * s_p) - 0.5;
        }
        io->terms[(size_t)b * BJ_TERMS + BJ_TERM_KL] = sum;
    }
}

void bj_variational_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const double weight = bj_objective_weights(objective).kl / io->B;
    const int V = io->V;
    for (int b = b0; b < b1; b++) {
        const size_t at = 2 * (size_t)b * (size_t)V;
        const bj_real *p = io->prior + at, *q = io->posterior + at;
        bj_real *dp = io->dprior + at, *dq = io->dposterior + at;
        for (int i = 0; i < V; i++) {
            const double away = (double)q[i] - (double)p[i];
            const double inverse = exp(-2 * (double)p[V + i]), spread = exp(2 * (double)q[V + i]);
            dq[i] = (bj_real)(weight * away * inverse);
            dp[i] = -dq[i];
            dq[V + i] = (bj_real)(weight * (spread * inverse - 1));
            dp[V + i] = (bj_real)(weight * (1 - (spread + away * away) * inverse));
        }
    }
}
