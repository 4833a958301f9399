/* attention.h - single-query attention over the tokens of a scene. The second layers of the token
 * networks and the key and value projections are folded into the query and the pooled hidden rows.
 *
 * There are two kinds of tokens s, with x_t = W2_s r_t + b2_s. Let U = [W2_n | W2_p | b2_n | b2_p]
 * (E,W) with W = TH_n + TH_p + 2. Every head g of width d has
 *   M_g = Wk_g U + bk_g on the last two columns,   N_g = Wv_g U           (d,W) each
 *   a_g = M_g^T q_g,   score_t = a_g[s] . r_t + a_g[TH_n + TH_p + s]      (q scaled by 1/sqrt d)
 *   h_g = [sum alpha r (neighbors) | sum alpha r (polylines) | sum alpha_n | sum alpha_p]
 *   pooled_g = N_g h_g + bv_g
 * so keys and values are never computed. The functions below compute h from a for one scene. The
 * products with M and N are computed for blocks of scenes in model/encoder.c.
 *
 * Shapes  a, h (G,W) with row stride ldt; r (S,TH) with row stride ldr; alpha (S,G)
 * Edge    S = 0 for a kind without tokens; at least one of the two kinds must have tokens.
 * Paper   folded form of the context encoder        Test  tests/nn/test_attention.c
 */
#ifndef BJ_NN_ATTENTION_H
#define BJ_NN_ATTENTION_H

#include "kernels/kernels.h"

/* Tokens of one kind in one scene. */
typedef struct bj_tokens {
    const bj_real *r; /* (S,TH) hidden rows after ReLU */
    bj_real *alpha;   /* (S,G) attention weights, written by forward */
    bj_real *dr;      /* (S,TH) written by backward; may be NULL in forward */
    bj_real *dscore;  /* (S,G) scratch for backward */
    int S, TH;        /* TH = 0 means a single constant token that equals b2 */
} bj_tokens;

void bj_attention_forward(const bj_kernels *k, bj_real *h, const bj_real *a, size_t ldt,
                          const bj_tokens tokens[2], size_t ldr, int G);

/* Returns the entropy, in nats, of head g's attention weights over the tokens of both kinds. Must
 * be called after forward. */
double bj_attention_entropy(const bj_tokens tokens[2], int g, int G);

/* Computes da (G,W) and tokens[].dr from dh (G,W). The ReLU mask is already applied to dr. */
void bj_attention_backward(const bj_kernels *k, bj_real *da, const bj_real *dh, const bj_real *a,
                           size_t ldt, const bj_tokens tokens[2], size_t ldr, int G);

#endif
