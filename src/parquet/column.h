/* column.h - decodes the pages of a column into an array.
 *
 * The non-null values of a flat column are decoded contiguously. If there are nulls, the values are
 * then moved to their rows, last value first. Numbers become 8-byte words, int64_t or double. Texts
 * become bj_text, which point into pages that stay in the store, or codes of distinct texts.
 *
 * Tests: tests/parquet/test_reader.c, tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_COLUMN_H
#define BJ_PARQUET_COLUMN_H

#include "parquet/pages.h"

typedef enum bj_form { BJ_FORM_INT64, BJ_FORM_DOUBLE, BJ_FORM_TEXT } bj_form;

/* The distinct texts found so far, numbered in order of first appearance. */
typedef struct bj_vocabulary {
    bj_text *texts; /* (room) */
    int32_t count, room;
    uint32_t *table; /* open addressing: 1 + code, or 0 */
    uint32_t slots;  /* a power of two */
    uint64_t seed;   /* hash seed that the author of a file cannot predict */
} bj_vocabulary;

typedef struct bj_column {
    bj_pages pages;
    bj_form form;
    int64_t row;       /* first row of the current page */
    size_t most;       /* max number of values in a chunk */
    uint32_t *indices; /* (most + BJ_HYBRID_ROOM) */
    uint32_t *def;     /* (most + BJ_HYBRID_ROOM) NULL for required columns */
    uint32_t *rep;     /* (most + BJ_HYBRID_ROOM) NULL for flat columns */
    void *dictionary;  /* (entries) words or texts of the chunk, NULL if not read yet */
    size_t entries;
} bj_column;

/* Checks that the column can be read as `form`, and allocates scratch memory from the store. */
BJ_CHECK bj_status bj_column_start(bj_column *column, bj_parquet *parquet, int index, int is_list,
                                   bj_form form, bj_error *err);

/* Reads a flat column into out (rows), as words or texts. Fills valid (rows). If valid is NULL,
 * fails at the first null. */
BJ_CHECK bj_status bj_column_read(void *out, uint8_t *valid, bj_column *column);
/* Reads a flat text column as codes (rows). */
BJ_CHECK bj_status bj_column_read_codes(int32_t *codes, bj_vocabulary *vocabulary,
                                        bj_column *column);
/* Reads a list column of numbers into start (rows + 1) and values (bj_column_values). */
BJ_CHECK bj_status bj_column_read_list(int64_t *start, void *values, bj_column *column);
/* Returns the total number of values that the chunks declare. */
BJ_CHECK bj_status bj_column_values(size_t *out, const bj_column *column);

/* ---------------------------------------------------------------- decoders for numbers and texts
 */

/* Decode the dictionary page of a chunk. */
BJ_CHECK bj_status bj_numbers_dictionary(bj_column *column, const bj_page *page);
BJ_CHECK bj_status bj_texts_dictionary(bj_column *column, const bj_page *page);
/* Decode the `count` non-null values of a data page contiguously. */
BJ_CHECK bj_status bj_numbers_decode(void *out, size_t count, bj_column *column,
                                     const bj_page *page);
BJ_CHECK bj_status bj_texts_decode(bj_text *out, size_t count, bj_column *column,
                                   const bj_page *page);
/* Decodes `count` dictionary indices into column->indices. Fails if an index is not below
 * column->entries. */
BJ_CHECK bj_status bj_column_indices(size_t count, bj_column *column, const bj_page *page);
static inline int bj_page_is_coded(const bj_page *page) {
    return page->encoding == BJ_ENCODING_RLE_DICTIONARY ||
           page->encoding == BJ_ENCODING_PLAIN_DICTIONARY;
}
/* Decodes BYTE_STREAM_SPLIT, in which byte b of value i is in[b * count + i]. */
void bj_join_streams(uint8_t *out, const uint8_t *in, size_t count, size_t width);

/* Returns the code of a text. Adds the text if it is new. */
BJ_CHECK bj_status bj_vocabulary_code(int32_t *code, bj_vocabulary *vocabulary, bj_text text,
                                      bj_store *store, bj_error *err);

#endif
