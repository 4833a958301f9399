/* footer.h - what a Parquet file says about itself.
 *
 *   "PAR1"  pages of all column chunks  footer (Thrift)  u32 bytes of the footer  "PAR1"
 *
 * The schema is a tree in depth-first order; its leaves are the columns of every row group, in the
 * same order. A top-level field is one column for the reader: a leaf, or a list of one
 *
 *   optional group NAME (LIST) { repeated group X { optional TYPE Y } }      also required, and
 *   optional group NAME (LIST) { repeated TYPE Y }                           the older two levels
 *
 * while everything else is kept with a note on why it cannot be read.
 *
 * Levels  a value is there at definition level max_def; below list_def the list itself is null; the
 *         level list_def is an empty list; repetition level 0 begins a row.
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
    int list_def;         /* of lists: level of one without elements */
    int scale;            /* digits after the point of a decimal; -1: not a decimal */
    const char *obstacle; /* why it cannot be read, or NULL */
} bj_leaf;

/* A column of a row group: its pages, one after the other. */
typedef struct bj_chunk {
    int64_t offset, size; /* bytes of the file */
    int64_t values;       /* nulls and empty lists count too */
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

/* Everything is copied into the store. Messages begin with the label. */
BJ_CHECK bj_status bj_footer_read(bj_footer *footer, bj_store *store, const uint8_t *file,
                                  size_t size, const char *label, bj_error *err);

#endif
