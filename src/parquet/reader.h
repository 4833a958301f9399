/* reader.h - columns of a Parquet file.
 *
 * A focused reader: what motion-forecasting files and the common writers (pyarrow, fastparquet,
 * polars, DuckDB) use, and a clear refusal of the rest.
 *
 *   types         BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
 *   encodings     PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, RLE (booleans), DELTA_BINARY_PACKED,
 *                 DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT
 *   compression   none, snappy, gzip, zstd
 *   shape         flat columns, required or optional, and lists of them (footer.h)
 *   pages         data pages v1 and v2, dictionary pages, any number of pages and row groups;
 *                 checksums are verified where there are any
 *
 * Columns are found by name; only those asked for are decompressed and decoded. What is not
 * supported (groups, lists of lists, encryption, other codecs and encodings) makes only the column
 * unreadable that uses it: BJ_EVERSION, "column 'x': ... is not supported".
 *
 * The reader trusts nothing. Every length is checked against the bytes that are there before it is
 * used, and a file of n bytes makes the reader hold no more than 32 MiB + 256 n bytes, nor unpack
 * more than that for one column: a claim beyond it is refused before anything is allocated. That is
 * far above what data needs; only long columns of one and the same value could come near.
 *
 * A reader may be used for one file after the other and keeps its memory: once it has read the
 * largest of them, one more file puts it in order, and then it allocates nothing.
 *
 *   reader.c            columns by name, arrays   column.c             levels, nulls, lists, codes
 *   footer.c            schema, row groups        numbers.c, texts.c   values of a page
 *   pages.c, codecs.c   pages, unpacked           hybrid.c, delta.c    packed integers
 *   thrift.c            headers                   store.c              memory
 *
 * Tests: tests/parquet/; fuzz target: tests/fuzz/fuzz_parquet.c
 */
#ifndef BJ_PARQUET_READER_H
#define BJ_PARQUET_READER_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Numbers of the format. */
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
    const char *name;     /* of the top-level field; control characters became '?' */
    bj_parquet_type type; /* of the leaf */
    int is_text;          /* the file says that the bytes are UTF-8 */
    int is_unsigned;      /* integers without a sign */
    int is_list;          /* a list of the leaf in each row */
    int fixed_size;       /* bytes of a BJ_PARQUET_FIXED or INT96 */
    int readable;         /* 0: nested in a way this reader does not follow */
} bj_parquet_column;

/* A string inside a file; not terminated. */
typedef struct bj_text {
    const char *data;
    size_t size;
} bj_text;

typedef struct bj_parquet bj_parquet;

/* A reader without a file. */
BJ_CHECK bj_status bj_parquet_create(bj_parquet **out, bj_error *err);
void bj_parquet_free(bj_parquet *parquet); /* accepts NULL */

/* Opens a file (mapped until the next open, close or free) or one in memory, which stays the
 * caller's until then; `label` stands for the path in messages. What an earlier file handed out is
 * gone. On failure the reader is without a file and may be used again. */
BJ_CHECK bj_status bj_parquet_open(bj_parquet *parquet, const char *path, bj_error *err);
BJ_CHECK bj_status bj_parquet_open_memory(bj_parquet *parquet, const void *data, size_t size,
                                          const char *label, bj_error *err);
void bj_parquet_close(bj_parquet *parquet);

int64_t bj_parquet_rows(const bj_parquet *parquet);
int bj_parquet_column_count(const bj_parquet *parquet);
const bj_parquet_column *bj_parquet_column_at(const bj_parquet *parquet, int index);
/* Index of the top-level column of that name, or -1. */
int bj_parquet_find(const bj_parquet *parquet, const char *name);
/* The same, or a message that names the file, the column and the nearest ones there are. A name
 * that is there twice is refused too. */
BJ_CHECK bj_status bj_parquet_require(int *index, const bj_parquet *parquet, const char *name,
                                      bj_error *err);

/* What follows decodes a whole flat column. The arrays belong to the reader and live until the next
 * open, close or free; reading several columns keeps them all. A null is refused with its row
 * unless `valid` is given, which then points to (rows) bytes, 1 where there is a value; the value
 * of a null is zero or the empty text. */

/* INT32, INT64 and BOOLEAN, dates and times as they are stored; unsigned values beyond INT64_MAX
 * and decimals with digits after the point are refused. (rows) */
BJ_CHECK bj_status bj_parquet_read_int64(const int64_t **out, const uint8_t **valid,
                                         bj_parquet *parquet, int column, bj_error *err);
/* DOUBLE, FLOAT, INT32, INT64, and decimals stored in the latter two: the nearest double. NaN and
 * infinity pass. (rows) */
BJ_CHECK bj_status bj_parquet_read_double(const double **out, const uint8_t **valid,
                                          bj_parquet *parquet, int column, bj_error *err);
/* BYTE_ARRAY, FIXED and INT96, byte for byte. (rows) */
BJ_CHECK bj_status bj_parquet_read_text(const bj_text **out, const uint8_t **valid,
                                        bj_parquet *parquet, int column, bj_error *err);
/* The same as numbers of the distinct texts, counted in the order of their first row: the texts are
 * (count), the codes (rows). Nulls are refused. Uses the dictionary of the file where there is
 * one. */
BJ_CHECK bj_status bj_parquet_read_codes(const int32_t **codes, const bj_text **texts, int *count,
                                         bj_parquet *parquet, int column, bj_error *err);

/* A list column of DOUBLE, FLOAT, INT32 or INT64: row r has the values start[r] .. start[r + 1].
 * Null lists and null elements are refused with their row. start is (rows + 1). */
BJ_CHECK bj_status bj_parquet_read_double_list(const int64_t **start, const double **values,
                                               bj_parquet *parquet, int column, bj_error *err);

/* Key-value metadata of the file, or NULL; terminated, lives like the columns. */
const char *bj_parquet_metadata(const bj_parquet *parquet, const char *key);
const char *bj_parquet_created_by(const bj_parquet *parquet); /* or NULL */

#endif
