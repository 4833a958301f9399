/* cmd_maze.c - bjepa maze: the table of its subcommands. */
#include "cli.h"
#include "maze.h"
#include "verbs.h"

int cmd_maze(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"data",
         "print the episodes, cells and edges of a dataset and compare them with the true graph",
         cmd_maze_data},
        {"graph", "write the predicted graph of a finished run, with candidates and scores",
         cmd_maze_graph},
        {"drive", "drive the point agent through the official tasks with given or predicted graphs",
         cmd_maze_drive},
        {"generate",
         "generate a maze with a given number of successors at some cells, and walks in it",
         cmd_maze_generate},
        {"show", "draw a predicted graph with its candidates, successors and drives",
         cmd_maze_show},
        {"audit", "roll out trained models on episodes that were not used for training",
         cmd_maze_audit},
        {"emit",
         "write the outputs of a predictor and their SHA-256 without reading any successors",
         cmd_maze_emit},
        {"reveal", "add the successors of a dataset to emissions", cmd_maze_reveal},
        {"verify", "check that a successors file was made from these emissions", cmd_maze_verify},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "maze",
        .summary = "inspect OGBench maze datasets, and evaluate and draw predicted graphs",
        .examples = "bjepa maze data pointmaze-large-navigate-v0.npz\n"
                    "bjepa maze drive --maze large\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
