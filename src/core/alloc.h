/* alloc.h - the single door to the heap.
 *
 * Every allocation of the library passes through here, so that a test can count allocations and
 * make the n-th one fail. Memory is 64-byte aligned and zeroed. Large blocks ask for huge pages.
 */
#ifndef BJ_CORE_ALLOC_H
#define BJ_CORE_ALLOC_H

#include <stddef.h>

#include "core/status.h"

/* Returns NULL when memory is exhausted or count * size overflows. bj_free accepts NULL. */
void *bj_alloc(size_t count, size_t size);
void bj_free(void *memory);

/* Sets pointer to `count` zeroed elements, or to NULL with a message of what was asked for. */
#define BJ_ALLOC(pointer, count, err)                                                              \
    (((pointer) = bj_alloc((count), sizeof *(pointer)))                                            \
         ? BJ_OK                                                                                   \
         : bj_alloc_failed((count), sizeof *(pointer), (err)))
bj_status bj_alloc_failed(size_t count, size_t size, bj_error *err);

/* Makes memory hold `wanted` elements, of which it now has room for `room`; content is not kept.
 * Returns from the calling function when that fails. */
#define BJ_RESERVE(memory, room, wanted, err)                                                      \
    do {                                                                                           \
        if ((room) < (wanted)) {                                                                   \
            bj_free(memory);                                                                       \
            (room) = 0;                                                                            \
            BJ_TRY(BJ_ALLOC((memory), (wanted), (err)));                                           \
            (room) = (wanted);                                                                     \
        }                                                                                          \
    } while (0)

char *bj_strdup(const char *text);

/* Test hooks: successful allocations and frees so far; the allocation after `successes` more ones
 * fails once, and every one after it too until bj_alloc_fail_after(-1). */
long bj_alloc_count(void);
long bj_alloc_live(void);
void bj_alloc_fail_after(long successes);

#endif
