/* test_json_scan.c - compares the scanner with yyjson: both accept the same texts and read the same
 * values.
 *
 * Texts are copied to the end of blocks of exactly their size, so that AddressSanitizer detects a
 * read past the terminating zero.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/json_scan.h"
#include "support/test.h"

static uint64_t state = 71;

static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static char *copy_of(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    if (!copy) abort();
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* ------------------------------------------------------------------------------------- validity */

/* Returns whether yyjson accepts the text. Numbers are kept as raw text, so 1e999 is checked only
 * for its syntax. */
static int is_json(const char *text, size_t size) {
    yyjson_doc *doc = yyjson_read(text, size, YYJSON_READ_NUMBER_AS_RAW);
    yyjson_doc_free(doc);
    return doc != NULL;
}

static int passes(const char *text, size_t size, char *message) {
    bj_json_scan scan;
    bj_error err = {0};
    char *copy = copy_of(text, size);
    bj_json_scan_begin(&scan, copy, size);
    const int passed = bj_json_scan_skip(&scan) == 1 && bj_json_scan_end(&scan) == 1;
    CHECK(scan.at >= copy && scan.at <= copy + size);
    if (!passed) {
        CHECK(scan.problem != NULL);
        CHECK(bj_json_scan_fail(&scan, "text", &err) == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, "text: not JSON at byte ");
    }
    if (message) memcpy(message, err.message, sizeof err.message);
    free(copy);
    return passed;
}

static void test_validity(void) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-",
                                        "01",
                                        "1.",
                                        ".5",
                                        "1.5",
                                        "1e",
                                        "1e+",
                                        "1e5",
                                        "1E-5",
                                        "1e05",
                                        "-1.25e+10",
                                        "1e999",
                                        "--1",
                                        "+1",
                                        "1 2",
                                        "0x1",
                                        "1.5.2",
                                        "NaN",
                                        "Infinity",
                                        "-Infinity",
                                        "nul",
                                        "null",
                                        "nulll",
                                        "true",
                                        "tru",
                                        "false",
                                        "fals",
                                        "True",
                                        "",
                                        " ",
                                        "\n\t\r 7 \n",
                                        "\v7",
                                        "\xef\xbb\xbf"
                                        "7",
                                        "\"\"",
                                        "\"",
                                        "\"a",
                                        "a",
                                        "\"\\\"",
                                        "\"\\\\\"",
                                        "\"\\n\\t\\b\\f\\r\\/\\\"\"",
                                        "\"\\a\"",
                                        "\"\\",
                                        "\"\\u0041\"",
                                        "\"\\u004\"",
                                        "\"\\u004g\"",
                                        "\"\\u0000\"",
                                        "\"\\ud83d\\ude00\"",
                                        "\"\\ud83d\"",
                                        "\"\\ud83d\\u0041\"",
                                        "\"\\ude00\"",
                                        "\"\\ud83d\\\"",
                                        "\"\\ud83dx\"",
                                        "\"\t\"",
                                        "\"\x7f\"",
                                        "\"\xc3\xa9\"",
                                        "\"\xc3\"",
                                        "\"\xc3",
                                        "\"\xa9\"",
                                        "\"\xc0\x80\"",
                                        "\"\xc1\xbf\"",
                                        "\"\xe0\x9f\xbf\"",
                                        "\"\xe0\xa0\x80\"",
                                        "\"\xed\x9f\xbf\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xef\xbf\xbf\"",
                                        "\"\xe2\x82\"",
                                        "\"\xe2\x82",
                                        "\"\xf0\x8f\xbf\xbf\"",
                                        "\"\xf0\x90\x80\x80\"",
                                        "\"\xf4\x8f\xbf\xbf\"",
                                        "\"\xf4\x90\x80\x80\"",
                                        "\"\xf5\x80\x80\x80\"",
                                        "\"\xf0\x9f\x98",
                                        "\"\xff\"",
                                        "[]",
                                        "[ ]",
                                        "[",
                                        "]",
                                        "[,]",
                                        "[1,]",
                                        "[,1]",
                                        "[1,2]",
                                        "[1 2]",
                                        "[1,,2]",
                                        "[[]]",
                                        "[[]",
                                        "[]]",
                                        "[}",
                                        "{}",
                                        "{ }",
                                        "{",
                                        "}",
                                        "{]",
                                        "{\"a\":1}",
                                        "{\"a\":1,}",
                                        "{,}",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\" : 1 , \"b\":[]}",
                                        "{a:1}",
                                        "{1:2}",
                                        "{\"a\":1 \"b\":2}",
                                        "{\"a\":1}}",
                                        "{\"a\":1,\"a\":2}",
                                        "{\"a\":{\"b\":[{},[],\"\",0,true,null]}}",
                                        "[1]x",
                                        "[\"a\",\"b]",
                                        "/**/1",
                                        "[1/**/]",
                                        "'a'",
                                        "{\"\\u0061\":1}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t size = strlen(texts[i]);
        CHECK_MSG(passes(texts[i], size, NULL) == is_json(texts[i], size), "%s", texts[i]);
    }
    /* The scanner examines long strings in groups of eight bytes. Test every byte value at every
     * position of two groups. */
    for (int place = 1; place < 18; place++)
        for (int c = 0; c < 256; c++) {
            char string[21] = "\"aaaaaaaaaaaaaaaaaa\"";
            string[place] = (char)c;
            CHECK_MSG(passes(string, 20, NULL) == is_json(string, 20), "%d at %d", c, place);
        }
    CHECK(!passes("1\0", 2, NULL) && !passes("\"\0\"", 3, NULL) && !passes("[\0]", 3, NULL));

    char message[512];
    CHECK(!passes("[1, 2", 5, message));
    CHECK(!strcmp(message, "text: not JSON at byte 5 of 5: unexpected end"));
    CHECK(!passes("[1, x]", 6, message));
    CHECK(!strcmp(message, "text: not JSON at byte 4 of 6: expected a value"));
}

static void test_depth(void) {
    enum { DEEP = BJ_JSON_DEPTH };
    static char text[2 * (DEEP + 1) + 1];
    for (int depth = DEEP; depth <= DEEP + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        CHECK(passes(text, 2 * (size_t)depth, NULL) == (depth <= DEEP));
    }
}

/* Composes a random JSON text, which test_random_texts then damages at random. The scanner and
 * yyjson must agree on each text. */
static size_t compose(char *out, int depth) {
    static const char *const scalars[] = {"0",
                                          "-1.5",
                                          "12345.678",
                                          "1e3",
                                          "true",
                                          "null",
                                          "\"ab\"",
                                          "\"\"",
                                          "\"\\n\"",
                                          "\"\xc3\xa9\"",
                                          "\"a longer text, of forty-one characters\""};
    static const char *const blanks[] = {"", "", "", " ", "\n  "};
    char *p = out;
    const uint32_t kind = depth > 4 ? 0 : draw(4);
    if (kind < 2) return (size_t)sprintf(out, "%s", scalars[draw(11)]);
    *p++ = kind == 2 ? '[' : '{';
    for (int n = (int)draw(4), i = 0; i < n; i++) {
        if (i) *p++ = ',';
        p += sprintf(p, "%s", blanks[draw(5)]);
        if (kind == 3) p += sprintf(p, "\"k%u\":%s", (unsigned)draw(9), blanks[draw(5)]);
        p += compose(p, depth + 1);
        p += sprintf(p, "%s", blanks[draw(5)]);
    }
    *p++ = kind == 2 ? ']' : '}';
    return (size_t)(p - out);
}

static void test_random_texts(void) {
    static const char spare[] = "{}[],:\"\\ 0123456789.-+eEtfn\x80\xc3\x01";
    static char text[1 << 16];
    int valid = 0, invalid = 0;
    for (int round = 0; round < 60000; round++) {
        size_t size = compose(text, 0);
        for (uint32_t damage = draw(3); damage > 0 && size; damage--) {
            const size_t at = draw((uint32_t)size);
            if (draw(2)) {
                text[at] = spare[draw(sizeof spare - 1)];
            } else {
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
            }
        }
        const int expected = is_json(text, size);
        valid += expected;
        invalid += !expected;
        CHECK_MSG(passes(text, size, NULL) == expected, "%.*s", (int)size, text);
    }
    CHECK(valid > 10000 && invalid > 10000);
}

/* --------------------------------------------------------------------------------------- values */

static int number_of(const char *text, double *out, long *moved) {
    bj_json_scan scan;
    char *copy = copy_of(text, strlen(text));
    bj_json_scan_begin(&scan, copy, strlen(text));
    const int result = bj_json_scan_number(&scan, out);
    *moved = (long)(scan.at - copy);
    CHECK(!strcmp(copy, text)); /* still valid after a temporary zero was written into it */
    free(copy);
    return result;
}

static void check_number(const char *text) {
    double ours = 0;
    long moved;
    char *end;
    const double expected = strtod(text, &end);
    CHECK_MSG(number_of(text, &ours, &moved) == 1 && ours == expected &&
                  signbit(ours) == signbit(expected) && moved == end - text,
              "%s: %.17g, expected %.17g", text, ours, expected);
}

static void test_numbers(void) {
    static const char *const texts[] = {"0",
                                        "0.0",
                                        "-0.0",
                                        "1",
                                        "-1",
                                        "12",
                                        "0.1",
                                        "0.3",
                                        "5221.27",
                                        "-404.83",
                                        "24.14,",
                                        "7}",
                                        "123456789012345",
                                        "1234567890123456",
                                        "9007199254740993",
                                        "12345678901234567890123",
                                        "0.123456789012345",
                                        "0.1234567890123456",
                                        "0.12345678901234567",
                                        "123456.7890123456",
                                        "12345678.12345678",
                                        "1234567.1234567",
                                        "12345678",
                                        "123456789",
                                        "12345678.1",
                                        "1.12345678",
                                        "1.123456789",
                                        "0.00000001",
                                        "0.000000001",
                                        "1e3",
                                        "1E3",
                                        "1.5e-3",
                                        "1e22",
                                        "1e23",
                                        "1e-320",
                                        "4.9e-324",
                                        "1e-400",
                                        "1.7976931348623157e308",
                                        "8.5e+1]",
                                        "100000000000000000000000000",
                                        "2.2250738585072011e-308",
                                        "0.5 ",
                                        "3.25\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_number(texts[i]);
    for (int round = 0; round < 200000; round++) {
        char text[64];
        char *p = text;
        if (draw(2)) *p++ = '-';
        const uint32_t before = draw(12), after = draw(12);
        if (!before) *p++ = '0';
        for (uint32_t i = 0; i < before; i++) *p++ = (char)(i ? '0' + draw(10) : '1' + draw(9));
        if (after) *p++ = '.';
        for (uint32_t i = 0; i < after; i++) *p++ = (char)('0' + draw(10));
        if (!draw(8)) p += sprintf(p, "e%d", (int)draw(40) - 20);
        *p = '\0';
        check_number(text);
    }

    double out;
    long moved;
    static const char *const others[] = {"\"1\"", "true", "null", "[1]",   "",
                                         "+1",    ".5",   "x",    "1e999", "-1e999"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_MSG(number_of(others[i], &out, &moved) == 0 && moved == 0, "%s", others[i]);
    /* A leading zero is a complete number. A caller that expects a comma after it finds a digit
     * instead. */
    CHECK(number_of("01", &out, &moved) == 1 && out == 0 && moved == 1);
    CHECK(number_of("-012.5", &out, &moved) == 1 && out == 0 && moved == 2);
    CHECK(number_of("00", &out, &moved) == 1 && moved == 1);
    static const char *const bad[] = {"-", "-x", "1.", "1.x", "1e", "1e+", "12.", "-.5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(number_of(bad[i], &out, &moved) == -1, "%s", bad[i]);
}

static int integer_of(const char *text, int64_t *out) {
    bj_json_scan scan;
    char *copy = copy_of(text, strlen(text));
    bj_json_scan_begin(&scan, copy, strlen(text));
    const int result = bj_json_scan_integer(&scan, out);
    CHECK(scan.at == copy + (result > 0 ? strlen(text) : 0));
    free(copy);
    return result;
}

static void test_integers(void) {
    int64_t out = 0;
    CHECK(integer_of("0", &out) == 1 && out == 0);
    CHECK(integer_of("-0", &out) == 1 && out == 0);
    CHECK(integer_of("-12", &out) == 1 && out == -12);
    CHECK(integer_of("9223372036854775807", &out) == 1 && out == INT64_MAX);
    CHECK(integer_of("-9223372036854775808", &out) == 1 && out == INT64_MIN);
    CHECK(integer_of("9223372036854775808", &out) == 0);
    CHECK(integer_of("-9223372036854775809", &out) == 0);
    CHECK(integer_of("18446744073709551617", &out) == 0);
    CHECK(integer_of("99999999999999999999", &out) == 0);
    CHECK(integer_of("1.0", &out) == 0 && integer_of("1e3", &out) == 0);
    CHECK(integer_of("\"1\"", &out) == 0 && integer_of("", &out) == 0);
    CHECK(integer_of("-", &out) == -1 && integer_of("1.", &out) == -1);
}

static void test_texts(void) {
    bj_json_scan scan;
    bj_json_text key;
    int first = 1, truth = -1;
    char text[] =
        " {\"plain\":true , \"\\u0061\\\"\\\\\\/\\b\\f\\n\\r\\t\" :false,\"\xc3\xa9\\u00e9"
        "\\u20ac\\ud83d\\ude00\\u0000z\":0, \"\" : [ ] }";
    static const char second[] = "a\"\\/\b\f\n\r\t";
    static const char third[] = "\xc3\xa9\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z";
    bj_json_scan_begin(&scan, text, sizeof text - 1);
    CHECK(bj_json_scan_open(&scan, '[') == 0 && bj_json_scan_open(&scan, '{') == 1);
    CHECK(bj_json_scan_key(&scan, &key, &first) == 1);
    CHECK(key.size == 5 && !memcmp(key.at, "plain", 5));
    CHECK(bj_json_scan_bool(&scan, &truth) == 1 && truth == 1);
    CHECK(bj_json_scan_key(&scan, &key, &first) == 1);
    CHECK(key.size == sizeof second - 1 && !memcmp(key.at, second, key.size));
    CHECK(bj_json_scan_bool(&scan, &truth) == 1 && truth == 0);
    CHECK(bj_json_scan_key(&scan, &key, &first) == 1);
    CHECK(key.size == sizeof third - 1 && !memcmp(key.at, third, key.size));
    CHECK(bj_json_scan_bool(&scan, &truth) == 0);
    CHECK(bj_json_scan_skip(&scan) == 1);
    CHECK(bj_json_scan_key(&scan, &key, &first) == 1 && key.size == 0);
    CHECK(bj_json_scan_open(&scan, '[') == 1);
    first = 1;
    CHECK(bj_json_scan_item(&scan, &first) == 0);
    first = 0;
    CHECK(bj_json_scan_key(&scan, &key, &first) == 0);
    CHECK(bj_json_scan_end(&scan) == 1);
}

int main(void) {
    test_validity();
    test_depth();
    test_random_texts();
    test_numbers();
    test_integers();
    test_texts();
    return test_report("json_scan");
}
