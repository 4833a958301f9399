/* maze_parity.c - see maze_parity.h. */
#include "verify/maze_parity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/maze.h"
#include "npz/npz.h"
#include "verify/failure.h"

enum { LIMIT = 1 << 27, ARRAYS = 64 }; /* max number of values per array, max number of arrays
                                          loaded from one file */

typedef struct check {
    bj_parity_report *report;
    bj_npz *npz;
    bj_error *err;
    void *memory[ARRAYS]; /* freed at the end */
    int loaded;
    unsigned char *seen; /* (arrays of the file) 1 if the array was compared */
} check;

/* --------------------------------------------------------------------------------------- inputs */

static void *keep(check *c, size_t count, size_t size, bj_status *status) {
    void *memory = c->loaded < ARRAYS ? bj_alloc(count, size) : NULL;
    if (memory) c->memory[c->loaded++] = memory;
    else *status = bj_alloc_failed(count, size, c->err);
    return memory;
}

#define KEEP(c, pointer, count)                                                                    \
    do {                                                                                           \
        bj_status keep_status_ = BJ_OK;                                                            \
        (pointer) = keep((c), (count), sizeof *(pointer), &keep_status_);                          \
        if (keep_status_ != BJ_OK) return keep_status_;                                            \
    } while (0)

/* Loads an array of the given rank as doubles. */
static bj_status load(check *c, const double **out, const bj_npy **npy, const char *name,
                      int rank) {
    const bj_npz_array *a = NULL;
    double *values = NULL;
    BJ_TRY(bj_npz_need(&a, c->npz, name, rank, c->err));
    BJ_TRY(bj_npz_doubles(&values, c->npz, name, LIMIT, c->err));
    if (c->loaded == ARRAYS) {
        bj_free(values);
        return bj_alloc_failed(ARRAYS, sizeof values, c->err);
    }
    c->memory[c->loaded++] = values;
    *out = values;
    if (npy) *npy = &a->npy;
    return BJ_OK;
}

static bj_status expect_size(const check *c, const char *name, const char *what, int64_t found,
                             int64_t expected) {
    if (found == expected) return BJ_OK;
    return BJ_FAIL(c->err, BJ_EFORMAT, "%s: array '%s' has %lld %s, expected %lld",
                   bj_npz_path(c->npz), name, (long long)found, what, (long long)expected);
}

static bj_status load_reals(check *c, bj_real **out, const bj_npy **npy, const char *name,
                            int rank) {
    const double *values = NULL;
    BJ_TRY(load(c, &values, npy, name, rank));
    const size_t count = (size_t)((*npy)->rows * (*npy)->width);
    KEEP(c, *out, count);
    for (size_t i = 0; i < count; i++) (*out)[i] = (bj_real)values[i];
    return BJ_OK;
}

/* Loads integers in [least, most] with `width` integers per row. Width 1 means a rank-1 array. */
static bj_status load_ints(check *c, int32_t **out, int64_t *rows, const char *name, int width,
                           int64_t least, int64_t most) {
    const double *values = NULL;
    const bj_npy *npy = NULL;
    BJ_TRY(load(c, &values, &npy, name, width > 1 ? 2 : 1));
    if (width > 1) BJ_TRY(expect_size(c, name, "columns", npy->shape[1], width));
    const size_t count = (size_t)npy->rows * (size_t)width;
    KEEP(c, *out, count);
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= (double)least && values[i] <= (double)most) ||
            values[i] != floor(values[i]))
            return BJ_FAIL(c->err, BJ_EFORMAT,
                           "%s: array '%s': number %zu is %g, expected an integer from %lld to %lld",
                           bj_npz_path(c->npz), name, i, values[i], (long long)least,
                           (long long)most);
        (*out)[i] = (int32_t)values[i];
    }
    *rows = npy->rows;
    return BJ_OK;
}

/* Loads pairs of cells. */
static bj_status load_pairs(check *c, bj_edge **out, int *count, const char *name, int cells) {
    int32_t *flat = NULL;
    int64_t rows = 0;
    BJ_TRY(load_ints(c, &flat, &rows, name, 2, 0, cells - 1));
    KEEP(c, *out, (size_t)rows);
    for (int64_t k = 0; k < rows; k++) (*out)[k] = (bj_edge){flat[2 * k], flat[2 * k + 1]};
    *count = (int)rows;
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------- comparing */

/* Compares the `count` values in `found` with the array `name`, if the file contains it. */
static bj_status compare(check *c, const char *name, const double *found, size_t count) {
    const bj_npz_array *a = bj_npz_find(c->npz, name);
    const double *expected = NULL;
    if (!a) return BJ_OK;
    BJ_TRY(load(c, &expected, NULL, name, -1));
    for (int i = 0; i < bj_npz_count(c->npz); i++)
        if (bj_npz_at(c->npz, i) == a) c->seen[i] = 1;
    c->report->compared++;
    const size_t have = (size_t)(a->npy.rows * a->npy.width);
    if (have != count) {
        bj_note_failure(c->report, "%s has %zu numbers, but %zu were computed", name, have, count);
        return BJ_OK;
    }
    const double tolerance = a->npy.type == BJ_NPY_F64   ? 1e-12
                             : a->npy.type == BJ_NPY_F32 ? 1e-6
                                                         : 0;
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs(found[i] - expected[i]);
        if (isnan(found[i]) && isnan(expected[i])) off = 0;
        if (isnan(off)) off = INFINITY;
        if (off > worst) worst = off, at = i;
    }
    double *most = &c->report->worst[BJ_PARITY_M];
    if (isnan(*most) || worst > *most) *most = worst;
    if (!(worst <= tolerance))
        bj_note_failure(c->report, "%s[%zu] is %.12g, expected %.12g", name, at, found[at],
                        expected[at]);
    return BJ_OK;
}

static bj_status compare_number(check *c, const char *name, double found) {
    return compare(c, name, &found, 1);
}

static bj_status compare_bytes(check *c, const char *name, const uint8_t *found, size_t count) {
    double *values;
    KEEP(c, values, count);
    for (size_t i = 0; i < count; i++) values[i] = found[i];
    return compare(c, name, values, count);
}

/* Compares the edges that have the mark `mark`, or all edges if `marks` is NULL. */
static bj_status compare_edges(check *c, const char *name, const bj_edge *edges, int count,
                               const uint8_t *marks, int mark) {
    double *values;
    size_t n = 0;
    KEEP(c, values, 2 * (size_t)count);
    for (int k = 0; k < count; k++) {
        if (marks && marks[k] != mark) continue;
        values[n++] = edges[k].from;
        values[n++] = edges[k].to;
    }
    return compare(c, name, values, n);
}

static bj_status compare_withheld(check *c, const bj_edge *edges, int count, const char *kept,
                                  const char *held) {
    int32_t *order = NULL;
    uint8_t *marks = NULL;
    int64_t rows = 0;
    int chosen = 0;
    BJ_TRY(load_ints(c, &order, &rows, "edge_order", 1, 0, count - 1));
    BJ_TRY(expect_size(c, "edge_order", "numbers", rows, count));
    KEEP(c, marks, (size_t)count);
    for (int k = 0; k < count; k++)
        if (marks[order[k]]++)
            return BJ_FAIL(c->err, BJ_EFORMAT, "%s: array 'edge_order' has %d twice",
                           bj_npz_path(c->npz), (int)order[k]);
    BJ_TRY(bj_withhold(marks, &chosen, edges, count, order, BJ_MAZE_WITHHELD, c->err));
    BJ_TRY(compare_edges(c, kept, edges, count, marks, 0));
    return compare_edges(c, held, edges, count, marks, 1);
}

/* -------------------------------------------------------------------------------------- graphs */

static bj_status read_case(check *c, bj_graph_case *in, bj_edge **edges, int *edge_count) {
    const bj_npy *npy = NULL;
    bj_real *candidates = NULL, *latents = NULL;
    int32_t *sources = NULL;
    bj_edge *held = NULL, *plan = NULL, *verified = NULL;
    int64_t rows = 0;
    uint8_t *graph;
    BJ_TRY(load_reals(c, &latents, &npy, "cells", 2));
    if (npy->rows < 1 || npy->rows > BJ_MAZE_MAX_CELLS || npy->width < 1 || npy->width > 1 << 20)
        return BJ_FAIL(c->err, BJ_EFORMAT,
                       "%s: array 'cells' has %lld rows of width %lld, "
                       "expected 1 to %d rows",
                       bj_npz_path(c->npz), (long long)npy->rows, (long long)npy->width,
                       (int)BJ_MAZE_MAX_CELLS);
    in->cells = (int)npy->rows;
    in->D = (int)npy->width;
    BJ_TRY(load_reals(c, &candidates, &npy, "candidates", 3));
    BJ_TRY(expect_size(c, "candidates", "numbers in its last dimension", npy->shape[2], in->D));
    if (npy->rows > 1 << 24 || npy->shape[1] < 1 || npy->shape[1] > 1 << 16)
        return BJ_FAIL(c->err, BJ_EFORMAT, "%s: array 'candidates' has %lld sources of %lld",
                       bj_npz_path(c->npz), (long long)npy->rows, (long long)npy->shape[1]);
    in->sources = (int)npy->rows;
    in->K = (int)npy->shape[1];
    BJ_TRY(load_ints(c, &sources, &rows, "sources", 1, 0, in->cells - 1));
    BJ_TRY(expect_size(c, "sources", "numbers", rows, in->sources));
    BJ_TRY(load_pairs(c, edges, edge_count, "true_edges", in->cells));
    BJ_TRY(load_pairs(c, &held, &in->held_count, "held_edges", in->cells));
    BJ_TRY(load_pairs(c, &plan, &in->plan_count, "plan_queries", in->cells));
    BJ_TRY(load_pairs(c, &verified, &in->verified_count, "verified_queries", in->cells));
    KEEP(c, graph, (size_t)in->cells * (size_t)in->cells);
    for (int k = 0; k < *edge_count; k++) {
        uint8_t *entry =
            &graph[(size_t)(*edges)[k].from * (size_t)in->cells + (size_t)(*edges)[k].to];
        if (*entry)
            return BJ_FAIL(c->err, BJ_EFORMAT, "%s: array 'true_edges' has (%d, %d) twice",
                           bj_npz_path(c->npz), (int)(*edges)[k].from, (int)(*edges)[k].to);
        *entry = 1;
    }
    in->latents = latents;
    in->candidates = candidates;
    in->source_cells = sources;
    in->graph = graph;
    in->held = held;
    in->plan = plan;
    in->verified = verified;
    return BJ_OK;
}

static bj_status check_graph(check *c) {
    bj_graph_case in = {0};
    bj_graph_details d = {0};
    bj_graph_scores s;
    bj_edge *edges = NULL;
    int edge_count = 0;
    BJ_TRY(read_case(c, &in, &edges, &edge_count));
    const size_t C = (size_t)in.cells, S = (size_t)in.sources;
    KEEP(c, d.predicted, C * C);
    KEEP(c, d.plan_hit, (size_t)in.plan_count);
    KEEP(c, d.verified_hit, (size_t)in.verified_count);
    KEEP(c, d.precision, C);
    KEEP(c, d.precision_self, C);
    KEEP(c, d.cov_r, S);
    BJ_TRY(bj_graph_score(&s, &d, &in, c->err));
    BJ_TRY(compare_bytes(c, "expected_predicted", d.predicted, C * C));
    BJ_TRY(compare_number(c, "expected_predicted_edges", s.predicted_edges));
    BJ_TRY(compare_number(c, "expected_sources_with_edges", s.sources_with_edges));
    BJ_TRY(compare_number(c, "expected_plan_all", s.plan_all));
    BJ_TRY(compare_bytes(c, "expected_plan_hit", d.plan_hit, (size_t)in.plan_count));
    BJ_TRY(compare_number(c, "expected_verified_route", s.verified_route));
    BJ_TRY(compare_bytes(c, "expected_verified_hit", d.verified_hit, (size_t)in.verified_count));
    BJ_TRY(compare_number(c, "expected_macro_precision", s.macro_precision));
    BJ_TRY(compare(c, "expected_precision_per_cell", d.precision, C));
    BJ_TRY(compare_number(c, "expected_macro_precision_self", s.macro_precision_self));
    BJ_TRY(compare(c, "expected_precision_self_per_cell", d.precision_self, C));
    BJ_TRY(compare_number(c, "expected_held_recall", s.held_recall));
    BJ_TRY(compare_number(c, "expected_cov_r", s.cov_r));
    BJ_TRY(compare(c, "expected_cov_r_per_source", d.cov_r, S));
    if (!bj_npz_find(c->npz, "edge_order")) return BJ_OK;
    return compare_withheld(c, edges, edge_count, "kept_edges", "held_edges");
}

/* -------------------------------------------------------------------------------- trajectories */

static bj_status read_map(check *c, bj_maze **maze) {
    const double *map = NULL;
    const bj_npy *npy = NULL;
    uint8_t *walls;
    BJ_TRY(load(c, &map, &npy, "maze_map", 2));
    const int64_t squares = npy->rows * npy->width;
    if (npy->rows > 1024 || npy->width > 1024)
        return BJ_FAIL(c->err, BJ_EFORMAT, "%s: array 'maze_map' has %lld by %lld squares",
                       bj_npz_path(c->npz), (long long)npy->rows, (long long)npy->width);
    KEEP(c, walls, (size_t)squares);
    for (int64_t k = 0; k < squares; k++) walls[k] = map[k] != 0;
    return bj_maze_from_walls(maze, "maze_map", walls, (int)npy->rows, (int)npy->width, c->err);
}

/* Computes the cell of every step and the edges between cells. */
static bj_status walk(check *c, const bj_maze *maze, bj_crossings *crossings) {
    const double *xy = NULL, *terminals = NULL;
    const bj_npy *npy = NULL, *marks = NULL;
    double *cells;
    BJ_TRY(load(c, &xy, &npy, "xy", 2));
    BJ_TRY(expect_size(c, "xy", "columns", npy->width, 2));
    BJ_TRY(load(c, &terminals, &marks, "terminals", 1));
    BJ_TRY(expect_size(c, "terminals", "numbers", marks->rows, npy->rows));
    KEEP(c, cells, (size_t)npy->rows);
    for (int64_t t = 0; t < npy->rows; t++) {
        const int cell = bj_maze_cell(maze, xy[2 * t], xy[2 * t + 1]);
        cells[t] = cell;
        bj_crossings_step(crossings, cell, terminals[t] != 0);
    }
    return compare(c, "expected_cells", cells, (size_t)npy->rows);
}

static bj_status compare_walk(check *c, const bj_crossings *crossings) {
    bj_edge *edges = NULL;
    int64_t *counts = NULL;
    double *values;
    int n = 0;
    const bj_status status = bj_crossings_list(&edges, &counts, &n, crossings, c->err);
    if (edges) c->memory[c->loaded++] = edges;
    if (counts) c->memory[c->loaded++] = counts;
    BJ_TRY(status);
    KEEP(c, values, (size_t)n);
    for (int k = 0; k < n; k++) values[k] = (double)counts[k];
    BJ_TRY(compare_edges(c, "expected_edges", edges, n, NULL, 0));
    BJ_TRY(compare(c, "expected_counts", values, (size_t)n));
    if (!bj_npz_find(c->npz, "edge_order")) return BJ_OK;
    const bj_npz_array *order = bj_npz_find(c->npz, "edge_order");
    if (order->npy.rows != n) { /* different edges in the reference are reported as a difference,
                                   because the file itself is valid */
        bj_note_failure(c->report,
                        "edge_order has %lld numbers, expected %d, which is the number of edges",
                        (long long)order->npy.rows, n);
        return BJ_OK;
    }
    return compare_withheld(c, edges, n, "expected_kept", "expected_held");
}

static bj_status check_trajectory(check *c) {
    bj_maze *maze = NULL;
    bj_crossings crossings = {0};
    bj_status status;
    BJ_TRY(read_map(c, &maze));
    BJ_GOTO(status, done, bj_crossings_init(&crossings, maze->cells, c->err));
    BJ_GOTO(status, done, walk(c, maze, &crossings));
    BJ_GOTO(status, done, compare_walk(c, &crossings));
done:
    bj_crossings_reset(&crossings);
    bj_maze_free(maze);
    return status;
}

/* -------------------------------------------------------------------------------------- frames */

static bj_status cover(check *c, bj_frame_coverage *coverage, const int32_t *cell,
                       const int32_t *next, const bj_real *targets, const bj_real *candidates,
                       int64_t frames, int K, int D) {
    for (int64_t t = 0; t < frames; t++)
        if (cell[t] >= 0)
            BJ_TRY(bj_frame_coverage_target(coverage, cell[t], next[t], targets + t * D, c->err));
    for (int64_t t = 0; t < frames; t++)
        if (cell[t] >= 0 && next[t] >= 0)
            BJ_TRY(bj_frame_coverage_predict(coverage, cell[t], candidates + t * K * D, K, c->err));
    return BJ_OK;
}

static bj_status check_frames(check *c) {
    const bj_npy *npy = NULL, *shape = NULL;
    bj_real *targets = NULL, *candidates = NULL;
    int32_t *cell = NULL, *next = NULL;
    int64_t rows = 0;
    int cells = 1;
    BJ_TRY(load_reals(c, &targets, &npy, "frame_targets", 2));
    const int64_t frames = npy->rows, D = npy->width;
    BJ_TRY(load_reals(c, &candidates, &shape, "frame_candidates", 3));
    BJ_TRY(expect_size(c, "frame_candidates", "rows", shape->rows, frames));
    BJ_TRY(expect_size(c, "frame_candidates", "numbers in its last dimension", shape->shape[2], D));
    if (D < 1 || D > 1 << 20 || shape->shape[1] < 1 || shape->shape[1] > 1 << 16)
        return BJ_FAIL(c->err, BJ_EFORMAT,
                       "%s: array 'frame_candidates' has %lld candidates of width %lld, "
                       "which is out of range",
                       bj_npz_path(c->npz), (long long)shape->shape[1], (long long)D);
    BJ_TRY(load_ints(c, &cell, &rows, "frame_cells", 1, -1, BJ_MAZE_MAX_CELLS - 1));
    BJ_TRY(expect_size(c, "frame_cells", "numbers", rows, frames));
    BJ_TRY(load_ints(c, &next, &rows, "frame_next", 1, -1, BJ_MAZE_MAX_CELLS - 1));
    BJ_TRY(expect_size(c, "frame_next", "numbers", rows, frames));
    for (int64_t t = 0; t < frames; t++) {
        if (cell[t] >= cells) cells = cell[t] + 1;
        if (next[t] >= cells) cells = next[t] + 1;
    }
    const bj_npz_array *stated = bj_npz_find(c->npz, "expected_cov_r_per_cell");
    if (stated && stated->npy.rows > cells && stated->npy.rows <= BJ_MAZE_MAX_CELLS)
        cells = (int)stated->npy.rows; /* trailing cells without a frame */
    bj_frame_coverage *coverage = NULL;
    double *per;
    KEEP(c, per, (size_t)cells);
    BJ_TRY(bj_frame_coverage_create(&coverage, cells, (int)D, c->err));
    const bj_status status =
        cover(c, coverage, cell, next, targets, candidates, frames, (int)shape->shape[1], (int)D);
    const double result = bj_frame_coverage_result(per, coverage);
    bj_frame_coverage_free(coverage);
    BJ_TRY(status);
    BJ_TRY(compare_number(c, "expected_cov_r", result));
    return compare(c, "expected_cov_r_per_cell", per, (size_t)cells);
}

/* ---------------------------------------------------------------------------------------- file */

static bj_status run(check *c) {
    if (bj_npz_find(c->npz, "candidates")) BJ_TRY(check_graph(c));
    else if (bj_npz_find(c->npz, "xy")) BJ_TRY(check_trajectory(c));
    else if (bj_npz_find(c->npz, "frame_candidates")) BJ_TRY(check_frames(c));
    else
        return BJ_FAIL(c->err, BJ_EFORMAT,
                       "%s: not a golden file: "
                       "it has none of the arrays 'candidates', 'xy' and 'frame_candidates'",
                       bj_npz_path(c->npz));
    for (int i = 0; i < bj_npz_count(c->npz); i++)
        if (!c->seen[i] && !strncmp(bj_npz_at(c->npz, i)->name, "expected_", 9))
            bj_note_failure(c->report, "%s: this program does not compute this array",
                            bj_npz_at(c->npz, i)->name);
    if (!c->report->compared)
        return BJ_FAIL(c->err, BJ_EFORMAT,
                       "%s: not a golden file: it has no array named expected_*",
                       bj_npz_path(c->npz));
    return BJ_OK;
}

/* Adds the file name to the message if the arrays of the file caused the failure. */
static bj_status blame_file(const char *path, bj_status status, bj_error *err) {
    if (status != BJ_EARG && status != BJ_ENONFINITE) return status;
    char why[sizeof err->message] = "";
    if (err) memcpy(why, err->message, sizeof why);
    return BJ_FAIL(err, status == BJ_EARG ? BJ_EFORMAT : status, "%s: %.400s", path, why);
}

bj_status bj_maze_parity(bj_parity_report *report, const char *path, bj_error *err) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = strlen(base);
    check c = {.report = report, .err = err};
    bj_status status;
    snprintf(report->name, sizeof report->name, "%.*s",
             (int)(length > 4 && !strcmp(base + length - 4, ".npz") ? length - 4 : length), base);
    BJ_TRY(bj_npz_open(&c.npz, path, err));
    BJ_GOTO(status, done, BJ_ALLOC(c.seen, (size_t)bj_npz_count(c.npz), err));
    status = blame_file(path, run(&c), err);
done:
    for (int i = 0; i < c.loaded; i++) bj_free(c.memory[i]);
    bj_free(c.seen);
    bj_npz_close(c.npz);
    return status;
}
