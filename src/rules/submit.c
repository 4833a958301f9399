/* submit.c - applies a rule to every scenario of a cache or folder and writes a submission.
 *
 * All workers forecast a chunk of scenarios in parallel, each with its own readers. Scenarios are
 * written in the order of their ids, so the file does not depend on the number of threads.
 * Tests: tests/rules/test_rules.c, tests/cli/baseline.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/threads.h"
#include "data/scenario.h"
#include "data/scenario_list.h"
#include "rules/rules.h"

enum { CHUNK = 256, F = BJ_SUBMISSION_STEPS };

static const char *const names[BJ_RULES] = {
    [BJ_RULE_VELOCITY] = "constant-velocity",
    [BJ_RULE_VELOCITY_SPREAD] = "constant-velocity-6",
    [BJ_RULE_TURN] = "constant-turn-rate",
    [BJ_RULE_LANES] = "lane-following",
};

const char *bj_rule_name(bj_rule rule) { return (unsigned)rule < BJ_RULES ? names[rule] : NULL; }

bj_status bj_rule_find(bj_rule *out, const char *name, bj_error *err) {
    for (int i = 0; i < BJ_RULES; i++)
        if (!strcmp(names[i], name)) {
            *out = (bj_rule)i;
            return BJ_OK;
        }
    return BJ_FAIL(err, BJ_EARG, "baseline '%.64s' does not exist, expected %s, %s, %s or %s", name,
                   names[0], names[1], names[2], names[3]);
}

/* ------------------------------------------------------------------------------------- scenes */

/* A forecast of one scenario, in city coordinates. */
typedef struct result {
    char id[BJ_SCENARIO_NAME], focal[BJ_SCENARIO_NAME];
    bj_rule_forecast forecast;
    bj_status status;
    bj_error err;
} result;

typedef struct worker {
    bj_scenario_list *list; /* NULL for a cache */
    bj_lane_rule *lanes;
} worker;

typedef struct job {
    bj_rule rule;
    bj_cache *cache; /* NULL for a folder */
    int64_t count, first;
    bj_pool *pool;
    worker *workers; /* (threads of the pool) */
    result *results; /* (CHUNK) */
} job;

static bj_status forecast(result *out, const job *j, worker *w, const bj_scene_info *info,
                          const float *focal, const bj_map *map, bj_error *err) {
    const bj_rule_scene scene = {.focal = focal,
                                 .focal_valid = info->focal_valid,
                                 .focal_type = info->focal_type,
                                 .origin = {info->origin[0], info->origin[1]},
                                 .heading = info->heading,
                                 .map = map};
    double city[BJ_RULE_ROW];
    BJ_TRY(bj_rule_apply(&out->forecast, j->rule, w->lanes, &scene, err));
    for (int k = 0; k < out->forecast.K; k++) {
        bj_to_city(city, out->forecast.y[k], F, scene.origin, scene.heading);
        memcpy(out->forecast.y[k], city, sizeof city);
    }
    strcpy(out->id, info->scenario_id); /* readers and caches bound the length of names */
    strcpy(out->focal, info->focal_id);
    return BJ_OK;
}

static bj_status take_scenario(result *out, const job *j, worker *w, int64_t index, bj_error *err) {
    bj_scenario_scene *scene;
    BJ_TRY(bj_scenario_list_open(&scene, w->list, index, err));
    const bj_scene_info info = bj_scenario_info(scene);
    const bj_status status = forecast(out, j, w, &info, bj_scenario_floats(scene).focal,
                                      bj_scenario_list_map(w->list), err);
    bj_scenario_free(scene);
    return status;
}

static void take_item(void *context, int item, int number) {
    const job *j = context;
    result *const out = &j->results[item];
    worker *const w = &j->workers[number];
    const int64_t index = j->first + item;
    if (j->cache) {
        const bj_scene_info info = bj_cache_info(j->cache, index);
        out->status = bj_cache_check_scene(j->cache, index, &out->err);
        if (out->status == BJ_OK)
            out->status =
                forecast(out, j, w, &info, bj_cache_floats(j->cache, index).focal, NULL, &out->err);
    } else {
        out->status = take_scenario(out, j, w, index, &out->err);
    }
}

/* ---------------------------------------------------------------------------------- the call */

static bj_status open_cache(job *j, const char *data, bj_error *err) {
    if (j->rule == BJ_RULE_LANES)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: a cache does not contain the lane graph, "
                       "expected a folder of scenario files for %s",
                       data, bj_rule_name(j->rule));
    BJ_TRY(bj_cache_open(&j->cache, data, 1, err));
    const bj_arch arch = bj_cache_arch(j->cache);
    if (arch.obs != BJ_SCENARIO_OBSERVED)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %d observed steps, expected %d", data, arch.obs,
                       BJ_SCENARIO_OBSERVED);
    j->count = bj_cache_count(j->cache);
    return BJ_OK;
}

static bj_status start(job *j, const char *data, const bj_rule_options *options, bj_error *err) {
    struct stat info;
    if (stat(data, &info)) return BJ_FAIL(err, BJ_EIO, "%s: %s", data, strerror(errno));
    const int folder = S_ISDIR(info.st_mode);
    if (!folder) BJ_TRY(open_cache(j, data, err));
    BJ_TRY(bj_pool_create(&j->pool, options ? options->threads : 0, err));
    const int threads = bj_pool_threads(j->pool);
    BJ_TRY(BJ_ALLOC(j->workers, (size_t)threads, err));
    BJ_TRY(BJ_ALLOC(j->results, CHUNK, err));
    for (int i = 0; i < threads; i++) {
        if (folder) BJ_TRY(bj_scenario_list_create(&j->workers[i].list, data, err));
        if (j->rule == BJ_RULE_LANES) BJ_TRY(bj_lane_rule_create(&j->workers[i].lanes, err));
    }
    if (folder) j->count = bj_scenario_list_count(j->workers[0].list);
    if (!j->count) return BJ_FAIL(err, BJ_EFORMAT, "%s: found no scenario", data);
    return BJ_OK;
}

static bj_status run(job *j, bj_submission_writer *writer, const bj_rule_options *options,
                     bj_error *err) {
    for (; j->first < j->count; j->first += CHUNK) {
        const int64_t left = j->count - j->first;
        const int items = left < CHUNK ? (int)left : CHUNK;
        bj_pool_run(j->pool, take_item, j, items);
        for (int i = 0; i < items; i++) {
            const result *r = &j->results[i];
            if (r->status != BJ_OK) return BJ_FAIL(err, r->status, "%s", r->err.message);
            BJ_TRY(bj_submission_writer_add(writer, r->id, r->focal, r->forecast.K, r->forecast.p,
                                            r->forecast.y[0], err));
        }
        if (options && options->progress &&
            options->progress(options->context, j->first + items, j->count))
            return BJ_FAIL(err, BJ_ELOCKED, "stopped after %lld of %lld scenarios",
                           (long long)(j->first + items), (long long)j->count);
    }
    return BJ_OK;
}

static void release(job *j) {
    for (int i = 0; j->workers && i < bj_pool_threads(j->pool); i++) {
        bj_scenario_list_free(j->workers[i].list);
        bj_lane_rule_free(j->workers[i].lanes);
    }
    bj_free(j->workers);
    bj_free(j->results);
    bj_pool_free(j->pool);
    bj_cache_free(j->cache);
}

bj_status bj_rule_submit(int64_t *scenes, const char *path, bj_rule rule, const char *data,
                         const bj_rule_options *options, bj_error *err) {
    job j = {.rule = rule};
    bj_submission_writer *writer = NULL;
    if (!path || !data || !bj_rule_name(rule))
        return BJ_FAIL(err, BJ_EARG,
                       "baseline: the path or the data is NULL, or the rule does not exist");
    bj_status status = start(&j, data, options, err);
    if (status == BJ_OK) status = bj_submission_writer_create(&writer, path, err);
    if (status == BJ_OK) status = run(&j, writer, options, err);
    if (status == BJ_OK) status = bj_submission_writer_commit(&writer, err);
    if (status == BJ_OK && scenes) *scenes = j.count;
    bj_submission_writer_abort(&writer);
    release(&j);
    return status;
}
