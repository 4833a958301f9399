/* maze_page.h - writes the page of a predicted graph, with maze, candidates, successors on demand,
 * and drives. */
#ifndef BJEPA_MAZE_PAGE_H
#define BJEPA_MAZE_PAGE_H

#include "cli.h"

#include <stdio.h>

#include <branchjepa/maze_drive.h>

typedef struct maze_page {
    const char *file; /* the graph came from */
    const bj_graph_record *record;
    int source; /* cell to begin with */
    bj_drive_options drive;
} maze_page;

/* Write the parts of the page: the object for maze.js, the picture, and the cards above it. */
BJ_CHECK bj_status maze_page_data(FILE *to, const maze_page *page, bj_error *err);
void maze_page_picture(FILE *to, const maze_page *page);
void maze_page_summary(FILE *to, const maze_page *page);

/* Returns the cell with the most predicted edges, or the first of several, which a page shows
 * first. */
int maze_richest(const bj_graph_record *record);

/* One file that asks nothing of any network. */
BJ_CHECK bj_status maze_page_write(FILE *to, const maze_page *page, bj_error *err);

#endif
