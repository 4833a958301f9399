/* gather.h - the scenes of a batch side by side, as the engine works on them.
 *
 * A batch is a table of scenes whose arrays lie anywhere. Workers copy their part of it into arrays
 * of the engine's own, in the pass that also looks for numbers that are not finite.
 *
 * Shapes  as beside the fields; rows of scene b are *_start[b] .. *_start[b + 1]
 * Test    tests/core/test_gather.c
 */
#ifndef BJ_CORE_GATHER_H
#define BJ_CORE_GATHER_H

#include <stdatomic.h>

#include "core/arena.h"

typedef struct bj_gathered {
    int B;
    bj_real *focal;                       /* (B,T,7), NULL as below */
    bj_real *neighbors;                   /* (rows,T,7), NULL as below */
    bj_real *polylines;                   /* (rows,Q,6) */
    bj_real *future;                      /* (B,F,2); NULL: not looked at */
    int *neighbor_start, *polyline_start; /* (B+1) */
} bj_gathered;

/* Room for up to B scenes of the architecture. */
void bj_gathered_take(bj_gathered *g, bj_arena *arena, const bj_arch *arch, size_t B,
                      int with_future);
/* Where the rows of B scenes will go; before any of them is copied. */
void bj_gathered_lay_out(bj_gathered *g, const bj_scene *scenes, int B);
/* Copies scenes [b0,b1) of those laid out. Returns the first that holds a NaN or infinity, -1 if
 * none does; all of them are copied. */
int bj_gathered_copy(const bj_gathered *g, const bj_scene *scenes, const bj_arch *arch, int b0,
                     int b1);

/* Keeps the smallest scene that any worker reports. */
static inline void bj_note_first(atomic_int *first, int scene) {
    int seen = atomic_load(first);
    while (scene < seen && !atomic_compare_exchange_weak(first, &seen, scene)) {}
}

#endif
