/* test_graph.c - searches, query sets and withheld edges. */
#include <stdlib.h>

#include "core/alloc.h"
#include "maze/maze.h"
#include "test.h"

enum { PLAN_0_FROM = 12, PLAN_0_TO = 44 };

/* Computes paths by another method, the transitive closure (Warshall's algorithm). */
static void close_over(uint8_t *reach, const uint8_t *graph, int n) {
    memcpy(reach, graph, (size_t)(n * n));
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) reach[i * n + j] |= reach[i * n + k] && reach[k * n + j];
}

static void test_searches(void) {
    enum { N = 17 };
    bj_rng rng = bj_rng_seed(3);
    bj_error err = {0};
    for (int round = 0; round < 20; round++) {
        uint8_t graph[N * N], reach[N * N];
        int32_t distance[N], scratch[N];
        bj_edge *pairs = NULL, all[N * N];
        uint8_t hit[N * N];
        int count = 0, expected = 0;
        double rate = 0;
        for (int i = 0; i < N * N; i++) graph[i] = bj_rng_uniform(&rng) < 0.02 + 0.005 * round;
        close_over(reach, graph, N);
        for (int s = 0; s < N; s++) {
            bj_graph_distances(distance, scratch, graph, N, s);
            CHECK(distance[s] == 0);
            for (int t = 0; t < N; t++) {
                if (t != s) CHECK((distance[t] > 0) == reach[s * N + t]);
                expected += t != s && reach[s * N + t];
                /* a predecessor is one step closer, and no path is shorter */
                int best = -1;
                for (int u = 0; u < N; u++)
                    if (graph[u * N + t] && distance[u] >= 0 && (best < 0 || distance[u] < best))
                        best = distance[u];
                if (t != s && distance[t] > 0) CHECK(distance[t] == best + 1);
                all[s * N + t] = (bj_edge){t, s}; /* not sorted by start */
            }
        }
        CHECK_OK(bj_graph_pairs(&pairs, &count, graph, N, &err), err);
        CHECK(count == expected);
        for (int k = 0; k < count; k++) {
            CHECK(pairs[k].from != pairs[k].to && reach[pairs[k].from * N + pairs[k].to]);
            if (k) CHECK(bj_edge_compare(&pairs[k - 1], &pairs[k]) < 0);
        }
        CHECK_OK(bj_graph_routes(&rate, hit, graph, N, all, N * N, &err), err);
        for (int k = 0; k < N * N; k++)
            CHECK(hit[k] == (all[k].from == all[k].to || reach[all[k].from * N + all[k].to]));
        CHECK_NEAR(rate, (double)(expected + N) / (N * N), 1e-12);
        bj_edges_free(pairs);
    }
    double rate = 0;
    CHECK_OK(bj_graph_routes(&rate, NULL, (const uint8_t[]){0}, 1, NULL, 0, &err), err);
    CHECK(isnan(rate));
    bj_edge *none = NULL;
    int count = 0;
    CHECK(bj_graph_pairs(&none, &count, NULL, 0, &err) == BJ_EARG);
    CHECK(bj_graph_pairs(&none, &count, NULL, BJ_MAZE_MAX_CELLS + 1, &err) == BJ_EARG);
}

static int same(const bj_edge *a, const bj_edge *b, int n) {
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

static void test_queries(void) {
    bj_maze *m = NULL;
    bj_edge *first = NULL, *again = NULL, *other = NULL, *verified = NULL, *every = NULL;
    int n = 0, chosen[86] = {0};
    bj_error err = {0};
    CHECK_OK(bj_maze_create(&m, "giant", &err), err);
    if (!m) return;
    CHECK_OK(bj_graph_queries(&first, &n, m->graph, m->cells, 300, BJ_QUERIES_PLAN, 5, &err), err);
    CHECK(n == 300);
    CHECK_OK(bj_graph_queries(&again, &n, m->graph, m->cells, 300, BJ_QUERIES_PLAN, 5, &err), err);
    CHECK_OK(bj_graph_queries(&other, &n, m->graph, m->cells, 300, BJ_QUERIES_PLAN, 6, &err), err);
    CHECK_OK(bj_graph_queries(&verified, &n, m->graph, m->cells, 300, BJ_QUERIES_VERIFIED, 5, &err),
             err);
    CHECK(same(first, again, 300) && !same(first, other, 300) && !same(first, verified, 300));
    for (int k = 0; k < 300; k++) {
        CHECK(first[k].from != first[k].to);
        if (k) CHECK(bj_edge_compare(&first[k - 1], &first[k]) < 0); /* sorted, none twice */
        chosen[first[k].from]++;
    }
    for (int u = 0; u < 86; u++) CHECK(chosen[u] < 15); /* spread over the starts: mean 3.5 */
    CHECK_OK(bj_graph_queries(&every, &n, m->graph, m->cells, 9000, BJ_QUERIES_PLAN, 5, &err), err);
    CHECK(n == 7310);
    bj_edges_free(first);
    bj_edges_free(again);
    bj_edges_free(other);
    bj_edges_free(verified);
    bj_edges_free(every);
    /* the draw is part of the format, because other numbers would define another benchmark */
    CHECK_OK(bj_graph_queries(&first, &n, m->graph, m->cells, 3, BJ_QUERIES_PLAN, 0, &err), err);
    CHECK_MSG(n == 3 && first[0].from == PLAN_0_FROM && first[0].to == PLAN_0_TO, "%d,%d",
              (int)first[0].from, (int)first[0].to);
    bj_edges_free(first);
    CHECK(bj_graph_queries(&first, &n, m->graph, m->cells, -1, BJ_QUERIES_PLAN, 0, &err) ==
          BJ_EARG);
    bj_maze_free(m);
}

static void test_withheld(void) {
    bj_error err = {0};
    for (int i = 0; i < 4; i++) {
        bj_maze *m = NULL;
        CHECK_OK(bj_maze_create(&m, bj_maze_name(i), &err), err);
        if (!m) continue;
        uint8_t held[200], before[200];
        int32_t order[200];
        int kept[100] = {0}, chosen = 0, changed = 0;
        for (uint64_t seed = 0; seed < 20; seed++) {
            uint8_t used[200] = {0};
            bj_withhold_order(order, m->edge_count, seed);
            for (int k = 0; k < m->edge_count; k++) CHECK(!used[order[k]]++);
            CHECK_OK(
                bj_withhold(held, &chosen, m->edges, m->edge_count, order, BJ_MAZE_WITHHELD, &err),
                err);
            CHECK(chosen == m->edge_count / 5);
            memset(kept, 0, sizeof kept);
            int marked = 0;
            for (int k = 0; k < m->edge_count; k++) {
                kept[m->edges[k].from] += !held[k];
                marked += held[k];
            }
            CHECK(marked == chosen);
            for (int k = 0; k < m->edge_count; k++) CHECK(kept[m->edges[k].from] > 0);
            changed += seed && memcmp(held, before, (size_t)m->edge_count);
            memcpy(before, held, sizeof held);
        }
        CHECK(changed == 19);
        bj_maze_free(m);
    }
    /* takes edges in the given order and skips an edge if its source would have none left */
    static const bj_edge edges[5] = {{0, 1}, {1, 0}, {1, 2}, {1, 3}, {2, 0}};
    static const int32_t order[5] = {0, 2, 4, 1, 3}, wrong[5] = {0, 1, 2, 3, 5};
    uint8_t held[5];
    int chosen = 0;
    CHECK_OK(bj_withhold(held, &chosen, edges, 5, order, 0.2, &err), err);
    CHECK(chosen == 1 && held[2] && !held[0]);
    CHECK_OK(bj_withhold(held, &chosen, edges, 5, order, 1.0, &err), err);
    CHECK(chosen == 2 && held[2] && held[1] && !held[3]);
    CHECK_OK(bj_withhold(held, &chosen, edges, 4, (const int32_t[]){0, 1, 2, 3}, 0.2, &err), err);
    CHECK(chosen == 0);
    CHECK(bj_withhold(held, &chosen, edges, 5, wrong, 0.2, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "entry 4 of the order is 5");
    CHECK(bj_withhold(held, &chosen, edges, 5, order, 1.5, &err) == BJ_EARG);
    CHECK(bj_withhold(held, &chosen, (const bj_edge[]){{-1, 0}}, 1, order, .2, &err) == BJ_EARG);
    /* 0.29 of 100 edges is 29, although the product is slightly less than 29 */
    bj_edge many[100];
    int32_t line[100];
    uint8_t marks[100];
    for (int k = 0; k < 100; k++) many[k] = (bj_edge){0, k + 1}, line[k] = k;
    CHECK_OK(bj_withhold(marks, &chosen, many, 100, line, 0.29, &err), err);
    CHECK(chosen == 29);
    CHECK_OK(bj_withhold(marks, &chosen, many, 99, line, 0.2, &err), err);
    CHECK(chosen == 19);
}

static void test_crossings(void) {
    static const int cells[] = {0, 0, 1, -1, 2, 2, 0, /* end */ 1, 0, -1, 0, 1};
    bj_crossings c;
    bj_edge *edges = NULL;
    int64_t *counts = NULL;
    int n = 0;
    bj_error err = {0};
    CHECK_OK(bj_crossings_init(&c, 3, &err), err);
    for (int t = 0; t < 12; t++) bj_crossings_step(&c, cells[t], t == 6);
    CHECK_OK(bj_crossings_list(&edges, &counts, &n, &c, &err), err);
    CHECK(n == 4 && c.total == 5);
    static const int want[4][3] = {{0, 1, 2}, {1, 0, 1}, {1, 2, 1}, {2, 0, 1}};
    for (int k = 0; k < n && k < 4; k++)
        CHECK(edges[k].from == want[k][0] && edges[k].to == want[k][1] && counts[k] == want[k][2]);
    bj_free(edges);
    bj_free(counts);
    bj_crossings_reset(&c);
}

int main(void) {
    const long live = bj_alloc_live();
    test_searches();
    test_queries();
    test_withheld();
    test_crossings();
    CHECK(bj_alloc_live() == live);
    return test_report("graph");
}
