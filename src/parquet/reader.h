/* reader.h - reads columns of a Parquet file.
 *
 * The reader supports what motion-forecasting files and the common writers (pyarrow, fastparquet,
 * polars, DuckDB) use, and rejects everything else with a clear message.
 *
 *   types         BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
 *   encodings     PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, RLE (booleans), DELTA_BINARY_PACKED,
 *                 DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT
 *   compression   none, snappy, gzip, zstd
 *   shape         flat columns, required or optional, and lists of them (footer.h)
 *   pages         data pages v1 and v2, dictionary pages, any number of pages and row groups;
 *                 checksums are verified if present
 *
 * Columns are found by name, and only requested columns are decompressed and decoded. An
 * unsupported feature (groups, lists of lists, encryption, other codecs and encodings) makes only
 * the column that uses it unreadable. Reading this column fails with BJ_EVERSION and "column 'x':
 * ... is not supported".
 *
 * Input is not trusted. Every length is checked against the available bytes before it is used. For
 * a file of n bytes the reader allocates at most 32 MiB + 256 n bytes, and it unpacks at most this
 * many bytes for one column. A larger size is rejected before anything is allocated. Real data
 * stays far below this limit. Only long constant columns could reach it.
 *
 * A reader can read many files and reuses its memory. Once it has read the largest file and one
 * more file, it allocates no more memory.
 *
 *   reader.c            columns by name, arrays   column.c             levels, nulls, lists, codes
 *   footer.c            schema, row groups        numbers.c, texts.c   values of a page
 *   pages.c, codecs.c   unpacked pages            hybrid.c, delta.c    packed integers
 *   thrift.c            headers                   store.c              memory
 *
 * Tests: tests/parquet/; fuzz target: tests/fuzz/fuzz_parquet.c
 */
#ifndef BJ_PARQUET_READER_H
#define BJ_PARQUET_READER_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Values from the Parquet specification. */
typedef enum bj_parquet_type {
    BJ_PARQUET_BOOLEAN = 0,
    BJ_PARQUET_INT32 = 1,
    BJ_PARQUET_INT64 = 2,
    BJ_PARQUET_INT96 = 3,
    BJ_PARQUET_FLOAT = 4,
    BJ_PARQUET_DOUBLE = 5,
    BJ_PARQUET_BYTE_ARRAY = 6,
    BJ_PARQUET_FIXED = 7
} bj_parquet_type;

typedef struct bj_parquet_column {
    const char *name;     /* name of the top-level field; control characters are replaced by '?' */
    bj_parquet_type type; /* of the leaf */
    int is_text;          /* the file declares the bytes as UTF-8 */
    int is_unsigned;      /* unsigned integers */
    int is_list;          /* every row is a list of the leaf type */
    int fixed_size;       /* bytes per BJ_PARQUET_FIXED or INT96 value */
    int readable;         /* 0 if the nesting is not supported */
} bj_parquet_column;

/* A string inside a file. It is not zero-terminated. */
typedef struct bj_text {
    const char *data;
    size_t size;
} bj_text;

typedef struct bj_parquet bj_parquet;

/* Creates a reader without a file. */
BJ_CHECK bj_status bj_parquet_create(bj_parquet **out, bj_error *err);
void bj_parquet_free(bj_parquet *parquet); /* accepts NULL */

/* Opens a file by path or in memory. A file opened by path stays mapped until the next open, close
 * or free; a buffer must stay valid for as long. Messages use `label` in place of the path. Opening
 * invalidates everything returned for an earlier file. After a failure the reader has no file and
 * can be used again. */
BJ_CHECK bj_status bj_parquet_open(bj_parquet *parquet, const char *path, bj_error *err);
BJ_CHECK bj_status bj_parquet_open_memory(bj_parquet *parquet, const void *data, size_t size,
                                          const char *label, bj_error *err);
void bj_parquet_close(bj_parquet *parquet);

int64_t bj_parquet_rows(const bj_parquet *parquet);
int bj_parquet_column_count(const bj_parquet *parquet);
const bj_parquet_column *bj_parquet_column_at(const bj_parquet *parquet, int index);
/* Returns the index of the top-level column with that name, or -1. */
int bj_parquet_find(const bj_parquet *parquet, const char *name);
/* Like bj_parquet_find, but fails if the column is missing or appears twice. The message contains
 * the file, the column and the most similar names. */
BJ_CHECK bj_status bj_parquet_require(int *index, const bj_parquet *parquet, const char *name,
                                      bj_error *err);

/* The functions below decode a whole flat column. The arrays belong to the reader and are valid
 * until the next open, close or free, even if other columns are read. If `valid` is NULL, a null is
 * an error whose message contains the row. Otherwise *valid points to (rows) bytes, which are 1 if
 * there is a value and 0 for a null. The value of a null is zero or the empty text. */

/* Reads INT32, INT64 and BOOLEAN into (rows). Dates and times are returned as stored. Fails for
 * unsigned values above INT64_MAX and for decimals with digits after the point. */
BJ_CHECK bj_status bj_parquet_read_int64(const int64_t **out, const uint8_t **valid,
                                         bj_parquet *parquet, int column, bj_error *err);
/* Reads DOUBLE, FLOAT, INT32, INT64, and decimals stored as INT32 or INT64 into (rows), rounded to
 * the nearest double. NaN and infinity are allowed. */
BJ_CHECK bj_status bj_parquet_read_double(const double **out, const uint8_t **valid,
                                          bj_parquet *parquet, int column, bj_error *err);
/* Reads BYTE_ARRAY, FIXED and INT96 into (rows), without changing any bytes. */
BJ_CHECK bj_status bj_parquet_read_text(const bj_text **out, const uint8_t **valid,
                                        bj_parquet *parquet, int column, bj_error *err);
/* Reads a text column as codes (rows) of its distinct texts (count). Texts are numbered in the
 * order of their first row. Fails if there is a null. Uses the dictionary of the file if there is
 * one. */
BJ_CHECK bj_status bj_parquet_read_codes(const int32_t **codes, const bj_text **texts, int *count,
                                         bj_parquet *parquet, int column, bj_error *err);

/* Reads a list column of DOUBLE, FLOAT, INT32 or INT64. Row r has the values start[r] to start[r +
 * 1] - 1, so start has rows + 1 entries. Fails if a list or an element is null, and reports the
 * row. */
BJ_CHECK bj_status bj_parquet_read_double_list(const int64_t **start, const double **values,
                                               bj_parquet *parquet, int column, bj_error *err);

/* Returns a value from the file's key-value metadata, or NULL. The text is zero-terminated and
 * stays valid as long as the columns. */
const char *bj_parquet_metadata(const bj_parquet *parquet, const char *key);
const char *bj_parquet_created_by(const bj_parquet *parquet); /* or NULL */

#endif
