/* schedule_free.c - schedule-free AdamW (Defazio et al., 2024), optim.schedule_free.
 *
 * Gradients are computed at y, between the base iterate z and its running average x:
 *   z -= lr (g / (sqrt(v^) + eps) + wd y)
 *   x += c (z - x),  c = w / sum of w over all updates,  w = square of the largest lr so far
 *   y  = x + (1 - beta1) (z - x)
 * x replaces the decaying learning rate. The model contains x, so that evaluation and checkpoints
 * need no special case. y is bj_trainer.weights and z is stored in bj_trainer.mean, because the
 * average replaces AdamW's first moment. y is a function of x and z and is not saved.
 * Tests: tests/verify/test_parity.c (golden files schedule_free*), tests/train/test_state.c
 */
#include <string.h>

#include "train/trainer.h"

enum { PIECE = 1024 /* parameters whose directions are computed at once */ };
_Static_assert(2 * PIECE <= BJ_GRADIENT_SCRATCH, "two pieces must fit in the scratch memory");

/* Returns y. `beta1` is the share of x. */
static bj_real between(bj_real x, bj_real z, bj_real beta1) { return x + (1 - beta1) * (z - x); }

void bj_schedule_free_start(bj_trainer *t) {
    const size_t size = t->model->layout.size * sizeof(bj_real);
    memcpy(t->weights, t->model->weights, size);
    memcpy(t->mean, t->model->weights, size);
}

void bj_schedule_free_restore(bj_trainer *t) {
    for (size_t i = 0; i < t->model->layout.size; i++)
        t->weights[i] = between(t->model->weights[i], t->mean[i], (bj_real)t->optim.beta1);
}

void bj_schedule_free_weigh(bj_trainer *t) {
    if (t->lr > t->highest_lr) t->highest_lr = t->lr;
    const double weight = t->highest_lr * t->highest_lr;
    t->weight_sum += weight;
    t->average_share = t->weight_sum > 0 ? weight / t->weight_sum : 0;
}

/* Moves z by `step` and by the weight decay, then x and y, for n parameters at `offset`. */
static void move(bj_trainer *t, size_t offset, size_t n, const bj_real *restrict step) {
    bj_real *restrict x = t->model->weights + offset, *restrict y = t->weights + offset;
    bj_real *restrict z = t->mean + offset;
    const bj_real decay = 1 - t->adamw.decay, share = (bj_real)t->average_share;
    const bj_real beta1 = (bj_real)t->optim.beta1;
    for (size_t i = 0; i < n; i++) {
        z[i] += step[i] - decay * y[i];
        x[i] += share * (z[i] - x[i]);
        y[i] = between(x[i], z[i], beta1);
    }
}

void bj_schedule_free_update(bj_trainer *t, const bj_chunk *c, bj_real *scratch) {
    bj_real *step = scratch, *first_moment = scratch + PIECE; /* equal to the gradient */
    bj_adamw_coefficients q = t->adamw;
    q.beta1 = 0;
    q.decay = 1;
    q.step_size = (bj_real)(t->lr * (c->steps ? bj_param_sigma(c->steps, 0) : 1));
    /* In a tensor of scale STEPS, the step of a row is the sum of the steps of theta so far. */
    const size_t row = c->steps ? 2 * (size_t)c->steps->shape[1] : c->size;
    for (size_t first = 0; first < row; first += PIECE) {
        const size_t n = row - first < PIECE ? row - first : PIECE;
        memset(step, 0, n * sizeof *step);
        for (size_t at = c->offset + first; at < c->offset + c->size; at += row) {
            memset(first_moment, 0, n * sizeof *first_moment);
            t->k->adamw(step, first_moment, t->variance + at, t->gradients + at,
                        c->scaled ? t->sigma + at : NULL, n, &q);
            move(t, at, n, step);
        }
    }
}
