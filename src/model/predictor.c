/* predictor.c - creates predictors and runs predictions in blocks; see predictor.h. */
#include "model/predictor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check_batch.h"
#include "core/status.h"
#include "model/model.h"
#include "nn/normalize.h"

void bj_weigh_row(bj_real *pi, const bj_real *logits, const bj_arch *arch) {
    const int K = arch->atoms;
    if (arch->weighting == BJ_WEIGHTS_UNIFORM) {
        for (int k = 0; k < K; k++) pi[k] = (bj_real)(1.0 / K);
        return;
    }
    double most = (double)logits[0], sum = 0, e[BJ_MAX_ATOMS];
    for (int k = 1; k < K; k++) most = (double)logits[k] > most ? (double)logits[k] : most;
    for (int k = 0; k < K; k++) sum += e[k] = exp((double)logits[k] - most);
    for (int k = 0; k < K; k++) pi[k] = (bj_real)(e[k] / sum);
}

double bj_context_norm(const bj_real *context, int D) {
    double sum = 0;
    for (int i = 0; i < D; i++) sum += (double)context[i] * (double)context[i];
    return sqrt(sum);
}

/* -------------------------------------------------------------------------------------- blocks */

/* First round: computes the contexts of a block of scenes. */
static void encode_block(void *context, int item, int worker) {
    bj_predictor *p = context;
    const int b0 = p->block_begin[item];
    const bj_scene *scenes = p->batch->scenes + b0;
    bj_gathered *g = &p->scratch[worker].scenes;
    bj_encoder_block e = p->scratch[worker].encoder;
    e.M = p->block_begin[item + 1] - b0;
    bj_gathered_lay_out(g, scenes, e.M);
    const int bad = bj_gathered_copy(g, scenes, &p->arch, 0, e.M);
    if (bad >= 0) {
        bj_note_first(&p->bad_scene, b0 + bad);
        return;
    }
    e.focal = g->focal;
    e.neighbors = g->neighbors;
    e.neighbor_start = g->neighbor_start;
    e.polylines = g->polylines;
    e.polyline_start = g->polyline_start;
    e.context = p->contexts + (size_t)b0 * e.ldc;
    bj_encoder_forward(&p->encoder, &e);
    for (int m = 0; p->encodings && m < e.M; m++)
        p->encodings[b0 + m] =
            (bj_encoding){bj_encoder_entropy(&p->encoder, &e, m),
                          bj_context_norm(e.context + (size_t)m * e.ldc, p->arch.latent)};
}

/* Second round: computes one latent, or the router, for a chunk of scenes. A chunk is large, so
 * that weights are read only a few times. Items 0 .. L - 1 of a chunk are latents, and item L is
 * the router. */
static void decode_item(void *context, int item, int worker) {
    const bj_predictor *p = context;
    const bj_network *n = &p->network;
    const int L = n->L, K = p->arch.atoms, chunk = item / (L + 1), i = item % (L + 1);
    const size_t b0 = (size_t)chunk * BJ_PREDICT_ROWS, D = (size_t)p->arch.latent;
    const size_t line = 2 * (size_t)p->arch.fut;
    const int left = p->batch->B - (int)b0;
    bj_network_block h = p->scratch[worker].head;
    h.M = left < BJ_PREDICT_ROWS ? left : BJ_PREDICT_ROWS;
    h.context = p->contexts + b0 * h.ldc;
    if (i == L) {
        bj_network_route(n, &h);
        for (size_t m = 0; m < (size_t)h.M; m++)
            bj_weigh_row(p->weights + (b0 + m) * (size_t)K, h.logits + m * (size_t)K, &p->arch);
        return;
    }
    bj_network_atom(n, &h, i, h.atom_hidden, h.lda, h.u, h.ldu);
    bj_normalize_forward(h.u, h.ldu, h.inverse, h.M, p->arch.latent);
    bj_network_decode(n, &h, 1);
    const int outputs = n->step_scale ? K : 1; /* outputs of this latent */
    for (size_t m = 0; m < (size_t)h.M; m++) {
        for (int k = 0; k < outputs; k++)
            memcpy(p->trajectories + ((b0 + m) * (size_t)K + (size_t)(i + k)) * line,
                   h.y + (m * (size_t)outputs + (size_t)k) * h.ldy, line * sizeof *h.y);
        if (p->atoms)
            memcpy(p->atoms + ((b0 + m) * (size_t)L + (size_t)i) * D, h.u + m * h.ldu,
                   D * sizeof *h.u);
    }
}

/* Predicts one scene. A team is as slow as its slowest member, so if members had to wait for a core
 * because the machine is busy, a single worker predicts the next scenes. The results are
 * bit-identical. */
static void predict_scene(bj_predictor *p) {
    enum { DISTURBED = 3, LEAST = 8, MOST = 256 };
    if (p->alone > 0) {
        p->alone--;
        bj_predict_row(p, 0, 1);
        return;
    }
    const long before = bj_team_sleeps(p->pool);
    bj_pool_team(p->pool, bj_predict_row, p);
    if (bj_team_sleeps(p->pool) - before >= DISTURBED) {
        p->patience = p->patience < LEAST ? LEAST : p->patience < MOST ? 2 * p->patience : MOST;
        p->alone = p->patience;
    } else if (p->patience > LEAST) {
        p->patience /= 2;
    }
}

bj_status bj_predict(bj_predictor *p, const bj_batch *batch, bj_real *weights,
                     bj_real *trajectories, bj_real *atoms, bj_error *err) {
    BJ_TRY(bj_batch_check(batch, &p->arch, p->max_batch, 0, err));
    if (p->arch.encoder != BJ_ENCODER_SCENE) {
        p->batch = batch;
        p->weights = weights;
        p->atoms = atoms;
        return bj_predict_pairs(p, batch, err);
    }
    if (!weights || !trajectories)
        return BJ_FAIL(err, BJ_EARG, "%s is NULL", weights ? "trajectories" : "weights");
    p->batch = batch;
    p->weights = weights;
    p->trajectories = trajectories;
    p->atoms = atoms;
    if (batch->B <= BJ_ROW_SCENES) {
        for (int b = 0; b < batch->B; b++) BJ_TRY(bj_scene_check(batch, &p->arch, b, 0, err));
        for (p->scene = 0; p->scene < batch->B; p->scene++, p->calls++) predict_scene(p);
    } else {
        const int chunks = (batch->B + BJ_PREDICT_ROWS - 1) / BJ_PREDICT_ROWS;
        atomic_store(&p->bad_scene, INT_MAX);
        bj_pool_run(p->pool, encode_block, p, bj_blocks_cut(p->block_begin, 0, batch->B));
        const int bad = atomic_load(&p->bad_scene);
        if (bad != INT_MAX) return bj_scene_check(batch, &p->arch, bad, 0, err);
        bj_pool_run(p->pool, decode_item, p, chunks * (p->network.L + 1));
    }
    return BJ_OK;
}

const char *bj_predictor_isa(const bj_predictor *p) { return p->k->isa; }

/* ------------------------------------------------------------------------------------ lifetime */

static void take_block(bj_predict_scratch *s, bj_arena *arena, const bj_predictor *p,
                       int measuring) {
    const bj_arch *a = &p->arch;
    const size_t M = BJ_BLOCK, G = (size_t)a->heads, K = (size_t)a->atoms;
    const size_t rows[2] = {M * (size_t)a->neighbors, M * (size_t)a->polylines};
    bj_gathered scenes;
    bj_gathered_take(&scenes, arena, a, M, 0);
    bj_encoder_block e = bj_encoder_block_strides(a);
    e.T = a->obs;
    bj_encoder_block_take_state(&e, arena, M);
    for (int i = 0; i < 2; i++) {
        e.r[i] = bj_arena_take(arena, rows[i] * e.ldr);
        e.alpha[i] = bj_arena_take(arena, rows[i] * G);
    }
    bj_encoder_block_take(&e, arena, &p->encoder, M);
    const size_t R = BJ_PREDICT_ROWS;
    bj_network_block h = {.ldc = e.ldc,
                          .lda = bj_stride(a->atom_hidden),
                          .ldu = bj_stride(a->latent),
                          .ldr = bj_stride(a->router_hidden),
                          .ldd = bj_stride(p->network.decoder_in.out),
                          .ldy = bj_stride(2 * a->fut)};
    h.atom_hidden = bj_arena_take(arena, R * h.lda);
    h.u = bj_arena_take(arena, R * h.ldu);
    h.inverse = bj_arena_take(arena, R);
    h.router_hidden = bj_arena_take(arena, R * h.ldr);
    h.logits = bj_arena_take(arena, R * K);
    h.decoder_hidden = bj_arena_take(arena, R * h.ldd);
    if (p->network.step_scale) {
        h.y = bj_arena_take(arena, R * K * h.ldy);
        h.base = bj_arena_take(arena, R * h.ldy);
        h.residual = bj_arena_take(arena, R * K * h.ldy);
    } else {
        h.y = bj_arena_take(arena, R * h.ldy);
    }
    if (!measuring) *s = (bj_predict_scratch){scenes, e, h};
}

static void take_activations(bj_predictor *p, bj_arena *arena) {
    const int threads = bj_pool_threads(p->pool), measuring = arena->base == NULL;
    const int scenes = p->arch.encoder == BJ_ENCODER_SCENE;
    if (scenes) bj_row_path_take(p, arena);
    p->block_begin = bj_arena_take_bytes(arena, ((size_t)p->max_batch + 1) * sizeof(int));
    p->scratch = bj_arena_take_bytes(arena, (size_t)threads * sizeof *p->scratch);
    for (int i = 0; i < threads && !scenes; i++)
        bj_predict_pairs_take(p->scratch + i, arena, p, measuring);
    if (!scenes) return;
    if (p->max_batch > BJ_ROW_SCENES)
        p->contexts = bj_arena_take(arena, (size_t)p->max_batch * bj_stride(p->arch.latent));
    for (int i = 0; i < threads && p->max_batch > BJ_ROW_SCENES; i++)
        take_block(p->scratch + i, arena, p, measuring);
}

static void take_packed(bj_predictor *p, bj_arena *arena, const bj_model *model) {
    bj_encoder_init(&p->encoder, arena, p->k, &p->arch, &model->layout, model->weights,
                    model->weights, 0);
    bj_network_init(&p->network, arena, p->k, &p->arch, &model->layout, model->weights, 0);
    const size_t K = (size_t)p->arch.atoms;
    if (p->arch.kind == BJ_MODEL_CODEBOOK)
        p->codes = bj_arena_take(arena, K * (size_t)p->arch.latent);
    if (p->arch.noise) p->eps = bj_arena_take(arena, K * (size_t)p->arch.noise);
}

/* Copies a vector from the model into p->vectors and redirects *pointer to the copy. */
static size_t keep_vector(bj_predictor *p, const bj_model *model, const bj_real **pointer,
                          size_t used) {
    const bj_layout *layout = &model->layout;
    if (!*pointer) return used;
    const size_t offset = (size_t)(*pointer - model->weights);
    int i = 0;
    while (layout->params[i].offset + layout->params[i].size <= offset) i++;
    const size_t size = layout->params[i].offset + layout->params[i].size - offset;
    if (p->vectors) {
        memcpy(p->vectors + used, *pointer, size * sizeof **pointer);
        *pointer = p->vectors + used;
    }
    return used + size;
}

/* Returns the total number of elements in all vectors. If p->vectors exists, also copies the
 * vectors there and redirects their pointers. */
static size_t keep_vectors(bj_predictor *p, const bj_model *model) {
    size_t used = 0;
    for (int i = 0; i < BJ_ENC_LINEARS; i++)
        used = keep_vector(p, model, &p->encoder.linear[i].b, used);
    for (int i = 0; i < p->encoder.observer.layers; i++)
        used = keep_vector(p, model, &p->encoder.observer.layer[i].b, used);
    used = keep_vector(p, model, &p->network.prior_in.b, used);
    used = keep_vector(p, model, &p->network.prior_out.b, used);
    used = keep_vector(p, model, &p->network.posterior_in.b, used);
    used = keep_vector(p, model, &p->network.posterior_out.b, used);
    used = keep_vector(p, model, &p->encoder.kv_b, used);
    for (int i = 0; i < p->network.L; i++) {
        used = keep_vector(p, model, &p->network.atom_in[i].b, used);
        used = keep_vector(p, model, &p->network.atom_out[i].b, used);
    }
    used = keep_vector(p, model, &p->network.router_in.b, used);
    used = keep_vector(p, model, &p->network.router_out.b, used);
    used = keep_vector(p, model, &p->network.decoder_in.b, used);
    used = keep_vector(p, model, &p->network.decoder_out.b, used);
    for (int i = 0; p->network.step_scale && i < p->arch.atoms; i++)
        used = keep_vector(p, model, &p->network.residual[i].b, used);
    used = keep_vector(p, model, &p->network.step_scale, used);
    return keep_vector(p, model, &p->network.segment_scale, used);
}

static void pack_all(bj_predictor *p) {
    for (int round = 0; round < BJ_ENCODER_ROUNDS; round++)
        for (int i = 0; i < bj_encoder_prepare_items(&p->encoder, round); i++)
            bj_encoder_prepare(&p->encoder, round, i);
    for (int i = 0; i < bj_network_prepare_items(&p->network); i++)
        bj_network_prepare(&p->network, i);
}

static bj_status build(bj_predictor *p, const bj_model *model, bj_error *err) {
    bj_arena arena = {NULL, 0};
    take_packed(p, &arena, model);
    BJ_TRY(BJ_ALLOC(p->packed, arena.used, err));
    arena = (bj_arena){p->packed, 0};
    take_packed(p, &arena, model);
    pack_all(p);
    if (p->arch.encoder != BJ_ENCODER_SCENE) bj_predict_pairs_fit(p, model);
    BJ_TRY(BJ_ALLOC(p->vectors, keep_vectors(p, model), err));
    keep_vectors(p, model);
    if (p->arch.encoder == BJ_ENCODER_SCENE) bj_row_path_init(p);
    arena = (bj_arena){NULL, 0};
    take_activations(p, &arena);
    BJ_TRY(BJ_ALLOC(p->memory, arena.used, err));
    arena = (bj_arena){p->memory, 0};
    take_activations(p, &arena);
    return BJ_OK;
}

bj_status bj_predictor_create(bj_predictor **out, const bj_model *model,
                              const bj_predictor_options *options, bj_error *err) {
    *out = NULL;
    if (options->max_batch < 1 || options->max_batch > 1 << 20)
        return BJ_FAIL(err, BJ_EARG, "max_batch is %d, expected 1 to %d", options->max_batch,
                       1 << 20);
    if (options->precision != BJ_PRECISION_FULL && options->precision != BJ_PRECISION_BF16)
        return BJ_FAIL(err, BJ_EARG, "precision is %d, expected full (0) or bf16 (1)",
                       (int)options->precision);
    if (options->precision == BJ_PRECISION_BF16 && model->arch.encoder != BJ_ENCODER_SCENE)
        return BJ_FAIL(err, BJ_EARG,
                       "precision is bf16, expected full, "
                       "because only scene models support 16-bit weights");
    bj_predictor *p;
    BJ_TRY(BJ_ALLOC(p, 1, err));
    p->arch = model->arch;
    p->max_batch = options->max_batch;
    bj_status status;
    BJ_GOTO(status, fail, bj_kernels_find(&p->k, options->isa, options->precision, err));
    BJ_GOTO(status, fail, bj_pool_create(&p->pool, options->threads, err));
    BJ_GOTO(status, fail, build(p, model, err));
    *out = p;
    return BJ_OK;
fail:
    bj_predictor_free(p);
    return status;
}

void bj_predictor_free(bj_predictor *p) {
    if (!p) return;
    bj_pool_free(p->pool);
    bj_free(p->packed);
    bj_free(p->vectors);
    bj_free(p->memory);
    bj_free(p);
}
