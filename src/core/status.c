/* status.c - error messages and the names of status codes. Test: tests/core/test_status.c */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"

/* Returns 1 if a terminal can be made to hide, move or reverse text by the sequence of n bytes. */
static int is_unsafe(const char *text, size_t n) {
    const unsigned char *c = (const unsigned char *)text;
    if (n == 1 && c[0] == '\n') return strncmp(text + 1, "hint: ", 6) != 0;
    if (n == 1) return c[0] < 0x20 || c[0] == 0x7f;
    if (n == 2) return c[0] == 0xc2 && c[1] < 0xa0; /* U+0080 to U+009F */
    if (n != 3 || c[0] != 0xe2) return 0;
    /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
    return (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
           (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

void bj_clean_text(char *text) {
    char *to = text;
    for (size_t left = strlen(text); left;) {
        const size_t n = bj_utf8_sequence(text, left), step = n ? n : 1;
        if (!n || is_unsafe(text, n)) *to++ = '?';
        else memmove(to, text, n), to += n;
        text += step;
        left -= step;
    }
    *to = '\0';
}

bj_status bj_fail(bj_error *err, bj_status code, const char *fmt, ...) {
    if (err) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->message, sizeof err->message, fmt, args);
        va_end(args);
        bj_clean_text(err->message);
        err->code = code;
    }
    return code;
}

const char *bj_status_name(bj_status code) {
    switch (code) {
    case BJ_OK: return "ok";
    case BJ_EARG: return "bad argument";
    case BJ_EIO: return "input/output error";
    case BJ_EFORMAT: return "bad file format";
    case BJ_EVERSION: return "unsupported version";
    case BJ_ENOMEM: return "out of memory";
    case BJ_ENONFINITE: return "non-finite number";
    case BJ_ELOCKED: return "locked";
    case BJ_ECOMM: return "communication error";
    case BJ_EMISMATCH: return "mismatch";
    }
    return "unknown status";
}
