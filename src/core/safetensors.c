/* safetensors.c - safetensors reader. See safetensors.h for the format and its guarantees. */
#include "core/safetensors.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors_internal.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors.c copies little-endian data as it is"
#endif

/* clang-format off */
static const struct { const char *name; size_t size; } dtypes[BJ_DTYPES] = {
    [BJ_DTYPE_BOOL] = {"BOOL", 1}, [BJ_DTYPE_U8]  = {"U8",  1}, [BJ_DTYPE_I8]  = {"I8",  1},
    [BJ_DTYPE_U16]  = {"U16",  2}, [BJ_DTYPE_I16] = {"I16", 2}, [BJ_DTYPE_F16] = {"F16", 2},
    [BJ_DTYPE_BF16] = {"BF16", 2},
    [BJ_DTYPE_U32]  = {"U32",  4}, [BJ_DTYPE_I32] = {"I32", 4}, [BJ_DTYPE_F32] = {"F32", 4},
    [BJ_DTYPE_U64]  = {"U64",  8}, [BJ_DTYPE_I64] = {"I64", 8}, [BJ_DTYPE_F64] = {"F64", 8},
};
/* clang-format on */

const char *bj_dtype_name(bj_dtype dtype) { return dtypes[dtype].name; }
size_t bj_dtype_size(bj_dtype dtype) { return dtypes[dtype].size; }

typedef bj_safetensors_entry entry;

struct bj_safetensors {
    char *label;           /* prefix of every message */
    bj_file_map map;       /* unused if the caller owns the memory */
    yyjson_doc *doc;       /* owns names and metadata */
    entry *entries;        /* sorted by offset */
    const entry **by_name; /* sorted by name */
    int count;
    bj_fact *facts;        /* sorted by key */
    int facts_count;
};

bj_status bj_safetensors_refuse(bj_error *err, bj_status code, const char *path, const char *name,
                                const char *fmt, ...) {
    char detail[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    return BJ_FAIL(err, code, "%s: tensor '%.80s': %s", bj_safetensors_label(path), name, detail);
}

/* Shortens a long path to its end, which is the more useful part. This leaves room for the
 * message. */
const char *bj_safetensors_label(const char *path) {
    enum { SHOWN = 200 };
    const size_t length = strlen(path);
    return length > SHOWN ? path + length - SHOWN : path;
}

#define REFUSE(err, st, name, ...)                                                                 \
    bj_safetensors_refuse((err), BJ_EFORMAT, (st)->label, (name), __VA_ARGS__)

/* ------------------------------------------------------------------------------------- header */

/* Returns 1 if a name contains control characters. Names appear in messages, so they must not move
 * the cursor or terminate the string. */
static int has_control_characters(yyjson_val *text) {
    const unsigned char *c = (const unsigned char *)yyjson_get_str(text);
    for (size_t i = 0, n = yyjson_get_len(text); i < n; i++)
        if (c[i] < 0x20 || c[i] == 0x7f) return 1;
    return 0;
}

static int compare_offsets(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* empty tensors come first */
    return strcmp(x->view.name, y->view.name);
}

static int compare_names(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    return strcmp((*x)->view.name, (*y)->view.name);
}

static int compare_keys(const void *a, const void *b) {
    const bj_fact *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Zero dimensions are skipped in the product, so that an empty tensor cannot hide an overflow. */
int bj_tensor_view_measure(bj_tensor_view *view) {
    size_t product = bj_dtype_size(view->dtype);
    int empty = 0;
    for (int i = 0; i < view->rank; i++) {
        const size_t size = (size_t)view->shape[i];
        if (size && product > SIZE_MAX / size) return 0;
        if (size) product *= size;
        empty |= !size;
    }
    view->bytes = empty ? 0 : product;
    view->count = view->bytes / bj_dtype_size(view->dtype);
    return 1;
}

static bj_status parse_dtype(bj_dtype *out, const bj_safetensors *st, const char *name,
                             yyjson_val *value, bj_error *err) {
    if (!yyjson_is_str(value)) return REFUSE(err, st, name, "dtype is not a string");
    for (int d = 0; d < BJ_DTYPES; d++)
        if (yyjson_equals_str(value, dtypes[d].name)) {
            *out = (bj_dtype)d;
            return BJ_OK;
        }
    return has_control_characters(value)
               ? REFUSE(err, st, name, "dtype is not known")
               : REFUSE(err, st, name, "dtype '%.20s' is not known", yyjson_get_str(value));
}

/* Parses an array of at most `most` non-negative integers that fit in int64_t. */
static bj_status parse_integers(int64_t *out, int *count, int most, const bj_safetensors *st,
                                const char *name, const char *field, yyjson_val *value,
                                bj_error *err) {
    if (!yyjson_is_arr(value)) return REFUSE(err, st, name, "%s is not a list", field);
    if (yyjson_arr_size(value) > (size_t)most)
        return REFUSE(err, st, name, "%s has %zu numbers, expected at most %d", field,
                      yyjson_arr_size(value), most);
    yyjson_arr_iter items = yyjson_arr_iter_with(value);
    *count = 0;
    for (yyjson_val *item; (item = yyjson_arr_iter_next(&items)); ++*count) {
        if (!yyjson_is_uint(item) || yyjson_get_uint(item) > INT64_MAX)
            return REFUSE(err, st, name, "%s[%d] is not an integer from 0 to 2^63 - 1", field,
                          *count);
        out[*count] = (int64_t)yyjson_get_uint(item);
    }
    return BJ_OK;
}

static bj_status parse_tensor(entry *out, const bj_safetensors *st, yyjson_val *key,
                              yyjson_val *info, const unsigned char *data, size_t data_size,
                              bj_error *err) {
    bj_tensor_view *view = &out->view;
    const char *name = view->name = yyjson_get_str(key);
    enum { DTYPE, SHAPE, OFFSETS, FIELDS };
    static const char *const fields[FIELDS] = {"dtype", "shape", "data_offsets"};
    yyjson_val *value[FIELDS] = {NULL};
    if (!yyjson_is_obj(info)) return REFUSE(err, st, name, "not a JSON object");
    yyjson_obj_iter items = yyjson_obj_iter_with(info);
    for (yyjson_val *field; (field = yyjson_obj_iter_next(&items));) {
        int f = 0;
        while (f < FIELDS && !yyjson_equals_str(field, fields[f])) f++;
        if (f == FIELDS)
            return REFUSE(err, st, name, "a field other than dtype, shape and data_offsets");
        if (value[f]) return REFUSE(err, st, name, "%s is given twice", fields[f]);
        value[f] = yyjson_obj_iter_get_val(field);
    }
    for (int f = 0; f < FIELDS; f++)
        if (!value[f]) return REFUSE(err, st, name, "%s is missing", fields[f]);

    int64_t offsets[2];
    int offset_count;
    BJ_TRY(parse_dtype(&view->dtype, st, name, value[DTYPE], err));
    BJ_TRY(parse_integers(view->shape, &view->rank, BJ_SAFETENSORS_MAX_RANK, st, name,
                          fields[SHAPE], value[SHAPE], err));
    BJ_TRY(
        parse_integers(offsets, &offset_count, 2, st, name, fields[OFFSETS], value[OFFSETS], err));
    if (offset_count != 2)
        return REFUSE(err, st, name, "data_offsets has %d numbers, expected 2", offset_count);
    out->begin = (size_t)offsets[0];
    out->end = (size_t)offsets[1];
    if (out->begin > out->end)
        return REFUSE(err, st, name, "data_offsets begin at %zu, but end at %zu", out->begin,
                      out->end);
    if (!bj_tensor_view_measure(view))
        return REFUSE(err, st, name, "shape has more elements than memory has bytes");
    if (view->bytes != out->end - out->begin)
        return REFUSE(err, st, name, "data_offsets span %zu bytes, but the shape needs %zu",
                      out->end - out->begin, view->bytes);
    if (out->end > data_size)
        return REFUSE(err, st, name, "data ends at byte %zu, but the file has only %zu bytes",
                      out->end, data_size);
    view->data = data ? data + out->begin : NULL;
    return BJ_OK;
}

static bj_status parse_metadata(bj_safetensors *st, yyjson_val *object, bj_error *err) {
    if (!yyjson_is_obj(object))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: __metadata__ is not a JSON object", st->label);
    if (st->facts) return BJ_FAIL(err, BJ_EFORMAT, "%s: __metadata__ is given twice", st->label);
    BJ_TRY(BJ_ALLOC(st->facts, yyjson_obj_size(object), err));
    yyjson_obj_iter items = yyjson_obj_iter_with(object);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&items));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        if (has_control_characters(key))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: a metadata key has control characters", st->label);
        if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: metadata '%.80s' is not a string or contains a zero byte",
                           st->label, yyjson_get_str(key));
        st->facts[st->facts_count++] = (bj_fact){yyjson_get_str(key), yyjson_get_str(value)};
    }
    if (st->facts_count) qsort(st->facts, (size_t)st->facts_count, sizeof *st->facts, compare_keys);
    for (int i = 1; i < st->facts_count; i++)
        if (!strcmp(st->facts[i - 1].key, st->facts[i].key))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%.80s' is given twice", st->label,
                           st->facts[i].key);
    return BJ_OK;
}

/* Sorts the tensors, then checks that their names are unique and that they cover the data
 * exactly. */
static bj_status check_layout(bj_safetensors *st, size_t data_size, bj_error *err) {
    const size_t count = (size_t)st->count;
    if (count) qsort(st->entries, count, sizeof *st->entries, compare_offsets);
    BJ_TRY(BJ_ALLOC(st->by_name, count, err));
    for (size_t i = 0; i < count; i++) st->by_name[i] = &st->entries[i];
    if (count) qsort(st->by_name, count, sizeof *st->by_name, compare_names);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(st->by_name[i - 1]->view.name, st->by_name[i]->view.name))
            return REFUSE(err, st, st->by_name[i]->view.name, "is given twice");
    size_t covered = 0;
    for (size_t i = 0; i < count; i++) {
        const entry *e = &st->entries[i];
        if (e->begin != covered)
            return REFUSE(err, st, e->view.name,
                          "data begins at byte %zu, but the previous tensor ends at byte %zu: %s",
                          e->begin, covered, e->begin < covered ? "they overlap" : "a gap");
        covered = e->end;
    }
    if (covered != data_size && count)
        return REFUSE(err, st, st->entries[count - 1].view.name,
                      "the last tensor ends at byte %zu, but %zu more bytes follow", covered,
                      data_size - covered);
    if (covered != data_size)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: no tensors, but %zu bytes of data", st->label,
                       data_size);
    return BJ_OK;
}

/* Parses the header `text` of `size` bytes into st. `data` may be NULL if only the header is
 * checked. */
static bj_status parse_header(bj_safetensors *st, const char *text, size_t size,
                              const unsigned char *data, size_t data_size, bj_error *err) {
    if (size > BJ_SAFETENSORS_MAX_HEADER)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the header has %zu bytes, expected at most %d",
                       st->label, size, BJ_SAFETENSORS_MAX_HEADER);
    if (size == 0 || text[0] != '{')
        return BJ_FAIL(err, BJ_EFORMAT, "%s: header does not start with '{'", st->label);
    BJ_TRY(bj_json_parse(&st->doc, text, size, st->label, err));
    yyjson_val *root = yyjson_doc_get_root(st->doc); /* an object, because it starts with '{' */
    /* The shortest entry is "":{"dtype":"U8","shape":[],"data_offsets":[0,0]}. This check prevents
     * a small malicious file from requesting a large table. */
    if (yyjson_obj_size(root) > size / 48 + 2)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: a header of %zu bytes cannot describe %zu tensors",
                       st->label, size, yyjson_obj_size(root));
    BJ_TRY(BJ_ALLOC(st->entries, yyjson_obj_size(root), err));
    yyjson_obj_iter items = yyjson_obj_iter_with(root);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&items));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        if (has_control_characters(key))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: a tensor name has control characters", st->label);
        if (yyjson_equals_str(key, "__metadata__")) {
            BJ_TRY(parse_metadata(st, value, err));
        } else {
            BJ_TRY(parse_tensor(&st->entries[st->count], st, key, value, data, data_size, err));
            st->count++;
        }
    }
    return check_layout(st, data_size, err);
}

bj_status bj_safetensors_check_header(const char *path, const char *text, size_t size,
                                      size_t data_size, bj_error *err) {
    bj_safetensors *st;
    BJ_TRY(BJ_ALLOC(st, 1, err));
    st->label = bj_strdup(bj_safetensors_label(path));
    const bj_status status = st->label ? parse_header(st, text, size, NULL, data_size, err)
                                       : bj_alloc_failed(strlen(path) + 1, 1, err);
    bj_safetensors_close(st);
    return status;
}

/* ------------------------------------------------------------------------------------- reading */

static bj_status parse_file(bj_safetensors *st, const unsigned char *file, size_t size,
                            bj_error *err) {
    if (size < 8)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the file has %zu bytes, expected at least 8 for the header length",
                       st->label, size);
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) header = header << 8 | file[i];
    if (header > size - 8)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the header has %llu bytes according to its length field, "
                       "but only %zu bytes follow",
                       st->label, (unsigned long long)header, size - 8);
    const size_t header_size = (size_t)header;
    return parse_header(st, (const char *)file + 8, header_size, file + 8 + header_size,
                        size - 8 - header_size, err);
}

bj_status bj_safetensors_open_memory(bj_safetensors **out, const void *data, size_t size,
                                     const char *label, bj_error *err) {
    bj_safetensors *st;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(st, 1, err));
    st->label = bj_strdup(bj_safetensors_label(label));
    const bj_status status =
        st->label ? parse_file(st, data, size, err) : bj_alloc_failed(strlen(label) + 1, 1, err);
    if (status == BJ_OK) *out = st;
    else bj_safetensors_close(st);
    return status;
}

bj_status bj_safetensors_open(bj_safetensors **out, const char *path, bj_error *err) {
    bj_file_map map;
    *out = NULL;
    BJ_TRY(bj_file_map_open(&map, path, SIZE_MAX, err));
    const bj_status status = bj_safetensors_open_memory(out, map.data, map.size, path, err);
    if (status == BJ_OK) (*out)->map = map;
    else bj_file_map_close(&map);
    return status;
}

void bj_safetensors_close(bj_safetensors *st) {
    if (!st) return;
    bj_free(st->facts);
    bj_free(st->by_name);
    bj_free(st->entries);
    yyjson_doc_free(st->doc);
    bj_file_map_close(&st->map);
    bj_free(st->label);
    bj_free(st);
}

const char *bj_safetensors_path(const bj_safetensors *st) { return st->label; }
int bj_safetensors_count(const bj_safetensors *st) { return st->count; }

const bj_tensor_view *bj_safetensors_at(const bj_safetensors *st, int index) {
    return &st->entries[index].view;
}

const bj_tensor_view *bj_safetensors_find(const bj_safetensors *st, const char *name) {
    const entry wanted = {.view = {.name = name}}, *key = &wanted;
    const entry **found = st->count ? bsearch(&key, st->by_name, (size_t)st->count,
                                              sizeof *st->by_name, compare_names)
                                    : NULL;
    return found ? &(*found)->view : NULL;
}

int bj_safetensors_metadata_count(const bj_safetensors *st) { return st->facts_count; }
bj_fact bj_safetensors_metadata_at(const bj_safetensors *st, int index) { return st->facts[index]; }

const char *bj_safetensors_metadata(const bj_safetensors *st, const char *key) {
    const bj_fact wanted = {key, NULL};
    const bj_fact *found = st->facts_count ? bsearch(&wanted, st->facts, (size_t)st->facts_count,
                                                     sizeof *st->facts, compare_keys)
                                           : NULL;
    return found ? found->value : NULL;
}

/* Formats a shape as "[2,3]". The buffer has room for 8 dimensions with 19 digits each. */
static const char *shape_text(char text[192], int rank, const int64_t *shape) {
    size_t used = (size_t)snprintf(text, 192, "[");
    for (int i = 0; i < rank && i < BJ_SAFETENSORS_MAX_RANK; i++)
        used +=
            (size_t)snprintf(text + used, 192 - used, "%s%lld", i ? "," : "", (long long)shape[i]);
    snprintf(text + used, 192 - used, "]");
    return text;
}

bj_status bj_safetensors_require(const bj_tensor_view **out, const bj_safetensors *st,
                                 const char *name, int rank, const int64_t *shape, bj_error *err) {
    const bj_tensor_view *view = *out = bj_safetensors_find(st, name);
    if (!view) return REFUSE(err, st, name, "is missing");
    int same = view->rank == rank;
    for (int i = 0; same && i < rank; i++) same = view->shape[i] == shape[i];
    char found[192], expected[192];
    if (!same)
        return REFUSE(err, st, name, "shape %s, expected %s",
                      shape_text(found, view->rank, view->shape),
                      shape_text(expected, rank, shape));
    return BJ_OK;
}

/* Converts IEEE binary16 with 1 sign bit, 5 exponent bits and 10 fraction bits. */
static double half_to_double(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static double element(const unsigned char *data, bj_dtype dtype, size_t index) {
    double f64;
    float f32;
    uint16_t bits;
    uint32_t wide;
    switch (dtype) {
    case BJ_DTYPE_F64: memcpy(&f64, data + 8 * index, 8); return f64;
    case BJ_DTYPE_F32: memcpy(&f32, data + 4 * index, 4); return f32;
    case BJ_DTYPE_F16: memcpy(&bits, data + 2 * index, 2); return half_to_double(bits);
    default: /* BF16 is the upper half of a float */
        memcpy(&bits, data + 2 * index, 2);
        wide = (uint32_t)bits << 16;
        memcpy(&f32, &wide, 4);
        return f32;
    }
}

bj_status bj_safetensors_read_real(bj_real *dst, const bj_safetensors *st, const char *name,
                                   int rank, const int64_t *shape, bj_error *err) {
    const bj_tensor_view *view;
    BJ_TRY(bj_safetensors_require(&view, st, name, rank, shape, err));
    const bj_dtype dtype = view->dtype;
    if (dtype != BJ_DTYPE_F64 && dtype != BJ_DTYPE_F32 && dtype != BJ_DTYPE_F16 &&
        dtype != BJ_DTYPE_BF16)
        return REFUSE(err, st, name, "dtype %s, expected F64, F32, F16 or BF16",
                      bj_dtype_name(dtype));
    if (dtype == BJ_DTYPE_REAL && view->bytes) memcpy(dst, view->data, view->bytes);
    else
        for (size_t i = 0; i < view->count; i++) dst[i] = (bj_real)element(view->data, dtype, i);
    for (size_t i = 0; i < view->count; i++)
        if (!isfinite(dst[i])) {
            const double value = element(view->data, dtype, i);
            return bj_safetensors_refuse(
                err, BJ_ENONFINITE, st->label, name, "value %zu is %g, %s", i, value,
                isfinite(value) ? "too large for float" : "expected a finite number");
        }
    return BJ_OK;
}
