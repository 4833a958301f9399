/* graph.c - searches graphs of cells, and draws queries and withheld edges; see branchjepa/maze.h.
 *
 * Draws   Pairs (or edges) are listed in order and shuffled from the front: the k-th one is swapped
 *        with the k-th or a later one, drawn from the generator of (seed, name of the draw). The
 *        first `limit` pairs become queries and are sorted again. Withheld edges are considered in
 *        shuffled order.
 * Test: tests/maze/test_graph.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "maze/maze.h"

/* --------------------------------------------------------------------------------------- searches
 */

void bj_graph_distances(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                        int start) {
    int head = 0, tail = 0;
    for (int c = 0; c < cells; c++) distance[c] = -1;
    distance[start] = 0;
    scratch[tail++] = start;
    while (head < tail) {
        const int32_t u = scratch[head++];
        const uint8_t *row = graph + (size_t)u * (size_t)cells;
        for (int32_t v = 0; v < cells; v++)
            if (row[v] && distance[v] < 0) {
                distance[v] = distance[u] + 1;
                scratch[tail++] = v;
            }
    }
}

static bj_status check_cells(int cells, bj_error *err) {
    if (cells >= 1 && cells <= BJ_MAZE_MAX_CELLS) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "graph: %d cells, expected 1 to %d", cells,
                   (int)BJ_MAZE_MAX_CELLS);
}

bj_status bj_graph_pairs(bj_edge **out, int *count, const uint8_t *graph, int cells,
                         bj_error *err) {
    int32_t *distance = NULL;
    bj_edge *pairs = NULL;
    bj_status status;
    int n = 0;
    *out = NULL;
    *count = 0;
    BJ_TRY(check_cells(cells, err));
    BJ_GOTO(status, done, BJ_ALLOC(distance, 2 * (size_t)cells, err));
    BJ_GOTO(status, done, BJ_ALLOC(pairs, (size_t)cells * (size_t)cells, err));
    for (int32_t s = 0; s < cells; s++) {
        bj_graph_distances(distance, distance + cells, graph, cells, s);
        for (int32_t t = 0; t < cells; t++)
            if (distance[t] > 0) pairs[n++] = (bj_edge){s, t};
    }
    *out = pairs;
    *count = n;
    pairs = NULL;
done:
    bj_free(distance);
    bj_free(pairs);
    return status;
}

void bj_edges_free(bj_edge *edges) { bj_free(edges); }

int bj_edge_compare(const void *a, const void *b) {
    const bj_edge *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

bj_status bj_graph_queries(bj_edge **out, int *count, const uint8_t *graph, int cells, int limit,
                           bj_query_set set, uint64_t seed, bj_error *err) {
    if (limit < 0)
        return BJ_FAIL(err, BJ_EARG, "queries: the limit is %d, expected at least 0", limit);
    BJ_TRY(bj_graph_pairs(out, count, graph, cells, err));
    if (*count <= limit) return BJ_OK;
    bj_edge *pairs = *out;
    bj_rng rng =
        bj_rng_named(seed, set == BJ_QUERIES_PLAN ? "maze plan queries" : "maze verified queries");
    for (int k = 0; k < limit; k++) {
        const int other = k + (int)bj_rng_below(&rng, (uint64_t)(*count - k));
        const bj_edge moved = pairs[k];
        pairs[k] = pairs[other];
        pairs[other] = moved;
    }
    *count = limit;
    qsort(pairs, (size_t)limit, sizeof *pairs, bj_edge_compare);
    return BJ_OK;
}

bj_status bj_graph_routes(double *rate, uint8_t *hit, const uint8_t *graph, int cells,
                          const bj_edge *queries, int count, bj_error *err) {
    int32_t *distance = NULL;
    int hits = 0, start = -1;
    BJ_TRY(check_cells(cells, err));
    BJ_TRY(BJ_ALLOC(distance, 2 * (size_t)cells, err));
    for (int q = 0; q < count; q++) { /* sorted queries share the search of their start */
        if (queries[q].from != start)
            bj_graph_distances(distance, distance + cells, graph, cells, start = queries[q].from);
        const int found = distance[queries[q].to] >= 0;
        if (hit) hit[q] = (uint8_t)found;
        hits += found;
    }
    *rate = count ? (double)hits / count : NAN;
    bj_free(distance);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------- withheld edges
 */

void bj_withhold_order(int32_t *order, int count, uint64_t seed) {
    bj_rng rng = bj_rng_named(seed, "maze withheld edges");
    for (int32_t k = 0; k < count; k++) order[k] = k;
    for (int k = 0; k + 1 < count; k++) {
        const int other = k + (int)bj_rng_below(&rng, (uint64_t)(count - k));
        const int32_t moved = order[k];
        order[k] = order[other];
        order[other] = moved;
    }
}

bj_status bj_withhold(uint8_t *held, int *chosen, const bj_edge *edges, int count,
                      const int32_t *order, double fraction, bj_error *err) {
    int32_t *left = NULL;
    int32_t most = 0;
    *chosen = 0;
    if (!(fraction >= 0 && fraction <= 1))
        return BJ_FAIL(err, BJ_EARG, "withheld edges: the share is %g, expected 0 to 1", fraction);
    for (int k = 0; k < count; k++) {
        held[k] = 0;
        if (edges[k].from < 0 || edges[k].from >= BJ_MAZE_MAX_CELLS)
            return BJ_FAIL(err, BJ_EARG,
                           "withheld edges: edge %d starts in cell %d, which does not exist", k,
                           (int)edges[k].from);
        if (order[k] < 0 || order[k] >= count)
            return BJ_FAIL(err, BJ_EARG,
                           "withheld edges: entry %d of the order is %d, expected 0 to %d", k,
                           (int)order[k], count - 1);
        if (edges[k].from > most) most = edges[k].from;
    }
    BJ_TRY(BJ_ALLOC(left, (size_t)most + 1, err)); /* training edges of each source */
    for (int k = 0; k < count; k++) left[edges[k].from]++;
    const int want = (int)floor(fraction * count + 1e-9); /* 0.29 * 100 is below 29 */
    for (int k = 0; k < count && *chosen < want; k++) {
        const int e = order[k];
        if (held[e] || left[edges[e].from] < 2) continue;
        left[edges[e].from]--;
        held[e] = 1;
        ++*chosen;
    }
    bj_free(left);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- crossings
 */

bj_status bj_crossings_init(bj_crossings *c, int cells, bj_error *err) {
    *c = (bj_crossings){.cells = cells, .last = -1};
    return BJ_ALLOC(c->count, (size_t)cells * (size_t)cells, err);
}

void bj_crossings_reset(bj_crossings *c) {
    bj_free(c->count);
    *c = (bj_crossings){0};
}

void bj_crossings_step(bj_crossings *c, int cell, int ends) {
    if (cell >= 0) {
        if (c->last >= 0 && c->last != cell) {
            c->count[(size_t)c->last * (size_t)c->cells + (size_t)cell]++;
            c->total++;
        }
        c->last = cell;
    }
    if (ends) c->last = -1;
}

bj_status bj_crossings_list(bj_edge **edges, int64_t **counts, int *n, const bj_crossings *c,
                            bj_error *err) {
    const size_t all = (size_t)c->cells * (size_t)c->cells;
    *n = 0;
    for (size_t i = 0; i < all; i++) *n += c->count[i] != 0;
    BJ_TRY(BJ_ALLOC(*edges, (size_t)*n, err));
    BJ_TRY(BJ_ALLOC(*counts, (size_t)*n, err));
    for (size_t i = 0, k = 0; i < all; i++) {
        if (!c->count[i]) continue;
        (*edges)[k] = (bj_edge){(int32_t)(i / (size_t)c->cells), (int32_t)(i % (size_t)c->cells)};
        (*counts)[k++] = c->count[i];
    }
    return BJ_OK;
}
