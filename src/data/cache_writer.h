/* cache_writer.h - writes a cache scene by scene, in order, so that a killed run can be resumed.
 *
 *   encode   on any thread: converts features and map to the bytes of one scene (bj_cache_bytes)
 *   add      in order: appends the bytes
 *   finish   writes the index and the header and publishes the file
 *
 * A cache under construction is a folder PATH.partial. Every scene in it is either complete or
 * absent. After kill -9 the next writer therefore resumes after the last complete scene, and the
 * resulting file is identical. docs/DATA.md describes the layout of the folder and the file.
 * Tests: tests/data/test_cache.c; fuzz target of the reader: tests/fuzz/fuzz_cache.c
 */
#ifndef BJ_DATA_CACHE_WRITER_H
#define BJ_DATA_CACHE_WRITER_H

#include <stdint.h>

#include "data/features.h"

/* The encoded bytes of a scene, ready to be appended. Buffers are reused between scenes. */
typedef struct bj_cache_bytes bj_cache_bytes;

BJ_CHECK bj_status bj_cache_bytes_create(bj_cache_bytes **out, bj_error *err);
void bj_cache_bytes_free(bj_cache_bytes *bytes); /* accepts NULL */
/* Encodes a scene. map_sha256 (32 bytes) is the SHA-256 of the raw map file. */
BJ_CHECK bj_status bj_cache_encode(bj_cache_bytes *out, const bj_scenario *scenario,
                                   const bj_map *map, const bj_features *features,
                                   const uint8_t *map_sha256, bj_error *err);

typedef struct bj_cache_writer bj_cache_writer;

/* Creates PATH.partial, or resumes it if it has the same facts and `restart` is 0. If a fact
 * differs, fails and names the fact. Fails if another process is writing the same cache. */
BJ_CHECK bj_status bj_cache_writer_open(bj_cache_writer **out, const char *path,
                                        const bj_fact *facts, int fact_count, int restart,
                                        bj_error *err);
/* Returns the number of items (scenes and rejects) written so far. */
int64_t bj_cache_writer_items(const bj_cache_writer *writer);
int64_t bj_cache_writer_scenes(const bj_cache_writer *writer);
/* Returns the name of an item, which is valid until the next call. */
BJ_CHECK bj_status bj_cache_writer_item(const char **name, bj_cache_writer *writer, int64_t item,
                                        bj_error *err);

/* Appends one scene. Ids must be in ascending order, because readers use binary search. BJ_EFORMAT
 * means that the scene cannot be stored. In this case nothing was written, and other scenes may
 * follow. */
BJ_CHECK bj_status bj_cache_writer_add(bj_cache_writer *writer, const bj_cache_bytes *bytes,
                                       bj_error *err);
/* Records that an item has no scene. `code` is a short word and `reason` a sentence. `code`,
 * `reason` and `folder` may contain any bytes. */
BJ_CHECK bj_status bj_cache_writer_reject(bj_cache_writer *writer, const char *item,
                                          const char *folder, const char *code, const char *reason,
                                          bj_error *err);
/* Publishes PATH and removes PATH.partial. Also publishes PATH.rejects.jsonl if there are rejects,
 * and removes an old one otherwise. Always frees the writer. After a failure, PATH.partial still
 * exists. If there is no scene, fails with BJ_EFORMAT and publishes only the rejects. Fills the
 * fields accepted, rejected, without_future, maps, bytes and digest of the report. */
BJ_CHECK bj_status bj_cache_writer_finish(bj_cache_writer **writer, bj_prep_report *report,
                                          bj_error *err);
/* Closes the writer and keeps PATH.partial for the next run. Accepts NULL. */
void bj_cache_writer_close(bj_cache_writer **writer);

/* Removes the remains of PATH.partial if a process was killed after publishing PATH. Sets *items to
 * the number of items that process had written, to 0 if that number is lost, or to -1 if there was
 * no folder or an empty one, which may also be the start of another run. */
BJ_CHECK bj_status bj_cache_writer_tidy(int64_t *items, const char *path, bj_error *err);

#endif
