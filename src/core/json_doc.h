/* json_doc.h - builds a small JSON document member by member and returns it as text.
 *
 *   bj_doc doc;
 *   status = bj_doc_begin(&doc, "branchjepa.run/1", err);
 *   ... bj_doc_add_text(&doc, doc.root, "arm", arm) ...
 *   status = bj_doc_text(&text, &size, &doc, pretty, err);    frees doc in any case
 *
 * Invariants
 *   1. Members are written in the order in which they were added, and numbers as the shortest text
 *      that reads back as the same value. So equal content produces equal bytes.
 *   2. A number that is not finite is written as null.
 *   3. Failures are recorded in `ok` and reported by bj_doc_text, so the calls in between need no
 *      checks.
 * String values are copied. Keys are not copied and must outlive the document.
 * Test: tests/run/test_train.c, tests/campaign/test_lock.c
 */
#ifndef BJ_CORE_JSON_DOC_H
#define BJ_CORE_JSON_DOC_H

#include "core/json.h"

typedef struct bj_doc {
    yyjson_mut_doc *json;
    yyjson_mut_val *root;
    int ok;
} bj_doc;

/* Starts a document whose root object has the member "schema". The caller must end it with
 * bj_doc_text or bj_doc_free. */
BJ_CHECK bj_status bj_doc_begin(bj_doc *doc, const char *schema, bj_error *err);

/* Add a member to an object. */
yyjson_mut_val *bj_doc_child(bj_doc *doc, yyjson_mut_val *parent, const char *key);
yyjson_mut_val *bj_doc_list(bj_doc *doc, yyjson_mut_val *parent, const char *key);
void bj_doc_add_text(bj_doc *doc, yyjson_mut_val *parent, const char *key, const char *value);
void bj_doc_add_integer(bj_doc *doc, yyjson_mut_val *parent, const char *key, int64_t value);
void bj_doc_add_unsigned(bj_doc *doc, yyjson_mut_val *parent, const char *key, uint64_t value);
void bj_doc_add_number(bj_doc *doc, yyjson_mut_val *parent, const char *key, double value);
void bj_doc_add_bool(bj_doc *doc, yyjson_mut_val *parent, const char *key, int value);
void bj_doc_add_null(bj_doc *doc, yyjson_mut_val *parent, const char *key);

/* Append an element to a list. */
yyjson_mut_val *bj_doc_item(bj_doc *doc, yyjson_mut_val *list);
void bj_doc_item_text(bj_doc *doc, yyjson_mut_val *list, const char *value);
void bj_doc_item_integer(bj_doc *doc, yyjson_mut_val *list, int64_t value);
void bj_doc_item_number(bj_doc *doc, yyjson_mut_val *list, double value);

/* Returns the text, which ends with a newline and is released with bj_free. Fails with BJ_EARG if a
 * string is not UTF-8. */
BJ_CHECK bj_status bj_doc_text(char **out, size_t *size, bj_doc *doc, int pretty, bj_error *err);
void bj_doc_free(bj_doc *doc);

#endif
