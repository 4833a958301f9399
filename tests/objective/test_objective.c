/* test_objective.c - tests names, defaults, rejected settings, which parts have a gradient, and the
 * weighted total. */
#include "objective_case.h"

static void test_names(void) {
    const char *names[] = {"fullset", "uniform",    "specialization", "softwta", "sinkhorn",
                           "mdn",     "outputonly", "anchor_a",       "anchor_b"};
    bj_error err = {0};
    for (int i = 0; i < 9; i++) {
        bj_objective_kind kind = BJ_FULLSET;
        CHECK(strcmp(bj_objective_name((bj_objective_kind)i), names[i]) == 0);
        CHECK_OK(bj_objective_find(&kind, names[i], &err), err);
        CHECK((int)kind == i);
    }
    bj_objective_kind kind = BJ_MDN;
    CHECK(bj_objective_find(&kind, "fulset", &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "fulset");
    CHECK_CONTAINS(err.message, "softwta");
    CHECK(kind == BJ_MDN);
    CHECK(bj_objective_find(&kind, "", NULL) == BJ_EARG);
    CHECK(strcmp(bj_objective_name((bj_objective_kind)99), "unknown objective") == 0);
}

static bj_arch arch_for(bj_objective_kind kind, int K, bj_scales scales) {
    return (bj_arch){.kind = kind == BJ_OUTPUTONLY ? BJ_MODEL_OUTPUT_ONLY : BJ_MODEL_BRANCH,
                     .scales = scales,
                     .atoms = K};
}

static void test_defaults(void) {
    bj_error err = {0};
    for (int i = 0; i < 9; i++) {
        const bj_objective o = bj_objective_default((bj_objective_kind)i);
        const bj_arch arch = arch_for(o.kind, 6, BJ_SCALES_FIXED);
        CHECK((int)o.kind == i);
        CHECK_OK(bj_objective_check(&o, &arch, &err), err);
        CHECK(o.tau == 0.25 && o.rho == 0.5 && o.eps == 0.1 && o.sinkhorn_iters == 50);
        CHECK(o.sigma_z == 0.5 && o.sigma_y == 4 && o.usage_kl == 0 && o.beta == 1);
        CHECK(o.variance_floor == 0.02 && o.rank_floor == 8 && o.rank_weight == 0.25);
        CHECK(o.lambda_z == 1 && o.lambda_router == 1);
        CHECK(o.lambda_y == (o.kind != BJ_ANCHOR_B) && o.lambda_rec == (o.kind != BJ_ANCHOR_B));
    }
}

/* Checks that the objective is rejected with a message that contains the field and its value. */
static void refused(const bj_objective *o, const bj_arch *arch, const char *field,
                    const char *found) {
    bj_error err = {0};
    CHECK_MSG(bj_objective_check(o, arch, &err) == BJ_EARG, "%s accepted", field);
    CHECK_CONTAINS(err.message, field);
    CHECK_CONTAINS(err.message, found);
    CHECK_CONTAINS(err.message, "expected");
    CHECK(bj_objective_check(o, arch, NULL) == BJ_EARG);
}

static void test_refusals(void) {
    const bj_objective good = bj_objective_default(BJ_FULLSET);
    const bj_arch arch = arch_for(BJ_FULLSET, 6, BJ_SCALES_FIXED);
    bj_objective o = good;
#define REFUSE(field, value, found)                                                                \
    do {                                                                                           \
        o = good;                                                                                  \
        o.field = (value);                                                                         \
        refused(&o, &arch, #field, (found));                                                       \
    } while (0)
    REFUSE(lambda_z, -1, "-1");
    REFUSE(lambda_y, NAN, "nan");
    REFUSE(lambda_rec, INFINITY, "inf");
    REFUSE(lambda_router, -0.5, "-0.5");
    REFUSE(beta, 0, "0");
    REFUSE(beta, 1.5, "1.5");
    REFUSE(beta, -0.1, "-0.1");
    REFUSE(tau, 0, "0");
    REFUSE(rho, 1.25, "1.25");
    REFUSE(rho, -0.25, "-0.25");
    REFUSE(eps, -2, "-2");
    REFUSE(sinkhorn_iters, 0, "0");
    REFUSE(sigma_z, 0, "0");
    REFUSE(sigma_y, -4, "-4");
    REFUSE(usage_kl, -0.01, "-0.01");
    REFUSE(variance_floor, -1, "-1");
    REFUSE(rank_floor, 0, "0");
    REFUSE(rank_weight, NAN, "nan");
#undef REFUSE
    o = good;
    o.lambda_z = o.lambda_y = o.lambda_rec = 0;
    refused(&o, &arch, "lambda_z", "no term is left");
    o.kind = BJ_SOFTWTA; /* the router term remains */
    CHECK(bj_objective_check(&o, &arch, NULL) == BJ_OK);
    o.kind = BJ_MDN;
    refused(&o, &arch, "mdn", "no term is left");
    o.usage_kl = 0.01;
    CHECK(bj_objective_check(&o, &arch, NULL) == BJ_OK);
    o = bj_objective_default(BJ_ANCHOR_B); /* only the latent score is used */
    o.lambda_z = 0;
    o.lambda_y = o.lambda_rec = 1;
    refused(&o, &arch, "anchor_b", "no term is left");
    o = bj_objective_default(BJ_ANCHOR_A);
    o.lambda_rec = o.variance_floor = o.rank_weight = 0;
    refused(&o, &arch, "anchor_a", "no term is left");

    const bj_arch control = arch_for(BJ_OUTPUTONLY, 6, BJ_SCALES_FIXED);
    refused(&good, &control, "fullset", "output-only");
    o = bj_objective_default(BJ_OUTPUTONLY);
    refused(&o, &arch, "outputonly", "branch");
    const bj_arch learned = arch_for(BJ_FULLSET, 6, BJ_SCALES_GLOBAL);
    refused(&good, &learned, "scales", "global");
    o = bj_objective_default(BJ_MDN);
    CHECK(bj_objective_check(&o, &learned, NULL) == BJ_OK);
    o.kind = (bj_objective_kind)42;
    refused(&o, &arch, "kind", "42");
    CHECK(bj_objective_check(NULL, &arch, NULL) == BJ_EARG);
    CHECK(bj_objective_check(&good, NULL, NULL) == BJ_EARG);
}

static void test_reach(void) {
    enum {
        E = BJ_REACH_ENCODER,
        A = BJ_REACH_ATOMS,
        R = BJ_REACH_ROUTER,
        D = BJ_REACH_DECODER,
        X = BJ_REACH_RESIDUAL,
        Z = BJ_REACH_SCALE_Z,
        Y = BJ_REACH_SCALE_Y
    };
    static const struct {
        bj_objective_kind kind;
        int K;
        bj_scales scales;
        double z, y, rec, router, usage;
        unsigned reach;
    } rows[] = {
        /* clang-format off */
        {BJ_FULLSET, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | R | D},
        {BJ_FULLSET, 6, BJ_SCALES_FIXED, 1, 0, 0, 1, 0, E | A | R},
        {BJ_FULLSET, 6, BJ_SCALES_FIXED, 0, 1, 0, 1, 0, E | A | R | D},
        {BJ_FULLSET, 6, BJ_SCALES_FIXED, 0, 0, 1, 1, 0, D},
        {BJ_FULLSET, 1, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | D},
        {BJ_UNIFORM, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | D},
        {BJ_UNIFORM, 6, BJ_SCALES_FIXED, 1, 0, 0, 1, 0, E | A},
        {BJ_OUTPUTONLY, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | R | D | X},
        {BJ_OUTPUTONLY, 6, BJ_SCALES_FIXED, 1, 0, 1, 1, 0, E | A | D},
        {BJ_OUTPUTONLY, 6, BJ_SCALES_FIXED, 1, 0, 0, 1, 0, E | A},
        {BJ_OUTPUTONLY, 6, BJ_SCALES_FIXED, 0, 0, 1, 1, 0, D},
        {BJ_SPECIALIZATION, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | R | D},
        {BJ_SOFTWTA, 6, BJ_SCALES_FIXED, 1, 1, 1, 0, 0, E | A | D},
        {BJ_SINKHORN, 6, BJ_SCALES_FIXED, 0, 0, 0, 1, 0, E | R},
        {BJ_SINKHORN, 1, BJ_SCALES_FIXED, 0, 0, 1, 1, 0, D},
        {BJ_MDN, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | R | D},
        {BJ_MDN, 6, BJ_SCALES_GLOBAL, 1, 1, 1, 1, 0, E | A | R | D | Z | Y},
        {BJ_MDN, 6, BJ_SCALES_COMPONENT, 1, 0, 0, 1, 0, E | A | R | Z},
        {BJ_MDN, 6, BJ_SCALES_COMPONENT, 0, 1, 0, 1, 0, E | A | R | D | Y},
        {BJ_MDN, 6, BJ_SCALES_GLOBAL, 0, 0, 1, 1, .5, E | R | D},
        {BJ_MDN, 1, BJ_SCALES_FIXED, 0, 0, 1, 1, .5, D},
        {BJ_ANCHOR_A, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | D},
        {BJ_ANCHOR_B, 6, BJ_SCALES_FIXED, 1, 1, 1, 1, 0, E | A | R},
        {BJ_ANCHOR_B, 1, BJ_SCALES_FIXED, 1, 0, 0, 1, 0, E | A},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bj_objective o = bj_objective_default(rows[i].kind);
        const bj_arch arch = arch_for(rows[i].kind, rows[i].K, rows[i].scales);
        o.lambda_z = rows[i].z;
        o.lambda_y = rows[i].y;
        o.lambda_rec = rows[i].rec;
        o.lambda_router = rows[i].router;
        o.usage_kl = rows[i].usage;
        CHECK_MSG(bj_objective_reach(&o, &arch) == rows[i].reach, "row %d: %u, expected %u", (int)i,
                  bj_objective_reach(&o, &arch), rows[i].reach);
    }
}

static void test_coupled(void) {
    for (int i = 0; i < 9; i++) {
        const bj_objective o = bj_objective_default((bj_objective_kind)i);
        CHECK(bj_objective_is_coupled(&o) == (i == BJ_SINKHORN || i == BJ_ANCHOR_A));
        CHECK((bj_objective_moments_size(&o, 4, 8) > 0) == (i == BJ_ANCHOR_A));
    }
}

/* Tests that a weight of zero removes its term from the total, even if the term is NaN. */
static void test_zero_weight(void) {
    objective_case c = case_make(BJ_FULLSET, 2, 3, 9, 10, BJ_SCALES_FIXED, 5);
    c.objective.lambda_rec = 0;
    c.rec[0] = (bj_real)NAN;
    const bj_loss loss = case_step(&c, 1, 2);
    CHECK(isnan(loss.rec) && isfinite(loss.total));
    CHECK_NEAR(loss.total, loss.latent + loss.decoded, 1e-12);
    case_free(&c);
}

/* Tests that time weights are beta^t divided by their sum. */
static void test_time_weights(void) {
    objective_case c = case_make(BJ_FULLSET, 1, 2, 5, 4, BJ_SCALES_FIXED, 6);
    c.objective.beta = 0.5;
    bj_objective_begin(&c.objective, &c.io);
    for (int t = 0; t < 4; t++) CHECK_NEAR(c.io.time_weight[t], pow(0.5, t) / 1.875, 1e-15);
    case_free(&c);
}

int main(void) {
    test_names();
    test_defaults();
    test_refusals();
    test_reach();
    test_coupled();
    test_zero_weight();
    test_time_weights();
    return test_report("objective");
}
