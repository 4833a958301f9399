/* submit.c - writes a model's forecasts for all scenes of a cache as a challenge submission.
 *
 *   weights      p_k = w_k / sum_l w_l in double, because the sum of a softmax in single precision
 *                differs from one by about 1e-7
 *   trajectories the network's points, transformed from the scene's frame to the city's, in double
 *
 * All K branches are written in network order. The futures in the cache are not read.
 * Tests: tests/eval/test_submit.c, tests/eval/peer_score.py
 */
#include "core/alloc.h"
#include "core/status.h"

enum { BATCH = 64, F = BJ_SUBMISSION_STEPS };

typedef struct job {
    const bj_cache *cache;
    bj_loader *loader;
    bj_predictor *predictor;
    bj_submission_writer *writer;
    bj_real *weights, *trajectories; /* (BATCH,K), (BATCH,K,F,2) */
    double *p, *y, *city;            /* (K), (K,F,2), (K,F,2) of one scene */
    int K;
} job;

static void job_free(job *j) {
    bj_loader_free(j->loader);
    bj_predictor_free(j->predictor);
    bj_submission_writer_abort(&j->writer);
    bj_free(j->weights);
    bj_free(j->trajectories);
    bj_free(j->p);
    bj_free(j->y);
    bj_free(j->city);
}

static bj_status check_sizes(const bj_arch *m, const bj_cache *cache, bj_error *err) {
    const bj_arch scenes = bj_cache_arch(cache);
    BJ_TRY(bj_arch_fits(m, &scenes, err));
    if (m->fut != F)
        return BJ_FAIL(err, BJ_EFORMAT, "the model predicts %d steps, but a submission needs %d",
                       m->fut, F);
    return BJ_OK;
}

static bj_status start(job *j, const char *path, const bj_model *model,
                       const bj_submit_options *options, bj_error *err) {
    const bj_loader_options order = {.part = BJ_PART_ALL, .batch = BATCH};
    bj_predictor_options how = {.max_batch = BATCH};
    if (options) {
        how.threads = options->threads;
        how.precision = options->precision;
        how.isa = options->isa;
    }
    j->K = bj_model_arch(model)->atoms;
    const size_t K = (size_t)j->K;
    BJ_TRY(check_sizes(bj_model_arch(model), j->cache, err));
    BJ_TRY(bj_loader_create(&j->loader, j->cache, &order, err));
    BJ_TRY(bj_predictor_create(&j->predictor, model, &how, err));
    BJ_TRY(BJ_ALLOC(j->weights, BATCH * K, err));
    BJ_TRY(BJ_ALLOC(j->trajectories, BATCH * K * 2 * F, err));
    BJ_TRY(BJ_ALLOC(j->p, K, err));
    BJ_TRY(BJ_ALLOC(j->y, K * 2 * F, err));
    BJ_TRY(BJ_ALLOC(j->city, K * 2 * F, err));
    return bj_submission_writer_create(&j->writer, path, err);
}

static bj_status add_scene(job *j, int64_t number, size_t b, bj_error *err) {
    const bj_scene_info info = bj_cache_info(j->cache, number);
    const size_t K = (size_t)j->K;
    double sum = 0;
    for (size_t k = 0; k < K; k++) sum += j->weights[b * K + k];
    for (size_t k = 0; k < K; k++) j->p[k] = j->weights[b * K + k] / sum;
    for (size_t i = 0; i < K * 2 * F; i++) j->y[i] = j->trajectories[b * K * 2 * F + i];
    bj_to_city(j->city, j->y, j->K * F, info.origin, info.heading);
    return bj_submission_writer_add(j->writer, info.scenario_id, info.focal_id, j->K, j->p, j->city,
                                    err);
}

static bj_status run(job *j, int64_t *scenes, const bj_submit_options *options, bj_error *err) {
    const int64_t steps = bj_loader_steps(j->loader), total = bj_loader_scenes(j->loader);
    int64_t done = 0;
    for (int64_t step = 0; step < steps; step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        BJ_TRY(bj_loader_batch(&batch, &numbers, j->loader, 0, step, err));
        BJ_TRY(bj_predict(j->predictor, batch, j->weights, j->trajectories, NULL, err));
        for (int b = 0; b < batch->B; b++) BJ_TRY(add_scene(j, numbers[b], (size_t)b, err));
        done += batch->B;
        if (options && options->progress && options->progress(options->context, done, total))
            return BJ_OK; /* the unfinished file is discarded */
    }
    BJ_TRY(bj_submission_writer_commit(&j->writer, err));
    *scenes = done;
    return BJ_OK;
}

bj_status bj_submit(int64_t *scenes, const char *path, const bj_model *model, const bj_cache *cache,
                    const bj_submit_options *options, bj_error *err) {
    int64_t ignored;
    job j = {.cache = cache};
    if (!path || !model || !cache)
        return BJ_FAIL(err, BJ_EARG, "submit: path, model or cache is missing");
    if (!scenes) scenes = &ignored;
    *scenes = 0;
    bj_status status = start(&j, path, model, options, err);
    if (status == BJ_OK) status = run(&j, scenes, options, err);
    job_free(&j);
    return status;
}
