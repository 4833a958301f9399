/* mazes.c - the maps of OGBench, and the cells and graphs computed from them; see
 * branchjepa/maze.h.
 *
 * Maps, teleporters and tasks are those of OGBench 1.2.2 (Park et al., MIT license; docs/MAZES.md).
 *
 *   square (i,j)  has the center (4j - 4, 4i - 4)
 *   position      is in i = floor((y + 6) / 4), j = floor((x + 6) / 4)
 *   edges         connect free squares that share a side, in both directions; a teleporter entrance
 *                 has an edge to each exit cell instead
 * Test: tests/maze/test_mazes.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/drive.h"

enum { MAX_SIDE = 1024, PORTS = 3, TASKS = 5 };

typedef struct source {
    const char *name, *map; /* rows separated by '/', 1: wall */
    int in_count, out_count;
    int32_t ins[PORTS][2], outs[PORTS][2]; /* squares */
    int32_t tasks[TASKS][4];               /* squares of start and goal */
} source;

/* clang-format off */
static const source sources[] = {
    {"medium",
     "11111111/"
     "10011001/"
     "10010001/"
     "11000111/"
     "10010001/"
     "10100101/"
     "10001001/"
     "11111111",
     0, 0, {{0}}, {{0}},
     {{1, 1, 6, 6}, {6, 1, 1, 6}, {5, 3, 4, 2}, {6, 5, 6, 1}, {2, 6, 1, 1}}},
    {"large",
     "111111111111/"
     "100001000001/"
     "101101010101/"
     "100000010001/"
     "101111011101/"
     "100101000001/"
     "110101010111/"
     "100100010001/"
     "111111111111",
     0, 0, {{0}}, {{0}},
     {{1, 1, 7, 10}, {5, 4, 7, 1}, {7, 4, 1, 10}, {3, 8, 5, 4}, {1, 1, 5, 4}}},
    {"giant",
     "1111111111111111/"
     "1010000001100001/"
     "1010110101001101/"
     "1000100100010001/"
     "1011101111110101/"
     "1000100010000101/"
     "1110101001010111/"
     "1000100100010001/"
     "1010101111110101/"
     "1011100010001101/"
     "1000001000100001/"
     "1111111111111111",
     0, 0, {{0}}, {{0}},
     {{1, 1, 10, 14}, {1, 14, 10, 1}, {8, 14, 1, 1}, {8, 3, 5, 12}, {5, 9, 3, 8}}},
    {"teleport",
     "111111111111/"
     "100000101001/"
     "110100010011/"
     "110111000001/"
     "100001010101/"
     "101101010101/"
     "101101010101/"
     "100001000101/"
     "111111111111",
     2, 3, {{4, 6}, {5, 1}}, {{1, 7}, {6, 1}, {6, 10}},
     {{1, 10, 7, 1}, {1, 1, 7, 10}, {5, 6, 7, 10}, {7, 1, 7, 10}, {5, 6, 7, 1}}},
};
/* clang-format on */
enum { MAZES = sizeof sources / sizeof *sources };

const char *bj_maze_name(int index) {
    return index >= 0 && index < MAZES ? sources[index].name : NULL;
}

const char *bj_maze_guess(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    for (const char *word = base; *word;) {
        const size_t length = strcspn(word, "-_.");
        for (int i = 0; i < MAZES; i++)
            if (strlen(sources[i].name) == length && !memcmp(word, sources[i].name, length))
                return sources[i].name;
        word += length + (word[length] != '\0');
    }
    return NULL;
}

/* --------------------------------------------------------------------------------------- filling
 */

/* Writable pointers to the arrays of a maze, used while it is filled. */
typedef struct draft {
    bj_maze maze; /* must be first, because callers get a pointer to it */
    char *name;
    int32_t *cell_at, *square, *ports;
    double *center;
    uint8_t *graph;
    bj_edge *edges, *teleports, *retreats, *tasks;
} draft;

static int cell_at(const bj_maze *m, int i, int j) {
    if (i < 0 || j < 0 || i >= m->rows || j >= m->cols) return -1;
    return m->cell_at[i * m->cols + j];
}

static bj_status number_cells(draft *d, const uint8_t *walls, bj_error *err) {
    bj_maze *m = &d->maze;
    const int squares = m->rows * m->cols;
    BJ_TRY(BJ_ALLOC(d->cell_at, (size_t)squares, err));
    for (int s = 0; s < squares; s++) d->cell_at[s] = walls[s] ? -1 : m->cells++;
    m->cell_at = d->cell_at;
    if (!m->cells || m->cells > BJ_MAZE_MAX_CELLS)
        return BJ_FAIL(err, BJ_EARG, "maze '%s': found %d free squares, expected 1 to %d", m->name,
                       m->cells, (int)BJ_MAZE_MAX_CELLS);
    BJ_TRY(BJ_ALLOC(d->square, 2 * (size_t)m->cells, err));
    BJ_TRY(BJ_ALLOC(d->center, 2 * (size_t)m->cells, err));
    for (int s = 0; s < squares; s++) {
        const int c = d->cell_at[s];
        if (c < 0) continue;
        d->square[2 * c] = s / m->cols;
        d->square[2 * c + 1] = s % m->cols;
        d->center[2 * c] = BJ_MAZE_UNIT * (s % m->cols) - BJ_MAZE_UNIT;
        d->center[2 * c + 1] = BJ_MAZE_UNIT * (s / m->cols) - BJ_MAZE_UNIT;
    }
    m->square = d->square;
    m->center = d->center;
    return BJ_OK;
}

static int is_in(const bj_maze *m, int cell) {
    for (int k = 0; k < m->in_count; k++)
        if (m->ins[k] == cell) return 1;
    return 0;
}

static void add_edge(draft *d, int from, int to) {
    uint8_t *entry = &d->graph[(size_t)from * (size_t)d->maze.cells + (size_t)to];
    if (*entry) return; /* an exit cell may be a neighbor */
    *entry = 1;
    d->edges[d->maze.edge_count++] = (bj_edge){from, to};
}

static bj_status connect(draft *d, bj_error *err) {
    static const int side[4][2] = {{-1, 0}, {0, -1}, {0, 1}, {1, 0}};
    bj_maze *m = &d->maze;
    const size_t C = (size_t)m->cells, jumps = (size_t)m->in_count * (size_t)m->out_count;
    BJ_TRY(BJ_ALLOC(d->graph, C * C, err));
    BJ_TRY(BJ_ALLOC(d->edges, 4 * C + jumps, err));
    BJ_TRY(BJ_ALLOC(d->teleports, jumps, err));
    BJ_TRY(BJ_ALLOC(d->retreats, 4 * (size_t)m->in_count, err));
    for (int c = 0; c < m->cells; c++)
        for (int k = 0; k < 4; k++) {
            const int to =
                cell_at(m, m->square[2 * c] + side[k][0], m->square[2 * c + 1] + side[k][1]);
            if (to < 0) continue;
            if (is_in(m, c)) d->retreats[m->retreat_count++] = (bj_edge){c, to};
            else add_edge(d, c, to);
        }
    for (int i = 0; i < m->in_count; i++)
        for (int o = 0; o < m->out_count; o++) {
            d->teleports[m->teleport_count++] = (bj_edge){m->ins[i], m->outs[o]};
            add_edge(d, m->ins[i], m->outs[o]);
        }
    qsort(d->edges, (size_t)m->edge_count, sizeof *d->edges, bj_edge_compare);
    qsort(d->teleports, (size_t)m->teleport_count, sizeof *d->teleports, bj_edge_compare);
    qsort(d->retreats, (size_t)m->retreat_count, sizeof *d->retreats, bj_edge_compare);
    m->graph = d->graph;
    m->edges = d->edges;
    m->teleports = d->teleports;
    m->retreats = d->retreats;
    return BJ_OK;
}

/* Returns the cell at a square of the map. */
static bj_status place(int32_t *out, const bj_maze *m, const int32_t *square, const char *what,
                       int number, bj_error *err) {
    *out = cell_at(m, square[0], square[1]);
    if (*out >= 0) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "maze '%.80s': %s %d is at (%d,%d), expected a free square",
                   m->name, what, number, (int)square[0], (int)square[1]);
}

static bj_status place_ports(draft *d, const bj_maze_plan *from, bj_error *err) {
    bj_maze *m = &d->maze;
    BJ_TRY(BJ_ALLOC(d->ports, (size_t)(from->in_count + from->out_count), err));
    m->ins = d->ports;
    m->outs = d->ports + from->in_count;
    for (; m->in_count < from->in_count; m->in_count++)
        BJ_TRY(place(d->ports + m->in_count, m, from->ins + 2 * m->in_count, "teleporter",
                     m->in_count, err));
    for (; m->out_count < from->out_count; m->out_count++)
        BJ_TRY(place(d->ports + m->in_count + m->out_count, m, from->outs + 2 * m->out_count,
                     "teleporter exit", m->out_count, err));
    const int ports = m->in_count + m->out_count;
    for (int a = 0; a < ports; a++)
        for (int b = 0; b < a; b++)
            if (d->ports[a] == d->ports[b])
                return BJ_FAIL(
                    err, BJ_EARG, "maze '%.80s': two teleporters or exits are at (%d,%d)", m->name,
                    (int)m->square[2 * d->ports[a]], (int)m->square[2 * d->ports[a] + 1]);
    return BJ_OK;
}

static bj_status place_tasks(draft *d, const bj_maze_plan *from, bj_error *err) {
    bj_maze *m = &d->maze;
    BJ_TRY(BJ_ALLOC(d->tasks, (size_t)from->task_count, err));
    m->tasks = d->tasks;
    for (; m->task_count < from->task_count; m->task_count++) {
        const int32_t *squares = from->tasks + 4 * m->task_count;
        bj_edge *task = &d->tasks[m->task_count];
        BJ_TRY(place(&task->from, m, squares, "the start of task", m->task_count, err));
        BJ_TRY(place(&task->to, m, squares + 2, "the goal of task", m->task_count, err));
    }
    return BJ_OK;
}

static bj_status check_plan(const bj_maze_plan *p, bj_error *err) {
    if (p->rows < 1 || p->cols < 1 || p->rows > MAX_SIDE || p->cols > MAX_SIDE)
        return BJ_FAIL(err, BJ_EARG,
                       "maze '%.80s': found %d by %d squares, expected 1 to %d per side", p->name,
                       p->rows, p->cols, (int)MAX_SIDE);
    if (p->in_count < 0 || p->out_count < 0 || p->in_count > BJ_MAZE_MAX_PORTS ||
        p->out_count > BJ_MAZE_MAX_PORTS || !p->in_count != !p->out_count)
        return BJ_FAIL(
            err, BJ_EARG,
            "maze '%.80s': found %d teleporters and %d exits, expected none, or 1 to %d of each",
            p->name, p->in_count, p->out_count, (int)BJ_MAZE_MAX_PORTS);
    if (p->task_count < 0 || p->task_count > BJ_MAZE_MAX_TASKS)
        return BJ_FAIL(err, BJ_EARG, "maze '%.80s': %d tasks, expected 0 to %d", p->name,
                       p->task_count, (int)BJ_MAZE_MAX_TASKS);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- interface
 */

bj_status bj_maze_from_plan(bj_maze **out, const bj_maze_plan *plan, bj_error *err) {
    draft *d;
    bj_status status = BJ_OK;
    *out = NULL;
    BJ_TRY(check_plan(plan, err));
    BJ_TRY(BJ_ALLOC(d, 1, err));
    d->maze.rows = plan->rows;
    d->maze.cols = plan->cols;
    if (!(d->name = bj_strdup(plan->name)))
        status = bj_alloc_failed(strlen(plan->name) + 1, 1, err);
    d->maze.name = d->name;
    if (status == BJ_OK) status = number_cells(d, plan->walls, err);
    if (status == BJ_OK) status = place_ports(d, plan, err);
    if (status == BJ_OK) status = place_tasks(d, plan, err);
    if (status == BJ_OK) status = connect(d, err);
    if (status == BJ_OK) *out = &d->maze;
    else bj_maze_free(&d->maze);
    return status;
}

bj_status bj_maze_from_walls(bj_maze **out, const char *name, const uint8_t *walls, int rows,
                             int cols, bj_error *err) {
    const bj_maze_plan plan = {.name = name, .walls = walls, .rows = rows, .cols = cols};
    return bj_maze_from_plan(out, &plan, err);
}

bj_status bj_maze_create(bj_maze **out, const char *name, bj_error *err) {
    uint8_t walls[256];
    bj_nearest nearest = BJ_NEAREST(name);
    *out = NULL;
    for (int i = 0; i < MAZES; i++) {
        bj_nearest_offer(&nearest, sources[i].name);
        if (strcmp(sources[i].name, name)) continue;
        const int cols = (int)strcspn(sources[i].map, "/");
        int squares = 0;
        for (const char *p = sources[i].map; *p; p++)
            if (*p != '/') walls[squares++] = *p == '1';
        const bj_maze_plan plan = {.name = name,
                                   .walls = walls,
                                   .rows = squares / cols,
                                   .cols = cols,
                                   .ins = sources[i].ins[0],
                                   .outs = sources[i].outs[0],
                                   .tasks = sources[i].tasks[0],
                                   .in_count = sources[i].in_count,
                                   .out_count = sources[i].out_count,
                                   .task_count = TASKS};
        return bj_maze_from_plan(out, &plan, err);
    }
    return BJ_FAIL(err, BJ_EARG,
                   "unknown maze '%.80s'%s%s%s, expected medium, large, giant or teleport", name,
                   nearest.best ? "; did you mean '" : "", nearest.best ? nearest.best : "",
                   nearest.best ? "'?" : "");
}

void bj_maze_free(bj_maze *maze) {
    draft *d = (draft *)maze;
    if (!d) return;
    bj_free(d->name);
    bj_free(d->cell_at);
    bj_free(d->square);
    bj_free(d->ports);
    bj_free(d->center);
    bj_free(d->graph);
    bj_free(d->edges);
    bj_free(d->teleports);
    bj_free(d->retreats);
    bj_free(d->tasks);
    bj_free(d);
}

int bj_maze_cell(const bj_maze *m, double x, double y) {
    const double i = floor((y + 1.5 * BJ_MAZE_UNIT) / BJ_MAZE_UNIT);
    const double j = floor((x + 1.5 * BJ_MAZE_UNIT) / BJ_MAZE_UNIT);
    if (!(i >= 0 && i < m->rows && j >= 0 && j < m->cols)) return -1; /* NaN too */
    return m->cell_at[(int)i * m->cols + (int)j];
}

bj_edge_kind bj_maze_edge_kind(const bj_maze *m, bj_edge e) {
    if (m->graph[(size_t)e.from * (size_t)m->cells + (size_t)e.to]) return BJ_EDGE_REAL;
    for (int k = 0; k < m->retreat_count; k++)
        if (m->retreats[k].from == e.from && m->retreats[k].to == e.to) return BJ_EDGE_RETREAT;
    const int di = abs(m->square[2 * e.from] - m->square[2 * e.to]);
    const int dj = abs(m->square[2 * e.from + 1] - m->square[2 * e.to + 1]);
    return di == 1 && dj == 1 ? BJ_EDGE_DIAGONAL : BJ_EDGE_OTHER;
}

const char *bj_edge_kind_name(bj_edge_kind kind) {
    static const char *const names[] = {"real", "retreat", "diagonal", "other"};
    return names[kind];
}
