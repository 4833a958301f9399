/* test_scenes.c - tests batches from padded arrays, and the statistics of synthetic scenes. */
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

/* Fills slots with values that encode their position: 100 b + 10 slot + index. */
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
    neighbors[3 * track] = (bj_real)NAN; /* an empty slot may contain anything */
    bj_scenes *scenes;
    bj_error err;
    CHECK_OK(bj_scenes_from_padded(&scenes, &a, B, focal, neighbors, nmask, polylines, pmask,
                                   future, &err),
             err);
    const bj_batch *b = bj_scenes_batch(scenes);
    static const int n_count[] = {3, 0, 1, 2}, p_count[] = {0, 2, 1, 1};
    static const int n_row[] = {0, 10, 20, 210, 300, 320}, p_row[] = {100, 110, 210, 300};
    CHECK(b->B == B);
    for (int i = 0, n = 0, p = 0; i < B; i++) {
        const bj_scene *x = &b->scenes[i];
        CHECK(x->neighbor_count == n_count[i] && x->polyline_count == p_count[i]);
        CHECK(memcmp(x->focal, focal + i * track, (size_t)track * sizeof *focal) == 0);
        CHECK(memcmp(x->future, future + i * 6, 6 * sizeof *future) == 0);
        CHECK(x->focal != focal + i * track && x->future != future + i * 6); /* copies */
        for (int row = 0; row < x->neighbor_count; row++, n++)
            for (int j = 0; j < track; j++) CHECK(x->neighbors[row * track + j] == n_row[n] + j);
        for (int row = 0; row < x->polyline_count; row++, p++)
            for (int j = 0; j < line; j++) CHECK(x->polylines[row * line + j] == p_row[p] + j);
    }
    CHECK_OK(bj_batch_check(b, &a, B, 1, &err), err);
    bj_scenes_free(scenes);

    /* Test scenes without a future, neighbors or polylines. */
    const uint8_t none[B * 3] = {0};
    CHECK_OK(
        bj_scenes_from_padded(&scenes, &a, B, focal, neighbors, none, polylines, none, NULL, &err),
        err);
    b = bj_scenes_batch(scenes);
    for (int i = 0; i < B; i++)
        CHECK(!b->scenes[i].future && !b->scenes[i].neighbor_count && !b->scenes[i].polyline_count);
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

static void check_line(const bj_real *p, int points) {
    double length = 0;
    for (int q = 0; q < points; q++, p += 6) {
        CHECK_NEAR(hypot(p[2], p[3]), 1, 1e-5);
        CHECK((p[4] == 0 || p[4] == 1) && (p[5] == 0 || p[5] == 1));
        if (q + 1 < points) length += hypot((double)(p[6] - p[0]), (double)(p[7] - p[1]));
    }
    CHECK(length > 4.9 && length < 30.1);
}

static void test_magnitudes(const bj_arch *a, const bj_batch *b) {
    for (int i = 0; i < b->B; i++) {
        const bj_scene *s = &b->scenes[i];
        const bj_real *focal = s->focal, *future = s->future, *last = focal + (a->obs - 1) * 7;
        check_track(focal, a->obs, a->dt, 1);
        for (int t = 0; t < a->obs; t++) CHECK(focal[t * 7 + 6] == 0); /* focal type 0 */
        /* The origin is the end of the focal track, and the x axis is its heading. */
        CHECK(last[0] == 0 && last[1] == 0 && last[4] == 1 && last[5] == 0);
        for (int t = 0; t < a->fut; t++) {
            const double x = t ? (double)future[2 * t - 2] : 0,
                         y = t ? (double)future[2 * t - 1] : 0;
            CHECK(hypot((double)future[2 * t] - x, (double)future[2 * t + 1] - y) <
                  15 * a->dt + 1.5);
        }
        for (int n = 0; n < s->neighbor_count; n++)
            check_track(s->neighbors + (size_t)(n * a->obs) * 7, a->obs, a->dt, 0);
        for (int p = 0; p < s->polyline_count; p++)
            check_line(s->polylines + (size_t)(p * a->points) * 6, a->points);
    }
}

static int equal_scenes(const bj_scene *x, const bj_scene *y, const bj_arch *a) {
    const size_t track = (size_t)a->obs * 7 * sizeof(bj_real);
    const size_t line = (size_t)a->points * 6 * sizeof(bj_real);
    return x->neighbor_count == y->neighbor_count && x->polyline_count == y->polyline_count &&
           !memcmp(x->focal, y->focal, track) &&
           !memcmp(x->future, y->future, (size_t)a->fut * 2 * sizeof(bj_real)) &&
           !memcmp(x->neighbors, y->neighbors, (size_t)x->neighbor_count * track) &&
           !memcmp(x->polylines, y->polylines, (size_t)x->polyline_count * line);
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
    for (int i = 0; i < B; i++) CHECK(bj_scene_nonfinite(&b->scenes[i], &a, 1) == NULL);

    /* Equal seeds give equal scenes. */
    int same = 1, same_as_other = 1;
    for (int i = 0; i < B; i++) {
        same &= equal_scenes(&b->scenes[i], &c->scenes[i], &a);
        same_as_other &= equal_scenes(&b->scenes[i], &bj_scenes_batch(other)->scenes[i], &a);
    }
    CHECK(same && !same_as_other);

    /* Neighbor counts are uniform on 0..16, and polyline counts on 8..48. Means must be within five
     * standard errors. */
    int least[2] = {99, 99}, most[2] = {0, 0};
    double all[2] = {0, 0};
    for (int i = 0; i < B; i++)
        for (int kind = 0; kind < 2; kind++) {
            const bj_scene *x = &b->scenes[i];
            const int rows = kind ? x->polyline_count : x->neighbor_count;
            all[kind] += rows;
            if (rows < least[kind]) least[kind] = rows;
            if (rows > most[kind]) most[kind] = rows;
        }
    CHECK(least[0] == 0 && most[0] == 16 && least[1] == 8 && most[1] == 48);
    CHECK_NEAR(all[0] / B, 8, 5 * sqrt((17.0 * 17 - 1) / 12 / B));
    CHECK_NEAR(all[1] / B, 28, 5 * sqrt((41.0 * 41 - 1) / 12 / B));
    test_magnitudes(&a, b);
    bj_scenes_free(scenes), bj_scenes_free(again), bj_scenes_free(other);

    scenes = (bj_scenes *)&err;
    CHECK(bj_scenes_synthetic(&scenes, &a, 0, 1, &err) == BJ_EARG && scenes == NULL);
    CHECK_CONTAINS(err.message, "0 scenes");
    bj_arch bare = a; /* an architecture without a map */
    bare.polylines = 0;
    CHECK_OK(bj_scenes_synthetic(&scenes, &bare, 3, 1, &err), err);
    for (int i = 0; i < 3; i++) CHECK(bj_scenes_batch(scenes)->scenes[i].polyline_count == 0);
    bj_scenes_free(scenes);
    bare = a, bare.points = 1;
    CHECK_OK(bj_scenes_synthetic(&scenes, &bare, 3, 1, &err), err);
    for (int i = 0; i < 3; i++)
        CHECK(bj_scene_nonfinite(&bj_scenes_batch(scenes)->scenes[i], &bare, 1) == NULL);
    bj_scenes_free(scenes);
}

/* ------------------------------------------------------------------------------- finite numbers */

/* Tests that a non-finite number is found at any position, and that only its own scene is
 * reported. */
static void test_nonfinite(void) {
    const bj_arch a = small();
    enum { B = 3 };
    bj_real focal[B * 14] = {0}, neighbors[4 * 14] = {0}, polylines[3 * 12] = {0},
                      future[B * 6] = {0};
    const int n_start[] = {0, 2, 2, 4}, p_start[] = {0, 0, 3, 3};
    bj_scene b[B];
    for (int s = 0; s < B; s++)
        b[s] = (bj_scene){focal + s * 14,
                          neighbors + n_start[s] * 14,
                          polylines + p_start[s] * 12,
                          future + s * 6,
                          n_start[s + 1] - n_start[s],
                          p_start[s + 1] - p_start[s]};
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
                const char *found = bj_scene_nonfinite(&b[s], &a, 1);
                CHECK_MSG(s == scene ? found && strcmp(found, arrays[i].name) == 0 : !found,
                          "%s[%d]: scene %d says %s", arrays[i].name, j, s, found ? found : "none");
                if (i == 3) CHECK(bj_scene_nonfinite(&b[s], &a, 0) == NULL); /* not requested */
            }
            arrays[i].x[j] = (bj_real)1e30; /* large numbers are valid */
        }
    for (int s = 0; s < B; s++) CHECK(bj_scene_nonfinite(&b[s], &a, 1) == NULL);
}

int main(void) {
    const long live = bj_alloc_live();
    test_padded();
    test_synthetic();
    test_nonfinite();
    CHECK(bj_alloc_live() == live);
    return test_report("scenes");
}
