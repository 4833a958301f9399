/* json_doc.c - see json_doc.h. */
#include "core/json_doc.h"

#include <math.h>

bj_status bj_doc_begin(bj_doc *doc, const char *schema, bj_error *err) {
    *doc = (bj_doc){.json = yyjson_mut_doc_new(&bj_json_alc), .ok = 1};
    if (!doc->json) return BJ_FAIL(err, BJ_ENOMEM, "out of memory for a JSON document");
    doc->root = yyjson_mut_obj(doc->json);
    doc->ok = doc->root != NULL;
    yyjson_mut_doc_set_root(doc->json, doc->root);
    bj_doc_add_text(doc, doc->root, "schema", schema);
    return BJ_OK;
}

/* Adds a member. yyjson fails if the parent or the value is NULL, so the caller may pass the NULL
 * result of a failed allocation. */
static void add(bj_doc *doc, yyjson_mut_val *parent, const char *key, yyjson_mut_val *value) {
    doc->ok = doc->ok && value && yyjson_mut_obj_add_val(doc->json, parent, key, value);
}

static void append(bj_doc *doc, yyjson_mut_val *list, yyjson_mut_val *value) {
    doc->ok = doc->ok && value && yyjson_mut_arr_append(list, value);
}

static yyjson_mut_val *number(bj_doc *doc, double value) {
    return isfinite(value) ? yyjson_mut_real(doc->json, value) : yyjson_mut_null(doc->json);
}

/* -------------------------------------------------------------------------------------- members */

yyjson_mut_val *bj_doc_child(bj_doc *doc, yyjson_mut_val *parent, const char *key) {
    yyjson_mut_val *value = yyjson_mut_obj(doc->json);
    add(doc, parent, key, value);
    return value;
}

yyjson_mut_val *bj_doc_list(bj_doc *doc, yyjson_mut_val *parent, const char *key) {
    yyjson_mut_val *value = yyjson_mut_arr(doc->json);
    add(doc, parent, key, value);
    return value;
}

void bj_doc_add_text(bj_doc *doc, yyjson_mut_val *parent, const char *key, const char *value) {
    add(doc, parent, key, yyjson_mut_strcpy(doc->json, value));
}

void bj_doc_add_integer(bj_doc *doc, yyjson_mut_val *parent, const char *key, int64_t value) {
    add(doc, parent, key, yyjson_mut_sint(doc->json, value));
}

void bj_doc_add_unsigned(bj_doc *doc, yyjson_mut_val *parent, const char *key, uint64_t value) {
    add(doc, parent, key, yyjson_mut_uint(doc->json, value));
}

void bj_doc_add_number(bj_doc *doc, yyjson_mut_val *parent, const char *key, double value) {
    add(doc, parent, key, number(doc, value));
}

void bj_doc_add_bool(bj_doc *doc, yyjson_mut_val *parent, const char *key, int value) {
    add(doc, parent, key, yyjson_mut_bool(doc->json, value != 0));
}

void bj_doc_add_null(bj_doc *doc, yyjson_mut_val *parent, const char *key) {
    add(doc, parent, key, yyjson_mut_null(doc->json));
}

/* ------------------------------------------------------------------------------------- elements */

yyjson_mut_val *bj_doc_item(bj_doc *doc, yyjson_mut_val *list) {
    yyjson_mut_val *value = yyjson_mut_obj(doc->json);
    append(doc, list, value);
    return value;
}

void bj_doc_item_text(bj_doc *doc, yyjson_mut_val *list, const char *value) {
    append(doc, list, yyjson_mut_strcpy(doc->json, value));
}

void bj_doc_item_integer(bj_doc *doc, yyjson_mut_val *list, int64_t value) {
    append(doc, list, yyjson_mut_sint(doc->json, value));
}

void bj_doc_item_number(bj_doc *doc, yyjson_mut_val *list, double value) {
    append(doc, list, number(doc, value));
}

/* ------------------------------------------------------------------------------------------ end */

bj_status bj_doc_text(char **out, size_t *size, bj_doc *doc, int pretty, bj_error *err) {
    const yyjson_write_flag how =
        YYJSON_WRITE_NEWLINE_AT_END | (pretty ? YYJSON_WRITE_PRETTY_TWO_SPACES : 0);
    yyjson_write_err problem = {0};
    *size = 0;
    *out = doc->ok ? yyjson_mut_write_opts(doc->json, how, &bj_json_alc, size, &problem) : NULL;
    bj_doc_free(doc);
    if (*out) return BJ_OK;
    return problem.code == YYJSON_WRITE_ERROR_INVALID_STRING
               ? BJ_FAIL(err, BJ_EARG, "a path or message is not valid UTF-8, which JSON requires")
               : BJ_FAIL(err, BJ_ENOMEM, "out of memory while writing a JSON document");
}

void bj_doc_free(bj_doc *doc) {
    yyjson_mut_doc_free(doc->json);
    doc->json = NULL;
}
