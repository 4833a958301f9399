/* maze_generate.c - bjepa maze generate: generates a maze with a given number of successors, and
 * walks through it. */
#include "cli.h"
#include "json_out.h"
#include "maze.h"

#include <branchjepa/maze_drive.h>

#include <stdio.h>
#include <string.h>

enum { PATH = 4096 };

typedef struct options {
    const char *out;
    bj_generate_options maze;
    bj_walk_options walk;
    int json;
} options;

static void print(const options *o, const bj_maze *m, const char *maze_path, const char *data_path,
                  const char *digest) {
    const long long rows = (long long)o->walk.episodes * o->walk.steps;
    if (o->json) {
        printf("{\"schema\": 1, \"type\": \"maze_generate\", \"maze\": ");
        cli_json_text(stdout, m->name);
        printf(", \"maze_file\": ");
        cli_json_text(stdout, maze_path);
        printf(", \"data_file\": ");
        cli_json_text(stdout, data_path);
        printf(",\n  \"data_sha256\": \"%s\", \"cells\": %d, \"edges\": %d, \"branches\": %d, "
               "\"designated\": [",
               digest, m->cells, m->edge_count, o->maze.branches);
        for (int k = 0; k < m->in_count; k++) printf("%s%d", k ? ", " : "", (int)m->ins[k]);
        printf("],\n  \"successors\": [");
        for (int k = 0; k < m->out_count; k++) printf("%s%d", k ? ", " : "", (int)m->outs[k]);
        printf("], \"episodes\": %d, \"steps\": %lld, \"seed\": %llu}\n", o->walk.episodes, rows,
               (unsigned long long)o->maze.seed);
        return;
    }
    printf("%s: %d cells, %d edges\n", m->name, m->cells, m->edge_count);
    printf("%d designated cells with %d successors each:", m->in_count, o->maze.branches);
    for (int k = 0; k < m->in_count; k++) printf(" %d", (int)m->ins[k]);
    printf(" ->");
    for (int k = 0; k < m->out_count; k++) printf(" %d", (int)m->outs[k]);
    printf("\n%s\n%s: %d episodes, %lld steps, sha256 %s\n", maze_path, data_path, o->walk.episodes,
           rows, digest);
}

static bj_status run(options *o, bj_error *err) {
    char maze_path[PATH], data_path[PATH], digest[65];
    bj_maze *m = NULL;
    if (strlen(o->out) + 8 > PATH)
        return cli_error(err, BJ_EARG, "--out: the name %.60s... is too long", o->out);
    snprintf(maze_path, sizeof maze_path, "%s.json", o->out);
    snprintf(data_path, sizeof data_path, "%s.npz", o->out);
    o->walk.seed = o->maze.seed;
    bj_status status = bj_maze_generate(&m, &o->maze, err);
    if (status == BJ_OK) status = bj_maze_walk(data_path, m, &o->walk, err);
    if (status == BJ_OK) status = bj_maze_save(maze_path, m, err);
    if (status == BJ_OK) status = bj_file_digest(digest, data_path, err);
    if (status == BJ_OK) print(o, m, maze_path, data_path, digest);
    bj_maze_free(m);
    return status;
}

int cmd_maze_generate(int argc, char **argv) {
    options o = {.maze = {.rows = 4, .cols = 5, .branches = 3, .junctions = 4, .loops = 0.25},
                 .walk = {.episodes = 1000, .steps = 1001, .noise = 0.5}};
    const cli_option table[] = {
        {"out", 'o', CLI_TEXT, "NAME", &o.out, 0, 0,
         "write the maze to NAME.json and the walks to NAME.npz"},
        {"branches", 0, CLI_INT, "N", &o.maze.branches, 2, 8,
         "successors of every designated cell"},
        {"junctions", 0, CLI_INT, "N", &o.maze.junctions, 1, BJ_MAZE_MAX_PORTS,
         "number of designated cells"},
        {"rows", 0, CLI_INT, "N", &o.maze.rows, 2, 30, "number of rooms from top to bottom"},
        {"cols", 0, CLI_INT, "N", &o.maze.cols, 2, 30, "number of rooms from left to right"},
        {"loops", 0, CLI_REAL, "SHARE", &o.maze.loops, 0, 0.999,
         "share of the walls to open in addition to those of the spanning tree"},
        {"episodes", 0, CLI_INT, "N", &o.walk.episodes, 1, 1000000, "number of walks"},
        {"steps", 0, CLI_INT, "N", &o.walk.steps, 2, 1000000, "steps per walk"},
        {"noise", 0, CLI_REAL, "SD", &o.walk.noise, 0, 100,
         "standard deviation of the noise added to actions"},
        CLI_OPTION_SEED(&o.maze.seed),
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze generate",
        .summary =
            "generate a maze with a given number of successors at some cells, and walks in it",
        .examples = "bjepa maze generate --branches 4 --seed 0 -o branch4\n"
                    "bjepa maze data branch4.npz --maze branch4.json\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    if (!o.out) return cli_misuse("maze generate", "--out is missing");
    bj_error err;
    return run(&o, &err) == BJ_OK ? CLI_OK : cli_fail("maze generate", &err);
}
