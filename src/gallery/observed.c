/* observed.c - computes digests of the observed part of a scene.
 *
 * The SHA-256 covers the following little-endian data, in this order: scenario id, city, focal id
 * and focal type, each with its '\0'; origin and heading (3 doubles); numbers of neighbors and
 * polylines used and available (4 int32_t); raw map hash (32 bytes); focal track (T,7), neighbors
 * (n,T,7) and polylines (p,Q,6) as floats. Test: tests/gallery/test_gallery.c
 */
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"

static void add_text(bj_sha256 *hash, const char *text) {
    bj_sha256_update(hash, text, strlen(text) + 1);
}

static bj_status add_scene(bj_sha256 *hash, const bj_cache *cache, int64_t scene, bj_error *err) {
    BJ_TRY(bj_cache_check_scene(cache, scene, err));
    const bj_arch arch = bj_cache_arch(cache);
    const bj_scene_info info = bj_cache_info(cache, scene);
    const bj_scene_floats at = bj_cache_floats(cache, scene);
    const double frame[3] = {info.origin[0], info.origin[1], info.heading};
    const int32_t sizes[4] = {info.neighbors, info.polylines, info.neighbors_available,
                              info.polylines_available};
    const size_t track = (size_t)arch.obs * BJ_FOCAL_FEATURES * sizeof(float);
    const size_t line = (size_t)arch.points * BJ_POLYLINE_FEATURES * sizeof(float);
    add_text(hash, info.scenario_id);
    add_text(hash, info.city);
    add_text(hash, info.focal_id);
    add_text(hash, info.focal_type);
    bj_sha256_update(hash, frame, sizeof frame);
    bj_sha256_update(hash, sizes, sizeof sizes);
    bj_sha256_update(hash, info.map_sha256, BJ_SHA256_BYTES);
    bj_sha256_update(hash, at.focal, track);
    bj_sha256_update(hash, at.neighbors, (size_t)info.neighbors * track);
    bj_sha256_update(hash, at.polylines, (size_t)info.polylines * line);
    return BJ_OK;
}

static bj_status check_scene(const bj_cache *cache, int64_t scene, bj_error *err) {
    if (!cache || scene < 0 || scene >= bj_cache_count(cache))
        return BJ_FAIL(err, BJ_EARG, "gallery: the cache has no scene %lld", (long long)scene);
    return BJ_OK;
}

bj_status bj_gallery_observed(char hex[65], const bj_cache *cache, int64_t scene, bj_error *err) {
    bj_sha256 hash;
    BJ_TRY(check_scene(cache, scene, err));
    bj_sha256_init(&hash);
    BJ_TRY(add_scene(&hash, cache, scene, err));
    bj_sha256_final(&hash, hex);
    return BJ_OK;
}

bj_status bj_gallery_digest_of(char hex[65], const bj_cache *cache, int64_t scenes, bj_error *err) {
    bj_sha256 hash;
    if (scenes > 0) BJ_TRY(check_scene(cache, scenes - 1, err));
    bj_sha256_init(&hash);
    for (int64_t i = 0; i < scenes; i++) BJ_TRY(add_scene(&hash, cache, i, err));
    bj_sha256_final(&hash, hex);
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- maps */

static bj_status add_ring(bj_sha256 *hash, const bj_cache *cache, int64_t map, int ring,
                          bj_error *err) {
    const int32_t size = bj_cache_ring_size(cache, map, ring);
    double *points;
    BJ_TRY(BJ_ALLOC(points, 2 * (size_t)size, err));
    bj_cache_ring(points, cache, map, ring);
    bj_sha256_update(hash, &size, sizeof size);
    bj_sha256_update(hash, points, 2 * (size_t)size * sizeof *points);
    bj_free(points);
    return BJ_OK;
}

bj_status bj_gallery_areas(char hex[65], const bj_cache *cache, int64_t map, bj_error *err) {
    bj_sha256 hash;
    if (!cache || map < 0) return BJ_FAIL(err, BJ_EARG, "gallery: a cache or its map is missing");
    BJ_TRY(bj_cache_check_map(cache, map, err));
    bj_sha256_init(&hash);
    for (int r = 0; r < bj_cache_rings(cache, map); r++)
        BJ_TRY(add_ring(&hash, cache, map, r, err));
    bj_sha256_final(&hash, hex);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- bytes */

bj_status bj_file_digest(char hex[65], const char *path, bj_error *err) {
    return bj_sha256_file(hex, path, err);
}

bj_status bj_memory_digest(char hex[65], const void *data, size_t size, bj_error *err) {
    (void)err; /* nothing fails */
    bj_sha256_memory(hex, data, size);
    return BJ_OK;
}
