/* maze_draw.h - draws a maze as SVG and compares the edges of a graph with the true graph.
 *
 * Row 0 is at the top. Real edges are solid lines, false edges are dashed with a cross, and missing
 * edges are dotted, so that the meaning does not depend on colors alone. Attributes contain the
 * colors of the light theme. On a page, classes (cli/assets/maze.css) apply the theme of the page.
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
