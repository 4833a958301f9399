/* test_drivable.c - tests whether points are inside drivable areas.
 *
 * Covers rings constructed by hand, random rings, which are compared with the reference in
 * audit_case.h, and failed allocations.
 */
#define _XOPEN_SOURCE 700 /* getrusage */
#include <stdlib.h>
#include <sys/resource.h>

#include "audit_case.h"
#include "core/alloc.h"
#include "support/test.h"

static bj_drivable *areas;

#define RING(points)                                                                               \
    { &(points)[0][0], (int)(sizeof(points) / sizeof *(points)) }

static void set(const bj_ring *rings, int count, double tolerance) {
    bj_error err = {0};
    CHECK_OK(bj_drivable_set_rings(areas, rings, count, tolerance, &err), err);
}

static int at(double x, double y) { return bj_drivable_inside(areas, x, y); }

/* -------------------------------------------------------------------------------------- by hand */

static const double square[][2] = {{0, 0}, {10, 0}, {10, 10}, {0, 10}};

static void test_tolerance(void) {
    const bj_ring ring = RING(square);
    set(&ring, 1, 0.1);
    CHECK(at(5, 5) && at(0, 0) && at(10, 10) && at(0, 7) && at(3, 10));
    /* A point at exactly the tolerance is inside, and the next representable number is outside. On
     * the right side, 10 + .1 is slightly less than .1 away. */
    CHECK(at(-0.1, 5) && !at(nextafter(-0.1, -1), 5));
    CHECK(at(5, -0.1) && !at(5, nextafter(-0.1, -1)));
    CHECK(at(10.1, 5) && !at(10.2, 5) && !at(10.1001, 5));
    /* Test a corner with the sides of a 3-4-5 triangle. */
    CHECK(at(-0.0599, -0.0799) && !at(-0.0601, -0.0801) && !at(-0.1, -0.1));
    CHECK(!at(-5, 5) && !at(5, 11) && !at(1e9, 5) && !at(5, -1e9));
    CHECK(!at(NAN, 5) && !at(5, NAN) && !at(INFINITY, 5) && !at(5, -INFINITY));
    set(&ring, 1, 0);
    CHECK(at(0, 0) && at(10, 0) && at(10, 10) && at(0, 10)); /* corners and edges */
    CHECK(at(0, 5) && at(10, 5) && at(5, 0) && at(5, 10));
    CHECK(!at(-1e-150, 5) && !at(nextafter(10, 11), 5)); /* the squares of smaller distances
                                                            underflow */
    CHECK(!at(5, -1e-150) && !at(5, nextafter(10, 11)));
}

static void test_unions(void) {
    static const double right[][2] = {{10, 0}, {20, 0}, {20, 10}, {10, 10}};
    static const double near[][2] = {{10.15, 0}, {20, 0}, {20, 10}, {10.15, 10}};
    static const double far[][2] = {{10.25, 0}, {20, 0}, {20, 10}, {10.25, 10}};
    static const double inner[][2] = {{3, 3}, {7, 3}, {7, 7}, {3, 7}};
    static const double turned[][2] = {{3, 3}, {3, 7}, {7, 7}, {7, 3}};
    const bj_ring touching[] = {RING(square), RING(right)}, gap[] = {RING(square), RING(near)};
    const bj_ring wide[] = {RING(square), RING(far)};
    set(touching, 2, 0);
    CHECK(at(10, 5) && at(10, 0) && at(nextafter(10, 0), 5) && at(nextafter(10, 20), 5));
    CHECK(at(15, 5) && !at(21, 5));
    set(gap, 2, 0.1); /* the two tolerances cover the gap */
    CHECK(at(10.05, 5) && at(10.075, 5) && at(10.1, 5));
    set(gap, 2, 0.05);
    CHECK(at(10.04, 5) && !at(10.075, 5) && at(10.11, 5));
    set(wide, 2, 0.1);
    CHECK(at(10.09, 5) && !at(10.125, 5) && at(10.16, 5));
    /* A ring inside another ring is not a hole, for any orientation and order. */
    const bj_ring nested[] = {RING(square), RING(inner)}, back[] = {RING(square), RING(turned)};
    const bj_ring swapped[] = {RING(turned), RING(square)};
    for (int i = 0; i < 3; i++) {
        set(i == 0 ? nested : i == 1 ? back : swapped, 2, 0.1);
        CHECK(at(5, 5) && at(1, 1) && at(3, 5) && !at(11, 5));
    }
}

static void test_self_contact(void) {
    /* The ring runs to a hole and back along the same cut, so points in the hole are outside. */
    static const double keyhole[][2] = {{0, 0}, {10, 0}, {10, 10}, {0, 10}, {0, 5}, {4, 5},
                                        {4, 6}, {6, 6},  {6, 4},   {4, 4},  {4, 5}, {0, 5}};
    static const double bow[][2] = {{0, 0}, {10, 10}, {10, 0}, {0, 10}};
    double star[5][2];
    for (int i = 0; i < 5; i++) { /* pentagram: its center is outside by the even-odd rule */
        star[i][0] = 10 * sin(2 * 3.141592653589793 * 2 * i / 5);
        star[i][1] = 10 * cos(2 * 3.141592653589793 * 2 * i / 5);
    }
    const bj_ring rings[] = {RING(keyhole), RING(bow), RING(star)};
    set(&rings[0], 1, 0.1);
    CHECK(at(2, 2) && at(8, 8) && at(2, 5) && !at(5, 5) && at(4.05, 5) && !at(4.2, 5));
    set(&rings[1], 1, 0.1);
    CHECK(at(1, 5) && at(9, 5) && at(5, 5) && !at(5, 9) && !at(5, 1));
    set(&rings[2], 1, 0.1);
    CHECK(!at(0, 0) && at(0, 8) && !at(0, -8));
}

static void test_degenerate(void) {
    static const double point[][2] = {{5, 5}}, same[][2] = {{5, 5}, {5, 5}, {5, 5}};
    static const double line[][2] = {{0, 0}, {10, 0}}, flat[][2] = {{0, 0}, {10, 0}, {4, 0}};
    static const double closed[][2] = {{0, 0}, {10, 0}, {10, 10}, {0, 10}, {0, 0}};
    static const double twice[][2] = {{0, 0},   {0, 0},   {10, 0}, {10, 0},
                                      {10, 10}, {10, 10}, {0, 10}, {0, 10}};
    const bj_ring dots[] = {RING(point), RING(same)}, lines[] = {RING(line), RING(flat)};
    const bj_ring squares[] = {RING(closed), RING(twice)};
    for (int i = 0; i < 2; i++) {
        set(&dots[i], 1, 0.1);
        CHECK(at(5, 5) && at(5.05, 5) && at(5, 4.9001) && !at(5.2, 5) && !at(5.08, 5.08));
        set(&dots[i], 1, 0);
        CHECK(at(5, 5) && !at(nextafter(5, 6), 5));
        set(&lines[i], 1, 0.1);
        CHECK(at(5, 0) && at(5, 0.1) && at(10.05, 0) && !at(5, 0.11) && !at(10.2, 0) && !at(-1, 0));
        set(&squares[i], 1, 0.1);
        CHECK(at(5, 5) && at(-0.1, 5) && at(0, 0) && !at(-0.2, 5) && !at(5, 10.2));
    }
    set(NULL, 0, 0.1);
    CHECK(!at(0, 0));
}

static void test_refused(void) {
    static const double hole[][2] = {{0, 0}, {NAN, 1}, {1, 0}}, huge[][2] = {{0, 0}, {1e101, 1}};
    const bj_ring good = RING(square), bad[] = {RING(hole), RING(huge), {&square[0][0], 0}};
    bj_error err = {0};
    for (int i = 0; i < 3; i++) {
        set(&good, 1, 0.1);
        CHECK(at(5, 5));
        CHECK(bj_drivable_set_rings(areas, &bad[i], 1, 0.1, &err) != BJ_OK);
        CHECK_CONTAINS(err.message, "ring 0");
        CHECK(!at(5, 5)); /* the previous areas have been removed */
    }
    CHECK(bj_drivable_set_rings(areas, &good, 1, -0.1, &err) == BJ_EARG);
    CHECK(bj_drivable_set_rings(areas, &good, 1, NAN, &err) == BJ_EARG);
    CHECK(bj_drivable_set_rings(areas, NULL, 1, 0.1, &err) == BJ_EARG);
    CHECK(bj_drivable_set_file(areas, "/nowhere/map.json", 0.1, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "/nowhere/map.json");
}

/* --------------------------------------------------------------------------------------- random */

enum { RINGS = 4, CORNERS = 40 };

typedef struct random_map {
    double points[RINGS][CORNERS][2];
    bj_ring ring[RINGS];
    int rings;
} random_map;

/* Draws random rings. Maps on a lattice have many coinciding points, and many edges that touch or
 * are horizontal or vertical. */
static void draw_map(random_map *m, bj_rng *rng, int lattice, double shift) {
    m->rings = 1 + (int)(RINGS * bj_rng_uniform(rng));
    for (int r = 0; r < m->rings; r++) {
        const int count = 1 + (int)(CORNERS * bj_rng_uniform(rng));
        const double size = lattice ? 6 : case_between(rng, 2, 60);
        for (int i = 0; i < count; i++)
            for (int c = 0; c < 2; c++) {
                const double v = size * bj_rng_uniform(rng);
                m->points[r][i][c] = shift + (lattice ? floor(v) : v);
            }
        m->ring[r] = (bj_ring){&m->points[r][0][0], count};
    }
}

/* Draws a point on a corner, on an edge, near the tolerance limit, or anywhere. */
static void draw_point(double p[2], const random_map *m, bj_rng *rng, double tolerance,
                       double shift) {
    const int r = (int)(m->rings * bj_rng_uniform(rng));
    const int n = m->ring[r].count, i = (int)(n * bj_rng_uniform(rng));
    const double *a = m->points[r][i], *b = m->points[r][(i + 1) % n];
    const int kind = (int)(6 * bj_rng_uniform(rng));
    const double t = kind == 1 ? 0.5 : bj_rng_uniform(rng),
                 sign = bj_rng_uniform(rng) < 0.5 ? -1 : 1;
    const double dx = b[0] - a[0], dy = b[1] - a[1], length = sqrt(dx * dx + dy * dy);
    p[0] = kind == 0 ? a[0] : a[0] + t * dx;
    p[1] = kind == 0 ? a[1] : a[1] + t * dy;
    if (kind == 3 && length > 0) { /* about the tolerance away */
        p[0] -= sign * tolerance * dy / length;
        p[1] += sign * tolerance * dx / length;
    } else if (kind == 4) {
        p[bj_rng_uniform(rng) < 0.5] += sign * tolerance;
    } else if (kind == 5) {
        p[0] = shift + case_between(rng, -5, 65);
        p[1] = shift + case_between(rng, -5, 65);
    }
    if (bj_rng_uniform(rng) < 0.2) p[0] = nextafter(p[0], sign * 1e9);
}

static void test_random(void) {
    static const double tolerances[] = {0, 0.1, 0.5, 3};
    static random_map m;
    bj_rng rng = bj_rng_seed(11);
    int inside = 0, total = 0;
    for (int trial = 0; trial < 600; trial++) {
        const double tolerance = tolerances[trial % 4];
        const double shift = trial % 3 == 0 ? 0 : trial % 3 == 1 ? 4096 : -123456.78;
        draw_map(&m, &rng, trial / 4 % 2, shift);
        set(m.ring, m.rings, tolerance);
        for (int i = 0; i < 200; i++, total++) {
            double p[2];
            draw_point(p, &m, &rng, tolerance, shift);
            const int want = case_inside(m.ring, m.rings, p[0], p[1], tolerance);
            inside += want;
            CHECK_MSG(at(p[0], p[1]) == want, "trial %d: (%.17g, %.17g) is %d", trial, p[0], p[1],
                      !want);
        }
    }
    CHECK(inside > total / 4 && inside < total * 3 / 4 + total / 8); /* both results are common */
}

/* Returns the peak memory of this process in kilobytes. */
static long peak(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_maxrss;
}

/* Tests edges that cross all rows. There must be fewer rows, the results must be the same, and
 * memory must be proportional to the number of edges. */
static void test_comb(void) {
    enum { TEETH = 20000 };
    double(*comb)[2] = malloc(TEETH * sizeof *comb);
    bj_rng rng = bj_rng_seed(3);
    if (!comb) abort();
    for (int i = 0; i < TEETH; i++) {
        comb[i][0] = 0.01 * i;
        comb[i][1] = i % 2 ? 500 + bj_rng_uniform(&rng) : -500 - bj_rng_uniform(&rng);
    }
    const bj_ring ring = {&comb[0][0], TEETH};
    const long before = peak();
    set(&ring, 1, 0.001);
    CHECK_MSG(peak() - before < 60000, "%ld kB for %d edges", peak() - before, TEETH);
    for (int i = 0; i < 100; i++) {
        const double x = case_between(&rng, 0, 200), y = case_between(&rng, -510, 510);
        CHECK(at(x, y) == case_inside(&ring, 1, x, y, 0.001));
    }
    free(comb);
}

/* --------------------------------------------------------------------------------------- memory */

static void test_memory(void) {
    static random_map m;
    bj_rng rng = bj_rng_seed(5);
    bj_drivable *own = NULL;
    bj_error err = {0};
    const long live = bj_alloc_live();
    draw_map(&m, &rng, 0, 0);
    long steps = 0;
    for (bj_status status = BJ_ENOMEM; status != BJ_OK; steps++) { /* the n-th allocation fails */
        bj_alloc_fail_after(steps);
        status = bj_drivable_create(&own, &err);
        if (status == BJ_OK) status = bj_drivable_set_rings(own, m.ring, m.rings, 0.1, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        if (status != BJ_OK) {
            CHECK(!own || !bj_drivable_inside(own, 1, 1));
            bj_drivable_free(own);
            own = NULL;
            CHECK(bj_alloc_live() == live);
        }
    }
    CHECK(steps > 3);
    const long before = bj_alloc_count();
    CHECK_OK(bj_drivable_set_rings(own, m.ring, m.rings, 0.1, &err), err);
    CHECK(bj_alloc_count() == before);
    double points[50][2];
    uint8_t inside[50];
    int64_t sum = 0;
    for (int i = 0; i < 50; i++) draw_point(points[i], &m, &rng, 0.1, 0);
    const int64_t count = bj_drivable_contains(inside, own, &points[0][0], 50);
    for (int i = 0; i < 50; i++) {
        CHECK(inside[i] == bj_drivable_inside(own, points[i][0], points[i][1]));
        sum += inside[i];
    }
    CHECK(sum == count && sum > 0 && sum < 50);
    CHECK(bj_drivable_contains(NULL, own, &points[0][0], 50) == count);
    bj_drivable_free(own);
    bj_drivable_free(NULL);
    CHECK(bj_alloc_live() == live);
}

int main(void) {
    bj_error err = {0};
    CHECK_OK(bj_drivable_create(&areas, &err), err);
    CHECK(!at(0, 0)); /* initially empty */
    test_tolerance();
    test_unions();
    test_self_contact();
    test_degenerate();
    test_refused();
    test_random();
    test_comb();
    bj_drivable_free(areas);
    test_memory();
    return test_report("drivable");
}
