/* test_proxy.c - tests the map check at all thresholds (3 m, .10, .80)
 * with values calculated by hand. */
#include "audit_case.h"
#include "support/test.h"

enum { K = 3, F = 60, Q = 10 };

/* Two polylines along x, 100 m long. The second one is 20 m to the left. */
static float lines[2][Q][6];
static double p[K], y[K][F][2];

static void draw_lines(void) {
    for (int i = 0; i < 2; i++)
        for (int q = 0; q < Q; q++) {
            lines[i][q][0] = (float)(100. * q / (Q - 1));
            lines[i][q][1] = (float)(20 * i);
        }
}

/* Places the last `off` points 10 m from both lines, and all other points `left` meters from the
 * first line. */
static void drive(int k, double weight, double left, int off) {
    p[k] = weight;
    for (int t = 0; t < F; t++) {
        y[k][t][0] = 1.5 * t;
        y[k][t][1] = t < F - off ? left : 10;
    }
}

static bj_proxy measure(int count) {
    bj_proxy out;
    bj_proxy_measure(&out, &lines[0][0][0], count, Q, K, F, p, &y[0][0][0]);
    CHECK(out.K == K);
    return out;
}

int main(void) {
    draw_lines();
    drive(0, 0.5, 0, 0);
    drive(1, 0.3, 3, 0);  /* exactly 3 m away counts as on the map */
    drive(2, 0.2, 17, 0); /* 3 m from the second line */
    bj_proxy s = measure(2);
    CHECK(s.passes && s.strict && s.weighted_outside == 0);
    CHECK_NEAR(s.compliant_mass, 1, 1e-15);
    s = measure(1); /* without the second line */
    CHECK(s.outside[2] == 1 && !s.strict && !s.passes);
    CHECK_NEAR(s.weighted_outside, 0.2, 1e-15);
    drive(1, 0.3, nextafter(3, 4), 0);
    s = measure(2);
    CHECK(s.outside[1] == 1 && s.outside[0] == 0);
    drive(1, 0.3, -3.5, 0); /* below the first line */
    CHECK(measure(2).outside[1] == 1);

    /* Six of sixty points outside are a share of .10, which is allowed. Seven are too many. */
    drive(0, 0.5, 0, 6);
    drive(1, 0.3, 0, 6);
    drive(2, 0.2, 0, 0);
    s = measure(2);
    CHECK(s.outside[0] == 0.1 && s.passes && !s.strict);
    CHECK_NEAR(s.weighted_outside, 0.08, 1e-15);
    CHECK_NEAR(s.compliant_mass, 1, 1e-15);
    drive(2, 0.2, 0, 7); /* candidates with .80 of the mass comply, but the mean is above .10 */
    s = measure(2);
    CHECK_NEAR(s.compliant_mass, 0.8, 1e-15);
    CHECK(s.weighted_outside > 0.1 && !s.passes);
    drive(0, 0.5, 0, 0);
    drive(1, 0.3, 0, 0);
    CHECK(measure(2).passes); /* the same mass with fewer points outside */
    drive(1, 0.29, 0, 0);
    drive(2, 0.21, 0, 7);
    s = measure(2); /* .79 of the mass */
    CHECK(s.weighted_outside < 0.1 && !s.passes);

    /* Test points beyond the ends of a line, and a map without lines. */
    drive(0, 1, 0, 0);
    drive(1, 0, 0, 0);
    drive(2, 0, 0, 0);
    y[0][59][0] = 103;
    CHECK(measure(2).strict);
    y[0][59][0] = 103.001;
    CHECK_NEAR(measure(2).outside[0], 1. / 60, 1e-15);
    s = measure(0);
    CHECK(s.outside[0] == 1 && !s.passes && !s.strict && s.compliant_mass == 0);
    /* A polyline of length zero, as for crossings with one point, covers a disk with a radius of 3
     * m. */
    for (int q = 0; q < Q; q++) lines[0][q][0] = lines[0][q][1] = 0;
    for (int t = 0; t < F; t++) y[0][t][0] = t < 30 ? 1.8 : 1.9, y[0][t][1] = 2.4;
    CHECK(measure(1).outside[0] == 0.5);
    return test_report("proxy");
}
