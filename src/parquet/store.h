/* store.h - the memory of a reader: taken piece by piece, given back all at once.
 *
 * Pieces start on 64-byte boundaries and are not zeroed. What one file needed is remembered when
 * the store is reset, and the next one finds it in a single block, so that a reader that goes from
 * file to file soon allocates nothing. Under AddressSanitizer the space between pieces is poisoned.
 *
 * Invariants
 *   1. No more than `limit` bytes are ever out at a time: whoever asks for more is refused before
 *      anything is allocated.
 *   2. bj_store_release gives back exactly what was taken after the mark.
 * Test: tests/parquet/test_store.c
 */
#ifndef BJ_PARQUET_STORE_H
#define BJ_PARQUET_STORE_H

#include <stddef.h>

#include "core/status.h"

typedef struct bj_store_block bj_store_block;

typedef struct bj_store {
    bj_store_block *last; /* the one pieces are cut from */
    size_t used, peak;    /* bytes out now, and most of them since the store was made */
    size_t limit;
    bj_status failure; /* why the last take gave NULL */
    const char *label; /* of the file, for messages */
} bj_store;

typedef struct bj_store_mark {
    bj_store_block *block;
    size_t at, used;
} bj_store_mark;

/* count * size bytes, not NULL even for none; or NULL, with the reason in err and failure. */
void *bj_store_take(bj_store *store, size_t count, size_t size, bj_error *err);
bj_store_mark bj_store_here(const bj_store *store);
void bj_store_release(bj_store *store, bj_store_mark mark);
/* Takes everything back; sets limit and label, which is not copied. */
void bj_store_reset(bj_store *store, size_t limit, const char *label);
void bj_store_free(bj_store *store); /* a zeroed store is an empty one */

/* Sets pointer to `count` elements, and yields a status. */
#define BJ_STORE(pointer, store, count, err)                                                       \
    (((pointer) = bj_store_take((store), (count), sizeof *(pointer), (err))) ? BJ_OK               \
                                                                             : (store)->failure)

#endif
