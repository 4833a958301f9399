/* json.h - yyjson with its memory taken from core/alloc.h.
 *
 * Reading is strict JSON (RFC 8259) in UTF-8: no comments, trailing commas, NaN or text after the
 * value. yyjson neither recurses nor refuses duplicate keys: callers that care look for them.
 * A document is released with yyjson_doc_free, which needs no allocator.
 */
#ifndef BJ_CORE_JSON_H
#define BJ_CORE_JSON_H

#include <yyjson.h>

#include "core/status.h"

/* For the calls of yyjson that take an allocator. */
extern const yyjson_alc bj_json_alc;

/* Parses `size` bytes; they need no terminator and are not kept. `what` opens the messages: the
 * file, or the file and the part of it. */
BJ_CHECK bj_status bj_json_parse(yyjson_doc **out, const char *text, size_t size, const char *what,
                                 bj_error *err);

/* Numbers as text, the same in every locale. Reading takes a JSON number and nothing after it;
 * writing gives the shortest text that reads back as the same double. Both return 0 for what is
 * not a number, or not a finite one. */
enum { BJ_JSON_NUMBER = 40 };
int bj_json_number_read(double *out, const char *text);
int bj_json_number_write(char text[BJ_JSON_NUMBER], double value);

#endif
