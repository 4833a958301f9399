/* pages.h - the pages of one column, unpacked one at a time.
 *
 *   v1  header | packed: [u32 size, repetition levels] [u32 size, definition levels] values
 *   v2  header | repetition levels, definition levels | packed or not: values
 *
 * A chunk begins with a dictionary page or none. Index pages and kinds not known are skipped, pages
 * with a checksum are held against it.
 *
 * Invariants
 *   1. A page's bytes lie inside its chunk, and the chunk inside the file.
 *   2. Data pages never hand out more values than the chunk claims.
 *   3. The pages of one read unpack to no more bytes than the store's limit, all together.
 */
#ifndef BJ_PARQUET_PAGES_H
#define BJ_PARQUET_PAGES_H

#include "core/file.h"
#include "parquet/codecs.h"
#include "parquet/footer.h"
#include "parquet/store.h"

struct bj_parquet {
    char *label; /* the path, in the store */
    const uint8_t *data;
    size_t size;
    bj_store store;
    bj_codecs codecs;
    bj_footer footer;
    bj_file_map map; /* of a file opened by path, or closed */
};

/* Numbers of the format. */
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
    size_t count; /* entries of a dictionary; values, nulls and empty lists included */
    const uint8_t *rep, *def, *values; /* levels without their size */
    size_t rep_size, def_size, values_size;
} bj_page;

typedef struct bj_pages {
    bj_parquet *parquet;
    const bj_leaf *leaf;
    bj_error *err;
    const bj_chunk *chunk;
    const uint8_t *at, *end; /* not yet read */
    const uint8_t *page;     /* where the page at hand begins */
    int64_t left;            /* values not yet handed out */
    size_t work;             /* bytes that may still be unpacked */
} bj_pages;

/* Reading of a column; then of each of its chunks. */
void bj_pages_start(bj_pages *pages, bj_parquet *parquet, const bj_leaf *leaf, bj_error *err);
BJ_CHECK bj_status bj_pages_open(bj_pages *pages, int group);
/* The next page with anything in it; to be called while pages->left. Memory comes from the store.
 */
BJ_CHECK bj_status bj_pages_next(bj_page *page, bj_pages *pages);

/* "FILE: column 'NAME': ..." */
bj_status bj_pages_refuse(const bj_pages *pages, bj_status code, const char *fmt, ...)
    BJ_PRINTF(3, 4);
/* The same about the page at hand, with its place in the file; BJ_OK when bad is NULL. */
BJ_CHECK bj_status bj_pages_judge(const bj_pages *pages, const char *bad);
/* "encoding X of numbers is not supported" */
bj_status bj_pages_unsupported(const bj_pages *pages, const bj_page *page, const char *of);

#endif
