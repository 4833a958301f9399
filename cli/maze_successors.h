/* maze_successors.h - draws the second file of a target-blind archive, with one maze per context.
 *
 * Green circles are the empirical successors, and their area is the share of crossings. A red cross
 * is the cell nearest to the single output of the second predictor. Blue triangles are the
 * candidates with at least 1 % of the router's mass. Their area is that mass, and they are filled
 * if they hit a successor.
 * Test: tests/cli/maze_archive.sh
 */
#ifndef BJEPA_MAZE_SUCCESSORS_H
#define BJEPA_MAZE_SUCCESSORS_H

#include "cli.h"

#include <stdio.h>

#define MAZE_SUCCESSORS_SCHEMA "branchjepa.successors/1"

/* Returns whether a JSON file has the schema of a successors file. */
int maze_successors_is(const char *path);

/* Reads a successors file and draws it as SVG. `maze` is a name or a file; NULL: the name in the
 * file. */
BJ_CHECK bj_status maze_successors_draw(FILE *to, const char *path, const char *maze,
                                        bj_error *err);

#endif
