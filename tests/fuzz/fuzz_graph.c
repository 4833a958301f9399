/* fuzz_graph.c - fuzz target of the graph reader and of the mazes in graph files.
 *
 * For any input, the reader must fail with a message that starts with the name, or return the
 * result of a slow reader based on yyjson: ascending edges, existing cells, and a maze whose graph
 * and squares agree. The result is written and read again and must be the same. Violations abort.
 * Corpus: tests/fuzz/corpus/graph
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "fuzz_json.h"
#include "maze/maze_json.h"

static int64_t whole(yyjson_val *value) {
    demand(yyjson_is_int(value));
    return yyjson_get_sint(value);
}

static void examine_edges(const bj_edge *edges, const int64_t *counts, int count, yyjson_val *list,
                          int cells) {
    yyjson_arr_iter rows = yyjson_arr_iter_with(list);
    demand(count >= 0 && (size_t)count == yyjson_arr_size(list));
    for (int k = 0; k < count; k++) {
        yyjson_val *row = yyjson_arr_iter_next(&rows);
        const bj_edge e = edges[k];
        demand(e.from >= 0 && e.from < cells && e.to >= 0 && e.to < cells && e.from != e.to);
        demand(!k || bj_edge_compare(&edges[k - 1], &e) < 0);
        demand(yyjson_arr_size(row) == (counts ? 3 : 2));
        demand(whole(yyjson_arr_get(row, 0)) == e.from && whole(yyjson_arr_get(row, 1)) == e.to);
        demand(!counts || (counts[k] >= 1 && whole(yyjson_arr_get(row, 2)) == counts[k]));
    }
}

static void examine_sources(const bj_graph_record *r, yyjson_val *list) {
    demand(r->sources >= 0 && (size_t)r->sources == yyjson_arr_size(list));
    for (int s = 0; s < r->sources; s++) {
        yyjson_val *source = yyjson_arr_get(list, (size_t)s);
        yyjson_val *rows = member(source, "candidates");
        demand(r->source_cells[s] < r->maze->cells && r->source_cells[s] >= 0);
        demand(!s || r->source_cells[s - 1] < r->source_cells[s]);
        demand(whole(member(source, "cell")) == r->source_cells[s]);
        demand(r->K > 0 && yyjson_arr_size(rows) == (size_t)r->K);
        for (int k = 0; k < r->K; k++) {
            const bj_graph_candidate *c = &r->candidates[(size_t)s * (size_t)r->K + (size_t)k];
            yyjson_val *row = yyjson_arr_get(rows, (size_t)k), *cell = yyjson_arr_get(row, 0);
            yyjson_val *mass = yyjson_arr_get(row, 2);
            demand(c->cell >= -1 && c->cell < r->maze->cells);
            demand(c->cell < 0 ? yyjson_is_null(cell) : whole(cell) == c->cell);
            demand(fabs(c->cosine) <= 1.001 && yyjson_get_num(yyjson_arr_get(row, 1)) == c->cosine);
            demand(isnan(c->mass) ? yyjson_is_null(mass) : yyjson_get_num(mass) == c->mass);
            demand(!(c->mass < 0) && !(c->mass > 1.001));
        }
    }
}

/* Checks that squares, centers and edges agree, and that a map equals the map of the file. */
static void examine_maze(const bj_maze *m, yyjson_val *value) {
    yyjson_val *map = member(value, "map");
    int free_squares = 0;
    demand(m->cells >= 1 && m->cells <= BJ_MAZE_MAX_CELLS && m->name[0]);
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->cols; j++) {
            const int cell = m->cell_at[i * m->cols + j];
            demand(cell < 0 || cell == free_squares);
            free_squares += cell >= 0;
            if (cell >= 0) {
                demand(m->square[2 * cell] == i && m->square[2 * cell + 1] == j);
                demand(bj_maze_cell(m, m->center[2 * cell], m->center[2 * cell + 1]) == cell);
            }
            if (map)
                demand((yyjson_get_str(yyjson_arr_get(map, (size_t)i))[j] == '1') == (cell < 0));
        }
    demand(free_squares == m->cells);
    for (int k = 0; k < m->edge_count; k++)
        demand(m->graph[(size_t)m->edges[k].from * (size_t)m->cells + (size_t)m->edges[k].to]);
    for (int k = 0; k < m->task_count; k++)
        demand(m->tasks[k].from >= 0 && m->tasks[k].from < m->cells && m->tasks[k].to >= 0 &&
               m->tasks[k].to < m->cells);
}

static void examine(const bj_graph_record *r, yyjson_val *root) {
    yyjson_val *facts = member(root, "provenance"), *key;
    yyjson_obj_iter walk = yyjson_obj_iter_with(facts);
    const size_t C = (size_t)r->maze->cells;
    size_t ones = 0;
    demand(yyjson_equals_str(member(root, "schema"), "branchjepa.graph/1"));
    demand(whole(member(root, "cells")) == r->maze->cells);
    demand(yyjson_is_obj(member(root, "maze")) ||
           yyjson_equals_str(member(root, "maze"), r->maze->name));
    examine_maze(r->maze, member(root, "maze"));
    examine_edges(r->edges, NULL, r->edge_count, member(root, "edges"), r->maze->cells);
    examine_edges(r->held, NULL, r->held_count, member(root, "withheld"), r->maze->cells);
    examine_edges(r->seen, r->crossings, r->seen_count, member(root, "seen"), r->maze->cells);
    for (size_t i = 0; i < C * C; i++) ones += r->graph[i];
    demand(ones == (size_t)r->edge_count);
    for (int k = 0; k < r->edge_count; k++)
        demand(r->graph[(size_t)r->edges[k].from * C + (size_t)r->edges[k].to] == 1);
    examine_sources(r, member(root, "sources"));
    demand((size_t)r->fact_count == yyjson_obj_size(facts));
    for (int k = 0; k < r->fact_count; k++) {
        key = yyjson_obj_iter_next(&walk);
        demand(yyjson_equals_str(key, r->facts[k].key)); /* even if it contains a zero byte */
        demand(yyjson_equals_str(yyjson_obj_iter_get_val(key), r->facts[k].value));
        demand(member(facts, r->facts[k].key) != NULL);
    }
}

/* Writes and reads the record, and checks that writing it again gives the same bytes. */
static void round_trip(const bj_graph_record *r) {
    bj_graph_file *back = NULL;
    bj_doc doc, other;
    char *text, *again;
    size_t size, second;
    demand(bj_graph_build(&doc, r, "fuzz", NULL) == BJ_OK);
    demand(bj_doc_text(&text, &size, &doc, 0, NULL) == BJ_OK);
    demand(bj_graph_parse(&back, text, size, "again", NULL) == BJ_OK);
    const bj_graph_record *b = bj_graph_of(back);
    demand(b->K == r->K && b->fact_count == r->fact_count && b->maze->cells == r->maze->cells);
    demand(
        !memcmp(b->maze->graph, r->maze->graph, (size_t)r->maze->cells * (size_t)r->maze->cells));
    demand(bj_graph_build(&other, b, "again", NULL) == BJ_OK);
    demand(bj_doc_text(&again, &second, &other, 0, NULL) == BJ_OK);
    demand(second == size && !memcmp(again, text, size));
    bj_graph_close(back);
    bj_free(again);
    bj_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_graph_file *file = NULL;
    bj_error err = {0};
    const bj_status status = bj_graph_parse(&file, (const char *)data, size, "fuzz", &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) {
        yyjson_doc *doc = yyjson_read((const char *)data, size, 0);
        demand(doc != NULL);
        examine(bj_graph_of(file), yyjson_doc_get_root(doc));
        round_trip(bj_graph_of(file));
        yyjson_doc_free(doc);
        bj_graph_close(file);
    } else {
        demand((status == BJ_EFORMAT || status == BJ_EVERSION) && err.code == status && !file);
        demand(!strncmp(err.message, "fuzz: ", 6));
    }
    demand(bj_alloc_live() == live);
    return 0;
}
