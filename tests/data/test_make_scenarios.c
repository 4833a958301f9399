/* test_make_scenarios.c - tests that the scenarios generated for other tests are valid.
 *
 * With arguments, for scripts:
 *   FOLDER FIRST COUNT [FLAW]   writes scenarios with the seeds FIRST, FIRST + 1, ... to FOLDER and
 *                               prints their ids, one per line; FLAW is a number of test_flaw
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/features.h"
#include "support/make_scenarios.h"
#include "support/test.h"

static int write_many(const char *folder, uint64_t first, int count, int flaw) {
    for (int i = 0; i < count; i++) {
        bj_error err = {0};
        char id[TEST_ID];
        test_recipe recipe = test_recipe_draw(first + (uint64_t)i);
        recipe.flaw = (test_flaw)flaw;
        if (test_make_scenario(folder, &recipe, &err) != BJ_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        test_scenario_id(id, recipe.seed);
        puts(id);
    }
    return 0;
}

static void check_one(const char *folder, const test_recipe *recipe) {
    char id[TEST_ID], path[512];
    bj_error err = {0};
    bj_scenario_reader *scenarios = NULL;
    bj_map_reader *maps = NULL;
    bj_features_maker *maker = NULL;
    bj_features *features = NULL;
    bj_scenario scenario;
    bj_map map;
    CHECK_OK(test_make_scenario(folder, recipe, &err), err);
    test_scenario_id(id, recipe->seed);
    CHECK_OK(bj_scenario_reader_create(&scenarios, &err), err);
    CHECK_OK(bj_map_reader_create(&maps, &err), err);
    CHECK_OK(bj_features_maker_create(&maker, &err), err);
    CHECK_OK(BJ_ALLOC(features, 1, &err), err);
    snprintf(path, sizeof path, "%s/%s/scenario_%s.parquet", folder, id, id);
    CHECK_OK(bj_scenario_read(&scenario, scenarios, path, &err), err);
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, id, id);
    CHECK_OK(bj_map_read(&map, maps, path, &err), err);
    CHECK(scenario.id.size == strlen(id) && !memcmp(scenario.id.data, id, strlen(id)));
    CHECK(map.lane_count == recipe->lanes && map.crossing_count == 2 && map.area_count >= 1);
    CHECK_OK(bj_features_make(features, maker, &scenario, &map, path, &err), err);
    CHECK(features->focal_valid == ((uint64_t)1 << 50) - 1);
    CHECK(features->future_valid == (recipe->steps == 110 ? ((uint64_t)1 << 60) - 1 : 0));
    CHECK(features->neighbors <= recipe->tracks);
    CHECK(features->polylines_available == recipe->lanes + 2);
    bj_free(features);
    bj_features_maker_free(maker);
    bj_map_reader_free(maps);
    bj_scenario_reader_free(scenarios);
    snprintf(path, sizeof path, "%s/%s/scenario_%s.parquet", folder, id, id);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, id, id);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", folder, id);
    rmdir(path);
}

int main(int argc, char **argv) {
    if (argc > 3)
        return write_many(argv[1], strtoull(argv[2], NULL, 10), atoi(argv[3]),
                          argc > 4 ? atoi(argv[4]) : 0);
    char folder[] = "/tmp/test_make_scenarios.XXXXXX";
    if (!mkdtemp(folder)) return 1;
    const test_recipe corners[] = {{.seed = 1, .steps = 110},
                                   {.seed = 2, .steps = 50, .tracks = 24, .lanes = 70},
                                   {.seed = 3, .steps = 110, .tracks = 60, .lanes = 200}};
    for (int i = 0; i < 3; i++) check_one(folder, &corners[i]);
    for (uint64_t seed = 10; seed < 15; seed++) {
        const test_recipe recipe = test_recipe_draw(seed);
        check_one(folder, &recipe);
    }
    CHECK(rmdir(folder) == 0);
    return test_report("make_scenarios");
}
