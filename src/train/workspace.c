/* workspace.c - divides the trainer's memory block into the arrays of a step. */
#include <string.h>

#include "core/status.h"
#include "train/trainer.h"

static void take_encoder(bj_trainer *t, bj_arena *arena) {
    const bj_arch *a = &t->model->arch;
    const size_t B = (size_t)t->max_batch, T = (size_t)t->steps, G = (size_t)a->heads;
    const size_t rows[2] = {t->objective.kind == BJ_ANCHOR_A ? 0 : B * (size_t)a->neighbors,
                            B * (size_t)a->polylines};
    bj_encoder_block *b = &t->encoder;
    *b = bj_encoder_block_strides(a);
    if (bj_trainer_observes(t)) {
        bj_observer_block_take(&b->observer, arena, &t->online.observer, B, 1);
        b->context = bj_arena_take(arena, B * b->ldc);
        return;
    }
    b->state = bj_arena_take(arena, (T + 1) * B * b->lds);
    b->gates = bj_arena_take(arena, T * B * b->ldg);
    bj_encoder_block_take(b, arena, &t->online, B);
    for (int s = 0; s < 2; s++) {
        const size_t extra = s == 0 ? B : 0; /* zero neighbors follow the neighbors */
        b->r[s] = bj_arena_take(arena, rows[s] * b->ldr);
        b->alpha[s] = bj_arena_take(arena, rows[s] * G);
        b->dr[s] = bj_arena_take(arena, (rows[s] + extra) * b->ldr);
    }
    b->context = bj_arena_take(arena, B * b->ldc);
    b->dq = bj_arena_take(arena, B * b->lde);
    b->dpooled = bj_arena_take(arena, B * b->lde);
    b->djoint = bj_arena_take(arena, B * b->ldj);
    b->dhidden = bj_arena_take(arena, B * b->ldp);
}

static void take_network(bj_trainer *t, bj_arena *arena) {
    const bj_arch *a = &t->model->arch;
    const size_t B = (size_t)t->max_batch, L = (size_t)t->network.L, K = (size_t)t->network.K;
    const int output_only = a->kind == BJ_MODEL_OUTPUT_ONLY, decoder = a->fut > 0;
    bj_network_block *b = &t->head;
    *b = (bj_network_block){.ldc = bj_stride(a->latent + a->action),
                            .lda = bj_stride(a->atom_hidden),
                            .ldu = bj_stride(a->latent),
                            .ldr = bj_stride(a->router_hidden),
                            .ldd = bj_stride(t->network.decoder_in.out),
                            .ldy = bj_stride(2 * a->fut),
                            .lds = bj_stride(a->atoms * a->fut),
                            .ldk = bj_stride(bj_network_compact_width(a))};
    b->dcontext = bj_arena_take(arena, B * b->ldc);
    b->atom_hidden = bj_arena_take(arena, B * L * b->lda);
    b->datom_hidden = bj_arena_take(arena, B * L * b->lda);
    /* The targets of all scenes are stored after the latents, so that the decoder reads a single
     * matrix. */
    b->u = bj_arena_take(arena, B * (L + 1) * b->ldu);
    b->du = bj_arena_take(arena, B * (L + 1) * b->ldu);
    if (decoder) {
        b->decoder_hidden = bj_arena_take(arena, B * (L + 1) * b->ldd);
        b->ddecoder_hidden = bj_arena_take(arena, B * (L + 1) * b->ldd);
        b->y = bj_arena_take(arena, B * (K + 1) * b->ldy);
        b->dy = bj_arena_take(arena, B * (K + 1) * b->ldy);
    }
    if (output_only) {
        b->base = bj_arena_take(arena, B * 2 * b->ldy);
        b->dbase = bj_arena_take(arena, B * 2 * b->ldy);
        b->residual = bj_arena_take(arena, B * K * b->ldy);
        b->dresidual = bj_arena_take(arena, B * K * b->ldy);
        b->dscale = bj_arena_take(arena, B * b->lds);
        t->dresidual_scale = bj_arena_take(arena, K * (size_t)a->fut);
    }
    b->inverse = bj_arena_take(arena, B * L);
    b->router_hidden = bj_arena_take(arena, B * b->ldr);
    b->drouter_hidden = bj_arena_take(arena, B * b->ldr);
    b->logits = bj_arena_take(arena, B * K);
    b->dlogits = bj_arena_take(arena, B * K);
    t->inverse_z = bj_arena_take(arena, B);
    if (t->network.prior_in.out) bj_variational_take(b, arena, &t->network, B, 1);
    if (t->objective.floor_weight != 0) {
        t->unit = bj_arena_take(arena, B * b->ldu);
        t->dunit = bj_arena_take(arena, B * b->ldu);
    }
}

static void take_regularizers(bj_trainer *t, bj_arena *arena) {
    if (!bj_regularizers_active(&t->objective)) return;
    bj_regularizers_take(&t->regularizers, arena, t->k->single, &t->objective, t->max_batch,
                         t->model->arch.latent);
    if (t->objective.kind == BJ_ANCHOR_A)
        t->raw = bj_arena_take(arena, (size_t)t->max_batch * t->head.ldu);
    t->io.regularizers = &t->regularizers;
}

static double *take_doubles(bj_arena *arena, size_t count) {
    return bj_arena_take_bytes(arena, count * sizeof(double));
}

static void take_objective(bj_trainer *t, bj_arena *arena) {
    const bj_arch *a = &t->model->arch;
    const size_t B = (size_t)t->max_batch, K = (size_t)t->network.K;
    bj_objective_io *io = &t->io;
    *io = (bj_objective_io){.K = t->network.K,
                            .V = a->noise,
                            .L = t->network.L,
                            .D = a->latent,
                            .F = a->fut,
                            .ldu = t->head.ldu,
                            .ldy = t->head.ldy,
                            .scales = a->scales};
    io->terms = take_doubles(arena, B * BJ_TERMS);
    io->pi = bj_arena_take(arena, B * K);
    io->dist = take_doubles(arena, B * K);
    io->resp_z = take_doubles(arena, B * K);
    io->resp_y = take_doubles(arena, B * K);
    io->usage = take_doubles(arena, K);
    if (bj_objective_is_hard(&t->objective))
        io->winner = bj_arena_take_bytes(arena, B * sizeof *io->winner);
    io->moments = take_doubles(
        arena, bj_objective_moments_size(&t->objective, t->max_batch, a->latent));
    io->time_weight = take_doubles(arena, (size_t)a->fut);
    if (a->scales != BJ_SCALES_FIXED) {
        const size_t z = bj_layout_offset(&t->model->layout, BJ_P_LOG_SZ, 0);
        io->log_sz = t->weights + z;
        io->dlog_sz = t->gradients ? t->gradients + z : NULL;
        if (a->fut) {
            const size_t y = bj_layout_offset(&t->model->layout, BJ_P_LOG_SY, 0);
            io->log_sy = t->weights + y;
            io->dlog_sy = t->gradients ? t->gradients + y : NULL;
        }
    }
}

static void take_scratch(bj_worker_scratch *s, bj_trainer *t, bj_arena *arena, int measuring) {
    const bj_arch *a = &t->model->arch;
    const size_t M = BJ_BLOCK, G = (size_t)a->heads;
    const size_t lines = M * (size_t)a->polylines;
    bj_worker_scratch w = {.target = bj_encoder_block_strides(a)};
    w.inverse = bj_arena_take(arena, M);
    w.gradient = bj_arena_take(arena, BJ_GRADIENT_SCRATCH);
    w.muon = bj_arena_take(arena, bj_muon_scratch(t));
    if (bj_objective_is_hard(&t->objective)) {
        const size_t B = (size_t)t->max_batch;
        for (int i = 0; i < 3; i++) w.compact[i] = bj_arena_take(arena, B * t->head.ldk);
        w.rows = bj_arena_take_bytes(arena, 2 * B * sizeof *w.rows);
    }
    if (!t->network.prior_in.out) w.slice = bj_arena_take(arena, bj_atoms_scratch(t));
    if (bj_trainer_observes(t)) {
        bj_encoder_block_take(&w.target, arena, &t->target, M);
        if (!measuring) *s = w;
        return;
    }
    w.features = bj_arena_take(arena, M * (size_t)a->fut * BJ_FOCAL_FEATURES);
    w.target.T = a->fut;
    bj_encoder_block_take_state(&w.target, arena, M);
    w.target.r[1] = bj_arena_take(arena, lines * w.target.ldr);
    w.target.alpha[1] = bj_arena_take(arena, lines * G);
    bj_encoder_block_take(&w.target, arena, &t->target, M);
    w.dh = bj_arena_take(arena, M * G * t->online.ldt);
    w.dscore[0] = bj_arena_take(arena, (size_t)a->neighbors * G);
    w.dscore[1] = bj_arena_take(arena, (size_t)a->polylines * G + 1);
    if (!measuring) *s = w;
}

size_t bj_workspace_init(bj_trainer *t, bj_arena *arena) {
    const bj_arch *a = &t->model->arch;
    const bj_layout *layout = &t->model->layout;
    const int threads = bj_pool_threads(t->pool), measuring = arena->base == NULL;
    t->target_weights = bj_arena_take(arena, layout->encoder_size);
    t->gradients = bj_arena_take(arena, layout->size);
    t->mean = bj_arena_take(arena, layout->size);
    t->variance = bj_arena_take(arena, layout->size);
    t->weights = t->optim.schedule_free ? bj_arena_take(arena, layout->size) : t->model->weights;
    t->sigma = t->optim.conditioned ? bj_arena_take(arena, layout->size) : NULL;
    /* The attention form depends on max_batch, not on the size of the current batch, so the shorter
     * last batch of an epoch is rounded in the same way. */
    const unsigned form = bj_encoder_form(a, t->max_batch);
    bj_encoder_init(&t->online, arena, t->k, a, layout, t->weights, t->weights,
                    BJ_ENCODER_TRAINED | form);
    bj_encoder_init(&t->target, arena, t->k, a, layout, t->target_weights, t->weights,
                    BJ_ENCODER_OF_FUTURES | form);
    bj_network_init(&t->network, arena, t->k, a, layout, t->weights, 1);
    if (!bj_trainer_observes(t)) bj_gathered_take(&t->batch, arena, a, (size_t)t->max_batch, 1);
    take_encoder(t, arena);
    take_network(t, arena);
    take_objective(t, arena);
    take_regularizers(t, arena);
    if (!bj_trainer_observes(t)) {
        t->dfolded = bj_arena_take(arena, 2 * (size_t)a->embed * t->online.ldt);
        t->dgates = bj_arena_take(arena, 3 * (size_t)a->embed * t->encoder.lds);
        t->dinput = bj_arena_take(arena, (BJ_FOCAL_FEATURES + 1) * bj_stride(a->embed));
    }
    t->plan_memory = bj_arena_take_bytes(arena, bj_plans_size(t) * sizeof(int));
    t->jobs = bj_arena_take_bytes(arena, (size_t)bj_jobs_most(t) * sizeof *t->jobs);
    t->chunk_count = bj_chunks_count(t);
    t->chunks = bj_arena_take_bytes(arena, (size_t)t->chunk_count * sizeof *t->chunks);
    t->chunk_sums = take_doubles(arena, (size_t)t->chunk_count);
    if (measuring) t->muon_count = bj_muon_build(t);
    t->muon = bj_arena_take_bytes(arena, (size_t)t->muon_count * sizeof *t->muon);
    t->block_begin = bj_arena_take_bytes(arena, ((size_t)t->max_batch + 1) * sizeof(int));
    int **share[] = {&t->share, &t->chunk_share, &t->block_share};
    for (int i = 0; i < 3; i++)
        *share[i] = bj_arena_take_bytes(arena, ((size_t)threads + 1) * sizeof(int));
    t->scratch = bj_arena_take_bytes(arena, (size_t)threads * sizeof *t->scratch);
    for (int i = 0; i < threads; i++) take_scratch(t->scratch + i, t, arena, measuring);
    return arena->used;
}

/* ----------------------------------------------------------------------------- views of blocks */

bj_encoder_block bj_trainer_encoder_block(const bj_trainer *t, int b0, int b1, int worker) {
    if (bj_trainer_observes(t)) {
        bj_encoder_block b = t->encoder;
        b.M = b1 - b0;
        b.context += (size_t)b0 * b.ldc;
        bj_observer_block_shift(&b.observer, &t->online.observer, (size_t)b0);
        b.observer.pairs = t->pairs + b0;
        return b;
    }
    const bj_arch *a = &t->model->arch;
    const bj_worker_scratch *w = &t->scratch[worker];
    const bj_gathered *batch = &t->batch;
    const size_t G = (size_t)a->heads, at = (size_t)b0, B = (size_t)batch->B;
    const int anchor = t->objective.kind == BJ_ANCHOR_A; /* reads the future, no neighbors */
    const size_t n0 = anchor ? 0 : (size_t)batch->neighbor_start[b0];
    const size_t n1 = anchor ? 0 : (size_t)batch->neighbor_start[batch->B];
    const size_t p0 = (size_t)batch->polyline_start[b0];
    bj_encoder_block b = t->encoder;
    b.M = b1 - b0;
    b.T = t->steps;
    b.focal = anchor ? w->features : batch->focal + at * (size_t)b.T * BJ_FOCAL_FEATURES;
    b.neighbors = anchor ? NULL : batch->neighbors;
    b.neighbor_start = anchor ? NULL : batch->neighbor_start + b0;
    b.polylines = batch->polylines;
    b.polyline_start = batch->polyline_start + b0;
    b.state += at * b.lds;
    b.state_step = B * b.lds;
    b.gates += at * b.ldg;
    b.gates_step = B * b.ldg;
    b.r[0] += n0 * b.ldr;
    b.r[1] += p0 * b.ldr;
    b.alpha[0] += n0 * G;
    b.alpha[1] += p0 * G;
    b.dummy_alpha += at * G;
    b.dummy_dr = b.dr[0] + (n1 + at) * b.ldr;
    b.dr[0] += n0 * b.ldr;
    b.dr[1] += p0 * b.ldr;
    b.q += at * b.lde;
    b.a += at * G * t->online.ldt;
    b.h += at * G * t->online.ldt;
    b.pooled += at * b.lde;
    b.joint += at * b.ldj;
    b.hidden += at * b.ldp;
    b.context += at * b.ldc;
    b.dq += at * b.lde;
    b.dpooled += at * b.lde;
    b.da += at * G * t->online.ldt;
    if (t->online.factored) {
        b.p += at * G * b.lde;
        b.s += at * G * b.lde;
        b.dp += at * G * b.lde;
        b.ds += at * G * b.lde;
    }
    b.djoint += at * b.ldj;
    b.dhidden += at * b.ldp;
    b.dh = w->dh;
    b.dscore[0] = w->dscore[0];
    b.dscore[1] = w->dscore[1];
    return b;
}

bj_network_block bj_trainer_network_block(const bj_trainer *t, int b0, int b1, int worker) {
    const size_t at = (size_t)b0, L = (size_t)t->network.L, K = (size_t)t->network.K;
    const size_t B = (size_t)t->batch.B;
    const int decoder = t->model->arch.fut > 0;
    bj_network_block b = t->head;
    b.M = b1 - b0;
    b.context = t->encoder.context + at * b.ldc;
    b.z = b.u + (B * L + at) * b.ldu;
    b.dz = t->objective.kind == BJ_ANCHOR_A ? b.du + (B * L + at) * b.ldu : NULL;
    if (t->io.winner) {
        b.winner = t->io.winner + b0;
        for (int i = 0; i < 3; i++) b.compact[i] = t->scratch[worker].compact[i];
    }
    if (t->network.prior_in.out) bj_variational_shift(&b, &t->network, at);
    if (decoder) {
        b.z_hidden = b.decoder_hidden + (B * L + at) * b.ldd;
        b.dz_hidden = b.ddecoder_hidden + (B * L + at) * b.ldd;
    }
    if (t->network.step_scale) {
        b.rec = b.base + (B + at) * b.ldy;
        b.drec = b.dbase + (B + at) * b.ldy;
        b.base += at * b.ldy;
        b.dbase += at * b.ldy;
        b.residual += at * K * b.ldy;
        b.dresidual += at * K * b.ldy;
        b.dscale += at * b.lds;
    } else if (decoder) {
        b.rec = b.y + (B * K + at) * b.ldy;
        b.drec = b.dy + (B * K + at) * b.ldy;
    }
    b.dcontext += at * b.ldc;
    b.atom_hidden += at * L * b.lda;
    b.datom_hidden += at * L * b.lda;
    b.u += at * L * b.ldu;
    b.du += at * L * b.ldu;
    b.inverse += at * L;
    b.router_hidden += at * b.ldr;
    b.drouter_hidden += at * b.ldr;
    b.logits += at * K;
    b.dlogits += at * K;
    if (decoder) {
        b.decoder_hidden += at * L * b.ldd;
        b.ddecoder_hidden += at * L * b.ldd;
        b.y += at * K * b.ldy;
        b.dy += at * K * b.ldy;
    }
    return b;
}
