/* test_scenario_scene.c - tests scenes read from scenario folders, and coordinate conversion.
 *
 * The test writes scenarios in the official layout. The focal track of scenario i drives straight
 * at 4 + i m/s with heading 0.3 i radians from its own origin, next to i % 4 other tracks, on a map
 * of three lanes and a crossing.
 *
 * For the scripts in tests/cli:  test_scenario_scene scenarios FOLDER COUNT  writes them.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/real.h"
#include "data/scenario.h"
#include "parquet/writer.h"
#include "test.h"

enum { STEPS = 110, MOST_TRACKS = 4, ROWS = STEPS * MOST_TRACKS, PATH = 256 };

static char folder[] = "/tmp/test_scenario_scene.XXXXXX";

static double speed_of(int i) { return i == 7 ? 0.2 : 4 + i; } /* the eighth is almost stationary */
static double heading_of(int i) { return 0.3 * i; }
static double origin_of(int i, int axis) { return axis ? -900.5 + 3 * i : 2000.25 - 7 * i; }
static int neighbors_of(int i) { return i % 4; }
static int steps_of(int i) { return i % 5 == 4 ? 50 : STEPS; } /* 50: no future */

static void id_of(char id[40], int i) {
    snprintf(id, 40, "%08x-0000-4000-8000-%012x", (unsigned)(i + 1) * 0x01010101u, (unsigned)i);
}

/* -------------------------------------------------------------------------------------- writing */

/* Converts a point from the focal frame to city coordinates. */
static void place(double out[2], int i, double x, double y) {
    const double c = cos(heading_of(i)), s = sin(heading_of(i));
    out[0] = origin_of(i, 0) + c * x - s * y;
    out[1] = origin_of(i, 1) + s * x + c * y;
}

static const bj_parquet_field fields[] = {
    {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},    {"object_type", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"timestep", BJ_PARQUET_INT64, 0, 0},         {"position_x", BJ_PARQUET_DOUBLE, 0, 0},
    {"position_y", BJ_PARQUET_DOUBLE, 0, 0},      {"heading", BJ_PARQUET_DOUBLE, 0, 0},
    {"velocity_x", BJ_PARQUET_DOUBLE, 0, 0},      {"velocity_y", BJ_PARQUET_DOUBLE, 0, 0},
    {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1}, {"focal_track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"city", BJ_PARQUET_BYTE_ARRAY, 0, 1}};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static bj_status write_tracks(const char *path, const char *id, int i, bj_error *err) {
    static const char *const names[MOST_TRACKS] = {"100", "101", "102", "AV"};
    static bj_text track[ROWS], type[ROWS], scenario[ROWS], focal[ROWS], city[ROWS];
    static int64_t step[ROWS];
    static double x[ROWS], y[ROWS], heading[ROWS], vx[ROWS], vy[ROWS];
    int rows = 0;
    for (int n = neighbors_of(i); n >= 0; n--) /* the focal track comes last */
        for (int t = 0; t < steps_of(i); t++, rows++) {
            double at[2];
            place(at, i, speed_of(i) * 0.1 * (t - 49), 3.5 * n);
            track[rows] = (bj_text){names[n], strlen(names[n])};
            type[rows] = (bj_text){n == 2 ? "cyclist" : "vehicle", 7};
            step[rows] = t;
            x[rows] = at[0];
            y[rows] = at[1];
            heading[rows] = heading_of(i);
            vx[rows] = speed_of(i) * cos(heading_of(i));
            vy[rows] = speed_of(i) * sin(heading_of(i));
            scenario[rows] = (bj_text){id, strlen(id)};
            focal[rows] = (bj_text){"100", 3};
            city[rows] = (bj_text){"nowhere", 7};
        }
    const bj_parquet_data data[FIELDS] = {{.texts = track}, {.texts = type}, {.integers = step},
                                          {.doubles = x},   {.doubles = y},  {.doubles = heading},
                                          {.doubles = vx},  {.doubles = vy}, {.texts = scenario},
                                          {.texts = focal}, {.texts = city}};
    bj_parquet_writer *writer = NULL;
    bj_status status = bj_parquet_writer_create(&writer, fields, FIELDS, BJ_PARQUET_SNAPPY, err);
    if (status == BJ_OK) status = bj_parquet_writer_open(writer, path, err);
    if (status == BJ_OK) status = bj_parquet_writer_rows(writer, rows, data, NULL, err);
    if (status == BJ_OK) status = bj_parquet_writer_commit(writer, err);
    bj_parquet_writer_free(writer);
    return status;
}

static void write_points(FILE *to, int i, const char *key, double x0, double x1, double y) {
    double a[2], b[2];
    place(a, i, x0, y);
    place(b, i, x1, y);
    fprintf(to, "\"%s\":[{\"x\":%.2f,\"y\":%.2f,\"z\":0},{\"x\":%.2f,\"y\":%.2f,\"z\":0}]", key,
            a[0], a[1], b[0], b[1]);
}

/* The points of all drivable areas. */
enum { RINGS = 2 };
static const int ring_sizes[RINGS] = {4, 3};
static const double corner[][2] = {{-40, -2}, {60, -2}, {60, 9}, {-40, 9}, {60, 0}, {70, 3}, {60, 5}};

static void write_map(const char *path, int i) {
    FILE *to = fopen(path, "w");
    if (!to) return;
    fprintf(to, "{\"pedestrian_crossings\":{\"9\":{\"id\":9,");
    write_points(to, i, "edge1", 20, 23, -8);
    fputc(',', to);
    write_points(to, i, "edge2", 20, 23, 8);
    fprintf(to, "}},\"lane_segments\":{");
    for (int lane = 0; lane < 3; lane++) {
        fprintf(to, "%s\"%d\":{\"id\":%d,\"is_intersection\":%s,", lane ? "," : "", lane + 1,
                lane + 1, lane >= 1 ? "true" : "false");
        write_points(to, i, "left_lane_boundary", -40, 60, 3.5 * lane + 1.75);
        fputc(',', to);
        write_points(to, i, "right_lane_boundary", -40, 60, 3.5 * lane - 1.75);
        fputc('}', to);
    }
    fprintf(to, "},\"drivable_areas\":{");
    for (int ring = 0, c = 0; ring < RINGS; ring++) {
        fprintf(to, "%s\"%d\":{\"id\":%d,\"area_boundary\":[", ring ? "," : "", 5 + ring, 5 + ring);
        for (int k = 0; k < ring_sizes[ring]; k++, c++) {
            double at[2];
            place(at, i, corner[c][0], corner[c][1]);
            fprintf(to, "%s{\"x\":%.2f,\"y\":%.2f,\"z\":0}", k ? "," : "", at[0], at[1]);
        }
        fputs("]}", to);
    }
    fputs("}}\n", to);
    fclose(to);
}

static void file_name(char *path, const char *root, int i, const char *name, const char *suffix) {
    char id[40];
    id_of(id, i);
    if (name) snprintf(path, PATH, "%s/%s/%s_%s%s", root, id, name, id, suffix);
    else snprintf(path, PATH, "%s/%s", root, id);
}

static bj_status write_scenario(const char *root, int i, bj_error *err) {
    char path[PATH], id[40];
    id_of(id, i);
    file_name(path, root, i, NULL, "");
    mkdir(path, 0777);
    file_name(path, root, i, "log_map_archive", ".json");
    write_map(path, i);
    file_name(path, root, i, "scenario", ".parquet");
    return write_tracks(path, id, i, err);
}

static void remove_scenario(const char *root, int i) {
    char path[PATH];
    file_name(path, root, i, "scenario", ".parquet");
    unlink(path);
    file_name(path, root, i, "log_map_archive", ".json");
    unlink(path);
    file_name(path, root, i, NULL, "");
    CHECK(rmdir(path) == 0);
}

/* ------------------------------------------------------------------------------------- checking */

static void check_numbers(const bj_scene_info *info, bj_scene_floats at, int i) {
    for (int t = 0; t < 50; t++) {
        CHECK_NEAR(at.focal[7 * t], speed_of(i) * 0.1 * (t - 49), 1e-4);
        CHECK_NEAR(at.focal[7 * t + 2], speed_of(i), 1e-5);
        CHECK_NEAR(at.focal[7 * t + 4], 1, 1e-6);
    }
    for (int n = 0; n < info->neighbors; n++) {
        CHECK_NEAR(at.neighbors[n * 350 + 49 * 7 + 1], 3.5 * (n + 1), 1e-4);
        CHECK(at.neighbors[n * 350 + 49 * 7 + 6] == (n == 1)); /* the cyclist */
    }
    CHECK_NEAR(at.polylines[1], 0, 0.01); /* the lane of the focal track is nearest */
    CHECK(at.polylines[3 * 60 + 5] == 1); /* the crossing is farthest */
    for (int k = 0; k < 60 && at.future; k++) {
        CHECK_NEAR(at.future[2 * k], speed_of(i) * 0.1 * (k + 1), 1e-4);
        CHECK_NEAR(at.future[2 * k + 1], 0, 1e-4);
    }
}

static void check_batch(const bj_batch *batch, const bj_scene_info *info, bj_scene_floats at) {
    const bj_scene *scene = batch->scenes;
    CHECK(batch->B == 1 && scene->neighbor_count == info->neighbors);
    CHECK(scene->polyline_count == info->polylines);
    CHECK((scene->future != NULL) == info->has_future);
    for (int k = 0; k < 350; k++) CHECK(scene->focal[k] == (bj_real)at.focal[k]);
    for (int k = 0; k < info->neighbors * 350; k++)
        CHECK(scene->neighbors[k] == (bj_real)at.neighbors[k]);
    for (int k = 0; k < info->polylines * 60; k++)
        CHECK(scene->polylines[k] == (bj_real)at.polylines[k]);
    for (int k = 0; k < 120 && scene->future; k++) CHECK(scene->future[k] == (bj_real)at.future[k]);
}

static void check_rings(const bj_scenario_scene *scene, int i) {
    CHECK(bj_scenario_rings(scene) == RINGS);
    for (int ring = 0, c = 0; ring < bj_scenario_rings(scene); ring++) {
        double points[8], at[2];
        CHECK(bj_scenario_ring_size(scene, ring) == ring_sizes[ring]);
        bj_scenario_ring(points, scene, ring);
        for (int k = 0; k < ring_sizes[ring]; k++, c++) {
            place(at, i, corner[c][0], corner[c][1]);
            CHECK_NEAR(points[2 * k], at[0], 0.006); /* the file has two decimals */
            CHECK_NEAR(points[2 * k + 1], at[1], 0.006);
        }
    }
}

static void check_scene(const bj_scenario_scene *scene, int i) {
    char id[40];
    const bj_scene_info info = bj_scenario_info(scene);
    const bj_scene_floats at = bj_scenario_floats(scene);
    id_of(id, i);
    CHECK(!strcmp(info.scenario_id, id) && !strcmp(info.city, "nowhere"));
    CHECK(!strcmp(info.focal_id, "100") && !strcmp(info.focal_type, "vehicle"));
    CHECK(info.origin[0] == origin_of(i, 0) && info.origin[1] == origin_of(i, 1));
    CHECK(info.heading == heading_of(i) && info.map == -1);
    CHECK(info.neighbors == neighbors_of(i) && info.neighbors_available == neighbors_of(i));
    CHECK(info.polylines == 4 && info.polylines_available == 4);
    CHECK(info.has_future == (steps_of(i) == STEPS));
    CHECK((at.future != NULL) == info.has_future);
    CHECK(info.focal_valid == (UINT64_C(1) << 50) - 1);
    check_numbers(&info, at, i);
    check_batch(bj_scenario_batch(scene), &info, at);
    check_rings(scene, i);
}

static void test_folders(void) {
    enum { COUNT = 6 };
    bj_error err;
    for (int i = 0; i < COUNT; i++) CHECK_OK(write_scenario(folder, i, &err), err);
    bj_scenario_list *list = NULL;
    CHECK_OK(bj_scenario_list_create(&list, folder, &err), err);
    CHECK(list && bj_scenario_list_count(list) == COUNT);
    for (int i = COUNT - 1; list && i >= 0; i--) {
        bj_scenario_scene *scene = NULL;
        char path[PATH], id[40];
        id_of(id, i);
        CHECK(!strcmp(bj_scenario_list_id(list, i), id));
        CHECK_OK(bj_scenario_list_open(&scene, list, i, &err), err);
        if (scene) check_scene(scene, i);
        const uint8_t *from_list = scene ? bj_scenario_info(scene).map_sha256 : NULL;
        for (int kind = 0; kind < 2; kind++) { /* 0: the folder, 1: its parquet file */
            bj_scenario_scene *one = NULL;
            file_name(path, folder, i, kind ? "scenario" : NULL, ".parquet");
            CHECK_OK(bj_scenario_open(&one, path, &err), err);
            if (!one) continue;
            check_scene(one, i);
            CHECK(from_list && !memcmp(bj_scenario_info(one).map_sha256, from_list, 32));
            bj_scenario_free(one);
        }
        bj_scenario_free(scene);
    }
    bj_scenario_list_free(list);
    for (int i = 0; i < COUNT; i++) remove_scenario(folder, i);
}

static void expect(const char *path, bj_status code, const char *message) {
    bj_scenario_scene *scene = (bj_scenario_scene *)&code;
    bj_error err = {0};
    const bj_status found = bj_scenario_open(&scene, path, &err);
    CHECK_MSG(found == code && !scene, "status %d: %s", (int)found, err.message);
    CHECK_CONTAINS(err.message, message);
}

static void test_errors(void) {
    char path[PATH], other[PATH + 64];
    bj_error err;
    CHECK_OK(write_scenario(folder, 1, &err), err);
    expect("/tmp/there/is/none", BJ_EIO, "/tmp/there/is/none: No such file");
    expect(folder, BJ_EFORMAT, "found no scenario_ID.parquet");
    file_name(path, folder, 1, "log_map_archive", ".json");
    expect(path, BJ_EFORMAT, "expected a scenario folder or a file named scenario_ID.parquet");

    /* Test a file whose name contains another id than the file itself, then a folder with two
     * scenarios. */
    file_name(other, folder, 1, NULL, "");
    strcat(other, "/scenario_other.parquet");
    file_name(path, folder, 1, "scenario", ".parquet");
    CHECK(rename(path, other) == 0);
    expect(other, BJ_EFORMAT, "expected 'other'");
    CHECK(link(other, path) == 0);
    file_name(path, folder, 1, NULL, "");
    expect(path, BJ_EFORMAT, "expected one scenario per folder");
    CHECK(unlink(other) == 0);

    /* A failed allocation must not leak memory. */
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    int failures = 0;
    for (; failures < 500 && status == BJ_ENOMEM; failures++) {
        bj_scenario_scene *scene = NULL;
        bj_alloc_fail_after(failures);
        status = bj_scenario_open(&scene, path, &err);
        bj_alloc_fail_after(-1);
        bj_scenario_free(scene);
        CHECK_MSG(bj_alloc_live() == live, "failure %d leaves something behind", failures);
    }
    CHECK_MSG(status == BJ_OK && failures > 5, "%d after %d failures", (int)status, failures);

    file_name(path, folder, 1, "log_map_archive", ".json");
    CHECK(unlink(path) == 0);
    file_name(path, folder, 1, NULL, "");
    expect(path, BJ_EIO, "log_map_archive_");
    remove_scenario(folder, 1);
}

static void test_frame(void) {
    const double origin[2] = {1234.5, -6789.25};
    const double points[] = {0, 0, 1, 0, 0, 1, -3.5, 7.25};
    double city[8], back[8];
    bj_to_city(city, points, 4, origin, 1.5707963267948966);
    CHECK(city[0] == origin[0] && city[1] == origin[1]);
    CHECK_NEAR(city[2], 1234.5, 1e-12);
    CHECK_NEAR(city[3], -6788.25, 1e-12);
    CHECK_NEAR(city[4], 1233.5, 1e-12);
    CHECK_NEAR(city[5], -6789.25, 1e-12);
    for (int h = -7; h < 8; h++) {
        bj_to_city(city, points, 4, origin, 0.9 * h);
        bj_from_city(back, city, 4, origin, 0.9 * h);
        for (int i = 0; i < 8; i++) CHECK_NEAR(back[i], points[i], 1e-11);
        CHECK_NEAR(hypot(city[6] - city[0], city[7] - city[1]), hypot(3.5, 7.25), 1e-11);
        bj_to_city(back, back, 4, origin, 0.9 * h); /* in place */
        for (int i = 0; i < 8; i++) CHECK_NEAR(back[i], city[i], 1e-11);
    }
}

int main(int argc, char **argv) {
    bj_error err;
    if (argc == 4 && !strcmp(argv[1], "scenarios")) {
        for (int i = 0; i < atoi(argv[3]); i++)
            if (write_scenario(argv[2], i, &err) != BJ_OK) {
                printf("%s\n", err.message);
                return 1;
            }
        return 0;
    }
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    const long live = bj_alloc_live();
    test_frame();
    test_folders();
    test_errors();
    CHECK(bj_alloc_live() == live);
    CHECK(rmdir(folder) == 0);
    return test_report("scenario_scene");
}
