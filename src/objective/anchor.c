/* anchor.c - variance and rank floors on the latents of a batch (frozen anchor, stage A).
 *
 *   c = z - mean_b z,   var_d = mean_b c_bd^2,   C = c'c / B
 *   variance = mean_d relu(floor - sqrt(var_d + 1e-4))
 *   p = T^2 / Q,   T = tr C,   Q = sum_ij C_ij^2          the participation rank of C
 *   rank = relu(rank_floor - p) / rank_floor
 *   floors = variance + rank_weight * rank
 *
 *   dfloors/dz_b = c_b (a + lin) + quad (c_b C),  elementwise in the first term
 *   a_d  = -1 / (D B sqrt(var_d + 1e-4))                   where the variance floor is missed
 *   lin  = -(rank_weight / rank_floor) 4 T / (B Q)         where the rank floor is missed
 *   quad =  (rank_weight / rank_floor) 4 T^2 / (B Q^2)
 * (the mean contributes nothing: columns of c, and hence of c C, sum to zero)
 *
 * Shapes  z, c, dz (B,D)   C (D,D)
 * Cache   io->moments: c and C in bj_real, a + lin (D), and the numbers of enum scalar
 * Order   Sums over the batch: bj_real inside a shard, then the tree of core/shards.h in double.
 *         c C sums over dimensions in order, whatever the range of scenes.
 * Edge    relu has gradient 0 at 0. When all latents are equal, Q = 0: p = 0 and the rank floor is
 *         missed in full, with gradient 0 (p has none there).
 * Test    tests/objective/test_anchor.c            Derivation  docs/layers/anchor.md
 */
#include <math.h>
#include <string.h>

#include "objective/parts.h"

enum scalar { VARIANCE, RANK, PARTICIPATION, QUAD, SCALARS };
enum { BLOCK = 64 };

typedef struct moments {
    bj_real *c;     /* (B,D) */
    bj_real *C;     /* (D,D) */
    double *linear; /* (D) a + lin */
    double *scalar; /* (SCALARS) */
} moments;

/* Doubles that hold `count` numbers of type bj_real. */
static size_t doubles_for(size_t count) {
    return (count * sizeof(bj_real) + sizeof(double) - 1) / sizeof(double);
}

size_t bj_anchor_size(int B, int D) {
    return doubles_for((size_t)B * D) + doubles_for((size_t)D * D) + (size_t)D + SCALARS;
}

static moments moments_of(const bj_objective_io *io) {
    double *c = io->moments, *C = c + doubles_for((size_t)io->B * io->D);
    double *linear = C + doubles_for((size_t)io->D * io->D);
    return (moments){(bj_real *)(void *)c, (bj_real *)(void *)C, linear, linear + io->D};
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

double bj_floor_center(bj_real *c, double *linear, double *variance_missing, const bj_real *x,
                       size_t stride, int B, int D, double floor) {
    double sum[BJ_SHARDS][BLOCK], variance = 0, trace = 0;
    for (int i0 = 0; i0 < D; i0 += BLOCK) {
        const int n = D - i0 < BLOCK ? D - i0 : BLOCK;
        column_sums(sum, x + i0, stride, B, n, 0);
        for (int b = 0; b < B; b++)
            for (int i = 0; i < n; i++)
                c[(size_t)b * D + i0 + i] =
                    (bj_real)(x[(size_t)b * stride + i0 + i] - sum[0][i] / B);
        column_sums(sum, c + i0, (size_t)D, B, n, 1);
        for (int i = 0; i < n; i++) {
            const double var = sum[0][i] / B, deviation = sqrt(var + 1e-4);
            const double missing = floor - deviation;
            trace += var;
            if (missing <= 0) {
                linear[i0 + i] = 0;
            } else { /* also for NaN, which must not look like a floor that holds */
                variance += missing;
                linear[i0 + i] = -1 / ((double)D * B * deviation);
            }
        }
    }
    *variance_missing = variance / D;
    return trace;
}

/* sum[j] += a_0 x_0[j], then a_1 x_1[j] and so on, in this order. */
static void add_rows_4(bj_real *restrict sum, const bj_real *restrict x, size_t stride,
                       const bj_real a[4], int n) {
    const bj_real *x_1 = x + stride, *x_2 = x_1 + stride, *x_3 = x_2 + stride;
    for (int j = 0; j < n; j++)
        sum[j] = sum[j] + a[0] * x[j] + a[1] * x_1[j] + a[2] * x_2[j] + a[3] * x_3[j];
}

/* sum[j] = sum_i a[i * a_stride] x[i][j] for `rows` rows of x and n columns, rows in order. */
static void combine_rows(bj_real *restrict sum, const bj_real *restrict a, size_t a_stride,
                         const bj_real *restrict x, size_t stride, int rows, int n) {
    int i = 0;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (; i + 4 <= rows; i += 4) {
        const bj_real *a_i = a + (size_t)i * a_stride;
        const bj_real four[4] = {a_i[0], a_i[a_stride], a_i[2 * a_stride], a_i[3 * a_stride]};
        add_rows_4(sum, x + (size_t)i * stride, stride, four, n);
    }
    for (; i < rows; i++)
        for (int j = 0; j < n; j++) sum[j] += a[(size_t)i * a_stride] * x[(size_t)i * stride + j];
}

/* Fills C, blocks of a row on and above the diagonal; returns Q. */
static double covariance(const bj_objective_io *io, moments m) {
    const int B = io->B, D = io->D;
    double total = 0;
    for (int j0 = 0; j0 < D; j0 += BLOCK)
        for (int i = 0; i < D && i < j0 + BLOCK; i++) {
            const int n = D - j0 < BLOCK ? D - j0 : BLOCK;
            double sum[BJ_SHARDS][BLOCK];
            for (int s = 0; s < BJ_SHARDS; s++) {
                const int b0 = bj_shard_begin(B, s), b1 = bj_shard_begin(B, s + 1);
                const bj_real *c = m.c + (size_t)b0 * D;
                bj_real part[BLOCK];
                combine_rows(part, c + i, (size_t)D, c + j0, (size_t)D, b1 - b0, n);
                for (int j = 0; j < n; j++) sum[s][j] = part[j];
            }
            bj_shards_fold(&sum[0][0], n, BLOCK);
            for (int j = i > j0 ? i : j0; j < j0 + n; j++) {
                const double c = sum[0][j - j0] / B;
                total += (i == j ? 1 : 2) * c * c;
                m.C[(size_t)i * D + j] = m.C[(size_t)j * D + i] = (bj_real)c;
            }
        }
    return total;
}

void bj_anchor_couple(const bj_objective *objective, bj_objective_io *io) {
    const moments m = moments_of(io);
    const double T = bj_floor_center(m.c, m.linear, &m.scalar[VARIANCE], io->z, io->ldu, io->B,
                                     io->D, objective->variance_floor);
    const double Q = covariance(io, m);
    const double p = Q == 0 ? 0 : T * T / Q, missing = objective->rank_floor - p;
    m.scalar[PARTICIPATION] = p;
    m.scalar[RANK] = missing <= 0 ? 0 : missing / objective->rank_floor;
    m.scalar[QUAD] = 0;
    if (missing <= 0 || Q == 0 || objective->rank_weight == 0) return;
    const double slope = objective->rank_weight / objective->rank_floor * 4 * T / (io->B * Q);
    for (int d = 0; d < io->D; d++) m.linear[d] -= slope;
    m.scalar[QUAD] = slope * T / Q;
}

void bj_anchor_backward(bj_objective_io *io, int b0, int b1) {
    const moments m = moments_of(io);
    const int D = io->D;
    const bj_real quad = (bj_real)m.scalar[QUAD];
    if (!io->dz) return;
    for (int j0 = 0; j0 < D; j0 += BLOCK) /* outside: these columns of C stay in cache */
        for (int b = b0; b < b1; b++) {
            const int n = D - j0 < BLOCK ? D - j0 : BLOCK;
            const bj_real *c = m.c + (size_t)b * D;
            bj_real *dz = io->dz + (size_t)b * io->ldu + j0;
            bj_real product[BLOCK] = {0};
            if (quad != 0) combine_rows(product, c, 1, m.C + j0, (size_t)D, D, n);
            for (int j = 0; j < n; j++)
                dz[j] = c[j0 + j] * (bj_real)m.linear[j0 + j] + quad * product[j];
        }
}

void bj_anchor_loss(bj_loss *loss, const bj_objective_io *io) {
    const moments m = moments_of(io);
    loss->variance = m.scalar[VARIANCE];
    loss->rank = m.scalar[RANK];
    loss->participation = m.scalar[PARTICIPATION];
}
