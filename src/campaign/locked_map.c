/* locked_map.c - see locked_map.h. */
#include "campaign/locked_map.h"

#include <math.h>
#include <stdlib.h>

#include "audit/forecast.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/threads.h"
#include "eval/evaluator.h"

static const bj_audit_metric metrics[BJ_LOCKED_MAP] = {
    BJ_AUDIT_POINT_MASS, BJ_AUDIT_TRAJECTORY_MASS, BJ_AUDIT_MASS_WEIGHTED_SUPPORT};

const char *bj_locked_extra_name(int index) {
    return index < BJ_LOCKED_MAP ? bj_audit_metric_at(metrics[index]).name : "latency_64";
}

/* --------------------------------------------------------------------------------- map summary */

struct bj_locked_map {
    const bj_locked_results *results;
    bj_pool *pool;
    bj_drivable **areas; /* (workers) */
    double *room;        /* (workers,2,K,F,2) for the largest K */
    size_t room_size;
    double *values; /* (BJ_LOCK_BATCH,checkpoints,BJ_LOCKED_MAP) */
    double *sums;   /* (checkpoints,BJ_LOCKED_MAP) */
    int64_t scenes, origins;
    /* current batch */
    const bj_scene_info *infos;
    int inside[BJ_LOCK_BATCH];
    bj_status status[BJ_LOCK_BATCH];
    bj_error error[BJ_LOCK_BATCH];
};

static void measure(void *context, int item, int worker) {
    bj_locked_map *m = context;
    const bj_locked_results *r = m->results;
    const bj_scene_info *info = &m->infos[item];
    bj_drivable *areas = m->areas[worker];
    m->status[item] = BJ_OK;
    if (!bj_audit_takes(info->focal_type)) return;
    m->status[item] = bj_drivable_set_cache(areas, r->cache, info->map, BJ_AUDIT_TOLERANCE,
                                            &m->error[item]);
    if (m->status[item] != BJ_OK) return;
    m->inside[item] = bj_drivable_inside(areas, info->origin[0], info->origin[1]);
    for (int i = 0; i < r->count; i++) {
        const bj_evaluator_forecasts f = bj_evaluator_last(r->evaluators[i]);
        const size_t at = (size_t)item * (size_t)f.K;
        bj_audit_scene scene;
        bj_audit_forecast(&scene, areas, info, f.K, f.F, f.weights + at,
                          f.trajectories + at * 2 * (size_t)f.F,
                          m->room + (size_t)worker * m->room_size);
        for (int k = 0; k < BJ_LOCKED_MAP; k++)
            m->values[(item * r->count + i) * BJ_LOCKED_MAP + k] = scene.value[metrics[k]];
    }
}

bj_status bj_locked_map_add(bj_locked_map *m, const bj_scene_info *infos, int count,
                            bj_error *err) {
    const int numbers = m->results->count * BJ_LOCKED_MAP;
    m->infos = infos;
    bj_pool_run(m->pool, measure, m, count);
    for (int b = 0; b < count; b++) {
        if (m->status[b] != BJ_OK) return BJ_FAIL(err, m->status[b], "%s", m->error[b].message);
        if (!bj_audit_takes(infos[b].focal_type)) continue;
        m->scenes++;
        m->origins += m->inside[b];
        for (int i = 0; i < numbers; i++) m->sums[i] += m->values[b * numbers + i];
    }
    return BJ_OK;
}

void bj_locked_map_finish(bj_locked_results *r, const bj_locked_map *m) {
    r->map_scenes = m->scenes;
    r->map_origins = m->scenes < BJ_LOCK_LEAST ? 0 : m->origins;
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < BJ_LOCKED_MAP; k++)
            r->of[i].map[k] = m->scenes < BJ_LOCK_LEAST
                                  ? (double)NAN
                                  : m->sums[i * BJ_LOCKED_MAP + k] / (double)m->scenes;
}

static bj_status create(bj_locked_map *m, int threads, bj_error *err) {
    const size_t numbers = (size_t)m->results->count * BJ_LOCKED_MAP;
    BJ_TRY(bj_pool_create(&m->pool, threads, err));
    const size_t workers = (size_t)bj_pool_threads(m->pool);
    for (int i = 0; i < m->results->count; i++) {
        const bj_evaluator_forecasts f = bj_evaluator_last(m->results->evaluators[i]);
        const size_t size = 4 * (size_t)f.K * (size_t)f.F;
        if (size > m->room_size) m->room_size = size;
    }
    BJ_TRY(BJ_ALLOC(m->room, workers * m->room_size, err));
    BJ_TRY(BJ_ALLOC(m->values, BJ_LOCK_BATCH * numbers, err));
    BJ_TRY(BJ_ALLOC(m->sums, numbers, err));
    BJ_TRY(BJ_ALLOC(m->areas, workers, err));
    for (size_t i = 0; i < workers; i++) BJ_TRY(bj_drivable_create(&m->areas[i], err));
    return BJ_OK;
}

bj_status bj_locked_map_create(bj_locked_map **out, const bj_locked_results *results, int threads,
                               bj_error *err) {
    bj_locked_map *m;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(m, 1, err));
    m->results = results;
    const bj_status status = create(m, threads, err);
    if (status == BJ_OK) *out = m;
    else bj_locked_map_free(m);
    return status;
}

void bj_locked_map_free(bj_locked_map *m) {
    if (!m) return;
    for (int i = 0; m->areas && i < bj_pool_threads(m->pool); i++) bj_drivable_free(m->areas[i]);
    bj_free(m->areas);
    bj_free(m->sums);
    bj_free(m->values);
    bj_free(m->room);
    bj_pool_free(m->pool);
    bj_free(m);
}

/* ------------------------------------------------------------------------------------- latency */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bj_status bj_locked_latency(bj_locked_results *r, const bj_batch *batch, bj_error *err) {
    bj_batch part = *batch;
    double *times;
    bj_status status = BJ_OK;
    if (part.B > BJ_LATENCY_BATCH) part.B = BJ_LATENCY_BATCH;
    BJ_TRY(BJ_ALLOC(times, (size_t)r->count * BJ_LATENCY_REPETITIONS, err));
    for (int n = -1; n < BJ_LATENCY_REPETITIONS && status == BJ_OK; n++) /* the first warms up */
        for (int i = 0; i < r->count && status == BJ_OK; i++) {
            const double start = bj_seconds();
            status = bj_evaluator_predict(r->evaluators[i], &part, err);
            if (n >= 0) times[i * BJ_LATENCY_REPETITIONS + n] = 1e3 * (bj_seconds() - start);
        }
    for (int i = 0; i < r->count && status == BJ_OK; i++) {
        double *own = times + i * BJ_LATENCY_REPETITIONS;
        qsort(own, BJ_LATENCY_REPETITIONS, sizeof *own, compare);
        r->of[i].latency = own[BJ_LATENCY_REPETITIONS / 2];
    }
    r->latency_batch = part.B;
    bj_free(times);
    return status;
}
