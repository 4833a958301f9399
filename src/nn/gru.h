/* gru.h - a GRU run over a block of rows, forward and backward through time.
 *
 *   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z likewise
 *   n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h,  h_0 = 0
 *
 * Gate order in memory is PyTorch's: r, z, n.
 * A row of `state` is [x (I) | 1 | pad | h (E)], so that one pass over it gives every gate, and one
 * weight gradient all parts of one; the pad rounds I + 1 up to 8.
 * A row of `gates` is [r | z | hn | n], hn = W_hn h + b_hn; backward turns it into the gradients
 * [dr | dz | dhn | din] of the sums before activation.
 *
 * Shapes  state (T+1,M,ld)  gates (T,M,ld)  x (M,T,I)
 * Test    tests/nn/test_gru.c
 */
#ifndef BJ_NN_GRU_H
#define BJ_NN_GRU_H

#include "kernels/kernels.h"

typedef struct bj_gru {
    const bj_real *w_ih, *w_hh, *b_ih, *b_hh; /* (3E,I) (3E,E) (3E) (3E) */
    int I, E;
    int lead;              /* I + 1 rounded up to 8: where h begins in a state row */
    bj_real *packed;       /* all of them in the order a step reads them */
    bj_real *recurrent;    /* packed W_hh for backward, or NULL */
} bj_gru;

static inline int bj_gru_lead(int I) { return (I + 8) / 8 * 8; }

void bj_gru_pack(const bj_kernels *k, const bj_gru *g);

/* Rows of step t start at state + t * state_step and gates + t * gates_step. Where gates is NULL
 * nothing is kept: `state` is then two sets of rows, state_step apart, that take turns. x rows are
 * ldx apart. Returns h after T steps, rows lds apart. */
const bj_real *bj_gru_forward(const bj_kernels *k, bj_real *state, size_t state_step, size_t lds,
                    bj_real *gates, size_t gates_step, size_t ldg, const bj_real *x, size_t ldx,
                    const bj_gru *g, int M, int T);

/* dh (M,E) is the gradient of the last state and is used up. */
void bj_gru_backward(const bj_kernels *k, bj_real *dh, size_t lddh, bj_real *gates,
                     size_t gates_step, size_t ldg, const bj_real *state, size_t state_step,
                     size_t lds, const bj_gru *g, int M, int T);

#endif
