/* maze_draw.h - a maze as SVG, with the edges of a graph held against the true one.
 *
 * Row 0 is on top. Real edges are solid lines, false ones dashed with a cross, true ones that are
 * missing dotted: shapes say the same as colors. Attributes hold the light theme; on a page classes
 * (cli/assets/maze.css) make them follow its own.
 * Test: tests/cli/maze_show.sh, tests/report/maze.mjs
 */
#ifndef BJEPA_MAZE_DRAW_H
#define BJEPA_MAZE_DRAW_H

#include <stdio.h>

#include <branchjepa/maze_drive.h>

enum { MAZE_UNIT = 48 }; /* pixels of a square */

/* Draws the picture. If `source` is not -1, its cell is marked and, in a separate file, so are the
 * cells of its candidates. If `page` is set, the picture is part of a page, with handles for
 * maze.js and without a legend. */
void maze_draw(FILE *to, const bj_graph_record *record, int source, int page);

/* Draws only floor, walls and teleporters. A square has the size MAZE_UNIT. */
void maze_draw_ground(FILE *to, const bj_maze *maze);

/* Returns the index of the source in a cell, or -1 if the cell has no candidates. */
int maze_source(const bj_graph_record *record, int cell);

#endif
