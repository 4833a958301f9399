/* codecs.h - decompresses pages: snappy, gzip and zstd.
 *
 * A page header contains the unpacked size, and the result must have exactly this size. The size is
 * first checked against the best possible ratio of the codec (snappy expands 3 bytes to 64, deflate
 * reaches 1032 to 1, zstd expands 4 bytes to a block of 128 kB), so no memory is allocated for an
 * implausible size.
 *
 * The gzip and zstd states are reused for the next page. zstd allocates its own state (about 160
 * kB, once) because custom allocators are not part of its stable interface.
 * Test: tests/parquet/test_codecs.c
 */
#ifndef BJ_PARQUET_CODECS_H
#define BJ_PARQUET_CODECS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Values from the Parquet specification. */
typedef enum bj_codec {
    BJ_CODEC_NONE = 0,
    BJ_CODEC_SNAPPY = 1,
    BJ_CODEC_GZIP = 2,
    BJ_CODEC_ZSTD = 6
} bj_codec;

typedef struct bj_codecs {
    void *inflater, *zstd; /* created on first use */
} bj_codecs;

/* Returns a name for messages, for example "snappy", "LZ4" or "an unknown codec". */
const char *bj_codec_name(int codec);
int bj_codec_known(int codec);
/* Returns 1 if `packed` bytes can unpack to `unpacked` bytes with this codec. */
int bj_codec_plausible(int codec, size_t packed, size_t unpacked);

/* Unpacks into exactly out_size bytes. Does not accept BJ_CODEC_NONE. If the data is invalid,
 * returns BJ_EFORMAT and sets *why to the reason. Returns BJ_ENOMEM if memory is exhausted. */
BJ_CHECK bj_status bj_codec_unpack(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                                   int codec, bj_codecs *codecs, const char **why);
/* Returns the gzip CRC-32, which a page header may contain. */
uint32_t bj_codec_crc32(const uint8_t *data, size_t size);
void bj_codecs_free(bj_codecs *codecs);

#endif
