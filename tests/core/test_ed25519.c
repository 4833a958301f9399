/* test_ed25519.c - tests signatures with vectors of RFC 8032, section 7.1. Skipped without libcrypto.
 */
#include "core/ed25519.h"

#include <string.h>

#include "support/test.h"

typedef struct vector {
    const char *key, *message, *signature; /* hexadecimal */
} vector;

static const vector vectors[] = {
    {"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b4"
     "6bd25bf5f0595bbe24655141438e7a100b"},
    {"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d"
     "8c387b2eaeb4302aeeb00d291612bb0c00"},
};

static size_t bytes_of(unsigned char *out, const char *hex) {
    size_t n = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2) out[n++] = (unsigned char)byte;
    return n;
}

int main(void) {
    unsigned char key[32], message[8], signature[64];
    bj_error err = {0};
    int valid;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        CHECK(bytes_of(key, vectors[i].key) == 32);
        const size_t size = bytes_of(message, vectors[i].message);
        CHECK(bytes_of(signature, vectors[i].signature) == 64);
        const bj_status status = bj_ed25519_verify(&valid, key, signature, message, size, &err);
        if (status == BJ_EIO) return 77;
        CHECK_OK(status, err);
        CHECK(valid == 1);
        for (int bit = 0; bit < 512; bit++) {
            signature[bit / 8] ^= (unsigned char)(1 << bit % 8);
            CHECK_OK(bj_ed25519_verify(&valid, key, signature, message, size, &err), err);
            CHECK(!valid);
            signature[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        message[0] ^= 1;
        CHECK_OK(bj_ed25519_verify(&valid, key, signature, message, size ? size : 1, &err), err);
        CHECK(!valid);
    }
    /* the first key in PEM format */
    static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
                              "-----END PUBLIC KEY-----\n";
    unsigned char read[32];
    CHECK(bytes_of(key, vectors[0].key) == 32);
    CHECK_OK(bj_ed25519_key(read, pem, sizeof pem - 1, "a.pub", &err), err);
    CHECK(!memcmp(read, key, 32));
    CHECK(bj_ed25519_key(read, pem, 40, "a.pub", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "a.pub: is not an Ed25519 public key");
    CHECK(bj_ed25519_key(read, "", 0, "a.pub", &err) == BJ_EFORMAT);
    return test_report("ed25519");
}
