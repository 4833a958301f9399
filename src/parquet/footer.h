/* footer.h - parses the footer of a Parquet file.
 *
 *   "PAR1"  pages of all column chunks  footer (Thrift)  u32 bytes of the footer  "PAR1"
 *
 * The schema is a tree in depth-first order. Its leaves are the columns of every row group, in the
 * same order. A top-level field is readable as a column if it is a leaf or one of these lists:
 *
 *   optional group NAME (LIST) { repeated group X { optional TYPE Y } }      also required
 *   optional group NAME (LIST) { repeated TYPE Y }                           older two-level form
 *
 * Other fields are listed together with the reason why they cannot be read.
 *
 * Levels  definition level max_def means a value, list_def an empty list, and a level below
 *         list_def a null list; repetition level 0 starts a row.
 * Test    tests/parquet/test_reader.c
 */
#ifndef BJ_PARQUET_FOOTER_H
#define BJ_PARQUET_FOOTER_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "parquet/store.h"
#include "parquet/reader.h"

typedef struct bj_leaf {
    bj_parquet_column column;
    int chunk;            /* index of its chunk in every row group */
    int max_def, max_rep; /* highest levels */
    int list_def;         /* level of an empty list */
    int scale;            /* decimal digits after the point, -1 if not a decimal */
    const char *obstacle; /* why it cannot be read, or NULL */
} bj_leaf;

/* A column chunk: the pages of a column in one row group. */
typedef struct bj_chunk {
    int64_t offset, size; /* in bytes of the file */
    int64_t values;       /* including nulls and empty lists */
    int type, codec;
    const char *obstacle;
} bj_chunk;

typedef struct bj_footer {
    int64_t rows;
    bj_leaf *columns; /* (count) */
    int count;
    int groups, chunks_each;
    int64_t *group_rows;         /* (groups) */
    bj_chunk *chunks;            /* (groups, chunks_each) */
    const char **keys, **values; /* (facts) */
    int facts;
    const char *created_by; /* or NULL */
} bj_footer;

/* Reads the footer and copies everything into the store. Messages start with the label. */
BJ_CHECK bj_status bj_footer_read(bj_footer *footer, bj_store *store, const uint8_t *file,
                                  size_t size, const char *label, bj_error *err);

#endif
