/* test_predictor.c - tests that predictions equal those of the training step bit for bit.
 *
 * The reference is bj_trainer_outputs with one thread. The comparison covers all three model kinds,
 * each instruction set and 1, 2 and 3 threads, both for batches (blocks of scenes) and for one or
 * two scenes (all workers on one row). Other tests cover uniform weights, 16-bit weights and
 * rejected inputs, and check that prediction allocates no memory.
 *
 * Without arguments the program runs the tests. With arguments:
 *   export CHECKPOINT OUTPUTS [branch|point|outputonly]
 *     saves a model and, as safetensors, padded inputs x.* with the outputs of bj_predict: o.y,
 *     o.weights, o.u. tests/peers/peer_checkpoint_in_torch.py repeats the prediction in PyTorch.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "kernels/kernels.h"
#include "support/test.h"

enum { SCENES = 37 /* blocks of 16, 8, 4 and the remainder */, SEED = 11 };

/* ------------------------------------------------------------------------------- architectures */

/* Returns sizes that are not multiples of any vector width. */
static bj_arch odd_branch(void) {
    return (bj_arch){.kind = BJ_MODEL_BRANCH,
                     .obs = 7,
                     .fut = 10,
                     .neighbors = 5,
                     .polylines = 5, /* so few that some scenes have none */
                     .points = 3,
                     .embed = 21,
                     .heads = 3,
                     .token_hidden = 19,
                     .latent = 23,
                     .proj_hidden = 29,
                     .atoms = 5,
                     .atom_hidden = 37,
                     .router_hidden = 13,
                     .decoder_hidden = 41,
                     .trunk = 43,
                     .dt = 0.1};
}

/* Returns an architecture with the paper's proportions in which every size is a multiple of 16. */
static bj_arch round_branch(void) {
    bj_arch arch = bj_arch_paper();
    arch.obs = 12;
    arch.fut = 20;
    arch.neighbors = 6;
    arch.polylines = 12;
    arch.embed = 64;
    arch.token_hidden = 96;
    arch.latent = arch.proj_hidden = arch.atom_hidden = arch.decoder_hidden = 96;
    arch.router_hidden = 48;
    arch.trunk = 160;
    return arch;
}

static bj_arch as_point(bj_arch arch) {
    arch.atoms = 1;
    arch.atom_hidden = 3 * arch.atom_hidden + 1;
    return arch;
}

static bj_arch as_output_only(bj_arch arch) {
    arch.kind = BJ_MODEL_OUTPUT_ONLY;
    return arch;
}

static int latents_of(const bj_arch *a) { return a->kind == BJ_MODEL_OUTPUT_ONLY ? 1 : a->atoms; }

/* ------------------------------------------------------------------------------------- helpers */

static void require(bj_status status, const bj_error *err) {
    if (status == BJ_OK) return;
    fprintf(stderr, "cannot go on: %s\n", err->message);
    exit(1);
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) exit(1);
    return memory;
}

/* Creates a model and moves every bias and scale away from its initial zero or one. */
static bj_model *make_model(const bj_arch *arch) {
    bj_error err;
    bj_model *model;
    bj_rng rng = bj_rng_seed(SEED);
    require(bj_model_create(&model, arch, SEED, &err), &err);
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor tensor = bj_model_tensor(model, i);
        for (size_t j = 0; j < tensor.size; j++)
            tensor.data[j] += (bj_real)(0.05 * bj_rng_normal(&rng));
    }
    return model;
}

/* Outputs of a prediction. */
typedef struct result {
    bj_real *weights, *paths, *atoms;
    size_t weight_row, path_row, atom_row; /* numbers per scene */
} result;

static result make_result(const bj_arch *a, int B) {
    const size_t K = (size_t)a->atoms, b = (size_t)B;
    result r = {.weight_row = K,
                .path_row = K * 2 * (size_t)a->fut,
                .atom_row = (size_t)latents_of(a) * (size_t)a->latent};
    r.weights = allocate(b * r.weight_row, sizeof *r.weights);
    r.paths = allocate(b * r.path_row, sizeof *r.paths);
    r.atoms = allocate(b * r.atom_row, sizeof *r.atoms);
    return r;
}

static void free_result(result *r) {
    free(r->weights);
    free(r->paths);
    free(r->atoms);
}

/* Returns 1 if `count` scenes of a, starting at `first`, are bit-identical to the first scenes of
 * b. */
static int same_bits(const result *a, int first, const result *b, int count) {
    const size_t f = (size_t)first, n = (size_t)count, size = sizeof(bj_real);
    return !memcmp(a->weights + f * a->weight_row, b->weights, n * a->weight_row * size) &&
           !memcmp(a->paths + f * a->path_row, b->paths, n * a->path_row * size) &&
           !memcmp(a->atoms + f * a->atom_row, b->atoms, n * a->atom_row * size);
}

/* Scenes [first,first+count) of a batch as a separate batch without futures. */
typedef struct slice {
    bj_batch batch;
    bj_scene scenes[SCENES];
} slice;

static const bj_batch *cut(slice *s, const bj_batch *b, int first, int count) {
    for (int i = 0; i < count; i++) {
        s->scenes[i] = b->scenes[first + i];
        s->scenes[i].future = NULL;
    }
    s->batch = (bj_batch){.B = count, .scenes = s->scenes};
    return &s->batch;
}

static bj_predictor *make_predictor(const bj_model *model, int max_batch, int threads,
                                    bj_precision precision, const char *isa) {
    const bj_predictor_options options = {max_batch, threads, precision, isa};
    bj_error err;
    bj_predictor *predictor;
    require(bj_predictor_create(&predictor, model, &options, &err), &err);
    return predictor;
}

static void predict(result *r, bj_predictor *predictor, const bj_batch *batch) {
    bj_error err;
    const bj_status status = bj_predict(predictor, batch, r->weights, r->paths, r->atoms, &err);
    CHECK_MSG(status == BJ_OK, "%s", err.message);
}

/* Returns the outputs of the training step for the same scenes. */
static result train_forward(bj_model *model, const bj_batch *batch, const char *isa) {
    const bj_arch *a = bj_model_arch(model);
    const int output_only = a->kind == BJ_MODEL_OUTPUT_ONLY;
    const bj_trainer_options options = {
        .objective = bj_objective_default(output_only                           ? BJ_OUTPUTONLY
                                          : a->weighting == BJ_WEIGHTS_UNIFORM ? BJ_UNIFORM
                                                                               : BJ_FULLSET),
        .optim = bj_optim_default(),
        .max_batch = batch->B,
        .threads = 1,
        .isa = isa};
    const size_t B = (size_t)batch->B, D = (size_t)a->latent, line = 2 * (size_t)a->fut;
    bj_error err;
    bj_trainer *trainer;
    require(bj_trainer_create(&trainer, model, &options, &err), &err);
    require(bj_trainer_gradients(trainer, batch, NULL, &err), &err);
    const bj_outputs o = bj_trainer_outputs(trainer);
    result r = make_result(a, batch->B);
    memcpy(r.weights, o.weights, B * r.weight_row * sizeof *r.weights);
    for (size_t i = 0; i < B * (size_t)o.K; i++)
        memcpy(r.paths + i * line, o.decoded + i * o.decoded_stride, line * sizeof *r.paths);
    for (size_t i = 0; i < B * (size_t)o.latents; i++)
        memcpy(r.atoms + i * D, o.atoms + i * o.atom_stride, D * sizeof *r.atoms);
    bj_trainer_free(trainer);
    return r;
}

/* ---------------------------------------------------------------------------------- equal bits */

/* Compares the whole batch in blocks, then some single scenes and pairs, including scenes without
 * neighbors. */
static void compare(const char *name, const bj_model *model, const bj_batch *batch,
                    const result *want, int threads, bj_precision precision, const char *isa) {
    const bj_arch *a = bj_model_arch(model);
    bj_predictor *predictor = make_predictor(model, batch->B, threads, precision, isa);
    result found = make_result(a, batch->B);
    slice s;
    /* A double-precision build has only the portable table in mixed precision. */
    const int portable = sizeof(bj_real) == 8 && precision == BJ_PRECISION_BF16;
    CHECK(!strcmp(bj_predictor_isa(predictor), portable ? "c" : isa));
    predict(&found, predictor, batch);
    CHECK_MSG(same_bits(want, 0, &found, batch->B), "%s: %d scenes, %d threads, %s", name, batch->B,
              threads, isa);
    for (int size = 1; size <= 3; size++) /* 3 scenes form a block of another shape */
        for (int b = 0; b + size <= batch->B; b++) {
            const int alone = batch->scenes[b].neighbor_count == 0;
            if (b % 7 != size && !(alone && size == 1)) continue;
            memset(found.paths, 0, found.path_row * sizeof *found.paths);
            predict(&found, predictor, cut(&s, batch, b, size));
            CHECK_MSG(same_bits(want, b, &found, size), "%s: %d of scene %d, %d threads, %s", name,
                      size, b, threads, isa);
        }
    free_result(&found);
    bj_predictor_free(predictor);
}

static void test_same_bits(const char *name, const bj_arch *arch) {
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, SCENES, SEED, &err), &err);
    const bj_batch *batch = bj_scenes_batch(scenes);
    int alone = 0;
    for (int b = 0; b < SCENES; b++) alone += batch->scenes[b].neighbor_count == 0;
    CHECK(alone > 0);
    for (int i = 0; bj_kernels_at(i); i++) {
        const char *isa = bj_kernels_at(i)->isa;
        result want = train_forward(model, batch, isa);
        for (int threads = 1; threads <= 3; threads++)
            compare(name, model, batch, &want, threads, BJ_PRECISION_FULL, isa);
        free_result(&want);
    }
    bj_scenes_free(scenes);
    bj_model_free(model);
}

/* Tests scenes without any neighbors or polylines, whose arrays are NULL. */
static void test_empty_scenes(const bj_arch *arch) {
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, SCENES, SEED, &err), &err);
    slice s;
    bj_batch batch = *cut(&s, bj_scenes_batch(scenes), 0, SCENES);
    for (int b = 0; b < SCENES; b++) {
        s.scenes[b].neighbors = s.scenes[b].polylines = NULL;
        s.scenes[b].neighbor_count = s.scenes[b].polyline_count = 0;
    }
    for (int i = 0; bj_kernels_at(i); i++) {
        const char *isa = bj_kernels_at(i)->isa;
        for (int b = 0; b < SCENES; b++)
            s.scenes[b].future = bj_scenes_batch(scenes)->scenes[b].future;
        result want = train_forward(model, &batch, isa);
        for (int b = 0; b < SCENES; b++) s.scenes[b].future = NULL; /* prediction gets no future */
        bj_predictor *predictor = make_predictor(model, SCENES, 2, BJ_PRECISION_FULL, isa);
        result found = make_result(arch, SCENES);
        predict(&found, predictor, &batch);
        CHECK(same_bits(&want, 0, &found, SCENES));
        batch.B = 2;
        memset(found.paths, 0, 2 * found.path_row * sizeof *found.paths);
        predict(&found, predictor, &batch);
        CHECK(same_bits(&want, 0, &found, 2));
        batch.B = SCENES;
        bj_predictor_free(predictor);
        free_result(&found);
        free_result(&want);
    }
    bj_scenes_free(scenes);
    bj_model_free(model);
}

/* Tests that uniform weights are 1/K in blocks and in the row path, and that other outputs stay the
 * same. */
static void test_uniform(bj_arch arch) {
    bj_error err;
    bj_scenes *scenes;
    arch.weighting = BJ_WEIGHTS_ROUTER;
    bj_model *routed = make_model(&arch);
    arch.weighting = BJ_WEIGHTS_UNIFORM;
    bj_model *uniform = make_model(&arch);
    require(bj_scenes_synthetic(&scenes, &arch, SCENES, SEED, &err), &err);
    const char *isa = bj_kernels_at(0)->isa;
    result want = make_result(&arch, SCENES), found = make_result(&arch, SCENES);
    slice s;
    for (int precision = BJ_PRECISION_FULL; precision <= BJ_PRECISION_BF16; precision++) {
        bj_predictor *a = make_predictor(routed, SCENES, 2, (bj_precision)precision, isa);
        bj_predictor *b = make_predictor(uniform, SCENES, 2, (bj_precision)precision, isa);
        static const int sizes[] = {SCENES, 2, 1};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int count = sizes[i];
            const size_t n = (size_t)count;
            predict(&want, a, cut(&s, bj_scenes_batch(scenes), 0, count));
            predict(&found, b, cut(&s, bj_scenes_batch(scenes), 0, count));
            int even = 0, routed_even = 0;
            for (size_t j = 0; j < n * want.weight_row; j++) {
                even += found.weights[j] == (bj_real)(1.0 / arch.atoms);
                routed_even += want.weights[j] == (bj_real)(1.0 / arch.atoms);
            }
            CHECK_MSG(even == count * arch.atoms, "%d of %d weights are 1/K", even,
                      count * arch.atoms);
            CHECK(routed_even < count * arch.atoms); /* the router's weights are not uniform */
            CHECK(!memcmp(want.paths, found.paths, n * want.path_row * sizeof *want.paths));
            CHECK(!memcmp(want.atoms, found.atoms, n * want.atom_row * sizeof *want.atoms));
        }
        bj_predictor_free(a);
        bj_predictor_free(b);
    }
    free_result(&want);
    free_result(&found);
    bj_scenes_free(scenes);
    bj_model_free(routed);
    bj_model_free(uniform);
}

/* ----------------------------------------------------------------------------- mixed precision */

static double largest_difference(const bj_real *a, const bj_real *b, size_t n) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - (double)b[i]);
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

static double largest(const bj_real *a, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i]));
    return most;
}

/* Tests that the results of mixed precision are close to those of full precision, and equal in
 * blocks and in the row path. */
static void test_half(const char *name, const bj_arch *arch) {
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, SCENES, SEED, &err), &err);
    const bj_batch *batch = bj_scenes_batch(scenes);
    for (int i = 0; bj_kernels_at(i); i++) {
        const char *isa = bj_kernels_at(i)->isa;
        result full = train_forward(model, batch, isa), half = make_result(arch, SCENES);
        bj_predictor *predictor = make_predictor(model, SCENES, 1, BJ_PRECISION_BF16, isa);
        predict(&half, predictor, batch);
        bj_predictor_free(predictor);
        const size_t n = SCENES * full.path_row, m = SCENES * full.weight_row;
        const double path = largest_difference(full.paths, half.paths, n) / largest(full.paths, n);
        const double weight = largest_difference(full.weights, half.weights, m);
        CHECK_MSG(path > 0 && path < 0.05, "%s, %s: paths off by %g", name, isa, path);
        if (arch->atoms > 1)
            CHECK_MSG(weight > 0 && weight < 0.02, "%s, %s: weights off by %g", name, isa, weight);
        else CHECK(weight == 0);
        for (int threads = 1; threads <= 2; threads++)
            compare(name, model, batch, &half, threads, BJ_PRECISION_BF16, isa);
        free_result(&full);
        free_result(&half);
    }
    bj_scenes_free(scenes);
    bj_model_free(model);
}

static bj_tensor tensor_named(bj_model *model, const char *name) {
    int i = 0;
    while (strcmp(bj_model_tensor(model, i).name, name)) i++;
    return bj_model_tensor(model, i);
}

/* Tests the error of mixed precision in meters at the paper's sizes. The decoder is changed so that
 * trajectories move forward at 12 m/s and differ by several meters, as in a trained model. */
static void test_meters(void) {
    enum { COUNT = 32 };
    const bj_arch arch = bj_arch_paper();
    bj_error err;
    bj_scenes *scenes;
    bj_model *model;
    require(bj_model_create(&model, &arch, SEED, &err), &err);
    require(bj_scenes_synthetic(&scenes, &arch, COUNT, SEED, &err), &err);
    const bj_tensor weight = tensor_named(model, "decoder.2.weight");
    const bj_tensor bias = tensor_named(model, "decoder.2.bias");
    for (size_t i = 0; i < weight.size; i++) weight.data[i] *= 100;
    for (size_t i = 0; i < bias.size; i += 2) bias.data[i] += (bj_real)(1.2 * (double)(i / 2 + 1));
    for (int k = 0; bj_kernels_at(k); k++) {
        const char *isa = bj_kernels_at(k)->isa;
        result full = make_result(&arch, COUNT), half = make_result(&arch, COUNT);
        for (int i = 0; i < 2; i++) {
            bj_predictor *p = make_predictor(model, COUNT, 1,
                                             i ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL, isa);
            predict(i ? &half : &full, p, bj_scenes_batch(scenes));
            bj_predictor_free(p);
        }
        const size_t n = COUNT * full.path_row, m = COUNT * full.weight_row;
        double sum = 0, worst = 0;
        for (size_t i = 0; i < n; i += 2) {
            const double off = hypot((double)full.paths[i] - (double)half.paths[i],
                                     (double)full.paths[i + 1] - (double)half.paths[i + 1]);
            sum += off;
            worst = fmax(worst, off);
        }
        const double mean = sum / (double)(n / 2);
        const double weights = largest_difference(full.weights, half.weights, m);
        printf("%s: points up to %.0f m away differ by at most %.3f m (mean %.4f m), "
               "weights by at most %.5f\n",
               isa, largest(full.paths, n), worst, mean, weights);
        CHECK_MSG(worst < 0.08 && mean < 0.02 && mean > 1e-4, "%s: off by %g m, mean %g m", isa,
                  worst, mean);
        CHECK_MSG(weights < 1e-3, "%s: weights off by %g", isa, weights);
        free_result(&full);
        free_result(&half);
    }
    bj_scenes_free(scenes);
    bj_model_free(model);
}

/* ----------------------------------------------------------------------------- lifetime, memory */

static void test_outlives_model(const bj_arch *arch, bj_precision precision) {
    const char *isa = bj_kernels_at(0)->isa;
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, 5, SEED, &err), &err);
    const bj_batch *batch = bj_scenes_batch(scenes);
    bj_predictor *predictor = make_predictor(model, 5, 1, precision, isa);
    result want = make_result(arch, 5), found = make_result(arch, 5);
    slice one;
    predict(&want, predictor, batch);
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor tensor = bj_model_tensor(model, i);
        for (size_t j = 0; j < tensor.size; j++) tensor.data[j] = (bj_real)NAN;
    }
    predict(&found, predictor, batch);
    CHECK(same_bits(&want, 0, &found, 5));
    bj_model_free(model);
    predict(&found, predictor, batch);
    CHECK(same_bits(&want, 0, &found, 5));
    predict(&found, predictor, cut(&one, batch, 3, 1));
    CHECK(same_bits(&want, 3, &found, 1));
    bj_predictor_free(predictor);
    bj_scenes_free(scenes);
    free_result(&want);
    free_result(&found);
}

static void test_allocates_nothing(const bj_arch *arch) {
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, SCENES, SEED, &err), &err);
    bj_predictor *predictor = make_predictor(model, SCENES, 2, BJ_PRECISION_FULL, NULL);
    result r = make_result(arch, SCENES);
    slice s;
    const long count = bj_alloc_count(), live = bj_alloc_live();
    for (int size = 1; size <= SCENES; size += size < 4 ? 1 : 11)
        predict(&r, predictor, cut(&s, bj_scenes_batch(scenes), 0, size));
    CHECK(bj_alloc_count() == count && bj_alloc_live() == live);
    bj_predictor_free(predictor);
    CHECK(bj_alloc_live() < live);
    bj_scenes_free(scenes);
    bj_model_free(model);
    free_result(&r);
}

static void test_failing_allocations(const bj_arch *arch, bj_precision precision) {
    bj_model *model = make_model(arch);
    const bj_predictor_options options = {.max_batch = 20, .threads = 2, .precision = precision};
    const long live = bj_alloc_live();
    int failures = 0;
    for (bj_status status = BJ_ENOMEM; status != BJ_OK && failures < 1000;) {
        bj_predictor *predictor = NULL;
        bj_error err = {BJ_OK, ""};
        bj_alloc_fail_after(failures);
        status = bj_predictor_create(&predictor, model, &options, &err);
        bj_alloc_fail_after(-1);
        if (status != BJ_OK) {
            CHECK_MSG(status == BJ_ENOMEM && err.code == BJ_ENOMEM, "allocation %d: %s", failures,
                      err.message);
            CHECK(predictor == NULL);
            failures++;
        } else {
            CHECK(predictor != NULL);
        }
        bj_predictor_free(predictor);
        CHECK_MSG(bj_alloc_live() == live, "allocation %d: %ld blocks leak", failures,
                  bj_alloc_live() - live);
    }
    CHECK(failures > 3 && failures < 1000);
    bj_model_free(model);
}

/* ------------------------------------------------------------------------------ rejected input */

static int untouched(const result *r, int B) {
    const size_t n = (size_t)B * r->path_row, m = (size_t)B * r->weight_row;
    return largest(r->paths, n) == 0 && largest(r->weights, m) == 0;
}

static void test_refusals(const bj_arch *arch) {
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(arch);
    require(bj_scenes_synthetic(&scenes, arch, 5, SEED, &err), &err);
    bj_predictor *predictor = make_predictor(model, 4, 2, BJ_PRECISION_FULL, NULL);
    result r = make_result(arch, 5);
    slice s;
    const size_t track = (size_t)arch->obs * BJ_FOCAL_FEATURES;

    const bj_batch *all = bj_scenes_batch(scenes), *four = cut(&s, all, 0, 4);
    CHECK(bj_predict(predictor, all, r.weights, r.paths, r.atoms, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "5 scenes, expected 1 to 4");
    s.batch.B = 0;
    CHECK(bj_predict(predictor, four, r.weights, r.paths, r.atoms, &err) == BJ_EARG);
    s.batch.B = 4;
    CHECK(bj_predict(predictor, four, NULL, r.paths, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "weights");
    CHECK(bj_predict(predictor, four, r.weights, NULL, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "trajectories");
    s.scenes[3].neighbor_count = arch->neighbors + 1;
    CHECK(bj_predict(predictor, four, r.weights, r.paths, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "scene 3");

    /* If a value is not finite, the message must name the scene and the array, in blocks and in the
     * row path. */
    bj_real *focal = allocate(track, sizeof *focal), *future = allocate(2 * (size_t)arch->fut,
                                                                          sizeof *future);
    memcpy(focal, all->scenes[2].focal, track * sizeof *focal);
    focal[4] = (bj_real)NAN;
    four = cut(&s, all, 0, 4);
    s.scenes[2].focal = focal;
    CHECK(bj_predict(predictor, four, r.weights, r.paths, r.atoms, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "scene 2");
    CHECK_CONTAINS(err.message, "focal");
    const bj_batch *two = cut(&s, all, 1, 2);
    s.scenes[1].focal = focal;
    CHECK(bj_predict(predictor, two, r.weights, r.paths, r.atoms, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "scene 1");
    focal[4] = (bj_real)INFINITY;
    CHECK(bj_predict(predictor, two, r.weights, r.paths, r.atoms, NULL) == BJ_ENONFINITE);
    CHECK(untouched(&r, 5));
    future[3] = (bj_real)NAN; /* the future is not checked */
    for (int count = 4; count > 0; count -= 3) {
        cut(&s, all, 0, count);
        s.scenes[0].future = future;
        CHECK_OK(bj_predict(predictor, &s.batch, r.weights, r.paths, NULL, &err), err);
        CHECK(!untouched(&r, count));
    }

    const bj_predictor_options bad[] = {{0, 1, BJ_PRECISION_FULL, NULL},
                                        {4, 1, (bj_precision)7, NULL},
                                        {4, 1, BJ_PRECISION_FULL, "sse9"}};
    const char *named[] = {"max_batch is 0", "precision is 7", "sse9"};
    for (int i = 0; i < 3; i++) {
        bj_predictor *none = predictor;
        CHECK(bj_predictor_create(&none, model, &bad[i], &err) == BJ_EARG);
        CHECK_CONTAINS(err.message, named[i]);
        CHECK(none == NULL);
    }
    free(focal);
    free(future);
    free_result(&r);
    bj_predictor_free(predictor);
    bj_scenes_free(scenes);
    bj_model_free(model);
}

/* --------------------------------------------------------------------------------------- export */

enum { EXPORTED = 9 };

/* Copies the rows of a scene to (slots,width) and sets the mask. */
static void pad(bj_real *padded, uint8_t *mask, const bj_real *rows, int count, size_t width) {
    memcpy(padded, rows, (size_t)count * width * sizeof *rows);
    memset(mask, 1, (size_t)count);
}

static bj_status export(const char *checkpoint, const char *outputs, const char *kind) {
    const bj_arch arch = !strcmp(kind, "point")        ? as_point(round_branch())
                         : !strcmp(kind, "outputonly") ? as_output_only(round_branch())
                                                       : round_branch();
    const size_t track = (size_t)arch.obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)arch.points * BJ_POLYLINE_FEATURES;
    const size_t N = (size_t)arch.neighbors, P = (size_t)arch.polylines;
    const int64_t B = EXPORTED, T = arch.obs, K = arch.atoms, F = arch.fut;
    bj_error err;
    bj_scenes *scenes;
    bj_model *model = make_model(&arch);
    require(bj_scenes_synthetic(&scenes, &arch, EXPORTED, SEED, &err), &err);
    const bj_batch *batch = bj_scenes_batch(scenes);
    bj_predictor *predictor = make_predictor(model, EXPORTED, 2, BJ_PRECISION_FULL, NULL);
    result r = make_result(&arch, EXPORTED);
    require(bj_predict(predictor, batch, r.weights, r.paths, r.atoms, &err), &err);

    bj_real *neighbors = allocate(EXPORTED * N * track, sizeof *neighbors);
    bj_real *polylines = allocate(EXPORTED * P * line, sizeof *polylines);
    uint8_t *nmask = allocate(EXPORTED * N, 1), *pmask = allocate(EXPORTED * P, 1);
    bj_real *focal = allocate(EXPORTED * track, sizeof *focal);
    for (size_t b = 0; b < EXPORTED; b++) {
        const bj_scene *x = &batch->scenes[b];
        memcpy(focal + b * track, x->focal, track * sizeof *focal);
        pad(neighbors + b * N * track, nmask + b * N, x->neighbors, x->neighbor_count, track);
        pad(polylines + b * P * line, pmask + b * P, x->polylines, x->polyline_count, line);
    }
    const bj_tensor_view tensors[] = {
        {"x.focal", BJ_DTYPE_REAL, 3, {B, T, BJ_FOCAL_FEATURES}, 0, 0, focal},
        {"x.neighbors",
         BJ_DTYPE_REAL,
         4,
         {B, arch.neighbors, T, BJ_FOCAL_FEATURES},
         0,
         0,
         neighbors},
        {"x.nmask", BJ_DTYPE_U8, 2, {B, arch.neighbors}, 0, 0, nmask},
        {"x.polylines",
         BJ_DTYPE_REAL,
         4,
         {B, arch.polylines, arch.points, BJ_POLYLINE_FEATURES},
         0,
         0,
         polylines},
        {"x.pmask", BJ_DTYPE_U8, 2, {B, arch.polylines}, 0, 0, pmask},
        {"o.y", BJ_DTYPE_REAL, 4, {B, K, F, 2}, 0, 0, r.paths},
        {"o.weights", BJ_DTYPE_REAL, 2, {B, K}, 0, 0, r.weights},
        {"o.u", BJ_DTYPE_REAL, 3, {B, latents_of(&arch), arch.latent}, 0, 0, r.atoms}};
    bj_status status = bj_model_save(model, checkpoint, NULL, 0, &err);
    if (status == BJ_OK)
        status =
            bj_safetensors_write(outputs, tensors, sizeof tensors / sizeof *tensors, NULL, 0, &err);
    if (status != BJ_OK) fprintf(stderr, "%s\n", err.message);
    free(focal);
    free(neighbors);
    free(polylines);
    free(nmask);
    free(pmask);
    free_result(&r);
    bj_predictor_free(predictor);
    bj_scenes_free(scenes);
    bj_model_free(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc >= 4 && !strcmp(argv[1], "export"))
        return export(argv[2], argv[3], argc > 4 ? argv[4] : "branch") != BJ_OK;

    const bj_arch odd = odd_branch(), even = round_branch();
    const bj_arch odd_point = as_point(odd), odd_output = as_output_only(odd);
    const bj_arch even_point = as_point(even), even_output = as_output_only(even);
    test_same_bits("odd branch", &odd);
    test_same_bits("odd point", &odd_point);
    test_same_bits("odd output-only", &odd_output);
    test_same_bits("round branch", &even);
    test_same_bits("round point", &even_point);
    test_same_bits("round output-only", &even_output);
    bj_arch odd_uniform = odd;
    odd_uniform.weighting = BJ_WEIGHTS_UNIFORM;
    test_same_bits("odd uniform", &odd_uniform);
    test_uniform(odd);
    test_uniform(even_output);
    test_empty_scenes(&odd);
    test_empty_scenes(&odd_point);
    test_empty_scenes(&odd_output);
    test_half("odd branch", &odd);
    test_half("odd output-only", &odd_output);
    test_half("round branch", &even);
    test_half("round point", &even_point);
    test_outlives_model(&odd, BJ_PRECISION_FULL);
    test_outlives_model(&odd_output, BJ_PRECISION_FULL);
    test_outlives_model(&odd, BJ_PRECISION_BF16);
    test_allocates_nothing(&odd);
    test_allocates_nothing(&odd_output);
    test_failing_allocations(&odd, BJ_PRECISION_FULL);
    test_failing_allocations(&odd_output, BJ_PRECISION_BF16);
    test_refusals(&odd);
    test_refusals(&odd_point);
    test_meters();
    return test_report("predictor");
}
