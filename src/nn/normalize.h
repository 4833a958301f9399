/* normalize.h - u = a / max(|a|, 1e-12), row by row, in place, and its gradient in place.
 *
 * Shapes  a, u, du (M,D) rows ld apart; inverse (M) is 1 / max(|a|, 1e-12), kept for backward.
 * Edge    below the floor the divisor is constant: inverse is stored negative to say so.
 * Test    tests/nn/test_normalize.c
 */
#ifndef BJ_NN_NORMALIZE_H
#define BJ_NN_NORMALIZE_H

#include "core/real.h"

void bj_normalize_forward(bj_real *a, size_t ld, bj_real *inverse, int M, int D);
void bj_normalize_backward(bj_real *du, size_t ld, const bj_real *u, const bj_real *inverse, int M,
                           int D);

#endif
