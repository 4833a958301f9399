/* csv.h - records of a comma-separated file (RFC 4180), one at a time.
 *
 * Fields are separated by commas; one in double quotes may hold commas, line ends and, doubled,
 * quotes. Lines end in LF or CRLF, the last one may lack it; empty lines are skipped; a byte order
 * mark is. Text behind a closing quote, a quote inside a bare field, an open quote at the end and
 * zero bytes are refused with the number of the line.
 * Tests: tests/stats/test_seeds.c
 */
#ifndef BJ_STATS_CSV_H
#define BJ_STATS_CSV_H

#include <stddef.h>

#include "core/status.h"

enum { BJ_CSV_FIELDS = 64 };

typedef struct bj_csv {
    const char *path;            /* opens the messages */
    char *at, *end;              /* what is not read yet; *end is writable */
    long next_line;              /* number of the line at `at` */
    long line;                   /* where the current record begins, from 1 */
    int count;                   /* fields of the record */
    char *fields[BJ_CSV_FIELDS]; /* zero-terminated, in the text itself */
} bj_csv;

/* Reads `size` bytes of text, which is overwritten and must have one more byte behind it. */
void bj_csv_begin(bj_csv *csv, char *text, size_t size, const char *path);
/* The next record; *found is 0 at the end. */
BJ_CHECK bj_status bj_csv_next(bj_csv *csv, int *found, bj_error *err);

#endif
