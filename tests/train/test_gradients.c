/* test_gradients.c - checks the gradients of every objective with finite differences.
 *
 * For each tensor that an objective reaches, the gradient is checked along random directions, for
 * single entries, and for every entry of small tensors, against
 *   (8 (f(w + h d) - f(w - h d)) - (f(w + 2 h d) - f(w - 2 h d))) / 12 h
 * If a ReLU switches within 2 h, the difference is wrong. In that case, the result with a second,
 * smaller step is used. A tensor that an objective does not reach must have no gradient, and
 * changing the tensor must leave the loss bit-identical.
 *
 * Soft-WTA and Sinkhorn treat their plan as a constant in the gradient. So for these objectives the
 * test computes the loss from the network's outputs with the plan of the unperturbed weights.
 *
 * In single precision the differences are dominated by rounding, so a float build tests only which
 * tensors are reached and that all values are finite.
 */
#include "train_case.h"

enum { SMALL = 28 /* max size of tensors that are checked entry by entry */, MOST = 4096 };

typedef struct probe {
    const char *name;
    train_case c;
    made_batch scenes;
    bj_objective objective;
    double *plan, *label; /* (B,K) fixed assignments, or NULL */
    bj_real *gradients[256];
    double norm; /* norm of the whole gradient */
    double step, tolerance;
} probe;

/* ----------------------------------------------------------------------------------------- loss */

static double latent_distance(const bj_real *a, const bj_real *b, int D) {
    double sum = 0;
    for (int i = 0; i < D; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

static double block_distance(const bj_real *a, const bj_real *b, int F, double beta) {
    double sum = 0, norm = 0, weight = 1;
    for (int t = 0; t < F; t++, norm += weight, weight *= beta)
        for (int i = 2 * t; i < 2 * t + 2; i++)
            sum += weight * ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum / norm);
}

static double log_sum(const double *x, int n, int stride) {
    double most = -HUGE_VAL, sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, x[i * stride]);
    for (int i = 0; i < n; i++) sum += exp(x[i * stride] - most);
    return most + log(sum);
}

static const bj_real *decoded_at(const bj_outputs *o, int b, int k) {
    return o->decoded + (size_t)(b * o->K + k) * o->decoded_stride;
}

static const bj_real *future_at(const probe *p, const bj_outputs *o, int b) {
    return p->scenes.future + (size_t)b * 2 * (size_t)o->F;
}

/* Computes a winner-takes-all loss with p->plan and p->label as fixed assignments. */
static double detached_loss(const probe *p) {
    const bj_outputs o = bj_trainer_outputs(p->c.trainer);
    const bj_objective *j = &p->objective;
    double total = 0;
    for (int b = 0; b < o.B; b++) {
        const bj_real *future = future_at(p, &o, b);
        const bj_real *rec = o.recon + (size_t)b * o.decoded_stride;
        double logits[BJ_MAX_ATOMS], smooth = 0;
        for (int k = 0; k < o.K; k++) logits[k] = (double)o.logits[b * o.K + k];
        const double lse = log_sum(logits, o.K, 1);
        for (int k = 0; k < o.K; k++) {
            const double plan = p->plan[b * o.K + k], label = p->label[b * o.K + k];
            const bj_real *u = o.atoms + (size_t)(b * o.K + k) * o.atom_stride;
            total +=
                j->lambda_z * plan * latent_distance(u, o.target + (size_t)b * o.atom_stride, o.D);
            total +=
                j->lambda_y * plan * block_distance(decoded_at(&o, b, k), future, o.F, j->beta);
            total -= j->lambda_router * label * (logits[k] - lse);
        }
        for (int i = 0; i < 2 * o.F; i++) {
            const double e = fabs((double)rec[i] - (double)future[i]);
            smooth += (e < 1 ? e * e / 2 : e - 0.5) / (2 * o.F);
        }
        total += j->lambda_rec * smooth;
    }
    return total / o.B;
}

/* Returns the regularizers' contribution to the total. */
static double regularizers(const bj_objective *o, const bj_loss *l) {
    return o->sigreg * l->sigreg + o->vicreg_variance * l->vicreg_variance +
           o->vicreg_covariance * l->vicreg_covariance;
}

static void detach(probe *p) {
    const bj_outputs o = bj_trainer_outputs(p->c.trainer);
    const int B = o.B, K = o.K;
    double *cost = case_alloc((size_t)(B * K), sizeof *cost), v[BJ_MAX_ATOMS] = {0}, row[64];
    double *u = case_alloc((size_t)B, sizeof *u);
    p->plan = case_alloc((size_t)(B * K), sizeof *p->plan);
    p->label = case_alloc((size_t)(B * K), sizeof *p->label);
    const int soft = p->objective.kind == BJ_SOFTWTA;
    const double scale = soft ? p->objective.tau : p->objective.eps;
    for (int b = 0; b < B; b++)
        for (int k = 0; k < K; k++)
            cost[b * K + k] =
                -block_distance(decoded_at(&o, b, k), future_at(p, &o, b), o.F, p->objective.beta) /
                scale;
    for (int i = 0; i < (soft ? 0 : p->objective.sinkhorn_iters); i++) {
        for (int b = 0; b < B; b++) {
            for (int k = 0; k < K; k++) row[k] = cost[b * K + k] + v[k];
            u[b] = -log(B) - log_sum(row, K, 1);
        }
        for (int k = 0; k < K; k++) {
            for (int b = 0; b < B; b++) row[b] = cost[b * K + k] + u[b];
            v[k] = -log(K) - log_sum(row, B, 1);
        }
    }
    for (int b = 0; b < B; b++) {
        int winner = 0;
        for (int k = 0; k < K; k++) {
            if (cost[b * K + k] > cost[b * K + winner]) winner = k;
            row[k] = cost[b * K + k] + v[k];
        }
        const double lse = log_sum(row, K, 1), rho = soft ? 1 : p->objective.rho;
        for (int k = 0; k < K; k++) {
            const double hard = k == winner, share = exp(row[k] - lse);
            p->plan[b * K + k] = (1 - rho) * hard + rho * share;
            p->label[b * K + k] = soft ? share : hard;
        }
    }
    free(cost);
    free(u);
}

/* Returns the loss as a function of the model's weights. The target stays unchanged. */
static double loss(const probe *p) {
    bj_step_report report;
    bj_error err;
    if (bj_trainer_gradients(p->c.trainer, &p->scenes.batch, &report, &err) != BJ_OK) {
        fprintf(stderr, "%s: %s\n", p->name, err.message);
        return NAN;
    }
    return p->plan ? detached_loss(p) + regularizers(&p->objective, &report.loss)
                   : report.loss.total;
}

/* --------------------------------------------------------------------------------- differences */

static double slope(const probe *p, bj_tensor w, const double *direction, double h) {
    static const int steps[4] = {1, -1, 2, -2};
    static bj_real kept[MOST];
    double f[4];
    memcpy(kept, w.data, w.size * sizeof *kept);
    for (int i = 0; i < 4; i++) {
        for (size_t j = 0; j < w.size; j++)
            w.data[j] = (bj_real)((double)kept[j] + steps[i] * h * direction[j]);
        f[i] = loss(p);
    }
    memcpy(w.data, kept, w.size * sizeof *kept);
    return (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * h);
}

/* Returns |g . d - difference| divided by the norm of the tensor's gradient. */
static double direction_error(const probe *p, int index, const double *direction) {
    const bj_tensor w = bj_model_tensor(p->c.model, index);
    const bj_real *g = p->gradients[index];
    double along = 0, square = 0, best = HUGE_VAL, step = p->step;
    for (size_t j = 0; j < w.size; j++) {
        along += (double)g[j] * direction[j];
        square += (double)g[j] * (double)g[j];
    }
    for (int attempt = 0; attempt < 2 && !(best <= p->tolerance); attempt++, step /= 8) {
        const double e =
            fabs(along - slope(p, w, direction, step)) / (sqrt(square) + 1e-4 * p->norm);
        if (isnan(e)) return HUGE_VAL;
        if (e < best) best = e;
    }
    return best;
}

/* Returns the largest error of one tensor over `directions` random
 * directions and single entries. */
static double tensor_error(const probe *p, int index, int directions) {
    static double d[MOST];
    const size_t n = bj_model_tensor(p->c.model, index).size;
    bj_rng rng = bj_rng_seed((uint64_t)index + 17);
    double worst = 0;
    for (int i = 0; i < directions; i++) {
        double square = 0;
        for (size_t j = 0; j < n; j++) d[j] = bj_rng_normal(&rng), square += d[j] * d[j];
        for (size_t j = 0; j < n; j++) d[j] /= sqrt(square);
        worst = fmax(worst, direction_error(p, index, d));
    }
    for (size_t j = 0; j < n; j++) d[j] = 0;
    for (size_t i = 0; i < (n <= SMALL ? n : 3); i++) {
        const size_t j = n <= SMALL ? i : (size_t)(bj_rng_uniform(&rng) * (double)n);
        d[j] = 1;
        worst = fmax(worst, direction_error(p, index, d));
        d[j] = 0;
    }
    return worst;
}

/* ---------------------------------------------------------------------------------------- cases */

static probe open_probe(const char *name, const bj_arch *arch, bj_objective objective, int B,
                        int neighbors, int polylines) {
    probe p = {.name = name, .objective = objective, .step = 1e-5, .tolerance = 1e-6};
    p.c = open_case(arch, objective, B);
    p.scenes = make_batch(arch, B, neighbors, polylines, 11);
    shake_target(&p.c, 0.1, 5);
    bj_rng rng = bj_rng_seed(23); /* zero biases and unit scales would hide errors */
    for (int i = 0; i < p.c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p.c.model, i);
        for (size_t j = 0; j < w.size; j++) w.data[j] += (bj_real)(0.1 * bj_rng_normal(&rng));
    }
    return p;
}

static void take_gradients(probe *p) {
    const double engine = loss(p);
    CHECK_MSG(isfinite(engine), "%s: loss is %g", p->name, engine);
    if (p->objective.kind == BJ_SOFTWTA || p->objective.kind == BJ_SINKHORN) {
        detach(p);
        CHECK_NEAR(loss(p), engine, sizeof(bj_real) == sizeof(double) ? 1e-12 : 1e-5);
    }
    double square = 0;
    for (int i = 0; i < p->c.tensors; i++) {
        const bj_tensor g = bj_trainer_gradient(p->c.trainer, i);
        p->gradients[i] = NULL;
        if (!g.data) continue;
        p->gradients[i] = case_alloc(g.size, sizeof(bj_real));
        memcpy(p->gradients[i], g.data, g.size * sizeof(bj_real));
        int finite = 1;
        for (size_t j = 0; j < g.size; j++) {
            finite &= isfinite(g.data[j]) != 0;
            square += (double)g.data[j] * (double)g.data[j];
        }
        CHECK_MSG(finite, "%s: gradient of %s is not finite", p->name, g.name);
    }
    p->norm = sqrt(square);
    CHECK_MSG(p->norm > 1e-6, "%s: the gradient is zero", p->name);
}

static void close_probe(probe *p) {
    for (int i = 0; i < p->c.tensors; i++) free(p->gradients[i]);
    free(p->plan);
    free(p->label);
    free_batch(&p->scenes);
    close_case(&p->c);
}

/* Checks that a change of a tensor without a gradient does not change the loss. The change is
 * small, because a large change could change the winner and thus the label of the router. */
static void check_unreached(const probe *p, int index) {
    const bj_tensor w = bj_model_tensor(p->c.model, index);
    static bj_real kept[MOST];
    const double before = loss(p);
    memcpy(kept, w.data, w.size * sizeof *kept);
    for (size_t j = 0; j < w.size; j++) w.data[j] *= (bj_real)1.001;
    const double after = loss(p);
    memcpy(w.data, kept, w.size * sizeof *kept);
    CHECK_MSG(before == after, "%s: %s has no gradient, but affects the loss", p->name, w.name);
}

static int zero_everywhere(const bj_real *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0) return 0;
    return 1;
}

/* Checks all tensors. `zeros` is the expected number of tensors that have a gradient of zero. If
 * `zeros` is negative, that number depends on rounding and is not checked. */
static void check_probe(probe *p, int zeros) {
    int reached = 0, silent = 0;
    take_gradients(p);
    for (int i = 0; i < p->c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p->c.model, i);
        if (w.size > MOST) exit(1);
        if (!p->gradients[i]) {
            check_unreached(p, i);
            continue;
        }
        reached++;
        silent += zero_everywhere(p->gradients[i], w.size);
        if (sizeof(bj_real) != sizeof(double)) continue;
        const double e = tensor_error(p, i, 2);
        CHECK_MSG(e <= p->tolerance, "%s: gradient of %s is off by %g", p->name, w.name, e);
    }
    CHECK_MSG(reached > 0 && (silent == zeros || zeros < 0),
              "%s: %d of %d gradients are zero, expected %d", p->name, silent, reached, zeros);
    close_probe(p);
}

static void check(const char *name, const bj_arch *arch, bj_objective objective, int B) {
    probe p = open_probe(name, arch, objective, B, -1, -1);
    check_probe(&p, 0);
}

static bj_objective weighted(bj_objective_kind kind, double z, double y, double rec) {
    bj_objective o = bj_objective_default(kind);
    o.lambda_z = z, o.lambda_y = y, o.lambda_rec = rec;
    return o;
}

/* ----------------------------------------------------------------------------------- self-test */

/* Tests that the check detects a relative error of 1e-3 in one tensor or in one entry. */
static void test_harness(void) {
    if (sizeof(bj_real) != sizeof(double)) return;
    const bj_arch arch = small_arch();
    probe p = open_probe("harness", &arch, bj_objective_default(BJ_FULLSET), 3, -1, -1);
    take_gradients(&p);
    static const char *const names[] = {
        "encoder.gru.weight_hh_l0", "encoder.neighbor.2.weight", "encoder.attn.in_proj_weight",
        "encoder.proj.0.bias",      "atoms.1.0.weight",          "router.2.bias",
        "decoder.2.weight"};
    for (int i = 0; i < p.c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p.c.model, i);
        int wanted = 0;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            wanted |= strcmp(names[n], w.name) == 0;
        if (!wanted) continue;
        bj_real *g = p.gradients[i];
        size_t largest = 0;
        for (size_t j = 0; j < w.size; j++)
            if (fabs((double)g[j]) > fabs((double)g[largest])) largest = j;
        CHECK(tensor_error(&p, i, 2) <= p.tolerance);
        for (size_t j = 0; j < w.size; j++) g[j] *= (bj_real)1.001;
        CHECK_MSG(tensor_error(&p, i, 2) > 10 * p.tolerance, "%s scaled: not noticed", w.name);
        for (size_t j = 0; j < w.size; j++) g[j] /= (bj_real)1.001;
        g[largest] *= (bj_real)1.001;
        CHECK_MSG(tensor_error(&p, i, 2) > 3 * p.tolerance, "%s[%zu]: not noticed", w.name,
                  largest);
        g[largest] *= (bj_real)(-1 / 1.001);
        CHECK_MSG(tensor_error(&p, i, 2) > 1e-3, "%s[%zu]: sign not noticed", w.name, largest);
        g[largest] = (bj_real)NAN;
        CHECK(tensor_error(&p, i, 2) > 1);
    }
    close_probe(&p);
}

/* ---------------------------------------------------------------------------------------- tests */

static void test_objectives(void) {
    bj_arch arch = small_arch();
    bj_objective o = bj_objective_default(BJ_FULLSET);
    check("fullset", &arch, o, 3);
    o = weighted(BJ_FULLSET, 2, 0.5, 0.7), o.beta = 0.9;
    check("fullset with weights and beta", &arch, o, 3);
    check("uniform", &arch, bj_objective_default(BJ_UNIFORM), 3);
    check("specialization", &arch, bj_objective_default(BJ_SPECIALIZATION), 3);
    o = weighted(BJ_SOFTWTA, 1, 0.5, 1), o.tau = 0.4, o.lambda_router = 0.3;
    check("softwta", &arch, o, 3);
    o = bj_objective_default(BJ_SINKHORN), o.eps = 0.3, o.rho = 0.4, o.beta = 0.8;
    check("sinkhorn", &arch, o, 5);
    o = bj_objective_default(BJ_MDN);
    check("mdn, fixed scales", &arch, o, 3);
    o.usage_kl = 0.5;
    check("mdn with usage penalty", &arch, o, 4);
    arch.scales = BJ_SCALES_GLOBAL;
    check("mdn, global scales", &arch, weighted(BJ_MDN, 1, 0.5, 1), 3);
    arch.scales = BJ_SCALES_COMPONENT;
    check("mdn, component scales", &arch, o, 3);

    arch = small_arch_for(BJ_OUTPUTONLY);
    check("output-only", &arch, bj_objective_default(BJ_OUTPUTONLY), 3);
    arch.fut = 20, arch.atoms = 2;
    o = weighted(BJ_OUTPUTONLY, 0.3, 1, 2), o.beta = 0.95;
    check("output-only, two segments", &arch, o, 2);

    arch = small_arch();
    check("anchor stage B", &arch, bj_objective_default(BJ_ANCHOR_B), 3);
    o = bj_objective_default(BJ_ANCHOR_A);
    o.variance_floor = 0.35, o.rank_floor = 6, o.rank_weight = 0.5;
    probe p = open_probe("anchor stage A", &arch, o, 7, -1, -1);
    check_probe(&p, 1);                      /* the input of the first neighbor layer is zero */
    o.variance_floor = 0, o.rank_weight = 0; /* disables both floors */
    p = open_probe("anchor stage A without floors", &arch, o, 4, -1, -1);
    check_probe(&p, 1);
}

/* Tests that a weight of zero removes its term, so that tensors used only by that term have no
 * gradient. */
static void test_zero_weights(void) {
    const bj_arch arch = small_arch(), single = small_arch_for(BJ_OUTPUTONLY);
    check("fullset, decoded only", &arch, weighted(BJ_FULLSET, 0, 1, 0), 3);
    check("fullset, latent only", &arch, weighted(BJ_FULLSET, 1, 0, 0), 3);
    check("fullset, no reconstruction", &arch, weighted(BJ_FULLSET, 1, 1, 0), 3);
    check("fullset, no decoded", &arch, weighted(BJ_FULLSET, 1, 0, 1), 3);
    check("fullset, reconstruction only", &arch, weighted(BJ_FULLSET, 0, 0, 1), 3);
    check("uniform, latent only", &arch, weighted(BJ_UNIFORM, 1, 0, 0), 3);
    bj_objective o = weighted(BJ_SPECIALIZATION, 1, 1, 1);
    o.lambda_router = 0;
    check("specialization without router", &arch, o, 3);
    check("specialization, router only", &arch, weighted(BJ_SPECIALIZATION, 0, 0, 0), 3);
    o = weighted(BJ_MDN, 0, 0, 0), o.usage_kl = 1;
    check("mdn, usage only", &arch, o, 3);
    check("mdn, latent only", &arch, weighted(BJ_MDN, 1, 0, 0), 3);
    bj_arch scaled = arch;
    scaled.scales = BJ_SCALES_COMPONENT;
    check("mdn, component scales, decoded only", &scaled, weighted(BJ_MDN, 0, 1, 0), 3);
    check("output-only, latent only", &single, weighted(BJ_OUTPUTONLY, 1, 0, 0), 3);
    check("output-only, no reconstruction", &single, weighted(BJ_OUTPUTONLY, 0, 1, 0), 3);
    check("output-only, reconstruction only", &single, weighted(BJ_OUTPUTONLY, 0, 0, 1), 3);
}

/* Tests the regularizers together with every scene objective, and without one. */
static void test_regularizers(void) {
    for (bj_objective_kind kind = BJ_FULLSET; kind <= BJ_ANCHOR_B; kind++) {
        const bj_arch arch = small_arch_for(kind);
        char name[64];
        snprintf(name, sizeof name, "%s, regularized", bj_objective_name(kind));
        probe p = open_probe(name, &arch, regularized(bj_objective_default(kind)), 5, -1, -1);
        check_probe(&p, kind == BJ_ANCHOR_A); /* the input of the first neighbor layer is zero */
    }
    const bj_arch arch = small_arch();
    check("regularizers only", &arch, regularized(weighted(BJ_FULLSET, 0, 0, 0)), 5);
    check("regularizers and reconstruction", &arch, regularized(weighted(BJ_UNIFORM, 0, 0, 1)), 5);
    bj_objective o = weighted(BJ_SPECIALIZATION, 0, 0, 1);
    o.lambda_router = 0;
    check("hard winners, regularizers only", &arch, regularized(o), 5);
    check("regularized, one scene", &arch, regularized(bj_objective_default(BJ_FULLSET)), 1);
}

static void test_shapes(void) {
    bj_arch arch = small_arch();
    const bj_objective fullset = bj_objective_default(BJ_FULLSET);
    check("one scene", &arch, fullset, 1);
    check("more scenes than shards", &arch, fullset, 21);
    /* The input of neighbor.0.weight is zero. */
    probe p = open_probe("no neighbors", &arch, fullset, 3, 0, 3);
    check_probe(&p, 1);
    /* polyline.{0,2}.{weight,bias} have no input. */
    p = open_probe("no polylines", &arch, fullset, 3, 2, 0);
    check_probe(&p, 4);
    p = open_probe("neither", &arch, fullset, 2, 0, 0); /* the zero neighbor is the only token */
    check_probe(&p, 5);
    p = open_probe("all slots taken", &arch, fullset, 2, arch.neighbors, arch.polylines);
    check_probe(&p, 0);
    arch.polylines = 0;
    p = open_probe("a network without polylines", &arch, fullset, 2, 1, 0);
    check_probe(&p, 4);
    arch = small_arch();
    arch.obs = 1;
    p = open_probe("one observed step", &arch, fullset, 3, 1, 2);
    check_probe(&p, 1); /* gru.weight_hh has a zero gradient, because the initial state is zero */
    arch = small_arch();
    arch.embed = 7, arch.heads = 7, arch.fut = 2;
    check("seven heads of one, two future steps", &arch, fullset, 3);
    arch.heads = 1, arch.token_hidden = 17, arch.latent = 17;
    check("one head", &arch, fullset, 3);
    arch = small_arch();
    arch.atoms = 1;
    check("K = 1", &arch, fullset, 3);
    check("K = 1, anchor stage B", &arch, bj_objective_default(BJ_ANCHOR_B), 3);
    check("K = 1, specialization", &arch, bj_objective_default(BJ_SPECIALIZATION), 3);
    check("K = 1, mdn", &arch, bj_objective_default(BJ_MDN), 3);
    arch.atoms = 7;
    check("K = 7", &arch, fullset, 2);
}

/* Tests that zero distances have a zero gradient. A finite difference moves equal atoms apart.
 * Their distance must stay below 1e-6 to count as zero, so the step is small and the tolerance is
 * large. */
static void test_equal_atoms(bj_objective_kind kind) {
    const bj_arch arch = small_arch();
    probe p = open_probe("equal atoms", &arch, bj_objective_default(kind), 3, -1, -1);
    p.step = 1e-7, p.tolerance = 1e-4;
    for (int k = 1; k < arch.atoms; k++)
        for (int i = 0; i < 4; i++) {
            static const char *const part[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
            bj_tensor first, other;
            char a[32], b[32];
            bj_error err;
            snprintf(a, sizeof a, "atoms.0.%s", part[i]);
            snprintf(b, sizeof b, "atoms.%d.%s", k, part[i]);
            if (bj_model_find(&first, p.c.model, a, &err) != BJ_OK ||
                bj_model_find(&other, p.c.model, b, &err) != BJ_OK)
                exit(1);
            memcpy(other.data, first.data, first.size * sizeof *first.data);
        }
    CHECK(isfinite(loss(&p)));
    for (int i = 0; i < p.c.tensors; i++) { /* if all atoms are equal, the router has no gradient */
        const bj_tensor g = bj_trainer_gradient(p.c.trainer, i);
        for (size_t j = 0; g.data && j < g.size && starts_with(g.name, "router"); j++)
            CHECK_NEAR(g.data[j], 0, sizeof(bj_real) == sizeof(double) ? 1e-14 : 1e-6);
    }
    check_probe(&p, -1);
}

/* Opens a case whose weights and target contain no zeros, because zero biases would hide
 * mistakes. */
static train_case open_form(const bj_arch *arch, bj_objective_kind kind, int max_batch,
                            int factored) {
    train_case c = open_case(arch, bj_objective_default(kind), max_batch);
    CHECK(c.trainer->online.factored == factored && c.trainer->target.factored == factored);
    bj_rng rng = bj_rng_seed(4);
    for (size_t i = 0; i < c.model->layout.size; i++)
        c.model->weights[i] += (bj_real)(0.1 * bj_rng_normal(&rng));
    shake_target(&c, 0.1, 3);
    return c;
}

/* Tests that a trainer with a small max_batch, whose encoders are factored, computes the same
 * gradients as a trainer with a large max_batch, whose encoders are folded (model/encoder.h). */
static void compare_forms(const char *name, const bj_arch *arch, bj_objective_kind kind,
                          int neighbors, int polylines) {
    enum { FEW = 3, MANY = 150 };
    made_batch scenes = make_batch(arch, FEW, neighbors, polylines, 5);
    train_case few = open_form(arch, kind, FEW, 1), many = open_form(arch, kind, MANY, 0);
    bj_error err;
    CHECK_OK(bj_trainer_gradients(few.trainer, &scenes.batch, NULL, &err), err);
    CHECK_OK(bj_trainer_gradients(many.trainer, &scenes.batch, NULL, &err), err);
    const double tolerance = sizeof(bj_real) == sizeof(double) ? 1e-11 : 1e-4;
    for (int i = 0; i < few.tensors; i++) {
        const bj_tensor g = bj_trainer_gradient(few.trainer, i);
        const bj_tensor other = bj_trainer_gradient(many.trainer, i);
        double off = 0, most = 1e-3;
        for (size_t j = 0; g.data && j < g.size; j++) {
            off = fmax(off, fabs((double)g.data[j] - (double)other.data[j]));
            most = fmax(most, fabs((double)other.data[j]));
        }
        CHECK_MSG(off <= tolerance * most, "%s: %s is off by %g of %g", name, g.name, off, most);
    }
    free_batch(&scenes);
    close_case(&few);
    close_case(&many);
}

static void test_forms(void) {
    bj_arch arch = small_arch();
    compare_forms("forms", &arch, BJ_FULLSET, -1, -1);
    compare_forms("forms, anchor stage A", &arch, BJ_ANCHOR_A, -1, -1);
    compare_forms("forms, no neighbors", &arch, BJ_FULLSET, 0, 4);
    compare_forms("forms, no polylines", &arch, BJ_FULLSET, 2, 0);
    compare_forms("forms, neither", &arch, BJ_FULLSET, 0, 0);
    arch.embed = 21, arch.heads = 3;
    compare_forms("forms, three heads", &arch, BJ_FULLSET, -1, -1);
    arch.heads = 1, arch.token_hidden = 17;
    compare_forms("forms, one head", &arch, BJ_FULLSET, -1, -1);
}

int main(void) {
    test_harness();
    test_forms();
    test_objectives();
    test_zero_weights();
    test_regularizers();
    test_shapes();
    test_equal_atoms(BJ_FULLSET);
    test_equal_atoms(BJ_UNIFORM);
    if (sizeof(bj_real) != sizeof(double))
        printf("finite differences are skipped in a float build (use the double build)\n");
    return test_report("gradients");
}
