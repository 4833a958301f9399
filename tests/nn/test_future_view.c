/* test_future_view.c - tests the conversion of future positions to focal features: x, y, vx, vy,
 * direction, type 0. */
#include "model/encoder.h"

#include "nn_case.h"

enum { I = BJ_FOCAL_FEATURES };

static void check_row(const bj_real *row, double x, double y, double vx, double vy, double cx,
                      double cy) {
    const double expected[I] = {x, y, vx, vy, cx, cy, 0};
    for (int i = 0; i < I; i++)
        CHECK_NEAR(row[i], expected[i], 10 * nn_tolerance() * fmax(1, fabs(expected[i])));
}

static void test_by_hand(void) {
    /* The steps are: along x, along the diagonal of a 3-4-5 triangle, and no motion. The last
     * difference is used twice. */
    const bj_real future[] = {
        1, 2, (bj_real)1.5, 2, (bj_real)1.8, (bj_real)2.4, (bj_real)1.8, (bj_real)2.4};
    bj_real out[4 * I + 1];
    out[4 * I] = MARKER;
    bj_future_view(out, future, 1, 4, 0.1);
    check_row(out, 1, 2, 5, 0, 1, 0);
    check_row(out + I, 1.5, 2, 3, 4, 0.6, 0.8);
    check_row(out + 2 * I, 1.8, 2.4, 0, 0, 0, 0); /* no velocity, no direction */
    check_row(out + 3 * I, 1.8, 2.4, 0, 0, 0, 0);
    for (int i = 2; i < 6; i++) CHECK(out[2 * I + i] == 0 && out[3 * I + i] == 0); /* exactly */
    CHECK(out[4 * I] == MARKER);

    const bj_real two[] = {0, 0, -2, 0}; /* the shortest future, with another time step */
    bj_future_view(out, two, 1, 2, 0.5);
    check_row(out, 0, 0, -4, 0, -1, 0);
    check_row(out + I, -2, 0, -4, 0, -1, 0);

    /* If the speed is below the floor of 1e-12, the length of the direction vector is proportional
     * to the speed. */
    const bj_real crawl[] = {0, 0, (bj_real)3e-14, (bj_real)4e-14};
    bj_future_view(out, crawl, 1, 2, 1);
    CHECK_NEAR(out[4], 0.03, 1e-6);
    CHECK_NEAR(out[5], 0.04, 1e-6);
}

/* Tests that no difference is taken across the boundary between two scenes. */
static void test_scenes(void) {
    enum { M = 3, F = 6 };
    bj_rng rng = bj_rng_seed(4);
    bj_real future[M * F * 2], all[M * F * I], one[F * I];
    for (int i = 0; i < M * F * 2; i++) future[i] = (bj_real)(20 * bj_rng_normal(&rng));
    bj_future_view(all, future, M, F, 0.1);
    for (int m = 0; m < M; m++) {
        bj_future_view(one, future + m * F * 2, 1, F, 0.1);
        CHECK(memcmp(one, all + m * F * I, sizeof one) == 0);
        for (int t = 0; t < F; t++) {
            const bj_real *row = one + t * I, *p = future + (m * F + (t < F - 1 ? t : F - 2)) * 2;
            const double vx = ((double)p[2] - (double)p[0]) / 0.1;
            const double vy = ((double)p[3] - (double)p[1]) / 0.1, v = hypot(vx, vy);
            check_row(row, future[(m * F + t) * 2], future[(m * F + t) * 2 + 1], vx, vy, vx / v,
                      vy / v);
        }
        CHECK(memcmp(one + (F - 2) * I + 2, one + (F - 1) * I + 2, 4 * sizeof *one) == 0);
    }
}

int main(void) {
    test_by_hand();
    test_scenes();
    return test_report("future view");
}
