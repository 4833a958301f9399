/* normalize.h - normalizes rows in place, u = a / max(|a|, 1e-12), and computes the gradient in
 * place.
 *
 * Shapes  a, u, du (M,D) with row stride ld; inverse (M) is 1 / max(|a|, 1e-12), kept for the
 *         backward pass.
 * Edge    If |a| is below 1e-12, the divisor is constant, and inverse is stored with a negative
 *         sign.
 * Test    tests/nn/test_normalize.c
 */
#ifndef BJ_NN_NORMALIZE_H
#define BJ_NN_NORMALIZE_H

#include "core/real.h"

void bj_normalize_forward(bj_real *a, size_t ld, bj_real *inverse, int M, int D);
void bj_normalize_backward(bj_real *du, size_t ld, const bj_real *u, const bj_real *inverse, int M,
                           int D);

#endif
