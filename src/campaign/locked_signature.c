/* locked_signature.c - see locked_signature.h. */
#include "campaign/locked_signature.h"

#include <string.h>

#include "core/alloc.h"
#include "core/ed25519.h"
#include "core/file.h"

enum { MAX_KEY = 4096 };

static bj_status check(char signer[BJ_SHA256_HEX], const bj_records *r, const char *signature_path,
                       const char *key_path, bj_error *err) {
    const bj_locked_text *signed_text = &r->text[BJ_RECORD_COMPLETION];
    unsigned char key[BJ_ED25519_KEY];
    char *text = NULL, *signature = NULL;
    size_t text_size, size;
    int valid;
    bj_status status;
    BJ_GOTO(status, done, bj_file_read(&signature, &size, signature_path, MAX_KEY, err));
    BJ_GOTO(status, done, bj_file_read(&text, &text_size, key_path, MAX_KEY, err));
    BJ_GOTO(status, done, bj_ed25519_key(key, text, text_size, key_path, err));
    if (size != BJ_ED25519_SIGNATURE) {
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: has %zu bytes, expected the %d bytes of an Ed25519 "
                                          "signature",
                         signature_path, size, BJ_ED25519_SIGNATURE);
        goto done;
    }
    BJ_GOTO(status, done,
            bj_ed25519_verify(&valid, key, (const unsigned char *)signature, signed_text->bytes,
                              signed_text->size, err));
    if (valid) bj_sha256_memory(signer, key, sizeof key);
    else
        status = BJ_FAIL(err, BJ_EMISMATCH, "%s: is not a signature of %s with the key %s",
                         signature_path, r->path[BJ_RECORD_COMPLETION], key_path);
done:
    bj_free(signature);
    bj_free(text);
    return status;
}

bj_status bj_signature_check(char signer[BJ_SHA256_HEX], const bj_records *r, const char *key,
                             bj_error *err) {
    char signature_path[BJ_FOLDER_PATH], key_path[BJ_FOLDER_PATH];
    *signer = '\0';
    BJ_TRY(bj_lock_path(signature_path, r->folder, BJ_LOCKED_SIGNATURE, err));
    BJ_TRY(bj_lock_path(key_path, r->folder, BJ_LOCKED_KEY, err));
    const int has_key = bj_file_exists(key_path);
    if (bj_file_exists(signature_path)) {
        if (!key && !has_key)
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: cannot be checked, because %s is missing and no key is given",
                           signature_path, key_path);
        return check(signer, r, signature_path, key ? key : key_path, err);
    }
    if (key || has_key)
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: is missing, but there is a key for it",
                       signature_path);
    return BJ_OK;
}
