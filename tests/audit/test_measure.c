/* test_measure.c - tests the seven map metrics against values calculated by hand. */
#include "audit_case.h"
#include "support/test.h"

enum { K = 6, F = 60 };

/* A road along x that is 1 km long and 10 m wide. */
static const double road[][2] = {{-500, -5}, {500, -5}, {500, 5}, {-500, 5}};
static bj_drivable *areas;

typedef struct case_set {
    double p[BJ_MAX_ATOMS], y[BJ_MAX_ATOMS][F][2];
} case_set;

/* Makes a straight line at the distance `left` from the middle, one meter
 * per step. The last `off` points leave the road. */
static void drive(case_set *s, int k, double p, double left, int off) {
    s->p[k] = p;
    for (int t = 0; t < F; t++) {
        s->y[k][t][0] = t + 1;
        s->y[k][t][1] = t < F - off ? left : left + 100;
    }
}

static bj_audit_scene measure(const case_set *s, int count) {
    bj_audit_scene out;
    bj_audit_measure(&out, areas, count, F, s->p, &s->y[0][0][0]);
    CHECK(out.K == count && out.F == F);
    return out;
}

static double value(const bj_audit_scene *s, bj_audit_metric m) { return s->value[m]; }

static void test_all_inside(void) {
    static case_set s;
    /* Test three separate candidates, and one that is 0.5 m from the first. This is exactly the
     * threshold, so the two are joined. */
    drive(&s, 0, 0.4, 0, 0);
    drive(&s, 1, 0.3, 2, 0);
    drive(&s, 2, 0.2, -3, 0);
    drive(&s, 3, 0.1, 0.5, 0);
    const bj_audit_scene a = measure(&s, 4);
    CHECK_NEAR(value(&a, BJ_AUDIT_POINT_MASS), 1, 1e-15);
    CHECK_NEAR(value(&a, BJ_AUDIT_TRAJECTORY_MASS), 1, 1e-15);
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 3);
    const double h = -0.5 * log(0.5) - 0.3 * log(0.3) - 0.2 * log(0.2);
    CHECK_NEAR(value(&a, BJ_AUDIT_ENTROPY_SUPPORT), exp(h), 1e-14);
    CHECK_NEAR(value(&a, BJ_AUDIT_MASS_WEIGHTED_SUPPORT), exp(h), 1e-14);
    const double spread = 2 * (0.4 * 0.3 * 2 + 0.4 * 0.2 * 3 + 0.4 * 0.1 * 0.5 + 0.3 * 0.2 * 5 +
                               0.3 * 0.1 * 1.5 + 0.2 * 0.1 * 3.5);
    CHECK_NEAR(value(&a, BJ_AUDIT_TRAJECTORY_DIVERSITY), spread, 1e-14);
    CHECK_NEAR(value(&a, BJ_AUDIT_ENDPOINT_DIVERSITY), spread, 1e-14);
    CHECK(a.component[0] == 0 && a.component[1] == 1 && a.component[2] == 2 && a.component[3] == 0);
    CHECK(a.contained == 1 && a.inside[3] == F);
    drive(&s, 3, 0.1, 0.5 + 1e-9, 0);
    CHECK(measure(&s, 4).component[3] == 3);
}

/* Tests that 57 of 60 points count as 95 %, and 56 do not. The mass of infeasible candidates counts
 * only in point_mass. */
static void test_feasibility(void) {
    static case_set s;
    drive(&s, 0, 0.5, 0, 3);
    drive(&s, 1, 0.3, 2, 4);
    drive(&s, 2, 0.2, -3, 0);
    const bj_audit_scene a = measure(&s, 3);
    CHECK(a.inside[0] == 57 && a.inside[1] == 56 && a.inside[2] == 60);
    CHECK(a.component[0] == 0 && a.component[1] == -1 && a.component[2] == 2 && !a.contained);
    CHECK_NEAR(value(&a, BJ_AUDIT_POINT_MASS), (0.5 * 57 + 0.3 * 56 + 0.2 * 60) / 60, 1e-15);
    CHECK_NEAR(value(&a, BJ_AUDIT_TRAJECTORY_MASS), 0.7, 1e-15);
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 2);
    const double q = 5. / 7, h = -q * log(q) - (1 - q) * log(1 - q);
    CHECK_NEAR(value(&a, BJ_AUDIT_ENTROPY_SUPPORT), exp(h), 1e-14);
    CHECK_NEAR(value(&a, BJ_AUDIT_MASS_WEIGHTED_SUPPORT), 0.7 * exp(h), 1e-14);
    const double rms = sqrt((57 * 9. + 3 * 103. * 103.) / 60);
    CHECK_NEAR(value(&a, BJ_AUDIT_TRAJECTORY_DIVERSITY), 2 * 0.5 * 0.2 * rms, 1e-13);
    CHECK_NEAR(value(&a, BJ_AUDIT_ENDPOINT_DIVERSITY), 2 * 0.5 * 0.2 * 103, 1e-13);
}

/* Tests that a candidate with one point off the road is feasible, but that its scene is not
 * contained. 95 of 100 points are enough, 94 are not. */
static void test_contained(void) {
    static case_set s;
    static double y[2][100][2];
    static const double p[2] = {0.5, 0.5};
    bj_audit_scene a;
    drive(&s, 0, 0.5, 0, 0);
    drive(&s, 1, 0.5, 2, 1);
    a = measure(&s, 2);
    CHECK(!a.contained && a.inside[1] == 59 && a.component[1] == 1);
    a = measure(&s, 1);
    CHECK(a.contained);
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 100; t++) y[k][t][1] = t < 95 - k ? 0 : 100;
    bj_audit_measure(&a, areas, 2, 100, p, &y[0][0][0]);
    CHECK(a.inside[0] == 95 && a.component[0] == 0 && a.inside[1] == 94 && a.component[1] == -1);
}

/* Tests that candidates are joined through other candidates in any order, and that a component
 * counts if its weight is at least one percent. */
static void test_components(void) {
    static case_set s;
    drive(&s, 0, 0.45, 0, 0);
    drive(&s, 1, 0.4, 0.9, 0);
    drive(&s, 2, 0.01, -3, 0);    /* just enough weight */
    drive(&s, 3, 0.0099, 3, 0);   /* not enough weight */
    drive(&s, 4, 0.13, 0.45, 0);  /* bridges 0 and 1 */
    drive(&s, 5, 0.0001, 3.2, 0); /* joins candidate 3, so their weight is enough */
    bj_audit_scene a = measure(&s, 5);
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 2);
    CHECK(a.component[1] == 0 && a.component[4] == 0 && a.component[3] == 3);
    a = measure(&s, 6);
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 3 && a.component[5] == 3);
    a = measure(&s, 2); /* without the bridge */
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 2);
    for (int k = 0; k < 6; k++) drive(&s, k, 1. / 6, 0.4 * (k * 5 % 6), 0); /* a shuffled chain */
    a = measure(&s, 6);
    for (int k = 0; k < 6; k++) CHECK(a.component[k] == 0);
    CHECK_NEAR(value(&a, BJ_AUDIT_ENTROPY_SUPPORT), 1, 1e-14);
}

static void test_empty(void) {
    static case_set s;
    drive(&s, 0, 0.6, 50, 0);
    drive(&s, 1, 0.4, -50, 0);
    bj_audit_scene a = measure(&s, 2);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) CHECK(a.value[m] == 0);
    drive(&s, 0, 1, 0, 0); /* K = 1: the point model */
    a = measure(&s, 1);
    CHECK(value(&a, BJ_AUDIT_ENTROPY_SUPPORT) == 1 && value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 1);
    CHECK(value(&a, BJ_AUDIT_TRAJECTORY_DIVERSITY) == 0);
    drive(&s, 0, 0, 0, 0); /* feasible, but with zero weight, so that the feasible mass is zero */
    drive(&s, 1, 1, 50, 0);
    a = measure(&s, 2);
    CHECK(a.component[0] == 0 && value(&a, BJ_AUDIT_ENTROPY_SUPPORT) == 0);
    CHECK(value(&a, BJ_AUDIT_UNIQUE_SUPPORT) == 0 && value(&a, BJ_AUDIT_TRAJECTORY_MASS) == 0);
}

/* Tests that the order of candidates does not change the values, for BJ_MAX_ATOMS candidates. */
static void test_properties(void) {
    static case_set s, turned;
    bj_rng rng = bj_rng_seed(2);
    double sum = 0;
    for (int k = 0; k < BJ_MAX_ATOMS; k++) {
        drive(&s, k, bj_rng_uniform(&rng), case_between(&rng, -6, 6),
              (int)(6 * bj_rng_uniform(&rng)));
        sum += s.p[k];
    }
    for (int k = 0; k < BJ_MAX_ATOMS; k++) s.p[k] /= sum;
    for (int k = 0; k < BJ_MAX_ATOMS; k++) {
        turned.p[k] = s.p[BJ_MAX_ATOMS - 1 - k];
        memcpy(turned.y[k], s.y[BJ_MAX_ATOMS - 1 - k], sizeof s.y[k]);
    }
    const bj_audit_scene a = measure(&s, BJ_MAX_ATOMS), b = measure(&turned, BJ_MAX_ATOMS);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        CHECK_NEAR(a.value[m], b.value[m], 1e-12);
        CHECK(a.value[m] > 0);
    }
    for (int k = 0; k < BJ_MAX_ATOMS; k++) CHECK(a.inside[k] == b.inside[BJ_MAX_ATOMS - 1 - k]);
}

int main(void) {
    const bj_ring ring = {&road[0][0], 4};
    bj_error err = {0};
    CHECK_OK(bj_drivable_create(&areas, &err), err);
    CHECK_OK(bj_drivable_set_rings(areas, &ring, 1, BJ_AUDIT_TOLERANCE, &err), err);
    test_all_inside();
    test_feasibility();
    test_contained();
    test_components();
    test_empty();
    test_properties();
    CHECK(bj_audit_takes("vehicle") && bj_audit_takes("bus"));
    CHECK(!bj_audit_takes("cyclist") && !bj_audit_takes("VEHICLE") && !bj_audit_takes(""));
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) CHECK(bj_audit_metric_at(m).title != NULL);
    bj_drivable_free(areas);
    return test_report("measure");
}
