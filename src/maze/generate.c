/* generate.c - creates mazes in which designated cells have a given number of successors.
 *
 * Map: rooms are at the odd squares and are joined to a tree by openings in random order (Kruskal).
 * A share of the remaining walls is opened, too. Both rooms and openings are cells.
 * Branching: designated cells are teleporters to the same `branches` exit cells, with equal
 * probabilities. They are drawn so that the other cells stay connected on foot, and therefore every
 * cell can be reached from every other cell.
 * Tasks: five pairs of other cells, at least half as far apart on foot as the farthest pair.
 * Test: tests/maze/test_generate.c
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "maze/drive.h"

enum { TASKS = 5, MAX_BRANCHES = 8, MAX_ROOMS = 30 };

typedef struct builder {
    int rooms_i, rooms_j, rows, cols;
    uint8_t *walls;    /* (rows,cols) */
    int32_t *order;    /* scratch for shuffling */
    int32_t *set;      /* (rooms) parent of each room in the forest */
    uint8_t *marked;   /* (rows * cols) marks of entrance cells, and of cells that a search has
                          reached */
    int32_t *distance; /* (2,C) */
    int32_t ins[2 * BJ_MAZE_MAX_PORTS], outs[2 * MAX_BRANCHES], tasks[4 * TASKS];
    bj_rng rng;
} builder;

static void shuffle(int32_t *order, int count, bj_rng *rng) {
    for (int32_t k = 0; k < count; k++) order[k] = k;
    for (int k = 0; k + 1 < count; k++) {
        const int other = k + (int)bj_rng_below(rng, (uint64_t)(count - k));
        const int32_t moved = order[k];
        order[k] = order[other];
        order[other] = moved;
    }
}

static int root_of(int32_t *set, int room) {
    while (set[room] != room) room = set[room] = set[set[room]];
    return room;
}

/* ----------------------------------------------------------------------------------------- map */

static void carve(builder *b, double loops) {
    const int across = b->rooms_i * (b->rooms_j - 1),
              walls = across + (b->rooms_i - 1) * b->rooms_j;
    int closed = 0;
    for (int s = 0; s < b->rows * b->cols; s++) b->walls[s] = 1;
    for (int r = 0; r < b->rooms_i * b->rooms_j; r++) {
        b->set[r] = r;
        b->walls[(2 * (r / b->rooms_j) + 1) * b->cols + 2 * (r % b->rooms_j) + 1] = 0;
    }
    shuffle(b->order, walls, &b->rng);
    for (int k = 0; k < walls; k++) {
        const int w = b->order[k], down = w >= across;
        const int i = down ? (w - across) / b->rooms_j : w / (b->rooms_j - 1);
        const int j = down ? (w - across) % b->rooms_j : w % (b->rooms_j - 1);
        const int square = (2 * i + 1 + down) * b->cols + 2 * j + 1 + !down;
        const int a = root_of(b->set, i * b->rooms_j + j);
        const int c = root_of(b->set, (i + down) * b->rooms_j + j + !down);
        if (a != c) {
            b->set[a] = c;
            b->walls[square] = 0;
        } else {
            b->order[closed++] = square; /* never ahead of k */
        }
    }
    for (int k = 0; k < (int)(loops * closed); k++) b->walls[b->order[k]] = 0;
}

/* ------------------------------------------------------------------------------------- branching
 */

/* Returns the k-th of the four squares next to the free square s. They exist, because the border is
 * a wall. */
static const int beside_i[4] = {-1, 0, 0, 1}, beside_j[4] = {0, -1, 1, 0};

static int beside(const builder *b, int s, int k) {
    return s + beside_i[k] * b->cols + beside_j[k];
}

/* Returns 1 if the free squares are still connected without the entrances. marked is 1 for
 * entrances and 2 for squares that the search has reached. */
static int connected(builder *b, int32_t *queue) {
    const int squares = b->rows * b->cols;
    int head = 0, tail = 0, rest = 0;
    for (int s = 0; s < squares; s++) {
        if (b->walls[s] || b->marked[s]) continue;
        if (!rest++) queue[tail++] = s;
    }
    if (tail) b->marked[queue[0]] = 2;
    while (head < tail) {
        const int s = queue[head++];
        for (int k = 0; k < 4; k++) {
            const int to = beside(b, s, k);
            if (b->walls[to] || b->marked[to]) continue;
            b->marked[to] = 2;
            queue[tail++] = to;
        }
    }
    for (int s = 0; s < squares; s++)
        if (b->marked[s] == 2) b->marked[s] = 0;
    return tail == rest && rest > 0;
}

static int touches_marked(const builder *b, int s) {
    for (int k = 0; k < 4; k++)
        if (b->marked[beside(b, s, k)]) return 1;
    return 0;
}

static void store(int32_t *list, int count, const builder *b, int square) {
    list[2 * count] = square / b->cols;
    list[2 * count + 1] = square % b->cols;
}

/* Entrances are not adjacent to each other, and exits are not adjacent to an entrance, so every
 * port keeps all its successors. */
static bj_status place_ports(builder *b, const bj_generate_options *o, int junctions,
                             bj_error *err) {
    const int squares = b->rows * b->cols;
    int32_t *queue = b->order + squares;
    int ins = 0, outs = 0;
    shuffle(b->order, squares, &b->rng);
    for (int k = 0; k < squares && ins < junctions; k++) {
        const int s = b->order[k];
        if (b->walls[s] || touches_marked(b, s)) continue;
        b->marked[s] = 1;
        if (connected(b, queue)) store(b->ins, ins++, b, s);
        else b->marked[s] = 0;
    }
    for (int k = 0; k < squares && outs < o->branches; k++) {
        const int s = b->order[k];
        if (b->walls[s] || b->marked[s] || touches_marked(b, s)) continue;
        store(b->outs, outs++, b, s);
    }
    if (ins == junctions && outs == o->branches) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG,
                   "generated maze: only %d of %d designated cells and %d of %d successors fit; "
                   "use more than %d by %d rooms",
                   ins, junctions, outs, o->branches, b->rooms_i, b->rooms_j);
}

/* ----------------------------------------------------------------------------------------- tasks
 */

static bj_status draw_tasks(builder *b, const bj_maze *m, bj_error *err) {
    const size_t C = (size_t)m->cells;
    uint8_t *walks = NULL;
    int farthest = 0;
    BJ_TRY(BJ_ALLOC(walks, C * C, err));
    bj_maze_on_foot(walks, m);
    for (int u = 0; u < m->cells; u++) {
        bj_graph_distances(b->distance, b->distance + C, walks, m->cells, u);
        for (int v = 0; v < m->cells; v++)
            if (b->distance[v] > farthest) farthest = b->distance[v];
    }
    for (int t = 0; t < TASKS;) { /* terminates, because the farthest pair of cells qualifies */
        const int from = (int)bj_rng_below(&b->rng, C), to = (int)bj_rng_below(&b->rng, C);
        int in = 0;
        for (int k = 0; k < m->in_count; k++) in |= m->ins[k] == from || m->ins[k] == to;
        bj_graph_distances(b->distance, b->distance + C, walks, m->cells, from);
        if (in || 2 * b->distance[to] < farthest - 1) continue;
        for (int d = 0; d < 2; d++) {
            b->tasks[4 * t + d] = m->square[2 * from + d];
            b->tasks[4 * t + 2 + d] = m->square[2 * to + d];
        }
        t++;
    }
    bj_free(walks);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ interface */

static bj_status build(bj_maze **out, builder *b, const bj_generate_options *o, bj_error *err) {
    const int junctions = o->junctions ? o->junctions : 4, squares = b->rows * b->cols;
    char name[64];
    bj_maze_plan plan = {.name = name, .rows = b->rows, .cols = b->cols};
    snprintf(name, sizeof name, "branch%d-%dx%d-seed%llu", o->branches, b->rooms_i, b->rooms_j,
             (unsigned long long)o->seed);
    BJ_TRY(BJ_ALLOC(b->walls, (size_t)squares, err));
    BJ_TRY(BJ_ALLOC(b->marked, (size_t)squares, err));
    BJ_TRY(BJ_ALLOC(b->order, 2 * (size_t)squares, err));
    BJ_TRY(BJ_ALLOC(b->set, (size_t)squares, err));
    BJ_TRY(BJ_ALLOC(b->distance, 2 * (size_t)squares, err));
    carve(b, o->loops);
    BJ_TRY(place_ports(b, o, junctions, err));
    plan.walls = b->walls;
    plan.ins = b->ins;
    plan.outs = b->outs;
    plan.in_count = junctions;
    plan.out_count = o->branches;
    bj_maze *without = NULL;
    BJ_TRY(bj_maze_from_plan(&without, &plan, err));
    const bj_status status = draw_tasks(b, without, err);
    bj_maze_free(without);
    BJ_TRY(status);
    plan.tasks = b->tasks;
    plan.task_count = TASKS;
    return bj_maze_from_plan(out, &plan, err);
}

bj_status bj_maze_generate(bj_maze **out, const bj_generate_options *o, bj_error *err) {
    builder b = {.rooms_i = o->rows ? o->rows : 4,
                 .rooms_j = o->cols ? o->cols : 5,
                 .rng = bj_rng_named(o->seed, "maze generate")};
    *out = NULL;
    if (b.rooms_i < 2 || b.rooms_j < 2 || b.rooms_i > MAX_ROOMS || b.rooms_j > MAX_ROOMS)
        return BJ_FAIL(err, BJ_EARG,
                       "generated maze: found %d by %d rooms, expected 2 to %d per side", b.rooms_i,
                       b.rooms_j, (int)MAX_ROOMS);
    if (o->branches < 2 || o->branches > MAX_BRANCHES || o->junctions < 0 ||
        o->junctions > BJ_MAZE_MAX_PORTS || !(o->loops >= 0 && o->loops < 1))
        return BJ_FAIL(err, BJ_EARG,
                       "generated maze: found %d designated cells with %d successors, "
                       "and an open share of the walls of %g; "
                       "expected at most %d cells with 2 to %d successors, and a share in [0, 1)",
                       o->junctions, o->branches, o->loops, (int)BJ_MAZE_MAX_PORTS,
                       (int)MAX_BRANCHES);
    b.rows = 2 * b.rooms_i + 1;
    b.cols = 2 * b.rooms_j + 1;
    const bj_status status = build(out, &b, o, err);
    bj_free(b.walls);
    bj_free(b.marked);
    bj_free(b.order);
    bj_free(b.set);
    bj_free(b.distance);
    return status;
}
