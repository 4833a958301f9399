/* train_case.h - small networks, batches of chosen sizes, and hashes of a trainer's state. */
#ifndef BJ_TESTS_TRAIN_CASE_H
#define BJ_TESTS_TRAIN_CASE_H

#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "test.h"
#include "train/trainer.h"

static inline bj_arch small_arch(void) {
    return (bj_arch){.kind = BJ_MODEL_BRANCH,
                     .scales = BJ_SCALES_FIXED,
                     .obs = 4,
                     .fut = 10,
                     .neighbors = 3,
                     .polylines = 5,
                     .points = 3,
                     .embed = 8,
                     .heads = 2,
                     .token_hidden = 12,
                     .latent = 9,
                     .proj_hidden = 10,
                     .atoms = 3,
                     .atom_hidden = 7,
                     .router_hidden = 6,
                     .decoder_hidden = 8,
                     .trunk = 11,
                     .dt = 0.5};
}

/* Returns an architecture with which the objective can be trained. */
static inline bj_arch small_arch_for(bj_objective_kind kind) {
    bj_arch arch = small_arch();
    if (kind == BJ_OUTPUTONLY) arch.kind = BJ_MODEL_OUTPUT_ONLY;
    return arch;
}

/* -------------------------------------------------------------------------------------- batches */

typedef struct made_batch {
    bj_batch batch; /* points to the arrays below */
    bj_scene *scenes;
    bj_real *focal, *neighbors, *polylines, *future;
    int *neighbor_start, *polyline_start;
} made_batch;

static inline void *case_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) exit(1);
    return memory;
}

static inline bj_real *case_normals(bj_rng *rng, size_t n) {
    bj_real *x = case_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (bj_real)bj_rng_normal(rng);
    return x;
}

/* Makes B scenes of normally distributed numbers. Each scene has the given numbers of tokens, or
 * random numbers if these are negative. The array of a scene without rows is NULL. */
static inline made_batch make_batch(const bj_arch *a, int B, int neighbors, int polylines,
                                    uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    const size_t b = (size_t)B;
    made_batch m = {.neighbor_start = case_alloc(b + 1, sizeof(int)),
                    .polyline_start = case_alloc(b + 1, sizeof(int))};
    for (int i = 0; i < B; i++) {
        const int n = (int)((a->neighbors + 1) * bj_rng_uniform(&rng));
        const int p = (int)((a->polylines + 1) * bj_rng_uniform(&rng));
        m.neighbor_start[i + 1] = m.neighbor_start[i] + (neighbors < 0 ? n : neighbors);
        m.polyline_start[i + 1] = m.polyline_start[i] + (polylines < 0 ? p : polylines);
    }
    const size_t n = (size_t)m.neighbor_start[B], p = (size_t)m.polyline_start[B];
    m.focal = case_normals(&rng, b * (size_t)a->obs * BJ_FOCAL_FEATURES);
    m.future = case_normals(&rng, b * (size_t)a->fut * 2);
    if (n) m.neighbors = case_normals(&rng, n * (size_t)a->obs * BJ_FOCAL_FEATURES);
    if (p) m.polylines = case_normals(&rng, p * (size_t)a->points * BJ_POLYLINE_FEATURES);
    m.scenes = case_alloc(b, sizeof *m.scenes);
    for (int i = 0; i < B; i++) {
        bj_scene *s = &m.scenes[i];
        const size_t track = (size_t)a->obs * BJ_FOCAL_FEATURES;
        const size_t line = (size_t)a->points * BJ_POLYLINE_FEATURES;
        s->focal = m.focal + (size_t)i * track;
        s->future = m.future + (size_t)i * (size_t)a->fut * 2;
        s->neighbor_count = m.neighbor_start[i + 1] - m.neighbor_start[i];
        s->polyline_count = m.polyline_start[i + 1] - m.polyline_start[i];
        if (s->neighbor_count) s->neighbors = m.neighbors + (size_t)m.neighbor_start[i] * track;
        if (s->polyline_count) s->polylines = m.polylines + (size_t)m.polyline_start[i] * line;
    }
    m.batch = (bj_batch){.B = B, .scenes = m.scenes};
    return m;
}

static inline void free_batch(made_batch *m) {
    free(m->focal), free(m->neighbors), free(m->polylines), free(m->future);
    free(m->neighbor_start), free(m->polyline_start), free(m->scenes);
}

/* ------------------------------------------------------------------------------------- trainers */

/* Adds SIGReg and both VICReg terms to an objective. */
static inline bj_objective regularized(bj_objective objective) {
    objective.sigreg = 0.05;
    objective.sigreg_slices = 21;
    objective.vicreg_variance = 0.6;
    objective.vicreg_covariance = 0.9;
    return objective;
}

typedef struct train_case {
    bj_model *model;
    bj_trainer *trainer;
    int tensors;
} train_case;

static inline train_case open_case_with(const bj_arch *arch, const bj_trainer_options *options,
                                        uint64_t seed) {
    train_case c = {NULL, NULL, 0};
    bj_error err = {BJ_OK, ""};
    if (bj_model_create(&c.model, arch, seed, &err) != BJ_OK ||
        bj_trainer_create(&c.trainer, c.model, options, &err) != BJ_OK) {
        fprintf(stderr, "train_case: %s\n", err.message);
        exit(1);
    }
    c.tensors = bj_model_tensor_count(c.model);
    return c;
}

static bj_precision case_precision; /* precision of the trainers below */

static inline bj_trainer_options options_for(bj_objective objective, int max_batch, int threads,
                                             const char *isa) {
    return (bj_trainer_options){.objective = objective,
                                .optim = bj_optim_default(),
                                .max_batch = max_batch,
                                .threads = threads,
                                .isa = isa,
                                .precision = case_precision};
}

static inline train_case open_case(const bj_arch *arch, bj_objective objective, int max_batch) {
    const bj_trainer_options options = options_for(objective, max_batch, 1, NULL);
    return open_case_with(arch, &options, 1);
}

static inline void close_case(train_case *c) {
    bj_trainer_free(c->trainer);
    bj_model_free(c->model);
}

/* Perturbs the target, which is a copy of the online encoder at first. */
static inline void shake_target(train_case *c, double size, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    for (int i = 0; i < c->tensors; i++) {
        const bj_tensor t = bj_trainer_target(c->trainer, i);
        for (size_t j = 0; t.data && j < t.size; j++)
            t.data[j] += (bj_real)(size * bj_rng_normal(&rng));
    }
}

static inline int starts_with(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* ---------------------------------------------------------------------------------- fingerprint */

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

/* Hashes everything that a failed step must not change: weights, target,
 * both moments, step count. */
static inline uint64_t hash_state(const train_case *c) {
    const bj_trainer *t = c->trainer;
    const size_t all = c->model->layout.size * sizeof(bj_real);
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, c->model->weights, all);
    hash = hash_bytes(hash, t->mean, all);
    hash = hash_bytes(hash, t->variance, all);
    hash = hash_bytes(hash, t->target_weights, c->model->layout.encoder_size * sizeof(bj_real));
    return hash_bytes(hash, &t->step, sizeof t->step);
}

#endif
