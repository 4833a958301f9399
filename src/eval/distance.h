/* distance.h - squared distances between rows, summed in eight lanes for vectorization.
 *
 * The order of the additions does not depend on the element type or the compiler.
 * Test: tests/eval/test_metrics.c
 */
#ifndef BJ_EVAL_DISTANCE_H
#define BJ_EVAL_DISTANCE_H

#include <math.h>

#include <branchjepa/branchjepa.h>

#define BJ_SUM_SQUARES(name, type)                                                                 \
    static inline double name(const type *a, const type *b, int n) {                               \
        double lane[8] = {0}, sum = 0;                                                             \
        int i = 0;                                                                                 \
        for (; i + 8 <= n; i += 8)                                                                 \
            for (int j = 0; j < 8; j++) {                                                          \
                const double e = (double)a[i + j] - b[i + j];                                      \
                lane[j] += e * e;                                                                  \
            }                                                                                      \
        for (int j = 0; j < 8; j++) sum += lane[j];                                                \
        for (; i < n; i++) {                                                                       \
            const double e = (double)a[i] - b[i];                                                  \
            sum += e * e;                                                                          \
        }                                                                                          \
        return sum;                                                                                \
    }
BJ_SUM_SQUARES(bj_sum_squares_double, double)
BJ_SUM_SQUARES(bj_sum_squares_real, bj_real)
#undef BJ_SUM_SQUARES

/* Returns sqrt(squared), or 0 if squared is at most 1e-12, as in training. */
static inline double bj_distance(double squared) { return squared <= 1e-12 ? 0 : sqrt(squared); }

#endif
