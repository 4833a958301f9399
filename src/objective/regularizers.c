/* regularizers.c - runs SIGReg and VICReg as one set of rounds; see regularizers.h.
 *
 *   round 0   SIGReg: blocks of slices, complete.  VICReg: blocks of columns, mean and variance
 *   round 1   VICReg covariance: tiles of centered' centered
 *   round 2   VICReg covariance: blocks of its rows, for the loss and the gradient
 *
 * Each gradient is a product dx = a P with a large matrix P, which is packed in blocks of
 * BJ_REGULARIZER_ROWS rows by the item that computes them. The products of the blocks are added in
 * order, which gives the same bits as one product with all rows (kernels.h).
 */
#include "objective/parts.h"

int bj_regularizers_active(const bj_objective *o) {
    return o->sigreg != 0 || o->vicreg_variance != 0 || o->vicreg_covariance != 0;
}

void bj_regularizers_take(bj_regularizers *r, bj_arena *arena, const bj_kernels *k,
                          const bj_objective *objective, int max_batch, int D) {
    *r = (bj_regularizers){.k = k, .objective = objective, .D = D};
    bj_sigreg_take(r, arena, max_batch);
    bj_vicreg_take(r, arena, max_batch);
}

void bj_regularizers_begin(bj_regularizers *r, const bj_real *x, size_t ldx, int B, uint64_t seed,
                           long step) {
    r->x = x;
    r->ldx = ldx;
    r->B = B;
    r->seed = seed;
    r->step = step;
    for (int s = 0; s < BJ_SHARDS; s++) {
        r->shard_begin[s] = bj_shard_begin(B, s);
        r->shard_count[s] = bj_shard_begin(B, s + 1) - r->shard_begin[s];
    }
}

static int sigreg_items(const bj_regularizers *r) { return r->round == 0 ? bj_sigreg_items(r) : 0; }

int bj_regularizers_round(bj_regularizers *r, int round) {
    r->round = round;
    return sigreg_items(r) + bj_vicreg_items(r, round);
}

void bj_regularizers_item(bj_regularizers *r, int item, bj_real *scratch) {
    const int first = sigreg_items(r);
    if (item < first) bj_sigreg_item(r, item);
    else bj_vicreg_item(r, r->round, item - first, scratch);
}

void bj_regularizers_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1) {
    bj_sigreg_backward(r, dx, lddx, b0, b1);
    bj_vicreg_backward(r, dx, lddx, b0, b1);
}

void bj_regularizers_loss(bj_loss *loss, const bj_regularizers *r) {
    loss->sigreg = bj_sigreg_loss(r);
    bj_vicreg_loss(loss, r);
}

/* -------------------------------------------------------------------------------------- blocks */

size_t bj_blocks_size(const bj_regularizers *r, int rows) {
    const int blocks = (rows + BJ_REGULARIZER_ROWS - 1) / BJ_REGULARIZER_ROWS;
    return (size_t)blocks * r->k->packed_size(r->D, BJ_REGULARIZER_ROWS);
}

bj_real *bj_block_at(const bj_regularizers *r, bj_real *packed, int row) {
    return packed +
           (size_t)(row / BJ_REGULARIZER_ROWS) * r->k->packed_size(r->D, BJ_REGULARIZER_ROWS);
}

void bj_blocks_add(const bj_regularizers *r, bj_real *dx, size_t lddx, const bj_real *a, size_t lda,
                   bj_real *packed, int rows, int M) {
    for (int i = 0; i < rows; i += BJ_REGULARIZER_ROWS) {
        const int n = rows - i < BJ_REGULARIZER_ROWS ? rows - i : BJ_REGULARIZER_ROWS;
        r->k->gemm(dx, lddx, a + i, lda, bj_block_at(r, packed, i), NULL, NULL, 0, M, r->D, n,
                   BJ_GEMM_ADD);
    }
}
