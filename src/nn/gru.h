/* gru.h - GRU over a block of rows, forward and backward through time.
 *
 *   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z likewise
 *   n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h,  h_0 = 0
 *
 * The gate order in memory is r, z, n, as in PyTorch.
 *   state row   [x (I) | 1 | pad | h (E)], where the pad rounds I + 1 up to a multiple of 8
 *   gates row   [r | z | hn | n] with hn = W_hn h + b_hn
 * One pass over a state row computes every gate, and one weight gradient covers all parts of a
 * gate. Backward replaces a gates row with the gradients [dr | dz | dhn | din] of the
 * pre-activations.
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
    int lead;              /* I + 1 rounded up to a multiple of 8, the offset of h in a state row */
    bj_real *packed;       /* all weights in the order in which a step reads them */
    bj_real *recurrent;    /* packed W_hh for backward, or NULL */
} bj_gru;

static inline int bj_gru_lead(int I) { return (I + 8) / 8 * 8; }

void bj_gru_pack(const bj_kernels *k, const bj_gru *g);

/* Runs T steps and returns h after the last one, with row stride lds. The rows of step t start at
 * state + t * state_step and gates + t * gates_step. If gates is NULL, no intermediate values are
 * kept, and `state` has only two sets of rows, state_step apart, which are used alternately. The
 * row stride of x is ldx. */
const bj_real *bj_gru_forward(const bj_kernels *k, bj_real *state, size_t state_step, size_t lds,
                    bj_real *gates, size_t gates_step, size_t ldg, const bj_real *x, size_t ldx,
                    const bj_gru *g, int M, int T);

/* Runs all steps backward. dh (M,E) is the gradient of the last state and is overwritten. */
void bj_gru_backward(const bj_kernels *k, bj_real *dh, size_t lddh, bj_real *gates,
                     size_t gates_step, size_t ldg, const bj_real *state, size_t state_step,
                     size_t lds, const bj_gru *g, int M, int T);

#endif
