/* test_exam_best.c - the best K atoms: known optima on a line, points, and never worse than the
 * true modes. */
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

/* Standard normal distribution by its density. */
static double density(double x) { return exp(-x * x / 2) / sqrt(2 * 3.14159265358979323846); }
static double below(double x) { return erfc(-x / sqrt(2)) / 2; }
static double quantile(double q) {
    double low = -9, high = 9;
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        if (below(middle) < q) low = middle;
        else high = middle;
    }
    return low;
}

/* On a line the best K atoms of equal weight are the quantiles (k - 1/2) / K. The weights are free,
 * so the best of all is at most that; for K = 1, 2 symmetry makes it exactly that. */
static double line_optimum(int K) {
    double cross = 0, own = 0;
    for (int k = 0; k < K; k++) {
        const double a = quantile((k + .5) / K);
        cross += (a * (2 * below(a) - 1) + 2 * density(a)) / K;
        for (int l = 0; l < k; l++) own += 2 * (a - quantile((l + .5) / K)) / (K * K);
    }
    return 2 * cross - own - 2 / sqrt(3.14159265358979323846);
}

static void test_line(void) {
    CHECK_NEAR(line_optimum(1), .467389, 1e-5);
    CHECK_NEAR(line_optimum(2), .142729, 1e-5);
    case_start(&c, "line", 1, 1);
    case_place(c.factor, .6, .8);
    for (int K = 1; K <= 4; K++) {
        double mean = 0;
        for (uint64_t seed = 0; seed < 8; seed++) { /* 64 draws each time leave some error */
            search(K, seed);
            const bj_moment m = discrepancy(K, 1024, seed);
            CHECK_NEAR(m.mean, line_optimum(K), .06);
            mean += m.mean / 8;
        }
        CHECK_MSG(mean < 1.25 * line_optimum(K) + .005, "K = %d: %g, optimum %g", K, mean,
                  line_optimum(K));
        CHECK_MSG(mean > line_optimum(K) - .02, "K = %d: %g, optimum %g", K, mean, line_optimum(K));
    }
}

static void test_points(void) {
    case_start(&c, "points", 4, 0);
    for (int m = 0; m < 4; m++) case_place(c.means + m * ROW, 9 * m, m % 2 ? 5 : 0);
    c.weights[0] = .1, c.weights[1] = .2, c.weights[2] = .3, c.weights[3] = .4;
    search(4, 1);
    CHECK_NEAR(discrepancy(4, 16, 1).mean, 0, 1e-6);
    search(6, 1); /* more than needed */
    CHECK_NEAR(discrepancy(6, 16, 1).mean, 0, 1e-3);
    /* One atom: where more than half of the mass is, that point is the median. */
    case_start(&c, "median", 3, 0);
    c.weights[0] = .2, c.weights[1] = .6, c.weights[2] = .2;
    case_place(c.means, 10, 0);
    case_place(c.means + 2 * ROW, 0, 10);
    search(1, 1);
    CHECK_NEAR(y[0], 0, .02);
    CHECK_NEAR(y[1], 0, .02);
    /* Two far points and two atoms: the weights are the points'. */
    case_start(&c, "weights", 2, 0);
    c.weights[0] = .85, c.weights[1] = .15;
    case_place(c.means, 100, 0);
    search(2, 1);
    CHECK_NEAR(p[0] * (y[0] > 50) + p[1] * (y[ROW] > 50), .85, 1e-3);
}

/* Fewer atoms than modes, and more: never worse than the heaviest modes, nor than fewer atoms. */
static void test_random(void) {
    for (uint64_t n = 0; n < 8; n++) {
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
