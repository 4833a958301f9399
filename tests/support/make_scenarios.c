/* make_scenarios.c - see make_scenarios.h. */
#define _XOPEN_SOURCE 700 /* mkdir */
#include "support/make_scenarios.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "parquet/writer.h"

enum { STEPS = 110, FIELDS = 16, MAP_ROOM = 1 << 20 };

const char *const test_flaw_codes[TEST_FLAWS] = {
    [TEST_GOOD] = "",
    [TEST_TRUNCATED] = "parquet",
    [TEST_NO_FOCAL] = "focal",
    [TEST_NO_FOCAL_AT_49] = "focal_missing_at_49",
    [TEST_STEP_OUTSIDE] = "step",
    [TEST_NOT_FINITE] = "nonfinite",
    [TEST_OTHER_ID] = "id_mismatch",
    [TEST_BROKEN_MAP] = "map",
    [TEST_NO_MAP] = "missing_map",
    [TEST_NO_SCENARIO] = "missing_scenario",
};

void test_scenario_id(char id[TEST_ID], uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed ^ 0x5ce7a210);
    const uint64_t a = bj_rng_next(&rng), b = bj_rng_next(&rng);
    snprintf(id, TEST_ID, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xffff, (unsigned)(b >> 48),
             (unsigned long long)(b & 0xffffffffffff));
}

test_recipe test_recipe_draw(uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed ^ 0xa11ce);
    return (test_recipe){.seed = seed,
                         .steps = bj_rng_uniform(&rng) < 0.1 ? 50 : STEPS,
                         .tracks = (int)(24 * bj_rng_uniform(&rng)),
                         .lanes = (int)(70 * bj_rng_uniform(&rng)),
                         .same_map = bj_rng_uniform(&rng) < 0.3};
}

/* ------------------------------------------------------------------------------------- traffic */

typedef struct rows {
    int64_t count;
    uint8_t *observed;
    bj_text *track, *type, *id, *focal, *city;
    int64_t *category, *step, *steps;
    double *x, *y, *heading, *vx, *vy, *begin, *end;
    char names[64][16];
} rows;

static bj_text text_of(const char *text) { return (bj_text){text, strlen(text)}; }

static void add_row(rows *r, int track, const char *type, int step, double x, double y, double h,
                    double speed) {
    const int64_t i = r->count++;
    r->observed[i] = step < 50;
    r->track[i] = text_of(r->names[track]);
    r->type[i] = text_of(type);
    r->category[i] = track == 0 ? 3 : 1;
    r->step[i] = step;
    r->x[i] = x;
    r->y[i] = y;
    r->heading[i] = h;
    r->vx[i] = speed * cos(h);
    r->vy[i] = speed * sin(h);
}

static void drive(rows *r, const test_recipe *recipe, bj_rng *rng, const double origin[2]) {
    static const char *const types[] = {"vehicle", "pedestrian", "bus", "cyclist", "static"};
    for (int k = 0; k <= recipe->tracks; k++) {
        const int first = k && bj_rng_uniform(rng) < 0.5 ? (int)(60 * bj_rng_uniform(rng)) : 0;
        const int last =
            k && bj_rng_uniform(rng) < 0.5 ? first + (int)(STEPS * bj_rng_uniform(rng)) : STEPS - 1;
        const int hole = k && bj_rng_uniform(rng) < 0.3 ? 45 + (int)(9 * bj_rng_uniform(rng)) : -1;
        const char *type = types[k ? (int)(5 * bj_rng_uniform(rng)) : 0];
        const double speed = 12 * bj_rng_uniform(rng), turn = 0.4 * bj_rng_uniform(rng) - 0.2;
        double x = origin[0] + (k ? 60 * bj_rng_uniform(rng) - 30 : 0);
        double y = origin[1] + (k ? 60 * bj_rng_uniform(rng) - 30 : 0);
        double h = 6.28 * bj_rng_uniform(rng) - 3.14;
        snprintf(r->names[k], sizeof r->names[k], k == 1 ? "AV" : "%d", 1000 + k);
        for (int t = 0; t < recipe->steps; t++) {
            const int gone = k == 0 && ((recipe->flaw == TEST_NO_FOCAL_AT_49 && t == 49) ||
                                        recipe->flaw == TEST_NO_FOCAL);
            x += 0.1 * speed * cos(h);
            y += 0.1 * speed * sin(h);
            h += 0.1 * turn;
            if (t >= first && t <= last && t != hole && !gone)
                add_row(r, k, type, t, x, y, h, speed);
        }
    }
    if (recipe->flaw == TEST_STEP_OUTSIDE) r->step[r->count - 1] = STEPS;
    if (recipe->flaw == TEST_NOT_FINITE) r->x[r->count / 2] = NAN;
}

static void fill_constants(rows *r, const char *id, const char *city) {
    for (int64_t i = 0; i < r->count; i++) {
        r->id[i] = text_of(id);
        r->focal[i] = text_of(r->names[0]);
        r->city[i] = text_of(city);
        r->steps[i] = STEPS;
        r->begin[i] = 3.15969e17;
        r->end[i] = 3.15969e17 + 1.09e10;
    }
}

static bj_status create_rows(rows *r, bj_error *err) {
    const size_t most = 64 * STEPS;
    BJ_TRY(BJ_ALLOC(r->observed, most, err));
    BJ_TRY(BJ_ALLOC(r->track, 5 * most, err));
    BJ_TRY(BJ_ALLOC(r->category, 3 * most, err));
    BJ_TRY(BJ_ALLOC(r->x, 7 * most, err));
    r->type = r->track + most, r->id = r->type + most;
    r->focal = r->id + most, r->city = r->focal + most;
    r->step = r->category + most, r->steps = r->step + most;
    r->y = r->x + most, r->heading = r->y + most, r->vx = r->heading + most;
    r->vy = r->vx + most, r->begin = r->vy + most, r->end = r->begin + most;
    return BJ_OK;
}

static void free_rows(rows *r) {
    bj_free(r->observed);
    bj_free(r->track);
    bj_free(r->category);
    bj_free(r->x);
}

static bj_status write_rows(const rows *r, const char *path, bj_error *err) {
    static const bj_parquet_field fields[FIELDS] = {{"observed", BJ_PARQUET_BOOLEAN, 0, 0},
                                                    {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                                    {"object_type", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                                    {"object_category", BJ_PARQUET_INT64, 0, 0},
                                                    {"timestep", BJ_PARQUET_INT64, 0, 0},
                                                    {"position_x", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"position_y", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"heading", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"velocity_x", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"velocity_y", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                                    {"start_timestamp", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"end_timestamp", BJ_PARQUET_DOUBLE, 0, 0},
                                                    {"num_timestamps", BJ_PARQUET_INT64, 0, 0},
                                                    {"focal_track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                                    {"city", BJ_PARQUET_BYTE_ARRAY, 0, 1}};
    const bj_parquet_data data[FIELDS] = {
        {.booleans = r->observed}, {.texts = r->track},     {.texts = r->type},
        {.integers = r->category}, {.integers = r->step},   {.doubles = r->x},
        {.doubles = r->y},         {.doubles = r->heading}, {.doubles = r->vx},
        {.doubles = r->vy},        {.texts = r->id},        {.doubles = r->begin},
        {.doubles = r->end},       {.integers = r->steps},  {.texts = r->focal},
        {.texts = r->city}};
    bj_parquet_writer *writer = NULL;
    BJ_TRY(bj_parquet_writer_create(&writer, fields, FIELDS, BJ_PARQUET_SNAPPY, err));
    bj_status status = bj_parquet_writer_open(writer, path, err);
    if (status == BJ_OK) status = bj_parquet_writer_rows(writer, r->count, data, NULL, err);
    if (status == BJ_OK) status = bj_parquet_writer_commit(writer, err);
    bj_parquet_writer_free(writer);
    return status;
}

/* ----------------------------------------------------------------------------------------- map */

typedef struct page {
    char *text;
    size_t size;
} page;

static void put(page *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(p->text + p->size, MAP_ROOM - p->size, format, args);
    va_end(args);
    if (n > 0 && p->size + (size_t)n < MAP_ROOM) p->size += (size_t)n;
}

/* Writes a polyline that starts at (x,y) in direction h, with `digits` decimals. */
static void put_line(page *p, double x, double y, double h, double step, int count, int digits) {
    put(p, "[");
    for (int i = 0; i < count; i++)
        put(p, "%s{\"x\": %.*f, \"y\": %.*f, \"z\": 12.5}", i ? ", " : "", digits,
            x + i * step * cos(h), digits, y + i * step * sin(h));
    put(p, "]");
}

static void put_areas(page *p, bj_rng *rng, double x, double y) {
    const int count = 1 + (int)(3 * bj_rng_uniform(rng));
    put(p, "{\"drivable_areas\": {");
    for (int i = 0; i < count; i++) {
        const double radius = 20 + 30 * bj_rng_uniform(rng);
        const int corners = 4 + (int)(20 * bj_rng_uniform(rng));
        const int digits = bj_rng_uniform(rng) < 0.1 ? 6 : 2; /* most coordinates are multiples of 1
                                                                 cm */
        put(p, "%s\"%d\": {\"id\": %d, \"area_boundary\": [", i ? ", " : "", 700 + i, 700 + i);
        for (int k = 0; k < corners; k++)
            put(p, "%s{\"x\": %.*f, \"y\": %.*f, \"z\": 0.0}", k ? ", " : "", digits,
                x + radius * cos(6.28 * k / corners), digits, y + radius * sin(6.28 * k / corners));
        put(p, "]}");
    }
    put(p, "}");
}

static void put_map(page *p, const test_recipe *recipe, bj_rng *rng, const double origin[2]) {
    const double square[2] = {1500, 2500};
    bj_rng common = bj_rng_seed(1);
    if (recipe->same_map) put_areas(p, &common, square[0], square[1]);
    else put_areas(p, rng, origin[0], origin[1]);
    put(p, ", \"lane_segments\": {");
    for (int i = 0; i < recipe->lanes; i++) {
        const double x = origin[0] + 100 * bj_rng_uniform(rng) - 50;
        const double y = origin[1] + 100 * bj_rng_uniform(rng) - 50;
        const double h = 6.28 * bj_rng_uniform(rng);
        const int points = 2 + (int)(12 * bj_rng_uniform(rng));
        put(p, "%s\"%d\": {\"id\": %d, \"is_intersection\": %s, \"lane_type\": \"VEHICLE\", ",
            i ? ", " : "", 100 + i, 100 + i, i % 3 ? "false" : "true");
        put(p, "\"left_lane_boundary\": ");
        put_line(p, x, y, h, 3, points, 2);
        put(p, ", \"right_lane_boundary\": ");
        put_line(p, x + 3.5 * sin(h), y - 3.5 * cos(h), h, 3, points, 2);
        put(p, ", \"left_neighbor_id\": null, \"predecessors\": [], \"successors\": [%d]}",
            101 + i);
    }
    put(p, "}, \"pedestrian_crossings\": {");
    for (int i = 0; i < 2; i++) {
        put(p, "%s\"%d\": {\"id\": %d, \"edge1\": ", i ? ", " : "", 900 + i, 900 + i);
        put_line(p, origin[0] + 10 * i, origin[1], 1 + i, 8, 2, 2);
        put(p, ", \"edge2\": ");
        put_line(p, origin[0] + 10 * i + 3, origin[1], 1 + i, 8, 2, 2);
        put(p, "}");
    }
    put(p, "}}");
}

/* ------------------------------------------------------------------------------------ scenario */

static bj_status shorten(const char *path, bj_error *err) {
    struct stat info;
    if (stat(path, &info) || truncate(path, info.st_size / 2))
        return BJ_FAIL(err, BJ_EIO, "%s: %s", path, strerror(errno));
    return BJ_OK;
}

static bj_status write_scenario(const char *folder, const char *id, const test_recipe *recipe,
                                rows *r, page *p, bj_error *err) {
    static const char *const cities[] = {"arcadia", "belmont", "corinth"};
    char path[PATH_MAX];
    bj_rng rng = bj_rng_seed(recipe->seed);
    const double origin[2] = {3000 * bj_rng_uniform(&rng), 3000 * bj_rng_uniform(&rng)};
    drive(r, recipe, &rng, origin);
    fill_constants(r, recipe->flaw == TEST_OTHER_ID ? "00000000-0000-0000-0000-000000000000" : id,
                   cities[recipe->seed % 3]);
    put_map(p, recipe, &rng, origin);
    if (recipe->flaw == TEST_BROKEN_MAP) p->size /= 2;
    if (recipe->flaw != TEST_NO_SCENARIO) {
        snprintf(path, sizeof path, "%s/%s/scenario_%s.parquet", folder, id, id);
        BJ_TRY(write_rows(r, path, err));
        if (recipe->flaw == TEST_TRUNCATED) BJ_TRY(shorten(path, err));
    }
    if (recipe->flaw == TEST_NO_MAP) return BJ_OK;
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, id, id);
    return bj_file_write(path, p->text, p->size, err);
}

bj_status test_make_scenario(const char *folder, const test_recipe *recipe, bj_error *err) {
    char id[TEST_ID], path[PATH_MAX];
    rows r = {0};
    page p = {0};
    test_scenario_id(id, recipe->seed);
    snprintf(path, sizeof path, "%s/%s", folder, id);
    if (mkdir(path, 0777) && errno != EEXIST)
        return BJ_FAIL(err, BJ_EIO, "%s: %s", path, strerror(errno));
    bj_status status = create_rows(&r, err);
    if (status == BJ_OK) status = BJ_ALLOC(p.text, MAP_ROOM, err);
    if (status == BJ_OK) status = write_scenario(folder, id, recipe, &r, &p, err);
    bj_free(p.text);
    free_rows(&r);
    return status;
}
