/* maze_run.h - a finished run on a maze, as it lies open; branchjepa/maze_run.h is its interface.
 */
#ifndef BJ_RUN_MAZE_RUN_H
#define BJ_RUN_MAZE_RUN_H

#include "run/maze_view.h"
#include "run/run.h"

struct bj_maze_run {
    char dir[BJ_RUN_FILE];
    char checkpoint[BJ_SHA256_HEX]; /* of the model file */
    bj_run *run;
    bj_maze *maze;
    bj_model *model;
    bj_maze_view view;
    bj_maze_source *source; /* NULL until the dataset is asked for */
    bj_real *scratch;   /* (most,K) and, where only masses are asked for, (most,L,D) behind it */
    char *data, *named; /* options, or NULL */
    int row;            /* of the epoch these weights are of */
    int collapsed;
};

/* Opens the dataset unless that was done before. */
BJ_CHECK bj_status bj_maze_run_need_source(bj_maze_run *run, bj_error *err);

#endif
