/* body_gradient.h - weight and bias gradients: sums over the rows of a batch, shard by shard. */
#ifndef BJ_KERNELS_BODY_GRADIENT_H
#define BJ_KERNELS_BODY_GRADIENT_H

#include "kernels/body_gemm.h"

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

#endif
