/* body_gemm.h - matrix products with packed right-hand sides.
 *
 * A register tile has BJ_BODY_ROWS x 3 vectors. On AVX2, 4 x 3 accumulators, 3 loads and a
 * broadcast fill the 16 registers. On AVX-512, 8 x 3 accumulators leave some of the 32 registers
 * free.
 *
 * A packed right-hand side consists of panels that are 3 vectors wide. The last panel is 1 to 3
 * vectors wide and padded with zeros. Inside a panel, k is the slow index. The loop over K uses
 * blocks of BLOCK_K, so that a panel's block stays in the L1 cache while all row tiles use it.
 */
#ifndef BJ_KERNELS_BODY_GEMM_H
#define BJ_KERNELS_BODY_GEMM_H

#include "kernels/body_transpose.h"

static int round_up(int n) { return (n + LANES - 1) / LANES * LANES; }

static size_t packed_size(int N, int K) { return (size_t)round_up(N) * (size_t)K; }

/* Copies a row of a right-hand side into `panels` complete panels, which are `step` elements
 * apart. */
INLINE void pack_row(bj_real *packed, size_t step, const bj_real *row, int panels) {
    for (int i = 0; i < panels; i++)
        UNROLL for (int j = 0; j < WIDTH; j++)
            store(packed + (size_t)i * step + j * LANES, load(row + i * PANEL + j * LANES));
}

/* Copies a few panels at a time, so that a row is read in runs of several cache lines. Later rows
 * are prefetched, because the rows are too far apart for the hardware prefetcher. */
static void pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    enum { PANELS = 4, AHEAD = 16, LINE_REALS = 64 / sizeof(bj_real) };
    for (int n = 0; n < N;) {
        const int whole = (N - n) / PANEL < PANELS ? (N - n) / PANEL : PANELS;
        const int width = whole ? whole * PANEL : N - n, padded = round_up(width);
        for (int k = 0; k < K; k++) {
            const bj_real *row = b + (size_t)k * ldb + n;
            for (int j = 0; j < width; j += LINE_REALS) __builtin_prefetch(row + AHEAD * ldb + j);
            if (whole) {
                pack_row(packed + (size_t)k * PANEL, (size_t)K * PANEL, row, whole);
                continue;
            }
            memcpy(packed + (size_t)k * padded, row, (size_t)width * sizeof *row);
            for (int j = width; j < padded; j++) packed[(size_t)k * padded + j] = 0;
        }
        packed += (size_t)padded * (size_t)K;
        n += width;
    }
}

/* Computes packed[i * stride + j] = rows[j * ld + i] for i < depth and LANES rows. More rows at a
 * time would conflict, because the rows of square weights map to the same few sets of the L1
 * cache. */
INLINE void pack_rows(bj_real *packed, int stride, const bj_real *rows, size_t ld, int depth) {
    for (int k = 0; k < depth; k += LANES) {
        vec v[LANES];
        UNROLL for (int j = 0; j < LANES; j++) v[j] = load(rows + (size_t)j * ld + k);
        transpose(v);
        UNROLL for (int i = 0; i < LANES; i++) store(packed + (k + i) * stride, v[i]);
    }
}

/* Transposes one band of columns at a time and prefetches the rows of later bands, including those
 * of the next panel. If a vector is as long as a cache line, the band is transposed into a staging
 * buffer first, because direct stores would write the cache lines in a scattered order. */
static void pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    enum { BAND = 64 / sizeof(bj_real) > LANES ? 64 / sizeof(bj_real) : LANES }; /* a cache line */
    enum { AHEAD = 4 * BAND, STAGED = BJ_BODY_BYTES == 64 };
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        for (int k0 = 0; k0 < K; k0 += BAND) {
            const int depth = K - k0 < BAND ? K - k0 : BAND;
            const size_t ahead = k0 + AHEAD < K ? AHEAD : PANEL * ldb + AHEAD - (size_t)K;
            bj_real stage[BAND * PANEL];
            bj_real *band = STAGED ? stage : packed;
            for (int j0 = 0; j0 < padded; j0 += LANES) {
                const bj_real *rows = b + (size_t)(n + j0) * ldb + k0;
                if (j0 + LANES <= width && depth == BAND) {
                    UNROLL for (int j = 0; j < LANES; j++)
                        __builtin_prefetch(rows + (size_t)j * ldb + ahead, 0, 2);
                    pack_rows(band + j0, padded, rows, ldb, BAND);
                    continue;
                }
                for (int k = 0; k < depth; k++)
                    for (int j = 0; j < LANES; j++)
                        band[k * padded + j0 + j] = j0 + j < width ? rows[(size_t)j * ldb + k] : 0;
            }
            for (int i = 0; STAGED && i < depth * padded; i += LANES)
                store(packed + i, load(stage + i));
            packed += depth * padded;
        }
    }
}

typedef struct product {
    bj_real *c;
    size_t ldc;
    const bj_real *a;
    size_t lda;
    const bj_real *bias, *mask;
    size_t ldm;
    int first, last, flags; /* whether this is the first or last k block */
} product;

/* Adds a times K rows of a panel, which are `stride` apart, to acc (mr rows, nv vectors). */
INLINE void tile_sum(vec acc[TALL][WIDTH], const bj_real *a, size_t lda,
                     const bj_real *restrict panel, int stride, int K, int mr, int nv) {
    const bj_real *row[TALL];
    UNROLL for (int i = 0; i < mr; i++) row[i] = a + (size_t)i * lda;
    for (int k = 0; k < K; k++, panel += stride) {
        vec b[WIDTH];
        UNROLL for (int j = 0; j < nv; j++) b[j] = load(panel + j * LANES);
        UNROLL for (int i = 0; i < mr; i++) {
            const vec x = splat(row[i][k]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] += x * b[j];
        }
    }
}

/* Computes mr rows and nv vectors of columns for the K entries of one block of k. `tail` is the
 * number of valid columns in the last vector. */
INLINE void tile(const product *p, const bj_real *restrict panel, int stride, int K, int mr, int nv,
                 int tail) {
    vec acc[TALL][WIDTH];
    UNROLL for (int i = 0; i < mr; i++) { /* prefetch c unless it is loaded below */
        const bj_real *c = p->c + (size_t)i * p->ldc;
        if (!p->first || (p->flags & BJ_GEMM_ADD)) continue;
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + (nv - 1) * LANES + tail - 1, 1);
    }
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int whole = j + 1 < nv || tail == LANES;
            if (!p->first || (p->flags & BJ_GEMM_ADD)) {
                const bj_real *c = p->c + (size_t)i * p->ldc + j * LANES;
                acc[i][j] = whole ? load(c) : load_part(c, tail);
            } else if (p->bias) {
                const bj_real *b = p->bias + j * LANES;
                acc[i][j] = whole ? load(b) : load_part(b, tail);
            } else {
                acc[i][j] = (vec){0};
            }
        }
    }
    tile_sum(acc, p->a, p->lda, panel, stride, K, mr, nv);
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int whole = j + 1 < nv || tail == LANES;
            vec v = acc[i][j];
            if (p->last && (p->flags & BJ_GEMM_RELU)) v = where_positive(v, v);
            if (p->last && p->mask) {
                const bj_real *m = p->mask + (size_t)i * p->ldm + j * LANES;
                v = where_positive(whole ? load(m) : load_part(m, tail), v);
            }
            bj_real *c = p->c + (size_t)i * p->ldc + j * LANES;
            if (whole) store(c, v);
            else store_part(c, v, tail);
        }
    }
}

#define TILE_FUNCTION(mr)                                                                          \
    static void tile_##mr##x3(const product *p, const bj_real *panel, int K) {                     \
        tile(p, panel, PANEL, K, mr, 3, LANES);                                                    \
    }                                                                                              \
    static void tile_##mr##_tail(const product *p, const bj_real *panel, int K, int width) {       \
        const int nv = (width + LANES - 1) / LANES, tail = width - (nv - 1) * LANES;               \
        if (nv == 3) tile(p, panel, 3 * LANES, K, mr, 3, tail);                                    \
        else if (nv == 2) tile(p, panel, 2 * LANES, K, mr, 2, tail);                               \
        else tile(p, panel, LANES, K, mr, 1, tail);                                                \
    }

TILE_FUNCTION(1)
TILE_FUNCTION(2)
TILE_FUNCTION(3)
TILE_FUNCTION(4)
#if BJ_BODY_ROWS == 8
TILE_FUNCTION(8)
#else
static void tile_8x1(const product *p, const bj_real *panel, int K, int width) {
    tile(p, panel, LANES, K, TALL, 1, width);
}
#endif

static void rows_of_panel(product p, const bj_real *panel, int width, int M, int K) {
    for (int m = 0, mr; m < M; m += mr) {
        const int left = M - m;
#define CALL(n)                                                                                    \
    do {                                                                                           \
        mr = n;                                                                                    \
        if (width == PANEL) tile_##n##x3(&p, panel, K);                                            \
        else tile_##n##_tail(&p, panel, K, width);                                                 \
    } while (0)
#if BJ_BODY_ROWS == 8
        if (left >= 8) CALL(8);
        else
#else
        if (left >= TALL && width <= LANES) tile_8x1(&p, panel, K, width), mr = TALL;
        else
#endif
            if (left >= 4)
            CALL(4);
        else if (left == 3) CALL(3);
        else if (left == 2) CALL(2);
        else CALL(1);
#undef CALL
        p.c += (size_t)mr * p.ldc;
        p.a += (size_t)mr * p.lda;
        if (p.mask) p.mask += (size_t)mr * p.ldm;
    }
}

/* Multiplies one row by two complete panels at once, because six chains of sums hide the latency of
 * the multiply-add. */
static void row_of_two_panels(const product *p, const bj_real *panel, int K) {
    const bj_real *second = panel + (size_t)K * PANEL;
    vec acc[2 * WIDTH];
    UNROLL for (int j = 0; j < 2 * WIDTH; j++) {
        acc[j] = (p->flags & BJ_GEMM_ADD) ? load(p->c + j * LANES)
                 : p->bias                ? load(p->bias + j * LANES)
                                          : (vec){0};
    }
    for (int k = 0; k < K; k++, panel += PANEL, second += PANEL) {
        const vec x = splat(p->a[k]);
        UNROLL for (int j = 0; j < WIDTH; j++) {
            acc[j] += x * load(panel + j * LANES);
            acc[WIDTH + j] += x * load(second + j * LANES);
        }
    }
    UNROLL for (int j = 0; j < 2 * WIDTH; j++) {
        vec v = acc[j];
        if (p->flags & BJ_GEMM_RELU) v = where_positive(v, v);
        if (p->mask) v = where_positive(load(p->mask + j * LANES), v);
        store(p->c + j * LANES, v);
    }
}

INLINE void product_columns(product whole, const bj_real *packed, int M, int N, int K, int n0,
                            int n1) {
    if (M == 1) { /* every panel is used once, so no blocking over K */
        whole.first = whole.last = 1;
        int n = n0;
        while (n < n1) {
            product p = whole;
            p.c += n;
            if (p.bias) p.bias += n;
            if (p.mask) p.mask += n;
            const bj_real *panel = packed + (size_t)n * K;
            if (n1 - n >= 2 * PANEL) {
                row_of_two_panels(&p, panel, K);
                n += 2 * PANEL;
            } else {
                const int width = N - n < PANEL ? N - n : PANEL;
                rows_of_panel(p, panel, width, 1, K);
                n += PANEL;
            }
        }
        return;
    }
    for (int m = 0; m < M; m += BLOCK_M) {
        const int rows = M - m < BLOCK_M ? M - m : BLOCK_M;
        for (int k = 0; k < K; k += BLOCK_K) {
            const int depth = K - k < BLOCK_K + BLOCK_K / 4 ? K - k : BLOCK_K;
            for (int n = n0; n < n1; n += PANEL) {
                const int width = N - n < PANEL ? N - n : PANEL;
                product p = whole;
                p.c += (size_t)m * p.ldc + n;
                p.a += (size_t)m * p.lda + k;
                if (p.bias) p.bias += n;
                if (p.mask) p.mask += (size_t)m * p.ldm + n;
                p.first = k == 0;
                p.last = k + depth == K;
                rows_of_panel(p, packed + (size_t)n * K + (size_t)k * round_up(width), width, rows,
                              depth);
            }
            if (k + depth == K) break;
        }
    }
}

static void gemm(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                 const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                 int flags) {
    const product p = {c, ldc, a, lda, bias, mask, ldm, 0, 0, flags};
    product_columns(p, packed, M, N, K, 0, N);
}

static void gemm_columns(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                         const bj_real *packed, const bj_real *bias, int M, int N, int K,
                         int flags, int n0, int n1) {
    const product p = {c, ldc, a, lda, bias, NULL, 0, 0, 0, flags};
    product_columns(p, packed, M, N, K, n0, n1);
}

#endif
