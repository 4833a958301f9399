/* test_energy_score.c - tests values and gradients of full set, uniform, output-only and anchor
 * stage B. */
#include "objective_case.h"

static double plain_score(const double *pi, const double *to_target,
                          double (*between)[BJ_MAX_ATOMS], int K) {
    double score = 0;
    for (int k = 0; k < K; k++) {
        score += pi[k] * to_target[k];
        for (int l = 0; l < K; l++) score -= 0.5 * pi[k] * pi[l] * between[k][l];
    }
    return score;
}

/* Computes the loss from its definition over all pairs in double. */
static bj_loss plain_energy(const objective_case *c) {
    static double between[BJ_MAX_ATOMS][BJ_MAX_ATOMS];
    const int B = c->io.B, K = c->io.K, D = c->io.D, F = c->io.F;
    bj_loss loss = {0};
    for (int b = 0; b < B; b++) {
        double pi[BJ_MAX_ATOMS], to_target[BJ_MAX_ATOMS];
        plain_weights(pi, c, b);
        for (int k = 0; k < c->io.L; k++) {
            to_target[k] = plain_latent(case_u(c, b, k), case_z(c, b), D);
            for (int l = 0; l < c->io.L; l++)
                between[k][l] = plain_latent(case_u(c, b, k), case_u(c, b, l), D);
        }
        loss.latent += c->objective.kind == BJ_OUTPUTONLY
                           ? to_target[0] / B
                           : plain_score(pi, to_target, between, K) / B;
        if (c->objective.kind == BJ_ANCHOR_B) continue;
        for (int k = 0; k < K; k++) {
            to_target[k] = plain_block(case_y(c, b, k), case_future(c, b), F, c->objective.beta);
            for (int l = 0; l < K; l++)
                between[k][l] = plain_block(case_y(c, b, k), case_y(c, b, l), F, c->objective.beta);
        }
        loss.decoded += plain_score(pi, to_target, between, K) / B;
    }
    if (c->objective.kind != BJ_ANCHOR_B) loss.rec = plain_reconstruction(c);
    loss.total = c->objective.lambda_z * loss.latent + c->objective.lambda_y * loss.decoded +
                 c->objective.lambda_rec * loss.rec;
    return loss;
}

static void check_values(objective_case *c, const char *name) {
    const bj_loss expected = plain_energy(c), found = case_step(c, 0, c->io.B);
    const double tol = case_tolerance();
    CHECK_MSG(fabs(found.latent - expected.latent) <= tol, "%s: latent %.9g, expected %.9g", name,
              found.latent, expected.latent);
    CHECK_MSG(fabs(found.decoded - expected.decoded) <= tol, "%s: decoded %.9g, expected %.9g",
              name, found.decoded, expected.decoded);
    CHECK_MSG(fabs(found.rec - expected.rec) <= tol, "%s: rec %.9g, expected %.9g", name, found.rec,
              expected.rec);
    CHECK_MSG(fabs(found.total - expected.total) <= 4 * tol, "%s: total %.9g, expected %.9g", name,
              found.total, expected.total);
}

typedef struct setup {
    const char *name;
    bj_objective_kind kind;
    int B, K, D, F;
    double lambda_z, lambda_y, lambda_rec, beta;
    int probes;
} setup;

static void run(const setup *s, uint64_t seed) {
    objective_case c = case_make(s->kind, s->B, s->K, s->D, s->F, BJ_SCALES_FIXED, seed);
    c.objective.lambda_z = s->lambda_z;
    c.objective.lambda_y = s->lambda_y;
    c.objective.lambda_rec = s->lambda_rec;
    c.objective.beta = s->beta;
    if (s->kind == BJ_ANCHOR_B) c.io.y = c.io.rec = NULL;          /* stage B decodes nothing */
    if (s->kind != BJ_OUTPUTONLY && s->K == 1) c.io.logits = NULL; /* K = 1 has no router */
    check_values(&c, s->name);
    case_gradcheck(&c, s->name, case_loss, s->probes);
    case_check_ranges(&c, s->name);
    case_free(&c);
}

/* Tests that equal branches, and a branch equal to its target, have a zero gradient. */
static void test_equal_atoms(void) {
    objective_case c = case_make(BJ_FULLSET, 2, 4, 9, 10, BJ_SCALES_FIXED, 50);
    memcpy(c.u + c.io.ldu, c.u, (size_t)c.io.D * sizeof *c.u);
    memcpy(c.y + c.io.ldy, c.y, 2 * (size_t)c.io.F * sizeof *c.y);
    memcpy(c.u + 2 * c.io.ldu, c.z, (size_t)c.io.D * sizeof *c.u);
    memcpy(c.y + 2 * c.io.ldy, c.future, 2 * (size_t)c.io.F * sizeof *c.y);
    check_values(&c, "equal atoms");
    case_gradcheck(&c, "equal atoms", case_loss, 0);
    case_free(&c);

    c = case_make(BJ_FULLSET, 1, 3, 5, 10, BJ_SCALES_FIXED, 51); /* all branches equal the target */
    for (int k = 0; k < 3; k++) {
        memcpy(c.u + (size_t)k * c.io.ldu, c.z, (size_t)c.io.D * sizeof *c.u);
        memcpy(c.y + (size_t)k * c.io.ldy, c.future, 2 * (size_t)c.io.F * sizeof *c.y);
    }
    const bj_loss loss = case_step(&c, 1, 1);
    CHECK(loss.latent == 0 && loss.decoded == 0);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < c.io.D; i++) CHECK(c.io.du[(size_t)k * c.io.ldu + (size_t)i] == 0);
        for (int i = 0; i < 2 * c.io.F; i++) CHECK(c.io.dy[(size_t)k * c.io.ldy + (size_t)i] == 0);
        CHECK(c.io.dlogits[k] == 0);
    }
    case_free(&c);
}

/* Tests that points 5e-7 apart count as equal, and points 2e-6 apart do not. */
static void test_almost_equal(void) {
    for (int far = 0; far < 2; far++) {
        objective_case c = case_make(BJ_ANCHOR_B, 1, 1, 4, 1, BJ_SCALES_FIXED, 52);
        for (int i = 0; i < 4; i++) c.u[i] = c.z[i] = 0;
        c.u[2] = (bj_real)(far ? 2e-6 : 5e-7);
        const bj_loss loss = case_step(&c, 1, 1);
        CHECK_NEAR(loss.latent, far ? 2e-6 : 0, 1e-12);
        CHECK_NEAR(c.io.du[2], far, 1e-6);
        case_free(&c);
    }
}

/* Tests two points that are 5 apart, at distances 3 and 4 from the target, with weights 1/4 and
 * 3/4. */
static void test_by_hand(void) {
    objective_case c = case_make(BJ_ANCHOR_B, 1, 2, 2, 1, BJ_SCALES_FIXED, 1);
    const bj_real u[2][2] = {{3, 0}, {0, 4}};
    c.z[0] = c.z[1] = 0;
    for (int k = 0; k < 2; k++) memcpy(c.u + (size_t)k * c.io.ldu, u[k], sizeof u[k]);
    c.logits[0] = 0;
    c.logits[1] = (bj_real)log(3);
    const bj_loss loss = case_step(&c, 1, 1);
    CHECK_NEAR(loss.total, 0.25 * 3 + 0.75 * 4 - 0.25 * 0.75 * 5, 1e-6);
    CHECK_NEAR(c.io.du[0], 0.25 - 0.25 * 0.75 * 3 / 5, 1e-6);
    CHECK_NEAR(c.io.du[1], 0.25 * 0.75 * 4 / 5, 1e-6);
    /* d/dpi = (3 - .75*5, 4 - .25*5), through the softmax */
    CHECK_NEAR(c.io.dlogits[0], 0.25 * 0.75 * ((3 - 3.75) - (4 - 1.25)), 1e-6);
    CHECK_NEAR(c.io.dlogits[1], -c.io.dlogits[0], 1e-6);
    case_free(&c);
}

/* Tests that swapping branches 0 and 2 swaps their gradients. */
static void test_permutation(void) {
    objective_case a = case_make(BJ_FULLSET, 3, 3, 20, 10, BJ_SCALES_FIXED, 60);
    objective_case b = case_make(BJ_FULLSET, 3, 3, 20, 10, BJ_SCALES_FIXED, 60);
    for (int s = 0; s < 3; s++)
        for (int k = 0; k < 3; k++) {
            const size_t from = (size_t)(3 * s + k), to = (size_t)(3 * s + 2 - k);
            memcpy(b.u + to * b.io.ldu, a.u + from * a.io.ldu, 20 * sizeof *a.u);
            memcpy(b.y + to * b.io.ldy, a.y + from * a.io.ldy, 20 * sizeof *a.y);
            b.logits[to] = a.logits[from];
        }
    const double tol = case_tolerance();
    CHECK_NEAR(case_step(&a, 1, 3).total, case_step(&b, 1, 3).total, tol);
    for (int s = 0; s < 3; s++)
        for (int k = 0; k < 3; k++) {
            const size_t from = (size_t)(3 * s + k), to = (size_t)(3 * s + 2 - k);
            CHECK_NEAR(a.io.dlogits[from], b.io.dlogits[to], tol);
            for (size_t i = 0; i < 20; i++) {
                CHECK_NEAR(a.io.du[from * a.io.ldu + i], b.io.du[to * b.io.ldu + i], tol);
                CHECK_NEAR(a.io.dy[from * a.io.ldy + i], b.io.dy[to * b.io.ldy + i], tol);
            }
        }
    case_free(&a);
    case_free(&b);
}

/* Tests that a value that is not finite affects only the terms of its scene. */
static void test_nan_names_its_scene(void) {
    objective_case c = case_make(BJ_FULLSET, 3, 3, 9, 10, BJ_SCALES_FIXED, 70);
    c.u[4 * c.io.ldu + 8] = (bj_real)NAN;      /* scene 1 */
    c.y[8 * c.io.ldy + 3] = (bj_real)INFINITY; /* scene 2 */
    const bj_loss loss = case_step(&c, 1, 3);
    CHECK(isfinite(c.io.terms[BJ_TERM_LATENT]) && isfinite(c.io.terms[BJ_TERM_DECODED]));
    CHECK(isnan(c.io.terms[BJ_TERMS + BJ_TERM_LATENT]));
    CHECK(!isfinite(c.io.terms[2 * BJ_TERMS + BJ_TERM_DECODED]));
    CHECK(!isfinite(loss.total));
    case_free(&c);
}

/* Tests that gradient outputs may be NULL. */
static void test_no_outputs(void) {
    objective_case c = case_make(BJ_FULLSET, 2, 3, 9, 10, BJ_SCALES_FIXED, 80);
    const double total = case_step(&c, 1, 2).total;
    c.io.du = c.io.dlogits = c.io.dy = c.io.drec = c.io.dz = NULL;
    CHECK(case_step(&c, 1, 2).total == total);
    case_free(&c);
}

int main(void) {
    const setup setups[] = {
        {"full set", BJ_FULLSET, 3, 4, 9, 10, 1, 1, 1, 1, 0},
        {"wide rows", BJ_FULLSET, 2, 5, 37, 21, 1, 1, 1, 1, 0},
        {"reweighted", BJ_FULLSET, 3, 3, 17, 10, 2, .5, 3, 1, 0},
        {"beta", BJ_FULLSET, 3, 4, 9, 11, 1, 1, 1, .8, 0},
        {"decoded only", BJ_FULLSET, 2, 3, 9, 10, 0, 1, 0, 1, 0},
        {"latent only", BJ_FULLSET, 2, 3, 9, 10, 1, 0, 0, 1, 0},
        {"no reconstruction", BJ_FULLSET, 2, 3, 9, 10, 1, 1, 0, 1, 0},
        {"no decoded", BJ_FULLSET, 2, 3, 9, 10, 1, 0, 1, 1, 0},
        {"no latent", BJ_FULLSET, 2, 3, 9, 10, 0, 1, 1, 1, 0},
        {"reconstruction only", BJ_FULLSET, 2, 3, 9, 10, 0, 0, 1, 1, 0},
        {"point", BJ_FULLSET, 3, 1, 9, 10, 1, 1, 1, 1, 0},
        {"one scene", BJ_FULLSET, 1, 4, 9, 10, 1, 1, 1, 1, 0},
        {"five scenes", BJ_FULLSET, 5, 2, 9, 10, 1, 1, 1, 1, 0},
        {"more scenes than shards", BJ_FULLSET, 19, 2, 3, 2, 1, 1, 1, 1, 0},
        {"64 atoms", BJ_FULLSET, 2, 64, 9, 10, 1, 1, 1, 1, 120},
        {"one step", BJ_FULLSET, 2, 3, 1, 1, 1, 1, 1, .5, 0},
        {"uniform", BJ_UNIFORM, 3, 4, 9, 10, 1, 1, 1, 1, 0},
        {"uniform beta", BJ_UNIFORM, 3, 4, 9, 10, 2, 1, 1, .9, 0},
        {"output-only", BJ_OUTPUTONLY, 3, 4, 9, 10, 1, 1, 1, 1, 0},
        {"output-only beta", BJ_OUTPUTONLY, 3, 4, 9, 10, 1, 2, 1, .9, 0},
        {"output-only latent", BJ_OUTPUTONLY, 3, 4, 9, 10, 1, 0, 0, 1, 0},
        {"output-only decoded", BJ_OUTPUTONLY, 3, 4, 9, 10, 0, 1, 0, 1, 0},
        {"output-only one", BJ_OUTPUTONLY, 3, 1, 9, 10, 1, 1, 1, 1, 0},
        {"stage B", BJ_ANCHOR_B, 3, 4, 9, 10, 1, 0, 0, 1, 0},
        {"stage B point", BJ_ANCHOR_B, 3, 1, 9, 10, 1, 0, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) run(&setups[i], 100 + i);
    test_equal_atoms();
    test_almost_equal();
    test_by_hand();
    test_permutation();
    test_nan_names_its_scene();
    test_no_outputs();
    return test_report("energy_score");
}
