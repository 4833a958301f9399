/* maze_data.c - bjepa maze data: describes an OGBench dataset and compares it with the true graph
 * of its maze.
 *
 * Text and JSON output use the same summary.
 */
#include "cli.h"
#include "json_out.h"
#include "maze.h"

#include <branchjepa/maze_drive.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = BJ_EDGE_OTHER + 1, BINS = 16, LISTED = 20 };

typedef struct summary {
    const char *path;
    const bj_maze *maze;
    bj_maze_data_info info;
    const bj_edge *edges;
    const int64_t *counts;
    int of_kind[KINDS]; /* observed edges */
    int64_t crossings_of[KINDS];
    int missing;                    /* true edges never crossed */
    int64_t rarest;                 /* crossings of the rarest real edge; 0: there is none */
    int observed[BINS], real[BINS]; /* number of cells with this many successors; the last bin also
                                       counts larger numbers */
    double branch;                  /* mean successors of a source */
    int withheld;
    char digest[65];
} summary;

/* ------------------------------------------------------------------------------------- summary */

/* Counts the cells with 0, 1, 2, ... successors in a sorted list of edges. */
static void count_successors(int bins[BINS], const bj_edge *edges, int count, int cells) {
    int k = 0;
    for (int u = 0; u < cells; u++) {
        int n = 0;
        for (; k < count && edges[k].from == u; k++) n++;
        bins[n < BINS ? n : BINS - 1]++;
    }
}

static int is_observed(const summary *s, bj_edge edge) {
    for (int k = 0; k < s->info.edges; k++)
        if (s->edges[k].from == edge.from && s->edges[k].to == edge.to) return 1;
    return 0;
}

static bj_status count_withheld(summary *s, uint64_t seed, bj_error *err) {
    const size_t n = (size_t)s->info.edges + 1; /* none is still an allocation */
    int32_t *order = malloc(n * sizeof *order);
    uint8_t *held = malloc(n);
    bj_status status = BJ_OK;
    if (!order || !held) status = cli_error(err, BJ_ENOMEM, "out of memory for %zu edges", n);
    if (status == BJ_OK) {
        bj_withhold_order(order, s->info.edges, seed);
        status =
            bj_withhold(held, &s->withheld, s->edges, s->info.edges, order, BJ_MAZE_WITHHELD, err);
    }
    free(order);
    free(held);
    return status;
}

static bj_status summarize(summary *s, const bj_maze *maze, const bj_maze_data *data,
                           const char *path, bj_error *err) {
    *s = (summary){.path = path,
                   .maze = maze,
                   .info = bj_maze_data_about(data),
                   .edges = bj_maze_data_edges(data),
                   .counts = bj_maze_data_counts(data)};
    for (int k = 0; k < s->info.edges; k++) {
        const bj_edge_kind kind = bj_maze_edge_kind(maze, s->edges[k]);
        s->of_kind[kind]++;
        s->crossings_of[kind] += s->counts[k];
        if (kind == BJ_EDGE_REAL && (!s->rarest || s->counts[k] < s->rarest))
            s->rarest = s->counts[k];
    }
    for (int k = 0; k < maze->edge_count; k++) s->missing += !is_observed(s, maze->edges[k]);
    count_successors(s->observed, s->edges, s->info.edges, maze->cells);
    count_successors(s->real, maze->edges, maze->edge_count, maze->cells);
    s->branch = s->info.sources ? (double)s->info.edges / s->info.sources : (double)NAN;
    const bj_status status = count_withheld(s, 0, err);
    return status == BJ_OK ? bj_file_digest(s->digest, path, err) : status;
}

/* ----------------------------------------------------------------------------------------- text */

static void print_count(const char *title, int64_t count) {
    char text[CLI_COUNT_SIZE];
    printf("%-22s%12s", title, cli_count(text, (size_t)count));
}

static void print_square(const bj_maze *m, int cell) {
    printf("%d (%d,%d)", cell, (int)m->square[2 * cell], (int)m->square[2 * cell + 1]);
}

static void print_edge(const bj_maze *m, bj_edge e) {
    printf("  ");
    print_square(m, e.from);
    printf(" -> ");
    print_square(m, e.to);
}

static void print_missing(const summary *s) {
    int listed = 0;
    if (!s->missing) return;
    printf("\ntrue edges that were never crossed\n");
    for (int k = 0; k < s->maze->edge_count; k++) {
        if (is_observed(s, s->maze->edges[k])) continue;
        if (listed++ == LISTED) {
            printf("  and %d more\n", s->missing - LISTED);
            return;
        }
        print_edge(s->maze, s->maze->edges[k]);
        putchar('\n');
    }
}

static void print_extra(const summary *s) {
    const int extra = s->info.edges - s->of_kind[BJ_EDGE_REAL];
    int listed = 0;
    if (!extra) return;
    printf("\nedges that are not in the true graph, and their numbers of crossings\n");
    for (int k = 0; k < s->info.edges; k++) {
        const bj_edge_kind kind = bj_maze_edge_kind(s->maze, s->edges[k]);
        if (kind == BJ_EDGE_REAL) continue;
        if (listed++ == LISTED) {
            printf("  and %d more\n", extra - LISTED);
            return;
        }
        print_edge(s->maze, s->edges[k]);
        printf("  %lld  %s\n", (long long)s->counts[k], bj_edge_kind_name(kind));
    }
}

static int last_bin(const summary *s) {
    int last = BINS - 1;
    while (last && !s->observed[last] && !s->real[last]) last--;
    return last;
}

static void print_observation(const bj_maze_data_info *info) {
    printf("%-22s", "observation");
    printf("%12s", info->observations);
    for (int k = 0; k < info->rank; k++) printf("%s%d", k ? " x " : "  ", info->shape[k]);
    if (strcmp(info->positions, info->observations)) printf(", positions from %s", info->positions);
    putchar('\n');
}

static void print_text(const summary *s) {
    const bj_maze_data_info *info = &s->info;
    const bj_maze *m = s->maze;
    printf("%s\n\n", s->path);
    printf("%-22s%12s  %d x %d squares, %d cells\n", "maze", m->name, m->rows, m->cols, m->cells);
    print_observation(info);
    print_count("episodes", info->episodes);
    printf("%s\n", info->open_end ? "  (the last episode has no end mark)" : "");
    print_count("steps", info->steps);
    if (info->stride > 1)
        printf("  recorded every %d simulator steps, so edges can skip cells", info->stride);
    putchar('\n');
    print_count("steps outside cells", info->outside);
    putchar('\n');
    print_count("cells visited", info->visited);
    printf("  of %d\n", m->cells);
    print_count("crossings", info->crossings);
    putchar('\n');
    print_count("unique edges", info->edges);
    printf("  from %d sources\n", info->sources);
    print_count("true edges seen", s->of_kind[BJ_EDGE_REAL]);
    printf("  of %d; the rarest was crossed %lld times\n", m->edge_count, (long long)s->rarest);
    for (int kind = BJ_EDGE_RETREAT; kind < KINDS; kind++) {
        char title[32];
        snprintf(title, sizeof title, "%s edges", bj_edge_kind_name((bj_edge_kind)kind));
        print_count(title, s->of_kind[kind]);
        printf("  crossed %lld times\n", (long long)s->crossings_of[kind]);
    }
    printf("%-22s%12.3f  successors per source\n", "branch factor", s->branch);
    print_count("withheld edges", s->withheld);
    printf("  %g %% of the unique edges; each source keeps at least one edge\n",
           100 * BJ_MAZE_WITHHELD);
    printf("\nsuccessors      ");
    for (int k = 0; k <= last_bin(s); k++) printf("%6d", k);
    printf("\ncells, seen     ");
    for (int k = 0; k <= last_bin(s); k++) printf("%6d", s->observed[k]);
    printf("\ncells, true     ");
    for (int k = 0; k <= last_bin(s); k++) printf("%6d", s->real[k]);
    putchar('\n');
    print_missing(s);
    print_extra(s);
    printf("\nsha256  %s\n", s->digest);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_bins(const char *key, const int *bins, int last) {
    printf(",\n  \"%s\": [", key);
    for (int k = 0; k <= last; k++) printf("%s%d", k ? ", " : "", bins[k]);
    printf("]");
}

static void json_lists(const summary *s) {
    int listed = 0;
    printf(",\n  \"missing\": [");
    for (int k = 0; k < s->maze->edge_count; k++)
        if (!is_observed(s, s->maze->edges[k]))
            printf("%s[%d, %d]", listed++ ? ", " : "", (int)s->maze->edges[k].from,
                   (int)s->maze->edges[k].to);
    printf("],\n  \"edges\": [");
    for (int k = 0; k < s->info.edges; k++)
        printf("%s\n    {\"from\": %d, \"to\": %d, \"crossings\": %lld, \"kind\": \"%s\"}",
               k ? "," : "", (int)s->edges[k].from, (int)s->edges[k].to, (long long)s->counts[k],
               bj_edge_kind_name(bj_maze_edge_kind(s->maze, s->edges[k])));
    printf("]");
}

static void print_json(const summary *s) {
    const bj_maze_data_info *info = &s->info;
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"cells", s->maze->cells},
                  {"true_edges", s->maze->edge_count},
                  {"episodes", info->episodes},
                  {"steps", info->steps},
                  {"stride", info->stride},
                  {"steps_in_no_cell", info->outside},
                  {"cells_visited", info->visited},
                  {"crossings", info->crossings},
                  {"unique_edges", info->edges},
                  {"sources", info->sources},
                  {"observed_true", s->of_kind[BJ_EDGE_REAL]},
                  {"retreat", s->of_kind[BJ_EDGE_RETREAT]},
                  {"diagonal", s->of_kind[BJ_EDGE_DIAGONAL]},
                  {"other", s->of_kind[BJ_EDGE_OTHER]},
                  {"rarest_true_edge", s->rarest},
                  {"withheld", s->withheld}};
    printf("{\"schema\": 1, \"type\": \"maze_data\", \"file\": ");
    cli_json_text(stdout, s->path);
    printf(",\n  \"sha256\": \"%s\", \"maze\": ", s->digest);
    cli_json_text(stdout, s->maze->name);
    printf(",\n  \"observations\": ");
    cli_json_text(stdout, info->observations);
    printf(", \"shape\": [");
    for (int k = 0; k < info->rank; k++) printf("%s%d", k ? ", " : "", info->shape[k]);
    printf("], \"positions\": ");
    cli_json_text(stdout, info->positions);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf(",\n  \"%s\": %lld", counts[i].key, (long long)counts[i].value);
    printf(",\n  \"open_end\": %s,\n  \"branch_factor\": ", info->open_end ? "true" : "false");
    cli_json_double(stdout, s->branch);
    json_bins("successors_seen", s->observed, last_bin(s));
    json_bins("successors_true", s->real, last_bin(s));
    json_lists(s);
    printf("}\n");
}

/* -------------------------------------------------------------------------------------- command */

static bj_status run(const char *path, const char *name, int json, bj_error *err) {
    bj_maze *maze = NULL;
    bj_maze_data *data = NULL;
    summary s;
    bj_status status = bj_maze_open(&maze, name, err);
    if (status == BJ_OK) status = bj_maze_data_open(&data, path, maze, err);
    if (status == BJ_OK) status = summarize(&s, maze, data, path, err);
    if (status == BJ_OK && json) print_json(&s);
    if (status == BJ_OK && !json) print_text(&s);
    bj_maze_data_free(data);
    bj_maze_free(maze);
    return status;
}

int cmd_maze_data(int argc, char **argv) {
    int json = 0, operands;
    const char *name = NULL;
    const cli_option options[] = {
        {"maze", 0, CLI_TEXT, "NAME", &name, 0, 0,
         "medium, large, giant, teleport, or a maze file (default: taken from the data file name)"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze data",
        .summary =
            "print the episodes, cells and edges of a dataset and compare them with the true graph",
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa maze data pointmaze-large-navigate-v0.npz\n"
                    "bjepa maze data walks.npz --maze teleport --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (!name) name = bj_maze_guess(argv[1]);
    if (!name)
        return cli_misuse(
            "maze data",
            "the file name '%s' contains none of the maze names medium, large, giant and teleport\n"
            "hint: name the maze with --maze",
            argv[1]);
    bj_error err;
    return run(argv[1], name, json, &err) == BJ_OK ? CLI_OK : cli_fail("maze data", &err);
}
