/* hex_double.c - see hex_double.h. */
#include "core/hex_double.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FRACTION = 52, DIGITS = FRACTION / 4, SPECIAL = 0x7ff, BIAS = 1023 };

void bj_hex_double_write(char text[BJ_HEX_DOUBLE], double value) {
    uint64_t bits;
    char digits[DIGITS + 1];
    memcpy(&bits, &value, sizeof bits);
    const char *sign = bits >> 63 ? "-" : "";
    const int stored = (int)(bits >> FRACTION & SPECIAL);
    const uint64_t fraction = bits & ((UINT64_C(1) << FRACTION) - 1);
    if (stored == SPECIAL) {
        snprintf(text, BJ_HEX_DOUBLE, "%s%s", sign, fraction ? "nan" : "inf");
        return;
    }
    const int exponent = stored ? stored - BIAS : fraction ? 1 - BIAS : 0;
    snprintf(digits, sizeof digits, "%013llx", (unsigned long long)fraction);
    int kept = DIGITS;
    while (kept > 0 && digits[kept - 1] == '0') kept--;
    snprintf(text, BJ_HEX_DOUBLE, "%s0x%d%s%.*sp%+d", sign, stored != 0, kept ? "." : "", kept,
             digits, exponent);
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads "p" and the exponent. */
static const char *read_exponent(int *out, const char *at) {
    if (at[0] != 'p' || (at[1] != '+' && at[1] != '-')) return NULL;
    const int sign = at[1] == '-' ? -1 : 1;
    int value = 0, count = 0;
    for (at += 2; *at >= '0' && *at <= '9' && count < 5; at++, count++)
        value = 10 * value + (*at - '0');
    *out = sign * value;
    return count > 0 && count < 5 ? at : NULL;
}

const char *bj_hex_double_read(double *out, const char *text) {
    const char *at = text + strspn(text, " ");
    const double sign = *at == '-' ? -1 : 1;
    uint64_t mantissa;
    int exponent, digits = 0;
    at += *at == '-';
    if (!strncmp(at, "inf", 3) || !strncmp(at, "nan", 3)) {
        *out = copysign(*at == 'i' ? (double)INFINITY : (double)NAN, sign);
        return at + 3;
    }
    if (at[0] != '0' || at[1] != 'x' || (at[2] != '0' && at[2] != '1')) return NULL;
    mantissa = (uint64_t)(at[2] - '0');
    at += 3;
    if (*at == '.' || *at == ',')
        for (at++; digit_of(*at) >= 0; at++, digits++) {
            if (digits == DIGITS) return NULL;
            mantissa = mantissa << 4 | (uint64_t)digit_of(*at);
        }
    at = read_exponent(&exponent, at);
    if (!at) return NULL;
    *out = sign * ldexp((double)mantissa, exponent - 4 * digits);
    return at;
}
