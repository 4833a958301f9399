/* body_gradient.h - weight and bias gradients, summed over the batch rows shard by shard. */
#ifndef BJ_KERNELS_BODY_GRADIENT_H
#define BJ_KERNELS_BODY_GRADIENT_H

#include "kernels/body_gemm.h"

/* A chunk of rows. Chunks are small enough that dy and x stay in the L2 cache while all tiles of c
 * use them. A chunk contains several complete shards if the shards are small, otherwise a part of
 * one shard. dy is copied into strips as wide as a tile. x is read in place and copied only if it
 * is narrower than the vectors that read it. The rows of the next chunk are prefetched meanwhile.
 * The shard sums are added in a binary tree: a sum is added to the waiting sums of as many levels
 * as its index has trailing ones. Inside a chunk the tree stays in the L1 cache. */
typedef struct gradient_chunk {
    int run_at[CHUNK], run_rows[CHUNK]; /* runs of consecutive rows, in order */
    int shard_runs[BJ_SHARDS];          /* number of runs of every shard */
    int shards;                         /* number of shards, a power of two */
    int index, height;                  /* index of the chunk; log2(shards) */
    int root;                           /* height of the tree over all used shards */
    int most;                           /* max rows per chunk */
    int runs, rows;
    int resume, finish;                 /* resume: 1 if this is not the first part of a shard;
                                           finish: 1 if it is the last part */
    int last;                           /* 1: the last chunk, which completes the result */
} gradient_chunk;

/* The two operands of a gradient product. */
typedef struct gradient_sides {
    const bj_real *dy, *x;
    size_t lddy, ldx;
} gradient_sides;

/* Operands in the layout in which the tiles read them. In mixed precision, a row of words contains
 * two rows of the batch. */
typedef struct gradient_strips {
    const bj_real *dy, *x;
    size_t dy_step; /* distance between strips of dy */
    size_t x_step;  /* distance between strips of x, or 0 if a row of x is contiguous */
    size_t ldx;
} gradient_strips;

enum {
    ACROSS = SPAN * LANES, /* columns per tile */
    TILE = STRIP * ACROSS,
    TILES = (BJ_GRADIENT_ROWS + STRIP - 1) / STRIP * ((BJ_GRADIENT_COLUMNS + ACROSS - 1) / ACROSS),
    PLANE = TILES * TILE /* one partial sum of every tile */
};

enum { LINE = 64 / sizeof(bj_real) }; /* elements per cache line */

/* Adds the product of one row of dy and nv vectors of a row of x to acc. */
INLINE void gradient_row(vec acc[STRIP][SPAN], const bj_real *dy, const bj_real *x, int nv,
                         int part, int mixed) {
    vec b[SPAN];
    UNROLL for (int j = 0; j < nv; j++) b[j] = operand(load(x + j * LANES), part, mixed);
    UNROLL for (int i = 0; i < STRIP; i++) {
        const vec y = operand(splat(dy[i]), part, mixed);
        UNROLL for (int j = 0; j < nv; j++) acc[i][j] = add_product(acc[i][j], y, b[j], mixed);
    }
}

/* Computes one register tile over the chunk: a strip of dy times nv vectors of every row of x.
 * `sums` contains the unfinished sum of the tile and the partial sums that wait to be combined,
 * PLANE elements apart. The last chunk writes mr rows and `width` columns of c. */
INLINE void gradient_tile(const gradient_chunk *g, const gradient_strips *from, bj_real *sums,
                          bj_real *c, size_t ldc, int mr, int width, int nv, int mixed) {
    vec waiting[BJ_SHARD_LEVELS][STRIP][SPAN];
    vec acc[STRIP][SPAN] = {{{0}}};
    const bj_real *dy = from->dy;
    const size_t ldx = from->ldx;
    UNROLL for (int i = 0; i < STRIP; i++) { /* c is not in the cache yet */
        if (!g->last || i >= mr) continue;
        __builtin_prefetch(c + (size_t)i * ldc, 1);
        __builtin_prefetch(c + (size_t)i * ldc + nv * LANES - 1, 1);
    }
    for (int s = 0, run = 0; s < g->shards; s++) {
        UNROLL for (int i = 0; i < STRIP; i++) {
            UNROLL for (int j = 0; j < nv; j++) {
                acc[i][j] = g->resume ? load(sums + i * ACROSS + j * LANES) : (vec){0};
            }
        }
        for (const int end = run + g->shard_runs[s]; run < end; run++) {
            const bj_real *x = from->x + (size_t)g->run_at[run] * ldx;
            for (int row = g->run_rows[run]; row > 0; row--, dy += STRIP, x += ldx) {
                gradient_row(acc, dy, x, nv, 0, mixed);
                if (mixed && PARTS == 2) gradient_row(acc, dy, x, nv, 1, mixed);
            }
        }
        int l = 0;
        for (; s >> l & 1; l++) {
            UNROLL for (int i = 0; i < STRIP; i++) {
                UNROLL for (int j = 0; j < nv; j++) acc[i][j] = waiting[l][i][j] + acc[i][j];
            }
        }
        if (s + 1 < g->shards) {
            UNROLL for (int i = 0; i < STRIP; i++) {
                UNROLL for (int j = 0; j < nv; j++) waiting[l][i][j] = acc[i][j];
            }
        }
    }
    int l = 0;
    if (g->finish) {
        for (; g->index >> l & 1; l++) {
            const bj_real *level = sums + (size_t)(l + 1) * PLANE;
            UNROLL for (int i = 0; i < STRIP; i++) {
                UNROLL for (int j = 0; j < nv; j++) {
                    acc[i][j] = load(level + i * ACROSS + j * LANES) + acc[i][j];
                }
            }
        }
        if (g->last) {
            UNROLL for (int i = 0; i < STRIP; i++) {
                UNROLL for (int j = 0; j < nv; j++) {
                    if (i >= mr) continue;
                    bj_real *out = c + (size_t)i * ldc + j * LANES;
                    if (j + 1 < nv) store(out, acc[i][j]);
                    else store_n(out, acc[i][j], width - (nv - 1) * LANES);
                }
            }
            return;
        }
    }
    bj_real *to = sums + (g->finish ? (size_t)(l + 1) * PLANE : 0);
    UNROLL for (int i = 0; i < STRIP; i++) {
        UNROLL for (int j = 0; j < nv; j++) store(to + i * ACROSS + j * LANES, acc[i][j]);
    }
}

/* Iterates over the rows of the next chunk to prefetch them into the L2 cache, a few at a time. */
typedef struct gradient_fetch {
    const gradient_chunk *chunk;
    gradient_sides from;
    int M, N, run, row;
} gradient_fetch;

INLINE void fetch_row(gradient_fetch *f) {
    while (f->run < f->chunk->runs && f->row == f->chunk->run_rows[f->run]) f->run++, f->row = 0;
    if (f->run == f->chunk->runs) return;
    const size_t at = (size_t)(f->chunk->run_at[f->run] + f->row++);
    const bj_real *dy = f->from.dy + at * f->from.lddy, *x = f->from.x + at * f->from.ldx;
    for (int n = 0; n < f->N; n += LINE) __builtin_prefetch(x + n, 0, 2);
    for (int m = 0; m < f->M; m += LINE) __builtin_prefetch(dy + m, 0, 2);
}

/* Computes all tiles of c for one chunk, with packed dy and optionally packed x. If x is not
 * packed, the last vectors of a row start earlier, so that they do not extend past its end. Columns
 * that are computed twice get identical results. */
INLINE void gradient_of_chunk(const gradient_chunk *g, gradient_strips from, int packed,
                              gradient_fetch *next, bj_real *sums, bj_real *c, size_t ldc, int M,
                              int N, int mixed) {
    const int tiles = (M + STRIP - 1) / STRIP * ((N + ACROSS - 1) / ACROSS);
    int due = 0; /* number of rows to prefetch, in units of 1 / tiles */
    for (int n0 = 0; n0 < N; n0 += ACROSS) {
        const int nv = N - n0 > LANES ? 2 : 1;
        const int n = packed || n0 + nv * LANES <= N ? n0 : N - nv * LANES;
        const int width = N - n;
        gradient_strips at = from;
        at.x += from.x_step ? (size_t)(n0 / ACROSS) * from.x_step : (size_t)n;
        for (int m = 0; m < M; m += STRIP, sums += TILE) {
            bj_real *c_mn = c + (size_t)m * ldc + n;
            const int mr = M - m < STRIP ? M - m : STRIP;
            at.dy = from.dy + (size_t)(m / STRIP) * from.dy_step;
            for (due += next->chunk->rows; due >= tiles; due -= tiles) fetch_row(next);
            if (nv == 2) gradient_tile(g, &at, sums, c_mn, ldc, mr, width, 2, mixed);
            else gradient_tile(g, &at, sums, c_mn, ldc, mr, width, 1, mixed);
        }
    }
}

/* Copies `count` rows of a matrix, starting at `row`, into strips of `strip` columns and `total`
 * rows. The rows are stored from row `at` of the strips. The last strip is padded with zeros to a
 * multiple of `unit` columns. A few rows are read in parallel, and the next ones are prefetched. */
INLINE void pack_strips(bj_real *packed, const bj_real *from, size_t ld, size_t row, int count,
                        int at, int total, int columns, int strip, int unit) {
    enum { SIDE = 4 };
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

/* Computes the height of the tree and the number of shards per chunk. That number is the largest
 * power of two for which every group of shards fits in a chunk. Trailing empty shards are skipped,
 * because they would only add zeros. */
static void begin_chunks(gradient_chunk *g, const bj_rows *rows) {
    int largest = 0, used = 1, all = 0;
    for (int s = 0; s < BJ_SHARDS; s++) {
        const int n = rows_of_shard(rows, s);
        largest = n > largest ? n : largest;
        all += n;
        if (n > 0) used = s + 1;
    }
    g->most = all <= CHUNK ? CHUNK : CHUNK / 2; /* use half of the cache, because the next chunk
                                                   must also fit */
    g->root = g->height = 0;
    while (1 << g->root < used) g->root++;
    while (g->height < g->root && (2 << g->height) * largest <= g->most) g->height++;
    g->shards = 1 << g->height;
    g->resume = 0;
}

/* Start of the next chunk in the batch. */
typedef struct gradient_cursor {
    int shard, segment, done; /* done: rows of the segment already used */
} gradient_cursor;

/* Fills g, whose sizes are already set, with the rows at the cursor and advances the cursor. */
static void next_chunk(gradient_chunk *g, gradient_cursor *at, const bj_rows *rows) {
    int left = -at->done; /* remaining rows of this chunk's shards */
    for (int i = at->shard * rows->segments + at->segment;
         i < (at->shard + g->shards) * rows->segments; i++)
        left += rows->count[i];
    /* split a shard that is too large into equal parts */
    const int parts = (left + g->most - 1) / g->most;
    const int most = parts > 1 ? (left - 1) / parts + 1 : g->most;
    g->index = at->shard / g->shards;
    g->finish = parts <= 1;
    g->last = g->finish && g->index + 1 == 1 << (g->root - g->height);
    g->rows = g->runs = 0;
    for (int s = 0; s < g->shards; s++) {
        const int before = g->runs;
        while (at->segment < rows->segments && (g->rows < most || g->finish)) {
            const int i = at->shard * rows->segments + at->segment;
            const int rest = rows->count[i] - at->done;
            const int take = rest < most - g->rows ? rest : most - g->rows;
            if (take > 0) {
                g->run_at[g->runs] = rows->begin[i] + at->done;
                g->run_rows[g->runs++] = take;
            }
            g->rows += take;
            at->done += take;
            if (take < rest) break;
            at->segment++;
            at->done = 0;
        }
        g->shard_runs[s] = g->runs - before;
        if (at->segment == rows->segments && g->finish) at->shard++, at->segment = 0;
    }
}

/* Copies the rows of dy into strips, and also those of x if `packed` is set. In that case the runs
 * of the chunk are replaced with those of the copy, one per shard. */
static gradient_strips pack_chunk(gradient_chunk *g, gradient_sides from, int packed,
                                  bj_real *packed_dy, bj_real *packed_x, int M, int N) {
    int at = 0;
    for (int s = 0, run = 0, runs = 0; s < g->shards; s++) {
        const int before = at;
        for (const int end = run + g->shard_runs[s]; run < end; run++) {
            const size_t row = (size_t)g->run_at[run];
            const int count = g->run_rows[run];
            if (packed)
                pack_strips(packed_x, from.x, from.ldx, row, count, at, g->rows, N, ACROSS, LANES);
            pack_strips(packed_dy, from.dy, from.lddy, row, count, at, g->rows, M, STRIP, STRIP);
            at += count;
        }
        /* A run is always read before it is overwritten, because there are at least as many runs as
         * shards with rows. */
        if (!packed) continue;
        g->shard_runs[s] = at > before;
        if (at > before) g->run_at[runs] = before, g->run_rows[runs++] = at - before;
        g->runs = runs;
    }
    return (gradient_strips){packed_dy, packed ? packed_x : from.x, (size_t)g->rows * STRIP, 0,
                             packed ? (size_t)round_up(N) : from.ldx};
}

enum { MOST_PAIRS = CHUNK / 2 + BJ_SHARDS + 1 }; /* every shard may end with half a pair */
_Static_assert((BJ_SHARD_LEVELS + 1) * PLANE +
                       MOST_PAIRS * (BJ_GRADIENT_ROWS + BJ_GRADIENT_COLUMNS) + LANES <=
                   BJ_GRADIENT_SCRATCH,
               "the scratch memory must have room for the rounded rows");

/* Rounds two rows of a matrix and stores their words as row `at` of every strip. `second` is NULL
 * if a shard has an odd number of rows. The last vector of a strip may overlap the next row, which
 * is written later. */
INLINE void pack_pair(bj_real *strips, size_t step, int strip, int at, const bj_real *first,
                      const bj_real *second, int columns) {
    const vec zero = {0};
    bj_real *to = strips + (size_t)at * (size_t)strip;
    for (int n = 0; n < columns; n += strip, to += step) {
        UNROLL for (int j = 0; j < strip; j += LANES) {
            const int left = columns - n - j;
            store(to + j, left <= 0 ? zero
                                    : pair_up(load_n(first + n + j, left),
                                              second ? load_n(second + n + j, left) : zero));
        }
    }
}

/* Rounds the rows of dy and x to words, two rows at a time. The runs of the chunk are replaced with
 * those of the copy, one per shard. */
static gradient_strips pair_chunk(gradient_chunk *g, gradient_sides from, bj_real *packed_dy,
                                  bj_real *packed_x, int M, int N) {
    const gradient_strips to = {packed_dy, packed_x, (size_t)MOST_PAIRS * STRIP,
                                (size_t)MOST_PAIRS * ACROSS, ACROSS};
    int at = 0, runs = 0;
    for (int s = 0, run = 0; s < g->shards; s++) {
        const int before = at, end = run + g->shard_runs[s];
        const bj_real *dy = NULL, *x = NULL; /* first row of an incomplete pair */
        for (; run < end; run++) {
            const bj_real *dy_row = from.dy + (size_t)g->run_at[run] * from.lddy;
            const bj_real *x_row = from.x + (size_t)g->run_at[run] * from.ldx;
            for (int r = g->run_rows[run]; r > 0; r--, dy_row += from.lddy, x_row += from.ldx) {
                if (!dy) {
                    dy = dy_row, x = x_row;
                    continue;
                }
                pack_pair(packed_dy, to.dy_step, STRIP, at, dy, dy_row, M);
                pack_pair(packed_x, to.x_step, ACROSS, at++, x, x_row, N);
                dy = NULL;
            }
        }
        if (dy) {
            pack_pair(packed_dy, to.dy_step, STRIP, at, dy, NULL, M);
            pack_pair(packed_x, to.x_step, ACROSS, at++, x, NULL, N);
        }
        g->shard_runs[s] = at > before;
        if (at > before) g->run_at[runs] = before, g->run_rows[runs++] = at - before;
    }
    g->runs = runs;
    return to;
}

INLINE void gradient_of(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                        size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch,
                        int mixed) {
    bj_real *packed_x = scratch + (size_t)(BJ_SHARD_LEVELS + 1) * PLANE;
    bj_real *packed_dy = packed_x + (mixed ? MOST_PAIRS * BJ_GRADIENT_COLUMNS : CHUNK * ACROSS);
    const gradient_sides from = {dy, x, lddy, ldx};
    /* the copy is padded to complete vectors */
    const int packed = mixed || (N < ACROSS && N % LANES != 0);
    gradient_chunk chunk[2];
    gradient_cursor at = {0, 0, 0};
    begin_chunks(&chunk[0], rows);
    chunk[1] = chunk[0];
    next_chunk(&chunk[0], &at, rows);
    for (int i = 0, more = 1; more; i ^= 1) {
        gradient_chunk *now = &chunk[i], *then = &chunk[i ^ 1];
        more = at.shard < 1 << now->root;
        if (more) next_chunk(then, &at, rows);
        else then->rows = then->runs = 0;
        then->resume = !now->finish;
        gradient_fetch next = {then, from, M, N, 0, 0};
        const gradient_strips strips =
            mixed ? pair_chunk(now, from, packed_dy, packed_x, M, N)
                  : pack_chunk(now, from, packed, packed_dy, packed_x, M, N);
        gradient_of_chunk(now, strips, packed, &next, scratch, c, ldc, M, N, mixed);
    }
}

static void gradient(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                     size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch) {
    gradient_of(c, ldc, dy, lddy, x, ldx, rows, M, N, scratch, 0);
}

#ifndef BJ_DOUBLE
static void mixed_gradient(bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, const bj_real *x,
                           size_t ldx, const bj_rows *rows, int M, int N, bj_real *scratch) {
    gradient_of(c, ldc, dy, lddy, x, ldx, rows, M, N, scratch, 1);
}
#endif

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

#endif
