/* snappy_pack.c - see snappy_pack.h.
 *
 * The input is divided into blocks of 64 KiB. In a block, a table maps the hash of four bytes to
 * their last position. Equal bytes become a copy, all other bytes literals. After 32 positions
 * without a match the search skips positions, so data that cannot be compressed costs little time.
 *
 *   literal   tag 0 with length - 1 < 60, or 60 and 61 with one and two more length bytes
 *   copy      tag 1: length 4 to 11, offset below 2048; tag 2: length 1 to 64, offset below 65536
 */
#include "parquet/snappy_pack.h"

#include <string.h>

enum { BLOCK = 1 << 16, HASH_BITS = 13, SHORTEST = 4, LONGEST = 64 };

size_t bj_snappy_bound(size_t size) { return 32 + size + size / 6; }

static uint32_t load(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t hash(uint32_t bytes) { return bytes * 0x1e35a7bdu >> (32 - HASH_BITS); }

static uint8_t *put_literal(uint8_t *out, const uint8_t *from, size_t length) {
    const size_t n = length - 1;
    if (!length) return out;
    if (n < 60) *out++ = (uint8_t)(n << 2);
    else if (n < 256) *out++ = 60 << 2, *out++ = (uint8_t)n;
    else *out++ = 61 << 2, *out++ = (uint8_t)n, *out++ = (uint8_t)(n >> 8);
    memcpy(out, from, length);
    return out + length;
}

static uint8_t *put_copy(uint8_t *out, size_t offset, size_t length) {
    while (length) {
        /* Leave at least four bytes for the next copy. */
        const size_t n = length <= LONGEST ? length : length < LONGEST + SHORTEST ? 60 : LONGEST;
        if (n >= SHORTEST && n < 12 && offset < 2048) {
            *out++ = (uint8_t)(1 | (n - SHORTEST) << 2 | offset >> 8 << 5);
            *out++ = (uint8_t)offset;
        } else {
            *out++ = (uint8_t)(2 | (n - 1) << 2);
            *out++ = (uint8_t)offset;
            *out++ = (uint8_t)(offset >> 8);
        }
        length -= n;
    }
    return out;
}

static uint8_t *pack_block(uint8_t *out, const uint8_t *in, size_t size,
                           uint16_t table[BJ_SNAPPY_TABLE]) {
    size_t done = 0, at = 1, misses = 0; /* a position of 0 in the table also means none */
    memset(table, 0, BJ_SNAPPY_TABLE * sizeof *table);
    while (at + SHORTEST <= size) {
        const uint32_t bytes = load(in + at);
        uint16_t *const slot = &table[hash(bytes)];
        const size_t before = *slot;
        *slot = (uint16_t)at;
        if (load(in + before) != bytes) {
            at += 1 + misses++ / 32;
            continue;
        }
        size_t length = SHORTEST;
        while (at + length < size && in[before + length] == in[at + length]) length++;
        out = put_literal(out, in + done, at - done);
        out = put_copy(out, at - before, length);
        done = at += length;
        misses = 0;
    }
    return put_literal(out, in + done, size - done);
}

size_t bj_snappy_pack(uint8_t *out, const uint8_t *in, size_t size,
                      uint16_t table[BJ_SNAPPY_TABLE]) {
    const uint8_t *const begin = out;
    for (size_t left = size;; left >>= 7) { /* the length, seven bits at a time */
        *out++ = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
        if (left <= 127) break;
    }
    for (size_t at = 0; at < size; at += BLOCK)
        out = pack_block(out, in + at, size - at < BLOCK ? size - at : BLOCK, table);
    return (size_t)(out - begin);
}
