/* trainer.h - the trainer's state and the parts of a training step.
 *
 * Everything that a step needs is in one memory block, which workspace.c
 * divides into arrays. Nothing is allocated after creation. A step runs in
 * rounds (step.c). Each round is a set of items that the workers process:
 *   prepare    pack the weights, fold the attention
 *   scenes     in order: encoders, regularizers, atoms, loss, atoms backward, encoder backward.
 *              The regularizers and the atoms (atoms.c) run on the whole batch, everything else on
 *              blocks of scenes.
 *   gradients  tiles of weight gradients, summed over the batch in the order of core/shards.h
 *   unfold     convert gradients of the folded matrices to gradients of the original weights
 *   update     norm, then clipping, AdamW and EMA over chunks of the parameter block, and Muon over
 *              its matrices
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

enum { BJ_CHUNK = 1 << 15 /* parameters per update item */ };

/* One weight gradient: c (M,N) = sum over rows of dy^T x. If x is NULL, it is a bias gradient. */
typedef struct bj_gradient_job {
    bj_real *c;
    size_t ldc;
    const bj_real *dy, *x;
    size_t lddy, ldx;
    const bj_rows *rows;
    int M, N;
    int tiles; /* number of items in the job */
} bj_gradient_job;

/* A contiguous range of the parameters of one tensor that has a gradient. */
typedef struct bj_chunk {
    size_t offset, size;
    int index;             /* position in parameter order */
    const bj_param *steps; /* conditioned training: set if the chunk is a whole tensor of scale
                              STEPS; otherwise NULL */
    int scaled;            /* 1 if bj_trainer.sigma contains sigma for these elements */
    int muon;              /* 1 if muon.c updates these elements */
} bj_chunk;

/* One matrix that Muon updates. */
typedef struct bj_muon_matrix {
    size_t offset;
    int rows, columns;
} bj_muon_matrix;

/* Row ranges in the batch for each kind of layer. They are rebuilt for every batch. */
typedef struct bj_row_plans {
    bj_rows scenes;        /* one row per scene */
    bj_rows decoder;       /* latents of all scenes, then their targets */
    bj_rows decoder_scene; /* one latent per scene, output-only models */
    bj_rows neighbors, polylines;
    bj_rows neighbor_bias; /* neighbors, then the zero neighbors */
    bj_rows time;          /* GRU steps */
    bj_rows keys_values;   /* rows of the key and value projections, independent of the batch */
    bj_rows heads;         /* factored encoder: scene heads, first those in ds and h, then those in
                              p and da */
    bj_rows observer[BJ_OBSERVER_LAYERS]; /* rows of states and images, per layer */
    bj_rows winner[BJ_MAX_ATOMS]; /* hard objectives: scenes won by each latent */
} bj_row_plans;

/* Scratch memory of one worker. */
typedef struct bj_worker_scratch {
    bj_real *features;         /* (BLOCK,F,7) future view */
    bj_encoder_block target;   /* activations of the target view */
    bj_real *inverse;          /* (BLOCK) */
    bj_real *dh;               /* (BLOCK,G,W) */
    bj_real *compact[3];       /* (max_batch,ldk) hard objectives; see bj_network_block, atoms.c */
    int *rows;                 /* (2,max_batch) hard objectives */
    bj_real *slice;            /* size bj_atoms_scratch */
    bj_real *dscore[2];
    bj_real *gradient;         /* size BJ_GRADIENT_SCRATCH */
    bj_real *muon;             /* size bj_muon_scratch */
} bj_worker_scratch;

struct bj_trainer {
    bj_model *model;
    const bj_kernels *k;       /* kernels in the precision of the run; k->single is for products
                                  that stay in single precision */
    bj_pool *pool;
    bj_precision precision;
    bj_objective objective;
    bj_optim optim;
    unsigned reach;
    int max_batch, steps;      /* steps: T of the trained encoder */
    long step;                 /* number of updates done */

    bj_encoder online, target;
    bj_network network;

    bj_real *memory;           /* memory block that contains the arrays below */
    bj_real *target_weights;   /* (encoder_size) */
    bj_real *gradients;        /* (layout.size) */
    bj_real *weights;          /* (layout.size) weights at which gradients are computed:
                                  model->weights, or the point y of schedule_free.c */
    bj_real *mean, *variance;  /* (layout.size) AdamW; mean is z of schedule_free.c */
    bj_real *sigma;            /* (layout.size) conditioned training: sigma
                                  of scaled chunks; else NULL */

    bj_encoder_block encoder;  /* arrays for the whole batch; the arrays of a block of scenes are
                                  views into them */
    bj_network_block head;
    bj_real *inverse_z;        /* (max_batch) anchor stage A, floors */
    bj_real *unit, *dunit;     /* (max_batch,D) floors: normalized contexts, row stride head.ldu */
    bj_regularizers regularizers; /* used if io.regularizers is set */
    bj_real *raw;              /* (max_batch,D) latents before normalization, row stride head.ldu.
                                  Used only in stage A of the anchor with regularizers, because it
                                  normalizes in place. */
    uint64_t seed;             /* for the variational model's noise and SIGReg's directions */
    bj_real *dfolded;          /* (2E,W) */
    bj_real *dgates;           /* (3E,lead+E) dr, dz, dhn times state rows */
    bj_real *dinput;           /* (I+1,E) [x | 1] times din */
    bj_real *dresidual_scale;  /* (K,F) output-only */
    bj_objective_io io;
    bj_worker_scratch *scratch; /* (threads) */

    bj_row_plans plans;
    int *plan_memory, *winner_memory; /* winner_memory points into plan_memory */
    bj_gradient_job *jobs;     /* jobs of the current round */
    int job_count;
    int *share;                /* (threads + 1) first item of each worker in the current round */
    bj_chunk *chunks;
    double *chunk_sums;
    int chunk_count, *chunk_share; /* (threads + 1) first chunk of each worker */
    bj_adamw_coefficients adamw;
    bj_muon_matrix *muon;      /* (muon_count) largest first */
    int muon_count;
    double lr;                 /* learning rate of the current update */
    double highest_lr, weight_sum, average_share; /* schedule_free.c */

    bj_gathered batch;         /* batch of the current step */
    const bj_scene *scenes;    /* source of the batch, valid during a call */
    const bj_pair *pairs;      /* pointers to the caller's states and images, which are not copied;
                                  valid during a call */
    int *block_begin;          /* (blocks + 1) */
    int *block_share;          /* (threads + 1) first block of each worker */
    atomic_int bad_scene;      /* first scene with a non-finite input, INT_MAX if none */
    bj_profile profile;
};

size_t bj_workspace_init(bj_trainer *t, bj_arena *arena);

/* Return views of the arrays for scenes [b0,b1). */
bj_encoder_block bj_trainer_encoder_block(const bj_trainer *t, int b0, int b1, int worker);
bj_network_block bj_trainer_network_block(const bj_trainer *t, int b0, int b1, int worker);

/* Returns 1 if the trained encoder reads states or images instead of scenes. */
static inline int bj_trainer_observes(const bj_trainer *t) {
    return t->model->arch.encoder != BJ_ENCODER_SCENE;
}

/* atoms.c: the forward pass computes u before normalization from the contexts; the backward pass
 * computes datom_hidden and dcontext from du. */
size_t bj_atoms_scratch(const bj_trainer *t);
void bj_atoms_forward(bj_trainer *t);
void bj_atoms_backward(bj_trainer *t);

/* gradients.c */
size_t bj_plans_size(const bj_trainer *t); /* number of ints */
int bj_jobs_most(const bj_trainer *t);
void bj_plans_build(bj_trainer *t);
void bj_gradients_run(bj_trainer *t); /* runs rounds `gradients` and `unfold` */

/* update.c: bj_gradient_norm converts the gradients to gradients with respect to theta, which
 * bj_update_run reads. */
int bj_chunks_count(const bj_trainer *t);
void bj_chunks_build(bj_trainer *t);
double bj_gradient_norm(bj_trainer *t);
void bj_update_run(bj_trainer *t, double lr, double norm);
/* Returns 1 if the tensors of a part have a gradient under this objective. */
int bj_trainer_reaches(const bj_trainer *t, bj_param_part part);
/* Returns 1 if the moving-average target follows the encoder. The anchor stages keep it fixed. */
int bj_trainer_target_follows(const bj_trainer *t);

/* muon.c: bj_muon_build lists the matrices, or only counts them if t->muon is NULL. bj_muon_run
 * updates the matrices and their target. */
int bj_muon_build(bj_trainer *t);
size_t bj_muon_scratch(const bj_trainer *t);
void bj_muon_run(bj_trainer *t);

/* schedule_free.c: start sets y and z before the first update, restore computes y after loading,
 * weigh computes the share of z in the average, and update changes one chunk; `scratch` has
 * BJ_GRADIENT_SCRATCH elements. */
void bj_schedule_free_start(bj_trainer *t);
void bj_schedule_free_restore(bj_trainer *t);
void bj_schedule_free_weigh(bj_trainer *t);
void bj_schedule_free_update(bj_trainer *t, const bj_chunk *c, bj_real *scratch);

#endif
