/* delta.h - differences, bit-packed: DELTA_BINARY_PACKED and the two text encodings built on it.
 *
 *   numbers  varints: block size, miniblocks of a block, count, first value (zigzag); then blocks
 *            of: least difference (zigzag), a width byte for each miniblock, the miniblocks
 *   lengths  DELTA_LENGTH_BYTE_ARRAY: the lengths as numbers, then all the bytes
 *   texts    DELTA_BYTE_ARRAY: how much of the previous text is kept as numbers, then the rest of
 *            each text as DELTA_LENGTH_BYTE_ARRAY
 *
 * Functions return NULL, or what is wrong. Test: tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_DELTA_H
#define BJ_PARQUET_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* Exactly `count` numbers, modulo 2^64; *used is set to the bytes they took. */
const char *bj_delta_decode(uint64_t *out, size_t count, const uint8_t *in, size_t size,
                            size_t *used);

#endif
