/* kernels.h - numerical kernels of the engine, two function tables per instruction set.
 *
 * The portable tables ("c") consist of plain loops and are the reference for the tests. "avx2",
 * "avx512" and "avx512bf16" are kernels_body.h, compiled with the matching flags. The table is
 * chosen once, when a handle is created.
 *
 * Reproducibility: every element of a matrix product is summed over k in ascending order, starting
 * from the bias, zero or the old value, in every kind of tile. So the result of a row depends
 * neither on the other rows of the call nor on how the rows are split into calls.
 *
 * `ld*` is the row stride of a matrix in elements. No function needs aligned pointers or allocates.
 */
#ifndef BJ_KERNELS_KERNELS_H
#define BJ_KERNELS_KERNELS_H

#include "core/real.h"
#include "core/shards.h"

/* Flags of a matrix product. */
enum {
    BJ_GEMM_ADD = 1, /* add to c instead of replacing it */
    BJ_GEMM_RELU = 2 /* apply max(0, .) to the result */
};

/* Rows of a batch, grouped by shard. Shard s has `segments` runs of rows. Run i starts at row
 * begin[s * segments + i] and has count[s * segments + i] rows. */
typedef struct bj_rows {
    int segments;
    const int *begin; /* (BJ_SHARDS, segments) */
    const int *count; /* (BJ_SHARDS, segments) */
} bj_rows;

/* Max number of rows and columns in one call to bj_kernels.gradient, and the size of its scratch
 * memory in elements of bj_real. */
enum {
    BJ_GRADIENT_ROWS = 96,
    BJ_GRADIENT_COLUMNS = 288,
    BJ_GRADIENT_SCRATCH = (BJ_SHARD_LEVELS + 1) * BJ_GRADIENT_ROWS * BJ_GRADIENT_COLUMNS +
                          160 * (BJ_GRADIENT_ROWS + BJ_GRADIENT_COLUMNS)
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
    /* Tables of one instruction set, in single and in mixed precision. In mixed precision, gemm,
     * gemm_columns, gradient and the recurrent products of the GRU round their operands to bfloat16
     * and add the products in single precision. Biases, the input weights of the GRU and all other
     * functions stay in single precision. A matrix packed for one table cannot be used with another
     * table. */
    const struct bj_kernels *single, *mixed;
    int panel; /* number of columns of a packed panel, which is the preferred unit for splitting
                  work */

    /* Packs a right-hand side (K,N) in the order in which the product reads it. The source is b[k *
     * ldb + n] for pack_kn and b[n * ldb + k] for pack_nk. */
    size_t (*packed_size)(int N, int K); /* in bj_reals */
    void (*pack_kn)(bj_real *packed, const bj_real *b, size_t ldb, int N, int K);
    void (*pack_nk)(bj_real *packed, const bj_real *b, size_t ldb, int N, int K);

    /* Computes c (M,N) = a (M,K) * packed (K,N) + bias (N) with BJ_GEMM_* flags. bias and mask may
     * be NULL. If mask (M,N) is given, the result is zero unless mask > 0. */
    void (*gemm)(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                 const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                 int flags);

    /* Computes columns [n0,n1) of gemm. n0 must be a multiple of `panel`. */
    void (*gemm_columns)(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                         const bj_real *packed, const bj_real *bias, int M, int N, int K, int flags,
                         int n0, int n1);

    /* Computes c (M,N) = sum over rows of dy[row,:]^T x[row,:], in the order defined in
     * core/shards.h. M <= BJ_GRADIENT_ROWS, N <= BJ_GRADIENT_COLUMNS. */
    void (*gradient)(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                     size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch);
    /* Computes sum (N) = sum over rows of dy[row,:], in the order defined in core/shards.h.
     * N <= panel. */
    void (*column_sum)(bj_real *sum, const bj_real *dy, size_t lddy, const bj_rows *rows, int N);

    /* Computes one GRU step for M rows. A row of `state` is [x | 1 | pad | h] with `lead` entries
     * before h. In the first step (`first`) h is zero. h_out (M,E) must not overlap h. Unless gates
     * (M,4E) is NULL, it is set to [r | z | hn | n] with h_out = (1 - z) n + z h and
     * n = tanh(in + r hn). packed (gru_size elements) is filled by gru_pack. The result of a row
     * does not depend on other rows. */
    size_t (*gru_size)(int lead, int E);
    void (*gru_pack)(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh, const bj_real *b_ih,
                     const bj_real *b_hh, int I, int lead, int E);
    void (*gru_step)(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *state,
                     size_t lds, const bj_real *packed, int lead, int E, int M, int first);
    /* Computes the gradient of one GRU step. On entry, dh (M,E) is the gradient of the new state
     * without the contribution of the following step. Unless dgates is NULL, that contribution is
     * added first. It is dgates (M,4E) of the following step times `recurrent`, which is W_hh
     * packed by pack_kn. The gates [r | z | hn | n] are replaced with the gradients
     * [dr | dz | dhn | din] of the pre-activations, and dh with the part of the gradient that
     * reaches the old state h (M,E) directly. */
    void (*gru_unstep)(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates, size_t ldg,
                       const bj_real *h, size_t ldh, const bj_real *recurrent, int E, int M);

    /* Computes one GRU step of a single row for units [u0,u1). u0 and u1 must be multiples of
     * `units`, or u1 = E. `row` is a state row of gru_step, and the results are identical to those
     * of gru_step. */
    int units; /* hidden units per group */
    void (*gru_row)(bj_real *h_out, const bj_real *row, const bj_real *packed, int lead, int E,
                    int u0, int u1);

    /* Single-query attention over the hidden rows r (S,W) of one scene with G heads. Computes
     * scores (S,G) = r . a_g with a (G,W). */
    void (*scores)(bj_real *scores, const bj_real *r, size_t ldr, const bj_real *a, size_t lda,
                   int S, int G, int W);
    /* Computes pooled (G,W) = sum_s weight[s,g] r[s,:]. */
    void (*pool)(bj_real *pooled, size_t ldp, const bj_real *weight, const bj_real *r, size_t ldr,
                 int S, int G, int W);
    /* Computes dr[s,:] = sum_g (alpha[s,g] dpooled_g + dscore[s,g] a_g). Elements are zero where r
     * <= 0. */
    void (*pool_backward)(bj_real *dr, size_t lddr, const bj_real *alpha, const bj_real *dscore,
                          const bj_real *dpooled, size_t ldp, const bj_real *a, size_t lda,
                          const bj_real *r, size_t ldr, int S, int G, int W);

    double (*sum_squares)(const bj_real *x, size_t n);
    /* Applies one AdamW update to n weights. Unless NULL, scale (n) multiplies the step of each
     * weight. */
    void (*adamw)(bj_real *w, bj_real *m, bj_real *v, const bj_real *g, const bj_real *scale,
                  size_t n, const bj_adamw_coefficients *k);
    /* Computes target = decay * target + (1 - decay) * w. */
    void (*ema)(bj_real *target, const bj_real *w, size_t n, bj_real decay);
} bj_kernels;

/* Returns the table for `isa` ("c", "avx2", "avx512", "avx512bf16") and a precision. If isa is
 * NULL, the environment variable BJ_ISA is used. If BJ_ISA is not set either, the table is chosen
 * by processor family (dispatch.c). Fails if the name is unknown or if the machine does not support
 * the instruction set. */
BJ_CHECK bj_status bj_kernels_find(const bj_kernels **out, const char *isa, bj_precision precision,
                                   bj_error *err);
/* Returns the i-th single-precision table that this machine can run, or NULL past the end. */
const bj_kernels *bj_kernels_at(int i);

extern const bj_kernels bj_kernels_c, bj_mixed_c;
#if defined(__x86_64__)
extern const bj_kernels bj_kernels_avx2, bj_mixed_avx2;
extern const bj_kernels bj_kernels_avx512, bj_mixed_avx512;
extern const bj_kernels bj_kernels_avx512bf16, bj_mixed_avx512bf16;
#endif

#endif
