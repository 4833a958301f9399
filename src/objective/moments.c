/* moments.c - code shared by the variance and rank floors in anchor.c and floors.c: centers the
 * batch and computes the variance floor, and the rank floor for given T and Q. anchor.c contains
 * the equations. The two files differ in the matrix from which Q is computed.
 *
 * Order   Sums over a shard are in double. The shard sums are added in the tree of core/shards.h.
 * Test    tests/objective/test_anchor.c, tests/train/test_observed.c
 */
#include <math.h>
#include <string.h>

#include "objective/parts.h"

enum { BLOCK = BJ_MOMENT_COLUMNS };

/* Returns the number of doubles that hold `count` values of type bj_real. */
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

/* Sets sum[0] to the sum of x, or of x^2, over the batch. There are n columns, and x has row stride
 * `stride`. */
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

void bj_moments_columns(bj_real *c, size_t ldc, bj_column_moments *m, const bj_real *x,
                        size_t stride, int B, int D, int n, double floor, double divisor) {
    double sum[BJ_SHARDS][BLOCK];
    column_sums(sum, x, stride, B, n, 0);
    for (int b = 0; b < B; b++)
        for (int i = 0; i < n; i++)
            c[(size_t)b * ldc + (size_t)i] =
                (bj_real)(x[(size_t)b * stride + (size_t)i] - sum[0][i] / B);
    column_sums(sum, c, ldc, B, n, 1);
    for (int i = 0; i < n; i++) {
        const double deviation = sqrt((m->var[i] = sum[0][i] / divisor) + 1e-4);
        const double missing = floor - deviation;
        const int holds = missing <= 0; /* the comparison is false for NaN, so NaN reaches the
                                           loss */
        m->missing[i] = holds ? 0 : missing;
        m->slope[i] = holds ? 0 : -1 / ((double)D * divisor * deviation);
    }
}

double bj_moments_center(bj_moments m, const bj_real *x, size_t stride, int B, int D,
                         double floor) {
    double variance = 0, trace = 0;
    for (int i0 = 0; i0 < D; i0 += BLOCK) {
        const int n = D - i0 < BLOCK ? D - i0 : BLOCK;
        bj_column_moments column;
        bj_moments_columns(m.c + i0, (size_t)D, &column, x + i0, stride, B, D, n, floor, B);
        for (int i = 0; i < n; i++) {
            trace += column.var[i];
            variance += column.missing[i];
            m.linear[i0 + i] = column.slope[i];
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
