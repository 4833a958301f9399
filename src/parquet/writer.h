/* writer.h - writes Parquet files that are compatible with the official tools.
 *
 * Supports flat columns of BOOLEAN, INT64, DOUBLE and text, and three-level lists of DOUBLE. Every
 * flush is one row group of v1 data pages, compressed with snappy or not at all. Columns use a
 * dictionary on request, otherwise PLAIN. Columns are declared optional, as pandas does, but
 * contain no nulls. Files are published atomically (core/file.h), and equal input gives equal
 * bytes.
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
    int dictionary;       /* use a dictionary page */
} bj_parquet_field;

typedef enum bj_parquet_codec { BJ_PARQUET_PLAIN_PAGES, BJ_PARQUET_SNAPPY } bj_parquet_codec;

typedef struct bj_parquet_writer bj_parquet_writer;

/* Creates a writer. The fields are copied. A writer can write many files and reuses its buffers. */
BJ_CHECK bj_status bj_parquet_writer_create(bj_parquet_writer **out, const bj_parquet_field *fields,
                                            int count, bj_parquet_codec codec, bj_error *err);
void bj_parquet_writer_free(bj_parquet_writer *writer); /* accepts NULL; discards an open file */

BJ_CHECK bj_status bj_parquet_writer_open(bj_parquet_writer *writer, const char *path,
                                          bj_error *err);

/* One column of a row group. The arrays have `rows` elements and are not copied. */
typedef union bj_parquet_data {
    const uint8_t *booleans;
    const int64_t *integers;
    const double *doubles; /* flat, or the values of all lists concatenated */
    const bj_text *texts;
} bj_parquet_data;

/* Appends a row group. data has one entry per field. starts also has one entry per field: an array
 * of rows + 1 offsets for a list, or NULL for a flat column. starts may be NULL if no field is a
 * list. */
BJ_CHECK bj_status bj_parquet_writer_rows(bj_parquet_writer *writer, int64_t rows,
                                          const bj_parquet_data *data, const int64_t *const *starts,
                                          bj_error *err);
/* Writes the footer and publishes the file. Removes the file on failure. */
BJ_CHECK bj_status bj_parquet_writer_commit(bj_parquet_writer *writer, bj_error *err);

#endif
