/* cmd_maze.c - bjepa maze: the table of its verbs. */
#include "cli.h"
#include "maze.h"
#include "verbs.h"

int cmd_maze(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"data", "episodes, cells and edges of a recorded dataset, held against the true graph",
         cmd_maze_data},
        {"graph", "the graph a finished run predicts, with candidates and scores", cmd_maze_graph},
        {"drive", "the point agent follows graphs, or those of runs, through the tasks of a maze",
         cmd_maze_drive},
        {"generate", "a maze with a chosen number of successors, and walks through it",
         cmd_maze_generate},
        {"show", "a predicted graph as a page: candidates, successors on demand, drives",
         cmd_maze_show},
        {"audit", "rollouts of trained models on the episodes they were not trained on",
         cmd_maze_audit},
        {"emit", "fix what a predictor says before any successor is read", cmd_maze_emit},
        {"reveal", "add the successors of a dataset to emissions that were fixed", cmd_maze_reveal},
        {"verify", "whether emissions are those that a file of successors names", cmd_maze_verify},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "maze",
        .summary = "the mazes of OGBench and what recorded walks show of them",
        .examples = "bjepa maze data pointmaze-large-navigate-v0.npz\n"
                    "bjepa maze drive --maze large\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
