/* column.h - one column on its way from pages to an array.
 *
 * Flat columns: the values that are there are decoded next to each other and then, if there are
 * nulls, moved apart from the last one on. Numbers become words of 8 bytes, int64_t or double;
 * texts become bj_text, which point into pages that stay in the store, or numbers of texts.
 *
 * Tests: tests/parquet/test_reader.c, tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_COLUMN_H
#define BJ_PARQUET_COLUMN_H

#include "parquet/pages.h"

typedef enum bj_form { BJ_FORM_INT64, BJ_FORM_DOUBLE, BJ_FORM_TEXT } bj_form;

/* The distinct texts seen so far, numbered by first appearance. */
typedef struct bj_vocabulary {
    bj_text *texts; /* (room) */
    int32_t count, room;
    uint32_t *table; /* open addressing: 1 + code, or 0 */
    uint32_t slots;  /* a power of two */
    uint64_t seed;   /* of the hash, so that a file cannot know it */
} bj_vocabulary;

typedef struct bj_column {
    bj_pages pages;
    bj_form form;
    int64_t row;       /* first row of the page at hand */
    size_t most;       /* values of the largest chunk */
    uint32_t *indices; /* (most + BJ_HYBRID_ROOM) */
    uint32_t *def;     /* the same; NULL for required columns */
    uint32_t *rep;     /* the same; NULL for flat columns */
    void *dictionary;  /* (entries) words or texts of the chunk; NULL before its page */
    size_t entries;
} bj_column;

/* Checks that the column can be read in that form, and takes scratch from the store. */
BJ_CHECK bj_status bj_column_start(bj_column *column, bj_parquet *parquet, int index, int is_list,
                                   bj_form form, bj_error *err);

/* A flat column: out (rows) of words or texts; valid (rows) or NULL, and then nulls are refused. */
BJ_CHECK bj_status bj_column_read(void *out, uint8_t *valid, bj_column *column);
/* A flat column of texts as codes (rows). */
BJ_CHECK bj_status bj_column_read_codes(int32_t *codes, bj_vocabulary *vocabulary,
                                        bj_column *column);
/* A list column of numbers: start (rows + 1), values (bj_column_values). */
BJ_CHECK bj_status bj_column_read_list(int64_t *start, void *values, bj_column *column);
/* What all its chunks claim to hold. */
BJ_CHECK bj_status bj_column_values(size_t *out, const bj_column *column);

/* ---------------------------------------------------------------- parts, one for numbers and texts
 */

/* The dictionary page of a chunk. */
BJ_CHECK bj_status bj_numbers_dictionary(bj_column *column, const bj_page *page);
BJ_CHECK bj_status bj_texts_dictionary(bj_column *column, const bj_page *page);
/* The `count` values of a data page that are there, one after the other. */
BJ_CHECK bj_status bj_numbers_decode(void *out, size_t count, bj_column *column,
                                     const bj_page *page);
BJ_CHECK bj_status bj_texts_decode(bj_text *out, size_t count, bj_column *column,
                                   const bj_page *page);
/* `count` dictionary indices, each below column->entries, in column->indices. */
BJ_CHECK bj_status bj_column_indices(size_t count, bj_column *column, const bj_page *page);
static inline int bj_page_is_coded(const bj_page *page) {
    return page->encoding == BJ_ENCODING_RLE_DICTIONARY ||
           page->encoding == BJ_ENCODING_PLAIN_DICTIONARY;
}
/* BYTE_STREAM_SPLIT: byte b of value i is in[b * count + i]. */
void bj_join_streams(uint8_t *out, const uint8_t *in, size_t count, size_t width);

/* The number of a text, which is new if there was none like it. */
BJ_CHECK bj_status bj_vocabulary_code(int32_t *code, bj_vocabulary *vocabulary, bj_text text,
                                      bj_store *store, bj_error *err);

#endif
