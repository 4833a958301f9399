/* test_hex_double.c - tests hexadecimal doubles against printf and strtod in the C locale. */
#include "core/hex_double.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/test.h"

static void test_value(double value) {
    char text[BJ_HEX_DOUBLE], expected[64];
    double back = 0;
    bj_hex_double_write(text, value);
    snprintf(expected, sizeof expected, "%a", value);
    CHECK_MSG(!strcmp(text, expected), "%s, expected %s", text, expected);
    const char *end = bj_hex_double_read(&back, text);
    CHECK(end && !*end);
    CHECK_MSG(!memcmp(&back, &value, sizeof value) || (isnan(back) && isnan(value)), "%s", text);
}

int main(void) {
    const double values[] = {0,
                             -0.0,
                             1,
                             -1,
                             0.1,
                             -1e300,
                             DBL_MIN,
                             DBL_MAX,
                             DBL_TRUE_MIN,
                             -DBL_TRUE_MIN,
                             DBL_MIN / 3,
                             1.5,
                             (double)INFINITY,
                             -(double)INFINITY,
                             (double)NAN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) test_value(values[i]);
    uint64_t bits = 1;
    for (int i = 0; i < 100000; i++) {
        double value;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(&value, &bits, sizeof value);
        if (!isnan(value)) test_value(value);
    }
    double x;
    const char *end = bj_hex_double_read(&x, " 0x1,38p+6 0x1p+0");
    CHECK(end && x == 78 && !strcmp(end, " 0x1p+0"));
    static const char *const bad[] = {"",           "1.5",    "0x",      "0x2p+0",
                                      "0x1.8",      "0x1.8p", "0x1.8p5", "0x1.8p+",
                                      "0x1p+99999", "x",      "--1",     "0x1.00000000000000p+0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!bj_hex_double_read(&x, bad[i]), "'%s'", bad[i]);
    return test_report("hex_double");
}
