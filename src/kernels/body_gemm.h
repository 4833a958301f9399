/* body_gemm.h - matrix products with packed right-hand sides.
 *
 * A register tile has BJ_BODY_ROWS x 3 vectors. On AVX2, 4 x 3 accumulators, 3 loads and a
 * broadcast fill the 16 registers. On AVX-512, 8 x 3 accumulators leave some of the 32 registers
 * free.
 *
 * A packed right-hand side consists of panels that are 3 vectors wide. The last panel is 1 to 3
 * vectors wide and padded with zeros. Inside a panel, k is the slow index. The loop over K uses
 * blocks of BLOCK_K, so that a panel's block stays in the L1 cache while all row tiles use it.
 *
 * Functions with the constant parameter `mixed` exist in two forms. If mixed is set, the operands
 * are words (body_pairs.h), and K counts words unless noted otherwise.
 */
#ifndef BJ_KERNELS_BODY_GEMM_H
#define BJ_KERNELS_BODY_GEMM_H

#include "kernels/body_pairs.h"
#include "kernels/body_transpose.h"

static int round_up(int n) { return (n + LANES - 1) / LANES * LANES; }

static size_t packed_size(int N, int K) { return (size_t)round_up(N) * (size_t)K; }

/* Loads LANES numbers of row k of a right-hand side or, in mixed precision, words made from rows k
 * and k + 1. A missing last row counts as zero. */
INLINE vec load_rows(const bj_real *row, size_t ldb, int last, int mixed) {
    return mixed ? pair_up(load(row), last ? (vec){0} : load(row + ldb)) : load(row);
}

/* Copies a few panels at a time, so that several consecutive cache lines of a row are read. Later
 * rows are prefetched explicitly, because they are too far apart for the hardware prefetcher. K is
 * a count of numbers, not of words. */
INLINE void pack_kn_of(bj_real *packed, const bj_real *b, size_t ldb, int N, int K, int mixed) {
    enum { PANELS = 4, AHEAD = 16, LINE_REALS = 64 / sizeof(bj_real) };
    const int step = 1 + mixed, depth = mixed ? words_of(K) : K;
    for (int n = 0; n < N;) {
        const int whole = (N - n) / PANEL < PANELS ? (N - n) / PANEL : PANELS;
        const int width = whole ? whole * PANEL : N - n, padded = round_up(width);
        for (int k = 0; k < depth; k++) {
            const bj_real *row = b + (size_t)(k * step) * ldb + n;
            const int last = k * step + 1 == K;
            for (int i = 0; i < step; i++)
                for (int j = 0; j < width; j += LINE_REALS)
                    __builtin_prefetch(row + (size_t)(AHEAD + i) * ldb + j);
            for (int i = 0; i < whole; i++)
                UNROLL for (int j = 0; j < WIDTH; j++)
                    store(packed + ((size_t)i * (size_t)depth + (size_t)k) * PANEL + j * LANES,
                          load_rows(row + i * PANEL + j * LANES, ldb, last, mixed));
            for (int j = 0; j < padded && !whole; j++)
                packed[(size_t)k * padded + j] =
                    j >= width ? 0
                    : mixed    ? word_of(row[j], last ? 0 : row[ldb + (size_t)j])
                               : row[j];
        }
        packed += (size_t)padded * (size_t)depth;
        n += width;
    }
}

/* Computes packed[i * stride + j] = rows[j * ld + i] for i < depth and LANES rows. Reading more
 * rows at a time would cause cache conflicts, because the rows of square weight matrices map to
 * only a few sets of the L1 cache. */
INLINE void pack_rows(bj_real *packed, int stride, const bj_real *rows, size_t ld, int depth,
                      int mixed) {
    for (int k = 0; k < depth; k += LANES) {
        vec v[LANES];
        UNROLL for (int j = 0; j < LANES; j++) {
            const bj_real *at = rows + (size_t)j * ld + k * (1 + mixed);
            v[j] = mixed ? pair_in_order(load(at), load(at + LANES)) : load(at);
        }
        transpose(v);
        UNROLL for (int i = 0; i < LANES; i++) store(packed + (k + i) * stride, v[i]);
    }
}

/* Transposes one band of columns at a time and prefetches the rows of later bands, including those
 * of the next panel. If a vector is as long as a cache line, the band is transposed into a staging
 * buffer first, because direct stores would write the cache lines in a scattered order. K is a
 * count of numbers, not of words. */
INLINE void pack_nk_of(bj_real *packed, const bj_real *b, size_t ldb, int N, int K, int mixed) {
    enum { BAND = 64 / sizeof(bj_real) > LANES ? 64 / sizeof(bj_real) : LANES }; /* a cache line */
    enum { STAGED = BJ_BODY_BYTES == 64 };
    const int step = 1 + mixed, all = mixed ? words_of(K) : K, fetch = 4 * BAND * step;
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        for (int k0 = 0; k0 < all; k0 += BAND) {
            const int depth = all - k0 < BAND ? all - k0 : BAND, column = k0 * step;
            const size_t ahead = column + fetch < K ? (size_t)fetch
                                                    : PANEL * ldb + (size_t)fetch - (size_t)K;
            bj_real stage[BAND * PANEL];
            bj_real *band = STAGED ? stage : packed;
            for (int j0 = 0; j0 < padded; j0 += LANES) {
                const bj_real *rows = b + (size_t)(n + j0) * ldb + column;
                if (j0 + LANES <= width && column + BAND * step <= K) {
                    UNROLL for (int j = 0; j < LANES; j++)
                        for (int i = 0; i < step; i++)
                            __builtin_prefetch(rows + (size_t)j * ldb + ahead + i * BAND, 0, 2);
                    pack_rows(band + j0, padded, rows, ldb, BAND, mixed);
                    continue;
                }
                for (int k = 0; k < depth; k++)
                    for (int j = 0; j < LANES; j++) {
                        const bj_real *at = rows + (size_t)j * ldb + k * step;
                        band[k * padded + j0 + j] =
                            j0 + j >= width ? 0
                            : mixed         ? word_of(at[0], column + 2 * k + 1 < K ? at[1] : 0)
                                            : at[0];
                    }
            }
            for (int i = 0; STAGED && i < depth * padded; i += LANES)
                store(packed + i, load(stage + i));
            packed += depth * padded;
        }
    }
}

static void pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_kn_of(packed, b, ldb, N, K, 0);
}

static void pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_nk_of(packed, b, ldb, N, K, 0);
}

/* Returns the number of rows in a tile that is 3 vectors wide. If words are split into parts, 16
 * registers have room only for 3 x 3 sums, the parts and a mask. */
INLINE int rows_of_tile(int mixed) { return mixed && PARTS == 2 && ROWS == 4 ? 3 : ROWS; }

typedef struct product {
    bj_real *c;
    size_t ldc;
    const bj_real *a;
    size_t lda;
    const bj_real *bias, *mask;
    size_t ldm;
    int first, last, flags; /* 1 if this is the first or the last block of k */
} product;

/* Returns the part of a product that starts at row m and column n, for one block of k. `a` is the
 * left-hand side of that part. */
INLINE product product_at(product p, const bj_real *a, int m, int n, int first, int last) {
    p.c += (size_t)m * p.ldc + n;
    p.a = a;
    if (p.bias) p.bias += n;
    if (p.mask) p.mask += (size_t)m * p.ldm + n;
    p.first = first;
    p.last = last;
    return p;
}

/* Adds x * y to a sum, or one part of the products of two words. */
INLINE vec add_product(vec sum, vec x, vec y, int mixed) {
    return mixed ? add_part(sum, x, y) : sum + x * y;
}

INLINE vec operand(vec x, int part, int mixed) { return mixed ? part_of(x, part) : x; }

/* Broadcasts element k of a row to every lane, or one part of word k of a row from round_rows. */
INLINE vec left_operand(const bj_real *row, int k, int part, int mixed) {
    return splat(row[mixed ? PARTS * k + part : k]);
}

/* Adds the product of column k of mr rows and one row of a panel to acc (mr rows, nv vectors). */
INLINE void tile_part(vec acc[TALL][WIDTH], const bj_real *const row[TALL], int k,
                      const bj_real *restrict panel, int mr, int nv, int part, int mixed) {
    vec b[WIDTH];
    UNROLL for (int j = 0; j < nv; j++) b[j] = operand(load(panel + j * LANES), part, mixed);
    UNROLL for (int i = 0; i < mr; i++) {
        const vec x = left_operand(row[i], k, part, mixed);
        UNROLL for (int j = 0; j < nv; j++) acc[i][j] = add_product(acc[i][j], x, b[j], mixed);
    }
}

/* Adds the product of a and K rows of a panel, which are `stride` apart, to acc (mr rows, nv
 * vectors). */
INLINE void tile_sum(vec acc[TALL][WIDTH], const bj_real *a, size_t lda,
                     const bj_real *restrict panel, int stride, int K, int mr, int nv, int mixed) {
    const bj_real *row[TALL];
    UNROLL for (int i = 0; i < mr; i++) row[i] = a + (size_t)i * lda;
    for (int k = 0; k < K; k++, panel += stride) {
        tile_part(acc, row, k, panel, mr, nv, 0, mixed);
        if (mixed && PARTS == 2) tile_part(acc, row, k, panel, mr, nv, 1, mixed);
    }
}

/* Computes mr rows and nv vectors of columns over the K entries of one block of k. `tail` is the
 * number of valid columns in the last vector. */
INLINE void tile(const product *p, const bj_real *restrict panel, int stride, int K, int mr, int nv,
                 int tail, int mixed) {
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
    tile_sum(acc, p->a, p->lda, panel, stride, K, mr, nv, mixed);
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

#define TILE_FUNCTION(name, mixed, mr)                                                             \
    static void name##_##mr##x3(const product *p, const bj_real *panel, int K) {                   \
        tile(p, panel, PANEL, K, mr, 3, LANES, mixed);                                             \
    }                                                                                              \
    static void name##_##mr##_tail(const product *p, const bj_real *panel, int K, int width) {     \
        const int nv = (width + LANES - 1) / LANES, tail = width - (nv - 1) * LANES;               \
        if (nv == 3) tile(p, panel, 3 * LANES, K, mr, 3, tail, mixed);                             \
        else if (nv == 2) tile(p, panel, 2 * LANES, K, mr, 2, tail, mixed);                        \
        else tile(p, panel, LANES, K, mr, 1, tail, mixed);                                         \
    }

#if BJ_BODY_ROWS == 8
#define TALL_TILE(name, mixed) TILE_FUNCTION(name, mixed, 8)
#define CALL_TALL(name) if (left >= 8) CALL(name, 8); else
#else
#define TALL_TILE(name, mixed)                                                                     \
    static void name##_8x1(const product *p, const bj_real *panel, int K, int width) {             \
        tile(p, panel, LANES, K, TALL, 1, width, mixed);                                           \
    }
#define CALL_TALL(name)                                                                            \
    if (left >= TALL && width <= LANES) name##_8x1(&p, panel, K, width), mr = TALL; else
#endif

#define CALL(name, n)                                                                              \
    do {                                                                                           \
        mr = n;                                                                                    \
        if (width == PANEL) name##_##n##x3(&p, panel, K);                                          \
        else name##_##n##_tail(&p, panel, K, width);                                               \
    } while (0)

/* Defines name_rows, which multiplies M rows by a panel. */
#define PANEL_FUNCTIONS(name, mixed)                                                               \
    TILE_FUNCTION(name, mixed, 1)                                                                  \
    TILE_FUNCTION(name, mixed, 2)                                                                  \
    TILE_FUNCTION(name, mixed, 3)                                                                  \
    TILE_FUNCTION(name, mixed, 4)                                                                  \
    TALL_TILE(name, mixed)                                                                         \
    static void name##_rows(product p, const bj_real *panel, int width, int M, int K) {            \
        for (int m = 0, mr; m < M; m += mr) {                                                      \
            const int left = M - m;                                                                \
            CALL_TALL(name)                                                                        \
            if (left >= 4 && rows_of_tile(mixed) >= 4) CALL(name, 4);                              \
            else if (left >= 3) CALL(name, 3);                                                     \
            else if (left == 2) CALL(name, 2);                                                     \
            else CALL(name, 1);                                                                    \
            p.c += (size_t)mr * p.ldc;                                                             \
            p.a += (size_t)mr * p.lda;                                                             \
            if (p.mask) p.mask += (size_t)mr * p.ldm;                                              \
        }                                                                                          \
    }

PANEL_FUNCTIONS(tile, 0)
#ifndef BJ_DOUBLE
PANEL_FUNCTIONS(mixed, 1)
#endif

INLINE void rows_of_panel(product p, const bj_real *panel, int width, int M, int K, int mixed) {
#ifndef BJ_DOUBLE
    if (mixed) {
        mixed_rows(p, panel, width, M, K);
        return;
    }
#endif
    (void)mixed;
    tile_rows(p, panel, width, M, K);
}

/* Adds the product of x and one row of `panels` panels, which are `step` apart, to acc. */
INLINE void row_part(vec acc[3][WIDTH], vec x, const bj_real *panel, size_t step, int panels,
                     int part, int mixed) {
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            const vec b = operand(load(panel + (size_t)i * step + j * LANES), part, mixed);
            acc[i][j] = add_product(acc[i][j], x, b, mixed);
        }
    }
}

/* Multiplies one row by `panels` complete panels at once. A single panel would have too few sums to
 * hide the latency of a multiply-add. */
INLINE void row_of_panels(const product *p, const bj_real *panel, int K, int panels, int mixed) {
    vec acc[3][WIDTH];
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            const int at = i * PANEL + j * LANES;
            acc[i][j] = (p->flags & BJ_GEMM_ADD) ? load(p->c + at)
                        : p->bias                ? load(p->bias + at)
                                                 : (vec){0};
        }
    }
    for (int k = 0; k < K; k++, panel += PANEL) {
        row_part(acc, left_operand(p->a, k, 0, mixed), panel, (size_t)K * PANEL, panels, 0, mixed);
        if (mixed && PARTS == 2)
            row_part(acc, left_operand(p->a, k, 1, mixed), panel, (size_t)K * PANEL, panels, 1,
                     mixed);
    }
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            const int at = i * PANEL + j * LANES;
            vec v = acc[i][j];
            if (p->flags & BJ_GEMM_RELU) v = where_positive(v, v);
            if (p->mask) v = where_positive(load(p->mask + at), v);
            store(p->c + at, v);
        }
    }
}

/* Multiplies one row by columns [n0,n1). Every panel is used once, so there is no blocking over
 * K. */
INLINE void row_columns(product whole, const bj_real *packed, int N, int K, int n0, int n1,
                        int mixed) {
    for (int n = n0, step; n < n1; n += step) {
        const product p = product_at(whole, whole.a, 0, n, 1, 1);
        const bj_real *panel = packed + (size_t)n * (size_t)K;
        const int width = N - n < PANEL ? N - n : PANEL;
        step = PANEL;
        if (mixed && n1 - n >= 3 * PANEL) row_of_panels(&p, panel, K, 3, mixed), step = 3 * PANEL;
        else if (n1 - n >= 2 * PANEL) row_of_panels(&p, panel, K, 2, mixed), step = 2 * PANEL;
        else if (width == PANEL) row_of_panels(&p, panel, K, 1, mixed);
        else rows_of_panel(p, panel, width, 1, K, mixed);
    }
}

static void product_columns(product whole, const bj_real *packed, int M, int N, int K, int n0,
                            int n1) {
    if (M == 1) {
        row_columns(whole, packed, N, K, n0, n1, 0);
        return;
    }
    for (int m = 0; m < M; m += BLOCK_M) {
        const int rows = M - m < BLOCK_M ? M - m : BLOCK_M;
        for (int k = 0; k < K; k += BLOCK_K) {
            const int depth = K - k < BLOCK_K + BLOCK_K / 4 ? K - k : BLOCK_K;
            for (int n = n0; n < n1; n += PANEL) {
                const bj_real *a = whole.a + (size_t)m * whole.lda + k;
                const product p = product_at(whole, a, m, n, k == 0, k + depth == K);
                const int width = N - n < PANEL ? N - n : PANEL;
                tile_rows(p, packed + (size_t)n * K + (size_t)k * round_up(width), width, rows,
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

#ifndef BJ_DOUBLE

static size_t mixed_packed_size(int N, int K) { return packed_size(N, words_of(K)); }

static void mixed_pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_kn_of(packed, b, ldb, N, K, 1);
}

static void mixed_pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    pack_nk_of(packed, b, ldb, N, K, 1);
}

/* Rounds a block of rows of the left-hand side and multiplies it by all panels. K is a count of
 * numbers, not of words. */
static void mixed_columns(product whole, const bj_real *packed, int M, int N, int K, int n0,
                          int n1) {
    _Alignas(64) bj_real words[WORD_COUNT];
    const int all = words_of(K);
    const bj_real *a = whole.a;
    const size_t lda = whole.lda;
    if (M == 1 && all * PARTS <= WORD_COUNT) {
        round_rows(words, 0, a, 0, 1, K);
        whole.a = words;
        row_columns(whole, packed, N, all, n0, n1, 1);
        return;
    }
    whole.lda = WORD_STRIDE;
    for (int m = 0; m < M; m += WORD_ROWS) {
        const int rows = M - m < WORD_ROWS ? M - m : WORD_ROWS;
        for (int k = 0; k < all; k += WORD_DEPTH) {
            const int depth = all - k < WORD_DEPTH ? all - k : WORD_DEPTH;
            const int numbers = K - 2 * k < 2 * depth ? K - 2 * k : 2 * depth;
            round_rows(words, WORD_STRIDE, a + (size_t)m * lda + 2 * k, lda, rows, numbers);
            for (int n = n0; n < n1; n += PANEL) {
                const product p = product_at(whole, words, m, n, k == 0, k + depth == all);
                const int width = N - n < PANEL ? N - n : PANEL;
                mixed_rows(p, packed + (size_t)n * (size_t)all + (size_t)k * round_up(width), width,
                           rows, depth);
            }
        }
    }
}

static void mixed_gemm(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const bj_real *packed,
                       const bj_real *bias, const bj_real *mask, size_t ldm, int M, int N, int K,
                       int flags) {
    const product p = {c, ldc, a, lda, bias, mask, ldm, 0, 0, flags};
    mixed_columns(p, packed, M, N, K, 0, N);
}

static void mixed_gemm_columns(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                               const bj_real *packed, const bj_real *bias, int M, int N, int K,
                               int flags, int n0, int n1) {
    const product p = {c, ldc, a, lda, bias, NULL, 0, 0, 0, flags};
    mixed_columns(p, packed, M, N, K, n0, n1);
}

#endif

#endif
