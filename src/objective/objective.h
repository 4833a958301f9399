/* objective.h - inputs, outputs and call order of every training objective.
 *
 * A step calls, in this order:
 *   bj_objective_scenes_forward   for ranges of scenes, in any order, from any thread
 *   bj_objective_couple           once, serially: terms that depend on all scenes of a batch
 *   bj_objective_scenes_backward  for ranges of scenes, in any order, from any thread
 *   bj_objective_finish           once, serially: batch means and gradients of the mixture scales
 * For objectives without coupling, the backward call of a range may directly follow its forward
 * call. Nothing here allocates. The results of a scene are stored in the scene's own rows, so they
 * do not depend on how the scenes are divided into ranges. Sums over the batch follow
 * core/shards.h.
 */
#ifndef BJ_OBJECTIVE_OBJECTIVE_H
#define BJ_OBJECTIVE_OBJECTIVE_H

#include "core/real.h"
#include "objective/regularizers.h"

/* Parts of the network for which an objective has a gradient. Other parts are not updated. */
enum {
    BJ_REACH_ENCODER = 1,
    BJ_REACH_ATOMS = 2,
    BJ_REACH_ROUTER = 4,
    BJ_REACH_DECODER = 8,   /* for output-only models: trunk and base head */
    BJ_REACH_RESIDUAL = 16, /* output-only residual heads and their scales */
    BJ_REACH_SCALE_Z = 32,
    BJ_REACH_SCALE_Y = 64
};
unsigned bj_objective_reach(const bj_objective *objective, const bj_arch *arch);

/* Returns 1 if only one latent per scene has a gradient (io->winner). */
int bj_objective_is_hard(const bj_objective *objective);

/* Returns 1 if the gradient of a scene depends on the other scenes in its batch. */
int bj_objective_is_coupled(const bj_objective *objective);

/* Unweighted terms per scene, in the order of this enum. */
enum { BJ_TERM_LATENT, BJ_TERM_DECODED, BJ_TERM_REC, BJ_TERM_ROUTER, BJ_TERM_KL, BJ_TERMS };

typedef struct bj_objective_io {
    int B, K, L, D, F;       /* number of latents: K, or 1 for output-only models. If F = 0, nothing
                                is decoded, and latents determine the winners */
    int V;                   /* width of the variational model's Gaussian variable */
    size_t ldu;              /* row stride of latents: u, z, du, dz */
    size_t ldy;              /* row stride of trajectories: y, rec, dy, drec */
    /* predictions */
    const bj_real *u;        /* (B,L,D) normalized latents */
    const bj_real *logits;   /* (B,K) */
    const bj_real *y;        /* (B,K,2F) decoded */
    const bj_real *z;        /* (B,D) normalized target latent */
    const bj_real *rec;      /* (B,2F) decoded target */
    const bj_real *future;   /* (B,2F) contiguous */
    const bj_real *log_sz;   /* (K,D) or (1), NULL unless learned */
    const bj_real *log_sy;   /* (K,2F) or (1), NULL unless learned */
    bj_scales scales;
    const bj_real *unit;     /* (B,D) normalized contexts, row stride ldu, for the floors */
    const bj_real *prior, *posterior; /* (B,2V) means, then log standard deviations */
    /* Gradients of the total loss. Rows are overwritten. A gradient is skipped if it is NULL or if
     * the objective has no such gradient. */
    bj_real *du;             /* (B,L,D) */
    bj_real *dlogits;        /* (B,K) */
    bj_real *dy;             /* (B,K,2F) */
    bj_real *drec;           /* (B,2F) */
    bj_real *dz;             /* (B,D) anchor stage A only */
    bj_real *dlog_sz, *dlog_sy; /* shapes of log_sz, log_sy */
    bj_real *dunit;          /* (B,D) for the floors */
    bj_real *dprior, *dposterior; /* (B,2V) gradients of the KL term only */
    /* per-scene results */
    double *terms;           /* (B,BJ_TERMS) */
    bj_real *pi;             /* (B,K) weights: softmax of the logits, or 1/K */
    int *winner;             /* (B) for hard objectives; may be NULL */
    /* scratch, valid from forward to finish */
    double *dist;            /* (B,K) distances of decoded trajectories; replaced by the transport
                                plan for Sinkhorn */
    double *resp_z, *resp_y; /* (B,K) mixture responsibilities */
    double *usage;           /* (K) mean weights (usage KL) */
    double *moments;         /* bj_objective_moments_size() doubles (anchor stage A) */
    double *time_weight;     /* (F) beta^t / sum beta^t, filled by bj_objective_begin */
    const bj_regularizers *regularizers; /* filled before backward; NULL if no regularizer is
                                            active */
} bj_objective_io;

size_t bj_objective_moments_size(const bj_objective *objective, int B, int D);

void bj_objective_begin(const bj_objective *objective, bj_objective_io *io);
void bj_objective_scenes_forward(const bj_objective *objective, bj_objective_io *io, int b0,
                                 int b1);
void bj_objective_couple(const bj_objective *objective, bj_objective_io *io);
void bj_objective_scenes_backward(const bj_objective *objective, bj_objective_io *io, int b0,
                                  int b1);
bj_loss bj_objective_finish(const bj_objective *objective, bj_objective_io *io);

#endif
