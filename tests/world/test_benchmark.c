/* test_benchmark.c - tests that the standard benchmark can be regenerated, that other law files are
 * rejected, and which seeds are reserved.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "support/test.h"

static char folder[] = "/tmp/test_benchmark.XXXXXX", cache[64], law_path[96];
static bj_error err;

static bj_law *make(bj_world_options options) {
    bj_world_report report;
    bj_law *law = NULL;
    options.force = 1;
    CHECK_OK(bj_world_to_cache(&report, cache, &options, &err), err);
    CHECK_OK(bj_law_open(&law, law_path, &err), err);
    return law;
}

static void test_standard(void) {
    const char *const splits[] = {"val", "test"};
    char digests[2][65];
    for (int i = 0; i < 2; i++) {
        bj_law *law = make((bj_world_options){.version = BJ_BENCHMARK_WORLD,
                                              .seed = BJ_BENCHMARK_SEED,
                                              .split = splits[i],
                                              .scenes = BJ_BENCHMARK_SCENES});
        CHECK_OK(bj_benchmark_check(law, splits[i], &err), err);
        CHECK(bj_benchmark_check(law, splits[1 - i], &err) == BJ_EMISMATCH);
        CHECK_CONTAINS(err.message, "split is ");
        CHECK(bj_benchmark_check(law, "train", &err) == BJ_EARG);
        CHECK_OK(bj_law_digest(digests[i], law, &err), err);
        bj_law_free(law);
    }
    CHECK(strlen(digests[0]) == 64 && strcmp(digests[0], digests[1]));
}

static void test_others(void) {
    const struct {
        bj_world_options options;
        const char *text;
    } cases[] = {
        {{.version = 2, .seed = 7, .split = "val", .scenes = 3}, "seed is 7, expected 20260"},
        {{.version = 1, .seed = 20260, .split = "val", .scenes = 3},
         "world is missing, expected 2"},
        {{.version = 2, .seed = 20260, .split = "dev", .scenes = 3}, "split is dev, expected val"},
        {{.version = 2, .seed = 20260, .split = "val", .scenes = 3},
         "it has 3 scenes, expected 2000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_law *law = make(cases[i].options);
        CHECK(bj_benchmark_check(law, "val", &err) == BJ_EMISMATCH);
        CHECK_CONTAINS(err.message, cases[i].text);
        bj_law_free(law);
    }
}

/* Tests that a file with the right facts but a different scene is rejected because of its
 * digest. */
static void test_digest(void) {
    bj_law *law = make((bj_world_options){.version = BJ_BENCHMARK_WORLD,
                                          .seed = BJ_BENCHMARK_SEED,
                                          .split = "val",
                                          .scenes = BJ_BENCHMARK_SCENES});
    char digest[65], other[65];
    CHECK_OK(bj_law_digest(digest, law, &err), err);
    bj_law_free(law);
    FILE *file = fopen(law_path, "r+b");
    long end = 0;
    CHECK(file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0);
    /* The file ends with the stored digests. */
    CHECK(fseek(file, end - 7, SEEK_SET) == 0 && fputc(0, file) == 0 && fclose(file) == 0);
    law = NULL;
    CHECK_OK(bj_law_open(&law, law_path, &err), err);
    CHECK_OK(bj_law_digest(other, law, &err), err);
    CHECK(strcmp(digest, other));
    CHECK(bj_benchmark_check(law, "val", &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, other);
    CHECK_CONTAINS(err.message, digest);
    bj_law_free(law);
}

static void test_seeds(void) {
    CHECK(!bj_world_seed_reserved(0) && !bj_world_seed_reserved(7));
    CHECK(!bj_world_seed_reserved(20259) && !bj_world_seed_reserved(20261));
    CHECK(!bj_world_seed_reserved(999999));
    CHECK_CONTAINS(bj_world_seed_reserved(20260), "the standard benchmark");
    CHECK_CONTAINS(bj_world_seed_reserved(BJ_FRESH_DEV_SEED), "development");
    CHECK_CONTAINS(bj_world_seed_reserved(1000000), "blind");
    CHECK_CONTAINS(bj_world_seed_reserved(UINT64_MAX), "blind");
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(cache, sizeof cache, "%s/world.bjc", folder);
    snprintf(law_path, sizeof law_path, "%s.law.safetensors", cache);
    test_standard();
    test_others();
    test_digest();
    test_seeds();
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return test_report("benchmark");
}
