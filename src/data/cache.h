/* cache.h - the reader behind bj_cache_* of the public header.
 *
 * Opening checks everything that later calls rely on, so that they need no checks:
 *   1. The file is a safetensors file with exactly the tensors of cache_format.h, each of its type
 *      and shape and aligned to its elements; the facts are those of a cache of a known version.
 *   2. Records follow each other without gaps and end where the tensor ends; counts are within the
 *      sizes of the facts; numbers of cities, types and maps lie in their tables.
 *   3. Ids are printable, terminated, padded with zeros, and ascend.
 *   4. Rings lie one after the other in the points of their kind and use them up.
 *   5. The digest of the facts and the index is right.
 * The records, futures and points themselves are not touched: bj_cache_verify holds them against
 * their digests.
 * Tests: tests/data/test_cache.c; fuzz target: tests/fuzz/fuzz_cache.c
 */
#ifndef BJ_DATA_CACHE_H
#define BJ_DATA_CACHE_H

#include <stddef.h>

#include "core/status.h"

enum {
    BJ_CACHE_BLIND = 1,    /* futures are out of reach */
    BJ_CACHE_UNCHECKED = 2 /* rule 5 is left out: for the fuzz target, which cannot guess digests */
};

/* A file in memory, which stays the caller's and is aligned to 8 bytes; `label` stands for the
 * path. */
BJ_CHECK bj_status bj_cache_open_memory(bj_cache **out, const void *data, size_t size,
                                        const char *label, int flags, bj_error *err);

#endif
