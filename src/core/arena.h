/* arena.h - divides one memory block into arrays, in two passes over the same code.
 *
 * The first pass runs with base = NULL and only measures. The caller then allocates the block, and
 * the second pass returns pointers into it. Every array starts on a 64-byte boundary.
 */
#ifndef BJ_CORE_ARENA_H
#define BJ_CORE_ARENA_H

#include <stddef.h>

#include "core/real.h"

typedef struct bj_arena {
    bj_real *base; /* NULL while measuring */
    size_t used;   /* in bj_reals */
} bj_arena;

static inline bj_real *bj_arena_take(bj_arena *arena, size_t count) {
    bj_real *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used += (count + 15) / 16 * 16;
    return piece;
}

/* Takes memory for objects that are not bj_reals. */
static inline void *bj_arena_take_bytes(bj_arena *arena, size_t bytes) {
    return bj_arena_take(arena, (bytes + sizeof(bj_real) - 1) / sizeof(bj_real));
}

/* Returns the distance between rows of n elements. The distance is an odd number of 16-element
 * groups, so consecutive rows do not map to the same cache sets. */
static inline size_t bj_stride(int n) { return (((size_t)n + 15) / 16 | 1) * 16; }

#endif
