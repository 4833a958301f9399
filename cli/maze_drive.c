/* maze_drive.c - bjepa maze drive: the point agent follows a graph through the tasks of its maze.
 *
 * maze_drive_runs.c drives with the graphs of trained runs.
 */
#include "cli.h"
#include "json_out.h"
#include "maze.h"
#include "maze_drive_runs.h"

#include <branchjepa/maze_drive.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *maze, *graph;
    bj_drive_options drive;
    int json;
} options;

/* The maze to drive in: a given one, or the maze of a graph file. */
typedef struct subject {
    bj_maze *own;
    bj_graph_file *file;
    uint8_t *built; /* (C,C) */
    const bj_maze *maze;
    const uint8_t *graph;
    int real, edges; /* number of edges of the graph, and how many of them are in the true graph */
} subject;

static void subject_reset(subject *s) {
    bj_maze_free(s->own);
    bj_graph_close(s->file);
    free(s->built);
}

static bj_status open_file(subject *s, const options *o, bj_error *err) {
    const bj_status status = bj_graph_open(&s->file, o->graph, err);
    if (status != BJ_OK) return status;
    s->maze = bj_graph_of(s->file)->maze;
    s->graph = bj_graph_of(s->file)->graph;
    if (o->maze && strcmp(o->maze, s->maze->name))
        return cli_error(err, BJ_EARG, "%s: the graph belongs to maze '%s', expected '%s'",
                         o->graph, s->maze->name, o->maze);
    return BJ_OK;
}

static bj_status open_subject(subject *s, const options *o, bj_error *err) {
    const int walks = !strcmp(o->graph, "walks");
    bj_status status;
    *s = (subject){0};
    if (!walks && strcmp(o->graph, "true")) {
        status = open_file(s, o, err);
    } else {
        status = bj_maze_open(&s->own, o->maze, err);
        if (status != BJ_OK) return status;
        s->maze = s->own;
        s->graph = s->own->graph;
        if (walks) {
            s->built = malloc((size_t)s->own->cells * (size_t)s->own->cells);
            if (!s->built) return cli_error(err, BJ_ENOMEM, "out of memory for a graph");
            bj_maze_on_foot(s->built, s->own);
            s->graph = s->built;
        }
    }
    if (status != BJ_OK) return status;
    const size_t C = (size_t)s->maze->cells;
    for (size_t k = 0; k < C * C; k++) {
        s->edges += s->graph[k] && k / C != k % C;
        s->real += s->graph[k] && s->maze->graph[k];
    }
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- text */

static void print_steps(double mean) {
    if (isnan(mean)) printf("%10s", "-");
    else printf("%10.1f", mean);
}

static void print_text(const subject *s, const options *o, const bj_drive_result *r) {
    const bj_maze *m = s->maze;
    printf("maze %s, graph %s: %d edges, %d real\n\n", m->name, o->graph, s->edges,
           s->real);
    printf("task  start    goal     distance  success      %%     steps  replans\n");
    for (int t = 0; t < r->tasks; t++) {
        const bj_drive_task *k = &r->task[t];
        const int32_t *a = m->square + 2 * k->task.from, *b = m->square + 2 * k->task.to;
        char from[32], to[32], distance[16] = "no path";
        snprintf(from, sizeof from, "(%d,%d)", (int)a[0], (int)a[1]);
        snprintf(to, sizeof to, "(%d,%d)", (int)b[0], (int)b[1]);
        if (k->distance >= 0) snprintf(distance, sizeof distance, "%d", k->distance);
        printf("%4d  %-8s %-8s %8s  %3d/%-4d %5.1f", t + 1, from, to, distance, k->successes,
               k->episodes, 100.0 * k->successes / k->episodes);
        print_steps(k->mean_steps);
        printf("%9d\n", k->replans);
    }
    printf("%-33s %3d/%-4d %5.1f", "all", r->successes, r->episodes, 100 * r->success);
    print_steps(r->mean_steps);
    putchar('\n');
}

/* ----------------------------------------------------------------------------------------- JSON */

static void print_json(const subject *s, const options *o, const bj_drive_result *r) {
    printf("{\"schema\": 1, \"type\": \"maze_drive\", \"maze\": ");
    cli_json_text(stdout, s->maze->name);
    printf(", \"graph\": ");
    cli_json_text(stdout, o->graph);
    printf(",\n  \"edges\": %d, \"real_edges\": %d, \"seed\": %llu, \"patience\": %d, "
           "\"step_limit\": %d,\n  \"success_radius\": %g, \"tasks\": [",
           s->edges, s->real, (unsigned long long)o->drive.seed, o->drive.patience,
           o->drive.steps ? o->drive.steps : BJ_POINT_STEPS, BJ_POINT_GOAL);
    for (int t = 0; t < r->tasks; t++) {
        const bj_drive_task *k = &r->task[t];
        printf("%s\n    {\"task\": %d, \"start\": %d, \"goal\": %d, \"distance\": ", t ? "," : "",
               t + 1, (int)k->task.from, (int)k->task.to);
        if (k->distance < 0) printf("null");
        else printf("%d", k->distance);
        printf(", \"episodes\": %d, \"successes\": %d, \"mean_steps\": ", k->episodes,
               k->successes);
        cli_json_double(stdout, k->mean_steps);
        printf(", \"replans\": %d, \"teleports\": %d, \"edges_given_up\": %d}", k->replans,
               k->teleports, k->given_up);
    }
    printf("],\n  \"episodes\": %d, \"successes\": %d, \"success\": ", r->episodes, r->successes);
    cli_json_double(stdout, r->success);
    printf(", \"mean_steps\": ");
    cli_json_double(stdout, r->mean_steps);
    printf("}\n");
}

/* -------------------------------------------------------------------------------------- command */

static bj_status run(const options *o, bj_error *err) {
    subject s;
    bj_drive_result result;
    bj_status status = open_subject(&s, o, err);
    if (status == BJ_OK) status = bj_maze_drive(&result, s.maze, s.graph, &o->drive, err);
    if (status == BJ_OK && o->json) print_json(&s, o, &result);
    if (status == BJ_OK && !o->json) print_text(&s, o, &result);
    subject_reset(&s);
    return status;
}

int cmd_maze_drive(int argc, char **argv) {
    options o = {.drive = {.episodes = 20, .steps = BJ_POINT_STEPS}};
    bj_maze_run_options how = {.data = NULL};
    int operands;
    const cli_option table[] = {
        {"maze", 0, CLI_TEXT, "NAME", &o.maze, 0, 0,
         "medium, large, giant, teleport, or a maze file (default: the maze of the graph file)"},
        {"graph", 0, CLI_TEXT, "FILE", &o.graph, 0, 0,
         "graph file, 'true' for the true graph, "
         "or 'walks' for the true graph without teleporters"},
        {"episodes", 0, CLI_INT, "N", &o.drive.episodes, 1, 1000000, "episodes per task"},
        {"steps", 0, CLI_INT, "N", &o.drive.steps, 1, 1000000, "max steps per episode"},
        {"patience", 0, CLI_INT, "N", &o.drive.patience, 0, 1000000,
         "abandon an edge after N steps in the same cell; 0 means never"},
        {"data", 0, CLI_TEXT, "FILE", &how.data, 0, 0, "path of the dataset, if it was moved"},
        CLI_OPTION_THREADS(&how.threads),
        CLI_OPTION_SEED(&o.drive.seed),
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze drive",
        .summary =
            "drive the point agent through the official tasks with given or predicted graphs",
        .operands = "[RUN|CAMPAIGN]...",
        .max_operands = 100000,
        .examples = "bjepa maze drive --maze large\n"
                    "bjepa maze drive --graph predicted.json --patience 60 --json\n"
                    "bjepa maze drive planall-medium --patience 60\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (operands) {
        if (o.graph) return cli_misuse("maze drive", "found --graph and runs, expected one of "
                                                     "them, because runs have their own graphs");
        how.maze = o.maze;
        const maze_drive_runs runs = {argv + 1, operands, how, o.drive, o.json};
        return maze_drive_runs_print(&runs);
    }
    if (!o.graph) o.graph = "true";
    if (!o.maze && (!strcmp(o.graph, "true") || !strcmp(o.graph, "walks")))
        return cli_misuse("maze drive",
                          "found no maze, expected --maze NAME, a graph file or run folders");
    bj_error err;
    return run(&o, &err) == BJ_OK ? CLI_OK : cli_fail("maze drive", &err);
}
