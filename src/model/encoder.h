/* encoder.h - the context encoder, for a block of scenes; for states and images see observer.h.
 *
 *   focal --GRU--> h ------------------------------+--> [h, o] --proj--> context
 *                  |query                          |
 *   neighbors --\  v                               |
 *                attention (folded) --> pooled --out--> o
 *   polylines --/
 *
 * bj_encoder holds one set of weights prepared for the kernels; bj_encoder_block points at the
 * activations of M consecutive scenes. The same code serves training (activations kept for
 * backward), the target view and prediction (activations in scratch).
 *
 * Alphabet  M scenes of a block, T steps, E embedding, G heads, d = E/G, TH token hidden,
 *           W = 2 TH + 2 folded token width, D latent
 *
 * An encoder of futures alone never meets a neighbor but the zero one, whose token is the same for
 * every scene: that stands in place of b2_n, W2_n is left out, and W = TH + 2.
 *
 * Folded or factored. Folding forms M_g = Wk_g U and N_g = Wv_g U for every head g once for a set of
 * weights. A factored encoder applies Wk_g, Wv_g and U one after the other instead, which costs more
 * for each scene but has no fixed cost, so it suits training steps of few scenes. The two forms
 * differ in rounding only. An encoder keeps its form.
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
    const bj_real *w2[2], *b2[2];   /* token networks' second layers: (E,TH) (E) */
    const bj_real *kv_w, *kv_b;     /* (2E,E) (2E): key rows, then value rows */
    int NH, W;                      /* columns of W2_n in U: TH, or 0; of all */
    size_t ldt;                     /* stride of rows that are W wide */
    bj_real *joined;                /* U (E,W): [W2_n | W2_p | b2_n | b2_p] */
    bj_real *joined_kn, *joined_nk; /* packed, for folding and for its gradient */
    bj_real *folded;                /* (2E,W): M of all heads, then N of all heads; or NULL */
    bj_real *m_kn, *m_nk, *n_kn, *n_nk; /* (G) M and N, factored Wk and Wv, packed per head */
    size_t head_size;               /* between heads */
    bj_real *dummy;                 /* (TH) hidden row of the zero neighbor */
    bj_observer observer;           /* all there is for states and images */
} bj_encoder;

/* Wires the encoder to the weights (a block of `layout`, or its encoder prefix). `model`: the whole
 * block, for the standardization of inputs; read when the encoder is prepared. */
void bj_encoder_init(bj_encoder *e, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                     const bj_layout *layout, const bj_real *weights, const bj_real *model,
                     unsigned use);
/* What it is used for. */
enum { BJ_ENCODER_TRAINED = 1, BJ_ENCODER_OF_FUTURES = 2, BJ_ENCODER_FACTORED = 4 };
/* Returns BJ_ENCODER_FACTORED if a training step of B scenes needs less arithmetic in that form. */
unsigned bj_encoder_form(const bj_arch *arch, int B);

/* Repacks after the weights changed: two rounds, items of a round in any order. */
int bj_encoder_prepare_items(const bj_encoder *e, int round);
void bj_encoder_prepare(const bj_encoder *e, int round, int item);
enum { BJ_ENCODER_ROUNDS = 2 };

/* Activations of M scenes. Rows of tokens are relative to the block's first scene. */
typedef struct bj_encoder_block {
    int M, T;
    const bj_real *focal;           /* (M,T,7) */
    const bj_real *neighbors;       /* (rows,obs*7), NULL: every scene has the zero neighbor */
    const int *neighbor_start;      /* (M+1) absolute; row 0 of the block is neighbor_start[0] */
    const bj_real *polylines;       /* (rows,points*6) */
    const int *polyline_start;      /* (M+1) */
    /* bj_gru_forward */
    bj_real *state, *gates;         /* gates NULL: nothing is kept */
    size_t state_step, gates_step;  /* between time steps */
    size_t lds, ldg;
    /* tokens */
    bj_real *r[2];                  /* (rows,TH) rows ldr apart */
    bj_real *alpha[2];              /* (rows,G) */
    bj_real *dummy_alpha;           /* (M,G) */
    size_t ldr;
    /* attention and projection, rows of scenes */
    bj_real *q;                     /* (M,E) scaled query */
    bj_real *a, *h;                 /* (M,G,W) folded query, pooled hidden */
    bj_real *p, *s;                 /* (M,G,E) factored: Wk_g^T q_g, U h_g */
    bj_real *pooled;                /* (M,E) */
    bj_real *joint;                 /* (M,2E) [h_T | o] */
    bj_real *hidden;                /* (M,proj_hidden) */
    bj_real *context;               /* (M,D) */
    size_t lde, ldj, ldp, ldc;      /* strides: q and pooled, joint, hidden, context */
    /* gradients, only for backward; kept for the weight gradients */
    bj_real *dr[2], *dummy_dr;      /* (rows,TH), (M,TH) zero where the scene has neighbors */
    bj_real *dq, *dpooled;          /* (M,E) */
    bj_real *da;                    /* (M,G,W) */
    bj_real *dp, *ds;               /* (M,G,E) factored */
    bj_real *djoint, *dhidden;      /* (M,2E) (M,proj_hidden) */
    bj_real *dh;                    /* (M,G,W) scratch */
    bj_real *dscore[2];             /* (rows of one scene,G) scratch */
    bj_observer_block observer;     /* states and images: this, M, context and ldc are all */
} bj_encoder_block;

/* A block with its strides set and nothing else. */
bj_encoder_block bj_encoder_block_strides(const bj_arch *arch);
/* Takes the rows of M scenes that every forward pass writes, token rows and context apart. For a
 * trained encoder takes da behind h, and p behind ds, so that the gradient of U is one sum over the
 * rows of [ds; p] and [h; da]; these lie M scenes apart. */
void bj_encoder_block_take(bj_encoder_block *b, bj_arena *arena, const bj_encoder *e, size_t M);
/* The GRU's rows of M scenes when nothing is kept for backward. */
void bj_encoder_block_take_state(bj_encoder_block *b, bj_arena *arena, size_t M);

void bj_encoder_forward(const bj_encoder *e, const bj_encoder_block *b);
/* Returns the entropy, in nats, of the attention weights of scene m after bj_encoder_forward,
 * averaged over the heads. */
double bj_encoder_entropy(const bj_encoder *e, const bj_encoder_block *b, int m);
/* dcontext (M,D), rows ldc apart. */
void bj_encoder_backward(const bj_encoder *e, const bj_encoder_block *b, const bj_real *dcontext);

/* Future positions (M,F,2) as focal features (M,F,7): forward difference / dt, last repeated. */
void bj_future_view(bj_real *features, const bj_real *future, int M, int F, double dt);

#endif
