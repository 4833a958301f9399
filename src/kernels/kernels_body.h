/* kernels_body.h - the vector kernels, compiled once per instruction set.
 *
 * The including file defines
 *   BJ_BODY_TABLE  name of the table      BJ_BODY_ISA    its string
 *   BJ_BODY_BYTES  bytes of a vector      BJ_BODY_ROWS   rows of a register tile
 *   BJ_BODY_MAX(a, b)  elementwise maximum of floats, b where either is NaN
 * A register tile is BJ_BODY_ROWS x 3 vectors: 4 x 3 accumulators, 3 loads and a broadcast fill the
 * 16 registers of AVX2; 8 x 3 leave room among the 32 of AVX-512.
 *
 * Packed right-hand side: panels of 3 vectors of columns, the last one 1 to 3 vectors wide and
 * padded with zeros; inside a panel k is the slow index. K is walked in blocks of BLOCK_K so that a
 * panel's block stays in the first-level cache while all row tiles pass over it.
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

typedef bj_real vec __attribute__((vector_size(BJ_BODY_BYTES)));
typedef bj_real vec_u
    __attribute__((vector_size(BJ_BODY_BYTES), aligned(sizeof(bj_real)), may_alias));
#ifdef BJ_DOUBLE
typedef int64_t ivec __attribute__((vector_size(BJ_BODY_BYTES)));
#else
typedef int32_t ivec __attribute__((vector_size(BJ_BODY_BYTES)));
#endif

enum {
    LANES = BJ_BODY_BYTES / sizeof(bj_real),
    WIDTH = 3,
    PANEL = WIDTH * LANES,
    ROWS = BJ_BODY_ROWS,
    TALL = 8, /* rows of a tile that is one vector wide: fewer would wait for their own sums */
    BLOCK_K = 256,
    BLOCK_M = 64,
    CHUNK = 128 /* rows of a gradient chunk */
};

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

INLINE vec load(const bj_real *p) { return *(const vec_u *)p; }
INLINE void store(bj_real *p, vec v) { *(vec_u *)p = v; }
/* v where gate > 0, else zero; NaN passes, so that it is found rather than hidden. */
INLINE vec where_positive(vec gate, vec v) { return (vec)((ivec)v & ~(gate <= 0)); }
INLINE vec splat(bj_real x) { return x - (vec){0}; }

INLINE vec load_part(const bj_real *p, int n) {
    bj_real lane[LANES] = {0};
    memcpy(lane, p, (size_t)n * sizeof *p);
    return load(lane);
}
INLINE void store_part(bj_real *p, vec v, int n) {
    bj_real lane[LANES];
    store(lane, v);
    memcpy(p, lane, (size_t)n * sizeof *p);
}

/* The first n lanes, all of them when n is larger. */
INLINE vec load_n(const bj_real *p, int n) { return n >= LANES ? load(p) : load_part(p, n); }
INLINE void store_n(bj_real *p, vec v, int n) {
    if (n >= LANES) store(p, v);
    else store_part(p, v, n);
}

/* ------------------------------------------------------------------------------------ packing */

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

static void pack_nk(bj_real *packed, const bj_real *b, size_t ldb, int N, int K) {
    enum { STRIP = 16 }; /* k at a time: one cache line of every source row */
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        for (int k0 = 0; k0 < K; k0 += STRIP) {
            const int k1 = K - k0 < STRIP ? K : k0 + STRIP;
            for (int j = 0; j < padded; j++) {
                const bj_real *row = b + (size_t)(n + j) * ldb;
                for (int k = k0; k < k1; k++)
                    packed[(size_t)k * padded + j] = j < width ? row[k] : 0;
            }
        }
        packed += (size_t)K * padded;
    }
}

/* ------------------------------------------------------------------------------------- product */

typedef struct product {
    bj_real *c;
    size_t ldc;
    const bj_real *a;
    size_t lda;
    const bj_real *bias, *mask;
    size_t ldm;
    int first, last, flags; /* first and last block of k */
} product;

/* Rows [0,mr) x nv vectors of columns, k in [0,K) of one block; tail is the number of valid
 * columns in the last vector. */
INLINE void tile(const product *p, const bj_real *restrict panel, int stride, int K, int mr, int nv,
                 int tail) {
    vec acc[TALL][WIDTH];
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
    const bj_real *row[TALL];
    UNROLL for (int i = 0; i < mr; i++) row[i] = p->a + (size_t)i * p->lda;
    for (int k = 0; k < K; k++, panel += stride) {
        vec b[WIDTH];
        UNROLL for (int j = 0; j < nv; j++) b[j] = load(panel + j * LANES);
        UNROLL for (int i = 0; i < mr; i++) {
            const vec x = splat(row[i][k]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] += x * b[j];
        }
    }
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

/* ------------------------------------------------------------------------- weight gradients */

/* dy and x are packed a chunk of rows at a time: several whole shards where they are small, else a
 * part of one. Shard sums climb a binary tree: a sum is added to the waiting sums of as many levels
 * as its index has trailing ones. Inside a chunk the tree stays in the first-level cache. */
typedef struct gradient_chunk {
    int shard_rows[BJ_SHARDS]; /* packed rows of every shard in the chunk */
    int shards;                /* a power of two */
    int index, height;         /* of the chunk among those of its size; log2(shards) */
    int rows;                  /* packed */
    int resume, finish;        /* not the first / the last chunk of its only shard */
} gradient_chunk;

enum {
    TILE = ROWS * PANEL,
    TILES = (BJ_GRADIENT_ROWS / ROWS) * (BJ_GRADIENT_COLUMNS / PANEL),
    PLANE = TILES * TILE /* one sum of every tile */
};

/* One register tile over the chunk: dy (rows,ROWS), x (rows,nv vectors), both packed. `sums` are
 * the tile's unfinished sum and its waiting ones, PLANE apart; c is written at the root, mr rows
 * and `width` columns of it. */
INLINE void gradient_tile(const gradient_chunk *g, const bj_real *restrict dy,
                          const bj_real *restrict x, bj_real *sums, bj_real *c, size_t ldc, int mr,
                          int width, int nv) {
    vec waiting[BJ_SHARD_LEVELS][ROWS][WIDTH];
    vec acc[ROWS][WIDTH] = {{{0}}};
    for (int s = 0; s < g->shards; s++) {
        UNROLL for (int i = 0; i < ROWS; i++) {
            UNROLL for (int j = 0; j < nv; j++) {
                acc[i][j] = g->resume ? load(sums + i * PANEL + j * LANES) : (vec){0};
            }
        }
        for (int row = g->shard_rows[s]; row > 0; row--, dy += ROWS, x += nv * LANES) {
            vec b[WIDTH];
            UNROLL for (int j = 0; j < nv; j++) b[j] = load(x + j * LANES);
            UNROLL for (int i = 0; i < ROWS; i++) {
                const vec y = splat(dy[i]);
                UNROLL for (int j = 0; j < nv; j++) acc[i][j] += y * b[j];
            }
        }
        int l = 0;
        for (; s >> l & 1; l++) {
            UNROLL for (int i = 0; i < ROWS; i++) {
                UNROLL for (int j = 0; j < nv; j++) acc[i][j] = waiting[l][i][j] + acc[i][j];
            }
        }
        if (s + 1 < g->shards) {
            UNROLL for (int i = 0; i < ROWS; i++) {
                UNROLL for (int j = 0; j < nv; j++) waiting[l][i][j] = acc[i][j];
            }
        }
    }
    int l = 0;
    if (g->finish) {
        for (; g->index >> l & 1; l++) {
            const bj_real *level = sums + (size_t)(l + 1) * PLANE;
            UNROLL for (int i = 0; i < ROWS; i++) {
                UNROLL for (int j = 0; j < nv; j++) {
                    acc[i][j] = load(level + i * PANEL + j * LANES) + acc[i][j];
                }
            }
        }
        if (l + g->height == BJ_SHARD_LEVELS - 1) { /* the root */
            UNROLL for (int i = 0; i < ROWS; i++) {
                UNROLL for (int j = 0; j < nv; j++) {
                    if (i < mr) store_n(c + (size_t)i * ldc + j * LANES, acc[i][j], width - j * LANES);
                }
            }
            return;
        }
    }
    bj_real *to = sums + (g->finish ? (size_t)(l + 1) * PLANE : 0);
    UNROLL for (int i = 0; i < ROWS; i++) {
        UNROLL for (int j = 0; j < nv; j++) store(to + i * PANEL + j * LANES, acc[i][j]);
    }
}

/* All tiles of c for one chunk. */
static void gradient_of_chunk(const gradient_chunk *g, const bj_real *dy, const bj_real *x,
                              bj_real *sums, bj_real *c, size_t ldc, int M, int N) {
    for (int n = 0; n < N; n += PANEL) {
        const int width = N - n < PANEL ? N - n : PANEL;
        for (int m = 0; m < M; m += ROWS, sums += TILE) {
            const bj_real *dy_m = dy + (size_t)m * g->rows;
            bj_real *c_mn = c + (size_t)m * ldc + n;
            const int mr = M - m < ROWS ? M - m : ROWS;
            if (width > 2 * LANES) gradient_tile(g, dy_m, x, sums, c_mn, ldc, mr, width, 3);
            else if (width > LANES) gradient_tile(g, dy_m, x, sums, c_mn, ldc, mr, width, 2);
            else gradient_tile(g, dy_m, x, sums, c_mn, ldc, mr, width, 1);
        }
        x += (size_t)round_up(width) * g->rows;
    }
}

/* Rows `row` .. + count of a matrix into strips of `strip` columns that are `total` rows long, the
 * rows landing at position `at`. The last strip is padded to a multiple of `unit` with zeros. A few
 * rows are read side by side, each as a stream, with the next ones on their way. */
INLINE void pack_strips(bj_real *packed, const bj_real *from, size_t ld, size_t row, int count,
                        int at, int total, int columns, int strip, int unit) {
    enum { SIDE = 4, LINE = 64 / sizeof(bj_real) };
    for (int r = 0; r < count; r += SIDE) {
        const int rows = count - r < SIDE ? count - r : SIDE;
        const bj_real *source = from + (row + (size_t)r) * ld;
        bj_real *strips = packed;
        for (int n = 0; n < columns; n += strip) {
            const int width = columns - n < strip ? columns - n : strip;
            const int padded = (width + unit - 1) / unit * unit;
            bj_real *to = strips + (size_t)(at + r) * padded;
            for (int i = 0; i < rows; i++, to += padded) {
                const bj_real *line = source + (size_t)i * ld + n;
                if (n / LINE != (n + strip) / LINE) __builtin_prefetch(line + SIDE * ld + LINE);
                if (width == strip) memcpy(to, line, (size_t)strip * sizeof *to);
                else
                    for (int j = 0; j < padded; j++) to[j] = j < width ? line[j] : 0;
            }
            strips += (size_t)padded * total;
        }
    }
}

static int rows_of_shard(const bj_rows *rows, int shard) {
    int n = 0;
    for (int i = 0; i < rows->segments; i++) n += rows->count[shard * rows->segments + i];
    return n;
}

/* As many shards as fit a chunk wherever in the batch they are: 1, 2, 4, .. BJ_SHARDS. */
static int shards_of_chunk(const bj_rows *rows) {
    int most = 0;
    for (int s = 0; s < BJ_SHARDS; s++) {
        const int n = rows_of_shard(rows, s);
        most = n > most ? n : most;
    }
    int shards = 1;
    while (2 * shards <= BJ_SHARDS && 2 * shards * most <= CHUNK) shards *= 2;
    return shards;
}

static void gradient(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                     size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch) {
    bj_real *packed_x = scratch + (size_t)(BJ_SHARD_LEVELS + 1) * PLANE;
    bj_real *packed_dy = packed_x + CHUNK * BJ_GRADIENT_COLUMNS;
    gradient_chunk g = {.shards = shards_of_chunk(rows)};
    while (1 << g.height < g.shards) g.height++;
    int shard = 0, segment = 0, done = 0; /* done: rows of the segment already taken */
    while (shard < BJ_SHARDS) {
        int left = -done; /* rows of the shards of this chunk that are still to come */
        for (int i = shard * rows->segments + segment; i < (shard + g.shards) * rows->segments; i++)
            left += rows->count[i];
        g.index = shard / g.shards;
        g.rows = left < CHUNK ? left : CHUNK;
        g.finish = left <= CHUNK;
        int at = 0;
        for (int s = 0; s < g.shards; s++) {
            const int before = at;
            while (segment < rows->segments && (at < g.rows || g.finish)) {
                const int i = shard * rows->segments + segment;
                const int rest = rows->count[i] - done;
                const int take = rest < g.rows - at ? rest : g.rows - at;
                const size_t row = (size_t)(rows->begin[i] + done);
                pack_strips(packed_x, x, ldx, row, take, at, g.rows, N, PANEL, LANES);
                pack_strips(packed_dy, dy, lddy, row, take, at, g.rows, M, ROWS, ROWS);
                at += take;
                done += take;
                if (take < rest) break;
                segment++;
                done = 0;
            }
            g.shard_rows[s] = at - before;
            if (segment == rows->segments && g.finish) shard++, segment = 0;
        }
        gradient_of_chunk(&g, packed_dy, packed_x, scratch, c, ldc, M, N);
        g.resume = !g.finish;
    }
}

static void column_sum(bj_real *sum, const bj_real *dy, size_t lddy, const bj_rows *rows, int N) {
    bj_real level[BJ_SHARD_LEVELS][PANEL];
    for (int s = 0; s < BJ_SHARDS; s++) {
        bj_real acc[PANEL] = {0};
        for (int i = 0; i < rows->segments; i++) {
            const bj_real *row = dy + (size_t)rows->begin[s * rows->segments + i] * lddy;
            for (int r = rows->count[s * rows->segments + i]; r > 0; r--, row += lddy)
                for (int j = 0; j < N; j++) acc[j] += row[j];
        }
        int l = 0;
        for (; s >> l & 1; l++)
            for (int j = 0; j < N; j++) acc[j] = level[l][j] + acc[j];
        memcpy(level[l], acc, (size_t)N * sizeof *acc);
    }
    memcpy(sum, level[BJ_SHARD_LEVELS - 1], (size_t)N * sizeof *sum);
}

/* ------------------------------------------------------------------------------- activations */

/* r = sigmoid(a), z = sigmoid(b); tanh. In float they work on e^-|x|, which cannot overflow. */
#ifdef BJ_DOUBLE
INLINE void sigmoid_two(vec *r, vec *z, vec a, vec b) {
    UNROLL for (int i = 0; i < LANES; i++) {
        (*r)[i] = 1 / (1 + exp(-a[i]));
        (*z)[i] = 1 / (1 + exp(-b[i]));
    }
}
INLINE vec tanh_vec(vec x) {
    UNROLL for (int i = 0; i < LANES; i++) x[i] = tanh(x[i]);
    return x;
}
#else
INLINE vec magnitude(vec x) { return (vec)((ivec)x & 0x7fffffff); }

/* e^x = scale * (1 + rest) for x <= 0, scale a power of two; relative error below 2e-7 down to
 * e^-87, where it stays. NaN passes. */
INLINE void exp_parts(vec *scale, vec *rest, vec x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = BJ_BODY_MAX(splat(-87.0f), x);
    const vec shifted = x * 1.44269504088896341f + magic;
    const vec n = shifted - magic;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    *rest = p * (r * r) + r;
    /* the low bits of `shifted` hold n; 1.0f is 127 << 23 */
    *scale = (vec)(((ivec)shifted << 23) + 0x3f800000);
}

/* x < 0 ? e : 1, by the sign bit */
INLINE vec negative_or_one(vec x, vec e) {
    const ivec sign = (ivec)x >> 31;
    return (vec)(((ivec)e & sign) | (0x3f800000 & ~sign));
}

/* One division for both: 1 + e^-|x| lies between 1 and 2. */
INLINE void sigmoid_two(vec *r, vec *z, vec a, vec b) {
    vec scale_a, rest_a, scale_b, rest_b;
    exp_parts(&scale_a, &rest_a, -magnitude(a));
    exp_parts(&scale_b, &rest_b, -magnitude(b));
    const vec e_a = scale_a * rest_a + scale_a, e_b = scale_b * rest_b + scale_b;
    const vec one_a = 1 + e_a, one_b = 1 + e_b, inverse = 1 / (one_a * one_b);
    *r = negative_or_one(a, e_a) * (one_b * inverse);
    *z = negative_or_one(b, e_b) * (one_a * inverse);
}

/* With m = e^-2|x| - 1, kept without cancellation, |tanh| = -m / (2 + m). */
INLINE vec tanh_vec(vec x) {
    vec scale, rest;
    exp_parts(&scale, &rest, -2 * magnitude(x));
    const vec m = scale * rest + (scale - 1), size = -m / (2 + m);
    return (vec)((ivec)size | ((ivec)x & (int32_t)0x80000000));
}
#endif

/* ------------------------------------------------------------------------------------ GRU cell */

INLINE void gru_gates_part(bj_real *at, int E, int n) {
    vec r, z;
    sigmoid_two(&r, &z, load_n(at, n), load_n(at + E, n));
    store_n(at, r, n);
    store_n(at + E, z, n);
}

INLINE void gru_state_part(bj_real *at, bj_real *h_out, const bj_real *h, int E, int n) {
    const vec r = load_n(at, n), z = load_n(at + E, n);
    const vec c = tanh_vec(load_n(at + 3 * E, n) + r * load_n(at + 2 * E, n));
    /* c + z (h - c) contracts in one way only: gru_row has the same bits */
    store_n(h_out, c + z * (load_n(h, n) - c), n);
    store_n(at + 3 * E, c, n);
}

/* Two passes over a row: half the chain of dependent operations in each, so that more of them
 * overlap. */
static void gru_cell(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *h,
                     size_t ldh, int M, int E) {
    for (int m = 0; m < M; m++, gates += ldg, h_out += ldo, h += ldh) {
        int e = 0;
        for (; e + LANES <= E; e += LANES) gru_gates_part(gates + e, E, LANES);
        if (e < E) gru_gates_part(gates + e, E, E - e);
        for (e = 0; e + LANES <= E; e += LANES)
            gru_state_part(gates + e, h_out + e, h + e, E, LANES);
        if (e < E) gru_state_part(gates + e, h_out + e, h + e, E, E - e);
    }
}

INLINE void gru_cell_backward_part(bj_real *at, bj_real *dh, const bj_real *h, int E, int n) {
    const vec r = load_n(at, n), z = load_n(at + E, n);
    const vec hn = load_n(at + 2 * E, n), c = load_n(at + 3 * E, n), d = load_n(dh, n);
    /* forward: h_out = c + z (h - c) */
    const vec dz = d * (load_n(h, n) - c) * z * (1 - z);
    /* forward: c = tanh(in + r hn) */
    const vec din = d * (1 - z) * (1 - c * c);
    store_n(at, din * hn * r * (1 - r), n);
    store_n(at + E, dz, n);
    store_n(at + 2 * E, din * r, n);
    store_n(at + 3 * E, din, n);
    store_n(dh, d * z, n);
}

static void gru_cell_backward(bj_real *gates, size_t ldg, bj_real *dh, size_t lddh,
                              const bj_real *h, size_t ldh, int M, int E) {
    for (int m = 0; m < M; m++, gates += ldg, dh += lddh, h += ldh) {
        int e = 0;
        for (; e + LANES <= E; e += LANES)
            gru_cell_backward_part(gates + e, dh + e, h + e, E, LANES);
        if (e < E) gru_cell_backward_part(gates + e, dh + e, h + e, E, E - e);
    }
}

/* ------------------------------------------------------------------------------ 16-bit storage */

/* Two numbers of a pair lie side by side, so that one shift and one mask widen a vector of pairs. */
#ifdef BJ_DOUBLE
INLINE void widen_pairs(vec *first, vec *second, const uint16_t *p) {
    UNROLL for (int i = 0; i < 2 * LANES; i++) {
        const uint32_t bits = (uint32_t)p[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (i % 2) (*second)[i / 2] = value;
        else (*first)[i / 2] = value;
    }
}
#else
typedef uint32_t word_u __attribute__((vector_size(BJ_BODY_BYTES), aligned(2), may_alias));
INLINE void widen_pairs(vec *first, vec *second, const uint16_t *p) {
    const word_u both = *(const word_u *)p;
    *first = (vec)(both << 16);
    *second = (vec)(both & 0xffff0000u);
}
#endif

static void narrow(uint16_t *half, bj_real *full, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float value = (float)full[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits += 0x7fff + (bits >> 16 & 1); /* finite weights: no NaN to keep */
        if (half) half[i] = (uint16_t)(bits >> 16);
        bits &= 0xffff0000u;
        float rounded;
        memcpy(&rounded, &bits, sizeof rounded);
        full[i] = rounded;
    }
}

/* Panels as in full precision, but with rows k and k + 1 of a panel paired; an odd K is padded. */
static size_t half_size(int N, int K) { return (size_t)round_up(N) * (size_t)((K + 1) / 2 * 2); }

static void narrow_panels(uint16_t *half, bj_real *packed, int N, int K) {
    uint16_t rounded[PANEL];
    for (int n = 0; n < N; n += PANEL) {
        const int width = round_up(N - n < PANEL ? N - n : PANEL);
        for (int k = 0; k < K; k++, packed += width) {
            narrow(rounded, packed, (size_t)width);
            for (int j = 0; j < width; j++) half[(k / 2 * width + j) * 2 + k % 2] = rounded[j];
        }
        for (int j = 0; j < width && K % 2; j++) half[(K / 2 * width + j) * 2 + 1] = 0;
        half += (size_t)width * (size_t)((K + 1) / 2 * 2);
    }
}

/* One row times `panels` whole panels at once; step is the distance of panels. */
INLINE void row_of_half_panels(const product *p, const uint16_t *panel, size_t step, int K,
                               int panels) {
    vec acc[2][WIDTH];
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            const int at = i * PANEL + j * LANES;
            acc[i][j] = (p->flags & BJ_GEMM_ADD) ? load(p->c + at)
                        : p->bias                ? load(p->bias + at)
                                                 : (vec){0};
        }
    }
    for (int k = 0; k < K; k += 2, panel += 2 * PANEL) {
        const vec x = splat(p->a[k]), y = k + 1 < K ? splat(p->a[k + 1]) : (vec){0};
        UNROLL for (int i = 0; i < panels; i++) {
            UNROLL for (int j = 0; j < WIDTH; j++) {
                vec first, second;
                widen_pairs(&first, &second, panel + (size_t)i * step + 2 * j * LANES);
                acc[i][j] += x * first;
                acc[i][j] += y * second;
            }
        }
    }
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            vec v = acc[i][j];
            if (p->flags & BJ_GEMM_RELU) v = where_positive(v, v);
            store(p->c + i * PANEL + j * LANES, v);
        }
    }
}

static void gemm_half(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const uint16_t *half,
                      const bj_real *bias, int M, int N, int K, int flags, int n0, int n1) {
    const size_t even = (size_t)((K + 1) / 2 * 2);
    for (int n = n0; n < n1;) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        const uint16_t *panel = half + (size_t)n * even;
        product p = {c + n, ldc, a, lda, bias ? bias + n : NULL, NULL, 0, 1, 1, flags};
        if (M == 1 && n1 - n >= 2 * PANEL) {
            row_of_half_panels(&p, panel, even * PANEL, K, 2);
            n += 2 * PANEL;
            continue;
        }
        if (M == 1 && width == PANEL) {
            row_of_half_panels(&p, panel, 0, K, 1);
            n += PANEL;
            continue;
        }
        bj_real wide[(BLOCK_K + 1) * PANEL];
        for (int k = 0; k < K; k += BLOCK_K) {
            const int depth = K - k < BLOCK_K ? K - k : BLOCK_K;
            const uint16_t *from = panel + (size_t)k * padded;
            for (int i = 0; i < (depth + 1) / 2; i++) {
                for (int j = 0; j < padded; j += LANES, from += 2 * LANES) {
                    vec first, second;
                    widen_pairs(&first, &second, from);
                    store(wide + (2 * i) * padded + j, first);
                    store(wide + (2 * i + 1) * padded + j, second);
                }
            }
            p.a = a + k;
            p.first = k == 0;
            p.last = k + depth == K;
            rows_of_panel(p, wide, width, M, depth);
        }
        n += PANEL;
    }
}

/* ------------------------------------------------------------------------------ GRU, one row */

/* Groups of two vectors of units. A group holds b_hn, then for every entry of the state row the
 * weights of r, z and n: the input's for n before `lead`, the state's from there on. The two
 * vectors of a pair are stored interleaved, which splits a 16-bit pair by one shift and one mask;
 * in registers the first vector of a group holds its even units, the second its odd ones. */
enum { UNITS = 2 * LANES };

static size_t gru_row_size(int lead, int E) {
    return (size_t)((E + UNITS - 1) / UNITS) * UNITS * (size_t)(1 + 3 * (lead + E));
}

static void gru_row_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                         const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    for (int u = 0; u < E; u += UNITS) {
        for (int k = -1; k < lead + E; k++) {
            for (int gate = k < 0 ? 2 : 0; gate < 3; gate++, packed += UNITS) {
                for (int j = 0; j < UNITS; j++) {
                    const int o = gate * E + u + j;
                    if (u + j >= E) packed[j] = 0;
                    else if (k < 0) packed[j] = b_hh[o];
                    else if (k < I) packed[j] = w_ih[o * I + k];
                    else if (k == I) packed[j] = gate < 2 ? b_ih[o] + b_hh[o] : b_ih[o];
                    else packed[j] = k < lead ? 0 : w_hh[(size_t)o * E + (size_t)(k - lead)];
                }
            }
        }
    }
}

/* Full precision takes the units as they lie; 16-bit splits them into even and odd. */
INLINE void unit_pair(vec pair[2], const bj_real *packed, const uint16_t *half, size_t at,
                      int is_half) {
    if (is_half) widen_pairs(&pair[0], &pair[1], half + at);
    else pair[0] = load(packed + at), pair[1] = load(packed + at + LANES);
}

INLINE void add_unit_pair(vec sum[2], vec x, const bj_real *packed, const uint16_t *half, size_t at,
                          int is_half) {
    vec w[2];
    unit_pair(w, packed, half, at, is_half);
    sum[0] += x * w[0];
    sum[1] += x * w[1];
}

INLINE void unit_store(bj_real *to, const vec pair[2], int n, int is_half) {
    bj_real unit[UNITS];
    UNROLL for (int i = 0; i < LANES; i++) {
        unit[is_half ? 2 * i : i] = pair[0][i];
        unit[is_half ? 2 * i + 1 : LANES + i] = pair[1][i];
    }
    memcpy(to, unit, (size_t)(n < UNITS ? n : UNITS) * sizeof *to);
}

INLINE void unit_load(vec pair[2], const bj_real *from, int n, int is_half) {
    bj_real unit[UNITS] = {0};
    memcpy(unit, from, (size_t)(n < UNITS ? n : UNITS) * sizeof *from);
    UNROLL for (int i = 0; i < LANES; i++) {
        pair[0][i] = unit[is_half ? 2 * i : i];
        pair[1][i] = unit[is_half ? 2 * i + 1 : LANES + i];
    }
}

INLINE void gru_units(bj_real *h_out, const bj_real *row, const bj_real *packed,
                      const uint16_t *half, int lead, int E, int u0, int u1, int is_half) {
    const size_t group = (size_t)UNITS * (size_t)(1 + 3 * (lead + E));
    for (int u = u0; u < u1; u += UNITS) {
        size_t at = (size_t)(u / UNITS) * group;
        vec r[2] = {{0}}, z[2] = {{0}}, in[2] = {{0}}, hn[2], h[2];
        unit_pair(hn, packed, half, at, is_half);
        at += UNITS;
        for (int k = 0; k < lead; k++, at += 3 * UNITS) {
            const vec x = splat(row[k]);
            add_unit_pair(r, x, packed, half, at, is_half);
            add_unit_pair(z, x, packed, half, at + UNITS, is_half);
            add_unit_pair(in, x, packed, half, at + 2 * UNITS, is_half);
        }
        for (int k = lead; k < lead + E; k++, at += 3 * UNITS) {
            const vec x = splat(row[k]);
            add_unit_pair(r, x, packed, half, at, is_half);
            add_unit_pair(z, x, packed, half, at + UNITS, is_half);
            add_unit_pair(hn, x, packed, half, at + 2 * UNITS, is_half);
        }
        unit_load(h, row + lead + u, E - u, is_half);
        UNROLL for (int j = 0; j < 2; j++) {
            vec reset, keep;
            sigmoid_two(&reset, &keep, r[j], z[j]);
            const vec c = tanh_vec(in[j] + reset * hn[j]);
            h[j] = c + keep * (h[j] - c);
        }
        unit_store(h_out + u, h, E - u, is_half);
    }
}

static void gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed,
                    const uint16_t *half, int lead, int E, int u0, int u1) {
    if (half) gru_units(h_out, row, packed, half, lead, E, u0, u1, 1);
    else gru_units(h_out, row, packed, half, lead, E, u0, u1, 0);
}

/* ----------------------------------------------------------------------------------- attention */

INLINE bj_real lane_sum(vec v) {
    bj_real sum = 0;
    for (int i = 0; i < LANES; i++) sum += v[i];
    return sum;
}

/* sr tokens by sg heads, each a dot product of width W. */
INLINE void score_tile(bj_real *scores, int G, const bj_real *r, size_t ldr, const bj_real *a,
                       size_t lda, int W, int sr, int sg) {
    vec acc[2][4] = {{{0}}};
    int w = 0;
    for (; w + LANES <= W; w += LANES) {
        vec x[2];
        UNROLL for (int i = 0; i < sr; i++) x[i] = load(r + (size_t)i * ldr + w);
        UNROLL for (int g = 0; g < sg; g++) {
            const vec y = load(a + (size_t)g * lda + w);
            UNROLL for (int i = 0; i < sr; i++) acc[i][g] += x[i] * y;
        }
    }
    if (w < W) {
        for (int i = 0; i < sr; i++)
            for (int g = 0; g < sg; g++)
                acc[i][g] += load_part(r + (size_t)i * ldr + w, W - w) *
                             load_part(a + (size_t)g * lda + w, W - w);
    }
    UNROLL for (int i = 0; i < sr; i++) {
        UNROLL for (int g = 0; g < sg; g++) scores[i * G + g] = lane_sum(acc[i][g]);
    }
}

static void scores(bj_real *out, const bj_real *r, size_t ldr, const bj_real *a, size_t lda, int S,
                   int G, int W) {
    int s = 0;
    for (; s + 2 <= S; s += 2, out += 2 * G, r += 2 * ldr) {
        int g = 0;
        for (; g + 4 <= G; g += 4) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 2, 4);
        for (; g < G; g++) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 2, 1);
    }
    if (s < S) {
        int g = 0;
        for (; g + 4 <= G; g += 4) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 1, 4);
        for (; g < G; g++) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 1, 1);
    }
}

INLINE void pool_tile(bj_real *pooled, size_t ldp, const bj_real *weight, int G, const bj_real *r,
                      size_t ldr, int S, int width, int sg, int nv) {
    vec acc[4][WIDTH] = {{{0}}};
    for (int s = 0; s < S; s++, weight += G, r += ldr) {
        vec x[WIDTH];
        UNROLL for (int j = 0; j < nv; j++) x[j] = load_n(r + j * LANES, width - j * LANES);
        UNROLL for (int g = 0; g < sg; g++) {
            const vec y = splat(weight[g]);
            UNROLL for (int j = 0; j < nv; j++) acc[g][j] += y * x[j];
        }
    }
    UNROLL for (int g = 0; g < sg; g++) {
        UNROLL for (int j = 0; j < nv; j++) {
            store_n(pooled + (size_t)g * ldp + j * LANES, acc[g][j], width - j * LANES);
        }
    }
}

static void pool(bj_real *pooled, size_t ldp, const bj_real *weight, const bj_real *r, size_t ldr,
                 int S, int G, int W) {
    int w = 0;
    for (; w + PANEL <= W; w += PANEL) {
        int g = 0;
        for (; g + 4 <= G; g += 4)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, PANEL, 4, WIDTH);
        for (; g < G; g++)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, PANEL, 1, WIDTH);
    }
    for (; w < W; w += LANES)
        for (int g = 0; g < G; g++)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, W - w, 1, 1);
}

INLINE void pool_backward_tile(bj_real *dr, size_t lddr, const bj_real *alpha,
                               const bj_real *dscore, const bj_real *dpooled, size_t ldp,
                               const bj_real *a, size_t lda, const bj_real *r, size_t ldr, int G,
                               int width, int sr, int nv) {
    vec acc[4][2] = {{{0}}};
    for (int g = 0; g < G; g++, dpooled += ldp, a += lda) {
        UNROLL for (int j = 0; j < nv; j++) {
            const vec x = load_n(dpooled + j * LANES, width - j * LANES);
            const vec y = load_n(a + j * LANES, width - j * LANES);
            UNROLL for (int i = 0; i < sr; i++) {
                acc[i][j] += alpha[i * G + g] * x;
                acc[i][j] += dscore[i * G + g] * y;
            }
        }
    }
    UNROLL for (int i = 0; i < sr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int left = width - j * LANES;
            const vec gate = load_n(r + (size_t)i * ldr + j * LANES, left);
            store_n(dr + (size_t)i * lddr + j * LANES, where_positive(gate, acc[i][j]), left);
        }
    }
}

static void pool_backward(bj_real *dr, size_t lddr, const bj_real *alpha, const bj_real *dscore,
                          const bj_real *dpooled, size_t ldp, const bj_real *a, size_t lda,
                          const bj_real *r, size_t ldr, int S, int G, int W) {
    for (int s = 0, step; s < S; s += step) {
        step = S - s >= 4 ? 4 : 1;
        for (int w = 0, columns; w < W; w += columns) {
            columns = W - w >= 2 * LANES ? 2 * LANES : LANES;
#define CALL(sr, nv)                                                                               \
    pool_backward_tile(dr + w, lddr, alpha, dscore, dpooled + w, ldp, a + w, lda, r + w, ldr, G,   \
                       W - w < columns ? W - w : columns, sr, nv)
            if (step == 4 && columns == 2 * LANES) CALL(4, 2);
            else if (step == 4) CALL(4, 1);
            else if (columns == 2 * LANES) CALL(1, 2);
            else CALL(1, 1);
#undef CALL
        }
        dr += (size_t)step * lddr;
        r += (size_t)step * ldr;
        alpha += step * G;
        dscore += step * G;
    }
}

/* ----------------------------------------------------------------------------------- optimizer */

static double sum_squares(const bj_real *x, size_t n) {
    double lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += (double)x[i + j] * x[i + j];
    for (; i < n; i++) lane[0] += (double)x[i] * x[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#ifdef BJ_DOUBLE
#define SQRT sqrt
#else
#define SQRT sqrtf
#endif

static void adamw(bj_real *restrict w, bj_real *restrict m, bj_real *restrict v,
                  const bj_real *restrict g, size_t n, const bj_adamw_coefficients *k) {
    const bj_adamw_coefficients q = *k;
    for (size_t i = 0; i < n; i++) {
        const bj_real grad = g[i] * q.grad_scale;
        m[i] += (grad - m[i]) * (1 - q.beta1);
        v[i] = v[i] * q.beta2 + grad * grad * (1 - q.beta2);
        w[i] = w[i] * q.decay - q.step_size * m[i] / (SQRT(v[i]) * q.inv_sqrt_correction + q.eps);
    }
}

static void ema(bj_real *restrict target, const bj_real *restrict w, size_t n, bj_real decay) {
    for (size_t i = 0; i < n; i++) target[i] = target[i] * decay + w[i] * (1 - decay);
}

const bj_kernels BJ_BODY_TABLE = {
    .isa = BJ_BODY_ISA,
    .panel = PANEL,
    .packed_size = packed_size,
    .pack_kn = pack_kn,
    .pack_nk = pack_nk,
    .gemm = gemm,
    .gemm_columns = gemm_columns,
    .gradient = gradient,
    .column_sum = column_sum,
    .gru_cell = gru_cell,
    .gru_cell_backward = gru_cell_backward,
    .units = UNITS,
    .gru_row_size = gru_row_size,
    .gru_row_pack = gru_row_pack,
    .gru_row = gru_row,
    .narrow = narrow,
    .half_size = half_size,
    .narrow_panels = narrow_panels,
    .gemm_half = gemm_half,
    .scores = scores,
    .pool = pool,
    .pool_backward = pool_backward,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .ema = ema,
};
