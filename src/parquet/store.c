/* store.c - see store.h. */
#include "parquet/store.h"

#include <stdint.h>

#include "core/alloc.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(POISONS)
#define POISONS 1
#endif
#ifdef POISONS
#include <sanitizer/asan_interface.h>
enum { GAP = 64 }; /* poisoned bytes after every allocation */
#define HIDE(at, size) __asan_poison_memory_region((at), (size))
#define SHOW(at, size) __asan_unpoison_memory_region((at), (size))
#else
enum { GAP = 0 };
#define HIDE(at, size) ((void)(at), (void)(size))
#define SHOW(at, size) ((void)(at), (void)(size))
#endif

enum { ALIGNMENT = 64, LEAST = 64 * 1024 };

struct bj_store_block {
    bj_store_block *previous;
    size_t size, at; /* capacity, and bytes that are allocated */
    char pad[ALIGNMENT - sizeof(void *) - 2 * sizeof(size_t)];
};

static unsigned char *bytes_of(bj_store_block *block) { return (unsigned char *)(block + 1); }

static void drop_last(bj_store *store) {
    bj_store_block *block = store->last;
    store->last = block->previous;
    SHOW(bytes_of(block), block->size);
    bj_free(block);
}

static bj_status grow(bj_store *store, size_t need, bj_error *err) {
    size_t size = store->last ? store->used : store->peak; /* a second block doubles the store */
    if (size < need) size = need;
    if (size < LEAST) size = LEAST;
    bj_store_block *block = bj_alloc(1, sizeof *block + size);
    if (!block) return bj_alloc_failed(size, 1, err);
    block->previous = store->last;
    block->size = size;
    HIDE(bytes_of(block), size);
    store->last = block;
    return BJ_OK;
}

void *bj_store_take(bj_store *store, size_t count, size_t size, bj_error *err) {
    const size_t left = store->limit > store->used ? store->limit - store->used : 0;
    if (size && count > (left > ALIGNMENT + GAP ? left - ALIGNMENT - GAP : 0) / size) {
        store->failure = BJ_FAIL(err, BJ_EFORMAT,
                                 "%s: declares %zu x %zu bytes in addition to %zu, "
                                 "expected at most %zu in total for a file of this size",
                                 store->label, count, size, store->used, store->limit);
        return NULL;
    }
    const size_t exact = count * size;
    const size_t piece = (exact + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
    if (!store->last || store->last->size - store->last->at < piece) {
        store->failure = grow(store, piece, err);
        if (store->failure != BJ_OK) return NULL;
    }
    bj_store_block *block = store->last;
    void *out = bytes_of(block) + block->at;
    SHOW(out, exact);
    block->at += piece;
    store->used += piece;
    if (store->peak < store->used) store->peak = store->used;
    return out;
}

bj_store_mark bj_store_here(const bj_store *store) {
    return (bj_store_mark){store->last, store->last ? store->last->at : 0, store->used};
}

void bj_store_release(bj_store *store, bj_store_mark mark) {
    while (store->last != mark.block) drop_last(store);
    if (store->last) {
        store->last->at = mark.at;
        HIDE(bytes_of(store->last) + mark.at, store->last->size - mark.at);
    }
    store->used = mark.used;
}

void bj_store_reset(bj_store *store, size_t limit, const char *label) {
    /* Free the block if there are several blocks or if it is smaller than the peak. The next
     * allocation then creates a single block of the peak size. */
    while (store->last && (store->last->previous || store->last->size < store->peak))
        drop_last(store);
    if (store->last) {
        store->last->at = 0;
        HIDE(bytes_of(store->last), store->last->size);
    }
    store->used = 0;
    store->limit = limit;
    store->label = label;
}

void bj_store_free(bj_store *store) {
    while (store->last) drop_last(store);
    *store = (bj_store){0};
}
