/* rollout.h - rollouts of a predictor in its latents, and their comparison with the true frames.
 *
 * The first step of a context gives L latents with masses. Each latent starts a rollout, which
 * follows the branch with the largest mass. Rollouts keep the mass of their first step and are
 * never averaged. u[h,l] are unit latents, m the masses, z[h] the latent and p[h] the position of
 * the true frame h steps after the context, and q = probe(u):
 *
 *   distance  sum_l m_l |u[h,l] - z[h]|      best  min_l
 *   hit       any l: u[h,l] . z[h] > 0.5
 *   error     sum_l m_l |q[h,l] - p[h]|      best  min_l
 *   wall      sum of m_l with q[h,l] in no cell
 *
 * Shapes  u (H,L,D)  m (L)  z (H+1,D)  p (H+1,2), frame 0 is the context
 * Test    tests/maze/test_rollout.c
 */
#ifndef BJ_MAZE_ROLLOUT_H
#define BJ_MAZE_ROLLOUT_H

#include <branchjepa/maze_audit.h>

#include "maze/probe.h"

/* For each row, copies the candidate with the largest weight from candidates (n,L,D) to latents
 * (n,D). The weights have the shape (n,K). The first of several largest weights is used. If there
 * is only one candidate, it is copied. */
void bj_rollout_follow(bj_real *latents, const bj_real *candidates, const bj_real *weights, int n,
                       int L, int K, int D);

/* Data of one context. */
typedef struct bj_rollouts {
    int H, L, D;
    const bj_real *latents; /* (H,L,D) unit latents; steps are `stride` numbers apart */
    size_t stride;
    const bj_real *mass;  /* (L) */
    const bj_real *truth; /* (H+1,D) unit */
    const double *xy;     /* (H+1,2) */
} bj_rollouts;

/* Adds a context to sums (H). paths (H,L,2) receives the probed positions and may be NULL. */
void bj_rollout_add(bj_rollout_step *sums, double *paths, const bj_rollouts *r,
                    const bj_probe *probe, const bj_maze *maze);
/* Converts the sums over `contexts` contexts to means, or to NaN if there are no contexts. */
void bj_rollout_mean(bj_rollout_step *sums, int H, int64_t contexts);

#endif
