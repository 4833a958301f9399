/* test_alloc.c - tests that memory is zeroed, aligned and counted, and that allocation failures can
 * be injected. */
#include "core/alloc.h"

#include <pthread.h>
#include <stdint.h>

#include "test.h"

static void test_memory(void) {
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003, (2 << 20) + 1, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = bj_alloc(sizes[i], 1);
        CHECK(memory != NULL);
        CHECK_MSG((uintptr_t)memory % 64 == 0, "%zu bytes are not aligned", sizes[i]);
        size_t dirty = 0;
        for (size_t b = 0; b < sizes[i]; b++) dirty += memory[b] != 0;
        CHECK_MSG(dirty == 0, "%zu of %zu bytes are not zero", dirty, sizes[i]);
        memset(memory, 0xa5, sizes[i]); /* the next allocation may reuse it */
        bj_free(memory);
    }
    void *empty = bj_alloc(0, 8), *other = bj_alloc(8, 0);
    CHECK(empty && other && empty != other);
    bj_free(empty);
    bj_free(other);
    bj_free(NULL);
}

static void test_counting(void) {
    const long count = bj_alloc_count(), live = bj_alloc_live();
    void *a = bj_alloc(3, 5), *b = bj_alloc(1, 1);
    CHECK(bj_alloc_count() == count + 2 && bj_alloc_live() == live + 2);
    bj_free(a);
    CHECK(bj_alloc_count() == count + 2 && bj_alloc_live() == live + 1);
    bj_free(NULL);
    CHECK(bj_alloc_live() == live + 1);
    bj_free(b);
    CHECK(bj_alloc_live() == live);
    char *text = bj_strdup("three");
    CHECK(text && strcmp(text, "three") == 0);
    CHECK(bj_alloc_count() == count + 3 && bj_alloc_live() == live + 1);
    bj_free(text);
    CHECK(bj_alloc_live() == live);
}

/* Tests that bj_alloc does not return a small block if count * size overflows. */
static void test_overflow(void) {
    const long count = bj_alloc_count(), live = bj_alloc_live();
    const size_t half = SIZE_MAX / 2 + 1;
    CHECK(bj_alloc(half, 2) == NULL);
    CHECK(bj_alloc(2, half) == NULL);
    CHECK(bj_alloc(SIZE_MAX, SIZE_MAX) == NULL);
    CHECK(bj_alloc(SIZE_MAX, 1) == NULL);
    CHECK(bj_alloc(1, SIZE_MAX - 1) == NULL);
    CHECK(bj_alloc(SIZE_MAX / 8 + 1, 8) == NULL);
    CHECK(bj_alloc(SIZE_MAX / 4, 4) == NULL); /* does not overflow, but is too large */
    CHECK(bj_alloc_count() == count && bj_alloc_live() == live);

    double *many;
    bj_error err;
    CHECK(BJ_ALLOC(many, SIZE_MAX / 2, &err) == BJ_ENOMEM);
    CHECK(many == NULL && err.code == BJ_ENOMEM);
    CHECK_CONTAINS(err.message, "out of memory");
    CHECK_CONTAINS(err.message, " x 8 bytes");
    CHECK(BJ_ALLOC(many, SIZE_MAX / 2, NULL) == BJ_ENOMEM); /* the message is optional */
}

static void test_failing(void) {
    const long count = bj_alloc_count(), live = bj_alloc_live();
    for (int n = 0; n < 4; n++) {
        void *memory[6];
        bj_alloc_fail_after(n);
        for (int i = 0; i < 6; i++) {
            memory[i] = bj_alloc(1, 8);
            CHECK_MSG((memory[i] != NULL) == (i < n), "allocation %d with a budget of %d", i, n);
        }
        CHECK(bj_strdup("x") == NULL);
        bj_alloc_fail_after(-1);
        void *again = bj_alloc(1, 8);
        CHECK(again != NULL);
        bj_free(again);
        for (int i = 0; i < 6; i++) bj_free(memory[i]);
    }
    CHECK(bj_alloc_count() == count + 4 + 0 + 1 + 2 + 3); /* failures are not counted */
    CHECK(bj_alloc_live() == live);
    bj_alloc_fail_after(2); /* if the product overflows, the call fails without using the budget */
    CHECK(bj_alloc(SIZE_MAX, 2) == NULL);
    void *a = bj_alloc(1, 1), *b = bj_alloc(1, 1), *c = bj_alloc(1, 1);
    CHECK(a && b && !c);
    bj_alloc_fail_after(-1);
    bj_free(a);
    bj_free(b);
}

enum { THREADS = 4, ROUNDS = 2000, BUDGET = 3000 };

static void *churn(void *got) {
    for (int i = 0; i < ROUNDS; i++) {
        void *memory = bj_alloc(1, 16);
        *(int *)got += memory != NULL;
        bj_free(memory);
    }
    return NULL;
}

/* Tests that the counters and the budget are exact with several threads. */
static void test_threads(void) {
    const long count = bj_alloc_count(), live = bj_alloc_live();
    pthread_t thread[THREADS];
    int got[THREADS] = {0}, all = 0;
    bj_alloc_fail_after(BUDGET);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, churn, &got[i]) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL), all += got[i];
    bj_alloc_fail_after(-1);
    CHECK_MSG(all == BUDGET, "%d allocations, expected %d", all, BUDGET);
    CHECK(bj_alloc_count() == count + BUDGET && bj_alloc_live() == live);
}

int main(void) {
    test_memory();
    test_counting();
    test_overflow();
    test_failing();
    test_threads();
    return test_report("alloc");
}
