/* test_number.c - compares the elementary functions with the C library, and tests the random
 * numbers. */
#include "support/test.h"
#include "world/number.h"

static void test_functions(void) {
    bj_rng rng = bj_rng_seed(1);
    double worst[5] = {0};
    for (int i = 0; i < 200000; i++) {
        const double x = bj_world_uniform(&rng, -60, 60), y = bj_world_uniform(&rng, -3, 3);
        double s, c;
        bj_world_sincos(&s, &c, x);
        worst[0] = fmax(worst[0], fmax(fabs(s - sin(x)), fabs(c - cos(x))));
        worst[1] = fmax(worst[1], fabs(bj_world_atan2(x, y) - atan2(x, y)));
        worst[2] = fmax(worst[2], fabs(bj_world_exp(x) / exp(x) - 1));
        const double positive = exp(x / 3);
        worst[3] = fmax(worst[3], fabs(bj_world_log(positive) - log(positive)));
        const double wrapped = bj_world_wrap(x);
        worst[4] = fmax(worst[4], fabs(sin(wrapped) - sin(x)));
        CHECK(wrapped > -BJ_PI && wrapped <= BJ_PI);
    }
    CHECK_NEAR(worst[0], 0, 4e-16);
    CHECK_NEAR(worst[1], 0, 1e-15);
    CHECK_NEAR(worst[2], 0, 1e-15);
    CHECK_NEAR(worst[3], 0, 1e-14);
    CHECK_NEAR(worst[4], 0, 1e-14);
}

static void test_special(void) {
    CHECK(bj_world_atan2(0, 0) == 0);
    CHECK(bj_world_atan2(0, 1) == 0);
    CHECK_NEAR(bj_world_atan2(0, -1), BJ_PI, 0);
    CHECK_NEAR(bj_world_atan2(-1, 0), -BJ_PI / 2, 0);
    CHECK(bj_world_exp(0) == 1);
    CHECK(bj_world_exp(-1000) == 0);
    CHECK(bj_world_log(1) == 0);
    CHECK_NEAR(bj_world_wrap(BJ_PI), BJ_PI, 0);
    CHECK_NEAR(bj_world_wrap(-BJ_PI), BJ_PI, 0);
    CHECK(bj_world_cents(12.344999) == 12.34);
    CHECK(bj_world_cents(-0.125) == -0.12);
    CHECK(bj_world_smooth(-1) == 0);
    CHECK(bj_world_smooth(0.5) == 0.5);
    CHECK(bj_world_smooth(2) == 1);
}

/* Tests mean, variance and fourth moment. The bounds are at least five standard errors. */
static void test_random(void) {
    enum { N = 400000 };
    bj_rng rng = bj_rng_seed(7);
    double normal[3] = {0}, jitter[3] = {0}, product = 0;
    int counts[5] = {0};
    for (int i = 0; i < N; i++) {
        const double x = bj_world_normal(&rng);
        double pair[2];
        bj_world_jitter2(pair, &rng);
        normal[0] += x, normal[1] += x * x, normal[2] += x * x * x * x;
        jitter[0] += pair[0], jitter[1] += pair[1] * pair[1];
        jitter[2] += pair[0] * pair[0] * pair[0] * pair[0];
        product += pair[0] * pair[1];
        counts[bj_world_integer(&rng, -2, 2) + 2]++;
    }
    const double error = 5 / sqrt(N);
    CHECK_NEAR(normal[0] / N, 0, error);
    CHECK_NEAR(normal[1] / N, 1, 1.5 * error);
    CHECK_NEAR(normal[2] / N, 3, 10 * error);
    CHECK_NEAR(jitter[0] / N, 0, error);
    CHECK_NEAR(jitter[1] / N, 1, 1.3 * error);
    CHECK_NEAR(jitter[2] / N, 3 - 1.2 / 4, 6 * error); /* excess kurtosis -1.2 / 4 */
    CHECK_NEAR(product / N, 0, error);
    for (int k = 0; k < 5; k++) CHECK_NEAR((double)counts[k] / N, 0.2, 0.4 * error);
}

static void test_hash(void) {
    CHECK(bj_world_hash(1, 2, 3, 4) == bj_world_hash(1, 2, 3, 4));
    CHECK(bj_world_hash(1, 2, 3, 4) != bj_world_hash(2, 1, 3, 4));
    CHECK(bj_world_hash(1, 2, 3, 4) != bj_world_hash(1, 2, 4, 3));
    CHECK(bj_world_hash(0, 0, 0, 1) != bj_world_hash(0, 0, 1, 0));
    CHECK(bj_world_hash_text("train") != bj_world_hash_text("val"));
}

int main(void) {
    test_functions();
    test_special();
    test_random();
    test_hash();
    return test_report("world.number");
}
