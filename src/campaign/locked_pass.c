/* locked_pass.c - see locked_pass.h. */
#include "campaign/locked_pass.h"

#include <stdio.h>
#include <string.h>

#include "campaign/locked_check.h"
#include "campaign/locked_map.h"
#include "core/alloc.h"
#include "data/cache.h"
#include "run/load.h"

static const size_t max_checkpoint = (size_t)1 << 40;

void bj_locked_results_reset(bj_locked_results *r) {
    for (int i = 0; i < r->count; i++) {
        if (r->of) bj_free(r->of[i].groups);
        if (r->evaluators) bj_evaluator_free(r->evaluators[i]);
    }
    bj_free(r->of);
    bj_free(r->evaluators);
    bj_cache_free(r->cache);
    bj_file_map_close(&r->data);
    *r = (bj_locked_results){0};
}

/* ------------------------------------------------------------------------------------- loading */

/* Both files of a checkpoint, in memory. */
typedef struct checkpoint {
    char *bytes[2]; /* BJ_LOCK_MODEL, BJ_LOCK_STATE */
    bj_safetensors *file[2];
    bj_model *model;
    bj_target *target;
} checkpoint;

static void checkpoint_reset(checkpoint *c) {
    bj_target_free(c->target);
    bj_model_free(c->model);
    for (int i = 0; i < 2; i++) {
        bj_safetensors_close(c->file[i]);
        bj_free(c->bytes[i]);
    }
}

static bj_status changed(const bj_lock_run *run, const char *path, const char *hex,
                         const char *locked, bj_error *err) {
    return BJ_FAIL(
        err, BJ_EMISMATCH,
        "%s (%s, seed %lld): the file was changed: its SHA-256 is %.16s..., but lock.json has "
        "%.16s...",
        path, run->arm, (long long)run->seed, hex, locked);
}

/* Reads the files, compares them with the lock and loads the model from the compared bytes. */
static bj_status checkpoint_read(checkpoint *c, const bj_lock_run *run, const bj_campaign_run *from,
                                 bj_error *err) {
    for (int i = 0; i < 2; i++) {
        char path[BJ_FOLDER_PATH], hex[BJ_SHA256_HEX];
        size_t size;
        BJ_TRY(bj_lock_path(path, from->dir, bj_lock_run_files[i], err));
        BJ_TRY(bj_file_read(&c->bytes[i], &size, path, max_checkpoint, err));
        bj_sha256_memory(hex, c->bytes[i], size);
        if (strcmp(hex, run->sha256[i])) return changed(run, path, hex, run->sha256[i], err);
        BJ_TRY(bj_safetensors_open_memory(&c->file[i], c->bytes[i], size, path, err));
    }
    const bj_status status =
        bj_lock_check_facts(run, from->settings, from->data_digest, c->file[BJ_LOCK_MODEL], err);
    if (status != BJ_OK) return status == BJ_ELOCKED ? BJ_EMISMATCH : status;
    return bj_run_load(&c->model, &c->target, c->file[BJ_LOCK_MODEL], c->file[BJ_LOCK_STATE], err);
}

static bj_status load(bj_evaluator **out, int *atoms, char isa_used[32], const bj_arch *scenes,
                      const checkpoint *c, int threads, const char *isa, bj_error *err) {
    const bj_evaluator_options options = {.max_batch = BJ_LOCK_BATCH,
                                          .threads = threads,
                                          .precision = BJ_PRECISION_FULL,
                                          .isa = isa,
                                          .grouped = 1};
    const bj_predictor_options asked = {.max_batch = 1, .threads = 1, .isa = isa};
    bj_predictor *predictor;
    BJ_TRY(bj_arch_fits(bj_model_arch(c->model), scenes, err));
    BJ_TRY(bj_evaluator_create(out, c->model, c->target, &options, err));
    *atoms = bj_model_arch(c->model)->atoms;
    if (*isa_used) return BJ_OK;
    BJ_TRY(bj_predictor_create(&predictor, c->model, &asked, err));
    snprintf(isa_used, 32, "%s", bj_predictor_isa(predictor));
    bj_predictor_free(predictor);
    return BJ_OK;
}

static bj_status load_all(bj_locked_results *r, const bj_lock *lock, const bj_campaign *campaign,
                          int threads, const char *isa, bj_error *err) {
    const bj_arch scenes = bj_cache_arch(r->cache);
    const int evaluated = bj_lock_evaluated(lock);
    BJ_TRY(BJ_ALLOC(r->of, (size_t)evaluated, err));
    BJ_TRY(BJ_ALLOC(r->evaluators, (size_t)evaluated, err));
    r->count = evaluated;
    for (int i = 0, at = 0; i < lock->count; i++) {
        const bj_lock_run *run = &lock->runs[i];
        const bj_campaign_run from = bj_campaign_run_at(campaign, i);
        checkpoint c = {0};
        if (!run->evaluated) continue;
        r->of[at].arm = run->arm;
        r->of[at].seed = run->seed;
        bj_status status = checkpoint_read(&c, run, &from, err);
        if (status == BJ_OK)
            status =
                load(&r->evaluators[at], &r->of[at].atoms, r->isa, &scenes, &c, threads, isa, err);
        checkpoint_reset(&c);
        BJ_TRY(status);
        at++;
    }
    return BJ_OK;
}

/* Maps the cache, compares its bytes with the lock and opens the compared bytes. */
static bj_status open_data(bj_locked_results *r, const bj_lock *lock, bj_error *err) {
    char hex[BJ_SHA256_HEX];
    BJ_TRY(bj_file_map_open(&r->data, lock->data, SIZE_MAX, err));
    bj_sha256_memory(hex, r->data.data, r->data.size);
    if (strcmp(hex, lock->data_sha256))
        return BJ_FAIL(
            err, BJ_EMISMATCH,
            "%s (held-out data): the file was changed: its SHA-256 is %.16s..., but lock.json has "
            "%.16s...",
            lock->data, hex, lock->data_sha256);
    BJ_TRY(bj_cache_open_memory(&r->cache, r->data.data, r->data.size, lock->data, 0, err));
    if (strcmp(bj_cache_digest(r->cache), lock->data_digest) ||
        bj_cache_count(r->cache) != lock->scenes)
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: its digest is %.16s..., but lock.json has %.16s...",
                       lock->data, bj_cache_digest(r->cache), lock->data_digest);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- pass */

static bj_status stream(bj_locked_results *r, bj_loader *loader, bj_locked_map *map,
                        const bj_locked_watch *watch, bj_error *err) {
    const int64_t total = bj_loader_scenes(loader);
    bj_scene_info infos[BJ_LOCK_BATCH];
    for (int64_t step = 0; step < bj_loader_steps(loader); step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        BJ_TRY(bj_loader_batch(&batch, &numbers, loader, 0, step, err));
        for (int b = 0; b < batch->B; b++) infos[b] = bj_cache_info(r->cache, numbers[b]);
        for (int i = 0; i < r->count; i++)
            BJ_TRY(bj_evaluator_add(r->evaluators[i], batch, infos, err));
        if (map) BJ_TRY(bj_locked_map_add(map, infos, batch->B, err));
        r->scenes += batch->B;
        if (watch->tell && watch->tell(watch->context, "evaluate", r->scenes, total))
            return BJ_FAIL(err, BJ_ELOCKED, "stopped; nothing was written");
    }
    return BJ_OK;
}

static bj_status collect(bj_locked_result *out, const bj_evaluator *evaluator, bj_error *err) {
    const int groups = bj_evaluator_groups(evaluator);
    out->values = bj_evaluator_values(evaluator);
    bj_evaluator_usage(out->usage, evaluator);
    bj_evaluator_calibration(out->bins, evaluator);
    BJ_TRY(BJ_ALLOC(out->groups, (size_t)groups, err));
    for (int i = 0; i < groups; i++) out->groups[i] = bj_evaluator_group_at(evaluator, i);
    out->group_count = groups;
    return BJ_OK;
}

static bj_status time_all(bj_locked_results *r, bj_loader *loader, bj_error *err) {
    const bj_batch *batch;
    BJ_TRY(bj_loader_batch(&batch, NULL, loader, 0, 0, err));
    return bj_locked_latency(r, batch, err);
}

static bj_status run(bj_locked_results *r, const bj_lock *lock, const bj_campaign *campaign,
                     int threads, const char *isa, int timed, const bj_locked_watch *watch,
                     bj_error *err) {
    const bj_loader_options order = {
        .part = BJ_PART_ALL, .batch = BJ_LOCK_BATCH, .needs_future = 1};
    bj_loader *loader = NULL;
    bj_locked_map *map = NULL;
    bj_status status;
    BJ_TRY(open_data(r, lock, err));
    BJ_TRY(load_all(r, lock, campaign, threads, isa, err));
    BJ_GOTO(status, done, bj_loader_create(&loader, r->cache, &order, err));
    if (lock->schema > 1) BJ_GOTO(status, done, bj_locked_map_create(&map, r, threads, err));
    BJ_GOTO(status, done, stream(r, loader, map, watch, err));
    if (r->scenes != lock->scenes) {
        status =
            BJ_FAIL(err, BJ_EMISMATCH, "%s: %lld scenes were evaluated, but the lock requires %lld",
                    lock->data, (long long)r->scenes, (long long)lock->scenes);
        goto done;
    }
    for (int i = 0; i < r->count; i++)
        BJ_GOTO(status, done, collect(&r->of[i], r->evaluators[i], err));
    if (map) bj_locked_map_finish(r, map);
    if (timed) status = time_all(r, loader, err);
done:
    bj_locked_map_free(map);
    bj_loader_free(loader);
    return status;
}

bj_status bj_locked_pass(bj_locked_results *results, const bj_lock *lock,
                         const bj_campaign *campaign, int threads, const char *isa, int timed,
                         const bj_locked_watch *watch, bj_error *err) {
    *results = (bj_locked_results){0};
    const bj_status status = run(results, lock, campaign, threads, isa, timed, watch, err);
    if (status != BJ_OK) bj_locked_results_reset(results);
    return status;
}
