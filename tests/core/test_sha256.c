/* test_sha256.c - tests SHA-256 with and without the processor's instructions.
 *
 * Uses the FIPS 180 vectors, digests computed by Python's hashlib for 1,025 lengths, messages in
 * pieces, and files. On a processor without SHA instructions, both passes run the same code.
 */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdlib.h>

#include "core/file.h"
#include "core/sha256.h"
#include "support/test.h"

typedef void start(bj_sha256 *hash);
static start *const starts[] = {bj_sha256_init, bj_sha256_init_portable};

static const char million_a[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static const struct {
    const char *message, *digest;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmno"
     "pqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void digest_with(char hex[BJ_SHA256_HEX], start *begin, const void *data, size_t size) {
    bj_sha256 hash;
    begin(&hash);
    bj_sha256_update(&hash, data, size);
    bj_sha256_final(&hash, hex);
}

static void test_vectors(void) {
    char hex[BJ_SHA256_HEX];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const size_t size = strlen(vectors[i].message);
        for (int s = 0; s < 2; s++) {
            digest_with(hex, starts[s], vectors[i].message, size);
            CHECK_MSG(!strcmp(hex, vectors[i].digest), "way %d: %s", s, hex);
        }
        bj_sha256_memory(hex, vectors[i].message, size);
        CHECK_MSG(!strcmp(hex, vectors[i].digest), "%s", hex);
    }
    bj_sha256_memory(hex, NULL, 0);
    CHECK(!strcmp(hex, vectors[0].digest));
}

/* Tests all lengths below 1,025 and some longer messages against hashlib:
 *   m = bytes((i*i*31 + i*7 + i//5) & 255 for i in range(5000)) */
static void test_lengths(void) {
    enum { SIZE = 5000, LENGTHS = 1025 };
    static unsigned char m[SIZE];
    static const struct {
        size_t size;
        const char *digest;
    } known[] = {
        {55, "6b518676d52a13db139bcffa4e26781dbb0beeb3da758a8a7c51f72acdc5af6d"},
        {56, "226fd6a7e749208b19d60e70dbb61248f080444e0dc77d89394c382d25ce8ed0"},
        {63, "4735ee52724b8e626b7f0be8b018d0c04807f549a29049a3d2b3a86fbba97d29"},
        {64, "23f26e60409e55b7f25b531312688dac80fbe1efaf5ef197c7343d788307ffe2"},
        {65, "631dcc27533d4a1e3bce7c9d166c1926cd2296a3aa7188d6151aaadedff69de1"},
        {119, "fa977cbf81c7afd79faa4571bd4816051cb309033491bc3cfcfa5b272f2366dd"},
        {120, "227d8466cf6be670b98bb0a0d39f524f48ab656057d7ea4b611e3dc979e2e5bf"},
        {4096, "c58ad9817e6c6e5836d9bac699b339c9851772527547e27294aa1795e6f20142"},
        {5000, "c6bb7664ec4dc4f21e3dcc4812694eca78e791f80f5a5add45b77f0cb1b67114"},
    };
    char hex[BJ_SHA256_HEX];
    for (int i = 0; i < SIZE; i++) m[i] = (unsigned char)(i * i * 31 + i * 7 + i / 5);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            digest_with(hex, starts[s], m, known[i].size);
            CHECK_MSG(!strcmp(hex, known[i].digest), "way %d, %zu bytes: %s", s, known[i].size,
                      hex);
        }
        bj_sha256 all; /* the digest of the digests of all lengths */
        starts[s](&all);
        for (size_t n = 0; n < LENGTHS; n++) {
            unsigned char digest[BJ_SHA256_BYTES];
            bj_sha256 hash;
            starts[s](&hash);
            bj_sha256_update(&hash, m, n);
            bj_sha256_final_bytes(&hash, digest);
            bj_sha256_update(&all, digest, sizeof digest);
        }
        bj_sha256_final(&all, hex);
        CHECK_MSG(!strcmp(hex, "9f410794640e4a03e0abb69a8eb6dea5d7b832734c15cf72049cb25c4edcb39f"),
                  "way %d: %s", s, hex);
    }
}

/* Tests that hashing a message in pieces of varying size, including empty pieces, gives the same
 * digest. */
static void test_pieces(void) {
    static char text[1000];
    memset(text, 'a', sizeof text);
    bj_sha256 hash;
    char hex[BJ_SHA256_HEX];
    for (int s = 0; s < 2; s++) {
        starts[s](&hash);
        size_t left = 1000000;
        for (size_t piece = 0; left; piece = (piece + 37) % (sizeof text + 1)) {
            const size_t now = piece < left ? piece : left;
            bj_sha256_update(&hash, now ? text : NULL, now);
            left -= now;
        }
        bj_sha256_final(&hash, hex);
        CHECK_MSG(!strcmp(hex, million_a), "way %d: %s", s, hex);
    }
}

static void test_file(void) {
    char path[] = "/tmp/test_sha256.XXXXXX", hex[BJ_SHA256_HEX];
    bj_error err = {0};
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_OK(bj_sha256_file(hex, path, &err), err); /* the file is still empty */
    CHECK(!strcmp(hex, vectors[0].digest));
    CHECK_OK(bj_file_write(path, "abc", 3, &err), err);
    CHECK_OK(bj_sha256_file(hex, path, &err), err);
    CHECK(!strcmp(hex, vectors[1].digest));
    CHECK(remove(path) == 0);
    CHECK(bj_sha256_file(hex, path, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, path);
}

int main(void) {
    test_vectors();
    test_lengths();
    test_pieces();
    test_file();
    return test_report("sha256");
}
