/* test_exam_submission.c - tests that a submission file gets the same values as the model whose
 * forecasts it contains.
 *
 * The data source is a cache, a folder or only the law file. Invalid files must be rejected.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>
#include <unistd.h>

#include "core/alloc.h"
#include "eval/score_case.h"
#include "truth_case.h"

enum { SCENES = 70, SAMPLES = 16, K = 3 };

static char folder[] = "/tmp/test_exam_submission.XXXXXX";
static char cache_path[64], law_path[96], world_path[64], path[64];
static bj_cache *cache;
static bj_law *law;
static bj_error err;

static const bj_exam_options how = {.samples = SAMPLES, .seed = 3, .best_scenes = 2, .threads = 2};

/* Opens an exam for submissions; `data` may be NULL. */
static bj_exam *open_exam(bj_truth **truth, const char *data) {
    bj_exam *exam = NULL;
    *truth = NULL;
    if (data) CHECK_OK(bj_truth_open(truth, data, NULL, &err), err);
    CHECK_OK(bj_exam_create_submissions(&exam, *truth, law, &how, &err), err);
    return exam;
}

static bj_status measure_file(bj_exam_report *report, const char *file, const char *data,
                              int max_modes) {
    bj_truth *truth;
    bj_submission *submission = NULL;
    bj_exam *exam = open_exam(&truth, data);
    bj_status status = bj_submission_open(&submission, file, &err);
    if (status == BJ_OK) status = bj_exam_submission(report, exam, submission, max_modes, &err);
    bj_submission_free(submission);
    bj_exam_free(exam);
    bj_truth_free(truth);
    return status;
}

static void check_same(const bj_exam_report *a, const bj_exam_report *b, int realized) {
    const double pairs[][2] = {{a->atoms, b->atoms},
                               {a->discrepancy.mean, b->discrepancy.mean},
                               {a->discrepancy.error, b->discrepancy.error},
                               {a->discrepancy_spread, b->discrepancy_spread},
                               {a->floor.mean, b->floor.mean},
                               {a->expected_es.mean, b->expected_es.mean},
                               {a->best.mean, b->best.mean},
                               {a->best_own.mean, b->best_own.mean},
                               {a->recall, b->recall},
                               {a->recall_mass, b->recall_mass},
                               {a->mass_error, b->mass_error},
                               {a->unexplained, b->unexplained},
                               {a->maneuver_error, b->maneuver_error},
                               {a->brier_excess, b->brier_excess},
                               {a->calibration_error, b->calibration_error}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        CHECK_MSG(fabs(pairs[i][0] - pairs[i][1]) <= 1e-9, "number %zu: %.17g and %.17g", i,
                  pairs[i][0], pairs[i][1]);
    CHECK(a->identity && b->identity && b->scenes == SCENES);
    CHECK(b->realized == (realized ? SCENES : 0));
    if (realized) CHECK_NEAR(b->realized_es.mean, a->realized_es.mean, 2e-6);
}

static void test_model(void) {
    bj_arch arch = bj_cache_arch(cache);
    bj_model *model = NULL;
    bj_exam *exam = NULL;
    bj_exam_report direct, report;
    int64_t scenes;
    arch.embed = 16, arch.heads = 2, arch.token_hidden = 8, arch.latent = 16;
    arch.proj_hidden = 8, arch.atoms = K, arch.atom_hidden = 8, arch.router_hidden = 8;
    arch.decoder_hidden = 8;
    CHECK_OK(bj_model_create(&model, &arch, 1, &err), err);
    CHECK_OK(bj_exam_create(&exam, cache, law, &how, &err), err);
    CHECK_OK(bj_exam_model(&direct, exam, model, &err), err);
    CHECK_OK(bj_submit(&scenes, path, model, cache, NULL, &err), err);
    CHECK(scenes == SCENES && direct.discrepancy.mean > 1);
    CHECK_OK(measure_file(&report, path, cache_path, 0), err);
    check_same(&direct, &report, 1);
    CHECK_NEAR(report.realized_es.mean, direct.realized_es.mean, 1e-9);
    CHECK_OK(measure_file(&report, path, world_path, 0), err);
    check_same(&direct, &report, 1);
    CHECK_OK(measure_file(&report, path, NULL, 0), err);
    check_same(&direct, &report, 0);
    CHECK(measure_file(&report, path, NULL, K - 1) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "has 3 modes, expected at most 2");
    bj_exam_free(exam);

    bj_truth *truth;
    exam = open_exam(&truth, world_path);
    CHECK(bj_exam_model(&report, exam, model, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "a model needs a cache");
    bj_exam_free(exam);
    bj_truth_free(truth);
    bj_model_free(model);
}

/* Tests that the constant-velocity baseline has the same values as the submission of the
 * corresponding rule, for any kind of data. */
static void test_velocity(void) {
    bj_exam_report baseline, report;
    bj_truth *truth;
    CHECK_OK(bj_rule_submit(NULL, path, BJ_RULE_VELOCITY, world_path, NULL, &err), err);
    bj_exam *exam = open_exam(&truth, world_path);
    CHECK_OK(bj_exam_baseline(&baseline, exam, BJ_BASELINE_VELOCITY, 6, &err), err);
    CHECK_OK(measure_file(&report, path, world_path, 0), err);
    CHECK_NEAR(report.discrepancy.mean, baseline.discrepancy.mean, 1e-5); /* velocities have single
                                                                             precision */
    bj_exam_free(exam);
    bj_truth_free(truth);
    CHECK_OK(bj_exam_create(&exam, cache, law, &how, &err), err);
    CHECK_OK(bj_exam_baseline(&baseline, exam, BJ_BASELINE_VELOCITY, 6, &err), err);
    check_same(&baseline, &report, 1);
    bj_exam_free(exam);
    exam = open_exam(&truth, NULL);
    CHECK(bj_exam_baseline(&report, exam, BJ_BASELINE_VELOCITY, 6, &err) == BJ_EARG);
    CHECK_OK(bj_exam_baseline(&report, exam, BJ_BASELINE_MODES, 6, &err), err);
    CHECK(report.scenes == SCENES && report.unexplained == 0);
    bj_exam_free(exam);
}

/* -------------------------------------------------------------------------------- modes by hand */

/* Writes the true modes of scenes `first` to `end` - 1, at most `most` modes per scene. */
static void write_modes(int most, int64_t first, int64_t end) {
    bj_submission_writer *writer = NULL;
    CHECK_OK(bj_submission_writer_create(&writer, path, &err), err);
    for (int64_t i = first; i < end && writer; i++) {
        const bj_law_scene s = bj_law_at(law, i);
        const int modes = s.modes < most ? s.modes : most;
        double sum = 0, p[CASE_MODES], y[CASE_MODES * ROW], city[CASE_MODES * ROW];
        for (int m = 0; m < modes; m++) sum += s.weights[m];
        for (int m = 0; m < modes; m++) p[m] = s.weights[m] / sum;
        for (int n = 0; n < modes * ROW; n++) y[n] = (double)s.means[n];
        bj_to_city(city, y, modes * 60, s.origin, s.heading);
        const char *focal = bj_cache_info(cache, i).focal_id;
        CHECK_OK(bj_submission_writer_add(writer, s.scenario_id, focal, modes, p, city, &err), err);
    }
    CHECK_OK(bj_submission_writer_commit(&writer, &err), err);
}

/* Tests that scenes may have different numbers of modes. */
static void test_modes(void) {
    bj_exam *exam = NULL;
    bj_exam_report modes, report;
    CHECK_OK(bj_exam_create(&exam, cache, law, &how, &err), err);
    CHECK_OK(bj_exam_baseline(&modes, exam, BJ_BASELINE_MODES, 4, &err), err);
    write_modes(4, 0, SCENES);
    CHECK_OK(measure_file(&report, path, cache_path, 0), err);
    check_same(&modes, &report, 1);
    CHECK(report.atoms == 4 && report.unexplained < 1e-12);
    bj_exam_free(exam);
}

static void test_missing(void) {
    bj_exam_report report;
    const char *const data[] = {cache_path, world_path, NULL};
    const char *const last = bj_law_at(law, SCENES - 1).scenario_id;
    write_modes(2, 0, SCENES - 1);
    for (int i = 0; i < 3; i++) {
        CHECK(measure_file(&report, path, data[i], 0) == BJ_EMISMATCH);
        CHECK_CONTAINS(err.message, last);
        CHECK_CONTAINS(err.message, "is not in the file");
        CHECK_CONTAINS(err.message, path);
    }
}

/* ----------------------------------------------------------------------------------- rejections */

/* A law file and a cache with three scenes, and a valid submission for them. */
static bj_cache *small_cache;
static char small_path[64], small_law[96];

static case_file *small_file(void) {
    static case_file file;
    file.rows = 0;
    for (int i = 0; i < 3; i++) {
        const bj_scene_info info = bj_cache_info(small_cache, i);
        case_row *r = &file.row[file.rows++];
        *r = (case_row){info.scenario_id, info.focal_id, 1, CASE_F, CASE_F, {0}, {0}};
        for (int t = 0; t < CASE_F; t++) r->x[t] = info.origin[0], r->y[t] = info.origin[1];
    }
    return &file;
}

static void check_rejected(const case_file *file, const char *data, const char *text) {
    bj_law *const other = law;
    bj_exam_report report;
    CHECK_OK(case_write_file(path, file, &err), err);
    CHECK_OK(bj_law_open(&law, small_law, &err), err);
    CHECK(measure_file(&report, path, data, 0) == (*text ? BJ_EMISMATCH : BJ_OK));
    CHECK_MSG(!*text || strstr(err.message, text), "\"%s\" does not contain \"%s\"", err.message,
              text);
    bj_law_free(law);
    law = other;
}

static void test_rejections(void) {
    const char *const second = bj_cache_info(small_cache, 1).scenario_id;
    char expected[160];
    for (int with_data = 0; with_data < 2; with_data++) {
        const char *const data = with_data ? small_path : NULL;
        check_rejected(small_file(), data, "");

        case_file *f = small_file();
        f->row[1].p = .9;
        snprintf(expected, sizeof expected, "row 1, %s: probabilities of the 1 modes", second);
        check_rejected(f, data, expected);
        f->row[1].p = 1 - 4e-6; /* within the tolerance of the official reader */
        check_rejected(f, data, "");

        f = small_file();
        f->row[1].x_count = f->row[1].y_count = 59;
        snprintf(expected, sizeof expected, "row 1, %s: trajectory has 59 x and 59 y", second);
        check_rejected(f, data, expected);
        f->row[1].x_count = f->row[1].y_count = 61;
        check_rejected(f, data, "trajectory has 61 x and 61 y values, expected 60");

        f = small_file();
        f->row[2].y[5] = NAN;
        check_rejected(f, data, "y of point 5 is nan");
        f = small_file();
        f->row[2].scenario = "elsewhere";
        check_rejected(f, data,
                       with_data ? "the ground truth contains no such scenario" : "is not in the file");
        f = small_file();
        f->row[f->rows] = f->row[0];
        f->row[f->rows++].scenario = "elsewhere";
        check_rejected(f, data,
                       with_data ? "the ground truth contains no such scenario" : "elsewhere is not in");
        f = small_file();
        f->row[f->rows] = f->row[0];
        f->row[f->rows++].track = "another";
        check_rejected(f, data,
                       with_data ? "track 'another' (1 rows) is not the focal track"
                                 : "has 2 tracks, expected 1");
    }
    case_file *f = small_file(); /* the focal track is unknown without data */
    f->row[0].track = "another";
    check_rejected(f, small_path, "is not the focal track");
    check_rejected(f, NULL, "");
}

static void test_arguments(void) {
    bj_exam *exam = NULL;
    bj_exam_report report;
    CHECK(bj_exam_create_submissions(NULL, NULL, law, NULL, &err) == BJ_EARG);
    CHECK(bj_exam_create_submissions(&exam, NULL, NULL, NULL, &err) == BJ_EARG && !exam);
    CHECK(bj_exam_submission(&report, NULL, NULL, 0, &err) == BJ_EARG);
    bj_truth *truth = NULL; /* 70 scenes that the law file of three scenes does not contain */
    bj_law *other = NULL;
    CHECK_OK(bj_truth_open(&truth, world_path, NULL, &err), err);
    CHECK_OK(bj_law_open(&other, small_law, &err), err);
    CHECK(bj_exam_create_submissions(&exam, truth, other, NULL, &err) == BJ_EFORMAT && !exam);
    CHECK_CONTAINS(err.message, "scenes) is not in the distribution file");
    bj_law_free(other);
    bj_truth_free(truth);
}

/* Tests that an exam fails if a scenario file cannot be read. */
static void test_unreadable(void) {
    char file[256];
    bj_truth *truth = NULL;
    bj_exam *exam = NULL;
    const char *id = bj_law_at(law, 5).scenario_id;
    snprintf(file, sizeof file, "%s/%s/scenario_%s.parquet", world_path, id, id);
    CHECK(truncate(file, 1000) == 0);
    CHECK_OK(bj_truth_open(&truth, world_path, NULL, &err), err);
    CHECK(bj_exam_create_submissions(&exam, truth, law, NULL, &err) == BJ_EFORMAT && !exam);
    snprintf(file, sizeof file, "scenario_%s.parquet", id);
    CHECK_CONTAINS(err.message, file);
    bj_truth_free(truth);
}

static void test_memory(void) {
    const long live = bj_alloc_live();
    const bj_exam_options o = {.samples = 16, .threads = 1};
    bj_truth *truth = NULL;
    bj_submission *submission = NULL;
    bj_law *other = NULL;
    int failures = 0;
    CHECK_OK(case_write_file(path, small_file(), &err), err);
    CHECK_OK(bj_law_open(&other, small_law, &err), err);
    CHECK_OK(bj_truth_open(&truth, small_path, NULL, &err), err);
    CHECK_OK(bj_submission_open(&submission, path, &err), err);
    const long opened = bj_alloc_live();
    for (long n = 0; n < 1000; n++) {
        bj_exam *exam = NULL;
        bj_exam_report report;
        bj_alloc_fail_after(n);
        bj_status status = bj_exam_create_submissions(&exam, truth, other, &o, &err);
        if (status == BJ_OK) status = bj_exam_submission(&report, exam, submission, 0, &err);
        bj_alloc_fail_after(-1);
        bj_exam_free(exam);
        CHECK(bj_alloc_live() == opened);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM);
        failures++;
    }
    CHECK_MSG(failures >= 8 && failures < 100, "%d", failures);
    bj_submission_free(submission);
    bj_truth_free(truth);
    bj_law_free(other);
    CHECK(bj_alloc_live() == live);
}

int main(void) {
    bj_world_report made;
    bj_world_options world = {.seed = 5, .split = "val", .scenes = SCENES, .jobs = 1};
    if (!mkdtemp(folder)) return 1;
    snprintf(cache_path, sizeof cache_path, "%s/val.bjc", folder);
    snprintf(law_path, sizeof law_path, "%s.law.safetensors", cache_path);
    snprintf(world_path, sizeof world_path, "%s/val", folder);
    snprintf(path, sizeof path, "%s/submission.parquet", folder);
    snprintf(small_path, sizeof small_path, "%s/small.bjc", folder);
    snprintf(small_law, sizeof small_law, "%s.law.safetensors", small_path);
    CHECK_OK(bj_world_to_cache(&made, cache_path, &world, &err), err);
    CHECK_OK(bj_world_to_folders(&made, world_path, &world, &err), err);
    world.scenes = 3;
    CHECK_OK(bj_world_to_cache(&made, small_path, &world, &err), err);
    CHECK_OK(bj_cache_open(&cache, cache_path, 0, &err), err);
    CHECK_OK(bj_cache_open(&small_cache, small_path, 0, &err), err);
    CHECK_OK(bj_law_open(&law, law_path, &err), err);
    if (cache && small_cache && law) {
        test_model();
        test_velocity();
        test_modes();
        test_missing();
        test_rejections();
        test_arguments();
        test_memory();
        test_unreadable();
    }
    bj_law_free(law);
    bj_cache_free(small_cache);
    bj_cache_free(cache);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return test_report("exam_submission");
}
