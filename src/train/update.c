/* update.c - global norm, clipping, AdamW and EMA over chunks of the reached tensors.
 *
 *   g *= min(1, clip / (|g| + 1e-6));  w *= 1 - lr wd;  w -= lr m^ / (sqrt(v^) + eps)
 *   target = ema target + (1 - ema) w                       (encoder only)
 *
 * Conditioned training updates theta, where w = sigma theta, so g, m and v refer to theta:
 *   g_theta = sigma g_w;  w *= 1 - lr wd;  w -= sigma lr m^ / (sqrt(v^) + eps)
 * Tensors of scale STEPS:
 *   w_t = sigma sum_{s<=t} theta_s;  g_theta_t = sigma sum_{s>=t} g_w_s
 * theta itself is never stored, because weight decay and steps are linear in it.
 *
 * Chunks have a fixed size and their sums are added in order, so the norm does not depend on which
 * thread computed a chunk.
 * Tests: tests/train/test_step.c; tests/verify/test_parity.c for conditioned training
 */
#include <math.h>
#include <string.h>

#include "train/trainer.h"

/* The parts are in the same order as in bj_param_part and BJ_REACH_*. */
int bj_trainer_reaches(const bj_trainer *t, bj_param_part part) {
    return (int)(t->reach >> part & 1);
}

/* Lists the chunks in the share of one worker, or of all workers if `shares` is 1. */
static int walk_chunks(const bj_trainer *t, int share, int shares, bj_chunk *out) {
    int n = 0, index = 0;
    for (int i = 0; i < t->model->layout.count; i++) {
        const bj_param *p = &t->model->layout.params[i];
        if (!bj_trainer_reaches(t, p->part)) continue;
        const int scaled = t->optim.conditioned && p->scale != BJ_SCALE_ONE;
        const int steps = scaled && p->scale == BJ_SCALE_STEPS;
        const size_t most = steps ? p->size : BJ_CHUNK;
        const int chunks = (int)((p->size + most - 1) / most);
        for (int c = bj_share_begin(chunks, share, shares);
             c < bj_share_begin(chunks, share + 1, shares); c++, n++) {
            const size_t at = (size_t)c * most;
            if (out)
                out[n] = (bj_chunk){p->offset + at, p->size - at < most ? p->size - at : most,
                                    index + c, steps ? p : NULL, scaled && !steps,
                                    t->optim.muon && p->muon};
        }
        index += chunks;
    }
    return n;
}

int bj_chunks_count(const bj_trainer *t) { return walk_chunks(t, 0, 1, NULL); }

void bj_chunks_build(bj_trainer *t) {
    const int threads = bj_pool_threads(t->pool);
    t->chunk_share[0] = 0;
    for (int w = 0; w < threads; w++)
        t->chunk_share[w + 1] =
            t->chunk_share[w] + walk_chunks(t, w, threads, t->chunks + t->chunk_share[w]);
    for (int i = 0; t->sigma && i < t->model->layout.count; i++) {
        const bj_param *p = &t->model->layout.params[i];
        for (size_t j = 0; j < p->size; j++)
            t->sigma[p->offset + j] = (bj_real)bj_param_sigma(p, (int)(j % (size_t)p->shape[1]));
    }
}

/* Converts gradients of positions to gradients of steps. Each row becomes sigma times the sum of
 * itself and all later rows of the same coordinate. Rows of one coordinate are two rows apart. */
static void sum_later(bj_real *g, const bj_param *p) {
    const size_t pair = 2 * (size_t)p->shape[1];
    const bj_real sigma = (bj_real)bj_param_sigma(p, 0);
    for (size_t i = p->size - pair; i-- > 0;) g[i] += g[i + pair];
    for (size_t i = 0; i < p->size; i++) g[i] *= sigma;
}

static void square_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_chunk c = t->chunks[item];
    bj_real *g = t->gradients + c.offset;
    (void)worker;
    if (c.steps) sum_later(g, c.steps);
    for (size_t i = 0; c.scaled && i < c.size; i++) g[i] *= t->sigma[c.offset + i];
    t->chunk_sums[c.index] = t->k->sum_squares(g, c.size);
}

double bj_gradient_norm(bj_trainer *t) {
    bj_pool_run_shares(t->pool, square_item, t, t->chunk_share);
    double sum = 0;
    for (int i = 0; i < t->chunk_count; i++) sum += t->chunk_sums[i];
    return sqrt(sum);
}

int bj_trainer_target_follows(const bj_trainer *t) {
    return t->objective.kind != BJ_ANCHOR_A && t->objective.kind != BJ_ANCHOR_B;
}

/* Updates a tensor of scale STEPS. `moved` (2 rows) is the running sum of the steps in theta. */
static void update_steps(bj_trainer *t, const bj_param *p, bj_real *moved) {
    const size_t pair = 2 * (size_t)p->shape[1];
    bj_adamw_coefficients sum = t->adamw;
    sum.decay = 1;
    sum.step_size *= (bj_real)bj_param_sigma(p, 0);
    memset(moved, 0, pair * sizeof *moved);
    for (size_t at = p->offset; at < p->offset + p->size; at += pair) {
        t->k->adamw(moved, t->mean + at, t->variance + at, t->gradients + at, NULL, pair, &sum);
        for (size_t i = 0; i < pair; i++)
            t->weights[at + i] = t->weights[at + i] * t->adamw.decay + moved[i];
    }
}

static void update_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const bj_chunk c = t->chunks[item];
    bj_real *w = t->weights + c.offset;
    if (c.muon) return;
    if (t->optim.schedule_free) {
        bj_schedule_free_update(t, &c, t->scratch[worker].gradient);
    } else if (c.steps) {
        update_steps(t, c.steps, t->scratch[worker].gradient);
    } else {
        t->k->adamw(w, t->mean + c.offset, t->variance + c.offset, t->gradients + c.offset,
                    c.scaled ? t->sigma + c.offset : NULL, c.size, &t->adamw);
    }
    if (bj_trainer_target_follows(t) && c.offset < t->model->layout.encoder_size)
        t->k->ema(t->target_weights + c.offset, w, c.size, (bj_real)t->optim.ema);
}

void bj_update_run(bj_trainer *t, double lr, double norm) {
    const bj_optim *o = &t->optim;
    const double n = (double)++t->step, clip = o->clip / (norm + 1e-6);
    t->adamw =
        (bj_adamw_coefficients){.grad_scale = (bj_real)(clip < 1 ? clip : 1),
                                .beta1 = (bj_real)o->beta1,
                                .beta2 = (bj_real)o->beta2,
                                .eps = (bj_real)o->eps,
                                .decay = (bj_real)(1 - lr * o->weight_decay),
                                .step_size = (bj_real)(lr / (1 - pow(o->beta1, n))),
                                .inv_sqrt_correction = (bj_real)(1 / sqrt(1 - pow(o->beta2, n)))};
    t->lr = lr;
    if (o->schedule_free) bj_schedule_free_weigh(t);
    bj_pool_run_shares(t->pool, update_item, t, t->chunk_share);
    if (t->muon_count) bj_muon_run(t);
    /* The target follows its encoder even if no loss term reaches the encoder. */
    if (bj_trainer_target_follows(t) && !bj_trainer_reaches(t, BJ_PART_ENCODER))
        t->k->ema(t->target_weights, t->weights, t->model->layout.encoder_size, (bj_real)o->ema);
}
