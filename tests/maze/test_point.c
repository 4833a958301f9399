/* test_point.c - compares the point agent with recorded steps of MuJoCo, and tests the rules that
 * apply before and after a step.
 *
 * If BJ_MAZE_DATA is the folder of the full-size datasets, every step of a validation file is
 * repeated.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "npz/npz.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

static void test_recorded(void) {
    bj_maze *maze[2] = {NULL};
    bj_error err = {0};
    char line[256];
    int lines = 0, moved_back = 0;
    CHECK_OK(bj_maze_create(&maze[0], "medium", &err), err);
    CHECK_OK(bj_maze_create(&maze[1], "teleport", &err), err);
    FILE *file = fopen("tests/maze/point_steps.txt", "r");
    CHECK(file != NULL);
    while (file && maze[1] && fgets(line, sizeof line, file)) {
        char name[16];
        double x[2], a[2], want[2];
        if (*line == '#') continue;
        CHECK(sscanf(line, "%15s %lf %lf %lf %lf %lf %lf", name, &x[0], &x[1], &a[0], &a[1],
                     &want[0], &want[1]) == 7);
        const double free_x = x[0] + 0.2 * a[0], free_y = x[1] + 0.2 * a[1];
        bj_point_step(x, maze[!strcmp(name, "teleport")], a);
        CHECK_NEAR(x[0], want[0], 1e-12);
        CHECK_NEAR(x[1], want[1], 1e-12);
        moved_back += hypot(x[0] - free_x, x[1] - free_y) > 1e-4;
        lines++;
    }
    CHECK(lines == 80 && moved_back > 60); /* contacts were at work */
    if (file) fclose(file);
    bj_maze_free(maze[0]);
    bj_maze_free(maze[1]);
}

static void test_free_floor(void) {
    bj_maze *m = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_create(&m, "large", &err), err);
    if (!m) return;
    double x[2] = {0.25, -0.5};
    bj_point_step(x, m, (const double[]){0.5, -1});
    CHECK(x[0] == 0.25 + 0.2 * 0.5 && x[1] == -0.5 + 0.2 * -1);
    bj_point_step(x, m, (const double[]){-7, 3}); /* clipped */
    CHECK(x[0] == 0.25 + 0.2 * 0.5 - 0.2 && x[1] == -0.5 - 0.2 + 0.2);

    /* Tests that a ball that is pushed against a wall of its cell stays at a distance of 0.64 to
     * 0.7. */
    for (int side = 0; side < 2; side++) {
        double y[2] = {0, 0};
        double action[2] = {0, 0};
        action[side] = -1;
        for (int t = 0; t < 500; t++) bj_point_step(y, m, action);
        CHECK(y[side] > -1.36 && y[side] < -1.3 + 1e-3 && y[!side] == 0);
    }
    /* move into a corner of two walls, and along a wall across the border of two squares */
    double y[2] = {0, 0};
    for (int t = 0; t < 500; t++) bj_point_step(y, m, (const double[]){-1, -1});
    CHECK(y[0] > -1.36 && y[0] < -1.29 && y[1] > -1.36 && y[1] < -1.29);
    for (int t = 0; t < 60; t++) bj_point_step(y, m, (const double[]){1, -1});
    CHECK(y[0] > 8 && bj_maze_cell(m, y[0], y[1]) >= 0);
    bj_maze_free(m);
}

static void test_environment(void) {
    bj_maze *m = NULL;
    bj_error err = {0};
    int outs[3] = {0}, far = 0;
    CHECK_OK(bj_maze_create(&m, "teleport", &err), err);
    if (!m) return;
    for (int k = 0; k < 600; k++) {
        bj_point_env env;
        bj_point_reset(&env, m, m->tasks[k % 5], bj_rng_seed((uint64_t)k));
        for (int d = 0; d < 2; d++) {
            CHECK(fabs(env.xy[d] - m->center[2 * m->tasks[k % 5].from + d]) <= 1);
            CHECK(fabs(env.goal[d] - m->center[2 * m->tasks[k % 5].to + d]) <= 1);
            far += fabs(env.xy[d] - m->center[2 * m->tasks[k % 5].from + d]) > 0.9;
        }
        CHECK(env.observed[0] == env.xy[0] && env.observed[1] == env.xy[1] && !env.steps);
        /* just outside of a teleporter, then inside it: the observed position is inside, but the
         * agent has already been moved */
        const double *in = m->center + 2 * m->ins[k % 2];
        env.xy[0] = in[0];
        env.xy[1] = in[1] + 1.85;
        CHECK(!bj_point_act(&env, (const double[]){0, -1}) && !env.teleports);
        CHECK(!bj_point_act(&env, (const double[]){0, -1}) && env.teleports == 1);
        CHECK(env.steps == 2 && hypot(env.observed[0] - in[0], env.observed[1] - in[1]) <= 1.5);
        int out = -1;
        for (int o = 0; o < 3; o++)
            if (env.xy[0] == m->center[2 * m->outs[o]] &&
                env.xy[1] == m->center[2 * m->outs[o] + 1])
                out = o;
        CHECK(out >= 0);
        if (out >= 0) outs[out]++;
        /* success within 1.0 of the goal */
        env.xy[0] = env.goal[0] + 1.19;
        env.xy[1] = env.goal[1];
        if (bj_maze_cell(m, env.xy[0], env.xy[1]) != m->tasks[k % 5].to) continue;
        if (m->center[2 * m->tasks[k % 5].to] + 1.2 < env.xy[0]) continue; /* too near to a wall */
        CHECK(!bj_point_act(&env, (const double[]){-0.9, 0}));
        CHECK(bj_point_act(&env, (const double[]){-0.1, 0}));
    }
    CHECK(far > 70 && far < 180); /* a tenth of 1200 numbers */
    for (int o = 0; o < 3; o++) CHECK(outs[o] > 150 && outs[o] < 250);
    bj_maze_free(m);
}

/* Tests that a step from every row of a full-size file leads to the next row, except for
 * teleports. */
static void test_published(const char *folder) {
    char path[512];
    bj_maze *m = NULL;
    bj_npz *npz = NULL;
    double *x = NULL, *a = NULL, *end = NULL, worst = 0;
    int64_t rows = 0, jumps = 0;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/pointmaze-teleport-navigate-v0-val.npz", folder);
    CHECK_OK(bj_maze_create(&m, "teleport", &err), err);
    CHECK_OK(bj_npz_open(&npz, path, &err), err);
    if (m && npz) {
        CHECK_OK(bj_npz_doubles(&x, npz, "qpos", 1 << 20, &err), err);
        CHECK_OK(bj_npz_doubles(&a, npz, "actions", 1 << 20, &err), err);
        CHECK_OK(bj_npz_doubles(&end, npz, "terminals", 1 << 20, &err), err);
        rows = bj_npz_find(npz, "qpos")->npy.rows;
    }
    if (x && a && end)
        for (int64_t t = 0; t + 1 < rows; t++) {
            if (end[t] != 0) continue;
            double y[2] = {x[2 * t], x[2 * t + 1]};
            bj_point_step(y, m, a + 2 * t);
            const double gap = hypot(y[0] - x[2 * t + 2], y[1] - x[2 * t + 3]);
            if (gap > 0.1) jumps++;
            else if (gap > worst) worst = gap;
        }
    printf("%lld recorded steps differ from simulated steps by at most %.2g; %lld teleports\n",
           (long long)rows, worst, (long long)jumps);
    CHECK(rows == 100100 && worst < 1e-5 && jumps > 50 && jumps < 200); /* stored as float32 */
    bj_free(x);
    bj_free(a);
    bj_free(end);
    bj_npz_close(npz);
    bj_maze_free(m);
}

int main(void) {
    const long live = bj_alloc_live();
    test_recorded();
    test_free_floor();
    test_environment();
    const char *folder = getenv("BJ_MAZE_DATA");
    if (folder) test_published(folder);
    else printf("skipped: set BJ_MAZE_DATA to a folder of OGBench datasets to check their steps\n");
    CHECK(bj_alloc_live() == live);
    return test_report("point");
}
