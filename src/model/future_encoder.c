/* future_encoder.c - see future_encoder.h. */
#include "model/future_encoder.h"

#include <limits.h>
#include <string.h>

#include "core/alloc.h"
#include "core/blocks.h"
#include "core/check_batch.h"
#include "core/gather.h"
#include "model/encoder.h"
#include "model/network.h"
#include "nn/normalize.h"

/* Activations of a block, one set per worker. */
typedef struct scratch {
    bj_gathered scenes; /* polylines and futures only */
    bj_real *features;  /* (BLOCK,F,7) */
    bj_encoder_block encoder;
    bj_network_block head;
    bj_real *inverse; /* (BLOCK) */
} scratch;

struct bj_future_encoder {
    bj_arch arch; /* architecture of the model */
    const bj_kernels *k;
    bj_pool *pool;
    int owns_pool, max_batch;
    bj_encoder encoder;
    bj_network decoder;
    bj_real *weights; /* target encoder weights */
    bj_real *packed;  /* all packed arrays, and the decoder's biases */
    bj_real *memory;  /* activations */
    scratch *scratch; /* (threads) */
    int *block_begin;
    /* arguments of the current call */
    const bj_batch *batch;
    bj_real *latents, *recon;
    atomic_int bad_scene; /* first scene with a non-finite input, INT_MAX if none */
};

/* -------------------------------------------------------------------------------------- target */

bj_status bj_target_create_empty(bj_target **out, const bj_arch *arch, const bj_layout *layout,
                                 bj_error *err) {
    bj_target *target;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(target, 1, err));
    target->arch = *arch;
    target->size = layout->encoder_size;
    const bj_status status = BJ_ALLOC(target->weights, target->size, err);
    if (status != BJ_OK) {
        bj_free(target);
        return status;
    }
    *out = target;
    return BJ_OK;
}

bj_status bj_target_from_model(bj_target **out, const bj_model *model, bj_error *err) {
    BJ_TRY(bj_target_create_empty(out, &model->arch, &model->layout, err));
    memcpy((*out)->weights, model->weights, (*out)->size * sizeof(bj_real));
    return BJ_OK;
}

void bj_target_free(bj_target *target) {
    if (!target) return;
    bj_free(target->weights);
    bj_free(target);
}

/* ------------------------------------------------------------------------------------ encoding */

static void copy_rows(bj_real *to, size_t n, const bj_real *from, size_t stride, int rows) {
    for (int m = 0; m < rows; m++)
        memcpy(to + (size_t)m * n, from + (size_t)m * stride, n * sizeof *to);
}

/* Encodes the second observations of pairs. */
static void encode_pairs(void *context, int item, int worker) {
    bj_future_encoder *e = context;
    const bj_arch *a = &e->arch;
    const int b0 = e->block_begin[item], M = e->block_begin[item + 1] - b0;
    const size_t D = (size_t)a->latent;
    const scratch *w = &e->scratch[worker];
    bj_encoder_block b = w->encoder;
    b.M = M;
    b.observer.pairs = e->batch->pairs + b0;
    b.observer.successor = 1;
    for (int m = 0; m < M; m++)
        if (bj_pair_nonfinite(&b.observer.pairs[m], a, 1)) {
            bj_note_first(&e->bad_scene, b0 + m);
            return;
        }
    bj_encoder_forward(&e->encoder, &b);
    bj_normalize_forward(b.context, b.ldc, w->inverse, M, a->latent);
    copy_rows(e->latents + (size_t)b0 * D, D, b.context, b.ldc, M);
}

static void encode_block(void *context, int item, int worker) {
    bj_future_encoder *e = context;
    const bj_arch *a = &e->arch;
    const int b0 = e->block_begin[item], M = e->block_begin[item + 1] - b0;
    const size_t D = (size_t)a->latent, line = 2 * (size_t)a->fut;
    const bj_scene *scenes = e->batch->scenes + b0;
    scratch *w = &e->scratch[worker];
    bj_gathered_lay_out(&w->scenes, scenes, M);
    const int bad = bj_gathered_copy(&w->scenes, scenes, a, 0, M);
    if (bad >= 0) {
        bj_note_first(&e->bad_scene, b0 + bad);
        return;
    }
    bj_encoder_block b = w->encoder;
    bj_network_block head = w->head;
    b.M = head.M = M;
    bj_future_view(w->features, w->scenes.future, M, a->fut, a->dt);
    b.focal = w->features;
    b.polylines = w->scenes.polylines;
    b.polyline_start = w->scenes.polyline_start;
    bj_encoder_forward(&e->encoder, &b);
    bj_normalize_forward(head.z, head.ldu, w->inverse, M, a->latent);
    copy_rows(e->latents + (size_t)b0 * D, D, head.z, head.ldu, M);
    if (!e->recon) return;
    bj_network_reconstruct(&e->decoder, &head);
    copy_rows(e->recon + (size_t)b0 * line, line, head.rec, head.ldy, M);
}

bj_status bj_future_encode(bj_future_encoder *e, const bj_batch *batch, bj_real *latents,
                           bj_real *recon, bj_error *err) {
    BJ_TRY(bj_batch_check(batch, &e->arch, e->max_batch, 1, err));
    if (!latents) return BJ_FAIL(err, BJ_EARG, "latents is NULL");
    e->batch = batch;
    e->latents = latents;
    e->recon = recon;
    atomic_store(&e->bad_scene, INT_MAX);
    bj_pool_run(e->pool, e->arch.encoder == BJ_ENCODER_SCENE ? encode_block : encode_pairs, e,
                bj_blocks_cut(e->block_begin, 0, batch->B));
    const int bad = atomic_load(&e->bad_scene);
    return bad == INT_MAX ? BJ_OK : bj_element_check(batch, &e->arch, bad, 1, err);
}

/* ------------------------------------------------------------------------------------ lifetime */

static void take_scratch(scratch *out, bj_arena *arena, const bj_future_encoder *e, int measuring) {
    const bj_arch *a = &e->arch;
    const size_t M = BJ_BLOCK, lines = M * (size_t)a->polylines;
    scratch w = {.encoder = bj_encoder_block_strides(a)};
    if (a->encoder != BJ_ENCODER_SCENE) {
        bj_encoder_block_take(&w.encoder, arena, &e->encoder, M);
        w.encoder.context = bj_arena_take(arena, M * w.encoder.ldc);
        w.inverse = bj_arena_take(arena, M);
        if (!measuring) *out = w;
        return;
    }
    w.scenes.polylines = bj_arena_take(arena, lines * (size_t)a->points * BJ_POLYLINE_FEATURES);
    w.scenes.future = bj_arena_take(arena, M * 2 * (size_t)a->fut);
    w.scenes.neighbor_start = bj_arena_take_bytes(arena, (M + 1) * sizeof(int));
    w.scenes.polyline_start = bj_arena_take_bytes(arena, (M + 1) * sizeof(int));
    w.features = bj_arena_take(arena, M * (size_t)a->fut * BJ_FOCAL_FEATURES);
    w.inverse = bj_arena_take(arena, M);

    bj_encoder_block *b = &w.encoder;
    b->T = a->fut;
    bj_encoder_block_take_state(b, arena, M);
    b->r[1] = bj_arena_take(arena, lines * b->ldr);
    b->alpha[1] = bj_arena_take(arena, lines * (size_t)a->heads);
    bj_encoder_block_take(b, arena, &e->encoder, M);

    bj_network_block *h = &w.head;
    h->ldu = bj_stride(a->latent);
    h->ldd = bj_stride(e->decoder.decoder_in.out);
    h->ldy = bj_stride(2 * a->fut);
    h->z = bj_arena_take(arena, M * h->ldu);
    h->z_hidden = bj_arena_take(arena, M * h->ldd);
    h->rec = bj_arena_take(arena, M * h->ldy);
    b->context = h->z;
    b->ldc = h->ldu;
    if (!measuring) *out = w;
}

static void take_activations(bj_future_encoder *e, bj_arena *arena) {
    const int threads = bj_pool_threads(e->pool), measuring = arena->base == NULL;
    e->block_begin = bj_arena_take_bytes(arena, ((size_t)e->max_batch + 1) * sizeof(int));
    e->scratch = bj_arena_take_bytes(arena, (size_t)threads * sizeof *e->scratch);
    for (int i = 0; i < threads; i++) take_scratch(e->scratch + i, arena, e, measuring);
}

/* Allocates the packed arrays and copies the biases of the decoder from the model. */
static void take_packed(bj_future_encoder *e, bj_arena *arena, const bj_model *model) {
    bj_encoder_init(&e->encoder, arena, e->k, &e->arch, &model->layout, e->weights,
                    model->weights, BJ_ENCODER_OF_FUTURES);
    bj_network_init_decoder(&e->decoder, arena, e->k, &e->arch, &model->layout, model->weights);
    bj_linear *const layers[2] = {&e->decoder.decoder_in, &e->decoder.decoder_out};
    for (int i = 0; i < 2 && e->arch.fut; i++) {
        bj_real *bias = bj_arena_take(arena, (size_t)layers[i]->out);
        if (!bias) continue;
        memcpy(bias, layers[i]->b, (size_t)layers[i]->out * sizeof *bias);
        layers[i]->b = bias;
    }
}

static void pack_all(bj_future_encoder *e) {
    for (int round = 0; round < BJ_ENCODER_ROUNDS; round++)
        for (int i = 0; i < bj_encoder_prepare_items(&e->encoder, round); i++)
            bj_encoder_prepare(&e->encoder, round, i);
    for (int i = 0; e->arch.fut && i < bj_network_prepare_items(&e->decoder); i++)
        bj_network_prepare(&e->decoder, i);
    e->decoder.decoder_in.w = e->decoder.decoder_out.w = NULL; /* because they point into the
                                                                  model */
}

static bj_status build(bj_future_encoder *e, const bj_model *model, const bj_target *target,
                       bj_error *err) {
    BJ_TRY(BJ_ALLOC(e->weights, target->size, err));
    memcpy(e->weights, target->weights, target->size * sizeof *e->weights);
    bj_arena arena = {NULL, 0};
    take_packed(e, &arena, model);
    BJ_TRY(BJ_ALLOC(e->packed, arena.used, err));
    arena = (bj_arena){e->packed, 0};
    take_packed(e, &arena, model);
    pack_all(e);
    arena = (bj_arena){NULL, 0};
    take_activations(e, &arena);
    BJ_TRY(BJ_ALLOC(e->memory, arena.used, err));
    arena = (bj_arena){e->memory, 0};
    take_activations(e, &arena);
    return BJ_OK;
}

/* Fails unless the two encoders have the same sizes. Sizes of the layers after the encoder may
 * differ. */
static bj_status check_target(const bj_arch *model, const bj_arch *target, bj_error *err) {
    const struct {
        const char *name;
        double model, target;
    } sizes[] = {
#define SIZE(field) {#field, model->field, target->field}
        SIZE(obs),       SIZE(fut),         SIZE(points), SIZE(polylines),
        SIZE(neighbors), SIZE(embed),       SIZE(heads),  SIZE(token_hidden),
        SIZE(latent),    SIZE(proj_hidden), SIZE(dt),     SIZE(encoder),
        SIZE(state),     SIZE(waves),       SIZE(octaves), SIZE(height),
        SIZE(width),     SIZE(channels),    SIZE(patch_in), SIZE(patch_out),
#undef SIZE
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].model != sizes[i].target)
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "target encoder: %s is %g, expected %g, as in the model", sizes[i].name,
                           sizes[i].target, sizes[i].model);
    return BJ_OK;
}

bj_status bj_future_encoder_create_on(bj_future_encoder **out, const bj_model *model,
                                      const bj_target *target, int max_batch, const char *isa,
                                      bj_pool *pool, bj_error *err) {
    bj_future_encoder *e;
    bj_status status;
    *out = NULL;
    if (max_batch < 1 || max_batch > 1 << 20)
        return BJ_FAIL(err, BJ_EARG, "max_batch is %d, expected 1 to %d", max_batch, 1 << 20);
    BJ_TRY(check_target(&model->arch, &target->arch, err));
    BJ_TRY(BJ_ALLOC(e, 1, err));
    e->arch = model->arch;
    e->max_batch = max_batch;
    e->pool = pool;
    BJ_GOTO(status, fail, bj_kernels_find(&e->k, isa, BJ_PRECISION_FULL, err));
    BJ_GOTO(status, fail, build(e, model, target, err));
    *out = e;
    return BJ_OK;
fail:
    bj_future_encoder_free(e);
    return status;
}

bj_status bj_future_encoder_create(bj_future_encoder **out, const bj_model *model,
                                   const bj_target *target, const bj_predictor_options *options,
                                   bj_error *err) {
    bj_pool *pool;
    *out = NULL;
    BJ_TRY(bj_pool_create(&pool, options->threads, err));
    const bj_status status = bj_future_encoder_create_on(out, model, target, options->max_batch,
                                                         options->isa, pool, err);
    if (status == BJ_OK) (*out)->owns_pool = 1;
    else bj_pool_free(pool);
    return status;
}

void bj_future_encoder_free(bj_future_encoder *e) {
    if (!e) return;
    if (e->owns_pool) bj_pool_free(e->pool);
    bj_free(e->weights);
    bj_free(e->packed);
    bj_free(e->memory);
    bj_free(e);
}
