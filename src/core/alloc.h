/* alloc.h - allocates zeroed, aligned memory.
 *
 * The whole library allocates through these functions, so a test can count allocations and make the
 * n-th one fail. Memory is 64-byte aligned and zeroed. Large blocks request huge pages.
 */
#ifndef BJ_CORE_ALLOC_H
#define BJ_CORE_ALLOC_H

#include <stddef.h>

#include "core/status.h"

/* Allocates zeroed memory. Returns NULL if memory is exhausted or if count * size overflows.
 * bj_free accepts NULL. */
void *bj_alloc(size_t count, size_t size);
void bj_free(void *memory);

/* Sets pointer to `count` zeroed elements. On failure, sets pointer to NULL and reports the
 * requested size. */
#define BJ_ALLOC(pointer, count, err)                                                              \
    (((pointer) = bj_alloc((count), sizeof *(pointer)))                                            \
         ? BJ_OK                                                                                   \
         : bj_alloc_failed((count), sizeof *(pointer), (err)))
bj_status bj_alloc_failed(size_t count, size_t size, bj_error *err);

/* Makes sure that `memory` has room for `wanted` elements. `room` is the current capacity. The
 * contents are lost if the memory is replaced. Returns from the calling function on failure. */
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

/* Test hooks. bj_alloc_count returns the number of successful allocations so far, and bj_alloc_live
 * the number of blocks that have not been freed. After bj_alloc_fail_after(n), n more allocations
 * succeed and all later ones fail, until bj_alloc_fail_after(-1) is called. */
long bj_alloc_count(void);
long bj_alloc_live(void);
void bj_alloc_fail_after(long successes);

#endif
