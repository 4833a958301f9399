/* pipeline.c - see pipeline.h.
 *
 * Item i uses slot (i - first) mod slots. Invariants, under `mutex`:
 *   1. consumed <= next <= consumed + slots, so a slot is assigned only after its previous item was
 *      consumed.
 *   2. The worker that fills a slot sets ready[slot], and the consumer clears it.
 *   3. A thread holds `mutex` while it changes a condition, so no wake-up is lost.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "core/pipeline.h"

#include <pthread.h>
#include <sched.h>

#include "core/alloc.h"

enum { MAX_JOBS = 1024 };

typedef struct run {
    const bj_pipeline *pipeline;
    pthread_mutex_t mutex;
    pthread_cond_t room, filled; /* signaled when a slot becomes free, and when a slot is filled */
    int64_t next, consumed;      /* next item to assign, next item to consume */
    int stop;
    unsigned char *ready; /* (slots) */
} run;

typedef struct worker {
    run *shared;
    pthread_t thread;
    int index;
} worker;

int bj_pipeline_workers(const bj_pipeline *pipeline) {
    int jobs = pipeline->jobs;
    cpu_set_t set;
    if (jobs <= 0) jobs = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (jobs > MAX_JOBS) jobs = MAX_JOBS;
    if (jobs > pipeline->end - pipeline->first) jobs = (int)(pipeline->end - pipeline->first);
    return jobs < 1 ? 1 : jobs;
}

static int slot_of(const bj_pipeline *p, int64_t item) {
    return (int)((item - p->first) % p->slots);
}

static void *worker_main(void *argument) {
    const worker *self = argument;
    run *r = self->shared;
    const bj_pipeline *p = r->pipeline;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        while (!r->stop && r->next < p->end && r->next - r->consumed >= p->slots)
            pthread_cond_wait(&r->room, &r->mutex);
        if (r->stop || r->next >= p->end) break;
        const int64_t item = r->next++;
        const int slot = slot_of(p, item);
        pthread_mutex_unlock(&r->mutex);
        p->produce(p->context, item, slot, self->index);
        pthread_mutex_lock(&r->mutex);
        r->ready[slot] = 1;
        if (item == r->consumed) pthread_cond_signal(&r->filled);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static bj_status consume_all(run *r, bj_error *err) {
    const bj_pipeline *p = r->pipeline;
    bj_status status = BJ_OK;
    pthread_mutex_lock(&r->mutex);
    while (r->consumed < p->end) {
        const int slot = slot_of(p, r->consumed);
        while (!r->ready[slot]) pthread_cond_wait(&r->filled, &r->mutex);
        pthread_mutex_unlock(&r->mutex);
        status = p->consume(p->context, r->consumed, slot, err);
        pthread_mutex_lock(&r->mutex);
        if (status != BJ_OK) break;
        r->ready[slot] = 0;
        r->consumed++;
        pthread_cond_signal(&r->room);
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}

/* Stops the workers after their current items and joins them. */
static void join(run *r, worker *workers, int started) {
    pthread_mutex_lock(&r->mutex);
    r->stop = 1;
    pthread_cond_broadcast(&r->room);
    pthread_mutex_unlock(&r->mutex);
    for (int i = 0; i < started; i++) pthread_join(workers[i].thread, NULL);
}

/* Runs the pipeline on the calling thread, because a single worker does not need a separate
 * thread. */
static bj_status run_alone(const bj_pipeline *p, bj_error *err) {
    for (int64_t item = p->first; item < p->end; item++) {
        p->produce(p->context, item, slot_of(p, item), 0);
        BJ_TRY(p->consume(p->context, item, slot_of(p, item), err));
    }
    return BJ_OK;
}

bj_status bj_pipeline_run(const bj_pipeline *p, bj_error *err) {
    const int jobs = bj_pipeline_workers(p);
    if (p->slots < jobs)
        return BJ_FAIL(err, BJ_EARG, "pipeline: %d slots for %d workers", p->slots, jobs);
    if (jobs == 1) return run_alone(p, err);

    run r = {.pipeline = p, .next = p->first, .consumed = p->first};
    worker *workers = NULL;
    bj_status status;
    int started = 0;
    pthread_mutex_init(&r.mutex, NULL);
    pthread_cond_init(&r.room, NULL);
    pthread_cond_init(&r.filled, NULL);
    BJ_GOTO(status, done, BJ_ALLOC(r.ready, (size_t)p->slots, err));
    BJ_GOTO(status, done, BJ_ALLOC(workers, (size_t)jobs, err));
    for (; started < jobs; started++) {
        worker *w = &workers[started];
        w->shared = &r;
        w->index = started;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            status = BJ_FAIL(err, BJ_ENOMEM, "could not start worker thread %d of %d", started + 1,
                             jobs);
            goto done;
        }
    }
    status = consume_all(&r, err);
done:
    if (workers) join(&r, workers, started);
    pthread_cond_destroy(&r.filled);
    pthread_cond_destroy(&r.room);
    pthread_mutex_destroy(&r.mutex);
    bj_free(workers);
    bj_free(r.ready);
    return status;
}
