/* anchor.c - variance and rank floors on the latents of a batch (frozen anchor, stage A).
 *
 *   c = z - mean_b z,   var_d = mean_b c_bd^2,   C = c'c / B
 *   variance = mean_d relu(floor - sqrt(var_d + 1e-4))
 *   p = T^2 / Q,   T = tr C,   Q = sum_ij C_ij^2          the participation rank of C
 *   rank = relu(rank_floor - p) / rank_floor
 *   floors = variance + rank_weight * rank
 *
 *   dfloors/dz_b = c_b (a + lin) + quad (c_b C),  elementwise in the first term
 *   a_d  = -1 / (D B sqrt(var_d + 1e-4))                   if sqrt(var_d + 1e-4) < floor
 *   lin  = -(rank_weight / rank_floor) 4 T / (B Q)         if p < rank_floor
 *   quad =  (rank_weight / rank_floor) 4 T^2 / (B Q^2)
 * The mean contributes nothing because the columns of c, and hence of c C, sum to zero.
 *
 * Shapes  z, c, dz (B,D)   C (D,D)
 * Cache   io->moments: c, C as the matrix, a + lin (moments.c)
 * Order   Sums over the batch use bj_real within a shard, then the tree of core/shards.h in double.
 *         c C sums over dimensions in order, for any range of scenes.
 * Edge    relu has gradient 0 at 0. If all latents are equal, then Q = 0 and p = 0. The rank term
 *         is then 1 with gradient 0, because p is not differentiable there.
 * Test    tests/objective/test_anchor.c            Derivation  docs/layers/anchor.md
 */
#include <string.h>

#include "objective/parts.h"

enum { BLOCK = 64 };

size_t bj_anchor_size(int B, int D) { return bj_moments_size(B, D, D); }

static bj_moments moments_of(const bj_objective_io *io) { return bj_moments_of(io, io->D); }

/* Adds a_0 x_0[j], a_1 x_1[j] and so on to sum[j], in this order. */
static void add_rows_4(bj_real *restrict sum, const bj_real *restrict x, size_t stride,
                       const bj_real a[4], int n) {
    const bj_real *x_1 = x + stride, *x_2 = x_1 + stride, *x_3 = x_2 + stride;
    for (int j = 0; j < n; j++)
        sum[j] = sum[j] + a[0] * x[j] + a[1] * x_1[j] + a[2] * x_2[j] + a[3] * x_3[j];
}

/* Computes sum[j] = sum_i a[i * a_stride] x[i][j] over `rows` rows of x for n columns, in row
 * order. */
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

/* Computes the blocks of the matrix C on and above the diagonal, and mirrors them. Returns Q. */
static double covariance(const bj_objective_io *io, bj_moments m) {
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
                m.matrix[(size_t)i * D + j] = m.matrix[(size_t)j * D + i] = (bj_real)c;
            }
        }
    return total;
}

void bj_anchor_couple(const bj_objective *objective, bj_objective_io *io) {
    const bj_moments m = moments_of(io);
    const double T = bj_moments_center(m, io->z, io->ldu, io->B, io->D, objective->variance_floor);
    bj_moments_rank(m, objective, T, covariance(io, m), io->B, io->D, 1);
}

void bj_anchor_backward(bj_objective_io *io, int b0, int b1) {
    const bj_moments m = moments_of(io);
    const int D = io->D;
    const bj_real quad = (bj_real)m.scalar[BJ_MOMENT_QUAD];
    if (!io->dz) return;
    for (int j0 = 0; j0 < D; j0 += BLOCK) /* this is the outer loop, so that these columns of C stay
                                             in the cache */
        for (int b = b0; b < b1; b++) {
            const int n = D - j0 < BLOCK ? D - j0 : BLOCK;
            const bj_real *c = m.c + (size_t)b * D;
            bj_real *dz = io->dz + (size_t)b * io->ldu + j0;
            bj_real product[BLOCK] = {0};
            if (quad != 0) combine_rows(product, c, 1, m.matrix + j0, (size_t)D, D, n);
            for (int j = 0; j < n; j++)
                dz[j] = c[j0 + j] * (bj_real)m.linear[j0 + j] + quad * product[j];
        }
}

void bj_anchor_loss(bj_loss *loss, const bj_objective_io *io) {
    bj_moments_loss(loss, moments_of(io));
}
