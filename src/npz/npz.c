/* npz.c - see npz.h.
 *
 * Invariants
 *   1. A readable array has exactly as many bytes as its header and its shape require, so every
 *      size from the file is checked before it is used.
 *   2. No allocation depends on the size of a member, except in bj_npz_doubles. Rows are read into
 *      the caller's memory.
 */
#include "npz/npz.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "npz/zip.h"

struct bj_npz {
    bj_zip *zip;
    bj_npz_array *arrays;
    int count;
    char *names;
};

struct bj_npz_rows {
    const bj_npz *npz;
    const bj_npz_array *array;
    bj_zip_stream *stream;
    int64_t next;
};

/* ----------------------------------------------------------------------------------------- open */

/* Reads the header of an array. Fills all fields of `a` on success. */
static bj_status read_header(bj_npz_array *a, const bj_npz *npz, bj_error *err) {
    char what[300];
    uint8_t prefix[BJ_NPY_PREFIX];
    char *text = NULL;
    size_t begin = 0;
    bj_zip_stream *stream = NULL;
    const uint64_t size = bj_zip_at(npz->zip, a->member)->size;
    bj_status status;
    snprintf(what, sizeof what, "%.200s: member '%.80s'", bj_zip_path(npz->zip), a->name);
    BJ_GOTO(status, done, bj_zip_stream_open(&stream, npz->zip, a->member, err));
    if (size < BJ_NPY_PREFIX) {
        status = BJ_FAIL(err, BJ_EFORMAT,
                         "%s: has %llu bytes, which is too short for an .npy array", what,
                         (unsigned long long)size);
        goto done;
    }
    BJ_GOTO(status, done, bj_zip_stream_read(stream, prefix, BJ_NPY_PREFIX, err));
    BJ_GOTO(status, done, bj_npy_prefix(&a->header, &begin, prefix, what, err));
    if (size < a->header) {
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: has %llu bytes, but its header alone has %zu", what,
                         (unsigned long long)size, a->header);
        goto done;
    }
    BJ_GOTO(status, done, BJ_ALLOC(text, a->header, err));
    memcpy(text, prefix, BJ_NPY_PREFIX);
    BJ_GOTO(status, done,
            bj_zip_stream_read(stream, text + BJ_NPY_PREFIX, a->header - BJ_NPY_PREFIX, err));
    BJ_GOTO(status, done, bj_npy_parse(&a->npy, text + begin, a->header - begin, what, err));
    const uint64_t want = (uint64_t)a->npy.rows * a->npy.row_bytes;
    if (size - a->header != want)
        status =
            BJ_FAIL(err, BJ_EFORMAT, "%s: found %llu bytes of numbers, expected %llu for its shape",
                    what, (unsigned long long)(size - a->header), (unsigned long long)want);
done:
    bj_free(text);
    bj_zip_stream_close(stream);
    return status;
}

static bj_status add_array(bj_npz *npz, int member, char **names, bj_error *err) {
    const char *const full = bj_zip_at(npz->zip, member)->name;
    const size_t length = strlen(full);
    if (length < 4 || strcmp(full + length - 4, ".npy")) return BJ_OK;
    bj_npz_array *a = &npz->arrays[npz->count];
    *a = (bj_npz_array){.name = *names, .member = member};
    memcpy(*names, full, length - 4);
    *names += length - 3;
    if (bj_npz_find(npz, a->name))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: two members are named '%.200s'", bj_zip_path(npz->zip),
                       full);
    npz->count++;
    bj_error problem = {0};
    const bj_status status = read_header(a, npz, &problem);
    if (status == BJ_OK) return BJ_OK;
    if (status != BJ_EFORMAT) return BJ_FAIL(err, status, "%s", problem.message);
    a->npy = (bj_npy){0};
    if (!(a->problem = bj_strdup(problem.message)))
        return bj_alloc_failed(strlen(problem.message) + 1, 1, err);
    return BJ_OK;
}

static bj_status read_members(bj_npz *npz, bj_error *err) {
    const int members = bj_zip_count(npz->zip);
    size_t length = 0;
    for (int i = 0; i < members; i++) length += strlen(bj_zip_at(npz->zip, i)->name) + 1;
    BJ_TRY(BJ_ALLOC(npz->names, length, err));
    BJ_TRY(BJ_ALLOC(npz->arrays, (size_t)members, err));
    char *names = npz->names;
    for (int i = 0; i < members; i++) BJ_TRY(add_array(npz, i, &names, err));
    return BJ_OK;
}

static bj_status open_zip(bj_npz **out, bj_zip *zip, bj_error *err) {
    bj_npz *npz;
    bj_status status;
    if ((status = BJ_ALLOC(npz, 1, err)) != BJ_OK) {
        bj_zip_close(zip);
        return status;
    }
    npz->zip = zip;
    status = read_members(npz, err);
    if (status == BJ_OK) *out = npz;
    else bj_npz_close(npz);
    return status;
}

bj_status bj_npz_open(bj_npz **out, const char *path, bj_error *err) {
    bj_zip *zip;
    *out = NULL;
    BJ_TRY(bj_zip_open(&zip, path, err));
    return open_zip(out, zip, err);
}

bj_status bj_npz_open_memory(bj_npz **out, const void *data, size_t size, const char *name,
                             bj_error *err) {
    bj_zip *zip;
    *out = NULL;
    BJ_TRY(bj_zip_open_memory(&zip, data, size, name, err));
    return open_zip(out, zip, err);
}

void bj_npz_close(bj_npz *npz) {
    if (!npz) return;
    for (int i = 0; i < npz->count; i++) bj_free((char *)(uintptr_t)npz->arrays[i].problem);
    bj_free(npz->arrays);
    bj_free(npz->names);
    bj_zip_close(npz->zip);
    bj_free(npz);
}

const char *bj_npz_path(const bj_npz *npz) { return bj_zip_path(npz->zip); }
int bj_npz_count(const bj_npz *npz) { return npz->count; }
const bj_npz_array *bj_npz_at(const bj_npz *npz, int index) { return &npz->arrays[index]; }

const bj_npz_array *bj_npz_find(const bj_npz *npz, const char *name) {
    for (int i = 0; i < npz->count; i++)
        if (!strcmp(npz->arrays[i].name, name)) return &npz->arrays[i];
    return NULL;
}

bj_status bj_npz_need(const bj_npz_array **out, const bj_npz *npz, const char *name, int rank,
                      bj_error *err) {
    const bj_npz_array *a = bj_npz_find(npz, name);
    if (!a) {
        char list[200] = "";
        size_t used = 0;
        for (int i = 0; i < npz->count && used + 1 < sizeof list; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                     npz->arrays[i].name);
        return BJ_FAIL(err, BJ_EFORMAT, "%s: no array '%s'; the file contains: %s",
                       bj_npz_path(npz), name, npz->count ? list : "none");
    }
    if (a->problem) return BJ_FAIL(err, BJ_EFORMAT, "%s", a->problem);
    if (rank >= 0 && a->npy.rank != rank)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: array '%s' has %d dimensions, expected %d",
                       bj_npz_path(npz), name, a->npy.rank, rank);
    if (out) *out = a;
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- rows */

bj_status bj_npz_rows_open(bj_npz_rows **out, const bj_npz *npz, const char *name, bj_error *err) {
    bj_npz_rows *rows;
    const bj_npz_array *a = NULL;
    bj_status status;
    *out = NULL;
    BJ_TRY(bj_npz_need(&a, npz, name, -1, err));
    BJ_TRY(BJ_ALLOC(rows, 1, err));
    rows->npz = npz;
    rows->array = a;
    BJ_GOTO(status, failed, bj_zip_stream_open(&rows->stream, npz->zip, a->member, err));
    BJ_GOTO(status, failed, bj_zip_stream_read(rows->stream, NULL, a->header, err));
    *out = rows;
    return BJ_OK;
failed:
    bj_npz_rows_close(rows);
    return status;
}

void bj_npz_rows_close(bj_npz_rows *rows) {
    if (!rows) return;
    bj_zip_stream_close(rows->stream);
    bj_free(rows);
}

const bj_npz_array *bj_npz_rows_array(const bj_npz_rows *rows) { return rows->array; }
int64_t bj_npz_rows_next(const bj_npz_rows *rows) { return rows->next; }

bj_status bj_npz_rows_rewind(bj_npz_rows *rows, bj_error *err) {
    BJ_TRY(bj_zip_stream_rewind(rows->stream, err));
    rows->next = 0;
    return bj_zip_stream_read(rows->stream, NULL, rows->array->header, err);
}

/* Reads the next rows, or skips them if `out` is NULL. */
static bj_status advance(bj_npz_rows *rows, void *out, int64_t count, bj_error *err) {
    BJ_TRY(
        bj_zip_stream_read(rows->stream, out, (uint64_t)count * rows->array->npy.row_bytes, err));
    rows->next += count;
    return BJ_OK;
}

bj_status bj_npz_rows_range(bj_npz_rows *rows, void *out, int64_t begin, int64_t end,
                            bj_error *err) {
    const int64_t all = rows->array->npy.rows;
    if (begin < rows->next || end < begin || end > all)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: array '%s': rows %lld to %lld were requested, "
                       "expected rows from %lld to %lld",
                       bj_npz_path(rows->npz), rows->array->name, (long long)begin, (long long)end,
                       (long long)rows->next, (long long)all);
    if (begin > rows->next) BJ_TRY(advance(rows, NULL, begin - rows->next, err));
    return end > begin ? advance(rows, out, end - begin, err) : BJ_OK;
}

bj_status bj_npz_rows_read(bj_npz_rows *rows, void *out, int64_t count, bj_error *err) {
    if (count < 0 || count > rows->array->npy.rows - rows->next)
        return BJ_FAIL(err, BJ_EARG, "%s: array '%s': %lld rows requested, %lld remain",
                       bj_npz_path(rows->npz), rows->array->name, (long long)count,
                       (long long)(rows->array->npy.rows - rows->next));
    return bj_npz_rows_range(rows, out, rows->next, rows->next + count, err);
}

bj_status bj_npz_doubles(double **out, const bj_npz *npz, const char *name, int64_t limit,
                         bj_error *err) {
    bj_npz_rows *rows = NULL;
    double *values = NULL;
    void *raw = NULL;
    bj_status status;
    *out = NULL;
    BJ_TRY(bj_npz_rows_open(&rows, npz, name, err));
    const bj_npy *npy = &rows->array->npy;
    /* rows * width cannot overflow, because the file contains at least that many bytes. */
    const int64_t count = npy->width ? npy->rows * npy->width : 0;
    if (count > limit) {
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: array '%s' has %lld numbers, expected at most %lld",
                         bj_npz_path(npz), name, (long long)count, (long long)limit);
        goto done;
    }
    BJ_GOTO(status, done, BJ_ALLOC(values, (size_t)count, err));
    raw = bj_alloc((size_t)count, bj_npy_size(npy->type));
    if (!raw) {
        status = bj_alloc_failed((size_t)count, bj_npy_size(npy->type), err);
        goto done;
    }
    BJ_GOTO(status, done, bj_npz_rows_read(rows, raw, npy->rows, err));
    bj_npy_doubles(values, raw, npy->type, (size_t)count);
    *out = values;
    values = NULL;
done:
    bj_free(raw);
    bj_free(values);
    bj_npz_rows_close(rows);
    return status;
}
