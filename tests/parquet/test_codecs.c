/* test_codecs.c - tests unpacking: exact sizes, damaged data, several gzip members and wrong
 * declared sizes. */
#include <stdlib.h>

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "core/alloc.h"
#include "parquet/codecs.h"
#include "parquet/snappy_pack.h"
#include "support/test.h"

enum { SIZE = 5000, ROOM = 2 * SIZE };

static unsigned char plain[SIZE];

static size_t pack_gzip(unsigned char *out, const unsigned char *in, size_t size, int header) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in,
                       .avail_in = (uInt)size,
                       .next_out = out,
                       .avail_out = ROOM};
    CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + header, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    const size_t packed = ROOM - stream.avail_out;
    deflateEnd(&stream);
    return packed;
}

static size_t pack(unsigned char *out, int codec) {
    size_t size = ROOM;
    if (codec == BJ_CODEC_SNAPPY)
        CHECK(snappy_compress((const char *)plain, SIZE, (char *)out, &size) == SNAPPY_OK);
    else if (codec == BJ_CODEC_GZIP) size = pack_gzip(out, plain, SIZE, 16);
    else size = ZSTD_compress(out, ROOM, plain, SIZE, 3);
    return size;
}

static bj_status unpack(size_t out_size, const unsigned char *in, size_t size, int codec,
                        bj_codecs *codecs, int same) {
    uint8_t *out = malloc(out_size ? out_size : 1), *exact = malloc(size ? size : 1);
    const char *why = NULL;
    if (!out || !exact) exit(1);
    memcpy(exact, in, size);
    const bj_status status = bj_codec_unpack(out, out_size, exact, size, codec, codecs, &why);
    if (same) CHECK(status == BJ_OK && !memcmp(out, plain, out_size));
    CHECK(status == BJ_OK || why);
    free(out);
    free(exact);
    return status;
}

/* Tests that libsnappy unpacks what bj_snappy_pack packs, for all block boundaries and for data from
 * constant to random, and that the result stays within the bound. */
static void test_snappy_pack(void) {
    enum { MOST = 200000 };
    static uint8_t in[MOST], packed[MOST + MOST / 6 + 32], out[MOST];
    static uint16_t table[BJ_SNAPPY_TABLE];
    static const size_t sizes[] = {0,  1,   2,   3,   4,     5,     15,    59,    60,    61,  63, 64,
                                   65, 127, 128, 255, 65535, 65536, 65537, 65540, 131072, MOST};
    bj_rng rng = bj_rng_seed(7);
    for (int kind = 0; kind < 6; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            static const unsigned letters[] = {1, 2, 3, 16, 200, 256};
            const size_t size = sizes[s];
            for (size_t i = 0; i < size; i++) {
                const uint64_t draw = bj_rng_next(&rng);
                in[i] = draw % 8 && i > 99 ? in[i - 1 - (draw >> 32) % 99 / (kind + 1)]
                                           : (uint8_t)((draw >> 8) % letters[kind]);
            }
            const size_t n = bj_snappy_pack(packed, in, size, table);
            size_t length = MOST;
            CHECK(n <= bj_snappy_bound(size));
            CHECK(snappy_uncompress((const char *)packed, n, (char *)out, &length) == SNAPPY_OK);
            CHECK(length == size && !memcmp(in, out, size));
            if (kind == 0 && size > 1000) CHECK(n < size / 10);
        }
}

int main(void) {
    test_snappy_pack();
    static const int all[] = {BJ_CODEC_SNAPPY, BJ_CODEC_GZIP, BJ_CODEC_ZSTD};
    static unsigned char packed[2 * ROOM];
    const long live = bj_alloc_live();
    bj_codecs codecs = {0};
    for (int i = 0; i < SIZE; i++) plain[i] = (unsigned char)(i * i / 7 % 11 * 20);
    for (int c = 0; c < 3; c++) {
        const int codec = all[c];
        const size_t size = pack(packed, codec);
        CHECK(bj_codec_known(codec) && bj_codec_plausible(codec, size, SIZE));
        CHECK(unpack(SIZE, packed, size, codec, &codecs, 1) == BJ_OK);
        CHECK(unpack(SIZE - 1, packed, size, codec, &codecs, 0) == BJ_EFORMAT);
        CHECK(unpack(SIZE + 1, packed, size, codec, &codecs, 0) == BJ_EFORMAT);
        for (size_t n = 0; n < size; n += 1 + size / 50)
            CHECK(unpack(SIZE, packed, n, codec, &codecs, 0) == BJ_EFORMAT);
        for (size_t n = 0; n < size; n++) { /* a damaged page must not affect the next one */
            packed[n] ^= 0x55;
            (void)unpack(SIZE, packed, size, codec, &codecs, 0);
            packed[n] ^= 0x55;
        }
        CHECK(unpack(SIZE, packed, size, codec, &codecs, 1) == BJ_OK);
    }
    size_t size = pack_gzip(packed, plain, 1234, 16); /* two members, then a zlib header */
    size += pack_gzip(packed + size, plain + 1234, SIZE - 1234, 16);
    CHECK(unpack(SIZE, packed, size, BJ_CODEC_GZIP, &codecs, 1) == BJ_OK);
    size = pack_gzip(packed, plain, SIZE, 0);
    CHECK(unpack(SIZE, packed, size, BJ_CODEC_GZIP, &codecs, 1) == BJ_OK);

    CHECK(bj_codec_plausible(BJ_CODEC_NONE, 7, 7) && !bj_codec_plausible(BJ_CODEC_NONE, 7, 8));
    CHECK(!bj_codec_plausible(BJ_CODEC_SNAPPY, 100, 1 << 20));
    CHECK(!bj_codec_plausible(BJ_CODEC_GZIP, 100, 1 << 20));
    CHECK(!bj_codec_plausible(BJ_CODEC_ZSTD, 100, 1 << 30));
    CHECK(!bj_codec_known(3) && !bj_codec_known(5) && !bj_codec_known(-1) && !bj_codec_known(8));
    CHECK(!strcmp(bj_codec_name(4), "brotli") && !strcmp(bj_codec_name(-5), "an unknown codec"));
    CHECK(unpack(1, packed, 1, 4, &codecs, 0) == BJ_EFORMAT);
    CHECK(bj_codec_crc32((const uint8_t *)"123456789", 9) == 0xcbf43926u);

    bj_codecs_free(&codecs);
    CHECK(bj_alloc_live() == live);
    for (long n = 0; n < 3; n++) { /* the stream and its state */
        bj_alloc_fail_after(n);
        const bj_status status = unpack(SIZE, packed, size, BJ_CODEC_GZIP, &codecs, 0);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == (n < 2 ? BJ_ENOMEM : BJ_OK), "%ld: %d", n, status);
        bj_codecs_free(&codecs);
        CHECK(bj_alloc_live() == live);
    }
    return test_report("codecs");
}
