/* locked_json.c - see locked_json.h. */
#include "campaign/locked_json.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"

enum { MAX_FILE = 64 << 20 };

/* ------------------------------------------------------------------------------------- writing */

yyjson_mut_val *bj_locked_begin(bj_locked_out *out, const char *schema) {
    *out = (bj_locked_out){.doc = yyjson_mut_doc_new(&bj_json_alc)};
    yyjson_mut_val *root = out->doc ? yyjson_mut_obj(out->doc) : NULL;
    if (root) yyjson_mut_doc_set_root(out->doc, root);
    else out->failed = 1;
    bj_locked_text(out, root, "schema", schema);
    return root;
}

/* Texts are copied, keys are not: those are literals, or names that outlive the document. */
static void add(bj_locked_out *out, yyjson_mut_val *object, const char *key, yyjson_mut_val *val) {
    yyjson_mut_val *name = out->doc ? yyjson_mut_str(out->doc, key) : NULL;
    if (!object || !name || !val || !yyjson_mut_obj_add(object, name, val)) out->failed = 1;
}

static void append(bj_locked_out *out, yyjson_mut_val *list, yyjson_mut_val *val) {
    if (!list || !val || !yyjson_mut_arr_append(list, val)) out->failed = 1;
}

static yyjson_mut_val *number(bj_locked_out *out, double value) {
    return isfinite(value) ? yyjson_mut_real(out->doc, value) : yyjson_mut_null(out->doc);
}

void bj_locked_text(bj_locked_out *out, yyjson_mut_val *object, const char *key, const char *text) {
    add(out, object, key, yyjson_mut_strcpy(out->doc, text));
}

void bj_locked_integer(bj_locked_out *out, yyjson_mut_val *object, const char *key, int64_t value) {
    add(out, object, key, yyjson_mut_sint(out->doc, value));
}

void bj_locked_real(bj_locked_out *out, yyjson_mut_val *object, const char *key, double value) {
    add(out, object, key, number(out, value));
}

void bj_locked_bool(bj_locked_out *out, yyjson_mut_val *object, const char *key, int value) {
    add(out, object, key, yyjson_mut_bool(out->doc, value != 0));
}

void bj_locked_null(bj_locked_out *out, yyjson_mut_val *object, const char *key) {
    add(out, object, key, yyjson_mut_null(out->doc));
}

yyjson_mut_val *bj_locked_object(bj_locked_out *out, yyjson_mut_val *object, const char *key) {
    yyjson_mut_val *inner = yyjson_mut_obj(out->doc);
    add(out, object, key, inner);
    return inner;
}

yyjson_mut_val *bj_locked_list(bj_locked_out *out, yyjson_mut_val *object, const char *key) {
    yyjson_mut_val *inner = yyjson_mut_arr(out->doc);
    add(out, object, key, inner);
    return inner;
}

yyjson_mut_val *bj_locked_item(bj_locked_out *out, yyjson_mut_val *list) {
    yyjson_mut_val *inner = yyjson_mut_obj(out->doc);
    append(out, list, inner);
    return inner;
}

void bj_locked_item_text(bj_locked_out *out, yyjson_mut_val *list, const char *text) {
    append(out, list, yyjson_mut_strcpy(out->doc, text));
}

void bj_locked_item_integer(bj_locked_out *out, yyjson_mut_val *list, int64_t value) {
    append(out, list, yyjson_mut_sint(out->doc, value));
}

void bj_locked_item_real(bj_locked_out *out, yyjson_mut_val *list, double value) {
    append(out, list, number(out, value));
}

void bj_locked_drop(bj_locked_out *out) {
    if (out->doc) yyjson_mut_doc_free(out->doc);
    out->doc = NULL;
}

bj_status bj_locked_commit(bj_locked_out *out, const char *path, char hex[BJ_SHA256_HEX],
                           bj_error *err) {
    size_t size = 0;
    yyjson_write_err problem = {0};
    char *text = out->failed
                     ? NULL
                     : yyjson_mut_write_opts(
                           out->doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END,
                           &bj_json_alc, &size, &problem);
    bj_locked_drop(out);
    if (!text && problem.code == YYJSON_WRITE_ERROR_INVALID_STRING)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: not written: a name in it is not UTF-8", path);
    if (!text) return BJ_FAIL(err, BJ_ENOMEM, "%s: not written: out of memory", path);
    bj_status status = bj_sha256_memory(hex, text, size, err);
    if (status == BJ_OK) status = bj_file_write(path, text, size, err);
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
    if (hex) BJ_GOTO(status, done, bj_sha256_memory(hex, text, size, err));
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
        return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' has %zu bytes, expected at most %zu, none zero",
                       where, key, length, room - 1);
    memcpy(out, text, length + 1);
    return BJ_OK;
}

bj_status bj_locked_get_sha256(char hex[BJ_SHA256_HEX], yyjson_val *object, const char *key,
                               const char *where, bj_error *err) {
    BJ_TRY(bj_locked_get_text(hex, BJ_SHA256_HEX, object, key, where, err));
    if (strlen(hex) != BJ_SHA256_HEX - 1 || strspn(hex, "0123456789abcdef") != BJ_SHA256_HEX - 1)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' is '%s', expected the 64 digits of a SHA-256",
                       where, key, hex);
    return BJ_OK;
}

bj_status bj_locked_get_integer(int64_t *out, yyjson_val *object, const char *key,
                                const char *where, bj_error *err) {
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) > INT64_MAX)
        return refuse(err, where, key, value, "a whole number of 0 or more");
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
