/* graph_file.c - reads and writes graph files, which the commands of `bjepa maze` exchange.
 *
 *   {"schema": "branchjepa.graph/1",
 *    "maze": "large",                     an official one, or an object as in maze_json.h
 *    "cells": 46,
 *    "edges": [[u, v], ...],              ascending, no cell to itself
 *    "withheld": [[u, v], ...],           optional: kept out of fitting
 *    "seen": [[u, v, n], ...],            optional: successors of a dataset, crossed n times
 *    "sources": [{"cell": u, "candidates": [[v, cosine, mass], ...]}, ...],
 *                                         optional: ascending cells with K candidates each; v null:
 *                                         a vector of zeros, mass null: no router
 *    "provenance": {"key": "text"}}       optional
 *
 * Reading is strict, see maze_json.h. Callers need no further checks.
 * Test: tests/maze/test_maze_file.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "maze/maze_json.h"

#define SCHEMA "branchjepa.graph/1"
enum { MAX_K = 4096, MAX_FACTS = 4096, MAX_EDGES = 1 << 20 };

struct bj_graph_file {
    bj_graph_record record;
    yyjson_doc *doc; /* contains the texts of the facts */
    bj_maze *maze;
    uint8_t *graph;
    bj_edge *edges, *held, *seen;
    int64_t *crossings;
    int32_t *source_cells;
    bj_graph_candidate *candidates;
    bj_fact *facts;
};

/* -------------------------------------------------------------------------------------- reading */

static bj_status check_ascending(const bj_edge *edges, int count, const char *key,
                                 const char *where, bj_error *err) {
    for (int k = 0; k < count; k++) {
        if (edges[k].from == edges[k].to)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' row %d joins cell %d to itself", where, key,
                           k, (int)edges[k].from);
        if (k && bj_edge_compare(&edges[k - 1], &edges[k]) >= 0)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: '%s' row %d is [%d, %d] and follows [%d, %d], "
                           "expected rows in ascending order",
                           where, key, k, (int)edges[k].from, (int)edges[k].to,
                           (int)edges[k - 1].from, (int)edges[k - 1].to);
    }
    return BJ_OK;
}

static bj_status read_edges(bj_edge **out, int *count, const bj_graph_file *f, yyjson_val *root,
                            const char *key, const char *where, bj_error *err) {
    int32_t *rows;
    BJ_TRY(
        bj_maze_json_rows(&rows, count, root, key, 2, f->maze->cells - 1, MAX_EDGES, where, err));
    bj_status status = BJ_ALLOC(*out, (size_t)*count, err);
    for (int k = 0; k < *count && status == BJ_OK; k++)
        (*out)[k] = (bj_edge){rows[2 * k], rows[2 * k + 1]};
    bj_free(rows);
    return status == BJ_OK ? check_ascending(*out, *count, key, where, err) : status;
}

/* Reads rows of three numbers. The third number may be large. */
static bj_status read_seen(bj_graph_file *f, yyjson_val *root, const char *where, bj_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "seen");
    const size_t size = yyjson_arr_size(list);
    if (!list) return BJ_OK;
    if (!yyjson_is_arr(list) || size > MAX_EDGES)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: 'seen' has type %s and length %zu, "
                       "expected a list of length %d or less",
                       where, yyjson_get_type_desc(list), yyjson_get_len(list), (int)MAX_EDGES);
    BJ_TRY(BJ_ALLOC(f->seen, size, err));
    BJ_TRY(BJ_ALLOC(f->crossings, size, err));
    yyjson_arr_iter walk = yyjson_arr_iter_with(list); /* access by index would take k steps */
    for (size_t k = 0; k < size; k++) {
        yyjson_val *row = yyjson_arr_iter_next(&walk);
        int64_t value[3] = {0};
        char what[64];
        if (!yyjson_is_arr(row) || yyjson_arr_size(row) != 3)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: 'seen' row %zu has type %s and length %zu, "
                           "expected a list of length 3",
                           where, k, yyjson_get_type_desc(row), yyjson_get_len(row));
        for (size_t n = 0; n < 3; n++) {
            snprintf(what, sizeof what, "'seen' row %zu number %zu", k, n);
            BJ_TRY(bj_maze_json_integer(&value[n], yyjson_arr_get(row, n), n == 2,
                                        n == 2 ? INT64_MAX : f->maze->cells - 1, what, where, err));
        }
        f->seen[k] = (bj_edge){(int32_t)value[0], (int32_t)value[1]};
        f->crossings[k] = value[2];
    }
    f->record.seen = f->seen;
    f->record.crossings = f->crossings;
    f->record.seen_count = (int)size;
    return check_ascending(f->seen, (int)size, "seen", where, err);
}

/* [cell or null, cosine, mass or null] */
static bj_status read_candidate(bj_graph_candidate *out, yyjson_val *value, int cells,
                                const char *where, bj_error *err) {
    yyjson_val *cell = yyjson_arr_get(value, 0), *cosine = yyjson_arr_get(value, 1);
    yyjson_val *mass = yyjson_arr_get(value, 2);
    int64_t number = -1;
    if (!yyjson_is_arr(value) || yyjson_arr_size(value) != 3 || !yyjson_is_num(cosine) ||
        !(yyjson_is_num(mass) || yyjson_is_null(mass)))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: expected a list [cell or null, cosine, mass or null]",
                       where);
    if (!yyjson_is_null(cell))
        BJ_TRY(bj_maze_json_integer(&number, cell, 0, cells - 1, "the cell", where, err));
    *out = (bj_graph_candidate){(int32_t)number, yyjson_get_num(cosine),
                                yyjson_is_null(mass) ? (double)NAN : yyjson_get_num(mass)};
    if (!(fabs(out->cosine) <= 1.001) || out->mass < 0 || out->mass > 1.001)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: cosine is %g and mass is %g, "
                       "expected a cosine from -1 to 1 and a mass from 0 to 1",
                       where, out->cosine, out->mass);
    return BJ_OK;
}

static bj_status read_source(bj_graph_file *f, yyjson_val *value, int s, const char *path,
                             bj_error *err) {
    bj_graph_record *r = &f->record;
    yyjson_val *list = yyjson_obj_get(value, "candidates");
    int64_t cell = 0;
    char where[400];
    snprintf(where, sizeof where, "%.300s: 'sources' %d", path, s);
    BJ_TRY(bj_maze_json_members(value, "cell candidates", where, err));
    BJ_TRY(bj_maze_json_integer(&cell, yyjson_obj_get(value, "cell"),
                                s ? f->source_cells[s - 1] + 1 : 0, f->maze->cells - 1,
                                "the cell (in ascending order)", where, err));
    f->source_cells[s] = (int32_t)cell;
    const size_t K = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || !K || K > MAX_K || (s && K != (size_t)r->K))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: 'candidates' is %s (length %zu), "
                       "expected a list of length %d",
                       where, list ? yyjson_get_type_desc(list) : "missing", K, s ? r->K : 1);
    if (!s) {
        r->K = (int)K;
        BJ_TRY(BJ_ALLOC(f->candidates, (size_t)r->sources * K, err));
    }
    yyjson_arr_iter walk = yyjson_arr_iter_with(list);
    for (size_t k = 0; k < K; k++) {
        snprintf(where, sizeof where, "%.300s: 'sources' %d candidate %zu", path, s, k);
        BJ_TRY(read_candidate(&f->candidates[(size_t)s * K + k], yyjson_arr_iter_next(&walk),
                              f->maze->cells, where, err));
    }
    return BJ_OK;
}

static bj_status read_sources(bj_graph_file *f, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *list = yyjson_obj_get(root, "sources");
    if (!list) return BJ_OK;
    const size_t size = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || size > (size_t)f->maze->cells)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: 'sources' has type %s and length %zu, "
                       "expected a list of length %d or less",
                       path, yyjson_get_type_desc(list), yyjson_get_len(list), f->maze->cells);
    BJ_TRY(BJ_ALLOC(f->source_cells, size, err));
    f->record.sources = (int)size;
    yyjson_arr_iter walk = yyjson_arr_iter_with(list);
    for (size_t s = 0; s < size; s++)
        BJ_TRY(read_source(f, yyjson_arr_iter_next(&walk), (int)s, path, err));
    f->record.source_cells = f->source_cells;
    f->record.candidates = f->candidates;
    return BJ_OK;
}

/* Checks for a text without zero bytes. */
static int is_text(yyjson_val *value) {
    return yyjson_is_str(value) && strlen(yyjson_get_str(value)) == yyjson_get_len(value);
}

static bj_status read_facts(bj_graph_file *f, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *object = yyjson_obj_get(root, "provenance"), *key;
    yyjson_obj_iter walk;
    if (!object) return BJ_OK;
    if (!yyjson_obj_iter_init(object, &walk) || yyjson_obj_size(object) > MAX_FACTS)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: 'provenance' has type %s, "
                       "expected an object with at most %d members",
                       path, yyjson_get_type_desc(object), (int)MAX_FACTS);
    BJ_TRY(BJ_ALLOC(f->facts, yyjson_obj_size(object), err));
    while ((key = yyjson_obj_iter_next(&walk))) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        if (!is_text(key) || !is_text(value))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: 'provenance' '%.60s' is %s%s, expected a string",
                           path, yyjson_get_str(key), yyjson_get_type_desc(value),
                           yyjson_is_str(value) ? " with a zero byte" : "");
        if (yyjson_obj_get(object, yyjson_get_str(key)) != value)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: 'provenance' '%.60s' occurs twice", path,
                           yyjson_get_str(key));
        f->facts[f->record.fact_count++] = (bj_fact){yyjson_get_str(key), yyjson_get_str(value)};
    }
    f->record.facts = f->facts;
    return BJ_OK;
}

static bj_status read_maze(bj_graph_file *f, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *value = yyjson_obj_get(root, "maze");
    bj_error inner = {BJ_OK, ""};
    char where[400];
    int64_t cells = 0;
    snprintf(where, sizeof where, "%.300s: 'maze'", path);
    if (is_text(value)) {
        const bj_status status = bj_maze_create(&f->maze, yyjson_get_str(value), &inner);
        if (status == BJ_EARG) return BJ_FAIL(err, BJ_EFORMAT, "%s: %.200s", where, inner.message);
        if (status != BJ_OK) return BJ_FAIL(err, status, "%s: %.200s", where, inner.message);
    } else {
        BJ_TRY(bj_maze_json_read(&f->maze, value, 1, where, err));
    }
    BJ_TRY(bj_maze_json_integer(&cells, yyjson_obj_get(root, "cells"), 1, BJ_MAZE_MAX_CELLS,
                                "'cells'", path, err));
    if (cells != f->maze->cells)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: 'cells' is %d, expected %d, as in the maze", path,
                       (int)cells, f->maze->cells);
    f->record.maze = f->maze;
    return BJ_OK;
}

static bj_status read_all(bj_graph_file *f, const char *path, bj_error *err) {
    yyjson_val *root = yyjson_doc_get_root(f->doc);
    bj_graph_record *r = &f->record;
    BJ_TRY(bj_maze_json_members(root, "schema maze cells edges withheld seen sources provenance",
                                path, err));
    BJ_TRY(read_maze(f, root, path, err));
    if (!yyjson_obj_get(root, "edges"))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: 'edges' is missing, expected a list", path);
    BJ_TRY(read_edges(&f->edges, &r->edge_count, f, root, "edges", path, err));
    BJ_TRY(read_edges(&f->held, &r->held_count, f, root, "withheld", path, err));
    BJ_TRY(read_seen(f, root, path, err));
    BJ_TRY(read_sources(f, root, path, err));
    BJ_TRY(read_facts(f, root, path, err));
    const size_t C = (size_t)f->maze->cells;
    BJ_TRY(BJ_ALLOC(f->graph, C * C, err));
    for (int k = 0; k < r->edge_count; k++)
        f->graph[(size_t)f->edges[k].from * C + (size_t)f->edges[k].to] = 1;
    r->graph = f->graph;
    r->edges = f->edges;
    r->held = f->held;
    return BJ_OK;
}

bj_status bj_graph_parse(bj_graph_file **out, const char *text, size_t size, const char *path,
                         bj_error *err) {
    bj_graph_file *f;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(f, 1, err));
    bj_status status = bj_maze_json_parse(&f->doc, text, size, path, SCHEMA, err);
    if (status == BJ_OK) status = read_all(f, path, err);
    if (status == BJ_OK) *out = f;
    else bj_graph_close(f);
    return status;
}

bj_status bj_graph_open(bj_graph_file **out, const char *path, bj_error *err) {
    char *text;
    size_t size;
    *out = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, BJ_MAZE_JSON_LIMIT, err));
    const bj_status status = bj_graph_parse(out, text, size, path, err);
    bj_free(text);
    return status;
}

void bj_graph_close(bj_graph_file *f) {
    if (!f) return;
    yyjson_doc_free(f->doc);
    bj_maze_free(f->maze);
    bj_free(f->graph);
    bj_free(f->edges);
    bj_free(f->held);
    bj_free(f->seen);
    bj_free(f->crossings);
    bj_free(f->source_cells);
    bj_free(f->candidates);
    bj_free(f->facts);
    bj_free(f);
}

const bj_graph_record *bj_graph_of(const bj_graph_file *file) { return &file->record; }

/* -------------------------------------------------------------------------------------- writing */

/* Returns 1 if the maze equals the official maze of the same name, and 0 if there is no official
 * maze of that name. */
static bj_status is_official(int *out, const char *path, const bj_maze *maze, bj_error *err) {
    bj_maze *official = NULL;
    *out = 0;
    for (int i = 0; bj_maze_name(i); i++) *out |= !strcmp(bj_maze_name(i), maze->name);
    if (!*out) return BJ_OK;
    BJ_TRY(bj_maze_create(&official, maze->name, err));
    const int same =
        official->cells == maze->cells && official->edge_count == maze->edge_count &&
        !memcmp(official->edges, maze->edges, (size_t)maze->edge_count * sizeof *maze->edges);
    bj_maze_free(official);
    if (same) return BJ_OK;
    return BJ_FAIL(
        err, BJ_EARG,
        "%s: not written: the maze has the name of the official maze '%s' but differs from it",
        path, maze->name);
}

static bj_status check_record(const char *path, const bj_graph_record *r, bj_error *err) {
    const struct {
        const char *key;
        const bj_edge *list;
        int count;
    } lists[] = {{"edges", r->edges, r->edge_count},
                 {"withheld", r->held, r->held_count},
                 {"seen", r->seen, r->seen_count}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < lists[i].count; k++)
            if (lists[i].list[k].from < 0 || lists[i].list[k].from >= r->maze->cells ||
                lists[i].list[k].to < 0 || lists[i].list[k].to >= r->maze->cells)
                return BJ_FAIL(err, BJ_EARG,
                               "%s: not written: '%s' row %d is [%d, %d], but there are %d cells",
                               path, lists[i].key, k, (int)lists[i].list[k].from,
                               (int)lists[i].list[k].to, r->maze->cells);
        BJ_TRY(check_ascending(lists[i].list, lists[i].count, lists[i].key, path, err));
    }
    return BJ_OK;
}

static void add_number(bj_doc *doc, yyjson_mut_val *list, double value) {
    bj_doc_item_number(doc, list, value); /* null if it is not finite */
}

static void add_sources(bj_doc *doc, const bj_graph_record *r) {
    yyjson_mut_val *list = bj_doc_list(doc, doc->root, "sources");
    for (int s = 0; s < r->sources; s++) {
        yyjson_mut_val *source = bj_doc_item(doc, list);
        bj_doc_add_integer(doc, source, "cell", r->source_cells[s]);
        yyjson_mut_val *candidates = bj_doc_list(doc, source, "candidates");
        for (int k = 0; k < r->K; k++) {
            const bj_graph_candidate *c = &r->candidates[(size_t)s * (size_t)r->K + (size_t)k];
            yyjson_mut_val *row = doc->ok ? yyjson_mut_arr_add_arr(doc->json, candidates) : NULL;
            doc->ok = doc->ok && row;
            if (c->cell < 0) add_number(doc, row, (double)NAN);
            else bj_doc_item_integer(doc, row, c->cell);
            add_number(doc, row, c->cosine);
            add_number(doc, row, c->mass);
        }
    }
}

static void add_seen(bj_doc *doc, const bj_graph_record *r) {
    yyjson_mut_val *list = bj_doc_list(doc, doc->root, "seen");
    for (int k = 0; k < r->seen_count; k++) {
        yyjson_mut_val *row = doc->ok ? yyjson_mut_arr_add_arr(doc->json, list) : NULL;
        doc->ok = doc->ok && row;
        bj_doc_item_integer(doc, row, r->seen[k].from);
        bj_doc_item_integer(doc, row, r->seen[k].to);
        bj_doc_item_integer(doc, row, r->crossings[k]);
    }
}

bj_status bj_graph_build(bj_doc *doc, const bj_graph_record *r, const char *path, bj_error *err) {
    int official;
    BJ_TRY(is_official(&official, path, r->maze, err));
    BJ_TRY(check_record(path, r, err));
    BJ_TRY(bj_doc_begin(doc, SCHEMA, err));
    if (official) bj_doc_add_text(doc, doc->root, "maze", r->maze->name);
    else bj_maze_json_add(doc, bj_doc_child(doc, doc->root, "maze"), r->maze);
    bj_doc_add_integer(doc, doc->root, "cells", r->maze->cells);
    bj_maze_json_add_edges(doc, doc->root, "edges", r->edges, r->edge_count);
    if (r->held_count) bj_maze_json_add_edges(doc, doc->root, "withheld", r->held, r->held_count);
    if (r->seen_count) add_seen(doc, r);
    if (r->sources) add_sources(doc, r);
    if (r->fact_count) {
        yyjson_mut_val *facts = bj_doc_child(doc, doc->root, "provenance");
        for (int k = 0; k < r->fact_count; k++)
            bj_doc_add_text(doc, facts, r->facts[k].key, r->facts[k].value);
    }
    return BJ_OK;
}

bj_status bj_graph_save(const char *path, const bj_graph_record *r, bj_error *err) {
    bj_doc doc;
    BJ_TRY(bj_graph_build(&doc, r, path, err));
    return bj_maze_json_commit(&doc, path, NULL, err);
}
