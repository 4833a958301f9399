/* json_scan.h - scans JSON text in one pass, without building a document.
 *
 * Intended for large files of which only a small part is needed. The scanner is as strict as
 * core/json.h (RFC 8259 in UTF-8) and accepts the same texts, with two exceptions. It rejects
 * nesting deeper than BJ_JSON_DEPTH, and it checks whether a number fits a double only if that
 * number is read.
 *
 *   bj_json_scan scan;
 *   bj_json_scan_begin(&scan, text, size);
 *   if (bj_json_scan_open(&scan, '{'))
 *       for (int first = 1; (more = bj_json_scan_key(&scan, &key, &first)) > 0;)
 *           ... bj_json_scan_number, _integer, _bool, _open, or bj_json_scan_skip ...
 *   bj_json_scan_end(&scan)
 *
 * Invariants
 *   1. The caller owns the text. It must be writable, because escapes are decoded in place, and it
 *      must be followed by a zero byte. A zero byte is not valid JSON, so no scan goes past it.
 *   2. `at` points to the first byte that has not been parsed. Before a value is read, `at` points
 *      to its first byte.
 *   3. A negative result means that the text is not valid JSON. `problem` is the reason and `at`
 *      the position.
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
    const char *problem;   /* NULL if none */
} bj_json_scan;

typedef struct bj_json_text { /* decoded string, not terminated; may contain any character */
    const char *at;
    size_t size;
} bj_json_text;

void bj_json_scan_begin(bj_json_scan *scan, char *text, size_t size);
/* Fails with "WHAT: not JSON at byte AT of SIZE: PROBLEM". */
bj_status bj_json_scan_fail(const bj_json_scan *scan, const char *what, bj_error *err);

/* Skips the bracket and returns 1 if the current value starts with `bracket` ('{' or '[').
 * Otherwise returns 0 without moving. */
int bj_json_scan_open(bj_json_scan *scan, char bracket);
/* Move to the next member of an object or the next element of a list. Return 1 with `at` on its
 * value, 0 after the closing bracket, or -1 on a syntax error. `first` must be 1 before the first
 * call. */
static inline int bj_json_scan_key(bj_json_scan *scan, bj_json_text *key, int *first);
static inline int bj_json_scan_item(bj_json_scan *scan, int *first);

/* The functions below return 1 and move past the value, return 0 without moving if the value has
 * another type, or return -1 on a syntax error. */
static inline int bj_json_scan_number(bj_json_scan *scan, double *out); /* 0 also if not finite */
int bj_json_scan_integer(bj_json_scan *scan, int64_t *out); /* without fraction or exponent */
int bj_json_scan_bool(bj_json_scan *scan, int *out);
/* Skips a value of any type. Returns 1 or -1. */
int bj_json_scan_skip(bj_json_scan *scan);
/* Returns 1 if only whitespace is left, otherwise -1. */
int bj_json_scan_end(bj_json_scan *scan);

/* ------------------------------------------------------------------- inline part of the scanner */

int bj_json_scan_problem(bj_json_scan *scan, const char *problem); /* returns -1 */
int bj_json_scan_string(bj_json_scan *scan, bj_json_text *out);    /* `at` is on the quote */
int bj_json_scan_any_number(bj_json_scan *scan, double *out);      /* slow path */
extern const double bj_json_tens[8];                               /* 10^0 .. 10^7 */

static inline void bj_json_scan_blanks(bj_json_scan *scan) {
    while (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r')
        scan->at++;
}

/* Moves to the next element, from the opening bracket or from the end of an element. Returns 1 if
 * an element follows, 0 after the closing bracket, or -1 on a syntax error. */
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

/* Reads a number. If there are at most 7 digits on each side of the decimal point, the digits and
 * the power of ten are exact, so their quotient is the nearest double. Parsing eight digits at once
 * with multiplications was slower, because later instructions then have to wait for the computed
 * end of the number, which the branch predictor would otherwise guess. */
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
