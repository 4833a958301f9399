/* maze_emit_run.h - emissions of finished runs at fixed cells, for target-blind archives.
 *
 * Contexts are cells named one by one, or one of two lists that follow from the maze alone:
 *   A  the five cells with most successors in the true graph, of equals the lowest number first
 *   B  four of the cells with a successor that are not in A, evenly spaced over their numbers
 * No dataset is opened. Test: tests/cli/maze_archive.sh
 */
#ifndef BJEPA_MAZE_EMIT_RUN_H
#define BJEPA_MAZE_EMIT_RUN_H

#include "cli.h"

#include <branchjepa/maze_run.h>

enum { MAZE_CONTEXTS = 64, MAZE_ARCHIVE_A = 5, MAZE_ARCHIVE_B = 4 };

typedef struct maze_emit_run {
    const char *run, *point; /* run folders; point: the model with one output for comparison, or
                                NULL */
    const char *cells;       /* "3,7,12", or NULL */
    int archive;             /* 0: A, 1: B; where cells is NULL */
    const char *out;
    bj_maze_run_options how;
} maze_emit_run;

BJ_CHECK bj_status maze_emit_run_write(char sha256[65], const maze_emit_run *o, bj_error *err);

/* Fills the cells (MAZE_ARCHIVE_A or _B) of archive 0 or 1 in ascending order. Returns their
 * number. */
int maze_archive_cells(int32_t cells[MAZE_CONTEXTS], const bj_maze *maze, int archive);

#endif
