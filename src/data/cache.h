/* cache.h - internal interface of the cache reader (bj_cache_* in the public header).
 *
 * Opening a cache checks everything that later calls rely on, so those calls need no checks:
 *   1. The file is a safetensors file with exactly the tensors of cache_format.h. Each tensor has
 *      the expected type and shape and is aligned to its element size. The facts have a known
 *      version.
 *   2. Records are contiguous and end where the tensor ends. Counts are within the sizes given by
 *      the facts. City, type and map numbers are valid indices into their tables.
 *   3. Ids are printable, terminated, padded with zeros, and ascending.
 *   4. Rings are contiguous in the point array of their kind and use all of its points.
 *   5. The digest of the facts and the index matches.
 * Opening does not read the records, futures and points. bj_cache_check_scene and bj_cache_check_map
 * check them against their digests on first use, bj_cache_verify whenever it is called.
 * Tests: tests/data/test_cache.c; fuzz target: tests/fuzz/fuzz_cache.c
 */
#ifndef BJ_DATA_CACHE_H
#define BJ_DATA_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum {
    BJ_CACHE_BLIND = 1,    /* no access to futures */
    BJ_CACHE_UNCHECKED = 2 /* skips rule 5; used for fuzzing, because mutations invalidate the
                              digest */
};

/* Opens a cache file in memory. The buffer must be aligned to 8 bytes and outlive the cache.
 * Messages use `label` in place of the path. */
BJ_CHECK bj_status bj_cache_open_memory(bj_cache **out, const void *data, size_t size,
                                        const char *label, int flags, bj_error *err);

/* Returns 1 if bj_cache_check_scene has found that the scene has its digest. */
int bj_cache_is_checked(const bj_cache *cache, int64_t index);

#endif
