/* loader_case.h - writes a small cache of generated scenes for tests of cache readers.
 *
 * Features of scene s are loader_case_value(s, array, index), so a test detects any misplaced
 * value. The numbers of neighbors and polylines cycle through 0 .. 16 and 0 .. 48. Every fifth
 * scene, starting with the fourth, has no future.
 */
#ifndef BJ_TESTS_LOADER_CASE_H
#define BJ_TESTS_LOADER_CASE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache_writer.h"

enum { LOADER_CASE_ID = 64 };

static inline void loader_case_id(char id[LOADER_CASE_ID], int64_t scene) {
    snprintf(id, LOADER_CASE_ID, "%08llx-1111-4222-8333-%012llx", (unsigned long long)scene,
             (unsigned long long)scene * 7919);
}

static inline int loader_case_neighbors(int64_t s) { return (int)(s * 5 % 17); }
static inline int loader_case_polylines(int64_t s) { return (int)(s * 11 % 49); }
static inline int loader_case_has_future(int64_t s) { return s % 5 != 3; }
static inline float loader_case_value(int64_t s, int array, int i) {
    return (float)(s % 20) + (float)(s / 20 % 64) * 0x1p-7f + (float)array * 0.125f +
           (float)i * 0x1p-16f;
}

static inline void loader_case_fill(float *x, int count, int64_t s, int array) {
    for (int i = 0; i < count; i++) x[i] = loader_case_value(s, array, i);
}

static inline void loader_case_features(bj_features *f, int64_t s) {
    memset(f, 0, sizeof *f);
    f->origin[0] = 1000.25 + (double)s;
    f->origin[1] = -2000.5 - (double)s;
    f->heading = fmod(0.37 * (double)s, 6.2) - 3.1;
    f->neighbors = loader_case_neighbors(s);
    f->polylines = loader_case_polylines(s);
    f->neighbors_available = f->neighbors + (int)(s % 3) * (f->neighbors == BJ_AV2_NEIGHBORS);
    f->polylines_available = f->polylines + (int)(s % 4) * (f->polylines == BJ_AV2_POLYLINES);
    f->focal_valid = (UINT64_C(1) << BJ_AV2_OBS) - 1 - (UINT64_C(1) << s % 40);
    loader_case_fill(f->focal, BJ_AV2_TRACK, s, 0);
    for (int n = 0; n < f->neighbors; n++) loader_case_fill(f->neighbor[n], BJ_AV2_TRACK, s, 1 + n);
    for (int p = 0; p < f->polylines; p++) loader_case_fill(f->polyline[p], BJ_AV2_LINE, s, 20 + p);
    if (!loader_case_has_future(s)) return;
    f->future_valid = (UINT64_C(1) << BJ_AV2_FUT) - 1;
    loader_case_fill(f->future, BJ_AV2_FUTURE, s, 70);
}

static inline bj_text loader_case_text(const char *text) { return (bj_text){text, strlen(text)}; }

/* Writes `scenes` scenes to path. */
static inline bj_status loader_case_write(const char *path, int64_t scenes, bj_error *err) {
    static const bj_point square[] = {{1000.01, 2000.02}, {1100, 2000}, {1100, 2100.5}};
    static const bj_area areas[] = {{1, {square, 3}}};
    static const bj_fact facts[] = {{"split", "train"}};
    static const char *const types[] = {"vehicle", "pedestrian", "bus"};
    const bj_map map = {.areas = areas, .area_count = 1};
    const uint8_t sha256[32] = {1, 2, 3};
    bj_features *features = malloc(sizeof *features);
    bj_cache_bytes *bytes = NULL;
    bj_cache_writer *writer = NULL;
    bj_prep_report report;
    bj_status status = bj_cache_writer_open(&writer, path, facts, 1, 1, err);
    if (status == BJ_OK) status = bj_cache_bytes_create(&bytes, err);
    for (int64_t s = 0; s < scenes && status == BJ_OK; s++) {
        char id[LOADER_CASE_ID], track[24];
        loader_case_id(id, s);
        snprintf(track, sizeof track, "%lld", (long long)s + 500);
        const bj_text track_id = loader_case_text(track), type = loader_case_text(types[s % 3]);
        const bj_scenario scenario = {.id = loader_case_text(id),
                                      .city = loader_case_text(s % 2 ? "here" : "there"),
                                      .tracks = 1,
                                      .track_id = &track_id,
                                      .type = &type};
        loader_case_features(features, s);
        status = bj_cache_encode(bytes, &scenario, &map, features, sha256, err);
        if (status == BJ_OK) status = bj_cache_writer_add(writer, bytes, err);
    }
    if (status == BJ_OK) status = bj_cache_writer_finish(&writer, &report, err);
    bj_cache_writer_close(&writer);
    bj_cache_bytes_free(bytes);
    free(features);
    return status;
}

#endif
