/* delta.c - see delta.h. */
#include "parquet/delta.h"

#include "parquet/hybrid.h"
#include "parquet/thrift.h"

/* Decodes the first `count` numbers of a miniblock of `size` numbers. */
static const char *miniblock(uint64_t *out, size_t count, uint64_t size, int width, uint64_t least,
                             uint64_t *last, bj_wire *in) {
    const size_t left = (size_t)(in->end - in->at);
    if (width > 64) return "differences of more than 64 bits";
    const char *bad = bj_unpack64(out, count, width, in->at, left);
    if (bad) return bad;
    for (size_t i = 0; i < count; i++) out[i] = *last += out[i] + least;
    /* The last miniblock is padded to its full size, but some writers omit the padding. */
    const uint64_t bytes = size / 8 * (uint64_t)width;
    in->at += bytes < left ? (size_t)bytes : left;
    return NULL;
}

const char *bj_delta_decode(uint64_t *out, size_t count, const uint8_t *in, size_t size,
                            size_t *used) {
    bj_wire cursor = {.at = in, .end = in + size};
    const uint64_t block = bj_wire_varint(&cursor), parts = bj_wire_varint(&cursor);
    const uint64_t total = bj_wire_varint(&cursor);
    uint64_t last = (uint64_t)bj_zigzag(bj_wire_varint(&cursor));
    *used = 0;
    if (cursor.bad) return "the header of the differences ends too early";
    if (!parts || block > INT32_MAX || block % parts || block / parts % 8 || !block)
        return "differences have an invalid block size";
    if (total != count) return "the number of differences does not match the number of values";
    if (count) *out++ = last, count--;
    while (count) {
        const uint64_t least = (uint64_t)bj_zigzag(bj_wire_varint(&cursor));
        if (cursor.bad || parts > (uint64_t)(cursor.end - cursor.at))
            return "a block of differences ends too early";
        const uint8_t *widths = cursor.at;
        cursor.at += parts;
        for (uint64_t p = 0; p < parts && count; p++) {
            const size_t n = count < block / parts ? count : (size_t)(block / parts);
            const char *bad = miniblock(out, n, block / parts, widths[p], least, &last, &cursor);
            if (bad) return bad;
            out += n;
            count -= n;
        }
    }
    *used = (size_t)(cursor.at - in);
    return NULL;
}
