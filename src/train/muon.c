/* muon.c - Muon: steps along the orthogonalized momentum of a matrix.
 *
 *   m = mu m + (1 - mu) g;  x = mu m + (1 - mu) g;  x = x / |x|
 *   five times: A = x x^T;  x = a x + (b A + c A A) x
 *   w = w (1 - lr wd) - lr 0.2 sqrt(max(rows, columns)) x
 *
 * The iteration moves all singular values of x close to 1, so every direction of the matrix learns
 * at the same rate. The factor 0.2 sqrt(max(rows, columns)) makes a step as large as a typical step
 * of AdamW, so both optimizers use one learning rate. The definition and the coefficients are those
 * of torch.optim.Muon with adjust_lr_fn="match_rms_adamw", which always rounds the operands of the
 * products to bfloat16. Here only mixed precision does.
 *
 * A worker updates a whole matrix, so the result does not depend on the number of threads.
 * Tests: tests/verify/test_parity.c (golden files muon*), tests/train/test_determinism.c
 */
#include <math.h>

#include "train/trainer.h"

/* STRIPE: number of rows of a product that are computed at once; MIRROR: number of rows of a
 * mirrored tile. */
enum { ITERATIONS = 5, STRIPE = 64, MIRROR = 16 };
static const double momentum = 0.95, epsilon = 1e-7;
static const bj_real coefficient[3] = {(bj_real)3.4445, (bj_real)-4.7750, (bj_real)2.0315};

static int shorter(const bj_muon_matrix *m) { return m->rows < m->columns ? m->rows : m->columns; }
static int longer(const bj_muon_matrix *m) { return m->rows < m->columns ? m->columns : m->rows; }

int bj_muon_build(bj_trainer *t) {
    int n = 0;
    for (int i = 0; t->optim.muon && i < t->model->layout.count; i++) {
        const bj_param *p = &t->model->layout.params[i];
        if (!p->muon || !bj_trainer_reaches(t, p->part)) continue;
        for (int k = 0; k < p->muon; k++, n++) {
            if (!t->muon) continue;
            const size_t part = p->size / (size_t)p->muon;
            const bj_muon_matrix m = {p->offset + (size_t)k * part, p->shape[0] / p->muon,
                                      p->shape[1]};
            int at = n;
            for (; at > 0 && shorter(&t->muon[at - 1]) < shorter(&m); at--)
                t->muon[at] = t->muon[at - 1];
            t->muon[at] = m;
        }
    }
    return n;
}

/* Returns the size of the scratch memory for one matrix. orthogonalize divides it into arrays. */
static size_t scratch_of(const bj_muon_matrix *m, const bj_kernels *k) {
    const int a = shorter(m), b = longer(m);
    const size_t packed[] = {k->packed_size(a, b), k->packed_size(a, a), k->packed_size(b, a)};
    size_t most = 0;
    for (int i = 0; i < 3; i++)
        if (packed[i] > most) most = packed[i];
    return 2 * (size_t)a * (size_t)b + 2 * (size_t)a * (size_t)a + most;
}

size_t bj_muon_scratch(const bj_trainer *t) {
    size_t most = 0;
    for (int i = 0; t->optim.muon && i < t->model->layout.count; i++) {
        const bj_param *p = &t->model->layout.params[i];
        if (!p->muon) continue;
        const bj_muon_matrix m = {0, p->shape[0] / p->muon, p->shape[1]};
        const size_t size = scratch_of(&m, t->k);
        if (size > most) most = size;
    }
    return most;
}

/* Copies the tile below the diagonal with first row j and first column i to its mirror image. */
static void mirror(bj_real *c, int n, int i, int j) {
    const int rows = i + MIRROR < n ? i + MIRROR : n, columns = j + MIRROR < n ? j + MIRROR : n;
    for (int row = i; row < rows; row++)
        for (int column = row < j ? j : row + 1; column < columns; column++)
            c[(size_t)row * (size_t)n + (size_t)column] =
                c[(size_t)column * (size_t)n + (size_t)row];
}

/* Computes the symmetric product c (n,n) = a (n,depth) * packed (depth,n). Only the lower triangle
 * is computed and then mirrored, which gives the same bits as computing the whole product. */
static void symmetric_product(bj_real *c, const bj_real *a, const bj_real *packed, int n, int depth,
                              const bj_kernels *k) {
    const int stripe = (STRIPE + k->panel - 1) / k->panel * k->panel;
    for (int i = 0; i < n; i += stripe) {
        const int end = i + stripe < n ? i + stripe : n;
        k->gemm_columns(c + (size_t)i * (size_t)n, (size_t)n, a + (size_t)i * (size_t)depth,
                        (size_t)depth, packed, NULL, end - i, n, depth, 0, 0, end);
    }
    for (int i = 0; i < n; i += MIRROR)
        for (int j = i; j < n; j += MIRROR) mirror(c, n, i, j);
}

/* Orthogonalizes x (k,l), k <= l, in place. The other arrays listed in scratch_of follow x in
 * memory. */
static void orthogonalize(bj_real *x, int k, int l, const bj_kernels *kernels) {
    const size_t n = (size_t)k * (size_t)l, nn = (size_t)k * (size_t)k;
    bj_real *y = x + n, *gram = y + n, *square = gram + nn, *packed = square + nn;
    for (int i = 0; i < ITERATIONS; i++) {
        kernels->pack_nk(packed, x, (size_t)l, k, l);
        symmetric_product(gram, x, packed, k, l, kernels);
        kernels->pack_kn(packed, gram, (size_t)k, k, k);
        symmetric_product(square, gram, packed, k, k, kernels);
        for (size_t j = 0; j < nn; j++)
            square[j] = coefficient[1] * gram[j] + coefficient[2] * square[j];
        kernels->pack_kn(packed, x, (size_t)l, l, k);
        kernels->gemm(y, (size_t)l, square, (size_t)k, packed, NULL, NULL, 0, k, l, k, 0);
        for (size_t j = 0; j < n; j++) x[j] = coefficient[0] * x[j] + y[j];
    }
}

static void update_matrix(void *context, int item, int worker) {
    bj_trainer *t = context;
    const bj_muon_matrix m = t->muon[item];
    const size_t rows = (size_t)m.rows, columns = (size_t)m.columns, n = rows * columns;
    const bj_real mu = (bj_real)momentum, scale = t->adamw.grad_scale;
    const int turned = m.rows > m.columns;
    const bj_real *g = t->gradients + m.offset;
    bj_real *mean = t->mean + m.offset, *w = t->weights + m.offset;
    bj_real *x = t->scratch[worker].muon;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const size_t at = i * columns + j;
            const bj_real gradient = scale * g[at];
            mean[at] += (1 - mu) * (gradient - mean[at]);
            x[turned ? j * rows + i : at] = gradient + mu * (mean[at] - gradient);
        }
    const double norm = sqrt(t->k->sum_squares(x, n));
    const bj_real inverse = (bj_real)(1 / (norm > epsilon ? norm : epsilon));
    for (size_t i = 0; i < n; i++) x[i] *= inverse;
    orthogonalize(x, shorter(&m), longer(&m), t->k);
    const bj_real step = (bj_real)(t->lr * 0.2 * sqrt(longer(&m)));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const size_t at = i * columns + j;
            w[at] = w[at] * t->adamw.decay - step * x[turned ? j * rows + i : at];
        }
    if (bj_trainer_target_follows(t))
        t->k->ema(t->target_weights + m.offset, w, n, (bj_real)t->optim.ema);
}

void bj_muon_run(bj_trainer *t) {
    bj_pool_run(t->pool, update_matrix, t, t->muon_count);
}
