/* atoms.c - forward pass and data gradients of the atoms, for the whole batch at once.
 *
 *   hidden_i = relu(context W1_i^T + b1_i)     u_i = hidden_i W2_i^T + b2_i
 *
 * The atoms contain most of a model's weights, which change with every update. Therefore each pass
 * reads each weight only once: a slice of columns is packed into the worker's cache and multiplied
 * with all rows. Packing whole matrices, as in other layers, would stream them through memory for
 * every block of rows. The result depends neither on the slices nor on the worker that computes
 * them (kernels.h).
 *
 * With a hard objective, the gradient of a scene flows only through the atom that won the scene.
 * Tests: tests/train (parity, gradients, determinism)
 */
#include "nn/rows.h"
#include "train/trainer.h"

enum { SLICE_BYTES = 192 * 1024, SLICE_PANELS = 4 };

/* Returns the slice width for sums over `depth`. It is a number of whole panels that fit in the L2
 * cache. */
static int slice_width(const bj_kernels *k, int depth) {
    const size_t panel = k->packed_size(k->panel, depth) * sizeof(bj_real);
    const int fit = (int)(SLICE_BYTES / panel);
    return k->panel * (fit < 1 ? 1 : fit > SLICE_PANELS ? SLICE_PANELS : fit);
}

static int slices(const bj_kernels *k, int columns, int depth) {
    const int width = slice_width(k, depth);
    return (columns + width - 1) / width;
}

size_t bj_atoms_scratch(const bj_trainer *t) {
    const bj_linear *in = &t->network.atom_in[0], *out = &t->network.atom_out[0];
    const int depths[] = {in->in, in->out, out->in, out->out};
    size_t most = 0;
    for (int i = 0; i < 4; i++) {
        const size_t size = t->k->packed_size(slice_width(t->k, depths[i]), depths[i]);
        most = size > most ? size : most;
    }
    return most;
}

/* Computes slice s of y = x W^T + b. */
static void forward_slice(const bj_trainer *t, bj_real *y, size_t ldy, const bj_real *x, size_t ldx,
                          const bj_linear *l, int s, int flags, int worker) {
    const int width = slice_width(t->k, l->in), n = s * width;
    const int columns = l->out - n < width ? l->out - n : width;
    bj_real *packed = t->scratch[worker].slice;
    t->k->pack_nk(packed, l->w + (size_t)n * (size_t)l->in, (size_t)l->in, columns, l->in);
    t->k->gemm(y + n, ldy, x, ldx, packed, l->b + n, NULL, 0, t->batch.B, columns, l->in, flags);
}

/* Computes slice s of dx = dy W for M rows. If relu_output is given, dx is
 * zero where relu_output <= 0. */
static void backward_slice(const bj_trainer *t, bj_real *dx, size_t lddx, const bj_real *dy,
                           size_t lddy, const bj_real *relu_output, size_t ldr, const bj_linear *l,
                           int M, int s, int flags, int worker) {
    const int width = slice_width(t->k, l->out), n = s * width;
    const int columns = l->in - n < width ? l->in - n : width;
    bj_real *packed = t->scratch[worker].slice;
    t->k->pack_kn(packed, l->w + n, (size_t)l->in, columns, l->out);
    t->k->gemm(dx + n, lddx, dy, lddy, packed, NULL, relu_output ? relu_output + n : NULL, ldr, M,
               columns, l->out, flags);
}

/* ------------------------------------------------------------------------------------- forward */

static void hidden_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_network_block *b = &t->head;
    const size_t L = (size_t)t->network.L, i = (size_t)item % L;
    forward_slice(t, b->atom_hidden + i * b->lda, L * b->lda, t->encoder.context, b->ldc,
                  &t->network.atom_in[i], item / (int)L, BJ_GEMM_RELU, worker);
}

static void latent_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_network_block *b = &t->head;
    const size_t L = (size_t)t->network.L, i = (size_t)item % L;
    forward_slice(t, b->u + i * b->ldu, L * b->ldu, b->atom_hidden + i * b->lda, L * b->lda,
                  &t->network.atom_out[i], item / (int)L, 0, worker);
}

void bj_atoms_forward(bj_trainer *t) {
    const bj_linear *in = &t->network.atom_in[0], *out = &t->network.atom_out[0];
    bj_pool_run(t->pool, hidden_item, t, t->network.L * slices(t->k, in->out, in->in));
    bj_pool_run(t->pool, latent_item, t, t->network.L * slices(t->k, out->out, out->in));
}

/* ------------------------------------------------------------------------------------ backward */

static void dhidden_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_network_block *b = &t->head;
    const size_t L = (size_t)t->network.L, i = (size_t)item % L;
    backward_slice(t, b->datom_hidden + i * b->lda, L * b->lda, b->du + i * b->ldu, L * b->ldu,
                   b->atom_hidden + i * b->lda, L * b->lda, &t->network.atom_out[i], t->batch.B,
                   item / (int)L, 0, worker);
}

/* Computes a slice of dcontext, the sum over the atoms in index order. */
static void dcontext_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_network_block *b = &t->head;
    const size_t L = (size_t)t->network.L;
    for (size_t i = 0; i < L; i++)
        backward_slice(t, b->dcontext, b->ldc, b->datom_hidden + i * b->lda, L * b->lda, NULL, 0,
                       &t->network.atom_in[i], t->batch.B, item, i ? BJ_GEMM_ADD : 0, worker);
}

/* Runs the backward pass of both layers of one atom for the scenes that it won. */
static void winner_item(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const bj_network_block *b = &t->head;
    const bj_worker_scratch *w = &t->scratch[worker];
    const bj_linear *in = &t->network.atom_in[item], *out = &t->network.atom_out[item];
    bj_real *du = w->compact[0], *mask = w->compact[1], *dhidden = w->compact[2];
    int *scene = w->rows, *row = w->rows + t->max_batch, count = 0;
    for (int m = 0; m < t->batch.B; m++)
        if (t->io.winner[m] == item) {
            row[count] = m * t->network.L + item;
            scene[count++] = m;
        }
    if (!count) return;
    bj_rows_gather(du, b->ldk, b->du, b->ldu, row, count, out->out);
    bj_rows_gather(mask, b->ldk, b->atom_hidden, b->lda, row, count, out->in);
    for (int s = 0; s < slices(t->k, out->in, out->out); s++)
        backward_slice(t, dhidden, b->ldk, du, b->ldk, mask, b->ldk, out, count, s, 0, worker);
    bj_rows_scatter(b->datom_hidden, b->lda, row, dhidden, b->ldk, count, out->in);
    for (int s = 0; s < slices(t->k, in->in, in->out); s++)
        backward_slice(t, du, b->ldk, dhidden, b->ldk, NULL, 0, in, count, s, 0, worker);
    bj_rows_scatter(b->dcontext, b->ldc, scene, du, b->ldk, count, in->in);
}

void bj_atoms_backward(bj_trainer *t) {
    const bj_linear *in = &t->network.atom_in[0], *out = &t->network.atom_out[0];
    if (t->io.winner) {
        bj_pool_run(t->pool, winner_item, t, t->network.L);
        return;
    }
    bj_pool_run(t->pool, dhidden_item, t, t->network.L * slices(t->k, out->in, out->out));
    bj_pool_run(t->pool, dcontext_item, t, slices(t->k, in->in, in->out));
}
