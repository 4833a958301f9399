/* test_exam_blind.c - tests the discrepancy between two laws, and the discrepancy due to
 * information hidden from a model. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <unistd.h>

#include "core/alloc.h"
#include "truth_case.h"

enum { SCENES = 120 };

static char folder[] = "/tmp/test_blind.XXXXXX";
static bj_error err;

/* Tests laws whose discrepancy can be calculated by hand, with points, equal modes and noise. */
static void test_between(void) {
    law_case a, b;
    bj_moment d;
    case_start(&a, "x", 2, 0);
    case_start(&b, "x", 2, 0);
    case_place(a.means + ROW, 3, 4);
    case_place(b.means + ROW, 3, 4);
    CHECK_OK(bj_exam_between(&d, &a.law, &b.law, 16, 1, &err), err);
    CHECK(d.mean == 0 && d.variance == 0);
    /* Compare weights 1/2 and 1/2 with 3/4 and 1/4 at two points 5 m apart: 2 (1/4)^2 5 m. */
    b.weights[0] = .75, b.weights[1] = .25;
    CHECK_OK(bj_exam_between(&d, &a.law, &b.law, 16, 1, &err), err);
    CHECK_NEAR(d.mean, 2 * 5 / 16., 1e-12);
    /* Compare one point with two points: c = 1/2, 1/2 - 3/4, -1/4 at 0, 5 and 10 m. */
    case_place(b.means, 6, 8);
    CHECK_OK(bj_exam_between(&d, &a.law, &b.law, 16, 1, &err), err);
    const double c[3] = {.5, .25, -.75};
    double wanted = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++) wanted -= 2 * c[i] * c[j] * 5 * (i - j);
    CHECK_NEAR(d.mean, wanted, 1e-12);
    /* With noise, the result must match the discrepancy between large samples of the two laws. */
    case_random(&a, "y", 6);
    case_random(&b, "y", 5);
    CHECK_OK(bj_exam_between(&d, &a.law, &b.law, 1024, 1, &err), err);
    enum { N = 4096 };
    double *p = calloc(N, sizeof *p), *y = calloc((size_t)N * ROW, sizeof *y), own = 0, cross = 0;
    double *z = calloc((size_t)N * ROW, sizeof *z), other = 0;
    bj_rng rng = bj_rng_seed(9);
    if (!p || !y || !z) exit(1);
    for (int i = 0; i < N; i++) bj_law_sample(y + i * ROW, &a.law, &rng);
    for (int i = 0; i < N; i++) bj_law_sample(z + i * ROW, &b.law, &rng);
    for (int i = 0; i < N; i++)
        for (int k = 1; k < 40; k++) {
            const int j = (i + 97 * k) % N;
            cross += bj_exam_distance(y + i * ROW, z + j * ROW) / (39. * N);
            own += bj_exam_distance(y + i * ROW, y + j * ROW) / (39. * N);
            other += bj_exam_distance(z + i * ROW, z + j * ROW) / (39. * N);
        }
    CHECK_NEAR(d.mean, 2 * cross - own - other, .2 + 5 * sqrt(d.variance));
    CHECK_MSG(d.mean > 1.5 && d.variance > 0, "%g", d.mean);
    free(p);
    free(y);
    free(z);
}

static bj_blind_report measure(int version, int64_t scenes, int threads, bj_status wanted) {
    bj_world_report made;
    bj_cache *cache = NULL;
    bj_law *law = NULL;
    bj_exam *exam = NULL;
    bj_blind_report report = {0};
    char path[64], law_path[96];
    const bj_world_options world = {
        .version = version, .seed = 5, .scenes = SCENES, .jobs = 1, .force = 1};
    const bj_exam_options options = {.samples = 16, .seed = 3, .threads = threads};
    snprintf(path, sizeof path, "%s/world.bjc", folder);
    snprintf(law_path, sizeof law_path, "%s.law.safetensors", path);
    CHECK_OK(bj_world_to_cache(&made, path, &world, &err), err);
    CHECK_OK(bj_cache_open(&cache, path, 0, &err), err);
    CHECK_OK(bj_law_open(&law, law_path, &err), err);
    CHECK_OK(bj_exam_create(&exam, cache, law, &options, &err), err);
    CHECK(bj_exam_blind(&report, exam, scenes, &err) == wanted);
    bj_exam_free(exam);
    bj_law_free(law);
    bj_cache_free(cache);
    remove(path);
    remove(law_path);
    return report;
}

static void test_worlds(void) {
    const bj_blind_report two = measure(2, 1000, 2, BJ_OK);
    CHECK(two.scenes == SCENES && two.discrepancy.mean == 0 && two.discrepancy.error == 0);
    CHECK(two.control.mean == 0 && two.limits.mean == 0 && two.spread == 0);
    const bj_blind_report one = measure(1, 1000, 1, BJ_OK), again = measure(1, 1000, 3, BJ_OK);
    CHECK(one.scenes == SCENES && !memcmp(&one, &again, sizeof one));
    CHECK_MSG(one.discrepancy.mean > 0.02 && one.discrepancy.mean < 0.5, "%g",
              one.discrepancy.mean);
    CHECK(one.control.mean > 0.01 && one.limits.mean > 0.005);
    /* Hiding more information increases the discrepancy. */
    CHECK(one.discrepancy.mean > one.control.mean && one.discrepancy.mean > one.limits.mean);
    CHECK(one.discrepancy.error > 0 && one.spread > one.discrepancy.error);
    CHECK(measure(1, 7, 2, BJ_OK).scenes == 7);
    measure(1, 0, 1, BJ_EARG);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    test_between();
    test_worlds();
    CHECK(rmdir(folder) == 0);
    return test_report("truth.exam_blind");
}
