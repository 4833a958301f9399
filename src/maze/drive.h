/* drive.h - internal declarations shared by the files that implement <branchjepa/maze_drive.h>. */
#ifndef BJ_MAZE_DRIVE_H
#define BJ_MAZE_DRIVE_H

#include <branchjepa/maze_drive.h>

#include "maze/maze.h"

/* Computes the distances (C) to `goal`, which are -1 for cells without a path. scratch has (C)
 * entries. */
void bj_graph_distances_to(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                           int goal);
/* Returns the successor of `from` that is nearest to the goal, or -1 if there is no path. If
 * several successors are equally near, returns the first. */
int bj_graph_next(const int32_t *to_goal, const uint8_t *graph, int cells, int from);

#endif
