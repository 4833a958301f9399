/* report_maze.h - writes the page of a maze campaign: graphs, a table of metrics, and curves.
 *
 * For each predictor, the page shows the graph of one run, which is the finished run with the
 * lowest seed whose latents did not collapse. Models with inputs other than x and y have no graph,
 * but are included in the table and the curves.
 * Test: tests/cli/report_maze.sh, tests/report/report_maze.mjs
 */
#ifndef BJEPA_REPORT_MAZE_H
#define BJEPA_REPORT_MAZE_H

#include "report_data.h"

#include <branchjepa/maze_run.h>

typedef struct report_maze_graph {
    int run; /* number of it in the report's data */
    bj_maze_run *open;
    bj_maze_graph *graph;
} report_maze_graph;

typedef struct report_maze {
    const report_data *data;
    report_maze_graph *graph; /* (graphs) in the order of the arms */
    int graphs;
    char reason[600]; /* reason why there is no graph, or not one for every arm; "" */
} report_maze;

/* Opens the runs. It is not an error if one of them cannot be shown. */
BJ_CHECK bj_status report_maze_make(report_maze *out, const report_data *data, int threads,
                                    bj_error *err);
void report_maze_free(report_maze *maze);
BJ_CHECK bj_status report_maze_write(FILE *to, report_maze *maze, bj_error *err);

#endif
