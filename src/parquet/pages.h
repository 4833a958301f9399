/* pages.h - iterates over the pages of one column and unpacks them.
 *
 *   v1  header | packed: [u32 size, repetition levels] [u32 size, definition levels] values
 *   v2  header | repetition levels, definition levels | packed or not: values
 *
 * A chunk may start with a dictionary page. Index pages and unknown page types are skipped.
 * Checksums are verified if they are present.
 *
 * Invariants
 *   1. A page is inside its chunk, and a chunk is inside the file.
 *   2. Data pages never return more values than the chunk declares.
 *   3. All pages of one read together unpack to at most the store's limit in bytes.
 */
#ifndef BJ_PARQUET_PAGES_H
#define BJ_PARQUET_PAGES_H

#include "core/file.h"
#include "parquet/codecs.h"
#include "parquet/footer.h"
#include "parquet/store.h"

struct bj_parquet {
    char *label; /* the path, allocated from the store */
    const uint8_t *data;
    size_t size;
    bj_store store;
    bj_codecs codecs;
    bj_footer footer;
    bj_file_map map; /* used only if the file was opened by path */
};

/* Values from the Parquet specification. */
typedef enum bj_encoding {
    BJ_ENCODING_PLAIN = 0,
    BJ_ENCODING_PLAIN_DICTIONARY = 2,
    BJ_ENCODING_RLE = 3,
    BJ_ENCODING_BIT_PACKED = 4,
    BJ_ENCODING_DELTA_BINARY_PACKED = 5,
    BJ_ENCODING_DELTA_LENGTH_BYTE_ARRAY = 6,
    BJ_ENCODING_DELTA_BYTE_ARRAY = 7,
    BJ_ENCODING_RLE_DICTIONARY = 8,
    BJ_ENCODING_BYTE_STREAM_SPLIT = 9
} bj_encoding;

const char *bj_encoding_name(int encoding); /* for messages */

typedef struct bj_page {
    int is_dictionary;
    int encoding;
    size_t count; /* dictionary entries, or values including nulls and empty lists */
    const uint8_t *rep, *def, *values; /* levels without their size field */
    size_t rep_size, def_size, values_size;
} bj_page;

typedef struct bj_pages {
    bj_parquet *parquet;
    const bj_leaf *leaf;
    bj_error *err;
    const bj_chunk *chunk;
    const uint8_t *at, *end; /* remaining bytes of the chunk */
    const uint8_t *page;     /* start of the current page, for messages */
    int64_t left;            /* number of values that have not been returned yet */
    size_t work;             /* bytes that may still be unpacked */
} bj_pages;

/* bj_pages_start starts reading a column, bj_pages_open starts reading one of its chunks. */
void bj_pages_start(bj_pages *pages, bj_parquet *parquet, const bj_leaf *leaf, bj_error *err);
BJ_CHECK bj_status bj_pages_open(bj_pages *pages, int group);
/* Returns the next non-empty page. Call it only while pages->left > 0. Memory comes from the
 * store. */
BJ_CHECK bj_status bj_pages_next(bj_page *page, bj_pages *pages);

/* Fails with "FILE: column 'NAME': ...". */
bj_status bj_pages_refuse(const bj_pages *pages, bj_status code, const char *fmt, ...)
    BJ_PRINTF(3, 4);
/* Fails with a message that also contains the position of the current page. Returns BJ_OK if `bad`
 * is NULL. */
BJ_CHECK bj_status bj_pages_judge(const bj_pages *pages, const char *bad);
/* Fails with "encoding X of numbers is not supported". */
bj_status bj_pages_unsupported(const bj_pages *pages, const bj_page *page, const char *of);

#endif
