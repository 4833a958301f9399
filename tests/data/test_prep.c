/* test_prep.c - tests the conversion of scenario folders to a cache: the bytes of the cache must
 * not depend on the number of workers, every flaw must be reported, and every array computed from
 * the real files (BJ_AV2_DATA, BJ_AV2_GOLDEN) must be correct. */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <sys/stat.h>

#include "cache_case.h"
#include "core/json.h"
#include "data/walk.h"
#include "support/make_scenarios.h"
#include "support/npz.h"

enum { SCENARIOS = 24 };

static char folder[64], data[80], path[80], other[80];

static bj_prep_options options_for(const char *const *roots, int jobs) {
    return (bj_prep_options){.roots = roots, .root_count = 1, .jobs = jobs};
}

/* ----------------------------------------------------------------------------- generated folders
 */

static void make_scenarios(void) {
    char split[100];
    bj_error err = {0};
    CHECK(mkdir(data, 0777) == 0);
    for (int i = 0; i < 2; i++) {
        snprintf(split, sizeof split, "%s/%s", data, i ? "val" : "train");
        CHECK(mkdir(split, 0777) == 0);
        for (uint64_t k = 0; k < SCENARIOS / 2; k++) {
            test_recipe recipe = test_recipe_draw(100 * (uint64_t)i + k);
            if (k == 0) recipe.steps = 50;
            CHECK_OK(test_make_scenario(split, &recipe, &err), err);
        }
    }
}

typedef struct watch {
    int calls;
    int64_t stop_at, last, total;
} watch;

static int on_progress(void *context, int64_t done, int64_t total, int64_t rejected) {
    watch *w = context;
    (void)rejected;
    w->calls++;
    w->last = done;
    w->total = total;
    return done == w->stop_at;
}

static void test_jobs_and_stops(void) {
    const char *const roots[] = {data};
    bj_prep_report report, again;
    bj_error err = {0};
    watch w = {.stop_at = -1};
    bj_prep_options options = options_for(roots, 1);
    options.progress = on_progress;
    options.context = &w;
    CHECK_OK(bj_prep(&report, path, &options, &err), err);
    CHECK(report.found == SCENARIOS && report.accepted == SCENARIOS && report.rejected == 0);
    CHECK(report.resumed == 0 && report.without_future >= 2 && !report.interrupted);
    CHECK(report.maps > 1 && report.maps < SCENARIOS); /* some scenes share a map */
    CHECK(w.calls == SCENARIOS + 1 && w.last == SCENARIOS && w.total == SCENARIOS);
    struct stat info;
    CHECK(stat(path, &info) == 0 && info.st_size == report.bytes);
    CHECK(report.bytes < bj_cache_most_bytes(SCENARIOS) + 100000);
    for (int jobs = 2; jobs <= 8; jobs += jobs == 2 ? 1 : 5) {
        options = options_for(roots, jobs);
        CHECK_OK(bj_prep(&again, other, &options, &err), err);
        CHECK(case_same(path, other) && !strcmp(report.digest, again.digest));
        CHECK(unlink(other) == 0);
    }
    /* Interrupt the run after each scene, with varying numbers of workers. */
    options.progress = on_progress;
    options.context = &w;
    for (int i = 0; i < SCENARIOS; i++) {
        w.stop_at = i;
        options.jobs = 1 + i % 3;
        CHECK_OK(bj_prep(&again, other, &options, &err), err);
        CHECK(again.interrupted && again.accepted == i && again.found == SCENARIOS);
        CHECK(again.resumed == (i ? i - 1 : 0) && access(other, F_OK) != 0);
    }
    w.stop_at = -1;
    CHECK_OK(bj_prep(&again, other, &options, &err), err);
    CHECK(again.resumed == SCENARIOS - 1 && again.accepted == SCENARIOS && !again.interrupted);
    CHECK(case_same(path, other));
}

static void test_options(void) {
    const char *const roots[] = {data};
    bj_prep_report report;
    bj_error err = {0};
    bj_prep_options options = options_for(roots, 1);
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "already exists");
    options.dry_run = 1;
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.found == SCENARIOS && report.bytes == bj_cache_most_bytes(SCENARIOS));
    options.dry_run = 0;
    options.force = 1;
    options.limit = 5;
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.found == 5 && report.accepted == 5);
    options.limit = 0;
    options.split = "val";
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.accepted == SCENARIOS / 2);
    bj_cache *cache = NULL;
    CHECK_OK(bj_cache_open(&cache, other, 0, &err), err);
    if (cache) CHECK(!strcmp(bj_cache_fact(cache, "split"), "val"));
    bj_cache_free(cache);
    options.split = "test";
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "no scenario of the split test");
    CHECK(unlink(other) == 0);
}

/* Tests that a run is resumed only if its items are the first items of the new run. */
static void test_changed_folders(void) {
    char moved[200], id[TEST_ID], from[BJ_WALK_PATH];
    const char *const roots[] = {data};
    bj_prep_report report;
    bj_error err = {0};
    watch w = {.stop_at = 10};
    bj_prep_options options = options_for(roots, 2);
    options.progress = on_progress;
    options.context = &w;
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.interrupted);
    /* Remove the scenario with the smallest id. */
    bj_walk *walk = NULL;
    CHECK_OK(bj_walk_create(&walk, roots, 1, NULL, &err), err);
    snprintf(id, sizeof id, "%s", bj_walk_id(walk, 0));
    CHECK_OK(bj_walk_folder(from, walk, 0, &err), err);
    bj_walk_free(walk);
    snprintf(moved, sizeof moved, "%s/.moved", folder);
    CHECK(rename(from, moved) == 0);
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, id);
    CHECK_CONTAINS(err.message, "--restart");
    CHECK(rename(moved, from) == 0);
    options.limit = 9;
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "contains 10 scenarios, but the input has only 9");
    options.split = "val";
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "found 'split=all', expected 'split=val'");
    options = options_for(roots, 2);
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.resumed == 10 && case_same(path, other));
    CHECK(unlink(other) == 0);
}

/* -------------------------------------------------------------------------------------- rejects */

/* Returns the code of a scenario in the reject list, or "". */
static const char *code_of(char out[64], const char *list, const char *id) {
    char *text = NULL;
    size_t size = 0;
    bj_error err = {0};
    out[0] = '\0';
    CHECK_OK(bj_file_read(&text, &size, list, 1 << 24, &err), err);
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        yyjson_doc *doc = NULL;
        CHECK_OK(bj_json_parse(&doc, line, (size_t)(end - line), "line", &err), err);
        yyjson_val *root = yyjson_doc_get_root(doc);
        if (yyjson_equals_str(yyjson_obj_get(root, "scenario_id"), id)) {
            const char *code = yyjson_get_str(yyjson_obj_get(root, "code"));
            snprintf(out, 64, "%s", code ? code : "none");
            CHECK_CONTAINS(yyjson_get_str(yyjson_obj_get(root, "folder")), id);
            CHECK_CONTAINS(yyjson_get_str(yyjson_obj_get(root, "reason")), id);
        }
        yyjson_doc_free(doc);
    }
    bj_free(text);
    return out;
}

static void test_flaws(void) {
    char bad[100], list[200], code[64], id[TEST_ID];
    const char *roots[] = {data, bad};
    bj_prep_report report;
    bj_error err = {0};
    snprintf(bad, sizeof bad, "%s/bad", folder);
    snprintf(list, sizeof list, "%s.rejects.jsonl", other);
    CHECK(mkdir(bad, 0777) == 0);
    for (int flaw = 1; flaw < TEST_FLAWS; flaw++) {
        test_recipe recipe = test_recipe_draw(1000 + (uint64_t)flaw);
        recipe.tracks = 5;
        recipe.flaw = (test_flaw)flaw;
        CHECK_OK(test_make_scenario(bad, &recipe, &err), err);
    }
    const test_recipe repeated = test_recipe_draw(3); /* train already contains it */
    CHECK_OK(test_make_scenario(bad, &repeated, &err), err);
    bj_prep_options options = options_for(roots, 2);
    options.root_count = 2;
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.found == SCENARIOS + TEST_FLAWS && report.accepted == SCENARIOS);
    CHECK(report.rejected == TEST_FLAWS && case_same(path, other));
    for (int flaw = 1; flaw < TEST_FLAWS; flaw++) {
        test_scenario_id(id, 1000 + (uint64_t)flaw);
        CHECK_MSG(!strcmp(code_of(code, list, id), test_flaw_codes[flaw]), "%s, expected %s", code,
                  test_flaw_codes[flaw]);
    }
    test_scenario_id(id, 3);
    CHECK_MSG(!strcmp(code_of(code, list, id), "duplicate"), "%s", code);

    /* Strict mode stops at the first reject. The run can then be resumed without strict mode. */
    CHECK(unlink(other) == 0 && unlink(list) == 0);
    options.strict = 1;
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EFORMAT);
    CHECK(access(other, F_OK) != 0 && report.rejected == 0);
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EFORMAT); /* fails again */
    options.strict = 0;
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.rejected == TEST_FLAWS && case_same(path, other));
    CHECK(unlink(other) == 0);

    /* Test a folder with only invalid scenarios. */
    roots[0] = bad;
    options.root_count = 1;
    test_scenario_id(id, 3);
    snprintf(list, sizeof list, "rm -rf %s/%s", bad, id);
    CHECK(system(list) == 0);
    CHECK(bj_prep(&report, other, &options, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "none of the 9");
    CHECK(access(other, F_OK) != 0);
}

/* ------------------------------------------------------------------------------------ real files
 */

/* Compares the first `count` numbers of a golden array. */
static void compare(const npz *golden, const char *id, const char *name, const float *found,
                    long count) {
    const npz_array *want = npz_find(golden, name);
    long wrong = 0;
    CHECK_MSG(want && want->count >= count, "%s: %s", id, name);
    for (long i = 0; want && i < count; i++) {
        const double number = npz_number(want, i);
        wrong += !(fabs(found[i] - number) <= 1e-5 * fmax(1, fabs(number)));
    }
    CHECK_MSG(!wrong, "%s: %ld of %ld numbers of %s are wrong", id, wrong, count, name);
}

static double one(const npz *golden, const char *name, long i) {
    const npz_array *array = npz_find(golden, name);
    return array && i < array->count ? npz_number(array, i) : NAN;
}

static int is_text(const npz *golden, const char *name, const char *found) {
    const npz_array *array = npz_find(golden, name);
    return array && array->size == strlen(found) && !memcmp(array->data, found, array->size);
}

static void compare_golden(const bj_cache *cache, int64_t index, const npz *golden) {
    const bj_scene_info info = bj_cache_info(cache, index);
    const bj_scene_floats at = bj_cache_floats(cache, index);
    const char *id = info.scenario_id;
    double neighbors = 0, polylines = 0;
    for (int i = 0; i < 16; i++) neighbors += one(golden, "nmask", i);
    for (int i = 0; i < 48; i++) polylines += one(golden, "pmask", i);
    CHECK_MSG(info.neighbors == neighbors && info.polylines == polylines, "%s", id);
    CHECK(info.neighbors_available == one(golden, "neighbors_available", 0));
    CHECK(info.polylines_available == one(golden, "polylines_available", 0));
    compare(golden, id, "focal", at.focal, BJ_AV2_TRACK);
    compare(golden, id, "neighbors", at.neighbors, (long)info.neighbors * BJ_AV2_TRACK);
    compare(golden, id, "polylines", at.polylines, (long)info.polylines * BJ_AV2_LINE);
    CHECK(info.has_future == one(golden, "has_future", 0));
    if (at.future) compare(golden, id, "future", at.future, BJ_AV2_FUTURE);
    for (int i = 0; i < 50; i++)
        CHECK((int)(info.focal_valid >> i & 1) == one(golden, "focal_valid", i));
    for (int i = 0; i < 60; i++)
        CHECK((int)(info.future_valid >> i & 1) == one(golden, "future_mask", i));
    CHECK(info.origin[0] == one(golden, "origin", 0) && info.origin[1] == one(golden, "origin", 1));
    CHECK(info.heading == one(golden, "heading", 0));
    CHECK(is_text(golden, "city", info.city) && is_text(golden, "focal_type", info.focal_type));
    CHECK(is_text(golden, "focal_track_id", info.focal_id));
    CHECK(is_text(golden, "scenario_id", id));
}

/* Checks that the areas in the cache equal those of the map file bit for bit. */
static void compare_areas(const bj_cache *cache, int64_t index, const bj_walk *walk,
                          bj_map_reader *reader) {
    char where[BJ_WALK_PATH], file[BJ_WALK_PATH + 128];
    bj_error err = {0};
    bj_map map = {0};
    const bj_scene_info info = bj_cache_info(cache, index);
    CHECK_OK(bj_walk_folder(where, walk, index, &err), err);
    snprintf(file, sizeof file, "%s/log_map_archive_%s.json", where, info.scenario_id);
    CHECK_OK(bj_map_read(&map, reader, file, &err), err);
    CHECK(bj_cache_rings(cache, info.map) == map.area_count);
    for (int r = 0; r < map.area_count; r++) {
        const bj_points ring = map.areas[r].ring;
        double *points = bj_alloc((size_t)ring.count, sizeof(bj_point));
        CHECK(bj_cache_ring_size(cache, info.map, r) == ring.count);
        if (points && bj_cache_ring_size(cache, info.map, r) == ring.count) {
            bj_cache_ring(points, cache, info.map, r);
            CHECK(!memcmp(points, ring.at, (size_t)ring.count * sizeof(bj_point)));
        }
        bj_free(points);
    }
}

static void test_real(const char *from, const char *goldens) {
    const char *const roots[] = {from};
    bj_prep_report report;
    bj_error err = {0};
    bj_cache *cache = NULL;
    bj_walk *walk = NULL;
    bj_map_reader *reader = NULL;
    bj_prep_options options = options_for(roots, 2);
    CHECK_OK(bj_prep(&report, other, &options, &err), err);
    CHECK(report.rejected == 0 && report.accepted == report.found);
    CHECK_OK(bj_cache_open(&cache, other, 0, &err), err);
    CHECK_OK(bj_walk_create(&walk, roots, 1, NULL, &err), err);
    CHECK_OK(bj_map_reader_create(&reader, &err), err);
    for (int64_t i = 0; cache && walk && reader && i < bj_cache_count(cache); i++) {
        char file[4096];
        npz golden;
        snprintf(file, sizeof file, "%s/%s.npz", goldens, bj_cache_info(cache, i).scenario_id);
        CHECK_MSG(npz_open(&golden, file), "%s", file);
        compare_golden(cache, i, &golden);
        npz_close(&golden);
        compare_areas(cache, i, walk, reader);
        CHECK_OK(bj_cache_verify(cache, i, &err), err);
    }
    printf("prep: %lld real scenes and %lld maps match the golden files\n",
           (long long)report.accepted, (long long)report.maps);
    bj_map_reader_free(reader);
    bj_walk_free(walk);
    bj_cache_free(cache);
}

int main(void) {
    const long live = bj_alloc_live();
    const char *real = getenv("BJ_AV2_DATA"), *goldens = getenv("BJ_AV2_GOLDEN");
    if (!case_folder(folder, "test_prep")) return 1;
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(path, sizeof path, "%s/scenes.bjc", folder);
    snprintf(other, sizeof other, "%s/other.bjc", folder);
    make_scenarios();
    test_jobs_and_stops();
    test_options();
    test_changed_folders();
    test_flaws();
    if (real && goldens) test_real(real, goldens);
    else
        printf("skipped the real scenarios; set BJ_AV2_DATA to the scenario folder, "
               "and BJ_AV2_GOLDEN to the folder of their .npz files\n");
    CHECK(bj_alloc_live() == live);
    case_remove(folder);
    return test_report("prep");
}
