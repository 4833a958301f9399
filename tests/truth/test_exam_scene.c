/* test_exam_scene.c - tests the values of one scene: discrepancy, floor and expected score.
 *
 * Compares the values with cases calculated by hand, and checks the estimated errors, the identity
 * for random laws, modes and maneuvers. */
#include "truth_case.h"

static law_case c;
static const double pi = 3.14159265358979323846;

static bj_exam_scene measure(int K, const double *p, const double *y, int samples, uint64_t seed) {
    const bj_exam_forecast forecast = {K, p, y};
    bj_exam_scene out;
    double *work = case_work(c.law.modes, samples);
    memset(&out, 0, sizeof out);
    bj_exam_measure(&out, &c.law, &forecast, samples, seed, work);
    bj_exam_modes(&out, &c.law, &forecast);
    free(work);
    return out;
}

/* ------------------------------------------------------------------------------- without noise */

static void test_points(void) {
    double y[3 * ROW];
    const double one[1] = {1};
    case_start(&c, "point", 1, 0);
    case_atom(y, 3, -4); /* 5 m away at every step */
    bj_exam_scene s = measure(1, one, y, 16, 1);
    CHECK_NEAR(s.discrepancy.mean, 10, 1e-12);
    CHECK_NEAR(s.floor.mean, 0, 0);
    CHECK_NEAR(s.expected.mean, 5, 1e-12);
    CHECK_NEAR(s.difference.mean, 0, 1e-12);
    CHECK_NEAR(s.discrepancy.variance + s.expected.variance + s.difference.variance, 0, 1e-24);
    CHECK_NEAR(s.score_variance, 0, 1e-12);

    /* If a law that consists of points is predicted exactly, but in another order, only the floor
     * remains. */
    const double p[3] = {.2, .5, .3};
    case_start(&c, "points", 3, 0);
    for (int m = 0; m < 3; m++) {
        const int from = (m + 1) % 3;
        c.weights[m] = p[from];
        case_place(c.means + m * ROW, 7 * from, from * from);
        case_atom(y + from * ROW, 7 * from, from * from);
    }
    s = measure(3, p, y, 16, 2);
    const double d01 = sqrt(49 + 1), d02 = sqrt(196 + 16), d12 = sqrt(49 + 9);
    const double ground = p[0] * p[1] * d01 + p[0] * p[2] * d02 + p[1] * p[2] * d12;
    CHECK_NEAR(s.discrepancy.mean, 0, 1e-12);
    CHECK_NEAR(s.floor.mean, ground, 1e-12);
    CHECK_NEAR(s.expected.mean, ground, 1e-12);
    CHECK(s.modes == 3 && s.found == 3);
    CHECK_NEAR(s.mass_error, 0, 1e-12);

    /* If the forecast puts all the mass on one of two points, D^2 = 2 w d - 2 w (1 - w) d = 2 w^2
     * d. */
    case_start(&c, "half", 2, 0);
    c.weights[0] = .7, c.weights[1] = .3;
    case_place(c.means + ROW, 6, 8);
    case_atom(y, 0, 0);
    s = measure(1, one, y, 16, 3);
    CHECK_NEAR(s.discrepancy.mean, 2 * .09 * 10, 1e-12);
    CHECK_NEAR(s.floor.mean, .21 * 10, 1e-12);
    CHECK_NEAR(s.expected.mean, 3, 1e-12);
    CHECK_NEAR(s.score_variance, .21 * 100, 1e-9); /* 0 or 10 */
}

/* --------------------------------------------------------------------------- one normal factor */

/* Tests Y = z f with |f| = 2.5 m at every step: d(0,Y) = 2.5 |z|, d(Y,Y') = 2.5 |z - z'|. */
static void test_normal(void) {
    enum { SEEDS = 400, SAMPLES = 16 };
    const double one[1] = {1}, size = 2.5;
    const double law = size * 2 / sqrt(pi), cross = size * sqrt(2 / pi);
    const double exact[4] = {2 * cross - law, law / 2, cross, 0};
    double y[ROW], square[4] = {0}, variance[4] = {0}, mean[4] = {0}, spread = 0;
    case_start(&c, "normal", 1, 1);
    case_place(c.factor, 1.5, 2);
    case_atom(y, 0, 0);
    for (int seed = 0; seed < SEEDS; seed++) {
        const bj_exam_scene s = measure(1, one, y, SAMPLES, (uint64_t)seed);
        const bj_moment m[4] = {s.discrepancy, s.floor, s.expected, s.difference};
        for (int i = 0; i < 4; i++) {
            mean[i] += m[i].mean / SEEDS;
            square[i] += pow(m[i].mean - exact[i], 2) / SEEDS;
            variance[i] += m[i].variance / SEEDS;
        }
        spread += s.score_variance / SEEDS;
    }
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(mean[i], exact[i], 5 * sqrt(variance[i] / SEEDS));
        /* The estimated variance must match the mean squared error, which 400 seeds determine to
         * within 7 %. */
        CHECK_MSG(fabs(square[i] / variance[i] - 1) < .3, "number %d: %g, stated %g", i, square[i],
                  variance[i]);
        CHECK(variance[i] > 1e-3);
    }
    /* The sample variance of 16 draws is biased by 1/16. The remaining difference is random. */
    CHECK_NEAR(spread, size * size * (1 - 2 / pi), .15 * size * size * (1 - 2 / pi));
}

/* Tests that draws differ between purposes, seeds and scenes. */
static void test_draws(void) {
    static double a[4 * ROW], b[4 * ROW];
    case_random(&c, "draws", 0);
    bj_exam_draw(a, &c.law, 4, 5, "one");
    bj_exam_draw(b, &c.law, 4, 5, "one");
    CHECK(!memcmp(a, b, sizeof a));
    CHECK(memcmp(a, a + ROW, ROW * sizeof *a) != 0);
    bj_exam_draw(b, &c.law, 4, 5, "two");
    CHECK(memcmp(a, b, sizeof a) != 0);
    bj_exam_draw(b, &c.law, 4, 6, "one");
    CHECK(memcmp(a, b, sizeof a) != 0);
    c.law.scenario_id = "other";
    bj_exam_draw(b, &c.law, 4, 5, "one");
    CHECK(memcmp(a, b, sizeof a) != 0);
}

/* ---------------------------------------------------------------------------------- random laws */

/* Returns the expected score from bj_forecast_measure, over draws from the whole law. */
static double plain_score(double *error, int K, const double *p, const double *y, bj_rng *rng) {
    enum { DRAWS = 3000 };
    double sum = 0, square = 0, future[ROW];
    bj_forecast_values v;
    for (int i = 0; i < DRAWS; i++) {
        bj_law_sample(future, &c.law, rng);
        bj_forecast_measure(&v, &(bj_forecast){K, BJ_EXAM_STEPS, p, y, future});
        const double es = v.traj_obs - v.traj_disp;
        sum += es / DRAWS;
        square += es * es / DRAWS;
    }
    *error = sqrt((square - sum * sum) / DRAWS);
    return sum;
}

static void test_identity(void) {
    enum { K = 5, CASES = 24 };
    double p[K], y[K * ROW], total = 0, variance = 0, error;
    for (int n = 0; n < CASES; n++) {
        bj_rng rng = bj_rng_seed((uint64_t)n + 100);
        double sum = 0;
        case_random(&c, "random", (uint64_t)n);
        for (int k = 0; k < K; k++) {
            sum += p[k] = k == 2 ? 0 : bj_rng_uniform(&rng); /* a branch without mass */
            const double dx = 3 * bj_rng_normal(&rng), dy = 3 * bj_rng_normal(&rng);
            for (int i = 0; i < ROW; i++)
                y[k * ROW + i] = (double)c.means[k % c.law.modes * ROW + i] + (i % 2 ? dy : dx);
        }
        for (int k = 0; k < K; k++) p[k] /= sum;
        const bj_exam_scene s = measure(K, p, y, 256, (uint64_t)n);
        CHECK(s.difference.variance > 0 && s.discrepancy.mean > 0 && s.floor.mean > 0);
        CHECK_NEAR(s.expected.mean, s.discrepancy.mean / 2 + s.floor.mean,
                   5 * sqrt(s.difference.variance));
        const double plain = plain_score(&error, K, p, y, &rng);
        CHECK_NEAR(plain, s.expected.mean, 5 * hypot(error, sqrt(s.expected.variance)));
        CHECK_NEAR(s.score_variance, error * error * 3000, .35 * error * error * 3000);
        total += s.difference.mean;
        variance += s.difference.variance;
    }
    CHECK_NEAR(total, 0, 4 * sqrt(variance)); /* a tighter test than for each law alone */
}

/* --------------------------------------------------------------------------- modes, maneuvers */

static void test_modes(void) {
    double y[5 * ROW];
    case_start(&c, "modes", 3, 0);
    c.weights[0] = .5, c.weights[1] = .3, c.weights[2] = .2;
    case_place(c.means + 0 * ROW, 50, 0);
    case_place(c.means + 1 * ROW, 53, 0); /* 3 m from the first */
    case_place(c.means + 2 * ROW, 10, 40);
    const double p[5] = {.405, .3, .005, .25, .04};
    case_atom(y + 0 * ROW, 51.4, 0); /* within 2 m of the first two modes, but nearer to the
                                        first */
    case_atom(y + 1 * ROW, 49, 0);   /* the first */
    case_atom(y + 2 * ROW, 10, 40);  /* belongs to the third mode, but with a weight below 1 % */
    case_atom(y + 3 * ROW, 50, -40); /* belongs to no mode; turns right */
    case_atom(y + 4 * ROW, 1.9, .1); /* belongs to no mode; stops */
    bj_exam_scene s = measure(5, p, y, 16, 1);
    CHECK(s.modes == 3 && s.found == 2);
    CHECK_NEAR(s.found_mass, .8, 1e-12);
    CHECK_NEAR(s.unexplained, .29, 1e-12);
    /* The predicted masses are .705, 0, .005 and .29 outside all modes. The true masses are .5, .3,
     * .2 and 0. */
    CHECK_NEAR(s.mass_error, (.205 + .3 + .195 + .29) / 2, 1e-12);
    CHECK_NEAR(s.predicted[BJ_STRAIGHT], .705, 1e-12);
    CHECK_NEAR(s.predicted[BJ_LEFT], .005, 1e-12);
    CHECK_NEAR(s.predicted[BJ_RIGHT], .25, 1e-12);
    CHECK_NEAR(s.predicted[BJ_STOP], .04, 1e-12);
    for (int set = 0; set < 2; set++) {
        CHECK_NEAR(s.actual[set][BJ_STRAIGHT], .8, 1e-12);
        CHECK_NEAR(s.actual[set][BJ_LEFT], .2, 1e-12);
        CHECK_NEAR(s.actual[set][BJ_RIGHT] + s.actual[set][BJ_STOP], 0, 0);
    }
    /* Test distances just below and just above 2 m. */
    const double one[1] = {1};
    case_atom(y, 10, 41.999);
    CHECK(measure(1, one, y, 16, 1).found == 1);
    case_atom(y, 10, 42.001);
    s = measure(1, one, y, 16, 1);
    CHECK(s.found == 0);
    CHECK_NEAR(s.unexplained, 1, 0);
    CHECK_NEAR(s.mass_error, 1, 1e-12);
    /* Noise moves the endpoint across the limit between two maneuvers, so half of the draws are
     * left and half are straight. */
    case_start(&c, "border", 1, 1);
    case_place(c.means, 10 * cos(pi / 6), 10 * sin(pi / 6));
    case_place(c.factor, -.3 * sin(pi / 6), .3 * cos(pi / 6));
    s = measure(1, one, y, 4096, 1);
    for (int set = 0; set < 2; set++) {
        CHECK_NEAR(s.actual[set][BJ_LEFT], .5, 5 * .5 / 64);
        CHECK_NEAR(s.actual[set][BJ_LEFT] + s.actual[set][BJ_STRAIGHT], 1, 1e-9);
    }
    CHECK(s.actual[0][BJ_LEFT] != s.actual[1][BJ_LEFT]);
}

static void test_truncate(void) {
    double p[4], y[4 * ROW];
    case_start(&c, "truncate", 3, 0);
    c.weights[0] = .2, c.weights[1] = .5, c.weights[2] = .3;
    for (int m = 0; m < 3; m++) case_place(c.means + m * ROW, m, 0);
    bj_exam_truncate(p, y, 2, &c.law);
    CHECK_NEAR(p[0], .625, 1e-12);
    CHECK_NEAR(p[1], .375, 1e-12);
    CHECK(y[0] == 1 && y[ROW] == 2);
    bj_exam_truncate(p, y, 4, &c.law);
    CHECK(p[3] == 0 && y[3 * ROW] == y[0]);
    CHECK_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
}

int main(void) {
    test_points();
    test_normal();
    test_draws();
    test_identity();
    test_modes();
    test_truncate();
    return test_report("exam_scene");
}
