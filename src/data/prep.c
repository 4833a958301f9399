/* prep.c - converts folders of scenarios to a cache: walks, reads, computes features, writes.
 *
 *   folder -> scenario, map -> features -> bytes of a scene      on workers, in any order
 *                                          -> cache or rejects   on the calling thread, in order
 *
 * Every scenario becomes one item of the writer, either a scene or a line with the reason for its
 * rejection. Items are sorted by id. Running out of memory or disk space, or an input/output error,
 * stops the run instead, because it is not a fault of the scenario.
 *
 * Test: tests/cli/data_prep.sh, tests/data/test_prep.c
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/pipeline.h"
#include "core/sha256.h"
#include "data/cache_format.h"
#include "data/cache_writer.h"
#include "data/walk.h"

enum { FILE_LIMIT = 64 << 20, SLOTS_PER_JOB = 8 };

/* State of a worker, reused between scenes. */
typedef struct worker {
    bj_scenario_reader *scenarios;
    bj_map_reader *maps;
    bj_features_maker *maker;
    bj_features features;
    char *text; /* content of the scenario file */
    size_t room;
    char *map_text;
    size_t map_room;
} worker;

/* Result of a worker. */
typedef struct result {
    bj_cache_bytes *bytes;
    const char *code; /* reason for the rejection, NULL for a scene */
    int io_failed;    /* 1: an input/output error, which stops the run */
    bj_error why;
} result;

typedef struct prep {
    const bj_prep_options *options;
    bj_prep_report *report;
    const char *path;
    bj_walk *walk;
    bj_cache_writer *writer;
    worker *workers;
    result *results;
    int worker_count, slots;
    int64_t total; /* number of items after --limit */
} prep;

int64_t bj_cache_most_bytes(int64_t scenes) {
    const int64_t record =
        bj_cache_record_floats(BJ_AV2_OBS, BJ_AV2_POINTS, BJ_AV2_NEIGHBORS, BJ_AV2_POLYLINES);
    bj_cache_sizes one = {.scenes = 1, .floats = record, .maps = 1};
    int64_t bytes = 0;
    for (int i = 0; i < BJ_COLUMNS; i++) {
        int64_t shape[3], size = (int64_t)bj_dtype_size(bj_cache_columns[i].dtype);
        const int rank = bj_cache_shape(shape, (bj_cache_column)i, &one, BJ_AV2_FUT);
        for (int d = 0; d < rank; d++) size *= shape[d];
        bytes += size;
    }
    return BJ_CACHE_HEADER + scenes * bytes;
}

/* ------------------------------------------------------------------------------------- producing
 */

/* Sets the error code of a rejected scene or of a fatal error. */
static void refuse(result *r, const char *code, bj_status status) {
    r->code = status == BJ_ENOMEM ? "memory" : status == BJ_ENONFINITE ? "nonfinite" : code;
}

static int is_fatal(const result *r) { return r->why.code == BJ_ENOMEM || r->io_failed; }

/* Returns the code of a file that could not be read because of what it is, or NULL if the file
 * looks readable, so that the device or the system failed. */
static const char *code_of(const char *path, const char *missing) {
    struct stat info;
    if (stat(path, &info))
        return errno == ENOENT || errno == ENOTDIR                          ? missing
               : errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG ? "unreadable"
                                                                            : NULL;
    if (!S_ISREG(info.st_mode) || access(path, R_OK)) return "unreadable";
    return NULL;
}

/* Reads an input file. Returns 0 and sets r->code if this fails. An input/output error is fatal,
 * because a rejected scenario would be missing from the cache for good. */
static int read_input(char **text, size_t *room, size_t *size, const char *path,
                      const char *missing, result *r) {
    const bj_status status = bj_file_read_again(text, room, size, path, FILE_LIMIT, &r->why);
    if (status == BJ_OK) return 1;
    const char *code = status == BJ_EIO ? code_of(path, missing) : "unreadable";
    r->io_failed = !code;
    refuse(r, code ? code : "io", status);
    return 0;
}

static int join(char path[PATH_MAX], const char *folder, const char *head, const char *id,
                const char *tail) {
    return snprintf(path, PATH_MAX, "%s/%s%s%s", folder, head, id, tail) < PATH_MAX;
}

static int has_last_step(const bj_scenario *s) {
    for (int64_t row = 0; row < s->rows; row++)
        if (s->track[row] == s->focal && s->step[row] == BJ_SCENARIO_OBSERVED - 1) return 1;
    return 0;
}

static void make_scene(const prep *p, worker *w, result *r, int64_t item, const char *folder) {
    const char *id = bj_walk_id(p->walk, item);
    char parquet[PATH_MAX], json[PATH_MAX];
    size_t size = 0, map_size = 0;
    bj_scenario scenario;
    bj_map map;
    uint8_t digest[BJ_CACHE_HASH];
    bj_status status;
    if (!join(parquet, folder, "scenario_", id, ".parquet") ||
        !join(json, folder, "log_map_archive_", id, ".json")) {
        refuse(r, "unreadable", BJ_FAIL(&r->why, BJ_EIO, "%.200s...: path too long", folder));
        return;
    }
    if (!read_input(&w->text, &w->room, &size, parquet, "missing_scenario", r)) return;
    status = bj_scenario_read_memory(&scenario, w->scenarios, w->text, size, parquet, &r->why);
    if (status != BJ_OK) {
        refuse(r, bj_scenario_stage(w->scenarios), status);
        return;
    }
    if (scenario.id.size != strlen(id) || memcmp(scenario.id.data, id, scenario.id.size)) {
        refuse(r, "id_mismatch",
               BJ_FAIL(&r->why, BJ_EFORMAT, "%s: scenario_id is '%.*s', expected '%s'", parquet,
                       (int)scenario.id.size, scenario.id.data, id));
        return;
    }
    if (!read_input(&w->map_text, &w->map_room, &map_size, json, "missing_map", r)) return;
    status = bj_map_read_memory(&map, w->maps, w->map_text, map_size, json, &r->why);
    if (status != BJ_OK) {
        refuse(r, "map", status);
        return;
    }
    status = bj_features_make(&w->features, w->maker, &scenario, &map, parquet, &r->why);
    if (status != BJ_OK) {
        refuse(r, has_last_step(&scenario) ? "features" : "focal_missing_at_49", status);
        return;
    }
    bj_sha256_block(digest, w->map_text, map_size);
    status = bj_cache_encode(r->bytes, &scenario, &map, &w->features, digest, &r->why);
    if (status != BJ_OK) refuse(r, "names", status);
}

/* Returns the first item with the same id, or -1 if `item` is that item. Only the first item is
 * used. */
static int64_t earlier(const bj_walk *walk, int64_t item) {
    int64_t first = item;
    while (first > 0 && !strcmp(bj_walk_id(walk, first - 1), bj_walk_id(walk, item))) first--;
    return first < item ? first : -1;
}

static void produce(void *context, int64_t item, int slot, int number) {
    prep *p = context;
    result *r = &p->results[slot];
    char folder[BJ_WALK_PATH], other[BJ_WALK_PATH];
    r->code = NULL;
    r->io_failed = 0;
    r->why = (bj_error){0};
    const int64_t first = earlier(p->walk, item);
    if (bj_walk_folder(folder, p->walk, item, &r->why) != BJ_OK ||
        (first >= 0 && bj_walk_folder(other, p->walk, first, &r->why) != BJ_OK)) {
        r->code = "unreadable";
    } else if (first >= 0) {
        r->code = "duplicate";
        (void)BJ_FAIL(&r->why, BJ_EFORMAT, "%s: skipped, because it has the same id as %s", folder,
                      other);
    } else {
        make_scene(p, &p->workers[number], r, item, folder);
    }
}

/* ------------------------------------------------------------------------------------- consuming
 */

static bj_status ask_to_go_on(prep *p, bj_error *err) {
    const bj_prep_options *o = p->options;
    const int64_t done = bj_cache_writer_items(p->writer);
    p->report->accepted = bj_cache_writer_scenes(p->writer);
    p->report->rejected = done - p->report->accepted;
    if (!o->progress || !o->progress(o->context, done, p->total, p->report->rejected)) return BJ_OK;
    p->report->interrupted = 1;
    return BJ_FAIL(err, BJ_ELOCKED, "interrupted"); /* only bj_prep sees this error */
}

static bj_status consume(void *context, int64_t item, int slot, bj_error *err) {
    prep *p = context;
    result *r = &p->results[slot];
    char folder[BJ_WALK_PATH] = "";
    if (!r->code) {
        const bj_status status = bj_cache_writer_add(p->writer, r->bytes, &r->why);
        if (status == BJ_OK) return ask_to_go_on(p, err);
        if (status != BJ_EFORMAT) return BJ_FAIL(err, status, "%s", r->why.message);
        r->code = "names";
    }
    if (is_fatal(r)) return BJ_FAIL(err, r->why.code, "%s", r->why.message);
    if (p->options->strict) return BJ_FAIL(err, BJ_EFORMAT, "%s", r->why.message);
    if (bj_walk_folder(folder, p->walk, item, NULL) != BJ_OK) folder[0] = '\0';
    BJ_TRY(bj_cache_writer_reject(p->writer, bj_walk_id(p->walk, item), folder, r->code,
                                  r->why.message, err));
    return ask_to_go_on(p, err);
}

/* --------------------------------------------------------------------------------------- running
 */

static bj_status create_workers(prep *p, int jobs, bj_error *err) {
    p->slots = jobs == 1 ? 1 : jobs * SLOTS_PER_JOB;
    BJ_TRY(BJ_ALLOC(p->workers, (size_t)jobs, err));
    p->worker_count = jobs;
    for (int i = 0; i < jobs; i++) {
        BJ_TRY(bj_scenario_reader_create(&p->workers[i].scenarios, err));
        BJ_TRY(bj_map_reader_create(&p->workers[i].maps, err));
        BJ_TRY(bj_features_maker_create(&p->workers[i].maker, err));
    }
    BJ_TRY(BJ_ALLOC(p->results, (size_t)p->slots, err));
    for (int i = 0; i < p->slots; i++) BJ_TRY(bj_cache_bytes_create(&p->results[i].bytes, err));
    return BJ_OK;
}

static void release(prep *p) {
    for (int i = 0; p->workers && i < p->worker_count; i++) {
        bj_scenario_reader_free(p->workers[i].scenarios);
        bj_map_reader_free(p->workers[i].maps);
        bj_features_maker_free(p->workers[i].maker);
        bj_free(p->workers[i].text);
        bj_free(p->workers[i].map_text);
    }
    for (int i = 0; p->results && i < p->slots; i++) bj_cache_bytes_free(p->results[i].bytes);
    bj_free(p->workers);
    bj_free(p->results);
    bj_cache_writer_close(&p->writer);
    bj_walk_free(p->walk);
}

static bj_status find(prep *p, bj_error *err) {
    const bj_prep_options *o = p->options;
    BJ_TRY(bj_walk_create(&p->walk, o->roots, o->root_count, o->split, err));
    p->total = bj_walk_count(p->walk);
    if (p->total == 0)
        return BJ_FAIL(err, BJ_EFORMAT, "%s%s: found no scenario%s%s", o->roots[0],
                       o->root_count > 1 ? " and the other folders" : "",
                       o->split ? " of the split " : "", o->split ? o->split : "");
    if (o->limit > 0 && p->total > o->limit) p->total = o->limit;
    p->report->found = p->total;
    p->report->bytes = bj_cache_most_bytes(p->total);
    return BJ_OK;
}

/* Checks that the items of the interrupted run match the first items of this run. */
static bj_status check_resumed(prep *p, bj_error *err) {
    const int64_t items = p->report->resumed = bj_cache_writer_items(p->writer);
    for (int64_t i = 0; i < items; i++) {
        const char *name;
        BJ_TRY(bj_cache_writer_item(&name, p->writer, i, err));
        if (i >= p->total)
            return BJ_FAIL(err, BJ_EARG,
                           "%s.partial: contains %lld scenarios, but the input has only %lld\n"
                           "hint: --restart starts over",
                           p->path, (long long)items, (long long)p->total);
        if (strncmp(name, bj_walk_id(p->walk, i), BJ_CACHE_NAME - 1))
            return BJ_FAIL(err, BJ_EARG,
                           "%s.partial: scenario %lld was '%s' and is now '%.64s'; "
                           "the folders have changed\n"
                           "hint: --restart starts over",
                           p->path, (long long)i, name, bj_walk_id(p->walk, i));
    }
    const int64_t rejected = items - bj_cache_writer_scenes(p->writer);
    if (p->options->strict && rejected)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s.partial: %lld scenarios were rejected before the interruption\n"
                       "hint: --restart reads them again",
                       p->path, (long long)rejected);
    return BJ_OK;
}

static bj_status run(prep *p, bj_error *err) {
    const bj_fact facts[] = {{"split", p->options->split ? p->options->split : "all"}};
    BJ_TRY(bj_cache_writer_open(&p->writer, p->path, facts, 1, p->options->restart, err));
    BJ_TRY(check_resumed(p, err));
    bj_pipeline pipeline = {.first = bj_cache_writer_items(p->writer),
                            .end = p->total,
                            .jobs = p->options->jobs,
                            .context = p,
                            .produce = produce,
                            .consume = consume};
    const int jobs = bj_pipeline_workers(&pipeline);
    BJ_TRY(create_workers(p, jobs, err));
    pipeline.jobs = jobs;
    pipeline.slots = p->slots;
    BJ_TRY(ask_to_go_on(p, err));
    BJ_TRY(bj_pipeline_run(&pipeline, err));
    return bj_cache_writer_finish(&p->writer, p->report, err);
}

/* ------------------------------------------------------------------------------------- interface
 */

/* Fills the report from a published cache whose writer was killed before cleaning up. */
static bj_status report_published(prep *p, int64_t items, bj_error *err) {
    bj_prep_report *r = p->report;
    struct stat info;
    bj_cache *cache = NULL;
    BJ_TRY(bj_cache_open(&cache, p->path, 1, err));
    r->accepted = bj_cache_count(cache);
    r->found = r->resumed = items > r->accepted ? items : r->accepted;
    r->rejected = r->found - r->accepted;
    for (int64_t i = 0; i < r->accepted; i++) {
        const bj_scene_info scene = bj_cache_info(cache, i);
        r->without_future += !scene.has_future;
        if (scene.map >= r->maps) r->maps = scene.map + 1;
    }
    r->bytes = stat(p->path, &info) ? 0 : (int64_t)info.st_size;
    memcpy(r->digest, bj_cache_digest(cache), sizeof r->digest);
    bj_cache_free(cache);
    return BJ_OK;
}

bj_status bj_prep(bj_prep_report *report, const char *path, const bj_prep_options *options,
                  bj_error *err) {
    prep p = {.options = options, .report = report, .path = path};
    struct stat info;
    bj_status status;
    *report = (bj_prep_report){0};
    if (options->root_count < 1) return BJ_FAIL(err, BJ_EARG, "no folders to read");
    if (!options->dry_run && !options->force && stat(path, &info) == 0) {
        int64_t items = -1;
        if (S_ISREG(info.st_mode)) BJ_TRY(bj_cache_writer_tidy(&items, path, err));
        if (items >= 0 && !options->restart) return report_published(&p, items, err);
        return BJ_FAIL(err, BJ_EARG, "%s: already exists\nhint: --force replaces it", path);
    }
    status = find(&p, err);
    if (status == BJ_OK && !options->dry_run) {
        status = run(&p, err);
        if (status == BJ_ELOCKED && report->interrupted) status = BJ_OK;
    }
    release(&p);
    return status;
}
