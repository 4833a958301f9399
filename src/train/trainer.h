/* trainer.h - what a training step works on.
 *
 * One block of memory for everything a step needs, cut by workspace.c; after creation nothing is
 * allocated. A step runs in rounds, each a set of items handed to the workers (step.c):
 *   prepare    pack the weights, fold the attention
 *   scenes     blocks of scenes, and the atoms of all of them (atoms.c) in between: encoders,
 *              atoms, loss, atoms backward, encoder backward; regularizers between the encoders
 *              and the encoder backward
 *   gradients  tiles of weight gradients, summed over the batch in the order of core/shards.h
 *   unfold     gradients of the folded matrices to those of the weights they came from
 *   update     norm, then clipping, AdamW and EMA over chunks of the parameter block
 */
#ifndef BJ_TRAIN_TRAINER_H
#define BJ_TRAIN_TRAINER_H

#include "core/arena.h"
#include "core/blocks.h"
#include "core/gather.h"
#include "core/threads.h"
#include "model/encoder.h"
#include "model/model.h"
#include "model/network.h"
#include "model/variational.h"
#include "objective/objective.h"

enum { BJ_CHUNK = 1 << 15 /* parameters of an update item */ };

/* One weight gradient: c (M,N) = sum over rows dy^T x; a bias gradient when x is NULL. */
typedef struct bj_gradient_job {
    bj_real *c;
    size_t ldc;
    const bj_real *dy, *x;
    size_t lddy, ldx;
    const bj_rows *rows;
    int M, N;
    int tiles; /* items of the job */
} bj_gradient_job;

/* A run of parameters of one reached tensor. */
typedef struct bj_chunk {
    size_t offset, size;
    int index;             /* in the order of the parameters */
    const bj_param *steps; /* whole tensor of scale STEPS in conditioned training; else NULL */
    int scaled;            /* 1: sigma of its elements is in bj_trainer.sigma */
} bj_chunk;

/* Rows of the batch as seen by the different layers; rebuilt for every batch. */
typedef struct bj_row_plans {
    bj_rows scenes;        /* one row a scene */
    bj_rows decoder;       /* latents of the scenes, then their targets */
    bj_rows decoder_scene; /* the same where a scene has one latent: output-only */
    bj_rows neighbors, polylines;
    bj_rows neighbor_bias; /* neighbors, then the zero neighbors */
    bj_rows time;          /* GRU steps */
    bj_rows keys_values;   /* rows of the key and value projections: not of the batch */
    bj_rows heads;         /* factored: heads of the scenes in ds and h, then in p and da */
    bj_rows observer[BJ_OBSERVER_LAYERS]; /* rows of states and images, by layer */
    bj_rows winner[BJ_MAX_ATOMS]; /* scenes of the batch that a latent won; hard objectives */
} bj_row_plans;

/* Scratch of one worker. */
typedef struct bj_worker_scratch {
    bj_real *features;         /* (BLOCK,F,7) future view */
    bj_encoder_block target;   /* activations of the target view */
    bj_real *inverse;          /* (BLOCK) */
    bj_real *dh;               /* (BLOCK,G,W) */
    bj_real *compact[3];       /* (max_batch,ldk) hard objectives: bj_network_block, atoms.c */
    int *rows;                 /* (2,max_batch) the same */
    bj_real *slice;            /* bj_atoms_scratch */
    bj_real *dscore[2];
    bj_real *gradient;         /* BJ_GRADIENT_SCRATCH */
} bj_worker_scratch;

struct bj_trainer {
    bj_model *model;
    const bj_kernels *k;
    bj_pool *pool;
    bj_objective objective;
    bj_optim optim;
    unsigned reach;
    int max_batch, steps;      /* steps: T of the trained encoder */
    long step;                 /* updates done */

    bj_encoder online, target;
    bj_network network;

    bj_real *memory;           /* the block everything below lies in */
    bj_real *target_weights;   /* (encoder_size) */
    bj_real *gradients;        /* (layout.size) */
    bj_real *mean, *variance;  /* (layout.size) AdamW */
    bj_real *sigma;            /* (layout.size) conditioned training, read in scaled chunks; or NULL */

    bj_encoder_block encoder;  /* whole-batch bases; a block of scenes is a view into them */
    bj_network_block head;
    bj_real *inverse_z;        /* (max_batch) anchor stage A, floors */
    bj_real *unit, *dunit;     /* (max_batch,D) normalized contexts, rows head.ldu apart: floors */
    bj_regularizers regularizers; /* used if io.regularizers is set */
    bj_real *raw;              /* (max_batch,D) latents before normalization, rows head.ldu apart:
                                  regularized anchor stage A, which normalizes in place */
    uint64_t seed;             /* of the variational model's noise and of SIGReg's directions */
    bj_real *dfolded;          /* (2E,W) */
    bj_real *dgates;           /* (3E,lead+E) gradients dr, dz, dhn by state rows */
    bj_real *dinput;           /* (I+1,E) [x | 1] by din */
    bj_real *dresidual_scale;  /* (K,F) output-only */
    bj_objective_io io;
    bj_worker_scratch *scratch; /* (threads) */

    bj_row_plans plans;
    int *plan_memory, *winner_memory; /* the second within the first */
    bj_gradient_job *jobs;     /* of the current round */
    int job_count;
    int *share;                /* (threads + 1) first item of every worker, of the current round */
    bj_chunk *chunks;
    double *chunk_sums;
    int chunk_count, *chunk_share; /* (threads + 1) first chunk of every worker */
    bj_adamw_coefficients adamw;

    bj_gathered batch;         /* of the current step */
    const bj_scene *scenes;    /* where it comes from, while a call lasts */
    const bj_pair *pairs;      /* the same for states and images, which are not copied */
    int *block_begin;          /* (blocks + 1) */
    int *block_share;          /* (threads + 1) first block of every worker */
    atomic_int bad_scene;      /* first scene with a non-finite input, INT_MAX if none */
    bj_profile profile;
};

size_t bj_workspace_init(bj_trainer *t, bj_arena *arena);

/* Views of scenes [b0,b1). */
bj_encoder_block bj_trainer_encoder_block(const bj_trainer *t, int b0, int b1, int worker);
bj_network_block bj_trainer_network_block(const bj_trainer *t, int b0, int b1, int worker);

/* Whether it trains an encoder of states or images. */
static inline int bj_trainer_observes(const bj_trainer *t) {
    return t->model->arch.encoder != BJ_ENCODER_SCENE;
}

/* atoms.c: u before normalization from the contexts; datom_hidden and dcontext from du. */
size_t bj_atoms_scratch(const bj_trainer *t);
void bj_atoms_forward(bj_trainer *t);
void bj_atoms_backward(bj_trainer *t);

/* gradients.c */
size_t bj_plans_size(const bj_trainer *t); /* ints */
int bj_jobs_most(const bj_trainer *t);
void bj_plans_build(bj_trainer *t);
void bj_gradients_run(bj_trainer *t); /* rounds `gradients` and `unfold` */

/* update.c; the norm turns gradients of weights into those of theta, which an update reads. */
int bj_chunks_count(const bj_trainer *t);
void bj_chunks_build(bj_trainer *t);
double bj_gradient_norm(bj_trainer *t);
void bj_update_run(bj_trainer *t, double lr, double norm);

#endif
