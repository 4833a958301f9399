/* locked_json.c - see locked_json.h. */
#include "campaign/locked_json.h"

#include <string.h>

#include "core/alloc.h"
#include "core/file.h"

enum { MAX_FILE = 64 << 20 };

/* ------------------------------------------------------------------------------------- writing */

bj_status bj_locked_commit(bj_doc *doc, const char *path, char hex[BJ_SHA256_HEX], bj_error *err) {
    char *text;
    size_t size;
    bj_status status = bj_doc_text(&text, &size, doc, 1, NULL);
    if (status == BJ_EARG)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: cannot be written, because it contains a name that is not UTF-8", path);
    if (status != BJ_OK) return BJ_FAIL(err, status, "%s: not written: out of memory", path);
    bj_sha256_memory(hex, text, size);
    status = bj_file_write(path, text, size, err);
    bj_free(text);
    return status;
}

/* ------------------------------------------------------------------------------------- reading */

bj_status bj_locked_open(yyjson_doc **out, char hex[BJ_SHA256_HEX], const char *path,
                         const char *schema, bj_error *err) {
    char *text = NULL;
    size_t size;
    bj_status status;
    *out = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, MAX_FILE, err));
    if (hex) bj_sha256_memory(hex, text, size);
    BJ_GOTO(status, done, bj_json_parse(out, text, size, path, err));
    const char *found = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(*out), "schema"));
    if (!found || strcmp(found, schema)) {
        status =
            BJ_FAIL(err, found ? BJ_EVERSION : BJ_EFORMAT, "%s: schema is '%.60s', expected '%s'",
                    path, found ? found : "missing", schema);
        yyjson_doc_free(*out);
        *out = NULL;
    }
done:
    bj_free(text);
    return status;
}

static bj_status refuse(bj_error *err, const char *where, const char *key, yyjson_val *found,
                        const char *expected) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' is %s, expected %s", where, key,
                   found ? yyjson_get_type_desc(found) : "missing", expected);
}

bj_status bj_locked_get_text(char *out, size_t room, yyjson_val *object, const char *key,
                             const char *where, bj_error *err) {
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_str(value)) return refuse(err, where, key, value, "a text");
    const size_t length = yyjson_get_len(value);
    const char *text = yyjson_get_str(value);
    if (length >= room || strlen(text) != length)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: '%s' has %zu bytes, expected at most %zu bytes without zero bytes",
                       where, key, length, room - 1);
    memcpy(out, text, length + 1);
    return BJ_OK;
}

bj_status bj_locked_get_sha256(char hex[BJ_SHA256_HEX], yyjson_val *object, const char *key,
                               const char *where, bj_error *err) {
    BJ_TRY(bj_locked_get_text(hex, BJ_SHA256_HEX, object, key, where, err));
    if (strlen(hex) != BJ_SHA256_HEX - 1 || strspn(hex, "0123456789abcdef") != BJ_SHA256_HEX - 1)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: '%s' is '%s', expected a SHA-256 of 64 hexadecimal digits", where,
                       key, hex);
    return BJ_OK;
}

bj_status bj_locked_get_integer(int64_t *out, yyjson_val *object, const char *key,
                                const char *where, bj_error *err) {
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) > INT64_MAX)
        return refuse(err, where, key, value, "a non-negative integer");
    *out = (int64_t)yyjson_get_uint(value);
    return BJ_OK;
}

bj_status bj_locked_get_object(yyjson_val **out, yyjson_val *object, const char *key,
                               const char *where, bj_error *err) {
    *out = yyjson_obj_get(object, key);
    return yyjson_is_obj(*out) ? BJ_OK : refuse(err, where, key, *out, "an object");
}

bj_status bj_locked_get_list(yyjson_val **out, yyjson_val *object, const char *key,
                             const char *where, bj_error *err) {
    *out = yyjson_obj_get(object, key);
    return yyjson_is_arr(*out) ? BJ_OK : refuse(err, where, key, *out, "a list");
}
