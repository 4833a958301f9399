/* writer.h - Parquet files as the official tools write and read them.
 *
 * Flat columns of BOOLEAN, INT64, DOUBLE and text, and three-level lists of DOUBLE. One row group
 * per flush, data pages v1, snappy or none, texts (and on request numbers) through a dictionary,
 * everything else PLAIN; columns are optional, as pandas writes them, without nulls. Files are
 * published atomically (core/file.h) and the same input gives the same bytes.
 * Tests: tests/parquet/test_writer.c, tests/parquet/peer_writer.py
 */
#ifndef BJ_PARQUET_WRITER_H
#define BJ_PARQUET_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "parquet/reader.h"

typedef struct bj_parquet_field {
    const char *name;
    bj_parquet_type type; /* BOOLEAN, INT64, DOUBLE or BYTE_ARRAY (text) */
    int is_list;          /* DOUBLE only */
    int dictionary;       /* values go through a dictionary page */
} bj_parquet_field;

typedef enum bj_parquet_codec { BJ_PARQUET_PLAIN_PAGES, BJ_PARQUET_SNAPPY } bj_parquet_codec;

typedef struct bj_parquet_writer bj_parquet_writer;

/* The fields are copied. A writer may be used for one file after the other: it keeps its buffers.
 */
BJ_CHECK bj_status bj_parquet_writer_create(bj_parquet_writer **out, const bj_parquet_field *fields,
                                            int count, bj_parquet_codec codec, bj_error *err);
void bj_parquet_writer_free(bj_parquet_writer *writer); /* accepts NULL; an open file is dropped */

BJ_CHECK bj_status bj_parquet_writer_open(bj_parquet_writer *writer, const char *path,
                                          bj_error *err);

/* One column of a row group; the arrays have `rows` elements and are only borrowed. */
typedef union bj_parquet_data {
    const uint8_t *booleans;
    const int64_t *integers;
    const double *doubles; /* flat, or the values of all lists one after the other */
    const bj_text *texts;
} bj_parquet_data;

/* Appends a row group: data (count of fields); starts (count of fields), (rows + 1) each, NULL for
 * flat columns; starts itself may be NULL when no field is a list. */
BJ_CHECK bj_status bj_parquet_writer_rows(bj_parquet_writer *writer, int64_t rows,
                                          const bj_parquet_data *data, const int64_t *const *starts,
                                          bj_error *err);
/* Writes the footer and publishes the file, or removes it on failure. */
BJ_CHECK bj_status bj_parquet_writer_commit(bj_parquet_writer *writer, bj_error *err);

#endif
