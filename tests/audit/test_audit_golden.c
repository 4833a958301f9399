/* test_audit_golden.c - compares the audit and the map check of real scenes with stored results.
 *
 * The results come from a float64 reference. Scenes are read from map
 * files and as a submission. Real scenarios and data derived from them
 * cannot be part of this repository (license: CC BY-NC-SA 4.0).
 *   BJ_AV2_DATA     folder that contains av2/<id>/scenario_<id>.parquet, ...
 *   BJ_AV2_GOLDEN   folder with <id>.npz
 * The test is skipped if they are not set.
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "support/npz.h"
#include "support/test.h"

enum { K = 6, F = 60, POINTS = K * F };

typedef struct golden {
    npz file;
    double origin[2], heading, p[K], local[2 * POINTS], city[2 * POINTS];
    char focal[64];
    int taken; /* vehicle or bus */
} golden;

static const npz_array *need(const golden *g, const char *name, long count) {
    const npz_array *a = npz_find(&g->file, name);
    CHECK_MSG(a && a->count == count, "%s is missing or not of %ld elements", name, count);
    return a && a->count == count ? a : NULL;
}

static void numbers(double *out, const golden *g, const char *name, long count) {
    const npz_array *a = need(g, name, count);
    for (long i = 0; i < count; i++) out[i] = a ? npz_number(a, i) : NAN;
}

static int open_golden(golden *g, const char *folder, const char *id) {
    char path[4096];
    double taken;
    snprintf(path, sizeof path, "%s/%s.npz", folder, id);
    memset(g, 0, sizeof *g);
    if (!npz_open(&g->file, path)) return 0;
    numbers(g->origin, g, "origin", 2);
    numbers(&g->heading, g, "heading", 1);
    numbers(g->p, g, "audit_probabilities", K);
    numbers(g->local, g, "audit_trajectories", 2 * POINTS);
    numbers(&taken, g, "focal_vehicle_like", 1);
    g->taken = taken == 1;
    const npz_array *focal = npz_find(&g->file, "focal_track_id");
    if (focal)
        snprintf(g->focal, sizeof g->focal, "%.*s", (int)focal->size, (const char *)focal->data);
    bj_to_city(g->city, g->local, POINTS, g->origin, g->heading);
    return 1;
}

/* ------------------------------------------------------------------------------------ one scene */

static void compare_audit(const golden *g, const bj_audit_scene *s, const char *id) {
    const npz_array *inside = need(g, "audit_inside", POINTS),
                    *metrics = need(g, "audit_metrics", 7);
    const npz_array *component = need(g, "audit_component", K);
    const npz_array *feasible = need(g, "audit_feasible", K);
    if (!inside || !metrics || !component || !feasible) return;
    int all = 1;
    for (int k = 0; k < K; k++) {
        int count = 0;
        for (int t = 0; t < F; t++) count += npz_number(inside, k * F + t) == 1;
        all &= count == F;
        CHECK_MSG(s->inside[k] == count, "%s: %d points of %d inside, expected %d", id,
                  s->inside[k], k, count);
        CHECK_MSG(s->component[k] == (int)npz_number(component, k), "%s: component of %d is %d", id,
                  k, s->component[k]);
        CHECK((s->component[k] >= 0) == (npz_number(feasible, k) == 1));
    }
    CHECK(s->contained == all);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        const double want = npz_number(metrics, m);
        CHECK_MSG(fabs(s->value[m] - want) <= 1e-13 * fmax(1, fabs(want)),
                  "%s: %s is %.17g, expected %.17g", id, bj_audit_metric_at(m).name, s->value[m],
                  want);
    }
}

static void compare_points(const golden *g, const bj_drivable *areas, const char *id) {
    const npz_array *inside = need(g, "audit_inside", POINTS);
    uint8_t ours[POINTS];
    int64_t count = bj_drivable_contains(ours, areas, g->city, POINTS);
    for (int i = 0; inside && i < POINTS; i++) {
        CHECK_MSG(ours[i] == npz_number(inside, i), "%s: point %d is %d", id, i, ours[i]);
        count -= ours[i];
    }
    CHECK(count == 0);
    double origin = NAN;
    numbers(&origin, g, "audit_origin_inside", 1);
    CHECK(bj_drivable_inside(areas, g->origin[0], g->origin[1]) == origin);
}

static void compare_proxy(const golden *g, const char *id) {
    static float lines[48 * 10 * 6];
    const npz_array *polylines = need(g, "polylines", 48 * 10 * 6), *mask = need(g, "pmask", 48);
    double outside[K], passes, strict;
    int count = 0;
    bj_proxy proxy;
    if (!polylines || !mask) return;
    for (int i = 0; i < 48 * 60; i++) lines[i] = (float)npz_number(polylines, i);
    for (int i = 0; i < 48; i++) count += npz_number(mask, i) == 1;
    bj_proxy_measure(&proxy, lines, count, 10, K, F, g->p, g->local);
    numbers(outside, g, "proxy_outside", K);
    numbers(&passes, g, "proxy_passes", 1);
    numbers(&strict, g, "proxy_strict", 1);
    for (int k = 0; k < K; k++)
        CHECK_MSG(proxy.outside[k] == outside[k],
                  "%s: the outside share of candidate %d is %.17g, expected %.17g", id, k,
                  proxy.outside[k], outside[k]);
    CHECK(proxy.passes == passes);
    CHECK(proxy.strict == strict);
}

/* Counts of outcomes, which show that the comparison does not consist only of zeros. */
typedef struct tally {
    int scenes, taken, passes, strict, infeasible, origins;
    double mean[BJ_AUDIT_METRICS]; /* over the audited scenes */
} tally;

static void count_scene(tally *t, const golden *g) {
    double value = 0, metrics[BJ_AUDIT_METRICS];
    numbers(metrics, g, "audit_metrics", BJ_AUDIT_METRICS);
    t->scenes++;
    t->taken += g->taken;
    t->infeasible += metrics[BJ_AUDIT_TRAJECTORY_MASS] < 1;
    numbers(&value, g, "proxy_passes", 1);
    t->passes += value == 1;
    numbers(&value, g, "proxy_strict", 1);
    t->strict += value == 1;
    if (!g->taken) return;
    numbers(&value, g, "audit_origin_inside", 1);
    t->origins += value == 1;
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) t->mean[m] += metrics[m];
}

/* --------------------------------------------------------------------------------------- folder */

static bj_scenario_list *open_list(const char *data, const char *name) {
    char folder[4096];
    bj_error err = {0};
    bj_scenario_list *list = NULL;
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    CHECK_OK(bj_scenario_list_create(&list, folder, &err), err);
    return list;
}

static void test_scenes(tally *t, const char *data, const char *name, const char *goldens) {
    bj_scenario_list *list = open_list(data, name);
    bj_error err = {0};
    bj_drivable *areas = NULL;
    CHECK_OK(bj_drivable_create(&areas, &err), err);
    for (int64_t i = 0; list && areas && i < bj_scenario_list_count(list); i++) {
        static golden g;
        bj_audit_scene scene;
        char path[8192];
        const char *id = bj_scenario_list_id(list, i);
        const int found = open_golden(&g, goldens, id);
        CHECK_MSG(found, "%s: no golden", id);
        if (!found) continue;
        snprintf(path, sizeof path, "%s/%s/%s/log_map_archive_%s.json", data, name, id, id);
        CHECK_OK(bj_drivable_set_file(areas, path, BJ_AUDIT_TOLERANCE, &err), err);
        bj_audit_measure(&scene, areas, K, F, g.p, g.city);
        compare_audit(&g, &scene, id);
        compare_points(&g, areas, id);
        compare_proxy(&g, id);
        count_scene(t, &g);
        npz_close(&g.file);
    }
    bj_drivable_free(areas);
    bj_scenario_list_free(list);
}

static int write_submission(const char *path, const char *goldens, bj_scenario_list *list) {
    bj_error err = {0};
    bj_submission_writer *writer = NULL;
    CHECK_OK(bj_submission_writer_create(&writer, path, &err), err);
    for (int64_t i = 0; writer && i < bj_scenario_list_count(list); i++) {
        static golden g;
        const char *id = bj_scenario_list_id(list, i);
        if (!open_golden(&g, goldens, id)) continue;
        CHECK_OK(bj_submission_writer_add(writer, id, g.focal, K, g.p, g.city, &err), err);
        npz_close(&g.file);
    }
    if (writer) CHECK_OK(bj_submission_writer_commit(&writer, &err), err);
    return test_failed == 0;
}

/* Tests a submission with the same scenes. */
static void test_submission(const tally *t, const char *data, const char *name,
                            const char *goldens) {
    char path[64], folder[4096];
    bj_error err = {0};
    bj_submission *submission = NULL;
    bj_submission_audit *audit = NULL;
    bj_scenario_list *list = open_list(data, name);
    const bj_audit_options options = {.threads = 2};
    snprintf(path, sizeof path, "/tmp/bj_audit_golden.%d.parquet", (int)getpid());
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    if (list && write_submission(path, goldens, list)) {
        CHECK_OK(bj_submission_open(&submission, path, &err), err);
        if (submission)
            CHECK_OK(bj_submission_audit_create(&audit, submission, folder, &options, &err), err);
    }
    if (audit) {
        const bj_submission_counts c = bj_submission_audit_count(audit);
        CHECK(c.total == t->scenes && c.outcomes[BJ_AUDITED] == t->taken);
        CHECK(c.outcomes[BJ_AUDIT_OTHER_TYPE] == t->scenes - t->taken);
        CHECK(c.origins == t->origins && c.unknown == 0);
        for (int m = 0; m < BJ_AUDIT_METRICS && t->taken; m++)
            CHECK_NEAR(bj_submission_audit_mean(audit, m), t->mean[m] / t->taken, 1e-12);
        for (int64_t i = 0; i < c.total; i++) {
            static golden g;
            const bj_submission_scene s = bj_submission_audit_at(audit, i);
            if (!open_golden(&g, goldens, s.scenario_id)) continue;
            CHECK(g.taken == (s.audit != NULL));
            if (s.audit) compare_audit(&g, s.audit, s.scenario_id);
            npz_close(&g.file);
        }
    }
    bj_submission_audit_free(audit);
    bj_submission_free(submission);
    bj_scenario_list_free(list);
    unlink(path);
}

int main(void) {
    static const char *const folders[] = {"av2", "av2_from_sensor", "av2_edge"};
    const char *data = getenv("BJ_AV2_DATA"), *goldens = getenv("BJ_AV2_GOLDEN");
    if (!data || !goldens || !*data || !*goldens) {
        printf("skipped: set BJ_AV2_DATA to the parent of av2, av2_from_sensor and av2_edge, "
               "and BJ_AV2_GOLDEN to the folder of their .npz files\n");
        return 77;
    }
    tally all = {0};
    const long live = bj_alloc_live();
    for (int i = 0; i < 3; i++) {
        tally t = {0};
        test_scenes(&t, data, folders[i], goldens);
        test_submission(&t, data, folders[i], goldens);
        all.scenes += t.scenes;
        all.taken += t.taken;
        all.passes += t.passes;
        all.strict += t.strict;
        all.infeasible += t.infeasible;
    }
    CHECK(bj_alloc_live() == live);
    CHECK(all.scenes > 0 && all.taken > 0 && all.infeasible > 0 && all.passes > 0);
    printf("%d scenes, %d with a focal vehicle or bus, %d with infeasible candidates; "
           "%d pass the screen, %d of them strictly\n",
           all.scenes, all.taken, all.infeasible, all.passes, all.strict);
    return test_report("audit_golden");
}
