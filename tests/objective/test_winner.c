/* test_winner.c - tests specialization, soft-WTA and partial Sinkhorn: values, plans and gradients.
 *
 * The gradient treats plan and label as constants, so finite differences use a reference loss in
 * which plan and label keep their values from the point where the gradient was computed.
 */
#include "objective_case.h"

/* Fills c->plan and c->label from their definition. Sinkhorn computes the potentials of both
 * sides. */
static void freeze(objective_case *c) {
    const bj_objective *o = &c->objective;
    const int B = c->io.B, K = c->io.K;
    double *cost = malloc(sizeof *cost * (size_t)(B * K)), *u = malloc(sizeof *u * (size_t)B);
    double v[BJ_MAX_ATOMS] = {0}, scaled[BJ_MAX_ATOMS];
    if (!cost || !u) exit(1);
    for (int b = 0; b < B; b++) {
        int winner = 0;
        for (int k = 0; k < K; k++) {
            cost[b * K + k] = plain_block(case_y(c, b, k), case_future(c, b), c->io.F, o->beta);
            if (cost[b * K + k] < cost[b * K + winner]) winner = k;
            scaled[k] = -cost[b * K + k] / o->tau;
        }
        for (int k = 0; k < K; k++) c->label[b * K + k] = c->plan[b * K + k] = k == winner;
        if (o->kind == BJ_SOFTWTA) {
            plain_softmax(c->plan + b * K, scaled, K);
            memcpy(c->label + b * K, c->plan + b * K, (size_t)K * sizeof(double));
        }
    }
    for (int i = 0; i < o->sinkhorn_iters && o->kind == BJ_SINKHORN; i++) {
        for (int b = 0; b < B; b++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += exp(v[k] - cost[b * K + k] / o->eps);
            u[b] = -log(B) - log(sum);
        }
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int b = 0; b < B; b++) sum += exp(u[b] - cost[b * K + k] / o->eps);
            v[k] = -log(K) - log(sum);
        }
    }
    for (int b = 0; b < B && o->kind == BJ_SINKHORN; b++) {
        double row = 0;
        for (int k = 0; k < K; k++) row += exp(u[b] + v[k] - cost[b * K + k] / o->eps);
        for (int k = 0; k < K; k++)
            c->plan[b * K + k] = (1 - o->rho) * c->plan[b * K + k] +
                                 o->rho * exp(u[b] + v[k] - cost[b * K + k] / o->eps) / row;
    }
    free(cost);
    free(u);
}

static bj_loss frozen(const objective_case *c) {
    const int B = c->io.B, K = c->io.K;
    bj_loss loss = {.rec = plain_reconstruction(c)};
    for (int b = 0; b < B; b++) {
        double pi[BJ_MAX_ATOMS];
        plain_weights(pi, c, b);
        for (int k = 0; k < K; k++) {
            const double p = c->plan[b * K + k] / B, q = c->label[b * K + k] / B;
            loss.latent += p * plain_latent(case_u(c, b, k), case_z(c, b), c->io.D);
            loss.decoded +=
                p * plain_block(case_y(c, b, k), case_future(c, b), c->io.F, c->objective.beta);
            loss.router -= q * log(pi[k]);
        }
    }
    loss.total = c->objective.lambda_z * loss.latent + c->objective.lambda_y * loss.decoded +
                 c->objective.lambda_rec * loss.rec + c->objective.lambda_router * loss.router;
    return loss;
}

static double frozen_loss(void *context) { return frozen(context).total; }

typedef struct setup {
    const char *name;
    int B, K, D, F;
    double lambda_z, lambda_y, lambda_rec, lambda_router, beta, tau, rho, eps;
    int probes;
} setup;

static void run(const setup *s, bj_objective_kind kind, uint64_t seed) {
    char name[80];
    snprintf(name, sizeof name, "%s, %s", bj_objective_name(kind), s->name);
    objective_case c = case_make(kind, s->B, s->K, s->D, s->F, BJ_SCALES_FIXED, seed);
    c.objective.lambda_z = s->lambda_z;
    c.objective.lambda_y = s->lambda_y;
    c.objective.lambda_rec = s->lambda_rec;
    c.objective.lambda_router = s->lambda_router;
    c.objective.beta = s->beta;
    c.objective.tau = s->tau;
    c.objective.rho = s->rho;
    c.objective.eps = s->eps;
    if (s->K == 1) c.io.logits = NULL;
    freeze(&c);
    const bj_loss expected = frozen(&c), found = case_step(&c, 0, 1);
    const double tol = sizeof(bj_real) == sizeof(double) ? 1e-11 : 2e-5;
    CHECK_MSG(fabs(found.latent - expected.latent) <= tol, "%s: latent %.9g, expected %.9g", name,
              found.latent, expected.latent);
    CHECK_MSG(fabs(found.decoded - expected.decoded) <= tol, "%s: decoded %.9g, expected %.9g",
              name, found.decoded, expected.decoded);
    CHECK_MSG(fabs(found.router - expected.router) <= tol, "%s: router %.9g, expected %.9g", name,
              found.router, expected.router);
    CHECK_MSG(fabs(found.total - expected.total) <= 5 * tol, "%s: total %.9g, expected %.9g", name,
              found.total, expected.total);
    case_gradcheck(&c, name, frozen_loss, s->probes);
    case_check_ranges(&c, name);
    case_free(&c);
}

static int row_is_zero(const bj_real *x, int n) {
    for (int i = 0; i < n; i++)
        if (x[i] != 0) return 0;
    return 1;
}

/* Tests that if branches 1 and 2 are equally close and closest, branch 1 wins and is the only one
 * with a gradient. */
static void test_tie(void) {
    objective_case c = case_make(BJ_SPECIALIZATION, 1, 4, 9, 10, BJ_SCALES_FIXED, 7);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 20; i++)
            c.y[(size_t)k * c.io.ldy + (size_t)i] =
                c.future[i] + (bj_real)(k == 1 || k == 2 ? 1 : 2); /* equal entries give exact
                                                                      distances */
    case_step(&c, 1, 1);
    for (int k = 0; k < 4; k++) {
        CHECK(row_is_zero(c.io.du + (size_t)k * c.io.ldu, c.io.D) == (k != 1));
        CHECK(row_is_zero(c.io.dy + (size_t)k * c.io.ldy, 20) == (k != 1));
        CHECK((c.io.dlogits[k] < 0) == (k == 1));
    }
    case_free(&c);
}

/* Tests that a winner that equals its target has no gradient and causes no division by zero. */
static void test_winner_on_target(void) {
    const bj_objective_kind kinds[] = {BJ_SPECIALIZATION, BJ_SOFTWTA, BJ_SINKHORN};
    for (int i = 0; i < 3; i++) {
        objective_case c = case_make(kinds[i], 2, 3, 9, 10, BJ_SCALES_FIXED, 8);
        memcpy(c.y + c.io.ldy, c.future, 20 * sizeof *c.y);
        memcpy(c.u + c.io.ldu, c.z, 9 * sizeof *c.u);
        const bj_loss loss = case_step(&c, 1, 2);
        CHECK(isfinite(loss.total));
        CHECK(row_is_zero(c.io.du + c.io.ldu, 9) && row_is_zero(c.io.dy + c.io.ldy, 20));
        case_free(&c);
    }
}

/* Tests that a small tau gives the same plan as specialization, and a large tau gives a uniform
 * plan. */
static void test_temperature(void) {
    objective_case c = case_make(BJ_SOFTWTA, 2, 3, 9, 10, BJ_SCALES_FIXED, 9);
    objective_case hard = case_make(BJ_SPECIALIZATION, 2, 3, 9, 10, BJ_SCALES_FIXED, 9);
    c.objective.tau = 1e-6;
    const double total = case_step(&hard, 0, 2).total;
    CHECK_NEAR(case_step(&c, 0, 2).total, total, 1e-6);
    c.objective.tau = 1e9;
    CHECK(fabs(case_step(&c, 0, 2).total - total) > 0.01);
    for (int b = 0; b < 2; b++) {
        double mean = 0;
        for (int k = 0; k < 3; k++)
            mean += plain_block(case_y(&c, b, k), case_future(&c, b), 10, 1) / 3;
        CHECK_NEAR(c.io.terms[b * BJ_TERMS + BJ_TERM_DECODED], mean, 1e-5);
    }
    case_free(&c);
    case_free(&hard);
}

int main(void) {
    const bj_objective_kind kinds[] = {BJ_SPECIALIZATION, BJ_SOFTWTA, BJ_SINKHORN};
    const setup setups[] = {
        {"default", 3, 4, 9, 10, 1, 1, 1, 1, 1, .25, .5, .1, 0},
        {"softer", 4, 3, 9, 10, 1, 1, 1, 1, 1, 1.5, .8, 1, 0},
        {"reweighted", 3, 3, 17, 10, 2, .5, 3, .3, 1, .5, .5, .5, 0},
        {"beta", 3, 4, 9, 11, 1, 1, 1, 1, .8, .5, .5, .5, 0},
        {"no router", 3, 3, 9, 10, 1, 1, 1, 0, 1, .5, .5, .5, 0},
        {"router only", 3, 3, 9, 10, 0, 0, 0, 1, 1, .5, .5, .5, 0},
        {"latent only", 3, 3, 9, 10, 1, 0, 0, 0, 1, .5, .5, .5, 0},
        {"decoded only", 3, 3, 9, 10, 0, 1, 0, 0, 1, .5, .5, .5, 0},
        {"no latent", 3, 3, 9, 10, 0, 1, 1, 1, 1, .5, .5, .5, 0},
        {"no decoded", 3, 3, 9, 10, 1, 0, 1, 1, 1, .5, .5, .5, 0},
        {"no reconstruction", 3, 3, 9, 10, 1, 1, 0, 1, 1, .5, .5, .5, 0},
        {"one branch", 3, 1, 9, 10, 1, 1, 1, 1, 1, .5, .5, .5, 0},
        {"one scene", 1, 4, 9, 10, 1, 1, 1, 1, 1, .5, .5, .5, 0},
        {"five scenes", 5, 2, 9, 10, 1, 1, 1, 1, 1, .5, .5, .5, 0},
        {"more scenes than shards", 19, 2, 3, 2, 1, 1, 1, 1, 1, .5, .5, .5, 0},
        {"64 atoms", 2, 64, 9, 10, 1, 1, 1, 1, 1, .5, .5, .5, 150},
    };
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
            run(&setups[i], kinds[k], 200 + i);
    test_tie();
    test_winner_on_target();
    test_temperature();
    return test_report("winner");
}
