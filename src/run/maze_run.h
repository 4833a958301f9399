/* maze_run.h - internal state of an open maze run. The public interface is branchjepa/maze_run.h.
 * */
#ifndef BJ_RUN_MAZE_RUN_H
#define BJ_RUN_MAZE_RUN_H

#include "run/maze_view.h"
#include "run/run.h"

struct bj_maze_run {
    char dir[BJ_RUN_FILE];
    char checkpoint[BJ_SHA256_HEX]; /* digest of the model file */
    bj_run *run;
    bj_maze *maze;
    bj_model *model;
    bj_maze_view view;
    bj_maze_source *source; /* NULL until the dataset is opened */
    bj_real *scratch;   /* (most,K), followed by (most,L,D) if the caller requests only masses */
    char *data, *named; /* from the options, or NULL */
    int row;            /* metrics of the epoch of these weights */
    int collapsed;
};

/* Opens the dataset, unless it is already open. */
BJ_CHECK bj_status bj_maze_run_need_source(bj_maze_run *run, bj_error *err);

#endif
