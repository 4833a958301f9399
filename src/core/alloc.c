/* alloc.c - see alloc.h. The counters are atomic; they are the only global state of the library. */
#define _DEFAULT_SOURCE /* madvise */
#include "core/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static atomic_long total_count, live_count;
static atomic_long budget = -1; /* allocations left before failure; negative: no limit */

static int over_budget(void) {
    long left = atomic_load(&budget);
    while (left >= 0) {
        if (left == 0) return 1;
        if (atomic_compare_exchange_weak(&budget, &left, left - 1)) return 0;
    }
    return 0;
}

void *bj_alloc(size_t count, size_t size) {
    if (size && count > (SIZE_MAX - HUGE_PAGE) / size) return NULL;
    if (over_budget()) return NULL;
    size_t bytes = count * size + (count == 0 || size == 0);
    /* A block of several huge pages starts on one, so that the kernel can back it with them. */
    const size_t alignment = bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, bytes);
    if (!memory) return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    memset(memory, 0, bytes);
    atomic_fetch_add(&total_count, 1);
    atomic_fetch_add(&live_count, 1);
    return memory;
}

void bj_free(void *memory) {
    if (!memory) return;
    atomic_fetch_sub(&live_count, 1);
    free(memory);
}

bj_status bj_alloc_failed(size_t count, size_t size, bj_error *err) {
    return BJ_FAIL(err, BJ_ENOMEM, "out of memory: could not allocate %zu x %zu bytes", count,
                   size);
}

char *bj_strdup(const char *text) {
    const size_t length = strlen(text) + 1;
    char *copy = bj_alloc(length, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

long bj_alloc_count(void) { return atomic_load(&total_count); }
long bj_alloc_live(void) { return atomic_load(&live_count); }
void bj_alloc_fail_after(long successes) { atomic_store(&budget, successes); }
