/* distinct.h - finds the distinct values of a column, numbered in the order of their first row.
 *
 * Texts are compared by content. Numbers are compared bitwise, which preserves NaN and -0.
 * Tests: tests/parquet/test_writer.c
 */
#ifndef BJ_PARQUET_DISTINCT_H
#define BJ_PARQUET_DISTINCT_H

#include <stddef.h>
#include <stdint.h>

#include "parquet/reader.h"

typedef struct bj_distinct {
    int32_t *codes; /* (rows) */
    int64_t *first; /* (count) first row with this value */
    int32_t count;
    uint32_t *table; /* open addressing: 1 + code, or 0 */
    size_t room, table_room;
} bj_distinct;

void bj_distinct_free(bj_distinct *distinct);
/* Fills codes, first and count. Sets *found to 0 if there are more than `limit` distinct values. */
BJ_CHECK bj_status bj_distinct_texts(bj_distinct *distinct, int *found, const bj_text *texts,
                                     int64_t rows, int64_t limit, bj_error *err);
/* Like bj_distinct_texts, for 8-byte numbers. */
BJ_CHECK bj_status bj_distinct_words(bj_distinct *distinct, int *found, const void *words,
                                     int64_t rows, int64_t limit, bj_error *err);

#endif
