/* threads.h - thread pool for small work items.
 *
 * bj_pool_run distributes items 0 .. n-1 to the free workers. The calling thread works
 * too. Idle workers spin for a few microseconds and then block, so they do not keep a busy
 * machine's cores occupied. bj_pool_team runs one function on all workers at once, for work that is
 * too fine-grained for items. The members of a team synchronize with bj_team_wait.
 *
 * Results do not depend on which worker computes an item, see core/shards.h.
 */
#ifndef BJ_CORE_THREADS_H
#define BJ_CORE_THREADS_H

#include "core/status.h"

typedef struct bj_pool bj_pool;
typedef void (*bj_task)(void *context, int item, int worker);

/* Creates a pool. threads <= 0 means one thread per core available to this process. */
BJ_CHECK bj_status bj_pool_create(bj_pool **out, int threads, bj_error *err);
void bj_pool_free(bj_pool *pool);
int bj_pool_threads(const bj_pool *pool);

void bj_pool_run(bj_pool *pool, bj_task task, void *context, int items);
/* Runs items [0, begin[threads]). Worker w starts with its share, items [begin[w], begin[w + 1]),
 * and then takes items that other workers have not started. begin[0] is 0. If the share of a worker
 * uses the same memory in every round, that memory stays in the worker's caches. */
void bj_pool_run_shares(bj_pool *pool, bj_task task, void *context, const int *begin);
/* Returns the first item of a worker's share when `items` are divided evenly. */
static inline int bj_share_begin(int items, int worker, int threads) {
    return (int)((long)items * worker / threads);
}

/* Runs task(context, member, members) on every worker. Unlike in bj_pool_run, the last argument of
 * the task is the number of members. */
void bj_pool_team(bj_pool *pool, bj_task task, void *context);
/* Waits until all members have arrived. Call it only inside bj_pool_team. */
void bj_team_wait(bj_pool *pool);
/* Returns how many times a member has gone to sleep in bj_team_wait. A high count indicates a busy
 * machine. */
long bj_team_sleeps(const bj_pool *pool);

#endif
