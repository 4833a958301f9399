/* step.c - one training step: prepare, scenes, gradients, unfold, update.
 *
 * Invariants
 *   1. Weights, optimizer state and target change only in bj_update_run, after a check that the
 *      loss and the gradient norm are finite. A failed step leaves them unchanged.
 *   2. A step allocates nothing, and its result does not depend on the number of workers.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check_batch.h"
#include "core/clock.h"
#include "core/rng.h"
#include "nn/normalize.h"
#include "train/trainer.h"

/* ------------------------------------------------------------------------------------- prepare */

static void prepare_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const int online = bj_encoder_prepare_items(&t->online, 0);
    (void)worker;
    if (item < online) bj_encoder_prepare(&t->online, 0, item);
    else if (item < 2 * online) bj_encoder_prepare(&t->target, 0, item - online);
    else bj_network_prepare(&t->network, item - 2 * online);
}

static void fold_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    (void)worker;
    bj_encoder_prepare(item % 2 ? &t->target : &t->online, 1, item / 2);
}

static void prepare(bj_trainer *t) {
    const double start = bj_seconds();
    bj_pool_run(t->pool, prepare_item, t,
                2 * bj_encoder_prepare_items(&t->online, 0) + bj_network_prepare_items(&t->network));
    bj_pool_run(t->pool, fold_item, t, 2 * bj_encoder_prepare_items(&t->online, 1));
    t->profile.prepare += bj_seconds() - start;
}

/* -------------------------------------------------------------------------------------- scenes */

/* Computes z = normalize(target encoder(future view)). Stores nothing for a backward pass. */
static void target_forward(bj_trainer *t, const bj_network_block *head, int b0, int b1,
                           int worker) {
    const bj_arch *a = &t->model->arch;
    bj_worker_scratch *w = &t->scratch[worker];
    bj_encoder_block b = w->target;
    b.M = b1 - b0;
    b.focal = w->features;
    b.polylines = t->batch.polylines;
    b.polyline_start = t->batch.polyline_start + b0;
    b.context = head->z;
    b.ldc = head->ldu;
    bj_encoder_forward(&t->target, &b);
    bj_normalize_forward(head->z, head->ldu, w->inverse, b.M, a->latent);
}

/* Draws the noise of the variational model. It depends only on the seed, the step and the position
 * in the batch. */
static void draw_noise(const bj_trainer *t, const bj_network_block *head, int b0) {
    const int V = t->model->arch.noise;
    for (int m = 0; m < head->M; m++) {
        char name[48];
        snprintf(name, sizeof name, "noise %ld %d", t->step, b0 + m);
        bj_rng rng = bj_rng_named(t->seed, name);
        for (int i = 0; i < V; i++)
            head->eps[(size_t)m * (size_t)V + (size_t)i] = (bj_real)(float)bj_rng_normal(&rng);
    }
}

/* Encodes the first observation of each pair with the trained encoder and the second one with the
 * target encoder. */
static void pairs_forward(bj_trainer *t, int b0, int b1, int worker) {
    const bj_arch *a = &t->model->arch;
    const bj_network_block head = bj_trainer_network_block(t, b0, b1, worker);
    const bj_encoder_block online = bj_trainer_encoder_block(t, b0, b1, worker);
    const size_t D = (size_t)a->latent;
    for (int b = b0; b < b1; b++)
        if (bj_pair_nonfinite(&t->pairs[b], a, 1)) {
            bj_note_first(&t->bad_scene, b);
            break;
        }
    bj_encoder_block target = t->scratch[worker].target;
    target.M = b1 - b0;
    target.observer.pairs = t->pairs + b0;
    target.observer.successor = 1;
    target.context = head.z;
    target.ldc = head.ldu;
    bj_encoder_forward(&t->target, &target);
    bj_normalize_forward(head.z, head.ldu, t->scratch[worker].inverse, target.M, a->latent);
    bj_encoder_forward(&t->online, &online);
    for (int m = 0; m < online.M; m++) {
        const bj_real *context = online.context + (size_t)m * online.ldc;
        if (a->action)
            memcpy(online.context + (size_t)m * online.ldc + D, t->pairs[b0 + m].action,
                   (size_t)a->action * sizeof *context);
        if (t->unit)
            memcpy(t->unit + (size_t)(b0 + m) * head.ldu, context, D * sizeof *context);
    }
    if (t->unit)
        bj_normalize_forward(t->unit + (size_t)b0 * head.ldu, head.ldu, t->inverse_z + b0,
                             online.M, a->latent);
    if (!head.eps) return;
    draw_noise(t, &head, b0);
    bj_variational_forward_block(&t->network, &head);
}

/* Adds the gradient of the variance and rank floors to dcontext. */
static void floors_backward(bj_trainer *t, const bj_network_block *head, int b0) {
    const size_t at = (size_t)b0 * head->ldu;
    bj_normalize_backward(t->dunit + at, head->ldu, t->unit + at, t->inverse_z + b0, head->M,
                          t->model->arch.latent);
    for (size_t m = 0; m < (size_t)head->M; m++)
        for (size_t d = 0; d < (size_t)t->model->arch.latent; d++)
            head->dcontext[m * head->ldc + d] += t->dunit[at + m * head->ldu + d];
}

static void scenes_forward(bj_trainer *t, int b0, int b1, int worker) {
    const bj_arch *a = &t->model->arch;
    const bj_network_block head = bj_trainer_network_block(t, b0, b1, worker);
    bj_encoder_block encoder = bj_trainer_encoder_block(t, b0, b1, worker);
    const int bad = bj_gathered_copy(&t->batch, t->scenes, a, b0, b1);
    if (bad >= 0) bj_note_first(&t->bad_scene, bad);
    bj_future_view(t->scratch[worker].features, t->batch.future + 2 * (size_t)a->fut * (size_t)b0,
                   b1 - b0, a->fut, a->dt);
    if (t->objective.kind == BJ_ANCHOR_A) { /* the trained encoder reads the future */
        encoder.context = head.z;
        bj_encoder_forward(&t->online, &encoder);
        if (t->raw)
            memcpy(t->raw + (size_t)b0 * head.ldu, head.z,
                   (size_t)(b1 - b0) * head.ldu * sizeof *t->raw);
        bj_normalize_forward(head.z, head.ldu, t->inverse_z + b0, b1 - b0, a->latent);
    } else {
        target_forward(t, &head, b0, b1, worker);
        bj_encoder_forward(&t->online, &encoder);
    }
}

/* Returns the gradients that the network receives from the objective. */
static unsigned incoming(const bj_trainer *t) {
    const bj_objective *o = &t->objective;
    const int frozen = o->kind == BJ_ANCHOR_B;
    unsigned from = 0;
    if (frozen || o->lambda_z != 0 || t->network.prior_in.out) from |= BJ_FROM_LATENT;
    if (!frozen && t->model->arch.fut > 0 && o->lambda_y != 0) from |= BJ_FROM_DECODED;
    if (t->reach & BJ_REACH_ROUTER) from |= BJ_FROM_ROUTER;
    return from;
}

/* Computes the contexts with the trained encoder and the latents with the target encoder. */
static void encode_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const int b0 = t->block_begin[item], b1 = t->block_begin[item + 1];
    if (bj_trainer_observes(t)) pairs_forward(t, b0, b1, worker);
    else scenes_forward(t, b0, b1, worker);
}

static void regularize_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    bj_regularizers_item(&t->regularizers, item, t->scratch[worker].gradient);
}

/* Computes the regularizers from the output of the online encoder, which must be available for the
 * whole batch. */
static void regularize(bj_trainer *t) {
    const bj_network_block head = bj_trainer_network_block(t, 0, t->batch.B, 0);
    bj_regularizers_begin(&t->regularizers, t->raw ? t->raw : head.context,
                          t->raw ? head.ldu : head.ldc, t->batch.B, t->seed, t->step);
    for (int i = 0; i < BJ_REGULARIZER_ROUNDS; i++)
        bj_pool_run(t->pool, regularize_item, t, bj_regularizers_round(&t->regularizers, i));
}

/* Computes the layers after the atoms and the loss. */
static void read_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const int b0 = t->block_begin[item], b1 = t->block_begin[item + 1];
    const bj_network_block head = bj_trainer_network_block(t, b0, b1, worker);
    if (t->objective.kind != BJ_ANCHOR_A) bj_network_read(&t->network, &head);
    if (t->model->arch.fut > 0) bj_network_reconstruct(&t->network, &head);
    bj_objective_scenes_forward(&t->objective, &t->io, b0, b1);
}

/* Runs the backward pass from the loss to the atoms. */
static void unread_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const bj_objective *o = &t->objective;
    const int b0 = t->block_begin[item], b1 = t->block_begin[item + 1];
    const int anchor = o->kind == BJ_ANCHOR_A, frozen = o->kind == BJ_ANCHOR_B;
    const bj_network_block head = bj_trainer_network_block(t, b0, b1, worker);
    bj_objective_scenes_backward(o, &t->io, b0, b1);
    if (anchor || (!frozen && t->model->arch.fut > 0 && o->lambda_rec != 0))
        bj_network_reconstruct_backward(&t->network, &head);
    if (!anchor && (t->reach & BJ_REACH_ENCODER))
        bj_network_latents_backward(&t->network, &head, incoming(t));
}

static void both_item(void *context, int item, int worker) {
    read_item(context, item, worker);
    unread_item(context, item, worker);
}

/* Runs the backward pass from the atoms through the trained encoder. */
static void encoder_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const int b0 = t->block_begin[item], b1 = t->block_begin[item + 1];
    const bj_network_block head = bj_trainer_network_block(t, b0, b1, worker);
    const bj_encoder_block encoder = bj_trainer_encoder_block(t, b0, b1, worker);
    const unsigned from = incoming(t), latents = from & (BJ_FROM_LATENT | BJ_FROM_DECODED);
    if (t->objective.kind == BJ_ANCHOR_A) {
        bj_normalize_backward(head.dz, head.ldu, head.z, t->inverse_z + b0, b1 - b0,
                              t->model->arch.latent);
        if (t->io.regularizers)
            bj_regularizers_backward(&t->regularizers, head.dz, head.ldu, b0, b1);
        bj_encoder_backward(&t->online, &encoder, head.dz);
        return;
    }
    if (head.eps) bj_variational_backward_block(&t->network, &head);
    else if (from & BJ_FROM_ROUTER)
        bj_network_route_backward(&t->network, &head, latents ? BJ_GEMM_ADD : 0);
    if (!from) /* only floors or regularizers have a gradient */
        memset(head.dcontext, 0, (size_t)head.M * head.ldc * sizeof *head.dcontext);
    if (t->unit) floors_backward(t, &head, b0);
    if (t->io.regularizers)
        bj_regularizers_backward(&t->regularizers, head.dcontext, head.ldc, b0, b1);
    bj_encoder_backward(&t->online, &encoder, head.dcontext);
}

static void point_objective_at_batch(bj_trainer *t) {
    const bj_network_block head = bj_trainer_network_block(t, 0, t->batch.B, 0);
    bj_objective_io *io = &t->io;
    const int anchor = t->objective.kind == BJ_ANCHOR_A;
    io->B = t->batch.B;
    io->u = anchor ? NULL : head.u;
    io->logits = anchor ? NULL : head.logits;
    io->y = anchor ? NULL : head.y;
    io->z = head.z;
    io->rec = head.rec;
    io->future = t->batch.future;
    io->du = anchor ? NULL : head.du;
    io->dlogits = anchor ? NULL : head.dlogits;
    io->dy = anchor ? NULL : head.dy;
    io->drec = head.drec;
    io->dz = head.dz;
    io->unit = t->unit;
    io->dunit = t->dunit;
    io->prior = head.prior;
    io->posterior = head.posterior;
    io->dprior = head.dprior;
    io->dposterior = head.dposterior;
}

/* Divides each worker's share of the scenes into blocks. */
static void cut_blocks(bj_trainer *t) {
    const int threads = bj_pool_threads(t->pool), groups = (t->batch.B + 7) / 8;
    t->block_share[0] = 0;
    for (int w = 0, n = 0; w < threads; w++) {
        const int b0 = 8 * bj_share_begin(groups, w, threads);
        const int b1 = 8 * bj_share_begin(groups, w + 1, threads);
        n += bj_blocks_cut(t->block_begin + n, b0, b1 < t->batch.B ? b1 : t->batch.B);
        t->block_share[w + 1] = n;
    }
}

static void run_scenes(bj_trainer *t) {
    const double start = bj_seconds();
    cut_blocks(t);
    bj_objective_begin(&t->objective, &t->io);
    const int atoms = t->objective.kind != BJ_ANCHOR_A && !t->network.prior_in.out;
    bj_pool_run_shares(t->pool, encode_item, t, t->block_share);
    if (t->io.regularizers) regularize(t);
    if (atoms) bj_atoms_forward(t);
    if (bj_objective_is_coupled(&t->objective)) {
        bj_pool_run_shares(t->pool, read_item, t, t->block_share);
        bj_objective_couple(&t->objective, &t->io);
        bj_pool_run_shares(t->pool, unread_item, t, t->block_share);
    } else {
        bj_pool_run_shares(t->pool, both_item, t, t->block_share);
    }
    if (t->objective.kind == BJ_ANCHOR_A || (t->reach & BJ_REACH_ENCODER)) {
        if (atoms && (incoming(t) & (BJ_FROM_LATENT | BJ_FROM_DECODED))) bj_atoms_backward(t);
        bj_pool_run_shares(t->pool, encoder_item, t, t->block_share);
    }
    t->profile.scenes += bj_seconds() - start;
}

/* ---------------------------------------------------------------------------------------- step */

static bj_status check_finite(const bj_trainer *t, const bj_batch *batch, const bj_loss *loss,
                              bj_error *err) {
    const int bad = atomic_load(&t->bad_scene);
    if (bad != INT_MAX) return bj_element_check(batch, &t->model->arch, bad, 1, err);
    for (int b = 0; b < t->batch.B; b++)
        for (int i = 0; i < BJ_TERMS; i++)
            if (!isfinite(t->io.terms[b * BJ_TERMS + i]))
                return BJ_FAIL(err, BJ_ENONFINITE, "scene %d of the batch: the loss is %g", b,
                               t->io.terms[b * BJ_TERMS + i]);
    if (!isfinite(loss->total))
        return BJ_FAIL(err, BJ_ENONFINITE, "the loss of the batch is %g", loss->total);
    return BJ_OK;
}

bj_status bj_trainer_gradients(bj_trainer *t, const bj_batch *batch, bj_step_report *report,
                               bj_error *err) {
    BJ_TRY(bj_batch_check(batch, &t->model->arch, t->max_batch, 1, err));
    t->scenes = batch->scenes;
    t->pairs = batch->pairs;
    if (bj_trainer_observes(t)) t->batch.B = batch->B;
    else bj_gathered_lay_out(&t->batch, batch->scenes, batch->B);
    atomic_store(&t->bad_scene, INT_MAX);
    point_objective_at_batch(t);
    bj_plans_build(t);
    /* Before the first update, callers may still change the model's weights. */
    if (t->optim.schedule_free && !t->step) bj_schedule_free_start(t);
    prepare(t);
    run_scenes(t);
    bj_step_report r = {.loss = bj_objective_finish(&t->objective, &t->io), .step = t->step};
    BJ_TRY(check_finite(t, batch, &r.loss, err));
    bj_gradients_run(t);
    r.grad_norm = bj_gradient_norm(t);
    if (report) *report = r;
    if (!isfinite(r.grad_norm))
        return BJ_FAIL(err, BJ_ENONFINITE, "the gradient norm is %g", r.grad_norm);
    return BJ_OK;
}

bj_status bj_trainer_step(bj_trainer *t, const bj_batch *batch, double lr, bj_step_report *report,
                          bj_error *err) {
    if (!isfinite(lr) || lr < 0)
        return BJ_FAIL(err, BJ_EARG, "the learning rate is %g, expected a finite number >= 0", lr);
    bj_step_report r;
    BJ_TRY(bj_trainer_gradients(t, batch, &r, err));
    const double start = bj_seconds();
    bj_update_run(t, lr, r.grad_norm);
    t->profile.update += bj_seconds() - start;
    r.step = t->step;
    if (report) *report = r;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ lifetime */

static bj_status check_options(const bj_trainer_options *o, bj_error *err) {
    const bj_optim *p = &o->optim;
    if (o->precision != BJ_PRECISION_FULL && o->precision != BJ_PRECISION_BF16)
        return BJ_FAIL(err, BJ_EARG, "precision is %d, expected full (0) or bf16 (1)",
                       (int)o->precision);
    if (o->max_batch < 1 || o->max_batch > 1 << 20)
        return BJ_FAIL(err, BJ_EARG, "max_batch is %d, expected 1 to %d", o->max_batch, 1 << 20);
    if (p->muon && p->schedule_free)
        return BJ_FAIL(err, BJ_EARG,
                       "optimizer: muon and schedule_free are both 1, "
                       "expected at most one of them");
    const struct {
        const char *name;
        double value, least, below;
    } range[] = {{"beta1", p->beta1, 0, 1},
                 {"beta2", p->beta2, 0, 1},
                 {"eps", p->eps, 1e-300, 1},
                 {"weight_decay", p->weight_decay, 0, 1e6},
                 {"clip", p->clip, 1e-300, 1e300},
                 {"ema", p->ema, 0, 1 + 1e-15}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (!(range[i].value >= range[i].least && range[i].value < range[i].below))
            return BJ_FAIL(err, BJ_EARG, "optimizer: %s is %g, expected at least %g and below %g",
                           range[i].name, range[i].value, range[i].least, range[i].below);
    return BJ_OK;
}

bj_status bj_trainer_create(bj_trainer **out, bj_model *model, const bj_trainer_options *options,
                            bj_error *err) {
    *out = NULL;
    BJ_TRY(check_options(options, err));
    BJ_TRY(bj_objective_check(&options->objective, &model->arch, err));
    bj_trainer *t;
    BJ_TRY(BJ_ALLOC(t, 1, err));
    t->model = model;
    t->objective = options->objective;
    t->optim = options->optim;
    t->max_batch = options->max_batch;
    t->seed = options->seed;
    t->precision = options->precision;
    t->steps = options->objective.kind == BJ_ANCHOR_A ? model->arch.fut : model->arch.obs;
    t->reach = bj_objective_reach(&t->objective, &model->arch);
    bj_status status;
    BJ_GOTO(status, fail, bj_kernels_find(&t->k, options->isa, options->precision, err));
    BJ_GOTO(status, fail, bj_pool_create(&t->pool, options->threads, err));
    bj_arena arena = {NULL, 0};
    const size_t size = bj_workspace_init(t, &arena);
    BJ_GOTO(status, fail, BJ_ALLOC(t->memory, size, err));
    arena = (bj_arena){t->memory, 0};
    bj_workspace_init(t, &arena);
    bj_chunks_build(t);
    bj_muon_build(t);
    memcpy(t->target_weights, model->weights, model->layout.encoder_size * sizeof(bj_real));
    *out = t;
    return BJ_OK;
fail:
    bj_trainer_free(t);
    return status;
}

void bj_trainer_free(bj_trainer *t) {
    if (!t) return;
    bj_pool_free(t->pool);
    bj_free(t->memory);
    bj_free(t);
}

/* -------------------------------------------------------------------------------------- access */

bj_tensor bj_trainer_gradient(const bj_trainer *t, int index) {
    const bj_param *p = &t->model->layout.params[index];
    bj_tensor tensor = bj_model_tensor(t->model, index);
    tensor.data = t->reach >> p->part & 1 ? t->gradients + p->offset : NULL;
    return tensor;
}

bj_tensor bj_trainer_target(const bj_trainer *t, int index) {
    const bj_param *p = &t->model->layout.params[index];
    bj_tensor tensor = bj_model_tensor(t->model, index);
    tensor.data = p->part == BJ_PART_ENCODER ? t->target_weights + p->offset : NULL;
    return tensor;
}

bj_outputs bj_trainer_outputs(const bj_trainer *t) {
    const bj_network_block head = bj_trainer_network_block(t, 0, t->batch.B, 0);
    const int anchor = t->objective.kind == BJ_ANCHOR_A;
    return (bj_outputs){.B = t->batch.B,
                        .K = t->io.K,
                        .latents = t->io.L,
                        .D = t->io.D,
                        .F = t->io.F,
                        .context = anchor ? NULL : head.context,
                        .atoms = anchor ? NULL : head.u,
                        .logits = anchor ? NULL : head.logits,
                        .weights = anchor ? NULL : t->io.pi,
                        .decoded = anchor ? NULL : head.y,
                        .target = head.z,
                        .recon = head.rec,
                        .future = t->batch.future,
                        .context_stride = head.ldc,
                        .atom_stride = head.ldu,
                        .decoded_stride = head.ldy};
}

bj_profile bj_trainer_profile(const bj_trainer *t) { return t->profile; }
const char *bj_trainer_isa(const bj_trainer *t) { return t->k->isa; }
