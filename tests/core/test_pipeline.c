/* test_pipeline.c - tests that items are consumed in order and that the number of items in flight
 * is limited. */
#define _XOPEN_SOURCE 700
#include <stdatomic.h>
#include <time.h>

#include "core/alloc.h"
#include "core/pipeline.h"
#include "support/test.h"

enum { ITEMS = 400, MOST_SLOTS = 16 };

typedef struct work {
    int64_t slot[MOST_SLOTS]; /* item produced in each slot */
    atomic_int taken[MOST_SLOTS];
    atomic_int under_way, most_under_way, workers_seen, collisions;
    int64_t next, stop_at;
    int out_of_order, wrong, uneven;
} work;

static void nap(long microseconds) {
    const struct timespec time = {0, 1000 * microseconds};
    nanosleep(&time, NULL);
}

static void produce(void *context, int64_t item, int slot, int worker) {
    work *w = context;
    if (atomic_exchange(&w->taken[slot], 1)) atomic_fetch_add(&w->collisions, 1);
    const int now = atomic_fetch_add(&w->under_way, 1) + 1;
    int most = atomic_load(&w->most_under_way);
    while (now > most && !atomic_compare_exchange_weak(&w->most_under_way, &most, now)) {
    }
    atomic_fetch_or(&w->workers_seen, 1 << worker);
    /* Every seventh item takes longer, so that other items finish before it. */
    if (w->uneven && item % 7 == 0) nap(300);
    w->slot[slot] = item * item + 1;
}

static bj_status consume(void *context, int64_t item, int slot, bj_error *err) {
    work *w = context;
    w->out_of_order += item != w->next;
    w->wrong += w->slot[slot] != item * item + 1;
    w->next = item + 1;
    atomic_store(&w->taken[slot], 0);
    atomic_fetch_sub(&w->under_way, 1);
    return item == w->stop_at ? BJ_FAIL(err, BJ_EIO, "full at %d", (int)item) : BJ_OK;
}

static void test_order(int jobs, int slots, int64_t first, int uneven) {
    work w = {.next = first, .stop_at = -1, .uneven = uneven};
    bj_error err = {0};
    const bj_pipeline p = {first, ITEMS, jobs, slots, &w, produce, consume};
    CHECK_OK(bj_pipeline_run(&p, &err), err);
    CHECK(w.next == ITEMS && !w.out_of_order && !w.wrong && !w.collisions);
    CHECK_MSG(w.most_under_way <= slots, "%d", (int)w.most_under_way);
    CHECK(w.under_way == 0);
    if (uneven && jobs > 1) CHECK_MSG(w.most_under_way > 1, "nothing happened at the same time");
    CHECK(bj_pipeline_workers(&p) == jobs);
}

static void test_failure(int jobs) {
    work w = {.stop_at = 57, .uneven = 1};
    bj_error err = {0};
    const bj_pipeline p = {0, ITEMS, jobs, MOST_SLOTS, &w, produce, consume};
    CHECK(bj_pipeline_run(&p, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "full at 57");
    CHECK(w.next == 58); /* nothing is consumed after the failure */
}

static void test_odd(void) {
    work w = {.stop_at = -1};
    bj_error err = {0};
    bj_pipeline p = {5, 5, 4, 4, &w, produce, consume};
    CHECK_OK(bj_pipeline_run(&p, &err), err); /* no items */
    CHECK(w.next == 0 && bj_pipeline_workers(&p) == 1);
    p.end = 7; /* fewer items than workers */
    w.next = 5;
    CHECK_OK(bj_pipeline_run(&p, &err), err);
    CHECK(w.next == 7 && bj_pipeline_workers(&p) == 2);
    p.jobs = 0;
    CHECK(bj_pipeline_workers(&p) >= 1);
    p = (bj_pipeline){0, 100, 4, 3, &w, produce, consume};
    CHECK(bj_pipeline_run(&p, &err) == BJ_EARG);
    for (long n = 0; n < 2; n++) { /* each allocation fails in turn */
        p = (bj_pipeline){0, 100, 4, 4, &w, produce, consume};
        w.next = 0;
        bj_alloc_fail_after(n);
        CHECK(bj_pipeline_run(&p, &err) == BJ_ENOMEM);
        bj_alloc_fail_after(-1);
        CHECK(w.next == 0);
    }
}

int main(void) {
    const long live = bj_alloc_live();
    static const int jobs[] = {1, 2, 3, 8};
    for (int j = 0; j < 4; j++) {
        test_order(jobs[j], jobs[j], 0, 0);
        test_order(jobs[j], MOST_SLOTS, 0, 1);
        test_order(jobs[j], MOST_SLOTS - 1, 123, 1);
        test_failure(jobs[j]);
    }
    test_odd();
    CHECK(bj_alloc_live() == live);
    return test_report("pipeline");
}
