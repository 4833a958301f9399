/* walk.c - creates a dataset of walks through a maze, like OGBench's `navigate` datasets.
 *
 * An episode starts in a random cell and goes to one random cell after another. The subgoal is the
 * center of the next cell on a shortest path between free squares, including teleporters. An agent
 * that enters a teleporter is moved and continues from there. The action is the unit vector to the
 * subgoal plus normal noise, clipped. The next goal is drawn when the agent is within 0.5 of the
 * last one.
 *
 *   observations (N,2) float32   observed position before the action    qpos (N,2) true position
 *   actions      (N,2) float32   after clipping                         terminals (N) bool
 *
 * N = episodes * steps. The same options give the same bytes. Test: tests/maze/test_generate.c
 */
#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "maze/drive.h"
#include "npz/npz_write.h"

#define REACHED 0.5 /* of a goal */
enum { EPISODES = 1000, STEPS = 1001, MAX_ROWS = 100 * 1000 * 1000 };

typedef struct walker {
    const bj_maze *maze;
    uint8_t *sides;   /* (C,C) free squares that share a side */
    uint8_t *on_foot; /* (C,C) like the first array, but without edges out of a teleporter */
    int32_t *to_goal; /* (2,C) */
    float *seen, *actions, *qpos;
    uint8_t *ends;
} walker;

static void connect_sides(uint8_t *sides, const bj_maze *m) {
    for (int u = 0; u < m->cells; u++)
        for (int v = 0; v < m->cells; v++) {
            const int di = m->square[2 * u] - m->square[2 * v];
            const int dj = m->square[2 * u + 1] - m->square[2 * v + 1];
            sides[(size_t)u * (size_t)m->cells + (size_t)v] = di * di + dj * dj == 1;
        }
}

static int draw_goal(walker *w, bj_rng *rng) {
    const bj_maze *m = w->maze;
    const int goal = (int)bj_rng_below(rng, (uint64_t)m->cells);
    const uint8_t *ways = bj_rng_below(rng, 2) ? w->sides : w->on_foot;
    bj_graph_distances_to(w->to_goal, w->to_goal + m->cells, ways, m->cells, goal);
    return goal;
}

static void walk(walker *w, int64_t row, int steps, double noise, bj_rng rng) {
    const bj_maze *m = w->maze;
    const int start = (int)bj_rng_below(&rng, (uint64_t)m->cells);
    bj_point_env env;
    int goal = draw_goal(w, &rng);
    bj_point_reset(&env, m, (bj_edge){start, goal}, rng);
    rng = bj_rng_seed(bj_rng_next(&env.rng)); /* not from the generator of the teleporters */
    for (int t = 0; t < steps; t++, row++) {
        const int cell = bj_maze_cell(m, env.xy[0], env.xy[1]);
        while (hypot(env.xy[0] - m->center[2 * goal], env.xy[1] - m->center[2 * goal + 1]) <=
               REACHED)
            goal = draw_goal(w, &rng);
        const int next = cell == goal ? -1 : bj_graph_next(w->to_goal, w->on_foot, m->cells, cell);
        const double *to = m->center + 2 * (next >= 0 ? next : cell == goal ? goal : cell);
        const double far = hypot(to[0] - env.xy[0], to[1] - env.xy[1]) + 1e-6;
        double action[2];
        for (int d = 0; d < 2; d++) {
            action[d] = (to[d] - env.xy[d]) / far + noise * bj_rng_normal(&rng);
            action[d] = action[d] < -1 ? -1 : action[d] > 1 ? 1 : action[d];
            w->seen[2 * row + d] = (float)env.observed[d];
            w->qpos[2 * row + d] = (float)env.xy[d];
            w->actions[2 * row + d] = (float)action[d];
        }
        w->ends[row] = t + 1 == steps;
        bj_point_act(&env, action);
    }
}

bj_status bj_maze_walk(const char *path, const bj_maze *maze, const bj_walk_options *o,
                       bj_error *err) {
    const int64_t episodes = o->episodes ? o->episodes : EPISODES;
    const int64_t steps = o->steps ? o->steps : STEPS, N = episodes * steps;
    const double noise = o->noise < 0 ? 0.5 : o->noise;
    const size_t C = (size_t)maze->cells;
    walker w = {.maze = maze};
    bj_status status;
    if (o->episodes < 0 || o->steps < 0 || N > MAX_ROWS || !(noise <= 100) || maze->cells < 2)
        return BJ_FAIL(err, BJ_EARG,
                       "walks: found %lld episodes of %lld steps with noise %g in %d cells, "
                       "expected at most %d steps in total",
                       (long long)episodes, (long long)steps, noise, maze->cells, (int)MAX_ROWS);
    BJ_GOTO(status, done, BJ_ALLOC(w.sides, C * C, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.on_foot, C * C, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.to_goal, 2 * C, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.seen, 2 * (size_t)N, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.actions, 2 * (size_t)N, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.qpos, 2 * (size_t)N, err));
    BJ_GOTO(status, done, BJ_ALLOC(w.ends, (size_t)N, err));
    connect_sides(w.sides, maze);
    bj_maze_on_foot(w.on_foot, maze);
    for (int64_t e = 0; e < episodes; e++) {
        char name[64];
        snprintf(name, sizeof name, "maze walk %lld", (long long)e);
        walk(&w, e * steps, (int)steps, noise, bj_rng_named(o->seed, name));
    }
    const bj_npz_source arrays[] = {{"observations", BJ_NPY_F32, 2, {N, 2}, w.seen},
                                    {"actions", BJ_NPY_F32, 2, {N, 2}, w.actions},
                                    {"terminals", BJ_NPY_BOOL, 1, {N}, w.ends},
                                    {"qpos", BJ_NPY_F32, 2, {N, 2}, w.qpos}};
    status = bj_npz_write(path, arrays, 4, err);
done:
    bj_free(w.sides);
    bj_free(w.on_foot);
    bj_free(w.to_goal);
    bj_free(w.seen);
    bj_free(w.actions);
    bj_free(w.qpos);
    bj_free(w.ends);
    return status;
}
