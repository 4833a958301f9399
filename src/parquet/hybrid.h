/* hybrid.h - decodes the RLE/bit-packing hybrid encoding of small unsigned numbers.
 *
 *   run      varint (count << 1), then the value in (width + 7) / 8 bytes
 *   packed   varint (groups << 1 | 1), groups of 8 values of `width` bits each, lowest bit first
 *
 * Levels, dictionary indices and RLE booleans use this encoding. All functions check the input
 * bounds and return NULL on success or an error description.
 * Test: tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_HYBRID_H
#define BJ_PARQUET_HYBRID_H

#include <stddef.h>
#include <stdint.h>

enum { BJ_HYBRID_ROOM = 8 }; /* number of elements past the end that a decoder may overwrite */

/* Decodes exactly `count` values of 0 to 32 bits. out has room for count + BJ_HYBRID_ROOM. */
const char *bj_hybrid_decode(uint32_t *out, size_t count, int width, const uint8_t *in,
                             size_t size);

/* Returns 1 if the first run covers every entry with `value`, which is how writers encode "no
 * nulls". */
int bj_hybrid_is_constant(size_t count, uint32_t value, int width, const uint8_t *in, size_t size);

/* Unpacks `count` bit-packed values without a header. out has room for count + BJ_HYBRID_ROOM. */
const char *bj_unpack32(uint32_t *out, size_t count, int width, const uint8_t *in, size_t size);
/* Like bj_unpack32 for 0 to 64 bits. out has room for count. */
const char *bj_unpack64(uint64_t *out, size_t count, int width, const uint8_t *in, size_t size);

#endif
