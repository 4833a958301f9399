/* test_bootstrap.c - compares the paired bootstrap with a plain implementation and with theory. */
#include <stdlib.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"

enum { N = 1501, MANY = 4000 };
static double a[N], b[N];

static void make_scenes(void) {
    bj_rng rng = bj_rng_seed(3);
    for (int i = 0; i < N; i++) {
        a[i] = exp(bj_rng_normal(&rng)); /* skewed like real errors */
        b[i] = 0.9 * a[i] + 0.2 * bj_rng_normal(&rng);
    }
}

static int by_size(const void *x, const void *y) {
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Computes the bootstrap in the simplest way, with another generator and in another order. */
static bj_bootstrap plain_bootstrap(uint64_t seed, double level) {
    static double means[MANY];
    bj_rng rng = bj_rng_seed(seed);
    bj_bootstrap out = {0, 0, 0, 0};
    double total = 0, squares = 0;
    for (int r = 0; r < MANY; r++) {
        double sum = 0;
        for (int i = 0; i < N; i++) {
            const int k = (int)(bj_rng_uniform(&rng) * N);
            sum += a[k] - b[k];
        }
        means[r] = sum / N;
        total += means[r];
        squares += means[r] * means[r];
    }
    for (int i = 0; i < N; i++) out.mean += (a[i] - b[i]) / N;
    qsort(means, MANY, sizeof *means, by_size);
    out.low = means[(int)((0.5 - level / 2) * MANY)];
    out.high = means[(int)((0.5 + level / 2) * MANY)];
    out.se = sqrt((squares - total * total / MANY) / (MANY - 1));
    return out;
}

/* Tests that the two implementations agree. Each estimates the quantiles with an error of about
 * 0.04 standard errors. */
static void test_against_plain(void) {
    static const double levels[] = {0.5, 0.9, 0.95};
    bj_error err = {0};
    for (int i = 0; i < 3; i++) {
        bj_bootstrap fast, plain = plain_bootstrap(100 + (uint64_t)i, levels[i]);
        CHECK_OK(bj_bootstrap_paired(&fast, a, b, N, MANY, 5, levels[i], 2, &err), err);
        CHECK_NEAR(fast.mean, plain.mean, 1e-12);
        CHECK_NEAR(fast.low, plain.low, 0.15 * plain.se);
        CHECK_NEAR(fast.high, plain.high, 0.15 * plain.se);
        CHECK_NEAR(fast.se, plain.se, 0.06 * plain.se);
        CHECK(fast.low < fast.mean && fast.mean < fast.high);
    }
}

/* Tests that the SD of a resampled mean is sqrt(population variance / n). */
static void test_theory(void) {
    bj_bootstrap out;
    bj_error err = {0};
    double mean = 0, squares = 0;
    CHECK_OK(bj_bootstrap_paired(&out, a, b, N, 2 * MANY, 11, 0.95, 2, &err), err);
    for (int i = 0; i < N; i++) mean += (a[i] - b[i]) / N;
    for (int i = 0; i < N; i++) squares += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
    const double se = sqrt(squares) / N;
    CHECK_NEAR(out.se, se, 0.04 * se);
    CHECK_NEAR(out.high - out.low, 2 * 1.95996 * se, 0.1 * se * 2);

    /* Every scene must be drawn equally often by both halves of the random bits and by the extra
     * draw for an odd n. Here, d is 1 for one scene, so the average of the resampled means must be
     * 1/n. */
    enum { SMALL = 3 };
    for (int k = 0; k < SMALL; k++) {
        double one[SMALL] = {0}, zero[SMALL] = {0};
        one[k] = 1;
        CHECK_OK(bj_bootstrap_paired(&out, one, zero, SMALL, 40000, 17, 0.5, 1, &err), err);
        /* Binomial(3, 1/3)/3: quartiles 0 and 2/3 or 1/3; SD sqrt(2)/(3 sqrt 3) */
        CHECK_NEAR(out.se, sqrt(2) / (3 * sqrt(3)), 0.004);
        CHECK(out.low == 0 && fabs(out.high - 2.0 / 3) < 1e-12);
    }
}

static void test_threads_and_seeds(void) {
    bj_bootstrap first, other;
    bj_error err = {0};
    CHECK_OK(bj_bootstrap_paired(&first, a, b, N, 997, 5, 0.95, 1, &err), err);
    for (int threads = 0; threads <= 7; threads++) {
        CHECK_OK(bj_bootstrap_paired(&other, a, b, N, 997, 5, 0.95, threads, &err), err);
        CHECK_MSG(!memcmp(&first, &other, sizeof first), "%d threads", threads);
    }
    CHECK_OK(bj_bootstrap_paired(&other, a, b, N, 997, 6, 0.95, 2, &err), err);
    CHECK(other.low != first.low && other.high != first.high && other.mean == first.mean);
    /* Adding a constant to both arms must not change the paired result. */
    static double shifted[2][N];
    for (int i = 0; i < N; i++) {
        shifted[0][i] = a[i] + 4 * (i % 7);
        shifted[1][i] = b[i] + 4 * (i % 7);
    }
    CHECK_OK(bj_bootstrap_paired(&other, shifted[0], shifted[1], N, 997, 5, 0.95, 2, &err), err);
    CHECK_NEAR(other.low, first.low, 1e-12);
    CHECK_NEAR(other.high, first.high, 1e-12);
}

static void test_edges(void) {
    const double x[] = {5}, y[] = {3}, bad[] = {INFINITY};
    bj_bootstrap out;
    bj_error err = {0};
    CHECK_OK(bj_bootstrap_paired(&out, x, y, 1, 10, 1, 0.95, 1, &err), err);
    CHECK(out.mean == 2 && out.low == 2 && out.high == 2 && out.se == 0);
    CHECK_OK(bj_bootstrap_paired(&out, x, y, 1, 1, 1, 0.95, 1, &err), err);
    CHECK(out.low == 2 && out.high == 2 && isnan(out.se));
    CHECK(bj_bootstrap_paired(&out, x, y, 0, 10, 1, 0.95, 1, &err) == BJ_EARG);
    CHECK(bj_bootstrap_paired(&out, x, y, 1, 0, 1, 0.95, 1, &err) == BJ_EARG);
    CHECK(bj_bootstrap_paired(&out, x, y, 1, 10, 1, 1, 1, &err) == BJ_EARG);
    CHECK(bj_bootstrap_paired(&out, x, y, 1, 10, 1, NAN, 1, &err) == BJ_EARG);
    CHECK(bj_bootstrap_paired(&out, x, bad, 1, 10, 1, 0.95, 1, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "scene 0");
    const long before = bj_alloc_live();
    for (int n = 0; n < 20; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_bootstrap_paired(&out, a, b, N, 64, 1, 0.95, 2, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_ENOMEM || status == BJ_OK);
        CHECK(bj_alloc_live() == before);
        CHECK(n > 0 || status == BJ_ENOMEM);
        if (status == BJ_OK) break;
    }
}

int main(void) {
    make_scenes();
    test_against_plain();
    test_theory();
    test_threads_and_seeds();
    test_edges();
    return test_report("bootstrap");
}
