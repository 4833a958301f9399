/* update.c - global norm, clipping, AdamW and EMA over chunks of the reached tensors.
 *
 *   g *= min(1, clip / (|g| + 1e-6));  w *= 1 - lr wd;  w -= lr m^ / (sqrt(v^) + eps)
 *   target = ema target + (1 - ema) w                       (encoder only)
 * Chunks have a fixed size, their squares are added in order: the norm has the same bits whoever
 * computes a chunk.
 */
#include <math.h>

#include "train/trainer.h"

/* The reach bit of a part: bj_param_part and BJ_REACH_* list the same parts in the same order. */
static int reached(const bj_trainer *t, bj_param_part part) { return (int)(t->reach >> part & 1); }

static int walk_chunks(const bj_trainer *t, bj_chunk *out) {
    int n = 0;
    for (int i = 0; i < t->model->layout.count; i++) {
        const bj_param *p = &t->model->layout.params[i];
        for (size_t at = 0; reached(t, p->part) && at < p->size; at += BJ_CHUNK, n++)
            if (out)
                out[n] = (bj_chunk){p->offset + at,
                                    p->size - at < BJ_CHUNK ? p->size - at : BJ_CHUNK};
    }
    return n;
}

int bj_chunks_count(const bj_trainer *t) { return walk_chunks(t, NULL); }
void bj_chunks_build(bj_trainer *t) { walk_chunks(t, t->chunks); }

static void square_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_chunk c = t->chunks[item];
    (void)worker;
    t->chunk_sums[item] = t->k->sum_squares(t->gradients + c.offset, c.size);
}

double bj_gradient_norm(bj_trainer *t) {
    bj_pool_run(t->pool, square_item, t, t->chunk_count);
    double sum = 0;
    for (int i = 0; i < t->chunk_count; i++) sum += t->chunk_sums[i];
    return sqrt(sum);
}

/* The anchor stages keep their target as it is. */
static int target_follows(const bj_trainer *t) {
    return t->objective.kind != BJ_ANCHOR_A && t->objective.kind != BJ_ANCHOR_B;
}

static void update_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const bj_chunk c = t->chunks[item];
    (void)worker;
    bj_real *w = t->model->weights + c.offset;
    t->k->adamw(w, t->mean + c.offset, t->variance + c.offset, t->gradients + c.offset, c.size,
                &t->adamw);
    if (target_follows(t) && c.offset < t->model->layout.encoder_size)
        t->k->ema(t->target_weights + c.offset, w, c.size, (bj_real)t->optim.ema);
}

void bj_update_run(bj_trainer *t, double lr, double norm) {
    const bj_optim *o = &t->optim;
    const double n = (double)++t->step, clip = o->clip / (norm + 1e-6);
    t->adamw = (bj_adamw_coefficients){
        .grad_scale = (bj_real)(clip < 1 ? clip : 1),
        .beta1 = (bj_real)o->beta1,
        .beta2 = (bj_real)o->beta2,
        .eps = (bj_real)o->eps,
        .decay = (bj_real)(1 - lr * o->weight_decay),
        .step_size = (bj_real)(lr / (1 - pow(o->beta1, n))),
        .inv_sqrt_correction = (bj_real)(1 / sqrt(1 - pow(o->beta2, n)))};
    bj_pool_run(t->pool, update_item, t, t->chunk_count);
    /* a target follows its encoder even where no term reaches that */
    if (target_follows(t) && !reached(t, BJ_PART_ENCODER))
        t->k->ema(t->target_weights, t->model->weights, t->model->layout.encoder_size,
                  (bj_real)o->ema);
}
