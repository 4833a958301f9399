/* locked_pass.c - see locked_pass.h. */
#include "campaign/locked_pass.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

void bj_locked_results_reset(bj_locked_results *r) {
    for (int i = 0; i < r->count; i++) {
        if (r->of) bj_free(r->of[i].groups);
        if (r->evaluators) bj_evaluator_free(r->evaluators[i]);
    }
    bj_free(r->of);
    bj_free(r->evaluators);
    bj_cache_free(r->cache);
    *r = (bj_locked_results){0};
}

/* ------------------------------------------------------------------------------------- loading */

static bj_status load(bj_evaluator **out, int *atoms, char isa_used[32], const bj_arch *scenes,
                      const char *folder, int threads, const char *isa, bj_error *err) {
    const bj_evaluator_options options = {.max_batch = BJ_LOCK_BATCH,
                                          .threads = threads,
                                          .precision = BJ_PRECISION_FULL,
                                          .isa = isa,
                                          .grouped = 1};
    const bj_predictor_options asked = {.max_batch = 1, .threads = 1, .isa = isa};
    char path[BJ_FOLDER_PATH];
    bj_model *model = NULL;
    bj_target *target = NULL;
    bj_predictor *predictor = NULL;
    bj_status status;
    BJ_TRY(bj_lock_path(path, folder, BJ_CHECKPOINT_MODEL, err));
    BJ_GOTO(status, done, bj_model_load(&model, path, err));
    BJ_GOTO(status, done, bj_arch_fits(bj_model_arch(model), scenes, err));
    BJ_GOTO(status, done, bj_target_load(&target, folder, err));
    BJ_GOTO(status, done, bj_evaluator_create(out, model, target, &options, err));
    *atoms = bj_model_arch(model)->atoms;
    if (*isa_used) goto done;
    BJ_GOTO(status, done, bj_predictor_create(&predictor, model, &asked, err));
    snprintf(isa_used, 32, "%s", bj_predictor_isa(predictor));
done:
    bj_predictor_free(predictor);
    bj_target_free(target);
    bj_model_free(model);
    return status;
}

static bj_status load_all(bj_locked_results *r, const bj_lock *lock, const char *dir, int threads,
                          const char *isa, bj_error *err) {
    const bj_arch scenes = bj_cache_arch(r->cache);
    int evaluated = 0;
    for (int i = 0; i < lock->count; i++) evaluated += lock->runs[i].evaluated;
    BJ_TRY(BJ_ALLOC(r->of, (size_t)evaluated, err));
    BJ_TRY(BJ_ALLOC(r->evaluators, (size_t)evaluated, err));
    r->count = evaluated;
    for (int i = 0, at = 0; i < lock->count; i++) {
        const bj_lock_run *run = &lock->runs[i];
        char folder[BJ_FOLDER_PATH], inside[BJ_RUN_PATH_SIZE + 16];
        if (!run->evaluated) continue;
        r->of[at].arm = run->arm;
        r->of[at].seed = run->seed;
        snprintf(inside, sizeof inside, "%s/ckpt/best", run->dir);
        BJ_TRY(bj_lock_path(folder, dir, inside, err));
        BJ_TRY(
            load(&r->evaluators[at], &r->of[at].atoms, r->isa, &scenes, folder, threads, isa, err));
        at++;
    }
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- pass */

static bj_status stream(bj_locked_results *r, bj_loader *loader, const bj_locked_watch *watch,
                        bj_error *err) {
    const int64_t total = bj_loader_scenes(loader);
    bj_scene_info infos[BJ_LOCK_BATCH];
    for (int64_t step = 0; step < bj_loader_steps(loader); step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        BJ_TRY(bj_loader_batch(&batch, &numbers, loader, 0, step, err));
        for (int b = 0; b < batch->B; b++) infos[b] = bj_cache_info(r->cache, numbers[b]);
        for (int i = 0; i < r->count; i++)
            BJ_TRY(bj_evaluator_add(r->evaluators[i], batch, infos, err));
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

static bj_status run(bj_locked_results *r, const bj_lock *lock, const char *dir, int threads,
                     const char *isa, const bj_locked_watch *watch, bj_error *err) {
    const bj_loader_options order = {
        .part = BJ_PART_ALL, .batch = BJ_LOCK_BATCH, .needs_future = 1};
    bj_loader *loader = NULL;
    bj_status status;
    BJ_TRY(bj_cache_open(&r->cache, lock->data, 0, err));
    if (strcmp(bj_cache_digest(r->cache), lock->data_digest) ||
        bj_cache_count(r->cache) != lock->scenes)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the digest is %.16s..., but the lock contains %.16s...",
                       lock->data, bj_cache_digest(r->cache), lock->data_digest);
    BJ_GOTO(status, done, load_all(r, lock, dir, threads, isa, err));
    BJ_GOTO(status, done, bj_loader_create(&loader, r->cache, &order, err));
    BJ_GOTO(status, done, stream(r, loader, watch, err));
    if (r->scenes != lock->scenes) {
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s: %lld scenes were evaluated, but the lock requires %lld",
                         lock->data, (long long)r->scenes, (long long)lock->scenes);
        goto done;
    }
    for (int i = 0; i < r->count; i++)
        BJ_GOTO(status, done, collect(&r->of[i], r->evaluators[i], err));
done:
    bj_loader_free(loader);
    return status;
}

bj_status bj_locked_pass(bj_locked_results *results, const bj_lock *lock, const char *dir,
                         int threads, const char *isa, const bj_locked_watch *watch,
                         bj_error *err) {
    *results = (bj_locked_results){0};
    const bj_status status = run(results, lock, dir, threads, isa, watch, err);
    if (status != BJ_OK) bj_locked_results_reset(results);
    return status;
}
