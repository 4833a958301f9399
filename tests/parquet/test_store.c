/* test_store.c - tests allocations, marks, the limit, and the single block after a reset. */
#include <stdint.h>

#include "core/alloc.h"
#include "parquet/store.h"
#include "support/test.h"

static void fill(unsigned char *piece, size_t size, int with) {
    CHECK(piece && (uintptr_t)piece % 64 == 0);
    if (piece) memset(piece, with, size);
}

static void test_marks(void) {
    const long live = bj_alloc_live();
    bj_store store = {0};
    bj_error err = {0};
    bj_store_reset(&store, 10 << 20, "file");
    unsigned char *first = bj_store_take(&store, 1000, 1, &err);
    fill(first, 1000, 1);
    const bj_store_mark mark = bj_store_here(&store);
    unsigned char *second = bj_store_take(&store, 100, 3, &err);
    fill(second, 300, 2);
    fill(bj_store_take(&store, 3 << 20, 1, &err), 3 << 20, 3); /* needs another block */
    fill(bj_store_take(&store, 1 << 20, 4, &err), 4 << 20, 4);
    CHECK(bj_alloc_live() > live + 1);
    bj_store_release(&store, mark);
    CHECK(bj_store_take(&store, 300, 1, &err) == second);
    CHECK(first[0] == 1 && first[999] == 1);
    CHECK(store.used < 4096 && store.peak > 7 << 20);

    /* After a reset everything fits into one block. */
    bj_store_reset(&store, 10 << 20, "file");
    CHECK(store.used == 0);
    fill(bj_store_take(&store, 1000, 1, &err), 1000, 1);
    const long count = bj_alloc_count();
    CHECK(bj_alloc_live() == live + 1);
    fill(bj_store_take(&store, 3 << 20, 1, &err), 3 << 20, 3);
    fill(bj_store_take(&store, 1 << 20, 4, &err), 4 << 20, 4);
    bj_store_reset(&store, 10 << 20, "file");
    fill(bj_store_take(&store, 7 << 20, 1, &err), 7 << 20, 5);
    CHECK(bj_alloc_count() == count);
    bj_store_free(&store);
    CHECK(bj_alloc_live() == live);
}

static void test_limit(void) {
    bj_store store = {0};
    bj_error err = {0};
    uint64_t *words;
    bj_store_reset(&store, 100000, "some file");
    CHECK_OK(BJ_STORE(words, &store, 10000, &err), err);
    const long count = bj_alloc_count();
    CHECK(BJ_STORE(words, &store, 10000, &err) == BJ_EFORMAT && !words);
    CHECK_CONTAINS(err.message, "some file: declares 10000 x 8 bytes in addition to 8");
    CHECK_CONTAINS(err.message, "expected at most 100000 in total");
    CHECK(BJ_STORE(words, &store, SIZE_MAX / 8 + 1, &err) ==
          BJ_EFORMAT); /* the product overflows */
    CHECK(BJ_STORE(words, &store, SIZE_MAX, NULL) == BJ_EFORMAT);
    CHECK(bj_alloc_count() == count);
    for (int i = 0; i < 5000; i++) CHECK(bj_store_take(&store, 0, 8, &err) != NULL);
    bj_store_reset(&store, 1 << 20, "");
    bj_store_free(&store);

    bj_alloc_fail_after(0);
    bj_store_reset(&store, 1 << 20, "");
    CHECK(BJ_STORE(words, &store, 1, &err) == BJ_ENOMEM && !words);
    bj_alloc_fail_after(-1);
    CHECK(BJ_STORE(words, &store, 1, &err) == BJ_OK);
    bj_store_free(&store);
}

int main(void) {
    test_marks();
    test_limit();
    return test_report("store");
}
