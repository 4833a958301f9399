/* test_simulate.c - tests that a cache written directly has the same bytes as a cache made from
 * folders, for any number of workers and interruptions.
 *
 *   test_simulate write DIR SCENES    writes folders for tests/world/peer_av2.py
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "core/file.h"
#include "support/test.h"

enum { SCENES = 75 }; /* two towns and a part of a third */

static char folder[] = "/tmp/test_simulate.XXXXXX";

typedef struct content {
    char *data;
    size_t size;
} content;

static content read_file(const char *name) {
    char path[256];
    content c = {0};
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(bj_file_read(&c.data, &c.size, path, 1 << 30, &err), err);
    return c;
}

static void check_same(const char *a, const char *b) {
    content x = read_file(a), y = read_file(b);
    CHECK_MSG(x.size == y.size && x.data && y.data && !memcmp(x.data, y.data, x.size),
              "%s and %s differ", a, b);
    bj_free(x.data);
    bj_free(y.data);
}

static bj_status to_cache(const char *name, const bj_world_options *options,
                          bj_world_report *report, bj_error *err) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return bj_world_to_cache(report, path, options, err);
}

/* --------------------------------------------------------------------------- cache and folders */

static void test_same_bytes(void) {
    bj_error err = {0};
    bj_world_report report, again;
    char data[256], path[256];
    bj_world_options options = {.seed = 3, .scenes = SCENES, .jobs = 1};
    CHECK_OK(to_cache("one.bjc", &options, &report, &err), err);
    CHECK(report.scenes == SCENES && report.towns == 3 && report.modes > SCENES);
    CHECK(report.bytes > 0 && report.law_bytes > 0 && strlen(report.digest) == 64);
    for (int jobs = 2; jobs <= 3; jobs++) {
        options.jobs = jobs;
        options.force = 1;
        CHECK_OK(to_cache("jobs.bjc", &options, &again, &err), err);
        check_same("one.bjc", "jobs.bjc");
        check_same("one.bjc.law.safetensors", "jobs.bjc.law.safetensors");
    }
    snprintf(data, sizeof data, "%s/train", folder);
    CHECK_OK(bj_world_to_folders(&again, data, &options, &err), err);
    CHECK(again.scenes == SCENES && again.modes == report.modes);
    check_same("one.bjc.law.safetensors", "train/law.safetensors");
    const char *const roots[] = {folder};
    bj_prep_report prepared;
    const bj_prep_options prep = {.roots = roots, .root_count = 1, .split = "train", .jobs = 1};
    snprintf(path, sizeof path, "%s/prepared.bjc", folder);
    CHECK_OK(bj_prep(&prepared, path, &prep, &err), err);
    CHECK(prepared.accepted == SCENES && prepared.rejected == 0 && prepared.maps == 3);
    check_same("one.bjc", "prepared.bjc");
}

/* Tests that the scenes of a smaller run are the first scenes of a larger run. */
static void test_prefix_of_many(void) {
    bj_error err = {0};
    bj_world_report report;
    bj_cache *few = NULL, *many = NULL;
    char path[256];
    const bj_world_options options = {.seed = 3, .scenes = 40, .jobs = 2};
    CHECK_OK(to_cache("few.bjc", &options, &report, &err), err);
    snprintf(path, sizeof path, "%s/few.bjc", folder);
    CHECK_OK(bj_cache_open(&few, path, 0, &err), err);
    snprintf(path, sizeof path, "%s/one.bjc", folder);
    CHECK_OK(bj_cache_open(&many, path, 0, &err), err);
    CHECK(bj_cache_count(few) == 40 && bj_cache_count(many) == SCENES);
    for (int64_t i = 0; i < 40; i++) {
        const bj_scene_info a = bj_cache_info(few, i), b = bj_cache_info(many, i);
        CHECK(!strcmp(a.scenario_id, b.scenario_id) && a.origin[0] == b.origin[0]);
        CHECK(a.has_future && a.neighbors == b.neighbors && a.polylines == b.polylines);
        CHECK(!memcmp(bj_cache_floats(few, i).future, bj_cache_floats(many, i).future,
                      120 * sizeof(float)));
    }
    bj_cache_free(few);
    bj_cache_free(many);
}

/* Tests that the future in the cache is draw 0 and is possible under the law. */
static void test_law_and_cache(void) {
    bj_error err = {0};
    bj_law *law = NULL;
    bj_cache *cache = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s/one.bjc", folder);
    CHECK_OK(bj_cache_open(&cache, path, 0, &err), err);
    snprintf(path, sizeof path, "%s/one.bjc.law.safetensors", folder);
    CHECK_OK(bj_law_open(&law, path, &err), err);
    CHECK(bj_law_count(law) == SCENES);
    for (int64_t i = 0; i < SCENES; i++) {
        const bj_scene_info info = bj_cache_info(cache, i);
        const bj_law_scene s = bj_law_at(law, i);
        double future[120];
        int mode = -1;
        CHECK(!strcmp(info.scenario_id, s.scenario_id));
        CHECK(info.origin[0] == s.origin[0] && info.origin[1] == s.origin[1]);
        CHECK(info.heading == s.heading);
        CHECK_OK(bj_world_redraw(future, &mode, 0, 3, "train", i, 0, 1, &err), err);
        CHECK(mode == s.realized);
        for (int k = 0; k < 120; k++) {
            double variance = s.jitter * s.jitter;
            for (int f = 0; f < s.factors; f++)
                variance += pow((double)s.factor[(mode * s.factors + f) * 120 + k], 2);
            CHECK_NEAR((double)bj_cache_floats(cache, i).future[k], future[k], 2e-5);
            CHECK_NEAR(future[k], (double)s.means[mode * 120 + k], 6 * sqrt(variance) + 1e-4);
        }
    }
    bj_law_free(law);
    bj_cache_free(cache);
}

/* ------------------------------------------------------------------------------- interruptions */

static int stop_at(void *context, int64_t done, int64_t total) {
    (void)total;
    return done >= *(int64_t *)context;
}

static void test_resume(void) {
    bj_error err = {0};
    bj_world_report report;
    int64_t at = 32;
    bj_world_options options = {
        .seed = 3, .scenes = SCENES, .jobs = 1, .progress = stop_at, .context = &at};
    CHECK_OK(to_cache("resumed.bjc", &options, &report, &err), err);
    CHECK(report.interrupted && report.scenes == 32);
    char path[256];
    snprintf(path, sizeof path, "%s/resumed.bjc.law.safetensors", folder);
    CHECK(access(path, F_OK) != 0);
    options.progress = NULL;
    options.seed = 4;
    CHECK(to_cache("resumed.bjc", &options, &report, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the seed, the world version or the source is different");
    options.seed = 3;
    options.scenes = 20;
    CHECK(to_cache("resumed.bjc", &options, &report, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "expected at most 20");
    options.scenes = SCENES;
    CHECK_OK(to_cache("resumed.bjc", &options, &report, &err), err);
    CHECK(report.resumed == 32 && report.scenes == SCENES);
    check_same("one.bjc", "resumed.bjc");
    check_same("one.bjc.law.safetensors", "resumed.bjc.law.safetensors");
}

static void test_refusals(void) {
    bj_error err = {0};
    bj_world_report report;
    double future[120];
    bj_world_options options = {.seed = 3, .scenes = 5, .jobs = 1};
    CHECK(to_cache("one.bjc", &options, &report, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "--force");
    options.split = "../x";
    CHECK(to_cache("new.bjc", &options, &report, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "split");
    options.split = "";
    CHECK(to_cache("new.bjc", &options, &report, &err) == BJ_EARG);
    options.split = NULL;
    options.scenes = 0;
    CHECK(to_cache("new.bjc", &options, &report, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "scenes");
    options.scenes = 5;
    CHECK(to_cache("missing/new.bjc", &options, &report, &err) == BJ_EIO);
    CHECK(bj_world_to_folders(&report, "/proc/no/such", &options, &err) == BJ_EIO);
    CHECK(bj_world_redraw(future, NULL, 0, 1, "train", -1, 0, 1, &err) == BJ_EARG);
}

static void test_memory(void) {
    bj_error err = {0};
    bj_world_report report;
    const bj_world_options options = {.seed = 3, .scenes = 2, .jobs = 1, .force = 1, .restart = 1};
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    int n = 0;
    for (; status != BJ_OK && n < 4000; n += n < 40 ? 1 : 17) {
        bj_alloc_fail_after(n);
        status = to_cache("memory.bjc", &options, &report, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%d: %s", n, err.message);
        CHECK(bj_alloc_live() == live);
    }
    CHECK(status == BJ_OK && n > 20);
}

static int remove_entry(const char *path, const struct stat *info, int flag, struct FTW *walk) {
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "write")) {
        bj_error err = {0};
        bj_world_report report;
        const bj_world_options options = {.seed = 8, .scenes = atoll(argv[3]), .force = 1};
        if (bj_world_to_folders(&report, argv[2], &options, &err) == BJ_OK) return 0;
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (!mkdtemp(folder)) return 1;
    test_same_bytes();
    test_prefix_of_many();
    test_law_and_cache();
    test_resume();
    test_refusals();
    test_memory();
    CHECK(nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
    return test_report("world.simulate");
}
