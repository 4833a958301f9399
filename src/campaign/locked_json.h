/* locked_json.h - the JSON files of a locked evaluation: written whole, read strictly.
 *
 *   bj_locked_out out;
 *   yyjson_mut_val *root = bj_locked_begin(&out, "branchjepa.lock/1");
 *   ... bj_locked_text(&out, root, "name", name) ...
 *   status = bj_locked_commit(&out, path, hex, err);    frees it either way
 *
 * Invariants
 *   1. Members appear in the order in which they are added, numbers as the shortest text that reads
 *      back the same: equal content gives equal bytes.
 *   2. A number that is not finite is null.
 *   3. Memory that runs out shows in bj_locked_commit; the calls before it may be given NULL.
 * Reading names the file, the member, what was found and what was expected.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_JSON_H
#define BJ_CAMPAIGN_LOCKED_JSON_H

#include <stdint.h>

#include "core/json.h"
#include "core/sha256.h"

/* ------------------------------------------------------------------------------------- writing */

typedef struct bj_locked_out {
    yyjson_mut_doc *doc;
    int failed; /* memory ran out */
} bj_locked_out;

/* The root object, with its schema. */
yyjson_mut_val *bj_locked_begin(bj_locked_out *out, const char *schema);
void bj_locked_text(bj_locked_out *out, yyjson_mut_val *object, const char *key, const char *text);
void bj_locked_integer(bj_locked_out *out, yyjson_mut_val *object, const char *key, int64_t value);
void bj_locked_real(bj_locked_out *out, yyjson_mut_val *object, const char *key, double value);
void bj_locked_bool(bj_locked_out *out, yyjson_mut_val *object, const char *key, int value);
void bj_locked_null(bj_locked_out *out, yyjson_mut_val *object, const char *key);
yyjson_mut_val *bj_locked_object(bj_locked_out *out, yyjson_mut_val *object, const char *key);
yyjson_mut_val *bj_locked_list(bj_locked_out *out, yyjson_mut_val *object, const char *key);
/* Elements of a list. */
yyjson_mut_val *bj_locked_item(bj_locked_out *out, yyjson_mut_val *list);
void bj_locked_item_text(bj_locked_out *out, yyjson_mut_val *list, const char *text);
void bj_locked_item_integer(bj_locked_out *out, yyjson_mut_val *list, int64_t value);
void bj_locked_item_real(bj_locked_out *out, yyjson_mut_val *list, double value);

/* Publishes the file; hex is the SHA-256 of its bytes. */
BJ_CHECK bj_status bj_locked_commit(bj_locked_out *out, const char *path, char hex[BJ_SHA256_HEX],
                                    bj_error *err);
void bj_locked_drop(bj_locked_out *out);

/* ------------------------------------------------------------------------------------- reading */

/* Reads a file of that schema. hex, its SHA-256, may be NULL. */
BJ_CHECK bj_status bj_locked_open(yyjson_doc **out, char hex[BJ_SHA256_HEX], const char *path,
                                  const char *schema, bj_error *err);
/* Members of an object; `where` says which one in messages: "lock.json: run 3". */
BJ_CHECK bj_status bj_locked_get_text(char *out, size_t room, yyjson_val *object, const char *key,
                                      const char *where, bj_error *err);
BJ_CHECK bj_status bj_locked_get_sha256(char hex[BJ_SHA256_HEX], yyjson_val *object,
                                        const char *key, const char *where, bj_error *err);
/* 0 to 2^63 - 1 */
BJ_CHECK bj_status bj_locked_get_integer(int64_t *out, yyjson_val *object, const char *key,
                                         const char *where, bj_error *err);
BJ_CHECK bj_status bj_locked_get_object(yyjson_val **out, yyjson_val *object, const char *key,
                                        const char *where, bj_error *err);
BJ_CHECK bj_status bj_locked_get_list(yyjson_val **out, yyjson_val *object, const char *key,
                                      const char *where, bj_error *err);

#endif
