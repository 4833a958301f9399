/* test_probe.c - tests the linear probe: recovered maps, the effect of the ridge, rejected input.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "maze/probe.h"
#include "test.h"

enum { D = 7, N = 203 };

/* Creates latents with means and different spreads, and positions that are a linear map of them. */
static void make(bj_real z[N][D], double xy[N][2]) {
    bj_rng rng = bj_rng_seed(4);
    for (int i = 0; i < N; i++) {
        xy[i][0] = 3;
        xy[i][1] = -20;
        for (int d = 0; d < D; d++) {
            z[i][d] = (bj_real)(0.5 * d + (1 + d) * (bj_rng_uniform(&rng) - 0.5));
            xy[i][0] += (d - 2) * (double)z[i][d];
            xy[i][1] += 0.25 * d * d * (double)z[i][d];
        }
    }
}

static void test_recovers(void) {
    static bj_real z[N][D];
    static double xy[N][2];
    bj_probe *p = NULL, *parts = NULL;
    bj_error err = {0};
    double q[2], other[2];
    make(z, xy);
    CHECK_OK(bj_probe_create(&p, D, &err), err);
    CHECK_OK(bj_probe_create(&parts, D, &err), err);
    bj_probe_add(p, z[0], xy[0], N);
    for (int at = 0, n = 1; at < N; at += n, n = n % 5 + 1) /* whatever the blocks are */
        bj_probe_add(parts, z[at], xy[at], at + n < N ? n : N - at);
    CHECK_OK(bj_probe_solve(p, 0, &err), err);
    CHECK_OK(bj_probe_solve(parts, 0, &err), err);
    for (int i = 0; i < N; i++) {
        bj_probe_read(q, p, z[i]);
        bj_probe_read(other, parts, z[i]);
        CHECK_NEAR(q[0], xy[i][0], 1e-9);
        CHECK_NEAR(q[1], xy[i][1], 1e-9);
        CHECK_NEAR(other[0], q[0], 1e-9);
    }
    const bj_real far[D] = {100, -30, 2}; /* not only where it was fitted */
    bj_probe_read(q, p, far);
    CHECK_NEAR(q[0], 3 - 2 * 100 + 30, 1e-7);
    CHECK_NEAR(q[1], -20 - 0.25 * 30 + 2, 1e-7);
    bj_probe_free(parts);
    bj_probe_free(p);
}

/* Tests one dimension, where w = S_zp / (S_zz + ridge S_zz) and the mean is mapped to the mean. If
 * all other directions are constant, the ridge of the remaining direction is its share of the
 * trace. */
static void test_ridge(void) {
    const bj_real z[4] = {1, 2, 3, 6};
    const double xy[4][2] = {{10, 0}, {13, 1}, {16, 0}, {25, 1}};
    bj_probe *p = NULL;
    bj_error err = {0};
    double q[2];
    CHECK_OK(bj_probe_create(&p, 1, &err), err);
    bj_probe_add(p, z, xy[0], 4);
    CHECK_OK(bj_probe_solve(p, 0.5, &err), err);
    bj_probe_read(q, p, (const bj_real[]){3}); /* the mean */
    CHECK_NEAR(q[0], 16, 1e-12);
    CHECK_NEAR(q[1], 0.5, 1e-12);
    bj_probe_read(q, p, (const bj_real[]){4}); /* slope 3 / 1.5 */
    CHECK_NEAR(q[0], 18, 1e-12);
    CHECK_NEAR(q[1], 0.5 + 2 / (14 * 1.5), 1e-12);
    bj_probe_free(p);

    const bj_real wide[4][2] = {{1, 5}, {2, 5}, {3, 5}, {6, 5}};
    CHECK_OK(bj_probe_create(&p, 2, &err), err);
    bj_probe_add(p, wide[0], xy[0], 4);
    CHECK_OK(bj_probe_solve(p, 0.5, &err), err); /* lambda = 0.5 * 14 / 2 */
    bj_probe_read(q, p, (const bj_real[]){4, 9});
    CHECK_NEAR(q[0], 16 + 3 * 14 / 17.5, 1e-12);
    bj_probe_free(p);
}

static void test_refusals(void) {
    const bj_real wide[4][2] = {{1, 5}, {2, 5}, {3, 5}, {6, 5}};
    const double xy[4][2] = {{10, 0}, {13, 1}, {16, 0}, {25, 1}};
    bj_probe *p = NULL;
    bj_error err = {0};
    CHECK(bj_probe_create(&p, 0, &err) == BJ_EARG && !p);
    CHECK_OK(bj_probe_create(&p, 2, &err), err);
    bj_probe_add(p, wide[0], xy[0], 1);
    CHECK(bj_probe_solve(p, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "1 frames");
    bj_probe_add(p, wide[1], xy[1], 3);
    CHECK(bj_probe_solve(p, -1, &err) == BJ_EARG);
    CHECK(bj_probe_solve(p, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "pivot 1 of 2 is 0");
    bj_probe_free(p);
    bj_probe_free(NULL);
}

int main(void) {
    const long live = bj_alloc_live();
    test_recovers();
    test_ridge();
    test_refusals();
    CHECK(bj_alloc_live() == live);
    return test_report("maze.probe");
}
