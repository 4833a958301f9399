/* step.c - one training step: prepare, scenes, gradients, unfold, update.
 *
 * Invariants
 *   1. Weights, optimizer state and target change only in bj_update_run, after the loss and the
 *      gradient norm have been found finite: a failed step leaves everything as it was.
 *   2. No allocation, no dependence on the number of workers.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/check_batch.h"
#include "core/clock.h"
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

/* z = normalize(target encoder(future view)), without keeping anything for backward. */
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

static void scenes_forward(bj_trainer *t, int b0, int b1, int worker) {
    const bj_arch *a = &t->model->arch;
    const bj_network_block head = bj_trainer_network_block(t, b0, b1);
    bj_encoder_block encoder = bj_trainer_encoder_block(t, b0, b1, worker);
    const int bad = bj_gathered_copy(&t->batch, t->scenes, a, b0, b1);
    if (bad >= 0) bj_note_first(&t->bad_scene, bad);
    bj_future_view(t->scratch[worker].features, t->batch.future + 2 * (size_t)a->fut * (size_t)b0,
                   b1 - b0, a->fut, a->dt);
    if (t->objective.kind == BJ_ANCHOR_A) { /* the trained encoder sees the future */
        encoder.context = head.z;
        bj_encoder_forward(&t->online, &encoder);
        bj_normalize_forward(head.z, head.ldu, t->inverse_z + b0, b1 - b0, a->latent);
    } else {
        target_forward(t, &head, b0, b1, worker);
        bj_encoder_forward(&t->online, &encoder);
        bj_network_predict(&t->network, &head);
    }
    bj_network_reconstruct(&t->network, &head);
    bj_objective_scenes_forward(&t->objective, &t->io, b0, b1);
}

static void scenes_backward(bj_trainer *t, int b0, int b1, int worker) {
    const bj_objective *o = &t->objective;
    const bj_network_block head = bj_trainer_network_block(t, b0, b1);
    const bj_encoder_block encoder = bj_trainer_encoder_block(t, b0, b1, worker);
    bj_objective_scenes_backward(o, &t->io, b0, b1);
    if (o->kind == BJ_ANCHOR_A) {
        bj_network_reconstruct_backward(&t->network, &head);
        bj_normalize_backward(head.dz, head.ldu, head.z, t->inverse_z + b0, b1 - b0,
                              t->model->arch.latent);
        bj_encoder_backward(&t->online, &encoder, head.dz);
        return;
    }
    const int frozen = o->kind == BJ_ANCHOR_B;
    if (!frozen && o->lambda_rec != 0) bj_network_reconstruct_backward(&t->network, &head);
    unsigned from = 0;
    if (frozen || o->lambda_z != 0) from |= BJ_FROM_LATENT;
    if (!frozen && o->lambda_y != 0) from |= BJ_FROM_DECODED;
    if (t->reach & BJ_REACH_ROUTER) from |= BJ_FROM_ROUTER;
    if (t->reach & BJ_REACH_ENCODER) {
        bj_network_predict_backward(&t->network, &head, from);
        bj_encoder_backward(&t->online, &encoder, head.dcontext);
    }
}

static void forward_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    scenes_forward(t, t->block_begin[item], t->block_begin[item + 1], worker);
}

static void backward_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    scenes_backward(t, t->block_begin[item], t->block_begin[item + 1], worker);
}

static void both_item(void *context, int item, int worker) {
    forward_item(context, item, worker);
    backward_item(context, item, worker);
}

static void point_objective_at_batch(bj_trainer *t) {
    const bj_network_block head = bj_trainer_network_block(t, 0, t->batch.B);
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
}

static void run_scenes(bj_trainer *t) {
    const double start = bj_seconds();
    t->block_count = bj_blocks_cut(t->block_begin, t->batch.B);
    bj_objective_begin(&t->objective, &t->io);
    if (bj_objective_is_coupled(&t->objective)) {
        bj_pool_run(t->pool, forward_item, t, t->block_count);
        bj_objective_couple(&t->objective, &t->io);
        bj_pool_run(t->pool, backward_item, t, t->block_count);
    } else {
        bj_pool_run(t->pool, both_item, t, t->block_count);
    }
    t->profile.scenes += bj_seconds() - start;
}

/* ---------------------------------------------------------------------------------------- step */

static bj_status check_finite(const bj_trainer *t, const bj_batch *batch, const bj_loss *loss,
                              bj_error *err) {
    const int bad = atomic_load(&t->bad_scene);
    if (bad != INT_MAX) return bj_scene_check(batch, &t->model->arch, bad, 1, err);
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
    bj_gathered_lay_out(&t->batch, batch->scenes, batch->B);
    atomic_store(&t->bad_scene, INT_MAX);
    point_objective_at_batch(t);
    bj_plans_build(t);
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
    if (o->max_batch < 1 || o->max_batch > 1 << 20)
        return BJ_FAIL(err, BJ_EARG, "max_batch is %d, expected 1 to %d", o->max_batch, 1 << 20);
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
    t->steps = options->objective.kind == BJ_ANCHOR_A ? model->arch.fut : model->arch.obs;
    t->reach = bj_objective_reach(&t->objective, &model->arch);
    bj_status status;
    BJ_GOTO(status, fail, bj_kernels_find(&t->k, options->isa, err));
    BJ_GOTO(status, fail, bj_pool_create(&t->pool, options->threads, err));
    bj_arena arena = {NULL, 0};
    const size_t size = bj_workspace_init(t, &arena);
    BJ_GOTO(status, fail, BJ_ALLOC(t->memory, size, err));
    arena = (bj_arena){t->memory, 0};
    bj_workspace_init(t, &arena);
    bj_chunks_build(t);
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
    const bj_network_block head = bj_trainer_network_block(t, 0, t->batch.B);
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
