/* codecs.h - compressed pages: snappy, gzip and zstd.
 *
 * A page says how many bytes it unpacks to. The result must have exactly that size; the claim is
 * first held against what the codec can reach at best (a copy of 64 bytes from 3 for snappy, 1032
 * for 1 with deflate, a block of 128 kB from 4 bytes with zstd), so that a lie costs nothing.
 *
 * The state of gzip and zstd is kept for the next page. zstd allocates its own (about 160 kB,
 * once); the hook for that is not part of its stable interface. Test: tests/parquet/test_codecs.c
 */
#ifndef BJ_PARQUET_CODECS_H
#define BJ_PARQUET_CODECS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Numbers of the format. */
typedef enum bj_codec {
    BJ_CODEC_NONE = 0,
    BJ_CODEC_SNAPPY = 1,
    BJ_CODEC_GZIP = 2,
    BJ_CODEC_ZSTD = 6
} bj_codec;

typedef struct bj_codecs {
    void *inflater, *zstd; /* made when first needed */
} bj_codecs;

/* "snappy", "LZ4", "codec 12": for messages. */
const char *bj_codec_name(int codec);
int bj_codec_known(int codec);
/* Could so many bytes unpack to so many? */
int bj_codec_plausible(int codec, size_t packed, size_t unpacked);

/* Unpacks into exactly out_size bytes. Not for BJ_CODEC_NONE. *why says what is wrong when the
 * bytes are (BJ_EFORMAT); otherwise memory is exhausted (BJ_ENOMEM). */
BJ_CHECK bj_status bj_codec_unpack(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                                   int codec, bj_codecs *codecs, const char **why);
/* The checksum of gzip, which pages may carry. */
uint32_t bj_codec_crc32(const uint8_t *data, size_t size);
void bj_codecs_free(bj_codecs *codecs);

#endif
