/* kernels_c.c - portable kernels: plain loops, used as the reference in the kernel tests.
 *
 * A packed right-hand side is the row-major (K,N) matrix. In mixed precision, the right-hand side
 * is rounded to bfloat16 when it is packed, and the left-hand side when it is read.
 */
#include <math.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/kernels.h"

#ifdef BJ_DOUBLE
#define EXP exp
#define TANH tanh
#define SQRT sqrt
#else
#define EXP expf
#define TANH tanhf
#define SQRT sqrtf
#endif

enum { PANEL = 32 };

static bj_real rounded(bj_real x) { return (bj_real)bj_bf16_widen(bj_bf16_round((float)x)); }

static void round_all(bj_real *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = rounded(x[i]);
}

static size_t packed_size(int N, int K) { return (size_t)N * (size_t)K; }

static void pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    for (int k = 0; k < K; k++)
        memcpy(packed + (size_t)k * N, b + (size_t)k * ldb, (size_t)N * sizeof *b);
}

static void pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) packed[(size_t)k * N + n] = b[(size_t)n * ldb + k];
}

static void mixed_pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_kn(packed, b, ldb, N, K);
    round_all(packed, packed_size(N, K));
}

static void mixed_pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_nk(packed, b, ldb, N, K);
    round_all(packed, packed_size(N, K));
}

static void product(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                    const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                    int flags, int n0, int n1, int mixed) {
    for (int m = 0; m < M; m++) {
        bj_real *row = c + (size_t)m * ldc;
        for (int n = n0; n < n1 && !(flags & BJ_GEMM_ADD); n++) row[n] = bias ? bias[n] : 0;
        for (int k = 0; k < K; k++) {
            const bj_real at = a[(size_t)m * lda + k], x = mixed ? rounded(at) : at;
            for (int n = n0; n < n1; n++) row[n] += x * packed[(size_t)k * N + n];
        }
        for (int n = n0; n < n1; n++) {
            if ((flags & BJ_GEMM_RELU) && row[n] <= 0) row[n] = 0;
            if (mask && mask[(size_t)m * ldm + n] <= 0) row[n] = 0;
        }
    }
}

static void gemm(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                 const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                 int flags) {
    product(c, ldc, a, lda, packed, bias, mask, ldm, M, N, K, flags, 0, N, 0);
}

static void mixed_gemm(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                       const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                       int flags) {
    product(c, ldc, a, lda, packed, bias, mask, ldm, M, N, K, flags, 0, N, 1);
}

static void gemm_columns(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                         const bj_real *packed, const bj_real *bias, int M, int N, int K,
                         int flags, int n0, int n1) {
    product(c, ldc, a, lda, packed, bias, NULL, 0, M, N, K, flags, n0, n1 < N ? n1 : N, 0);
}

static void mixed_gemm_columns(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                               const bj_real *packed, const bj_real *bias, int M, int N, int K,
                               int flags, int n0, int n1) {
    product(c, ldc, a, lda, packed, bias, NULL, 0, M, N, K, flags, n0, n1 < N ? n1 : N, 1);
}

static void gradient_of(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                        size_t ldx, const bj_rows *rows, int M, int N, int mixed) {
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            bj_real sum[BJ_SHARDS];
            for (int s = 0; s < BJ_SHARDS; s++) {
                sum[s] = 0;
                for (int i = s * rows->segments; i < (s + 1) * rows->segments; i++)
                    for (int r = rows->begin[i]; r < rows->begin[i] + rows->count[i]; r++) {
                        const bj_real left = dy[(size_t)r * lddy + m], right = x[(size_t)r * ldx + n];
                        sum[s] += mixed ? rounded(left) * rounded(right) : left * right;
                    }
            }
            for (int width = 1; width < BJ_SHARDS; width *= 2)
                for (int s = 0; s < BJ_SHARDS; s += 2 * width) sum[s] += sum[s + width];
            c[(size_t)m * ldc + n] = sum[0];
        }
    }
}

static void gradient(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                     size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch) {
    (void)scratch;
    gradient_of(c, ldc, dy, lddy, x, ldx, rows, M, N, 0);
}

static void mixed_gradient(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                           size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch) {
    (void)scratch;
    gradient_of(c, ldc, dy, lddy, x, ldx, rows, M, N, 1);
}

static void column_sum(bj_real *sum, const bj_real *dy, size_t lddy, const bj_rows *rows, int N) {
    static const bj_real one = 1;
    for (int n = 0; n < N; n++) gradient_of(sum + n, 1, dy + n, lddy, &one, 0, rows, 1, 1, 0);
}

/* Replaces the gates with their gradients. dh is the complete gradient of the new state. */
static void gates_backward(bj_real *dh, size_t lddh, bj_real *gates, size_t ldg, const bj_real *h,
                           size_t ldh, int E, int M) {
    for (int m = 0; m < M; m++, gates += ldg, dh += lddh, h += ldh) {
        bj_real *r = gates, *z = gates + E, *hn = gates + 2 * E, *n = gates + 3 * E;
        for (int e = 0; e < E; e++) {
            const bj_real dn = dh[e] * (1 - z[e]) * (1 - n[e] * n[e]);
            const bj_real dz = dh[e] * (h[e] - n[e]) * z[e] * (1 - z[e]);
            const bj_real dr = dn * hn[e] * r[e] * (1 - r[e]);
            dh[e] *= z[e];
            hn[e] = dn * r[e];
            r[e] = dr;
            z[e] = dz;
            n[e] = dn;
        }
    }
}

static void gru_unstep(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates, size_t ldg,
                       const bj_real *h, size_t ldh, const bj_real *recurrent, int E, int M) {
    if (dgates)
        gemm(dh, lddh, dgates, ldg, recurrent, NULL, NULL, 0, M, E, 3 * E, BJ_GEMM_ADD);
    gates_backward(dh, lddh, gates, ldg, h, ldh, E, M);
}

static void mixed_gru_unstep(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates,
                             size_t ldg, const bj_real *h, size_t ldh, const bj_real *recurrent,
                             int E, int M) {
    if (dgates)
        mixed_gemm(dh, lddh, dgates, ldg, recurrent, NULL, NULL, 0, M, E, 3 * E, BJ_GEMM_ADD);
    gates_backward(dh, lddh, gates, ldg, h, ldh, E, M);
}

/* A group consists of one unit. It contains b_hn, followed by the weights of [r | z | n] for every
 * entry of the state row. In mixed precision, the weights of the state are rounded. */
static size_t gru_size(int lead, int E) { return (size_t)E * (size_t)(1 + 3 * (lead + E)); }

static void gru_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh, const bj_real *b_ih,
                     const bj_real *b_hh, int I, int lead, int E) {
    for (int u = 0; u < E; u++) {
        *packed++ = b_hh[2 * E + u];
        for (int k = 0; k < lead + E; k++) {
            for (int gate = 0; gate < 3; gate++) {
                const int o = gate * E + u;
                bj_real w = 0;
                if (k < I) w = w_ih[o * I + k];
                else if (k == I) w = gate < 2 ? b_ih[o] + b_hh[o] : b_ih[o];
                else if (k >= lead) w = w_hh[(size_t)o * E + (size_t)(k - lead)];
                *packed++ = w;
            }
        }
    }
}

static void mixed_gru_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                           const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    const size_t group = 1 + 3 * (size_t)(lead + E);
    gru_pack(packed, w_ih, w_hh, b_ih, b_hh, I, lead, E);
    for (size_t u = 0; u < (size_t)E; u++)
        round_all(packed + u * group + 1 + 3 * (size_t)lead, 3 * (size_t)E);
}

/* Computes unit u of a row. If gates is not NULL, it points to the r gate of the unit. */
static void gru_unit(bj_real *gates, bj_real *h_out, const bj_real *row, const bj_real *packed,
                     int lead, int E, int depth, int u, int mixed) {
    const bj_real *group = packed + (size_t)u * (size_t)(1 + 3 * (lead + E));
    bj_real r = 0, z = 0, in = 0, hn = group[0];
    for (int k = 0; k < lead + depth; k++) {
        const bj_real *w = group + 1 + 3 * k;
        const bj_real x = mixed && k >= lead ? rounded(row[k]) : row[k];
        r += x * w[0];
        z += x * w[1];
        if (k < lead) in += x * w[2];
        else hn += x * w[2];
    }
    r = 1 / (1 + EXP(-r));
    z = 1 / (1 + EXP(-z));
    const bj_real n = TANH(in + r * hn);
    h_out[u] = (1 - z) * n + z * row[lead + u];
    if (gates) gates[0] = r, gates[E] = z, gates[2 * E] = hn, gates[3 * E] = n;
}

static void gru_step_of(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo,
                        const bj_real *state, size_t lds, const bj_real *packed, int lead, int E,
                        int M, int first, int mixed) {
    for (size_t m = 0; m < (size_t)M; m++)
        for (int u = 0; u < E; u++)
            gru_unit(gates ? gates + m * ldg + u : NULL, h_out + m * ldo, state + m * lds, packed,
                     lead, E, first ? 0 : E, u, mixed);
}

static void gru_step(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *state,
                     size_t lds, const bj_real *packed, int lead, int E, int M, int first) {
    gru_step_of(gates, ldg, h_out, ldo, state, lds, packed, lead, E, M, first, 0);
}

static void mixed_gru_step(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo,
                           const bj_real *state, size_t lds, const bj_real *packed, int lead, int E,
                           int M, int first) {
    gru_step_of(gates, ldg, h_out, ldo, state, lds, packed, lead, E, M, first, 1);
}

static void gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed, int lead, int E,
                    int u0, int u1) {
    for (int u = u0; u < u1; u++) gru_unit(NULL, h_out, row, packed, lead, E, E, u, 0);
}

static void mixed_gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed, int lead,
                          int E, int u0, int u1) {
    for (int u = u0; u < u1; u++) gru_unit(NULL, h_out, row, packed, lead, E, E, u, 1);
}

static void scores(bj_real *out, const bj_real *r, size_t ldr, const bj_real *a, size_t lda, int S,
                   int G, int W) {
    for (int s = 0; s < S; s++) {
        for (int g = 0; g < G; g++) {
            bj_real dot = 0;
            for (int w = 0; w < W; w++) dot += r[(size_t)s * ldr + w] * a[(size_t)g * lda + w];
            out[s * G + g] = dot;
        }
    }
}

static void pool(bj_real *pooled, size_t ldp, const bj_real *weight, const bj_real *r, size_t ldr,
                 int S, int G, int W) {
    for (int g = 0; g < G; g++) {
        for (int w = 0; w < W; w++) {
            bj_real sum = 0;
            for (int s = 0; s < S; s++) sum += weight[s * G + g] * r[(size_t)s * ldr + w];
            pooled[(size_t)g * ldp + w] = sum;
        }
    }
}

static void pool_backward(bj_real *dr, size_t lddr, const bj_real *alpha, const bj_real *dscore,
                          const bj_real *dpooled, size_t ldp, const bj_real *a, size_t lda,
                          const bj_real *r, size_t ldr, int S, int G, int W) {
    for (int s = 0; s < S; s++) {
        for (int w = 0; w < W; w++) {
            bj_real sum = 0;
            for (int g = 0; g < G; g++)
                sum += alpha[s * G + g] * dpooled[(size_t)g * ldp + w] +
                       dscore[s * G + g] * a[(size_t)g * lda + w];
            dr[(size_t)s * lddr + w] = r[(size_t)s * ldr + w] > 0 ? sum : 0;
        }
    }
}

static double sum_squares(const bj_real *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

static void adamw(bj_real *w, bj_real *m, bj_real *v, const bj_real *g, const bj_real *scale,
                  size_t n, const bj_adamw_coefficients *k) {
    for (size_t i = 0; i < n; i++) {
        const bj_real grad = g[i] * k->grad_scale;
        m[i] += (grad - m[i]) * (1 - k->beta1);
        v[i] = v[i] * k->beta2 + grad * grad * (1 - k->beta2);
        const bj_real step =
            k->step_size * m[i] / (SQRT(v[i]) * k->inv_sqrt_correction + k->eps);
        w[i] = w[i] * k->decay - (scale ? scale[i] * step : step);
    }
}

static void ema(bj_real *target, const bj_real *w, size_t n, bj_real decay) {
    for (size_t i = 0; i < n; i++) target[i] = target[i] * decay + w[i] * (1 - decay);
}

/* Functions that are the same in both precisions. */
#define COMMON                                                                                     \
    .isa = "c", .single = &bj_kernels_c, .mixed = &bj_mixed_c, .panel = PANEL,                     \
    .packed_size = packed_size, .column_sum = column_sum, .gru_size = gru_size, .units = 1,        \
    .scores = scores, .pool = pool, .pool_backward = pool_backward, .sum_squares = sum_squares,    \
    .adamw = adamw, .ema = ema

const bj_kernels bj_kernels_c = {
    COMMON,
    .pack_kn = pack_kn,
    .pack_nk = pack_nk,
    .gemm = gemm,
    .gemm_columns = gemm_columns,
    .gradient = gradient,
    .gru_pack = gru_pack,
    .gru_step = gru_step,
    .gru_unstep = gru_unstep,
    .gru_row = gru_row,
};

const bj_kernels bj_mixed_c = {
    COMMON,
    .pack_kn = mixed_pack_kn,
    .pack_nk = mixed_pack_nk,
    .gemm = mixed_gemm,
    .gemm_columns = mixed_gemm_columns,
    .gradient = mixed_gradient,
    .gru_pack = mixed_gru_pack,
    .gru_step = mixed_gru_step,
    .gru_unstep = mixed_gru_unstep,
    .gru_row = mixed_gru_row,
};
