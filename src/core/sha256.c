/* sha256.c - see sha256.h. */
#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/file.h"

bj_status bj_sha256_init(bj_sha256 *hash, bj_error *err) {
    if (!hash->context) hash->context = EVP_MD_CTX_new();
    if (!hash->context) return BJ_FAIL(err, BJ_ENOMEM, "out of memory for a SHA-256 context");
    if (EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1)
        return BJ_FAIL(err, BJ_EARG, "libcrypto has no SHA-256");
    return BJ_OK;
}

bj_status bj_sha256_update(bj_sha256 *hash, const void *data, size_t size, bj_error *err) {
    if (size && EVP_DigestUpdate(hash->context, data, size) != 1)
        return BJ_FAIL(err, BJ_EARG, "libcrypto failed to hash %zu more bytes with SHA-256", size);
    return BJ_OK;
}

bj_status bj_sha256_final_bytes(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES],
                                bj_error *err) {
    unsigned size = 0;
    if (EVP_DigestFinal_ex(hash->context, digest, &size) != 1 || size != BJ_SHA256_BYTES)
        return BJ_FAIL(err, BJ_EARG, "libcrypto failed to finish a SHA-256");
    return BJ_OK;
}

void bj_sha256_hex(char hex[BJ_SHA256_HEX], const unsigned char digest[BJ_SHA256_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < BJ_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * BJ_SHA256_BYTES] = '\0';
}

bj_status bj_sha256_final(bj_sha256 *hash, char hex[BJ_SHA256_HEX], bj_error *err) {
    unsigned char digest[BJ_SHA256_BYTES];
    BJ_TRY(bj_sha256_final_bytes(hash, digest, err));
    bj_sha256_hex(hex, digest);
    return BJ_OK;
}

void bj_sha256_reset(bj_sha256 *hash) {
    EVP_MD_CTX_free(hash->context);
    hash->context = NULL;
}

bj_status bj_sha256_block(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES], const void *data,
                          size_t size, bj_error *err) {
    BJ_TRY(bj_sha256_init(hash, err));
    BJ_TRY(bj_sha256_update(hash, data, size, err));
    return bj_sha256_final_bytes(hash, digest, err);
}

bj_status bj_sha256_memory(char hex[BJ_SHA256_HEX], const void *data, size_t size, bj_error *err) {
    bj_sha256 hash = {0};
    bj_status status;
    BJ_GOTO(status, done, bj_sha256_init(&hash, err));
    BJ_GOTO(status, done, bj_sha256_update(&hash, data, size, err));
    status = bj_sha256_final(&hash, hex, err);
done:
    bj_sha256_reset(&hash);
    return status;
}

bj_status bj_sha256_file(char hex[BJ_SHA256_HEX], const char *path, bj_error *err) {
    bj_file_map map;
    BJ_TRY(bj_file_map_open(&map, path, SIZE_MAX, err));
    const bj_status status = bj_sha256_memory(hex, map.data, map.size, err);
    bj_file_map_close(&map);
    return status;
}
