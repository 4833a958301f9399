/* source.c - the source of a run's batches: a cache of scenes, a scene source, or a maze dataset.
 *
 * Only this file, maze_source.c and the evaluation distinguish the three. The loop in train.c uses
 * only batches, a digest of the data and the number of updates per epoch.
 *
 * Scene b of update s of epoch e is at position ((e * steps + s) * batch + b) of a scene source, so
 * no scene is used twice, and a resumed run needs only its number of updates.
 * Test: tests/run/test_train.c, tests/run/test_fresh_train.c, tests/run/test_maze_train.c
 */
#include <stdio.h>
#include <string.h>

#include "core/shards.h"
#include "run/run.h"
#include "run/settings.h"

/* -------------------------------------------------------------------------------------- scenes */

static bj_status open_fit(bj_train_run *r, bj_error *err) {
    const bj_run_options *o = r->options;
    const bj_loader_options fit = {.part = o->dev ? BJ_PART_ALL : BJ_PART_FIT,
                                   .batch = r->settings.batch,
                                   .shuffle = 1,
                                   .seed = r->settings.seed,
                                   .needs_future = 1};
    bj_error detail;
    BJ_TRY(bj_cache_open(&r->cache, o->data, 0, err));
    const bj_status status = bj_loader_create(&r->fit, r->cache, &fit, &detail);
    if (status != BJ_OK)
        return BJ_FAIL(err, status, "%s: no training scenes: %.300s", o->data, detail.message);
    r->steps = bj_loader_steps(r->fit);
    return BJ_OK;
}

/* Opens a scene source. An epoch has train.updates updates. If that setting is 0, the scenes are
 * divided equally among the epochs. */
static bj_status open_source(bj_train_run *r, bj_error *err) {
    const bj_settings *s = &r->settings;
    const char *data = r->options->data;
    const int64_t scenes = r->options->scenes->scenes;
    const int64_t each = (int64_t)s->epochs * s->batch; /* scenes of one update in every epoch */
    r->scenes = r->options->scenes;
    if (!scenes && !s->updates)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the length of an epoch is unknown, "
                       "because neither a number of scenes nor train.updates is given\n"
                       "hint: write %s:SCENES, or add --set train.updates=N",
                       data, data);
    if (scenes && s->updates && scenes != each * s->updates)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: found %lld scenes, expected %lld: "
                       "%d epochs of %d updates (train.updates) of %d scenes each\n"
                       "hint: leave out the number of scenes or train.updates",
                       data, (long long)scenes, (long long)(each * s->updates), s->epochs,
                       s->updates, s->batch);
    r->steps = s->updates ? s->updates : scenes / each;
    if (r->steps < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: found %lld scenes, expected at least %lld, "
                       "which is one update of %d scenes in each of %d epochs",
                       data, (long long)scenes, (long long)each, s->batch, s->epochs);
    return BJ_OK;
}

static bj_status open_dev(bj_train_run *r, bj_error *err) {
    const bj_run_options *o = r->options;
    if (!o->dev && o->scenes) {
        if (!o->dev_scenes || o->dev_scenes->scenes < 1)
            return BJ_FAIL(err, BJ_EARG, "%s: no development scenes are given", o->data);
        r->dev_scenes = o->dev_scenes;
        return BJ_OK;
    }
    if (o->dev) BJ_TRY(bj_cache_open(&r->dev_cache, o->dev, 0, err));
    const bj_loader_options dev = {
        .part = o->dev ? BJ_PART_ALL : BJ_PART_DEV, .batch = BJ_DEVELOP_BATCH, .needs_future = 1};
    bj_error detail;
    const bj_status status =
        bj_loader_create(&r->dev, o->dev ? r->dev_cache : r->cache, &dev, &detail);
    if (status != BJ_OK)
        return BJ_FAIL(
            err, status,
            "%s: no development scenes: %.250s\nhint: name a cache with --dev",
            o->dev ? o->dev : o->data, detail.message);
    return BJ_OK;
}

/* Takes the scene sizes from the data and the model sizes from the settings. */
static bj_status fit_arch(bj_train_run *r, bj_error *err) {
    const bj_arch scenes = r->scenes ? r->scenes->arch : bj_cache_arch(r->cache);
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
    if (r->options->scenes)
        return BJ_FAIL(err, BJ_EARG, "%s: found scenes, expected a maze dataset for arm %s",
                       r->options->data, s->arm);
    if (r->options->dev)
        return BJ_FAIL(
            err, BJ_EARG,
            "%s: arm %s is evaluated on the graph of its maze, so development data is not allowed",
            r->options->dev, s->arm);
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
    if (r->options->scenes) BJ_TRY(open_source(r, err));
    else BJ_TRY(open_fit(r, err));
    BJ_TRY(open_dev(r, err));
    return fit_arch(r, err);
}

void bj_run_close_data(bj_train_run *r) {
    bj_loader_free(r->dev);
    bj_loader_free(r->fit);
    bj_cache_free(r->dev_cache);
    bj_cache_free(r->cache);
    bj_maze_source_free(r->maze);
}

static bj_status read_batch(bj_batch *batch, const int64_t **numbers, const bj_scene_source *from,
                            int64_t first, int count, bj_error *err) {
    *batch = (bj_batch){.B = count};
    return from->read(&batch->scenes, numbers, from->context, first, count, err);
}

bj_status bj_run_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                       int64_t epoch, int64_t step, bj_error *err) {
    const int batch = r->settings.batch;
    if (!r->maze && !r->scenes) return bj_loader_batch(out, numbers, r->fit, epoch, step, err);
    *out = &r->made;
    if (r->scenes)
        return read_batch(&r->made, numbers, r->scenes, (epoch * r->steps + step) * batch, batch,
                          err);
    r->made = bj_maze_source_batch(numbers, r->maze, epoch, step);
    return BJ_OK;
}

int64_t bj_run_dev_steps(const bj_train_run *r) {
    if (!r->dev_scenes) return bj_loader_steps(r->dev);
    return (r->dev_scenes->scenes + BJ_DEVELOP_BATCH - 1) / BJ_DEVELOP_BATCH;
}

bj_status bj_run_dev_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                           int64_t step, bj_error *err) {
    if (!r->dev_scenes) return bj_loader_batch(out, numbers, r->dev, 0, step, err);
    const int64_t first = step * BJ_DEVELOP_BATCH, rest = r->dev_scenes->scenes - first;
    *out = &r->dev_made;
    return read_batch(&r->dev_made, numbers, r->dev_scenes, first,
                      rest < BJ_DEVELOP_BATCH ? (int)rest : BJ_DEVELOP_BATCH, err);
}

void bj_run_scene_id(char id[BJ_RUN_ID], const bj_train_run *r, int dev, int64_t number) {
    const bj_scene_source *source = dev ? r->dev_scenes : r->scenes;
    const bj_cache *cache = dev && r->dev_cache ? r->dev_cache : r->cache;
    if (source) source->id(id, source->context, number);
    else snprintf(id, BJ_RUN_ID, "%s", bj_cache_info(cache, number).scenario_id);
}

const char *bj_run_data_digest(const bj_train_run *r) {
    return r->maze ? r->maze->digest : r->scenes ? r->scenes->digest : bj_cache_digest(r->cache);
}

int64_t bj_run_fit_count(const bj_train_run *r) {
    if (r->scenes) return r->settings.epochs * r->steps * r->settings.batch;
    return r->maze ? bj_transitions_count(r->maze->transitions) : bj_loader_scenes(r->fit);
}

int64_t bj_run_dev_count(const bj_train_run *r) {
    if (r->dev_scenes) return r->dev_scenes->scenes;
    return r->maze ? r->maze->maze->cells : bj_loader_scenes(r->dev);
}
