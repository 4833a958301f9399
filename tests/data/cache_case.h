/* cache_case.h - generated scenes for the cache tests, which need no scenario files. */
#ifndef BJ_TESTS_CACHE_CASE_H
#define BJ_TESTS_CACHE_CASE_H

#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "data/cache_writer.h"
#include "support/test.h"

enum { CASE_RINGS = 3, CASE_POINTS = 40 };

typedef struct case_scene {
    bj_features features;
    bj_scenario scenario;
    bj_map map;
    bj_text tracks[2], types[2];
    bj_area areas[CASE_RINGS];
    bj_point points[CASE_RINGS][CASE_POINTS];
    char id[64], focal[64];
    uint8_t map_sha256[32];
} case_scene;

static inline bj_text case_text(const char *text) { return (bj_text){text, strlen(text)}; }

static inline void case_fill(float *out, int count, bj_rng *rng) {
    for (int i = 0; i < count; i++) out[i] = (float)bj_rng_normal(rng);
}

/* Generates scene `number`. The number determines the sizes, texts and areas. Scenes 2, 5, 8, ...
 * share one map. Some areas cannot be stored in centimeters. */
static inline void case_draw(case_scene *s, int number) {
    static const char *const cities[] = {"austin", "z\xc3\xbcrich", "say \"hi\" \\"};
    static const char *const types[] = {"vehicle", "bus"};
    bj_rng rng = bj_rng_seed((uint64_t)number + 1);
    bj_features *f = &s->features;
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "scene-%05d", number);
    snprintf(s->focal, sizeof s->focal, "%d", 7 * number);
    f->origin[0] = 1e4 * bj_rng_uniform(&rng);
    f->origin[1] = -1e4 * bj_rng_uniform(&rng);
    f->heading = 3 * bj_rng_normal(&rng);
    f->neighbors = number == 0 ? 0 : number == 1 ? 16 : (int)(17 * bj_rng_uniform(&rng));
    f->polylines = number == 0 ? 0 : number == 1 ? 48 : (int)(12 * bj_rng_uniform(&rng));
    f->neighbors_available = f->neighbors + 3;
    f->polylines_available = f->polylines + number;
    f->focal_valid = ((uint64_t)1 << 49) | (bj_rng_next(&rng) >> 15);
    f->future_valid = number % 4 == 2 ? 0 : bj_rng_next(&rng) >> 4;
    case_fill(f->focal, BJ_AV2_TRACK, &rng);
    if (f->future_valid) case_fill(f->future, BJ_AV2_FUTURE, &rng);
    case_fill(f->neighbor[0], f->neighbors * BJ_AV2_TRACK, &rng);
    case_fill(f->polyline[0], f->polylines * BJ_AV2_LINE, &rng);
    s->tracks[0] = case_text("other");
    s->tracks[1] = case_text(s->focal);
    s->types[0] = case_text("static");
    s->types[1] = case_text(types[number / 3 % 2]);
    s->scenario = (bj_scenario){.id = case_text(s->id),
                                .city = case_text(cities[number / 2 % 3]),
                                .focal = 1,
                                .tracks = 2,
                                .track_id = s->tracks,
                                .type = s->types};
    bj_rng ring_rng = bj_rng_seed(number % 3 == 2 ? 99 : (uint64_t)number);
    s->map = (bj_map){.areas = s->areas, .area_count = number == 4 ? 0 : CASE_RINGS};
    for (int r = 0; r < CASE_RINGS; r++) {
        const int count = 3 + (int)((CASE_POINTS - 3) * bj_rng_uniform(&ring_rng));
        s->areas[r] = (bj_area){r, {s->points[r], count}};
        for (int i = 0; i < count; i++) {
            const double x = floor(1e6 * bj_rng_uniform(&ring_rng)) - 5e5;
            s->points[r][i] = (bj_point){x / 100.0, (x + 77) / 100.0};
        }
    }
    if (number == 6) s->points[1][2].x = 1.0 / 3; /* not an integer number of centimeters */
    if (number == 7) s->points[0][0].y = -0.0;    /* -0.0 cannot be stored as an integer */
    if (number == 9) s->points[2][1].x = 3e9;     /* too large for int32_t centimeters */
    for (int i = 0; i < 32; i++) s->map_sha256[i] = (uint8_t)(number + i);
}

/* Returns 1 if the item is a reject. Every fifth item is a reject; the others are scenes. */
static inline int case_is_reject(int item) { return item % 5 == 3; }

static inline bj_status case_add(bj_cache_writer *w, bj_cache_bytes *bytes, case_scene *s, int item,
                                 bj_error *err) {
    case_draw(s, item);
    if (case_is_reject(item))
        return bj_cache_writer_reject(w, s->id, "/data/\"odd\"\n\xff folder", "parquet", "no rows",
                                      err);
    BJ_TRY(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, err));
    return bj_cache_writer_add(w, bytes, err);
}

static const bj_fact case_facts[] = {{"split", "train"}, {"note", "made up"}};

/* Opens a writer, adds the missing items up to `end`, and finishes the cache if `finish` is set. */
static inline bj_status case_write(const char *path, int end, int finish, bj_prep_report *report,
                                   bj_error *err) {
    bj_cache_writer *w = NULL;
    bj_cache_bytes *bytes = NULL;
    case_scene *s = NULL;
    bj_status status;
    BJ_GOTO(status, done, bj_cache_writer_open(&w, path, case_facts, 2, 0, err));
    BJ_GOTO(status, done, bj_cache_bytes_create(&bytes, err));
    BJ_GOTO(status, done, BJ_ALLOC(s, 1, err));
    for (int i = (int)bj_cache_writer_items(w); i < end; i++)
        BJ_GOTO(status, done, case_add(w, bytes, s, i, err));
    if (finish) status = bj_cache_writer_finish(&w, report, err);
done:
    bj_cache_writer_close(&w);
    bj_cache_bytes_free(bytes);
    bj_free(s);
    return status;
}

/* Returns 1 if the two files have the same bytes or neither exists. */
static inline int case_same(const char *a, const char *b) {
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    const int have_x = bj_file_read(&x, &n, a, SIZE_MAX / 2, NULL) == BJ_OK;
    const int have_y = bj_file_read(&y, &m, b, SIZE_MAX / 2, NULL) == BJ_OK;
    const int same = have_x == have_y && n == m && (!have_x || !memcmp(x, y, n));
    bj_free(x);
    bj_free(y);
    return same;
}

/* Creates a scratch folder, in memory if possible, because syncing caches to a disk would take most
 * of the test time. */
static inline int case_folder(char out[64], const char *name) {
    snprintf(out, 64, "/dev/shm/%s.XXXXXX", name);
    if (mkdtemp(out)) return 1;
    snprintf(out, 64, "/tmp/%s.XXXXXX", name);
    return mkdtemp(out) != NULL;
}

static inline void case_remove(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

#endif
