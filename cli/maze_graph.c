/* maze_graph.c - bjepa maze graph: writes the graph predicted by a finished run, and its scores. */
#include "cli.h"
#include "json_out.h"
#include "maze.h"
#include "maze_runs.h"
#include "output.h"

#include <branchjepa/maze_run.h>

#include <math.h>
#include <stdio.h>

static const char verb[] = "maze graph";

typedef struct options {
    const char *out;
    bj_maze_run_options run;
    int json;
} options;

static void print_share(const char *title, double value) {
    if (isnan(value)) printf("%-22s%10s\n", title, "-");
    else printf("%-22s%9.1f%%\n", title, 100 * value);
}

static void print_text(const bj_maze_run *run, const bj_maze_graph *graph, const options *o) {
    const bj_graph_record *r = bj_maze_graph_record(graph);
    const bj_graph_scores s = bj_maze_graph_scores(graph);
    const bj_settings *settings = bj_run_settings(bj_maze_run_folder(run));
    const bj_epoch row = bj_maze_run_epoch(run);
    printf("maze %s, predictor %s, seed %llu, %lld updates\n\n", r->maze->name,
           maze_predictor(settings->arm), (unsigned long long)settings->seed, (long long)row.step);
    printf("%-22s%10d  from %d of %d sources\n", "predicted edges", s.predicted_edges,
           s.sources_with_edges, r->sources);
    print_share("planAll", s.plan_all);
    print_share("verified route", s.verified_route);
    print_share("macro precision", s.macro_precision);
    print_share("macro precision, self", s.macro_precision_self);
    print_share("withheld edges found", s.held_recall);
    print_share("raw COV-R", s.cov_r);
    print_share("separated cells", row.maze.separated);
    if (bj_maze_run_collapsed(run))
        printf("\n"
               "the latents have collapsed, so these numbers are not scores\n");
    printf("\n%s\n", o->out);
}

static void json_number(const char *key, double value) {
    printf(", \"%s\": ", key);
    cli_json_double(stdout, value);
}

static void print_json(const bj_maze_run *run, const bj_maze_graph *graph, const options *o) {
    const bj_graph_record *r = bj_maze_graph_record(graph);
    const bj_graph_scores s = bj_maze_graph_scores(graph);
    const bj_settings *settings = bj_run_settings(bj_maze_run_folder(run));
    printf("{\"schema\": 1, \"type\": \"maze_graph\", \"file\": ");
    cli_json_text(stdout, o->out);
    printf(", \"maze\": ");
    cli_json_text(stdout, r->maze->name);
    printf(", \"arm\": ");
    cli_json_text(stdout, settings->arm);
    printf(", \"seed\": %llu, \"updates\": %lld, \"collapsed\": %s,\n  \"sources\": %d",
           (unsigned long long)settings->seed, (long long)bj_maze_run_epoch(run).step,
           bj_maze_run_collapsed(run) ? "true" : "false", r->sources);
    json_number("plan_all", s.plan_all);
    json_number("verified_route", s.verified_route);
    json_number("macro_precision", s.macro_precision);
    json_number("macro_precision_self", s.macro_precision_self);
    json_number("held_recall", s.held_recall);
    json_number("cov_r", s.cov_r);
    json_number("predicted_edges", s.predicted_edges);
    json_number("separated", bj_maze_run_epoch(run).maze.separated);
    printf("}\n");
}

static bj_status work(const char *dir, const options *o, bj_error *err) {
    bj_maze_run *run = NULL;
    bj_maze_graph *graph = NULL;
    bj_status status = bj_file_writable(o->out, err);
    if (status == BJ_OK) status = bj_maze_run_open(&run, dir, &o->run, err);
    if (status == BJ_OK) status = bj_maze_graph_create(&graph, run, err);
    if (status == BJ_OK) status = bj_graph_save(o->out, bj_maze_graph_record(graph), err);
    if (status == BJ_OK && o->json) print_json(run, graph, o);
    if (status == BJ_OK && !o->json) print_text(run, graph, o);
    bj_maze_graph_free(graph);
    bj_maze_run_free(run);
    return status;
}

int cmd_maze_graph(int argc, char **argv) {
    options o = {.out = "graph.json"};
    int operands;
    const cli_option table[] = {
        {"out", 'o', CLI_TEXT, "FILE", &o.out, 0, 0, "graph file to write"},
        {"data", 0, CLI_TEXT, "FILE", &o.run.data, 0, 0, "path of the dataset, if it was moved"},
        {"maze", 0, CLI_TEXT, "FILE", &o.run.maze, 0, 0,
         "new path of the maze file, if the run used a generated maze and the file was moved"},
        {"collapsed", 0, CLI_FLAG, NULL, &o.run.collapsed, 0, 0,
         "accept a run whose latents have collapsed"},
        CLI_OPTION_THREADS(&o.run.threads),
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = verb,
        .summary = "write the predicted graph of a finished run, with candidates and scores",
        .operands = "RUN",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa maze graph runs/branch -o branch.json\n"
                    "bjepa maze show branch.json\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    bj_error err;
    return work(argv[1], &o, &err) == BJ_OK ? CLI_OK : cli_fail(verb, &err);
}
