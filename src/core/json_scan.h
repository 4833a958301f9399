/* json_scan.h - walks through JSON text once, without building a document.
 *
 * For large files of which little is kept. As strict as core/json.h: RFC 8259 in UTF-8, the same
 * texts are accepted and refused, but for nesting deeper than BJ_JSON_DEPTH, which is refused here,
 * and numbers beyond a double, which matter only where they are read.
 *
 *   bj_json_scan scan;
 *   bj_json_scan_begin(&scan, text, size);
 *   if (bj_json_scan_open(&scan, '{'))
 *       for (int first = 1; (more = bj_json_scan_key(&scan, &key, &first)) > 0;)
 *           ... bj_json_scan_number, _integer, _bool, _open, or bj_json_scan_skip ...
 *   bj_json_scan_end(&scan)
 *
 * Invariants
 *   1. The text is the caller's, may be written to (escapes are decoded in place) and is followed
 * by a zero byte. That byte is no part of any JSON, so nothing reads beyond it.
 *   2. `at` is the first byte that was not understood yet. At a value it stands on its first byte.
 *   3. A negative result means that the text is not JSON; `problem` says why, `at` where.
 * Test: tests/core/test_json_scan.c
 */
#ifndef BJ_CORE_JSON_SCAN_H
#define BJ_CORE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { BJ_JSON_DEPTH = 1024 };

typedef struct bj_json_scan {
    char *text, *at, *end; /* *end is 0 */
    const char *problem;   /* NULL: none so far */
} bj_json_scan;

typedef struct bj_json_text { /* decoded; not terminated, may hold any character */
    const char *at;
    size_t size;
} bj_json_text;

void bj_json_scan_begin(bj_json_scan *scan, char *text, size_t size);
/* "WHAT: not JSON at byte AT of SIZE: PROBLEM" */
bj_status bj_json_scan_fail(const bj_json_scan *scan, const char *what, bj_error *err);

/* 1 when the value here begins with '{' or '[', which is then behind; else 0 and nothing moved. */
int bj_json_scan_open(bj_json_scan *scan, char bracket);
/* The next member of an object, or element of a list: 1 with `at` on its value, 0 after the closing
 * bracket, -1. `first` is 1 before the first call. */
static inline int bj_json_scan_key(bj_json_scan *scan, bj_json_text *key, int *first);
static inline int bj_json_scan_item(bj_json_scan *scan, int *first);

/* What follows returns 1 and moves behind the value; 0 where the value is something else, without
 * moving; -1 where it is broken. */
static inline int bj_json_scan_number(bj_json_scan *scan, double *out); /* 0 too when not finite */
int bj_json_scan_integer(bj_json_scan *scan, int64_t *out); /* no fraction, no exponent, fits */
int bj_json_scan_bool(bj_json_scan *scan, int *out);
/* Any value; 1 or -1. */
int bj_json_scan_skip(bj_json_scan *scan);
/* 1 when nothing but blanks is left. */
int bj_json_scan_end(bj_json_scan *scan);

/* -------------------------------------------------------------- what is called for every number */

int bj_json_scan_problem(bj_json_scan *scan, const char *problem); /* -1 */
int bj_json_scan_string(bj_json_scan *scan, bj_json_text *out);    /* stands on the quote */
int bj_json_scan_any_number(bj_json_scan *scan, double *out);      /* the slow way */
extern const double bj_json_tens[8];                               /* 10^0 .. 10^7 */

static inline void bj_json_scan_blanks(bj_json_scan *scan) {
    while (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r')
        scan->at++;
}

/* After the bracket or an element: 1 when another one follows, 0 behind the closing bracket. */
static inline int bj_json_scan_more(bj_json_scan *scan, char closing, int *first) {
    bj_json_scan_blanks(scan);
    if (*scan->at == closing) {
        scan->at++;
        return 0;
    }
    if (!*first) {
        if (*scan->at != ',')
            return bj_json_scan_problem(scan, "expected a comma or a closing bracket");
        scan->at++;
        bj_json_scan_blanks(scan);
    }
    *first = 0;
    return 1;
}

static inline int bj_json_scan_item(bj_json_scan *scan, int *first) {
    return bj_json_scan_more(scan, ']', first);
}

static inline int bj_json_scan_key(bj_json_scan *scan, bj_json_text *key, int *first) {
    const int more = bj_json_scan_more(scan, '}', first);
    if (more <= 0) return more;
    if (*scan->at != '"') return bj_json_scan_problem(scan, "expected a key in quotes");
    if (bj_json_scan_string(scan, key) < 0) return -1;
    bj_json_scan_blanks(scan);
    if (*scan->at != ':') return bj_json_scan_problem(scan, "expected a colon");
    scan->at++;
    bj_json_scan_blanks(scan);
    return 1;
}

/* Up to 7 digits on both sides of the point: digits and power of ten are exact, so their quotient
 * is the nearest double. (Eight digits at once by multiplications is slower here: where a number
 * ends is then computed instead of predicted, and everything behind it waits.) */
static inline int bj_json_scan_number(bj_json_scan *scan, double *out) {
    const char *p = scan->at;
    const int minus = *p == '-';
    uint64_t digits = 0;
    size_t decimals = 0;
    p += minus;
    const char *const begin = p;
    for (unsigned d; (d = (unsigned)*p - '0') < 10; p++) digits = 10 * digits + d;
    const size_t whole = (size_t)(p - begin);
    if (*p == '.') {
        const char *const point = p++;
        for (unsigned d; (d = (unsigned)*p - '0') < 10; p++) digits = 10 * digits + d;
        decimals = (size_t)(p - point) - 1;
        if (decimals - 1 > 6) return bj_json_scan_any_number(scan, out);
    }
    if (whole - 1 > 6 || (*begin == '0' && whole > 1) || *p == 'e' || *p == 'E')
        return bj_json_scan_any_number(scan, out);
    const double value = (double)(int64_t)digits / bj_json_tens[decimals];
    *out = minus ? -value : value;
    scan->at = (char *)(uintptr_t)p;
    return 1;
}

#endif
