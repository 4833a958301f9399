/* dataset.c - cells, episodes and edges of an OGBench dataset; see branchjepa/maze.h.
 *
 *   observations (N,n)          state; x and y first          or (N,64,64,3), an image
 *   frames       (N,64,64,3)    images in addition to states
 *   qpos, states (N,n)          source of x and y of an image
 *   terminals    (N)            not 0: last step of an episode
 *   episode      (N)            otherwise, this number changes after it
 *   step         (N)            simulator steps, if the file does not contain all of them
 *
 * Invariants
 *   1. Files are read in blocks of rows. Only the cell of each step is stored, in two bytes.
 *   2. A step outside of all cells is skipped, so an edge connects the cells before and after it.
 *   3. The last step always ends an episode.
 * Test: tests/maze/test_dataset.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/maze.h"
#include "npz/npz.h"

enum { BLOCK = 256 * 1024, MAX_STEPS = 1 << 30 };

struct bj_maze_data {
    const bj_maze *maze;
    bj_npz *npz;
    bj_npz_rows *rows; /* cursor of the observations; NULL until they are first read */
    bj_maze_data_info info;
    int16_t *cells;    /* (steps) */
    uint8_t *ends;     /* (steps) while opening */
    double episode;    /* episode number of the last step, while opening */
    int64_t *episodes; /* (episodes + 1) */
    bj_edge *edges;
    int64_t *counts;
    double *xy; /* (steps,2) for a caller that needs positions */
    void *raw;  /* (BLOCK or one row) as in the file */
    size_t room;
};

/* ---------------------------------------------------------------------------------------- blocks
 */

/* Returns the number of rows that fit in a block of about BLOCK bytes. */
static int64_t block_rows(const bj_npy *npy) {
    return npy->row_bytes && npy->row_bytes < BLOCK ? (int64_t)(BLOCK / npy->row_bytes) : 1;
}

static bj_status reserve(bj_maze_data *d, const bj_npy *npy, bj_error *err) {
    const size_t want = npy->row_bytes < BLOCK ? BLOCK : npy->row_bytes;
    unsigned char *memory = d->raw;
    if (d->room < want) {
        bj_free(d->raw);
        d->raw = NULL;
        d->room = 0;
        BJ_TRY(BJ_ALLOC(memory, want, err));
        d->raw = memory;
        d->room = want;
    }
    return BJ_OK;
}

/* Calls take(d, values, first, count) for each block of an array. values has the shape
 * (count,width). */
typedef bj_status (*take_block)(bj_maze_data *d, const double *values, int64_t first, int64_t count,
                                int64_t width, bj_error *err);

static bj_status each_block(bj_maze_data *d, const char *name, take_block take, bj_error *err) {
    bj_npz_rows *rows = NULL;
    double *values = NULL;
    bj_status status;
    BJ_TRY(bj_npz_rows_open(&rows, d->npz, name, err));
    const bj_npy *npy = &bj_npz_rows_array(rows)->npy;
    const int64_t most = block_rows(npy);
    BJ_GOTO(status, done, reserve(d, npy, err));
    BJ_GOTO(status, done, BJ_ALLOC(values, (size_t)(most * npy->width), err));
    for (int64_t at = 0; at < npy->rows;) {
        const int64_t n = npy->rows - at < most ? npy->rows - at : most;
        BJ_GOTO(status, done, bj_npz_rows_read(rows, d->raw, n, err));
        bj_npy_doubles(values, d->raw, npy->type, (size_t)(n * npy->width));
        BJ_GOTO(status, done, take(d, values, at, n, npy->width, err));
        at += n;
    }
done:
    bj_free(values);
    bj_npz_rows_close(rows);
    return status;
}

/* -------------------------------------------------------------------------------- which arrays */

static int is_float(const bj_npz_array *a) {
    return a->npy.type == BJ_NPY_F32 || a->npy.type == BJ_NPY_F64;
}

static bj_status wrong_shape(const bj_maze_data *d, const bj_npz_array *a, const char *expected,
                             bj_error *err) {
    char shape[128] = "";
    size_t used = 0;
    for (int k = 0; k < a->npy.rank && used + 1 < sizeof shape; k++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", k ? ", " : "",
                                 (long long)a->npy.shape[k]);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: array '%s' is %s (%s), expected %s", bj_npz_path(d->npz),
                   a->name, bj_npy_name(a->npy.type), shape, expected);
}

static bj_status find_observations(bj_maze_data *d, bj_error *err) {
    const char *name = "observations";
    const bj_npz_array *a = NULL;
    if (!bj_npz_find(d->npz, name) && bj_npz_find(d->npz, "frames")) name = "frames";
    BJ_TRY(bj_npz_need(&a, d->npz, name, -1, err));
    const int image = a->npy.rank == 4 && a->npy.type == BJ_NPY_U8;
    if (!image && !(a->npy.rank == 2 && is_float(a)))
        return wrong_shape(d, a, "float32 (steps, values) or uint8 (steps, height, width, colors)",
                           err);
    if (a->npy.rows < 1 || a->npy.rows > MAX_STEPS || a->npy.width < 1 ||
        a->npy.width > INT32_MAX / 8)
        return wrong_shape(d, a, "1 to 2^30 steps of at least one value", err);
    d->info.observations = a->name;
    d->info.steps = a->npy.rows;
    d->info.rank = a->npy.rank - 1;
    for (int k = 0; k < d->info.rank; k++) d->info.shape[k] = (int)a->npy.shape[k + 1];
    return BJ_OK;
}

static bj_status find_positions(bj_maze_data *d, bj_error *err) {
    static const char *const beside[] = {"qpos", "states"};
    const bj_npz_array *a = NULL;
    const char *name = d->info.observations;
    if (d->info.rank > 1) { /* images have their positions in another array */
        name = beside[0];
        if (!bj_npz_find(d->npz, name) && bj_npz_find(d->npz, beside[1])) name = beside[1];
    }
    BJ_TRY(bj_npz_need(&a, d->npz, name, 2, err));
    if (!is_float(a) || a->npy.width < 2 || a->npy.width > BLOCK / 8)
        return wrong_shape(d, a, "float32 (steps, x y ...)", err);
    if (a->npy.rows != d->info.steps)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: array '%s' has %lld rows, expected %lld as in '%s'",
                       bj_npz_path(d->npz), a->name, (long long)a->npy.rows,
                       (long long)d->info.steps, d->info.observations);
    d->info.positions = a->name;
    return BJ_OK;
}

static bj_status find_ends(const char **name, const bj_maze_data *d, bj_error *err) {
    const bj_npz_array *a = NULL;
    *name = "terminals";
    if (!bj_npz_find(d->npz, *name) && bj_npz_find(d->npz, "episode")) *name = "episode";
    BJ_TRY(bj_npz_need(&a, d->npz, *name, 1, err));
    if (a->npy.rows == d->info.steps) return BJ_OK;
    return BJ_FAIL(err, BJ_EFORMAT, "%s: array '%s' has %lld rows, expected %lld as in '%s'",
                   bj_npz_path(d->npz), a->name, (long long)a->npy.rows, (long long)d->info.steps,
                   d->info.observations);
}

/* ---------------------------------------------------------------------------------------- reading
 */

static bj_status take_terminals(bj_maze_data *d, const double *values, int64_t first, int64_t count,
                                int64_t width, bj_error *err) {
    (void)width, (void)err;
    for (int64_t i = 0; i < count; i++) d->ends[first + i] = values[i] != 0;
    return BJ_OK;
}

static bj_status take_episodes(bj_maze_data *d, const double *values, int64_t first, int64_t count,
                               int64_t width, bj_error *err) {
    (void)width, (void)err;
    for (int64_t i = 0; i < count; i++) {
        if (first + i && values[i] != d->episode) d->ends[first + i - 1] = 1;
        d->episode = values[i];
    }
    if (first + count == d->info.steps) d->ends[d->info.steps - 1] = 1;
    return BJ_OK;
}

static bj_status take_positions(bj_maze_data *d, const double *values, int64_t first, int64_t count,
                                int64_t width, bj_error *err) {
    for (int64_t i = 0; i < count; i++) {
        const double x = values[i * width], y = values[i * width + 1];
        if (!isfinite(x) || !isfinite(y))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "%s: array '%s' row %lld: position is (%g, %g), expected finite numbers",
                           bj_npz_path(d->npz), d->info.positions, (long long)(first + i), x, y);
        d->cells[first + i] = (int16_t)bj_maze_cell(d->maze, x, y);
    }
    return BJ_OK;
}

static bj_status take_xy(bj_maze_data *d, const double *values, int64_t first, int64_t count,
                         int64_t width, bj_error *err) {
    (void)err;
    for (int64_t i = 0; i < count; i++)
        memcpy(d->xy + 2 * (first + i), values + i * width, 2 * sizeof *values);
    return BJ_OK;
}

bj_status bj_maze_data_positions(double *xy, bj_maze_data *d, bj_error *err) {
    d->xy = xy;
    const bj_status status = each_block(d, d->info.positions, take_xy, err);
    d->xy = NULL;
    return status;
}

static bj_status read_stride(bj_maze_data *d, bj_error *err) {
    const bj_npz_array *a = bj_npz_find(d->npz, "step");
    d->info.stride = 1;
    if (!a || a->problem || a->npy.rank != 1 || a->npy.rows != d->info.steps || d->ends[0] ||
        d->info.steps < 2)
        return BJ_OK;
    bj_npz_rows *rows = NULL;
    double step[2];
    unsigned char raw[16];
    BJ_TRY(bj_npz_rows_open(&rows, d->npz, "step", err));
    const bj_status status = bj_npz_rows_read(rows, raw, 2, err);
    bj_npz_rows_close(rows);
    BJ_TRY(status);
    bj_npy_doubles(step, raw, a->npy.type, 2);
    if (step[1] - step[0] >= 1 && step[1] - step[0] < 1e6)
        d->info.stride = (int)(step[1] - step[0]);
    return BJ_OK;
}

static bj_status list_episodes(bj_maze_data *d, bj_error *err) {
    const int64_t n = d->info.steps;
    d->info.open_end = !d->ends[n - 1];
    d->ends[n - 1] = 1;
    for (int64_t t = 0; t < n; t++) d->info.episodes += d->ends[t];
    BJ_TRY(BJ_ALLOC(d->episodes, (size_t)d->info.episodes + 1, err));
    for (int64_t t = 0, e = 1; t < n; t++)
        if (d->ends[t]) d->episodes[e++] = t + 1;
    return BJ_OK;
}

static bj_status list_edges(bj_maze_data *d, bj_error *err) {
    bj_crossings c;
    uint8_t *visited = NULL;
    bj_status status;
    BJ_TRY(bj_crossings_init(&c, d->maze->cells, err));
    BJ_GOTO(status, done, BJ_ALLOC(visited, (size_t)d->maze->cells, err));
    for (int64_t t = 0; t < d->info.steps; t++) {
        bj_crossings_step(&c, d->cells[t], d->ends[t]);
        if (d->cells[t] >= 0) visited[d->cells[t]] = 1;
        else d->info.outside++;
    }
    d->info.crossings = c.total;
    for (int k = 0; k < d->maze->cells; k++) d->info.visited += visited[k];
    BJ_GOTO(status, done, bj_crossings_list(&d->edges, &d->counts, &d->info.edges, &c, err));
    for (int k = 0; k < d->info.edges; k++)
        d->info.sources += k == 0 || d->edges[k].from != d->edges[k - 1].from;
done:
    bj_free(visited);
    bj_crossings_reset(&c);
    return status;
}

static bj_status read_all(bj_maze_data *d, bj_error *err) {
    const char *ends = NULL;
    BJ_TRY(find_observations(d, err));
    BJ_TRY(find_positions(d, err));
    BJ_TRY(find_ends(&ends, d, err));
    BJ_TRY(BJ_ALLOC(d->ends, (size_t)d->info.steps, err));
    BJ_TRY(BJ_ALLOC(d->cells, (size_t)d->info.steps, err));
    BJ_TRY(each_block(d, ends, !strcmp(ends, "episode") ? take_episodes : take_terminals, err));
    BJ_TRY(read_stride(d, err));
    BJ_TRY(each_block(d, d->info.positions, take_positions, err));
    BJ_TRY(list_episodes(d, err));
    BJ_TRY(list_edges(d, err));
    bj_free(d->ends);
    d->ends = NULL;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- handle
 */

bj_status bj_maze_data_open(bj_maze_data **out, const char *path, const bj_maze *maze,
                            bj_error *err) {
    bj_maze_data *d;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(d, 1, err));
    d->maze = maze;
    bj_status status = bj_npz_open(&d->npz, path, err);
    if (status == BJ_OK) status = read_all(d, err);
    if (status == BJ_OK) *out = d;
    else bj_maze_data_free(d);
    return status;
}

void bj_maze_data_free(bj_maze_data *d) {
    if (!d) return;
    bj_npz_rows_close(d->rows);
    bj_npz_close(d->npz);
    bj_free(d->cells);
    bj_free(d->ends);
    bj_free(d->episodes);
    bj_free(d->edges);
    bj_free(d->counts);
    bj_free(d->raw);
    bj_free(d);
}

bj_maze_data_info bj_maze_data_about(const bj_maze_data *d) { return d->info; }
const bj_maze *bj_maze_data_maze(const bj_maze_data *d) { return d->maze; }
const int16_t *bj_maze_data_cells(const bj_maze_data *d) { return d->cells; }
const int64_t *bj_maze_data_episodes(const bj_maze_data *d) { return d->episodes; }
const bj_edge *bj_maze_data_edges(const bj_maze_data *d) { return d->edges; }
const int64_t *bj_maze_data_counts(const bj_maze_data *d) { return d->counts; }

/* ---------------------------------------------------------------------------------- observations
 */

/* Moves the cursor to row `begin`. Rewinds if `begin` is before the cursor. */
static bj_status seek(bj_maze_data *d, int64_t begin, int64_t end, bj_error *err) {
    if (begin < 0 || end < begin || end > d->info.steps)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: rows %lld to %lld were requested, but the file has %lld rows",
                       bj_npz_path(d->npz), (long long)begin, (long long)end,
                       (long long)d->info.steps);
    if (!d->rows) BJ_TRY(bj_npz_rows_open(&d->rows, d->npz, d->info.observations, err));
    if (begin < bj_npz_rows_next(d->rows)) BJ_TRY(bj_npz_rows_rewind(d->rows, err));
    return bj_npz_rows_range(d->rows, NULL, begin, begin, err);
}

bj_status bj_maze_data_read(bj_real *out, bj_maze_data *d, int64_t begin, int64_t end,
                            bj_error *err) {
    BJ_TRY(seek(d, begin, end, err));
    const bj_npy *npy = &bj_npz_rows_array(d->rows)->npy;
    const int64_t most = block_rows(npy);
    BJ_TRY(reserve(d, npy, err));
    for (int64_t at = begin; at < end;) {
        const int64_t n = end - at < most ? end - at : most;
        BJ_TRY(bj_npz_rows_read(d->rows, d->raw, n, err));
        bj_npy_reals(out + (at - begin) * npy->width, d->raw, npy->type, (size_t)(n * npy->width));
        at += n;
    }
    return BJ_OK;
}

bj_status bj_maze_data_read_bytes(uint8_t *out, bj_maze_data *d, int64_t begin, int64_t end,
                                  bj_error *err) {
    BJ_TRY(seek(d, begin, end, err));
    if (bj_npz_rows_array(d->rows)->npy.type != BJ_NPY_U8)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: array '%s' has type %s, "
                       "expected uint8, because the rows are read as bytes",
                       bj_npz_path(d->npz), d->info.observations,
                       bj_npy_name(bj_npz_rows_array(d->rows)->npy.type));
    return bj_npz_rows_read(d->rows, out, end - begin, err);
}
