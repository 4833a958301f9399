/* cache_encode.c - encodes one scene: its record, its journal row and its drivable areas.
 *
 *   record   focal (50,7), neighbors (n,50,7), polylines (p,10,6), zeros up to a multiple of 16
 *   rings in centimeters if cm / 100.0 restores every coordinate exactly, otherwise in double
 *
 * The encoding does not depend on the scene's position in the cache, so any thread may encode a
 * scene.
 * Test: tests/data/test_cache.c
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/utf8.h"
#include "data/cache_partial.h"

bj_status bj_cache_bytes_create(bj_cache_bytes **out, bj_error *err) {
    return BJ_ALLOC(*out, 1, err);
}

void bj_cache_bytes_free(bj_cache_bytes *bytes) {
    if (!bytes) return;
    bj_free(bytes->rings);
    bj_free(bytes->doubles);
    bj_free(bytes->centimeters);
    bj_free(bytes);
}

/* Copies a name and checks that it is safe to use in messages, JSON and C strings. */
static bj_status copy_name(char out[BJ_CACHE_NAME], bj_text text, const char *what, bj_error *err) {
    if (text.size == 0 || text.size >= BJ_CACHE_NAME)
        return BJ_FAIL(err, BJ_EFORMAT, "%s has %zu bytes, expected 1 to %d", what, text.size,
                       BJ_CACHE_NAME - 1);
    for (size_t i = 0, n; i < text.size; i += n) {
        const unsigned char c = (unsigned char)text.data[i];
        n = bj_utf8_sequence(text.data + i, text.size - i);
        if (n == 0 || c < 0x20 || c == 0x7f)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: byte %zu is 0x%02x, not printable UTF-8", what, i,
                           c);
    }
    memset(out, 0, BJ_CACHE_NAME);
    memcpy(out, text.data, text.size);
    return BJ_OK;
}

static void fill_record(bj_cache_bytes *out, const bj_features *f) {
    const size_t tracks = (size_t)f->neighbors * BJ_AV2_TRACK;
    const size_t lines = (size_t)f->polylines * BJ_AV2_LINE;
    float *at = out->record;
    memcpy(at, f->focal, sizeof f->focal);
    at += BJ_AV2_TRACK;
    memcpy(at, f->neighbor, tracks * sizeof *at);
    at += tracks;
    memcpy(at, f->polyline, lines * sizeof *at);
    at += lines;
    out->floats = bj_cache_record_floats(BJ_AV2_OBS, BJ_AV2_POINTS, f->neighbors, f->polylines);
    memset(at, 0, (size_t)(out->record + out->floats - at) * sizeof *at);
}

/* ----------------------------------------------------------------------------------------- rings
 */

/* Returns 1 if x is exactly an integer number of centimeters. The check uses a division, as the
 * reader does. */
static int centimeters_of(int32_t *out, double x) {
    const double scaled = x * 100.0;
    if (!(fabs(scaled) < 2e9)) return 0;
    *out = (int32_t)lrint(scaled);
    const double back = *out / 100.0;
    return memcmp(&back, &x, sizeof x) == 0; /* distinguishes -0.0 from 0 */
}

static int ring_is_exact(int32_t *out, bj_points ring) {
    for (int i = 0; i < ring.count; i++)
        if (!centimeters_of(&out[2 * i], ring.at[i].x) ||
            !centimeters_of(&out[2 * i + 1], ring.at[i].y))
            return 0;
    return 1;
}

static bj_status make_room(bj_cache_bytes *out, const bj_map *map, bj_error *err) {
    int64_t points = 0;
    for (int i = 0; i < map->area_count; i++) {
        if (map->areas[i].ring.count < 1)
            return BJ_FAIL(err, BJ_EFORMAT, "drivable area %lld has no points",
                           (long long)map->areas[i].id);
        points += map->areas[i].ring.count;
    }
    if (points > INT_MAX / 2)
        return BJ_FAIL(err, BJ_EFORMAT, "the drivable areas have too many points: %lld",
                       (long long)points);
    BJ_RESERVE(out->rings, out->ring_room, map->area_count, err);
    if (points > out->point_room) {
        bj_free(out->doubles);
        bj_free(out->centimeters);
        out->doubles = NULL, out->centimeters = NULL, out->point_room = 0;
        BJ_TRY(BJ_ALLOC(out->doubles, 2 * (size_t)points, err));
        BJ_TRY(BJ_ALLOC(out->centimeters, 2 * (size_t)points, err));
        out->point_room = (int)points;
    }
    return BJ_OK;
}

static bj_status fill_rings(bj_cache_bytes *out, const bj_map *map, bj_error *err) {
    bj_sha256 hash;
    BJ_TRY(make_room(out, map, err));
    bj_sha256_init(&hash);
    out->ring_count = map->area_count;
    out->double_count = out->centimeter_count = 0;
    for (int i = 0; i < map->area_count; i++) {
        const bj_points ring = map->areas[i].ring;
        bj_cache_ring_row *row = &out->rings[i];
        int32_t *cm = out->centimeters + 2 * (size_t)out->centimeter_count;
        double *full = out->doubles + 2 * (size_t)out->double_count;
        const int exact = ring_is_exact(cm, ring);
        *row = (bj_cache_ring_row){exact ? out->centimeter_count : out->double_count, ring.count,
                                   exact};
        for (int k = 0; k < ring.count && !exact; k++) {
            full[2 * k] = ring.at[k].x;
            full[2 * k + 1] = ring.at[k].y;
        }
        *(exact ? &out->centimeter_count : &out->double_count) += ring.count;
        bj_cache_add_ring(&hash, ring.count, exact, exact ? (const void *)cm : (const void *)full);
    }
    bj_sha256_final_bytes(&hash, out->map_digest);
    return BJ_OK;
}

bj_status bj_cache_encode(bj_cache_bytes *out, const bj_scenario *scenario, const bj_map *map,
                          const bj_features *f, const uint8_t *map_sha256, bj_error *err) {
    bj_cache_row *row = &out->row;
    memset(row, 0, sizeof *row);
    row->kind = BJ_ROW_SCENE;
    BJ_TRY(copy_name(row->scenario_id, scenario->id, "scenario id", err));
    BJ_TRY(copy_name(row->city, scenario->city, "city", err));
    BJ_TRY(copy_name(row->focal_id, scenario->track_id[scenario->focal], "focal track id", err));
    BJ_TRY(copy_name(row->focal_type, scenario->type[scenario->focal], "type of the focal track",
                     err));
    row->neighbors = f->neighbors;
    row->polylines = f->polylines;
    row->neighbors_available = f->neighbors_available;
    row->polylines_available = f->polylines_available;
    memcpy(row->origin, f->origin, sizeof row->origin);
    row->heading = f->heading;
    row->focal_valid = f->focal_valid;
    row->future_valid = f->future_valid;
    memcpy(row->map_sha256, map_sha256, BJ_CACHE_HASH);
    memcpy(row->future, f->future, sizeof row->future);
    fill_record(out, f);
    bj_cache_scene_digest(row->content_sha256, out->record, out->floats, row->future,
                          BJ_AV2_FUTURE);
    return fill_rings(out, map, err);
}
