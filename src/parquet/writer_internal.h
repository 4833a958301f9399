/* writer_internal.h - what the two halves of the Parquet writer share.
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

enum { BJ_PAGE_MAX = 1 << 30 }; /* sizes of pages are signed 32-bit numbers */

struct bj_parquet_writer {
    bj_parquet_field *fields; /* (count) names owned */
    int count;
    bj_parquet_codec codec;
    bj_file_writer *file; /* NULL: none open */
    char *path;
    int broken;      /* a row group was left half written */
    uint64_t offset; /* bytes of the file so far */
    int64_t rows;    /* of the file so far */
    int64_t groups;  /* row groups of the file so far */
    bj_bytes footer; /* row groups of the file so far, encoded */
    bj_bytes group;  /* columns of the current row group, encoded */
    bj_bytes page, head, packed;
    bj_distinct distinct;
};

/* A column chunk while it is written. */
typedef struct bj_chunk {
    const bj_parquet_field *field;
    bj_parquet_data data;
    const int64_t *start; /* (rows + 1) of a list */
    int use_dictionary;
    int code_width;
    int64_t values; /* levels, that is elements and empty lists */
    uint64_t dictionary_at, data_at;
    uint64_t raw, stored; /* bytes with page headers, before and after compression */
} bj_chunk;

/* Appends bytes to the open file. */
BJ_CHECK bj_status bj_parquet_writer_put(bj_parquet_writer *writer, const void *data, size_t size,
                                         bj_error *err);
/* Writes the pages of `rows` rows and appends the chunk's description to writer->group. */
BJ_CHECK bj_status bj_chunk_write(bj_parquet_writer *writer, bj_chunk *chunk, int64_t rows,
                                  bj_error *err);

#endif
