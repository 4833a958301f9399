/* test_scenes.c - batches from padded arrays, and stand-in traffic with the right statistics. */
#include <math.h>
#include <stdlib.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "core/check_batch.h"
#include "test.h"

static bj_arch small(void) {
    bj_arch a = bj_arch_paper();
    a.obs = 2, a.fut = 3, a.neighbors = 3, a.polylines = 2, a.points = 2;
    return a;
}

/* -------------------------------------------------------------------------------- padded arrays */

/* Slot values tell where they come from: 100 b + 10 slot + index. */
static void fill(bj_real *x, int B, int slots, int width) {
    for (int i = 0; i < B * slots * width; i++)
        x[i] = (bj_real)(100 * (i / width / slots) + 10 * (i / width % slots) + i % width);
}

static void test_padded(void) {
    enum { B = 4 };
    const bj_arch a = small();
    const int track = a.obs * 7, line = a.points * 6;
    bj_real focal[B * 14], neighbors[B * 3 * 14], polylines[B * 2 * 12], future[B * 6];
    const uint8_t nmask[B * 3] = {1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1};
    const uint8_t pmask[B * 2] = {0, 0, 1, 1, 0, 255, 1, 0};
    fill(focal, B, 1, track), fill(neighbors, B, 3, track);
    fill(polylines, B, 2, line), fill(future, B, 1, 6);
    neighbors[3 * track] = (bj_real)NAN; /* an absent slot may hold anything */
    bj_scenes *scenes;
    bj_error err;
    CHECK_OK(bj_scenes_from_padded(&scenes, &a, B, focal, neighbors, nmask, polylines, pmask,
                                   future, &err),
             err);
    const bj_batch *b = bj_scenes_batch(scenes);
    static const int n_start[] = {0, 3, 3, 4, 6}, p_start[] = {0, 0, 2, 3, 4};
    static const int n_row[] = {0, 10, 20, 210, 300, 320}, p_row[] = {100, 110, 210, 300};
    CHECK(b->B == B);
    CHECK(memcmp(b->neighbor_start, n_start, sizeof n_start) == 0);
    CHECK(memcmp(b->polyline_start, p_start, sizeof p_start) == 0);
    CHECK(memcmp(b->focal, focal, sizeof focal) == 0);
    CHECK(memcmp(b->future, future, sizeof future) == 0);
    CHECK(b->focal != focal && b->future != future); /* copies */
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < track; j++) CHECK(b->neighbors[i * track + j] == n_row[i] + j);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < line; j++) CHECK(b->polylines[i * line + j] == p_row[i] + j);
    CHECK_OK(bj_batch_check(b, &a, B, 1, &err), err);
    bj_scenes_free(scenes);

    /* no future, no token at all */
    const uint8_t none[B * 3] = {0};
    CHECK_OK(
        bj_scenes_from_padded(&scenes, &a, B, focal, neighbors, none, polylines, none, NULL, &err),
        err);
    b = bj_scenes_batch(scenes);
    CHECK(b->future == NULL && b->neighbor_start[B] == 0 && b->polyline_start[B] == 0);
    CHECK_OK(bj_batch_check(b, &a, B, 0, &err), err);
    CHECK(bj_batch_check(b, &a, B, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "future");
    bj_scenes_free(scenes);

    scenes = (bj_scenes *)&err;
    CHECK(bj_scenes_from_padded(&scenes, &a, 0, focal, neighbors, nmask, polylines, pmask, future,
                                &err) == BJ_EARG);
    CHECK(scenes == NULL);
    CHECK_CONTAINS(err.message, "0 scenes");
    bj_scenes_free(NULL);
}

/* ------------------------------------------------------------------------------------ synthetic */

static void check_track(const bj_real *row, int T, double dt, int complete) {
    for (int t = 0; t < T; t++, row += 7) {
        int present = 0;
        for (int i = 0; i < 6; i++) present |= row[i] != 0;
        if (!present && !complete) continue; /* the track has not appeared yet */
        complete = 1;
        const double speed = hypot(row[2], row[3]), heading = hypot(row[4], row[5]);
        CHECK_NEAR(heading, 1, 1e-5);
        CHECK(speed <= 15.01);
        CHECK_NEAR((double)row[2] * (double)row[5] - (double)row[3] * (double)row[4], 0, 1e-4);
        CHECK(row[6] == 0 || row[6] == 1);
        if (t + 1 < T)
            CHECK(hypot((double)(row[7] - row[0]), (double)(row[8] - row[1])) < 16 * dt + 1.5);
    }
    CHECK(complete); /* present at the last observed step */
}

static void test_magnitudes(const bj_arch *a, const bj_batch *b) {
    for (int i = 0; i < b->B; i++) {
        const bj_real *focal = b->focal + (size_t)(i * a->obs) * 7,
                      *last = focal + (a->obs - 1) * 7;
        check_track(focal, a->obs, a->dt, 1);
        for (int t = 0; t < a->obs; t++) CHECK(focal[t * 7 + 6] == 0); /* focal type 0 */
        /* the origin is where the focal track ends, looking along x */
        CHECK(last[0] == 0 && last[1] == 0 && last[4] == 1 && last[5] == 0);
        const bj_real *future = b->future + (size_t)(i * a->fut) * 2;
        for (int t = 0; t < a->fut; t++) {
            const double x = t ? (double)future[2 * t - 2] : 0,
                         y = t ? (double)future[2 * t - 1] : 0;
            CHECK(hypot((double)future[2 * t] - x, (double)future[2 * t + 1] - y) <
                  15 * a->dt + 1.5);
        }
    }
    for (int i = 0; i < b->neighbor_start[b->B]; i += 7)
        check_track(b->neighbors + (size_t)(i * a->obs) * 7, a->obs, a->dt, 0);
    for (int i = 0; i < b->polyline_start[b->B]; i += 13) {
        const bj_real *p = b->polylines + (size_t)(i * a->points) * 6;
        double length = 0;
        for (int q = 0; q < a->points; q++, p += 6) {
            CHECK_NEAR(hypot(p[2], p[3]), 1, 1e-5);
            CHECK((p[4] == 0 || p[4] == 1) && (p[5] == 0 || p[5] == 1));
            if (q + 1 < a->points) length += hypot((double)(p[6] - p[0]), (double)(p[7] - p[1]));
        }
        CHECK(length > 4.9 && length < 30.1);
    }
}

static void test_synthetic(void) {
    enum { B = 400 };
    const bj_arch a = bj_arch_paper();
    bj_scenes *scenes, *again, *other;
    bj_error err;
    CHECK_OK(bj_scenes_synthetic(&scenes, &a, B, 4, &err), err);
    CHECK_OK(bj_scenes_synthetic(&again, &a, B, 4, &err), err);
    CHECK_OK(bj_scenes_synthetic(&other, &a, B, 5, &err), err);
    const bj_batch *b = bj_scenes_batch(scenes), *c = bj_scenes_batch(again);
    CHECK_OK(bj_batch_check(b, &a, B, 1, &err), err);
    for (int i = 0; i < B; i++) CHECK(bj_scene_nonfinite(b, &a, i) == NULL);

    /* the same seed, the same scenes */
    const size_t n = (size_t)b->neighbor_start[B] * 350, p = (size_t)b->polyline_start[B] * 60;
    CHECK(memcmp(b->neighbor_start, c->neighbor_start, (B + 1) * sizeof(int)) == 0);
    CHECK(memcmp(b->polyline_start, c->polyline_start, (B + 1) * sizeof(int)) == 0);
    CHECK(memcmp(b->focal, c->focal, B * 350 * sizeof(bj_real)) == 0);
    CHECK(memcmp(b->future, c->future, B * 120 * sizeof(bj_real)) == 0);
    CHECK(memcmp(b->neighbors, c->neighbors, n * sizeof(bj_real)) == 0);
    CHECK(memcmp(b->polylines, c->polylines, p * sizeof(bj_real)) == 0);
    CHECK(memcmp(b->focal, bj_scenes_batch(other)->focal, B * 350 * sizeof(bj_real)) != 0);

    /* neighbors uniform on 0..16, polylines on 8..48: means within five standard errors */
    int least[2] = {99, 99}, most[2] = {0, 0};
    for (int i = 0; i < B; i++)
        for (int kind = 0; kind < 2; kind++) {
            const int *start = kind ? b->polyline_start : b->neighbor_start;
            const int rows = start[i + 1] - start[i];
            if (rows < least[kind]) least[kind] = rows;
            if (rows > most[kind]) most[kind] = rows;
        }
    CHECK(least[0] == 0 && most[0] == 16 && least[1] == 8 && most[1] == 48);
    CHECK_NEAR((double)b->neighbor_start[B] / B, 8, 5 * sqrt((17.0 * 17 - 1) / 12 / B));
    CHECK_NEAR((double)b->polyline_start[B] / B, 28, 5 * sqrt((41.0 * 41 - 1) / 12 / B));
    test_magnitudes(&a, b);
    bj_scenes_free(scenes), bj_scenes_free(again), bj_scenes_free(other);

    scenes = (bj_scenes *)&err;
    CHECK(bj_scenes_synthetic(&scenes, &a, 0, 1, &err) == BJ_EARG && scenes == NULL);
    CHECK_CONTAINS(err.message, "0 scenes");
    bj_arch bare = a; /* an architecture without a map */
    bare.polylines = 0;
    CHECK_OK(bj_scenes_synthetic(&scenes, &bare, 3, 1, &err), err);
    CHECK(bj_scenes_batch(scenes)->polyline_start[3] == 0);
    bj_scenes_free(scenes);
    bare = a, bare.points = 1;
    CHECK_OK(bj_scenes_synthetic(&scenes, &bare, 3, 1, &err), err);
    for (int i = 0; i < 3; i++)
        CHECK(bj_scene_nonfinite(bj_scenes_batch(scenes), &bare, i) == NULL);
    bj_scenes_free(scenes);
}

/* ------------------------------------------------------------------------------- finite numbers */

/* Any position, any array: found, named, and only in its own scene. */
static void test_nonfinite(void) {
    const bj_arch a = small();
    enum { B = 3 };
    bj_real focal[B * 14] = {0}, neighbors[4 * 14] = {0}, polylines[3 * 12] = {0},
                      future[B * 6] = {0};
    const int n_start[] = {0, 2, 2, 4}, p_start[] = {0, 0, 3, 3};
    const bj_batch b = {B, focal, neighbors, n_start, polylines, p_start, future};
    const struct {
        bj_real *x;
        int size, rows;
        const int *start;
        const char *name;
    } arrays[] = {{focal, 14, B, NULL, "focal"},
                  {neighbors, 14, 4, n_start, "neighbors"},
                  {polylines, 12, 3, p_start, "polylines"},
                  {future, 6, B, NULL, "future"}};
    const bj_real bad[] = {(bj_real)NAN, (bj_real)INFINITY, (bj_real)-INFINITY};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < arrays[i].rows * arrays[i].size; j++) {
            const int row = j / arrays[i].size;
            int scene = row;
            if (arrays[i].start)
                for (scene = 0; arrays[i].start[scene + 1] <= row;) scene++;
            arrays[i].x[j] = bad[j % 3];
            for (int s = 0; s < B; s++) {
                const char *found = bj_scene_nonfinite(&b, &a, s);
                CHECK_MSG(s == scene ? found && strcmp(found, arrays[i].name) == 0 : !found,
                          "%s[%d]: scene %d says %s", arrays[i].name, j, s, found ? found : "none");
            }
            arrays[i].x[j] = (bj_real)1e30; /* large is fine */
        }
    for (int s = 0; s < B; s++) CHECK(bj_scene_nonfinite(&b, &a, s) == NULL);
}

int main(void) {
    const long live = bj_alloc_live();
    test_padded();
    test_synthetic();
    test_nonfinite();
    CHECK(bj_alloc_live() == live);
    return test_report("scenes");
}
