/* exam.c - measures forecasters on scenes with known laws: bj_exam_*.
 *
 * Scenes are processed in blocks. The forecaster fills a block, the
 * workers measure its scenes, and the caller adds the results in order.
 * The values of a scene depend only on its id, its forecast and the seed.
 *
 * Invariants
 *   1. Every scene of the exam has a law with the same id and the same frame (match). Without data,
 *      the scenes are those of the law file.
 *   2. No value depends on the number of threads or on the other scenes.
 *   3. The best atoms for a given K are computed once and shared by all forecasters with that K.
 * Tests  tests/truth/test_exam.c, tests/cli/truth.sh
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/threads.h"
#include "truth/exam.h"
#include "truth/exam_sum.h"

enum { BLOCK = BJ_EXAM_BLOCK, ROW = BJ_EXAM_ROW };

struct bj_exam {
    const bj_cache *cache; /* if NULL, models cannot be measured */
    const bj_truth *truth; /* if NULL, only the law file is used */
    bj_truth *own_truth;   /* NULL if `truth` is borrowed */
    const bj_law *law;
    bj_exam_options options;
    int64_t scenes, *law_of; /* (scenes) indices in the law file */
    int most_modes, best_scenes;
    bj_pool *pool;
    double **work;                     /* (threads) */
    size_t work_size;                  /* number of doubles */
    bj_moment *best[BJ_MAX_ATOMS + 1]; /* per K: (best_scenes) discrepancies, or NULL */
};

/* ------------------------------------------------------------------------------------- creation */

static bj_status check_options(const bj_exam_options *o, bj_error *err) {
    if (o->samples < BJ_EXAM_SAMPLES_MIN || o->samples > BJ_EXAM_SAMPLES_MAX ||
        o->samples % BJ_EXAM_GROUP)
        return BJ_FAIL(err, BJ_EARG,
                       "exam: the number of samples is %d, expected a multiple of %d from %d to %d",
                       o->samples, BJ_EXAM_GROUP, BJ_EXAM_SAMPLES_MIN, BJ_EXAM_SAMPLES_MAX);
    if (o->limit < 0 || o->best_scenes < 0)
        return BJ_FAIL(err, BJ_EARG,
                       "exam: limit is %lld and best_scenes is %d, expected at least 0",
                       (long long)o->limit, o->best_scenes);
    return BJ_OK;
}

static int same(double a, double b) { return fabs(a - b) <= 1e-6; }

static int64_t count_scenes(const bj_exam *exam) {
    return exam->truth ? bj_truth_count(exam->truth) : bj_law_count(exam->law);
}

/* Finds the law of every scene, even for scenes past the limit. */
static bj_status match(bj_exam *exam, bj_error *err) {
    const int64_t count = count_scenes(exam);
    for (int64_t i = 0; i < count; i++) {
        bj_truth_scene scene;
        bj_exam_known(&scene, exam, i);
        if (scene.failure) return BJ_FAIL(err, BJ_EFORMAT, "%s", scene.failure);
        const int64_t at = bj_law_find(exam->law, scene.scenario_id);
        if (at < 0)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "scene %s of the data (%lld scenes) is not in the distribution file; "
                           "the file (%lld scenes, seed %s, split %s) describes another world",
                           scene.scenario_id, (long long)count, (long long)bj_law_count(exam->law),
                           bj_law_fact(exam->law, "seed"), bj_law_fact(exam->law, "split"));
        const bj_law_scene law = bj_law_at(exam->law, at);
        if (!same(law.origin[0], scene.origin[0]) || !same(law.origin[1], scene.origin[1]) ||
            !same(law.heading, scene.heading))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "scene %s: the frame is (%.6f, %.6f, %.6f) in the data, "
                           "but (%.6f, %.6f, %.6f) in the distribution file",
                           scene.scenario_id, scene.origin[0], scene.origin[1], scene.heading,
                           law.origin[0], law.origin[1], law.heading);
        if (law.modes > BJ_EXAM_MODES)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "scene %s: the distribution has %d modes, expected at most %d",
                           scene.scenario_id, law.modes, BJ_EXAM_MODES);
        if (i >= exam->scenes) continue;
        if (exam->truth) BJ_TRY(bj_truth_check(exam->truth, i, err));
        exam->law_of[i] = at;
        if (law.modes > exam->most_modes) exam->most_modes = law.modes;
    }
    return BJ_OK;
}

static bj_status prepare(bj_exam *exam, bj_error *err) {
    const bj_exam_options *o = &exam->options;
    if (exam->cache) {
        BJ_TRY(bj_truth_borrow(&exam->own_truth, exam->cache, err));
        exam->truth = exam->own_truth;
    }
    exam->scenes = count_scenes(exam);
    if (!exam->scenes) return BJ_FAIL(err, BJ_EFORMAT, "the data has no scenes");
    if (o->limit && o->limit < exam->scenes) exam->scenes = o->limit;
    exam->best_scenes = o->best_scenes < exam->scenes ? o->best_scenes : (int)exam->scenes;
    BJ_TRY(BJ_ALLOC(exam->law_of, (size_t)exam->scenes, err));
    BJ_TRY(match(exam, err));
    BJ_TRY(bj_pool_create(&exam->pool, exam->options.threads, err));
    const size_t threads = (size_t)bj_pool_threads(exam->pool);
    const size_t measure = bj_exam_work(exam->most_modes, exam->options.samples);
    const size_t search = bj_exam_best_work(exam->most_modes, BJ_MAX_ATOMS);
    exam->work_size = measure;
    if (exam->best_scenes && search > measure) exam->work_size = search;
    BJ_TRY(BJ_ALLOC(exam->work, threads, err));
    for (size_t i = 0; i < threads; i++)
        BJ_TRY(BJ_ALLOC(exam->work[i], exam->work_size + BJ_MAX_ATOMS * (ROW + 1), err));
    return BJ_OK;
}

static bj_status create(bj_exam **out, const bj_cache *cache, const bj_truth *truth,
                        const bj_law *law, const bj_exam_options *options, bj_error *err) {
    bj_exam *exam;
    bj_exam_options o = options ? *options : (bj_exam_options){0};
    if (!o.samples) o.samples = 64;
    BJ_TRY(check_options(&o, err));
    BJ_TRY(BJ_ALLOC(exam, 1, err));
    exam->cache = cache;
    exam->truth = truth;
    exam->law = law;
    exam->options = o;
    const bj_status status = prepare(exam, err);
    if (status != BJ_OK) {
        bj_exam_free(exam);
        return status;
    }
    *out = exam;
    return BJ_OK;
}

bj_status bj_exam_create(bj_exam **out, const bj_cache *cache, const bj_law *law,
                         const bj_exam_options *options, bj_error *err) {
    if (!out) return BJ_FAIL(err, BJ_EARG, "exam: output is missing");
    *out = NULL;
    if (!cache || !law) return BJ_FAIL(err, BJ_EARG, "exam: cache or law is missing");
    return create(out, cache, NULL, law, options, err);
}

bj_status bj_exam_create_submissions(bj_exam **out, const bj_truth *truth, const bj_law *law,
                                     const bj_exam_options *options, bj_error *err) {
    if (!out) return BJ_FAIL(err, BJ_EARG, "exam: output is missing");
    *out = NULL;
    if (!law) return BJ_FAIL(err, BJ_EARG, "exam: law is missing");
    return create(out, NULL, truth, law, options, err);
}

void bj_exam_free(bj_exam *exam) {
    if (!exam) return;
    for (int i = 0; exam->work && i < bj_pool_threads(exam->pool); i++) bj_free(exam->work[i]);
    for (int K = 0; K <= BJ_MAX_ATOMS; K++) bj_free(exam->best[K]);
    bj_free(exam->work);
    bj_pool_free(exam->pool);
    bj_truth_free(exam->own_truth);
    bj_free(exam->law_of);
    bj_free(exam);
}

int64_t bj_exam_scenes(const bj_exam *exam) { return exam->scenes; }
int bj_exam_samples(const bj_exam *exam) { return exam->options.samples; }
const bj_cache *bj_exam_cache(const bj_exam *exam) { return exam->cache; }
const bj_truth *bj_exam_truth(const bj_exam *exam) { return exam->truth; }
const bj_law *bj_exam_laws(const bj_exam *exam) { return exam->law; }
int bj_exam_threads(const bj_exam *exam) { return exam->options.threads; }
uint64_t bj_exam_seed(const bj_exam *exam) { return exam->options.seed; }

bj_law_scene bj_exam_law(const bj_exam *exam, int64_t scene) {
    return bj_law_at(exam->law, exam->law_of[scene]);
}

void bj_exam_known(bj_truth_scene *out, const bj_exam *exam, int64_t scene) {
    if (exam->truth) {
        bj_truth_scene_at(out, exam->truth, scene);
        return;
    }
    const bj_law_scene law = bj_law_at(exam->law, scene);
    *out = (bj_truth_scene){.scenario_id = law.scenario_id,
                            .origin = {law.origin[0], law.origin[1]},
                            .heading = law.heading};
}

/* ---------------------------------------------------------------------------------- best atoms */

/* Returns the scene index of sample element i. */
static int64_t best_scene(const bj_exam *exam, int64_t i) {
    return i * exam->scenes / exam->best_scenes;
}

typedef struct best_round {
    const bj_exam *exam;
    bj_moment *out;
    int K, first;
} best_round;

static void search_scene(void *context, int item, int worker) {
    const best_round *r = context;
    const bj_exam *exam = r->exam;
    double *const work = exam->work[worker];
    double *const p = work + exam->work_size, *const y = p + BJ_MAX_ATOMS;
    const bj_law_scene law = bj_exam_law(exam, best_scene(exam, r->first + item));
    const bj_exam_forecast forecast = {r->K, p, y};
    bj_exam_scene measured;
    bj_exam_best(p, y, r->K, &law, exam->options.seed, work);
    bj_exam_measure(&measured, &law, &forecast, exam->options.samples, exam->options.seed, work);
    r->out[r->first + item] = measured.discrepancy;
}

bj_status bj_exam_progress(const bj_exam *exam, int64_t done, int64_t total, bj_error *err) {
    const bj_exam_options *o = &exam->options;
    if (o->progress && o->progress(o->context, done, total))
        return BJ_FAIL(err, BJ_ELOCKED, "stopped after %lld of %lld scenes", (long long)done,
                       (long long)total);
    return BJ_OK;
}

static bj_status find_best(bj_exam *exam, int K, int64_t done, int64_t total, bj_error *err) {
    const int n = exam->best_scenes, step = 4 * bj_pool_threads(exam->pool);
    bj_moment *out;
    BJ_TRY(BJ_ALLOC(out, (size_t)n, err));
    for (int first = 0; first < n; first += step) {
        best_round round = {exam, out, K, first};
        const int items = n - first < step ? n - first : step;
        bj_pool_run(exam->pool, search_scene, &round, items);
        const bj_status status = bj_exam_progress(exam, done + first + items, total, err);
        if (status == BJ_OK) continue;
        bj_free(out);
        return status;
    }
    exam->best[K] = out;
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- blocks */

typedef struct block {
    const bj_exam *exam;
    int64_t first;
    int count, K;
    double *weights, *trajectories; /* (BLOCK,K), (BLOCK,K,ROW) */
    bj_exam_result results[BLOCK];
    bj_status status[BLOCK];
    bj_error errors[BLOCK];
} block;

static bj_status check_forecast(double *p, const double *y, int K, const char *id, bj_error *err) {
    double sum = 0;
    for (int k = 0; k < K; k++) {
        if (!(p[k] >= 0 && p[k] <= 1 + 1e-3))
            return BJ_FAIL(err, isfinite(p[k]) ? BJ_EARG : BJ_ENONFINITE,
                           "scene %s: weight %d of the forecast is %g, expected 0 to 1", id, k,
                           p[k]);
        sum += p[k];
    }
    if (!(fabs(sum - 1) <= 1e-3))
        return BJ_FAIL(err, BJ_EARG,
                       "scene %s: the weights of the forecast sum to %g, expected 1", id,
                       sum);
    for (int i = 0; i < K * ROW; i++)
        if (!isfinite(y[i]))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "scene %s: point %d of branch %d is %g, expected a finite number", id,
                           i % ROW / 2, i / ROW, y[i]);
    for (int k = 0; k < K; k++) p[k] /= sum;
    return BJ_OK;
}

static bj_status measure(block *b, int item, double *work, bj_error *err) {
    const bj_exam *exam = b->exam;
    const int64_t number = b->first + item;
    const bj_law_scene law = bj_exam_law(exam, number);
    double *const p = b->weights + (size_t)item * (size_t)b->K;
    const double *const y = b->trajectories + (size_t)item * (size_t)b->K * ROW;
    const bj_exam_forecast forecast = {b->K, p, y};
    bj_exam_result *const out = &b->results[item];
    BJ_TRY(check_forecast(p, y, b->K, law.scenario_id, err));
    BJ_TRY(bj_law_verify(exam->law, exam->law_of[number], err));
    bj_exam_measure(&out->scene, &law, &forecast, exam->options.samples, exam->options.seed, work);
    bj_exam_modes(&out->scene, &law, &forecast);
    if (!isfinite(out->scene.difference.mean) || !isfinite(out->scene.difference.variance))
        return BJ_FAIL(err, BJ_ENONFINITE, "scene %s: its distribution contains a NaN or infinity",
                       law.scenario_id);
    bj_truth_scene known;
    bj_forecast_values values;
    bj_exam_known(&known, exam, number);
    out->has_future = known.has_future;
    if (!known.has_future) return BJ_OK;
    bj_forecast_measure(&values, &(bj_forecast){b->K, BJ_EXAM_STEPS, p, y, known.future});
    out->score = values.traj_obs - values.traj_disp;
    return BJ_OK;
}

static void measure_item(void *context, int item, int worker) {
    block *const b = context;
    b->status[item] = measure(b, item, b->exam->work[worker], &b->errors[item]);
}

static bj_status take_block(bj_exam_sum *sum, block *b, bj_forecaster forecaster, void *context,
                            bj_error *err) {
    const bj_exam *const exam = b->exam;
    BJ_TRY(forecaster(context, b->weights, b->trajectories, b->first, b->count, err));
    bj_pool_run(exam->pool, measure_item, b, b->count);
    for (int i = 0; i < b->count; i++) {
        if (b->status[i] != BJ_OK) return BJ_FAIL(err, b->status[i], "%s", b->errors[i].message);
        bj_exam_sum_add(sum, &b->results[i]);
        const int64_t next = sum->best_own_count;
        if (next < exam->best_scenes && best_scene(exam, next) == b->first + i)
            bj_exam_sum_add_best(sum, &b->results[i].scene, &exam->best[b->K][next]);
    }
    return BJ_OK;
}

static bj_status run(bj_exam_report *report, bj_exam *exam, block *b, bj_forecaster forecaster,
                     void *context, bj_error *err) {
    const int search = exam->best_scenes && !exam->best[b->K] ? exam->best_scenes : 0;
    const int64_t total = exam->scenes + search;
    bj_exam_sum sum;
    bj_exam_sum_start(&sum, b->K, exam->options.samples / BJ_EXAM_GROUP);
    if (search) BJ_TRY(find_best(exam, b->K, 0, total, err));
    for (b->first = 0; b->first < exam->scenes; b->first += BLOCK) {
        const int64_t left = exam->scenes - b->first;
        b->count = left < BLOCK ? (int)left : BLOCK;
        BJ_TRY(take_block(&sum, b, forecaster, context, err));
        BJ_TRY(bj_exam_progress(exam, search + b->first + b->count, total, err));
    }
    bj_exam_sum_report(report, &sum);
    return BJ_OK;
}

bj_status bj_exam_run(bj_exam_report *report, bj_exam *exam, int K, bj_forecaster forecaster,
                      void *context, bj_error *err) {
    block *b;
    if (!report || !exam || !forecaster)
        return BJ_FAIL(err, BJ_EARG, "exam: report, exam or forecaster is missing");
    if (K < 1 || K > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EARG, "exam: K is %d, expected 1 to %d", K, BJ_MAX_ATOMS);
    BJ_TRY(BJ_ALLOC(b, 1, err));
    b->exam = exam;
    b->K = K;
    bj_status status = BJ_ALLOC(b->weights, (size_t)BLOCK * (size_t)K, err);
    if (status == BJ_OK) status = BJ_ALLOC(b->trajectories, (size_t)BLOCK * (size_t)K * ROW, err);
    if (status == BJ_OK) status = run(report, exam, b, forecaster, context, err);
    bj_free(b->weights);
    bj_free(b->trajectories);
    bj_free(b);
    return status;
}
