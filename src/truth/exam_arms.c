/* exam_arms.c - forecasters for an exam: models, and baselines that need no model. */
#include "core/alloc.h"
#include "core/status.h"
#include "rules/rules.h"
#include "truth/exam_sum.h"

enum { BLOCK = BJ_EXAM_BLOCK, ROW = BJ_EXAM_ROW };

/* --------------------------------------------------------------------------------------- model */

typedef struct model_arm {
    bj_loader *loader;
    bj_predictor *predictor;
    bj_real *weights, *trajectories; /* (BLOCK,K), (BLOCK,K,ROW) */
    int K;
} model_arm;

static bj_status model_start(model_arm *arm, const bj_exam *exam, const bj_model *model,
                             bj_error *err) {
    const bj_loader_options order = {.part = BJ_PART_ALL, .batch = BLOCK};
    const bj_predictor_options how = {.max_batch = BLOCK, .threads = bj_exam_threads(exam)};
    arm->K = bj_model_arch(model)->atoms;
    const size_t K = (size_t)arm->K;
    const bj_arch scenes = bj_cache_arch(bj_exam_cache(exam));
    BJ_TRY(bj_arch_fits(bj_model_arch(model), &scenes, err));
    BJ_TRY(bj_loader_create(&arm->loader, bj_exam_cache(exam), &order, err));
    BJ_TRY(bj_predictor_create(&arm->predictor, model, &how, err));
    BJ_TRY(BJ_ALLOC(arm->weights, BLOCK * K, err));
    return BJ_ALLOC(arm->trajectories, BLOCK * K * ROW, err);
}

static bj_status model_forecast(void *context, double *weights, double *trajectories, int64_t first,
                                int count, bj_error *err) {
    model_arm *arm = context;
    const bj_batch *batch;
    const size_t K = (size_t)arm->K, n = (size_t)count;
    BJ_TRY(bj_loader_batch(&batch, NULL, arm->loader, 0, first / BLOCK, err));
    BJ_TRY(bj_predict(arm->predictor, batch, arm->weights, arm->trajectories, NULL, err));
    for (size_t i = 0; i < n * K; i++) weights[i] = (double)arm->weights[i];
    for (size_t i = 0; i < n * K * ROW; i++) trajectories[i] = (double)arm->trajectories[i];
    return BJ_OK;
}

bj_status bj_exam_model(bj_exam_report *report, bj_exam *exam, const bj_model *model,
                        bj_error *err) {
    model_arm arm = {0};
    if (!exam || !model) return BJ_FAIL(err, BJ_EARG, "exam: exam or model is missing");
    if (!bj_exam_cache(exam)) return BJ_FAIL(err, BJ_EARG, "exam: a model needs a cache");
    bj_status status = model_start(&arm, exam, model, err);
    if (status == BJ_OK) status = bj_exam_run(report, exam, arm.K, model_forecast, &arm, err);
    bj_loader_free(arm.loader);
    bj_predictor_free(arm.predictor);
    bj_free(arm.weights);
    bj_free(arm.trajectories);
    return status;
}

/* ----------------------------------------------------------------------------------- baselines */

typedef struct baseline_arm {
    const bj_exam *exam;
    int K;
} baseline_arm;

static bj_status velocity_forecast(void *context, double *weights, double *trajectories,
                                   int64_t first, int count, bj_error *err) {
    const bj_exam *exam = ((const baseline_arm *)context)->exam;
    if (!bj_exam_truth(exam))
        return BJ_FAIL(err, BJ_EARG, "exam: the constant-velocity baseline needs the scene data");
    for (int b = 0; b < count; b++, trajectories += ROW) {
        bj_truth_scene scene;
        bj_exam_known(&scene, exam, first + b);
        weights[b] = 1;
        bj_rule_velocity(trajectories, scene.velocity);
    }
    return BJ_OK;
}

static bj_status modes_forecast(void *context, double *weights, double *trajectories, int64_t first,
                                int count, bj_error *err) {
    const baseline_arm *arm = context;
    (void)err;
    for (int b = 0; b < count; b++, weights += arm->K, trajectories += (size_t)arm->K * ROW) {
        const bj_law_scene law = bj_exam_law(arm->exam, first + b);
        bj_exam_truncate(weights, trajectories, arm->K, &law);
    }
    return BJ_OK;
}

static const struct {
    const char *name;
    bj_forecaster forecast;
    int one; /* 1 if the baseline has a single atom regardless of K */
} baselines[BJ_BASELINES] = {{"constant-velocity", velocity_forecast, 1},
                             {"true-modes", modes_forecast, 0}};

const char *bj_baseline_name(bj_baseline baseline) {
    return (unsigned)baseline < BJ_BASELINES ? baselines[baseline].name : NULL;
}

bj_status bj_exam_baseline(bj_exam_report *report, bj_exam *exam, bj_baseline baseline, int K,
                           bj_error *err) {
    if (!bj_baseline_name(baseline))
        return BJ_FAIL(err, BJ_EARG, "exam: baseline %d, expected 0 to %d", (int)baseline,
                       BJ_BASELINES - 1);
    if (baselines[baseline].one) K = 1;
    baseline_arm arm = {exam, K};
    return bj_exam_run(report, exam, K, baselines[baseline].forecast, &arm, err);
}
