/* maze_page.h - the page of a predicted graph: maze, candidates, successors on demand, drives. */
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

/* One file that asks nothing of any network. */
BJ_CHECK bj_status maze_page_write(FILE *to, const maze_page *page, bj_error *err);

#endif
