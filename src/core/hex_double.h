/* hex_double.h - converts doubles to and from exact hexadecimal text, independent of the locale.
 *
 * printf's %a and strtod use the decimal point of the locale, so a program that calls setlocale
 * could write numbers that another program rejects.
 * Test: tests/core/test_hex_double.c
 */
#ifndef BJ_CORE_HEX_DOUBLE_H
#define BJ_CORE_HEX_DOUBLE_H

enum { BJ_HEX_DOUBLE = 32 };

/* Writes a number in the format of glibc's %a in the C locale. */
void bj_hex_double_write(char text[BJ_HEX_DOUBLE], double value);
/* Reads a number in this format after any spaces. Returns the position after the number, or NULL.
 * Accepts a comma, which earlier versions wrote in some locales. */
const char *bj_hex_double_read(double *out, const char *text);

#endif
