/* alloc.c - see alloc.h. The counters are atomic. They are the only global state in the library. */
#define _DEFAULT_SOURCE /* mmap, madvise */
#include "core/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static atomic_long total_count, live_count;
static atomic_long budget = -1; /* allocations left before failure; negative if unlimited */

static int over_budget(void) {
    long left = atomic_load(&budget);
    while (left >= 0) {
        if (left == 0) return 1;
        if (atomic_compare_exchange_weak(&budget, &left, left - 1)) return 0;
    }
    return 0;
}

/* Header in front of every block. Its size keeps the memory that follows it aligned. */
typedef union header {
    size_t mapped; /* bytes of the mapping; 0 if the block was allocated by the C library */
    char space[ALIGNMENT];
} header;

/* Maps a large block directly from the kernel, which zeroes pages on first access, and requests
 * huge pages. */
static header *map_block(size_t bytes) {
#if defined(MAP_ANONYMOUS) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (bytes < 2 * (size_t)HUGE_PAGE) return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    ((header *)memory)->mapped = bytes;
    return memory;
#else
    (void)bytes;
    return NULL;
#endif
}

void *bj_alloc(size_t count, size_t size) {
    if (size && count > (SIZE_MAX / 2) / size) return NULL;
    if (over_budget()) return NULL;
    const size_t bytes = (count * size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    header *block = map_block(bytes);
    if (!block) {
        block = aligned_alloc(ALIGNMENT, bytes);
        if (!block) return NULL;
        memset(block, 0, bytes);
    }
    atomic_fetch_add(&total_count, 1);
    atomic_fetch_add(&live_count, 1);
    return block + 1;
}

void bj_free(void *memory) {
    if (!memory) return;
    atomic_fetch_sub(&live_count, 1);
    header *block = (header *)memory - 1;
    if (block->mapped) munmap(block, block->mapped);
    else free(block);
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
