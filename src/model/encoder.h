/* encoder.h - the context encoder for a block of scenes. For states and images see observer.h.
 *
 *   focal --GRU--> h ------------------------------+--> [h, o] --proj--> context
 *                  |query                          |
 *   neighbors --\  v                               |
 *                attention (folded) --> pooled --out--> o
 *   polylines --/
 *
 * bj_encoder holds one set of weights, prepared for the kernels. bj_encoder_block points to the
 * activations of M consecutive scenes. The same code is used for training (activations are kept for
 * the backward pass), for the target view and for prediction (activations are in scratch memory).
 *
 * Alphabet  M scenes per block, T steps, E embedding, G heads, d = E/G, TH token hidden width,
 *           W = 2 TH + 2 folded token width, D latent width
 *
 * The input of an encoder that is used only for futures has no neighbor except the zero neighbor,
 * whose token is the same for every scene. This token replaces b2_n, W2_n is left out, and W = TH +
 * 2.
 *
 * Folded or factored. A folded encoder computes M_g = Wk_g U and N_g = Wv_g U for every head g once
 * per set of weights. A factored encoder applies Wk_g, Wv_g and U one after the other, which costs
 * more per scene but has no fixed cost, so it is faster for training steps with few scenes. The two
 * forms differ only in rounding. The form of an encoder never changes.
 */
#ifndef BJ_MODEL_ENCODER_H
#define BJ_MODEL_ENCODER_H

#include "core/arena.h"
#include "model/observer.h"
#include "model/params.h"
#include "nn/gru.h"
#include "nn/linear.h"

enum { BJ_ENC_NEIGHBOR, BJ_ENC_POLYLINE, BJ_ENC_QUERY, BJ_ENC_OUT, BJ_ENC_PROJ_IN,
       BJ_ENC_PROJ_OUT, BJ_ENC_LINEARS };

typedef struct bj_encoder {
    const bj_arch *arch;
    const bj_kernels *k;
    int trained, factored;
    bj_gru gru;
    bj_linear linear[BJ_ENC_LINEARS];
    const bj_real *w2[2], *b2[2];   /* second layers of the token networks: (E,TH) (E) */
    const bj_real *kv_w, *kv_b;     /* (2E,E) (2E) key rows, then value rows */
    int NH, W;                      /* number of columns of U that belong to W2_n (TH or 0); total
                                       number of columns of U */
    size_t ldt;                     /* stride of rows of width W */
    bj_real *joined;                /* U (E,W): [W2_n | W2_p | b2_n | b2_p] */
    bj_real *joined_kn, *joined_nk; /* U packed, for folding and for its gradient */
    bj_real *folded;                /* (2E,W) M of all heads, then N of all heads; NULL if
                                       factored */
    bj_real *m_kn, *m_nk, *n_kn, *n_nk; /* (G) M and N packed per head; Wk and Wv if factored */
    size_t head_size;               /* stride between heads */
    bj_real *dummy;                 /* (TH) hidden row of the zero neighbor */
    bj_observer observer;           /* replaces all other fields for states and images */
} bj_encoder;

/* Connects the encoder to `weights`, which is a block of `layout` or its encoder prefix. `model` is
 * the whole block, which contains the input standardization. bj_encoder_prepare reads it. */
void bj_encoder_init(bj_encoder *e, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                     const bj_layout *layout, const bj_real *weights, const bj_real *model,
                     unsigned use);
/* Flags of `use`. */
enum { BJ_ENCODER_TRAINED = 1, BJ_ENCODER_OF_FUTURES = 2, BJ_ENCODER_FACTORED = 4 };
/* Returns BJ_ENCODER_FACTORED if the factored form needs fewer operations for a training step with
 * B scenes, otherwise 0. */
unsigned bj_encoder_form(const bj_arch *arch, int B);

/* Repacks the weights after a change. The rounds must run in order. The items of one round may run
 * in any order. */
int bj_encoder_prepare_items(const bj_encoder *e, int round);
void bj_encoder_prepare(const bj_encoder *e, int round, int item);
enum { BJ_ENCODER_ROUNDS = 2 };

/* Activations of a block of M scenes. Token rows are counted from the first scene of the block. */
typedef struct bj_encoder_block {
    int M, T;
    const bj_real *focal;           /* (M,T,7) */
    const bj_real *neighbors;       /* (rows,obs*7), NULL if every scene has only the zero
                                       neighbor */
    const int *neighbor_start;      /* (M+1) row numbers in the whole batch; the block starts at row
                                       neighbor_start[0] */
    const bj_real *polylines;       /* (rows,points*6) */
    const int *polyline_start;      /* (M+1) */
    /* for bj_gru_forward */
    bj_real *state, *gates;         /* gates is NULL if nothing is kept for the backward pass */
    size_t state_step, gates_step;  /* stride between time steps */
    size_t lds, ldg;
    /* tokens */
    bj_real *r[2];                  /* (rows,TH) row stride ldr */
    bj_real *alpha[2];              /* (rows,G) */
    bj_real *dummy_alpha;           /* (M,G) */
    size_t ldr;
    /* attention and projection, one row per scene */
    bj_real *q;                     /* (M,E) scaled query */
    bj_real *a, *h;                 /* (M,G,W) folded query, pooled hidden */
    bj_real *p, *s;                 /* (M,G,E) factored: Wk_g^T q_g, U h_g */
    bj_real *pooled;                /* (M,E) */
    bj_real *joint;                 /* (M,2E) [h_T | o] */
    bj_real *hidden;                /* (M,proj_hidden) */
    bj_real *context;               /* (M,D) */
    size_t lde, ldj, ldp, ldc;      /* strides of q and pooled, joint, hidden, context */
    /* gradients from the backward pass; the weight gradients are computed from them */
    bj_real *dr[2], *dummy_dr;      /* (rows,TH), (M,TH) zero if the scene has neighbors */
    bj_real *dq, *dpooled;          /* (M,E) */
    bj_real *da;                    /* (M,G,W) */
    bj_real *dp, *ds;               /* (M,G,E) factored */
    bj_real *djoint, *dhidden;      /* (M,2E) (M,proj_hidden) */
    bj_real *dh;                    /* (M,G,W) scratch */
    bj_real *dscore[2];             /* (rows of one scene,G) scratch */
    bj_observer_block observer;     /* states and images use only this field, M, context and ldc */
} bj_encoder_block;

/* Returns a block with only its strides set. */
bj_encoder_block bj_encoder_block_strides(const bj_arch *arch);
/* Allocates the rows that a forward pass over M scenes writes, except token rows and context. For a
 * trained encoder, da is allocated right after h, and p right after ds. The gradient of U is then
 * one sum over the rows of [ds; p] and [h; da], whose halves are M scenes apart. */
void bj_encoder_block_take(bj_encoder_block *b, bj_arena *arena, const bj_encoder *e, size_t M);
/* Allocates the GRU rows of M scenes for a forward pass without a backward pass. */
void bj_encoder_block_take_state(bj_encoder_block *b, bj_arena *arena, size_t M);

void bj_encoder_forward(const bj_encoder *e, const bj_encoder_block *b);
/* Returns the entropy of the attention weights of scene m in nats, averaged over the heads. Valid
 * after bj_encoder_forward. */
double bj_encoder_entropy(const bj_encoder *e, const bj_encoder_block *b, int m);
/* Computes all gradients of the block from dcontext (M,D), row stride ldc. */
void bj_encoder_backward(const bj_encoder *e, const bj_encoder_block *b, const bj_real *dcontext);

/* Converts future positions (M,F,2) to focal features (M,F,7). The velocity is the forward
 * difference divided by dt. The last step repeats the previous velocity. */
void bj_future_view(bj_real *features, const bj_real *future, int M, int F, double dt);

#endif
