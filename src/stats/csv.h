/* csv.h - reads the records of a CSV file (RFC 4180) one at a time.
 *
 * Fields are separated by commas. A field in double quotes may contain commas, newlines and doubled
 * quotes. Lines end with LF or CRLF, and the last line may lack its newline. Empty lines and a byte
 * order mark are skipped. Text after a closing quote, a quote inside an unquoted field, an unclosed
 * quote and zero bytes are rejected with the line number.
 * Tests: tests/stats/test_seeds.c
 */
#ifndef BJ_STATS_CSV_H
#define BJ_STATS_CSV_H

#include <stddef.h>

#include "core/status.h"

enum { BJ_CSV_FIELDS = 64 };

typedef struct bj_csv {
    const char *path;            /* prefix of the messages */
    char *at, *end;              /* text not read yet; *end is writable */
    long next_line;              /* number of the line at `at` */
    long line;                   /* first line of the current record, from 1 */
    int count;                   /* number of fields in the record */
    char *fields[BJ_CSV_FIELDS]; /* zero-terminated, inside the text */
} bj_csv;

/* Starts reading `size` bytes of text. The text is overwritten and must be followed by one more
 * byte. */
void bj_csv_begin(bj_csv *csv, char *text, size_t size, const char *path);
/* Reads the next record. *found is 0 at the end of the text. */
BJ_CHECK bj_status bj_csv_next(bj_csv *csv, int *found, bj_error *err);

#endif
