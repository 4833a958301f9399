/* gather.h - copies the scenes of a batch into contiguous arrays.
 *
 * The arrays of a batch's scenes can be anywhere in memory. Every worker copies its part of the
 * batch into arrays owned by the engine and checks the values for NaN and infinity in the same
 * pass.
 *
 * Shapes  see the fields; the rows of scene b are [*_start[b], *_start[b + 1])
 * Test    tests/core/test_gather.c
 */
#ifndef BJ_CORE_GATHER_H
#define BJ_CORE_GATHER_H

#include <stdatomic.h>

#include "core/arena.h"

typedef struct bj_gathered {
    int B;
    bj_real *focal;                       /* (B,T,7); NULL if not copied */
    bj_real *neighbors;                   /* (rows,T,7); NULL if not copied */
    bj_real *polylines;                   /* (rows,Q,6) */
    bj_real *future;                      /* (B,F,2); NULL if not copied */
    int *neighbor_start, *polyline_start; /* (B+1) */
} bj_gathered;

/* Allocates arrays for up to B scenes from the arena. */
void bj_gathered_take(bj_gathered *g, bj_arena *arena, const bj_arch *arch, size_t B,
                      int with_future);
/* Computes the row offsets of B scenes. Must be called before any scene is copied. */
void bj_gathered_lay_out(bj_gathered *g, const bj_scene *scenes, int B);
/* Copies scenes [b0,b1) to their row offsets. Returns the index of the first scene that contains a
 * NaN or infinity, or -1. All scenes are copied in either case. */
int bj_gathered_copy(const bj_gathered *g, const bj_scene *scenes, const bj_arch *arch, int b0,
                     int b1);

/* Sets *first to `scene` if it is smaller. Safe to call from several workers. */
static inline void bj_note_first(atomic_int *first, int scene) {
    int seen = atomic_load(first);
    while (scene < seen && !atomic_compare_exchange_weak(first, &seen, scene)) {}
}

#endif
