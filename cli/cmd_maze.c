/* cmd_maze.c - bjepa maze: the table of its subcommands. */
#include "cli.h"
#include "maze.h"
#include "verbs.h"

int cmd_maze(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"data",
         "print the episodes, cells and edges of a dataset and compare them with the true graph",
         cmd_maze_data},
        {"graph", "write the graph predicted by a finished run, with candidates and scores",
         cmd_maze_graph},
        {"drive",
         "drive the point agent through the official tasks, using a graph or the graphs of runs",
         cmd_maze_drive},
        {"generate",
         "generate a maze in which some cells have a given number of successors, and random walks",
         cmd_maze_generate},
        {"show", "write a predicted graph as a page with candidates, successors and drives",
         cmd_maze_show},
        {"audit", "roll out trained models on episodes that were not used for training",
         cmd_maze_audit},
        {"emit", "write a predictor's outputs and print their SHA-256 before any successor is read",
         cmd_maze_emit},
        {"reveal", "add the successors of a dataset to emissions", cmd_maze_reveal},
        {"verify", "check that a successors file refers to these emissions", cmd_maze_verify},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "maze",
        .summary = "read OGBench datasets, and evaluate and show the graphs predicted by maze runs",
        .examples = "bjepa maze data pointmaze-large-navigate-v0.npz\n"
                    "bjepa maze drive --maze large\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
