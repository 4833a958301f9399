/* test_thrift.c - tests the compact protocol: values, skipped values, and invalid input. */
#include <stdint.h>
#include <stdlib.h>

#include "parquet/thrift.h"
#include "support/test.h"

#define CURSOR(text)                                                                               \
    { .at = (const uint8_t *)(text), .end = (const uint8_t *)(text) + sizeof(text) - 1 }

static void test_values(void) {
    /* fields 1: i32 -3, 2: i64 300, 3: true, 4: "ab", 5: list of 2 structs {1: i8 -1}, 20: false,
     * 21: i16 */
    bj_wire in = CURSOR("\x15\x05\x16\xd8\x04\x11\x18\x02"
                        "ab\x19\x2c\x13\xff\x00\x13\x07\x00\x02\x28\x14\x01\x00");
    bj_wire_field field = {0}, inner = {0};
    size_t size;
    CHECK(bj_wire_next(&in, &field) && field.id == 1 && bj_wire_int32(&in, field) == -3);
    CHECK(bj_wire_next(&in, &field) && field.id == 2 && bj_wire_int(&in, field) == 300);
    CHECK(bj_wire_next(&in, &field) && field.id == 3 && bj_wire_bool(&in, field) == 1);
    CHECK(bj_wire_next(&in, &field) && field.id == 4);
    const char *text = bj_wire_binary(&size, &in, field);
    CHECK(size == 2 && !memcmp(text, "ab", 2));
    CHECK(bj_wire_next(&in, &field) && field.id == 5 && bj_wire_structs(&in, field) == 2);
    CHECK(bj_wire_next(&in, &inner) && inner.id == 1 && bj_wire_int(&in, inner) == -1);
    CHECK(!bj_wire_next(&in, &inner));
    inner.id = 0;
    CHECK(bj_wire_next(&in, &inner) && bj_wire_int(&in, inner) == 7);
    CHECK(!bj_wire_next(&in, &inner) && !in.bad);
    CHECK(bj_wire_next(&in, &field) && field.id == 20 && bj_wire_bool(&in, field) == 0);
    CHECK(bj_wire_next(&in, &field) && field.id == 21 && bj_wire_int(&in, field) == -1);
    CHECK(!bj_wire_next(&in, &field) && !in.bad && in.at == in.end);
}

static void test_skip(void) {
    /* A list of two structs, which contain values of all types. */
    bj_wire in = CURSOR("\x2c"                         /* two structs */
                        "\x11\x12\x13\x7f\x14\x80\x01" /* true, false, i8, i16 */
                        "\x15\x02\x16\x04\x17"
                        "12345678\x18\x03"
                        "abc"
                        "\x19\x31\x01\x02\x01"          /* list of 3 booleans */
                        "\x1a\x15\x02"                  /* set of one i32 */
                        "\x1b\x02\x58\x02\x01z\x04\x00" /* map of two: i32 to text */
                        "\x1b\x00"                      /* empty map */
                        "\x1d"
                        "0123456789abcdef" /* uuid */
                        "\x1c\x15\x02\x00" /* struct */
                        "\x00"
                        "\x00"
                        "!");
    bj_wire_skip(&in, BJ_WIRE_LIST);
    CHECK_MSG(!in.bad, "%s", in.bad);
    CHECK(in.end - in.at == 1 && *in.at == '!');
}

static int breaks(const char *bytes, size_t size, bj_wire_type type) {
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) return 0;
    memcpy(exact, bytes, size);
    bj_wire in = {.at = exact, .end = exact + size};
    bj_wire_skip(&in, type);
    const int bad = in.bad != NULL && in.at == in.end;
    free(exact);
    return bad;
}

static void test_bad(void) {
    CHECK(breaks("", 0, BJ_WIRE_I32));
    CHECK(breaks("\x80\x80", 2, BJ_WIRE_I64));
    CHECK(breaks("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, BJ_WIRE_I64));
    CHECK(breaks("\x05"
                 "abcd",
                 5, BJ_WIRE_BINARY));
    CHECK(breaks("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, BJ_WIRE_BINARY));
    CHECK(breaks("1234567", 7, BJ_WIRE_DOUBLE));
    CHECK(breaks("0123456789abcde", 15, BJ_WIRE_UUID));
    CHECK(breaks("\xfc\xff\xff\xff\xff\x0f\0\0", 8, BJ_WIRE_LIST)); /* 2^32 structs */
    CHECK(breaks("\x20", 1, BJ_WIRE_LIST));
    CHECK(breaks("\x1e\0", 2, BJ_WIRE_LIST)); /* elements of type 14 */
    CHECK(breaks("\x15\x02", 2, BJ_WIRE_STRUCT));
    CHECK(breaks("\xff\xff\xff\xff\x0f\x11\1\1", 8, BJ_WIRE_MAP));
    CHECK(breaks("\x05\xfe\xff\x07\x02\x00", 6, BJ_WIRE_STRUCT)); /* field 65535 */
    char deep[200];
    memset(deep, 0x19, sizeof deep); /* lists in lists */
    CHECK(breaks(deep, sizeof deep, BJ_WIRE_LIST));
    memset(deep, 0x1c, sizeof deep); /* structs in structs */
    CHECK(breaks(deep, sizeof deep, BJ_WIRE_STRUCT));

    memset(deep, 0x1c, 100); /* properly terminated */
    memset(deep + 100, 0, 100);
    bj_wire nested = {.at = (const uint8_t *)deep, .end = (const uint8_t *)deep + sizeof deep};
    bj_wire_skip(&nested, BJ_WIRE_STRUCT);
    CHECK(nested.bad && !strcmp(nested.bad, "it is nested too deeply"));
    bj_wire many = CURSOR("\xfc\x04\0\0\0"); /* four structs in three bytes */
    CHECK(bj_wire_structs(&many, (bj_wire_field){1, BJ_WIRE_LIST}) == 0 && many.bad);

    /* Test a field of an unexpected type. After this error, every read returns zero. */
    bj_wire in = CURSOR("\x15\x06\x15\x08\x00");
    bj_wire_field field = {0};
    size_t size;
    CHECK(bj_wire_next(&in, &field));
    CHECK(!*bj_wire_binary(&size, &in, field) && size == 0 && in.bad);
    CHECK(bj_wire_int(&in, field) == 0 && !bj_wire_next(&in, &field));
    bj_wire wide = CURSOR("\x80\x80\x80\x80\x10"); /* 2^31 */
    CHECK(bj_wire_int32(&wide, (bj_wire_field){1, BJ_WIRE_I64}) == 0 && wide.bad);
    bj_wire flag = CURSOR("\x02");
    bj_wire_bool(&flag, (bj_wire_field){1, BJ_WIRE_I32});
    CHECK(flag.bad);
    bj_wire list = CURSOR("\x25\x02\x02"); /* two i32 instead of structs */
    CHECK(bj_wire_structs(&list, (bj_wire_field){1, BJ_WIRE_LIST}) == 0 && list.bad);
}

int main(void) {
    test_values();
    test_skip();
    test_bad();
    CHECK(bj_zigzag(0) == 0 && bj_zigzag(1) == -1 && bj_zigzag(UINT64_MAX) == INT64_MIN);
    return test_report("thrift");
}
