/* energy_score.c - Energy Score of a weighted set of futures, and its gradient.
 *
 *   es = sum_k pi_k d(x_k, target) - 1/2 sum_k sum_l pi_k pi_l d(x_k, x_l)
 *
 *   des/dx_k  = pi_k (dd(k,target)/dx_k - sum_l pi_l dd(k,l)/dx_k)
 *   des/dpi_k = d(k,target) - sum_l pi_l d(k,l)
 *
 * The same code scores latents (chord) and trajectories (RMS block), see points.h. With K = 1 the
 * score is the distance to the target, which is the point control. The uniform arm has pi = 1/K and
 * no router. The output-only model scores its single latent by the distance alone. Anchor stage B
 * has only the latent score.
 *
 * Shapes  x (K,n)  pi (K)  target (n)
 * Cache   only io->pi; backward recomputes the distances because K is small
 * Edge    A distance of 0 has gradient 0.
 * Test    tests/objective/test_energy_score.c      Derivation  docs/layers/energy_score.md
 */
#include "objective/parts.h"

double bj_energy_score_forward(const bj_points *points, const bj_real *pi) {
    double fit = 0, spread = 0;
    for (int k = 0; k < points->K; k++) {
        fit += pi[k] * bj_points_to_target(points, k);
        for (int l = 0; l < k; l++) /* each pair is visited once, so there is no factor of 1/2 */
            spread += (double)pi[k] * pi[l] * bj_points_between(points, k, l);
    }
    return fit - spread;
}

/* Backpropagates the gradient des. Overwrites dx (K,n) unless dx is NULL, and adds to dpi (K). */
void bj_energy_score_backward(bj_real *dx, double *dpi, double des, const bj_points *points,
                              const bj_real *pi) {
    bj_real pull[BJ_MAX_ATOMS * BJ_MAX_ATOMS];
    double reach[BJ_MAX_ATOMS];
    const int K = points->K;
    for (int k = 0; k < K; k++) {
        /* forward: fit += pi[k] * d(k,target) */
        const double d_k = bj_points_to_target(points, k);
        dpi[k] += des * d_k;
        reach[k] = d_k == 0 ? 0 : des * pi[k] / d_k;
        for (int l = 0; l < k; l++) {
            /* forward: spread += pi[k] * pi[l] * d(k,l) */
            const double d_kl = bj_points_between(points, k, l);
            dpi[k] -= des * pi[l] * d_kl;
            dpi[l] -= des * pi[k] * d_kl;
            pull[k * K + l] = d_kl == 0 ? 0 : (bj_real)(-des * pi[k] * pi[l] / d_kl);
            pull[l * K + k] = pull[k * K + l];
        }
    }
    if (dx) bj_points_gradient(dx, pull, reach, points);
}

void bj_energy_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    for (int b = b0; b < b1; b++) {
        double *term = io->terms + (size_t)b * BJ_TERMS;
        const bj_real *pi = io->pi + (size_t)b * io->K;
        const bj_points latent = bj_points_latent(io, b);
        term[BJ_TERM_LATENT] = objective->kind == BJ_OUTPUTONLY
                                   ? bj_points_to_target(&latent, 0)
                                   : bj_energy_score_forward(&latent, pi);
        if (objective->kind != BJ_ANCHOR_B && io->F) {
            const bj_points decoded = bj_points_decoded(objective, io, b);
            term[BJ_TERM_DECODED] = bj_energy_score_forward(&decoded, pi);
        }
    }
}

void bj_energy_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const bj_term_weights weight = bj_objective_weights(objective);
    const unsigned reach = bj_objective_reach_step(objective, io);
    const double dlatent = weight.latent / io->B, ddecoded = weight.decoded / io->B;
    for (int b = b0; b < b1; b++) {
        const bj_real *pi = io->pi + (size_t)b * io->K;
        double dpi[BJ_MAX_ATOMS] = {0};
        bj_real *du =
            io->du && (reach & BJ_REACH_ATOMS) ? io->du + (size_t)b * io->L * io->ldu : NULL;
        bj_real *dy =
            io->dy && (reach & BJ_REACH_DECODER) ? io->dy + (size_t)b * io->K * io->ldy : NULL;
        if (dlatent == 0) {
            if (du) bj_rows_clear(du, io->L, io->D, io->ldu);
        } else {
            const bj_points latent = bj_points_latent(io, b);
            if (objective->kind == BJ_OUTPUTONLY) { /* a single point without weights */
                const double d = bj_points_to_target(&latent, 0), pull = d == 0 ? 0 : dlatent / d;
                if (du) bj_points_gradient_target(du, &pull, &latent);
            } else {
                bj_energy_score_backward(du, dpi, dlatent, &latent, pi);
            }
        }
        if (ddecoded == 0) {
            if (dy) bj_rows_clear(dy, io->K, 2 * io->F, io->ldy);
        } else {
            const bj_points decoded = bj_points_decoded(objective, io, b);
            bj_energy_score_backward(dy, dpi, ddecoded, &decoded, pi);
        }
        if (io->dlogits && (reach & BJ_REACH_ROUTER))
            bj_router_backward(io->dlogits + (size_t)b * io->K, dpi, pi, io->K);
    }
}
