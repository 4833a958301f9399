/* rows.h - copies selected rows of a matrix into contiguous rows (gather) and back (scatter). */
#ifndef BJ_NN_ROWS_H
#define BJ_NN_ROWS_H

#include <string.h>

#include "core/real.h"

static inline void bj_rows_gather(bj_real *to, size_t ldt, const bj_real *from, size_t ldf,
                                  const int *rows, int n, int width) {
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * ldt, from + (size_t)rows[i] * ldf, (size_t)width * sizeof *to);
}

static inline void bj_rows_scatter(bj_real *to, size_t ldt, const int *rows, const bj_real *from,
                                   size_t ldf, int n, int width) {
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)rows[i] * ldt, from + (size_t)i * ldf, (size_t)width * sizeof *to);
}

#endif
