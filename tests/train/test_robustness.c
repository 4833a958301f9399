/* test_robustness.c - tests failed allocations, non-finite values and invalid batches.
 *
 * In each case the caller gets a status and a specific message, output handles are NULL, nothing
 * leaks, and the state of the trainer is bitwise unchanged.
 */
#include <float.h>
#include <limits.h>

#include "train_case.h"

static const char golden[] = "tests/golden/tiny/fullset.safetensors";

/* ---------------------------------------------------------------------------------- allocations */

/* Tests that training steps, gradient computations and metrics allocate no memory, for any batch
 * size. */
static void test_no_allocation(void) {
    static const int sizes[10] = {48, 1, 5, 47, 16, 3, 48, 2, 33, 17};
    for (bj_objective_kind kind = BJ_FULLSET; kind <= BJ_ANCHOR_B; kind++) {
        const bj_arch arch = small_arch_for(kind);
        const bj_objective plain = bj_objective_default(kind);
        const bj_trainer_options options =
            options_for(kind % 2 ? regularized(plain) : plain, 48, 3, NULL); /* includes stage A */
        train_case c = open_case_with(&arch, &options, 1);
        bj_metrics *metrics = NULL;
        bj_error err;
        CHECK_OK(bj_metrics_create(&metrics, arch.atoms, kind == BJ_OUTPUTONLY ? 1 : arch.atoms,
                                   arch.latent, arch.fut, &err),
                 err);
        made_batch scenes[10];
        for (int i = 0; i < 10; i++) scenes[i] = make_batch(&arch, sizes[i], -1, -1, (uint64_t)i);
        const long count = bj_alloc_count();
        for (int i = 0; i < 10; i++) {
            CHECK_OK(bj_trainer_gradients(c.trainer, &scenes[i].batch, NULL, &err), err);
            CHECK_OK(bj_trainer_step(c.trainer, &scenes[i].batch, 1e-3, NULL, &err), err);
            if (kind == BJ_ANCHOR_A) continue; /* makes no forecast */
            const bj_outputs o = bj_trainer_outputs(c.trainer);
            CHECK_OK(bj_metrics_add(metrics, &o, scenes[i].future, &err), err);
        }
        CHECK_MSG(bj_alloc_count() == count, "%s: %ld allocations after creation",
                  bj_objective_name(kind), bj_alloc_count() - count);
        for (int i = 0; i < 10; i++) free_batch(&scenes[i]);
        bj_metrics_free(metrics);
        close_case(&c);
    }
}

/* A call that can run out of memory. */
typedef struct attempt {
    const char *name;
    bj_status (*make)(void **out, bj_error *err);
    void (*release)(void *made);
} attempt;

static bj_model *shared_model;

static bj_status make_model(void **out, bj_error *err) {
    const bj_arch arch = small_arch();
    bj_model *model = (bj_model *)out; /* must be reset to NULL */
    const bj_status status = bj_model_create(&model, &arch, 1, err);
    *out = model;
    return status;
}
static void release_model(void *made) { bj_model_free(made); }

static bj_status make_trainer(void **out, bj_error *err) {
    const bj_trainer_options options = options_for(bj_objective_default(BJ_FULLSET), 4, 3, NULL);
    bj_trainer *trainer = (bj_trainer *)out;
    const bj_status status = bj_trainer_create(&trainer, shared_model, &options, err);
    *out = trainer;
    return status;
}
static void release_trainer(void *made) { bj_trainer_free(made); }

static bj_status make_synthetic(void **out, bj_error *err) {
    const bj_arch arch = small_arch();
    bj_scenes *scenes = (bj_scenes *)out;
    const bj_status status = bj_scenes_synthetic(&scenes, &arch, 5, 1, err);
    *out = scenes;
    return status;
}

static bj_status make_padded(void **out, bj_error *err) {
    const bj_arch arch = small_arch();
    static bj_real zeros[4096];
    static const uint8_t mask[64] = {1, 0, 1, 1};
    bj_scenes *scenes = (bj_scenes *)out;
    const bj_status status =
        bj_scenes_from_padded(&scenes, &arch, 2, zeros, zeros, mask, zeros, mask, zeros, err);
    *out = scenes;
    return status;
}
static void release_scenes(void *made) { bj_scenes_free(made); }

static bj_status make_metrics(void **out, bj_error *err) {
    bj_metrics *metrics = (bj_metrics *)out;
    const bj_status status = bj_metrics_create(&metrics, 6, 6, 32, 10, err);
    *out = metrics;
    return status;
}
static void release_metrics(void *made) { bj_metrics_free(made); }

static bj_status make_health(void **out, bj_error *err) {
    static const bj_real z[4] = {1, 2, 3, 4};
    bj_latent_health health;
    *out = NULL;
    return bj_latent_health_measure(&health, z, 2, 2, 2, err);
}

static bj_status make_parity(void **out, bj_error *err) {
    const bj_parity_options options = {2, NULL};
    bj_parity_report report;
    *out = NULL;
    return bj_parity_file(&report, golden, &options, err);
}
static void release_nothing(void *made) { (void)made; }

/* Lets the n-th allocation fail, for every n until the call succeeds. */
static void test_failing_allocations(void) {
    static const attempt attempts[] = {
        {"bj_model_create", make_model, release_model},
        {"bj_trainer_create", make_trainer, release_trainer},
        {"bj_scenes_synthetic", make_synthetic, release_scenes},
        {"bj_scenes_from_padded", make_padded, release_scenes},
        {"bj_metrics_create", make_metrics, release_metrics},
        {"bj_latent_health_measure", make_health, release_nothing},
        {"bj_parity_file", make_parity, release_nothing},
    };
    const bj_arch arch = small_arch();
    bj_error err;
    CHECK_OK(bj_model_create(&shared_model, &arch, 1, &err), err);
    const size_t weights = shared_model->layout.size * sizeof(bj_real);
    const uint64_t before = hash_bytes(0, shared_model->weights, weights);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const attempt *a = &attempts[i];
        const long live = bj_alloc_live();
        void *made = NULL;
        int n = 0;
        for (; n < 1000; n++) {
            err = (bj_error){BJ_OK, ""};
            bj_alloc_fail_after(n);
            const bj_status status = a->make(&made, &err);
            bj_alloc_fail_after(-1);
            if (status == BJ_OK) break;
            CHECK_MSG(status == BJ_ENOMEM && err.code == BJ_ENOMEM, "%s, allocation %d: %s (%s)",
                      a->name, n, bj_status_name(status), err.message);
            CHECK_MSG(strstr(err.message, "memory"), "%s: '%s'", a->name, err.message);
            CHECK_MSG(made == NULL, "%s, allocation %d: the handle is not NULL", a->name, n);
            CHECK_MSG(bj_alloc_live() == live, "%s, allocation %d: %ld blocks leak", a->name, n,
                      bj_alloc_live() - live);
        }
        CHECK_MSG(n > 0 && n < 1000, "%s: %d allocations could fail", a->name, n);
        a->release(made);
        CHECK_MSG(bj_alloc_live() == live, "%s leaks %ld blocks", a->name, bj_alloc_live() - live);
        bj_alloc_fail_after(0); /* err may be NULL */
        CHECK(a->make(&made, NULL) == BJ_ENOMEM);
        bj_alloc_fail_after(-1);
    }
    CHECK(hash_bytes(0, shared_model->weights, weights) == before);
    bj_model_free(shared_model);
}

/* -------------------------------------------------------------------------------- bad numbers */

typedef struct pair {
    train_case c, control; /* the control trainer never gets a bad batch */
    made_batch good;
    bj_arch arch;
} pair;

static pair open_pair(bj_objective_kind kind, int B, int threads, const char *isa) {
    pair p = {.arch = small_arch_for(kind)};
    const bj_trainer_options options = options_for(bj_objective_default(kind), B, threads, isa);
    p.c = open_case_with(&p.arch, &options, 1);
    p.control = open_case_with(&p.arch, &options, 1);
    p.good = make_batch(&p.arch, B, 2, 2, 3);
    bj_error err;
    CHECK_OK(bj_trainer_step(p.c.trainer, &p.good.batch, 1e-3, NULL, &err), err);
    CHECK_OK(bj_trainer_step(p.control.trainer, &p.good.batch, 1e-3, NULL, &err), err);
    CHECK(hash_state(&p.c) == hash_state(&p.control));
    return p;
}

/* Checks that the result of a valid step after failed steps is bit-identical to that of a step
 * without them. */
static void close_pair(pair *p) {
    bj_step_report a, b;
    bj_error err;
    CHECK_OK(bj_trainer_step(p->c.trainer, &p->good.batch, 1e-3, &a, &err), err);
    CHECK_OK(bj_trainer_step(p->control.trainer, &p->good.batch, 1e-3, &b, &err), err);
    CHECK(a.step == 2 && a.loss.total == b.loss.total && a.grad_norm == b.grad_norm);
    CHECK(hash_state(&p->c) == hash_state(&p->control));
    free_batch(&p->good);
    close_case(&p->c);
    close_case(&p->control);
}

static void expect_refusal(pair *p, const char *scene, const char *array) {
    const uint64_t before = hash_state(&p->c);
    bj_step_report report = {.step = -7};
    bj_error err = {BJ_OK, ""};
    CHECK(bj_trainer_step(p->c.trainer, &p->good.batch, 1e-3, &report, &err) == BJ_ENONFINITE);
    CHECK(err.code == BJ_ENONFINITE && report.step == -7);
    CHECK_CONTAINS(err.message, scene);
    CHECK_CONTAINS(err.message, array);
    CHECK(hash_state(&p->c) == before);
    CHECK(bj_trainer_step(p->c.trainer, &p->good.batch, 1e-3, NULL, NULL) == BJ_ENONFINITE);
    CHECK(bj_trainer_gradients(p->c.trainer, &p->good.batch, NULL, &err) == BJ_ENONFINITE);
    CHECK(hash_state(&p->c) == before);
}

static void test_bad_numbers(bj_objective_kind kind, int threads) {
    enum { B = 37 };
    pair p = open_pair(kind, B, threads, NULL);
    const struct {
        const char *name;
        bj_real *data;
        size_t scene; /* number of values per scene */
    } arrays[] = {{"focal", p.good.focal, (size_t)p.arch.obs * 7},
                  {"neighbors", p.good.neighbors, 2 * (size_t)p.arch.obs * 7},
                  {"polylines", p.good.polylines, 2 * (size_t)p.arch.points * 6},
                  {"future", p.good.future, 2 * (size_t)p.arch.fut}};
    static const int scenes[] = {0, 17, B - 1};
    const bj_real values[] = {(bj_real)NAN, (bj_real)INFINITY, (bj_real)-INFINITY};
    for (int i = 0; i < 12; i++) {
        const size_t n = arrays[i % 4].scene;
        const int b = scenes[i / 4];
        /* the first, the last or a middle value */
        bj_real *at =
            arrays[i % 4].data + (size_t)b * n + (i % 3 == 0 ? 0 : n * (size_t)(i % 3) / 2 - 1);
        const bj_real kept = *at;
        char scene[32];
        snprintf(scene, sizeof scene, "scene %d ", b);
        *at = values[i % 3];
        expect_refusal(&p, scene, arrays[i % 4].name);
        *at = kept;
    }
    /* If several scenes are bad, the message must name the first one, regardless of the number of
     * threads. */
    p.good.future[20 * 2 * p.arch.fut] = p.good.focal[30 * p.arch.obs * 7] = (bj_real)NAN;
    const bj_real kept = p.good.polylines[19 * 2 * p.arch.points * 6];
    p.good.polylines[19 * 2 * p.arch.points * 6] = (bj_real)NAN;
    expect_refusal(&p, "scene 19 ", "polylines");
    p.good.future[20 * 2 * p.arch.fut] = p.good.focal[30 * p.arch.obs * 7] = 0;
    p.good.polylines[19 * 2 * p.arch.points * 6] = kept;
    close_pair(&p);
}

/* Tests weights near the maximum of the type, one tensor at a time. The step may succeed, because
 * gates saturate. If it fails, all weights must stay finite. */
static void test_huge_weights(bj_objective_kind kind) {
    const bj_real huge = (bj_real)((sizeof(bj_real) == sizeof(double) ? DBL_MAX : FLT_MAX) / 8);
    pair p = open_pair(kind, 5, 2, NULL);
    const size_t size = p.c.model->layout.size;
    bj_real *kept = case_alloc(3 * size, sizeof *kept);
    int refused = 0, must = 0;
    for (int i = 0; i < p.c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p.c.model, i);
        /* These tensors are squared in the loss. Stage A uses only smooth
         * L1 for the decoded future. */
        static const char *const fatal[] = {"encoder.proj.2.bias", "decoder.2.bias", "base.bias",
                                            "decoder.2.weight", "base.weight"};
        const int fatals = kind == BJ_ANCHOR_A ? 1 : 5;
        memcpy(kept, p.c.model->weights, size * sizeof *kept);
        memcpy(kept + size, p.c.trainer->mean, size * sizeof *kept);
        memcpy(kept + 2 * size, p.c.trainer->variance, size * sizeof *kept);
        bj_real *target = case_alloc(p.c.model->layout.encoder_size, sizeof *target);
        memcpy(target, p.c.trainer->target_weights,
               p.c.model->layout.encoder_size * sizeof *target);
        const long step = p.c.trainer->step;
        for (size_t j = 0; j < w.size; j++) w.data[j] = j % 2 ? -huge : huge;
        const uint64_t before = hash_state(&p.c);
        bj_error err = {BJ_OK, ""};
        const bj_status status = bj_trainer_step(p.c.trainer, &p.good.batch, 1e-3, NULL, &err);
        int is_fatal = 0;
        for (int f = 0; f < fatals; f++) is_fatal |= strcmp(w.name, fatal[f]) == 0;
        must += is_fatal;
        CHECK_MSG(status == BJ_ENONFINITE || (status == BJ_OK && !is_fatal), "%s %s: %s",
                  bj_objective_name(kind), w.name, bj_status_name(status));
        if (status == BJ_OK) {
            int finite = 1;
            for (size_t j = 0; j < size; j++)
                finite &= isfinite(p.c.model->weights[j]) && isfinite(p.c.trainer->mean[j]) &&
                          isfinite(p.c.trainer->variance[j]);
            CHECK_MSG(finite, "%s: a step with huge %s left weights that are not finite",
                      bj_objective_name(kind), w.name);
        } else {
            refused++;
            CHECK_MSG(hash_state(&p.c) == before, "%s: refused, and yet changed", w.name);
            if (is_fatal) CHECK_CONTAINS(err.message, "scene 0 of the batch: the loss is");
            CHECK_MSG(strstr(err.message, "loss") || strstr(err.message, "gradient"), "'%s'",
                      err.message);
        }
        memcpy(p.c.model->weights, kept, size * sizeof *kept);
        memcpy(p.c.trainer->mean, kept + size, size * sizeof *kept);
        memcpy(p.c.trainer->variance, kept + 2 * size, size * sizeof *kept);
        memcpy(p.c.trainer->target_weights, target,
               p.c.model->layout.encoder_size * sizeof *target);
        p.c.trainer->step = step;
        free(target);
    }
    CHECK_MSG(refused > 0 && must > 0, "%d steps were refused", refused);
    free(kept);
    close_pair(&p);
}

/* Tests that a scene with finite values but a non-finite loss is named in the message. */
static void test_overflowing_scene(bj_objective_kind kind) {
    pair p = open_pair(kind, 37, 3, NULL);
    bj_real *future = p.good.future + 23 * 2 * p.arch.fut, kept = future[5];
    future[5] = (bj_real)(sizeof(bj_real) == sizeof(double) ? 1e300 : 1e30);
    expect_refusal(&p, "scene 23 ", "the loss is ");
    future[5] = kept;
    close_pair(&p);
}

/* Tests a finite loss with a non-finite gradient. The focal tracks are zero, so the GRU state is
 * zero for any weights, but the backward pass multiplies by the large weights at every step. */
static void test_overflowing_gradient(void) {
    const bj_real large = (bj_real)(sizeof(bj_real) == sizeof(double) ? 1e150 : 1e20);
    pair p = open_pair(BJ_FULLSET, 5, 2, NULL);
    const size_t size = p.c.model->layout.size, focal = 5 * (size_t)p.arch.obs * 7;
    bj_real *weights = case_alloc(size, sizeof *weights), *kept = case_alloc(focal, sizeof *kept);
    memcpy(weights, p.c.model->weights, size * sizeof *weights);
    memcpy(kept, p.good.focal, focal * sizeof *kept);
    memset(p.good.focal, 0, focal * sizeof *kept);
    for (int i = 0; i < p.c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p.c.model, i);
        if (!starts_with(w.name, "encoder.gru.")) continue;
        for (size_t j = 0; j < w.size; j++) w.data[j] = strstr(w.name, "weight_hh") ? large : 0;
    }
    expect_refusal(&p, "the gradient norm is ", "n");
    memcpy(p.c.model->weights, weights, size * sizeof *weights);
    memcpy(p.good.focal, kept, focal * sizeof *kept);
    free(weights);
    free(kept);
    close_pair(&p);
}

/* Tests NaN in the weights of the model and of the target. */
static void test_bad_weights(const char *isa) {
    pair p = open_pair(BJ_FULLSET, 5, 2, isa);
    for (int i = 0; i < p.c.tensors; i++) {
        const bj_tensor w = bj_model_tensor(p.c.model, i), t = bj_trainer_target(p.c.trainer, i);
        for (int target = 0; target < (t.data ? 2 : 1); target++) {
            /* In this case, the target has no neighbors, so it uses only the bias of this layer. */
            if (target && strcmp(w.name, "encoder.neighbor.0.weight") == 0) continue;
            bj_real *at = (target ? t.data : w.data) + w.size / 2, kept = *at;
            bj_error err = {BJ_OK, ""};
            *at = (bj_real)NAN;
            const bj_status status = bj_trainer_step(p.c.trainer, &p.good.batch, 1e-3, NULL, &err);
            CHECK_MSG(status == BJ_ENONFINITE, "NaN in %s%s: %s", target ? "the target's " : "",
                      w.name, bj_status_name(status));
            *at = kept;
            CHECK(hash_state(&p.c) == hash_state(&p.control));
        }
    }
    close_pair(&p);
}

/* ---------------------------------------------------------------------------------- bad batches */

static void expect_bad_batch(train_case *c, bj_batch batch, const char *what, const char *found) {
    const uint64_t before = hash_state(c);
    bj_error err = {BJ_OK, ""};
    CHECK(bj_trainer_step(c->trainer, &batch, 1e-3, NULL, &err) == BJ_EARG);
    CHECK(err.code == BJ_EARG);
    CHECK_CONTAINS(err.message, what);
    CHECK_CONTAINS(err.message, found);
    CHECK(hash_state(c) == before);
    CHECK(bj_trainer_step(c->trainer, &batch, 1e-3, NULL, NULL) == BJ_EARG);
}

static void test_bad_batches(void) {
    const bj_arch arch = small_arch();
    train_case c = open_case(&arch, bj_objective_default(BJ_FULLSET), 4);
    made_batch m = make_batch(&arch, 4, 2, 2, 1);
    bj_batch b = m.batch;
    b.B = 0;
    expect_bad_batch(&c, b, "0 scenes", "expected 1 to 4");
    b.B = -3;
    expect_bad_batch(&c, b, "-3 scenes", "expected 1 to 4");
    b.B = 5;
    expect_bad_batch(&c, b, "5 scenes", "expected 1 to 4");
    b = m.batch, b.scenes = NULL;
    expect_bad_batch(&c, b, "scenes is NULL", "expected 4 scenes");
#define BAD(scene, field, value, what, found)                                                      \
    do {                                                                                           \
        const bj_scene kept = m.scenes[scene];                                                     \
        m.scenes[scene].field = value;                                                             \
        expect_bad_batch(&c, m.batch, what, found);                                                \
        m.scenes[scene] = kept;                                                                    \
    } while (0)
    BAD(2, focal, NULL, "scene 2", "focal is NULL");
    BAD(3, future, NULL, "scene 3: future is NULL", "expected 10 steps");
    BAD(0, neighbors, NULL, "scene 0: neighbors is NULL", "expected 2 rows");
    BAD(3, polylines, NULL, "scene 3: polylines is NULL", "expected 2 rows");
    BAD(1, neighbor_count, -1, "scene 1 has -1 neighbors", "expected 0 to 3");
    BAD(0, neighbor_count, 4, "scene 0 has 4 neighbors", "expected 0 to 3");
    BAD(1, neighbor_count, INT_MIN, "scene 1 has -2147483648 neighbors", "expected 0 to 3");
    BAD(2, neighbor_count, INT_MAX, "scene 2 has 2147483647 neighbors", "expected 0 to 3");
    BAD(3, polyline_count, 6, "scene 3 has 6 polylines", "expected 0 to 5");
    BAD(3, polyline_count, -1, "scene 3 has -1 polylines", "expected 0 to 5");
#undef BAD

    bj_error err;
    const double rates[] = {-1e-9, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        CHECK(bj_trainer_step(c.trainer, &m.batch, rates[i], NULL, &err) == BJ_EARG);
        CHECK_CONTAINS(err.message, "learning rate");
    }
    CHECK(c.trainer->step == 0);
    CHECK_OK(bj_trainer_step(c.trainer, &m.batch, 1e-3, NULL, &err), err);
    free_batch(&m);
    close_case(&c);
}

/* --------------------------------------------------------------------------------- bad settings */

static void expect_bad_arch(bj_arch arch, const char *field, const char *found) {
    bj_error err = {BJ_OK, ""};
    bj_model *model = (bj_model *)&err;
    CHECK(bj_arch_check(&arch, &err) == BJ_EARG);
    CHECK(bj_model_create(&model, &arch, 1, &err) == BJ_EARG && model == NULL);
    CHECK(err.code == BJ_EARG);
    CHECK_CONTAINS(err.message, field);
    CHECK_CONTAINS(err.message, found);
    CHECK_CONTAINS(err.message, "expected");
    bj_scenes *scenes = (bj_scenes *)&err;
    CHECK(bj_scenes_synthetic(&scenes, &arch, 1, 1, &err) == BJ_EARG && scenes == NULL);
    CHECK(bj_model_create(&model, &arch, 1, NULL) == BJ_EARG);
}

static void test_bad_architectures(void) {
    const bj_arch good = small_arch();
    const long live = bj_alloc_live();
#define BAD(field, value, found)                                                                   \
    do {                                                                                           \
        bj_arch arch = good;                                                                       \
        arch.field = value;                                                                        \
        expect_bad_arch(arch, #field, found);                                                      \
    } while (0)
    BAD(obs, 0, "0");
    BAD(fut, 1, "1");
    BAD(neighbors, 0, "0");
    BAD(polylines, -1, "-1");
    BAD(points, 0, "0");
    BAD(embed, 0, "0");
    BAD(embed, 9, "9"); /* not a multiple of two heads */
    BAD(heads, 0, "0");
    BAD(heads, 3, "3");
    BAD(token_hidden, 0, "0");
    BAD(latent, -5, "-5");
    BAD(proj_hidden, 0, "0");
    BAD(atoms, 0, "0");
    BAD(atoms, 65, "65");
    BAD(atom_hidden, 0, "0");
    BAD(router_hidden, 0, "0");
    BAD(decoder_hidden, 0, "0");
    BAD(trunk, 0, "0");
    BAD(embed, INT_MAX, "2147483647");
    BAD(atom_hidden, INT_MAX, "2147483647");
    BAD(dt, 0, "0");
    BAD(dt, -0.1, "-0.1");
    BAD(dt, NAN, "nan");
    BAD(dt, INFINITY, "inf");
    BAD(kind, (bj_model_kind)7, "7");
    BAD(scales, (bj_scales)9, "9");
#undef BAD
    bj_arch arch = small_arch_for(BJ_OUTPUTONLY);
    arch.fut = 15;
    expect_bad_arch(arch, "fut", "15");
    arch = small_arch_for(BJ_OUTPUTONLY), arch.scales = BJ_SCALES_GLOBAL;
    bj_error err;
    CHECK(bj_arch_check(&arch, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "scales");
    bj_error unused;
    CHECK(bj_arch_check(&good, &unused) == BJ_OK);
    CHECK(bj_alloc_live() == live);
}

static void expect_bad_options(const bj_trainer_options *options, const bj_arch *arch,
                               const char *field, const char *found) {
    bj_error err = {BJ_OK, ""};
    bj_model *model = NULL;
    CHECK_OK(bj_model_create(&model, arch, 1, &err), err);
    const long live = bj_alloc_live();
    bj_trainer *trainer = (bj_trainer *)&err;
    CHECK(bj_trainer_create(&trainer, model, options, &err) == BJ_EARG && trainer == NULL);
    CHECK_CONTAINS(err.message, field);
    CHECK_CONTAINS(err.message, found);
    CHECK_CONTAINS(err.message, "expected");
    CHECK(bj_trainer_create(&trainer, model, options, NULL) == BJ_EARG);
    CHECK(bj_alloc_live() == live);
    bj_model_free(model);
}

static void test_bad_settings(void) {
    const bj_arch arch = small_arch();
#define BAD(kind, member, value, field, found)                                                     \
    do {                                                                                           \
        bj_trainer_options o = options_for(bj_objective_default(kind), 4, 1, NULL);                \
        o.member = value;                                                                          \
        expect_bad_options(&o, &arch, field, found);                                               \
    } while (0)
    BAD(BJ_FULLSET, max_batch, 0, "max_batch", "0");
    BAD(BJ_FULLSET, max_batch, INT_MAX, "max_batch", "2147483647");
    BAD(BJ_FULLSET, threads, 5000, "threads", "5000");
    BAD(BJ_FULLSET, isa, "sse9", "instruction set", "sse9");
    BAD(BJ_FULLSET, optim.beta1, 1, "beta1", "1");
    BAD(BJ_FULLSET, optim.beta1, -0.1, "beta1", "-0.1");
    BAD(BJ_FULLSET, optim.beta2, 1.5, "beta2", "1.5");
    BAD(BJ_FULLSET, optim.beta2, NAN, "beta2", "nan");
    BAD(BJ_FULLSET, optim.eps, 0, "eps", "0");
    BAD(BJ_FULLSET, optim.weight_decay, -1, "weight_decay", "-1");
    BAD(BJ_FULLSET, optim.weight_decay, INFINITY, "weight_decay", "inf");
    BAD(BJ_FULLSET, optim.clip, 0, "clip", "0");
    BAD(BJ_FULLSET, optim.clip, NAN, "clip", "nan");
    BAD(BJ_FULLSET, optim.ema, 1.01, "ema", "1.01");
    BAD(BJ_FULLSET, optim.ema, -0.5, "ema", "-0.5");
    BAD(BJ_FULLSET, objective.lambda_z, -1, "lambda_z", "-1");
    BAD(BJ_FULLSET, objective.lambda_y, NAN, "lambda_y", "nan");
    BAD(BJ_FULLSET, objective.lambda_rec, INFINITY, "lambda_rec", "inf");
    BAD(BJ_SPECIALIZATION, objective.lambda_router, -2, "lambda_router", "-2");
    BAD(BJ_FULLSET, objective.beta, 0, "beta", "0");
    BAD(BJ_FULLSET, objective.beta, 1.1, "beta", "1.1");
    BAD(BJ_SOFTWTA, objective.tau, 0, "tau", "0");
    BAD(BJ_SINKHORN, objective.rho, 1.5, "rho", "1.5");
    BAD(BJ_SINKHORN, objective.eps, 0, "eps", "0");
    BAD(BJ_SINKHORN, objective.sinkhorn_iters, 0, "sinkhorn_iters", "0");
    BAD(BJ_MDN, objective.sigma_z, 0, "sigma_z", "0");
    BAD(BJ_MDN, objective.sigma_y, -4, "sigma_y", "-4");
    BAD(BJ_MDN, objective.usage_kl, -1, "usage_kl", "-1");
    BAD(BJ_ANCHOR_A, objective.rank_floor, 0, "rank_floor", "0");
    BAD(BJ_FULLSET, objective.kind, (bj_objective_kind)42, "kind", "42");
    BAD(BJ_OUTPUTONLY, threads, 1, "outputonly", "branch"); /* wrong model */
#undef BAD
    bj_arch scaled = arch, single = small_arch_for(BJ_OUTPUTONLY);
    scaled.scales = BJ_SCALES_COMPONENT;
    bj_trainer_options o = options_for(bj_objective_default(BJ_FULLSET), 4, 1, NULL);
    expect_bad_options(&o, &scaled, "scales", "component");
    expect_bad_options(&o, &single, "fullset", "output-only");
    o.objective.lambda_z = o.objective.lambda_y = o.objective.lambda_rec = 0;
    expect_bad_options(&o, &arch, "lambda_z", "no term is left");
}

int main(void) {
    test_no_allocation();
    test_failing_allocations();
    for (int threads = 1; threads <= 3; threads += 2) {
        test_bad_numbers(BJ_FULLSET, threads);
        test_bad_numbers(BJ_SINKHORN, threads);
        test_bad_numbers(BJ_ANCHOR_A, threads);
    }
    test_bad_numbers(BJ_OUTPUTONLY, 2);
    test_huge_weights(BJ_FULLSET);
    test_huge_weights(BJ_MDN);
    test_huge_weights(BJ_SINKHORN);
    test_huge_weights(BJ_OUTPUTONLY);
    test_huge_weights(BJ_ANCHOR_A);
    test_overflowing_scene(BJ_FULLSET);
    test_overflowing_scene(BJ_SINKHORN);
    test_overflowing_gradient();
    for (int i = 0; bj_kernels_at(i); i++) test_bad_weights(bj_kernels_at(i)->isa);
    test_bad_batches();
    test_bad_architectures();
    test_bad_settings();
    return test_report("robustness");
}
