/* cache.c - opens, reads and verifies a cache. docs/DATA.md describes the format. */
#include "data/cache.h"

#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "data/cache_internal.h"

/* --------------------------------------------------------------------------------------- opening
 */

/* Returns the number of 32-bit words that have a bit for each of `count` items. */
static size_t words_of(int64_t count) { return (size_t)count / 32 + 1; }

static bj_status open_file(bj_cache **out, bj_safetensors *file, int flags, bj_error *err) {
    bj_cache *c;
    bj_status status = BJ_ALLOC(c, 1, err);
    if (status != BJ_OK) {
        bj_safetensors_close(file);
        return status;
    }
    c->file = file;
    c->blind = (flags & BJ_CACHE_BLIND) != 0;
    BJ_GOTO(status, fail, bj_cache_check(c, flags, err));
    BJ_GOTO(status, fail, BJ_ALLOC(c->checked_scenes, words_of(c->sizes.scenes), err));
    BJ_GOTO(status, fail, BJ_ALLOC(c->checked_maps, words_of(c->sizes.maps), err));
    *out = c;
    return BJ_OK;
fail:
    bj_cache_free(c);
    return status;
}

bj_status bj_cache_open(bj_cache **out, const char *path, int blind, bj_error *err) {
    bj_safetensors *file;
    *out = NULL;
    const char *kind = bj_file_kind(path);
    if (kind && !strcmp(kind, "an npz archive"))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: is %s, expected a cache (.bjc)\n"
                       "hint: only maze arms read npz archives; see 'bjepa config arms'",
                       path, kind);
    if (kind && strcmp(kind, "a safetensors file"))
        return BJ_FAIL(err, strcmp(kind, "a folder") ? BJ_EFORMAT : BJ_EIO,
                       "%s: is %s, expected a cache (.bjc)\n"
                       "hint: for Argoverse 2 scenarios, "
                       "use 'bjepa data prep --av2 DIR --out CACHE.bjc'",
                       path, kind);
    BJ_TRY(bj_safetensors_open(&file, path, err));
    return open_file(out, file, blind ? BJ_CACHE_BLIND : 0, err);
}

bj_status bj_cache_open_memory(bj_cache **out, const void *data, size_t size, const char *label,
                               int flags, bj_error *err) {
    bj_safetensors *file;
    *out = NULL;
    BJ_TRY(bj_safetensors_open_memory(&file, data, size, label, err));
    return open_file(out, file, flags, err);
}

void bj_cache_free(bj_cache *cache) {
    if (!cache) return;
    bj_free(cache->cities.text);
    bj_free(cache->types.text);
    yyjson_doc_free(cache->cities.doc);
    yyjson_doc_free(cache->types.doc);
    bj_free(cache->checked_scenes);
    bj_free(cache->checked_maps);
    bj_safetensors_close(cache->file);
    bj_free(cache);
}

/* ---------------------------------------------------------------------------------------- access
 */

int64_t bj_cache_count(const bj_cache *cache) { return cache->sizes.scenes; }
bj_arch bj_cache_arch(const bj_cache *cache) { return cache->arch; }
const char *bj_cache_digest(const bj_cache *cache) { return cache->digest; }

const char *bj_cache_fact(const bj_cache *cache, const char *key) {
    return bj_safetensors_metadata(cache->file, key);
}

bj_scene_info bj_cache_info(const bj_cache *c, int64_t s) {
    return (bj_scene_info){
        .scenario_id = COLUMN(c, char, SCENARIO_ID) + s * BJ_CACHE_NAME,
        .city = c->cities.text[COLUMN(c, uint8_t, CITY)[s]],
        .focal_id = COLUMN(c, char, FOCAL_ID) + s * BJ_CACHE_NAME,
        .focal_type = c->types.text[COLUMN(c, uint8_t, FOCAL_TYPE)[s]],
        .origin = {COLUMN(c, double, ORIGIN)[2 * s], COLUMN(c, double, ORIGIN)[2 * s + 1]},
        .heading = COLUMN(c, double, HEADING)[s],
        .neighbors = COLUMN(c, uint8_t, NEIGHBORS)[s],
        .polylines = COLUMN(c, uint8_t, POLYLINES)[s],
        .neighbors_available = COLUMN(c, int32_t, NEIGHBORS_AVAILABLE)[s],
        .polylines_available = COLUMN(c, int32_t, POLYLINES_AVAILABLE)[s],
        .has_future = COLUMN(c, uint64_t, FUTURE_VALID)[s] != 0,
        .focal_valid = COLUMN(c, uint64_t, FOCAL_VALID)[s],
        .future_valid = COLUMN(c, uint64_t, FUTURE_VALID)[s],
        .map = COLUMN(c, int64_t, MAP)[s],
        .map_sha256 = COLUMN(c, uint8_t, MAP_SHA256) + s * BJ_CACHE_HASH,
    };
}

int64_t bj_cache_find(const bj_cache *c, const char *scenario_id) {
    int64_t low = 0, high = c->sizes.scenes;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order =
            strcmp(COLUMN(c, char, SCENARIO_ID) + middle * BJ_CACHE_NAME, scenario_id);
        if (order == 0) return middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

static const float *future_of(const bj_cache *c, int64_t s) {
    return COLUMN(c, float, FUTURE) + s * c->arch.fut * 2;
}

bj_scene_floats bj_cache_floats(const bj_cache *c, int64_t s) {
    const int64_t track = (int64_t)c->arch.obs * BJ_FOCAL_FEATURES;
    const float *record = COLUMN(c, float, RECORDS) + COLUMN(c, int64_t, RECORD_START)[s];
    return (bj_scene_floats){
        .focal = record,
        .neighbors = record + track,
        .polylines = record + track * (1 + COLUMN(c, uint8_t, NEIGHBORS)[s]),
        .future = !c->blind && COLUMN(c, uint64_t, FUTURE_VALID)[s] ? future_of(c, s) : NULL,
    };
}

/* ----------------------------------------------------------------------------------------- rings
 */

int bj_cache_rings(const bj_cache *c, int64_t map) {
    const int64_t *first = COLUMN(c, int64_t, MAP_RING_START) + map;
    return (int)(first[1] - first[0]);
}

int bj_cache_ring_size(const bj_cache *c, int64_t map, int ring) {
    return COLUMN(c, int32_t, RING_COUNT)[COLUMN(c, int64_t, MAP_RING_START)[map] + ring];
}

static const void *ring_points(const bj_cache *c, int64_t r) {
    const int64_t start = COLUMN(c, int64_t, RING_START)[r];
    return COLUMN(c, uint8_t, RING_EXACT)[r]
               ? (const void *)(COLUMN(c, int32_t, POINTS_CM) + 2 * start)
               : (const void *)(COLUMN(c, double, POINTS) + 2 * start);
}

void bj_cache_ring(double *points, const bj_cache *c, int64_t map, int ring) {
    const int64_t r = COLUMN(c, int64_t, MAP_RING_START)[map] + ring;
    const int64_t numbers = 2 * (int64_t)COLUMN(c, int32_t, RING_COUNT)[r];
    if (COLUMN(c, uint8_t, RING_EXACT)[r]) {
        const int32_t *cm = ring_points(c, r);
        for (int64_t i = 0; i < numbers; i++) points[i] = cm[i] / 100.0;
    } else {
        memcpy(points, ring_points(c, r), (size_t)numbers * sizeof *points);
    }
}

/* ------------------------------------------------------------------------------------- verifying
 */

static int map_is_whole(const bj_cache *c, int64_t map) {
    const int64_t *first = COLUMN(c, int64_t, MAP_RING_START) + map;
    uint8_t digest[BJ_CACHE_HASH];
    bj_sha256 hash;
    bj_sha256_init(&hash);
    for (int64_t r = first[0]; r < first[1]; r++)
        bj_cache_add_ring(&hash, COLUMN(c, int32_t, RING_COUNT)[r],
                          COLUMN(c, uint8_t, RING_EXACT)[r], ring_points(c, r));
    bj_sha256_final_bytes(&hash, digest);
    return !memcmp(digest, COLUMN(c, uint8_t, MAP_DIGEST) + map * BJ_CACHE_HASH, sizeof digest);
}

static bj_status map_damaged(const bj_cache *c, int64_t map, int64_t s, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT,
                   "%s: scene '%s': the drivable areas of its map (number %lld) are damaged",
                   bj_safetensors_path(c->file), COLUMN(c, char, SCENARIO_ID) + s * BJ_CACHE_NAME,
                   (long long)map);
}

static bj_status verify_scene(const bj_cache *c, int64_t s, bj_error *err) {
    const int64_t start = COLUMN(c, int64_t, RECORD_START)[s];
    const int64_t end =
        s + 1 < c->sizes.scenes ? COLUMN(c, int64_t, RECORD_START)[s + 1] : c->sizes.floats;
    uint8_t digest[BJ_CACHE_HASH];
    bj_cache_scene_digest(digest, COLUMN(c, float, RECORDS) + start, end - start, future_of(c, s),
                          2 * c->arch.fut);
    if (!memcmp(digest, COLUMN(c, uint8_t, SCENE_SHA256) + s * BJ_CACHE_HASH, sizeof digest))
        return BJ_OK;
    return BJ_FAIL(err, BJ_EFORMAT,
                   "%s: scene '%s' (number %lld): its features or future are damaged",
                   bj_safetensors_path(c->file), COLUMN(c, char, SCENARIO_ID) + s * BJ_CACHE_NAME,
                   (long long)s);
}

bj_status bj_cache_verify(const bj_cache *c, int64_t index, bj_error *err) {
    if (index < 0 || index >= c->sizes.scenes)
        return BJ_FAIL(err, BJ_EARG, "%s: no scene %lld among %lld scenes",
                       bj_safetensors_path(c->file), (long long)index, (long long)c->sizes.scenes);
    if (c->blind)
        return BJ_FAIL(err, BJ_ELOCKED,
                       "%s: the cache was opened without futures, so its digests cannot be checked",
                       bj_safetensors_path(c->file));
    const int64_t map = COLUMN(c, int64_t, MAP)[index];
    BJ_TRY(verify_scene(c, index, err));
    return map_is_whole(c, map) ? BJ_OK : map_damaged(c, map, index, err);
}

static int is_checked(atomic_uint *bits, int64_t i) {
    return (int)(atomic_load_explicit(&bits[i / 32], memory_order_relaxed) >> i % 32 & 1);
}

static void set_checked(atomic_uint *bits, int64_t i) {
    atomic_fetch_or_explicit(&bits[i / 32], 1u << i % 32, memory_order_relaxed);
}

int bj_cache_is_checked(const bj_cache *c, int64_t index) {
    return is_checked(c->checked_scenes, index);
}

/* Two threads may check a scene at the same time and get the same result. */
bj_status bj_cache_check_scene(const bj_cache *c, int64_t index, bj_error *err) {
    if (is_checked(c->checked_scenes, index)) return BJ_OK;
    BJ_TRY(verify_scene(c, index, err));
    set_checked(c->checked_scenes, index);
    return BJ_OK;
}

bj_status bj_cache_check_map(const bj_cache *c, int64_t map, bj_error *err) {
    if (is_checked(c->checked_maps, map)) return BJ_OK;
    if (!map_is_whole(c, map)) {
        int64_t s = 0; /* the first scene that has the map */
        while (s + 1 < c->sizes.scenes && COLUMN(c, int64_t, MAP)[s] != map) s++;
        return map_damaged(c, map, s, err);
    }
    set_checked(c->checked_maps, map);
    return BJ_OK;
}
