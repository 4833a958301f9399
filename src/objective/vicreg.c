/* vicreg.c - variance and covariance terms of VICReg.
 *
 * Bardes, Ponce and LeCun, "VICReg: Variance-Invariance-Covariance Regularization for
 * Self-Supervised Learning", 2022 (arXiv:2105.04906). The loss of the arm takes the place of the
 * invariance term.
 *
 *   c = x - mean_b x,   var_d = sum_b c_bd^2 / (B - 1),   C = c'c / (B - 1)
 *   variance   = mean_d relu(gamma - sqrt(var_d + 1e-4))
 *   covariance = (1/D) sum_{i != j} C_ij^2
 *
 *   dvariance/dx_bd = slope_d c_bd,   slope_d = -1 / (D (B - 1) sqrt(var_d + 1e-4))  if below gamma
 *   dcovariance/dx  = 4 / (D (B - 1)) c Coff,   Coff = C without its diagonal
 * The mean contributes nothing because the columns of c, and hence of c Coff, sum to zero.
 *
 * Shapes  x, c, dx (B,D)   C (D,D)
 * Order   Variances: in double, by core/shards.h. c'c: bj_kernels.gradient, in the same order.
 *         c Coff sums over dimensions in order, for any range of scenes.
 * Edge    relu has gradient 0 at 0. For a batch of one scene, the terms and their gradients are 0,
 *         because such a batch has no variance (PyTorch returns NaN).
 * Test    tests/objective/test_regularizers.c    Derivation  docs/layers/regularizers.md
 */
#include "objective/parts.h"

enum { COLUMNS = BJ_MOMENT_COLUMNS };

static int pieces(int n, int size) { return (n + size - 1) / size; }
static int at_most(int n, int size) { return n < size ? n : size; }

void bj_vicreg_take(bj_regularizers *r, bj_arena *arena, int max_batch) {
    const bj_objective *o = r->objective;
    const size_t D = (size_t)r->D;
    if (o->vicreg_variance == 0 && o->vicreg_covariance == 0) return;
    r->centered = bj_arena_take(arena, (size_t)max_batch * D);
    r->missing = bj_arena_take_bytes(arena, D * sizeof(double));
    r->slope = bj_arena_take_bytes(arena, D * sizeof(double));
    if (o->vicreg_covariance == 0) return;
    r->product = bj_arena_take(arena, D * D);
    r->packed = bj_arena_take(arena, bj_blocks_size(r, r->D));
    r->squares = bj_arena_take_bytes(arena, D * sizeof(double));
}

int bj_vicreg_items(const bj_regularizers *r, int round) {
    const bj_objective *o = r->objective;
    const int D = r->D;
    if (r->B < 2) return 0;
    if (round == 0)
        return o->vicreg_variance != 0 || o->vicreg_covariance != 0 ? pieces(D, COLUMNS) : 0;
    if (o->vicreg_covariance == 0) return 0;
    return round == 1 ? pieces(D, BJ_GRADIENT_ROWS) * pieces(D, BJ_GRADIENT_COLUMNS)
                      : pieces(D, BJ_REGULARIZER_ROWS);
}

static void center(bj_regularizers *r, int first) {
    const int n = at_most(r->D - first, COLUMNS);
    bj_column_moments m;
    bj_moments_columns(r->centered + first, (size_t)r->D, &m, r->x + first, r->ldx, r->B, r->D, n,
                       r->objective->vicreg_gamma, r->B - 1);
    for (int i = 0; i < n; i++) {
        r->missing[first + i] = m.missing[i];
        r->slope[first + i] = m.slope[i];
    }
}

/* Computes one tile of centered' centered. */
static void multiply(bj_regularizers *r, int item, bj_real *scratch) {
    const int D = r->D, columns = pieces(D, BJ_GRADIENT_COLUMNS);
    const int i = item / columns * BJ_GRADIENT_ROWS, j = item % columns * BJ_GRADIENT_COLUMNS;
    const bj_rows rows = {1, r->shard_begin, r->shard_count};
    r->k->gradient(r->product + (size_t)i * (size_t)D + j, (size_t)D, r->centered + i, (size_t)D,
                   r->centered + j, (size_t)D, &rows, at_most(D - i, BJ_GRADIENT_ROWS),
                   at_most(D - j, BJ_GRADIENT_COLUMNS), scratch);
}

/* Clears the diagonal in a block of rows, sums the squares of each row, and packs the rows for the
 * backward pass. */
static void finish_rows(bj_regularizers *r, int first) {
    const int D = r->D, n = at_most(D - first, BJ_REGULARIZER_ROWS);
    const double per = (double)r->B - 1;
    const bj_real scale = (bj_real)(4 * r->objective->vicreg_covariance / (D * per * per));
    for (int i = first; i < first + n; i++) {
        bj_real *row = r->product + (size_t)i * (size_t)D;
        row[i] = 0;
        r->squares[i] = r->k->sum_squares(row, (size_t)D) / (per * per);
        for (int j = 0; j < D; j++) row[j] *= scale;
    }
    r->k->pack_kn(bj_block_at(r, r->packed, first), r->product + (size_t)first * (size_t)D,
                  (size_t)D, D, n);
}

void bj_vicreg_item(bj_regularizers *r, int round, int item, bj_real *scratch) {
    if (round == 0) center(r, item * COLUMNS);
    else if (round == 1) multiply(r, item, scratch);
    else finish_rows(r, item * BJ_REGULARIZER_ROWS);
}

void bj_vicreg_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1) {
    const bj_objective *o = r->objective;
    const int D = r->D;
    if (r->B < 2) return;
    if (o->vicreg_covariance != 0)
        bj_blocks_add(r, dx, lddx, r->centered + (size_t)b0 * (size_t)D, (size_t)D, r->packed, D,
                      b1 - b0);
    for (int b = b0; b < b1 && o->vicreg_variance != 0; b++, dx += lddx) {
        const bj_real *c = r->centered + (size_t)b * (size_t)D;
        for (int d = 0; d < D; d++) dx[d] += (bj_real)(o->vicreg_variance * r->slope[d]) * c[d];
    }
}

static double mean(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

void bj_vicreg_loss(bj_loss *loss, const bj_regularizers *r) {
    const bj_objective *o = r->objective;
    if (r->B < 2) return;
    if (o->vicreg_variance != 0) loss->vicreg_variance = mean(r->missing, r->D);
    if (o->vicreg_covariance != 0) loss->vicreg_covariance = mean(r->squares, r->D);
}
