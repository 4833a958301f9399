/* attention.h - one query over the tokens of a scene, with the token networks' second layers and
 * the key and value projections folded into the query and the pooled hidden rows.
 *
 * Two kinds of tokens s: x_t = W2_s r_t + b2_s. With U = [W2_n | W2_p | b2_n | b2_p] (E,W),
 * W = TH_n + TH_p + 2, every head g of width d has
 *   M_g = Wk_g U + bk_g on the last two columns,   N_g = Wv_g U           (d,W) each
 *   a_g = M_g^T q_g,   score_t = a_g[s] . r_t + a_g[TH_n + TH_p + s]      (q scaled by 1/sqrt d)
 *   h_g = [sum alpha r (neighbors) | sum alpha r (polylines) | sum alpha_n | sum alpha_p]
 *   pooled_g = N_g h_g + bv_g
 * so that keys and values are never formed. The functions here do the part between a and h, for
 * one scene; the products with M and N run over blocks of scenes in model/encoder.c.
 *
 * Shapes  a, h (G,W) rows ldt apart; r (S,TH) rows ldr apart; alpha (S,G)
 * Edge    a kind without tokens has S = 0; at least one of both must be present.
 * Paper   folded form of the context encoder        Test  tests/nn/test_attention.c
 */
#ifndef BJ_NN_ATTENTION_H
#define BJ_NN_ATTENTION_H

#include "kernels/kernels.h"

/* The tokens of one kind in one scene. */
typedef struct bj_tokens {
    const bj_real *r; /* (S,TH) hidden rows after ReLU */
    bj_real *alpha;   /* (S,G) attention weights, written by forward */
    bj_real *dr;      /* (S,TH) written by backward; may be NULL in forward */
    bj_real *dscore;  /* (S,G) scratch of backward */
    int S, TH;        /* TH 0: the kind has one token, always the same, which is its b2 */
} bj_tokens;

void bj_attention_forward(const bj_kernels *k, bj_real *h, const bj_real *a, size_t ldt,
                          const bj_tokens tokens[2], size_t ldr, int G);

/* Returns the entropy, in nats, of the attention weights of head g over the tokens of both kinds,
 * after forward. */
double bj_attention_entropy(const bj_tokens tokens[2], int g, int G);

/* da (G,W) and tokens[].dr from dh (G,W). dr already carries the ReLU's mask. */
void bj_attention_backward(const bj_kernels *k, bj_real *da, const bj_real *dh, const bj_real *a,
                           size_t ldt, const bj_tokens tokens[2], size_t ldr, int G);

#endif
