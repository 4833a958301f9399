/* test_fresh.c - tests which specifications of fresh scenes are valid, and what determines their
 * digest and their scenes. */
#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"
#include "world/scene.h"

static void test_accepted(void) {
    const struct {
        const char *text;
        bj_fresh_spec spec;
    } cases[] = {{"world:7", {BJ_WORLD_VERSION, 7, 0}},
                 {"world:7:1", {BJ_WORLD_VERSION, 7, 1}},
                 {"world1:0:4294967296", {1, 0, (int64_t)1 << 32}},
                 {"world2:999999:64", {2, 999999, 64}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_fresh_spec spec = {0};
        bj_error err = {0};
        CHECK(bj_fresh_is_spec(cases[i].text));
        CHECK_OK(bj_fresh_parse(&spec, cases[i].text, &err), err);
        CHECK_MSG(spec.version == cases[i].spec.version && spec.seed == cases[i].spec.seed &&
                      spec.scenes == cases[i].spec.scenes,
                  "%s", cases[i].text);
    }
}

static void test_rejected(void) {
    static const char *const files[] = {"",          "world", "world.bjc", "worlds:7",
                                        "world12:7", "a:7",   "./world:7", "World:7"};
    static const struct {
        const char *text, *part;
    } cases[] = {{"world:", "seed"},           {"world:x", "seed"},
                 {"world:-1", "seed"},         {"world: 7", "seed"},
                 {"world:7x", "seed"},         {"world:+7", "seed"},
                 {"world:7:", "scenes"},       {"world:7:0", "scenes"},
                 {"world:7:1e6", "scenes"},    {"world:7:-5", "scenes"},
                 {"world:7:64:", "scenes"},    {"world:7:4294967297", "scenes"},
                 {"world0:7", "version is 0"}, {"world3:7", "version is 3"},
                 {"world:900001", "reserved"}, {"world:18446744073709551616", "seed"},
                 {"world:20260", "reserved"},  {"world:1000000", "reserved"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        CHECK_MSG(!bj_fresh_is_spec(files[i]), "%s", files[i]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_fresh_spec spec = {0};
        bj_error err = {0};
        CHECK_MSG(bj_fresh_is_spec(cases[i].text), "%s", cases[i].text);
        CHECK_MSG(bj_fresh_parse(&spec, cases[i].text, &err) == BJ_EARG, "%s", cases[i].text);
        CHECK_CONTAINS(err.message, cases[i].text);
        CHECK_CONTAINS(err.message, cases[i].part);
    }
}

/* Tests that every part of a specification changes the digest. */
static void test_digest(void) {
    const bj_fresh_spec specs[] = {{1, 7, 64}, {2, 7, 64}, {1, 8, 64}, {1, 7, 65}, {1, 7, 0}};
    enum { COUNT = sizeof specs / sizeof *specs };
    char hex[COUNT][65], again[65];
    bj_error err = {0};
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(bj_fresh_digest(hex[i], &specs[i], &err), err);
        CHECK_OK(bj_fresh_digest(again, &specs[i], &err), err);
        CHECK(strlen(again) == 64 && !strcmp(hex[i], again));
        for (int k = 0; k < i; k++) CHECK(strcmp(hex[i], hex[k]) != 0);
    }
}

/* Tests which scenarios count as seen by a run: the scenes of all windows that the run reads, and
 * the development scenes. */
static void test_has(void) {
    const bj_fresh_spec some = {2, 7, 3000}, all = {2, 7, 0}, older = {1, 7, 0};
    const struct {
        uint64_t seed;
        const char *split;
        int64_t index;
        int some, all;
    } cases[] = {
        {7, "train", 0, 1, 1},      {7, "train", 2999, 1, 1},    {7, "train", 4095, 1, 1},
        {7, "train", 4096, 0, 1},   {8, "train", 0, 0, 0},       {7, "val", 0, 0, 0},
        {900001, "dev", 999, 1, 1}, {900001, "dev", 1000, 0, 0}, {900001, "train", 5, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[64];
        bj_world_scene_id(id, 2, cases[i].seed, cases[i].split, cases[i].index);
        CHECK_MSG(bj_fresh_has(&some, id) == cases[i].some &&
                      bj_fresh_has(&all, id) == cases[i].all && !bj_fresh_has(&older, id),
                  "seed %d, %s %d", (int)cases[i].seed, cases[i].split, (int)cases[i].index);
    }
    CHECK(!bj_fresh_has(&all, "") && !bj_fresh_has(&all, "0000") && !bj_fresh_has(&all, "zz"));
}

/* Tests the two sources: their names and sizes, and that development scenes use the reserved
 * seed. */
static void test_sources(void) {
    const bj_fresh_spec spec = {2, 7, 640};
    const long live = bj_alloc_live();
    bj_fresh *fresh = NULL;
    bj_error err = {0};
    CHECK_OK(bj_fresh_create(&fresh, &spec, 2, &err), err);
    const bj_scene_source *fit = bj_fresh_fit(fresh), *dev = bj_fresh_dev(fresh);
    CHECK(fit->scenes == 640 && dev->scenes == BJ_FRESH_DEV_SCENES && fit->arch.obs == 50);
    CHECK(!strcmp(fit->name, "world:2:7:train") && !strcmp(dev->name, "world:2:900001:dev"));
    CHECK(strlen(fit->digest) == 64);
    const bj_scene *scenes;
    const int64_t *numbers;
    char id[64], expected[64];
    CHECK_OK(dev->read(&scenes, &numbers, dev->context, BJ_FRESH_DEV_SCENES - 2, 2, &err), err);
    CHECK(numbers[0] == BJ_FRESH_DEV_SCENES - 2 && numbers[1] == BJ_FRESH_DEV_SCENES - 1);
    dev->id(id, dev->context, numbers[1]);
    bj_world_scene_id(expected, 2, BJ_FRESH_DEV_SEED, "dev", BJ_FRESH_DEV_SCENES - 1);
    CHECK(!strcmp(id, expected));
    bj_fresh_free(fresh);
    bj_fresh_free(NULL);
    CHECK(bj_alloc_live() == live);
}

int main(void) {
    test_accepted();
    test_rejected();
    test_digest();
    test_has();
    test_sources();
    return test_report("fresh");
}
