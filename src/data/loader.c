/* loader.c - iterates over a cache in batches, in a reproducible order.
 *
 * Order  The scenes of the selected part, in cache order, are shuffled from the end:
 *
 *          g = the generator of (seed, "loader epoch E")
 *          for i = n - 1 .. 1:  swap scene i with scene r mod (i + 1), where r is the next number
 *                               of g below the largest multiple of i + 1 up to 2^64
 *
 *        Every epoch starts from the same list, so an epoch does not depend on earlier epochs,
 *        the batch size or the model. docs/DATA.md describes the generator.
 *
 * Invariants
 *   1. Every scene of the selected part is in exactly one batch of an epoch.
 *   2. Float builds do not copy scenes, because the batch points into the mapped file. Double
 *      builds convert the scenes into arrays of the loader.
 *   3. Nothing is allocated after bj_loader_create.
 *   4. Every scene is checked against its digest before a batch with it is returned for the first
 *      time, so damaged scenes are never trained on or evaluated.
 *   5. The loader advises the kernel to read the next batch while the current one is used. Results
 *      do not depend on this advice. The kernel can drop mapped pages at any time, so a cache may
 *      be larger than memory.
 * Test   tests/data/test_loader.c
 */
#define _DEFAULT_SOURCE /* madvise */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "data/cache.h"
#include "data/loader.h"
#include "data/scene_view.h"

struct bj_loader {
    const bj_cache *cache;
    bj_loader_options options;
    bj_arch arch;
    int64_t n, steps;
    int64_t *members;                /* (n) scene indices in the cache, ascending */
    int64_t *order;                  /* (n) the scenes in the order used in epoch `epoch` */
    int64_t epoch;                   /* -1 if there is none yet */
    int64_t asked_epoch, asked_step; /* the batch that was last prefetched */
    uintptr_t page;
    bj_pool *pool; /* borrowed; NULL: the calling thread checks digests */
    int64_t first; /* position of the batch in `order` */
    bj_batch batch;
    bj_scene *scenes;   /* (batch) */
    bj_real *converted; /* double builds: (batch,bj_scene_room) */
};

/* -------------------------------------------------------------------------------------- members */

static const char *part_name(bj_part part) {
    return part == BJ_PART_FIT ? "fit" : part == BJ_PART_DEV ? "dev" : "all";
}

static int is_member(const bj_loader *l, int64_t index) {
    if (l->options.needs_future && !bj_cache_floats(l->cache, index).future) return 0;
    return l->options.part == BJ_PART_ALL ||
           bj_is_dev(bj_cache_info(l->cache, index).scenario_id) ==
               (l->options.part == BJ_PART_DEV);
}

static bj_status find_members(bj_loader *l, bj_error *err) {
    const int64_t count = bj_cache_count(l->cache);
    for (int64_t i = 0; i < count; i++)
        if (is_member(l, i)) l->members[l->n++] = i;
    if (!l->n)
        return BJ_FAIL(err, BJ_EARG, "none of the %lld scenes in the cache belongs to part '%s'%s",
                       (long long)count, part_name(l->options.part),
                       l->options.needs_future ? " and has a known future" : "");
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- create */

void bj_loader_free(bj_loader *l) {
    if (!l) return;
    bj_free(l->members);
    bj_free(l->order);
    bj_free(l->scenes);
    bj_free(l->converted);
    bj_free(l);
}

static bj_status check_options(const bj_loader_options *o, bj_error *err) {
    if (o->batch < 1)
        return BJ_FAIL(err, BJ_EARG, "loader: the batch has %d scenes, expected at least 1",
                       o->batch);
    if (o->part != BJ_PART_ALL && o->part != BJ_PART_FIT && o->part != BJ_PART_DEV)
        return BJ_FAIL(err, BJ_EARG, "loader: part is %d, expected all, fit or dev", (int)o->part);
    return BJ_OK;
}

static void advise(const void *begin, const void *end, uintptr_t page, int advice);

/* Advises the kernel that access is random. Scenes are read in shuffled order, so read-ahead at a
 * page fault would be wasted. The loader prefetches whole batches instead. */
static void expect_jumps(const bj_loader *l) {
    const int64_t last = bj_cache_count(l->cache) - 1;
    advise(bj_cache_floats(l->cache, 0).focal,
           bj_cache_floats(l->cache, last).focal + bj_track_size(&l->arch), l->page, MADV_RANDOM);
}

bj_status bj_loader_create(bj_loader **out, const bj_cache *cache, const bj_loader_options *options,
                           bj_error *err) {
    bj_loader *l;
    bj_status status;
    *out = NULL;
    BJ_TRY(check_options(options, err));
    BJ_TRY(BJ_ALLOC(l, 1, err));
    l->cache = cache;
    l->options = *options;
    l->arch = bj_cache_arch(cache);
    l->epoch = l->asked_epoch = l->asked_step = -1;
    l->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t count = (size_t)bj_cache_count(cache);
    BJ_GOTO(status, fail, BJ_ALLOC(l->members, count, err));
    BJ_GOTO(status, fail, BJ_ALLOC(l->order, count, err));
    BJ_GOTO(status, fail, find_members(l, err));
    l->steps = (l->n + options->batch - 1) / options->batch;
    const size_t room = (size_t)(l->n < options->batch ? l->n : options->batch);
    BJ_GOTO(status, fail, BJ_ALLOC(l->scenes, room, err));
    if (BJ_REAL_IS_DOUBLE)
        BJ_GOTO(status, fail, BJ_ALLOC(l->converted, room * bj_scene_room(&l->arch), err));
    l->batch.scenes = l->scenes;
    if (options->shuffle) expect_jumps(l);
    *out = l;
    return BJ_OK;
fail:
    bj_loader_free(l);
    return status;
}

int64_t bj_loader_scenes(const bj_loader *l) { return l->n; }
int64_t bj_loader_steps(const bj_loader *l) { return l->steps; }

/* ---------------------------------------------------------------------------------------- order */

static void make_order(bj_loader *l, int64_t epoch) {
    char name[48];
    snprintf(name, sizeof name, "loader epoch %lld", (long long)epoch);
    bj_rng rng = bj_rng_named(l->options.seed, name);
    for (int64_t i = 0; i < l->n; i++) l->order[i] = l->members[i];
    for (int64_t i = l->n - 1; i > 0 && l->options.shuffle; i--) {
        const int64_t j = (int64_t)bj_rng_below(&rng, (uint64_t)i + 1), moved = l->order[i];
        l->order[i] = l->order[j];
        l->order[j] = moved;
    }
    l->epoch = epoch;
}

/* -------------------------------------------------------------------------------- reading ahead */

static void advise(const void *begin, const void *end, uintptr_t page, int advice) {
    const uintptr_t from = (uintptr_t)begin / page * page;
    const uintptr_t to = ((uintptr_t)end + page - 1) / page * page;
    /* Ignore errors, because the advice affects only speed. */
    if (to > from) (void)madvise((void *)from, to - from, advice);
}

/* Prefetches a batch. Scenes that are adjacent in the file are requested in one call. */
static void ask_for(bj_loader *l, int64_t step) {
    const int64_t first = step * l->options.batch;
    const int64_t end = first + l->options.batch < l->n ? first + l->options.batch : l->n;
    const float *begin = NULL, *stop = NULL;
    for (int64_t i = first; i < end; i++) {
        const bj_scene_info info = bj_cache_info(l->cache, l->order[i]);
        const float *record = bj_cache_floats(l->cache, l->order[i]).focal;
        const float *record_end = record + bj_track_size(&l->arch) * (size_t)(1 + info.neighbors) +
                                  bj_line_size(&l->arch) * (size_t)info.polylines;
        const int joins = begin && (uintptr_t)record >= (uintptr_t)begin &&
                          (uintptr_t)record <= (uintptr_t)stop + l->page;
        if (begin && !joins) advise(begin, stop, l->page, MADV_WILLNEED);
        if (!joins) begin = record;
        stop = record_end;
    }
    if (begin) advise(begin, stop, l->page, MADV_WILLNEED);
    l->asked_epoch = l->epoch;
    l->asked_step = step;
}

/* ---------------------------------------------------------------------------------------- batch */

void bj_loader_use_pool(bj_loader *l, bj_pool *pool) { l->pool = pool; }

static void check_item(void *context, int item, int worker) {
    const bj_loader *l = context;
    (void)worker;
    (void)!bj_cache_check_scene(l->cache, l->order[l->first + item], NULL);
}

/* Checks the digests of a batch. The workers only mark the scenes that are whole. The loop then
 * examines damaged scenes again and reports the first one, so the message does not depend on the
 * number of threads. */
static bj_status check_batch(bj_loader *l, bj_error *err) {
    int unchecked = 0;
    for (int b = 0; b < l->batch.B; b++)
        unchecked += !bj_cache_is_checked(l->cache, l->order[l->first + b]);
    if (!unchecked) return BJ_OK;
    if (l->pool) bj_pool_run(l->pool, check_item, l, l->batch.B);
    for (int b = 0; b < l->batch.B; b++)
        BJ_TRY(bj_cache_check_scene(l->cache, l->order[l->first + b], err));
    return BJ_OK;
}

bj_status bj_loader_batch(const bj_batch **out, const int64_t **numbers, bj_loader *l,
                          int64_t epoch, int64_t step, bj_error *err) {
    if (epoch < 0)
        return BJ_FAIL(err, BJ_EARG, "loader: epoch is %lld, expected 0 or more", (long long)epoch);
    if (step < 0 || step >= l->steps)
        return BJ_FAIL(err, BJ_EARG, "loader: step is %lld, expected 0 to %lld", (long long)step,
                       (long long)l->steps - 1);
    if (l->epoch != epoch) make_order(l, epoch);
    if (l->asked_epoch != epoch || l->asked_step != step) ask_for(l, step);
    const int64_t first = step * l->options.batch, rest = l->n - first;
    l->batch.B = (int)(rest < l->options.batch ? rest : l->options.batch);
    l->first = first;
    BJ_TRY(check_batch(l, err));
    for (int b = 0; b < l->batch.B; b++) {
        const int64_t index = l->order[first + b];
        bj_real *room = l->converted ? l->converted + (size_t)b * bj_scene_room(&l->arch) : NULL;
        const bj_scene_info info = bj_cache_info(l->cache, index);
        l->scenes[b] = bj_scene_view(room, &l->arch, &info, bj_cache_floats(l->cache, index));
    }
    if (step + 1 < l->steps) ask_for(l, step + 1);
    *out = &l->batch;
    if (numbers) *numbers = l->order + first;
    return BJ_OK;
}

const int64_t *bj_loader_order(bj_loader *l, int64_t epoch) {
    if (l->epoch != epoch) make_order(l, epoch);
    return l->order;
}
