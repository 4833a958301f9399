/* maze_json.h - mazes inside of JSON files, and the strict reading they share with graphs.
 *
 *   {"name": "...", "map": ["111", "101", "111"], "teleporters": [[i, j], ...], "exits": [...],
 *    "tasks": [[i, j, i, j], ...]}        1: wall, 0: free; squares are row and column
 *
 * An object has no member twice and none that is not expected; a message names file, member, what
 * was found and what was expected. Test: tests/maze/test_maze_file.c
 */
#ifndef BJ_MAZE_MAZE_JSON_H
#define BJ_MAZE_MAZE_JSON_H

#include "core/json_doc.h"
#include "maze/drive.h"

enum { BJ_MAZE_JSON_LIMIT = 64 << 20 /* bytes of a file */ };

/* ------------------------------------------------------------------------------------- reading */

/* Parses a file whose root is an object of that schema. */
BJ_CHECK bj_status bj_maze_json_open(yyjson_doc **out, const char *path, const char *schema,
                                     bj_error *err);
/* The same of bytes; `path` stands for them in messages. */
BJ_CHECK bj_status bj_maze_json_parse(yyjson_doc **out, const char *text, size_t size,
                                      const char *path, const char *schema, bj_error *err);
/* bj_graph_open of bytes (graph_file.c). */
BJ_CHECK bj_status bj_graph_parse(bj_graph_file **out, const char *text, size_t size,
                                  const char *path, bj_error *err);
/* `value` is an object with these members at most, separated by blanks, each once. */
BJ_CHECK bj_status bj_maze_json_members(yyjson_val *value, const char *known, const char *where,
                                        bj_error *err);
/* A member that is a text without zero bytes, not empty. */
BJ_CHECK bj_status bj_maze_json_text(const char **out, yyjson_val *object, const char *key,
                                     const char *where, bj_error *err);
BJ_CHECK bj_status bj_maze_json_integer(int64_t *out, yyjson_val *value, int64_t least,
                                        int64_t most, const char *what, const char *where,
                                        bj_error *err);
/* A list of rows of `width` integers from 0 to most; *count of them, *out for bj_free. A member
 * that is missing has no rows. */
BJ_CHECK bj_status bj_maze_json_rows(int32_t **out, int *count, yyjson_val *object, const char *key,
                                     int width, int32_t most, int limit, const char *where,
                                     bj_error *err);
/* The maze of that object; without_schema: it is part of another file. */
BJ_CHECK bj_status bj_maze_json_read(bj_maze **out, yyjson_val *object, int without_schema,
                                     const char *where, bj_error *err);

/* ------------------------------------------------------------------------------------- writing */

void bj_maze_json_add(bj_doc *doc, yyjson_mut_val *object, const bj_maze *maze);
/* A list of edges as pairs. */
void bj_maze_json_add_edges(bj_doc *doc, yyjson_mut_val *object, const char *key,
                            const bj_edge *edges, int count);
/* What bj_graph_save writes to `path` (graph_file.c). */
BJ_CHECK bj_status bj_graph_build(bj_doc *doc, const bj_graph_record *record, const char *path,
                                  bj_error *err);
/* Publishes the document and frees it. hex, which may be NULL: SHA-256 of the file. */
BJ_CHECK bj_status bj_maze_json_commit(bj_doc *doc, const char *path, char hex[65], bj_error *err);

#endif
