/* test_exam_best.c - tests the search for the best K atoms.
 *
 * The search must find known optima and must never be worse than the true modes. */
#include "truth_case.h"

static law_case c;
static double p[BJ_MAX_ATOMS], y[BJ_MAX_ATOMS * ROW];

static bj_moment discrepancy(int K, int samples, uint64_t seed) {
    const bj_exam_forecast forecast = {K, p, y};
    bj_exam_scene out;
    double *work = case_work(c.law.modes, samples);
    bj_exam_measure(&out, &c.law, &forecast, samples, seed, work);
    free(work);
    return out.discrepancy;
}

static void search(int K, uint64_t seed) {
    double *work = calloc(bj_exam_best_work(c.law.modes, K), sizeof *work);
    if (!work) exit(1);
    bj_exam_best(p, y, K, &c.law, seed, work);
    free(work);
    double sum = 0;
    for (int k = 0; k < K; k++) {
        CHECK(p[k] >= 0);
        sum += p[k];
    }
    CHECK_NEAR(sum, 1, 1e-12);
}

/* Returns E |z - a| of a standard normal z. */
static double away(double a) {
    return a * erf(a / sqrt(2)) + 2 * exp(-a * a / 2) / sqrt(2 * 3.14159265358979323846);
}

/* Tests a law with one normal factor of 1 m along a line. The discrepancy of atoms on this line has
 * a closed form. The optima below were computed with another optimizer. For K >= 3, their weights
 * are not equal. */
static void test_line(void) {
    static const double optimum[] = {.4673899545, .1427271236, .0689033420,
                                     .0405771225, .0267421592, .0189541572};
    static const double tolerated[] = {1e-4, .01, .04, .05, .08, .1}; /* for sampling errors */
    enum { SEEDS = 2 };
    case_start(&c, "line", 1, 1);
    case_place(c.factor, .6, .8);
    for (int K = 1; K <= 6; K += K < 3 ? 1 : 3) {
        double mean = 0, at[6];
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            double d = -2 / sqrt(3.14159265358979323846);
            search(K, seed);
            for (int k = 0; k < K; k++) {
                at[k] = .6 * y[k * ROW] + .8 * y[k * ROW + 1];
                for (int i = 0; i < ROW; i++)
                    CHECK_NEAR(y[k * ROW + i], at[k] * (i % 2 ? .8 : .6), 1e-5);
                d += 2 * p[k] * away(at[k]);
                for (int l = 0; l < k; l++) d -= 2 * p[k] * p[l] * fabs(at[k] - at[l]);
            }
            CHECK(d > optimum[K - 1] - 1e-9);
            mean += d / SEEDS;
        }
        CHECK_MSG(mean < (1 + tolerated[K - 1]) * optimum[K - 1], "K = %d: %g, optimum %g, %.4f", K,
                  mean, optimum[K - 1], mean / optimum[K - 1] - 1);
    }
}

static void test_points(void) {
    case_start(&c, "points", 4, 0);
    for (int m = 0; m < 4; m++) case_place(c.means + m * ROW, 9 * m, m % 2 ? 5 : 0);
    c.weights[0] = .1, c.weights[1] = .2, c.weights[2] = .3, c.weights[3] = .4;
    search(4, 1);
    CHECK_NEAR(discrepancy(4, 16, 1).mean, 0, 1e-6);
    search(6, 1); /* more atoms than needed */
    CHECK_NEAR(discrepancy(6, 16, 1).mean, 0, 1e-3);
    /* Test modes with a small weight close to modes with a large weight. A search that starts from
     * clusters of draws misses some of them, but a search that starts from the true modes does
     * not. */
    case_start(&c, "light", 8, 0);
    for (int m = 0; m < 8; m++) {
        c.weights[m] = m % 2 ? .01 : .24;
        case_place(c.means + m * ROW, 20 * (m / 2) + m % 2, 0);
    }
    search(8, 1);
    CHECK_NEAR(discrepancy(8, 16, 1).mean, 0, 1e-6);
    /* Test one atom. If a point has more than half of the mass, it is the median and therefore the
     * best atom. */
    case_start(&c, "median", 3, 0);
    c.weights[0] = .2, c.weights[1] = .6, c.weights[2] = .2;
    case_place(c.means, 10, 0);
    case_place(c.means + 2 * ROW, 0, 10);
    search(1, 1);
    CHECK_NEAR(y[0], 0, .02);
    CHECK_NEAR(y[1], 0, .02);
    /* Test two distant points and two atoms. The weights of the atoms must equal those of the
     * points. */
    case_start(&c, "weights", 2, 0);
    c.weights[0] = .85, c.weights[1] = .15;
    case_place(c.means, 100, 0);
    search(2, 1);
    CHECK_NEAR(p[0] * (y[0] > 50) + p[1] * (y[ROW] > 50), .85, 1e-3);
}

/* Tests fewer and more atoms than modes. The result must never be worse than the modes with the
 * largest weights or than fewer atoms. */
static void test_random(void) {
    for (uint64_t n = 0; n < 8; n += 2) {
        double last = INFINITY, slack = 0;
        case_random(&c, "random", n);
        for (int K = 2; K <= 8; K += 3) {
            search(K, n);
            const bj_moment best = discrepancy(K, 128, n);
            bj_exam_truncate(p, y, K, &c.law);
            const bj_moment modes = discrepancy(K, 128, n);
            slack = 3 * sqrt(best.variance);
            CHECK_MSG(best.mean < modes.mean + slack, "law %d, K = %d: %g, modes %g", (int)n, K,
                      best.mean, modes.mean);
            CHECK_MSG(best.mean < last + slack, "law %d, K = %d: %g, fewer %g", (int)n, K,
                      best.mean, last);
            CHECK(best.mean > -slack);
            last = best.mean;
        }
    }
}

int main(void) {
    test_line();
    test_points();
    test_random();
    return test_report("exam_best");
}
