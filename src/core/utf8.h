/* utf8.h - UTF-8 validation. Test: tests/data/test_cache.c (scene names, error messages) */
#ifndef BJ_CORE_UTF8_H
#define BJ_CORE_UTF8_H

#include <stddef.h>

/* Returns the length of the UTF-8 sequence at `text`, which has `size` bytes, or 0 if it is not
 * well formed (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF). */
static inline size_t bj_utf8_sequence(const char *text, size_t size) {
    const unsigned char *c = (const unsigned char *)text;
    if (size == 0) return 0;
    if (c[0] < 0x80) return 1;
    const size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || n > size) return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return n;
}

#endif
