/* network.c - see network.h. */
#include "model/network.h"

#include <string.h>

#include "core/blocks.h"
#include "nn/normalize.h"
#include "nn/rows.h"

static bj_linear find_linear(const bj_layout *layout, const bj_real *weights, bj_param_id w,
                             bj_param_id b, int index) {
    const bj_param *p = &layout->params[layout->first[w] + index];
    return (bj_linear){.w = weights + p->offset,
                       .b = weights + bj_layout_offset(layout, b, index),
                       .in = p->shape[1],
                       .out = p->shape[0]};
}

static bj_linear take_linear(bj_arena *arena, const bj_kernels *k, const bj_layout *layout,
                             const bj_real *weights, bj_param_id w, bj_param_id b, int index,
                             int training) {
    bj_linear l = find_linear(layout, weights, w, b, index);
    l.forward = bj_arena_take(arena, bj_linear_packed_size(k, l.in, l.out));
    if (training) l.backward = bj_arena_take(arena, bj_linear_packed_size(k, l.in, l.out));
    return l;
}

static void take_decoder(bj_network *n, bj_arena *arena, const bj_layout *layout,
                         const bj_real *weights, int training) {
    const int branch = n->arch->kind == BJ_MODEL_BRANCH;
#define TAKE(w, b) take_linear(arena, n->k, layout, weights, BJ_P_##w, BJ_P_##b, 0, training)
    n->decoder_in = branch ? TAKE(DECODER_W1, DECODER_B1) : TAKE(TRUNK_W, TRUNK_B);
    n->decoder_out = branch ? TAKE(DECODER_W2, DECODER_B2) : TAKE(BASE_W, BASE_B);
#undef TAKE
}

void bj_network_init_decoder(bj_network *n, bj_arena *arena, const bj_kernels *k,
                             const bj_arch *arch, const bj_layout *layout,
                             const bj_real *weights) {
    *n = (bj_network){.arch = arch, .k = k};
    if (arch->fut) take_decoder(n, arena, layout, weights, 0);
}

void bj_network_init(bj_network *n, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                     const bj_layout *layout, const bj_real *weights, int training) {
    const int branch = arch->kind == BJ_MODEL_BRANCH || arch->kind == BJ_MODEL_FUSED;
    const int variational = arch->kind == BJ_MODEL_VARIATIONAL;
    const int one = variational || arch->kind == BJ_MODEL_CODEBOOK;
    *n = (bj_network){.arch = arch,
                      .k = k,
                      .L = branch ? arch->atoms : 1,
                      .K = one ? 1 : arch->atoms};
#define TAKE(w, b, i) take_linear(arena, k, layout, weights, BJ_P_##w, BJ_P_##b, i, training)
    if (variational) {
        n->prior_in = TAKE(PRIOR_W1, PRIOR_B1, 0);
        n->prior_out = TAKE(PRIOR_W2, PRIOR_B2, 0);
        n->posterior_in = TAKE(POSTERIOR_W1, POSTERIOR_B1, 0);
        n->posterior_out = TAKE(POSTERIOR_W2, POSTERIOR_B2, 0);
        n->atom_in[0] = TAKE(GENERATOR_W1, GENERATOR_B1, 0);
        n->atom_out[0] = TAKE(GENERATOR_W2, GENERATOR_B2, 0);
    }
    for (int i = 0; i < n->L && !variational && !training; i++) {
        n->atom_in[i] = branch ? TAKE(ATOM_W1, ATOM_B1, i) : TAKE(ONE_W1, ONE_B1, 0);
        n->atom_out[i] = branch ? TAKE(ATOM_W2, ATOM_B2, i) : TAKE(ONE_W2, ONE_B2, 0);
    }
    for (int i = 0; i < n->L && !variational && training; i++) { /* train/atoms.c packs the
                                                                    weights */
#define FIND(w, b, i) find_linear(layout, weights, BJ_P_##w, BJ_P_##b, i)
        n->atom_in[i] = branch ? FIND(ATOM_W1, ATOM_B1, i) : FIND(ONE_W1, ONE_B1, 0);
        n->atom_out[i] = branch ? FIND(ATOM_W2, ATOM_B2, i) : FIND(ONE_W2, ONE_B2, 0);
#undef FIND
    }
    if (layout->first[BJ_P_ROUTER_W1] >= 0) {
        n->router_in = TAKE(ROUTER_W1, ROUTER_B1, 0);
        n->router_out = TAKE(ROUTER_W2, ROUTER_B2, 0);
    }
    if (arch->fut) take_decoder(n, arena, layout, weights, training);
    if (arch->kind == BJ_MODEL_OUTPUT_ONLY) {
        for (int i = 0; i < arch->atoms; i++) n->residual[i] = TAKE(RESIDUAL_W, RESIDUAL_B, i);
        n->step_scale = weights + bj_layout_offset(layout, BJ_P_STEP_SCALE, 0);
        n->segment_scale = weights + bj_layout_offset(layout, BJ_P_SEGMENT_SCALE, 0);
    }
#undef TAKE
}

/* Returns the i-th linear layer, or NULL past the end. */
static const bj_linear *layer(const bj_network *n, int i) {
    if (i < n->L) return &n->atom_in[i];
    if ((i -= n->L) < n->L) return &n->atom_out[i];
    i -= n->L;
    if (n->decoder_in.out) {
        if (i == 0) return &n->decoder_in;
        if (i == 1) return &n->decoder_out;
        i -= 2;
    }
    if (n->prior_in.out) {
        const bj_linear *const more[] = {&n->prior_in, &n->prior_out, &n->posterior_in,
                                         &n->posterior_out};
        if (i < 4) return more[i];
        i -= 4;
    }
    if (n->router_in.out) {
        if (i == 0) return &n->router_in;
        if (i == 1) return &n->router_out;
        i -= 2;
    }
    return n->step_scale && i < n->arch->atoms ? &n->residual[i] : NULL;
}

int bj_network_prepare_items(const bj_network *n) {
    int items = 0;
    while (layer(n, items)) items++;
    return 2 * items;
}

void bj_network_prepare(const bj_network *n, int item) {
    const bj_linear *l = layer(n, item / 2);
    if (item % 2 == 0 && l->forward) bj_linear_pack_forward(n->k, l);
    if (item % 2 == 1 && l->backward) bj_linear_pack_backward(n->k, l);
}

/* ------------------------------------------------------------------------------------- forward */

static bj_real residual_scale(const bj_network *n, int k, int t) {
    const int F = n->arch->fut;
    return n->step_scale[k * F + t] *
           n->segment_scale[k * (F / BJ_SEGMENT_STEPS) + t / BJ_SEGMENT_STEPS];
}

void bj_network_add_residual(const bj_network *n, bj_real *y, const bj_real *base,
                             const bj_real *residual, int k) {
    for (int t = 0; t < n->arch->fut; t++) {
        const bj_real scale = residual_scale(n, k, t);
        for (int c = 2 * t; c < 2 * t + 2; c++) y[c] = base[c] + scale * residual[c];
    }
}

static void add_residuals(const bj_network *n, const bj_network_block *b) {
    const int K = n->arch->atoms;
    for (int i = 0; i < K; i++)
        bj_linear_forward(n->k, b->residual + (size_t)i * b->ldy, (size_t)K * b->ldy,
                          b->decoder_hidden, b->ldd, &n->residual[i], b->M, 0);
    for (int m = 0; m < b->M; m++) {
        const bj_real *base = b->base + (size_t)m * b->ldy;
        for (int i = 0; i < K; i++) {
            const size_t row = ((size_t)m * K + (size_t)i) * b->ldy;
            bj_network_add_residual(n, b->y + row, base, b->residual + row, i);
        }
    }
}

void bj_network_atom(const bj_network *n, const bj_network_block *b, int i, bj_real *hidden,
                     size_t lda, bj_real *u, size_t ldu) {
    bj_linear_forward(n->k, hidden, lda, b->context, b->ldc, &n->atom_in[i], b->M, BJ_GEMM_RELU);
    bj_linear_forward(n->k, u, ldu, hidden, lda, &n->atom_out[i], b->M, 0);
}

void bj_network_route(const bj_network *n, const bj_network_block *b) {
    if (n->router_in.out) {
        bj_linear_forward(n->k, b->router_hidden, b->ldr, b->context, b->ldc, &n->router_in, b->M,
                          BJ_GEMM_RELU);
        bj_linear_forward(n->k, b->logits, (size_t)n->K, b->router_hidden, b->ldr,
                          &n->router_out, b->M, 0);
    } else {
        memset(b->logits, 0, (size_t)b->M * sizeof *b->logits); /* K = 1 */
    }
}

void bj_network_decode(const bj_network *n, const bj_network_block *b, int rows) {
    bj_linear_forward(n->k, b->decoder_hidden, b->ldd, b->u, b->ldu, &n->decoder_in, b->M * rows,
                      BJ_GEMM_RELU);
    bj_linear_forward(n->k, n->step_scale ? b->base : b->y, b->ldy, b->decoder_hidden, b->ldd,
                      &n->decoder_out, b->M * rows, 0);
    if (n->step_scale) add_residuals(n, b);
}

void bj_network_read(const bj_network *n, const bj_network_block *b) {
    if (!n->prior_in.out)
        bj_normalize_forward(b->u, b->ldu, b->inverse, b->M * n->L, n->arch->latent);
    bj_network_route(n, b);
    if (n->decoder_in.out) bj_network_decode(n, b, n->L);
}

void bj_network_reconstruct(const bj_network *n, const bj_network_block *b) {
    bj_linear_forward(n->k, b->z_hidden, b->ldd, b->z, b->ldu, &n->decoder_in, b->M, BJ_GEMM_RELU);
    bj_linear_forward(n->k, b->rec, b->ldy, b->z_hidden, b->ldd, &n->decoder_out, b->M, 0);
}

/* ------------------------------------------------------------------------------------ backward */

/* forward: y_k = base + scale_k * residual_k */
static void split_residuals(const bj_network *n, const bj_network_block *b) {
    const int K = n->arch->atoms, F = n->arch->fut;
    for (int m = 0; m < b->M; m++) {
        bj_real *dbase = b->dbase + (size_t)m * b->ldy;
        memset(dbase, 0, 2 * (size_t)F * sizeof *dbase);
        for (int i = 0; i < K; i++) {
            const size_t row = ((size_t)m * K + (size_t)i) * b->ldy;
            for (int t = 0; t < F; t++) {
                const bj_real scale = residual_scale(n, i, t);
                bj_real ds = 0;
                for (int c = 2 * t; c < 2 * t + 2; c++) {
                    dbase[c] += b->dy[row + c];
                    b->dresidual[row + c] = b->dy[row + c] * scale;
                    ds += b->dy[row + c] * b->residual[row + c];
                }
                b->dscale[(size_t)m * b->lds + (size_t)(i * F + t)] = ds;
            }
        }
    }
}

int bj_network_compact_width(const bj_arch *a) {
    const int widths[] = {a->latent + a->action, 2 * a->fut, a->atom_hidden, a->decoder_hidden};
    int most = 0;
    for (int i = 0; i < 4; i++) most = widths[i] > most ? widths[i] : most;
    return most;
}

/* Backpropagates through the decoder, only for the rows of the winners. Fills ddecoder_hidden and
 * adds to du. */
static void winners_decoded(const bj_network *n, const bj_network_block *b, const int *rows,
                            unsigned from) {
    bj_real *in = b->compact[0], *mask = b->compact[1], *out = b->compact[2];
    const int H = n->decoder_in.out, D = n->arch->latent, M = b->M;
    bj_rows_gather(in, b->ldk, b->dy, b->ldy, rows, M, n->decoder_out.out);
    bj_rows_gather(mask, b->ldk, b->decoder_hidden, b->ldd, rows, M, H);
    bj_linear_backward(n->k, out, b->ldk, in, b->ldk, mask, b->ldk, &n->decoder_out, M, 0);
    bj_rows_scatter(b->ddecoder_hidden, b->ldd, rows, out, b->ldk, M, H);
    bj_rows_gather(in, b->ldk, b->du, b->ldu, rows, M, D);
    bj_linear_backward(n->k, in, b->ldk, out, b->ldk, NULL, 0, &n->decoder_in, M,
                       from & BJ_FROM_LATENT ? BJ_GEMM_ADD : 0);
    bj_rows_scatter(b->du, b->ldu, rows, in, b->ldk, M, D);
}

/* The result is bit-identical to a pass over all latents, because the gradients of all other rows
 * are zero. */
static void winners_backward(const bj_network *n, const bj_network_block *b, unsigned from) {
    int row[BJ_BLOCK];
    for (int m = 0; m < b->M; m++) row[m] = m * n->L + b->winner[m];
    if (from & BJ_FROM_DECODED) winners_decoded(n, b, row, from);
    for (int m = 0; m < b->M; m++) {
        const size_t at = (size_t)row[m] * b->ldu;
        bj_normalize_backward(b->du + at, b->ldu, b->u + at, b->inverse + row[m], 1,
                              n->arch->latent);
    }
}

static void decoded_backward(const bj_network *n, const bj_network_block *b, unsigned from) {
    /* forward: y = decoder(u) */
    const bj_kernels *k = n->k;
    const int L = n->L, M = b->M, K = n->K;
    bj_real *dy = b->dy;
    if (n->step_scale) {
        split_residuals(n, b);
        dy = b->dbase;
    }
    /* Masking the last term is enough, because all terms of the sum have the same mask. */
    bj_linear_backward(k, b->ddecoder_hidden, b->ldd, dy, b->ldy, b->decoder_hidden, b->ldd,
                       &n->decoder_out, M * L, 0);
    for (int i = 0; n->step_scale && i < K; i++)
        bj_linear_backward(k, b->ddecoder_hidden, b->ldd, b->dresidual + (size_t)i * b->ldy,
                           (size_t)K * b->ldy, b->decoder_hidden, b->ldd, &n->residual[i], M,
                           BJ_GEMM_ADD);
    bj_linear_backward(k, b->du, b->ldu, b->ddecoder_hidden, b->ldd, NULL, 0, &n->decoder_in,
                       M * L, from & BJ_FROM_LATENT ? BJ_GEMM_ADD : 0);
}

void bj_network_latents_backward(const bj_network *n, const bj_network_block *b, unsigned from) {
    if (!(from & (BJ_FROM_LATENT | BJ_FROM_DECODED))) return;
    if (b->winner) {
        winners_backward(n, b, from);
        return;
    }
    if (from & BJ_FROM_DECODED) decoded_backward(n, b, from);
    bj_normalize_backward(b->du, b->ldu, b->u, b->inverse, b->M * n->L, n->arch->latent);
}

void bj_network_route_backward(const bj_network *n, const bj_network_block *b, int flags) {
    /* forward: logits = router(context) */
    bj_linear_backward(n->k, b->drouter_hidden, b->ldr, b->dlogits, (size_t)n->K, b->router_hidden,
                       b->ldr, &n->router_out, b->M, 0);
    bj_linear_backward(n->k, b->dcontext, b->ldc, b->drouter_hidden, b->ldr, NULL, 0,
                       &n->router_in, b->M, flags);
}

void bj_network_reconstruct_backward(const bj_network *n, const bj_network_block *b) {
    /* forward: rec = decoder(z) */
    bj_linear_backward(n->k, b->dz_hidden, b->ldd, b->drec, b->ldy, b->z_hidden, b->ldd,
                       &n->decoder_out, b->M, 0);
    if (b->dz)
        bj_linear_backward(n->k, b->dz, b->ldu, b->dz_hidden, b->ldd, NULL, 0, &n->decoder_in, b->M,
                           BJ_GEMM_ADD);
}
