/* maze.h - what the files of this folder share beside the public interface. */
#ifndef BJ_MAZE_MAZE_H
#define BJ_MAZE_MAZE_H

#include "core/status.h"

/* Order of edges by source, then target, for qsort. */
int bj_edge_compare(const void *a, const void *b);

/* The unique directed edges of a sequence of cells, and what a dataset adds to them. A matrix of
 * counts (C,C) is filled step by step; bj_crossings_list makes sorted lists of it. */
typedef struct bj_crossings {
    int cells;
    int64_t *count; /* (C,C) */
    int last;       /* cell of the last step of this episode that was in one, -1: none yet */
    int64_t total;
} bj_crossings;

BJ_CHECK bj_status bj_crossings_init(bj_crossings *c, int cells, bj_error *err);
void bj_crossings_reset(bj_crossings *c);
/* One step in `cell`, -1: in none; `ends`: it is the last one of its episode. */
void bj_crossings_step(bj_crossings *c, int cell, int ends);
/* Unique edges and their counts; the caller frees both. */
BJ_CHECK bj_status bj_crossings_list(bj_edge **edges, int64_t **counts, int *n,
                                     const bj_crossings *c, bj_error *err);

/* out = x / |x| in double, zeros for a vector of zeros. `what` and number name it where it is not
 * finite. */
BJ_CHECK bj_status bj_maze_unit(double *out, const bj_real *x, int D, const char *what, int number,
                                bj_error *err);
double bj_maze_dot(const double *a, const double *b, int D);

#endif
