/* maze.h - internal declarations shared by this folder. */
#ifndef BJ_MAZE_MAZE_H
#define BJ_MAZE_MAZE_H

#include "core/status.h"

/* Compares edges by source, then target, for qsort. */
int bj_edge_compare(const void *a, const void *b);

/* Collects the unique directed edges of a sequence of cells in a matrix of counts (C,C), step by
 * step. bj_crossings_list converts it to sorted lists. */
typedef struct bj_crossings {
    int cells;
    int64_t *count; /* (C,C) */
    int last;       /* the cell that this episode visited last; -1 if it has not visited a cell
                       yet */
    int64_t total;
} bj_crossings;

BJ_CHECK bj_status bj_crossings_init(bj_crossings *c, int cells, bj_error *err);
void bj_crossings_reset(bj_crossings *c);
/* Adds one step in `cell`; -1 means that the step is in no cell. `ends` marks the last step of an
 * episode. */
void bj_crossings_step(bj_crossings *c, int cell, int ends);
/* Returns the unique edges and their counts. The caller frees both arrays. */
BJ_CHECK bj_status bj_crossings_list(bj_edge **edges, int64_t **counts, int *n,
                                     const bj_crossings *c, bj_error *err);

/* Computes out = x / |x| in double. A zero vector stays zero. Fails if x is not finite; the message
 * contains `what` and number. */
BJ_CHECK bj_status bj_maze_unit(double *out, const bj_real *x, int D, const char *what, int number,
                                bj_error *err);
double bj_maze_dot(const double *a, const double *b, int D);

#endif
