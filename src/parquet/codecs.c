/* codecs.c - see codecs.h. */
#include "parquet/codecs.h"

#include <limits.h>
#include <string.h>

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "core/alloc.h"

/* clang-format off */
static const struct { const char *name; unsigned best_ratio; } known[] = { /* 0: unsupported */
    [BJ_CODEC_NONE] = {"no compression", 1},
    [BJ_CODEC_SNAPPY] = {"snappy", 32},
    [BJ_CODEC_GZIP] = {"gzip", 1040},
    [3] = {"LZO", 0}, [4] = {"brotli", 0}, [5] = {"LZ4", 0},
    [BJ_CODEC_ZSTD] = {"zstd", 64 * 1024},
    [7] = {"LZ4_RAW", 0},
};
/* clang-format on */
enum { KNOWN = sizeof known / sizeof *known };

const char *bj_codec_name(int codec) {
    return codec >= 0 && codec < KNOWN ? known[codec].name : "an unknown codec";
}

int bj_codec_known(int codec) { return codec >= 0 && codec < KNOWN && known[codec].best_ratio; }

int bj_codec_plausible(int codec, size_t packed, size_t unpacked) {
    if (codec == BJ_CODEC_NONE) return packed == unpacked;
    return unpacked / known[codec].best_ratio <= packed;
}

/* ---------------------------------------------------------------------------------------- gzip */

static void *zlib_alloc(void *user, unsigned count, unsigned size) {
    (void)user;
    return bj_alloc(count, size);
}

static void zlib_free(void *user, void *memory) {
    (void)user;
    bj_free(memory);
}

static z_stream *inflater(bj_codecs *codecs) {
    z_stream *stream = codecs->inflater;
    if (stream) return stream;
    stream = bj_alloc(1, sizeof *stream);
    if (!stream) return NULL;
    stream->zalloc = zlib_alloc;
    stream->zfree = zlib_free;
    if (inflateInit2(stream, 15 + 32) != Z_OK) { /* 32 KB window; accepts gzip and zlib headers */
        bj_free(stream);
        return NULL;
    }
    return codecs->inflater = stream;
}

/* Unpacks a page, which may consist of several gzip members in a row. */
static bj_status unpack_gzip(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                             bj_codecs *codecs, const char **why) {
    z_stream *stream = inflater(codecs);
    if (!stream) return BJ_ENOMEM;
    if (in_size > UINT_MAX || out_size > UINT_MAX) { /* pages are smaller than 2 GiB */
        *why = "gzip page is too large";
        return BJ_EFORMAT;
    }
    stream->next_in = (Bytef *)(uintptr_t)in;
    stream->avail_in = (uInt)in_size;
    stream->next_out = out;
    stream->avail_out = (uInt)out_size;
    do {
        if (inflateReset(stream) != Z_OK) return BJ_ENOMEM;
        const int result = inflate(stream, Z_FINISH);
        if (result == Z_MEM_ERROR) return BJ_ENOMEM;
        if (result != Z_STREAM_END) {
            *why = result == Z_BUF_ERROR && !stream->avail_out
                       ? "gzip data unpacks to more bytes than declared in the page header"
                       : "gzip data is damaged or ends too early";
            return BJ_EFORMAT;
        }
    } while (stream->avail_in && stream->avail_out);
    if (!stream->avail_out) return BJ_OK;
    *why = "gzip data unpacks to fewer bytes than declared in the page header";
    return BJ_EFORMAT;
}

/* -------------------------------------------------------------------------------- snappy, zstd */

static bj_status unpack_snappy(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                               const char **why) {
    const char *packed = (const char *)in;
    size_t size;
    if (snappy_uncompressed_length(packed, in_size, &size) != SNAPPY_OK) {
        *why = "snappy data has no length";
        return BJ_EFORMAT;
    }
    if (size != out_size) {
        *why = "the length of the snappy data differs from the page header";
        return BJ_EFORMAT;
    }
    if (snappy_uncompress(packed, in_size, (char *)out, &size) == SNAPPY_OK && size == out_size)
        return BJ_OK;
    *why = "snappy data is damaged";
    return BJ_EFORMAT;
}

static bj_status unpack_zstd(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                             bj_codecs *codecs, const char **why) {
    if (!codecs->zstd) codecs->zstd = ZSTD_createDCtx();
    if (!codecs->zstd) return BJ_ENOMEM;
    const size_t size = ZSTD_decompressDCtx(codecs->zstd, out, out_size, in, in_size);
    if (size == out_size) return BJ_OK;
    *why = ZSTD_isError(size) ? "zstd data is damaged, or its length differs from the page header"
                              : "zstd data unpacks to fewer bytes than declared in the page header";
    return BJ_EFORMAT;
}

bj_status bj_codec_unpack(uint8_t *out, size_t out_size, const uint8_t *in, size_t in_size,
                          int codec, bj_codecs *codecs, const char **why) {
    *why = "codec is not supported";
    switch (codec) {
    case BJ_CODEC_SNAPPY: return unpack_snappy(out, out_size, in, in_size, why);
    case BJ_CODEC_GZIP: return unpack_gzip(out, out_size, in, in_size, codecs, why);
    case BJ_CODEC_ZSTD: return unpack_zstd(out, out_size, in, in_size, codecs, why);
    default: return BJ_EFORMAT;
    }
}

uint32_t bj_codec_crc32(const uint8_t *data, size_t size) {
    return (uint32_t)crc32_z(0, data, size);
}

void bj_codecs_free(bj_codecs *codecs) {
    if (codecs->inflater) inflateEnd(codecs->inflater);
    bj_free(codecs->inflater);
    ZSTD_freeDCtx(codecs->zstd); /* accepts NULL */
    *codecs = (bj_codecs){0};
}
