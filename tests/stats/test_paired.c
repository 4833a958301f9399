/* test_paired.c - tests summaries, paired comparisons and the metric directory. */
#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"

static void test_summary(void) {
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* mean 5, sum of squared deviations 32 */
    bj_summary s = bj_summarize(values, 8);
    CHECK(s.n == 8 && s.mean == 5 && s.lowest == 2 && s.highest == 9);
    CHECK_NEAR(s.sd, sqrt(32.0 / 7), 1e-15);
    s = bj_summarize(values, 1);
    CHECK(s.n == 1 && s.mean == 2 && isnan(s.sd) && s.lowest == 2 && s.highest == 2);
    s = bj_summarize(values, 0);
    CHECK(s.n == 0 && isnan(s.mean) && isnan(s.sd) && isnan(s.lowest) && isnan(s.highest));

    /* A large common offset must not reduce the precision. */
    const double shifted[] = {1e9 + 1, 1e9 + 2, 1e9 + 4};
    CHECK_NEAR(bj_summarize(shifted, 3).sd, sqrt(7.0 / 3), 1e-9);
    const double equal[] = {0.1, 0.1, 0.1};
    s = bj_summarize(equal, 3);
    CHECK(s.mean == 0.1 && s.sd == 0);
}

static void test_comparison(void) {
    const double a[] = {3, 5, 4, 8}, b[] = {1, 4, 4, 9}; /* differences 2 1 0 -1 */
    bj_comparison c;
    bj_error err = {0};
    CHECK_OK(bj_compare_paired(&c, a, b, 4, -1, 0.95, &err), err);
    CHECK(c.difference.mean == 0.5 && c.a.mean == 5 && c.b.mean == 4.5 && c.better == -1);
    CHECK_NEAR(c.difference.sd, sqrt(5.0 / 3), 1e-15);
    const double half = 3.1824463052837096 * sqrt(5.0 / 3) / 2; /* .975, 3 degrees of freedom */
    CHECK_NEAR(c.low, 0.5 - half, 1e-12);
    CHECK_NEAR(c.high, 0.5 + half, 1e-12);
    CHECK(c.lower == 1 && c.equal == 1 && c.higher == 2);
    CHECK_NEAR(c.improvement, -0.5 / 4.5, 1e-15);
    CHECK_OK(bj_compare_paired(&c, a, b, 4, 1, 0.5, &err), err);
    CHECK_NEAR(c.improvement, 0.5 / 4.5, 1e-15);
    CHECK_NEAR(c.high - c.low, 2 * 0.7648923284043453 * sqrt(5.0 / 3) / 2, 1e-12); /* .75, 3 */
    CHECK_OK(bj_compare_paired(&c, a, b, 4, 0, 0.95, &err), err);
    CHECK(isnan(c.improvement));

    /* Exchanging a and b mirrors the result. */
    bj_comparison m;
    CHECK_OK(bj_compare_paired(&c, a, b, 4, -1, 0.9, &err), err);
    CHECK_OK(bj_compare_paired(&m, b, a, 4, -1, 0.9, &err), err);
    CHECK(m.low == -c.high && m.high == -c.low && m.lower == c.higher && m.equal == c.equal);

    /* Lower is also better for negative scores, so -3 is an improvement over -2. */
    const double below[] = {-3, -3}, above[] = {-2, -2}, zero[] = {0, 0};
    CHECK_OK(bj_compare_paired(&c, below, above, 2, -1, 0.95, &err), err);
    CHECK(c.improvement == 0.5 && c.low == -1 && c.high == -1);
    CHECK_OK(bj_compare_paired(&c, below, zero, 2, -1, 0.95, &err), err);
    CHECK(isnan(c.improvement));

    CHECK_OK(bj_compare_paired(&c, a, b, 1, -1, 0.95, &err), err);
    CHECK(c.difference.mean == 2 && isnan(c.low) && isnan(c.high) && isnan(c.difference.sd));
}

static void test_refusals(void) {
    const double a[] = {1, NAN}, b[] = {1, 2};
    static const double levels[] = {0, 1, -1, 2, NAN};
    bj_comparison c;
    bj_error err = {0};
    CHECK(bj_compare_paired(&c, a, b, 0, -1, 0.95, &err) == BJ_EARG);
    CHECK(bj_compare_paired(&c, a, b, 2, -1, 0.95, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "pair 1 is (nan, 2)");
    CHECK(bj_compare_paired(&c, b, a, 2, -1, 0.95, NULL) == BJ_ENONFINITE);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        CHECK(bj_compare_paired(&c, b, b, 2, -1, levels[i], &err) == BJ_EARG);
    bj_alloc_fail_after(0);
    CHECK(bj_compare_paired(&c, b, b, 2, -1, 0.95, &err) == BJ_ENOMEM);
    bj_alloc_fail_after(-1);
    CHECK(bj_alloc_live() == 0);
}

/* Tests that the directory contains every field of bj_metric_values except `scenes` once, under its
 * name. */
static void test_directory(void) {
    enum { FIELDS = sizeof(bj_metric_values) / sizeof(double) - 1 };
    bj_metric_values values;
    double numbers[FIELDS + 1];
    int seen[FIELDS + 1] = {0}, measured = 0;
    for (int i = 0; i <= FIELDS; i++) numbers[i] = i;
    memcpy(&values, numbers, sizeof values);
    for (int i = 0; i < bj_metric_count(); i++) {
        const bj_metric_info info = bj_metric_at(i);
        const double value = bj_metric_value(&values, i);
        CHECK_MSG(bj_metric_find(info.name) == i, "%s", info.name);
        CHECK(info.better >= -1 && info.better <= 1 && info.digits >= 0 && *info.title);
        if (isnan(value)) continue;
        measured++;
        seen[(int)value]++;
    }
    CHECK_MSG(measured == FIELDS, "%d of %d fields", measured, (int)FIELDS);
    CHECK(seen[0] == 0);
    for (int i = 1; i <= FIELDS; i++) CHECK_MSG(seen[i] == 1, "field %d: %d times", i, seen[i]);
    CHECK(bj_metric_value(&values, bj_metric_find("brier")) == values.brier);
    CHECK(bj_metric_value(&values, bj_metric_find("dedup_support")) == values.dedup_support);
    CHECK(isnan(bj_metric_value(&values, bj_metric_find("entropy_rank"))));

    static const char *const lower[] = {"traj_es", "traj_obs", "end_es",   "latent_es",
                                        "exp_ade", "exp_fde",  "top1_ade", "top1_fde",
                                        "top1_mr", "brier",    "ece"};
    static const char *const higher[] = {"exp_entropy", "active_heads", "neff_collision",
                                         "dedup_support"};
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        CHECK_MSG(bj_metric_at(bj_metric_find(lower[i])).better == -1, "%s", lower[i]);
    for (size_t i = 0; i < sizeof higher / sizeof *higher; i++)
        CHECK_MSG(bj_metric_at(bj_metric_find(higher[i])).better == 1, "%s", higher[i]);
    CHECK(bj_metric_at(bj_metric_find("traj_disp")).better == 0);
    CHECK(bj_metric_find("scenes") == -1 && bj_metric_find("") == -1);
}

int main(void) {
    test_summary();
    test_comparison();
    test_refusals();
    test_directory();
    return test_report("paired");
}
