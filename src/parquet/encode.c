/* encode.c - see encode.h. Test: tests/parquet/test_writer.c */
#include "parquet/encode.h"

#include <string.h>

#include "core/alloc.h"

enum { FIRST_ROOM = 256, GROUP = 8 };

void bj_bytes_reset(bj_bytes *bytes) {
    bytes->size = 0;
    bytes->failed = 0;
}

void bj_bytes_free(bj_bytes *bytes) {
    bj_free(bytes->data);
    *bytes = (bj_bytes){0};
}

bj_status bj_bytes_check(const bj_bytes *bytes, bj_error *err) {
    return bytes->failed ? BJ_FAIL(err, BJ_ENOMEM, "out of memory while writing a Parquet file")
                         : BJ_OK;
}

unsigned char *bj_bytes_extend(bj_bytes *bytes, size_t count) {
    if (bytes->failed) return NULL;
    if (count > bytes->room - bytes->size) {
        size_t room = bytes->room ? bytes->room : FIRST_ROOM;
        while (room - bytes->size < count && room <= SIZE_MAX / 2) room *= 2;
        unsigned char *larger = room - bytes->size < count ? NULL : bj_alloc(room, 1);
        if (!larger) {
            bytes->failed = 1;
            return NULL;
        }
        if (bytes->size) memcpy(larger, bytes->data, bytes->size);
        bj_free(bytes->data);
        bytes->data = larger;
        bytes->room = room;
    }
    unsigned char *const at = bytes->data + bytes->size;
    bytes->size += count;
    return at;
}

void bj_bytes_put(bj_bytes *bytes, const void *data, size_t count) {
    unsigned char *const at = bj_bytes_extend(bytes, count);
    if (at && count) memcpy(at, data, count);
}

void bj_bytes_put_byte(bj_bytes *bytes, unsigned value) {
    unsigned char *const at = bj_bytes_extend(bytes, 1);
    if (at) *at = (unsigned char)value;
}

void bj_bytes_put_u32(bj_bytes *bytes, uint32_t value) {
    unsigned char *const at = bj_bytes_extend(bytes, 4);
    for (int i = 0; at && i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

void bj_bytes_put_varint(bj_bytes *bytes, uint64_t value) {
    unsigned char text[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) text[n++] = (unsigned char)(value | 0x80);
    text[n++] = (unsigned char)value;
    bj_bytes_put(bytes, text, n);
}

/* -------------------------------------------------------------------------------------- thrift */

/* Maps signed to unsigned numbers: 0, -1, 1, -2 become 0, 1, 2, 3. */
static uint64_t zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static void field_header(bj_emit *to, int field, bj_emit_type type) {
    const int step = field - to->last;
    if (step >= 1 && step <= 15) {
        bj_bytes_put_byte(to->out, (unsigned)step << 4 | type);
    } else {
        bj_bytes_put_byte(to->out, type);
        bj_bytes_put_varint(to->out, zigzag(field));
    }
    to->last = field;
}

void bj_emit_int(bj_emit *to, int field, bj_emit_type type, int64_t value) {
    field_header(to, field, type);
    bj_emit_element_int(to, value);
}

void bj_emit_text(bj_emit *to, int field, const char *text) {
    field_header(to, field, BJ_EMIT_BINARY);
    bj_emit_element_text(to, text);
}

bj_emit bj_emit_struct(bj_emit *to, int field) {
    field_header(to, field, BJ_EMIT_STRUCT);
    return (bj_emit){to->out, 0};
}

void bj_emit_list(bj_emit *to, int field, bj_emit_type type, size_t count) {
    field_header(to, field, BJ_EMIT_LIST);
    bj_bytes_put_byte(to->out, (unsigned)(count < 15 ? count : 15) << 4 | type);
    if (count >= 15) bj_bytes_put_varint(to->out, count);
}

void bj_emit_element_int(bj_emit *to, int64_t value) {
    bj_bytes_put_varint(to->out, zigzag(value));
}

void bj_emit_element_text(bj_emit *to, const char *text) {
    const size_t size = strlen(text);
    bj_bytes_put_varint(to->out, size);
    bj_bytes_put(to->out, text, size);
}

void bj_emit_end(bj_emit *to) { bj_bytes_put_byte(to->out, 0); }

/* -------------------------------------------------------------------------------------- hybrid */

void bj_hybrid_run(bj_bytes *out, uint32_t value, uint64_t count, int width) {
    if (!count) return;
    bj_bytes_put_varint(out, count << 1);
    for (int bit = 0; bit < width; bit += 8) bj_bytes_put_byte(out, value >> bit & 0xff);
}

/* Writes bit-packed groups of eight values and pads the last group with zeros. */
static void put_packed(bj_bytes *out, const int32_t *values, size_t count, int width) {
    const size_t groups = (count + GROUP - 1) / GROUP;
    uint64_t bits = 0;
    int held = 0;
    if (!count) return;
    bj_bytes_put_varint(out, (uint64_t)groups << 1 | 1);
    unsigned char *at = bj_bytes_extend(out, groups * (size_t)width);
    if (!at) return;
    for (size_t i = 0; i < groups * GROUP; i++) {
        bits |= (uint64_t)(i < count ? (uint32_t)values[i] : 0) << held;
        for (held += width; held >= 8; held -= 8, bits >>= 8) *at++ = (unsigned char)bits;
    }
}

void bj_hybrid_values(bj_bytes *out, const int32_t *values, size_t count, int width) {
    size_t packed = 0; /* start of the values that have not been written yet */
    for (size_t i = 0; i < count;) {
        size_t equal = 1;
        while (i + equal < count && values[i + equal] == values[i]) equal++;
        /* Every packed group except the last must be full, so values of the next run may be needed
         * to fill a group. */
        const size_t lend = (GROUP - (i - packed) % GROUP) % GROUP;
        if (equal < lend + GROUP) {
            i += equal;
            continue;
        }
        put_packed(out, values + packed, i + lend - packed, width);
        bj_hybrid_run(out, (uint32_t)values[i], equal - lend, width);
        i += equal;
        packed = i;
    }
    put_packed(out, values + packed, count - packed, width);
}
