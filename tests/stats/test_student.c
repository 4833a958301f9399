/* test_student.c - compares quantiles of Student's t with closed forms and printed tables.
 *
 * Runs the tests when called without arguments. peer_student.py passes the argument `quantiles`, so
 * the program reads lines of the form "p degrees" and prints the quantile for each.
 */
#include <branchjepa/branchjepa.h>

#include "stats/student.h"
#include "support/test.h"

static const double pi = 3.14159265358979323846;

#define CHECK_RELATIVE(found, wanted, tolerance)                                                   \
    do {                                                                                           \
        const double found_ = (found), wanted_ = (wanted);                                         \
        CHECK_MSG(fabs(found_ - wanted_) <= (tolerance)*fabs(wanted_), "%.17g, expected %.17g",    \
                  found_, wanted_);                                                                \
    } while (0)

/* Closed forms for one, two and four degrees of freedom, as functions of the tail q = 1 - p. */
static double exact_1(double q) { return 1 / tan(pi * q); }
static double exact_2(double q) { return (1 - 2 * q) / sqrt(2 * q * (1 - q)); }
static double exact_4(double q) {
    const double a = sqrt(4 * q * (1 - q));
    return 2 * sqrt(cos(acos(a) / 3) / a - 1);
}

static void test_closed_forms(void) {
    static const double tails[] = {1e-14, 1e-9, 1e-5, 0.001, 0.005, 0.01,
                                   0.025, 0.05, 0.1,  0.2,   0.3,   0.4};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const double q = tails[i];
        CHECK_RELATIVE(bj_student_quantile(q, 1), -exact_1(q), 1e-12);
        CHECK_RELATIVE(bj_student_quantile(q, 2), -exact_2(q), 1e-12);
        CHECK_RELATIVE(bj_student_quantile(q, 4), -exact_4(q), 1e-12);
        /* In the upper tail, use 1 - p instead of q, because p is rounded. */
        const double p = 1 - q;
        CHECK_RELATIVE(bj_student_quantile(p, 2), exact_2(1 - p), 1e-12);
        CHECK_RELATIVE(bj_student_quantile(p, 4), exact_4(1 - p), 1e-12);
    }
    /* Near the median, 1 - 2 q loses all digits, so t = c / (density at 0) is used there. */
    const double c = 0x1p-30;
    CHECK_RELATIVE(bj_student_quantile(0.5 + c, 1), pi * c, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.5 + c, 2), 2 * sqrt(2) * c, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.5 - c, 4), -8.0 / 3 * c, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.5 + c, 1e9), sqrt(2 * pi) * c, 1e-9);
    CHECK(bj_student_quantile(0.5, 3) == 0);
}

/* Tests values from printed tables with three decimals, and a few values with more digits. */
static void test_tables(void) {
    static const int degrees[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 120};
    static const double at_95[] = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.860, 1.812,
                                   1.782, 1.753, 1.725, 1.708, 1.697, 1.684, 1.671, 1.658};
    static const double at_975[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.306, 2.228,
                                    2.179,  2.131, 2.086, 2.060, 2.042, 2.021, 2.000, 1.980};
    static const double at_995[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.355, 3.169,
                                    3.055,  2.947, 2.845, 2.787, 2.750, 2.704, 2.660, 2.617};
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        CHECK_NEAR(bj_student_quantile(0.95, degrees[i]), at_95[i], 0.0005001);
        CHECK_NEAR(bj_student_quantile(0.975, degrees[i]), at_975[i], 0.0005001);
        CHECK_NEAR(bj_student_quantile(0.995, degrees[i]), at_995[i], 0.0005001);
    }
    CHECK_RELATIVE(bj_student_quantile(0.975, 3), 3.1824463052837096, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.975, 9), 2.2621571627982055, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.975, 1e300), 1.959963984540054, 1e-12);
    CHECK_RELATIVE(bj_student_quantile(0.995, INFINITY), 2.5758293035489004, 1e-12);
}

/* Tests that P(|T| > t) at a quantile t is the probability from which t was computed, and that
 * there is no jump between the two methods. */
static void test_round_trip(void) {
    static const double degrees[] = {1, 1.25, 2.5, 3, 7.75, 33, 1000.5, 54321, 199999};
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        for (double p = 0.5009765625; p < 1; p += 0.01953125) {
            double outside, inside;
            const double t = bj_student_quantile(p, degrees[i]);
            bj_student_split(&outside, &inside, t, degrees[i]);
            CHECK_NEAR(outside, 2 * (1 - p), 1e-10 * (1 - p));
            CHECK_NEAR(inside, 2 * (p - 0.5), 1e-9 * (p - 0.5));
            CHECK(bj_student_quantile(1 - p, degrees[i]) == -t);
        }
    for (double p = 0.501; p < 0.9999; p += 0.02) {
        const double below = bj_student_quantile(p, BJ_STUDENT_LARGE);
        const double above = bj_student_quantile(p, nextafter(BJ_STUDENT_LARGE, 1e9));
        CHECK_RELATIVE(above, below, 1e-11);
    }
}

static void test_edges(void) {
    CHECK(isnan(bj_student_quantile(0.9, 0.99)));
    CHECK(isnan(bj_student_quantile(0.9, NAN)));
    CHECK(isnan(bj_student_quantile(NAN, 4)));
    CHECK(isnan(bj_student_quantile(-0.1, 4)));
    CHECK(isnan(bj_student_quantile(1.1, 4)));
    CHECK(bj_student_quantile(1, 4) == INFINITY);
    CHECK(bj_student_quantile(0, 4) == -INFINITY);
    CHECK_RELATIVE(bj_student_quantile(1e-300, 1), -1 / (pi * 1e-300), 1e-11);
    /* far in the tails; expected values from 40-digit arithmetic */
    CHECK_RELATIVE(bj_student_quantile(1e-300, 200001), -37.110791801464419, 1e-11);
    CHECK_RELATIVE(bj_student_quantile(1e-30, 250000), -11.465542967912419, 1e-11);
    CHECK_RELATIVE(bj_student_quantile(1e-9, 300000), -5.9979918207772008, 1e-11);
    CHECK_RELATIVE(bj_student_quantile(1e-100, 12), -622225003.26514792, 1e-11);
    CHECK_RELATIVE(bj_student_quantile(1e-20, 1234.5), -9.4275794154983412, 1e-11);
}

/* Tests that I_x(a, b) with integer a and b is a binomial tail. */
static void test_incomplete_beta(void) {
    for (int a = 1; a < 9; a++)
        for (int b = 1; b < 9; b++)
            for (double x = 0.05; x < 1; x += 0.15) {
                double tail = 0, term = pow(1 - x, a + b - 1);
                for (int k = 0; k <= a + b - 1; k++) {
                    if (k >= a) tail += term;
                    term *= (double)(a + b - 1 - k) / (k + 1) * x / (1 - x);
                }
                CHECK_RELATIVE(bj_incomplete_beta(x, 1 - x, a, b), tail, 1e-12);
            }
    CHECK(bj_incomplete_beta(0, 1, 3, 2) == 0);
    CHECK(bj_incomplete_beta(1, 0, 3, 2) == 1);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "quantiles")) {
        double p, degrees;
        while (scanf("%lf %lf", &p, &degrees) == 2)
            printf("%.17g\n", bj_student_quantile(p, degrees));
        return 0;
    }
    test_closed_forms();
    test_tables();
    test_round_trip();
    test_edges();
    test_incomplete_beta();
    return test_report("student");
}
