/* maze_drive_runs.h - drives with the graphs of trained runs, and prints the mean and SD over the
 * seeds of each predictor next to the true graph. Test: tests/cli/maze_graph.sh
 */
#ifndef BJEPA_MAZE_DRIVE_RUNS_H
#define BJEPA_MAZE_DRIVE_RUNS_H

#include "cli.h"

#include <branchjepa/maze_run.h>

typedef struct maze_drive_runs {
    char **folders; /* (count) of runs and of campaigns */
    int count;
    bj_maze_run_options run;
    bj_drive_options drive;
    int json;
} maze_drive_runs;

/* Prints the table; returns the exit code. */
int maze_drive_runs_print(const maze_drive_runs *o);

#endif
