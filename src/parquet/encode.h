/* encode.h - encodes the bytes of a Parquet file.
 *
 * A bj_bytes is a growing, reusable buffer. The following can be appended to it:
 *
 *   plain        bytes, little-endian numbers of 4 and 8 bytes, varints
 *   thrift       structs of the compact protocol: a field consists of a header (difference to the
 *                previous field id, type) and its value; a struct ends with a zero byte
 *   hybrid       runs (count << 1, value) and bit-packed groups of 8 (groups << 1 | 1, bits)
 *
 * If an allocation fails, later writes are ignored and bj_bytes_check returns the error, so
 * encoders do not need error handling.
 * Tests: tests/parquet/test_writer.c
 */
#ifndef BJ_PARQUET_ENCODE_H
#define BJ_PARQUET_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct bj_bytes {
    unsigned char *data;
    size_t size, room;
    int failed;
} bj_bytes;

void bj_bytes_reset(bj_bytes *bytes); /* empties the buffer but keeps its memory */
void bj_bytes_free(bj_bytes *bytes);
BJ_CHECK bj_status bj_bytes_check(const bj_bytes *bytes, bj_error *err);

/* Appends `count` bytes for the caller to fill. Returns NULL after a failure. */
unsigned char *bj_bytes_extend(bj_bytes *bytes, size_t count);
void bj_bytes_put(bj_bytes *bytes, const void *data, size_t count);
void bj_bytes_put_byte(bj_bytes *bytes, unsigned value);
void bj_bytes_put_u32(bj_bytes *bytes, uint32_t value);
void bj_bytes_put_varint(bj_bytes *bytes, uint64_t value);

/* -------------------------------------------------------------------------------------- thrift */

typedef enum bj_emit_type { /* types of the compact protocol */
                            BJ_EMIT_I32 = 5,
                            BJ_EMIT_I64 = 6,
                            BJ_EMIT_BINARY = 8,
                            BJ_EMIT_LIST = 9,
                            BJ_EMIT_STRUCT = 12
} bj_emit_type;

/* A struct that is being written, with the id of its last field. */
typedef struct bj_emit {
    bj_bytes *out;
    int last;
} bj_emit;

void bj_emit_int(bj_emit *to, int field, bj_emit_type type, int64_t value);
void bj_emit_text(bj_emit *to, int field, const char *text);
/* Starts a nested struct. Write its fields through the result, then call bj_emit_end. */
bj_emit bj_emit_struct(bj_emit *to, int field);
/* Starts a list of `count` elements. Structs end with bj_emit_end; other elements are written with
 * bj_emit_element_int or bj_emit_element_text. */
void bj_emit_list(bj_emit *to, int field, bj_emit_type type, size_t count);
void bj_emit_element_int(bj_emit *to, int64_t value);
void bj_emit_element_text(bj_emit *to, const char *text);
void bj_emit_end(bj_emit *to);

/* -------------------------------------------------------------------------------------- hybrid */

/* Writes a run of `count` equal values of `width` bits. */
void bj_hybrid_run(bj_bytes *out, uint32_t value, uint64_t count, int width);
/* Writes any values. Sequences of equal values become runs. */
void bj_hybrid_values(bj_bytes *out, const int32_t *values, size_t count, int width);

#endif
