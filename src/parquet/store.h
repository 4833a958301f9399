/* store.h - arena allocator of a reader.
 *
 * Allocations are aligned to 64 bytes and not zeroed. The store remembers its peak size when it is
 * reset and then allocates a single block of this size, so a reader that reads many files soon
 * stops allocating. Under AddressSanitizer the space between allocations is poisoned.
 *
 * Invariants
 *   1. At most `limit` bytes are allocated at a time. A larger request fails before any allocation.
 *   2. bj_store_release frees exactly what was allocated after the mark.
 * Test: tests/parquet/test_store.c
 */
#ifndef BJ_PARQUET_STORE_H
#define BJ_PARQUET_STORE_H

#include <stddef.h>

#include "core/status.h"

typedef struct bj_store_block bj_store_block;

typedef struct bj_store {
    bj_store_block *last; /* the block that serves allocations */
    size_t used, peak;    /* bytes currently allocated, and the maximum since creation */
    size_t limit;
    bj_status failure; /* status of the last failed bj_store_take */
    const char *label; /* of the file, for messages */
} bj_store;

typedef struct bj_store_mark {
    bj_store_block *block;
    size_t at, used;
} bj_store_mark;

/* Allocates count * size bytes. The result is not NULL even for 0 bytes. On failure, returns NULL
 * and sets err and store->failure. */
void *bj_store_take(bj_store *store, size_t count, size_t size, bj_error *err);
bj_store_mark bj_store_here(const bj_store *store);
void bj_store_release(bj_store *store, bj_store_mark mark);
/* Frees all allocations and sets limit and label. The label is not copied. */
void bj_store_reset(bj_store *store, size_t limit, const char *label);
void bj_store_free(bj_store *store); /* a zeroed store is a valid empty store */

/* Allocates `count` elements, assigns them to `pointer` and returns a status. */
#define BJ_STORE(pointer, store, count, err)                                                       \
    (((pointer) = bj_store_take((store), (count), sizeof *(pointer), (err))) ? BJ_OK               \
                                                                             : (store)->failure)

#endif
