/* delta.h - bit-packed differences: DELTA_BINARY_PACKED and the two text encodings based on it.
 *
 *   numbers  varints: block size, miniblocks per block, count, first value (zigzag); then blocks
 *            of: min difference (zigzag), one width byte per miniblock, the miniblocks
 *   lengths  DELTA_LENGTH_BYTE_ARRAY: the lengths as numbers, then all bytes
 *   texts    DELTA_BYTE_ARRAY: lengths of the prefixes shared with the previous text as numbers,
 *            then the suffixes as DELTA_LENGTH_BYTE_ARRAY
 *
 * Functions return NULL on success or an error description. Test: tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_DELTA_H
#define BJ_PARQUET_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* Decodes exactly `count` numbers, modulo 2^64. Sets *used to the number of bytes read. */
const char *bj_delta_decode(uint64_t *out, size_t count, const uint8_t *in, size_t size,
                            size_t *used);

#endif
