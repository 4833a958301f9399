/* sha256.c - see sha256.h.
 *
 * The message is padded with a one bit, zero bits and its length in bits to a multiple of 64 bytes.
 * Each block of 64 bytes updates the state, which consists of eight words. The final state is the
 * digest.
 *
 * Blocks are compressed with the processor's SHA instructions if it has them, otherwise with
 * portable code. The digests are equal.
 * Test: tests/core/test_sha256.c
 */
#include "core/sha256.h"

#include <string.h>

#include "core/file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#endif

enum { BLOCK = 64, LENGTH_AT = 56 /* offset of the bit length in the last block */ };

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Applies one round. The state words are not moved. Instead, the next round takes its arguments
 * rotated by one. */
static inline void one_round(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d,
                             const uint32_t *e, const uint32_t *f, const uint32_t *g, uint32_t *h,
                             uint32_t word) {
    const uint32_t t =
        *h + (rotate(*e, 6) ^ rotate(*e, 11) ^ rotate(*e, 25)) + (*g ^ (*e & (*f ^ *g))) + word;
    *d += t;
    *h = t + (rotate(*a, 2) ^ rotate(*a, 13) ^ rotate(*a, 22)) + ((*a & *b) | (*c & (*a | *b)));
}

static void compress_portable(uint32_t state[8], const unsigned char *data, size_t blocks) {
    for (; blocks; blocks--, data += BLOCK) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++) w[i] = big_endian(data + 4 * i);
        for (int i = 16; i < 64; i++) {
            const uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
        }
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i += 8)
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++)
                one_round(&s[(8 - k) & 7], &s[(9 - k) & 7], &s[(10 - k) & 7], &s[(11 - k) & 7],
                          &s[(12 - k) & 7], &s[(13 - k) & 7], &s[(14 - k) & 7], &s[(15 - k) & 7],
                          round_constant[i + k] + w[i + k]);
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
}

#if defined(__x86_64__)
/* Compresses blocks with the SHA instructions. `abef` and `cdgh` are the state words in the order
 * that the instructions expect. m[0..3] are the next 16 words of the message schedule. */
__attribute__((target("sha,sse4.1,ssse3"))) static void
compress_sha(uint32_t state[8], const unsigned char *data, size_t blocks) {
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    const __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; blocks; blocks--, data += BLOCK) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i m[4];
        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            const __m128i constant = _mm_loadu_si128((const __m128i *)(round_constant + 4 * i));
            __m128i sum = _mm_add_epi32(m[i & 3], constant);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            sum = _mm_shuffle_epi32(sum, 0x0e);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, sum);
            if (i < 12) { /* words 16 + 4 i ... */
                const __m128i last = m[(i + 3) & 3];
                const __m128i middle = _mm_alignr_epi8(last, m[(i + 2) & 3], 4);
                m[i & 3] = _mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]);
                m[i & 3] = _mm_sha256msg2_epu32(_mm_add_epi32(m[i & 3], middle), last);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static int check_sha(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* Returns 1 if the processor has the SHA instructions. Stores the result, because cpuid takes
 * microseconds in a virtual machine. */
static int has_sha(void) {
    static atomic_int known; /* 0: not checked, 1: no, 2: yes */
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (!found) {
        found = 1 + check_sha();
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == 2;
}
#endif

static void compress(bj_sha256 *hash, const unsigned char *data, size_t blocks) {
#if defined(__x86_64__)
    if (hash->instructions) {
        compress_sha(hash->state, data, blocks);
        return;
    }
#endif
    compress_portable(hash->state, data, blocks);
}

void bj_sha256_init_portable(bj_sha256 *hash) {
    *hash = (bj_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                  0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void bj_sha256_init(bj_sha256 *hash) {
    bj_sha256_init_portable(hash);
#if defined(__x86_64__)
    hash->instructions = has_sha();
#endif
}

void bj_sha256_update(bj_sha256 *hash, const void *data, size_t size) {
    const unsigned char *from = data;
    const size_t held = (size_t)(hash->size % BLOCK);
    if (!size) return; /* data may be NULL */
    hash->size += size;
    if (held) {
        const size_t n = size < BLOCK - held ? size : BLOCK - held;
        memcpy(hash->block + held, from, n);
        if (held + n < BLOCK) return;
        compress(hash, hash->block, 1);
        from += n;
        size -= n;
    }
    if (size >= BLOCK) compress(hash, from, size / BLOCK);
    if (size % BLOCK) memcpy(hash->block, from + size / BLOCK * BLOCK, size % BLOCK);
}

static void big_endian_write(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
}

void bj_sha256_final_bytes(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES]) {
    const uint64_t bits = 8 * hash->size;
    size_t held = (size_t)(hash->size % BLOCK);
    hash->block[held++] = 0x80;
    memset(hash->block + held, 0, BLOCK - held);
    if (held > LENGTH_AT) {
        compress(hash, hash->block, 1);
        memset(hash->block, 0, BLOCK);
    }
    big_endian_write(hash->block + LENGTH_AT, bits, 8);
    compress(hash, hash->block, 1);
    for (int i = 0; i < 8; i++) big_endian_write(digest + 4 * i, hash->state[i], 4);
}

void bj_sha256_hex(char hex[BJ_SHA256_HEX], const unsigned char digest[BJ_SHA256_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < BJ_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * BJ_SHA256_BYTES] = '\0';
}

void bj_sha256_final(bj_sha256 *hash, char hex[BJ_SHA256_HEX]) {
    unsigned char digest[BJ_SHA256_BYTES];
    bj_sha256_final_bytes(hash, digest);
    bj_sha256_hex(hex, digest);
}

void bj_sha256_block(unsigned char digest[BJ_SHA256_BYTES], const void *data, size_t size) {
    bj_sha256 hash;
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, data, size);
    bj_sha256_final_bytes(&hash, digest);
}

void bj_sha256_memory(char hex[BJ_SHA256_HEX], const void *data, size_t size) {
    unsigned char digest[BJ_SHA256_BYTES];
    bj_sha256_block(digest, data, size);
    bj_sha256_hex(hex, digest);
}

bj_status bj_sha256_file(char hex[BJ_SHA256_HEX], const char *path, bj_error *err) {
    bj_file_map map;
    BJ_TRY(bj_file_map_open(&map, path, SIZE_MAX, err));
    bj_sha256_memory(hex, map.data, map.size);
    bj_file_map_close(&map);
    return BJ_OK;
}
