/* run_doc.c - see run_doc.h. */
#include "run/run_doc.h"

#include <math.h>

#include "core/alloc.h"
#include "core/file.h"
#include "run/run.h"

bj_status bj_doc_begin(bj_doc *doc, const char *schema, bj_error *err) {
    *doc = (bj_doc){.json = yyjson_mut_doc_new(&bj_json_alc), .ok = 1};
    if (!doc->json) return BJ_FAIL(err, BJ_ENOMEM, "no memory for a JSON document");
    doc->root = yyjson_mut_obj(doc->json);
    doc->ok = doc->root != NULL;
    yyjson_mut_doc_set_root(doc->json, doc->root);
    bj_doc_add_text(doc, doc->root, "schema", schema);
    return BJ_OK;
}

yyjson_mut_val *bj_doc_child(bj_doc *doc, yyjson_mut_val *parent, const char *key) {
    yyjson_mut_val *value = yyjson_mut_obj(doc->json);
    doc->ok = doc->ok && value && yyjson_mut_obj_add_val(doc->json, parent, key, value);
    return value;
}

void bj_doc_add_text(bj_doc *doc, yyjson_mut_val *parent, const char *key, const char *value) {
    doc->ok = doc->ok && yyjson_mut_obj_add_strcpy(doc->json, parent, key, value);
}

void bj_doc_add_integer(bj_doc *doc, yyjson_mut_val *parent, const char *key, int64_t value) {
    doc->ok = doc->ok && yyjson_mut_obj_add_sint(doc->json, parent, key, value);
}

void bj_doc_add_unsigned(bj_doc *doc, yyjson_mut_val *parent, const char *key, uint64_t value) {
    doc->ok = doc->ok && yyjson_mut_obj_add_uint(doc->json, parent, key, value);
}

void bj_doc_add_number(bj_doc *doc, yyjson_mut_val *parent, const char *key, double value) {
    doc->ok = doc->ok && (isfinite(value) ? yyjson_mut_obj_add_real(doc->json, parent, key, value)
                                          : yyjson_mut_obj_add_null(doc->json, parent, key));
}

bj_status bj_doc_text(char **out, size_t *size, bj_doc *doc, int pretty, bj_error *err) {
    const yyjson_write_flag how =
        YYJSON_WRITE_NEWLINE_AT_END | (pretty ? YYJSON_WRITE_PRETTY_TWO_SPACES : 0);
    yyjson_write_err problem = {0};
    *size = 0;
    *out = doc->ok ? yyjson_mut_write_opts(doc->json, how, &bj_json_alc, size, &problem) : NULL;
    bj_doc_free(doc);
    if (*out) return BJ_OK;
    return problem.code == YYJSON_WRITE_ERROR_INVALID_STRING
               ? BJ_FAIL(err, BJ_EARG, "a path or message is not UTF-8, which JSON asks for")
               : BJ_FAIL(err, BJ_ENOMEM, "no memory for the text of a JSON document");
}

bj_status bj_doc_write(bj_doc *doc, const char *dir, const char *name, bj_error *err) {
    char path[BJ_RUN_FILE], *text;
    size_t size;
    BJ_TRY(bj_doc_text(&text, &size, doc, 1, err));
    bj_status status = bj_run_path(path, dir, name, err);
    if (status == BJ_OK) status = bj_file_write(path, text, size, err);
    bj_free(text);
    return status;
}

void bj_doc_free(bj_doc *doc) {
    yyjson_mut_doc_free(doc->json);
    doc->json = NULL;
}
