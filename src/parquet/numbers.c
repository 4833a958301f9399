/* numbers.c - decodes pages of booleans, integers and floating-point numbers to 8-byte words.
 *
 * Every encoding except the dictionary is first decoded to PLAIN, which is a sequence of
 * little-endian values, and then converted to int64_t or double. A dictionary is converted once,
 * and values are then looked up by index.
 * Test: tests/parquet/test_encodings.c
 */
#include <string.h>

#include "parquet/column.h"
#include "parquet/delta.h"
#include "parquet/hybrid.h"

static size_t width_of(bj_parquet_type type) {
    return type == BJ_PARQUET_INT32 || type == BJ_PARQUET_FLOAT ? 4 : 8;
}

/* Converts unaligned values. The compiler turns memcpy into plain loads. */
#define CONVERT(To, From)                                                                          \
    do {                                                                                           \
        To *to_ = out;                                                                             \
        for (size_t i_ = 0; i_ < count; i_++) {                                                    \
            From from_;                                                                            \
            memcpy(&from_, in + i_ * sizeof from_, sizeof from_);                                  \
            to_[i_] = (To)from_;                                                                   \
        }                                                                                          \
    } while (0)

static const char *to_int64(void *out, const uint8_t *in, size_t count,
                            const bj_parquet_column *c) {
    if (c->type == BJ_PARQUET_INT32 && c->is_unsigned) CONVERT(int64_t, uint32_t);
    else if (c->type == BJ_PARQUET_INT32) CONVERT(int64_t, int32_t);
    else memcpy(out, in, count * 8);
    if (c->type != BJ_PARQUET_INT64 || !c->is_unsigned) return NULL;
    const int64_t *words = out;
    int64_t all = 0;
    for (size_t i = 0; i < count; i++) all |= words[i];
    return all < 0 ? "an unsigned number above 2^63 - 1 is not supported" : NULL;
}

static void to_double(void *out, const uint8_t *in, size_t count, const bj_leaf *leaf) {
    const bj_parquet_column *c = &leaf->column;
    if (c->type == BJ_PARQUET_DOUBLE) memcpy(out, in, count * 8);
    else if (c->type == BJ_PARQUET_FLOAT) CONVERT(double, float);
    else if (c->type == BJ_PARQUET_INT32 && c->is_unsigned) CONVERT(double, uint32_t);
    else if (c->type == BJ_PARQUET_INT32) CONVERT(double, int32_t);
    else if (c->is_unsigned) CONVERT(double, uint64_t);
    else CONVERT(double, int64_t);
    if (leaf->scale <= 0) return;
    double unit = 1; /* exact up to 10^22 */
    for (int i = 0; i < leaf->scale; i++) unit *= 10;
    double *values = out;
    for (size_t i = 0; i < count; i++) values[i] /= unit;
}

/* Converts `count` PLAIN values from `size` bytes. */
static bj_status convert(void *out, size_t count, const uint8_t *in, size_t size,
                         const bj_column *column) {
    const bj_leaf *leaf = column->pages.leaf;
    if (count > size / width_of(leaf->column.type))
        return bj_pages_judge(&column->pages, "plain values end too early");
    if (column->form == BJ_FORM_INT64)
        return bj_pages_judge(&column->pages, to_int64(out, in, count, &leaf->column));
    to_double(out, in, count, leaf);
    return BJ_OK;
}

static bj_status decode_booleans(int64_t *out, size_t count, bj_column *column,
                                 const bj_page *page) {
    const uint8_t *in = page->values;
    size_t size = page->values_size;
    const char *bad;
    if (page->encoding == BJ_ENCODING_PLAIN) {
        bad = bj_unpack32(column->indices, count, 1, in, size);
    } else if (page->encoding == BJ_ENCODING_RLE) {
        if (size < 4) return bj_pages_judge(&column->pages, "runs of booleans end too early");
        const size_t runs =
            (size_t)in[0] | (size_t)in[1] << 8 | (size_t)in[2] << 16 | (size_t)in[3] << 24;
        if (runs > size - 4) return bj_pages_judge(&column->pages, "runs exceed the page");
        bad = bj_hybrid_decode(column->indices, count, 1, in + 4, runs);
    } else {
        return bj_pages_unsupported(&column->pages, page, "booleans");
    }
    if (bad) return bj_pages_judge(&column->pages, bad);
    for (size_t i = 0; i < count; i++) out[i] = column->indices[i];
    return BJ_OK;
}

static bj_status decode_deltas(void *out, size_t count, bj_column *column, const bj_page *page) {
    bj_store *store = &column->pages.parquet->store;
    uint64_t *wide;
    size_t used;
    BJ_TRY(BJ_STORE(wide, store, count, column->pages.err));
    BJ_TRY(bj_pages_judge(&column->pages,
                          bj_delta_decode(wide, count, page->values, page->values_size, &used)));
    uint8_t *plain = (uint8_t *)wide;
    if (column->pages.leaf->column.type == BJ_PARQUET_INT32)
        for (size_t i = 0; i < count; i++) { /* decodes in place, because the writes never overtake
                                                the reads */
            const uint32_t narrow = (uint32_t)wide[i];
            memcpy(plain + 4 * i, &narrow, 4);
        }
    return convert(out, count, plain, count * 8, column);
}

void bj_join_streams(uint8_t *out, const uint8_t *in, size_t count, size_t width) {
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < count; i++) out[i * width + b] = in[b * count + i];
}

static bj_status decode_streams(void *out, size_t count, bj_column *column, const bj_page *page) {
    const size_t width = width_of(column->pages.leaf->column.type);
    uint8_t *plain;
    if (page->values_size / width < count || page->values_size != count * width)
        return bj_pages_judge(&column->pages,
                              "the size of the split streams differs from the size of the values");
    BJ_TRY(BJ_STORE(plain, &column->pages.parquet->store, page->values_size, column->pages.err));
    bj_join_streams(plain, page->values, count, width);
    return convert(out, count, plain, page->values_size, column);
}

bj_status bj_numbers_dictionary(bj_column *column, const bj_page *page) {
    const bj_parquet_type type = column->pages.leaf->column.type;
    if (type == BJ_PARQUET_BOOLEAN)
        return bj_pages_judge(&column->pages, "a dictionary of booleans");
    /* Check the count against the remaining bytes first, because the allocation below depends on
     * it. */
    if (page->count > page->values_size / width_of(type))
        return bj_pages_judge(&column->pages, "the dictionary ends too early");
    uint64_t *words;
    BJ_TRY(BJ_STORE(words, &column->pages.parquet->store, page->count, column->pages.err));
    column->dictionary = words;
    column->entries = page->count;
    return convert(words, page->count, page->values, page->values_size, column);
}

bj_status bj_numbers_decode(void *out, size_t count, bj_column *column, const bj_page *page) {
    const bj_parquet_type type = column->pages.leaf->column.type;
    const int is_integer = type == BJ_PARQUET_INT32 || type == BJ_PARQUET_INT64;
    if (bj_page_is_coded(page)) {
        BJ_TRY(bj_column_indices(count, column, page));
        const uint64_t *words = column->dictionary;
        uint64_t *to = out;
        for (size_t i = 0; i < count; i++) to[i] = words[column->indices[i]];
        return BJ_OK;
    }
    if (type == BJ_PARQUET_BOOLEAN) return decode_booleans(out, count, column, page);
    if (page->encoding == BJ_ENCODING_PLAIN)
        return convert(out, count, page->values, page->values_size, column);
    if (page->encoding == BJ_ENCODING_DELTA_BINARY_PACKED && is_integer)
        return decode_deltas(out, count, column, page);
    if (page->encoding == BJ_ENCODING_BYTE_STREAM_SPLIT)
        return decode_streams(out, count, column, page);
    return bj_pages_unsupported(&column->pages, page, "numbers");
}
