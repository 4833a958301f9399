/* simulate.c - writes the simulated world to a cache or to folders of official files.
 *
 *   town -> map as JSON -> map shared by all scenes of the town           once per town
 *   scene -> features -> bytes of a cache     or     Parquet and JSON     on workers, in any order
 *                     -> cache, law                   in order, on the calling thread
 *
 * An item of the pipeline is a town with all its scenes. The cache is computed from the same JSON
 * text and the same numbers that the folders contain, so a cache made from the folders is
 * identical. A resumed run regenerates the scenes that are already in the cache, but only to
 * compute their laws.
 * Tests: tests/world/test_simulate.c, tests/cli/simulate.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/folder.h"
#include "core/pipeline.h"
#include "core/sha256.h"
#include "data/cache_writer.h"
#include "world/folder.h"
#include "world/law_file.h"
#include "world/town_worker.h"

enum { SLOTS_PER_JOB = 2, PATH_SIZE = 4096 };

/* State of a worker. */
typedef struct worker {
    bj_town_worker at;
    bj_world_folder *folder; /* NULL if the output is a cache */
} worker;

/* The results for one town. */
typedef struct block {
    bj_cache_bytes *bytes[BJ_WORLD_TOWN_SCENES]; /* NULL if the output is folders */
    bj_law_record *laws;                         /* (BJ_WORLD_TOWN_SCENES) */
    bj_error why;                                /* code is BJ_OK on success */
} block;

typedef struct run {
    const bj_world_options *options;
    bj_world_report *report;
    const char *path, *split;
    int version;
    char law_path[PATH_SIZE];
    bj_cache_writer *writer; /* NULL if the output is folders */
    bj_law_writer *law;
    worker *workers;
    block *blocks;
    int worker_count, slots;
    int64_t done_before; /* scenes that the cache already contains */
} run;

/* ---------------------------------------------------------------------------------- producing */

static int64_t town_end(const run *r, int64_t town) {
    const int64_t end = (town + 1) * BJ_WORLD_TOWN_SCENES;
    return end < r->options->scenes ? end : r->options->scenes;
}

static bj_status make_block(run *r, worker *w, block *b, int64_t number, bj_error *err) {
    const bj_world_options *o = r->options;
    bj_world_scene *scene = w->at.scene;
    bj_map map;
    uint8_t digest[32];
    BJ_TRY(bj_town_worker_make(&w->at, &map, r->version, o->seed, r->split, number, err));
    bj_sha256_block(digest, w->at.text.text, w->at.text.size);
    const int64_t first = number * BJ_WORLD_TOWN_SCENES, end = town_end(r, number);
    for (int64_t i = first; i < end; i++) {
        bj_world_scene_make(scene, w->at.town, o->seed, r->split, i, 0);
        bj_law_record_fill(&b->laws[i - first], scene);
        if (w->folder) {
            BJ_TRY(bj_world_folder_add(w->folder, scene, &w->at.text, err));
        } else if (i >= r->done_before) {
            BJ_TRY(bj_features_make(w->at.features, w->at.maker, &scene->scenario, &map, scene->id,
                                    err));
            BJ_TRY(bj_cache_encode(b->bytes[i - first], &scene->scenario, &map, w->at.features,
                                   digest, err));
        }
    }
    return BJ_OK;
}

static void produce(void *context, int64_t item, int slot, int number) {
    run *r = context;
    block *b = &r->blocks[slot];
    b->why = (bj_error){0};
    const bj_status status = make_block(r, &r->workers[number], b, item, &b->why);
    b->why.code = status;
}

/* ---------------------------------------------------------------------------------- consuming */

static bj_status ask_to_go_on(run *r, bj_error *err) {
    const bj_world_options *o = r->options;
    if (!o->progress || !o->progress(o->context, r->report->scenes, o->scenes)) return BJ_OK;
    r->report->interrupted = 1;
    return BJ_FAIL(err, BJ_ELOCKED, "interrupted"); /* handled by the caller of the pipeline */
}

static bj_status consume(void *context, int64_t item, int slot, bj_error *err) {
    run *r = context;
    block *b = &r->blocks[slot];
    if (b->why.code != BJ_OK) return BJ_FAIL(err, b->why.code, "%s", b->why.message);
    const int64_t first = item * BJ_WORLD_TOWN_SCENES, end = town_end(r, item);
    for (int64_t i = first; i < end; i++) {
        if (r->writer && i >= r->done_before)
            BJ_TRY(bj_cache_writer_add(r->writer, b->bytes[i - first], err));
        BJ_TRY(bj_law_writer_add(r->law, &b->laws[i - first], err));
        r->report->modes += b->laws[i - first].count;
        r->report->scenes++;
    }
    r->report->towns++;
    return ask_to_go_on(r, err);
}

/* ------------------------------------------------------------------------------------ running */

static bj_status create_worker(const run *r, worker *w, bj_error *err) {
    BJ_TRY(bj_town_worker_init(&w->at, err));
    return r->writer ? BJ_OK : bj_world_folder_create(&w->folder, r->path, err);
}

static bj_status create_workers(run *r, int jobs, bj_error *err) {
    r->slots = jobs == 1 ? 1 : jobs * SLOTS_PER_JOB;
    BJ_TRY(BJ_ALLOC(r->workers, (size_t)jobs, err));
    r->worker_count = jobs;
    for (int i = 0; i < jobs; i++) BJ_TRY(create_worker(r, &r->workers[i], err));
    BJ_TRY(BJ_ALLOC(r->blocks, (size_t)r->slots, err));
    for (int i = 0; i < r->slots; i++) {
        BJ_TRY(BJ_ALLOC(r->blocks[i].laws, BJ_WORLD_TOWN_SCENES, err));
        for (int k = 0; r->writer && k < BJ_WORLD_TOWN_SCENES; k++)
            BJ_TRY(bj_cache_bytes_create(&r->blocks[i].bytes[k], err));
    }
    return BJ_OK;
}

static void release(run *r) {
    for (int i = 0; r->workers && i < r->worker_count; i++) {
        worker *w = &r->workers[i];
        bj_town_worker_reset(&w->at);
        bj_world_folder_free(w->folder);
    }
    for (int i = 0; r->blocks && i < r->slots; i++) {
        for (int k = 0; k < BJ_WORLD_TOWN_SCENES; k++) bj_cache_bytes_free(r->blocks[i].bytes[k]);
        bj_free(r->blocks[i].laws);
    }
    bj_free(r->workers);
    bj_free(r->blocks);
    bj_law_writer_abort(&r->law);
    bj_cache_writer_close(&r->writer);
}

static bj_status run_pipeline(run *r, bj_error *err) {
    const int64_t towns = (r->options->scenes + BJ_WORLD_TOWN_SCENES - 1) / BJ_WORLD_TOWN_SCENES;
    bj_pipeline pipeline = {.first = 0,
                            .end = towns,
                            .jobs = r->options->jobs,
                            .context = r,
                            .produce = produce,
                            .consume = consume};
    pipeline.jobs = bj_pipeline_workers(&pipeline);
    BJ_TRY(create_workers(r, pipeline.jobs, err));
    pipeline.slots = r->slots;
    BJ_TRY(bj_law_writer_open(&r->law, r->law_path, err));
    BJ_TRY(ask_to_go_on(r, err));
    return bj_pipeline_run(&pipeline, err);
}

/* ---------------------------------------------------------------------------------- interface */

static bj_status prepare(run *r, const char *law_tail, bj_error *err) {
    const bj_world_options *o = r->options;
    *r->report = (bj_world_report){0};
    r->split = o->split ? o->split : "train";
    BJ_TRY(bj_world_check_split(r->split, err));
    BJ_TRY(bj_world_choose_version(&r->version, o->version, err));
    if (o->scenes < 1 || o->scenes > (int64_t)1 << 32)
        return BJ_FAIL(err, BJ_EARG, "scenes: found %lld, expected 1 to 4294967296",
                       (long long)o->scenes);
    if (snprintf(r->law_path, PATH_SIZE, "%s%s", r->path, law_tail) >= PATH_SIZE)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", r->path);
    return BJ_OK;
}

static bj_status fail_exists(const char *path, bj_error *err) {
    return BJ_FAIL(err, BJ_EARG, "%s: already exists\nhint: --force replaces it", path);
}

/* Fails if the cache exists, or a law that does not belong to an interrupted run. The law is
 * published before the cache, so a run that was killed in between has left its law. */
static bj_status check_free(const run *r, bj_error *err) {
    struct stat info;
    char partial[PATH_SIZE + 16];
    if (stat(r->path, &info) == 0) {
        int64_t items;
        if (S_ISREG(info.st_mode)) BJ_TRY(bj_cache_writer_tidy(&items, r->path, err));
        return fail_exists(r->path, err);
    }
    snprintf(partial, sizeof partial, "%s.partial", r->path);
    if (bj_file_exists(r->law_path) && !bj_file_exists(partial))
        return fail_exists(r->law_path, err);
    return BJ_OK;
}

/* Checks that the last scene of the interrupted run is the expected scene of this run. */
static bj_status check_resumed(run *r, bj_error *err) {
    char id[BJ_SCENARIO_NAME];
    r->done_before = r->report->resumed = bj_cache_writer_items(r->writer);
    if (r->done_before > r->options->scenes)
        return BJ_FAIL(err, BJ_EARG,
                       "%s.partial: has %lld scenes, expected at most %lld\n"
                       "hint: --restart starts over",
                       r->path, (long long)r->done_before, (long long)r->options->scenes);
    if (!r->done_before) return BJ_OK;
    const char *name;
    BJ_TRY(bj_cache_writer_item(&name, r->writer, r->done_before - 1, err));
    bj_world_scene_id(id, r->version, r->options->seed, r->split, r->done_before - 1);
    if (strcmp(name, id))
        return BJ_FAIL(err, BJ_EARG,
                       "%s.partial: scene %lld is '%s', expected '%s'; "
                       "the seed, the world version or the source is different\n"
                       "hint: --restart starts over",
                       r->path, (long long)(r->done_before - 1), name, id);
    return BJ_OK;
}

bj_status bj_world_to_cache(bj_world_report *report, const char *cache,
                            const bj_world_options *options, bj_error *err) {
    run r = {.options = options, .report = report, .path = cache};
    BJ_TRY(prepare(&r, ".law.safetensors", err));
    if (!options->force) BJ_TRY(check_free(&r, err));
    const bj_fact facts[] = {{"split", r.split}};
    bj_status status = bj_cache_writer_open(&r.writer, cache, facts, 1, options->restart, err);
    if (status == BJ_OK) status = check_resumed(&r, err);
    if (status == BJ_OK) status = run_pipeline(&r, err);
    /* Publish the law first, so that a published cache always has a law. */
    if (status == BJ_OK)
        status = bj_law_writer_finish(&r.law, r.version, options->seed, r.split, &report->law_bytes,
                                      err);
    if (status == BJ_OK) {
        bj_prep_report prepared = {0};
        status = bj_cache_writer_finish(&r.writer, &prepared, err);
        report->bytes = prepared.bytes;
        memcpy(report->digest, prepared.digest, sizeof report->digest);
    }
    if (status == BJ_ELOCKED && report->interrupted) status = BJ_OK;
    release(&r);
    return status;
}

bj_status bj_world_to_folders(bj_world_report *report, const char *folder,
                              const bj_world_options *options, bj_error *err) {
    run r = {.options = options, .report = report, .path = folder};
    BJ_TRY(prepare(&r, "/law.safetensors", err));
    if (!options->force && bj_file_exists(r.law_path)) return fail_exists(r.law_path, err);
    BJ_TRY(bj_folders_make(folder, err));
    bj_status status = run_pipeline(&r, err);
    if (status == BJ_OK)
        status = bj_law_writer_finish(&r.law, r.version, options->seed, r.split, &report->law_bytes,
                                      err);
    if (status == BJ_ELOCKED && report->interrupted) status = BJ_OK;
    release(&r);
    return status;
}

bj_status bj_world_redraw(double *futures, int *modes, int version, uint64_t seed,
                          const char *split, int64_t index, int64_t first, int64_t draws,
                          bj_error *err) {
    bj_town *town = NULL;
    bj_world_scene *scene = NULL;
    if (index < 0 || index >= (int64_t)1 << 32 || first < 0 || draws < 0)
        return BJ_FAIL(err, BJ_EARG,
                       "scene %lld or its %lld draws starting at %lld are out of range",
                       (long long)index, (long long)draws, (long long)first);
    BJ_TRY(bj_world_check_split(split, err));
    BJ_TRY(bj_world_choose_version(&version, version, err));
    bj_status status = BJ_ALLOC(town, 1, err);
    if (status == BJ_OK) status = BJ_ALLOC(scene, 1, err);
    if (status == BJ_OK)
        status = bj_town_make(town, version, seed, split, index / BJ_WORLD_TOWN_SCENES, err);
    if (status == BJ_OK) {
        bj_world_scene_observe(scene, town, seed, split, index);
        for (int64_t d = 0; d < draws; d++) {
            double future[BJ_LAW_STEPS][2];
            const int mode =
                bj_world_scene_future(future, scene, seed, split, (uint64_t)(first + d));
            for (int t = 0; t < BJ_LAW_STEPS; t++)
                bj_world_scene_local(&future[t][0], &future[t][1], scene);
            memcpy(futures + d * BJ_LAW_STEPS * 2, future, sizeof future);
            if (modes) modes[d] = mode;
        }
    }
    bj_free(scene);
    bj_free(town);
    return status;
}
