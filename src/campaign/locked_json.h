/* locked_json.h - writes, reads and strictly checks the JSON files of a locked evaluation.
 *
 * Messages contain the file, the member, what was found and what was expected.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_JSON_H
#define BJ_CAMPAIGN_LOCKED_JSON_H

#include <stdint.h>

#include "core/json_doc.h"
#include "core/sha256.h"

/* ------------------------------------------------------------------------------------- writing */

/* The bytes of a JSON file. */
typedef struct bj_locked_text {
    char *bytes; /* NULL: none */
    size_t size;
    char sha256[BJ_SHA256_HEX];
} bj_locked_text;

void bj_locked_text_reset(bj_locked_text *text); /* accepts a text that is all zero */
/* Returns the text of a document, which is freed in any case. Messages start with `name`. */
BJ_CHECK bj_status bj_locked_text_of(bj_locked_text *out, bj_doc *doc, const char *name,
                                     bj_error *err);

/* ------------------------------------------------------------------------------------- reading */

/* Reads a file with its SHA-256. Fails with BJ_ELOCKED if there is no such file. */
BJ_CHECK bj_status bj_locked_text_read(bj_locked_text *out, const char *path, bj_error *err);
/* Parses a text of that schema. */
BJ_CHECK bj_status bj_locked_parse(yyjson_doc **out, const bj_locked_text *text, const char *path,
                                   const char *schema, bj_error *err);
/* Fails with BJ_EMISMATCH and the first line that differs if the text of the file `path` is not the
 * expected text. */
BJ_CHECK bj_status bj_locked_same_text(const bj_locked_text *found, const bj_locked_text *expected,
                                       const char *path, bj_error *err);
/* These functions read members of an object. `where` names the object in messages, such as
 * "lock.json: run 3". */
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
