/* points.h - a scene's K weighted points, their target, and the distances between them.
 *
 * The same code is used for latents and trajectories:
 *   latent   n = D    d(a,b) = |a - b|                                   (chord)
 *   decoded  n = 2F   d(a,b) = (sum_t w_t |a_t - b_t|^2)^(1/2)           (RMS block, D_beta)
 * with w_t = beta^t / sum beta^t. For beta = 1 this is (|a - b|^2 / F)^(1/2).
 *
 * Edge     A squared distance of at most 1e-12 counts as zero and has gradient zero.
 * Numbers  Differences are squared and added in fixed lanes. They are not expanded into dot
 *          products, because cancellation would then destroy all digits of small distances.
 */
#ifndef BJ_OBJECTIVE_POINTS_H
#define BJ_OBJECTIVE_POINTS_H

#include "objective/objective.h"

typedef struct bj_points {
    int K, n;
    size_t stride;         /* row stride of x */
    const bj_real *x;      /* (K,n) */
    const bj_real *target; /* (n) */
    const double *weight;  /* (n/2) time weights of interleaved x, y; NULL: `scale` for all */
    double scale;          /* factor of the squared distance, used if weight is NULL */
} bj_points;

/* Return the points of scene b. The set of trajectories uses io->time_weight only if beta is not
 * 1. */
bj_points bj_points_latent(const bj_objective_io *io, int b);
bj_points bj_points_decoded(const bj_objective *objective, const bj_objective_io *io, int b);

/* Returns sum_i (a_i - b_i)^2. */
double bj_sum_squares(const bj_real *a, const bj_real *b, int n);

double bj_points_to_target(const bj_points *points, int k);
double bj_points_between(const bj_points *points, int k, int l);

/* Computes the gradient
 *   dx_k = sum_l pull[k,l] dd(k,l)/dx_k * d(k,l) + reach[k] dd(k,target)/dx_k * d(k,target)
 *        = W (sum_l pull[k,l] (x_k - x_l) + reach[k] (x_k - target)),   W = diag of the distance
 * dx (K,n) has the stride of x and is overwritten. pull (K,K) is symmetric, and its diagonal is not
 * read.
 */
void bj_points_gradient(bj_real *dx, const bj_real *pull, const double *reach,
                        const bj_points *points);
/* Computes the gradient without the sum over pairs. */
void bj_points_gradient_target(bj_real *dx, const double *reach, const bj_points *points);

/* Sets (rows,n) elements with row stride `stride` to zero. */
void bj_rows_clear(bj_real *x, int rows, int n, size_t stride);

#endif
