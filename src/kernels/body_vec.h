/* body_vec.h - vectors of bj_real and the tile and block sizes of all vector kernels. */
#ifndef BJ_KERNELS_BODY_VEC_H
#define BJ_KERNELS_BODY_VEC_H

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

typedef bj_real vec __attribute__((vector_size(BJ_BODY_BYTES)));
typedef bj_real vec_u
    __attribute__((vector_size(BJ_BODY_BYTES), aligned(sizeof(bj_real)), may_alias));
#ifdef BJ_DOUBLE
typedef int64_t ivec __attribute__((vector_size(BJ_BODY_BYTES)));
#else
typedef int32_t ivec __attribute__((vector_size(BJ_BODY_BYTES)));
#endif

enum {
    LANES = BJ_BODY_BYTES / sizeof(bj_real),
    WIDTH = 3,
    PANEL = WIDTH * LANES,
    ROWS = BJ_BODY_ROWS,
    TALL = 8, /* rows of a tile that is one vector wide; fewer rows would not hide the latency */
    BLOCK_K = 1024,
    BLOCK_M = 64,
    /* Tiles of weight gradients are two vectors wide. The part of a row of x that belongs to a tile
     * is then one cache line, so many rows fit in the L1 cache. */
    STRIP = BJ_BODY_ROWS == 8 ? 12 : 6,
    SPAN = 2,
    CHUNK = 256 /* max rows per chunk */
};

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

INLINE vec load(const bj_real *p) { return *(const vec_u *)p; }
INLINE void store(bj_real *p, vec v) { *(vec_u *)p = v; }
/* Returns v where gate > 0 and zero elsewhere. A NaN in gate keeps v, so that NaN is not hidden. */
INLINE vec where_positive(vec gate, vec v) { return (vec)((ivec)v & ~(gate <= 0)); }
INLINE vec splat(bj_real x) { return x - (vec){0}; }

INLINE vec load_part(const bj_real *p, int n) {
    bj_real lane[LANES] = {0};
    memcpy(lane, p, (size_t)n * sizeof *p);
    return load(lane);
}
INLINE void store_part(bj_real *p, vec v, int n) {
    bj_real lane[LANES];
    store(lane, v);
    memcpy(p, lane, (size_t)n * sizeof *p);
}

/* Load or store the first n lanes, or all lanes if n is larger. */
INLINE vec load_n(const bj_real *p, int n) { return n >= LANES ? load(p) : load_part(p, n); }
INLINE void store_n(bj_real *p, vec v, int n) {
    if (n >= LANES) store(p, v);
    else store_part(p, v, n);
}

#endif
