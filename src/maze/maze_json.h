/* maze_json.h - reads and writes mazes as JSON, and checks maze and graph files strictly.
 *
 *   {"name": "...", "map": ["111", "101", "111"], "teleporters": [[i, j], ...], "exits": [...],
 *    "tasks": [[i, j, i, j], ...]} 1: wall, 0: free; a square is a row and a column
 *
 * Repeated and unknown members are rejected. Messages contain the file, the member, the value found
 * and the value expected. Test: tests/maze/test_maze_file.c
 */
#ifndef BJ_MAZE_MAZE_JSON_H
#define BJ_MAZE_MAZE_JSON_H

#include "core/json_doc.h"
#include "maze/drive.h"

enum { BJ_MAZE_JSON_LIMIT = 64 << 20 /* bytes of a file */ };

/* ------------------------------------------------------------------------------------- reading */

/* Parses a file whose root is an object with that schema. */
BJ_CHECK bj_status bj_maze_json_open(yyjson_doc **out, const char *path, const char *schema,
                                     bj_error *err);
/* Parses bytes. `path` is used in messages. */
BJ_CHECK bj_status bj_maze_json_parse(yyjson_doc **out, const char *text, size_t size,
                                      const char *path, const char *schema, bj_error *err);
/* Like bj_graph_open, for bytes in memory (graph_file.c). */
BJ_CHECK bj_status bj_graph_parse(bj_graph_file **out, const char *text, size_t size,
                                  const char *path, bj_error *err);
/* Checks that `value` is an object that contains no members other than these, and none of them
 * twice. The names are separated by blanks. */
BJ_CHECK bj_status bj_maze_json_members(yyjson_val *value, const char *known, const char *where,
                                        bj_error *err);
/* Reads a member that must be a nonempty string without zero bytes. */
BJ_CHECK bj_status bj_maze_json_text(const char **out, yyjson_val *object, const char *key,
                                     const char *where, bj_error *err);
BJ_CHECK bj_status bj_maze_json_integer(int64_t *out, yyjson_val *value, int64_t least,
                                        int64_t most, const char *what, const char *where,
                                        bj_error *err);
/* Reads a list of *count rows of `width` integers from 0 to most. The caller frees *out with
 * bj_free. If the member is missing, there are no rows. */
BJ_CHECK bj_status bj_maze_json_rows(int32_t **out, int *count, yyjson_val *object, const char *key,
                                     int width, int32_t most, int limit, const char *where,
                                     bj_error *err);
/* Reads the maze in an object. without_schema is set if the object is part of another file. */
BJ_CHECK bj_status bj_maze_json_read(bj_maze **out, yyjson_val *object, int without_schema,
                                     const char *where, bj_error *err);

/* ------------------------------------------------------------------------------------- writing */

void bj_maze_json_add(bj_doc *doc, yyjson_mut_val *object, const bj_maze *maze);
/* Writes a list of edges as pairs. */
void bj_maze_json_add_edges(bj_doc *doc, yyjson_mut_val *object, const char *key,
                            const bj_edge *edges, int count);
/* Returns the document that bj_graph_save writes to `path` (graph_file.c). */
BJ_CHECK bj_status bj_graph_build(bj_doc *doc, const bj_graph_record *record, const char *path,
                                  bj_error *err);
/* Writes the document and frees it. `hex` receives the SHA-256 of the file and may be NULL. */
BJ_CHECK bj_status bj_maze_json_commit(bj_doc *doc, const char *path, char hex[65], bj_error *err);

#endif
