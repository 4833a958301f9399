/* drive.c - lets the point agent follow a graph through the tasks of a maze.
 *
 * Plan: in a cell u that is not the goal's, the next cell is the successor v of u that is nearest
 * to the goal in the graph, or the first of several. The agent moves to the center of v at full
 * speed. In the goal's cell it moves to the goal. If v does not touch u, not even at a corner, only
 * a teleporter can lead there, so the agent moves to the center of u.
 *
 * Replan: in every new cell, whether planned or not. In a cell without a path the agent keeps its
 * destination, or stays if it has none.
 *
 * Give up: with a patience of n steps, an edge that the agent has followed for n steps without
 * leaving its cell is removed from the episode's copy of the graph.
 *
 * Start, goal and teleporters depend on (seed, task, episode), so all predictors have the same
 * episodes. False edges are followed like true ones, into the wall.
 * Test: tests/maze/test_drive.c
 */
#include "maze/drive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

enum { EPISODES = 20, MAX_EPISODES = 1 << 20, MAX_STEPS = 1 << 20 };

/* ------------------------------------------------------------------------------------- searches */

void bj_graph_distances_to(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                           int goal) {
    int head = 0, tail = 0;
    for (int c = 0; c < cells; c++) distance[c] = -1;
    distance[goal] = 0;
    scratch[tail++] = goal;
    while (head < tail) {
        const int32_t v = scratch[head++];
        for (int32_t u = 0; u < cells; u++)
            if (distance[u] < 0 && graph[(size_t)u * (size_t)cells + (size_t)v]) {
                distance[u] = distance[v] + 1;
                scratch[tail++] = u;
            }
    }
}

int bj_graph_next(const int32_t *to_goal, const uint8_t *graph, int cells, int from) {
    const uint8_t *row = graph + (size_t)from * (size_t)cells;
    int best = -1;
    for (int v = 0; v < cells; v++)
        if (row[v] && v != from && to_goal[v] >= 0 && (best < 0 || to_goal[v] < to_goal[best]))
            best = v;
    return best;
}

void bj_maze_on_foot(uint8_t *graph, const bj_maze *maze) {
    const size_t C = (size_t)maze->cells;
    memcpy(graph, maze->graph, C * C);
    for (int k = 0; k < maze->teleport_count; k++)
        graph[(size_t)maze->teleports[k].from * C + (size_t)maze->teleports[k].to] = 0;
}

/* -------------------------------------------------------------------------------------- episode */

typedef struct driver {
    const bj_maze *maze;
    uint8_t *graph;             /* (C,C) of this episode */
    int32_t *to_goal, *scratch; /* (C) each */
    int goal;                   /* cell */
    int cell, next;             /* current cell, and the next one on the way to the goal; -1 if
                                   there is none */
    int waited;                 /* steps in this cell */
    int replans, given_up;
} driver;

static bj_status driver_init(driver *d, const bj_maze *maze, bj_error *err) {
    const size_t C = (size_t)maze->cells;
    *d = (driver){.maze = maze};
    BJ_TRY(BJ_ALLOC(d->graph, C * C, err));
    BJ_TRY(BJ_ALLOC(d->to_goal, C, err));
    return BJ_ALLOC(d->scratch, C, err);
}

static void driver_reset(driver *d) {
    bj_free(d->graph);
    bj_free(d->to_goal);
    bj_free(d->scratch);
}

static void search(driver *d) {
    bj_graph_distances_to(d->to_goal, d->scratch, d->graph, d->maze->cells, d->goal);
}

static void begin(driver *d, const uint8_t *graph, int goal) {
    const size_t C = (size_t)d->maze->cells;
    memcpy(d->graph, graph, C * C);
    d->goal = goal;
    d->cell = d->next = -1;
    d->waited = d->replans = d->given_up = 0;
    search(d);
}

/* Computes the destination: `next` of the current cell. */
static void plan(driver *d, int cell, int patience) {
    const int entered = cell >= 0 && cell != d->cell;
    if (entered) {
        if (d->cell >= 0 && cell != d->next) d->replans++;
        d->cell = cell;
        d->waited = 0;
    } else {
        d->waited++;
    }
    if (!entered && !(patience && d->waited >= patience)) return;
    if (cell == d->goal) return;
    if (!entered && d->next >= 0) {
        uint8_t *edge = &d->graph[(size_t)d->cell * (size_t)d->maze->cells + (size_t)d->next];
        if (*edge) {
            *edge = 0;
            d->given_up++;
            search(d);
        }
        d->waited = 0;
    }
    const int next = bj_graph_next(d->to_goal, d->graph, d->maze->cells, d->cell);
    if (next >= 0) d->next = next;
}

static int touch(const bj_maze *m, int a, int b) {
    const int di = m->square[2 * a] - m->square[2 * b];
    const int dj = m->square[2 * a + 1] - m->square[2 * b + 1];
    return di >= -1 && di <= 1 && dj >= -1 && dj <= 1;
}

static void steer(double action[2], const driver *d, const bj_point_env *env) {
    const double *to = NULL;
    action[0] = action[1] = 0;
    if (d->cell == d->goal) to = env->goal;
    else if (d->next >= 0)
        to = d->maze->center + 2 * (touch(d->maze, d->cell, d->next) ? d->next : d->cell);
    if (!to) return;
    const double dx = to[0] - env->xy[0], dy = to[1] - env->xy[1], far = hypot(dx, dy);
    const double scale = far > BJ_POINT_STRIDE ? far : BJ_POINT_STRIDE; /* full speed, or less to
                                                                           arrive */
    action[0] = dx / scale;
    action[1] = dy / scale;
}

static int limit_of(const bj_drive_options *o) { return o->steps ? o->steps : BJ_POINT_STEPS; }

/* Drives one episode. positions (limit + 1, 2) receives one row per step and may be NULL. */
static int run(driver *d, bj_point_env *env, const uint8_t *graph, int task, int episode,
               const bj_drive_options *o, double *positions) {
    const int limit = limit_of(o);
    char name[64];
    int reached = 0;
    snprintf(name, sizeof name, "maze drive %d %d", task, episode);
    bj_point_reset(env, d->maze, d->maze->tasks[task], bj_rng_named(o->seed, name));
    begin(d, graph, d->maze->tasks[task].to);
    if (positions) memcpy(positions, env->xy, sizeof env->xy);
    while (!reached && env->steps < limit) {
        double action[2];
        plan(d, bj_maze_cell(d->maze, env->xy[0], env->xy[1]), o->patience);
        steer(action, d, env);
        reached = bj_point_act(env, action);
        if (positions) memcpy(positions + 2 * env->steps, env->observed, sizeof env->observed);
    }
    return reached;
}

/* ------------------------------------------------------------------------------------ interface */

static bj_status check(const bj_maze *maze, const bj_drive_options *o, bj_error *err) {
    if (o->episodes < 0 || o->episodes > MAX_EPISODES || o->steps < 0 || o->steps > MAX_STEPS ||
        o->patience < 0)
        return BJ_FAIL(err, BJ_EARG,
                       "drive: out of range: %d episodes, %d steps or a patience of %d",
                       o->episodes, o->steps, o->patience);
    if (!maze->task_count)
        return BJ_FAIL(err, BJ_EARG, "drive: maze '%.80s' has no tasks", maze->name);
    return BJ_OK;
}

bj_status bj_maze_drive(bj_drive_result *out, const bj_maze *maze, const uint8_t *graph,
                        const bj_drive_options *options, bj_error *err) {
    const int episodes = options->episodes ? options->episodes : EPISODES;
    driver d;
    bj_status status;
    double all = 0;
    *out = (bj_drive_result){0};
    BJ_TRY(check(maze, options, err));
    BJ_GOTO(status, done, driver_init(&d, maze, err));
    for (out->tasks = 0; out->tasks < maze->task_count; out->tasks++) {
        bj_drive_task *t = &out->task[out->tasks];
        double sum = 0;
        t->task = maze->tasks[out->tasks];
        t->episodes = episodes;
        begin(&d, graph, t->task.to);
        t->distance = d.to_goal[t->task.from];
        for (int e = 0; e < episodes; e++) {
            bj_point_env env;
            if (run(&d, &env, graph, out->tasks, e, options, NULL)) {
                t->successes++;
                sum += env.steps;
            }
            t->teleports += env.teleports;
            t->replans += d.replans;
            t->given_up += d.given_up;
        }
        t->mean_steps = t->successes ? sum / t->successes : (double)NAN;
        out->episodes += t->episodes;
        out->successes += t->successes;
        all += sum;
    }
    out->success = (double)out->successes / out->episodes;
    out->mean_steps = out->successes ? all / out->successes : (double)NAN;
done:
    driver_reset(&d);
    return status;
}

bj_status bj_maze_drive_episode(double *positions, int *steps, int *reached, double goal[2],
                                const bj_maze *maze, const uint8_t *graph, int task, int episode,
                                const bj_drive_options *options, bj_error *err) {
    driver d;
    bj_point_env env;
    BJ_TRY(check(maze, options, err));
    if (task < 0 || task >= maze->task_count || episode < 0)
        return BJ_FAIL(err, BJ_EARG,
                       "drive: task %d or episode %d does not exist; "
                       "the maze has %d tasks",
                       task, episode, maze->task_count);
    const bj_status status = driver_init(&d, maze, err);
    if (status == BJ_OK) {
        *reached = run(&d, &env, graph, task, episode, options, positions);
        *steps = env.steps;
        memcpy(goal, env.goal, sizeof env.goal);
    }
    driver_reset(&d);
    return status;
}
