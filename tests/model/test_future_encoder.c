/* test_future_encoder.c - tests that the latents of true futures equal those of the training step.
 *
 * The reference is bj_outputs.target and .recon of bj_trainer_gradients with one thread. The
 * comparison is bit for bit and covers several objectives (the target encoder, and stage A's own
 * encoder), several K, each instruction set, 1 to 3 threads and any split of the batch. Other tests
 * cover rejected inputs and copied weights, and check that encoding allocates no memory.
 */
#include "core/alloc.h"
#include "kernels/kernels.h"
#include "train/train_case.h"

enum { SCENES = 45 };

static void require(bj_status status, const bj_error *err) {
    if (status == BJ_OK) return;
    fprintf(stderr, "cannot go on: %s\n", err->message);
    exit(1);
}

/* A trainer whose target differs from its online encoder, and its outputs for a batch. */
typedef struct reference {
    train_case train;
    bj_target *target;
    bj_outputs outputs;
    int rounded; /* equal only up to rounding */
} reference;

static reference make_reference(const bj_arch *arch, bj_objective_kind kind, const char *isa,
                                const bj_batch *batch) {
    bj_error err;
    const bj_trainer_options options = options_for(bj_objective_default(kind), SCENES, 1, isa);
    reference r = {.train = open_case_with(arch, &options, 3)};
    bj_rng rng = bj_rng_seed(9);
    for (int i = 0; i < r.train.tensors; i++) {
        const bj_tensor t = bj_model_tensor(r.train.model, i);
        for (size_t j = 0; j < t.size; j++) t.data[j] += (bj_real)(0.1 * bj_rng_normal(&rng));
    }
    r.rounded = kind == BJ_ANCHOR_A;
    shake_target(&r.train, 0.2, 4);
    require(bj_trainer_gradients(r.train.trainer, batch, NULL, &err), &err);
    r.outputs = bj_trainer_outputs(r.train.trainer);
    if (kind == BJ_ANCHOR_A) require(bj_target_from_model(&r.target, r.train.model, &err), &err);
    else require(bj_target_from_trainer(&r.target, r.train.trainer, &err), &err);
    return r;
}

static void free_reference(reference *r) {
    bj_target_free(r->target);
    close_case(&r->train);
}

/* Returns 1 if n numbers are equal. They must be bit-identical, unless the trained encoder itself
 * encodes futures. In that case they may differ by rounding errors, because the attention of that
 * encoder has another form. */
static int same_numbers(const reference *r, const bj_real *a, const bj_real *b, size_t n) {
    const double most = sizeof(bj_real) == 8 ? 1e-12 : 2e-5;
    if (!r->rounded) return memcmp(a, b, n * sizeof *a) == 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= most * (1 + fabs((double)b[i])))) return 0;
    return 1;
}

/* Returns 1 if the latents and reconstructions of scenes [first,first+count) equal those of the
 * training step. */
static int same(const reference *r, const bj_real *latents, const bj_real *recon, int first,
                int count) {
    const bj_outputs *o = &r->outputs;
    const size_t D = (size_t)o->D, line = 2 * (size_t)o->F;
    for (size_t i = 0; i < (size_t)count; i++) {
        const size_t b = (size_t)first + i;
        if (!same_numbers(r, latents + i * D, o->target + b * o->atom_stride, D)) return 0;
        if (recon && !same_numbers(r, recon + i * line, o->recon + b * o->decoded_stride, line))
            return 0;
    }
    return 1;
}

typedef struct answer {
    bj_real *latents, *recon;
} answer;

static answer make_answer(const bj_arch *a) {
    return (answer){case_alloc((size_t)SCENES * (size_t)a->latent, sizeof(bj_real)),
                    case_alloc((size_t)SCENES * 2 * (size_t)a->fut, sizeof(bj_real))};
}

static void free_answer(answer *a) {
    free(a->latents);
    free(a->recon);
}

static void test_one(const bj_arch *arch, bj_objective_kind kind, const char *isa) {
    bj_error err;
    made_batch made = make_batch(arch, SCENES, -1, -1, 5);
    reference r = make_reference(arch, kind, isa, &made.batch);
    answer got = make_answer(arch);
    for (int threads = 1; threads <= 3; threads++) {
        const bj_predictor_options options = {SCENES, threads, BJ_PRECISION_FULL, isa};
        bj_future_encoder *e;
        require(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err), &err);
        CHECK_OK(bj_future_encode(e, &made.batch, got.latents, got.recon, &err), err);
        CHECK_MSG(same(&r, got.latents, got.recon, 0, SCENES), "%s, %s, K = %d, %d threads",
                  bj_objective_name(kind), isa, arch->atoms, threads);
        memset(got.latents, 0, (size_t)SCENES * (size_t)arch->latent * sizeof(bj_real));
        CHECK_OK(bj_future_encode(e, &made.batch, got.latents, NULL, &err), err);
        CHECK(same(&r, got.latents, NULL, 0, SCENES));
        for (int first = 0, count = 1; first + count <= SCENES; first += count, count += 3) {
            const bj_batch part = {.B = count, .scenes = made.scenes + first};
            CHECK_OK(bj_future_encode(e, &part, got.latents, got.recon, &err), err);
            CHECK_MSG(same(&r, got.latents, got.recon, first, count), "scenes %d to %d", first,
                      first + count - 1);
        }
        bj_future_encoder_free(e);
    }
    free_answer(&got);
    free_reference(&r);
    free_batch(&made);
}

static void test_bits(void) {
    static const bj_objective_kind kinds[] = {BJ_FULLSET, BJ_OUTPUTONLY, BJ_ANCHOR_A, BJ_ANCHOR_B};
    for (int i = 0; bj_kernels_at(i); i++) {
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            const bj_arch arch = small_arch_for(kinds[j]);
            test_one(&arch, kinds[j], bj_kernels_at(i)->isa);
        }
        bj_arch point = small_arch(), wide = small_arch();
        point.atoms = 1;
        wide.atoms = 6;
        wide.latent = wide.decoder_hidden = 64;
        test_one(&point, BJ_FULLSET, bj_kernels_at(i)->isa);
        test_one(&wide, BJ_FULLSET, bj_kernels_at(i)->isa);
    }
}

/* Tests that latents have length one and differ between scenes. */
static void test_meaning(void) {
    bj_error err;
    const bj_arch arch = small_arch();
    made_batch made = make_batch(&arch, SCENES, -1, -1, 5);
    reference r = make_reference(&arch, BJ_FULLSET, NULL, &made.batch);
    answer got = make_answer(&arch);
    const bj_predictor_options options = {SCENES, 1, BJ_PRECISION_FULL, NULL};
    bj_future_encoder *e;
    require(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err), &err);
    CHECK_OK(bj_future_encode(e, &made.batch, got.latents, got.recon, &err), err);
    for (size_t b = 0; b < SCENES; b++) {
        double square = 0, difference = 0;
        for (size_t d = 0; d < 9; d++) {
            const double z = got.latents[b * 9 + d], other = got.latents[(b + 1) % SCENES * 9 + d];
            square += z * z;
            difference += fabs(z - other);
        }
        CHECK_NEAR(square, 1, 1e-5);
        CHECK(difference > 1e-4);
    }
    /* Neither the focal track nor the neighbors in the observed past are used. */
    made.focal[0] = (bj_real)NAN;
    if (made.neighbors) made.neighbors[0] = (bj_real)NAN;
    CHECK_OK(bj_future_encode(e, &made.batch, got.latents, got.recon, &err), err);
    CHECK(same(&r, got.latents, got.recon, 0, SCENES));
    bj_future_encoder_free(e);
    free_answer(&got);
    free_reference(&r);
    free_batch(&made);
}

static void test_copies_and_allocates_nothing(void) {
    bj_error err;
    const bj_arch arch = small_arch();
    made_batch made = make_batch(&arch, SCENES, -1, -1, 5);
    reference r = make_reference(&arch, BJ_FULLSET, NULL, &made.batch);
    answer got = make_answer(&arch);
    const bj_predictor_options options = {SCENES, 2, BJ_PRECISION_FULL, NULL};
    const long live = bj_alloc_live();
    bj_future_encoder *e;
    require(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err), &err);
    for (int i = 0; i < r.train.tensors; i++) { /* overwrite the originals */
        const bj_tensor t = bj_model_tensor(r.train.model, i);
        for (size_t j = 0; j < t.size; j++) t.data[j] = (bj_real)NAN;
    }
    bj_target_free(r.target);
    r.target = NULL;
    const long before = bj_alloc_count();
    CHECK_OK(bj_future_encode(e, &made.batch, got.latents, got.recon, &err), err);
    CHECK(bj_alloc_count() == before);
    CHECK(same(&r, got.latents, got.recon, 0, SCENES));
    bj_future_encoder_free(e);
    CHECK(bj_alloc_live() < live); /* the target has been freed */
    free_answer(&got);
    free_reference(&r);
    free_batch(&made);
}

static void test_refusals(void) {
    bj_error err;
    const bj_arch arch = small_arch();
    made_batch made = make_batch(&arch, SCENES, -1, 2, 5);
    reference r = make_reference(&arch, BJ_FULLSET, NULL, &made.batch);
    answer got = make_answer(&arch);
    bj_predictor_options options = {SCENES - 1, 1, BJ_PRECISION_FULL, NULL};
    bj_future_encoder *e;
    require(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err), &err);
    CHECK(bj_future_encode(e, &made.batch, got.latents, NULL, &err) == BJ_EARG); /* too many
                                                                                    scenes */
    made.batch.B = 9;
    CHECK(bj_future_encode(e, &made.batch, NULL, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "latents");
    made.future[2 * 10 * 7 + 3] = (bj_real)INFINITY;
    CHECK(bj_future_encode(e, &made.batch, got.latents, NULL, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "scene 7");
    CHECK_CONTAINS(err.message, "future");
    made.polylines[2 * 3 * BJ_POLYLINE_FEATURES * 5] = (bj_real)NAN;
    CHECK(bj_future_encode(e, &made.batch, got.latents, NULL, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "scene 5");
    CHECK_CONTAINS(err.message, "polylines");
    made.scenes[2].future = NULL;
    CHECK(bj_future_encode(e, &made.batch, got.latents, NULL, &err) == BJ_EARG);
    bj_future_encoder_free(e);

    options.max_batch = 0;
    CHECK(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err) == BJ_EARG && !e);
    options = (bj_predictor_options){4, 1, BJ_PRECISION_FULL, "abacus"};
    CHECK(bj_future_encoder_create(&e, r.train.model, r.target, &options, &err) != BJ_OK && !e);

    /* Test a target with other sizes, and a target that differs only in the layers after the
     * encoder. */
    bj_model *model;
    bj_arch other = arch;
    options.isa = NULL;
    other.embed = 16;
    require(bj_model_create(&model, &other, 1, &err), &err);
    CHECK(bj_future_encoder_create(&e, model, r.target, &options, &err) == BJ_EMISMATCH && !e);
    CHECK_CONTAINS(err.message, "embed is 8, expected 16");
    bj_model_free(model);
    other = arch;
    other.atoms = 5;
    other.atom_hidden = 30;
    require(bj_model_create(&model, &other, 1, &err), &err);
    CHECK_OK(bj_future_encoder_create(&e, model, r.target, &options, &err), err);
    bj_future_encoder_free(e);
    bj_model_free(model);
    bj_future_encoder_free(NULL);
    bj_target_free(NULL);
    free_answer(&got);
    free_reference(&r);
    free_batch(&made);
}

/* Tests that every failed allocation is reported. */
static void test_memory(void) {
    bj_error err;
    const bj_arch arch = small_arch();
    made_batch made = make_batch(&arch, SCENES, -1, -1, 5);
    reference r = make_reference(&arch, BJ_FULLSET, NULL, &made.batch);
    const bj_predictor_options options = {8, 1, BJ_PRECISION_FULL, NULL};
    const long live = bj_alloc_live();
    int failures = 0;
    for (int n = 0;; n++) {
        bj_target *target = NULL;
        bj_future_encoder *e = NULL;
        bj_alloc_fail_after(n);
        bj_status status = bj_target_from_model(&target, r.train.model, &err);
        if (status == BJ_OK)
            status = bj_future_encoder_create(&e, r.train.model, target, &options, &err);
        bj_alloc_fail_after(-1);
        bj_future_encoder_free(e);
        bj_target_free(target);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM);
        failures++;
    }
    CHECK(failures >= 6);
    free_reference(&r);
    free_batch(&made);
}

int main(void) {
    test_bits();
    test_meaning();
    test_copies_and_allocates_nothing();
    test_refusals();
    test_memory();
    return test_report("future_encoder");
}
