/* test_step.c - tests what an update changes and what it leaves unchanged.
 *
 * Schedules are compared with numbers calculated by hand. Clipping, AdamW and EMA are compared with
 * a simple double implementation. A tensor that does not affect the loss must stay bit-identical,
 * so it gets no weight decay either.
 */
#include "train_case.h"

/* ------------------------------------------------------------------------------------- schedule */

static double rate(long step, long steps_per_epoch, int epochs, int warmup, double base) {
    const bj_schedule cosine = {BJ_SCHEDULE_COSINE, base, 0, steps_per_epoch * epochs,
                                steps_per_epoch * warmup};
    return bj_lr_at(&cosine, step);
}

/* Tests the other schedules against values calculated by hand, with 2 warm-up updates and 10
 * updates in total. */
static void test_straight_schedules(void) {
    const bj_schedule line = {BJ_SCHEDULE_LINEAR, 8, 0, 10, 2};
    const bj_schedule trapezoid = {BJ_SCHEDULE_TRAPEZOID, 8, 0.4, 10, 2};
    static const double falls[] = {4, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    static const double stays[] = {4, 8, 8, 8, 8, 8, 8, 6, 4, 2, 0};
    for (int i = 0; i <= 10; i++) {
        CHECK_NEAR(bj_lr_at(&line, i), falls[i], 1e-15);
        CHECK_NEAR(bj_lr_at(&trapezoid, i), stays[i], 1e-14);
    }
    const bj_schedule constant = {BJ_SCHEDULE_CONSTANT, 8, 0, 10, 2};
    CHECK(bj_lr_at(&constant, 0) == 4 && bj_lr_at(&constant, 1) == 8);
    CHECK(bj_lr_at(&constant, 9) == 8);
    CHECK(bj_schedule_find("constant") == BJ_SCHEDULE_CONSTANT);
    CHECK(bj_schedule_find("linear") == BJ_SCHEDULE_LINEAR);
    CHECK(bj_schedule_find("trapezoid") == BJ_SCHEDULE_TRAPEZOID);
    CHECK(bj_schedule_find("step") == -1);
}

static void test_schedule(void) {
    /* The paper's run has 743 steps per epoch and 30 epochs, of which 2 are warm-up, so 22290 steps
     * in total. */
    const double base = 3e-4;
    CHECK_NEAR(rate(0, 743, 30, 2, base), 2.0188425302826379e-7, 1e-20);
    CHECK_NEAR(rate(742, 743, 30, 2, base), 1.5e-4, 1e-18);
    CHECK_NEAR(rate(1485, 743, 30, 2, base), 3e-4, 1e-18); /* last warm-up step */
    CHECK_NEAR(rate(1486, 743, 30, 2, base), 3e-4, 1e-18); /* start of the cosine */
    CHECK_NEAR(rate(1487, 743, 30, 2, base), 2.9999999828971956e-4, 1e-18);
    CHECK_NEAR(rate(1486 + 5201, 743, 30, 2, base), 2.5606601717798212e-4, 1e-17);
    CHECK_NEAR(rate(1486 + 10402, 743, 30, 2, base), 1.5e-4, 1e-17);
    CHECK_NEAR(rate(22289, 743, 30, 2, base), 1.710280396e-12, 1e-19); /* last step */
    CHECK_NEAR(rate(22290, 743, 30, 2, base), 0, 1e-18);

    static const double rise[] = {0.25, 0.5, 0.75, 1};
    for (int i = 0; i < 4; i++) CHECK_NEAR(rate(i, 4, 3, 1, 1), rise[i], 1e-15);
    static const double fall[] = {1, /* (1 + cos(i pi / 8)) / 2 */
                                  0.96193976625564337,
                                  0.85355339059327376,
                                  0.69134171618254492,
                                  0.5,
                                  0.30865828381745508,
                                  0.14644660940672624,
                                  0.03806023374435663};
    for (int i = 0; i < 8; i++) CHECK_NEAR(rate(4 + i, 4, 3, 1, 1), fall[i], 1e-15);
    for (int i = 0; i < 8; i++) CHECK_NEAR(rate(i, 4, 2, 0, 2), 2 * fall[i], 1e-15);
}

/* ---------------------------------------------------------------------------------------- reach */

static bj_objective weighted(bj_objective_kind kind, double z, double y, double rec,
                             double router) {
    bj_objective o = bj_objective_default(kind);
    o.lambda_z = z, o.lambda_y = y, o.lambda_rec = rec, o.lambda_router = router;
    return o;
}

static int listed(const char *name, const char *prefixes) {
    for (; *prefixes; prefixes += strcspn(prefixes, " "), prefixes += *prefixes == ' ') {
        const size_t n = strcspn(prefixes, " ");
        if (strncmp(name, prefixes, n) == 0) return 1;
    }
    return 0;
}

/* Checks that tensors whose names start with a word in `untouched` stay bit-identical for four
 * steps and that all other tensors change. */
static void check_reach(bj_objective objective, bj_scales scales, const char *untouched) {
    bj_arch arch = small_arch_for(objective.kind);
    arch.scales = scales;
    bj_trainer_options options = options_for(objective, 6, 1, NULL);
    options.optim.weight_decay = 0.1;
    train_case c = open_case_with(&arch, &options, 3);
    made_batch scenes = make_batch(&arch, 6, 2, 3, 4);
    bj_real *before = case_alloc(c.model->layout.size, sizeof *before);
    memcpy(before, c.model->weights, c.model->layout.size * sizeof *before);
    bj_error err;
    for (int i = 0; i < 4; i++)
        CHECK_OK(bj_trainer_step(c.trainer, &scenes.batch, 0.01, NULL, &err), err);
    int kept = 0;
    for (int i = 0; i < c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(c.model, i);
        const size_t at = c.model->layout.params[i].offset, bytes = w.size * sizeof(bj_real);
        const int same = memcmp(w.data, before + at, bytes) == 0, keep = listed(w.name, untouched);
        CHECK_MSG(same == keep, "%s (%g %g %g %g): %s was%s changed",
                  bj_objective_name(objective.kind), objective.lambda_z, objective.lambda_y,
                  objective.lambda_rec, objective.lambda_router, w.name, same ? " not" : "");
        CHECK((bj_trainer_gradient(c.trainer, i).data == NULL) == keep);
        for (size_t j = 0; j < w.size && keep; j++)
            CHECK(c.trainer->mean[at + j] == 0 && c.trainer->variance[at + j] == 0);
        kept += keep;
    }
    CHECK_MSG((kept > 0) == (*untouched != 0), "'%s' names nothing", untouched);
    free(before);
    free_batch(&scenes);
    close_case(&c);
}

static void test_reach(void) {
    const bj_scales fixed = BJ_SCALES_FIXED, each = BJ_SCALES_COMPONENT;
    check_reach(weighted(BJ_FULLSET, 1, 1, 1, 1), fixed, "");
    check_reach(weighted(BJ_FULLSET, 0, 1, 0, 1), fixed, "");
    check_reach(weighted(BJ_FULLSET, 1, 0, 1, 1), fixed, "");
    check_reach(weighted(BJ_FULLSET, 1, 0, 0, 1), fixed, "decoder.");
    check_reach(weighted(BJ_FULLSET, 0, 0, 1, 1), fixed, "encoder. atoms. router.");
    check_reach(weighted(BJ_UNIFORM, 1, 1, 1, 1), fixed, "router.");
    check_reach(weighted(BJ_UNIFORM, 1, 0, 0, 1), fixed, "router. decoder.");
    for (bj_objective_kind kind = BJ_SPECIALIZATION; kind <= BJ_SINKHORN; kind++) {
        check_reach(weighted(kind, 1, 1, 1, 1), fixed, "");
        check_reach(weighted(kind, 1, 1, 1, 0), fixed, "router.");
        check_reach(weighted(kind, 0, 0, 0, 1), fixed, "atoms. decoder.");
        check_reach(weighted(kind, 1, 0, 0, 0), fixed, "router. decoder.");
    }
    check_reach(weighted(BJ_MDN, 1, 1, 1, 1), each, "");
    check_reach(weighted(BJ_MDN, 1, 0, 0, 1), each, "decoder. log_sy");
    check_reach(weighted(BJ_MDN, 0, 1, 0, 1), each, "log_sz");
    check_reach(weighted(BJ_MDN, 0, 0, 1, 1), BJ_SCALES_GLOBAL,
                "encoder. atoms. router. log_sz log_sy");
    bj_objective usage = weighted(BJ_MDN, 0, 0, 0, 1);
    usage.usage_kl = 1;
    check_reach(usage, fixed, "atoms. decoder.");
    check_reach(weighted(BJ_OUTPUTONLY, 1, 1, 1, 1), fixed, "");
    check_reach(weighted(BJ_OUTPUTONLY, 0, 1, 0, 1), fixed, "");
    check_reach(weighted(BJ_OUTPUTONLY, 1, 0, 0, 1), fixed,
                "router. trunk. base. residual. step_scale segment_scale");
    check_reach(weighted(BJ_OUTPUTONLY, 1, 0, 1, 1), fixed,
                "router. residual. step_scale segment_scale");
    check_reach(weighted(BJ_OUTPUTONLY, 0, 0, 1, 1), fixed,
                "encoder. atom. router. residual. step_scale segment_scale");
    check_reach(bj_objective_default(BJ_ANCHOR_A), fixed, "atoms. router.");
    check_reach(bj_objective_default(BJ_ANCHOR_B), fixed, "decoder.");
    check_reach(weighted(BJ_ANCHOR_B, 1, 1, 1, 1), fixed, "decoder."); /* for any weights */
}

/* Tests that stage B leaves target and decoder bitwise unchanged and stage
 * A leaves its target unchanged. */
static void test_frozen(bj_objective_kind kind, int atoms) {
    bj_arch arch = small_arch();
    arch.atoms = atoms;
    train_case c = open_case(&arch, bj_objective_default(kind), 9);
    shake_target(&c, 0.05, 8);
    made_batch scenes = make_batch(&arch, 9, -1, -1, 2);
    const size_t encoder = c.model->layout.encoder_size;
    bj_real *target = case_alloc(encoder, sizeof *target);
    memcpy(target, c.trainer->target_weights, encoder * sizeof *target);
    bj_tensor w;
    bj_error err;
    CHECK_OK(bj_model_find(&w, c.model, "decoder.0.weight", &err), err);
    const bj_real decoder = w.data[3];
    uint64_t frozen[2] = {0, 0};
    for (int after = 0; after < 2; after++) {
        for (int i = 0; i < c.tensors; i++) {
            const bj_tensor d = bj_model_tensor(c.model, i);
            if (starts_with(d.name, "decoder."))
                frozen[after] = hash_bytes(frozen[after], d.data, d.size * sizeof *d.data);
        }
        for (int i = 0; i < 20 && !after; i++)
            CHECK_OK(bj_trainer_step(c.trainer, &scenes.batch, 0.01, NULL, &err), err);
    }
    CHECK(memcmp(target, c.trainer->target_weights, encoder * sizeof *target) == 0);
    CHECK((frozen[0] == frozen[1]) == (kind == BJ_ANCHOR_B));
    CHECK((decoder == w.data[3]) == (kind == BJ_ANCHOR_B));
    free(target);
    free_batch(&scenes);
    close_case(&c);
}

/* -------------------------------------------------------------------------------------- updates */

static double real_tolerance(double in_double, double in_float) {
    return sizeof(bj_real) == sizeof(double) ? in_double : in_float;
}

/* The parameters that have a gradient, in double, updated with the paper's formulas. */
typedef struct plain_state {
    size_t n, encoder;
    double *w, *m, *v, *target;
} plain_state;

static void plain_update(plain_state *s, const train_case *c, const bj_optim *o, double lr,
                         double norm, int t) {
    const double clip = fmin(1, o->clip / (norm + 1e-6));
    for (int i = 0; i < c->tensors; i++) {
        const bj_tensor g = bj_trainer_gradient(c->trainer, i);
        const size_t at = c->model->layout.params[i].offset;
        for (size_t j = 0; g.data && j < g.size; j++) {
            const double grad = (double)g.data[j] * clip;
            double *w = &s->w[at + j], *m = &s->m[at + j], *v = &s->v[at + j];
            *w -= lr * o->weight_decay * *w;
            *m = o->beta1 * *m + (1 - o->beta1) * grad;
            *v = o->beta2 * *v + (1 - o->beta2) * grad * grad;
            const double mean = *m / (1 - pow(o->beta1, t)), var = *v / (1 - pow(o->beta2, t));
            *w -= lr * mean / (sqrt(var) + o->eps);
        }
    }
    for (size_t i = 0; i < s->encoder; i++)
        s->target[i] = o->ema * s->target[i] + (1 - o->ema) * s->w[i];
}

static double worst_of(const bj_real *x, const double *y, size_t n) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)x[i] - y[i]);
        if (!(d <= worst)) worst = isnan(d) ? HUGE_VAL : d;
    }
    return worst;
}

static double *widened(const bj_real *x, size_t n) {
    double *y = case_alloc(n, sizeof *y);
    for (size_t i = 0; i < n; i++) y[i] = (double)x[i];
    return y;
}

/* Checks six steps on three batches. `clip` is relative to the norm of the
 * first gradient. 0 means the default. */
static void check_updates(bj_objective_kind kind, bj_optim optim, double clip, const char *isa) {
    const bj_arch arch = small_arch_for(kind);
    bj_trainer_options options = options_for(bj_objective_default(kind), 7, 2, isa);
    made_batch scenes[3];
    for (int i = 0; i < 3; i++) scenes[i] = make_batch(&arch, 3 + 2 * i, -1, -1, (uint64_t)i);
    bj_step_report report, step;
    bj_error err;
    if (clip > 0) {
        train_case first = open_case_with(&arch, &options, 1);
        CHECK_OK(bj_trainer_gradients(first.trainer, &scenes[0].batch, &report, &err), err);
        optim.clip = clip * report.grad_norm;
        close_case(&first);
    }
    options.optim = optim;
    train_case c = open_case_with(&arch, &options, 1);
    shake_target(&c, 0.1, 6);
    const size_t n = c.model->layout.size, encoder = c.model->layout.encoder_size;
    plain_state s = {n,
                     encoder,
                     widened(c.model->weights, n),
                     case_alloc(n, sizeof(double)),
                     case_alloc(n, sizeof(double)),
                     widened(c.trainer->target_weights, encoder)};
    for (int t = 1; t <= 6; t++) {
        const bj_batch *batch = &scenes[t % 3].batch;
        const double lr = 2e-3 / t;
        CHECK_OK(bj_trainer_gradients(c.trainer, batch, &report, &err), err);
        CHECK(report.step == t - 1);
        double square = 0;
        for (int i = 0; i < c.tensors; i++) {
            const bj_tensor g = bj_trainer_gradient(c.trainer, i);
            for (size_t j = 0; g.data && j < g.size; j++)
                square += (double)g.data[j] * (double)g.data[j];
        }
        CHECK_NEAR(report.grad_norm / sqrt(square), 1, 1e-12);
        plain_update(&s, &c, &optim, lr, report.grad_norm, t);
        CHECK_OK(bj_trainer_step(c.trainer, batch, lr, &step, &err), err);
        CHECK(step.step == t && step.grad_norm == report.grad_norm &&
              memcmp(&step.loss, &report.loss, sizeof step.loss) == 0);
        const double w = worst_of(c.model->weights, s.w, n), m = worst_of(c.trainer->mean, s.m, n);
        const double v = worst_of(c.trainer->variance, s.v, n);
        const double e = worst_of(c.trainer->target_weights, s.target, encoder);
        CHECK_MSG(w <= real_tolerance(1e-13, 1e-6), "step %d: weights are off by %g", t, w);
        CHECK_MSG(m <= real_tolerance(1e-14, 1e-6) * fmax(1, report.grad_norm),
                  "step %d: mean is off by %g", t, m);
        CHECK_MSG(v <= real_tolerance(1e-14, 1e-6) * fmax(1, square), "step %d: variance off by %g",
                  t, v);
        CHECK_MSG(e <= real_tolerance(1e-14, 1e-6), "step %d: target is off by %g", t, e);
    }
    free(s.w), free(s.m), free(s.v), free(s.target);
    for (int i = 0; i < 3; i++) free_batch(&scenes[i]);
    close_case(&c);
}

static void test_updates(void) {
    bj_optim other = {
        .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-2, .weight_decay = 2, .clip = 5, .ema = 0.3};
    for (int i = 0; bj_kernels_at(i); i++) {
        const char *isa = bj_kernels_at(i)->isa;
        check_updates(BJ_FULLSET, bj_optim_default(), 100, isa); /* never clips */
        check_updates(BJ_FULLSET, bj_optim_default(), 0.3, isa); /* always clips */
        check_updates(BJ_FULLSET, other, 0.5, isa);
        check_updates(BJ_OUTPUTONLY, other, 1, isa);
    }
    other.beta1 = other.beta2 = other.weight_decay = 0, other.ema = 1; /* unusual but allowed */
    check_updates(BJ_UNIFORM, other, 0.5, NULL);
}

/* Tests that only a step changes the state, that a learning rate of zero changes only the target
 * and the moments, and that the padding between tensors stays zero. */
static void test_side_effects(void) {
    const bj_arch arch = small_arch();
    train_case c = open_case(&arch, bj_objective_default(BJ_FULLSET), 4);
    made_batch scenes = make_batch(&arch, 4, -1, -1, 3);
    bj_error err;
    const uint64_t start = hash_state(&c);
    for (int i = 0; i < 3; i++)
        CHECK_OK(bj_trainer_gradients(c.trainer, &scenes.batch, NULL, &err), err);
    CHECK(hash_state(&c) == start);

    shake_target(&c, 0.1, 1);
    const size_t bytes = c.model->layout.size * sizeof(bj_real);
    const uint64_t weights = hash_bytes(0, c.model->weights, bytes), target = hash_state(&c);
    CHECK_OK(bj_trainer_step(c.trainer, &scenes.batch, 0, NULL, &err), err);
    CHECK(hash_bytes(0, c.model->weights, bytes) == weights && hash_state(&c) != target);

    double first = 0;
    bj_step_report r;
    for (int i = 0; i < 60; i++) {
        CHECK_OK(bj_trainer_step(c.trainer, &scenes.batch, 3e-3, &r, &err), err);
        if (i == 0) first = r.loss.total;
    }
    CHECK_MSG(r.loss.total < 0.8 * first, "the loss went from %g to %g", first, r.loss.total);
    CHECK(r.step == 61);
    for (int i = 0; i < c.tensors; i++) {
        const bj_param *p = &c.model->layout.params[i];
        const size_t end = i + 1 < c.tensors ? p[1].offset : c.model->layout.size;
        for (size_t j = p->offset + p->size; j < end; j++)
            CHECK(c.model->weights[j] == 0 && c.trainer->mean[j] == 0);
    }
    free_batch(&scenes);
    close_case(&c);
}

/* Tests that the target follows its encoder even if the encoder has no gradient. */
static void test_target_of_untrained_encoder(void) {
    const bj_arch arch = small_arch();
    train_case c = open_case(&arch, weighted(BJ_FULLSET, 0, 0, 1, 1), 3);
    made_batch scenes = make_batch(&arch, 3, -1, -1, 3);
    bj_error err;
    shake_target(&c, 0.1, 1);
    const size_t n = c.model->layout.encoder_size;
    double *expected = widened(c.trainer->target_weights, n);
    for (size_t i = 0; i < n; i++)
        expected[i] = 0.996 * expected[i] + 0.004 * (double)c.model->weights[i];
    CHECK_OK(bj_trainer_step(c.trainer, &scenes.batch, 1e-3, NULL, &err), err);
    CHECK(worst_of(c.trainer->target_weights, expected, n) <= real_tolerance(1e-15, 1e-6));
    free(expected);
    free_batch(&scenes);
    close_case(&c);
}

/* Tests access to gradients and targets. Gradients must be NULL for tensors that have none, and
 * targets exist only for the encoder. */
static void test_access(void) {
    const bj_arch arch = small_arch();
    train_case c = open_case(&arch, bj_objective_default(BJ_UNIFORM), 3);
    for (int i = 0; i < c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(c.model, i), t = bj_trainer_target(c.trainer, i);
        const bj_tensor g = bj_trainer_gradient(c.trainer, i);
        CHECK(strcmp(w.name, t.name) == 0 && strcmp(w.name, g.name) == 0 && t.size == w.size);
        CHECK((t.data != NULL) == starts_with(w.name, "encoder."));
        CHECK((g.data != NULL) == !starts_with(w.name, "router."));
        if (t.data)
            CHECK(memcmp(t.data, w.data, w.size * sizeof *w.data) == 0); /* initially a copy */
        CHECK(t.data != w.data);
    }
    close_case(&c);
}

int main(void) {
    test_schedule();
    test_straight_schedules();
    test_reach();
    test_frozen(BJ_ANCHOR_B, 3);
    test_frozen(BJ_ANCHOR_B, 1);
    test_frozen(BJ_ANCHOR_A, 3);
    test_updates();
    test_side_effects();
    test_target_of_untrained_encoder();
    test_access();
    return test_report("step");
}
