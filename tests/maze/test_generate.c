/* test_generate.c - tests generated mazes: exact numbers of successors, reachable cells, and walks
 * that cross every edge. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

static void test_mazes(void) {
    bj_error err = {0};
    for (int branches = 2; branches <= 5; branches++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            bj_maze *m = NULL, *again = NULL;
            bj_edge *pairs = NULL;
            int count = 0;
            const bj_generate_options o = {.branches = branches, .seed = seed, .loops = 0.25};
            CHECK_OK(bj_maze_generate(&m, &o, &err), err);
            CHECK_OK(bj_maze_generate(&again, &o, &err), err);
            if (!m || !again) continue;
            CHECK(m->rows == 9 && m->cols == 11 && m->in_count == 4 && m->out_count == branches);
            CHECK(m->edge_count == again->edge_count &&
                  !memcmp(m->edges, again->edges, (size_t)m->edge_count * sizeof *m->edges));
            for (int k = 0; k < m->in_count; k++) {
                int successors = 0;
                for (int v = 0; v < m->cells; v++)
                    successors += m->graph[(int)m->ins[k] * m->cells + v];
                CHECK(successors == branches);
            }
            /* exits are not adjacent, so all successors are jumps */
            for (int k = 0; k < m->retreat_count; k++)
                CHECK(bj_maze_edge_kind(m, m->retreats[k]) == BJ_EDGE_RETREAT);
            CHECK_OK(bj_graph_pairs(&pairs, &count, m->graph, m->cells, &err), err);
            CHECK(count == m->cells * (m->cells - 1));
            bj_edges_free(pairs);
            CHECK(m->task_count == 5);
            for (int t = 0; t < 5; t++) CHECK(m->tasks[t].from != m->tasks[t].to);
            bj_maze_free(m);
            bj_maze_free(again);
        }
    /* Other seeds, other mazes; loops add cells. */
    bj_maze *a = NULL, *b = NULL, *c = NULL;
    bj_generate_options o = {.branches = 3, .rows = 6, .cols = 7};
    CHECK_OK(bj_maze_generate(&a, &o, &err), err);
    o.seed = 1;
    CHECK_OK(bj_maze_generate(&b, &o, &err), err);
    o.loops = 0.9;
    CHECK_OK(bj_maze_generate(&c, &o, &err), err);
    if (a && b && c) {
        CHECK(a->cells == 2 * 42 - 1 && b->cells == a->cells && c->cells == a->cells + 27);
        CHECK(memcmp(a->cell_at, b->cell_at, 13 * 15 * sizeof *a->cell_at));
    }
    bj_maze_free(a);
    bj_maze_free(b);
    bj_maze_free(c);
}

static void test_refused(void) {
    bj_error err = {0};
    bj_maze *m = NULL;
    bj_generate_options o = {.branches = 1};
    CHECK(bj_maze_generate(&m, &o, &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "0 designated cells with 1 successors");
    o = (bj_generate_options){.branches = 8, .rows = 2, .cols = 2, .junctions = 3};
    CHECK(bj_maze_generate(&m, &o, &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "use more than 2 by 2 rooms");
    o.rows = 31;
    CHECK(bj_maze_generate(&m, &o, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "31 by 2 rooms");
    o = (bj_generate_options){.branches = 3};
    const long live = bj_alloc_live();
    int failures = 0;
    for (int n = 0;; n++) { /* memory ends anywhere */
        bj_alloc_fail_after(n);
        const bj_status status = bj_maze_generate(&m, &o, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && !m && bj_alloc_live() == live);
        failures++;
    }
    CHECK(failures > 10);
    bj_maze_free(m);
}

static void test_walks(void) {
    char path[] = "/tmp/test_generate_XXXXXX";
    bj_error err = {0};
    bj_maze *m = NULL;
    bj_maze_data *data = NULL;
    /* a maze with cells that can be reached only through teleporters */
    const bj_generate_options o = {.branches = 2, .seed = 2, .loops = 0.25};
    bj_walk_options w = {.episodes = 250, .noise = -1, .seed = 3};
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    CHECK_OK(bj_maze_generate(&m, &o, &err), err);
    if (!m) return;
    CHECK_OK(bj_maze_walk(path, m, &w, &err), err);
    CHECK_OK(bj_maze_data_open(&data, path, m, &err), err);
    if (data) {
        const bj_maze_data_info info = bj_maze_data_about(data);
        const bj_edge *edges = bj_maze_data_edges(data);
        int real = 0;
        CHECK(info.steps == 250 * 1001 && info.episodes == 250 && !info.open_end && !info.outside);
        CHECK(info.visited == m->cells);
        for (int k = 0; k < info.edges; k++) real += bj_maze_edge_kind(m, edges[k]) == BJ_EDGE_REAL;
        CHECK(real == m->edge_count);     /* all of the true graph is there */
        CHECK(info.edges - real <= 4);    /* and a retreat at most now and then */
        CHECK(info.crossings > 250 * 20); /* 20 steps a cell, with noise */
    }
    bj_maze_data_free(data);
    char *first = NULL, *second = NULL;
    size_t a = 0, b = 0;
    w.episodes = 2;
    w.steps = 50;
    CHECK_OK(bj_maze_walk(path, m, &w, &err), err);
    CHECK_OK(bj_file_read(&first, &a, path, 1 << 20, &err), err);
    CHECK_OK(bj_maze_walk(path, m, &w, &err), err);
    CHECK_OK(bj_file_read(&second, &b, path, 1 << 20, &err), err);
    CHECK(first && second && a == b && !memcmp(first, second, a));
    bj_free(second);
    w.seed = 4;
    CHECK_OK(bj_maze_walk(path, m, &w, &err), err);
    CHECK_OK(bj_file_read(&second, &b, path, 1 << 20, &err), err);
    CHECK(first && second && a == b && memcmp(first, second, a));
    bj_free(first);
    bj_free(second);
    w.steps = 1 << 30;
    CHECK(bj_maze_walk(path, m, &w, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "expected at most 100000000 steps in total");
    bj_maze_free(m);
    unlink(path);
}

int main(void) {
    const long live = bj_alloc_live();
    test_mazes();
    test_refused();
    test_walks();
    CHECK(bj_alloc_live() == live);
    return test_report("generate");
}
