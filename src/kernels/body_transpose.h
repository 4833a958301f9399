/* body_transpose.h - transposes a square of vectors.
 *
 * v[i][j] and v[j][i] are exchanged, first in off-diagonal blocks of half the width, then in
 * smaller and smaller blocks. In the shuffle indices, the lanes of a come before those of b.
 * tests/kernels compares packed matrices with those of the portable kernels.
 */
#ifndef BJ_KERNELS_BODY_TRANSPOSE_H
#define BJ_KERNELS_BODY_TRANSPOSE_H

#include "kernels/body_vec.h"

#define EXCHANGE(v, half, low, high)                                                               \
    UNROLL for (int i = 0; i < LANES; i++) {                                                       \
        if (i & (half)) continue;                                                                  \
        const vec a = (v)[i], b = (v)[i + (half)];                                                 \
        (v)[i] = __builtin_shufflevector(a, b, low);                                               \
        (v)[i + (half)] = __builtin_shufflevector(a, b, high);                                     \
    }
#define LIST(...) __VA_ARGS__

INLINE void transpose(vec *v) {
#if BJ_BODY_BYTES == 64 && !defined BJ_DOUBLE
    EXCHANGE(v, 8, LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
             LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    EXCHANGE(v, 4, LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
             LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    EXCHANGE(v, 2, LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
             LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    EXCHANGE(v, 1, LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
             LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif BJ_BODY_BYTES == 64 || !defined BJ_DOUBLE
    EXCHANGE(v, 4, LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15))
    EXCHANGE(v, 2, LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15))
    EXCHANGE(v, 1, LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15))
#else
    EXCHANGE(v, 2, LIST(0, 1, 4, 5), LIST(2, 3, 6, 7))
    EXCHANGE(v, 1, LIST(0, 4, 2, 6), LIST(1, 5, 3, 7))
#endif
}

#undef LIST
#undef EXCHANGE

#endif
