/* threads.c - see threads.h.
 *
 * Invariants
 *   1. `generation` grows by one per job. A worker runs each generation exactly once.
 *   2. A job's fields are written before `generation` is incremented and do not change until every
 *      worker has finished the job (`running` is zero).
 *   3. A sleeping thread holds `mutex` between checking the condition and waiting. A thread that
 *      changes the condition takes `mutex` before signaling, so no wake-up is lost.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "core/alloc.h"

enum { MAX_THREADS = 1024, SPINS = 40000 /* about 50 microseconds */ };

typedef struct worker {
    bj_pool *pool;
    pthread_t thread;
    int index;
    alignas(64) atomic_int next; /* first item of the share that has not been taken by any worker */
    int end;                     /* end of the share */
} worker;

struct bj_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, done, meet;
    atomic_uint generation;
    atomic_int running, stop;
    bj_task task;
    void *context;
    int shares; /* number of shares; 0 for a team */
    int threads, started;
    worker *workers; /* (threads); worker 0 is the caller */
    /* Barrier of a team, on separate cache lines because the members poll it. */
    alignas(64) atomic_int arrived;
    alignas(64) atomic_uint phase;
    alignas(64) atomic_int sleepers;
    atomic_long sleeps;
};

/* Called between two polls of a flag. An occasional pause instruction helps a sibling hyperthread.
 * Pausing in every poll would delay the end of each barrier. */
static void relax(int spins) {
#if defined(__x86_64__)
    if (spins % 16 == 15) __builtin_ia32_pause();
#else
    (void)spins;
#endif
}

static int available_cores(void) {
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n;
}

static void work_on(bj_pool *pool, int index) {
    if (pool->shares == 0) {
        pool->task(pool->context, index, pool->threads);
        return;
    }
    for (int i = 0; i < pool->shares; i++) { /* starts with the worker's own share, then continues
                                                with the shares of other workers */
        worker *from = &pool->workers[(index + i) % pool->shares];
        for (;;) {
            const int item = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
            if (item >= from->end) break;
            pool->task(pool->context, item, index);
        }
    }
}

static void *worker_main(void *argument) {
    const worker *self = argument;
    bj_pool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        int spins = 0;
        while (atomic_load(&pool->generation) == seen && spins++ < SPINS) relax(spins);
        if (atomic_load(&pool->generation) == seen) {
            pthread_mutex_lock(&pool->mutex);
            while (atomic_load(&pool->generation) == seen)
                pthread_cond_wait(&pool->work, &pool->mutex);
            pthread_mutex_unlock(&pool->mutex);
        }
        seen++;
        if (atomic_load(&pool->stop)) return NULL;
        work_on(pool, self->index);
        if (atomic_fetch_sub(&pool->running, 1) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static void announce(bj_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

static void start(bj_pool *pool, bj_task task, void *context, int shares) {
    pool->task = task;
    pool->context = context;
    pool->shares = shares;
    atomic_store(&pool->running, pool->threads - 1);
    if (pool->threads > 1) announce(pool);
    work_on(pool, 0);
    int spins = 0;
    while (atomic_load(&pool->running) > 0 && spins++ < SPINS) relax(spins);
    if (atomic_load(&pool->running) > 0) {
        pthread_mutex_lock(&pool->mutex);
        while (atomic_load(&pool->running) > 0) pthread_cond_wait(&pool->done, &pool->mutex);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static void run_shares(bj_pool *pool, bj_task task, void *context, const int *begin, int shares) {
    for (int i = 0; i < shares; i++) {
        atomic_store(&pool->workers[i].next, begin[i]);
        pool->workers[i].end = begin[i + 1];
    }
    start(pool, task, context, shares);
}

void bj_pool_run(bj_pool *pool, bj_task task, void *context, int items) {
    const int begin[2] = {0, items};
    if (items == 1 || pool->threads == 1)
        for (int i = 0; i < items; i++) task(context, i, 0);
    else if (items > 0) run_shares(pool, task, context, begin, 1);
}

void bj_pool_run_shares(bj_pool *pool, bj_task task, void *context, const int *begin) {
    if (begin[pool->threads] < 2) bj_pool_run(pool, task, context, begin[pool->threads]);
    else run_shares(pool, task, context, begin, pool->threads);
}

void bj_pool_team(bj_pool *pool, bj_task task, void *context) {
    atomic_store(&pool->arrived, 0);
    start(pool, task, context, 0);
}

void bj_team_wait(bj_pool *pool) {
    if (pool->threads == 1) return;
    const unsigned phase = atomic_load(&pool->phase);
    if (atomic_fetch_add(&pool->arrived, 1) == pool->threads - 1) {
        atomic_store(&pool->arrived, 0);
        atomic_fetch_add(&pool->phase, 1);
        /* Either this load sees the sleeping thread, or that thread sees the new phase before it
         * waits. */
        if (atomic_load(&pool->sleepers) > 0) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_broadcast(&pool->meet);
            pthread_mutex_unlock(&pool->mutex);
        }
        return;
    }
    int spins = 0;
    while (atomic_load(&pool->phase) == phase && spins++ < SPINS) relax(spins);
    if (atomic_load(&pool->phase) == phase) {
        atomic_fetch_add(&pool->sleeps, 1);
        atomic_fetch_add(&pool->sleepers, 1);
        pthread_mutex_lock(&pool->mutex);
        while (atomic_load(&pool->phase) == phase) pthread_cond_wait(&pool->meet, &pool->mutex);
        pthread_mutex_unlock(&pool->mutex);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
}

long bj_team_sleeps(const bj_pool *pool) { return atomic_load(&pool->sleeps); }

int bj_pool_threads(const bj_pool *pool) { return pool->threads; }

bj_status bj_pool_create(bj_pool **out, int threads, bj_error *err) {
    *out = NULL;
    if (threads <= 0) threads = available_cores();
    if (threads > MAX_THREADS)
        return BJ_FAIL(err, BJ_EARG, "threads is %d, expected at most %d", threads, MAX_THREADS);
    bj_pool *pool;
    BJ_TRY(BJ_ALLOC(pool, 1, err));
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pthread_cond_init(&pool->meet, NULL);
    pool->threads = threads;
    bj_status status;
    BJ_GOTO(status, fail, BJ_ALLOC(pool->workers, (size_t)threads, err));
    for (pool->started = 1; pool->started < threads; pool->started++) {
        worker *w = &pool->workers[pool->started];
        w->pool = pool;
        w->index = pool->started;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            status = BJ_FAIL(err, BJ_ENOMEM, "could not start worker thread %d of %d", w->index + 1,
                             threads);
            goto fail;
        }
    }
    *out = pool;
    return BJ_OK;
fail:
    bj_pool_free(pool);
    return status;
}

void bj_pool_free(bj_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stop, 1);
    if (pool->started > 1) announce(pool);
    for (int i = 1; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->meet);
    bj_free(pool->workers);
    bj_free(pool);
}
