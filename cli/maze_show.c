/* maze_show.c - bjepa maze show: writes a predicted graph as a picture or a page. */
#include "cli.h"
#include "maze.h"
#include "maze_draw.h"
#include "maze_page.h"
#include "maze_successors.h"
#include "output.h"

#include <branchjepa/maze_drive.h>

#include <string.h>

typedef struct options {
    const char *path, *out, *data, *maze;
    int source; /* -1: the one with most candidates' edges */
    bj_drive_options drive;
} options;

static bj_status write_file(const options *o, const bj_graph_record *r, bj_error *err) {
    const maze_page page = {o->path, r, o->source < 0 ? maze_richest(r) : o->source, o->drive};
    cli_file file;
    bj_status status = cli_file_open(&file, o->out, err);
    if (status != BJ_OK) return status;
    if (cli_ends_in(o->out, ".svg")) maze_draw(file.stream, r, page.source, 0);
    else status = maze_page_write(file.stream, &page, err);
    if (status == BJ_OK) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return status;
}

/* The second file of an archive can only be drawn as a picture. */
static bj_status draw_successors(const options *o, bj_error *err) {
    cli_file file;
    if (!cli_ends_in(o->out, ".svg"))
        return cli_error(err, BJ_EARG,
                         "%s: is a successors file, which can only be drawn as a picture; "
                         "expected an output name that ends in .svg",
                         o->path);
    bj_status status = cli_file_open(&file, o->out, err);
    if (status != BJ_OK) return status;
    status = maze_successors_draw(file.stream, o->path, o->maze, err);
    if (status == BJ_OK) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return status;
}

static bj_status run(const options *o, bj_error *err) {
    bj_graph_file *file = NULL;
    bj_maze_data *data = NULL;
    if (maze_successors_is(o->path)) return draw_successors(o, err);
    bj_status status = bj_graph_open(&file, o->path, err);
    if (status != BJ_OK) return status;
    bj_graph_record r = *bj_graph_of(file);
    if (o->source >= r.maze->cells)
        status = cli_error(err, BJ_EARG, "no cell %d; maze '%s' has %d cells", o->source,
                           r.maze->name, r.maze->cells);
    if (status == BJ_OK && o->data) {
        status = bj_maze_data_open(&data, o->data, r.maze, err);
        if (status == BJ_OK) {
            r.seen = bj_maze_data_edges(data);
            r.crossings = bj_maze_data_counts(data);
            r.seen_count = bj_maze_data_about(data).edges;
        }
    }
    if (status == BJ_OK) status = write_file(o, &r, err);
    bj_maze_data_free(data);
    bj_graph_close(file);
    return status;
}

int cmd_maze_show(int argc, char **argv) {
    options o = {.out = "maze.html", .source = -1};
    int operands;
    const cli_option table[] = {
        {"out", 'o', CLI_TEXT, "FILE", &o.out, 0, 0, "page (.html) or picture (.svg) to write"},
        {"source", 0, CLI_INT, "CELL", &o.source, 0, BJ_MAZE_MAX_CELLS - 1,
         "cell whose candidates are shown first (default: the cell with the most edges)"},
        {"data", 0, CLI_TEXT, "FILE", &o.data, 0, 0,
         "dataset from which successors are revealed "
         "(default: the dataset of the graph file, or the true successors)"},
        {"maze", 0, CLI_TEXT, "FILE", &o.maze, 0, 0,
         "maze file, if the successors file belongs to a generated maze"},
        {"patience", 0, CLI_INT, "N", &o.drive.patience, 0, 1000000,
         "abandon an edge after N steps in the same cell, as in maze drive; 0 means never"},
        CLI_OPTION_SEED(&o.drive.seed),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze show",
        .summary = "draw a predicted graph with its candidates, successors and drives",
        .operands = "GRAPH|SUCCESSORS",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa maze show predicted.json -o maze.html\n"
                    "bjepa maze show predicted.json --source 12 -o maze.svg\n"
                    "bjepa maze show successors.json -o archive.svg\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (!cli_ends_in(o.out, ".svg") && !cli_ends_in(o.out, ".html"))
        return cli_misuse("maze show",
                          "--out: found '%s', expected a name that ends in .svg or .html", o.out);
    o.path = argv[1];
    bj_error err;
    return run(&o, &err) == BJ_OK ? CLI_OK : cli_fail("maze show", &err);
}
