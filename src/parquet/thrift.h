/* thrift.h - the subset of Thrift's compact protocol that Parquet headers use.
 *
 *   struct   fields until a zero byte: header byte (id step << 4 | type), or type and zigzag id
 *   numbers  zigzag varints; binary: varint length and bytes; list: (count << 4 | type), elements
 *
 * A cursor reads untrusted bytes. The first error sets `bad`. After that, every read returns zero
 * and every struct appears to have ended, so callers need to check `bad` only once. A list never
 * has more elements than remaining bytes.
 * Test: tests/parquet/test_thrift.c
 */
#ifndef BJ_PARQUET_THRIFT_H
#define BJ_PARQUET_THRIFT_H

#include <stddef.h>
#include <stdint.h>

typedef enum bj_wire_type {
    BJ_WIRE_STOP = 0,
    BJ_WIRE_TRUE = 1,
    BJ_WIRE_FALSE = 2,
    BJ_WIRE_I8 = 3,
    BJ_WIRE_I16 = 4,
    BJ_WIRE_I32 = 5,
    BJ_WIRE_I64 = 6,
    BJ_WIRE_DOUBLE = 7,
    BJ_WIRE_BINARY = 8,
    BJ_WIRE_LIST = 9,
    BJ_WIRE_SET = 10,
    BJ_WIRE_MAP = 11,
    BJ_WIRE_STRUCT = 12,
    BJ_WIRE_UUID = 13
} bj_wire_type;

typedef struct bj_wire {
    const uint8_t *at, *end;
    const char *bad; /* description of the first error, or NULL */
} bj_wire;

/* Iterates over a struct: while (bj_wire_next(cursor, &field)) switch (field.id) ... */
typedef struct bj_wire_field {
    int id; /* 0 before the first field */
    bj_wire_type type;
} bj_wire_field;

/* Advances to the next field, whose value must then be read or skipped. Returns 0 at the end of the
 * struct. */
int bj_wire_next(bj_wire *cursor, bj_wire_field *field);
void bj_wire_skip(bj_wire *cursor, bj_wire_type type);

/* Return the value of a field. If the type is wrong, the cursor enters its error state. */
int64_t bj_wire_int(bj_wire *cursor, bj_wire_field field); /* I8 to I64 */
int32_t bj_wire_int32(bj_wire *cursor, bj_wire_field field);
int bj_wire_bool(bj_wire *cursor, bj_wire_field field);
const char *bj_wire_binary(size_t *size, bj_wire *cursor, bj_wire_field field);
/* Returns the count of a list of structs. */
size_t bj_wire_structs(bj_wire *cursor, bj_wire_field field);
/* Returns 1 if the field is a struct. Otherwise, the cursor enters its error state. */
int bj_wire_is_struct(bj_wire *cursor, bj_wire_field field);

/* Reads an unsigned varint. Also used for data other than Thrift. */
uint64_t bj_wire_varint(bj_wire *cursor);
static inline int64_t bj_zigzag(uint64_t n) { return (int64_t)(n >> 1 ^ (0 - (n & 1))); }

#endif
