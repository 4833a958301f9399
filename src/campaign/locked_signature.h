/* locked_signature.h - checks the detached Ed25519 signature of completion.json.
 *
 * DIR/locked/completion.sig has the 64 bytes of the signature. The public key is a PEM file, as
 * `openssl pkey -pubout` writes it: the one that the caller names, else DIR/locked/completion.pub.
 * Test: tests/cli/signature.sh
 */
#ifndef BJ_CAMPAIGN_LOCKED_SIGNATURE_H
#define BJ_CAMPAIGN_LOCKED_SIGNATURE_H

#include "campaign/locked_records.h"

/* Sets signer to the SHA-256 of the 32 bytes of the public key, or to "" if there is no signature.
 * Fails with BJ_EMISMATCH if the signature is wrong, or if a key was named or stored and there is
 * no signature. key may be NULL. */
BJ_CHECK bj_status bj_signature_check(char signer[BJ_SHA256_HEX], const bj_records *records,
                                      const char *key, bj_error *err);

#endif
