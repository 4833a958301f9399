/* test_features.c - tests the rules of docs/DATA.md on scenarios constructed by hand, and compares
 * the features of random scenarios with those of a slow second implementation. test_golden.c tests
 * real scenarios. */
#include <float.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "data/features.h"
#include "support/test.h"

enum {
    MOST_TRACKS = 64,
    MOST_ROWS = 20000,
    MOST_LINES = 128,
    MOST_POINTS = 4096,
    OBS = BJ_AV2_OBS
};
static const double pi = 3.14159265358979323846;

/* A scenario and a map to which the tests add tracks, rows and lanes. */
static struct town {
    bj_scenario scenario;
    bj_map map;
    bj_text id[MOST_TRACKS], type[MOST_TRACKS];
    char name[MOST_TRACKS][8];
    int32_t track[MOST_ROWS];
    int64_t step[MOST_ROWS];
    double x[MOST_ROWS], y[MOST_ROWS], vx[MOST_ROWS], vy[MOST_ROWS], heading[MOST_ROWS];
    bj_lane lane[MOST_LINES];
    bj_crossing crossing[MOST_LINES];
    bj_point point[MOST_POINTS];
    int points;
} town;

static bj_features f;
static bj_features_maker *maker;
static bj_error err;

static void clear(void) {
    struct town *t = &town;
    memset(t, 0, sizeof *t);
    t->scenario = (bj_scenario){.id = {"id", 2},
                                .city = {"town", 4},
                                .track_id = t->id,
                                .type = t->type,
                                .track = t->track,
                                .step = t->step,
                                .x = t->x,
                                .y = t->y,
                                .vx = t->vx,
                                .vy = t->vy,
                                .heading = t->heading};
    t->map = (bj_map){.lanes = t->lane, .crossings = t->crossing};
}

static int add_track(const char *type) {
    const int k = town.scenario.tracks++;
    const int size = snprintf(town.name[k], sizeof town.name[k], "t%d", k);
    town.id[k] = (bj_text){town.name[k], (size_t)size};
    town.type[k] = (bj_text){type, strlen(type)};
    return k;
}

static void add_row(int track, int step, double x, double y, double vx, double vy, double heading) {
    const int64_t r = town.scenario.rows++;
    town.track[r] = track;
    town.step[r] = step;
    town.x[r] = x;
    town.y[r] = y;
    town.vx[r] = vx;
    town.vy[r] = vy;
    town.heading[r] = heading;
}

/* Adds a track whose only row is at step 49, at (x, y). */
static int add_standing(const char *type, double x, double y) {
    const int k = add_track(type);
    add_row(k, 49, x, y, 0, 0, 0);
    return k;
}

static bj_points add_points(int count, const double *xy) {
    bj_point *begin = town.point + town.points;
    for (int i = 0; i < count; i++) begin[i] = (bj_point){xy[2 * i], xy[2 * i + 1]};
    town.points += count;
    return (bj_points){begin, count};
}

static void add_lane(int64_t id, int flag, bj_points left, bj_points right) {
    town.lane[town.map.lane_count++] = (bj_lane){id, flag, left, right, NULL, 0};
}

static void add_crossing(int64_t id, bj_points edge) {
    town.crossing[town.map.crossing_count++] = (bj_crossing){id, edge};
}

static bj_status make(void) {
    err = (bj_error){0};
    return bj_features_make(&f, maker, &town.scenario, &town.map, "scene", &err);
}

static void check_values(const float *got, int count, const double *expected, const char *what) {
    for (int i = 0; i < count; i++)
        CHECK_MSG(fabs(got[i] - expected[i]) <= 1e-6 * fmax(1, fabs(expected[i])),
                  "%s[%d] is %.9g, expected %.9g", what, i, (double)got[i], expected[i]);
}

static int all_zero(const float *values, int count) {
    for (int i = 0; i < count; i++)
        if (values[i] != 0) return 0;
    return 1;
}

/* ---------------------------------------------------------------------------------- rules 1 - 3 */

static void test_frame(void) {
    clear();
    town.scenario.focal = add_track("vehicle");
    add_row(0, 48, 100, 199, 0, 3, pi / 2);
    add_row(0, 49, 100, 200, -2, 4, pi / 2); /* faces north */
    add_row(0, 50, 99, 205, 0, 0, 0);
    add_row(0, 109, 90, 210, 0, 0, 0);
    CHECK_OK(make(), err);
    CHECK(f.origin[0] == 100 && f.origin[1] == 200 && f.heading == pi / 2);
    CHECK(f.focal_valid == ((uint64_t)3 << 48));
    check_values(f.focal + 7 * 48, 7, (double[]){-1, 0, 3, 0, 1, 0, 0}, "focal at 48");
    check_values(f.focal + 7 * 49, 7, (double[]){0, 0, 4, 2, 1, 0, 0}, "focal at 49");
    CHECK(all_zero(f.focal, 7 * 48));
    check_values(f.future, 2, (double[]){5, 1}, "future at 50");
    check_values(f.future + 118, 2, (double[]){10, 10}, "future at 109");
    CHECK(f.neighbors == 0 && f.neighbors_available == 0 && f.neighbor_track[0] == -1);
    CHECK(f.polylines == 0 && f.polylines_available == 0 && f.polyline_id[0] == -1);

    const double points[6] = {99, 205, 100, 200, 1e4 + 0.25, -3e3};
    double local[6], back[6];
    bj_from_city(local, points, 3, f.origin, f.heading);
    CHECK_NEAR(local[0], 5, 1e-12);
    CHECK_NEAR(local[1], 1, 1e-12);
    CHECK(local[2] == 0 && local[3] == 0);
    bj_to_city(back, local, 3, f.origin, f.heading);
    for (int i = 0; i < 6; i++) CHECK_NEAR(back[i], points[i], 1e-11);
    memcpy(back, points, sizeof back); /* in place */
    bj_from_city(back, back, 3, f.origin, f.heading);
    CHECK(!memcmp(back, local, sizeof back));
}

static void test_repeated_rows(void) {
    clear();
    town.scenario.focal = add_track("vehicle");
    const int other = add_track("vehicle"), gone = add_track("vehicle");
    add_row(0, 49, -50, -50, 9, 9, 3); /* the second row at step 49 is used, also for the frame */
    add_row(other, 49, 1, 1, 9, 9, 3);
    add_row(0, 60, 1, 1, 0, 0, 0);
    add_row(gone, 48, 0, 0, 0, 0, 0);
    add_row(0, 49, 10, 20, 1, 0, 0);
    add_row(other, 49, 13, 24, 0.5, 0.25, 0);
    add_row(0, 60, 21, 22, 0, 0, 0);
    CHECK_OK(make(), err);
    CHECK(f.origin[0] == 10 && f.origin[1] == 20 && f.heading == 0);
    check_values(f.focal + 343, 7, (double[]){0, 0, 1, 0, 1, 0, 0}, "focal");
    CHECK(f.neighbors == 1 && f.neighbor_track[0] == other && f.neighbors_available == 1);
    check_values(f.neighbor[0] + 343, 7, (double[]){3, 4, 0.5, 0.25, 1, 0, 0}, "neighbor");
    check_values(f.future + 20, 2, (double[]){11, 2}, "future at 60");
}

static void test_focal_missing(void) {
    clear();
    town.scenario.focal = add_track("vehicle");
    add_row(0, 48, 0, 0, 0, 0, 0);
    add_row(0, 50, 0, 0, 0, 0, 0);
    add_standing("vehicle", 1, 1);
    CHECK(make() == BJ_EFORMAT);
    CHECK(!strcmp(err.message, "scene: focal track 't0' has no row at step 49"));
}

/* ---------------------------------------------------------------------------------- rules 4 - 6 */

static void test_types(void) {
    static const struct {
        const char *name;
        double flag;
    } types[] = {{"vehicle", 0}, {"bus", 0},      {"pedestrian", 1},        {"motorcyclist", 1},
                 {"cyclist", 1}, {"static", 1},   {"background", 1},        {"construction", 1},
                 {"unknown", 1}, {"vehicles", 1}, {"riderless_bicycle", 1}, {"bu", 1},
                 {"busy", 1},    {"VEHICLE", 1}};
    enum { TYPES = sizeof types / sizeof *types };
    clear();
    town.scenario.focal = add_standing("pedestrian", 0, 0); /* the focal type is always 0 */
    for (int i = 0; i < TYPES; i++) {
        const int k = add_track(types[i].name);
        add_row(k, 7, i, 0, 0, 0, 0);
        add_row(k, 49, i + 1, 0, 0, 0, 0);
    }
    CHECK_OK(make(), err);
    CHECK(f.neighbors == TYPES && f.focal[349] == 0);
    for (int i = 0; i < TYPES; i++) {
        const float *n = f.neighbor[i];
        CHECK(f.neighbor_track[i] == i + 1);
        CHECK_MSG(n[349] == types[i].flag && n[7 * 7 + 6] == types[i].flag, "%s", types[i].name);
        CHECK(f.neighbor_valid[i] == ((uint64_t)1 << 49 | 1 << 7));
        CHECK(all_zero(n + 7 * 8, 7 * 41) && all_zero(n, 7 * 7)); /* including the type flag */
    }
    CHECK(all_zero(f.neighbor[TYPES], (BJ_AV2_NEIGHBORS - TYPES) * BJ_AV2_TRACK));
    CHECK(f.neighbor_valid[TYPES] == 0 && f.neighbor_track[TYPES] == -1);
}

static void test_nearest_neighbors(void) {
    clear();
    add_standing("vehicle", 500, 0); /* the ego vehicle is treated like any other track, and is too
                                        far away here */
    town.scenario.focal = add_standing("vehicle", 0, 0);
    for (int i = 0; i < 18; i++) add_standing("vehicle", 0, 20 - i); /* tracks 2 .. 19: 20 .. 3 m */
    const int absent = add_track("vehicle");
    add_row(absent, 48, 0.1, 0, 0, 0, 0);
    add_row(absent, 50, 0.1, 0, 0, 0, 0);
    CHECK_OK(make(), err);
    CHECK(f.neighbors == 16 && f.neighbors_available == 19);
    for (int i = 0; i < 16; i++) CHECK(f.neighbor_track[i] == 19 - i);
    check_values(f.neighbor[15] + 343, 2, (double[]){0, 18}, "the sixteenth");

    /* Tests that ties within 0.1 mm are broken by track order, also at the limit of 16
     * neighbors. */
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    add_standing("vehicle", 5.00004, 0); /* ranks 50000, 50000, 50001, 49999, 50000 */
    add_standing("vehicle", 0, -5);
    add_standing("vehicle", 5.0001, 0);
    add_standing("vehicle", 4.9999, 0);
    add_standing("vehicle", -3, 4);
    CHECK_OK(make(), err);
    static const int order[5] = {4, 1, 2, 5, 3};
    for (int i = 0; i < 5; i++) CHECK(f.neighbor_track[i] == order[i]);
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    for (int i = 0; i < 30; i++) add_standing("vehicle", cos(i), sin(i));
    CHECK_OK(make(), err);
    CHECK(f.neighbors_available == 30);
    for (int i = 0; i < 16; i++) CHECK(f.neighbor_track[i] == i + 1);
}

/* --------------------------------------------------------------------------------------- rule 7 */

static void test_future(void) {
    clear();
    town.scenario.focal = add_track("vehicle");
    add_row(0, 104, 33, 5, 0, 0, 0); /* rows in any order */
    add_row(0, 52, 6, -3, 0, 0, 0);
    add_row(0, 49, 0, 0, 0, 0, 0);
    add_row(0, 54, 7, 3, 0, 0, 0);
    CHECK_OK(make(), err);
    CHECK(f.future_valid == ((uint64_t)1 << 2 | 1 << 4 | (uint64_t)1 << 54));
    check_values(f.future, 10, (double[]){2, -1, 4, -2, 6, -3, 6.5, 0, 7, 3}, "50 .. 54");
    check_values(f.future + 2 * 29, 2, (double[]){20, 4}, "half way to 104");
    for (int k = 54; k < 60; k++) check_values(f.future + 2 * k, 2, (double[]){33, 5}, "rest");

    clear(); /* only 50 steps */
    town.scenario.focal = add_track("vehicle");
    for (int t = 0; t < 50; t++) add_row(0, t, t, t, 1, 1, 1);
    CHECK_OK(make(), err);
    CHECK(f.future_valid == 0 && all_zero(f.future, BJ_AV2_FUTURE));
    CHECK(f.focal_valid == ((uint64_t)1 << 50) - 1);
    add_standing("vehicle", 3, 3); /* the future of other tracks is ignored */
    add_row(1, 70, 3, 3, 0, 0, 0);
    CHECK_OK(make(), err);
    CHECK(f.future_valid == 0 && f.neighbor_valid[0] == (uint64_t)1 << 49);
}

/* --------------------------------------------------------------------------------- rules 8 - 12 */

static void test_lines(void) {
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    /* The left boundary has a corner with sides of 3 m and 6 m, and the right boundary is a point
     * at the origin, so the mean is half of the left boundary. */
    add_lane(1, 1, add_points(3, (double[]){0, 2, 3, 2, 3, 8}), add_points(1, (double[]){0, 0}));
    CHECK_OK(make(), err);
    CHECK(f.polylines == 1 && f.polyline_id[0] == 1 && f.polylines_available == 1);
    for (int k = 0; k < 10; k++) {
        const double x = k < 3 ? k / 2.0 : 1.5, y = k < 3 ? 1 : 1 + (k - 3) / 2.0;
        const double expected[6] = {x, y, k < 3 ? 1 : 0, k < 3 ? 0 : 1, 1, 0};
        check_values(f.polyline[0] + 6 * k, 6, expected, "corner");
    }
    CHECK(all_zero(f.polyline[1], 47 * BJ_AV2_LINE));
    CHECK(f.polyline_id[1] == -1 && f.polyline_id[47] == -1);

    /* A crossing uses only edge1, with crosswalk 1 and intersection 0. Repeated points add no
     * length. */
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    add_crossing(8, add_points(5, (double[]){4, 0, 4, 0, 4, 4.5, 4, 4.5, 4, 9}));
    add_lane(9, 0, add_points(2, (double[]){7, 7, 7, 7}), add_points(1, (double[]){9, 9}));
    CHECK_OK(make(), err);
    CHECK(f.polylines == 2 && f.polyline_id[0] == 8 && f.polyline_id[1] == 9);
    for (int k = 0; k < 10; k++) {
        check_values(f.polyline[0] + 6 * k, 6, (double[]){4, k, 0, 1, 0, 1}, "crossing");
        check_values(f.polyline[1] + 6 * k, 6, (double[]){8, 8, 0, 0, 0, 0}, "no length");
    }

    /* Tangents of segments shorter than a micrometer are zero, the last tangent repeats the
     * previous one, and all tangents are in the scene frame. */
    clear();
    town.scenario.focal = add_track("vehicle");
    add_row(0, 49, 0, 0, 0, 0, pi / 2);
    add_crossing(1, add_points(2, (double[]){1, 1, 1 + 9 * 0.9e-6, 1}));
    add_crossing(2, add_points(2, (double[]){2, 2, 2 + 9 * 1.1e-6, 2}));
    CHECK_OK(make(), err);
    for (int k = 0; k < 10; k++) {
        CHECK(f.polyline[0][6 * k + 2] == 0 && f.polyline[0][6 * k + 3] == 0);
        CHECK_NEAR(f.polyline[1][6 * k + 2], 0, 1e-6);
        CHECK_NEAR(f.polyline[1][6 * k + 3], -1, 1e-6);
    }

    /* The first and last points are exact copies without rounding errors, even for a tiny line. */
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    add_crossing(1, add_points(3, (double[]){0.1, 0.7, 1e3 / 3, 0.3, 1e3 / 7, 1e3 / 9}));
    add_crossing(2, add_points(2, (double[]){500, 0, 500, 1e-150}));
    CHECK_OK(make(), err);
    CHECK(f.polyline[0][0] == 0.1f && f.polyline[0][1] == 0.7f);
    CHECK(f.polyline[0][54] == (float)(1e3 / 7) && f.polyline[0][55] == (float)(1e3 / 9));
    CHECK(f.polyline[1][0] == 500 && f.polyline[1][54] == 500);
}

static void test_nearest_lines(void) {
    clear();
    town.scenario.focal = add_standing("vehicle", 10, 10);
    for (int i = 0; i < 60; i++) /* 60 .. 1 m, measured to the end of the line instead of its
                                    middle */
        add_lane(100 + i, 0, add_points(2, (double[]){10, 10 - (60 - i), 10, -90}),
                 add_points(2, (double[]){10, 10 - (60 - i), 10, -90}));
    CHECK_OK(make(), err);
    CHECK(f.polylines == 48 && f.polylines_available == 60);
    for (int k = 0; k < 48; k++) CHECK(f.polyline_id[k] == 159 - k);

    /* The distance is that of the nearest of the ten points, not of the segments between them, so
     * the line at 5 m is nearer than the line at 4 m. */
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    add_crossing(1, add_points(2, (double[]){-45, 4, 45, 4})); /* points at x = +-5: 6.4 m */
    add_crossing(2, add_points(2, (double[]){5, 0, 50, 0}));
    CHECK_OK(make(), err);
    CHECK(f.polyline_id[0] == 2 && f.polyline_id[1] == 1);

    /* At equal distance, lanes come before crossings, and smaller ids come first. Rounding errors
     * do not change this order. */
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    add_crossing(-7, add_points(2, (double[]){3, 4, 9, 9}));
    add_crossing(-9, add_points(2, (double[]){3, 4, 9, 9}));
    add_lane(30, 0, add_points(2, (double[]){5, 0, 9, 0}), add_points(2, (double[]){5, 0, 9, 0}));
    add_lane(20, 0, add_points(2, (double[]){5.00003, 0, 9, 0}),
             add_points(2, (double[]){5.00003, 0, 9, 0}));
    add_lane(10, 0, add_points(2, (double[]){-5, 0, -9, 0}), add_points(1, (double[]){-5, 0}));
    add_lane(INT64_MIN, 1, add_points(2, (double[]){5.0002, 0, 9, 0}),
             add_points(2, (double[]){5.0002, 0, 9, 0}));
    CHECK_OK(make(), err);
    static const int64_t order[6] = {10, 20, 30, -9, -7, INT64_MIN};
    for (int k = 0; k < 6; k++)
        CHECK_MSG(f.polyline_id[k] == order[k], "%d: %lld", k, (long long)f.polyline_id[k]);
    CHECK(f.polyline[2][5] == 0 && f.polyline[3][5] == 1 && f.polyline[5][4] == 1);
}

/* ------------------------------------------------------------------------------- rejected input */

static void test_unfit(void) {
    clear();
    town.scenario.focal = add_standing("vehicle", 0, 0);
    const int k = add_standing("vehicle", 1, 1);
    add_row(k, 12, 1e39, 0, 0, 0, 0);
    CHECK(make() == BJ_ENONFINITE);
    CHECK(!strcmp(err.message, "scene: track 't1' at step 12: a value does not fit in a float"));
    town.x[2] = 3e38; /* fits */
    CHECK_OK(make(), err);
    add_row(0, 77, 0, -1e300, 0, 0, 0);
    CHECK(make() == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "track 't0' at step 77");
    town.y[3] = 0;
    add_crossing(5, add_points(2, (double[]){0, 0, 1e200, 0}));
    CHECK(make() == BJ_ENONFINITE);
    CHECK(!strcmp(err.message, "scene: pedestrian crossing 5: coordinates do not fit in a float"));
    add_lane(6, 0, add_points(2, (double[]){1e39, 0, 1e39, 9}),
             add_points(2, (double[]){1e39, 0, 1e39, 9}));
    CHECK(make() == BJ_ENONFINITE);
    town.map.crossing_count = 0;
    CHECK(make() == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "lane segment 6");
    CHECK(bj_features_make(&f, maker, &town.scenario, &town.map, "scene", NULL) == BJ_ENONFINITE);

    clear(); /* fails even if 48 other polylines are nearer */
    town.scenario.focal = add_standing("vehicle", 0, 0);
    for (int i = 0; i < 48; i++) add_crossing(i, add_points(1, (double[]){1, 1}));
    CHECK_OK(make(), err);
    add_crossing(48, add_points(2, (double[]){2, 2, 1e200, 0}));
    CHECK(make() == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "pedestrian crossing 48");
}

/* ------------------------------------------------------------------ reference implementation */

static uint64_t state = 11;

static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static double between(double low, double high) {
    return low + (high - low) * draw(1u << 30) / (1 << 30);
}

/* Returns the last row of (track, step), or NO_ROW. Compare with !=, because gcc 12.2 at -O1 drops
 * the sign test in `(bits >> i & 1) == (row >= 0)`. */
enum { NO_ROW = -1 };
static int64_t row_of(int track, int step) {
    for (int64_t r = town.scenario.rows - 1; r >= 0; r--)
        if (town.track[r] == track && town.step[r] == step) return r;
    return NO_ROW;
}

static int64_t tenths(double dx, double dy) {
    return (int64_t)floor(1e4 * sqrt(dx * dx + dy * dy) + 0.5);
}

/* Transforms a point to the frame, using polar coordinates. */
static void turned(double out[2], double x, double y) {
    const double r = hypot(x, y), a = atan2(y, x) - f.heading;
    out[0] = r * cos(a);
    out[1] = r * sin(a);
}

static int is_set(uint64_t bits, int i) { return bits >> i & 1; }

static void check_track(const float *got, uint64_t valid, int track, double flag) {
    for (int t = 0; t < OBS; t++) {
        const int64_t r = row_of(track, t);
        double e[7] = {0};
        CHECK_MSG(is_set(valid, t) == (r != NO_ROW), "track %d, step %d, row %lld", track, t,
                  (long long)r);
        if (r != NO_ROW) {
            turned(e, town.x[r] - f.origin[0], town.y[r] - f.origin[1]);
            turned(e + 2, town.vx[r], town.vy[r]);
            turned(e + 4, cos(town.heading[r]), sin(town.heading[r]));
            e[6] = flag;
        }
        check_values(got + 7 * t, 7, e, "track");
    }
    CHECK(valid >> OBS == 0);
}

static void check_neighbors(void) {
    int order[MOST_TRACKS], count = 0;
    for (int k = 0; k < town.scenario.tracks; k++)
        if (k != town.scenario.focal && row_of(k, 49) != NO_ROW) order[count++] = k;
    CHECK(f.neighbors_available == count);
    CHECK(f.neighbors == (count < 16 ? count : 16));
    for (int i = 0; i < f.neighbors; i++) { /* selection sort */
        int best = -1;
        int64_t best_rank = 0;
        for (int j = 0; j < count; j++) {
            if (order[j] < 0) continue;
            const int64_t r = row_of(order[j], 49);
            const int64_t rank = tenths(town.x[r] - f.origin[0], town.y[r] - f.origin[1]);
            if (best < 0 || rank < best_rank) best = j, best_rank = rank;
        }
        CHECK_MSG(f.neighbor_track[i] == order[best], "slot %d: track %d, expected %d", i,
                  f.neighbor_track[i], order[best]);
        const char *type = town.type[order[best]].data;
        check_track(f.neighbor[i], f.neighbor_valid[i], order[best],
                    strcmp(type, "vehicle") && strcmp(type, "bus"));
        order[best] = -1;
    }
}

static void check_future(void) {
    int any = 0;
    for (int k = 0; k < 60; k++) any |= row_of(town.scenario.focal, 50 + k) != NO_ROW;
    for (int k = 0; k < 60; k++) {
        int before = 50 + k, after = 50 + k;
        CHECK(is_set(f.future_valid, k) == (row_of(town.scenario.focal, 50 + k) != NO_ROW));
        while (row_of(town.scenario.focal, before) == NO_ROW) before--; /* ends at 49 */
        while (after < 110 && row_of(town.scenario.focal, after) == NO_ROW) after++;
        const int64_t a = row_of(town.scenario.focal, before);
        const int64_t b = after < 110 ? row_of(town.scenario.focal, after) : a;
        const double part = a == b ? 0 : (50.0 + k - before) / (after - before);
        double e[2] = {0, 0};
        if (any)
            turned(e, (1 - part) * town.x[a] + part * town.x[b] - f.origin[0],
                   (1 - part) * town.y[a] + part * town.y[b] - f.origin[1]);
        check_values(f.future + 2 * k, 2, e, "future");
    }
}

/* Returns point k of ten along a line by walking along it from the start. */
static bj_point along(bj_points line, int k) {
    double total = 0, walked = 0;
    for (int i = 1; i < line.count; i++)
        total += hypot(line.at[i].x - line.at[i - 1].x, line.at[i].y - line.at[i - 1].y);
    if (total == 0 || k == 0) return line.at[0];
    for (int i = 1; i < line.count && k < 9; i++) {
        const bj_point a = line.at[i - 1], b = line.at[i];
        const double size = hypot(b.x - a.x, b.y - a.y), rest = total * k / 9 - walked;
        if (size > 0 && rest <= size)
            return (bj_point){a.x + rest / size * (b.x - a.x), a.y + rest / size * (b.y - a.y)};
        walked += size;
    }
    return line.at[line.count - 1];
}

static void line_points(bj_point out[10], int i) {
    for (int k = 0; k < 10; k++) {
        if (i >= town.map.lane_count) {
            out[k] = along(town.crossing[i - town.map.lane_count].edge, k);
        } else {
            const bj_point l = along(town.lane[i].left, k), r = along(town.lane[i].right, k);
            out[k] = (bj_point){(l.x + r.x) / 2, (l.y + r.y) / 2};
        }
    }
}

static void check_line(const float *got, const bj_point p[10], double intersection,
                       double crosswalk) {
    for (int k = 0; k < 10; k++) {
        const int from = k < 9 ? k : 8;
        const double dx = p[from + 1].x - p[from].x, dy = p[from + 1].y - p[from].y;
        const double size = hypot(dx, dy);
        double e[6] = {0, 0, 0, 0, intersection, crosswalk};
        turned(e, p[k].x - f.origin[0], p[k].y - f.origin[1]);
        if (size >= 1e-6) turned(e + 2, dx / size, dy / size);
        check_values(got + 6 * k, 6, e, "polyline");
    }
}

static void check_lines(void) {
    const int count = town.map.lane_count + town.map.crossing_count;
    int used[MOST_LINES] = {0};
    CHECK(f.polylines_available == count && f.polylines == (count < 48 ? count : 48));
    for (int slot = 0; slot < f.polylines; slot++) {
        int best = -1;
        int64_t best_key[3] = {0};
        bj_point p[10];
        for (int i = 0; i < count; i++) {
            int64_t key[3] = {INT64_MAX, i >= town.map.lane_count, 0};
            if (used[i]) continue;
            key[2] = key[1] ? town.crossing[i - town.map.lane_count].id : town.lane[i].id;
            line_points(p, i);
            for (int k = 0; k < 10; k++) {
                const int64_t rank = tenths(p[k].x - f.origin[0], p[k].y - f.origin[1]);
                if (rank < key[0]) key[0] = rank;
            }
            int smaller = best < 0;
            for (int j = 0; best >= 0 && j < 3; j++)
                if (key[j] != best_key[j]) {
                    smaller = key[j] < best_key[j];
                    break;
                }
            if (smaller) best = i, memcpy(best_key, key, sizeof key);
        }
        used[best] = 1;
        CHECK_MSG(f.polyline_id[slot] == best_key[2], "slot %d: %lld, expected %lld", slot,
                  (long long)f.polyline_id[slot], (long long)best_key[2]);
        line_points(p, best);
        check_line(f.polyline[slot], p,
                   best < town.map.lane_count && town.lane[best].is_intersection,
                   best >= town.map.lane_count);
    }
}

/* Returns a random coordinate. If `grid` is set, it is rounded to a coarse grid, so that equal
 * distances occur. */
static double coordinate(double at, double range, int grid) {
    const double value = at + between(-range, range);
    return grid ? floor(value) : value;
}

static void add_random_row(int track, int step, double range, int grid) {
    const double x = coordinate(1000, range, grid), y = coordinate(-2000, range, grid);
    const double vx = between(-20, 20), vy = between(-20, 20);
    add_row(track, step, x, y, vx, vy, between(-4, 4));
}

static bj_points random_line(int grid) {
    double xy[2 * 12];
    const int count = 1 + (int)draw(12);
    for (int i = 0; i < count; i++) {
        const int repeat = i && !draw(5);
        xy[2 * i] = repeat ? xy[2 * i - 2] : coordinate(1000, 60, grid);
        xy[2 * i + 1] = repeat ? xy[2 * i - 1] : coordinate(-2000, 60, grid);
    }
    return add_points(count, xy);
}

static void shuffle_rows(void) {
    for (int64_t i = town.scenario.rows - 1; i > 0; i--) {
        const int64_t j = draw((uint32_t)i + 1);
#define SWAP(type, array)                                                                          \
    do {                                                                                           \
        const type swapped = town.array[i];                                                        \
        town.array[i] = town.array[j];                                                             \
        town.array[j] = swapped;                                                                   \
    } while (0)
        SWAP(int32_t, track);
        SWAP(int64_t, step);
        SWAP(double, x);
        SWAP(double, y);
        SWAP(double, vx);
        SWAP(double, vy);
        SWAP(double, heading);
    }
}

static void random_town(void) {
    static const char *const types[] = {"vehicle", "bus", "pedestrian", "cyclist", "static"};
    clear();
    const int grid = (int)draw(2), tracks = 1 + (int)draw(30), steps = draw(5) ? 110 : 50;
    for (int k = 0; k < tracks; k++) {
        add_track(types[draw(5)]);
        const uint32_t density = 1 + draw(4);
        for (int t = 0; t < steps; t++)
            if (draw(4) < density || (t == 49 && draw(4)))
                for (uint32_t again = 1 + !draw(20); again; again--) add_random_row(k, t, 50, grid);
    }
    town.scenario.focal = (int)draw((uint32_t)tracks);
    add_random_row(town.scenario.focal, 49, 9, grid);
    if (draw(2)) shuffle_rows();
    const int lanes = (int)draw(60), crossings = (int)draw(12);
    for (int i = 0; i < lanes; i++) {
        const bj_points left = random_line(grid), right = random_line(grid);
        add_lane((i * 37) % 101 - 50, (int)draw(2), left, right);
    }
    for (int i = 0; i < crossings; i++) add_crossing((i * 37) % 101 - 50, random_line(grid));
}

static void test_random(void) {
    int full = 0, cut = 0;
    for (int round = 0; round < 60; round++) {
        random_town();
        CHECK_OK(make(), err);
        check_track(f.focal, f.focal_valid, town.scenario.focal, 0);
        check_neighbors();
        check_future();
        check_lines();
        full += f.neighbors_available > 16;
        cut += f.polylines_available > 48;
    }
    CHECK(full > 5 && cut > 5);
}

/* ------------------------------------------------------------------------------------- memory */

static void test_memory(void) {
    static bj_features again;
    random_town();
    for (long n = 0;; n++) {
        bj_features_maker *fresh = NULL;
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        bj_status status = bj_features_maker_create(&fresh, &err);
        if (status == BJ_OK)
            status = bj_features_make(&f, fresh, &town.scenario, &town.map, "scene", &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        if (fresh) { /* must work afterwards, without further allocations */
            CHECK_OK(bj_features_make(&f, fresh, &town.scenario, &town.map, "scene", &err), err);
            const long count = bj_alloc_count();
            memset(&again, 0xff, sizeof again);
            CHECK_OK(bj_features_make(&again, fresh, &town.scenario, &town.map, "scene", &err),
                     err);
            CHECK(bj_alloc_count() == count && !memcmp(&f, &again, sizeof f));
        }
        bj_features_maker_free(fresh);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) {
            CHECK(n == 5);
            break;
        }
    }
    bj_features_maker_free(NULL);
}

int main(void) {
    CHECK_OK(bj_features_maker_create(&maker, &err), err);
    test_frame();
    test_repeated_rows();
    test_focal_missing();
    test_types();
    test_nearest_neighbors();
    test_future();
    test_lines();
    test_nearest_lines();
    test_unfit();
    test_random();
    test_memory();
    bj_features_maker_free(maker);
    return test_report("features");
}
