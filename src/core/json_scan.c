/* json_scan.c - see json_scan.h for the contract. Test: tests/core/test_json_scan.c */
#include "core/json_scan.h"

#include <string.h>

#include "core/json.h"
#include "core/utf8.h"

const double bj_json_tens[8] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

void bj_json_scan_begin(bj_json_scan *scan, char *text, size_t size) {
    *scan = (bj_json_scan){text, text, text + size, NULL};
    bj_json_scan_blanks(scan);
}

int bj_json_scan_problem(bj_json_scan *scan, const char *problem) {
    scan->problem = scan->at == scan->end ? "unexpected end" : problem;
    return -1;
}

bj_status bj_json_scan_fail(const bj_json_scan *scan, const char *what, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: not JSON at byte %td of %td: %s", what,
                   scan->at - scan->text, scan->end - scan->text,
                   scan->problem ? scan->problem : "unknown reason");
}

int bj_json_scan_open(bj_json_scan *scan, char bracket) {
    if (*scan->at != bracket) return 0;
    scan->at++;
    return 1;
}

int bj_json_scan_end(bj_json_scan *scan) {
    bj_json_scan_blanks(scan);
    return scan->at == scan->end ? 1 : bj_json_scan_problem(scan, "text after the value");
}

/* ------------------------------------------------------------------------------------- strings */

/* Parses the four hex digits after \u. Returns -1 if they are invalid. */
static long hex4(const char *p) {
    long value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1; /* stops at the terminating zero */
        value = 16 * value + digit;
    }
    return value;
}

static char *put_utf8(char *to, unsigned long code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Decodes the escape at scan->at and moves past it. Returns NULL if the escape is invalid. */
static char *put_escape(char *to, bj_json_scan *scan) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *p = scan->at + 1;
    const char *name = *p ? strchr(names, *p) : NULL;
    if (name) {
        scan->at += 2;
        *to = meanings[name - names];
        return to + 1;
    }
    long code = *p == 'u' ? hex4(p + 1) : -1;
    if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return NULL;
    scan->at += 6;
    if (code >= 0xd800 && code < 0xdc00) { /* first half of a surrogate pair */
        p = scan->at;
        const long low = p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff) return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        scan->at += 6;
    }
    return put_utf8(to, (unsigned long)code);
}

/* Returns nonzero if one of the eight characters at p is a quote, a backslash, a control character
 * or not ASCII. The check relies on the fact that subtracting 1 from a zero byte sets its highest
 * bit. */
static uint64_t has_special(const char *p) {
    const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
    uint64_t eight;
    memcpy(&eight, p, 8);
    const uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
    return (eight | (eight - ones * 0x20) | (quote - ones) | (backslash - ones)) & high;
}

int bj_json_scan_string(bj_json_scan *scan, bj_json_text *out) {
    char *p = ++scan->at;
    while (scan->end - p >= 8 && !has_special(p)) p += 8;
    while ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\') p++;
    out->at = scan->at;
    scan->at = p;
    for (char *to = p;;) {
        const unsigned char c = (unsigned char)*scan->at;
        if (c == '"') {
            out->size = (size_t)(to - out->at);
            scan->at++;
            return 1;
        }
        if (c == '\\') {
            to = put_escape(to, scan);
            if (!to) return bj_json_scan_problem(scan, "invalid escape");
            continue;
        }
        const size_t size =
            c < 0x20 ? 0 : bj_utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
        if (!size)
            return bj_json_scan_problem(scan,
                                        c < 0x20 ? "a control character in a string" : "not UTF-8");
        for (size_t i = 0; i < size; i++) *to++ = *scan->at++;
    }
}

/* ------------------------------------------------------------------------------------- numbers */

/* Returns the end of the number at p, or NULL if there is no valid number. */
static const char *number_end(const char *p) {
    p += *p == '-';
    if ((unsigned)*p - '0' >= 10) return NULL;
    if (*p++ != '0')
        while ((unsigned)*p - '0' < 10) p++;
    if (*p == '.') {
        if ((unsigned)*++p - '0' >= 10) return NULL;
        while ((unsigned)*p - '0' < 10) p++;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if ((unsigned)*p - '0' >= 10) return NULL;
        while ((unsigned)*p - '0' < 10) p++;
    }
    return p;
}

static int at_number(const bj_json_scan *scan) {
    return *scan->at == '-' || (unsigned)*scan->at - '0' < 10;
}

/* Reads a number of any length. Returns 0 if there is no number at this position. */
int bj_json_scan_any_number(bj_json_scan *scan, double *out) {
    if (!at_number(scan)) return 0;
    char *end = (char *)(uintptr_t)number_end(scan->at);
    if (!end) return bj_json_scan_problem(scan, "not a number");
    const char after = *end;
    *end = '\0';
    const int finite = bj_json_number_read(out, scan->at);
    *end = after;
    if (finite) scan->at = end;
    return finite;
}

int bj_json_scan_integer(bj_json_scan *scan, int64_t *out) {
    if (!at_number(scan)) return 0;
    const char *end = number_end(scan->at), *p = scan->at;
    if (!end) return bj_json_scan_problem(scan, "not a number");
    const int minus = *p == '-';
    const uint64_t most = (uint64_t)INT64_MAX + (uint64_t)minus;
    uint64_t value = 0;
    for (p += minus; p < end; p++) {
        const unsigned digit = (unsigned)*p - '0';
        if (digit >= 10 || value > (most - digit) / 10) return 0;
        value = 10 * value + digit;
    }
    *out = minus ? (int64_t)(-value) : (int64_t)value;
    scan->at = (char *)(uintptr_t)end;
    return 1;
}

int bj_json_scan_bool(bj_json_scan *scan, int *out) {
    if (!strncmp(scan->at, "true", 4)) {
        *out = 1;
        scan->at += 4;
        return 1;
    }
    if (strncmp(scan->at, "false", 5)) return 0;
    *out = 0;
    scan->at += 5;
    return 1;
}

/* ------------------------------------------------------------------------------------ skipping */

static int skip_scalar(bj_json_scan *scan) {
    bj_json_text text;
    int truth;
    if (*scan->at == '"') return bj_json_scan_string(scan, &text);
    if (at_number(scan)) {
        const char *end = number_end(scan->at);
        if (!end) return bj_json_scan_problem(scan, "not a number");
        scan->at = (char *)(uintptr_t)end;
        return 1;
    }
    if (!strncmp(scan->at, "null", 4)) {
        scan->at += 4;
        return 1;
    }
    return bj_json_scan_bool(scan, &truth) ? 1 : bj_json_scan_problem(scan, "expected a value");
}

int bj_json_scan_skip(bj_json_scan *scan) {
    if (*scan->at != '{' && *scan->at != '[') return skip_scalar(scan);
    unsigned char lists[BJ_JSON_DEPTH / 8] = {0}; /* bit set: this level is a list */
    bj_json_text key;
    int depth = 0, first = 0;
    for (;;) {
        const char c = *scan->at;
        if (c == '{' || c == '[') {
            if (depth == BJ_JSON_DEPTH) return bj_json_scan_problem(scan, "nested too deeply");
            const unsigned char bit = (unsigned char)(1u << depth % 8);
            if (c == '[') lists[depth / 8] |= bit;
            else lists[depth / 8] &= (unsigned char)~bit;
            depth++;
            scan->at++;
            first = 1;
        } else if (skip_scalar(scan) < 0) {
            return -1;
        }
        for (int more = 0; !more;) { /* move past closing brackets to the next value */
            if (depth == 0) return 1;
            const int level = depth - 1, in_list = lists[level / 8] >> level % 8 & 1;
            more = in_list ? bj_json_scan_item(scan, &first) : bj_json_scan_key(scan, &key, &first);
            if (more < 0) return -1;
            if (!more) {
                depth--;
                first = 0;
            }
        }
    }
}
