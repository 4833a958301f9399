/* json_doc.h - a small JSON document that is written whole, built member by member.
 *
 *   bj_doc doc;
 *   status = bj_doc_begin(&doc, "branchjepa.run/1", err);
 *   ... bj_doc_add_text(&doc, doc.root, "arm", arm) ...
 *   status = bj_doc_text(&text, &size, &doc, pretty, err);    frees it either way
 *
 * Invariants
 *   1. Members appear in the order in which they are added, numbers as the shortest text that reads
 *      back the same: equal content gives equal bytes.
 *   2. A number that is not finite is null.
 *   3. Failures are kept in `ok` until the text is asked for, so that building needs no checks.
 * Texts are copied; keys are not: they are literals, or outlive the document.
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

/* An object with its member "schema". _text or _free is due after it. */
BJ_CHECK bj_status bj_doc_begin(bj_doc *doc, const char *schema, bj_error *err);

/* Members of an object. */
yyjson_mut_val *bj_doc_child(bj_doc *doc, yyjson_mut_val *parent, const char *key);
yyjson_mut_val *bj_doc_list(bj_doc *doc, yyjson_mut_val *parent, const char *key);
void bj_doc_add_text(bj_doc *doc, yyjson_mut_val *parent, const char *key, const char *value);
void bj_doc_add_integer(bj_doc *doc, yyjson_mut_val *parent, const char *key, int64_t value);
void bj_doc_add_unsigned(bj_doc *doc, yyjson_mut_val *parent, const char *key, uint64_t value);
void bj_doc_add_number(bj_doc *doc, yyjson_mut_val *parent, const char *key, double value);
void bj_doc_add_bool(bj_doc *doc, yyjson_mut_val *parent, const char *key, int value);
void bj_doc_add_null(bj_doc *doc, yyjson_mut_val *parent, const char *key);

/* Elements of a list. */
yyjson_mut_val *bj_doc_item(bj_doc *doc, yyjson_mut_val *list);
void bj_doc_item_text(bj_doc *doc, yyjson_mut_val *list, const char *value);
void bj_doc_item_integer(bj_doc *doc, yyjson_mut_val *list, int64_t value);
void bj_doc_item_number(bj_doc *doc, yyjson_mut_val *list, double value);

/* The text, with a line break at its end, for bj_free. BJ_EARG: something in it is not UTF-8. */
BJ_CHECK bj_status bj_doc_text(char **out, size_t *size, bj_doc *doc, int pretty, bj_error *err);
void bj_doc_free(bj_doc *doc);

#endif
