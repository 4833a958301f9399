/* truth.c - see truth.h. Test: tests/eval/test_score.c */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "data/truth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/threads.h"
#include "data/scenario.h"
#include "data/walk.h"

enum { F = BJ_TRUTH_STEPS, LAST = BJ_SCENARIO_OBSERVED - 1, CHUNK = 256 };

/* A scene read from its scenario file. */
typedef struct scene {
    char id[BJ_SCENARIO_NAME], city[BJ_SCENARIO_NAME];
    char focal[BJ_SCENARIO_NAME], type[BJ_SCENARIO_NAME];
    char failure[256]; /* empty if the scene is readable */
    int has_future, gaps;
    double origin[2], heading, speed;
    double velocity[2];   /* city coordinates */
    double future[2 * F]; /* city coordinates */
} scene;

struct bj_truth {
    const bj_cache *cache; /* NULL if `scenes` is used */
    bj_cache *own_cache;   /* NULL if `cache` is borrowed */
    scene *scenes;         /* (count) sorted by id */
    int64_t count, failures;
};

/* -------------------------------------------------------------------------------- scenario files
 */

/* Indices of the rows of the focal track, by step. If a step has several rows, the last one is
 * used. */
typedef struct focal_rows {
    int64_t row[BJ_SCENARIO_STEPS]; /* -1 if there is no row */
} focal_rows;

static void find_rows(focal_rows *f, const bj_scenario *s) {
    for (int t = 0; t < BJ_SCENARIO_STEPS; t++) f->row[t] = -1;
    for (int64_t r = 0; r < s->rows; r++)
        if (s->track[r] == s->focal) f->row[s->step[r]] = r;
}

/* Fills the future and interpolates missing rows. Step LAST must have a row. */
static void fill_future(scene *out, const focal_rows *f, const bj_scenario *s) {
    int before = LAST;
    for (int k = 0; k < F; k++) out->gaps += f->row[LAST + 1 + k] < 0;
    out->has_future = out->gaps < F;
    for (int t = LAST + 1; t <= LAST + F && out->has_future; t++) {
        double *const p = out->future + 2 * (t - LAST - 1);
        int after = t;
        while (after <= LAST + F && f->row[after] < 0) after++;
        const int64_t a = f->row[before], b = after <= LAST + F ? f->row[after] : a;
        const double w = b == a ? 0 : (double)(t - before) / (after - before);
        if (after == t) {
            p[0] = s->x[b];
            p[1] = s->y[b];
            before = t;
        } else {
            p[0] = s->x[a] + w * (s->x[b] - s->x[a]);
            p[1] = s->y[a] + w * (s->y[b] - s->y[a]);
        }
    }
}

static bj_status read_scene(scene *out, bj_scenario_reader *reader, const bj_walk *walk,
                            int64_t index, bj_error *err) {
    char folder[BJ_WALK_PATH], path[2 * BJ_WALK_PATH];
    bj_scenario s;
    focal_rows f;
    const char *id = bj_walk_id(walk, index);
    snprintf(out->id, sizeof out->id, "%s", id);
    BJ_TRY(bj_walk_folder(folder, walk, index, err));
    snprintf(path, sizeof path, "%s/scenario_%s.parquet", folder, id);
    BJ_TRY(bj_scenario_read(&s, reader, path, err));
    if (s.id.size != strlen(id) || memcmp(s.id.data, id, s.id.size))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: scenario_id is '%.*s', expected '%s'", path,
                       (int)s.id.size, s.id.data, id);
    find_rows(&f, &s);
    const int64_t last = f.row[LAST];
    if (last < 0)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the focal track has no row at step %d", path, LAST);
    bj_scenario_name(out->city, s.city);
    bj_scenario_name(out->focal, s.track_id[s.focal]);
    bj_scenario_name(out->type, s.type[s.focal]);
    out->origin[0] = s.x[last];
    out->origin[1] = s.y[last];
    out->heading = s.heading[last];
    out->speed = hypot(s.vx[last], s.vy[last]);
    out->velocity[0] = s.vx[last];
    out->velocity[1] = s.vy[last];
    fill_future(out, &f, &s);
    return BJ_OK;
}

typedef struct job {
    bj_truth *truth;
    const bj_walk *walk;
    bj_scenario_reader **readers; /* (workers) */
    int64_t first;
} job;

static void read_item(void *context, int item, int worker) {
    const job *j = context;
    scene *out = &j->truth->scenes[j->first + item];
    bj_error err = {0};
    if (read_scene(out, j->readers[worker], j->walk, j->first + item, &err) == BJ_OK) return;
    snprintf(out->failure, sizeof out->failure, "%.255s", err.message);
    out->has_future = 0;
}

static bj_status read_all(bj_truth *truth, const bj_walk *walk, bj_pool *pool,
                          const bj_truth_options *options, bj_error *err) {
    const int workers = bj_pool_threads(pool);
    job j = {.truth = truth, .walk = walk};
    bj_status status = BJ_OK;
    BJ_TRY(BJ_ALLOC(j.readers, (size_t)workers, err));
    for (int i = 0; i < workers && status == BJ_OK; i++)
        status = bj_scenario_reader_create(&j.readers[i], err);
    for (; j.first < truth->count && status == BJ_OK; j.first += CHUNK) {
        const int64_t left = truth->count - j.first;
        bj_pool_run(pool, read_item, &j, (int)(left < CHUNK ? left : CHUNK));
        if (options && options->progress &&
            options->progress(options->context, j.first + (left < CHUNK ? left : CHUNK),
                              truth->count))
            status = BJ_FAIL(err, BJ_ELOCKED, "stopped before all scenarios were read");
    }
    for (int i = 0; i < workers; i++) bj_scenario_reader_free(j.readers[i]);
    bj_free(j.readers);
    return status;
}

static bj_status check_scenes(bj_truth *truth, const char *path, bj_error *err) {
    for (int64_t i = 0; i < truth->count; i++) {
        truth->failures += truth->scenes[i].failure[0] != 0;
        if (i && !strcmp(truth->scenes[i].id, truth->scenes[i - 1].id))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: scenario %s occurs twice", path,
                           truth->scenes[i].id);
    }
    return BJ_OK;
}

static bj_status open_folder(bj_truth *truth, const char *path, const bj_truth_options *options,
                             bj_error *err) {
    bj_walk *walk = NULL;
    bj_pool *pool = NULL;
    bj_status status;
    BJ_TRY(bj_walk_create(&walk, &path, 1, NULL, err));
    if (!bj_walk_count(walk)) {
        status =
            BJ_FAIL(err, BJ_EFORMAT, "%s: found no scenario_ID.parquet below this folder", path);
        goto done;
    }
    BJ_GOTO(status, done, BJ_ALLOC(truth->scenes, (size_t)bj_walk_count(walk), err));
    truth->count = bj_walk_count(walk);
    BJ_GOTO(status, done, bj_pool_create(&pool, options ? options->threads : 0, err));
    BJ_GOTO(status, done, read_all(truth, walk, pool, options, err));
    status = check_scenes(truth, path, err);
done:
    bj_pool_free(pool);
    bj_walk_free(walk);
    return status;
}

/* --------------------------------------------------------------------------------------- handle */

static bj_status use_cache(bj_truth *truth, const bj_cache *cache, const char *path,
                           bj_error *err) {
    const bj_arch arch = bj_cache_arch(cache);
    if (arch.fut != F || arch.obs != LAST + 1)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: found %d observed and %d future steps, expected %d and %d",
                       path, arch.obs, arch.fut, LAST + 1, F);
    truth->cache = cache;
    truth->count = bj_cache_count(cache);
    return BJ_OK;
}

static bj_status open_cache(bj_truth *truth, const char *path, bj_error *err) {
    BJ_TRY(bj_cache_open(&truth->own_cache, path, 0, err));
    return use_cache(truth, truth->own_cache, path, err);
}

bj_status bj_truth_borrow(bj_truth **out, const bj_cache *cache, bj_error *err) {
    bj_truth *truth;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(truth, 1, err));
    const bj_status status = use_cache(truth, cache, "the cache", err);
    if (status == BJ_OK) *out = truth;
    else bj_truth_free(truth);
    return status;
}

bj_status bj_truth_open(bj_truth **out, const char *path, const bj_truth_options *options,
                        bj_error *err) {
    struct stat info;
    bj_truth *truth;
    if (!out || !path) return BJ_FAIL(err, BJ_EARG, "truth: output or path is missing");
    *out = NULL;
    if (stat(path, &info)) return BJ_FAIL(err, BJ_EIO, "%s: %s", path, strerror(errno));
    BJ_TRY(BJ_ALLOC(truth, 1, err));
    const bj_status status = S_ISDIR(info.st_mode) ? open_folder(truth, path, options, err)
                                                   : open_cache(truth, path, err);
    if (status != BJ_OK) {
        bj_truth_free(truth);
        return status;
    }
    *out = truth;
    return BJ_OK;
}

void bj_truth_free(bj_truth *truth) {
    if (!truth) return;
    bj_free(truth->scenes);
    bj_cache_free(truth->own_cache);
    bj_free(truth);
}

int64_t bj_truth_count(const bj_truth *truth) { return truth->count; }
int64_t bj_truth_failures(const bj_truth *truth) { return truth->failures; }

const char *bj_truth_failure(const bj_truth *truth, int64_t index) {
    for (int64_t i = 0; truth->scenes && i < truth->count; i++)
        if (truth->scenes[i].failure[0] && index-- == 0) return truth->scenes[i].failure;
    return NULL;
}

/* --------------------------------------------------------------------------------------- scenes */

int64_t bj_truth_find(const bj_truth *truth, const char *scenario_id) {
    if (truth->cache) return bj_cache_find(truth->cache, scenario_id);
    int64_t low = 0, high = truth->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(truth->scenes[middle].id, scenario_id) < 0) low = middle + 1;
        else high = middle;
    }
    return low < truth->count && !strcmp(truth->scenes[low].id, scenario_id) ? low : -1;
}

static void scene_of_cache(bj_truth_scene *out, const bj_cache *cache, int64_t index) {
    const bj_scene_info info = bj_cache_info(cache, index);
    const bj_scene_floats floats = bj_cache_floats(cache, index);
    const float *last = floats.focal + (size_t)LAST * BJ_FOCAL_FEATURES;
    *out = (bj_truth_scene){.scenario_id = info.scenario_id,
                            .focal_id = info.focal_id,
                            .focal_type = info.focal_type,
                            .city = info.city,
                            .has_future = info.has_future && floats.future,
                            .origin = {info.origin[0], info.origin[1]},
                            .heading = info.heading,
                            .speed = hypot(last[2], last[3]),
                            .velocity = {last[2], last[3]}};
    if (!out->has_future) return;
    for (int k = 0; k < F; k++) out->gaps += !(info.future_valid >> k & 1);
    for (int i = 0; i < 2 * F; i++) out->future[i] = floats.future[i];
    bj_to_city(out->city_future, out->future, F, out->origin, out->heading);
}

bj_status bj_truth_check(const bj_truth *truth, int64_t index, bj_error *err) {
    return truth->cache ? bj_cache_check_scene(truth->cache, index, err) : BJ_OK;
}

void bj_truth_scene_at(bj_truth_scene *out, const bj_truth *truth, int64_t index) {
    if (truth->cache) {
        scene_of_cache(out, truth->cache, index);
        return;
    }
    const scene *s = &truth->scenes[index];
    *out = (bj_truth_scene){.scenario_id = s->id,
                            .focal_id = s->focal,
                            .focal_type = s->type,
                            .city = s->city,
                            .failure = s->failure[0] ? s->failure : NULL,
                            .has_future = s->has_future,
                            .gaps = s->gaps,
                            .origin = {s->origin[0], s->origin[1]},
                            .heading = s->heading,
                            .speed = s->speed};
    bj_from_city(out->velocity, s->velocity, 1, (const double[2]){0, 0}, s->heading);
    if (!out->has_future) return;
    memcpy(out->city_future, s->future, sizeof s->future);
    bj_from_city(out->future, out->city_future, F, out->origin, out->heading);
}
