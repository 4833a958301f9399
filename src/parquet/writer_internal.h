/* writer_internal.h - declarations shared by the two parts of the Parquet writer.
 *
 *   writer.c         files: handle, row groups, footer
 *   writer_pages.c   column chunks: levels, dictionaries, pages
 */
#ifndef BJ_PARQUET_WRITER_INTERNAL_H
#define BJ_PARQUET_WRITER_INTERNAL_H

#include "core/file.h"
#include "parquet/distinct.h"
#include "parquet/encode.h"
#include "parquet/writer.h"

enum { BJ_PAGE_MAX = 1 << 30 }; /* page sizes are signed 32-bit numbers */

struct bj_parquet_writer {
    bj_parquet_field *fields; /* (count) owns the names */
    int count;
    bj_parquet_codec codec;
    bj_file_writer *file; /* NULL if no file is open */
    char *path;
    int broken;      /* a row group was only partly written */
    uint64_t offset; /* bytes written to the file */
    int64_t rows;    /* rows in the file so far */
    int64_t groups;  /* row groups in the file so far */
    bj_bytes footer; /* encoded row groups of the file so far */
    bj_bytes group;  /* encoded columns of the current row group */
    bj_bytes page, head, packed;
    bj_distinct distinct;
};

/* A column chunk that is being written. */
typedef struct bj_chunk {
    const bj_parquet_field *field;
    bj_parquet_data data;
    const int64_t *start; /* (rows + 1) of a list */
    int use_dictionary;
    int code_width;
    int64_t values; /* number of levels: elements and empty lists */
    uint64_t dictionary_at, data_at;
    uint64_t raw, stored; /* size in bytes before and after compression, including page headers */
} bj_chunk;

/* Appends bytes to the open file. */
BJ_CHECK bj_status bj_parquet_writer_put(bj_parquet_writer *writer, const void *data, size_t size,
                                         bj_error *err);
/* Writes the pages of `rows` rows and appends the column metadata to writer->group. */
BJ_CHECK bj_status bj_chunk_write(bj_parquet_writer *writer, bj_chunk *chunk, int64_t rows,
                                  bj_error *err);

#endif
