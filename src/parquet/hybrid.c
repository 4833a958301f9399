/* hybrid.c - see hybrid.h.
 *
 * A group of 8 values of w bits takes w bytes. There is one loop per width, because with a
 * compile-time constant w, each value needs only one unaligned 8-byte load, a shift and a mask.
 * Loads read up to 8 bytes past a group, so the last groups are first copied to a padded buffer.
 */
#include "parquet/hybrid.h"

#include <string.h>

#include "parquet/thrift.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hybrid.c loads little-endian words as they are"
#endif

static const char *const ends_early = "packed values end too early";

static inline uint64_t load64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Unpacks groups of 8 values. May read up to 8 bytes past the input. */
static inline void unpack_groups(uint32_t *out, const uint8_t *in, size_t groups, unsigned width) {
    const uint64_t mask = ((uint64_t)1 << width) - 1;
    for (size_t g = 0; g < groups; g++, in += width, out += 8)
        for (unsigned i = 0; i < 8; i++)
            out[i] = (uint32_t)(load64(in + i * width / 8) >> i * width % 8 & mask);
}

static void unpack_any(uint32_t *out, const uint8_t *in, size_t groups, int width) {
    switch (width) {
#define WIDTH(w)                                                                                   \
    case w: unpack_groups(out, in, groups, w); break;
        /* clang-format off */
        WIDTH(1)  WIDTH(2)  WIDTH(3)  WIDTH(4)  WIDTH(5)  WIDTH(6)  WIDTH(7)  WIDTH(8)
        WIDTH(9)  WIDTH(10) WIDTH(11) WIDTH(12) WIDTH(13) WIDTH(14) WIDTH(15) WIDTH(16)
        WIDTH(17) WIDTH(18) WIDTH(19) WIDTH(20) WIDTH(21) WIDTH(22) WIDTH(23) WIDTH(24)
        WIDTH(25) WIDTH(26) WIDTH(27) WIDTH(28) WIDTH(29) WIDTH(30) WIDTH(31) WIDTH(32)
        /* clang-format on */
#undef WIDTH
    }
}

const char *bj_unpack32(uint32_t *out, size_t count, int width, const uint8_t *in, size_t size) {
    if (!width) {
        memset(out, 0, count * sizeof *out);
        return NULL;
    }
    const size_t w = (size_t)width, groups = (count + 7) / 8;
    if (size / w < count / 8 || size - count / 8 * w < (count % 8 * w + 7) / 8) return ends_early;
    /* Returns the number of groups that can be loaded without reading past the input. */
    size_t safe = size < w + 8 ? 0 : (size - 8) / w;
    if (safe > groups) safe = groups;
    unpack_any(out, in, safe, width);
    for (size_t g = safe; g < groups; g++) {
        uint8_t padded[32 + 8] = {0};
        const size_t left = size - g * w;
        memcpy(padded, in + g * w, left < w ? left : w);
        unpack_any(out + 8 * g, padded, 1, width);
    }
    return NULL;
}

const char *bj_unpack64(uint64_t *out, size_t count, int width, const uint8_t *in, size_t size) {
    const uint64_t mask = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1;
    const size_t w = (size_t)width;
    if (w && (size / w < count / 8 || size - count / 8 * w < (count % 8 * w + 7) / 8))
        return ends_early;
    for (size_t i = 0; i < count; i++) {
        const size_t bit = i % 8 * w, at = i / 8 * w + bit / 8;
        const unsigned shift = bit % 8;
        uint8_t padded[9] = {0};
        const uint8_t *from = in + at;
        if (size - at < sizeof padded) { /* a value may span nine bytes */
            memcpy(padded, from, size - at);
            from = padded;
        }
        uint64_t word = load64(from) >> shift;
        if (shift) word |= (uint64_t)from[8] << (64 - shift);
        out[i] = word & mask;
    }
    return NULL;
}

/* Reads the header of the next run. Returns 0 at the end of the input. */
static int next_run(bj_wire *in, uint64_t *count, int *packed, uint32_t *value, int width) {
    const uint64_t header = bj_wire_varint(in);
    *packed = (int)(header & 1);
    *count = header >> 1;
    *value = 0;
    if (*packed) return !in->bad;
    const int bytes = (width + 7) / 8;
    if (in->end - in->at < bytes) return 0;
    for (int i = 0; i < bytes; i++) *value |= (uint32_t)*in->at++ << 8 * i;
    return !in->bad;
}

const char *bj_hybrid_decode(uint32_t *out, size_t count, int width, const uint8_t *in,
                             size_t size) {
    bj_wire runs = {.at = in, .end = in + size};
    if (width < 0 || width > 32) return "values of more than 32 bits";
    while (count) {
        uint64_t length;
        uint32_t value;
        int packed;
        if (!next_run(&runs, &length, &packed, &value, width)) return ends_early;
        if (!packed) {
            if (width < 32 && value >> width) return "a run of a value with too many bits";
            const size_t n = length < count ? (size_t)length : count;
            for (size_t i = 0; i < n; i++) out[i] = value;
            out += n;
            count -= n;
            continue;
        }
        /* The last group may contain more values than needed, and some writers truncate it. */
        const size_t left = (size_t)(runs.end - runs.at);
        const size_t n = length <= count / 8 ? (size_t)length * 8 : count;
        const size_t bytes = width && length > left ? SIZE_MAX : (size_t)length * (size_t)width;
        const size_t there = bytes < left ? bytes : left;
        const char *bad = bj_unpack32(out, n, width, runs.at, there);
        if (bad) return bad;
        runs.at += there;
        out += n;
        count -= n;
    }
    return NULL;
}

int bj_hybrid_is_constant(size_t count, uint32_t value, int width, const uint8_t *in, size_t size) {
    bj_wire runs = {.at = in, .end = in + size};
    uint64_t length;
    uint32_t found;
    int packed;
    return next_run(&runs, &length, &packed, &found, width) && !packed && found == value &&
           length >= count;
}
