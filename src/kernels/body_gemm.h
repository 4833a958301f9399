/* body_gemm.h - matrix products on packed right-hand sides.
 *
 * A register tile is BJ_BODY_ROWS x 3 vectors: 4 x 3 accumulators, 3 loads and a broadcast fill the
 * 16 registers of AVX2; 8 x 3 leave room among the 32 of AVX-512.
 *
 * Packed right-hand side: panels of 3 vectors of columns, the last one 1 to 3 vectors wide and
 * padded with zeros; inside a panel k is the slow index. All row tiles
 * pass over a panel while the next one is on its way to the second-level cache; K is walked in
 * blocks of BLOCK_K so that both fit.
 */
#ifndef BJ_KERNELS_BODY_GEMM_H
#define BJ_KERNELS_BODY_GEMM_H

#include "kernels/body_vec.h"

static int round_up(int n) { return (n + LANES - 1) / LANES * LANES; }

static size_t packed_size(int N, int K) { return (size_t)round_up(N) * (size_t)K; }

static void pack_kn(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        for (int k = 0; k < K; k++, packed += padded) {
            memcpy(packed, b + (size_t)k * ldb + n, (size_t)width * sizeof *b);
            for (int j = width; j < padded; j++) packed[j] = 0;
        }
    }
}

#ifndef BJ_DOUBLE
/* Floats are turned in registers, TURN x TURN at a time. */
enum { TURN = 8 };
typedef float square __attribute__((vector_size(32)));
typedef float square_u __attribute__((vector_size(32), aligned(4), may_alias));

/* to[k * ldt + j] = from[j * ldf + k] for j, k < TURN. */
INLINE void turn(float *to, size_t ldt, const float *from, size_t ldf) {
    square a[TURN], b[TURN];
    UNROLL for (int i = 0; i < TURN; i++) a[i] = *(const square_u *)(from + (size_t)i * ldf);
    UNROLL for (int i = 0; i < TURN; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    UNROLL for (int i = 0; i < TURN; i += 4) {
        a[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 1] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        a[i + 2] = __builtin_shufflevector(b[i + 1], b[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 3] = __builtin_shufflevector(b[i + 1], b[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        *(square_u *)(to + (size_t)i * ldt) =
            __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(square_u *)(to + (size_t)(i + 4) * ldt) =
            __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif

static void pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    enum { STRIP = 16 /* k at a time: a cache line of every source row */, FAR = 4 * STRIP };
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        const bj_real *rows = b + (size_t)n * ldb;
        for (int k0 = 0; k0 < K; k0 += STRIP, packed += STRIP * padded) {
            const int depth = K - k0 < STRIP ? K - k0 : STRIP;
            if (K - k0 > FAR) /* more rows than the hardware follows */
                for (int i = 0; i < width; i++)
                    __builtin_prefetch(rows + (size_t)i * ldb + k0 + FAR);
            int j = 0;
#ifndef BJ_DOUBLE
            for (; j + TURN <= width && depth == STRIP; j += TURN)
                UNROLL for (int k = 0; k < STRIP; k += TURN) {
                    turn(packed + k * padded + j, (size_t)padded, rows + (size_t)j * ldb + k0 + k,
                         ldb);
                }
#endif
            for (int k = 0; k < depth && j < padded; k++)
                for (int i = j; i < padded; i++)
                    packed[k * padded + i] = i < width ? rows[(size_t)i * ldb + k0 + k] : 0;
            if (depth < STRIP) packed -= (STRIP - depth) * padded;
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
    int first, last, flags; /* first and last block of k */
    /* the panel to be read next: it is fetched while the row tiles pass over this one */
    const bj_real *ahead;
    int ahead_lines; /* cache lines for every SPAN_K of k */
    const bj_real *ahead_end;
} product;

enum { LINE = 64 / sizeof(bj_real), SPAN_K = 32 };

/* Into how many spans a tile cuts K: the last one takes what is too short for its own. */
static int spans_of(int K) { return (K - SPAN_K / 2) / SPAN_K + 1; }

/* Rows [0,mr) x nv vectors of columns, k in [0,K) of one block; tail is the number of valid
 * columns in the last vector. */
INLINE void tile(const product *p, const bj_real *restrict panel, int stride, int K, int mr, int nv,
                 int tail) {
    vec acc[TALL][WIDTH];
    /* copies: what is stored might change *p for all the compiler knows */
    bj_real *c = p->c;
    const size_t ldc = p->ldc, ldm = p->ldm;
    const bj_real *mask = p->last ? p->mask : NULL;
    const int relu = p->last && (p->flags & BJ_GEMM_RELU);
#define EACH UNROLL for (int i = 0; i < mr; i++) UNROLL for (int j = 0; j < nv; j++)
#define VALID (j + 1 < nv ? LANES : tail)
    if (!p->first || (p->flags & BJ_GEMM_ADD))
        EACH acc[i][j] = load_n(c + (size_t)i * ldc + j * LANES, VALID);
    else if (p->bias) EACH acc[i][j] = load_n(p->bias + j * LANES, VALID);
    else EACH acc[i][j] = (vec){0};
    const bj_real *row[TALL];
    UNROLL for (int i = 0; i < mr; i++) row[i] = p->a + (size_t)i * p->lda;
    const bj_real *ahead = p->ahead;
    for (int k = 0; k < K;) {
        const int end = K - k < SPAN_K + SPAN_K / 2 ? K : k + SPAN_K;
        for (int i = p->ahead_lines; i > 0 && ahead < p->ahead_end; i--, ahead += LINE)
            __builtin_prefetch(ahead, 0, 2);
        for (; k < end; k++, panel += stride) {
            vec b[WIDTH];
            UNROLL for (int j = 0; j < nv; j++) b[j] = load(panel + j * LANES);
            UNROLL for (int i = 0; i < mr; i++) {
                const vec x = splat(row[i][k]);
                UNROLL for (int j = 0; j < nv; j++) acc[i][j] += x * b[j];
            }
        }
    }
    if (relu) EACH acc[i][j] = where_positive(acc[i][j], acc[i][j]);
    if (mask)
        EACH acc[i][j] =
            where_positive(load_n(mask + (size_t)i * ldm + j * LANES, VALID), acc[i][j]);
    EACH store_n(c + (size_t)i * ldc + j * LANES, acc[i][j], VALID);
#undef EACH
#undef VALID
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
        const size_t fetched = (size_t)(spans_of(K) * p.ahead_lines) * LINE;
        p.ahead = (size_t)(p.ahead_end - p.ahead) > fetched ? p.ahead + fetched : p.ahead_end;
        p.c += (size_t)mr * p.ldc;
        p.a += (size_t)mr * p.lda;
        if (p.mask) p.mask += (size_t)mr * p.ldm;
    }
}

/* One row times two whole panels at once: six chains hide the latency of the multiply-add. */
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

/* Spreads the cache lines of the next panel evenly over the row tiles of this one. */
INLINE void fetch_ahead(product *p, const bj_real *next, size_t size, int rows, int depth) {
    const int spans = (rows + ROWS - 1) / ROWS * spans_of(depth);
    p->ahead = next;
    p->ahead_end = next + size;
    p->ahead_lines = ((int)(size / LINE) + spans - 1) / spans;
}

INLINE void product_columns(product whole, const bj_real *packed, int M, int N, int K, int n0,
                            int n1) {
    if (M == 1) { /* no reuse of a panel: stream it once, all of K */
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
                if (n + PANEL < n1) {
                    const int next = round_up(N - n - PANEL < PANEL ? N - n - PANEL : PANEL);
                    fetch_ahead(&p, packed + (size_t)(n + PANEL) * K + (size_t)k * next,
                                (size_t)depth * next, rows, depth);
                } else if (k + depth < K) {
                    const int next = round_up(N - n0 < PANEL ? N - n0 : PANEL);
                    fetch_ahead(&p, packed + (size_t)n0 * K + (size_t)(k + depth) * next,
                                (size_t)(K - k - depth) * next, rows, depth);
                }
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
    const product p = {c, ldc, a, lda, bias, mask, ldm, 0, 0, flags, NULL, 0, NULL};
    product_columns(p, packed, M, N, K, 0, N);
}

static void gemm_columns(bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                         const bj_real *packed, const bj_real *bias, int M, int N, int K,
                         int flags, int n0, int n1) {
    const product p = {c, ldc, a, lda, bias, NULL, 0, 0, 0, flags, NULL, 0, NULL};
    product_columns(p, packed, M, N, K, n0, n1);
}

#endif
