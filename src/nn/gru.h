/* gru.h - a GRU run over a block of rows, forward and backward through time.
 *
 *   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z likewise
 *   n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h,  h_0 = 0
 *
 * Gate order in memory is PyTorch's: r, z, n.
 * A row of `state` is [x (I) | 1 | pad | h (E)], so that one product with [W_i | b | 0 | W_h] gives
 * a gate, and one weight gradient gives all of its parts; the pad rounds I + 1 up to 8.
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
    bj_real *joined;       /* (2E,lead+E) (E,pad+1+E) (E,I+1): rows before packing */
    bj_real *rz, *hn, *in; /* packed products of the three kinds of gates */
    bj_real *recurrent;    /* packed W_hh for backward, or NULL */
} bj_gru;

static inline int bj_gru_lead(int I) { return (I + 8) / 8 * 8; }

/* Elements of `joined`, and of all packed copies together. */
size_t bj_gru_joined_size(int I, int E);
void bj_gru_pack(const bj_kernels *k, const bj_gru *g);

/* Rows of step t start at state + t * state_step and gates + t * gates_step; a step of 0 keeps
 * nothing and works in place. x rows are ldx apart. h after T steps is in the state rows of step T,
 * at column `lead`. */
void bj_gru_forward(const bj_kernels *k, bj_real *state, size_t state_step, size_t lds,
                    bj_real *gates, size_t gates_step, size_t ldg, const bj_real *x, size_t ldx,
                    const bj_gru *g, int M, int T);

/* dh (M,E) is the gradient of the last state and is used up. */
void bj_gru_backward(const bj_kernels *k, bj_real *dh, size_t lddh, bj_real *gates,
                     size_t gates_step, size_t ldg, const bj_real *state, size_t state_step,
                     size_t lds, const bj_gru *g, int M, int T);

#endif
