/* variational.h - the predictor with a Gaussian variable, for a block of scenes.
 *
 *   prior     [m_p | s_p] = prior(c)             posterior  [m_q | s_q] = posterior([c | z])
 *   training  w = m_q + exp(s_q) eps             u = normalize(generator([c | w]))
 *   readout   w_0 = m_p,  w_j = m_p + exp(s_p) eps_j for j = 1 .. K - 1, eps_j equal for all scenes
 *
 * c is the context followed by the action. z is the target latent, which gets no gradient. Every
 * network is linear, ReLU, linear. The generator is stored in place of an atom in bj_network.
 *
 * Shapes  eps (M,V)  prior, posterior (M,2V) contiguous
 * Test    tests/train/test_observed.c, tests/model/test_predict_pairs.c
 */
#ifndef BJ_MODEL_VARIATIONAL_H
#define BJ_MODEL_VARIATIONAL_H

#include "model/network.h"

/* Allocates the rows of M scenes, including those for the backward pass if `training` is set. */
void bj_variational_take(bj_network_block *b, bj_arena *arena, const bj_network *n, size_t M,
                         int training);
/* Moves the block to the scenes starting at `first`. */
void bj_variational_shift(bj_network_block *b, const bj_network *n, size_t first);

/* Computes u, prior and posterior from context, z and eps. */
void bj_variational_forward_block(const bj_network *n, const bj_network_block *b);
/* Computes dcontext from du (before normalization), dprior and dposterior. On entry, dprior and
 * dposterior contain only the gradient of the KL divergence. On return, they contain the total
 * gradient. */
void bj_variational_backward_block(const bj_network *n, const bj_network_block *b);

/* Draws the noise eps (V) of readout j >= 1. */
void bj_variational_noise(bj_real *eps, int V, int j);
/* Computes the normalized u (M,D) of readout j from the prior. */
void bj_variational_read(const bj_network *n, const bj_network_block *b, int j, const bj_real *eps);
void bj_variational_prior(const bj_network *n, const bj_network_block *b);

#endif
