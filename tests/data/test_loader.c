/* test_loader.c - tests the batches of a cache: the scenes, their order and their values.
 *
 * The expected orders were computed by a separate Python implementation of docs/DATA.md.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <unistd.h>

#include "loader_case.h"
#include "core/alloc.h"
#include "core/real.h"
#include "test.h"

enum { SCENES = 150 };

static char folder[] = "/tmp/test_loader.XXXXXX";
static char path[64];

static bj_cache *open_cache(int blind) {
    bj_cache *cache = NULL;
    bj_error err;
    CHECK_OK(bj_cache_open(&cache, path, blind, &err), err);
    return cache;
}

static bj_loader *create(const bj_cache *cache, bj_loader_options options) {
    bj_loader *loader = NULL;
    bj_error err;
    CHECK_OK(bj_loader_create(&loader, cache, &options, &err), err);
    return loader;
}

/* Reads the order of an epoch batch by batch, and returns the number of scenes. */
static int order_of(int64_t *order, bj_loader *loader, int batch, int64_t epoch) {
    int n = 0;
    bj_error err;
    for (int64_t step = 0; step < bj_loader_steps(loader); step++) {
        const bj_batch *b = NULL;
        const int64_t *numbers = NULL;
        CHECK_OK(bj_loader_batch(&b, &numbers, loader, epoch, step, &err), err);
        const int last = step + 1 == bj_loader_steps(loader);
        CHECK(last ? b->B >= 1 && b->B <= batch : b->B == batch);
        memcpy(order + n, numbers, (size_t)b->B * sizeof *order);
        n += b->B;
    }
    CHECK(n == bj_loader_scenes(loader));
    return n;
}

/* ---------------------------------------------------------------------------------------- parts */

static void test_parts(void) {
    bj_cache *cache = open_cache(0);
    int dev_scenes = 0;
    for (int part = BJ_PART_ALL; part <= BJ_PART_DEV; part++)
        for (int needs_future = 0; needs_future < 2; needs_future++)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                const bj_loader_options options = {
                    .part = part, .batch = 7, .shuffle = shuffle, .needs_future = needs_future};
                bj_loader *loader = create(cache, options);
                int64_t order[SCENES];
                int seen[SCENES] = {0};
                const int n = order_of(order, loader, 7, 1);
                for (int i = 0; i < n; i++) seen[order[i]]++;
                for (int s = 0; s < SCENES; s++) {
                    char id[LOADER_CASE_ID];
                    loader_case_id(id, s);
                    const int dev = bj_is_dev(id);
                    const int wanted = (!needs_future || loader_case_has_future(s)) &&
                                       (part == BJ_PART_ALL || dev == (part == BJ_PART_DEV));
                    CHECK_MSG(seen[s] == wanted, "part %d: scene %d came %d times", part, s,
                              seen[s]);
                    dev_scenes += part == BJ_PART_DEV && seen[s];
                }
                for (int i = 1; i < n && !shuffle; i++) CHECK(order[i] > order[i - 1]);
                bj_loader_free(loader);
            }
    CHECK_MSG(dev_scenes >= 8, "the cache has too few development scenes for this test: %d",
              dev_scenes);
    bj_cache_free(cache);
}

/* ---------------------------------------------------------------------------------------- order */

/* Creates a cache of n scenes next to the large one. */
static bj_cache *small_cache(char file[80], int n) {
    bj_error err;
    bj_cache *cache = NULL;
    snprintf(file, 80, "%s/small", folder);
    CHECK_OK(loader_case_write(file, n, &err), err);
    CHECK_OK(bj_cache_open(&cache, file, 0, &err), err);
    return cache;
}

static void test_known_orders(void) {
    enum { N = 12 };
    static const struct {
        uint64_t seed;
        int64_t epoch;
        int64_t order[N];
    } known[] = {
        {0, 0, {7, 10, 1, 4, 0, 2, 8, 6, 5, 9, 3, 11}},
        {3, 2, {10, 0, 1, 7, 3, 2, 4, 9, 5, 11, 8, 6}},
        {UINT64_MAX, 1000000007, {4, 11, 1, 2, 6, 9, 10, 0, 5, 7, 3, 8}},
    };
    char file[80];
    bj_cache *cache = small_cache(file, N);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        for (int batch = 1; batch <= N + 1; batch++) {
            const bj_loader_options options = {.batch = batch, .shuffle = 1, .seed = known[k].seed};
            bj_loader *loader = create(cache, options);
            int64_t order[N];
            order_of(order, loader, batch, known[k].epoch);
            CHECK_MSG(!memcmp(order, known[k].order, sizeof order), "case %zu, batch %d", k, batch);
            bj_loader_free(loader);
        }
    bj_cache_free(cache);
    unlink(file);
}

/* Tests that all orders of four scenes are about equally likely. */
static void test_uniform(void) {
    enum { N = 4, EPOCHS = 6000 };
    char file[80];
    bj_cache *cache = small_cache(file, N);
    bj_loader *loader = create(cache, (bj_loader_options){.batch = N, .shuffle = 1, .seed = 5});
    int count[N * N * N * N] = {0}, orders = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t order[N];
        int code = 0;
        order_of(order, loader, N, epoch);
        for (int i = 0; i < N; i++) code = code * N + (int)order[i];
        count[code]++;
    }
    for (int c = 0; c < N * N * N * N; c++) {
        if (!count[c]) continue;
        orders++;
        CHECK_NEAR(count[c], EPOCHS / 24.0, 5 * sqrt(EPOCHS / 24.0));
    }
    CHECK_MSG(orders == 24, "%d orders of four scenes, expected 24", orders);
    bj_loader_free(loader);
    bj_cache_free(cache);
    unlink(file);
}

static int same_order(bj_loader *a, bj_loader *b, int64_t epoch_a, int64_t epoch_b) {
    int64_t first[SCENES], second[SCENES];
    const int n = order_of(first, a, 16, epoch_a), m = order_of(second, b, 16, epoch_b);
    return n == m && !memcmp(first, second, (size_t)n * sizeof *first);
}

static void test_seeds_and_epochs(void) {
    bj_cache *cache = open_cache(0);
    bj_loader_options options = {.part = BJ_PART_FIT, .batch = 16, .shuffle = 1, .seed = 1};
    bj_loader *a = create(cache, options), *b = create(cache, options);
    bj_loader *resumed = create(cache, options);
    options.seed = 2;
    bj_loader *other = create(cache, options);
    CHECK(same_order(a, b, 0, 0) && same_order(a, b, 7, 7) && same_order(a, b, 0, 0));
    CHECK(!same_order(a, b, 0, 1) && !same_order(a, b, 1, 2));
    CHECK(!same_order(a, other, 0, 0) && !same_order(a, other, 1, 1));

    /* Tests that a run that starts in the middle of an epoch sees the same batches. */
    bj_error err;
    const bj_batch *x, *y;
    const int64_t *in_x, *in_y;
    for (int64_t step = 0; step < 6; step++)
        CHECK_OK(bj_loader_batch(&x, &in_x, a, 3, step, &err), err);
    CHECK_OK(bj_loader_batch(&y, &in_y, resumed, 3, 5, &err), err);
    CHECK(x->B == y->B && !memcmp(in_x, in_y, (size_t)x->B * sizeof *in_x));
    bj_loader_free(a), bj_loader_free(b), bj_loader_free(other), bj_loader_free(resumed);
    bj_cache_free(cache);
}

/* -------------------------------------------------------------------------------------- content */

static void check_values(const bj_real *x, int count, int64_t scene, int array) {
    for (int i = 0; i < count; i++)
        if (x[i] != (bj_real)loader_case_value(scene, array, i)) {
            CHECK_MSG(0, "scene %lld, array %d, [%d] is %g", (long long)scene, array, i,
                      (double)x[i]);
            return;
        }
    CHECK(1);
}

static void check_scene(const bj_cache *cache, const bj_scene *scene, int64_t s, int blind) {
    CHECK(scene->neighbor_count == loader_case_neighbors(s));
    CHECK(scene->polyline_count == loader_case_polylines(s));
    CHECK((scene->future != NULL) == (!blind && loader_case_has_future(s)));
    check_values(scene->focal, BJ_AV2_TRACK, s, 0);
    for (int n = 0; n < scene->neighbor_count; n++)
        check_values(scene->neighbors + n * BJ_AV2_TRACK, BJ_AV2_TRACK, s, 1 + n);
    for (int p = 0; p < scene->polyline_count; p++)
        check_values(scene->polylines + p * BJ_AV2_LINE, BJ_AV2_LINE, s, 20 + p);
    if (scene->future) check_values(scene->future, BJ_AV2_FUTURE, s, 70);
#if !BJ_REAL_IS_DOUBLE /* nothing was copied */
    const bj_scene_floats at = bj_cache_floats(cache, s);
    CHECK(scene->focal == at.focal && scene->future == at.future);
    CHECK(!scene->neighbor_count || scene->neighbors == at.neighbors);
    CHECK(!scene->polyline_count || scene->polylines == at.polylines);
#else
    (void)cache;
#endif
}

static void test_content(void) {
    for (int blind = 0; blind < 2; blind++) {
        bj_cache *cache = open_cache(blind);
        bj_loader *loader =
            create(cache, (bj_loader_options){.batch = 32, .shuffle = 1, .seed = 9});
        const long allocations = bj_alloc_count();
        for (int64_t epoch = 0; epoch < 2; epoch++)
            for (int64_t step = 0; step < bj_loader_steps(loader); step++) {
                const bj_batch *b = NULL;
                const int64_t *numbers = NULL;
                bj_error err;
                CHECK_OK(bj_loader_batch(&b, &numbers, loader, epoch, step, &err), err);
                for (int i = 0; i < b->B; i++) check_scene(cache, &b->scenes[i], numbers[i], blind);
            }
        CHECK(bj_alloc_count() == allocations);
        bj_loader_free(loader);
        bj_cache_free(cache);
    }
}

/* --------------------------------------------------------------------------------------- errors */

static void test_errors(void) {
    bj_cache *cache = open_cache(0), *hidden = open_cache(1);
    bj_loader *loader = (bj_loader *)&cache;
    bj_error err;
    bj_loader_options options = {.batch = 0};
    CHECK(bj_loader_create(&loader, cache, &options, &err) == BJ_EARG && !loader);
    CHECK_CONTAINS(err.message, "the batch has 0 scenes, expected at least 1");
    options = (bj_loader_options){.batch = 1, .part = (bj_part)3};
    CHECK(bj_loader_create(&loader, cache, &options, &err) == BJ_EARG && !loader);
    CHECK_CONTAINS(err.message, "part is 3");
    options = (bj_loader_options){.batch = 1, .part = BJ_PART_DEV, .needs_future = 1};
    CHECK(bj_loader_create(&loader, hidden, &options, NULL) == BJ_EARG && !loader);
    CHECK(bj_loader_create(&loader, hidden, &options, &err) == BJ_EARG && !loader);
    CHECK_CONTAINS(
        err.message,
        "none of the 150 scenes in the cache belongs to part 'dev' and has a known future");

    options = (bj_loader_options){.batch = 16};
    loader = create(cache, options);
    CHECK(bj_loader_scenes(loader) == SCENES && bj_loader_steps(loader) == 10);
    const bj_batch *b;
    CHECK(bj_loader_batch(&b, NULL, loader, 0, 10, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "step is 10, expected 0 to 9");
    CHECK(bj_loader_batch(&b, NULL, loader, 0, -1, &err) == BJ_EARG);
    CHECK(bj_loader_batch(&b, NULL, loader, -1, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "epoch is -1");
    CHECK_OK(bj_loader_batch(&b, NULL, loader, 0, 9, &err), err);
    CHECK(b->B == SCENES - 9 * 16);
    bj_loader_free(loader);
    bj_loader_free(NULL);

    /* A failed allocation must not leak memory. */
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    for (int n = 0; n < 20 && status == BJ_ENOMEM; n++) {
        bj_alloc_fail_after(n);
        status = bj_loader_create(&loader, cache, &options, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || (status == BJ_ENOMEM && !loader && bj_alloc_live() == live));
    }
    CHECK(status == BJ_OK);
    bj_loader_free(loader);
    CHECK(bj_alloc_live() == live);
    bj_cache_free(cache), bj_cache_free(hidden);
}

int main(void) {
    bj_error err;
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    const long live = bj_alloc_live();
    snprintf(path, sizeof path, "%s/cache", folder);
    CHECK_OK(loader_case_write(path, SCENES, &err), err);
    if (!test_failed) {
        test_parts();
        test_known_orders();
        test_uniform();
        test_seeds_and_epochs();
        test_content();
        test_errors();
    }
    CHECK(bj_alloc_live() == live);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return test_report("loader");
}
