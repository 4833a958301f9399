/* test_sha256.c - tests the FIPS 180-2 vectors in one call, in pieces and from a file. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdlib.h>

#include "core/file.h"
#include "core/sha256.h"
#include "support/test.h"

static const char million_a[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static const struct {
    const char *message, *digest;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void test_vectors(void) {
    bj_error err = {0};
    char hex[BJ_SHA256_HEX];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        CHECK_OK(bj_sha256_memory(hex, vectors[i].message, strlen(vectors[i].message), &err), err);
        CHECK_MSG(!strcmp(hex, vectors[i].digest), "%s", hex);
    }
}

/* Tests a million times 'a', in pieces of varying size and twice with the same context. */
static void test_pieces(void) {
    static char text[1000];
    memset(text, 'a', sizeof text);
    bj_error err = {0};
    bj_sha256 hash = {0};
    char hex[BJ_SHA256_HEX];
    for (int round = 0; round < 2; round++) {
        CHECK_OK(bj_sha256_init(&hash, &err), err);
        size_t left = 1000000;
        for (size_t piece = 0; left; piece = (piece + 37) % (sizeof text + 1)) {
            const size_t now = piece < left ? piece : left;
            CHECK_OK(bj_sha256_update(&hash, text, now, &err), err);
            left -= now;
        }
        CHECK_OK(bj_sha256_final(&hash, hex, &err), err);
        CHECK_MSG(!strcmp(hex, million_a), "%s", hex);
    }
    bj_sha256_reset(&hash);
    CHECK(hash.context == NULL);
    bj_sha256_reset(&hash);
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
    test_pieces();
    test_file();
    return test_report("sha256");
}
