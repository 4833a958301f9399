/* maze_runs.h - finds finished maze runs in folders of runs and campaigns.
 *
 * A folder with campaign.json represents all runs of its grid. Any other folder must be a run.
 */
#ifndef BJEPA_MAZE_RUNS_H
#define BJEPA_MAZE_RUNS_H

#include "cli.h"

typedef struct maze_run_entry {
    char dir[BJ_RUN_PATH_SIZE];
    int from_campaign; /* 1: unfinished and collapsed runs are listed instead of causing an error */
} maze_run_entry;

typedef struct maze_run_list {
    maze_run_entry *entry;
    int count, room;
} maze_run_list;

BJ_CHECK bj_status maze_runs_find(maze_run_list *out, char **folders, int count, bj_error *err);
void maze_runs_reset(maze_run_list *list);

/* "branch" of "maze-branch". */
const char *maze_predictor(const char *arm);

#endif
