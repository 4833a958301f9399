/* test_sinkhorn.c - tests the balanced plan: marginals, extreme costs and symmetries. */
#include "objective/parts.h"
#include "support/test.h"

enum { B = 37, K = 5 };

static void fill(double *cost, int rows, double scale, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    for (int i = 0; i < rows * K; i++) cost[i] = scale * bj_rng_uniform(&rng);
}

static void check_rows(const double *plan, int rows) {
    for (int b = 0; b < rows; b++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            CHECK(plan[b * K + k] >= 0);
            sum += plan[b * K + k];
        }
        CHECK_NEAR(sum, 1, 1e-12);
    }
}

/* Tests that after enough iterations every branch gets B / K scenes, although branch 0 is the
 * cheapest for all scenes. */
static void test_marginals(void) {
    double plan[B * K];
    fill(plan, B, 1, 1);
    for (int b = 0; b < B; b++) plan[b * K] *= 0.1;
    bj_sinkhorn_plan(plan, B, K, 0.1, 2000);
    check_rows(plan, B);
    for (int k = 0; k < K; k++) {
        double column = 0;
        for (int b = 0; b < B; b++) column += plan[b * K + k];
        CHECK_NEAR(column, (double)B / K, 1e-9);
    }
}

/* Tests costs of kilometers with eps = .1, whose exponents exceed the range of exp, and a branch
 * that is expensive for all scenes. */
static void test_extreme_costs(void) {
    double plan[B * K];
    fill(plan, B, 2000, 2);
    for (int b = 0; b < B; b++) plan[b * K + 3] += 1e5;
    bj_sinkhorn_plan(plan, B, K, 0.1, 50);
    check_rows(plan, B);
    double column = 0;
    for (int b = 0; b < B; b++) column += plan[b * K + 3];
    CHECK(column > 0.5); /* balancing assigns a share to the expensive branch */
}

/* Tests that a constant added to all costs of a scene or of a branch does not change the plan. */
static void test_invariance(void) {
    double a[B * K], b[B * K];
    fill(a, B, 1, 3);
    for (int i = 0; i < B; i++)
        for (int k = 0; k < K; k++) b[i * K + k] = a[i * K + k] + 0.3 * i + 2.0 * k;
    bj_sinkhorn_plan(a, B, K, 0.2, 200);
    bj_sinkhorn_plan(b, B, K, 0.2, 200);
    for (int i = 0; i < B * K; i++) CHECK_NEAR(a[i], b[i], 1e-9);
}

/* Tests that the plan of a single scene is uniform, because the column sums can be met exactly. */
static void test_one_scene(void) {
    double plan[K];
    fill(plan, 1, 3, 4);
    bj_sinkhorn_plan(plan, 1, K, 0.1, 50);
    for (int k = 0; k < K; k++) CHECK_NEAR(plan[k], 1.0 / K, 1e-12);
}

/* Tests one iteration against v_k = -log K - lse_b(g_bk - log B - lse_k g_bk). */
static void test_one_iteration(void) {
    double plan[2 * K], cost[2 * K];
    fill(cost, 2, 1, 5);
    memcpy(plan, cost, sizeof cost);
    bj_sinkhorn_plan(plan, 2, K, 0.5, 1);
    double v[K];
    for (int k = 0; k < K; k++) {
        double column = 0;
        for (int b = 0; b < 2; b++) {
            double row = 0;
            for (int l = 0; l < K; l++) row += exp(-cost[b * K + l] / 0.5);
            column += exp(-cost[b * K + k] / 0.5) / row / 2;
        }
        v[k] = 1.0 / K / column;
    }
    for (int b = 0; b < 2; b++) {
        double row = 0;
        for (int k = 0; k < K; k++) row += v[k] * exp(-cost[b * K + k] / 0.5);
        for (int k = 0; k < K; k++)
            CHECK_NEAR(plan[b * K + k], v[k] * exp(-cost[b * K + k] / 0.5) / row, 1e-13);
    }
}

int main(void) {
    test_marginals();
    test_extreme_costs();
    test_invariance();
    test_one_scene();
    test_one_iteration();
    return test_report("sinkhorn");
}
