/* test_mixture.c - tests mixture density: values, gradients of points, router and scales, and the
 * usage penalty. */
#include "objective_case.h"
#include "objective/parts.h"

/* Returns log(pi_k N(x; t, s)) from its definition. */
static double plain_log_density(double log_pi, const bj_real *x, const bj_real *t, int n,
                                const bj_real *log_scale, int each, int k, double sigma) {
    double q = log_pi - 0.5 * n * log(2 * 3.14159265358979323846);
    for (int i = 0; i < n; i++) {
        const double s = !log_scale ? log(sigma) : log_scale[each ? k * n + i : 0];
        const double e = ((double)x[i] - t[i]) / exp(s);
        q -= 0.5 * e * e + s;
    }
    return q;
}

static double plain_lse(const double *x, int n) {
    double max = x[0], sum = 0;
    for (int i = 1; i < n; i++) max = fmax(max, x[i]);
    for (int i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

static bj_loss plain_mixture(const objective_case *c) {
    const int B = c->io.B, K = c->io.K, each = c->io.scales == BJ_SCALES_COMPONENT;
    const bj_objective *o = &c->objective;
    double usage[BJ_MAX_ATOMS] = {0};
    bj_loss loss = {.rec = plain_reconstruction(c)};
    for (int b = 0; b < B; b++) {
        double pi[BJ_MAX_ATOMS], z[BJ_MAX_ATOMS] = {0}, y[BJ_MAX_ATOMS] = {0};
        plain_weights(pi, c, b);
        for (int k = 0; k < K; k++) {
            usage[k] += pi[k] / B;
            z[k] = plain_log_density(log(pi[k]), case_u(c, b, k), case_z(c, b), c->io.D, c->log_sz,
                                     each, k, o->sigma_z);
            y[k] = plain_log_density(log(pi[k]), case_y(c, b, k), case_future(c, b), 2 * c->io.F,
                                     c->log_sy, each, k, o->sigma_y);
        }
        loss.latent -= plain_lse(z, K) / B;
        loss.decoded -= plain_lse(y, K) / B;
    }
    for (int k = 0; k < K; k++) loss.usage += usage[k] * log(fmax(usage[k] * K, 1e-12));
    loss.total = o->lambda_z * loss.latent + o->lambda_y * loss.decoded + o->lambda_rec * loss.rec +
                 o->usage_kl * loss.usage;
    return loss;
}

typedef struct setup {
    const char *name;
    bj_scales scales;
    int B, K, D, F;
    double lambda_z, lambda_y, lambda_rec, usage_kl, sigma_z, sigma_y;
    int probes;
} setup;

static void run(const setup *s, uint64_t seed) {
    objective_case c = case_make(BJ_MDN, s->B, s->K, s->D, s->F, s->scales, seed);
    c.objective.lambda_z = s->lambda_z;
    c.objective.lambda_y = s->lambda_y;
    c.objective.lambda_rec = s->lambda_rec;
    c.objective.usage_kl = s->usage_kl;
    c.objective.sigma_z = s->sigma_z;
    c.objective.sigma_y = s->sigma_y;
    if (s->K == 1) c.io.logits = NULL;
    const bj_loss expected = plain_mixture(&c), found = case_step(&c, 0, 1);
    const double tol = case_tolerance() * (10 + fabs(expected.latent) + fabs(expected.decoded));
    CHECK_MSG(fabs(found.latent - expected.latent) <= tol, "%s: latent %.9g, expected %.9g",
              s->name, found.latent, expected.latent);
    CHECK_MSG(fabs(found.decoded - expected.decoded) <= tol, "%s: decoded %.9g, expected %.9g",
              s->name, found.decoded, expected.decoded);
    CHECK_MSG(fabs(found.usage - expected.usage) <= 1e-12, "%s: usage %.9g, expected %.9g", s->name,
              found.usage, expected.usage);
    CHECK_MSG(fabs(found.total - expected.total) <= 4 * tol, "%s: total %.9g, expected %.9g",
              s->name, found.total, expected.total);
    for (int b = 0; b < s->B; b++) {
        double z = 0, y = 0;
        for (int k = 0; k < s->K; k++) {
            z += c.io.resp_z[b * s->K + k];
            y += c.io.resp_y[b * s->K + k];
        }
        CHECK_NEAR(z, 1, 1e-12);
        CHECK_NEAR(y, 1, 1e-12);
    }
    case_gradcheck(&c, s->name, case_loss, s->probes);
    case_check_ranges(&c, s->name);
    /* scales without a loss term keep their marker */
    if (s->scales != BJ_SCALES_FIXED) {
        CHECK((c.io.dlog_sz[0] == MARKER) == (s->lambda_z == 0));
        CHECK((c.io.dlog_sy[0] == MARKER) == (s->lambda_y == 0));
    }
    case_free(&c);
}

/* Tests a branch that no scene uses, whose share is below the clamp of the penalty. */
static void test_unused_branch(void) {
    objective_case c = case_make(BJ_MDN, 3, 3, 5, 10, BJ_SCALES_FIXED, 30);
    c.objective.usage_kl = 0.5;
    for (int b = 0; b < 3; b++) c.logits[3 * b + 1] = -2000;
    const bj_loss loss = case_step(&c, 1, 3);
    CHECK(isfinite(loss.total) && loss.usage > 0);
    for (int i = 0; i < 9; i++) CHECK(isfinite(c.io.dlogits[i]));
    CHECK(c.io.dlogits[1] == 0);
    case_free(&c);
}

/* Tests that only the usage penalty makes a scene's gradient depend on other scenes. */
static void test_coupling(void) {
    for (int coupled = 0; coupled < 2; coupled++) {
        objective_case c = case_make(BJ_MDN, 4, 3, 5, 10, BJ_SCALES_FIXED, 31);
        c.objective.usage_kl = coupled ? 0.5 : 0;
        CHECK(bj_objective_is_coupled(&c.objective) == coupled);
        case_step(&c, 1, 4);
        const bj_real before = c.io.dlogits[0];
        c.logits[3 * 3] += 1; /* change another scene */
        case_step(&c, 1, 4);
        CHECK((c.io.dlogits[0] != before) == coupled);
        case_free(&c);
    }
}

/* Tests that the tiny penalty of nearly balanced usage is not lost in the rounding of float
 * weights. */
static void test_usage_near_balance(void) {
    objective_case c = case_make(BJ_MDN, 8, 2, 5, 10, BJ_SCALES_FIXED, 32);
    for (int b = 0; b < 8; b++) {
        c.logits[2 * b] = (bj_real)(b % 2 ? 0.5 : -0.499);
        c.logits[2 * b + 1] = 0;
    }
    const bj_loss expected = plain_mixture(&c), found = case_step(&c, 0, 8);
    CHECK(expected.usage > 0 && expected.usage < 1e-6);
    CHECK_NEAR(found.usage / expected.usage, 1, 1e-7);
    case_free(&c);
}

/* Returns the sum over shards [first, first + count) in pairs, pairs of pairs and so on. */
static double tree(const double *weight, int B, int first, int count) {
    double sum = 0;
    if (count > 1)
        return tree(weight, B, first, count / 2) + tree(weight, B, first + count / 2, count / 2);
    int begin = B * first / 16, end = B * (first + 1) / 16;
    if (B < 512) begin = 32 * first, end = begin + 32; /* 32 scenes per shard until none are left */
    for (int b = begin; b < end && b < B; b++) sum += weight[b];
    return sum;
}

/* Tests that sums are added in the order of core/shards.h, bit for bit. */
static void test_order_of_sums(int scenes) {
    enum { MOST = 600, BRANCHES = 3 };
    objective_case c = case_make(BJ_MDN, scenes, BRANCHES, 2, 1, BJ_SCALES_FIXED, 33);
    c.objective.usage_kl = 1;
    case_step(&c, 0, scenes);
    for (int k = 0; k < BRANCHES; k++) {
        double weight[MOST], log_pi[BRANCHES];
        for (int b = 0; b < scenes; b++) {
            bj_router_log_weights(log_pi, c.logits + b * BRANCHES, BRANCHES);
            weight[b] = exp(log_pi[k]);
        }
        CHECK(c.io.usage[k] == tree(weight, scenes, 0, BJ_SHARDS) / scenes);
    }
    case_free(&c);
}

int main(void) {
    const setup setups[] = {
        {"fixed", BJ_SCALES_FIXED, 3, 4, 9, 10, 1, 1, 1, 0, .5, 4, 0},
        {"sharp", BJ_SCALES_FIXED, 3, 3, 9, 10, 1, 1, 1, 0, .1, 1, 0},
        {"usage", BJ_SCALES_FIXED, 3, 4, 9, 10, 1, 1, 1, .3, .5, 4, 0},
        {"usage only", BJ_SCALES_FIXED, 3, 4, 9, 10, 0, 0, 0, 1, .5, 4, 0},
        {"latent only", BJ_SCALES_COMPONENT, 3, 3, 9, 10, 1, 0, 0, 0, .5, 4, 0},
        {"decoded only", BJ_SCALES_COMPONENT, 3, 3, 9, 10, 0, 1, 0, 0, .5, 4, 0},
        {"no latent", BJ_SCALES_GLOBAL, 3, 3, 9, 10, 0, 1, 1, 0, .5, 4, 0},
        {"no decoded", BJ_SCALES_GLOBAL, 3, 3, 9, 10, 1, 0, 1, 0, .5, 4, 0},
        {"no reconstruction", BJ_SCALES_FIXED, 3, 3, 9, 10, 1, 1, 0, 0, .5, 4, 0},
        {"global", BJ_SCALES_GLOBAL, 3, 4, 9, 10, 1, 1, 1, 0, .5, 4, 0},
        {"component", BJ_SCALES_COMPONENT, 3, 4, 9, 10, 2, .5, 1, .01, .5, 4, 0},
        {"several chunks", BJ_SCALES_COMPONENT, 2, 2, 70, 40, 1, 1, 1, .1, .5, 4, 60},
        {"one branch", BJ_SCALES_GLOBAL, 3, 1, 9, 10, 1, 1, 1, 0, .5, 4, 0},
        {"one branch, usage", BJ_SCALES_COMPONENT, 3, 1, 9, 10, 1, 1, 1, .5, .5, 4, 0},
        {"one scene", BJ_SCALES_COMPONENT, 1, 4, 9, 10, 1, 1, 1, .1, .5, 4, 0},
        {"five scenes", BJ_SCALES_COMPONENT, 5, 2, 9, 10, 1, 1, 1, .1, .5, 4, 0},
        {"more scenes than shards", BJ_SCALES_GLOBAL, 19, 2, 3, 2, 1, 1, 1, .1, .5, 4, 0},
        {"64 atoms", BJ_SCALES_FIXED, 2, 64, 9, 10, 1, 1, 1, .1, .5, 4, 100},
    };
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) run(&setups[i], 300 + i);
    test_unused_branch();
    test_coupling();
    test_usage_near_balance();
    test_order_of_sums(83);
    test_order_of_sums(300);
    test_order_of_sums(600);
    return test_report("mixture");
}
