/* test_threads.c - tests that the pool runs every item once, on a valid worker, and that no wake-up
 * is lost. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "core/threads.h"

#include <stdatomic.h>
#include <time.h>

#include "core/alloc.h"
#include "test.h"

enum { MOST_ITEMS = 1000, MOST_THREADS = 8, MEMBERS = 16 };

static bj_pool *make_pool(int threads) {
    bj_pool *pool;
    bj_error err;
    const bj_status status = bj_pool_create(&pool, threads, &err);
    CHECK_MSG(status == BJ_OK, "%s", err.message);
    return pool;
}

/* ---------------------------------------------------------------------------------------- items */

typedef struct tally {
    atomic_int times[MOST_ITEMS]; /* number of times each item was run */
    atomic_int on[MOST_THREADS];  /* number of items run by each worker */
    atomic_int busy[MOST_THREADS];
    atomic_int wrong; /* number of invalid items, invalid workers, and items that ran concurrently
                         on one worker */
    int items, threads;
} tally;

static void count_item(void *context, int item, int worker) {
    tally *t = context;
    if (item < 0 || item >= t->items || worker < 0 || worker >= t->threads) {
        atomic_fetch_add(&t->wrong, 1);
        return;
    }
    if (atomic_fetch_add(&t->busy[worker], 1) != 0) atomic_fetch_add(&t->wrong, 1);
    atomic_fetch_add(&t->times[item], 1);
    atomic_fetch_add(&t->on[worker], 1);
    atomic_fetch_sub(&t->busy[worker], 1);
}

static void test_items(int threads) {
    static const int sizes[] = {0, 1, 2, 3, 7, 8, 9, 64, 999, 1, 0, 500};
    bj_pool *pool = make_pool(threads);
    if (!pool) return;
    CHECK(bj_pool_threads(pool) == threads);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        static tally t;
        memset(&t, 0, sizeof t);
        t.items = sizes[s];
        t.threads = threads;
        bj_pool_run(pool, count_item, &t, sizes[s]);
        /* The call returns only after the last item, so nothing may change from here on. */
        int once = 1, sum = 0;
        for (int i = 0; i < MOST_ITEMS; i++) once &= t.times[i] == (i < sizes[s]);
        for (int i = 0; i < MOST_THREADS; i++) sum += t.on[i];
        CHECK_MSG(once && sum == sizes[s] && !t.wrong,
                  "%d items on %d threads: %d were done, %d were wrong",
                  sizes[s], threads, sum, t.wrong);
    }
    bj_pool_free(pool);
}

/* Tests thousands of short rounds, to detect a lost wake-up or a worker that runs a round twice. */
static void add_one(void *context, int item, int worker) {
    (void)item, (void)worker;
    atomic_fetch_add((atomic_long *)context, 1);
}

static void test_many_rounds(int threads) {
    bj_pool *pool = make_pool(threads);
    if (!pool) return;
    atomic_long sum = 0;
    long expected = 0;
    for (int round = 0; round < 1000; round++) {
        const int items = round % 5;
        bj_pool_run(pool, add_one, &sum, items);
        expected += items;
        if (sum != expected) break;
    }
    CHECK_MSG(sum == expected, "%ld items done on %d threads, expected %ld", (long)sum, threads,
              expected);
    bj_pool_free(pool);
}

/* Tests that the writes of a round are visible to the next round and to the caller. */
typedef struct relay {
    int value[64];
} relay;

static void pass_on(void *context, int item, int worker) {
    relay *r = context;
    (void)worker;
    r[1].value[item] = r[0].value[63 - item] + 1;
}

static void test_visibility(void) {
    bj_pool *pool = make_pool(4);
    if (!pool) return;
    relay r[2] = {{{0}}, {{0}}};
    int wrong = 0;
    for (int round = 1; round <= 500; round++) {
        bj_pool_run(pool, pass_on, r, 64);
        for (int i = 0; i < 64; i++) wrong += r[1].value[i] != round;
        r[0] = r[1];
    }
    CHECK(wrong == 0);
    bj_pool_free(pool);
}

/* Tests that a worker that sleeps during an item does not block the remaining items. */
typedef struct slow {
    atomic_int done, others;
} slow;

static void sleep_on_first(void *context, int item, int worker) {
    slow *s = context;
    (void)worker;
    if (item == 0) {
        for (int i = 0; i < 2000 && atomic_load(&s->others) < 15; i++)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    } else {
        atomic_fetch_add(&s->others, 1);
    }
    atomic_fetch_add(&s->done, 1);
}

static void test_uneven(void) {
    bj_pool *pool = make_pool(2);
    if (!pool) return;
    slow s = {0, 0};
    bj_pool_run(pool, sleep_on_first, &s, 16);
    CHECK(s.done == 16);
    CHECK_MSG(s.others == 15, "%d items went past the sleeper, expected 15", s.others);
    bj_pool_free(pool);
}

/* --------------------------------------------------------------------------------------- shares */

/* Tests that every item runs once if shares are uneven or empty. */
static void test_shares(int threads) {
    bj_pool *pool = make_pool(threads);
    if (!pool) return;
    for (int seed = 0; seed < 40; seed++) {
        int begin[MOST_THREADS + 1] = {0};
        for (int w = 0; w < threads; w++) begin[w + 1] = begin[w] + (seed * (w + 3) + w) % 11;
        static tally t;
        memset(&t, 0, sizeof t);
        t.items = begin[threads];
        t.threads = threads;
        bj_pool_run_shares(pool, count_item, &t, begin);
        int once = 1;
        for (int i = 0; i < MOST_ITEMS; i++) once &= t.times[i] == (i < t.items);
        CHECK_MSG(once && !t.wrong, "%d items in shares on %d threads: %d were wrong", t.items,
                  threads, t.wrong);
    }
    bj_pool_free(pool);
}

/* Tests that a worker starts with its own share. Every item waits until all items have started, so
 * no worker can take another worker's item. */
typedef struct owners {
    atomic_int started;
    int members, owner[MOST_THREADS];
} owners;

static void wait_for_all(void *context, int item, int worker) {
    owners *o = context;
    o->owner[item] = worker;
    atomic_fetch_add(&o->started, 1);
    for (int i = 0; i < 20000 && atomic_load(&o->started) < o->members; i++)
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void test_own_share_first(int threads) {
    bj_pool *pool = make_pool(threads);
    if (!pool) return;
    owners o = {0, threads, {0}};
    int begin[MOST_THREADS + 1];
    for (int w = 0; w <= threads; w++) begin[w] = bj_share_begin(threads, w, threads);
    bj_pool_run_shares(pool, wait_for_all, &o, begin);
    for (int w = 0; w < threads; w++)
        CHECK_MSG(o.owner[w] == w, "worker %d ran the share of worker %d", o.owner[w], w);
    bj_pool_free(pool);
}

/* ----------------------------------------------------------------------------------------- team */

/* Members of a team fill a row, wait, and read what the other members wrote. The two rows are used
 * alternately. */
typedef struct gathering {
    bj_pool *pool;
    atomic_int present[MEMBERS];
    atomic_int wrong, size;
    int row[2][MEMBERS];
} gathering;

static void meet(void *context, int member, int members) {
    gathering *g = context;
    atomic_fetch_add(&g->present[member], 1);
    atomic_store(&g->size, members);
    for (int phase = 1; phase <= 100; phase++) {
        if (phase % 97 == member) nanosleep(&(struct timespec){0, 200000}, NULL); /* arrives late */
        g->row[phase % 2][member] = phase;
        bj_team_wait(g->pool);
        for (int i = 0; i < members; i++)
            if (g->row[phase % 2][i] != phase) atomic_fetch_add(&g->wrong, 1);
    }
}

static void test_team(int threads) {
    bj_pool *pool = make_pool(threads);
    if (!pool) return;
    for (int again = 0; again < 2; again++) {
        static gathering g;
        memset(&g, 0, sizeof g);
        g.pool = pool;
        bj_pool_team(pool, meet, &g);
        int each = 1;
        for (int i = 0; i < MEMBERS; i++) each &= g.present[i] == (i < threads);
        CHECK_MSG(each && g.size == threads, "team of %d: not every member came once", threads);
        CHECK_MSG(g.wrong == 0, "team of %d: %d reads came before the write", threads, g.wrong);
        static tally t; /* a pool can run items after a team */
        memset(&t, 0, sizeof t);
        t.items = 40;
        t.threads = threads;
        bj_pool_run(pool, count_item, &t, 40);
        int once = 1;
        for (int i = 0; i < 40; i++) once &= t.times[i] == 1;
        CHECK(once && !t.wrong);
    }
    bj_pool_free(pool);
}

/* ------------------------------------------------------------------------------------- lifetime */

static void test_create(void) {
    bj_error err;
    bj_pool *pool = make_pool(0); /* one per available core */
    if (pool) CHECK(bj_pool_threads(pool) >= 1);
    bj_pool_free(pool);
    bj_pool_free(NULL);
    pool = (bj_pool *)&err;
    CHECK(bj_pool_create(&pool, 100000, &err) == BJ_EARG);
    CHECK(pool == NULL);
    CHECK_CONTAINS(err.message, "threads is 100000, expected at most 1024");

    const long live = bj_alloc_live();
    int n = 0;
    for (;; n++) { /* the n-th allocation fails, until none fails */
        bj_alloc_fail_after(n);
        pool = (bj_pool *)&err;
        const bj_status status = bj_pool_create(&pool, 3, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && err.code == BJ_ENOMEM);
        CHECK(pool == NULL);
        CHECK_MSG(bj_alloc_live() == live, "allocation %d failed: %ld blocks are left", n,
                  bj_alloc_live() - live);
        if (n == 100) break;
    }
    CHECK_MSG(n >= 2 && n < 100, "%d allocations could fail", n);
    atomic_long sum = 0;
    bj_pool_run(pool, add_one, &sum, 10);
    CHECK(sum == 10);
    bj_pool_free(pool);
    CHECK(bj_alloc_live() == live);
    for (int i = 0; i < 50; i++) bj_pool_free(make_pool(1 + i % 8)); /* freed before any work */
    CHECK(bj_alloc_live() == live);
}

int main(void) {
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        test_items(threads);
        test_many_rounds(threads);
        test_shares(threads);
        test_own_share_first(threads);
        test_team(threads);
    }
    test_visibility();
    test_uneven();
    test_create();
    return test_report("threads");
}
