/* test_status.c - tests that error messages cannot control a terminal. */
#include "core/status.h"
#include "support/test.h"

static void check_clean(const char *text, const char *expected) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    bj_clean_text(copy);
    CHECK(!strcmp(copy, expected));
}

static void test_clean_text(void) {
    check_clean("", "");
    check_clean("caf\xc3\xa9 \xe2\x86\x91 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x86\x91 \xf0\x9f\x98\x80");
    check_clean("\x1b[31mred\x7f\t", "?[31mred??");
    check_clean("a\xc2\x9b" "31m", "a?31m");                      /* U+009B starts a sequence, too */
    check_clean("\xe2\x80\xae" "txt.exe\xe2\x81\xa6", "?txt.exe?"); /* reversed text */
    check_clean("\xff\xc3(\xed\xa0\x80\xc3", "?" "?(???" "?");           /* not UTF-8, cut off */
    check_clean("one\ntwo\nhint: three\n", "one?two\nhint: three?");
}

static void test_fail(void) {
    bj_error err;
    CHECK(BJ_FAIL(&err, BJ_EFORMAT, "key '%s'\nhint: x", "\x1b]0;title\x07\n") == BJ_EFORMAT);
    CHECK(!strcmp(err.message, "key '?]0;title?" "?'\nhint: x"));
    CHECK(BJ_FAIL(NULL, BJ_EIO, "nothing") == BJ_EIO);
}

int main(void) {
    test_clean_text();
    test_fail();
    return test_report("status");
}
