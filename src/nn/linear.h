/* linear.h - y = x W^T + b with weights packed for the kernels, and its data gradient.
 *
 * Shapes  x (M,in)  W (out,in) as stored by PyTorch  b (out)  y (M,out)
 * The weight gradient is a sum over the batch. train/gradients.c computes it for all layers
 * together.
 */
#ifndef BJ_NN_LINEAR_H
#define BJ_NN_LINEAR_H

#include "kernels/kernels.h"

typedef struct bj_linear {
    const bj_real *w; /* (out,in) */
    const bj_real *b; /* (out), or NULL */
    int in, out;
    bj_real *forward;  /* packed W^T */
    bj_real *backward; /* packed W, or NULL if no data gradient is needed */
} bj_linear;

/* Returns the number of elements of one packed copy. */
static inline size_t bj_linear_packed_size(const bj_kernels *k, int in, int out) {
    const size_t a = k->packed_size(out, in), b = k->packed_size(in, out);
    return a > b ? a : b;
}

static inline void bj_linear_pack_forward(const bj_kernels *k, const bj_linear *l) {
    k->pack_nk(l->forward, l->w, (size_t)l->in, l->out, l->in);
}

static inline void bj_linear_pack_backward(const bj_kernels *k, const bj_linear *l) {
    k->pack_kn(l->backward, l->w, (size_t)l->in, l->in, l->out);
}

static inline void bj_linear_forward(const bj_kernels *k, bj_real *y, size_t ldy, const bj_real *x,
                                     size_t ldx, const bj_linear *l, int M, int flags) {
    k->gemm(y, ldy, x, ldx, l->forward, l->b, NULL, 0, M, l->out, l->in, flags);
}

/* Computes dx = dy W, with zeros where relu_output <= 0 unless relu_output is NULL. BJ_GEMM_ADD
 * adds to dx. */
static inline void bj_linear_backward(const bj_kernels *k, bj_real *dx, size_t lddx,
                                      const bj_real *dy, size_t lddy, const bj_real *relu_output,
                                      size_t ldr, const bj_linear *l, int M, int flags) {
    k->gemm(dx, lddx, dy, lddy, l->backward, NULL, relu_output, ldr, M, l->in, l->out, flags);
}

#endif
