/* parts.h - declarations shared by the files of this folder and called by objective.c.
 *
 * Each family of objectives has a forward and a backward function, which process scenes [b0,b1) of
 * a step. The forward function fills rows of io->terms. The backward function overwrites rows of
 * the gradients. Gradients include the term weights and the factor 1/B. The router weights io->pi
 * are filled before the family's forward function is called.
 */
#ifndef BJ_OBJECTIVE_PARTS_H
#define BJ_OBJECTIVE_PARTS_H

#include "core/shards.h"
#include "objective/objective.h"
#include "objective/points.h"

/* Effective term weights. A term that is not part of the objective has weight 0, regardless of the
 * settings. */
typedef struct bj_term_weights {
    double latent, decoded, rec, router, usage, kl;
} bj_term_weights;
bj_term_weights bj_objective_weights(const bj_objective *objective);

/* Returns bj_objective_reach for the sizes of a step. */
unsigned bj_objective_reach_step(const bj_objective *objective, const bj_objective_io *io);

/* router_weights.c */
void bj_router_weights(bj_real *pi, const bj_real *logits, int K); /* pi = softmax(logits) */
void bj_router_log_weights(double *log_pi, const bj_real *logits, int K);
/* Computes dlogits = pi_k (dpi_k - sum_l pi_l dpi_l). Overwrites dlogits. */
void bj_router_backward(bj_real *dlogits, const double *dpi, const bj_real *pi, int K);
double bj_log_sum_exp(const double *x, int n);
void bj_softmax(double *p, const double *x, int n); /* p may equal x */

/* energy_score.c: full set, uniform, output-only, anchor stage B */
double bj_energy_score_forward(const bj_points *points, const bj_real *pi);
void bj_energy_score_backward(bj_real *dx, double *dpi, double des, const bj_points *points,
                              const bj_real *pi);
void bj_energy_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);
void bj_energy_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);

/* winner.c: specialization, soft-WTA, Sinkhorn */
void bj_winner_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);
void bj_winner_couple(const bj_objective *objective, bj_objective_io *io);
void bj_winner_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);

/* sinkhorn.c: replaces cost (B,K) with the balanced plan, whose rows sum to 1 */
void bj_sinkhorn_plan(double *cost, int B, int K, double eps, int iters);

/* mixture.c: MDN */
void bj_mixture_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);
void bj_mixture_couple(bj_objective_io *io);
void bj_mixture_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);
void bj_mixture_finish(const bj_objective *objective, bj_objective_io *io);
/* Returns the usage penalty and fills the mean weights usage (K). */
double bj_mixture_usage(double *usage, const bj_real *logits, int B, int K);

/* reconstruction.c: smooth L1 of the decoded target */
void bj_reconstruction_forward(bj_objective_io *io, int b0, int b1);
void bj_reconstruction_backward(double weight, bj_objective_io *io, int b0, int b1);

/* moments.c: values in io->moments that anchor.c and floors.c keep between couple and finish */
enum {
    BJ_MOMENT_VARIANCE,
    BJ_MOMENT_RANK,
    BJ_MOMENT_PARTICIPATION,
    BJ_MOMENT_QUAD,
    BJ_MOMENT_SCALARS
};
typedef struct bj_moments {
    bj_real *c;      /* (B,D) batch minus its mean */
    bj_real *matrix; /* (side,side) covariances, or pairwise products */
    double *linear;  /* (D) a + lin */
    double *scalar;  /* (BJ_MOMENT_SCALARS) */
} bj_moments;
/* Results of bj_moments_columns for at most BJ_MOMENT_COLUMNS columns. */
enum { BJ_MOMENT_COLUMNS = 64 };
typedef struct bj_column_moments {
    double var[BJ_MOMENT_COLUMNS];     /* sum_b c^2 / divisor */
    double missing[BJ_MOMENT_COLUMNS]; /* relu(floor - sqrt(var + 1e-4)) */
    double slope[BJ_MOMENT_COLUMNS];   /* gradient of mean_d missing is slope * c */
} bj_column_moments;
/* Computes c = x - mean, where the mean is over the batch, for n of the D columns, and the moments
 * of c. */
void bj_moments_columns(bj_real *c, size_t ldc, bj_column_moments *m, const bj_real *x,
                        size_t stride, int B, int D, int n, double floor, double divisor);
size_t bj_moments_size(int B, int D, int side); /* in doubles */
bj_moments bj_moments_of(const bj_objective_io *io, int side);
/* Fills c, linear (including a) and the variance term. Returns T. x (B,D) has row stride
 * `stride`. */
double bj_moments_center(bj_moments m, const bj_real *x, size_t stride, int B, int D, double floor);
/* Computes the rank term and adds its gradient to linear. Divides quad by `unit`, the scale of the
 * matrix. */
void bj_moments_rank(bj_moments m, const bj_objective *objective, double T, double Q, int B, int D,
                     double unit);
void bj_moments_loss(bj_loss *loss, bj_moments m);

/* anchor.c: variance and rank floors of stage A */
size_t bj_anchor_size(int B, int D);
void bj_anchor_couple(const bj_objective *objective, bj_objective_io *io);
void bj_anchor_backward(bj_objective_io *io, int b0, int b1);
void bj_anchor_loss(bj_loss *loss, const bj_objective_io *io);

/* floors.c: variance and rank floors on the contexts, for objectives other than stage A */
size_t bj_floors_size(int B, int D);
void bj_floors_couple(const bj_objective *objective, bj_objective_io *io);
void bj_floors_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);
void bj_floors_loss(bj_loss *loss, const bj_objective_io *io);

/* fused.c */
void bj_fused_forward(bj_objective_io *io, int b0, int b1);
void bj_fused_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);

/* variational.c */
void bj_variational_forward(bj_objective_io *io, int b0, int b1);
void bj_variational_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1);

/* regularizers.c: adds the product of a (M,rows) and P (rows,D) to dx (M,D). P is packed in blocks
 * of rows. */
size_t bj_blocks_size(const bj_regularizers *r, int rows);                /* size of the packed P */
bj_real *bj_block_at(const bj_regularizers *r, bj_real *packed, int row); /* block that contains the
                                                                             row */
void bj_blocks_add(const bj_regularizers *r, bj_real *dx, size_t lddx, const bj_real *a, size_t lda,
                   bj_real *packed, int rows, int M);

/* sigreg.c */
void bj_sigreg_take(bj_regularizers *r, bj_arena *arena, int max_batch);
int bj_sigreg_items(const bj_regularizers *r);
void bj_sigreg_item(bj_regularizers *r, int item);
void bj_sigreg_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1);
double bj_sigreg_loss(const bj_regularizers *r);

/* vicreg.c */
void bj_vicreg_take(bj_regularizers *r, bj_arena *arena, int max_batch);
int bj_vicreg_items(const bj_regularizers *r, int round);
void bj_vicreg_item(bj_regularizers *r, int round, int item, bj_real *scratch);
void bj_vicreg_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1);
void bj_vicreg_loss(bj_loss *loss, const bj_regularizers *r);

/* Adds the shard sums of n columns in the tree order of core/shards.h. The result is in sum[0]. */
static inline void bj_shards_fold(double *sum, int n, int stride) {
    for (int width = 1; width < BJ_SHARDS; width *= 2)
        for (int s = 0; s < BJ_SHARDS; s += 2 * width) {
            double *a = sum + (long)s * stride;
            const double *b = sum + (long)(s + width) * stride;
            for (int i = 0; i < n; i++) a[i] += b[i];
        }
}

#endif
