/* test_audit_submission.c - tests audits of a submission on raw maps.
 *
 * Covers every outcome, values calculated by hand, threads and failed allocations.
 *
 * For tests/cli/audit.sh: test_audit_submission make DIR FILE.parquet [good] writes the inputs.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "eval/score_case.h"
#include "support/test.h"

#define ID(letter) "00000000-0000-4000-8000-00000000000" letter

enum { SCENES = 7 };
static case_scenario scenes[SCENES];

/* Writes the map of a road along x, 10 m wide, from -100 m to 30 m relative to the origin. It
 * covers half of a straight drive. */
static bj_status write_map(const char *folder, const case_scenario *s, double x, double y,
                           bj_error *err) {
    char path[CASE_PATH], text[1024];
    const int n = snprintf(text, sizeof text,
                           "{\"drivable_areas\":{\"1\":{\"id\":1,\"area_boundary\":["
                           "{\"x\":%.2f,\"y\":%.2f,\"z\":0},{\"x\":%.2f,\"y\":%.2f,\"z\":0},"
                           "{\"x\":%.2f,\"y\":%.2f,\"z\":0},{\"x\":%.2f,\"y\":%.2f,\"z\":0}]}},"
                           "\"lane_segments\":{},\"pedestrian_crossings\":{}}",
                           x - 100, y - 5, x + 30, y - 5, x + 30, y + 5, x - 100, y + 5);
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, s->id, s->id);
    return bj_file_write(path, text, (size_t)n, err);
}

static bj_status write_scenarios(const char *folder, int good, bj_error *err) {
    static const char *const ids[SCENES] = {ID("a"), ID("b"), ID("c"), ID("d"),
                                            ID("e"), ID("f"), ID("9")};
    for (int i = 0; i < SCENES; i++) {
        const double x = 100 * i, y = 50 * i;
        scenes[i] = case_drive(ids[i], x, y, 0);
        if (i == 1) scenes[i].type = "bus";
        if (i == 2) scenes[i].type = "cyclist";
        if (good && i > 2) break;
        BJ_TRY(case_write_scenario(folder, &scenes[i], err));
        BJ_TRY(write_map(folder, &scenes[i], i == 1 ? 0 : x, y, err)); /* b is far from its road */
    }
    if (good) return BJ_OK;
    char path[CASE_PATH];
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, ids[5], ids[5]);
    return bj_file_write(path, "{\"drivable_areas\":", 18, err); /* f: truncated */
}

static void fill_file(case_file *f, int good) {
    memset(f, 0, sizeof *f);
    case_row *r;
    /* Scenario a has three candidates: a drive with 30 of 60 points on the road, of which the last
     * is at the end of the road, and with one point 0.09 m beyond the end; a candidate that does
     * not move; and a candidate that stands 2 m to the side of it. */
    r = case_add(f, &scenes[0], 0.5, 0, 0);
    r->x[30] = scenes[0].x[CASE_LAST] + 30.09;
    case_row *stand = case_add(f, &scenes[0], 0.3, 0, 0),
             *beside = case_add(f, &scenes[0], 0.2, 0, 2);
    for (int k = 0; k < CASE_F; k++) stand->x[k] = beside->x[k] = scenes[0].x[CASE_LAST];
    case_add(f, &scenes[0], 1, 0, 0)->track = "AV"; /* another track is ignored */
    case_add(f, &scenes[1], 1, 0, 0);
    case_add(f, &scenes[2], 1, 0, 0);
    if (good) return;
    case_add(f, &scenes[3], 1, 0, 0)->track = "AV"; /* d: no rows for its focal track */
    case_add(f, &scenes[4], 0.4, 0, 0);             /* e: probabilities sum to .9 */
    case_add(f, &scenes[4], 0.5, 0, 0);
    case_add(f, &scenes[5], 1, 0, 0);
    case_add(f, &scenes[6], 1, 0, 0)->x_count = 59;
    case_add(f, &scenes[6], 0, 0, 0)->scenario = ID("8"); /* not in the folder */
}

static bj_status make(const char *folder, const char *file, int good, bj_error *err) {
    static case_file f;
    BJ_TRY(write_scenarios(folder, good, err));
    fill_file(&f, good);
    return case_write_file(file, &f, err);
}

/* --------------------------------------------------------------------------------------- checks */

static void check_first(const bj_submission_scene *s) {
    const bj_audit_scene *a = s->audit;
    CHECK(s->outcome == BJ_AUDITED && a && s->origin_inside && !s->message);
    if (!a) return;
    CHECK(!strcmp(s->scenario_id, ID("a")) && !strcmp(s->focal_id, "17"));
    CHECK(!strcmp(s->focal_type, "vehicle"));
    CHECK(a->K == 3 && a->inside[0] == 31 && a->inside[1] == 60 && a->inside[2] == 60);
    CHECK(a->component[0] == -1 && a->component[1] == 1 && a->component[2] == 2 && !a->contained);
    const double h = -0.6 * log(0.6) - 0.4 * log(0.4);
    CHECK_NEAR(a->value[BJ_AUDIT_POINT_MASS], 0.5 * 31 / 60 + 0.5, 1e-15);
    CHECK_NEAR(a->value[BJ_AUDIT_TRAJECTORY_MASS], 0.5, 1e-15);
    CHECK(a->value[BJ_AUDIT_UNIQUE_SUPPORT] == 2);
    CHECK_NEAR(a->value[BJ_AUDIT_ENTROPY_SUPPORT], exp(h), 1e-14);
    CHECK_NEAR(a->value[BJ_AUDIT_MASS_WEIGHTED_SUPPORT], 0.5 * exp(h), 1e-14);
    CHECK_NEAR(a->value[BJ_AUDIT_TRAJECTORY_DIVERSITY], 2 * 0.3 * 0.2 * 2, 1e-14);
    CHECK_NEAR(a->value[BJ_AUDIT_ENDPOINT_DIVERSITY], 2 * 0.3 * 0.2 * 2, 1e-14);
}

static void check_outcomes(const bj_submission_audit *audit) {
    /* Sorted by id, the scenarios are 9 a b c d e f. */
    static const bj_audit_outcome want[SCENES] = {
        BJ_AUDIT_MALFORMED, BJ_AUDITED,         BJ_AUDITED,         BJ_AUDIT_OTHER_TYPE,
        BJ_AUDIT_MISSING,   BJ_AUDIT_MALFORMED, BJ_AUDIT_UNREADABLE};
    const bj_submission_counts c = bj_submission_audit_count(audit);
    CHECK(c.total == SCENES && c.unknown == 1 && c.origins == 1 && c.empty == 1);
    CHECK(c.outcomes[BJ_AUDITED] == 2 && c.outcomes[BJ_AUDIT_MALFORMED] == 2);
    CHECK(c.outcomes[BJ_AUDIT_MISSING] == 1 && c.outcomes[BJ_AUDIT_UNREADABLE] == 1);
    CHECK(c.outcomes[BJ_AUDIT_OTHER_TYPE] == 1);
    for (int i = 0; i < SCENES; i++) {
        const bj_submission_scene s = bj_submission_audit_at(audit, i);
        CHECK_MSG(s.outcome == want[i], "%s is %s", s.scenario_id,
                  bj_audit_outcome_name(s.outcome));
        CHECK((s.audit != NULL) == (s.outcome == BJ_AUDITED));
        const int told = s.outcome == BJ_AUDIT_MALFORMED || s.outcome == BJ_AUDIT_UNREADABLE;
        CHECK((s.message != NULL) == told);
    }
    bj_submission_scene s = bj_submission_audit_at(audit, 0);
    if (s.message) CHECK_CONTAINS(s.message, "59 x and 60 y values, expected 60");
    s = bj_submission_audit_at(audit, 5);
    if (s.message) CHECK_CONTAINS(s.message, "sum to 0.9, expected 1");
    s = bj_submission_audit_at(audit, 6);
    if (s.message) CHECK_CONTAINS(s.message, "log_map_archive_" ID("f"));
    s = bj_submission_audit_at(audit, 1);
    check_first(&s);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) /* b counts as zero */
        CHECK_NEAR(bj_submission_audit_mean(audit, m), s.audit->value[m] / 2, 1e-15);
}

static int stop(void *context, int64_t done, int64_t total) {
    (void)context, (void)done, (void)total;
    return 1;
}

static void test_whole(const char *folder, const char *file) {
    bj_error err = {0};
    bj_submission *submission = NULL;
    bj_submission_audit *audit = NULL;
    const long live = bj_alloc_live();
    CHECK_OK(bj_submission_open(&submission, file, &err), err);
    for (int threads = 1; threads <= 3; threads += 2) {
        const bj_audit_options options = {.threads = threads};
        CHECK_OK(bj_submission_audit_create(&audit, submission, folder, &options, &err), err);
        if (audit) check_outcomes(audit);
        bj_submission_audit_free(audit);
        audit = NULL;
    }
    const bj_audit_options stopping = {.threads = 1, .progress = stop};
    CHECK(bj_submission_audit_create(&audit, submission, folder, &stopping, &err) == BJ_ELOCKED);
    CHECK(!audit);
    CHECK(bj_submission_audit_create(&audit, submission, "/nowhere", NULL, &err) == BJ_EIO);
    CHECK(bj_submission_audit_create(&audit, NULL, folder, NULL, &err) == BJ_EARG);
    bj_submission_free(submission);
    bj_submission_audit_free(NULL);
    CHECK(bj_alloc_live() == live);
}

/* Tests that after a failed allocation, either the audit fails or the affected scene is reported as
 * unreadable. */
static void test_memory(const char *folder, const char *file) {
    const bj_audit_options options = {.threads = 1};
    const long live = bj_alloc_live();
    bj_error err = {0};
    bj_submission *submission = NULL;
    CHECK_OK(bj_submission_open(&submission, file, &err), err);
    const long open = bj_alloc_live();
    int good = 0;
    for (long steps = 0; good < 1 && steps < 10000; steps++) {
        bj_submission_audit *audit = NULL;
        bj_alloc_fail_after(steps);
        const bj_status status =
            bj_submission_audit_create(&audit, submission, folder, &options, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%s", err.message);
        good += audit && bj_submission_audit_count(audit).outcomes[BJ_AUDIT_UNREADABLE] == 1;
        bj_submission_audit_free(audit);
        CHECK(bj_alloc_live() == open);
    }
    CHECK(good == 1);
    bj_submission_free(submission);
    CHECK(bj_alloc_live() == live);
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc >= 4 && !strcmp(argv[1], "make")) {
        const bj_status status = make(argv[2], argv[3], argc > 4, &err);
        if (status != BJ_OK) fprintf(stderr, "%s\n", err.message);
        return status != BJ_OK;
    }
    char root[] = "/tmp/test_audit_submission.XXXXXX", folder[64], file[64], command[128];
    if (!mkdtemp(root)) return 1;
    snprintf(folder, sizeof folder, "%s/av2", root);
    snprintf(file, sizeof file, "%s/submission.parquet", root);
    CHECK_OK(make(folder, file, 0, &err), err);
    if (!test_failed) {
        test_whole(folder, file);
        test_memory(folder, file);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK(system(command) == 0);
    return test_report("audit_submission");
}
