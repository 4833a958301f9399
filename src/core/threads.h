/* threads.h - a pool of workers that hand out small pieces of work.
 *
 * bj_pool_run gives items 0 .. n-1 to whoever is free; the caller works too. Workers that find
 * nothing to do spin for a few microseconds and then block, so a busy machine loses its share of
 * one core and no more. bj_pool_team runs one function on every worker at once, for work that is
 * cut finer than an item can be; its members meet at bj_team_wait.
 *
 * Who computes an item never shows in the result: see core/shards.h.
 */
#ifndef BJ_CORE_THREADS_H
#define BJ_CORE_THREADS_H

#include "core/status.h"

typedef struct bj_pool bj_pool;
typedef void (*bj_task)(void *context, int item, int worker);

/* threads <= 0: one per core this process may use. */
BJ_CHECK bj_status bj_pool_create(bj_pool **out, int threads, bj_error *err);
void bj_pool_free(bj_pool *pool);
int bj_pool_threads(const bj_pool *pool);

void bj_pool_run(bj_pool *pool, bj_task task, void *context, int items);
/* Runs items [0, begin[threads]). Worker w starts with its share, items [begin[w], begin[w + 1]), and
 * then takes items that other workers have not started. begin[0] is 0. Rounds that give a worker the
 * same memory again and again keep that memory in the worker's caches. */
void bj_pool_run_shares(bj_pool *pool, bj_task task, void *context, const int *begin);
/* Returns where a worker's share begins if `items` are divided evenly. */
static inline int bj_share_begin(int items, int worker, int threads) {
    return (int)((long)items * worker / threads);
}

/* task(context, member, members) on every worker; members is the argument called `worker`. */
void bj_pool_team(bj_pool *pool, bj_task task, void *context);
/* All members arrive before any leaves. Only inside bj_pool_team. */
void bj_team_wait(bj_pool *pool);
/* How often a member had to be put to sleep at bj_team_wait so far: a sign of a busy machine. */
long bj_team_sleeps(const bj_pool *pool);

#endif
