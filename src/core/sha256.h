/* sha256.h - SHA-256 (FIPS 180) with OpenSSL's libcrypto.
 *
 *   bj_sha256 hash = {0};
 *   status = bj_sha256_init(&hash, err); ... bj_sha256_update ... bj_sha256_final(&hash, hex, err);
 *   bj_sha256_reset(&hash);   after success or failure
 *
 * libcrypto allocates its context itself, so this memory is an exception to core/alloc.h.
 */
#ifndef BJ_CORE_SHA256_H
#define BJ_CORE_SHA256_H

#include <stddef.h>

#include "core/status.h"

enum { BJ_SHA256_HEX = 65 }; /* 64 lowercase digits and the terminator */

typedef struct bj_sha256 {
    void *context; /* NULL if there is nothing to release */
} bj_sha256;

/* Starts a new message. Reuses the context if there is one. */
BJ_CHECK bj_status bj_sha256_init(bj_sha256 *hash, bj_error *err);
BJ_CHECK bj_status bj_sha256_update(bj_sha256 *hash, const void *data, size_t size, bj_error *err);
/* Finishes the message and returns its digest. Call bj_sha256_init before hashing the next
 * message. */
BJ_CHECK bj_status bj_sha256_final(bj_sha256 *hash, char hex[BJ_SHA256_HEX], bj_error *err);
/* Returns the digest as bytes instead of text. */
enum { BJ_SHA256_BYTES = 32 };
BJ_CHECK bj_status bj_sha256_final_bytes(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES],
                                         bj_error *err);
/* Hashes one block. Keeps the context for the next call. */
BJ_CHECK bj_status bj_sha256_block(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES],
                                   const void *data, size_t size, bj_error *err);
void bj_sha256_hex(char hex[BJ_SHA256_HEX], const unsigned char digest[BJ_SHA256_BYTES]);
void bj_sha256_reset(bj_sha256 *hash);

BJ_CHECK bj_status bj_sha256_memory(char hex[BJ_SHA256_HEX], const void *data, size_t size,
                                    bj_error *err);
BJ_CHECK bj_status bj_sha256_file(char hex[BJ_SHA256_HEX], const char *path, bj_error *err);

#endif
