/* predictor.h - a model prepared for prediction.
 *
 * Weights are packed and folded once. Batches run in blocks of scenes, one block per worker
 * (predictor.c). Batches of one or two scenes run scene by scene, with every product split over all
 * workers (predict_row.c), because the speed is then limited by reading the weights.
 */
#ifndef BJ_MODEL_PREDICTOR_H
#define BJ_MODEL_PREDICTOR_H

#include <limits.h>

#include "core/blocks.h"
#include "core/gather.h"
#include "core/threads.h"
#include "model/encoder.h"
#include "model/model.h"
#include "model/network.h"

enum {
    BJ_ROW_SCENES = 2,   /* max batch size for the row path, which runs scenes one by one */
    BJ_PREDICT_ROWS = 64 /* scenes per work item after the encoder */
};

/* The right-hand side of a matrix product in the row path. */
typedef struct bj_row_weights {
    const bj_real *packed, *bias;
    int in, out;
} bj_row_weights;

/* The weights of the row path, and the activations of its single scene. All workers share them. */
typedef struct bj_row_path {
    bj_row_weights linear[BJ_ENC_LINEARS];
    bj_row_weights m[256], n[256]; /* folded keys and values per head */
    bj_row_weights atom_in[BJ_MAX_ATOMS], atom_out[BJ_MAX_ATOMS], residual[BJ_MAX_ATOMS];
    bj_row_weights router_in, router_out, decoder_in, decoder_out;
    bj_real *row[2];                  /* (lead+E) state rows, used alternately */
    bj_real *r[2], *alpha[2];         /* (N,TH) (P,TH); (G,N) (G,P) */
    bj_real *q, *a, *h, *pooled;      /* (E) (G,W) (G,W) (E) */
    bj_real *joint, *hidden, *context; /* (2E) (proj_hidden) (D) */
    bj_real *atom_hidden, *u, *inverse; /* (L,atom_hidden) (L,D) (L) */
    bj_real *router_hidden, *logits;
    bj_real *decoder_hidden, *base, *residual_y; /* (L,.) (L,2F) (K,2F) */
} bj_row_path;

/* Statistics of one scene's encoding. */
typedef struct bj_encoding {
    double entropy; /* entropy of the attention weights in nats, averaged over heads */
    double norm;    /* Euclidean norm of the context, which is not normalized */
} bj_encoding;

/* Activations of a block, one set per worker. */
typedef struct bj_predict_scratch {
    bj_gathered scenes;
    bj_encoder_block encoder;
    bj_network_block head;
} bj_predict_scratch;

struct bj_predictor {
    bj_arch arch;
    const bj_kernels *k;
    bj_pool *pool;
    int max_batch;
    bj_encoder encoder;
    bj_network network;
    bj_real *packed;  /* all packed arrays */
    bj_real *vectors; /* biases and residual scales */
    bj_real *memory;  /* activations */
    bj_real *codes; /* (K,D) for codebook models, otherwise NULL */
    bj_real *eps;   /* (K,V) for variational models, otherwise NULL */
    bj_row_path row;
    bj_predict_scratch *scratch; /* (threads) */
    bj_real *contexts; /* (max_batch,D) */
    int *block_begin;
    /* arguments of the current call */
    const bj_batch *batch;
    atomic_int bad_scene; /* first scene with a non-finite input, INT_MAX if none */
    bj_real *weights, *trajectories, *atoms;
    const bj_real *given; /* (B,D) contexts to use instead of observations, or NULL */
    bj_real *encoded;     /* (B,D) receives the contexts if it is not NULL; nothing else is computed
                             then */
    bj_encoding *encodings; /* (max_batch) written by bj_predict for scenes; may be NULL */
    int scene;      /* current scene of the row path */
    unsigned calls; /* scenes predicted by the row path so far */
    int alone;      /* number of upcoming calls for which a single worker is used */
    int patience;   /* value that `alone` is set to after the next disturbed call */
};

/* Returns the Euclidean norm of a context (D). */
double bj_context_norm(const bj_real *context, int D);

/* Predicts one scene. Called by every member of the team. */
void bj_predict_row(void *predictor, int member, int members);
/* Connects the row path to the packed weights. */
void bj_row_path_init(bj_predictor *p);
void bj_row_path_take(bj_predictor *p, bj_arena *arena);

/* Predicts pairs (predict_pairs.c). p->batch, p->weights and p->atoms must be set. */
BJ_CHECK bj_status bj_predict_pairs(bj_predictor *p, const bj_batch *batch, bj_error *err);
/* Computes the contexts (B,D) of observations, which are the input of the atoms and the router.
 * Contexts are not normalized. */
BJ_CHECK bj_status bj_predict_encode(bj_predictor *p, const bj_batch *batch, bj_real *contexts,
                                     bj_error *err);
/* Predicts from contexts (B,D) instead of observations: weights (B,K), atoms (B,L,D). */
BJ_CHECK bj_status bj_predict_contexts(bj_predictor *p, const bj_real *contexts, int B,
                                       bj_real *weights, bj_real *atoms, bj_error *err);
void bj_predict_pairs_take(bj_predict_scratch *s, bj_arena *arena, const bj_predictor *p,
                           int measuring);
/* Fills codes and eps. */
void bj_predict_pairs_fit(bj_predictor *p, const bj_model *model);

/* Computes the weights pi (K) from the logits, or 1/K if the architecture has uniform weights. */
void bj_weigh_row(bj_real *pi, const bj_real *logits, const bj_arch *arch);

#endif
