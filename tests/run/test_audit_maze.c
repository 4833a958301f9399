/* test_audit_maze.c - compares the audit of rollouts with an independent computation, context by
 * context, on a small dataset. tests/maze/test_probe.c and test_rollout.c compare the probe and the
 * curves with values computed by hand.
 */
#define _XOPEN_SOURCE 700
#include "maze_case.h"

#include "core/sha256.h"
#include "maze/rollout.h"
#include "run/maze_run.h"

enum { H = 4, APART = 2, HELD = 18, D = 24, MOST_L = 8 };
#define HELD_OUT "maze.horizon=2 maze.held_out=0.3 maze.split_seed=7 "

static const char *folder_of(char path[CASE_PATH], const char *name) {
    return case_path(path, name);
}

/* Lists the contexts according to the rule in docs/MAZES.md. Returns their number. */
static int list_contexts(int64_t *rows, const uint8_t *fitted, const int16_t *cells) {
    int n = 0;
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; !fitted[e] && t + H * APART < STEPS; t += H * APART) {
            int inside = 1;
            for (int h = 0; h <= H; h++) inside &= cells[e * STEPS + t + h * APART] >= 0;
            if (inside) rows[n++] = e * STEPS + t;
        }
    return n;
}

static double gap(const bj_real *a, const bj_real *b) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += pow((double)a[d] - (double)b[d], 2);
    return sqrt(sum);
}

/* Computes distances and hits of every step, one context at a time. */
static void check_steps(const bj_rollout_audit *a, int index, const char *dir, const int64_t *rows,
                        int contexts) {
    const bj_rollout_arm *arm = &a->arm[index];
    double distance[H] = {0}, best[H] = {0}, hit[H] = {0}, mass_on[H] = {0}, stay[H] = {0};
    bj_error err = {0};
    bj_maze_run *run = NULL;
    bj_maze_data *data;
    CHECK_OK(bj_maze_run_open(&run, dir, NULL, &err), err);
    CHECK_OK(bj_maze_run_data(&data, run, &err), err);
    const int L = bj_maze_run_candidates(run), K = run->view.K;
    CHECK(arm->L == L && L <= MOST_L && run->view.D == D);
    /* the mean length of contexts of fit frames */
    double length = 0, frames = 0;
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; run->source->fitted[e] && t < STEPS; t++) {
            bj_real c[D], zero[D] = {0};
            if (bj_maze_data_cells(data)[e * STEPS + t] < 0) continue;
            const bj_pair pair = bj_maze_run_row(run, e * STEPS + t);
            CHECK_OK(bj_maze_view_encode(&run->view, c, &pair, 1, &err), err);
            length += gap(c, zero);
            frames++;
        }
    CHECK(a->fit_frames == (int64_t)frames);
    CHECK_NEAR(arm->length, length / frames, 1e-9 * arm->length);
    for (int i = 0; i < contexts; i++) {
        bj_real u[MOST_L][D], mass[MOST_L], z[H + 1][D];
        for (int h = 0; h <= H; h++) {
            const bj_pair pair = bj_maze_run_row(run, rows[i] + h * APART);
            CHECK_OK(bj_maze_run_look(run, z[h], NULL, NULL, &pair, 1, &err), err);
        }
        const bj_pair pair = bj_maze_run_row(run, rows[i]);
        CHECK_OK(bj_maze_run_look(run, NULL, u[0], mass, &pair, 1, &err), err);
        for (int h = 0; h < H; h++) {
            double nearest = 9, any = 0;
            for (int l = 0; l < L; l++) {
                const double far = gap(u[l], z[h + 1]);
                const int hits = 1 - far * far / 2 > 0.5; /* of unit vectors */
                distance[h] += (double)mass[l] * far / contexts;
                nearest = fmin(nearest, far);
                any = fmax(any, hits);
                mass_on[h] += hits * (double)mass[l] / contexts;
                bj_real fed[D], next[MOST_L][D], weights[MOST_L];
                int most = 0;
                for (int d = 0; d < D; d++) fed[d] = (bj_real)(arm->length * (double)u[l][d]);
                CHECK_OK(bj_maze_view_go_on(&run->view, next[0], weights, fed, 1, &err), err);
                for (int k = 1; k < K && L > 1; k++)
                    if (weights[k] > weights[most]) most = k;
                memcpy(u[l], next[most], sizeof u[l]);
            }
            best[h] += nearest / contexts;
            hit[h] += any / contexts;
            stay[h] += gap(z[0], z[h + 1]) / contexts;
        }
    }
    for (int h = 0; h < H; h++) {
        CHECK_NEAR(arm->steps[h].distance, distance[h], 1e-6);
        CHECK_NEAR(arm->steps[h].best_distance, best[h], 1e-6);
        CHECK_NEAR(arm->steps[h].hit, hit[h], 1e-9);
        CHECK_NEAR(arm->steps[h].hit_mass, mass_on[h], 1e-6);
        CHECK_NEAR(arm->steps[h].stay_distance, stay[h], 1e-6);
        CHECK(arm->steps[h].best_error <= arm->steps[h].error + 1e-12);
        CHECK(arm->steps[h].wall_mass >= 0 && arm->steps[h].wall_mass <= 1 + 1e-6);
    }
    bj_maze_run_free(run);
}

/* Tests the means of positions: the distance covered by a walker, and the error of the probe, which
 * must be smaller than the spread of positions in the maze. */
static void check_positions(const bj_rollout_audit *a, const double *xy, const int64_t *rows,
                            int contexts) {
    double spread = 0, mean[2] = {0};
    for (int h = 0; h <= H; h++)
        for (int c = 0; c < 2; c++) CHECK(a->truth[2 * h + c] == xy[2 * (rows[0] + h * APART) + c]);
    for (int h = 0; h < H; h++) {
        double far = 0;
        for (int i = 0; i < contexts; i++) {
            const double *from = xy + 2 * rows[i], *to = xy + 2 * (rows[i] + (h + 1) * APART);
            far += hypot(to[0] - from[0], to[1] - from[1]) / contexts;
        }
        for (int i = 0; i < a->arms; i++) CHECK_NEAR(a->arm[i].steps[h].stay_error, far, 1e-9);
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 2; c++) mean[c] += xy[2 * r + c] / ROWS;
    for (int r = 0; r < ROWS; r++)
        spread += hypot(xy[2 * r] - mean[0], xy[2 * r + 1] - mean[1]) / ROWS;
    for (int i = 0; i < a->arms; i++) {
        CHECK_MSG(a->arm[i].probe_error > 0 && a->arm[i].probe_error < 0.7 * spread,
                  "the probe error is %g, but the spread is only %g", a->arm[i].probe_error,
                  spread);
        double sum = 0;
        for (int l = 0; l < a->arm[i].L; l++) sum += a->arm[i].mass[l];
        CHECK_NEAR(sum, 1, 1e-5);
    }
}

static int same_audit(const bj_rollout_audit *a, const bj_rollout_audit *b) {
    int same = 1;
    for (int i = 0; i < a->arms; i++) {
        const size_t L = (size_t)a->arm[i].L;
        same &= !memcmp(a->arm[i].steps, b->arm[i].steps, H * sizeof *a->arm[i].steps);
        same &= !memcmp(a->arm[i].paths, b->arm[i].paths, H * L * 2 * sizeof(double));
        same &= a->arm[i].probe_error == b->arm[i].probe_error;
    }
    return same;
}

static void check_audit(const char *data) {
    char branch[CASE_PATH], second[CASE_PATH];
    const char *runs[2] = {folder_of(branch, "a"), folder_of(second, "b")};
    static int64_t rows[ROWS];
    static double xy[2 * ROWS];
    uint8_t fitted[EPISODES];
    unsigned char order[8 * ROWS];
    char hex[65];
    bj_rollout_audit one, two;
    bj_rollout_options o = {.horizon = H, .threads = 1};
    bj_error err = {0};
    bj_maze *maze;
    bj_maze_data *d;
    CHECK_OK(bj_maze_create(&maze, "medium", &err), err);
    CHECK_OK(bj_maze_data_open(&d, data, maze, &err), err);
    CHECK_OK(bj_maze_data_positions(xy, d, &err), err);
    CHECK_OK(bj_episode_split(fitted, EPISODES, 0.7, 7, &err), err);
    const int n = list_contexts(rows, fitted, bj_maze_data_cells(d));
    CHECK(n > 50);
    CHECK_OK(bj_rollout_audit_runs(&one, runs, 2, &o, &err), err);
    CHECK(one.contexts == n && one.episodes == EPISODES && one.held_episodes == HELD);
    CHECK(one.stride == APART && one.split_seed == 7 && one.first_row == rows[0]);
    CHECK(one.first_episode == rows[0] / STEPS && !fitted[one.first_episode]);
    for (int i = 0; i < 8 * n; i++)
        order[i] = (unsigned char)((uint64_t)rows[i / 8] >> 8 * (i % 8));
    bj_sha256_memory(hex, order, 8 * (size_t)n);
    CHECK(!strcmp(hex, one.order_sha256));
    CHECK_OK(bj_sha256_file(hex, data, &err), err);
    CHECK(!strcmp(hex, one.data_sha256) && strlen(one.arm[0].weights_sha256) == 64);
    CHECK(!strcmp(one.arm[0].arm, "maze-branch") && !strcmp(one.arm[1].arm, "maze-fused"));
    CHECK(one.arm[0].L == 8 && one.arm[1].L == 1 && one.arm[1].mass[0] == 1);
    for (int i = 0; i < 2; i++) check_steps(&one, i, runs[i], rows, n);
    check_positions(&one, xy, rows, n);
    o.threads = 2;
    CHECK_OK(bj_rollout_audit_runs(&two, runs, 2, &o, &err), err);
    CHECK(same_audit(&one, &two));
    bj_rollout_audit_reset(&two);
    bj_rollout_audit_reset(&one);
    bj_maze_data_free(d);
    bj_maze_free(maze);
}

static int stop_at(void *limit, int64_t done, int64_t total) {
    CHECK(done <= total);
    return done >= *(const int64_t *)limit;
}

static void refuse(const char *a, const char *b, const bj_rollout_options *o, bj_status status,
                   const char *part) {
    char first[CASE_PATH], second[CASE_PATH];
    const char *runs[2] = {folder_of(first, a), b ? folder_of(second, b) : NULL};
    bj_rollout_audit audit;
    bj_error err = {0};
    const long live = bj_alloc_live();
    const bj_status found = bj_rollout_audit_runs(&audit, runs, b ? 2 : 1, o, &err);
    CHECK_MSG(found == status, "%d: %s", (int)found, err.message);
    CHECK_CONTAINS(err.message, part);
    CHECK(bj_alloc_live() == live);
}

static void check_refusals(const char *data) {
    const bj_settings whole = settings_of("maze-branch", "maze.horizon=2");
    const bj_settings cells = settings_of("maze-branch", "maze.held_out=0.3");
    const bj_settings other = settings_of("maze-branch", HELD_OUT "maze.split_seed=8");
    CHECK(run(&whole, data, "whole", 0, 1).outcome == BJ_RUN_DONE);
    CHECK(run(&cells, data, "cells", 0, 1).outcome == BJ_RUN_DONE);
    CHECK(run(&other, data, "other", 0, 1).outcome == BJ_RUN_DONE);
    int64_t limit = 1;
    bj_rollout_options o = {.horizon = H, .threads = 1};
    refuse("whole", NULL, &o, BJ_EARG, "maze.held_out is 0");
    refuse("cells", NULL, &o, BJ_EARG, "maze.horizon is 0");
    refuse("a", "other", &o, BJ_EMISMATCH, "maze.split_seed is 8");
    refuse("nowhere", NULL, &o, BJ_EIO, "nowhere");
    o.horizon = 200;
    refuse("a", NULL, &o, BJ_EARG, "no context is eligible");
    o.horizon = 257;
    refuse("a", NULL, &o, BJ_EARG, "a horizon of 257");
    o = (bj_rollout_options){.horizon = H, .threads = 1, .progress = stop_at, .context = &limit};
    refuse("a", NULL, &o, BJ_ELOCKED, "stopped after");
}

int main(void) {
    char data[CASE_PATH];
    maze_case_begin(data);
    const bj_settings a = settings_of("maze-branch", HELD_OUT);
    const bj_settings b = settings_of("maze-fused", HELD_OUT);
    CHECK(run(&a, data, "a", 0, 1).outcome == BJ_RUN_DONE);
    CHECK(run(&b, data, "b", 0, 1).outcome == BJ_RUN_DONE);
    const long live = bj_alloc_live();
    check_audit(data);
    check_refusals(data);
    CHECK(bj_alloc_live() == live);
    return test_report("run.audit_maze");
}
