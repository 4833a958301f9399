/* pages.c - see pages.h. */
#include "parquet/pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parquet/thrift.h"

enum { KIND_DATA = 0, KIND_DICTIONARY = 2, KIND_DATA_V2 = 3 }; /* page types */

const char *bj_encoding_name(int encoding) {
    static const char *const names[] = {[BJ_ENCODING_PLAIN] = "PLAIN",
                                        [BJ_ENCODING_PLAIN_DICTIONARY] = "PLAIN_DICTIONARY",
                                        [BJ_ENCODING_RLE] = "RLE",
                                        [BJ_ENCODING_BIT_PACKED] = "BIT_PACKED",
                                        [BJ_ENCODING_DELTA_BINARY_PACKED] = "DELTA_BINARY_PACKED",
                                        [BJ_ENCODING_DELTA_LENGTH_BYTE_ARRAY] =
                                            "DELTA_LENGTH_BYTE_ARRAY",
                                        [BJ_ENCODING_DELTA_BYTE_ARRAY] = "DELTA_BYTE_ARRAY",
                                        [BJ_ENCODING_RLE_DICTIONARY] = "RLE_DICTIONARY",
                                        [BJ_ENCODING_BYTE_STREAM_SPLIT] = "BYTE_STREAM_SPLIT"};
    const int known = (int)(sizeof names / sizeof *names);
    return encoding >= 0 && encoding < known && names[encoding] ? names[encoding]
                                                                : "an unknown encoding";
}

bj_status bj_pages_refuse(const bj_pages *pages, bj_status code, const char *fmt, ...) {
    char detail[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    return BJ_FAIL(pages->err, code, "%s: column '%.80s': %s", pages->parquet->label,
                   pages->leaf->column.name, detail);
}

#define REFUSE(pages, ...) bj_pages_refuse((pages), BJ_EFORMAT, __VA_ARGS__)

bj_status bj_pages_judge(const bj_pages *pages, const char *bad) {
    if (!bad) return BJ_OK;
    return REFUSE(pages, "page at byte %zu: %s", (size_t)(pages->page - pages->parquet->data), bad);
}

bj_status bj_pages_unsupported(const bj_pages *pages, const bj_page *page, const char *of) {
    return bj_pages_refuse(pages, BJ_EVERSION, "encoding %d (%s) of %s is not supported",
                           page->encoding, bj_encoding_name(page->encoding), of);
}

void bj_pages_start(bj_pages *pages, bj_parquet *parquet, const bj_leaf *leaf, bj_error *err) {
    *pages = (bj_pages){.parquet = parquet, .leaf = leaf, .err = err, .work = parquet->store.limit};
}

bj_status bj_pages_open(bj_pages *pages, int group) {
    const bj_parquet *parquet = pages->parquet;
    const bj_footer *footer = &parquet->footer;
    const bj_leaf *leaf = pages->leaf;
    const bj_chunk *chunk =
        &footer->chunks[(size_t)group * (size_t)footer->chunks_each + (size_t)leaf->chunk];
    const int64_t rows = footer->group_rows[group];
    pages->chunk = chunk;
    pages->left = chunk->values;
    if (chunk->obstacle)
        return bj_pages_refuse(pages, BJ_EVERSION, "%s is not supported", chunk->obstacle);
    if (chunk->type != (int)leaf->column.type)
        return REFUSE(pages, "row group %d has type %d, but the schema has %d", group, chunk->type,
                      (int)leaf->column.type);
    if (chunk->values < 0 || (!leaf->max_rep && chunk->values != rows))
        return REFUSE(pages, "row group %d has %lld values, expected %lld", group,
                      (long long)chunk->values, (long long)rows);
    pages->at = pages->end = parquet->data;
    if (!chunk->values) return BJ_OK; /* offsets of empty chunks may be invalid */
    if (!bj_codec_known(chunk->codec))
        return bj_pages_refuse(pages, BJ_EVERSION, "compression %d (%s) is not supported",
                               chunk->codec, bj_codec_name(chunk->codec));
    if (chunk->offset < 4 || chunk->size < 0 || (uint64_t)chunk->offset > parquet->size ||
        (uint64_t)chunk->size > parquet->size - (uint64_t)chunk->offset)
        return REFUSE(pages, "row group %d declares %lld bytes at byte %lld, but the file has %zu",
                      group, (long long)chunk->size, (long long)chunk->offset, parquet->size);
    pages->at = parquet->data + chunk->offset;
    pages->end = pages->at + chunk->size;
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- header */

typedef struct header {
    int kind, unpacked, packed; /* sizes in bytes */
    int has_checksum;
    uint32_t checksum;
    int count, encoding, def_encoding, rep_encoding;
    int def_size, rep_size, is_packed; /* only v2 */
    int described;                     /* 1 if the struct of this page type exists */
} header;

/* Parses the struct of a page type. Field ids differ between the three page types. */
static void parse_kind(header *h, int kind, bj_wire *in) {
    bj_wire_field field = {0};
    const int v2 = kind == KIND_DATA_V2;
    if (h->kind == kind) h->described = 1;
    while (bj_wire_next(in, &field)) {
        if (field.id == 1) h->count = bj_wire_int32(in, field);
        else if (field.id == (v2 ? 4 : 2)) h->encoding = bj_wire_int32(in, field);
        else if (kind == KIND_DATA && field.id == 3) h->def_encoding = bj_wire_int32(in, field);
        else if (kind == KIND_DATA && field.id == 4) h->rep_encoding = bj_wire_int32(in, field);
        else if (v2 && field.id == 5) h->def_size = bj_wire_int32(in, field);
        else if (v2 && field.id == 6) h->rep_size = bj_wire_int32(in, field);
        else if (v2 && field.id == 7) h->is_packed = bj_wire_bool(in, field);
        else bj_wire_skip(in, field.type);
    }
}

static void parse_header(header *h, bj_wire *in) {
    bj_wire_field field = {0};
    *h = (header){.kind = -1, .unpacked = -1, .packed = -1, .count = -1, .is_packed = 1};
    while (bj_wire_next(in, &field)) {
        switch (field.id) {
        case 1: h->kind = bj_wire_int32(in, field); break;
        case 2: h->unpacked = bj_wire_int32(in, field); break;
        case 3: h->packed = bj_wire_int32(in, field); break;
        case 4:
            h->checksum = (uint32_t)bj_wire_int32(in, field);
            h->has_checksum = 1;
            break;
        case 5:
        case 7:
        case 8:
            if (bj_wire_is_struct(in, field))
                parse_kind(h,
                           field.id == 5   ? KIND_DATA
                           : field.id == 7 ? KIND_DICTIONARY
                                           : KIND_DATA_V2,
                           in);
            break;
        default: bj_wire_skip(in, field.type);
        }
    }
}

/* Parses the header of the next page and moves pages->at past the page. */
static bj_status next_header(header *h, bj_pages *pages) {
    if (pages->at == pages->end)
        return REFUSE(pages, "its pages end %lld values before the end of the chunk",
                      (long long)pages->left);
    bj_wire in = {.at = pages->at, .end = pages->end};
    pages->page = pages->at;
    parse_header(h, &in);
    if (in.bad)
        return REFUSE(pages, "page at byte %zu: damaged header: %s",
                      (size_t)(pages->page - pages->parquet->data), in.bad);
    if (h->kind < 0 || h->unpacked < 0 || h->packed < 0)
        return bj_pages_judge(pages, "the page type or size is missing or negative");
    if (h->packed > in.end - in.at)
        return REFUSE(pages, "the page at byte %zu has %d bytes, but its chunk has only %zu more",
                      (size_t)(pages->page - pages->parquet->data), h->packed,
                      (size_t)(in.end - in.at));
    pages->page = in.at;
    pages->at = in.at + h->packed;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- content */

/* Unpacks `size` bytes at `in` to `unpacked` bytes. Uncompressed data is not copied. */
static bj_status unpack(const uint8_t **out, const uint8_t *in, size_t size, size_t unpacked,
                        int codec, bj_pages *pages) {
    bj_parquet *parquet = pages->parquet;
    *out = in;
    if (!unpacked) return BJ_OK;
    if (!bj_codec_plausible(codec, size, unpacked))
        return REFUSE(pages, "page at byte %zu: %zu bytes (%s) cannot unpack to %zu bytes",
                      (size_t)(pages->page - parquet->data), size, bj_codec_name(codec), unpacked);
    if (codec == BJ_CODEC_NONE) return BJ_OK;
    if (unpacked > pages->work)
        return REFUSE(pages,
                      "its pages unpack to more than %zu bytes, "
                      "which is too much for a file of %zu bytes",
                      parquet->store.limit, parquet->size);
    pages->work -= unpacked;
    uint8_t *memory;
    const char *why;
    BJ_TRY(BJ_STORE(memory, &parquet->store, unpacked, pages->err));
    const bj_status status =
        bj_codec_unpack(memory, unpacked, in, size, codec, &parquet->codecs, &why);
    if (status == BJ_EFORMAT) return bj_pages_judge(pages, why);
    if (status != BJ_OK) return bj_pages_refuse(pages, status, "out of memory to unpack a page");
    *out = memory;
    return BJ_OK;
}

/* Splits the levels, which start with their size, from the values of a v1 page. */
static bj_status cut_levels(const uint8_t **levels, size_t *size, bj_page *page, int encoding,
                            const char *what, bj_pages *pages) {
    if (encoding != BJ_ENCODING_RLE)
        return bj_pages_refuse(pages, BJ_EVERSION, "encoding %d (%s) of %s levels is not supported",
                               encoding, bj_encoding_name(encoding), what);
    const uint8_t *v = page->values;
    if (page->values_size < 4) return bj_pages_judge(pages, "levels end too early");
    *size = (size_t)v[0] | (size_t)v[1] << 8 | (size_t)v[2] << 16 | (size_t)v[3] << 24;
    if (*size > page->values_size - 4) return bj_pages_judge(pages, "levels exceed the page");
    *levels = v + 4;
    page->values += 4 + *size;
    page->values_size -= 4 + *size;
    return BJ_OK;
}

static bj_status read_v1(bj_page *page, const header *h, const uint8_t *in, bj_pages *pages) {
    BJ_TRY(unpack(&page->values, in, (size_t)h->packed, (size_t)h->unpacked, pages->chunk->codec,
                  pages));
    page->values_size = (size_t)h->unpacked;
    if (pages->leaf->max_rep && !page->is_dictionary)
        BJ_TRY(cut_levels(&page->rep, &page->rep_size, page, h->rep_encoding, "repetition", pages));
    if (pages->leaf->max_def && !page->is_dictionary)
        BJ_TRY(cut_levels(&page->def, &page->def_size, page, h->def_encoding, "definition", pages));
    return BJ_OK;
}

static bj_status read_v2(bj_page *page, const header *h, const uint8_t *in, bj_pages *pages) {
    if (h->rep_size < 0 || h->def_size < 0 || h->rep_size > h->packed ||
        h->def_size > h->packed - h->rep_size || h->rep_size > h->unpacked ||
        h->def_size > h->unpacked - h->rep_size)
        return bj_pages_judge(pages, "levels exceed the page");
    page->rep_size = (size_t)h->rep_size;
    page->def_size = (size_t)h->def_size;
    page->rep = in;
    page->def = in + page->rep_size;
    const size_t levels = page->rep_size + page->def_size;
    page->values_size = (size_t)h->unpacked - levels;
    return unpack(&page->values, in + levels, (size_t)h->packed - levels, page->values_size,
                  h->is_packed ? pages->chunk->codec : BJ_CODEC_NONE, pages);
}

bj_status bj_pages_next(bj_page *page, bj_pages *pages) {
    header h = {0};
    do { /* skip other page types and empty pages */
        BJ_TRY(next_header(&h, pages));
    } while ((h.kind != KIND_DATA && h.kind != KIND_DICTIONARY && h.kind != KIND_DATA_V2) ||
             (h.kind != KIND_DICTIONARY && h.count == 0));
    if (!h.described || h.count < 0)
        return bj_pages_judge(pages, "the value count is missing or negative");
    *page = (bj_page){.is_dictionary = h.kind == KIND_DICTIONARY,
                      .encoding = h.encoding,
                      .count = (size_t)h.count};
    if (!page->is_dictionary && h.count > pages->left)
        return REFUSE(pages, "the page at byte %zu has %d values, but its chunk has only %lld more",
                      (size_t)(pages->page - pages->parquet->data), h.count,
                      (long long)pages->left);
    if (h.has_checksum && bj_codec_crc32(pages->page, (size_t)h.packed) != h.checksum)
        return bj_pages_judge(pages, "the bytes do not match their checksum");
    BJ_TRY(h.kind == KIND_DATA_V2 ? read_v2(page, &h, pages->page, pages)
                                  : read_v1(page, &h, pages->page, pages));
    if (!page->is_dictionary) pages->left -= h.count;
    return BJ_OK;
}
