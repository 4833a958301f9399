/* audit_submission.c - compares the forecasts of a submission with the maps of the scenarios.
 *
 * Every scenario is read once, with several scenarios in parallel. The focal track, its type, its
 * position at the last observed step and the drivable areas come from scenario and map files below
 * a folder, or from a cache. Submission rows are already in city coordinates.
 *
 * Invariants
 *   1. Rows of a scenario file after the last observed step are not used. The cache is opened blind.
 *   2. Each scenario has one outcome, the first that applies: unreadable, other type, missing,
 *      malformed, audited. No scenario is dropped silently.
 *   3. Scenarios are sorted by id, and means are summed in this order.
 * Tests: tests/audit/test_audit_submission.c, test_audit_golden.c, tests/cli/audit.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/drivable.h"
#include "core/alloc.h"
#include "core/threads.h"
#include "data/scenario.h"
#include "data/submission.h"
#include "data/walk.h"

enum { F = BJ_SUBMISSION_STEPS, LAST = BJ_SCENARIO_OBSERVED - 1, CHUNK = 256 };

typedef struct scene {
    char id[BJ_SCENARIO_NAME], focal[BJ_SCENARIO_NAME], type[BJ_SCENARIO_NAME];
    bj_audit_outcome outcome;
    char message[256];
    int origin_inside;
    bj_audit_scene audit;
} scene;

/* Readers and scratch memory of one worker. */
typedef struct desk {
    bj_scenario_reader *scenarios;
    bj_map_reader *maps;
    bj_drivable *areas;
    double *trajectories; /* (BJ_MAX_ATOMS,F,2) */
} desk;

struct bj_submission_audit {
    const bj_submission *submission;
    scene *scenes; /* (total) */
    bj_submission_counts counts;
    double mean[BJ_AUDIT_METRICS];
};

const char *bj_audit_outcome_name(bj_audit_outcome outcome) {
    static const char *const names[BJ_AUDIT_OUTCOMES] = {
        [BJ_AUDITED] = "audited",
        [BJ_AUDIT_OTHER_TYPE] = "other type",
        [BJ_AUDIT_MISSING] = "missing",
        [BJ_AUDIT_MALFORMED] = "malformed",
        [BJ_AUDIT_UNREADABLE] = "unreadable",
    };
    return names[outcome];
}

/* ----------------------------------------------------------------------------------- submission */

/* Returns the rows of a track in a scenario. The count is 0 if the track does not exist. */
static bj_submission_track find_track(const bj_submission *s, const char *scenario_id,
                                      const char *track) {
    const int64_t scenario = bj_submission_find(s, scenario_id);
    const int64_t index = scenario < 0 ? -1 : bj_submission_find_track(s, scenario, track);
    if (index >= 0) return bj_submission_track_at(s, index);
    return (bj_submission_track){.scenario = scenario};
}

/* Copies weights and trajectories of a track. Fails with BJ_EFORMAT if a row is invalid. */
static bj_status take_track(double weights[BJ_MAX_ATOMS], double *trajectories,
                            const bj_submission *s, const bj_submission_track *t, bj_error *err) {
    double sum = 0;
    if (t->count > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EFORMAT, "%lld modes, expected at most %d", (long long)t->count,
                       BJ_MAX_ATOMS);
    for (int64_t k = 0; k < t->count; k++) {
        const bj_submission_row row = bj_submission_at(s, t->rows[k]);
        double *y = trajectories + k * 2 * F;
        if (row.x_count != F || row.y_count != F)
            return BJ_FAIL(err, BJ_EFORMAT, "row %lld: found %lld x and %lld y values, expected %d",
                           (long long)t->rows[k], (long long)row.x_count, (long long)row.y_count,
                           F);
        if (!(row.probability >= 0 && row.probability <= 1))
            return BJ_FAIL(err, BJ_EFORMAT, "row %lld: probability is %g, expected 0 to 1",
                           (long long)t->rows[k], row.probability);
        for (int i = 0; i < F; i++, y += 2) {
            if (!isfinite(row.x[i]) || !isfinite(row.y[i]))
                return BJ_FAIL(err, BJ_EFORMAT,
                               "row %lld: point %d is (%g, %g), expected finite numbers",
                               (long long)t->rows[k], i, row.x[i], row.y[i]);
            y[0] = row.x[i];
            y[1] = row.y[i];
        }
        sum += weights[k] = row.probability;
    }
    if (!bj_sums_to_one(sum))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "the probabilities of the %lld modes sum to %.9g, expected 1",
                       (long long)t->count, sum);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ scenarios */

/* Finds the focal track's position at the last observed step. If the step
 * has several rows, the last one is used. */
static int find_origin(double origin[2], const bj_scenario *s) {
    int found = 0;
    for (int64_t r = 0; r < s->rows; r++)
        if (s->track[r] == s->focal && s->step[r] == LAST) {
            origin[0] = s->x[r];
            origin[1] = s->y[r];
            found = 1;
        }
    return found;
}

static bj_status read_scenario(scene *out, double origin[2], desk *d, const char *folder,
                               bj_error *err) {
    char path[2 * BJ_WALK_PATH];
    bj_scenario s;
    snprintf(path, sizeof path, "%s/scenario_%s.parquet", folder, out->id);
    BJ_TRY(bj_scenario_read(&s, d->scenarios, path, err));
    if (s.id.size != strlen(out->id) || memcmp(s.id.data, out->id, s.id.size))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: scenario_id is '%.*s', expected '%s'", path,
                       (int)s.id.size, s.id.data, out->id);
    if (!find_origin(origin, &s))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the focal track has no row at step %d", path, LAST);
    bj_scenario_name(out->focal, s.track_id[s.focal]);
    bj_scenario_name(out->type, s.type[s.focal]);
    return BJ_OK;
}

static bj_status read_areas(desk *d, const char *folder, const char *id, bj_error *err) {
    char path[2 * BJ_WALK_PATH];
    bj_map map;
    snprintf(path, sizeof path, "%s/log_map_archive_%s.json", folder, id);
    BJ_TRY(bj_map_read(&map, d->maps, path, err));
    return bj_drivable_set_map(d->areas, &map, BJ_AUDIT_TOLERANCE, err);
}

/* The scenarios, which are files below a folder or scenes of a cache. */
typedef struct source {
    bj_walk *walk;   /* NULL for a cache */
    bj_cache *cache; /* NULL for a folder */
    int64_t *order;  /* (count) scenes of the cache, sorted by scenario id */
    int64_t count;
} source;

typedef struct named_scene {
    const char *id;
    int64_t number;
} named_scene;

static int by_id(const void *a, const void *b) {
    return strcmp(((const named_scene *)a)->id, ((const named_scene *)b)->id);
}

static bj_status sort_cache(source *s, bj_error *err) {
    named_scene *list;
    BJ_TRY(BJ_ALLOC(list, (size_t)s->count, err));
    const bj_status status = BJ_ALLOC(s->order, (size_t)s->count, err);
    for (int64_t i = 0; i < s->count; i++)
        list[i] = (named_scene){bj_cache_info(s->cache, i).scenario_id, i};
    qsort(list, (size_t)s->count, sizeof *list, by_id);
    for (int64_t i = 0; i < s->count && status == BJ_OK; i++) s->order[i] = list[i].number;
    bj_free(list);
    return status;
}

static bj_status open_source(source *s, const char *path, bj_error *err) {
    struct stat info;
    if (stat(path, &info) || S_ISDIR(info.st_mode)) {
        BJ_TRY(bj_walk_create(&s->walk, &path, 1, NULL, err));
        s->count = bj_walk_count(s->walk);
        if (!s->count)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: found no scenario_ID.parquet below this folder",
                           path);
        return BJ_OK;
    }
    BJ_TRY(bj_cache_open(&s->cache, path, 1, err));
    s->count = bj_cache_count(s->cache);
    return sort_cache(s, err);
}

static void close_source(source *s) {
    bj_walk_free(s->walk);
    bj_cache_free(s->cache);
    bj_free(s->order);
}

/* Fills id, focal track, type and origin of a scenario. Loads its drivable areas if its type is
 * audited. */
static bj_status open_scene(scene *out, double origin[2], desk *d, const source *s, int64_t index,
                            bj_error *err) {
    if (s->walk) {
        char folder[BJ_WALK_PATH];
        snprintf(out->id, sizeof out->id, "%s", bj_walk_id(s->walk, index));
        BJ_TRY(bj_walk_folder(folder, s->walk, index, err));
        BJ_TRY(read_scenario(out, origin, d, folder, err));
        return bj_audit_takes(out->type) ? read_areas(d, folder, out->id, err) : BJ_OK;
    }
    const bj_scene_info info = bj_cache_info(s->cache, s->order[index]);
    snprintf(out->id, sizeof out->id, "%s", info.scenario_id);
    snprintf(out->focal, sizeof out->focal, "%s", info.focal_id);
    snprintf(out->type, sizeof out->type, "%s", info.focal_type);
    memcpy(origin, info.origin, 2 * sizeof *origin);
    if (!bj_audit_takes(out->type)) return BJ_OK;
    return bj_drivable_set_cache(d->areas, s->cache, info.map, BJ_AUDIT_TOLERANCE, err);
}

static bj_status audit_scene(scene *out, desk *d, const bj_submission *s, const source *from,
                             int64_t index, bj_error *err) {
    double origin[2] = {0}, weights[BJ_MAX_ATOMS];
    out->outcome = BJ_AUDIT_UNREADABLE;
    BJ_TRY(open_scene(out, origin, d, from, index, err));
    if (!bj_audit_takes(out->type)) {
        out->outcome = BJ_AUDIT_OTHER_TYPE;
        return BJ_OK;
    }
    const bj_submission_track track = find_track(s, out->id, out->focal);
    if (!track.count) {
        out->outcome = BJ_AUDIT_MISSING;
        return BJ_OK;
    }
    out->outcome = BJ_AUDIT_MALFORMED;
    BJ_TRY(take_track(weights, d->trajectories, s, &track, err));
    out->outcome = BJ_AUDITED;
    out->origin_inside = bj_drivable_inside(d->areas, origin[0], origin[1]);
    bj_audit_measure(&out->audit, d->areas, (int)track.count, F, weights, d->trajectories);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- whole */

typedef struct job {
    bj_submission_audit *audit;
    const source *from;
    bj_pool *pool;
    desk *desks; /* (workers) */
    int64_t first;
} job;

static void audit_item(void *context, int item, int worker) {
    const job *j = context;
    scene *out = &j->audit->scenes[j->first + item];
    bj_error err = {0};
    if (audit_scene(out, &j->desks[worker], j->audit->submission, j->from, j->first + item, &err) !=
        BJ_OK)
        snprintf(out->message, sizeof out->message, "%.255s", err.message);
}

static bj_status open_desks(job *j, bj_error *err) {
    const int workers = bj_pool_threads(j->pool);
    BJ_TRY(BJ_ALLOC(j->desks, (size_t)workers, err));
    for (int i = 0; i < workers; i++) {
        desk *d = &j->desks[i];
        BJ_TRY(bj_scenario_reader_create(&d->scenarios, err));
        BJ_TRY(bj_map_reader_create(&d->maps, err));
        BJ_TRY(bj_drivable_create(&d->areas, err));
        BJ_TRY(BJ_ALLOC(d->trajectories, (size_t)BJ_MAX_ATOMS * 2 * F, err));
    }
    return BJ_OK;
}

static void job_free(job *j) {
    for (int i = 0; j->desks && i < bj_pool_threads(j->pool); i++) {
        bj_scenario_reader_free(j->desks[i].scenarios);
        bj_map_reader_free(j->desks[i].maps);
        bj_drivable_free(j->desks[i].areas);
        bj_free(j->desks[i].trajectories);
    }
    bj_free(j->desks);
    bj_pool_free(j->pool);
}

static bj_status run(job *j, const bj_audit_options *options, bj_error *err) {
    const int64_t total = j->audit->counts.total;
    BJ_TRY(bj_pool_create(&j->pool, options ? options->threads : 0, err));
    BJ_TRY(open_desks(j, err));
    for (; j->first < total; j->first += CHUNK) {
        const int count = total - j->first < CHUNK ? (int)(total - j->first) : CHUNK;
        bj_pool_run(j->pool, audit_item, j, count);
        if (options && options->progress &&
            options->progress(options->context, j->first + count, total))
            return BJ_FAIL(err, BJ_ELOCKED, "stopped before all scenarios were audited");
    }
    return BJ_OK;
}

static bj_status summarize(bj_submission_audit *a, const char *root, bj_error *err) {
    bj_submission_counts *c = &a->counts;
    int64_t known = 0;
    for (int64_t i = 0; i < c->total; i++) {
        const scene *s = &a->scenes[i];
        if (i && !strcmp(s->id, a->scenes[i - 1].id))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: scenario %s occurs twice", root, s->id);
        known += bj_submission_find(a->submission, s->id) >= 0;
        c->outcomes[s->outcome]++;
        c->origins += s->origin_inside;
        if (s->outcome != BJ_AUDITED) continue;
        c->empty += s->audit.value[BJ_AUDIT_ENTROPY_SUPPORT] == 0;
        for (int m = 0; m < BJ_AUDIT_METRICS; m++) a->mean[m] += s->audit.value[m];
    }
    c->unknown = bj_submission_scenarios(a->submission) - known;
    for (int m = 0; m < BJ_AUDIT_METRICS; m++)
        a->mean[m] = c->outcomes[BJ_AUDITED] ? a->mean[m] / (double)c->outcomes[BJ_AUDITED] : NAN;
    return BJ_OK;
}

static bj_status audit_all(bj_submission_audit *a, const char *root,
                           const bj_audit_options *options, bj_error *err) {
    source from = {0};
    job j = {.audit = a, .from = &from};
    bj_status status;
    BJ_GOTO(status, done, open_source(&from, root, err));
    a->counts.total = from.count;
    BJ_GOTO(status, done, BJ_ALLOC(a->scenes, (size_t)a->counts.total, err));
    BJ_GOTO(status, done, run(&j, options, err));
    status = summarize(a, root, err);
done:
    job_free(&j);
    close_source(&from);
    return status;
}

/* --------------------------------------------------------------------------------------- handle */

bj_status bj_submission_audit_create(bj_submission_audit **out, const bj_submission *submission,
                                     const char *root, const bj_audit_options *options,
                                     bj_error *err) {
    bj_submission_audit *a;
    if (!out || !submission || !root)
        return BJ_FAIL(err, BJ_EARG, "audit: output, submission or folder is missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(a, 1, err));
    a->submission = submission;
    const bj_status status = audit_all(a, root, options, err);
    if (status != BJ_OK) {
        bj_submission_audit_free(a);
        return status;
    }
    *out = a;
    return BJ_OK;
}

void bj_submission_audit_free(bj_submission_audit *a) {
    if (!a) return;
    bj_free(a->scenes);
    bj_free(a);
}

bj_submission_counts bj_submission_audit_count(const bj_submission_audit *a) { return a->counts; }

double bj_submission_audit_mean(const bj_submission_audit *a, int metric) {
    return a->mean[metric];
}

bj_submission_scene bj_submission_audit_at(const bj_submission_audit *a, int64_t index) {
    const scene *s = &a->scenes[index];
    return (bj_submission_scene){.scenario_id = s->id,
                                 .focal_id = s->focal,
                                 .focal_type = s->type,
                                 .outcome = s->outcome,
                                 .message = s->message[0] ? s->message : NULL,
                                 .origin_inside = s->origin_inside,
                                 .audit = s->outcome == BJ_AUDITED ? &s->audit : NULL};
}
