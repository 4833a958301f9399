/* manifest.c - describes a run in manifest.json and config.resolved.json (docs/RUNS.md).
 *
 * Invariants
 *   1. manifest.json is the last file that is written before the first step, so a folder that
 *      contains it is a run. Later, extend.c adds extensions and changes nothing else.
 *   2. Resuming compares everything that affects later bits with the manifest: settings, data,
 *      anchor, precision, instruction set, build.
 * Test  tests/run/test_train.c, tests/run/test_train_fails.c, tests/cli/train.sh
 */
#define _DEFAULT_SOURCE /* gethostname */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/build.h"
#include "core/file.h"
#include "data/loader.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "run/run.h"
#include "run/settings.h"

/* -------------------------------------------------------------------------------------- digests */

static void add_ids(bj_sha256 *hash, const bj_train_run *r, int dev, const int64_t *numbers,
                    int64_t count) {
    for (int64_t b = 0; b < count; b++) {
        char id[BJ_RUN_ID];
        bj_run_scene_id(id, r, dev, numbers[b]);
        bj_sha256_update(hash, id, strlen(id) + 1);
    }
}

/* Computes the digest of the scenario ids in the order of the first epoch. */
static bj_status scenes_digest(char hex[BJ_SHA256_HEX], bj_train_run *r, int dev, bj_error *err) {
    bj_sha256 hash;
    bj_sha256_init(&hash);
    if (!dev || !r->dev_scenes) {
        bj_loader *loader = dev ? r->dev : r->fit;
        add_ids(&hash, r, dev, bj_loader_order(loader, 0), bj_loader_scenes(loader));
    }
    for (int64_t step = 0; dev && r->dev_scenes && step < bj_run_dev_steps(r); step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        BJ_TRY(bj_run_dev_batch(&batch, &numbers, r, step, err));
        add_ids(&hash, r, dev, numbers, batch->B);
    }
    bj_sha256_final(&hash, hex);
    return BJ_OK;
}

/* Computes the order digest of a scene source from its digest and the batch size. */
static void source_digest(char hex[BJ_SHA256_HEX], const bj_train_run *r) {
    char text[BJ_SHA256_HEX + 80];
    const int size = snprintf(text, sizeof text, "%s, %lld updates of %d scenes\n",
                              r->scenes->digest, (long long)r->steps, r->settings.batch);
    bj_sha256_memory(hex, text, (size_t)size);
}

/* Computes a digest over the first rows of the transitions of the first updates. */
static void maze_digest(char hex[BJ_SHA256_HEX], bj_train_run *r) {
    enum { UPDATES = 1000 };
    bj_sha256 hash;
    bj_sha256_init(&hash);
    for (int64_t step = 0; step < r->steps && step < UPDATES; step++) {
        const int64_t *rows;
        const bj_batch batch = bj_maze_source_batch(&rows, r->maze, 0, step);
        for (int b = 0; b < batch.B; b++) {
            unsigned char bytes[8];
            for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)rows[b] >> 8 * i);
            bj_sha256_update(&hash, bytes, sizeof bytes);
        }
    }
    bj_sha256_final(&hash, hex);
}

/* Computes a digest of the tensors of one part of a model, or of the whole model for BJ_PARTS. The
 * result is "" if there are no tensors. */
static bj_status part_digest(char hex[BJ_SHA256_HEX], const bj_model *model, bj_param_part part,
                             bj_error *err) {
    const bj_layout *layout = &model->layout;
    bj_tensor *tensors;
    int count = 0;
    hex[0] = '\0';
    BJ_TRY(BJ_ALLOC(tensors, (size_t)layout->count, err));
    for (int i = 0; i < layout->count; i++)
        if (part == BJ_PARTS || layout->params[i].part == part)
            tensors[count++] = bj_model_tensor(model, i);
    const bj_status status = count ? bj_checkpoint_digest(hex, tensors, count, err) : BJ_OK;
    bj_free(tensors);
    return status;
}

/* Digests of the initial weights, of the whole model and of each part that arms may share. */
typedef struct initial {
    char all[BJ_SHA256_HEX], part[BJ_PARTS][BJ_SHA256_HEX];
} initial;

static bj_status initial_digests(initial *out, const bj_model *model, bj_error *err) {
    BJ_TRY(part_digest(out->all, model, BJ_PARTS, err));
    for (int i = 0; i < BJ_PARTS; i++)
        BJ_TRY(part_digest(out->part[i], model, (bj_param_part)i, err));
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- writing */

static void add_maze(bj_doc *j, yyjson_mut_val *root, const bj_train_run *r) {
    const bj_maze_source *s = r->maze;
    yyjson_mut_val *data = bj_doc_child(j, root, "data");
    bj_doc_add_text(j, data, "path", r->options->data);
    bj_doc_add_text(j, data, "digest", s->digest);
    bj_doc_add_integer(j, data, "steps", s->info.steps);
    bj_doc_add_integer(j, data, "episodes", s->info.episodes);
    if (s->fitted) bj_doc_add_integer(j, data, "held_out", s->held_out);
    yyjson_mut_val *maze = bj_doc_child(j, root, "maze");
    bj_doc_add_text(j, maze, "name", s->maze->name);
    if (*s->maze_digest) bj_doc_add_text(j, maze, "sha256", s->maze_digest);
    bj_doc_add_integer(j, maze, "cells", s->maze->cells);
    bj_doc_add_integer(j, maze, "edges", s->info.edges);
    bj_doc_add_integer(j, maze, "withheld", s->withheld_count);
    bj_doc_add_integer(j, maze, "dropped", bj_transitions_dropped(s->transitions));
}

static void add_data(bj_doc *j, yyjson_mut_val *root, const char *key, const char *path,
                     const bj_cache *cache) {
    yyjson_mut_val *data = bj_doc_child(j, root, key);
    bj_doc_add_text(j, data, "path", path);
    bj_doc_add_text(j, data, "digest", bj_cache_digest(cache));
    bj_doc_add_integer(j, data, "scenes", bj_cache_count(cache));
}

static void add_source(bj_doc *j, yyjson_mut_val *root, const bj_train_run *r) {
    yyjson_mut_val *data = bj_doc_child(j, root, "data");
    bj_doc_add_text(j, data, "path", r->options->data);
    bj_doc_add_text(j, data, "source", r->scenes->name);
    bj_doc_add_text(j, data, "digest", r->scenes->digest);
    bj_doc_add_integer(j, data, "scenes", bj_run_fit_count(r));
}

static void add_initial(bj_doc *j, yyjson_mut_val *root, const initial *digests) {
    yyjson_mut_val *weights = bj_doc_child(j, root, "initial");
    bj_doc_add_text(j, weights, "sha256", digests->all);
    for (int i = 0; i < BJ_PARTS; i++)
        if (*digests->part[i]) bj_doc_add_text(j, weights, bj_part_name(i), digests->part[i]);
}

static const char *precision(void) { return sizeof(bj_real) == sizeof(float) ? "float" : "double"; }

static void add_machine(bj_doc *j, yyjson_mut_val *root, const bj_train_run *r) {
    char host[128] = "", created[40] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gethostname(host, sizeof host - 1)) host[0] = '\0';
    if (gmtime_r(&now, &utc)) strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    bj_doc_add_text(j, root, "created", created);
    bj_doc_add_text(j, root, "host", host);
    bj_doc_add_text(j, root, "isa", bj_trainer_isa(r->trainer));
    bj_doc_add_integer(j, root, "threads", r->options->threads);
    bj_doc_add_text(j, root, "real", precision());
    bj_doc_add_text(j, root, "build", bj_build());
    if (strcmp(r->settings.precision, "single"))
        bj_doc_add_text(j, root, "precision", r->settings.precision);
}

static bj_status keep_config(const bj_train_run *r, bj_error *err) {
    char path[BJ_RUN_FILE], *content;
    size_t size;
    if (!r->options->config) return BJ_OK;
    BJ_TRY(bj_run_path(path, r->options->dir, "config.yaml", err));
    BJ_TRY(bj_file_read(&content, &size, r->options->config, 1 << 20, err));
    const bj_status status = bj_file_write(path, content, size, err);
    bj_free(content);
    return status;
}

bj_status bj_run_write_manifest(bj_train_run *r, bj_error *err) {
    const bj_settings *s = &r->settings;
    const bj_counts counts = bj_arch_counts(&r->arch);
    char settings[BJ_SHA256_HEX], order[BJ_SHA256_HEX], dev[BJ_SHA256_HEX], path[BJ_RUN_FILE];
    initial weights;
    bj_doc j;
    BJ_TRY(bj_settings_digest(settings, s, err));
    BJ_TRY(initial_digests(&weights, r->model, err));
    if (r->maze) {
        maze_digest(order, r);
    } else {
        if (r->scenes) source_digest(order, r);
        else BJ_TRY(scenes_digest(order, r, 0, err));
        BJ_TRY(scenes_digest(dev, r, 1, err));
    }
    BJ_TRY(bj_run_path(path, r->options->dir, "config.resolved.json", err));
    BJ_TRY(bj_settings_write(s, path, err));
    BJ_TRY(keep_config(r, err));
    BJ_TRY(bj_doc_begin(&j, "branchjepa.run/1", err));
    yyjson_mut_val *const root = j.root;
    bj_doc_add_text(&j, root, "version", bj_version());
    bj_doc_add_text(&j, root, "arm", s->arm);
    bj_doc_add_text(&j, root, "recipe", s->recipe);
    bj_doc_add_unsigned(&j, root, "seed", s->seed);
    bj_doc_add_text(&j, bj_doc_child(&j, root, "settings"), "sha256", settings);
    if (r->maze) add_maze(&j, root, r);
    else if (r->scenes) add_source(&j, root, r);
    else add_data(&j, root, "data", r->options->data, r->cache);
    if (r->dev_cache) add_data(&j, root, "dev_data", r->options->dev, r->dev_cache);
    yyjson_mut_val *split = bj_doc_child(&j, root, "split");
    bj_doc_add_integer(&j, split, "fit", bj_run_fit_count(r));
    bj_doc_add_integer(&j, split, "dev", bj_run_dev_count(r));
    if (!r->maze) bj_doc_add_text(&j, split, "dev_sha256", dev);
    bj_doc_add_text(&j, bj_doc_child(&j, root, "order"), "sha256", order);
    add_initial(&j, root, &weights);
    if (*r->anchor_digest)
        bj_doc_add_text(&j, bj_doc_child(&j, root, "anchor"), "sha256", r->anchor_digest);
    if (s->init[0]) bj_init_add(&j, root, &r->init, s);
    yyjson_mut_val *parameters = bj_doc_child(&j, root, "parameters");
    bj_doc_add_integer(&j, parameters, "encoder", (int64_t)counts.encoder);
    bj_doc_add_integer(&j, parameters, "downstream", (int64_t)counts.downstream);
    bj_doc_add_integer(&j, parameters, "total", (int64_t)counts.total);
    bj_doc_add_integer(&j, root, "steps_per_epoch", r->steps);
    add_machine(&j, root, r);
    return bj_run_write_doc(&j, r->options->dir, "manifest.json", err);
}

/* ---------------------------------------------------------------------------------------- check */

/* Returns the key of the first setting that has changed. */
static bj_status check_settings(const bj_train_run *r, bj_error *err) {
    char path[BJ_RUN_FILE];
    bj_config *began;
    bj_status status = BJ_OK;
    BJ_TRY(bj_run_path(path, r->options->dir, "config.resolved.json", err));
    BJ_TRY(bj_config_read(&began, path, err));
    for (int i = 0; i < bj_setting_count() && status == BJ_OK; i++) {
        const char *key = bj_setting_at(i).key, *found = bj_config_get(began, key);
        char now[BJ_SETTING_TEXT_SIZE];
        char plain[BJ_SETTING_TEXT_SIZE];
        bj_setting_text(now, &r->settings, i);
        if (!found && bj_setting_is_added(i)) { /* the setting is newer than the run */
            bj_setting_default(plain, i);
            found = plain;
        }
        if (!found || strcmp(found, now))
            status = BJ_FAIL(err, BJ_EMISMATCH,
                             "%s: this run was started with different settings: "
                             "%s was '%.120s' and is now '%.120s'",
                             path, key, found ? found : "missing", now);
    }
    bj_config_free(began);
    return status;
}

/* Runs of earlier versions do not state their build. */
static int has_build(const bj_config *manifest) { return bj_config_get(manifest, "build") != NULL; }

static void warn_without_build(const bj_train_run *r, const char *path) {
    char line[BJ_RUN_FILE + 160];
    if (!r->options->note) return;
    snprintf(line, sizeof line,
             "warning: %s: does not contain the library build that started the run; "
             "a different build may change the last bits of the results",
             path);
    r->options->note(r->options->context, line);
}

bj_status bj_run_check_manifest(const bj_train_run *r, bj_error *err) {
    char path[BJ_RUN_FILE], settings[BJ_SHA256_HEX];
    bj_config *manifest;
    BJ_TRY(check_settings(r, err));
    BJ_TRY(bj_settings_digest(settings, &r->settings, err));
    BJ_TRY(bj_run_path(path, r->options->dir, "manifest.json", err));
    BJ_TRY(bj_config_read(&manifest, path, err));
    const struct {
        const char *key, *expected, *what;
    } facts[] = {
        {"settings.sha256", settings, "different settings"},
        {"data.digest", bj_run_data_digest(r), "different data"},
        {"maze.name", r->maze ? r->maze->maze->name : NULL, "a different maze"},
        {"maze.sha256", r->maze && *r->maze->maze_digest ? r->maze->maze_digest : NULL,
         "a different maze"},
        {"dev_data.digest", r->dev_cache ? bj_cache_digest(r->dev_cache) : NULL,
         "different development data"},
        {"anchor.sha256", *r->anchor_digest ? r->anchor_digest : NULL,
         "different weights of the anchor"},
        {"real", precision(), "a different precision"},
        {"isa", bj_trainer_isa(r->trainer),
         "a different instruction set, which changes the last bits of the results"},
        {"build", has_build(manifest) ? bj_build() : NULL,
         "a different build of the library, which changes the last bits of the results"},
    };
    bj_status status = BJ_OK;
    for (size_t i = 0; i < sizeof facts / sizeof *facts && status == BJ_OK; i++) {
        const char *found = bj_config_get(manifest, facts[i].key);
        if (!found != !facts[i].expected || (found && strcmp(found, facts[i].expected)))
            status =
                BJ_FAIL(err, BJ_EMISMATCH,
                        "%s: this run was started with %s: %s was %.70s and is now %.70s",
                        path, facts[i].what, facts[i].key, found ? found : "missing",
                        facts[i].expected ? facts[i].expected : "missing");
    }
    if (status == BJ_OK && !has_build(manifest)) warn_without_build(r, path);
    bj_config_free(manifest);
    return status;
}

bj_status bj_run_check_target(const bj_train_run *r, bj_error *err) {
    char path[BJ_RUN_FILE];
    bj_config *manifest;
    BJ_TRY(bj_run_path(path, r->options->dir, "manifest.json", err));
    BJ_TRY(bj_config_read(&manifest, path, err));
    const char *found = bj_config_get(manifest, "init.target_sha256");
    const bj_status status = found && !strcmp(found, r->init.target_sha256)
                                 ? BJ_OK
                                 : BJ_FAIL(err, BJ_EMISMATCH,
                                           "%s: the run was started with another target encoder: "
                                           "init.target_sha256 was %.70s and is now %.70s",
                                           path, found ? found : "missing", r->init.target_sha256);
    bj_config_free(manifest);
    return status;
}
