/* json.h - yyjson with memory from core/alloc.h.
 *
 * Only strict JSON (RFC 8259) in UTF-8 is accepted, without comments, trailing commas, NaN or text
 * after the value. yyjson does not recurse. It accepts duplicate keys, so callers must check for
 * them if needed. Documents are released with yyjson_doc_free, which needs no allocator.
 */
#ifndef BJ_CORE_JSON_H
#define BJ_CORE_JSON_H

#include <yyjson.h>

#include "core/status.h"

/* Allocator for the yyjson functions that take one. */
extern const yyjson_alc bj_json_alc;

/* Parses `size` bytes, which need no terminator and may be freed afterwards. Messages start with
 * `what`, the name of the file or of a part of it. */
BJ_CHECK bj_status bj_json_parse(yyjson_doc **out, const char *text, size_t size, const char *what,
                                 bj_error *err);

/* Convert between numbers and text, independent of the locale. bj_json_number_read accepts a JSON
 * number with nothing after it. bj_json_number_write produces the shortest text that reads back as
 * the same double. Both return 0 on failure, for example if the number is not finite. */
enum { BJ_JSON_NUMBER = 40 };
int bj_json_number_read(double *out, const char *text);
int bj_json_number_write(char text[BJ_JSON_NUMBER], double value);

#endif
