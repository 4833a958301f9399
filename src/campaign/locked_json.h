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

/* Writes the document to a file and frees it. `hex` receives the SHA-256 of the file. */
BJ_CHECK bj_status bj_locked_commit(bj_doc *doc, const char *path, char hex[BJ_SHA256_HEX],
                                    bj_error *err);

/* ------------------------------------------------------------------------------------- reading */

/* Reads a file and checks its schema. `hex` receives the SHA-256 of the file and may be NULL. */
BJ_CHECK bj_status bj_locked_open(yyjson_doc **out, char hex[BJ_SHA256_HEX], const char *path,
                                  const char *schema, bj_error *err);
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
