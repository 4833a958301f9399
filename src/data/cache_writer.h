/* cache_writer.h - writes a cache scene by scene, in order, so that a killed run can go on.
 *
 *   encode     on any thread: features and map -> the bytes of one scene (bj_cache_scene_bytes)
 *   add        in order: appends them
 *   finish     writes the index and the header and publishes the file
 *
 * While it is written a cache is a folder PATH.partial. Every scene is complete there or absent, so
 * after kill -9 the next writer continues behind the last complete one; the result has the same
 * bytes. docs/DATA.md has the layout of both.
 * Tests: tests/data/test_cache.c; fuzz target of the reader: tests/fuzz/fuzz_cache.c
 */
#ifndef BJ_DATA_CACHE_WRITER_H
#define BJ_DATA_CACHE_WRITER_H

#include <stdint.h>

#include "data/features.h"

/* What is stored of a scene, ready to be appended; keeps its buffers between scenes. */
typedef struct bj_cache_bytes bj_cache_bytes;

BJ_CHECK bj_status bj_cache_bytes_create(bj_cache_bytes **out, bj_error *err);
void bj_cache_bytes_free(bj_cache_bytes *bytes); /* accepts NULL */
/* map_sha256 (32) is that of the raw map file. */
BJ_CHECK bj_status bj_cache_encode(bj_cache_bytes *out, const bj_scenario *scenario,
                                   const bj_map *map, const bj_features *features,
                                   const uint8_t *map_sha256, bj_error *err);

typedef struct bj_cache_writer bj_cache_writer;

/* Starts PATH.partial, or continues one (unless `restart`) whose facts are the same; other facts
 * are refused by name. Another process that writes the same cache is refused (lock). */
BJ_CHECK bj_status bj_cache_writer_open(bj_cache_writer **out, const char *path,
                                        const bj_fact *facts, int fact_count, int restart,
                                        bj_error *err);
/* Items (scenes and rejects) that are already there, and their names in order. */
int64_t bj_cache_writer_items(const bj_cache_writer *writer);
int64_t bj_cache_writer_scenes(const bj_cache_writer *writer);
/* The name of an item lives until the next call. */
BJ_CHECK bj_status bj_cache_writer_item(const char **name, bj_cache_writer *writer, int64_t item,
                                        bj_error *err);

/* Appends one scene. Ids must ascend: the index is searched by them. BJ_EFORMAT: the scene cannot
 * be stored, nothing was written, and others may follow. */
BJ_CHECK bj_status bj_cache_writer_add(bj_cache_writer *writer, const bj_cache_bytes *bytes,
                                       bj_error *err);
/* Notes that an item gave no scene. `code` is a short word, `reason` a sentence; both and `folder`
 * may hold any bytes. */
BJ_CHECK bj_status bj_cache_writer_reject(bj_cache_writer *writer, const char *item,
                                          const char *folder, const char *code, const char *reason,
                                          bj_error *err);
/* Publishes PATH and, when there are any, PATH.rejects.jsonl, which is removed otherwise; removes
 * PATH.partial. Frees the writer either way: after a failure PATH.partial is still there. Without a
 * single scene there is no cache, but the rejects are published, and BJ_EFORMAT says so. Fills
 * accepted, rejected, without_future, maps, bytes and digest of the report. */
BJ_CHECK bj_status bj_cache_writer_finish(bj_cache_writer **writer, bj_prep_report *report,
                                          bj_error *err);
/* Leaves PATH.partial for the next run. Accepts NULL. */
void bj_cache_writer_close(bj_cache_writer **writer);

/* Removes what a process left behind that was killed after it had published PATH. *items: what it
 * had worked on, -1 when there was no such process, 0 when that is not known any more. */
BJ_CHECK bj_status bj_cache_writer_tidy(int64_t *items, const char *path, bj_error *err);

#endif
