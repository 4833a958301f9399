/* test_stream.c - tests that a stream returns every scene of a cache once, in an order that depends
 * neither on the number of threads nor on earlier reads. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"

enum { TOWNS = 2, W = TOWNS * BJ_FRESH_TOWN_SCENES };

static bj_world_stream *open_stream(int version, int towns, int ordered, int threads) {
    const bj_world_stream_options options = {
        .version = version, .seed = 3, .towns = towns, .ordered = ordered, .threads = threads};
    bj_world_stream *stream = NULL;
    bj_error err = {0};
    CHECK_OK(bj_world_stream_create(&stream, &options, &err), err);
    return stream;
}

static int same(const bj_real *a, const float *b, int64_t count) {
    int equal = 1;
    for (int64_t i = 0; i < count; i++) { /* bitwise, because -0 is not 0 */
        const bj_real expected = (bj_real)b[i];
        equal &= !memcmp(&a[i], &expected, sizeof expected);
    }
    return equal;
}

static void check_scene(const bj_scene *scene, const bj_cache *cache, int64_t number) {
    const bj_arch a = bj_world_stream_arch(), b = bj_cache_arch(cache);
    const bj_scene_info info = bj_cache_info(cache, number);
    const bj_scene_floats at = bj_cache_floats(cache, number);
    CHECK(a.obs == b.obs && a.fut == b.fut && a.neighbors == b.neighbors);
    CHECK(a.polylines == b.polylines && a.points == b.points);
    CHECK(!memcmp(&a.dt, &b.dt, sizeof a.dt));
    CHECK(scene->neighbor_count == info.neighbors && scene->polyline_count == info.polylines);
    const int64_t track = (int64_t)a.obs * BJ_FOCAL_FEATURES;
    const int64_t line = (int64_t)a.points * BJ_POLYLINE_FEATURES;
    CHECK_MSG(same(scene->focal, at.focal, track) &&
                  same(scene->neighbors, at.neighbors, info.neighbors * track) &&
                  same(scene->polylines, at.polylines, info.polylines * line) &&
                  same(scene->future, at.future, 2 * (int64_t)a.fut),
              "scene %lld differs from the cache", (long long)number);
}

/* Tests that three windows contain every scene of the cache once, bit for bit and with its id. */
static void test_cache(int version) {
    enum { SCENES = 3 * W, BATCH = 24 }; /* batches that cross a window boundary */
    char folder[] = "/tmp/test_stream.XXXXXX", path[64], law[96];
    bj_error err = {0};
    bj_world_report report;
    bj_cache *cache = NULL;
    const bj_world_options options = {.version = version, .seed = 3, .scenes = SCENES, .jobs = 2};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/a.bjc", folder);
    snprintf(law, sizeof law, "%s.law.safetensors", path);
    CHECK_OK(bj_world_to_cache(&report, path, &options, &err), err);
    CHECK_OK(bj_cache_open(&cache, path, 0, &err), err);
    for (int ordered = 0; ordered < 2; ordered++) {
        bj_world_stream *stream = open_stream(version, TOWNS, ordered, 2);
        int seen[SCENES] = {0}, moved = 0;
        for (int64_t first = 0; first < SCENES; first += BATCH) {
            const bj_scene *scenes;
            const int64_t *numbers;
            CHECK_OK(bj_world_stream_read(&scenes, &numbers, stream, first, BATCH, &err), err);
            for (int i = 0; i < BATCH; i++) {
                char id[64];
                CHECK(numbers[i] / W == (first + i) / W);
                seen[numbers[i]]++;
                moved += numbers[i] != first + i;
                check_scene(&scenes[i], cache, numbers[i]);
                bj_world_stream_id(id, stream, numbers[i]);
                CHECK(!strcmp(id, bj_cache_info(cache, numbers[i]).scenario_id));
            }
        }
        for (int i = 0; i < SCENES; i++) CHECK(seen[i] == 1);
        CHECK(ordered ? moved == 0 : moved > SCENES * 9 / 10);
        CHECK(bj_world_stream_seconds(stream) > 0);
        bj_world_stream_free(stream);
    }
    bj_cache_free(cache);
    unlink(path);
    unlink(law);
    rmdir(folder);
}

/* Tests that a batch in the middle of the stream contains the same scenes after any earlier reads,
 * with 1 to 3 threads. */
static void test_order(void) {
    enum { BATCH = 16 };
    const int64_t first = 2 * W - 5;
    float focal[BATCH] = {0};
    int64_t expected[BATCH] = {0};
    for (int threads = 1; threads <= 3; threads++) {
        bj_world_stream *stream = open_stream(0, TOWNS, 0, threads);
        const bj_scene *scenes;
        const int64_t *numbers;
        bj_error err = {0};
        if (threads > 1) /* read other windows that use the same slots first */
            CHECK_OK(
                bj_world_stream_read(&scenes, &numbers, stream, (threads + 1) * W, BATCH, &err),
                err);
        CHECK_OK(bj_world_stream_read(&scenes, &numbers, stream, first, BATCH, &err), err);
        for (int i = 0; i < BATCH; i++) {
            if (threads == 1) expected[i] = numbers[i], focal[i] = (float)scenes[i].focal[0];
            CHECK(numbers[i] == expected[i] &&
                  !memcmp(&focal[i], &(float){(float)scenes[i].focal[0]}, sizeof *focal));
        }
        bj_world_stream_free(stream);
    }
}

/* Tests that consecutive batches of the default window come from many towns. */
static void test_mixing(void) {
    enum { BATCH = 64 };
    bj_world_stream *stream = open_stream(0, 0, 0, 2);
    const bj_scene *scenes;
    const int64_t *numbers;
    bj_error err = {0};
    for (int64_t first = 0; first < 4 * BATCH; first += BATCH) {
        int towns[BJ_FRESH_WINDOW_TOWNS] = {0}, distinct = 0, most = 0;
        CHECK_OK(bj_world_stream_read(&scenes, &numbers, stream, first, BATCH, &err), err);
        for (int i = 0; i < BATCH; i++) {
            int *count = &towns[numbers[i] / BJ_FRESH_TOWN_SCENES];
            distinct += ++*count == 1;
            if (*count > most) most = *count;
        }
        CHECK_MSG(distinct >= 30 && most <= 8, "%d towns, at most %d scenes of one", distinct,
                  most);
    }
    bj_world_stream_free(stream);
}

static void test_errors(void) {
    bj_error err = {0};
    bj_world_stream *stream = NULL;
    const bj_scene *scenes;
    const bj_world_stream_options wrong[] = {
        {.split = "a/b"}, {.towns = -1}, {.towns = 1 << 20}, {.version = 9}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(bj_world_stream_create(&stream, &wrong[i], &err) == BJ_EARG && !stream);
    stream = open_stream(0, 1, 1, 1);
    const struct {
        int64_t first;
        int count;
    } reads[] = {{-1, 1}, {0, 0}, {0, 33}, {(int64_t)1 << 32, 1}, {((int64_t)1 << 32) - 1, 2}};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        CHECK(bj_world_stream_read(&scenes, NULL, stream, reads[i].first, reads[i].count, &err) ==
              BJ_EARG);
    CHECK_OK(bj_world_stream_read(&scenes, NULL, stream, ((int64_t)1 << 32) - 1, 1, &err), err);
    bj_world_stream_free(stream);
    bj_world_stream_free(NULL);
}

/* Tests that every failed allocation is reported and leaks nothing. */
static void test_memory(void) {
    const bj_world_stream_options options = {.seed = 3, .towns = 1, .threads = 1};
    const long live = bj_alloc_live();
    long n = 0;
    for (bj_status status = BJ_ENOMEM; status != BJ_OK && n < 200; n++) {
        bj_world_stream *stream = NULL;
        const bj_scene *scenes;
        bj_error err = {0};
        bj_alloc_fail_after(n);
        status = bj_world_stream_create(&stream, &options, &err);
        if (status == BJ_OK) status = bj_world_stream_read(&scenes, NULL, stream, 0, 1, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        bj_world_stream_free(stream);
        CHECK(bj_alloc_live() == live);
    }
    CHECK(n > 10 && n < 200);
}

int main(void) {
    test_cache(1);
    test_cache(2);
    test_order();
    test_mixing();
    test_errors();
    test_memory();
    return test_report("stream");
}
