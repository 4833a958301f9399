/* run_doc.h - a small JSON document of a run, built member by member.
 *
 * Failures are kept in `ok` until the text is asked for, so that building one needs no checks.
 * Test  tests/run/test_train.c
 */
#ifndef BJ_RUN_RUN_DOC_H
#define BJ_RUN_RUN_DOC_H

#include "core/json.h"

typedef struct bj_doc {
    yyjson_mut_doc *json;
    yyjson_mut_val *root;
    int ok;
} bj_doc;

/* An object with its member "schema". _text or _write is due after it. */
BJ_CHECK bj_status bj_doc_begin(bj_doc *doc, const char *schema, bj_error *err);
yyjson_mut_val *bj_doc_child(bj_doc *doc, yyjson_mut_val *parent, const char *key);
void bj_doc_add_text(bj_doc *doc, yyjson_mut_val *parent, const char *key, const char *value);
void bj_doc_add_integer(bj_doc *doc, yyjson_mut_val *parent, const char *key, int64_t value);
void bj_doc_add_unsigned(bj_doc *doc, yyjson_mut_val *parent, const char *key, uint64_t value);
/* null where the value is not finite. */
void bj_doc_add_number(bj_doc *doc, yyjson_mut_val *parent, const char *key, double value);
/* The text, with a line break at its end, for bj_free; frees the document. */
BJ_CHECK bj_status bj_doc_text(char **out, size_t *size, bj_doc *doc, int pretty, bj_error *err);
/* The text as a file, dir/name; frees the document. */
BJ_CHECK bj_status bj_doc_write(bj_doc *doc, const char *dir, const char *name, bj_error *err);
void bj_doc_free(bj_doc *doc);

#endif
