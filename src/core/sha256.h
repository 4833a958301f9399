/* sha256.h - SHA-256 (FIPS 180).
 *
 *   bj_sha256 hash;
 *   bj_sha256_init(&hash); bj_sha256_update(&hash, data, size); ... bj_sha256_final(&hash, hex);
 */
#ifndef BJ_CORE_SHA256_H
#define BJ_CORE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { BJ_SHA256_BYTES = 32, BJ_SHA256_HEX = 65 /* 64 lowercase digits and the terminator */ };

/* A message that is being hashed. The fields are private to sha256.c. */
typedef struct bj_sha256 {
    uint32_t state[8];
    unsigned char block[64]; /* the bytes after the last whole block */
    uint64_t size;           /* bytes so far */
    int instructions;        /* 1: use the processor's SHA instructions */
} bj_sha256;

void bj_sha256_init(bj_sha256 *hash);
/* Starts a message that is hashed without the SHA instructions, for tests. */
void bj_sha256_init_portable(bj_sha256 *hash);
void bj_sha256_update(bj_sha256 *hash, const void *data, size_t size);
/* Finish the message and return its digest as text or as bytes. */
void bj_sha256_final(bj_sha256 *hash, char hex[BJ_SHA256_HEX]);
void bj_sha256_final_bytes(bj_sha256 *hash, unsigned char digest[BJ_SHA256_BYTES]);
void bj_sha256_hex(char hex[BJ_SHA256_HEX], const unsigned char digest[BJ_SHA256_BYTES]);

/* Hash one block of memory, to bytes or to text. */
void bj_sha256_block(unsigned char digest[BJ_SHA256_BYTES], const void *data, size_t size);
void bj_sha256_memory(char hex[BJ_SHA256_HEX], const void *data, size_t size);
BJ_CHECK bj_status bj_sha256_file(char hex[BJ_SHA256_HEX], const char *path, bj_error *err);

#endif
