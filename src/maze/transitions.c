/* transitions.c - lists the pairs of steps for training; see branchjepa/maze.h.
 *
 * Invariants
 *   1. Pairs are sorted by `from`. Both steps of a pair are in cells, and in the same episode.
 *   2. No pair crosses a withheld edge. STEP checks every crossing between its two steps. CROSSING
 *      has only one crossing, at its end.
 * Test: tests/maze/test_dataset.c
 */
#include "core/alloc.h"
#include "maze/maze.h"

struct bj_transitions {
    bj_transition *list; /* NULL while counting */
    int64_t count, dropped;
};

typedef struct walk {
    const int16_t *cells;
    const uint8_t *held; /* (C,C) */
    int C, horizon;
    bj_transitions *to;
} walk;

static void add(bj_transitions *t, int64_t from, int64_t to, int dropped) {
    if (dropped) {
        t->dropped++;
        return;
    }
    if (t->list) t->list[t->count] = (bj_transition){from, to};
    t->count++;
}

static int is_held(const walk *w, int from, int to) {
    return w->held && from >= 0 && w->held[(size_t)from * (size_t)w->C + (size_t)to];
}

/* Adds every pair (t, t + horizon) of the episode in rows [begin, end). */
static void walk_steps(const walk *w, int64_t begin, int64_t end) {
    int64_t crossed = -1; /* the last row that the episode entered through a withheld edge */
    int last = -1;
    for (int64_t t = begin; t < end; t++) {
        const int cell = w->cells[t];
        if (cell >= 0) {
            if (last != cell && is_held(w, last, cell)) crossed = t;
            last = cell;
        }
        const int64_t from = t - w->horizon;
        if (from >= begin && cell >= 0 && w->cells[from] >= 0) add(w->to, from, t, crossed > from);
    }
}

/* Adds every pair (t, first later row in another cell). */
static void walk_crossings(const walk *w, int64_t begin, int64_t end) {
    int64_t first = begin; /* first row without a pair yet */
    int last = -1;
    for (int64_t t = begin; t < end; t++) {
        const int cell = w->cells[t];
        if (cell < 0 || cell == last) continue;
        for (int64_t from = first; from < t && last >= 0; from++)
            if (w->cells[from] >= 0) add(w->to, from, t, is_held(w, last, cell));
        first = t;
        last = cell;
    }
}

static void walk_all(const walk *w, const bj_maze_data *data, const bj_transition_options *o) {
    const int64_t *episodes = bj_maze_data_episodes(data);
    const int64_t n = bj_maze_data_about(data).episodes;
    for (int64_t e = 0; e < n; e++) {
        if (o->episodes && !o->episodes[e]) continue;
        if (o->kind == BJ_TRANSITION_STEP) walk_steps(w, episodes[e], episodes[e + 1]);
        else walk_crossings(w, episodes[e], episodes[e + 1]);
    }
}

static bj_status fill(bj_transitions *t, const bj_maze_data *data, const bj_transition_options *o,
                      bj_error *err) {
    const int C = bj_maze_data_maze(data)->cells;
    const bj_edge *edges = bj_maze_data_edges(data);
    uint8_t *held = NULL;
    bj_status status = BJ_OK;
    if (o->held) {
        BJ_TRY(BJ_ALLOC(held, (size_t)C * (size_t)C, err));
        for (int k = 0; k < bj_maze_data_about(data).edges; k++)
            if (o->held[k]) held[(size_t)edges[k].from * (size_t)C + (size_t)edges[k].to] = 1;
    }
    const walk w = {bj_maze_data_cells(data), held, C, o->horizon ? o->horizon : 1, t};
    walk_all(&w, data, o);
    BJ_GOTO(status, done, BJ_ALLOC(t->list, (size_t)t->count, err));
    t->count = t->dropped = 0;
    walk_all(&w, data, o);
done:
    bj_free(held);
    return status;
}

bj_status bj_transitions_create(bj_transitions **out, const bj_maze_data *data,
                                const bj_transition_options *options, bj_error *err) {
    bj_transitions *t;
    *out = NULL;
    if (options->horizon < 0 ||
        (options->kind != BJ_TRANSITION_STEP && options->kind != BJ_TRANSITION_CROSSING))
        return BJ_FAIL(err, BJ_EARG, "transitions: the kind %d or the horizon %d is out of range",
                       (int)options->kind, options->horizon);
    BJ_TRY(BJ_ALLOC(t, 1, err));
    const bj_status status = fill(t, data, options, err);
    if (status == BJ_OK) *out = t;
    else bj_transitions_free(t);
    return status;
}

void bj_transitions_free(bj_transitions *t) {
    if (!t) return;
    bj_free(t->list);
    bj_free(t);
}

int64_t bj_transitions_count(const bj_transitions *t) { return t->count; }
int64_t bj_transitions_dropped(const bj_transitions *t) { return t->dropped; }

bj_transition bj_transitions_at(const bj_transitions *t, int64_t index) { return t->list[index]; }
