/* fuzz_cache.c - fuzz target of the cache reader.
 *
 * For any input, the reader must fail with a message or return scenes, texts and polygons that are
 * inside the file. The index digest is not checked at first, because mutations would never pass it.
 * With the digest check, the same file must be rejected or accepted without a crash. Violations
 * abort.
 * Corpus: tests/fuzz/corpus/cache
 */
#include <string.h>

#include "core/alloc.h"
#include "data/cache.h"
#include "fuzz.h"

static void touch(const void *data, size_t size) {
    static volatile unsigned sink; /* prevents removal of the reads */
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++) sum += ((const unsigned char *)data)[i];
    sink = sum;
    (void)sink;
}

static void examine_rings(const bj_cache *cache, int64_t map) {
    for (int r = 0; r < bj_cache_rings(cache, map); r++) {
        const int count = bj_cache_ring_size(cache, map, r);
        demand(count > 0);
        double *points = bj_alloc((size_t)count, 2 * sizeof *points);
        demand(points != NULL);
        bj_cache_ring(points, cache, map, r);
        touch(points, 2 * (size_t)count * sizeof *points);
        bj_free(points);
    }
}

static void examine(const bj_cache *cache, int blind) {
    const bj_arch arch = bj_cache_arch(cache);
    const size_t track = (size_t)arch.obs * BJ_FOCAL_FEATURES * sizeof(float);
    const size_t line = (size_t)arch.points * BJ_POLYLINE_FEATURES * sizeof(float);
    bj_error err = {0};
    for (int64_t i = 0; i < bj_cache_count(cache); i++) {
        const bj_scene_info info = bj_cache_info(cache, i);
        const bj_scene_floats at = bj_cache_floats(cache, i);
        demand(strlen(info.scenario_id) < 64 && strlen(info.focal_id) < 64);
        touch(info.city, strlen(info.city));
        touch(info.focal_type, strlen(info.focal_type));
        touch(info.map_sha256, 32);
        demand(info.neighbors <= arch.neighbors && info.polylines <= arch.polylines);
        touch(at.focal, track);
        touch(at.neighbors, track * (size_t)info.neighbors);
        touch(at.polylines, line * (size_t)info.polylines);
        demand(blind ? !at.future : (at.future != NULL) == info.has_future);
        if (at.future) touch(at.future, 2 * sizeof(float) * (size_t)arch.fut);
        demand(bj_cache_find(cache, info.scenario_id) == i);
        const bj_status status = bj_cache_verify(cache, i, &err);
        demand(blind ? status == BJ_ELOCKED : status == BJ_OK || status == BJ_EFORMAT);
        examine_rings(cache, info.map);
    }
    demand(strlen(bj_cache_digest(cache)) == 64);
    demand(bj_cache_fact(cache, "features") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    const int blind = size % 2 ? BJ_CACHE_BLIND : 0;
    bj_cache *cache = NULL;
    bj_error err = {0};
    /* Aligned like a mapped file, with the exact size. */
    uint8_t *copy = malloc(size ? size : 1);
    demand(copy != NULL);
    memcpy(copy, data, size);
    const bj_status status =
        bj_cache_open_memory(&cache, copy, size, "fuzz", blind | BJ_CACHE_UNCHECKED, &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) {
        examine(cache, blind);
        bj_cache_free(cache);
        const bj_status checked = bj_cache_open_memory(&cache, copy, size, "fuzz", blind, &err);
        demand(checked == BJ_OK || checked == BJ_EFORMAT);
        bj_cache_free(cache);
    } else {
        demand(cache == NULL && (status == BJ_EFORMAT || status == BJ_EVERSION));
        demand(err.code == status && !strncmp(err.message, "fuzz: ", 6));
    }
    free(copy);
    demand(bj_alloc_live() == live);
    return 0;
}
