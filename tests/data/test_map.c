/* test_map.c - tests which maps the reader accepts, and the messages for rejected maps.
 *
 * Also replays the corpus of tests/fuzz/fuzz_map.c with the same mutations in every run.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "../fuzz/fuzz_map.c"
#include "core/file.h"
#include "support/test.h"

static bj_map_reader *reader;
static bj_map map;
static bj_error err;

static bj_status read_map(const char *text) {
    err = (bj_error){0};
    return bj_map_read_memory(&map, reader, text, strlen(text), "town.json", &err);
}

/* ------------------------------------------------------------------------------------- accepted */

static void check_points(bj_points points, int count, const double *expected) {
    CHECK_MSG(points.count == count, "%d points, expected %d", points.count, count);
    for (int i = 0; i < count && i < points.count; i++)
        CHECK_MSG(points.at[i].x == expected[2 * i] && points.at[i].y == expected[2 * i + 1],
                  "point %d is (%g, %g)", i, points.at[i].x, points.at[i].y);
}

static void check_whole(void) {
    CHECK(map.lane_count == 2 && map.crossing_count == 1 && map.area_count == 1);
    if (map.lane_count != 2 || map.crossing_count != 1 || map.area_count != 1) return;
    CHECK(map.lanes[0].id == 10 && !map.lanes[0].is_intersection);
    check_points(map.lanes[0].left, 2, (double[]){1, 1.5, 5, 1.5});
    check_points(map.lanes[0].right, 2, (double[]){1, -1.5, 5, -1.5});
    CHECK(map.lanes[0].successor_count == 2 && map.lanes[0].successors[0] == 11);
    CHECK(map.lanes[0].successors[1] == -3); /* not in the map */
    CHECK(map.lanes[1].id == 11 && map.lanes[1].is_intersection);
    CHECK(map.lanes[1].successor_count == 0); /* missing in the file */
    check_points(map.lanes[1].left, 1, (double[]){5, 1.5});
    check_points(map.lanes[1].right, 1, (double[]){5, -1.5});
    CHECK(map.crossings[0].id == 20);
    check_points(map.crossings[0].edge, 2, (double[]){2, -4, 2, 4});
    CHECK(map.areas[0].id == 1);
    check_points(map.areas[0].ring, 3, (double[]){0.5, 0, 9.25, -3.5, 4, 7.75});
}

static void test_files(void) {
    const char *path = "tests/fuzz/corpus/map/whole.json";
    CHECK_OK(bj_map_read(&map, reader, path, &err), err);
    check_whole();
    CHECK_OK(bj_map_read(&map, reader, "tests/fuzz/corpus/map/odd_layout.json", &err), err);
    CHECK(map.lane_count == 1 && map.crossing_count == 0 && map.area_count == 1);
    CHECK(map.lanes[0].id == INT64_MIN && map.lanes[0].is_intersection);
    check_points(map.lanes[0].left, 1, (double[]){1, 2});
    check_points(map.lanes[0].right, 1, (double[]){0, 0.1});
    CHECK(map.areas[0].id == INT64_MAX);
    check_points(map.areas[0].ring, 3, (double[]){0, 0, 1, 0, 0, 1}); /* the repeated point has been
                                                                         removed */

    const long before = bj_alloc_count(); /* buffers are reused */
    CHECK_OK(bj_map_read(&map, reader, path, &err), err);
    CHECK(bj_alloc_count() == before);
    check_whole();

    CHECK(bj_map_read(&map, reader, "absent.json", &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "absent.json: cannot open");
    CHECK(map.lane_count == 0 && !map.lanes);
    CHECK(bj_map_read(&map, reader, "/dev/zero", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "not a regular file");
    CHECK_OK(read_map("{\"drivable_areas\":{},\"lane_segments\":{}}"), err);
    CHECK(map.lane_count == 0 && map.crossing_count == 0 && map.area_count == 0);
}

/* Tests that objects keep the file order, and that a lane and a crossing may have the same id. */
static void test_order(void) {
    CHECK_OK(
        read_map(
            "{\"pedestrian_crossings\":{\"b\":{\"edge1\":[{\"x\":1,\"y\":2}],\"id\":7},"
            "\"a\":{\"id\":3,\"edge1\":[{\"x\":3,\"y\":4}],\"edge2\":\"ignored\"}},"
            "\"drivable_areas\":{},\"lane_segments\":{\"x\":{\"id\":7,\"is_intersection\":false,"
            "\"right_lane_boundary\":[{\"x\":1,\"y\":2},{\"x\":1,\"y\":3}],"
            "\"left_lane_boundary\":[{\"x\":12,\"y\":-0.5e1}]}}}"),
        err);
    CHECK(map.crossing_count == 2 && map.crossings[0].id == 7 && map.crossings[1].id == 3);
    CHECK(map.lane_count == 1 && map.lanes[0].id == 7);
    check_points(map.lanes[0].left, 1, (double[]){12, -5});
    check_points(map.lanes[0].right, 2, (double[]){1, 2, 1, 3});
}

/* Tests that the whitespace and the order of the members of a point do not matter. */
static void test_layouts(void) {
    static const char *const layouts[] = {"{\"x\": -12.5, \"y\": 404.83, \"z\": 1.5}",
                                          "{\"x\":-12.5,\"y\":404.83,\"z\":1.5}",
                                          "{\"x\": -12.5, \"y\": 404.83}",
                                          "{\"y\": 404.83, \"x\": -12.5}",
                                          "{\"x\": -12.5, \"y\": 404.83, \"z\": null}",
                                          "{\"x\": -12.5, \"y\": 404.83, \"z\": 1, \"w\": 2}",
                                          "{\"x\": -1.25e1, \"y\": 404.83, \"z\": 1}",
                                          "{\"x\": -12.50000000000, \"y\": 40483e-2, \"z\": 1}",
                                          "{\"x\": -12.5, \"y\": 404.83, \"z\": 1.5 }",
                                          " { \"x\" :\n-12.5\t,\r\"y\" : 404.83 } ",
                                          "{\"\\u0078\": -12.5, \"y\": 404.83}",
                                          "{\"xx\": 1, \"x\": -12.5, \"\": 2, \"y\": 404.83}"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"lane_segments\":{},\"drivable_areas\":{},\"pedestrian_crossings\":{\"1\":"
                 "{\"id\":1,\"edge1\":[%s,%s]}}}",
                 layouts[i], layouts[i]);
        CHECK_MSG(read_map(text) == BJ_OK, "%s: %s", layouts[i], err.message);
        if (map.crossing_count == 1)
            check_points(map.crossings[0].edge, 2, (double[]){-12.5, 404.83, -12.5, 404.83});
    }
}

/* ------------------------------------------------------------------------------- rejected input */

#define LANE(id, flag, left, right)                                                                \
    "{\"id\":" id ",\"is_intersection\":" flag ",\"left_lane_boundary\":" left                     \
    ",\"right_lane_boundary\":" right "}"
#define LANES(objects) "{\"drivable_areas\":{},\"lane_segments\":{" objects "}}"
#define CROSSINGS(objects)                                                                         \
    "{\"drivable_areas\":{},\"lane_segments\":{},\"pedestrian_crossings\":{" objects "}}"
#define AREAS(objects) "{\"lane_segments\":{},\"drivable_areas\":{" objects "}}"
#define P "[{\"x\":1,\"y\":2}]"

static void test_refusals(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "town.json: not JSON at byte 0 of 0: unexpected end"},
        {"[1]", "town.json: not a JSON object"},
        {"[1", "town.json: not JSON at byte 2 of 2: unexpected end"},
        {"{} x", "town.json: not JSON at byte 3 of 4: text after the value"},
        {"{}", "town.json: lane_segments is missing"},
        {"{\"lane_segments\":{}}", "town.json: drivable_areas is missing"},
        {"{\"drivable_areas\":{}}", "town.json: lane_segments is missing"},
        {"{\"lane_segments\":[]}", "town.json: lane_segments is not an object"},
        {"{\"lane_segments\":nul}", "not JSON at byte 17 of 21: expected a value"},
        {"{\"lane_segments\":{},\"lane_segments\":{}}", "town.json: lane_segments is given twice"},
        {CROSSINGS("") "}", "text after the value"},
        {LANES("\"5\":7"), "town.json: lane_segments '5': not an object"},
        {LANES("\"5\":{}"), "lane_segments '5': id is missing"},
        {LANES("\"5\":{\"id\":5}"), "lane_segments '5': left_lane_boundary is missing"},
        {LANES("\"5\":{\"id\":5,\"left_lane_boundary\":" P ",\"right_lane_boundary\":" P "}"),
         "lane_segments '5': is_intersection is missing"},
        {LANES("\"5\":" LANE("5.0", "true", P, P)), "id is not a 64-bit integer"},
        {LANES("\"5\":" LANE("\"5\"", "true", P, P)), "id is not a 64-bit integer"},
        {LANES("\"5\":" LANE("9223372036854775808", "true", P, P)), "id is not a 64-bit integer"},
        {LANES("\"5\":" LANE("5", "1", P, P)), "'5': is_intersection is not true or false"},
        {LANES("\"5\":" LANE("5", "tru", P, P)), "not JSON"},
        {LANES("\"5\":" LANE("5", "true", "[]", P)), "left_lane_boundary has no points"},
        {LANES("\"5\":" LANE("5", "true", "{}", P)), "left_lane_boundary is not a list of points"},
        {LANES("\"5\":" LANE("5", "true", "null", P)), "left_lane_boundary is not a list"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\":1,\"y\":2},{\"x\":1}]")),
         "'5': right_lane_boundary[1] has no y"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"y\":1}]")), "right_lane_boundary[0] has no x"},
        {LANES("\"5\":" LANE("5", "true", P, "[[1,2]]")), "right_lane_boundary[0] is not a point"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\":\"1\",\"y\":2}]")),
         "right_lane_boundary[0].x is not a finite number"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\":1,\"y\":1e999}]")),
         "right_lane_boundary[0].y is not a finite number"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\": 1.5, \"y\": -1e999, \"z\": 1.5}]")),
         "right_lane_boundary[0].y is not a finite number"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\":1,\"y\":NaN}]")), "not JSON"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\": 1.5, \"y\": 2.5, \"z\": 01.5}]")),
         "not JSON"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\": 01.5, \"y\": 2.5, \"z\": 1.5}]")),
         "not JSON"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"x\":1,\"x\":1,\"y\":2}]")),
         "right_lane_boundary[0].x is given twice"},
        {LANES("\"5\":" LANE("5", "true", P, "[{\"y\":1,\"x\":1,\"y\":2}]")),
         "right_lane_boundary[0].y is given twice"},
        {LANES("\"5\":{\"id\":5,\"successors\":{}}"), "'5': successors is not a list of ids"},
        {LANES("\"5\":{\"id\":5,\"successors\":[6,1.5]}"),
         "'5': successors[1] is not a 64-bit integer"},
        {LANES("\"5\":{\"id\":5,\"successors\":[6,]}"), "not JSON"},
        {LANES("\"5\":{\"id\":5,\"successors\":[],\"successors\":[]}"),
         "successors is given twice"},
        {LANES("\"5\":{\"id\":5,\"id\":5}"), "lane_segments '5': id is given twice"},
        {LANES("\"5\":" LANE("5", "true", P, P) ",\"5\":" LANE("6", "true", P, P)),
         "lane_segments '5': this key is given twice"},
        {LANES("\"5\":" LANE("5", "true", P, P) ",\"\\u0035\":" LANE("6", "true", P, P)),
         "lane_segments '5': this key is given twice"},
        {LANES("\"5\":" LANE("5", "true", P, P) ",\"6\":" LANE("5", "true", P, P)),
         "lane_segments '6': id 5 is given twice"},
        {LANES("\"a\\n\\u0000\xc3\xa9z\":{}"), "lane_segments 'a????z': id is missing"},
        {LANES("\"5\":" LANE("5", "true", P, P) ",\"centerline\":[{\"x\": 1, \"y\": 2, \"z\": }]"),
         "not JSON"},
        {LANES("\"5\":{\"centerline\":[{\"x\": 1.5, \"y\": 2.5, \"z\": 3.5},]}"), "not JSON"},
        {CROSSINGS("\"8\":{\"id\":8}"), "pedestrian_crossings '8': edge1 is missing"},
        {CROSSINGS("\"8\":{\"id\":8,\"edge1\":[]}"),
         "pedestrian_crossings '8': edge1 has no points"},
        {"{\"drivable_areas\":{},\"lane_segments\":{},\"pedestrian_crossings\":null}",
         "town.json: pedestrian_crossings is not an object"},
        {AREAS("\"9\":{\"id\":9}"), "drivable_areas '9': area_boundary is missing"},
        {AREAS("\"9\":{\"id\":9,\"area_boundary\":[{\"x\":0,\"y\":0},{\"x\":1,\"y\":0}]}"),
         "drivable_areas '9': area_boundary has 2 points, expected at least 3"},
        {AREAS("\"9\":{\"id\":9,\"area_boundary\":[{\"x\":0,\"y\":0},{\"x\":1,\"y\":0},"
               "{\"x\":0,\"y\":0}]}"),
         "area_boundary has 2 points"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_MSG(read_map(cases[i].text) == BJ_EFORMAT, "%s", cases[i].text);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK(map.lane_count == 0 && !map.lanes);
    }
    CHECK(bj_map_read_memory(&map, reader, "{}", SIZE_MAX, "town.json", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "town.json: more than 67108864 bytes");
    CHECK(bj_map_read_memory(&map, reader, "{}", 2, "town.json", NULL) == BJ_EFORMAT);
}

/* Tests that every lane keeps its own successors. */
static void test_successors(void) {
    const char *const text =
        LANES("\"5\":{\"successors\":[7],\"id\":5,\"is_intersection\":true,"
              "\"left_lane_boundary\":" P ",\"right_lane_boundary\":" P "},"
              "\"6\":{\"id\":6,\"is_intersection\":true,\"left_lane_boundary\":" P
              ",\"right_lane_boundary\":" P ",\"successors\":[8, 9]}");
    CHECK_OK(read_map(text), err);
    CHECK(map.lane_count == 2 && map.lanes[0].successor_count == 1);
    CHECK(map.lanes[0].successors[0] == 7 && map.lanes[1].successor_count == 2);
    CHECK(map.lanes[1].successors[0] == 8 && map.lanes[1].successors[1] == 9);
}

/* Tests that the reserved memory suffices for the shortest possible objects. */
static void test_dense(void) {
    static const char *const shapes[3][2] = {
        {"lane_segments", "{\"id\":%d,\"is_intersection\":true,\"left_lane_boundary\":"
                          "[{\"x\":0,\"y\":0}],\"right_lane_boundary\":[{\"x\":0,\"y\":0}]}"},
        {"pedestrian_crossings", "{\"id\":%d,\"edge1\":[{\"x\":0,\"y\":0}]}"},
        {"drivable_areas", "{\"id\":%d,\"area_boundary\":"
                           "[{\"x\":0,\"y\":0},{\"x\":0,\"y\":1},{\"x\":1,\"y\":0}]}"}};
    static const char keys[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static char text[1 << 16];
    for (int s = 0; s < 3; s++)
        for (int count = 1; count <= 63; count += 31) {
            bj_map_reader *fresh = NULL;
            char *p = text;
            CHECK_OK(bj_map_reader_create(&fresh, &err), err);
            p += sprintf(p, "{");
            for (int o = 0; o < 3; o++)
                if (o != s && o != 1) p += sprintf(p, "\"%s\":{},", shapes[o][0]);
            p += sprintf(p, "\"%s\":{", shapes[s][0]);
            for (int i = 0; i < count; i++) {
                if (i) p += sprintf(p, ",\"%c\":", keys[i - 1]);
                else p += sprintf(p, "\"\":");
                p += sprintf(p, shapes[s][1], i);
            }
            p += sprintf(p, "}}");
            const bj_status status =
                bj_map_read_memory(&map, fresh, text, (size_t)(p - text), "dense", &err);
            CHECK_OK(status, err);
            const int got = s == 0 ? map.lane_count : s == 1 ? map.crossing_count : map.area_count;
            CHECK_MSG(got == count, "%d of %d %s", got, count, shapes[s][0]);
            bj_map_reader_free(fresh);
        }
    bj_map_reader_free(NULL);

    /* Test a list that contains only points. */
    bj_map_reader *fresh = NULL;
    char *p = text;
    CHECK_OK(bj_map_reader_create(&fresh, &err), err);
    p += sprintf(p, "{\"lane_segments\":{},\"drivable_areas\":{\"\":{\"id\":0,\"area_boundary\":[");
    for (int i = 0; i < 4000; i++) p += sprintf(p, "{\"x\":0,\"y\":%d},", i % 9 + 1);
    p += sprintf(p - 1, "]}}}") - 1;
    CHECK_OK(bj_map_read_memory(&map, fresh, text, (size_t)(p - text), "dense", &err), err);
    CHECK(map.area_count == 1 && map.areas[0].ring.count == 4000);
    for (int i = 0; i < 4000; i++) CHECK(map.areas[0].ring.at[i].y == i % 9 + 1);
    bj_map_reader_free(fresh);

    /* Test a list that contains only ids. */
    fresh = NULL;
    p = text;
    CHECK_OK(bj_map_reader_create(&fresh, &err), err);
    p += sprintf(
        p, "{\"drivable_areas\":{},\"lane_segments\":{\"\":{\"id\":0,\"is_intersection\":true,"
           "\"left_lane_boundary\":" P ",\"right_lane_boundary\":" P ",\"successors\":[");
    for (int i = 0; i < 20000; i++) p += sprintf(p, "%d,", i % 10);
    p += sprintf(p - 1, "]}}}") - 1;
    CHECK_OK(bj_map_read_memory(&map, fresh, text, (size_t)(p - text), "dense", &err), err);
    CHECK(map.lane_count == 1 && map.lanes[0].successor_count == 20000);
    for (int i = 0; i < 20000; i++) CHECK(map.lanes[0].successors[i] == i % 10);
    bj_map_reader_free(fresh);
}

/* Tests that a reader stays usable if an allocation fails while it reads a larger map. */
static void test_memory(void) {
    static const char small[] = CROSSINGS("\"8\":{\"id\":8,\"edge1\":" P "}");
    const char *whole = "tests/fuzz/corpus/map/whole.json";
    bj_status status = BJ_ENOMEM;
    for (long n = 0; status != BJ_OK; n++) {
        bj_map_reader *fresh = NULL;
        bj_map got = {0};
        const long live = bj_alloc_live();
        CHECK_OK(bj_map_reader_create(&fresh, &err), err);
        CHECK_OK(bj_map_read_memory(&got, fresh, small, sizeof small - 1, "small", &err), err);
        bj_alloc_fail_after(n);
        status = bj_map_read(&got, fresh, whole, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_ENOMEM || (status == BJ_OK && n >= 6));
        CHECK(status == BJ_OK || (!got.lanes && got.lane_count == 0));
        CHECK_OK(bj_map_read_memory(&got, fresh, small, sizeof small - 1, "small", &err), err);
        CHECK_OK(bj_map_read(&got, fresh, whole, &err), err);
        CHECK(got.lane_count == 2);
        bj_map_reader_free(fresh);
        CHECK(bj_alloc_live() == live);
        if (n > 100) break;
    }
    bj_map_reader *none = NULL;
    bj_alloc_fail_after(0);
    CHECK(bj_map_reader_create(&none, &err) == BJ_ENOMEM && !none);
    bj_alloc_fail_after(-1);
}

/* ------------------------------------------------------------------------------------ mutations */

static uint64_t state = 3;

static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void test_mutations(void) {
    static const char spare[] = "{}[],:\"\\ 0123456789.-eExyid\xc3";
    struct dirent **entries;
    const char *folder = "tests/fuzz/corpus/map";
    const int count = scandir(folder, &entries, NULL, alphasort);
    CHECK(count > 2);
    for (int i = 0; i < count; free(entries[i++])) {
        char path[512], *text;
        size_t size;
        if (!strstr(entries[i]->d_name, ".json")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        CHECK_OK(bj_file_read(&text, &size, path, 1 << 20, &err), err);
        for (int round = 0; round < 1500; round++) {
            uint8_t *copy = malloc(size); /* exact size, for AddressSanitizer */
            if (!copy) abort();
            memcpy(copy, text, size);
            size_t left = size;
            for (uint32_t damage = draw(4); damage && left; damage--) {
                const size_t at = draw((uint32_t)left);
                if (draw(3)) {
                    copy[at] = (uint8_t)spare[draw(sizeof spare - 1)];
                } else {
                    memmove(copy + at, copy + at + 1, left - at - 1);
                    left--;
                }
            }
            LLVMFuzzerTestOneInput(copy, left); /* aborts on an error */
            free(copy);
        }
        bj_free(text);
        test_passed++;
    }
    if (count >= 0) free(entries);
}

int main(void) {
    CHECK_OK(bj_map_reader_create(&reader, &err), err);
    test_files();
    test_order();
    test_layouts();
    test_refusals();
    test_successors();
    test_dense();
    test_memory();
    test_mutations();
    bj_map_reader_free(reader);
    return test_report("map");
}
