/* regularizers.h - SIGReg and VICReg: terms that keep the embeddings of a batch from collapsing.
 *
 * The embeddings x (B,D) are the online encoder's output before normalization. A step calls:
 *   bj_regularizers_begin     once, when x is complete
 *   bj_regularizers_round     for rounds 0 .. BJ_REGULARIZER_ROUNDS - 1; returns the item count
 *   bj_regularizers_item      for every item of a round, in any order, from any thread
 *   bj_regularizers_backward  for ranges of scenes, in any order, from any thread
 *   bj_regularizers_loss      once
 * Nothing here allocates. Sums over the batch follow core/shards.h, and every item writes its own
 * part of the results, so the bits do not depend on which thread computes an item.
 * Definitions and gradients: sigreg.c, vicreg.c, docs/layers/regularizers.md.
 * Test  tests/objective/test_regularizers.c, tests/objective/peer_regularizers.py
 */
#ifndef BJ_OBJECTIVE_REGULARIZERS_H
#define BJ_OBJECTIVE_REGULARIZERS_H

#include "core/arena.h"
#include "kernels/kernels.h"

enum { BJ_REGULARIZER_ROUNDS = 3, BJ_REGULARIZER_ROWS = 32 /* rows per packed block */ };

typedef struct bj_regularizers {
    const bj_kernels *k;
    const bj_objective *objective;
    int D, round;
    /* batch of this step */
    const bj_real *x; /* (B,D) row stride ldx */
    size_t ldx;
    int B;
    uint64_t seed;
    long step;
    int shard_begin[BJ_SHARDS], shard_count[BJ_SHARDS];
    /* number of SIGReg slices, rounded up to a multiple of the lanes */
    bj_real *direction;         /* (S,D) unit rows */
    bj_real *project, *unproject; /* directions, packed in blocks for x A and for its gradient */
    bj_real *projected;         /* (B,S) a'x, then its gradient; row stride lds */
    size_t lds;
    double *turn;               /* (S / lanes, B, 2, lanes) cos and sin of dt a'x */
    double *statistic;          /* (S) */
    /* VICReg */
    bj_real *centered;          /* (B,D) x minus its mean */
    bj_real *product;           /* (D,D) product of the centered batch with itself, later the factor
                                   of the gradient */
    bj_real *packed;            /* the rows of `product` packed in blocks */
    double *missing, *slope;    /* (D) variance hinge, and the factor of its gradient */
    double *squares;            /* (D) sum of squares of each row of `product`, without the
                                   diagonal */
} bj_regularizers;

/* Returns 1 if a term has a nonzero weight. */
int bj_regularizers_active(const bj_objective *objective);

/* Allocates the arrays of the active terms. `objective` must outlive `r`. */
void bj_regularizers_take(bj_regularizers *r, bj_arena *arena, const bj_kernels *k,
                          const bj_objective *objective, int max_batch, int D);

/* Starts a step. The directions of SIGReg depend only on `seed` and `step`. */
void bj_regularizers_begin(bj_regularizers *r, const bj_real *x, size_t ldx, int B, uint64_t seed,
                           long step);
int bj_regularizers_round(bj_regularizers *r, int round);
/* `scratch` has BJ_GRADIENT_SCRATCH elements and must not be shared with another thread. */
void bj_regularizers_item(bj_regularizers *r, int item, bj_real *scratch);

/* Adds the gradient of the weighted terms to rows [b0,b1) of a batch. dx points to row b0. */
void bj_regularizers_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1);

/* Fills the unweighted terms. */
void bj_regularizers_loss(bj_loss *loss, const bj_regularizers *r);

#endif
