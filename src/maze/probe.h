/* probe.h - a linear map from latents to positions in the maze.
 *
 *   minimize  sum_i |W' (z_i - m_z) - (p_i - m_p)|^2 + lambda |W|^2,  lambda = ridge trace(A) / D
 *   A = sum_i (z_i - m_z)(z_i - m_z)',  p = m_p + W' (z - m_z)
 *
 * Moments are summed frame by frame in double, in the order of the calls. A + lambda I is solved by
 * a Cholesky decomposition. The ridge is relative, so it does not depend on the number of frames.
 *
 * Shapes  z (D)  p (2)  W (D,2)        Test  tests/maze/test_probe.c
 */
#ifndef BJ_MAZE_PROBE_H
#define BJ_MAZE_PROBE_H

#include "core/status.h"

typedef struct bj_probe bj_probe;

BJ_CHECK bj_status bj_probe_create(bj_probe **out, int D, bj_error *err);
void bj_probe_free(bj_probe *probe);
/* Adds training frames: latents (n,D) at xy (n,2). */
void bj_probe_add(bj_probe *probe, const bj_real *latents, const double *xy, int64_t n);
/* Solves the regression. Call it once, after all frames have been added. */
BJ_CHECK bj_status bj_probe_solve(bj_probe *probe, double ridge, bj_error *err);
/* Computes the position of a latent. */
void bj_probe_read(double xy[2], const bj_probe *probe, const bj_real *latent);

#endif
