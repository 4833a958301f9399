/* objective.h - what every training objective reads and writes.
 *
 * A step calls, in this order:
 *   bj_objective_scenes_forward   for ranges of scenes, in any order, from any thread
 *   bj_objective_couple           once, serial: what ties the scenes of a batch together
 *   bj_objective_scenes_backward  for ranges of scenes, in any order, from any thread
 *   bj_objective_finish           once, serial: batch means and gradients of the mixture scales
 * Objectives without coupling allow forward and backward of a range back to back.
 * Nothing here allocates; per-scene results land in rows of the scene, so that the bits do not
 * depend on how ranges are handed out. Sums over the batch follow core/shards.h.
 */
#ifndef BJ_OBJECTIVE_OBJECTIVE_H
#define BJ_OBJECTIVE_OBJECTIVE_H

#include "core/real.h"
#include "objective/regularizers.h"

/* Parts of the network an objective may reach; what is not reached is not updated at all. */
enum {
    BJ_REACH_ENCODER = 1,
    BJ_REACH_ATOMS = 2,
    BJ_REACH_ROUTER = 4,
    BJ_REACH_DECODER = 8,   /* for the output-only control: trunk and base head */
    BJ_REACH_RESIDUAL = 16, /* output-only residual heads and their scales */
    BJ_REACH_SCALE_Z = 32,
    BJ_REACH_SCALE_Y = 64
};
unsigned bj_objective_reach(const bj_objective *objective, const bj_arch *arch);

/* True when one latent of every scene has a gradient and the others have none: io->winner. */
int bj_objective_is_hard(const bj_objective *objective);

/* True when a scene's gradient depends on the other scenes of its batch. */
int bj_objective_is_coupled(const bj_objective *objective);

/* Per-scene terms, unweighted, in the order of this enum. */
enum { BJ_TERM_LATENT, BJ_TERM_DECODED, BJ_TERM_REC, BJ_TERM_ROUTER, BJ_TERM_KL, BJ_TERMS };

typedef struct bj_objective_io {
    int B, K, L, D, F;       /* L = number of latents: K, or 1 for the output-only control; F = 0:
                                nothing is decoded, and winners are those of the latents */
    int V;                   /* width of the variational model's variable */
    size_t ldu;              /* stride of latent rows: u, z, du, dz */
    size_t ldy;              /* stride of trajectory rows: y, rec, dy, drec */
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
    const bj_real *unit;     /* (B,D) normalized contexts, rows ldu apart: floors */
    const bj_real *prior, *posterior; /* (B,2V) means, then log standard deviations */
    /* gradients of the total, overwritten row by row; a NULL or unreached one is left alone */
    bj_real *du;             /* (B,L,D) */
    bj_real *dlogits;        /* (B,K) */
    bj_real *dy;             /* (B,K,2F) */
    bj_real *drec;           /* (B,2F) */
    bj_real *dz;             /* (B,D) anchor stage A only */
    bj_real *dlog_sz, *dlog_sy; /* shapes of log_sz, log_sy */
    bj_real *dunit;          /* (B,D) floors */
    bj_real *dprior, *dposterior; /* (B,2V) of the KL term alone */
    /* per-scene results */
    double *terms;           /* (B,BJ_TERMS) */
    bj_real *pi;             /* (B,K) weights: softmax of the logits, or 1/K */
    int *winner;             /* (B) of hard objectives; may be NULL */
    /* scratch that lives from forward to finish */
    double *dist;            /* (B,K) decoded distances, then the plan (Sinkhorn) */
    double *resp_z, *resp_y; /* (B,K) mixture responsibilities */
    double *usage;           /* (K) mean weights (usage KL) */
    double *moments;         /* bj_objective_moments_size() doubles (anchor stage A) */
    double *time_weight;     /* (F) beta^t / sum beta^t, filled by bj_objective_begin */
    const bj_regularizers *regularizers; /* after its rounds, or NULL if none is active */
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
