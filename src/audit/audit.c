/* audit.c - compares the forecasts of models with the drivable areas of a cache's scenes.
 *
 *   open     lists the scenes whose focal road user is a vehicle or a bus, counts focal origins
 *            inside
 *   add      predicts these scenes with a model, measures each of them (measure.c), stores means
 *            and sums
 *   compare  compares two arms: values are averaged over seeds, scenes are resampled jointly
 *
 * Invariants
 *   1. The cache is opened blind, so no call in this file can read a future, and no value depends
 *      on whether the cache contains futures.
 *   2. Forecasts are treated as in `bjepa submit`: points are transformed to city coordinates in
 *      double, and the router's weights, which sum to one up to rounding, are divided by their sum.
 *      Nothing is projected, matched to the map or dropped.
 *   3. A scene's values depend only on the scene and the model, and sums follow scene order. So the
 *      results do not depend on the number of threads or the batch size.
 * Tests: tests/audit/test_audit.c, tests/cli/audit.sh
 */
#include <string.h>

#include "audit/audit_internal.h"
#include "core/alloc.h"
#include "data/scene_view.h"

enum { BATCH = BJ_AUDIT_BATCH };

/* --------------------------------------------------------------------------------------- scenes */

static bj_status find_scenes(bj_audit *a, const char *path, bj_error *err) {
    const int64_t count = bj_cache_count(a->cache), limit = a->options.limit;
    a->counts.total = limit > 0 && limit < count ? limit : count;
    BJ_TRY(BJ_ALLOC(a->numbers, (size_t)a->counts.total, err));
    for (int64_t i = 0; i < a->counts.total; i++)
        if (bj_audit_takes(bj_cache_info(a->cache, i).focal_type))
            a->numbers[a->counts.scenes++] = i;
    if (!a->counts.scenes)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: none of the %lld scenes has a vehicle or bus as its focal road user",
                       path, (long long)a->counts.total);
    return BJ_OK;
}

/* Computes the digest of everything that the audit reads from the scenes and that is not an input
 * of the network. */
static void make_digest(bj_audit *a) {
    bj_sha256 hash;
    bj_sha256_init(&hash);
    for (int64_t i = 0; i < a->counts.scenes; i++) {
        const bj_scene_info info = bj_cache_info(a->cache, a->numbers[i]);
        const double frame[3] = {info.origin[0], info.origin[1], info.heading};
        bj_sha256_update(&hash, info.scenario_id, strlen(info.scenario_id) + 1);
        bj_sha256_update(&hash, frame, sizeof frame);
        bj_sha256_update(&hash, info.map_sha256, BJ_SHA256_BYTES);
    }
    bj_sha256_final(&hash, a->digest);
}

/* Sets *out to the drivable areas of a map. Loads them unless the worker already has them. */
static bj_status prepare(bj_drivable **out, bj_audit *a, int64_t map, int worker, bj_error *err) {
    bj_drivable *const areas = a->areas[worker];
    *out = areas;
    if (a->maps[worker] == map) return BJ_OK;
    a->maps[worker] = -1;
    BJ_TRY(bj_drivable_set_cache(areas, a->cache, map, BJ_AUDIT_TOLERANCE, err));
    a->maps[worker] = map;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ measuring */

/* Work on the forecasts of one batch. */
typedef struct turn {
    bj_audit *audit;
    int64_t first; /* index of the first scene in the audit */
    int K;
    const bj_real *weights, *trajectories; /* (B,K), (B,K,F,2), or NULL to test only the origins of
                                              the scenes */
    double *local, *city;                  /* (workers,K,F,2) */
    double (*values)[BJ_AUDIT_METRICS];    /* (BATCH) */
    int inside[BATCH];                     /* 1 if the origin is inside */
    bj_status status[BATCH];
    bj_error error[BATCH];
} turn;

static void measure_forecast(turn *r, const bj_drivable *areas, const bj_scene_info *info, int item,
                             int worker) {
    const size_t K = (size_t)r->K, F = (size_t)r->audit->arch.fut, n = 2 * K * F;
    double *const local = r->local + (size_t)worker * n, *const city = r->city + (size_t)worker * n;
    const bj_real *y = r->trajectories + (size_t)item * n, *w = r->weights + (size_t)item * K;
    double p[BJ_MAX_ATOMS], sum = 0;
    bj_audit_scene scene;
    for (size_t k = 0; k < K; k++) sum += w[k];
    for (size_t k = 0; k < K; k++) p[k] = w[k] / sum;
    for (size_t i = 0; i < n; i++) local[i] = y[i];
    bj_to_city(city, local, (int)(K * F), info->origin, info->heading);
    bj_audit_measure(&scene, areas, (int)K, (int)F, p, city);
    memcpy(r->values[item], scene.value, sizeof scene.value);
}

static void measure_item(void *context, int item, int worker) {
    turn *r = context;
    const bj_scene_info info = bj_cache_info(r->audit->cache, r->audit->numbers[r->first + item]);
    bj_drivable *areas;
    r->status[item] = prepare(&areas, r->audit, info.map, worker, &r->error[item]);
    if (r->status[item] != BJ_OK) return;
    if (r->weights) measure_forecast(r, areas, &info, item, worker);
    else r->inside[item] = bj_drivable_inside(areas, info.origin[0], info.origin[1]);
}

static bj_status run_turn(turn *r, int count, bj_error *err) {
    bj_pool_run(r->audit->pool, measure_item, r, count);
    for (int i = 0; i < count; i++)
        if (r->status[i] != BJ_OK)
            return BJ_FAIL(err, r->status[i], "scene '%s': %s",
                           bj_audit_scenario_id(r->audit, r->first + i), r->error[i].message);
    return BJ_OK;
}

static bj_status count_origins(bj_audit *a, bj_error *err) {
    turn *r;
    bj_status status = BJ_OK;
    BJ_TRY(BJ_ALLOC(r, 1, err));
    r->audit = a;
    for (; r->first < a->counts.scenes && status == BJ_OK; r->first += BATCH) {
        const int64_t left = a->counts.scenes - r->first;
        const int count = left < BATCH ? (int)left : BATCH;
        status = run_turn(r, count, err);
        for (int i = 0; i < count; i++) a->counts.origins += r->inside[i];
    }
    bj_free(r);
    return status;
}

/* --------------------------------------------------------------------------------------- models */

typedef struct job {
    bj_predictor *predictor;
    bj_real *weights, *trajectories; /* (BATCH,K), (BATCH,K,F,2) */
    turn *turn;
    double *values; /* (BJ_AUDIT_METRICS,scenes) */
    bj_audit_report report;
} job;

static void job_free(job *j) {
    bj_predictor_free(j->predictor);
    bj_free(j->weights);
    bj_free(j->trajectories);
    bj_free(j->values);
    if (j->turn) {
        bj_free(j->turn->local);
        bj_free(j->turn->city);
        bj_free(j->turn->values);
        bj_free(j->turn);
    }
}

static bj_status start(job *j, bj_audit *a, const bj_model *model, bj_error *err) {
    const bj_arch *arch = bj_model_arch(model);
    const size_t K = (size_t)arch->atoms, n = K * 2 * (size_t)arch->fut;
    const size_t workers = (size_t)bj_pool_threads(a->pool);
    const bj_predictor_options how = {.max_batch = BATCH,
                                      .threads = a->options.threads,
                                      .precision = a->options.precision,
                                      .isa = a->options.isa};
    BJ_TRY(bj_arch_fits(arch, &a->arch, err));
    BJ_TRY(bj_predictor_create(&j->predictor, model, &how, err));
    BJ_TRY(BJ_ALLOC(j->weights, BATCH * K, err));
    BJ_TRY(BJ_ALLOC(j->trajectories, BATCH * n, err));
    BJ_TRY(BJ_ALLOC(j->values, BJ_AUDIT_METRICS * (size_t)a->counts.scenes, err));
    BJ_TRY(BJ_ALLOC(j->turn, 1, err));
    BJ_TRY(BJ_ALLOC(j->turn->local, workers * n, err));
    BJ_TRY(BJ_ALLOC(j->turn->city, workers * n, err));
    BJ_TRY(BJ_ALLOC(j->turn->values, BATCH, err));
    j->turn->audit = a;
    j->turn->K = arch->atoms;
    j->turn->weights = j->weights;
    j->turn->trajectories = j->trajectories;
    j->report.atoms = arch->atoms;
    return BJ_OK;
}

static bj_status view_scenes(bj_audit *a, int64_t first, int count, bj_error *err) {
    const size_t room = BJ_REAL_IS_DOUBLE ? bj_scene_room(&a->arch) : 0;
    for (int b = 0; b < count; b++) {
        const int64_t number = a->numbers[first + b];
        const bj_scene_info info = bj_cache_info(a->cache, number);
        BJ_TRY(bj_cache_check_scene(a->cache, number, err));
        bj_real *const own = a->room ? a->room + (size_t)b * room : NULL;
        a->scenes[b] = bj_scene_view(own, &a->arch, &info, bj_cache_floats(a->cache, number));
    }
    return BJ_OK;
}

static bj_status run(job *j, bj_audit *a, bj_error *err) {
    const int64_t scenes = a->counts.scenes;
    for (int64_t first = 0; first < scenes; first += BATCH) {
        const int count = scenes - first < BATCH ? (int)(scenes - first) : BATCH;
        const bj_batch batch = {.B = count, .scenes = a->scenes};
        BJ_TRY(view_scenes(a, first, count, err));
        BJ_TRY(bj_predict(j->predictor, &batch, j->weights, j->trajectories, NULL, err));
        j->turn->first = first;
        BJ_TRY(run_turn(j->turn, count, err));
        for (int i = 0; i < count; i++)
            for (int m = 0; m < BJ_AUDIT_METRICS; m++)
                j->values[m * scenes + first + i] = j->turn->values[i][m];
        if (a->options.progress && a->options.progress(a->options.context, first + count, scenes))
            return BJ_FAIL(err, BJ_ELOCKED, "stopped before all scenes were audited");
    }
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        double sum = 0;
        for (int64_t i = 0; i < scenes; i++) sum += j->values[m * scenes + i];
        j->report.mean[m] = sum / (double)scenes;
    }
    const double *support = j->values + BJ_AUDIT_ENTROPY_SUPPORT * scenes;
    for (int64_t i = 0; i < scenes; i++) j->report.empty += support[i] == 0;
    return BJ_OK;
}

bj_status bj_audit_add(bj_audit *a, const char *name, int64_t seed, const bj_model *model,
                       double *values, bj_error *err) {
    bj_audit_arm_data *arm = NULL;
    job j = {.report = {.seed = seed}};
    if (!a || !name || !model) return BJ_FAIL(err, BJ_EARG, "audit: no arm or model given");
    bj_status status = bj_audit_place(&arm, a, name, seed, err);
    if (status == BJ_OK) status = start(&j, a, model, err);
    if (status == BJ_OK) status = run(&j, a, err);
    if (status == BJ_OK) {
        if (values)
            memcpy(values, j.values, BJ_AUDIT_METRICS * (size_t)a->counts.scenes * sizeof *values);
        bj_audit_keep(a, arm, &j.report, j.values);
    } else {
        bj_audit_give_back(a, arm);
    }
    job_free(&j);
    return status;
}

/* --------------------------------------------------------------------------------------- handle */

void bj_audit_free(bj_audit *a) {
    if (!a) return;
    for (int i = 0; i < a->arm_count; i++) bj_audit_arm_free(&a->arms[i]);
    bj_free(a->arms);
    for (int i = 0; a->areas && i < bj_pool_threads(a->pool); i++) bj_drivable_free(a->areas[i]);
    bj_free(a->areas);
    bj_free(a->maps);
    bj_free(a->room);
    bj_free(a->numbers);
    bj_pool_free(a->pool);
    bj_cache_free(a->cache);
    bj_free(a);
}

static bj_status open_audit(bj_audit *a, const char *path, bj_error *err) {
    BJ_TRY(bj_cache_open(&a->cache, path, 1, err));
    a->arch = bj_cache_arch(a->cache);
    BJ_TRY(find_scenes(a, path, err));
    make_digest(a);
    BJ_TRY(bj_pool_create(&a->pool, a->options.threads, err));
    const size_t workers = (size_t)bj_pool_threads(a->pool);
    BJ_TRY(BJ_ALLOC(a->maps, workers, err));
    BJ_TRY(BJ_ALLOC(a->areas, workers, err));
    for (size_t i = 0; i < workers; i++) {
        a->maps[i] = -1;
        BJ_TRY(bj_drivable_create(&a->areas[i], err));
    }
    if (BJ_REAL_IS_DOUBLE) BJ_TRY(BJ_ALLOC(a->room, BATCH * bj_scene_room(&a->arch), err));
    return count_origins(a, err);
}

bj_status bj_audit_open(bj_audit **out, const char *cache, const bj_audit_options *options,
                        bj_error *err) {
    bj_audit *a;
    if (!out || !cache) return BJ_FAIL(err, BJ_EARG, "audit: output or cache is missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(a, 1, err));
    if (options) a->options = *options;
    const bj_status status = open_audit(a, cache, err);
    if (status != BJ_OK) {
        bj_audit_free(a);
        return status;
    }
    *out = a;
    return BJ_OK;
}

bj_audit_counts bj_audit_count(const bj_audit *a) { return a->counts; }
const char *bj_audit_digest(const bj_audit *a) { return a->digest; }

const char *bj_audit_scenario_id(const bj_audit *a, int64_t scene) {
    return bj_cache_info(a->cache, a->numbers[scene]).scenario_id;
}
