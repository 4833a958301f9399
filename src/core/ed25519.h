/* ed25519.h - verifies Ed25519 signatures with libcrypto (OpenSSL), which is loaded on demand.
 *
 * The library is not linked with libcrypto. Only this file uses it, through dlopen.
 * Test: tests/core/test_ed25519.c
 */
#ifndef BJ_CORE_ED25519_H
#define BJ_CORE_ED25519_H

#include <stddef.h>

#include "core/status.h"

enum { BJ_ED25519_KEY = 32, BJ_ED25519_SIGNATURE = 64 };

/* Reads a public key in PEM format ("-----BEGIN PUBLIC KEY-----"). `path` is for messages. */
BJ_CHECK bj_status bj_ed25519_key(unsigned char key[BJ_ED25519_KEY], const char *text, size_t size,
                                  const char *path, bj_error *err);
/* Sets *valid to 1 if the signature is right. Fails with BJ_EIO if libcrypto cannot be loaded. */
BJ_CHECK bj_status bj_ed25519_verify(int *valid, const unsigned char key[BJ_ED25519_KEY],
                                     const unsigned char signature[BJ_ED25519_SIGNATURE],
                                     const void *message, size_t size, bj_error *err);

#endif
