/* reseal.h - recomputes the digests of a cache whose content a test has changed.
 *
 * Readers reject scenes that do not match their digests, so a test that changes futures or tracks
 * must also store new digests.
 */
#ifndef BJ_TESTS_RESEAL_H
#define BJ_TESTS_RESEAL_H

#include <string.h>

#include "core/status.h"
#include "data/cache_internal.h"

/* Stores the digests of scenes and maps in the columns of an open cache. */
static inline void reseal_content(const bj_cache *c) {
    const int64_t *start = COLUMN(c, int64_t, RECORD_START);
    const int64_t *rings = COLUMN(c, int64_t, MAP_RING_START);
    uint8_t *scenes = (uint8_t *)(uintptr_t)COLUMN(c, uint8_t, SCENE_SHA256);
    uint8_t *maps = (uint8_t *)(uintptr_t)COLUMN(c, uint8_t, MAP_DIGEST);
    for (int64_t s = 0; s < c->sizes.scenes; s++) {
        const int64_t end = s + 1 < c->sizes.scenes ? start[s + 1] : c->sizes.floats;
        bj_cache_scene_digest(scenes + s * BJ_CACHE_HASH, COLUMN(c, float, RECORDS) + start[s],
                              end - start[s], COLUMN(c, float, FUTURE) + s * c->arch.fut * 2,
                              2 * c->arch.fut);
    }
    for (int64_t m = 0; m < c->sizes.maps; m++) {
        bj_sha256 hash;
        bj_sha256_init(&hash);
        for (int64_t r = rings[m]; r < rings[m + 1]; r++) {
            const int64_t at = 2 * COLUMN(c, int64_t, RING_START)[r];
            const int exact = COLUMN(c, uint8_t, RING_EXACT)[r];
            const void *points = exact ? (const void *)(COLUMN(c, int32_t, POINTS_CM) + at)
                                       : (const void *)(COLUMN(c, double, POINTS) + at);
            bj_cache_add_ring(&hash, COLUMN(c, int32_t, RING_COUNT)[r], exact, points);
        }
        bj_sha256_final_bytes(&hash, maps + m * BJ_CACHE_HASH);
    }
}

/* Recomputes all digests of the cache file in `bytes`. */
static inline bj_status reseal(char *bytes, size_t size, bj_error *err) {
    bj_cache *cache;
    BJ_TRY(bj_cache_open_memory(&cache, bytes, size, "resealed", BJ_CACHE_UNCHECKED, err));
    reseal_content(cache);
    bj_cache_free(cache);
    /* The digest computed when the file is opened covers the new columns. The stored digest does
     * not. */
    BJ_TRY(bj_cache_open_memory(&cache, bytes, size, "resealed", BJ_CACHE_UNCHECKED, err));
    const char *stated = bj_cache_fact(cache, "digest");
    for (char *at = bytes; at < bytes + BJ_CACHE_HEADER - BJ_SHA256_HEX; at++)
        if (!memcmp(at, stated, BJ_SHA256_HEX - 1)) {
            memcpy(at, bj_cache_digest(cache), BJ_SHA256_HEX - 1);
            break;
        }
    bj_cache_free(cache);
    return BJ_OK;
}

#endif
