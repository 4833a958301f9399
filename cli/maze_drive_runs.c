/* maze_drive_runs.c - see maze_drive_runs.h.
 *
 * Runs are grouped by maze, then by arm, both in order of first appearance. Runs of a campaign that
 * are unfinished or have collapsed are listed and left out.
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "maze_drive_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grid.h"
#include "json_out.h"
#include "maze_runs.h"
#include "output.h"

static const char verb[] = "maze drive";

typedef struct driven {
    const char *dir;
    char maze[128], arm[BJ_NAME_SIZE]; /* name of the arm or, for a reference, of its graph */
    int reference;
    uint64_t seed;
    int edges, real;
    bj_drive_result result;
    char left_out[600]; /* why; "": it was driven */
    int unfinished;     /* that is why */
} driven;

typedef struct work {
    maze_run_list runs;
    driven *all; /* the references of a maze come before its first run */
    int count;
} work;

static void work_reset(work *w) {
    maze_runs_reset(&w->runs);
    free(w->all);
}

/* -------------------------------------------------------------------------------------- driving */

static bj_status drive(driven *d, const bj_maze *maze, const uint8_t *graph,
                       const maze_drive_runs *o, bj_error *err) {
    const size_t C = (size_t)maze->cells;
    snprintf(d->maze, sizeof d->maze, "%s", maze->name);
    for (size_t k = 0; k < C * C; k++) {
        d->edges += graph[k] && k / C != k % C;
        d->real += graph[k] && maze->graph[k];
    }
    return bj_maze_drive(&d->result, maze, graph, &o->drive, err);
}

/* Adds the reference graphs of a maze when the maze appears for the first time. */
static bj_status add_references(work *w, const bj_maze *maze, const maze_drive_runs *o,
                                bj_error *err) {
    for (int i = 0; i < w->count; i++)
        if (!strcmp(w->all[i].maze, maze->name)) return BJ_OK;
    driven *d = &w->all[w->count++];
    d->reference = 1;
    snprintf(d->arm, sizeof d->arm, "true");
    bj_status status = drive(d, maze, maze->graph, o, err);
    if (status != BJ_OK || !maze->in_count) return status;
    uint8_t *walks = malloc((size_t)maze->cells * (size_t)maze->cells);
    if (!walks) return cli_error(err, BJ_ENOMEM, "out of memory for a graph");
    bj_maze_on_foot(walks, maze);
    d = &w->all[w->count++];
    d->reference = 1;
    snprintf(d->arm, sizeof d->arm, "walks");
    status = drive(d, maze, walks, o, err);
    free(walks);
    return status;
}

static bj_status drive_run(work *w, const maze_run_entry *e, const maze_drive_runs *o,
                           bj_error *err) {
    char path[CLI_PATH_SIZE];
    bj_maze_run *run = NULL;
    bj_maze_graph *graph = NULL;
    bj_status status = cli_path(path, e->dir, "result.json", err);
    if (status != BJ_OK) return status;
    const int begun = cli_exists(path);
    if (begun || !e->from_campaign) status = bj_maze_run_open(&run, e->dir, &o->run, err);
    if (e->from_campaign && (!begun || status == BJ_ELOCKED)) {
        driven *d = &w->all[w->count++];
        d->dir = e->dir;
        d->unfinished = !begun;
        if (begun) snprintf(d->left_out, sizeof d->left_out, "%s", err->message);
        else snprintf(d->left_out, sizeof d->left_out, "%.500s: the run is not finished", e->dir);
        return BJ_OK;
    }
    if (status == BJ_OK) status = bj_maze_graph_create(&graph, run, err);
    if (status == BJ_OK) status = add_references(w, bj_maze_run_maze(run), o, err);
    if (status == BJ_OK) {
        const bj_settings *s = bj_run_settings(bj_maze_run_folder(run));
        driven *d = &w->all[w->count++];
        d->dir = e->dir;
        d->seed = s->seed;
        snprintf(d->arm, sizeof d->arm, "%s", s->arm);
        status = drive(d, bj_maze_run_maze(run), bj_maze_graph_record(graph)->graph, o, err);
    }
    bj_maze_graph_free(graph);
    bj_maze_run_free(run);
    return status;
}

static bj_status drive_all(work *w, const maze_drive_runs *o, bj_error *err) {
    bj_status status = maze_runs_find(&w->runs, o->folders, o->count, err);
    if (status != BJ_OK) return status;
    w->all = calloc(3 * (size_t)w->runs.count + 1, sizeof *w->all);
    if (!w->all) return cli_error(err, BJ_ENOMEM, "out of memory for %d runs", w->runs.count);
    for (int i = 0; status == BJ_OK && i < w->runs.count; i++)
        status = drive_run(w, &w->runs.entry[i], o, err);
    return status;
}

/* --------------------------------------------------------------------------------------- groups */

/* The runs of an arm in a maze. */
typedef struct group {
    const driven *first;
    int n, tasks;
    double *success, *steps; /* (n) steps: of runs that succeeded at all */
    int with_steps;
    double task[BJ_MAZE_MAX_TASKS]; /* mean share of successes */
    double edges, real;             /* means */
} group;

/* 1: an earlier one opens this group. */
static int continues(const work *w, int i) {
    for (int k = 0; k < i; k++)
        if (!*w->all[k].left_out && w->all[k].reference == w->all[i].reference &&
            !strcmp(w->all[k].maze, w->all[i].maze) && !strcmp(w->all[k].arm, w->all[i].arm))
            return 1;
    return 0;
}

static bj_status gather(group *g, const work *w, int at, bj_error *err) {
    const driven *first = &w->all[at];
    *g = (group){.first = first, .tasks = first->result.tasks};
    g->success = malloc((size_t)w->count * sizeof *g->success);
    g->steps = malloc((size_t)w->count * sizeof *g->steps);
    if (!g->success || !g->steps) {
        free(g->success);
        free(g->steps);
        return cli_error(err, BJ_ENOMEM, "out of memory for %d runs", w->count);
    }
    for (int i = at; i < w->count; i++) {
        const driven *d = &w->all[i];
        if (*d->left_out || d->reference != first->reference || strcmp(d->maze, first->maze) ||
            strcmp(d->arm, first->arm))
            continue;
        g->success[g->n++] = d->result.success;
        if (isfinite(d->result.mean_steps)) g->steps[g->with_steps++] = d->result.mean_steps;
        for (int t = 0; t < g->tasks; t++)
            g->task[t] += (double)d->result.task[t].successes / d->result.task[t].episodes;
        g->edges += d->edges;
        g->real += d->real;
    }
    for (int t = 0; t < g->tasks; t++) g->task[t] /= g->n;
    g->edges /= g->n;
    g->real /= g->n;
    return BJ_OK;
}

static void group_reset(group *g) {
    free(g->steps);
    free(g->success);
}

/* ----------------------------------------------------------------------------------------- text */

static void row(cli_grid *grid, const group *g) {
    const bj_summary s = bj_summarize(g->success, g->n),
                     steps = bj_summarize(g->steps, g->with_steps);
    char text[CLI_CELL_SIZE];
    snprintf(text, sizeof text, "%s%s", g->first->reference ? "" : maze_predictor(g->first->arm),
             !g->first->reference              ? ""
             : !strcmp(g->first->arm, "walks") ? "true graph without teleporters"
                                               : "true graph");
    cli_grid_text(grid, text);
    if (g->first->reference) cli_grid_text(grid, "");
    else cli_grid_number(grid, 0, "%d", g->n);
    if (isfinite(s.sd))
        cli_grid_number(grid, 0, "%.1f " CLI_PLUS_MINUS " %.1f", 100 * s.mean, 100 * s.sd);
    else cli_grid_number(grid, 0, "%.1f", 100 * s.mean);
    for (int t = 0; t < g->tasks; t++) cli_grid_number(grid, 0, "%.1f", 100 * g->task[t]);
    if (g->with_steps) cli_grid_number(grid, 0, "%.1f", steps.mean);
    else cli_grid_text(grid, "-");
    cli_grid_number(grid, 0, "%.1f", g->real);
    cli_grid_number(grid, 0, "%.1f", g->edges - g->real);
}

static int print_maze(const work *w, int at, bj_error *err) {
    const driven *first = &w->all[at];
    cli_grid grid = {.columns = 6 + first->result.tasks, .left = 1};
    cli_grid_text(&grid, "predictor");
    cli_grid_text(&grid, "seeds");
    cli_grid_text(&grid, "success %");
    for (int t = 0; t < first->result.tasks; t++) {
        char text[24];
        snprintf(text, sizeof text, "task %d", t + 1);
        cli_grid_text(&grid, text);
    }
    cli_grid_text(&grid, "steps");
    cli_grid_text(&grid, "real edges");
    cli_grid_text(&grid, "false");
    for (int i = at; i < w->count; i++) {
        group g;
        if (*w->all[i].left_out || strcmp(w->all[i].maze, first->maze) || continues(w, i)) continue;
        if (gather(&g, w, i, err) != BJ_OK) return cli_fail(verb, err);
        row(&grid, &g);
        group_reset(&g);
    }
    return cli_grid_print(&grid, verb, CLI_FORMAT_TEXT, 0);
}

/* Returns 1 if no earlier entry belongs to the same maze. */
static int opens_maze(const work *w, int i) {
    for (int k = 0; k < i; k++)
        if (!*w->all[k].left_out && !strcmp(w->all[k].maze, w->all[i].maze)) return 0;
    return !*w->all[i].left_out;
}

static int print_text(const work *w, const maze_drive_runs *o, bj_error *err) {
    int mazes = 0;
    for (int i = 0; i < w->count; i++) {
        if (!opens_maze(w, i)) continue;
        printf("%smaze %s: %d tasks, %d episodes each, seed %llu, ", mazes++ ? "\n" : "",
               w->all[i].maze, w->all[i].result.tasks, o->drive.episodes,
               (unsigned long long)o->drive.seed);
        if (o->drive.patience) printf("patience %d\n\n", o->drive.patience);
        else printf("edges are never abandoned\n\n");
        const int code = print_maze(w, i, err);
        if (code != CLI_OK) return code;
    }
    int unfinished = 0, named = 0;
    for (int i = 0; i < w->count; i++) {
        unfinished += w->all[i].unfinished;
        if (*w->all[i].left_out && !w->all[i].unfinished)
            printf("%somitted: %s\n", named++ || !mazes ? "" : "\n", w->all[i].left_out);
    }
    if (unfinished)
        printf("%somitted: %d unfinished run%s\n", named || !mazes ? "" : "\n", unfinished,
               unfinished == 1 ? "" : "s");
    return CLI_OK;
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_run(const driven *d, int first) {
    printf("%s\n        {\"run\": ", first ? "" : ",");
    cli_json_text(stdout, d->dir);
    printf(", \"seed\": %llu, \"edges\": %d, \"real_edges\": %d, \"success\": ",
           (unsigned long long)d->seed, d->edges, d->real);
    cli_json_double(stdout, d->result.success);
    printf(", \"mean_steps\": ");
    cli_json_double(stdout, d->result.mean_steps);
    printf(", \"successes\": [");
    for (int t = 0; t < d->result.tasks; t++)
        printf("%s%d", t ? ", " : "", d->result.task[t].successes);
    printf("]}");
}

static void json_group(const group *g, const work *w, int at, int first) {
    const bj_summary s = bj_summarize(g->success, g->n),
                     steps = bj_summarize(g->steps, g->with_steps);
    printf("%s\n      {\"%s\": ", first ? "" : ",", g->first->reference ? "graph" : "arm");
    cli_json_text(stdout, g->first->arm);
    printf(", \"seeds\": %d, \"success\": {\"mean\": ", g->first->reference ? 0 : g->n);
    cli_json_double(stdout, s.mean);
    printf(", \"sd\": ");
    cli_json_double(stdout, s.sd);
    printf("}, \"mean_steps\": ");
    cli_json_double(stdout, g->with_steps ? steps.mean : (double)NAN);
    printf(", \"edges\": ");
    cli_json_double(stdout, g->edges);
    printf(", \"real_edges\": ");
    cli_json_double(stdout, g->real);
    printf(", \"task_success\": [");
    for (int t = 0; t < g->tasks; t++) {
        if (t) printf(", ");
        cli_json_double(stdout, g->task[t]);
    }
    printf("]");
    if (!g->first->reference) {
        printf(", \"runs\": [");
        for (int i = at, n = 0; i < w->count; i++) {
            const driven *d = &w->all[i];
            if (!*d->left_out && !d->reference && !strcmp(d->maze, g->first->maze) &&
                !strcmp(d->arm, g->first->arm))
                json_run(d, !n++);
        }
        printf("]");
    }
    printf("}");
}

static bj_status json_maze(const work *w, int at, bj_error *err) {
    const driven *first = &w->all[at];
    bj_status status = BJ_OK;
    printf("{\"maze\": ");
    cli_json_text(stdout, first->maze);
    printf(", \"predictors\": [");
    for (int i = at, n = 0; status == BJ_OK && i < w->count; i++) {
        group g;
        if (*w->all[i].left_out || strcmp(w->all[i].maze, first->maze) || continues(w, i)) continue;
        status = gather(&g, w, i, err);
        if (status != BJ_OK) break;
        json_group(&g, w, i, !n++);
        group_reset(&g);
    }
    printf("]}");
    return status;
}

static int print_json(const work *w, const maze_drive_runs *o, bj_error *err) {
    printf(
        "{\"schema\": 1, \"type\": \"maze_drive_runs\", \"seed\": %llu, \"patience\": %d, "
        "\"episodes_of_a_task\": %d,\n  \"step_limit\": %d, \"success_radius\": %g, \"mazes\": [",
        (unsigned long long)o->drive.seed, o->drive.patience, o->drive.episodes, o->drive.steps,
        BJ_POINT_GOAL);
    for (int i = 0, n = 0; i < w->count; i++) {
        if (!opens_maze(w, i)) continue;
        printf("%s\n    ", n++ ? "," : "");
        if (json_maze(w, i, err) != BJ_OK) return cli_fail(verb, err);
    }
    printf("],\n  \"left_out\": [");
    for (int i = 0, n = 0; i < w->count; i++) {
        if (!*w->all[i].left_out) continue;
        printf("%s\n    {\"run\": ", n++ ? "," : "");
        cli_json_text(stdout, w->all[i].dir);
        printf(", \"why\": ");
        cli_json_text(stdout, w->all[i].left_out);
        printf("}");
    }
    printf("]}\n");
    return CLI_OK;
}

int maze_drive_runs_print(const maze_drive_runs *o) {
    work w = {.count = 0};
    bj_error err;
    const bj_status status = drive_all(&w, o, &err);
    const int code = status != BJ_OK ? cli_fail(verb, &err)
                     : o->json       ? print_json(&w, o, &err)
                                     : print_text(&w, o, &err);
    work_reset(&w);
    return code;
}
