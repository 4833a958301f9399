/* writer_pages.c - writes column chunks of a Parquet file; see writer.h for the supported subset.
 *
 * A chunk consists of a dictionary page (if it saves space) and data pages of about PAGE bytes.
 * Pages end at row boundaries. A data page contains, before compression:
 *
 *   lists   u32 size, repetition levels: 0 starts a row, 1 continues it
 *   all     u32 size, definition levels: flat 1; lists 3 for an element, 1 for an empty list
 *   values  PLAIN, or one byte with the width of the dictionary codes and the codes
 *
 * Tests: tests/parquet/test_writer.c, tests/parquet/peer_writer.py
 */
#include <string.h>

#include "parquet/snappy_pack.h"
#include "parquet/writer_internal.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "writer_pages.c copies little-endian numbers as they are"
#endif

/* Values from the Parquet specification. */
enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { UNCOMPRESSED = 0, SNAPPY = 1 };

enum { PAGE = 1 << 20 }; /* target size of the values in a data page, in bytes */

/* ---------------------------------------------------------------------------------------- pages */

/* Compresses writer->page and writes it after its header. */
static bj_status put_page(bj_parquet_writer *writer, bj_chunk *c, int type, int64_t values,
                          int encoding, bj_error *err) {
    const bj_bytes *body = &writer->page;
    BJ_TRY(bj_bytes_check(body, err));
    if (body->size > BJ_PAGE_MAX)
        return BJ_FAIL(err, BJ_EARG, "%s: column '%s': a page has %zu bytes, expected at most %d",
                       writer->path, c->field->name, body->size, (int)BJ_PAGE_MAX);
    if (writer->codec == BJ_PARQUET_SNAPPY) {
        uint16_t table[BJ_SNAPPY_TABLE];
        bj_bytes_reset(&writer->packed);
        unsigned char *const at = bj_bytes_extend(&writer->packed, bj_snappy_bound(body->size));
        BJ_TRY(bj_bytes_check(&writer->packed, err));
        writer->packed.size = bj_snappy_pack(at, body->data, body->size, table);
        body = &writer->packed;
    }
    bj_bytes *const head = &writer->head;
    bj_bytes_reset(head);
    bj_emit page = {head, 0};
    bj_emit_int(&page, 1, BJ_EMIT_I32, type);
    bj_emit_int(&page, 2, BJ_EMIT_I32, (int64_t)writer->page.size);
    bj_emit_int(&page, 3, BJ_EMIT_I32, (int64_t)body->size);
    bj_emit details = bj_emit_struct(&page, type == DATA_PAGE ? 5 : 7);
    bj_emit_int(&details, 1, BJ_EMIT_I32, values);
    bj_emit_int(&details, 2, BJ_EMIT_I32, encoding);
    if (type == DATA_PAGE) {
        bj_emit_int(&details, 3, BJ_EMIT_I32, RLE); /* definition levels */
        bj_emit_int(&details, 4, BJ_EMIT_I32, RLE); /* repetition levels */
    }
    bj_emit_end(&details);
    bj_emit_end(&page);
    BJ_TRY(bj_bytes_check(head, err));
    c->raw += head->size + writer->page.size;
    c->stored += head->size + body->size;
    BJ_TRY(bj_parquet_writer_put(writer, head->data, head->size, err));
    return bj_parquet_writer_put(writer, body->data, body->size, err);
}

static void put_text(bj_bytes *out, const bj_text *text) {
    bj_bytes_put_u32(out, (uint32_t)text->size);
    bj_bytes_put(out, text->data, text->size);
}

static bj_status put_dictionary(bj_parquet_writer *writer, bj_chunk *c, bj_error *err) {
    const bj_distinct *d = &writer->distinct;
    bj_bytes *const page = &writer->page;
    bj_bytes_reset(page);
    for (int32_t i = 0; i < d->count; i++) {
        if (c->field->type == BJ_PARQUET_BYTE_ARRAY) put_text(page, &c->data.texts[d->first[i]]);
        else bj_bytes_put(page, &c->data.integers[d->first[i]], 8);
    }
    c->dictionary_at = writer->offset;
    return put_page(writer, c, DICTIONARY_PAGE, d->count, PLAIN, err);
}

/* Start and end a block of levels. The size of the block is filled in when it ends. */
static size_t levels_begin(bj_bytes *out) {
    bj_bytes_put_u32(out, 0);
    return out->size;
}

static void levels_end(bj_bytes *out, size_t begin) {
    if (out->failed) return;
    const uint32_t size = (uint32_t)(out->size - begin);
    for (int i = 0; i < 4; i++) out->data[begin - 4 + i] = (unsigned char)(size >> 8 * i);
}

/* Writes the levels of the lists [r0,r1) and returns their count. */
static int64_t put_list_levels(bj_bytes *out, const int64_t *start, int64_t r0, int64_t r1) {
    int64_t opened = 0, levels = 0;
    size_t begin = levels_begin(out);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t size = start[r + 1] - start[r];
        opened++; /* merges the zeros of consecutive rows that have at most one element */
        if (size < 2 && r + 1 < r1) continue;
        bj_hybrid_run(out, 0, (uint64_t)opened, 1);
        if (size > 1) bj_hybrid_run(out, 1, (uint64_t)size - 1, 1);
        opened = 0;
    }
    levels_end(out, begin);
    begin = levels_begin(out);
    for (int64_t r = r0; r < r1;) {
        int64_t end = r;
        const int empty = start[r + 1] == start[r];
        while (end < r1 && (start[end + 1] == start[end]) == empty) end++;
        const int64_t run = empty ? end - r : start[end] - start[r];
        bj_hybrid_run(out, empty ? 1 : 3, (uint64_t)run, 2);
        levels += run;
        r = end;
    }
    levels_end(out, begin);
    return levels;
}

static void put_booleans(bj_bytes *out, const uint8_t *values, int64_t count) {
    unsigned char *const at = bj_bytes_extend(out, (size_t)(count + 7) / 8);
    if (!at) return;
    memset(at, 0, (size_t)(count + 7) / 8);
    for (int64_t i = 0; i < count; i++) at[i / 8] |= (unsigned char)((values[i] != 0) << i % 8);
}

static bj_status put_data_page(bj_parquet_writer *writer, bj_chunk *c, int64_t r0, int64_t r1,
                               bj_error *err) {
    bj_bytes *const page = &writer->page;
    int64_t values = r1 - r0, v0 = r0, v1 = r1;
    bj_bytes_reset(page);
    if (c->start) {
        values = put_list_levels(page, c->start, r0, r1);
        v0 = c->start[r0];
        v1 = c->start[r1];
    } else {
        const size_t begin = levels_begin(page);
        bj_hybrid_run(page, 1, (uint64_t)values, 1);
        levels_end(page, begin);
    }
    if (c->use_dictionary) {
        const int32_t *codes = writer->distinct.codes + (v0 - (c->start ? c->start[0] : 0));
        bj_bytes_put_byte(page, (unsigned)c->code_width);
        bj_hybrid_values(page, codes, (size_t)(v1 - v0), c->code_width);
    } else if (c->field->type == BJ_PARQUET_BYTE_ARRAY) {
        for (int64_t r = r0; r < r1; r++) put_text(page, &c->data.texts[r]);
    } else if (c->field->type == BJ_PARQUET_BOOLEAN) {
        put_booleans(page, c->data.booleans + r0, r1 - r0);
    } else if (v1 > v0) {
        bj_bytes_put(page, c->data.integers + v0, 8 * (size_t)(v1 - v0));
    }
    c->values += values;
    return put_page(writer, c, DATA_PAGE, values, c->use_dictionary ? RLE_DICTIONARY : PLAIN, err);
}

/* --------------------------------------------------------------------------------- column chunks
 */

/* Finds the distinct values. Uses a dictionary only if at most half of the values are distinct. */
static bj_status find_dictionary(bj_parquet_writer *writer, bj_chunk *c, int64_t rows,
                                 bj_error *err) {
    const int64_t first = c->start ? c->start[0] : 0;
    const int64_t count = c->start ? c->start[rows] - first : rows;
    const int64_t limit = count / 2 > 1 ? count / 2 : 1;
    if (!c->field->dictionary || c->field->type == BJ_PARQUET_BOOLEAN || !count ||
        count > INT32_MAX)
        return BJ_OK;
    if (c->field->type == BJ_PARQUET_BYTE_ARRAY)
        BJ_TRY(bj_distinct_texts(&writer->distinct, &c->use_dictionary, c->data.texts, rows, limit,
                                 err));
    else
        BJ_TRY(bj_distinct_words(&writer->distinct, &c->use_dictionary, c->data.integers + first,
                                 count, limit, err));
    c->code_width = 1; /* never 0, because some readers do not support width 0 */
    while (c->code_width < 31 && writer->distinct.count > INT32_C(1) << c->code_width)
        c->code_width++;
    return BJ_OK;
}

/* Returns the number of bytes that the values of row r take in a page. */
static uint64_t row_bytes(const bj_chunk *c, int64_t r) {
    if (c->use_dictionary) return 4 * (uint64_t)(c->start ? c->start[r + 1] - c->start[r] : 1);
    if (c->start) return 8 + 8 * (uint64_t)(c->start[r + 1] - c->start[r]);
    if (c->field->type == BJ_PARQUET_BYTE_ARRAY) return 4 + (uint64_t)c->data.texts[r].size;
    return c->field->type == BJ_PARQUET_BOOLEAN ? 1 : 8;
}

static void describe_chunk(bj_bytes *out, const bj_chunk *c, bj_parquet_codec codec) {
    const bj_parquet_field *f = c->field;
    bj_emit column = {out, 0};
    bj_emit_int(&column, 2, BJ_EMIT_I64, 0); /* metadata is stored only in the footer */
    bj_emit meta = bj_emit_struct(&column, 3);
    bj_emit_int(&meta, 1, BJ_EMIT_I32, f->type);
    bj_emit_list(&meta, 2, BJ_EMIT_I32, c->use_dictionary ? 3 : 2);
    bj_emit_element_int(&meta, PLAIN);
    bj_emit_element_int(&meta, RLE);
    if (c->use_dictionary) bj_emit_element_int(&meta, RLE_DICTIONARY);
    bj_emit_list(&meta, 3, BJ_EMIT_BINARY, f->is_list ? 3 : 1);
    bj_emit_element_text(&meta, f->name);
    if (f->is_list) {
        bj_emit_element_text(&meta, "list");
        bj_emit_element_text(&meta, "element");
    }
    bj_emit_int(&meta, 4, BJ_EMIT_I32, codec == BJ_PARQUET_SNAPPY ? SNAPPY : UNCOMPRESSED);
    bj_emit_int(&meta, 5, BJ_EMIT_I64, c->values);
    bj_emit_int(&meta, 6, BJ_EMIT_I64, (int64_t)c->raw);
    bj_emit_int(&meta, 7, BJ_EMIT_I64, (int64_t)c->stored);
    bj_emit_int(&meta, 9, BJ_EMIT_I64, (int64_t)c->data_at);
    if (c->use_dictionary) bj_emit_int(&meta, 11, BJ_EMIT_I64, (int64_t)c->dictionary_at);
    bj_emit_end(&meta);
    bj_emit_end(&column);
}

bj_status bj_chunk_write(bj_parquet_writer *writer, bj_chunk *c, int64_t rows, bj_error *err) {
    BJ_TRY(find_dictionary(writer, c, rows, err));
    if (c->use_dictionary) BJ_TRY(put_dictionary(writer, c, err));
    c->data_at = writer->offset;
    for (int64_t r = 0; r < rows;) {
        int64_t end = r;
        uint64_t bytes = 0;
        while (end < rows && bytes < PAGE) bytes += row_bytes(c, end++);
        BJ_TRY(put_data_page(writer, c, r, end, err));
        r = end;
    }
    describe_chunk(&writer->group, c, writer->codec);
    return bj_bytes_check(&writer->group, err);
}
