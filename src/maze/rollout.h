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

/* Copies to latents (n,D), for each row, the one of the L candidates (n,L,D) with the largest
 * weight (n,K), the first of several, or the only candidate. */
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

/* Adds a context to sums (H). paths (H,L,2), which may be NULL, get the probed positions. */
void bj_rollout_add(bj_rollout_step *sums, double *paths, const bj_rollouts *r,
                    const bj_probe *probe, const bj_maze *maze);
/* Converts the sums of `contexts` contexts to means, or NaN if there are none. */
void bj_rollout_mean(bj_rollout_step *sums, int H, int64_t contexts);

#endif
