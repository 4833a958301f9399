/* rollout.h - rollouts of a predictor in its latents: how they go on, and what they are held
 * against.
 *
 * The first step of a context gives L latents with masses. Each is a rollout of its own, which goes
 * on along the branch of greatest mass; rollouts keep the mass of their first step and are never
 * averaged. With u[h,l] unit latents, m the masses, z[h] the latent and p[h] the position of the
 * true frame h steps after the context, and q = probe(u):
 *
 *   distance  sum_l m_l |u[h,l] - z[h]|        best  min_l           hit  any l: u[h,l] . z[h] >
 * 0.5 error     sum_l m_l |q[h,l] - p[h]|        best  min_l           wall sum of m_l, q[h,l] in
 * no cell
 *
 * Shapes  u (H,L,D)  m (L)  z (H+1,D)  p (H+1,2), frame 0 is the context
 * Test    tests/maze/test_rollout.c
 */
#ifndef BJ_MAZE_ROLLOUT_H
#define BJ_MAZE_ROLLOUT_H

#include <branchjepa/maze_audit.h>

#include "maze/probe.h"

/* latents (n,D): of the L candidates (n,L,D) of each row the one with the greatest weight (n,K),
 * the first of several; where there is one candidate, that. */
void bj_rollout_follow(bj_real *latents, const bj_real *candidates, const bj_real *weights, int n,
                       int L, int K, int D);

/* What is known of a context. */
typedef struct bj_rollouts {
    int H, L, D;
    const bj_real *latents; /* (H,L,D) unit; steps lie `stride` numbers apart */
    size_t stride;
    const bj_real *mass;  /* (L) */
    const bj_real *truth; /* (H+1,D) unit */
    const double *xy;     /* (H+1,2) */
} bj_rollouts;

/* Adds a context to sums (H); paths (H,L,2), which may be NULL: what the probe reads. */
void bj_rollout_add(bj_rollout_step *sums, double *paths, const bj_rollouts *r,
                    const bj_probe *probe, const bj_maze *maze);
/* Sums of `contexts` contexts to means; NaN without one. */
void bj_rollout_mean(bj_rollout_step *sums, int H, int64_t contexts);

#endif
