/* drive.h - what the files behind <branchjepa/maze_drive.h> share beside that header. */
#ifndef BJ_MAZE_DRIVE_H
#define BJ_MAZE_DRIVE_H

#include <branchjepa/maze_drive.h>

#include "maze/maze.h"

/* Distances (C) to `goal`, -1: no path; scratch (C). */
void bj_graph_distances_to(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                           int goal);
/* The neighbor-by-edge of `from` that is nearest to the goal, the first of them; -1: no path. */
int bj_graph_next(const int32_t *to_goal, const uint8_t *graph, int cells, int from);

#endif
