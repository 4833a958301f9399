/* test_predict_pairs.c - tests predictions and target latents of state and image models.
 *
 * The reference is the trainer's forward pass, which tests/train/peer_observed.py compares with
 * PyTorch. Results that the trainer also computes must be bit-identical. All other results must
 * match their definition.
 */
#include "train/observed_case.h"

#include "model/predictor.h"
#include "model/variational.h"

enum { B = 41 };

static int same(const bj_real *a, const bj_real *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

static double length_of(const bj_real *x, int D) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += (double)x[d] * (double)x[d];
    return sqrt(sum);
}

static void check_branches(const bj_outputs *o, const bj_real *atoms, const bj_real *weights,
                           const char *name) {
    const size_t D = (size_t)o->D;
    for (int b = 0; b < B; b++) {
        for (int k = 0; k < o->K; k++) {
            const size_t row = (size_t)(b * o->K + k);
            CHECK_MSG(same(atoms + row * D, o->atoms + row * o->atom_stride, D), "%s: %d %d", name,
                      b, k);
            CHECK_NEAR((double)weights[row], (double)o->weights[row], 1e-6);
        }
    }
}

static void check_fused(const bj_outputs *o, const bj_real *atoms) {
    for (int b = 0; b < B; b++) {
        bj_real mean[16] = {0};
        for (int k = 0; k < o->K; k++)
            for (int d = 0; d < o->D; d++)
                mean[d] += o->weights[b * o->K + k] *
                           o->atoms[(size_t)(b * o->K + k) * o->atom_stride + (size_t)d];
        const double length = length_of(mean, o->D);
        for (int d = 0; d < o->D; d++)
            CHECK_NEAR((double)atoms[b * o->D + d], (double)mean[d] / length, 1e-5);
    }
}

/* Tests that readouts are normalized and differ, and that the first one uses the prior mean without
 * noise. */
static void check_variational(const train_case *c, const bj_arch *a, const bj_real *atoms,
                              const bj_real *weights) {
    bj_real eps[2][8];
    bj_variational_noise(eps[0], a->noise, 1);
    bj_variational_noise(eps[1], a->noise, 1);
    CHECK(same(eps[0], eps[1], (size_t)a->noise));
    bj_variational_noise(eps[1], a->noise, 2);
    CHECK(!same(eps[0], eps[1], (size_t)a->noise));
    for (int b = 0; b < B; b++)
        for (int k = 0; k < a->atoms; k++) {
            const bj_real *u = atoms + (size_t)(b * a->atoms + k) * (size_t)a->latent;
            CHECK_NEAR(length_of(u, a->latent), 1, 1e-5);
            CHECK_NEAR((double)weights[b * a->atoms + k], 1.0 / a->atoms, 1e-7);
            if (k) CHECK(!same(u, u - a->latent, (size_t)a->latent));
        }
    /* if the posterior mean is the prior mean and there is no noise, training computes the first
     * readout */
    const bj_network *n = &c->trainer->network;
    bj_network_block h = bj_trainer_network_block(c->trainer, 0, 8, 0);
    bj_variational_prior(n, &h);
    bj_variational_read(n, &h, 0, NULL);
    for (int b = 0; b < 8; b++)
        CHECK(same(h.u + (size_t)b * h.ldu, atoms + (size_t)(b * a->atoms) * (size_t)a->latent,
                   (size_t)a->latent));
}

static void check_codes(const bj_model *model, const bj_arch *a, const bj_real *atoms) {
    bj_tensor codes;
    bj_error err = {0};
    CHECK_OK(bj_model_find(&codes, model, "codebook", &err), err);
    for (int b = 0; b < B; b++)
        CHECK(same(atoms + (size_t)b * codes.size, codes.data, codes.size));
    CHECK(codes.shape[0] == a->atoms && codes.shape[1] == a->latent);
}

/* Tests that predictions from computed contexts have the same bits, in any batch. */
static void check_contexts(bj_predictor *p, const bj_arch *a, const bj_batch *batch,
                           const bj_real *weights, const bj_real *atoms, const char *name) {
    const size_t D = (size_t)a->latent, L = (size_t)bj_arch_latents(a), K = (size_t)a->atoms;
    bj_real *c = case_alloc(B * D, sizeof *c), *u = case_alloc(B * L * D, sizeof *u);
    bj_real *w = case_alloc(B * K, sizeof *w);
    bj_error err = {BJ_OK, ""};
    CHECK_OK(bj_predict_encode(p, batch, c, &err), err);
    CHECK(!same(c, c + D, D) && fabs(length_of(c, a->latent) - 1) > 1e-3);
    const bj_status status = bj_predict_contexts(p, c, B, w, u, &err);
    if (a->action) {
        CHECK(status == BJ_EARG);
        CHECK_CONTAINS(err.message, "takes actions");
    } else {
        CHECK_OK(status, err);
        CHECK_MSG(same(u, atoms, B * L * D) && same(w, weights, B * K), "%s: contexts", name);
        CHECK_OK(bj_predict_contexts(p, c + 3 * D, 2, w, u, &err), err);
        CHECK_MSG(same(u, atoms + 3 * L * D, 2 * L * D), "%s: the batch of contexts shows", name);
        CHECK_OK(bj_predict(p, batch, w, NULL, u, &err), err); /* predict from observations again */
        CHECK(same(u, atoms, B * L * D));
        CHECK(bj_predict_contexts(p, c, B + 1, w, u, &err) == BJ_EARG);
        c[D + 2] = (bj_real)NAN;
        CHECK(bj_predict_contexts(p, c, B, w, u, &err) == BJ_ENONFINITE);
        CHECK_CONTAINS(err.message, "entry 2 of row 1");
    }
    free(c), free(u), free(w);
}

static void check_case(const observed_case *o) {
    const bj_arch a = observed_arch(o);
    made_pairs m = make_pairs(&a, B, 3);
    train_case c = open_observed(o, B, 1, NULL);
    bj_error err = {BJ_OK, ""};
    bj_tensor t;
    if (bj_model_find(&t, c.model, "codebook", &err) == BJ_OK)
        for (size_t i = 0; i < t.size; i++) t.data[i] = (bj_real)(0.1 * (double)(i % 7));
    CHECK_OK(bj_trainer_gradients(c.trainer, &m.batch, NULL, &err), err);
    const bj_outputs out = bj_trainer_outputs(c.trainer);
    const size_t D = (size_t)a.latent, L = (size_t)bj_arch_latents(&a), K = (size_t)a.atoms;
    bj_real *atoms = case_alloc(B * L * D, sizeof *atoms),
            *parts = case_alloc(B * L * D, sizeof *atoms);
    bj_real *weights = case_alloc(B * K, sizeof *weights),
            *latents = case_alloc(B * D, sizeof *atoms);
    const bj_predictor_options options = {.max_batch = B, .threads = 2};
    bj_predictor *p = NULL;
    CHECK_OK(bj_predictor_create(&p, c.model, &options, &err), err);
    CHECK_OK(bj_predict(p, &m.batch, weights, NULL, atoms, &err), err);
    if (o->model == BJ_MODEL_BRANCH) check_branches(&out, atoms, weights, o->name);
    if (o->model == BJ_MODEL_FUSED) check_fused(&out, atoms);
    if (o->model == BJ_MODEL_VARIATIONAL) check_variational(&c, &a, atoms, weights);
    if (o->model == BJ_MODEL_CODEBOOK) check_codes(c.model, &a, atoms);
    check_contexts(p, &a, &m.batch, weights, atoms, o->name);
    for (int b = 0; b < B; b++) { /* one scene per call */
        const bj_batch one = {.B = 1, .pairs = m.pairs + b};
        CHECK_OK(bj_predict(p, &one, weights, NULL, parts + (size_t)b * L * D, &err), err);
    }
    CHECK_MSG(same(atoms, parts, B * L * D), "%s: the batch shows", o->name);
    /* Test the targets, and that unused inputs have no effect. */
    bj_target *target;
    bj_future_encoder *e;
    CHECK_OK(bj_target_from_trainer(&target, c.trainer, &err), err);
    CHECK_OK(bj_future_encoder_create(&e, c.model, target, &options, &err), err);
    bj_target_free(target);
    CHECK_OK(bj_future_encode(e, &m.batch, latents, NULL, &err), err);
    for (int b = 0; b < B; b++)
        CHECK_MSG(same(latents + (size_t)b * D, out.target + (size_t)b * out.atom_stride, D),
                  "%s: target %d", o->name, b);
    bj_pair kept = m.pairs[0]; /* only the second observation is used */
    m.pairs[0].state = kept.next;
    m.pairs[0].image = kept.next_image;
    CHECK_OK(bj_future_encode(e, &m.batch, parts, NULL, &err), err);
    CHECK_MSG(same(parts, latents, D), "%s: the target sees the context", o->name);
    m.pairs[0] = kept;
    m.pairs[0].next = m.pairs[1].next;
    m.pairs[0].next_image = m.pairs[1].next_image;
    CHECK_OK(bj_future_encode(e, &m.batch, parts, NULL, &err), err);
    CHECK_MSG(same(parts, latents + D, D), "%s: the target misses the successor", o->name);
    m.pairs[0] = kept;
    m.pairs[3].next = NULL;
    m.pairs[3].next_image = NULL;
    CHECK_OK(bj_predict(p, &m.batch, weights, NULL, atoms, &err), err);
    CHECK(bj_future_encode(e, &m.batch, latents, NULL, &err) == BJ_EARG);
    CHECK(bj_predict(p, &m.batch, weights, NULL, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "atoms is NULL");
    bj_future_encoder_free(e);
    bj_predictor_free(p);
    free(atoms), free(parts), free(weights), free(latents);
    close_case(&c);
    free_pairs(&m);
}

int main(void) {
    for (int i = 0; i < OBSERVED_CASES; i++) check_case(&observed_cases[i]);
    return test_report("model.predict_pairs");
}
