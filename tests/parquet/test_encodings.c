/* test_encodings.c - compares the decoders of bit-packed values, runs and differences with simple
 * encoders.
 *
 * Every input is in a block of its exact size, so AddressSanitizer detects reads beyond it. A
 * truncated input must either fail or give the same values.
 */
#include <stdint.h>
#include <stdlib.h>

#include "core/rng.h"
#include "parquet/delta.h"
#include "parquet/hybrid.h"
#include "support/test.h"

enum { MOST = 700, ROOM = 16 * 1024 };

typedef struct bytes {
    uint8_t data[ROOM];
    size_t size;
} bytes;

static void put(bytes *out, uint64_t byte) { out->data[out->size++] = (uint8_t)byte; }

static void put_varint(bytes *out, uint64_t n) {
    for (; n > 127; n >>= 7) put(out, n | 128);
    put(out, n);
}

static void put_zigzag(bytes *out, int64_t n) {
    put_varint(out, (uint64_t)n << 1 ^ (n < 0 ? ~(uint64_t)0 : 0));
}

/* Packs values bit by bit, lowest bit first. */
static void put_packed(bytes *out, const uint64_t *values, size_t count, int width) {
    size_t bit = 0;
    const size_t begin = out->size;
    memset(out->data + begin, 0, (count * (size_t)width + 7) / 8);
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < width; b++, bit++)
            out->data[begin + bit / 8] |= (uint8_t)((values[i] >> b & 1) << bit % 8);
    out->size += (bit + 7) / 8;
}

static uint64_t low_bits(uint64_t value, int width) {
    return width == 64 ? value : value & (((uint64_t)1 << width) - 1);
}

/* Returns a copy of the bytes in a block of their exact size. */
static uint8_t *exact(const bytes *in, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, in->data, size);
    return copy;
}

static void test_unpack(bj_rng *rng) {
    static uint64_t values[MOST], wide[MOST];
    static uint32_t narrow[MOST + BJ_HYBRID_ROOM];
    for (int width = 0; width <= 64; width++)
        for (size_t count = 0; count < 70; count++) {
            bytes in = {.size = 0};
            for (size_t i = 0; i < count; i++) values[i] = low_bits(bj_rng_next(rng), width);
            put_packed(&in, values, count, width);
            uint8_t *block = exact(&in, in.size);
            memset(wide, 0xff, sizeof wide);
            CHECK(!bj_unpack64(wide, count, width, block, in.size));
            CHECK_MSG(!memcmp(wide, values, count * 8), "%zu of %d bits", count, width);
            CHECK(wide[count] == UINT64_MAX);
            if (width <= 32) {
                int same = 1;
                memset(narrow, 0xff, sizeof narrow);
                CHECK(!bj_unpack32(narrow, count, width, block, in.size));
                for (size_t i = 0; i < count; i++) same &= narrow[i] == values[i];
                CHECK_MSG(same, "%zu of %d bits", count, width);
                CHECK(narrow[count + BJ_HYBRID_ROOM] == UINT32_MAX);
                if (in.size) CHECK(bj_unpack32(narrow, count, width, block, in.size - 1));
            }
            if (in.size) CHECK(bj_unpack64(wide, count, width, block, in.size - 1));
            free(block);
        }
}

/* Tests random sequences of runs and packed groups. */
static void test_hybrid(bj_rng *rng) {
    static uint64_t values[MOST + 64];
    static uint32_t out[MOST + BJ_HYBRID_ROOM];
    for (int round = 0; round < 2000; round++) {
        const int width = (int)(bj_rng_next(rng) % 33);
        const size_t count = bj_rng_next(rng) % 300;
        bytes in = {.size = 0};
        size_t n = 0;
        while (n < count) {
            size_t length = 1 + bj_rng_next(rng) % 40;
            if (bj_rng_next(rng) % 2) { /* a run, which may be longer than needed */
                const uint64_t value = low_bits(bj_rng_next(rng), width);
                put_varint(&in, length << 1);
                for (int b = 0; b < (width + 7) / 8; b++) put(&in, value >> 8 * b);
                for (size_t i = 0; i < length; i++) values[n++] = value;
            } else {
                length = (length + 7) / 8 * 8;
                for (size_t i = 0; i < length; i++)
                    values[n + i] = low_bits(bj_rng_next(rng), width);
                put_varint(&in, length / 8 << 1 | 1);
                put_packed(&in, values + n, length, width);
                n += length;
            }
        }
        for (size_t size = in.size + 1; size-- > (in.size > 40 ? in.size - 40 : 0);) {
            uint8_t *block = exact(&in, size);
            int same = 1;
            out[count + BJ_HYBRID_ROOM] = 0xabcdef;
            const char *bad = bj_hybrid_decode(out, count, width, block, size);
            for (size_t i = 0; i < count && !bad; i++) same &= out[i] == values[i];
            CHECK_MSG(same, "%zu of %d bits", count, width);
            CHECK(out[count + BJ_HYBRID_ROOM] == 0xabcdef);
            if (size == in.size) CHECK_MSG(!bad, "%s", bad);
            free(block);
        }
    }
    CHECK(bj_hybrid_decode(out, 1, 33, (const uint8_t *)"\2\0\0\0\0\0", 6) != NULL);
    CHECK(bj_hybrid_decode(out, 1, 3, (const uint8_t *)"\2\10", 2) != NULL); /* 8 has 4 bits */
    CHECK(bj_hybrid_decode(out, 1, 3, (const uint8_t *)"\2\7", 2) == NULL && out[0] == 7);
    CHECK(bj_hybrid_decode(out, 1, 1, (const uint8_t *)"\0\0\0\0", 4) != NULL); /* empty runs */
    CHECK(bj_hybrid_decode(out, 9, 0, (const uint8_t *)"\3\2", 2) == NULL && out[8] == 0);
    CHECK(bj_hybrid_is_constant(9, 1, 1, (const uint8_t *)"\x12\1", 2));
    CHECK(!bj_hybrid_is_constant(10, 1, 1, (const uint8_t *)"\x12\1", 2));
    CHECK(!bj_hybrid_is_constant(9, 1, 1, (const uint8_t *)"\x12\0", 2));
    CHECK(!bj_hybrid_is_constant(9, 1, 1, (const uint8_t *)"\x13\1", 2));
    CHECK(!bj_hybrid_is_constant(9, 1, 1, (const uint8_t *)"\x12", 1));
}

static int bits_of(uint64_t n) {
    int bits = 0;
    for (; n; n >>= 1) bits++;
    return bits;
}

/* Encodes differences modulo 2^64 in blocks of `block` values with `parts` miniblocks each. */
static void put_deltas(bytes *out, const uint64_t *values, size_t count, size_t block,
                       size_t parts) {
    put_varint(out, block);
    put_varint(out, parts);
    put_varint(out, count);
    put_zigzag(out, count ? (int64_t)values[0] : 0);
    for (size_t at = 1; at < count; at += block) {
        uint64_t differences[256] = {0};
        const size_t n = count - at < block ? count - at : block, each = block / parts;
        int64_t least = INT64_MAX;
        for (size_t i = 0; i < n; i++) {
            differences[i] = values[at + i] - values[at + i - 1];
            if ((int64_t)differences[i] < least) least = (int64_t)differences[i];
        }
        put_zigzag(out, least);
        for (size_t i = 0; i < n; i++) differences[i] -= (uint64_t)least;
        uint8_t *widths = out->data + out->size;
        for (size_t p = 0; p < parts; p++) {
            uint64_t all = 0;
            for (size_t i = 0; i < each; i++) all |= differences[p * each + i];
            /* Miniblocks without values may have any width. */
            put(out, p * each < n ? (uint64_t)bits_of(all) : 200);
        }
        for (size_t p = 0; p * each < n; p++)
            put_packed(out, differences + p * each, each, widths[p]);
    }
}

static void test_deltas(bj_rng *rng) {
    static uint64_t values[MOST], out[MOST];
    for (int round = 0; round < 400; round++) {
        const size_t count = round < 40 ? (size_t)round : bj_rng_next(rng) % MOST;
        const size_t block = bj_rng_next(rng) % 2 ? 128 : 256, parts = bj_rng_next(rng) % 2 ? 4 : 2;
        const int width = (int)(bj_rng_next(rng) % 65);
        uint64_t last = bj_rng_next(rng);
        bytes in = {.size = 0};
        size_t used;
        for (size_t i = 0; i < count; i++) values[i] = last += low_bits(bj_rng_next(rng), width);
        put_deltas(&in, values, count, block, parts);
        const size_t size = in.size;
        put(&in, 0x55); /* trailing bytes are not read */
        uint8_t *block_of = exact(&in, in.size);
        const char *bad = bj_delta_decode(out, count, block_of, in.size, &used);
        CHECK_MSG(!bad, "%s", bad);
        CHECK_MSG(used == size && !memcmp(out, values, count * 8), "%zu of %d bits", count, width);
        CHECK(bj_delta_decode(out, count + 1, block_of, in.size, &used) != NULL);
        free(block_of);
        for (size_t n = 0; n < size; n += 1 + n / 8) { /* only padding may be missing */
            uint8_t *shorter = exact(&in, n);
            bad = bj_delta_decode(out, count, shorter, n, &used);
            CHECK(bad || (used <= n && !memcmp(out, values, count * 8)));
            free(shorter);
        }
    }
    size_t used;
    CHECK(bj_delta_decode(out, 1, (const uint8_t *)"\0\0\1\0", 4, &used) != NULL);
    CHECK(bj_delta_decode(out, 1, (const uint8_t *)"\x80\1\3\1\0", 5, &used) != NULL);
    CHECK(bj_delta_decode(out, 2,
                          (const uint8_t *)"\x80\1\1\2\0\0\x41"
                                           "0123456789012345",
                          23, &used) != NULL); /* 65 bits */
}

int main(void) {
    bj_rng rng = bj_rng_seed(5);
    test_unpack(&rng);
    test_hybrid(&rng);
    test_deltas(&rng);
    return test_report("encodings");
}
