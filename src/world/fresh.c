/* fresh.c - generates training and development scenes from a short specification
 * (branchjepa/fresh.h).
 *
 *   training      split "train" of the given seed, permuted within windows
 *   development   split "dev" of BJ_FRESH_DEV_SEED, in ascending order, one window
 *
 * Tests: tests/world/test_fresh.c, tests/cli/train_fresh.sh
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"
#include "data/features.h"
#include "world/scene.h"

enum { NAME_SIZE = 64 };
static const char fit_split[] = "train", dev_split[] = "dev";
static const int64_t most_scenes = (int64_t)1 << 32;

struct bj_fresh {
    bj_world_stream *fit, *dev;
    bj_scene_source fit_source, dev_source;
    char name[NAME_SIZE], dev_name[NAME_SIZE], digest[BJ_SHA256_HEX];
};

/* -------------------------------------------------------------------------------- specification */

/* Returns the text after "world:" or "worldN:", or NULL if the text starts differently. */
static const char *body_of(const char *text, int *version) {
    *version = BJ_WORLD_VERSION;
    if (strncmp(text, "world", 5)) return NULL;
    text += 5;
    if (isdigit((unsigned char)*text)) *version = *text++ - '0';
    return *text == ':' ? text + 1 : NULL;
}

int bj_fresh_is_spec(const char *text) {
    int version;
    return body_of(text, &version) != NULL;
}

/* Reads a decimal number. Returns the end of the number, or NULL if there is none or it
 * overflows. */
static const char *read_number(uint64_t *out, const char *text) {
    char *end;
    if (!isdigit((unsigned char)*text)) return NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

bj_status bj_fresh_parse(bj_fresh_spec *out, const char *text, bj_error *err) {
    int version;
    const char *at = body_of(text, &version);
    uint64_t seed, scenes = 0;
    if (!at) return BJ_FAIL(err, BJ_EARG, "%.100s: expected world:SEED or world:SEED:SCENES", text);
    if (version < 1 || version > BJ_WORLD_VERSION)
        return BJ_FAIL(err, BJ_EARG, "%.100s: the world version is %d, expected 1 to %d", text,
                       version, BJ_WORLD_VERSION);
    at = read_number(&seed, at);
    if (!at || (*at && *at != ':'))
        return BJ_FAIL(err, BJ_EARG,
                       "%.100s: the seed is not a number from 0 to 18446744073709551615\n"
                       "hint: write world:SEED or world:SEED:SCENES, for example world:7:1000000",
                       text);
    if (*at == ':') {
        at = read_number(&scenes, at + 1);
        if (!at || *at || scenes < 1 || scenes > (uint64_t)most_scenes)
            return BJ_FAIL(err, BJ_EARG,
                           "%.100s: the number of scenes is not a number from 1 to %lld\n"
                           "hint: write world:SEED:SCENES, for example world:7:1000000",
                           text, (long long)most_scenes);
    }
    const char *const purpose = bj_world_seed_reserved(seed);
    if (purpose)
        return BJ_FAIL(err, BJ_EARG,
                       "%.100s: seed %llu is reserved for %s\n"
                       "hint: choose another seed below %u",
                       text, (unsigned long long)seed, purpose, BJ_BLIND_SEEDS);
    *out = (bj_fresh_spec){version, seed, (int64_t)scenes};
    return BJ_OK;
}

bj_status bj_fresh_digest(char hex[65], const bj_fresh_spec *spec, bj_error *err) {
    char text[512];
    const int size =
        snprintf(text, sizeof text,
                 "branchjepa.fresh/1\nfeatures %s\nworld %d\nseed %llu\nsplit %s\nscenes %lld\n"
                 "window %d towns of %d scenes\ndevelopment seed %u, split %s, %d scenes\n",
                 BJ_FEATURES_VERSION, spec->version, (unsigned long long)spec->seed, fit_split,
                 (long long)spec->scenes, BJ_FRESH_WINDOW_TOWNS, BJ_FRESH_TOWN_SCENES,
                 BJ_FRESH_DEV_SEED, dev_split, BJ_FRESH_DEV_SCENES);
    (void)err; /* nothing fails */
    bj_sha256_memory(hex, text, (size_t)size);
    return BJ_OK;
}

/* Returns 1 if `id` is the id of scene `index`. The first eight digits of an id are the index. */
static int is_scene(const char *id, int version, uint64_t seed, const char *split, int64_t index) {
    char expected[BJ_SCENARIO_NAME];
    bj_world_scene_id(expected, version, seed, split, index);
    return !strcmp(id, expected);
}

int bj_fresh_has(const bj_fresh_spec *spec, const char *id) {
    char *end, digits[9] = "";
    strncpy(digits, id, 8);
    const int64_t index = (int64_t)strtoull(digits, &end, 16);
    if (end != digits + 8) return 0;
    if (index < BJ_FRESH_DEV_SCENES &&
        is_scene(id, spec->version, BJ_FRESH_DEV_SEED, dev_split, index))
        return 1;
    /* A window consists of whole towns, so the last window may contain scenes past spec->scenes. */
    const int64_t window = BJ_FRESH_WINDOW_TOWNS * BJ_FRESH_TOWN_SCENES;
    const int64_t end_index =
        spec->scenes ? (spec->scenes + window - 1) / window * window : most_scenes;
    return index < end_index && is_scene(id, spec->version, spec->seed, fit_split, index);
}

/* -------------------------------------------------------------------------------------- sources */

static bj_status read_stream(const bj_scene **scenes, const int64_t **numbers, void *context,
                             int64_t first, int count, bj_error *err) {
    return bj_world_stream_read(scenes, numbers, context, first, count, err);
}

static bj_status open_source(bj_scene_source *source, bj_world_stream **stream, char *name,
                             const char *digest, const bj_world_stream_options *options,
                             int64_t scenes, bj_error *err) {
    snprintf(name, NAME_SIZE, "world:%d:%llu:%s", options->version,
             (unsigned long long)options->seed, options->split);
    BJ_TRY(bj_world_stream_create(stream, options, err));
    *source = (bj_scene_source){.name = name,
                                .digest = digest,
                                .scenes = scenes,
                                .arch = bj_world_stream_arch(),
                                .context = *stream,
                                .read = read_stream,
                                .id = bj_world_stream_id};
    return BJ_OK;
}

static bj_status build(bj_fresh *f, const bj_fresh_spec *spec, int threads, bj_error *err) {
    const bj_world_stream_options fit = {
        .version = spec->version, .seed = spec->seed, .split = fit_split, .threads = threads};
    const bj_world_stream_options dev = {.version = spec->version,
                                         .seed = BJ_FRESH_DEV_SEED,
                                         .split = dev_split,
                                         .towns = (BJ_FRESH_DEV_SCENES + BJ_FRESH_TOWN_SCENES - 1) /
                                                  BJ_FRESH_TOWN_SCENES,
                                         .ordered = 1,
                                         .threads = threads};
    BJ_TRY(bj_fresh_digest(f->digest, spec, err));
    BJ_TRY(open_source(&f->fit_source, &f->fit, f->name, f->digest, &fit, spec->scenes, err));
    return open_source(&f->dev_source, &f->dev, f->dev_name, f->digest, &dev, BJ_FRESH_DEV_SCENES,
                       err);
}

bj_status bj_fresh_create(bj_fresh **out, const bj_fresh_spec *spec, int threads, bj_error *err) {
    bj_fresh *f;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(f, 1, err));
    const bj_status status = build(f, spec, threads, err);
    if (status == BJ_OK) *out = f;
    else bj_fresh_free(f);
    return status;
}

void bj_fresh_free(bj_fresh *f) {
    if (!f) return;
    bj_world_stream_free(f->fit);
    bj_world_stream_free(f->dev);
    bj_free(f);
}

const bj_scene_source *bj_fresh_fit(const bj_fresh *f) { return &f->fit_source; }
const bj_scene_source *bj_fresh_dev(const bj_fresh *f) { return &f->dev_source; }
double bj_fresh_seconds(const bj_fresh *f) { return bj_world_stream_seconds(f->fit); }
