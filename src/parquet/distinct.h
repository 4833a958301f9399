/* distinct.h - the distinct values of a column, numbered in the order of their first row.
 *
 * Texts are compared by content, numbers by their bits (so that NaN and -0 come back as they were).
 * Tests: tests/parquet/test_writer.c
 */
#ifndef BJ_PARQUET_DISTINCT_H
#define BJ_PARQUET_DISTINCT_H

#include <stddef.h>
#include <stdint.h>

#include "parquet/reader.h"

typedef struct bj_distinct {
    int32_t *codes; /* (rows) */
    int64_t *first; /* (count) row in which a value comes first */
    int32_t count;
    uint32_t *table; /* open addressing: 1 + code, or 0 */
    size_t room, table_room;
} bj_distinct;

void bj_distinct_free(bj_distinct *distinct);
/* Fills codes, first and count, or sets *found to 0 when more than `limit` values are distinct. */
BJ_CHECK bj_status bj_distinct_texts(bj_distinct *distinct, int *found, const bj_text *texts,
                                     int64_t rows, int64_t limit, bj_error *err);
/* The same for numbers of 8 bytes. */
BJ_CHECK bj_status bj_distinct_words(bj_distinct *distinct, int *found, const void *words,
                                     int64_t rows, int64_t limit, bj_error *err);

#endif
