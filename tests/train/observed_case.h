/* observed_case.h - small models of every kind for states and images, and transitions for them. */
#ifndef BJ_TESTS_OBSERVED_CASE_H
#define BJ_TESTS_OBSERVED_CASE_H

#include "train_case.h"

typedef struct observed_case {
    const char *name;
    bj_encoder_kind encoder;
    bj_model_kind model;
    bj_objective_kind objective;
    int atoms, action;
    double floor;
    int regularized; /* 1: with SIGReg and VICReg */
} observed_case;

static const observed_case observed_cases[] = {
    /* clang-format off */
    {"branch",      BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_SPECIALIZATION, 3, 0, 0, 0},
    {"floors",      BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_SPECIALIZATION, 3, 2, 0.7, 0},
    {"mdn",         BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_MDN,            3, 0, 0.7, 0},
    {"fullset",     BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_FULLSET,        3, 1, 0, 0},
    {"standard",    BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_FULLSET,        1, 0, 0.7, 0},
    {"fused",       BJ_ENCODER_STATE, BJ_MODEL_FUSED,       BJ_FUSED,          3, 2, 0.7, 0},
    {"variational", BJ_ENCODER_STATE, BJ_MODEL_VARIATIONAL, BJ_VARIATIONAL,    3, 2, 0.7, 0},
    {"codebook",    BJ_ENCODER_STATE, BJ_MODEL_CODEBOOK,    BJ_FULLSET,        3, 0, 0.7, 0},
    {"image",       BJ_ENCODER_IMAGE, BJ_MODEL_BRANCH,      BJ_SPECIALIZATION, 3, 2, 0.7, 0},
    {"image-fused", BJ_ENCODER_IMAGE, BJ_MODEL_FUSED,       BJ_FUSED,          3, 0, 0, 0},
    {"regularized", BJ_ENCODER_STATE, BJ_MODEL_BRANCH,      BJ_SPECIALIZATION, 3, 2, 0, 1},
    {"everything",  BJ_ENCODER_STATE, BJ_MODEL_VARIATIONAL, BJ_VARIATIONAL,    3, 2, 0.7, 1},
    /* clang-format on */
};
enum { OBSERVED_CASES = sizeof observed_cases / sizeof *observed_cases };

static inline bj_arch observed_arch(const observed_case *c) {
    bj_arch a = {.kind = c->model,
                 .embed = 8,
                 .latent = 9,
                 .proj_hidden = 14,
                 .atoms = c->atoms,
                 .atom_hidden = 17,
                 .router_hidden = 6,
                 .dt = 1,
                 .encoder = c->encoder,
                 .action = c->action};
    if (c->encoder == BJ_ENCODER_STATE) {
        a.state = 3;
        a.waves = 2;
        a.octaves = 2;
    } else {
        a.height = 16;
        a.width = 32;
        a.channels = 2;
        a.patch_in = 3;
        a.patch_out = 5;
    }
    if (c->model == BJ_MODEL_VARIATIONAL) {
        a.noise = 4;
        a.noise_hidden = 6;
    }
    return a;
}

static inline bj_objective observed_objective(const observed_case *c) {
    bj_objective o = bj_objective_default(c->objective);
    o.lambda_y = o.lambda_rec = 0;
    o.floor_weight = c->floor;
    o.variance_floor = 0.4; /* above some of the nine standard deviations */
    o.rank_floor = 7;
    o.rank_weight = 0.5;
    if (c->objective == BJ_VARIATIONAL) o.kl_weight = 0.3;
    return c->regularized ? regularized(o) : o;
}

typedef struct made_pairs {
    bj_batch batch;
    bj_pair *pairs;
    bj_real *numbers; /* (B,state) twice, then (B,action) */
    uint8_t *bytes;   /* (B,image) twice */
} made_pairs;

static inline made_pairs make_pairs(const bj_arch *a, int B, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    const size_t b = (size_t)B, n = (size_t)a->state, act = (size_t)a->action;
    const size_t pixels = (size_t)(a->height * a->width * a->channels);
    made_pairs m = {.pairs = case_alloc(b, sizeof *m.pairs),
                    .numbers = case_normals(&rng, b * (2 * n + act)),
                    .bytes = case_alloc(2 * b * pixels, 1)};
    for (size_t i = 0; i < 2 * b * pixels; i++) m.bytes[i] = (uint8_t)(bj_rng_next(&rng) >> 56);
    for (size_t i = 0; i < b; i++) {
        bj_pair *p = &m.pairs[i];
        if (n) {
            p->state = m.numbers + i * n;
            p->next = m.numbers + (b + i) * n;
        } else {
            p->image = m.bytes + i * pixels;
            p->next_image = m.bytes + (b + i) * pixels;
        }
        if (act) p->action = m.numbers + 2 * b * n + i * act;
    }
    m.batch = (bj_batch){.B = B, .pairs = m.pairs};
    return m;
}

static inline void free_pairs(made_pairs *m) {
    free(m->pairs), free(m->numbers), free(m->bytes);
}

/* Opens a model with standardized inputs and a trainer whose target differs from the encoder. */
static inline train_case open_observed(const observed_case *o, int max_batch, int threads,
                                       const char *isa) {
    const bj_arch arch = observed_arch(o);
    bj_trainer_options options = options_for(observed_objective(o), max_batch, threads, isa);
    options.seed = 5;
    train_case c = {NULL, NULL, 0};
    bj_error err = {BJ_OK, ""};
    if (bj_model_create(&c.model, &arch, 1, &err) != BJ_OK) {
        fprintf(stderr, "observed_case: %s\n", err.message);
        exit(1);
    }
    bj_tensor t;
    if (bj_model_find(&t, c.model, "input.mean", &err) == BJ_OK)
        for (size_t i = 0; i < t.size; i++) t.data[i] = (bj_real)(0.25 * (double)i - 0.125);
    if (bj_model_find(&t, c.model, "input.scale", &err) == BJ_OK)
        for (size_t i = 0; i < t.size; i++) t.data[i] = (bj_real)(0.5 + 0.25 * (double)i);
    if (bj_trainer_create(&c.trainer, c.model, &options, &err) != BJ_OK) {
        fprintf(stderr, "observed_case: %s\n", err.message);
        exit(1);
    }
    c.tensors = bj_model_tensor_count(c.model);
    shake_target(&c, 0.05, 2);
    return c;
}

#endif
