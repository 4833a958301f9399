/* kernels.h - the arithmetic the engine is built on, one table of functions per instruction set.
 *
 * The portable column ("c") is plain loops and the reference of the tests; "avx2" and "avx512" are
 * kernels_body.h compiled with their flags. A table is chosen once, when a handle is created.
 *
 * Bits: every element of a matrix product is summed over k in ascending order, starting from the
 * bias, zero or the old value, whatever the tile it falls in. A row's result therefore depends
 * neither on the other rows of the call nor on how the rows are cut into calls.
 *
 * Rows of matrices are `ld*` elements apart. Nothing needs alignment; nothing allocates.
 */
#ifndef BJ_KERNELS_KERNELS_H
#define BJ_KERNELS_KERNELS_H

#include "core/real.h"
#include "core/shards.h"

/* What a matrix product does with its result. */
enum {
    BJ_GEMM_ADD = 1, /* c += instead of c = */
    BJ_GEMM_RELU = 2 /* max(0, .) at the end */
};

/* Rows of a batch, shard by shard: shard s has `segments` runs of rows,
 * run i being rows begin[s * segments + i] .. + count[s * segments + i]. */
typedef struct bj_rows {
    int segments;
    const int *begin; /* (BJ_SHARDS, segments) */
    const int *count; /* (BJ_SHARDS, segments) */
} bj_rows;

/* Most rows and columns of one bj_kernels.gradient call, and its scratch in bj_reals. */
enum {
    BJ_GRADIENT_ROWS = 96,
    BJ_GRADIENT_COLUMNS = 288,
    BJ_GRADIENT_SCRATCH = (BJ_SHARD_LEVELS + 1) * BJ_GRADIENT_ROWS * BJ_GRADIENT_COLUMNS +
                          256 * (BJ_GRADIENT_ROWS + 64)
};

typedef struct bj_adamw_coefficients {
    bj_real grad_scale; /* clipping factor */
    bj_real beta1, beta2, eps;
    bj_real decay;               /* 1 - lr * weight_decay */
    bj_real step_size;           /* lr / (1 - beta1^t) */
    bj_real inv_sqrt_correction; /* 1 / sqrt(1 - beta2^t) */
} bj_adamw_coefficients;

typedef struct bj_kernels {
    const char *isa;
    int panel; /* columns of a packed panel, the natural width to cut work at */

    /* A right-hand side (K,N) in the order the product reads it: from b[k * ldb + n] (pack_kn) or
     * from b[n * ldb + k] (pack_nk). */
    size_t (*packed_size)(int N, int K);
    void (*pack_kn)(bj_real *packed, const bj_real *b, size_t ldb, int N, int K);
    void (*pack_nk)(bj_real *packed, const bj_real *b, size_t ldb, int N, int K);

    /* c (M,N) = a (M,K) * packed (K,N) + bias (N), see BJ_GEMM_*. bias and mask may be NULL;
     * where mask (M,N) is given the result is zero unless mask > 0. */
    void (*gemm)(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                 const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                 int flags);

    /* The same for columns [n0,n1) alone; n0 is a multiple of `panel`. */
    void (*gemm_columns)(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                         const bj_real *packed, const bj_real *bias, int M, int N, int K, int flags,
                         int n0, int n1);

    /* c (M,N) = sum over rows of dy[row,:]^T x[row,:], in the order of core/shards.h.
     * M <= BJ_GRADIENT_ROWS, N <= BJ_GRADIENT_COLUMNS. */
    void (*gradient)(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                     size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch);
    /* sum (N) = sum over rows of dy[row,:], same order. N <= panel. */
    void (*column_sum)(bj_real *sum, const bj_real *dy, size_t lddy, const bj_rows *rows, int N);

    /* One GRU step of M rows: a row of `state` is [x | 1 | pad | h] with `lead` entries before h,
     * all zero in the first step (`first`); h_out (M,E) is not h. gates (M,4E), unless NULL, become
     * [r | z | hn | n]: h_out = (1 - z) n + z h, n = tanh(in + r hn). packed (gru_size) comes from
     * gru_pack. The bits of a row depend on no other. */
    size_t (*gru_size)(int lead, int E);
    void (*gru_pack)(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh, const bj_real *b_ih,
                     const bj_real *b_hh, int I, int lead, int E);
    void (*gru_step)(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *state,
                     size_t lds, const bj_real *packed, int lead, int E, int M, int first);
    /* A step backward: dh (M,E) is the gradient of its new state, less what the step after it adds:
     * dgates (M,4E) of that one, unless NULL, times `recurrent`, W_hh by pack_kn. The gates
     * [r | z | hn | n] of the step become gradients [dr | dz | dhn | din] of the sums before
     * activation, dh the part that reaches the old state h (M,E) directly. */
    void (*gru_unstep)(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates, size_t ldg,
                       const bj_real *h, size_t ldh, const bj_real *recurrent, int E, int M);

    /* One GRU step of a single row, for units [u0,u1) alone, both multiples of `units` (or u1 = E):
     * a pass over weights stored in the order they are read, 16-bit when half is set. row is the
     * state row of gru_step, and so are the bits. */
    int units; /* hidden units of a group */
    size_t (*gru_row_size)(int lead, int E);
    void (*gru_row_pack)(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                         const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E);
    void (*gru_row)(bj_real *h_out, const bj_real *row, const bj_real *packed, const uint16_t *half,
                    int lead, int E, int u0, int u1);

    /* 16-bit storage (bfloat16, nearest even). narrow copies n numbers, half may be NULL;
     * narrow_panels a packed right-hand side, in the order gemm_half reads it. Both round `full`
     * too, so that the two agree. */
    void (*narrow)(uint16_t *half, bj_real *full, size_t n);
    size_t (*half_size)(int N, int K);
    void (*narrow_panels)(uint16_t *half, bj_real *packed, int N, int K);
    /* gemm_columns on a narrowed right-hand side. */
    void (*gemm_half)(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const uint16_t *half,
                      const bj_real *bias, int M, int N, int K, int flags, int n0, int n1);

    /* Single-query attention over the hidden rows r (S,W) of one scene and G heads.
     * scores (S,G) = r . a_g with a (G,W). */
    void (*scores)(bj_real *scores, const bj_real *r, size_t ldr, const bj_real *a, size_t lda,
                   int S, int G, int W);
    /* pooled (G,W) = sum_s weight[s,g] r[s,:]. */
    void (*pool)(bj_real *pooled, size_t ldp, const bj_real *weight, const bj_real *r, size_t ldr,
                 int S, int G, int W);
    /* dr[s,:] = (sum_g alpha[s,g] dpooled_g + dscore[s,g] a_g), zero where r <= 0. */
    void (*pool_backward)(bj_real *dr, size_t lddr, const bj_real *alpha, const bj_real *dscore,
                          const bj_real *dpooled, size_t ldp, const bj_real *a, size_t lda,
                          const bj_real *r, size_t ldr, int S, int G, int W);

    double (*sum_squares)(const bj_real *x, size_t n);
    /* One AdamW update of n weights; scale (n), unless NULL, multiplies the step of each weight. */
    void (*adamw)(bj_real *w, bj_real *m, bj_real *v, const bj_real *g, const bj_real *scale,
                  size_t n, const bj_adamw_coefficients *k);
    /* target = decay * target + (1 - decay) * w. */
    void (*ema)(bj_real *target, const bj_real *w, size_t n, bj_real decay);
} bj_kernels;

/* The table for `isa` ("c", "avx2", "avx512"), for BJ_ISA from the environment when isa is NULL,
 * or the best this machine can run when that is unset too. Fails on a name that is unknown or
 * beyond the machine. */
BJ_CHECK bj_status bj_kernels_find(const bj_kernels **out, const char *isa, bj_error *err);
/* The i-th table this machine can run, slowest first; NULL past the end. */
const bj_kernels *bj_kernels_at(int i);

extern const bj_kernels bj_kernels_c;
#if defined(__x86_64__)
extern const bj_kernels bj_kernels_avx2;
extern const bj_kernels bj_kernels_avx512;
#endif

#endif
