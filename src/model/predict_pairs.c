/* predict_pairs.c - prediction from states and images: latents and weights without decoding.
 *
 *   branch       K latents, router weights
 *   fused        one latent, the normalized weighted mean of all latents; router weights
 *   variational  prior mean and K - 1 samples with the same noise for every context; weights 1/K
 *   codebook     K codes; weights 1/K
 *
 * A block of observations is one work item. Its result depends neither on the rest of the batch nor
 * on the number of workers. bj_predict_encode returns contexts, and bj_predict_contexts predicts
 * from contexts, so that rollouts can feed predicted latents back.
 * Test: tests/model/test_predict_pairs.c
 */
#include <math.h>
#include <string.h>

#include "core/check_batch.h"
#include "core/status.h"
#include "model/predictor.h"
#include "model/variational.h"
#include "nn/normalize.h"

int bj_arch_latents(const bj_arch *a) {
    return a->kind == BJ_MODEL_FUSED || a->kind == BJ_MODEL_OUTPUT_ONLY ? 1 : a->atoms;
}

static void copy_out(bj_predictor *p, const bj_network_block *h, size_t b0, int i, const bj_real *u,
                     size_t ldu) {
    const size_t D = (size_t)p->arch.latent, L = (size_t)bj_arch_latents(&p->arch);
    for (size_t m = 0; m < (size_t)h->M; m++)
        memcpy(p->atoms + ((b0 + m) * L + (size_t)i) * D, u + m * ldu, D * sizeof *u);
}

static void branches(bj_predictor *p, const bj_network_block *h, size_t b0) {
    const bj_network *n = &p->network;
    const size_t K = (size_t)n->K, ldu = h->ldu;
    const int fused = p->arch.kind == BJ_MODEL_FUSED, D = p->arch.latent;
    bj_real *mean = h->u + (size_t)h->M * ldu; /* after the rows of one latent */
    bj_network_route(n, h);
    for (size_t m = 0; m < (size_t)h->M; m++)
        bj_weigh_row(p->weights + (b0 + m) * K, h->logits + m * K, &p->arch);
    for (int i = 0; i < n->L; i++) {
        bj_network_atom(n, h, i, h->atom_hidden, h->lda, h->u, ldu);
        bj_normalize_forward(h->u, ldu, h->inverse, h->M, D);
        if (!fused) copy_out(p, h, b0, i, h->u, ldu);
        for (size_t m = 0; fused && m < (size_t)h->M; m++) {
            const bj_real weight = p->weights[(b0 + m) * K + (size_t)i];
            for (size_t d = 0; d < (size_t)D; d++)
                mean[m * ldu + d] = (i ? mean[m * ldu + d] : 0) + weight * h->u[m * ldu + d];
        }
    }
    if (!fused) return;
    bj_normalize_forward(mean, ldu, h->inverse, h->M, D);
    copy_out(p, h, b0, 0, mean, ldu);
}

static void one_predictor(bj_predictor *p, const bj_network_block *h, size_t b0) {
    const int K = p->arch.atoms;
    for (size_t i = 0; i < (size_t)h->M * (size_t)K; i++)
        p->weights[b0 * (size_t)K + i] = (bj_real)(1.0 / K);
    if (p->codes) {
        for (int i = 0; i < K; i++)
            copy_out(p, h, b0, i, p->codes + (size_t)i * (size_t)p->arch.latent, 0);
        return;
    }
    bj_variational_prior(&p->network, h);
    for (int i = 0; i < K; i++) {
        bj_variational_read(&p->network, h, i, p->eps + (size_t)i * (size_t)p->arch.noise);
        copy_out(p, h, b0, i, h->u, h->ldu);
    }
}

/* Computes the contexts of a block. Returns 0 if an observation is not finite. */
static int observe(bj_predictor *p, bj_encoder_block *e, int b0) {
    e->observer.pairs = p->batch->pairs + b0;
    for (int m = 0; m < e->M; m++)
        if (bj_pair_nonfinite(&e->observer.pairs[m], &p->arch, 0)) {
            bj_note_first(&p->bad_scene, b0 + m);
            return 0;
        }
    if (!p->codes || p->encoded) bj_encoder_forward(&p->encoder, e);
    return 1;
}

static void predict_block(void *context, int item, int worker) {
    bj_predictor *p = context;
    const bj_arch *a = &p->arch;
    const int b0 = p->block_begin[item];
    const size_t D = (size_t)a->latent;
    bj_encoder_block e = p->scratch[worker].encoder;
    bj_network_block h = p->scratch[worker].head;
    e.M = h.M = p->block_begin[item + 1] - b0;
    if (!p->given && !observe(p, &e, b0)) return;
    for (int m = 0; m < e.M; m++) {
        bj_real *row = e.context + (size_t)m * e.ldc;
        const size_t at = (size_t)(b0 + m) * D;
        if (p->given) memcpy(row, p->given + at, D * sizeof *row);
        else if (p->encoded) memcpy(p->encoded + at, row, D * sizeof *row);
        else if (a->action)
            memcpy(row + D, e.observer.pairs[m].action, (size_t)a->action * sizeof *row);
    }
    if (p->encoded) return;
    h.context = e.context;
    if (p->codes || p->network.prior_in.out) one_predictor(p, &h, (size_t)b0);
    else branches(p, &h, (size_t)b0);
}

bj_status bj_predict_pairs(bj_predictor *p, const bj_batch *batch, bj_error *err) {
    if (!p->weights || !p->atoms)
        return BJ_FAIL(err, BJ_EARG,
                       "%s is NULL, but a model that predicts only latents needs this buffer",
                       p->weights ? "atoms" : "weights");
    atomic_store(&p->bad_scene, INT_MAX);
    bj_pool_run(p->pool, predict_block, p, bj_blocks_cut(p->block_begin, 0, batch->B));
    const int bad = atomic_load(&p->bad_scene);
    return bad == INT_MAX ? BJ_OK : bj_element_check(batch, &p->arch, bad, 0, err);
}

bj_status bj_predict_encode(bj_predictor *p, const bj_batch *batch, bj_real *contexts,
                            bj_error *err) {
    BJ_TRY(bj_batch_check(batch, &p->arch, p->max_batch, 0, err));
    if (p->arch.encoder == BJ_ENCODER_SCENE || !contexts)
        return BJ_FAIL(err, BJ_EARG, "contexts: %s",
                       contexts ? "the model reads scenes, expected a model for states or images"
                                : "NULL");
    p->batch = batch;
    p->encoded = contexts;
    atomic_store(&p->bad_scene, INT_MAX);
    bj_pool_run(p->pool, predict_block, p, bj_blocks_cut(p->block_begin, 0, batch->B));
    p->encoded = NULL;
    const int bad = atomic_load(&p->bad_scene);
    return bad == INT_MAX ? BJ_OK : bj_element_check(batch, &p->arch, bad, 0, err);
}

bj_status bj_predict_contexts(bj_predictor *p, const bj_real *contexts, int B, bj_real *weights,
                              bj_real *atoms, bj_error *err) {
    const size_t D = (size_t)p->arch.latent;
    if (p->arch.encoder == BJ_ENCODER_SCENE || p->arch.action)
        return BJ_FAIL(err, BJ_EARG,
                       "prediction from contexts: the model %s, "
                       "expected a model for states or images without actions",
                       p->arch.action ? "takes actions" : "is for scenes");
    if (!contexts || !weights || !atoms || B < 1 || B > p->max_batch)
        return BJ_FAIL(
            err, BJ_EARG,
            "prediction from contexts: found %d rows or a NULL pointer, expected 1 to %d rows", B,
            p->max_batch);
    for (size_t i = 0; i < (size_t)B * D; i++)
        if (!isfinite(contexts[i]))
            return BJ_FAIL(
                err, BJ_ENONFINITE,
                "prediction from contexts: entry %zu of row %zu is %g, expected a finite number",
                i % D, i / D, (double)contexts[i]);
    p->given = contexts;
    p->weights = weights;
    p->atoms = atoms;
    bj_pool_run(p->pool, predict_block, p, bj_blocks_cut(p->block_begin, 0, B));
    p->given = NULL;
    return BJ_OK;
}

void bj_predict_pairs_take(bj_predict_scratch *s, bj_arena *arena, const bj_predictor *p,
                           int measuring) {
    const bj_arch *a = &p->arch;
    const size_t M = BJ_BLOCK;
    bj_encoder_block e = bj_encoder_block_strides(a);
    bj_encoder_block_take(&e, arena, &p->encoder, M);
    e.context = bj_arena_take(arena, M * e.ldc);
    bj_network_block h = {.ldc = e.ldc,
                          .lda = bj_stride(a->atom_hidden),
                          .ldu = bj_stride(a->latent),
                          .ldr = bj_stride(a->router_hidden)};
    h.atom_hidden = bj_arena_take(arena, M * h.lda);
    h.u = bj_arena_take(arena, 2 * M * h.ldu);
    h.inverse = bj_arena_take(arena, M);
    h.router_hidden = bj_arena_take(arena, M * h.ldr);
    h.logits = bj_arena_take(arena, M * (size_t)a->atoms);
    if (p->network.prior_in.out) bj_variational_take(&h, arena, &p->network, M, 0);
    if (!measuring) *s = (bj_predict_scratch){.encoder = e, .head = h};
}

void bj_predict_pairs_fit(bj_predictor *p, const bj_model *model) {
    const size_t n = (size_t)p->arch.atoms * (size_t)p->arch.latent;
    if (p->arch.kind == BJ_MODEL_CODEBOOK)
        memcpy(p->codes, model->weights + bj_layout_offset(&model->layout, BJ_P_CODES, 0),
               n * sizeof *p->codes);
    for (int i = 0; i < p->arch.atoms && p->eps; i++)
        bj_variational_noise(p->eps + (size_t)i * (size_t)p->arch.noise, p->arch.noise, i);
}
