/* test_rollout.c - tests the continuation of rollouts, and compares their curves with numbers
 * computed by hand.
 *
 * A latent is a unit vector of the plane; the probe reads x = 4 z_0 and y = 4 z_1. The maze has two
 * cells, at (0,0) and (4,0).
 */
#include "core/alloc.h"
#include "maze/rollout.h"
#include "test.h"

#define ROOT2 1.4142135623730951

static void test_follow(void) {
    const bj_real candidates[3][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}};
    const bj_real weights[3][2] = {{(bj_real)0.25, (bj_real)0.75}, {1, 0}, {0.5, 0.5}};
    const bj_real want[3][2] = {{3, 4}, {5, 6}, {9, 10}};
    bj_real got[3][2];
    bj_rollout_follow(got[0], candidates[0][0], weights[0], 3, 2, 2, 2);
    CHECK(!memcmp(got, want, sizeof got));
    /* there is one candidate, fused from two, so the weights do not choose anything */
    const bj_real fused[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    bj_rollout_follow(got[0], fused[0], weights[0], 3, 1, 2, 2);
    CHECK(!memcmp(got, fused, sizeof got));
}

static bj_probe *plane(void) {
    const bj_real z[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const double xy[4][2] = {{4, 0}, {0, 4}, {-4, 0}, {0, -4}};
    bj_probe *p = NULL;
    bj_error err = {0};
    CHECK_OK(bj_probe_create(&p, 2, &err), err);
    bj_probe_add(p, z[0], xy[0], 4);
    CHECK_OK(bj_probe_solve(p, 0, &err), err);
    return p;
}

static void test_curves(void) {
    bj_probe *probe = plane();
    bj_maze *maze = NULL;
    bj_error err = {0};
    const uint8_t walls[3][4] = {{1, 1, 1, 1}, {1, 0, 0, 1}, {1, 1, 1, 1}};
    CHECK_OK(bj_maze_from_walls(&maze, "corridor", walls[0], 3, 4, &err), err);
    /* two steps, three rollouts, another context's behind them */
    const bj_real latents[2][4][2] = {{{1, 0}, {0, 1}, {-1, 0}, {9, 9}},
                                      {{0, 1}, {0, -1}, {1, 0}, {9, 9}}};
    const bj_real mass[3] = {0.5, 0.25, 0.25};
    const bj_real truth[3][2] = {{1, 0}, {1, 0}, {-1, 0}};
    const double xy[3][2] = {{4, 0}, {4, 3}, {0, 0}};
    const bj_rollouts r = {.H = 2,
                           .L = 3,
                           .D = 2,
                           .latents = latents[0][0],
                           .stride = 8,
                           .mass = mass,
                           .truth = truth[0],
                           .xy = xy[0]};
    bj_rollout_step s[2] = {{0}};
    double paths[2][3][2];
    bj_rollout_add(s, paths[0][0], &r, probe, maze);
    bj_rollout_add(s, NULL, &r, probe, maze);
    bj_rollout_mean(s, 2, 2);
    CHECK_NEAR(s[0].distance, 0.25 * ROOT2 + 0.25 * 2, 1e-12);
    CHECK_NEAR(s[0].best_distance, 0, 1e-12);
    CHECK_NEAR(s[0].hit, 1, 0);
    CHECK_NEAR(s[0].hit_mass, 0.5, 0);
    CHECK_NEAR(s[0].error, 0.5 * 3 + 0.25 * sqrt(17) + 0.25 * sqrt(73), 1e-12);
    CHECK_NEAR(s[0].best_error, 3, 1e-12);
    CHECK_NEAR(s[0].wall_mass, 0.5, 0);
    CHECK_NEAR(s[0].probe_error, 3, 1e-12);
    CHECK_NEAR(s[0].probe_wall, 0, 0);
    CHECK_NEAR(s[0].stay_distance, 0, 0);
    CHECK_NEAR(s[0].stay_error, 3, 1e-12);
    CHECK_NEAR(s[1].distance, 0.75 * ROOT2 + 0.25 * 2, 1e-12);
    CHECK_NEAR(s[1].best_distance, ROOT2, 1e-12);
    CHECK_NEAR(s[1].hit, 0, 0);
    CHECK_NEAR(s[1].hit_mass, 0, 0);
    CHECK_NEAR(s[1].error, 4, 1e-12);
    CHECK_NEAR(s[1].best_error, 4, 1e-12);
    CHECK_NEAR(s[1].wall_mass, 0.75, 0);
    CHECK_NEAR(s[1].probe_error, 4, 1e-12);
    CHECK_NEAR(s[1].probe_wall, 1, 0);
    CHECK_NEAR(s[1].stay_distance, 2, 1e-12);
    CHECK_NEAR(s[1].stay_error, 4, 1e-12);
    CHECK_NEAR(paths[0][2][0], -4, 1e-12);
    CHECK_NEAR(paths[1][0][1], 4, 1e-12);
    CHECK_NEAR(paths[1][1][1], -4, 1e-12);
    /* a cosine of 0.5 is not a hit, a larger one is */
    bj_real edge[1][1][2] = {{{(bj_real)0.5, (bj_real)0.8660254037844386}}};
    const bj_real one = 1;
    const bj_rollouts e = {.H = 1,
                           .L = 1,
                           .D = 2,
                           .latents = edge[0][0],
                           .mass = &one,
                           .truth = truth[0],
                           .xy = xy[0]};
    bj_rollout_step t[1] = {{0}};
    bj_rollout_add(t, NULL, &e, probe, maze);
    CHECK_NEAR(t[0].hit, 0, 0);
    edge[0][0][0] = (bj_real)0.501;
    bj_rollout_add(t, NULL, &e, probe, maze);
    CHECK_NEAR(t[0].hit, 1, 0);
    CHECK(!strcmp(bj_rollout_name(0), "distance") && bj_rollout_value(s, 0) == s[0].distance);
    CHECK(!strcmp(bj_rollout_name(6), "wall_mass") && bj_rollout_value(s, 6) == s[0].wall_mass);
    CHECK(!bj_rollout_name(11) && !bj_rollout_name(-1));
    bj_rollout_step none[1] = {{0}};
    bj_rollout_mean(none, 1, 0);
    CHECK(isnan(none[0].error) && isnan(none[0].stay_distance));
    bj_probe_free(probe);
    bj_maze_free(maze);
}

int main(void) {
    const long live = bj_alloc_live();
    test_follow();
    test_curves();
    CHECK(bj_alloc_live() == live);
    return test_report("maze.rollout");
}
