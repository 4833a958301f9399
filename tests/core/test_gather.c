/* test_gather.c - tests that scattered scenes are copied into contiguous arrays and that NaN is
 * found. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/gather.h"
#include "test.h"

enum { SCENES = 5, TRACK = 3 * 7, LINE = 4 * 6, PATH = 2 * 10 };

static bj_arch small(void) {
    bj_arch a = bj_arch_paper();
    a.obs = 3, a.fut = 10, a.neighbors = 3, a.polylines = 2, a.points = 4;
    return a;
}

/* Allocates one array of a scene, filled with numbers that identify the scene, the array and the
 * index. */
static bj_real *piece(int scene, int kind, int n) {
    bj_real *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    if (!x) exit(1);
    for (int i = 0; i < n; i++) x[i] = (bj_real)(1000 * scene + 100 * kind + i);
    return x;
}

typedef struct scattered {
    bj_scene scene[SCENES];
    bj_real *array[SCENES][4]; /* focal, neighbors, polylines, future */
} scattered;

static const int neighbors[SCENES] = {2, 0, 3, 1, 0}, polylines[SCENES] = {0, 2, 1, 0, 2};

static void scatter(scattered *s) {
    for (int b = 0; b < SCENES; b++) {
        const int size[4] = {TRACK, neighbors[b] * TRACK, polylines[b] * LINE, PATH};
        for (int k = 0; k < 4; k++) s->array[b][k] = piece(b, k, size[k]);
        s->scene[b] = (bj_scene){s->array[b][0], neighbors[b] ? s->array[b][1] : NULL,
                                 polylines[b] ? s->array[b][2] : NULL, s->array[b][3],
                                 neighbors[b], polylines[b]};
    }
}

static void discard(scattered *s) {
    for (int b = 0; b < SCENES; b++)
        for (int k = 0; k < 4; k++) free(s->array[b][k]);
}

typedef struct room {
    bj_gathered g;
    bj_real *memory;
} room;

static room take(const bj_arch *arch, int with_future) {
    room r;
    bj_arena arena = {NULL, 0};
    bj_gathered_take(&r.g, &arena, arch, SCENES, with_future);
    r.memory = bj_alloc(arena.used, sizeof *r.memory);
    if (!r.memory) exit(1);
    arena = (bj_arena){r.memory, 0};
    bj_gathered_take(&r.g, &arena, arch, SCENES, with_future);
    return r;
}

static int holds(const bj_real *row, int scene, int kind, int n) {
    int same = 1;
    for (int i = 0; i < n; i++) same &= row[i] == (bj_real)(1000 * scene + 100 * kind + i);
    return same;
}

/* Tests scenes in any order, with a repeated scene. The parts of the batch are copied in reverse
 * order, as can happen with several workers. */
static void test_order(const bj_arch *arch, scattered *s) {
    static const int order[SCENES] = {3, 0, 2, 0, 1};
    room r = take(arch, 1);
    bj_scene table[SCENES];
    for (int i = 0; i < SCENES; i++) table[i] = s->scene[order[i]];
    bj_gathered_lay_out(&r.g, table, SCENES);
    CHECK(r.g.B == SCENES);
    static const int cuts[] = {4, 1, 0};
    for (int i = 0, end = SCENES; i < 3; end = cuts[i++])
        CHECK(bj_gathered_copy(&r.g, table, arch, cuts[i], end) == -1);
    int n = 0, p = 0;
    for (int i = 0; i < SCENES; i++) {
        const int b = order[i];
        CHECK(r.g.neighbor_start[i] == n && r.g.polyline_start[i] == p);
        CHECK(holds(r.g.focal + i * TRACK, b, 0, TRACK));
        CHECK(holds(r.g.neighbors + n * TRACK, b, 1, neighbors[b] * TRACK));
        CHECK(holds(r.g.polylines + p * LINE, b, 2, polylines[b] * LINE));
        CHECK(holds(r.g.future + i * PATH, b, 3, PATH));
        n += neighbors[b], p += polylines[b];
    }
    CHECK(r.g.neighbor_start[SCENES] == n && r.g.polyline_start[SCENES] == p);
    bj_free(r.memory);
}

/* Tests that a NaN or infinity is found at every position of every array, and that the first of two
 * bad scenes is reported. */
static void test_bad(const bj_arch *arch, scattered *s) {
    const bj_real bad[] = {(bj_real)NAN, (bj_real)INFINITY, (bj_real)-INFINITY};
    for (int with_future = 0; with_future < 2; with_future++) {
        room r = take(arch, with_future);
        CHECK((r.g.future != NULL) == with_future);
        bj_gathered_lay_out(&r.g, s->scene, SCENES);
        for (int b = 0; b < SCENES; b++) {
            const int size[4] = {TRACK, neighbors[b] * TRACK, polylines[b] * LINE, PATH};
            for (int k = 0; k < 4; k++)
                for (int i = 0; i < size[k]; i++) {
                    const bj_real kept = s->array[b][k][i];
                    s->array[b][k][i] = bad[i % 3];
                    const int found = bj_gathered_copy(&r.g, s->scene, arch, 0, SCENES);
                    CHECK_MSG(found == (k == 3 && !with_future ? -1 : b),
                              "scene %d, array %d, number %d: %d", b, k, i, found);
                    s->array[b][k][i] = kept;
                }
        }
        s->array[1][0][5] = s->array[4][2][LINE] = (bj_real)NAN;
        r.g.focal[4 * TRACK] = -1;
        CHECK(bj_gathered_copy(&r.g, s->scene, arch, 0, SCENES) == 1);
        CHECK(holds(r.g.focal + 4 * TRACK, 4, 0, TRACK)); /* later scenes are still copied */
        CHECK(bj_gathered_copy(&r.g, s->scene, arch, 2, SCENES) == 4);
        CHECK(bj_gathered_copy(&r.g, s->scene, arch, 2, 4) == -1);
        s->array[1][0][5] = 5 + 1000, s->array[4][2][LINE] = (bj_real)(4000 + 200 + LINE);
        bj_free(r.memory);
    }
    atomic_int first;
    atomic_init(&first, INT_MAX);
    bj_note_first(&first, 7), bj_note_first(&first, 3), bj_note_first(&first, 5);
    CHECK(atomic_load(&first) == 3);
}

int main(void) {
    const bj_arch arch = small();
    const long live = bj_alloc_live();
    scattered s;
    scatter(&s);
    test_order(&arch, &s);
    test_bad(&arch, &s);
    discard(&s);
    CHECK(bj_alloc_live() == live);
    return test_report("gather");
}
