/* fused.c - the fused mixture of experts: one latent, the normalized weighted mean of all latents.
 *
 *   v = sum_k pi_k u_k,   m = v / max(|v|, 1e-12),   latent = |m - z|
 *
 *   dlatent/dm = (m - z) / |m - z|,   dv = (dm - m (m . dm)) / |v|
 *   dlatent/du_k = pi_k dv,           dlatent/dpi_k = u_k . dv
 *
 * Shapes  u (K,D)  pi (K)  z (D)
 * Cache   none; backward recomputes v from K rows
 * Edge    A distance of at most 1e-6 counts as zero and has gradient zero. If |v| is below 1e-12,
 *         the divisor is constant.
 * Test    tests/train/test_observed.c, tests/train/peer_observed.py
 */
#include <math.h>

#include "objective/parts.h"

enum { CHUNK = 64 };

/* Computes v for dimensions [d0, d0 + n). */
static void mean_of(double v[CHUNK], const bj_real *u, size_t ldu, const bj_real *pi, int K, int d0,
                    int n) {
    for (int i = 0; i < n; i++) v[i] = 0;
    for (int k = 0; k < K; k++) {
        const bj_real *row = u + (size_t)k * ldu + (size_t)d0;
        const double weight = (double)pi[k];
        for (int i = 0; i < n; i++) v[i] += weight * (double)row[i];
    }
}

static int chunk_size(int D, int d0) { return D - d0 < CHUNK ? D - d0 : CHUNK; }

typedef struct fused {
    double length;   /* max(|v|, floor) */
    int constant;    /* |v| is below the floor */
    double distance; /* |m - z|, or 0 if it is at most 1e-6 */
} fused;

static fused measure(const bj_real *u, size_t ldu, const bj_real *pi, const bj_real *z, int K,
                     int D) {
    const double floor = 1e-12;
    double squares = 0, away = 0, v[CHUNK];
    for (int d0 = 0; d0 < D; d0 += CHUNK) {
        const int n = chunk_size(D, d0);
        mean_of(v, u, ldu, pi, K, d0, n);
        for (int i = 0; i < n; i++) squares += v[i] * v[i];
    }
    fused f = {.length = sqrt(squares)};
    f.constant = f.length < floor;
    if (f.constant) f.length = floor;
    for (int d0 = 0; d0 < D; d0 += CHUNK) {
        const int n = chunk_size(D, d0);
        mean_of(v, u, ldu, pi, K, d0, n);
        for (int i = 0; i < n; i++) {
            const double e = v[i] / f.length - (double)z[d0 + i];
            away += e * e;
        }
    }
    f.distance = away <= 1e-12 ? 0 : sqrt(away); /* keeps NaN */
    return f;
}

void bj_fused_forward(bj_objective_io *io, int b0, int b1) {
    for (int b = b0; b < b1; b++) {
        const fused f = measure(io->u + (size_t)b * (size_t)io->L * io->ldu, io->ldu,
                                io->pi + (size_t)b * (size_t)io->K, io->z + (size_t)b * io->ldu,
                                io->K, io->D);
        io->terms[(size_t)b * BJ_TERMS + BJ_TERM_LATENT] = f.distance;
    }
}

void bj_fused_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const unsigned reach = bj_objective_reach_step(objective, io);
    const double dlatent = bj_objective_weights(objective).latent / io->B;
    const int K = io->K, D = io->D;
    for (int b = b0; b < b1; b++) {
        const bj_real *u = io->u + (size_t)b * (size_t)io->L * io->ldu;
        const bj_real *pi = io->pi + (size_t)b * (size_t)K, *z = io->z + (size_t)b * io->ldu;
        bj_real *du = io->du + (size_t)b * (size_t)io->L * io->ldu;
        const fused f = measure(u, io->ldu, pi, z, K, D);
        const double pull = f.distance == 0 ? 0 : dlatent / f.distance;
        double dpi[BJ_MAX_ATOMS] = {0}, along = 0, v[CHUNK];
        for (int d0 = 0; d0 < D && !f.constant; d0 += CHUNK) {
            const int n = chunk_size(D, d0);
            mean_of(v, u, io->ldu, pi, K, d0, n);
            for (int i = 0; i < n; i++) {
                const double m = v[i] / f.length;
                along += m * pull * (m - (double)z[d0 + i]);
            }
        }
        for (int d0 = 0; d0 < D; d0 += CHUNK) {
            const int n = chunk_size(D, d0);
            mean_of(v, u, io->ldu, pi, K, d0, n);
            for (int i = 0; i < n; i++) { /* replace v with dv */
                const double m = v[i] / f.length;
                v[i] = (pull * (m - (double)z[d0 + i]) - along * m) / f.length;
            }
            for (int k = 0; k < K; k++) {
                const size_t at = (size_t)k * io->ldu + (size_t)d0;
                for (int i = 0; i < n; i++) dpi[k] += (double)u[at + (size_t)i] * v[i];
                for (int i = 0; i < n && (reach & BJ_REACH_ATOMS); i++)
                    du[at + (size_t)i] = (bj_real)((double)pi[k] * v[i]);
            }
        }
        if (io->dlogits && (reach & BJ_REACH_ROUTER))
            bj_router_backward(io->dlogits + (size_t)b * (size_t)K, dpi, pi, K);
    }
}
