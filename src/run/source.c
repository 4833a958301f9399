/* source.c - where the batches of a run come from: a cache of scenes, or a maze's dataset.
 *
 * Everything that differs between the two is here, in maze_source.c and in the evaluation; the loop
 * of train.c knows batches, a digest of the data and how many updates an epoch has.
 * Test: tests/run/test_train.c, tests/run/test_maze_train.c
 */
#include <string.h>

#include "core/shards.h"
#include "run/run.h"
#include "run/settings.h"

/* -------------------------------------------------------------------------------------- scenes */

static bj_status open_scenes(bj_train_run *r, bj_error *err) {
    const bj_run_options *o = r->options;
    BJ_TRY(bj_cache_open(&r->cache, o->data, 0, err));
    if (o->dev) BJ_TRY(bj_cache_open(&r->dev_cache, o->dev, 0, err));
    const bj_loader_options fit = {.part = o->dev ? BJ_PART_ALL : BJ_PART_FIT,
                                   .batch = r->settings.batch,
                                   .shuffle = 1,
                                   .seed = r->settings.seed,
                                   .needs_future = 1};
    const bj_loader_options dev = {
        .part = o->dev ? BJ_PART_ALL : BJ_PART_DEV, .batch = BJ_DEVELOP_BATCH, .needs_future = 1};
    bj_error detail;
    bj_status status = bj_loader_create(&r->fit, r->cache, &fit, &detail);
    if (status != BJ_OK)
        return BJ_FAIL(err, status, "%s: nothing to train on: %.300s", o->data, detail.message);
    status = bj_loader_create(&r->dev, o->dev ? r->dev_cache : r->cache, &dev, &detail);
    if (status != BJ_OK)
        return BJ_FAIL(
            err, status,
            "%s: nothing to choose a checkpoint by: %.250s; name a cache for development",
            o->dev ? o->dev : o->data, detail.message);
    r->steps = bj_loader_steps(r->fit);
    return BJ_OK;
}

/* Sizes of scenes are the data's; those of the model the settings'. */
static bj_status fit_arch(bj_train_run *r, bj_error *err) {
    const bj_arch scenes = bj_cache_arch(r->cache);
    bj_arch *arch = &r->arch;
    *arch = r->settings.arch;
    arch->obs = scenes.obs;
    arch->fut = scenes.fut;
    arch->neighbors = scenes.neighbors;
    arch->polylines = scenes.polylines;
    arch->points = scenes.points;
    arch->dt = scenes.dt;
    if (r->dev_cache) {
        const bj_arch dev = bj_cache_arch(r->dev_cache);
        BJ_TRY(bj_arch_fits(arch, &dev, err));
    }
    return bj_arch_check(arch, err);
}

/* --------------------------------------------------------------------------------------- mazes */

static bj_status open_maze(bj_train_run *r, bj_error *err) {
    const bj_settings *s = &r->settings;
    if (r->options->dev)
        return BJ_FAIL(err, BJ_EARG, "%s: arm %s is judged by the graph of its maze, expected no "
                       "other data for development", r->options->dev, s->arm);
    if (s->updates < 1)
        return BJ_FAIL(err, BJ_EARG, "train.updates is %d, expected at least 1", s->updates);
    BJ_TRY(bj_maze_source_open(&r->maze, r->options->data, r->options->maze, s, err));
    r->steps = s->updates;
    r->arch = s->arch;
    bj_maze_source_fit(&r->arch, r->maze);
    return bj_arch_check(&r->arch, err);
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_run_open_data(bj_train_run *r, bj_error *err) {
    const int arm = bj_arm_find(r->settings.arm);
    if (arm >= 0 && bj_arm_row(arm)->maze) return open_maze(r, err);
    BJ_TRY(open_scenes(r, err));
    return fit_arch(r, err);
}

void bj_run_close_data(bj_train_run *r) {
    bj_loader_free(r->dev);
    bj_loader_free(r->fit);
    bj_cache_free(r->dev_cache);
    bj_cache_free(r->cache);
    bj_maze_source_free(r->maze);
}

bj_status bj_run_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                       int64_t epoch, int64_t step, bj_error *err) {
    if (!r->maze) return bj_loader_batch(out, numbers, r->fit, epoch, step, err);
    r->maze_batch = bj_maze_source_batch(numbers, r->maze, epoch, step);
    *out = &r->maze_batch;
    return BJ_OK;
}

const char *bj_run_data_digest(const bj_train_run *r) {
    return r->maze ? r->maze->digest : bj_cache_digest(r->cache);
}

int64_t bj_run_fit_count(const bj_train_run *r) {
    return r->maze ? bj_transitions_count(r->maze->transitions) : bj_loader_scenes(r->fit);
}

int64_t bj_run_dev_count(const bj_train_run *r) {
    return r->maze ? r->maze->maze->cells : bj_loader_scenes(r->dev);
}
