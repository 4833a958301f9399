/* moments.c - what the variance and rank floors of anchor.c and floors.c have in common: the batch
 * less its mean, the variance floor, and the rank floor once T and Q are known. anchor.c has the
 * equations; the two differ in the matrix from which Q comes.
 *
 * Order   Sums over the batch: inside a shard in double, then the tree of core/shards.h.
 * Test    tests/objective/test_anchor.c, tests/train/test_observed.c
 */
#include <math.h>
#include <string.h>

#include "objective/parts.h"

enum { BLOCK = 64 };

/* Doubles that hold `count` numbers of type bj_real. */
static size_t doubles_for(size_t count) {
    return (count * sizeof(bj_real) + sizeof(double) - 1) / sizeof(double);
}

size_t bj_moments_size(int B, int D, int side) {
    return doubles_for((size_t)B * (size_t)D) + doubles_for((size_t)side * (size_t)side) +
           (size_t)D + BJ_MOMENT_SCALARS;
}

bj_moments bj_moments_of(const bj_objective_io *io, int side) {
    double *c = io->moments, *matrix = c + doubles_for((size_t)io->B * (size_t)io->D);
    double *linear = matrix + doubles_for((size_t)side * (size_t)side);
    return (bj_moments){(bj_real *)(void *)c, (bj_real *)(void *)matrix, linear, linear + io->D};
}

/* sum[0] = sum over the batch of x, or of x^2, for n columns; x has rows stride apart. */
static void column_sums(double sum[BJ_SHARDS][BLOCK], const bj_real *x, size_t stride, int B, int n,
                        int squared) {
    memset(sum, 0, sizeof(double) * BJ_SHARDS * BLOCK);
    for (int s = 0; s < BJ_SHARDS; s++)
        for (int b = bj_shard_begin(B, s); b < bj_shard_begin(B, s + 1); b++) {
            const bj_real *x_b = x + (size_t)b * stride;
            if (squared)
                for (int i = 0; i < n; i++) sum[s][i] += (double)x_b[i] * x_b[i];
            else
                for (int i = 0; i < n; i++) sum[s][i] += x_b[i];
        }
    bj_shards_fold(&sum[0][0], n, BLOCK);
}

double bj_moments_center(bj_moments m, const bj_real *x, size_t stride, int B, int D,
                         double floor) {
    double sum[BJ_SHARDS][BLOCK], variance = 0, trace = 0;
    for (int i0 = 0; i0 < D; i0 += BLOCK) {
        const int n = D - i0 < BLOCK ? D - i0 : BLOCK;
        column_sums(sum, x + i0, stride, B, n, 0);
        for (int b = 0; b < B; b++)
            for (int i = 0; i < n; i++)
                m.c[(size_t)b * D + i0 + i] =
                    (bj_real)(x[(size_t)b * stride + i0 + i] - sum[0][i] / B);
        column_sums(sum, m.c + i0, (size_t)D, B, n, 1);
        for (int i = 0; i < n; i++) {
            const double var = sum[0][i] / B, deviation = sqrt(var + 1e-4);
            const double missing = floor - deviation;
            trace += var;
            if (missing <= 0) {
                m.linear[i0 + i] = 0;
            } else { /* also for NaN, which must not look like a floor that holds */
                variance += missing;
                m.linear[i0 + i] = -1 / ((double)D * B * deviation);
            }
        }
    }
    m.scalar[BJ_MOMENT_VARIANCE] = variance / D;
    return trace;
}

void bj_moments_rank(bj_moments m, const bj_objective *objective, double T, double Q, int B, int D,
                     double unit) {
    const double p = Q == 0 ? 0 : T * T / Q, missing = objective->rank_floor - p;
    m.scalar[BJ_MOMENT_PARTICIPATION] = p;
    m.scalar[BJ_MOMENT_RANK] = missing <= 0 ? 0 : missing / objective->rank_floor;
    m.scalar[BJ_MOMENT_QUAD] = 0;
    if (missing <= 0 || Q == 0 || objective->rank_weight == 0) return;
    const double slope = objective->rank_weight / objective->rank_floor * 4 * T / (B * Q);
    for (int d = 0; d < D; d++) m.linear[d] -= slope;
    m.scalar[BJ_MOMENT_QUAD] = slope * T / (Q * unit);
}

void bj_moments_loss(bj_loss *loss, bj_moments m) {
    loss->variance = m.scalar[BJ_MOMENT_VARIANCE];
    loss->rank = m.scalar[BJ_MOMENT_RANK];
    loss->participation = m.scalar[BJ_MOMENT_PARTICIPATION];
}
