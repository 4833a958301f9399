/* hybrid.h - small unsigned numbers: runs and bit-packed groups, mixed.
 *
 *   run      varint (count << 1), the value in as many whole bytes as its bits need
 *   packed   varint (groups << 1 | 1), groups of 8 values, each of `width` bits, lowest first
 *
 * Levels, dictionary indices and RLE booleans come this way. All functions check every byte they
 * read and return NULL, or what is wrong.
 * Test: tests/parquet/test_encodings.c
 */
#ifndef BJ_PARQUET_HYBRID_H
#define BJ_PARQUET_HYBRID_H

#include <stddef.h>
#include <stdint.h>

enum { BJ_HYBRID_ROOM = 8 }; /* elements behind the last that a decoder may overwrite */

/* Exactly `count` values of 0 to 32 bits; out has (count + BJ_HYBRID_ROOM). */
const char *bj_hybrid_decode(uint32_t *out, size_t count, int width, const uint8_t *in,
                             size_t size);

/* 1 when the first run alone says `value` for all of them: the usual form of "no nulls". */
int bj_hybrid_is_constant(size_t count, uint32_t value, int width, const uint8_t *in, size_t size);

/* `count` values packed without a header; out has (count + BJ_HYBRID_ROOM). */
const char *bj_unpack32(uint32_t *out, size_t count, int width, const uint8_t *in, size_t size);
/* The same for 0 to 64 bits; out has (count). */
const char *bj_unpack64(uint64_t *out, size_t count, int width, const uint8_t *in, size_t size);

#endif
