/* test_reconstruction.c - tests smooth L1: both regimes, the transition between them, and
 * weights. */
#include "objective_case.h"

static objective_case with_errors(const double *error, int n, double weight) {
    objective_case c = case_make(BJ_FULLSET, 1, 2, 5, n / 2, BJ_SCALES_FIXED, 1);
    c.objective.lambda_rec = weight;
    for (int i = 0; i < n; i++) {
        c.future[i] = (bj_real)(0.5 * i);
        c.rec[i] = (bj_real)(0.5 * i + error[i]);
    }
    return c;
}

int main(void) {
    const double error[] = {0, 0.5, -0.5, 1, -1, 1.5, -3, 0.25};
    const double value[] = {0, 0.125, 0.125, 0.5, 0.5, 1, 2.5, 0.03125};
    const double slope[] = {0, 0.5, -0.5, 1, -1, 1, -1, 0.25};
    double sum = 0;
    objective_case c = with_errors(error, 8, 3);
    const bj_loss loss = case_step(&c, 1, 1);
    for (int i = 0; i < 8; i++) {
        sum += value[i] / 8;
        CHECK_NEAR(c.io.drec[i], 3 * slope[i] / 8, 1e-7);
    }
    CHECK_NEAR(loss.rec, sum, 1e-12);
    CHECK_NEAR(c.io.terms[BJ_TERM_REC], sum, 1e-12);
    case_free(&c);

    c = with_errors(error, 8, 0); /* the term is reported but has no gradient */
    CHECK_NEAR(case_step(&c, 1, 1).rec, sum, 1e-12);
    for (int i = 0; i < 8; i++) CHECK(c.io.drec[i] == 0);
    case_free(&c);

    /* away from the transition, so that the finite difference is exact */
    const double smooth[] = {0.9, -0.9, 1.1, -1.1, 40, -40, 0.01, -0.01};
    c = with_errors(smooth, 8, 2);
    case_gradcheck(&c, "smooth l1", case_loss, 0);
    case_free(&c);

    c = with_errors(error, 8, 1);
    c.rec[3] = (bj_real)NAN;
    CHECK(isnan(case_step(&c, 1, 1).rec) && isnan(c.io.drec[3]));
    case_free(&c);
    return test_report("reconstruction");
}
