/* nn_case.h - random arrays and tolerances for the layer tests.
 *
 * Rows are longer than needed. In inputs, the padding contains NaN, so that reading it makes the
 * result NaN. In outputs, it contains a marker, so that writing to it is detected.
 */
#ifndef BJ_TESTS_NN_CASE_H
#define BJ_TESTS_NN_CASE_H

#include "core/alloc.h"
#include "kernels/kernels.h"
#include "support/gradcheck.h"

#define MARKER ((bj_real)-12345)

/* Returns the tolerance for values of magnitude one that are sums of a few hundred terms. */
static inline double nn_tolerance(void) { return sizeof(bj_real) == sizeof(double) ? 1e-12 : 2e-5; }

static inline bj_real *nn_array(size_t n, bj_real value) {
    bj_real *x = bj_alloc(n, sizeof *x);
    if (!x) {
        fprintf(stderr, "nn_case: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++) x[i] = value;
    return x;
}

/* Allocates (rows,cols) normal numbers with NaN in the padding. */
static inline bj_real *nn_normal(bj_rng *rng, int rows, int cols, size_t stride, double scale) {
    bj_real *x = nn_array((size_t)rows * stride, (bj_real)NAN);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            x[(size_t)r * stride + (size_t)c] = (bj_real)(scale * bj_rng_normal(rng));
    return x;
}

/* Returns whether all columns from `used` on still contain the marker. */
static inline int nn_untouched(const bj_real *x, int rows, int used, size_t stride) {
    for (int r = 0; r < rows; r++)
        for (size_t c = (size_t)used; c < stride; c++)
            if (x[(size_t)r * stride + c] != MARKER) return 0;
    return 1;
}

/* Returns the largest absolute difference. NaN counts as infinite. */
static inline double nn_distance(const bj_real *x, size_t ldx, const double *y, size_t ldy,
                                 int rows, int cols) {
    double worst = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            const double d =
                fabs((double)x[(size_t)r * ldx + (size_t)c] - y[(size_t)r * ldy + (size_t)c]);
            if (!(d <= worst)) worst = isnan(d) ? HUGE_VAL : d;
        }
    return worst;
}

/* Shards of M consecutive rows. */
typedef struct nn_rows {
    int begin[BJ_SHARDS], count[BJ_SHARDS];
} nn_rows;

static inline bj_rows nn_all_rows(nn_rows *r, int M) {
    for (int s = 0; s < BJ_SHARDS; s++) {
        r->begin[s] = bj_shard_begin(M, s);
        r->count[s] = bj_shard_begin(M, s + 1) - r->begin[s];
    }
    return (bj_rows){1, r->begin, r->count};
}

#endif
