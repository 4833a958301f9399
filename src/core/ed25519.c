/* ed25519.c - see ed25519.h. */
#include "core/ed25519.h"

#include <dlfcn.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ key */

/* Decodes base64 up to the first '-', ignoring newlines. Returns the number of bytes, or 0 if the
 * text is not base64 or has more than `room` bytes. */
static size_t decode(unsigned char *out, size_t room, const char *text, const char *end) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    int have = 0;
    size_t count = 0;
    for (; text < end && *text != '-'; text++) {
        const char *digit = *text ? strchr(digits, *text) : NULL;
        if (*text == '\n' || *text == '\r' || *text == '=') continue;
        if (!digit) return 0;
        bits = bits << 6 | (unsigned)(digit - digits);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        if (count == room) return 0;
        out[count++] = (unsigned char)(bits >> have);
    }
    return count;
}

bj_status bj_ed25519_key(unsigned char key[BJ_ED25519_KEY], const char *text, size_t size,
                         const char *path, bj_error *err) {
    static const char begin[] = "-----BEGIN PUBLIC KEY-----";
    /* SubjectPublicKeyInfo of an Ed25519 key (RFC 8410), up to the key itself */
    static const unsigned char head[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                         0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
    unsigned char der[sizeof head + BJ_ED25519_KEY];
    const size_t length = sizeof begin - 1;
    if (size < length || memcmp(text, begin, length) ||
        decode(der, sizeof der, text + length, text + size) != sizeof der ||
        memcmp(der, head, sizeof head))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: is not an Ed25519 public key in PEM format", path);
    memcpy(key, der + sizeof head, BJ_ED25519_KEY);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- verify */

/* The functions of libcrypto, with its types as pointers to void. */
typedef struct crypto {
    void *library;
    void *(*new_key)(int, void *, const unsigned char *, size_t);
    void (*free_key)(void *);
    void *(*new_context)(void);
    void (*free_context)(void *);
    int (*init)(void *, void **, const void *, void *, void *);
    int (*verify)(void *, const unsigned char *, size_t, const unsigned char *, size_t);
} crypto;

static bj_status load(crypto *c, bj_error *err) {
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
    for (size_t i = 0; !c->library && i < sizeof names / sizeof *names; i++)
        c->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return BJ_FAIL(err, BJ_EIO, "cannot load libcrypto (OpenSSL), which checks signatures");
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"EVP_PKEY_new_raw_public_key", &c->new_key},
                     {"EVP_PKEY_free", &c->free_key},
                     {"EVP_MD_CTX_new", &c->new_context},
                     {"EVP_MD_CTX_free", &c->free_context},
                     {"EVP_DigestVerifyInit", &c->init},
                     {"EVP_DigestVerify", &c->verify}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(c->library, functions[i].name);
        if (!found) return BJ_FAIL(err, BJ_EIO, "libcrypto has no %s", functions[i].name);
        memcpy(functions[i].to, &found, sizeof found);
    }
    return BJ_OK;
}

bj_status bj_ed25519_verify(int *valid, const unsigned char key[BJ_ED25519_KEY],
                            const unsigned char signature[BJ_ED25519_SIGNATURE],
                            const void *message, size_t size, bj_error *err) {
    enum { ED25519 = 1087 }; /* EVP_PKEY_ED25519 */
    crypto c = {0};
    *valid = 0;
    const bj_status status = load(&c, err);
    if (status == BJ_OK) {
        void *public_key = c.new_key(ED25519, NULL, key, BJ_ED25519_KEY);
        void *context = c.new_context();
        *valid = public_key && context && c.init(context, NULL, NULL, NULL, public_key) == 1 &&
                 c.verify(context, signature, BJ_ED25519_SIGNATURE, message, size) == 1;
        c.free_context(context);
        c.free_key(public_key);
    }
    if (c.library) dlclose(c.library);
    return status;
}
