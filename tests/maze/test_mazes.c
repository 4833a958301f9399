/* test_mazes.c - compares maps, cells, graphs and tasks with the table of facts. */
#include <stdlib.h>

#include "core/alloc.h"
#include "test.h"

#include <branchjepa/branchjepa.h>

enum { CELL, EDGE, TELEPORT, RETREAT, TASK, KINDS };

/* Finds the k-th pair of a kind in our maze. Returns 0 if there are fewer. */
static int ours(bj_edge *out, const bj_maze *m, int kind, int k) {
    const int counts[KINDS] = {m->cells, m->edge_count, m->teleport_count, m->retreat_count,
                               m->task_count};
    const bj_edge *const lists[KINDS] = {NULL, m->edges, m->teleports, m->retreats, m->tasks};
    if (k >= counts[kind]) return 0;
    if (lists[kind]) *out = lists[kind][k];
    else *out = (bj_edge){m->square[2 * k], m->square[2 * k + 1]};
    return 1;
}

static void test_facts(void) {
    static const char *const kinds[KINDS] = {"cell", "edge", "teleport", "retreat", "task"};
    int seen[4][KINDS] = {{0}};
    bj_maze *maze[4] = {NULL};
    bj_error err = {0};
    char line[256];
    for (int i = 0; i < 4; i++) CHECK_OK(bj_maze_create(&maze[i], bj_maze_name(i), &err), err);
    FILE *file = fopen("tests/maze/facts.txt", "r");
    CHECK(file != NULL);
    while (file && fgets(line, sizeof line, file)) {
        if (*line == '#') continue;
        const char *name = strtok(line, " \n"), *kind = strtok(NULL, " \n");
        int i = 0, k = 0;
        while (i < 4 && strcmp(name, bj_maze_name(i))) i++;
        while (k < KINDS && strcmp(kind, kinds[k])) k++;
        CHECK(i < 4 && k < KINDS);
        if (i == 4 || k == KINDS || !maze[i]) break;
        for (const char *pair; (pair = strtok(NULL, " \n"));) {
            int a = -1, b = -1;
            bj_edge found = {-2, -2};
            CHECK(sscanf(pair, "%d,%d", &a, &b) == 2);
            CHECK(ours(&found, maze[i], k, seen[i][k]++));
            CHECK_MSG(found.from == a && found.to == b, "%s %s %d: %d,%d, expected %d,%d", name,
                      kind, seen[i][k] - 1, (int)found.from, (int)found.to, a, b);
        }
    }
    if (file) fclose(file);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < KINDS; k++) {
            bj_edge more;
            CHECK_MSG(maze[i] && !ours(&more, maze[i], k, seen[i][k]), "%s has more than %d of %s",
                      bj_maze_name(i), seen[i][k], kinds[k]);
        }
    for (int i = 0; i < 4; i++) bj_maze_free(maze[i]);
}

/* What README files of the benchmark count. */
static void test_counts(void) {
    static const struct {
        const char *name;
        int cells, edges, pairs, successors[6];
    } want[] = {{"medium", 26, 56, 650, {0, 1, 20, 5}},
                {"large", 46, 96, 2070, {0, 3, 36, 7}},
                {"giant", 86, 176, 7310, {0, 6, 70, 10}},
                {"teleport", 45, 96, 1936, {1, 3, 31, 9, 1}}};
    bj_error err = {0};
    for (int i = 0; i < 4; i++) {
        bj_maze *m = NULL;
        bj_edge *pairs = NULL;
        int count = 0, bins[6] = {0};
        CHECK_OK(bj_maze_create(&m, want[i].name, &err), err);
        if (!m) continue;
        CHECK(m->cells == want[i].cells && m->edge_count == want[i].edges);
        CHECK_OK(bj_graph_pairs(&pairs, &count, m->graph, m->cells, &err), err);
        CHECK(count == want[i].pairs);
        for (int u = 0; u < m->cells; u++) {
            int n = 0;
            for (int v = 0; v < m->cells; v++) n += m->graph[u * m->cells + v];
            bins[n < 6 ? n : 5]++;
            /* the functions for centers and cells are inverse, even close to the corners of a
             * square */
            const double x = m->center[2 * u], y = m->center[2 * u + 1];
            CHECK(x == 4.0 * m->square[2 * u + 1] - 4 && y == 4.0 * m->square[2 * u] - 4);
            CHECK(bj_maze_cell(m, x, y) == u && bj_maze_cell(m, x - 2, y - 2) == u);
            CHECK(bj_maze_cell(m, x + 1.999, y + 1.999) == u);
            CHECK(bj_maze_cell(m, x - 2.001, y) != u && bj_maze_cell(m, x + 2, y) != u);
            CHECK(bj_maze_cell(m, x, y - 2.001) != u && bj_maze_cell(m, x, y + 2) != u);
        }
        CHECK(!memcmp(bins, want[i].successors, sizeof bins));
        bj_edges_free(pairs);
        bj_maze_free(m);
    }
}

static void test_names(void) {
    bj_maze *m = NULL;
    bj_error err = {0};
    CHECK(!bj_maze_name(4) && !bj_maze_name(-1));
    CHECK(bj_maze_create(&m, "lage", &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "unknown maze 'lage'; did you mean 'large'?");
    CHECK_CONTAINS(err.message, "expected medium, large, giant or teleport");
    CHECK(!strcmp(bj_maze_guess("/data-medium/pointmaze-large-navigate-v0.npz"), "large"));
    CHECK(!strcmp(bj_maze_guess("visual-antmaze-teleport-stride25.npz"), "teleport"));
    CHECK(!strcmp(bj_maze_guess("giant"), "giant"));
    CHECK(!strcmp(bj_maze_guess("trajectory_teleport.npz"), "teleport"));
    CHECK(!bj_maze_guess("pointmaze-larger-v0.npz") && !bj_maze_guess("") &&
          !bj_maze_guess("/large/"));
}

static void test_teleport(void) {
    bj_maze *m = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_create(&m, "teleport", &err), err);
    if (!m) return;
    CHECK(m->in_count == 2 && m->ins[0] == 24 && m->ins[1] == 27);
    CHECK(m->out_count == 3 && m->outs[0] == 5 && m->outs[1] == 32 && m->outs[2] == 36);
    CHECK(bj_maze_edge_kind(m, (bj_edge){24, 5}) == BJ_EDGE_REAL);
    CHECK(bj_maze_edge_kind(m, (bj_edge){27, 32}) == BJ_EDGE_REAL); /* neighbor and out cell */
    CHECK(bj_maze_edge_kind(m, (bj_edge){24, 15}) == BJ_EDGE_RETREAT);
    CHECK(bj_maze_edge_kind(m, (bj_edge){15, 24}) == BJ_EDGE_REAL);
    CHECK(bj_maze_edge_kind(m, (bj_edge){0, 8}) == BJ_EDGE_DIAGONAL);
    CHECK(bj_maze_edge_kind(m, (bj_edge){0, 2}) == BJ_EDGE_OTHER);
    CHECK(!strcmp(bj_edge_kind_name(BJ_EDGE_RETREAT), "retreat"));
    for (int v = 0; v < m->cells; v++) CHECK(!m->graph[5 * m->cells + v]); /* the dead end */
    CHECK(bj_maze_cell(m, NAN, 0) == -1 && bj_maze_cell(m, 0, INFINITY) == -1);
    CHECK(bj_maze_cell(m, 1e300, 0) == -1 && bj_maze_cell(m, -4, -4) == -1);
    CHECK(bj_maze_cell(m, -6.001, 0) == -1 && bj_maze_cell(m, 0, 30.001) == -1);
    bj_maze_free(m);
}

static void test_walls(void) {
    static const uint8_t walls[6] = {0, 0, 1, 1, 0, 0}, closed[2] = {1, 1};
    bj_maze *m = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_from_walls(&m, "small", walls, 2, 3, &err), err);
    CHECK(m && m->cells == 4 && m->edge_count == 6 && m->task_count == 0 && m->in_count == 0);
    if (m) CHECK(bj_maze_cell(m, 4, 0) == 3 && bj_maze_cell(m, -4, 0) == -1);
    bj_maze_free(m);
    CHECK(bj_maze_from_walls(&m, "small", closed, 1, 2, &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "0 free squares");
    CHECK(bj_maze_from_walls(&m, "small", walls, 0, 3, &err) == BJ_EARG && !m);
    for (long n = 0; n < 30; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_maze_create(&m, "giant", &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || (status == BJ_ENOMEM && !m));
        bj_maze_free(m);
        if (status == BJ_OK) break;
        CHECK(n < 29);
    }
}

int main(void) {
    const long live = bj_alloc_live();
    test_facts();
    test_counts();
    test_names();
    test_teleport();
    test_walls();
    CHECK(bj_alloc_live() == live);
    return test_report("mazes");
}
