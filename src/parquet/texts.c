/* texts.c - decodes pages of byte arrays and fixed-size values to bj_text.
 *
 * A text points into its page, so the page stays in the store or in the file. Only texts that are
 * stored in pieces (DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT) are assembled in separate memory.
 * Test: tests/parquet/test_encodings.c
 */
#include <string.h>

#include "parquet/column.h"
#include "parquet/delta.h"

static uint32_t load32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Decodes texts that are stored as a u32 length followed by bytes, or as bytes of a fixed size. */
static const char *decode_plain(bj_text *out, size_t count, const uint8_t *in, size_t size,
                                int fixed) {
    const uint8_t *end = in + size;
    if (fixed) {
        if (count > size / (size_t)fixed) return "values of a fixed size end too early";
        for (size_t i = 0; i < count; i++, in += fixed)
            out[i] = (bj_text){(const char *)in, (size_t)fixed};
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (end - in < 4) return "strings end too early";
        const uint32_t length = load32(in);
        in += 4;
        if (length > (size_t)(end - in)) return "a string exceeds its page";
        out[i] = (bj_text){(const char *)in, length};
        in += length;
    }
    return NULL;
}

/* Decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. */
static bj_status decode_lengths(bj_text *out, size_t count, const uint8_t *in, size_t size,
                                bj_column *column) {
    uint64_t *lengths;
    size_t used;
    BJ_TRY(BJ_STORE(lengths, &column->pages.parquet->store, count, column->pages.err));
    BJ_TRY(bj_pages_judge(&column->pages, bj_delta_decode(lengths, count, in, size, &used)));
    in += used;
    size -= used;
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] > size) return bj_pages_judge(&column->pages, "a string exceeds its page");
        out[i] = (bj_text){(const char *)in, (size_t)lengths[i]};
        in += lengths[i];
        size -= lengths[i];
    }
    return BJ_OK;
}

/* Decodes DELTA_BYTE_ARRAY, which stores the lengths of shared prefixes, then the suffixes. */
static bj_status decode_prefixes(bj_text *out, size_t count, bj_column *column,
                                 const bj_page *page) {
    bj_store *store = &column->pages.parquet->store;
    const int fixed = column->pages.leaf->column.fixed_size;
    uint64_t *kept;
    size_t used, total = 0;
    BJ_TRY(BJ_STORE(kept, store, count, column->pages.err));
    BJ_TRY(bj_pages_judge(&column->pages,
                          bj_delta_decode(kept, count, page->values, page->values_size, &used)));
    BJ_TRY(decode_lengths(out, count, page->values + used, page->values_size - used, column));
    for (size_t i = 0, before = 0; i < count; i++) {
        if (kept[i] > before)
            return bj_pages_judge(&column->pages,
                                  "the prefix of a string is longer than the previous string");
        before = (size_t)kept[i] + out[i].size;
        if (fixed && before != (size_t)fixed)
            return bj_pages_judge(&column->pages,
                                  "the size of a value differs from the value size of the column");
        if (before > store->limit - total)
            return bj_pages_judge(&column->pages, "strings are longer than the file size allows");
        total += before;
    }
    char *memory;
    BJ_TRY(BJ_STORE(memory, store, total, column->pages.err));
    const char *before = memory;
    for (size_t i = 0; i < count; i++) {
        const size_t prefix = (size_t)kept[i];
        memcpy(memory, before, prefix);
        memcpy(memory + prefix, out[i].data, out[i].size);
        before = memory;
        out[i] = (bj_text){before, prefix + out[i].size};
        memory += out[i].size;
    }
    return BJ_OK;
}

static bj_status decode_streams(bj_text *out, size_t count, bj_column *column,
                                const bj_page *page) {
    const int fixed = column->pages.leaf->column.fixed_size;
    uint8_t *plain;
    if (page->values_size / (size_t)fixed < count || page->values_size != count * (size_t)fixed)
        return bj_pages_judge(&column->pages,
                              "the size of the split streams differs from the size of the values");
    BJ_TRY(BJ_STORE(plain, &column->pages.parquet->store, page->values_size, column->pages.err));
    bj_join_streams(plain, page->values, count, (size_t)fixed);
    return bj_pages_judge(&column->pages,
                          decode_plain(out, count, plain, page->values_size, fixed));
}

bj_status bj_texts_dictionary(bj_column *column, const bj_page *page) {
    const int fixed = column->pages.leaf->column.fixed_size;
    if (page->count > page->values_size / (size_t)(fixed ? fixed : 4))
        return bj_pages_judge(&column->pages, "the dictionary ends too early");
    bj_text *texts;
    BJ_TRY(BJ_STORE(texts, &column->pages.parquet->store, page->count, column->pages.err));
    column->dictionary = texts;
    column->entries = page->count;
    return bj_pages_judge(&column->pages,
                          decode_plain(texts, page->count, page->values, page->values_size, fixed));
}

bj_status bj_texts_decode(bj_text *out, size_t count, bj_column *column, const bj_page *page) {
    const int fixed = column->pages.leaf->column.fixed_size;
    if (bj_page_is_coded(page)) {
        BJ_TRY(bj_column_indices(count, column, page));
        const bj_text *texts = column->dictionary;
        for (size_t i = 0; i < count; i++) out[i] = texts[column->indices[i]];
        return BJ_OK;
    }
    switch (page->encoding) {
    case BJ_ENCODING_PLAIN:
        return bj_pages_judge(&column->pages,
                              decode_plain(out, count, page->values, page->values_size, fixed));
    case BJ_ENCODING_DELTA_LENGTH_BYTE_ARRAY:
        if (fixed) break;
        return decode_lengths(out, count, page->values, page->values_size, column);
    case BJ_ENCODING_DELTA_BYTE_ARRAY: return decode_prefixes(out, count, column, page);
    case BJ_ENCODING_BYTE_STREAM_SPLIT:
        if (!fixed) break;
        return decode_streams(out, count, column, page);
    }
    return bj_pages_unsupported(&column->pages, page, "texts");
}

/* ---------------------------------------------------------------------------------- vocabulary */

static uint64_t hash_of(bj_text text, uint64_t seed) {
    uint64_t hash = seed ^ text.size;
    for (size_t i = 0; i < text.size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text.data + i, text.size - i < 8 ? text.size - i : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash ^ hash >> 32;
}

static int same(bj_text a, bj_text b) {
    return a.size == b.size && (a.data == b.data || !memcmp(a.data, b.data, a.size));
}

/* Makes room for one more text and keeps the table at most half full. */
static bj_status reserve(bj_vocabulary *v, bj_store *store, bj_error *err) {
    if (v->count < v->room) return BJ_OK;
    const int32_t room = v->room ? 2 * v->room : 64;
    bj_text *texts;
    uint32_t *table;
    if (v->room > INT32_MAX / 4)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: more than %ld distinct strings", store->label,
                       (long)v->room);
    BJ_TRY(BJ_STORE(texts, store, (size_t)room, err));
    BJ_TRY(BJ_STORE(table, store, 2 * (size_t)room, err));
    if (v->count) memcpy(texts, v->texts, (size_t)v->count * sizeof *texts);
    memset(table, 0, 2 * (size_t)room * sizeof *table);
    v->texts = texts;
    v->table = table;
    v->room = room;
    v->slots = 2 * (uint32_t)room;
    for (int32_t i = 0; i < v->count; i++) {
        uint32_t slot = (uint32_t)hash_of(texts[i], v->seed) & (v->slots - 1);
        while (table[slot]) slot = (slot + 1) & (v->slots - 1);
        table[slot] = (uint32_t)i + 1;
    }
    return BJ_OK;
}

bj_status bj_vocabulary_code(int32_t *code, bj_vocabulary *vocabulary, bj_text text,
                             bj_store *store, bj_error *err) {
    bj_vocabulary *v = vocabulary;
    BJ_TRY(reserve(v, store, err));
    uint32_t slot = (uint32_t)hash_of(text, v->seed) & (v->slots - 1);
    for (; v->table[slot]; slot = (slot + 1) & (v->slots - 1)) {
        *code = (int32_t)v->table[slot] - 1;
        if (same(v->texts[*code], text)) return BJ_OK;
    }
    *code = v->count++;
    v->texts[*code] = text;
    v->table[slot] = (uint32_t)*code + 1;
    return BJ_OK;
}
