/* observer.c - see observer.h. */
#include "model/observer.h"

#include <math.h>
#include <string.h>

static void add_layer(bj_observer *o, bj_arena *arena, const bj_layout *layout,
                      const bj_real *weights, bj_param_id w, bj_param_id b, int rows,
                      int training) {
    const int i = o->layers++;
    const bj_param *p = &layout->params[layout->first[w]];
    bj_linear *l = &o->layer[i];
    *l = (bj_linear){.w = weights + p->offset,
                     .b = weights + bj_layout_offset(layout, b, 0),
                     .in = p->shape[1],
                     .out = p->shape[0]};
    l->forward = bj_arena_take(arena, bj_linear_packed_size(o->k, l->in, l->out));
    if (training && i > 0)
        l->backward = bj_arena_take(arena, bj_linear_packed_size(o->k, l->in, l->out));
    o->weight[i] = w;
    o->bias[i] = b;
    o->rows[i] = rows;
    o->group[i] = 1;
    if (i > 0) o->group[i - 1] = o->rows[i - 1] / rows;
}

static int inputs_of(const bj_arch *a) {
    return a->encoder == BJ_ENCODER_IMAGE ? a->channels : a->state;
}

void bj_observer_init(bj_observer *o, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                      const bj_layout *layout, const bj_real *weights, const bj_real *inputs,
                      int training) {
    *o = (bj_observer){.arch = arch, .k = k};
#define ADD(id, rows)                                                                              \
    add_layer(o, arena, layout, weights, BJ_P_##id##_W1, BJ_P_##id##_B1, rows, training)
#define ADD_2(id, rows)                                                                            \
    add_layer(o, arena, layout, weights, BJ_P_##id##_W2, BJ_P_##id##_B2, rows, training)
    if (arch->encoder == BJ_ENCODER_IMAGE) {
        const int blocks = arch->height / 16 * (arch->width / 16);
        ADD(PATCH, 16 * blocks);
        ADD_2(PATCH, blocks);
        o->levels = bj_arena_take(arena, (size_t)arch->channels * 256);
    }
    ADD(MLP, 1);
    ADD_2(MLP, 1);
    ADD(PROJ, 1);
    ADD_2(PROJ, 1);
#undef ADD
#undef ADD_2
    const size_t n = (size_t)inputs_of(arch);
    o->mean = bj_arena_take(arena, n);
    o->scale = bj_arena_take(arena, n);
    o->inputs[0] = inputs + bj_layout_offset(layout, BJ_P_INPUT_MEAN, 0);
    o->inputs[1] = inputs + bj_layout_offset(layout, BJ_P_INPUT_SCALE, 0);
}

int bj_observer_prepare_items(const bj_observer *o) { return 2 * o->layers + 1; }

void bj_observer_prepare(const bj_observer *o, int item) {
    if (item < 2 * o->layers) {
        const bj_linear *l = &o->layer[item / 2];
        if (item % 2 == 0) bj_linear_pack_forward(o->k, l);
        else if (l->backward) bj_linear_pack_backward(o->k, l);
        return;
    }
    const size_t n = (size_t)inputs_of(o->arch) * sizeof *o->mean;
    memcpy(o->mean, o->inputs[0], n);
    memcpy(o->scale, o->inputs[1], n);
    for (int c = 0; o->levels && c < o->arch->channels; c++)
        for (int v = 0; v < 256; v++)
            o->levels[256 * c + v] =
                (bj_real)((v / 255.0 - (double)o->mean[c]) / (double)o->scale[c]);
}

void bj_observer_block_take(bj_observer_block *b, bj_arena *arena, const bj_observer *o, size_t M,
                            int training) {
    for (int i = 0; i < o->layers; i++) {
        const size_t in = (size_t)o->layer[i].in;
        /* an input row that consists of several output rows must be contiguous */
        b->ldx[i] = i > 0 && o->group[i - 1] > 1 ? in : bj_stride(o->layer[i].in);
        const size_t size = M * (size_t)o->rows[i] * b->ldx[i];
        b->x[i] = bj_arena_take(arena, size);
        if (training && i > 0) b->dx[i] = bj_arena_take(arena, size);
    }
}

void bj_observer_block_shift(bj_observer_block *b, const bj_observer *o, size_t first) {
    for (int i = 0; i < o->layers; i++) {
        const size_t at = first * (size_t)o->rows[i] * b->ldx[i];
        b->x[i] += at;
        if (b->dx[i]) b->dx[i] += at;
    }
}

/* ------------------------------------------------------------------------------------- forward */

static void state_features(bj_real *x, const bj_observer *o, const bj_real *state) {
    const bj_arch *a = o->arch;
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < a->state; i++)
        x[i] = (bj_real)(((double)state[i] - (double)o->mean[i]) / (double)o->scale[i]);
    bj_real *at = x + a->state;
    double frequency = pi / 4;
    for (int j = 0; j < a->octaves; j++, frequency *= 2, at += 2 * a->waves)
        for (int i = 0; i < a->waves; i++) {
            at[i] = (bj_real)sin(frequency * (double)x[i]);
            at[a->waves + i] = (bj_real)cos(frequency * (double)x[i]);
        }
}

/* Copies the pixels of one patch after another. The patches are ordered by block. */
static void image_patches(bj_real *x, size_t ld, const bj_observer *o, const uint8_t *image) {
    const bj_arch *a = o->arch;
    const int C = a->channels, columns = a->width / BJ_PATCH, blocks = columns / BJ_PATCH;
    const size_t line = (size_t)a->width * (size_t)C;
    for (int p = 0; p < a->height / BJ_PATCH * columns; p++, x += ld) {
        const int block = p / 16, in = p % 16;
        const int row = BJ_PATCH * (block / blocks) + in / BJ_PATCH;
        const int column = BJ_PATCH * (block % blocks) + in % BJ_PATCH;
        const uint8_t *from =
            image + (size_t)(BJ_PATCH * row) * line + (size_t)(BJ_PATCH * column * C);
        bj_real *to = x;
        for (int y = 0; y < BJ_PATCH; y++, from += line)
            for (int i = 0; i < BJ_PATCH * C; i++) *to++ = o->levels[256 * (i % C) + from[i]];
    }
}

static void features(const bj_observer *o, const bj_observer_block *b, int M) {
    for (int m = 0; m < M; m++) {
        const bj_pair *p = &b->pairs[m];
        bj_real *x = b->x[0] + (size_t)m * (size_t)o->rows[0] * b->ldx[0];
        if (o->levels) image_patches(x, b->ldx[0], o, b->successor ? p->next_image : p->image);
        else state_features(x, o, b->successor ? p->next : p->state);
    }
}

void bj_observer_forward(const bj_observer *o, const bj_observer_block *b, bj_real *context,
                         size_t ldc, int M) {
    const int last = o->layers - 1;
    features(o, b, M);
    for (int i = 0; i < last; i++)
        bj_linear_forward(o->k, b->x[i + 1], b->ldx[i + 1] / (size_t)o->group[i], b->x[i],
                          b->ldx[i], &o->layer[i], M * o->rows[i], BJ_GEMM_RELU);
    bj_linear_forward(o->k, context, ldc, b->x[last], b->ldx[last], &o->layer[last], M, 0);
}

void bj_observer_backward(const bj_observer *o, const bj_observer_block *b, const bj_real *dcontext,
                          size_t ldc, int M) {
    const bj_real *dy = dcontext;
    size_t lddy = ldc;
    for (int i = o->layers - 1; i > 0; i--) {
        /* forward: y = layer_i(x_i), x_i = ReLU(output of layer i - 1) */
        bj_linear_backward(o->k, b->dx[i], b->ldx[i], dy, lddy, b->x[i], b->ldx[i], &o->layer[i],
                           M * o->rows[i], 0);
        dy = b->dx[i];
        lddy = b->ldx[i] / (size_t)o->group[i - 1];
    }
}
