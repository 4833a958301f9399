/* test_anchor.c - tests values and gradients of the variance and rank floors of stage A. */
#include "objective_case.h"

/* Computes the loss from its definition in double. */
static bj_loss plain_anchor(const objective_case *c) {
    const int B = c->io.B, D = c->io.D;
    const bj_objective *o = &c->objective;
    double *x = malloc(sizeof *x * (size_t)(B * D)), trace = 0, squares = 0;
    bj_loss loss = {.rec = plain_reconstruction(c)};
    if (!x) exit(1);
    for (int d = 0; d < D; d++) {
        double mean = 0, var = 0;
        for (int b = 0; b < B; b++) mean += (double)case_z(c, b)[d] / B;
        for (int b = 0; b < B; b++) {
            x[b * D + d] = case_z(c, b)[d] - mean;
            var += x[b * D + d] * x[b * D + d] / B;
        }
        loss.variance += fmax(0, o->variance_floor - sqrt(var + 1e-4)) / D;
        trace += var;
    }
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
            double cov = 0;
            for (int b = 0; b < B; b++) cov += x[b * D + i] * x[b * D + j] / B;
            squares += cov * cov;
        }
    free(x);
    loss.participation = squares > 0 ? trace * trace / squares : 0;
    loss.rank = fmax(0, o->rank_floor - loss.participation) / o->rank_floor;
    loss.total = o->lambda_rec * loss.rec + loss.variance + o->rank_weight * loss.rank;
    return loss;
}

/* Moves the latents toward the first one. A small spread is below both floors. */
static void shrink(objective_case *c, double spread) {
    for (int b = 1; b < c->io.B; b++)
        for (int d = 0; d < c->io.D; d++) {
            bj_real *z = c->z + (size_t)b * c->io.ldu + (size_t)d;
            *z = (bj_real)(c->z[d] + spread * (*z - c->z[d]));
        }
}

typedef struct setup {
    const char *name;
    int B, D;
    double spread, lambda_rec, variance_floor, rank_floor, rank_weight;
    int probes;
} setup;

static void run(const setup *s, uint64_t seed) {
    objective_case c = case_make(BJ_ANCHOR_A, s->B, 1, s->D, 5, BJ_SCALES_FIXED, seed);
    shrink(&c, s->spread);
    c.io.u = c.io.y = c.io.logits = NULL; /* stage A makes no forecast */
    c.objective.lambda_rec = s->lambda_rec;
    c.objective.variance_floor = s->variance_floor;
    c.objective.rank_floor = s->rank_floor;
    c.objective.rank_weight = s->rank_weight;
    const bj_loss expected = plain_anchor(&c), found = case_step(&c, 0, 1);
    const double tol = case_tolerance();
    CHECK_MSG(fabs(found.variance - expected.variance) <= tol, "%s: variance %.9g, expected %.9g",
              s->name, found.variance, expected.variance);
    CHECK_MSG(fabs(found.participation - expected.participation) <= tol * expected.participation,
              "%s: participation %.9g, expected %.9g", s->name, found.participation,
              expected.participation);
    CHECK_MSG(fabs(found.rank - expected.rank) <= tol, "%s: rank %.9g, expected %.9g", s->name,
              found.rank, expected.rank);
    CHECK_MSG(fabs(found.total - expected.total) <= tol, "%s: total %.9g, expected %.9g", s->name,
              found.total, expected.total);
    case_gradcheck(&c, s->name, case_loss, s->probes);
    case_check_ranges(&c, s->name);
    case_free(&c);
}

/* Tests latents +e_i and -e_i, for which C = I / D, the participation is D and every variance is 1
 * / D. */
static void test_known_rank(void) {
    enum { D = 6 };
    objective_case c = case_make(BJ_ANCHOR_A, 2 * D, 1, D, 5, BJ_SCALES_FIXED, 1);
    for (int b = 0; b < 2 * D; b++)
        for (int d = 0; d < D; d++)
            c.z[(size_t)b * c.io.ldu + (size_t)d] = (bj_real)(d != b / 2 ? 0 : b % 2 ? -1 : 1);
    bj_loss loss = case_step(&c, 1, 2 * D);
    CHECK_NEAR(loss.participation, D, 1e-5);
    CHECK_NEAR(loss.rank, (8.0 - D) / 8, 1e-6);
    CHECK(loss.variance == 0);
    c.objective.rank_floor = 5; /* both floors are satisfied, so the gradient is zero */
    loss = case_step(&c, 1, 2 * D);
    CHECK(loss.rank == 0);
    for (int b = 0; b < 2 * D; b++)
        for (int d = 0; d < D; d++) CHECK(c.io.dz[(size_t)b * c.io.ldu + (size_t)d] == 0);
    case_free(&c);
}

/* Tests equal latents and a single latent, which have no spread and a zero gradient. */
static void test_no_spread(void) {
    for (int B = 1; B <= 3; B += 2) {
        objective_case c = case_make(BJ_ANCHOR_A, B, 1, 7, 5, BJ_SCALES_FIXED, 2);
        shrink(&c, 0);
        for (int i = 0; i < 7; i++) /* use values whose means are exact, so that the differences are
                                       exactly zero */
            for (int b = 0; b < B; b++) c.z[(size_t)b * c.io.ldu + (size_t)i] = (bj_real)0.25;
        const bj_loss loss = case_step(&c, 1, B);
        CHECK_NEAR(loss.variance, 0.02 - 0.01, 1e-12);
        CHECK(loss.participation == 0 && loss.rank == 1);
        CHECK(isfinite(loss.total));
        for (int b = 0; b < B; b++)
            for (int i = 0; i < 7; i++) CHECK(c.io.dz[(size_t)b * c.io.ldu + (size_t)i] == 0);
        case_free(&c);
    }
}

static void test_nan(void) {
    objective_case c = case_make(BJ_ANCHOR_A, 4, 1, 7, 5, BJ_SCALES_FIXED, 3);
    c.z[2] = (bj_real)NAN;
    CHECK(isnan(case_step(&c, 1, 4).total));
    case_free(&c);
}

int main(void) {
    const setup setups[] = {
        {"both floors", 6, 9, 0.05, 1, .02, 8, .25, 0},
        {"rank only", 6, 9, 1, 1, .02, 8, .25, 0},
        {"variance only", 12, 9, 0.02, 1, .02, 1.5, .25, 0},
        {"no rank weight", 6, 9, 0.05, 1, .02, 8, 0, 0},
        {"floors only", 6, 9, 0.05, 0, .02, 8, .25, 0},
        {"other floors", 6, 9, 0.3, 2, .1, 20, 3, 0},
        {"several blocks", 7, 70, 0.3, 1, .05, 8, .25, 100},
        {"five scenes", 5, 6, 0.05, 1, .02, 8, .25, 0},
        {"two scenes", 2, 6, 0.05, 1, .02, 8, .25, 0},
        {"more scenes than shards", 83, 5, 0.05, 1, .02, 8, .25, 100},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) run(&setups[i], 400 + i);
    test_known_rank();
    test_no_spread();
    test_nan();
    return test_report("anchor");
}
