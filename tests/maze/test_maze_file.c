/* test_maze_file.c - tests files of mazes and graphs: writing, reading, and all rejected files.
 *
 * test_maze_file sample FILE writes a graph of the teleport maze for tests/cli/maze_show.sh: every
 * seventh true edge is missing, every fifth cell has a false one, candidates follow the edges.
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

static char path[] = "/tmp/test_maze_file_XXXXXX";

static const uint8_t walls[] = {1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1};
static const int32_t ins[] = {1, 1}, outs[] = {1, 2, 2, 2}, tasks[] = {2, 1, 1, 2};
static const bj_maze_plan plan = {.name = "four <\"&>",
                                  .rows = 4,
                                  .cols = 4,
                                  .walls = walls,
                                  .ins = ins,
                                  .outs = outs,
                                  .tasks = tasks,
                                  .in_count = 1,
                                  .out_count = 2,
                                  .task_count = 1};

static void same_maze(const bj_maze *a, const bj_maze *b) {
    CHECK(!strcmp(a->name, b->name) && a->rows == b->rows && a->cols == b->cols);
    CHECK(a->cells == b->cells && a->edge_count == b->edge_count);
    CHECK(a->in_count == b->in_count && a->out_count == b->out_count);
    CHECK(a->task_count == b->task_count && a->retreat_count == b->retreat_count);
    CHECK(!memcmp(a->graph, b->graph, (size_t)a->cells * (size_t)a->cells));
    CHECK(!memcmp(a->tasks, b->tasks, (size_t)a->task_count * sizeof *a->tasks));
    CHECK(!memcmp(a->ins, b->ins, (size_t)a->in_count * sizeof *a->ins));
    CHECK(!memcmp(a->outs, b->outs, (size_t)a->out_count * sizeof *a->outs));
}

static void test_maze(void) {
    bj_maze *m = NULL, *back = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_from_plan(&m, &plan, &err), err);
    if (!m) return;
    /* cell 0 is a teleporter to 1 and 3; its neighbors are 1 (which is also an exit) and 2 (a
     * retreat) */
    CHECK(m->cells == 4 && m->edge_count == 2 + 6 && m->retreat_count == 2);
    CHECK(m->graph[0 * 4 + 1] && m->graph[0 * 4 + 3] && !m->graph[0 * 4 + 2]);
    CHECK_OK(bj_maze_save(path, m, &err), err);
    CHECK_OK(bj_maze_open(&back, path, &err), err);
    if (back) same_maze(m, back);
    bj_maze_free(back);
    bj_maze_free(m);
    CHECK_OK(bj_maze_open(&m, "giant", &err), err);
    CHECK(m && m->cells == 86);
    CHECK(bj_maze_save(path, m, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'giant' is the name of an official maze");
    bj_maze_free(m);
    CHECK(bj_maze_open(&m, "gaint", &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "did you mean 'giant'?");
}

static void test_plans(void) {
    bj_maze *m = NULL;
    bj_error err = {0};
    static const int32_t wall[] = {0, 0, 1, 1}, twice[] = {1, 2, 1, 2}, far[] = {1, 1, 9, 1};
    bj_maze_plan p = plan;
    p.outs = wall;
    CHECK(bj_maze_from_plan(&m, &p, &err) == BJ_EARG && !m);
    CHECK_CONTAINS(err.message, "teleporter exit 0 is at (0,0), expected a free square");
    p.outs = twice;
    CHECK(bj_maze_from_plan(&m, &p, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "two teleporters or exits are at (1,2)");
    p = plan;
    p.tasks = far;
    CHECK(bj_maze_from_plan(&m, &p, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the goal of task 0 is at (9,1)");
    p = plan;
    p.out_count = 0;
    CHECK(bj_maze_from_plan(&m, &p, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "1 teleporters and 0 exits");
    p = plan;
    p.task_count = 65;
    CHECK(bj_maze_from_plan(&m, &p, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "65 tasks, expected 0 to 64");
}

/* ---------------------------------------------------------------------------------------- graphs
 */

static const bj_edge edges[] = {{0, 1}, {0, 3}, {2, 1}}, held[] = {{1, 3}},
                     seen[] = {{0, 1}, {3, 2}};
static const int64_t crossings[] = {7, 5000000000};
static const int32_t source_cells[] = {0, 2};
static const bj_fact facts[] = {{"predictor", "branch"}, {"seed", "3 \"<&"}};

static void test_graph(void) {
    const bj_graph_candidate candidates[] = {{1, 0.75, 0.5}, {3, 1, 0.25}, {-1, 0, NAN},
                                             {2, -0.125, 0}, {1, 0.5, 1},  {0, 0.0625, NAN}};
    bj_maze *m = NULL;
    bj_graph_file *f = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_from_plan(&m, &plan, &err), err);
    if (!m) return;
    const bj_graph_record r = {.maze = m,
                               .edges = edges,
                               .edge_count = 3,
                               .held = held,
                               .held_count = 1,
                               .seen = seen,
                               .crossings = crossings,
                               .seen_count = 2,
                               .sources = 2,
                               .K = 3,
                               .source_cells = source_cells,
                               .candidates = candidates,
                               .facts = facts,
                               .fact_count = 2};
    CHECK_OK(bj_graph_save(path, &r, &err), err);
    CHECK_OK(bj_graph_open(&f, path, &err), err);
    if (f) {
        const bj_graph_record *b = bj_graph_of(f);
        same_maze(m, b->maze);
        CHECK(b->edge_count == 3 && !memcmp(b->edges, edges, sizeof edges));
        CHECK(b->held_count == 1 && !memcmp(b->held, held, sizeof held));
        CHECK(b->seen_count == 2 && !memcmp(b->seen, seen, sizeof seen));
        CHECK(!memcmp(b->crossings, crossings, sizeof crossings));
        CHECK(b->sources == 2 && b->K == 3);
        CHECK(!memcmp(b->source_cells, source_cells, sizeof source_cells));
        for (int k = 0; k < 6; k++) {
            CHECK(b->candidates[k].cell == candidates[k].cell);
            CHECK(b->candidates[k].cosine == candidates[k].cosine);
            CHECK(isnan(candidates[k].mass) ? isnan(b->candidates[k].mass)
                                            : b->candidates[k].mass == candidates[k].mass);
        }
        CHECK(b->fact_count == 2 && !strcmp(b->facts[1].key, "seed") &&
              !strcmp(b->facts[1].value, "3 \"<&"));
        int sum = 0;
        for (int k = 0; k < 16; k++) sum += b->graph[k];
        CHECK(sum == 3 && b->graph[1] && b->graph[3] && b->graph[9]);
        for (int n = 0; n < 12; n++) { /* memory ends anywhere */
            bj_graph_file *none = NULL;
            const long live = bj_alloc_live();
            bj_alloc_fail_after(n);
            const bj_status status = bj_graph_open(&none, path, &err);
            bj_alloc_fail_after(-1);
            CHECK(status == BJ_ENOMEM && !none && bj_alloc_live() == live);
        }
    }
    bj_graph_close(f);

    bj_graph_record bad = r;
    const bj_edge unsorted[] = {{2, 1}, {0, 1}}, self[] = {{1, 1}}, out[] = {{0, 4}};
    bad.edges = unsorted;
    bad.edge_count = 2;
    CHECK(bj_graph_save(path, &bad, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "'edges' row 1 is [0, 1] and follows [2, 1]");
    bad.edges = self;
    bad.edge_count = 1;
    CHECK(bj_graph_save(path, &bad, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "joins cell 1 to itself");
    bad.edges = out;
    CHECK(bj_graph_save(path, &bad, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'edges' row 0 is [0, 4], but there are 4 cells");
    bj_maze_plan fake = plan;
    fake.name = "large";
    bj_maze_free(m);
    CHECK_OK(bj_maze_from_plan(&m, &fake, &err), err);
    bad = r;
    bad.maze = m;
    CHECK(bj_graph_save(path, &bad, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the name of the official maze 'large'");
    bj_maze_free(m);
}

/* An official maze is its name. */
static void test_official(void) {
    bj_maze *m = NULL;
    bj_graph_file *f = NULL;
    bj_error err = {0};
    char *text = NULL;
    size_t size;
    CHECK_OK(bj_maze_create(&m, "medium", &err), err);
    if (!m) return;
    const bj_graph_record r = {.maze = m, .edges = m->edges, .edge_count = m->edge_count};
    CHECK_OK(bj_graph_save(path, &r, &err), err);
    CHECK_OK(bj_file_read(&text, &size, path, 1 << 20, &err), err);
    if (text) CHECK_CONTAINS(text, "\"maze\":\"medium\",\"cells\":26,\"edges\":[[0,1],[0,4],");
    CHECK_OK(bj_graph_open(&f, path, &err), err);
    if (f) CHECK(!memcmp(bj_graph_of(f)->graph, m->graph, 26 * 26));
    if (f) CHECK(!bj_graph_of(f)->sources && !bj_graph_of(f)->held_count);
    bj_graph_close(f);
    bj_free(text);
    bj_maze_free(m);
}

/* Tests every kind of invalid file and its message. */
static void test_refused(void) {
#define HEAD "{\"schema\":\"branchjepa.graph/1\",\"maze\":\"medium\",\"cells\":26,"
#define OWN(maze) "{\"schema\":\"branchjepa.graph/1\",\"maze\":" maze ",\"cells\":1,\"edges\":[]}"
    static const struct {
        const char *text, *part;
        bj_status status;
    } bad[] = {
        {"{", "not JSON", BJ_EFORMAT},
        {"[]", "schema is 'missing'", BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/2\"}", "'branchjepa.graph/2', expected", BJ_EVERSION},
        {HEAD "\"edge\":[]}", "unknown member 'edge', expected schema maze", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"edges\":[]}", "member 'edges' occurs twice", BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/1\",\"cells\":3,\"edges\":[]}", "'maze': missing",
         BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/1\",\"maze\":\"medum\",\"cells\":26,\"edges\":[]}",
         "did you mean 'medium'?", BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/1\",\"maze\":\"medium\",\"cells\":27,\"edges\":[]}",
         "'cells' is 27, expected 26, as in the maze", BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/1\",\"maze\":\"medium\",\"edges\":[]}",
         "'cells' is missing", BJ_EFORMAT},
        {HEAD "\"withheld\":[]}", "'edges' is missing", BJ_EFORMAT},
        {HEAD "\"edges\":{}}", "'edges' is object, expected a list", BJ_EFORMAT},
        {HEAD "\"edges\":[[1]]}",
         "'edges' row 0 has type array and length 1, expected a list of length 2", BJ_EFORMAT},
        {HEAD "\"edges\":[[1,26]]}", "'edges' row 0 number 1 is out of range, expected 0 to 25",
         BJ_EFORMAT},
        {HEAD "\"edges\":[[-1,2]]}", "row 0 number 0 is out of range", BJ_EFORMAT},
        {HEAD "\"edges\":[[1.5,2]]}", "number 0 is real, expected an integer", BJ_EFORMAT},
        {HEAD "\"edges\":[[1,2],[1,2]]}", "row 1 is [1, 2] and follows [1, 2]", BJ_EFORMAT},
        {HEAD "\"edges\":[[3,3]]}", "joins cell 3 to itself", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"seen\":[[1,2]]}", "'seen' row 0 has type array and length 2",
         BJ_EFORMAT},
        {HEAD "\"edges\":[],\"seen\":[[1,2,0]]}", "'seen' row 0 number 2 is out of range",
         BJ_EFORMAT},
        {HEAD "\"edges\":[],\"sources\":[{\"cell\":1}]}", "'candidates' is missing", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"sources\":[{\"cell\":1,\"candidates\":[[1,2]]}]}",
         "'sources' 0 candidate 0: expected a list [cell or null", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"sources\":[{\"cell\":1,\"candidates\":[[1,2,null]]}]}",
         "cosine is 2 and mass", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"sources\":[{\"cell\":1,\"candidates\":[[1,1,0]]},{\"cell\":1,"
              "\"candidates\":[[1,1,0]]}]}",
         "'sources' 1: the cell (in ascending order) is out of range, expected 2", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"sources\":[{\"cell\":1,\"candidates\":[[1,1,0]]},{\"cell\":2,"
              "\"candidates\":[[1,1,0],[1,1,0]]}]}",
         "is array (length 2), expected a list of length 1", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"provenance\":{\"seed\":3}}", "'seed' is uint, expected a string",
         BJ_EFORMAT},
        {HEAD "\"edges\":[],\"provenance\":{\"a\":\"b\\u0000c\"}}",
         "'a' is string with a zero byte, expected a string", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"provenance\":{\"a\\u0000\":\"b\"}}", "with a zero byte", BJ_EFORMAT},
        {HEAD "\"edges\":[],\"provenance\":{\"a\":\"b\",\"a\":\"b\"}}", "'a' occurs twice",
         BJ_EFORMAT},
        {"{\"schema\":\"branchjepa.graph/1\\u0000\",\"maze\":\"medium\",\"cells\":26,\"edges\":[]}",
         "schema is", BJ_EVERSION},
        {OWN("\"medium\\u0000\""), "'maze': string, expected an object", BJ_EFORMAT},
        {OWN("{\"name\":\"large\",\"map\":[\"0\"]}"), "the name of an official maze", BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[\"01\",\"0\"]}"), "'map' row 1 is '0', expected 2 digits",
         BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[\"02\"]}"), "'map' row 0 is '02'", BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[]}"), "'map' is array, expected 1 to 1024", BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[\"1\"]}"), "0 free squares", BJ_EFORMAT},
        {OWN("{\"name\":\"\",\"map\":[\"0\"]}"), "'name' is string, expected a non-empty string",
         BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[\"0\"],\"teleporters\":[[0,0]]}"),
         "1 teleporters and 0 exits", BJ_EFORMAT},
        {OWN("{\"name\":\"a\",\"map\":[\"0\"],\"tasks\":[[0,0,0]]}"),
         "'tasks' row 0 has type array and length 3, expected a list of length 4", BJ_EFORMAT},
    };
    bj_error err = {0};
    const long live = bj_alloc_live();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bj_graph_file *f = NULL;
        CHECK_OK(bj_file_write(path, bad[i].text, strlen(bad[i].text), &err), err);
        const bj_status status = bj_graph_open(&f, path, &err);
        CHECK_MSG(status == bad[i].status && !f, "case %zu: status %d", i, (int)status);
        CHECK_CONTAINS(err.message, bad[i].part);
        CHECK_CONTAINS(err.message, path);
        bj_graph_close(f);
    }
    CHECK(bj_alloc_live() == live);
}

/* Nearest cells by hand: latents on the axes. */
static void test_candidates(void) {
    const bj_real latents[] = {1, 0, 0, 1, -1, 0}, mass[] = {0.75, 0.25, 1, 0};
    const bj_real candidates[] = {2, 0, 3, 4, 0, 0, -1, (bj_real)0.25};
    const int32_t cells[] = {0, 1};
    const uint8_t graph[9] = {1, 1, 0, 0, 0, 1, 0, 1, 1};
    const bj_graph_case c = {.cells = 3,
                             .sources = 2,
                             .K = 2,
                             .D = 2,
                             .latents = latents,
                             .candidates = candidates,
                             .source_cells = cells,
                             .graph = graph};
    bj_graph_candidate out[4];
    bj_error err = {0};
    CHECK_OK(bj_graph_candidates(out, &c, mass, &err), err);
    CHECK(out[0].cell == 0 && out[0].cosine == 1 && out[0].mass == 0.75);
    CHECK(out[1].cell == 1 && out[1].mass == 0.25);
    CHECK_NEAR(out[1].cosine, 0.8, 1e-12);
    CHECK(out[2].cell == -1 && out[2].cosine == 0);
    CHECK(out[3].cell == 2);
    CHECK_OK(bj_graph_candidates(out, &c, NULL, &err), err);
    CHECK(isnan(out[3].mass));
    bj_edge *list = NULL;
    int count = 0;
    CHECK_OK(bj_graph_edges(&list, &count, graph, 3, &err), err);
    CHECK(count == 3 && list[0].from == 0 && list[0].to == 1 && list[2].from == 2 &&
          list[2].to == 1);
    bj_edges_free(list);
    CHECK(bj_graph_edges(&list, &count, graph, 0, &err) == BJ_EARG && !list);
}

static int write_sample(const char *to) {
    enum { K = 4 };
    bj_maze *m = NULL;
    bj_edge *list = NULL;
    bj_error err = {0};
    static uint8_t graph[45 * 45];
    static bj_graph_candidate candidates[45][K];
    int32_t cells[45];
    int count = 0;
    if (bj_maze_create(&m, "teleport", &err) != BJ_OK) return 1;
    memcpy(graph, m->graph, sizeof graph);
    for (int k = 0; k < m->edge_count; k += 7) graph[m->edges[k].from * 45 + m->edges[k].to] = 0;
    for (int u = 0; u < 45; u += 5) graph[u * 45 + (u + 2) % 45] = 1;
    for (int u = 0; u < 45; u++) {
        int n = 0;
        cells[u] = u;
        for (int v = 0; v < 45 && n < K; v++)
            if (graph[u * 45 + v])
                candidates[u][n] = (bj_graph_candidate){v, 0.97 - 0.1 * n, 0}, n++;
        const int used = n;
        for (; n < K; n++) candidates[u][n] = (bj_graph_candidate){u, 0.3, 0};
        for (int k = 0; k < K; k++)
            candidates[u][k].mass = used ? (k < used ? 0.96 / used : 0) + 0.01 : 0.25;
    }
    int status = bj_graph_edges(&list, &count, graph, 45, &err) != BJ_OK;
    const bj_graph_record r = {.maze = m,
                               .edges = list,
                               .edge_count = count,
                               .sources = 45,
                               .K = K,
                               .source_cells = cells,
                               .candidates = candidates[0],
                               .facts = facts,
                               .fact_count = 2};
    status = status || bj_graph_save(to, &r, &err) != BJ_OK;
    bj_edges_free(list);
    bj_maze_free(m);
    return status;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "sample")) return write_sample(argv[2]);
    const long live = bj_alloc_live();
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    test_maze();
    test_plans();
    test_graph();
    test_official();
    test_refused();
    test_candidates();
    CHECK(bj_alloc_live() == live);
    unlink(path);
    return test_report("maze_file");
}
