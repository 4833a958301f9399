/* scene_export.c - writes one scene of a cache to a safetensors file.
 *
 * Unused slots are filled with zeros, as in the padded arrays of other implementations.
 *
 *   focal F32 (T,7)          focal_valid U8 (T)
 *   neighbors F32 (N,T,7)    neighbor_valid U8 (N,T)      nmask U8 (N)
 *   polylines F32 (P,Q,6)    pmask U8 (P)
 *   future F32 (F,2)         future_valid U8 (F)          zero if unknown
 *   origin F64 (2)           heading F64 ()               frame in city coordinates
 *
 * A neighbor's step is valid if it has a heading, because cosine and sine are never both zero.
 * Test: tests/data/test_scene_export.c
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "data/scene_view.h"

enum { TENSORS = 11, FACTS = 12, NUMBER = 24 };

/* Arrays that must be converted before they are written. */
typedef struct padded {
    float *neighbors, *polylines, *future;
    uint8_t *focal_valid, *neighbor_valid, *nmask, *pmask, *future_valid;
} padded;

static void release(padded *p) {
    bj_free(p->neighbors);
    bj_free(p->polylines);
    bj_free(p->future);
    bj_free(p->focal_valid);
    bj_free(p->neighbor_valid);
    bj_free(p->nmask);
    bj_free(p->pmask);
    bj_free(p->future_valid);
}

static void spread_bits(uint8_t *out, uint64_t bits, int count) {
    for (int i = 0; i < count; i++) out[i] = (uint8_t)(bits >> i & 1);
}

static bj_status pad(padded *p, const bj_arch *a, const bj_scene_info *info, bj_scene_floats at,
                     bj_error *err) {
    const size_t track = bj_track_size(a), line = bj_line_size(a), T = (size_t)a->obs;
    const size_t N = (size_t)a->neighbors, P = (size_t)a->polylines;
    BJ_TRY(BJ_ALLOC(p->neighbors, N * track, err));
    BJ_TRY(BJ_ALLOC(p->polylines, P * line, err));
    BJ_TRY(BJ_ALLOC(p->future, bj_future_size(a), err));
    BJ_TRY(BJ_ALLOC(p->focal_valid, T, err));
    BJ_TRY(BJ_ALLOC(p->neighbor_valid, N * T, err));
    BJ_TRY(BJ_ALLOC(p->nmask, N, err));
    BJ_TRY(BJ_ALLOC(p->pmask, P, err));
    BJ_TRY(BJ_ALLOC(p->future_valid, (size_t)a->fut, err));
    const size_t n = (size_t)info->neighbors, m = (size_t)info->polylines;
    if (n) memcpy(p->neighbors, at.neighbors, n * track * sizeof *p->neighbors);
    if (m) memcpy(p->polylines, at.polylines, m * line * sizeof *p->polylines);
    memset(p->nmask, 1, n);
    memset(p->pmask, 1, m);
    spread_bits(p->focal_valid, info->focal_valid, a->obs);
    for (size_t i = 0; i < n * T; i++) {
        const float *state = at.neighbors + i * BJ_FOCAL_FEATURES;
        p->neighbor_valid[i] = state[4] != 0 || state[5] != 0;
    }
    if (at.future) {
        memcpy(p->future, at.future, bj_future_size(a) * sizeof *p->future);
        spread_bits(p->future_valid, info->future_valid, a->fut);
    }
    return BJ_OK;
}

static bj_status write_scene(const padded *p, const bj_cache *cache, const bj_arch *a,
                             const bj_scene_info *info, bj_scene_floats at, const char *path,
                             bj_error *err) {
    const int64_t T = a->obs, N = a->neighbors, P = a->polylines, Q = a->points, F = a->fut;
    const bj_tensor_view tensors[TENSORS] = {
        {.name = "origin", .dtype = BJ_DTYPE_F64, .rank = 1, .shape = {2}, .data = info->origin},
        {.name = "heading", .dtype = BJ_DTYPE_F64, .rank = 0, .data = &info->heading},
        {.name = "focal", .dtype = BJ_DTYPE_F32, .rank = 2, .shape = {T, 7}, .data = at.focal},
        {.name = "neighbors",
         .dtype = BJ_DTYPE_F32,
         .rank = 3,
         .shape = {N, T, 7},
         .data = p->neighbors},
        {.name = "polylines",
         .dtype = BJ_DTYPE_F32,
         .rank = 3,
         .shape = {P, Q, 6},
         .data = p->polylines},
        {.name = "future", .dtype = BJ_DTYPE_F32, .rank = 2, .shape = {F, 2}, .data = p->future},
        {.name = "focal_valid",
         .dtype = BJ_DTYPE_U8,
         .rank = 1,
         .shape = {T},
         .data = p->focal_valid},
        {.name = "neighbor_valid",
         .dtype = BJ_DTYPE_U8,
         .rank = 2,
         .shape = {N, T},
         .data = p->neighbor_valid},
        {.name = "nmask", .dtype = BJ_DTYPE_U8, .rank = 1, .shape = {N}, .data = p->nmask},
        {.name = "pmask", .dtype = BJ_DTYPE_U8, .rank = 1, .shape = {P}, .data = p->pmask},
        {.name = "future_valid",
         .dtype = BJ_DTYPE_U8,
         .rank = 1,
         .shape = {F},
         .data = p->future_valid},
    };
    char neighbors[NUMBER], polylines[NUMBER], map[BJ_SHA256_HEX];
    const char *features = bj_cache_fact(cache, "features"), *split = bj_cache_fact(cache, "split");
    snprintf(neighbors, sizeof neighbors, "%d", info->neighbors_available);
    snprintf(polylines, sizeof polylines, "%d", info->polylines_available);
    bj_sha256_hex(map, info->map_sha256);
    const bj_fact facts[FACTS] = {
        {"format", "branchjepa-scene"},        {"version", "1"},
        {"scenario_id", info->scenario_id},    {"city", info->city},
        {"focal_id", info->focal_id},          {"focal_type", info->focal_type},
        {"has_future", at.future ? "1" : "0"}, {"neighbors_available", neighbors},
        {"polylines_available", polylines},    {"features", features ? features : ""},
        {"split", split ? split : ""},         {"map_sha256", map},
    };
    return bj_safetensors_write(path, tensors, TENSORS, facts, FACTS, err);
}

bj_status bj_cache_export(const bj_cache *cache, int64_t index, const char *path, bj_error *err) {
    padded p = {0};
    bj_status status;
    if (index < 0 || index >= bj_cache_count(cache))
        return BJ_FAIL(err, BJ_EARG, "scene number is %lld, expected 0 to %lld", (long long)index,
                       (long long)bj_cache_count(cache) - 1);
    BJ_TRY(bj_cache_check_scene(cache, index, err));
    const bj_arch arch = bj_cache_arch(cache);
    const bj_scene_info info = bj_cache_info(cache, index);
    const bj_scene_floats at = bj_cache_floats(cache, index);
    BJ_GOTO(status, done, pad(&p, &arch, &info, at, err));
    status = write_scene(&p, cache, &arch, &info, at, path, err);
done:
    release(&p);
    return status;
}
