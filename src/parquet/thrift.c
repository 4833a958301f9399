/* thrift.c - see thrift.h. */
#include "parquet/thrift.h"

enum { MOST_DEPTH = 32 }; /* max depth of skipped values; the structs of Parquet have about six
                             levels */

static void refuse(bj_wire *cursor, const char *why) {
    if (!cursor->bad) cursor->bad = why;
    cursor->at = cursor->end;
}

static size_t left(const bj_wire *cursor) { return (size_t)(cursor->end - cursor->at); }

static unsigned next_byte(bj_wire *cursor) {
    if (cursor->at < cursor->end) return *cursor->at++;
    refuse(cursor, "it ends too early");
    return 0;
}

static void advance(bj_wire *cursor, uint64_t bytes) {
    if (bytes > left(cursor)) refuse(cursor, "it ends too early");
    else cursor->at += bytes;
}

uint64_t bj_wire_varint(bj_wire *cursor) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const unsigned byte = next_byte(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    refuse(cursor, "a number has more than 64 bits");
    return 0;
}

int bj_wire_next(bj_wire *cursor, bj_wire_field *field) {
    const unsigned byte = next_byte(cursor);
    field->type = (bj_wire_type)(byte & 15);
    if (field->type == BJ_WIRE_STOP) return 0;
    if (byte >> 4) {
        field->id += (int)(byte >> 4);
    } else {
        const int64_t id = bj_zigzag(bj_wire_varint(cursor));
        if (id < INT16_MIN || id > INT16_MAX) refuse(cursor, "a field number is out of range");
        else field->id = (int)id;
    }
    if (field->id > INT16_MAX) refuse(cursor, "a field number is out of range");
    return !cursor->bad;
}

/* Reads the header of a list or set. Fails if the count exceeds the remaining bytes, because every
 * element takes at least one byte. */
static size_t list_header(bj_wire *cursor, bj_wire_type *type) {
    const unsigned byte = next_byte(cursor);
    uint64_t count = byte >> 4;
    *type = (bj_wire_type)(byte & 15);
    if (count == 15) count = bj_wire_varint(cursor);
    if (count > left(cursor)) {
        refuse(cursor, "a list has more elements than there are bytes");
        return 0;
    }
    return (size_t)count;
}

static void skip(bj_wire *cursor, bj_wire_type type, int in_list, int depth) {
    if (depth > MOST_DEPTH) {
        refuse(cursor, "it is nested too deeply");
        return;
    }
    switch (type) {
    case BJ_WIRE_TRUE:
    case BJ_WIRE_FALSE: /* for a field, the type is the value */
        if (in_list) advance(cursor, 1);
        return;
    case BJ_WIRE_I8: advance(cursor, 1); return;
    case BJ_WIRE_I16:
    case BJ_WIRE_I32:
    case BJ_WIRE_I64: bj_wire_varint(cursor); return;
    case BJ_WIRE_DOUBLE: advance(cursor, 8); return;
    case BJ_WIRE_BINARY: advance(cursor, bj_wire_varint(cursor)); return;
    case BJ_WIRE_UUID: advance(cursor, 16); return;
    case BJ_WIRE_LIST:
    case BJ_WIRE_SET: {
        bj_wire_type element;
        const size_t count = list_header(cursor, &element);
        for (size_t i = 0; i < count && !cursor->bad; i++) skip(cursor, element, 1, depth + 1);
        return;
    }
    case BJ_WIRE_MAP: {
        const uint64_t count = bj_wire_varint(cursor);
        if (!count) return;
        const unsigned types = next_byte(cursor);
        for (uint64_t i = 0; i < count && !cursor->bad; i++) { /* every element needs at least one
                                                                  byte */
            skip(cursor, (bj_wire_type)(types >> 4), 1, depth + 1);
            skip(cursor, (bj_wire_type)(types & 15), 1, depth + 1);
        }
        return;
    }
    case BJ_WIRE_STRUCT: {
        bj_wire_field field = {0};
        while (bj_wire_next(cursor, &field)) skip(cursor, field.type, 0, depth + 1);
        return;
    }
    case BJ_WIRE_STOP: break;
    }
    refuse(cursor, "a value has an unknown type");
}

void bj_wire_skip(bj_wire *cursor, bj_wire_type type) { skip(cursor, type, 0, 0); }

int64_t bj_wire_int(bj_wire *cursor, bj_wire_field field) {
    if (field.type == BJ_WIRE_I8) return (int8_t)next_byte(cursor);
    if (field.type >= BJ_WIRE_I16 && field.type <= BJ_WIRE_I64)
        return bj_zigzag(bj_wire_varint(cursor));
    refuse(cursor, "a field is not a number");
    return 0;
}

int32_t bj_wire_int32(bj_wire *cursor, bj_wire_field field) {
    const int64_t value = bj_wire_int(cursor, field);
    if (value >= INT32_MIN && value <= INT32_MAX) return (int32_t)value;
    refuse(cursor, "a number has more than 32 bits");
    return 0;
}

int bj_wire_bool(bj_wire *cursor, bj_wire_field field) {
    if (field.type != BJ_WIRE_TRUE && field.type != BJ_WIRE_FALSE)
        refuse(cursor, "a field is not a boolean");
    return field.type == BJ_WIRE_TRUE;
}

const char *bj_wire_binary(size_t *size, bj_wire *cursor, bj_wire_field field) {
    *size = 0;
    if (field.type != BJ_WIRE_BINARY) {
        refuse(cursor, "a field is not a string");
        return "";
    }
    const uint64_t length = bj_wire_varint(cursor);
    const char *text = (const char *)cursor->at;
    advance(cursor, length);
    if (cursor->bad) return "";
    *size = (size_t)length;
    return text;
}

size_t bj_wire_structs(bj_wire *cursor, bj_wire_field field) {
    bj_wire_type element = BJ_WIRE_STRUCT;
    if (field.type != BJ_WIRE_LIST) refuse(cursor, "a field is not a list");
    const size_t count = list_header(cursor, &element);
    if (count && element != BJ_WIRE_STRUCT) refuse(cursor, "a list has elements of a wrong type");
    return cursor->bad ? 0 : count;
}

int bj_wire_is_struct(bj_wire *cursor, bj_wire_field field) {
    if (field.type != BJ_WIRE_STRUCT) refuse(cursor, "a field is not a struct");
    return !cursor->bad;
}
