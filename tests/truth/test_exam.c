/* test_exam.c - tests exams on a small simulated world.
 *
 * Covers baselines, models, custom forecasters, invalid arguments, damaged files, failed
 * allocations and the identity check. The results must not depend on the number of threads.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "truth/exam_sum.h"
#include "truth_case.h"

enum { SCENES = 150, SAMPLES = 16 };

static char folder[] = "/tmp/test_exam.XXXXXX", cache_path[64], law_path[96], other_path[64];
static bj_cache *cache;
static bj_law *law;
static bj_error err;

static void make_world(const char *path, int64_t scenes, const char *split) {
    bj_world_report report;
    const bj_world_options options = {.seed = 5, .split = split, .scenes = scenes, .jobs = 1};
    CHECK_OK(bj_world_to_cache(&report, path, &options, &err), err);
}

static bj_exam *open_exam(bj_exam_options options) {
    bj_exam *exam = NULL;
    if (!options.samples) options.samples = SAMPLES;
    CHECK_OK(bj_exam_create(&exam, cache, law, &options, &err), err);
    return exam;
}

/* Lists all numbers of a report. */
enum { NUMBERS = 30 + 3 * BJ_EXAM_BINS };
static void list_numbers(double out[NUMBERS], const bj_exam_report *r) {
    const double numbers[30] = {(double)r->scenes,
                                r->atoms,
                                r->discrepancy.mean,
                                r->discrepancy.error,
                                r->discrepancy_spread,
                                r->floor.mean,
                                r->floor.error,
                                r->expected_es.mean,
                                r->expected_es.error,
                                r->difference.mean,
                                r->difference.error,
                                r->tolerated,
                                r->identity,
                                (double)r->realized,
                                r->realized_es.mean,
                                r->realized_es.error,
                                r->surprise,
                                (double)r->best_scenes,
                                r->best.mean,
                                r->best.error,
                                r->best_own.mean,
                                (double)r->modes,
                                r->recall,
                                r->recall_mass,
                                r->mass_error,
                                r->unexplained,
                                r->maneuver_error,
                                r->brier_excess,
                                r->brier_floor,
                                r->calibration_error};
    memset(out, 0, NUMBERS * sizeof *out);
    memcpy(out, numbers, sizeof numbers);
    for (int i = 18; i < 21 && !r->best_scenes; i++) out[i] = 0; /* NaN */
    for (int b = 0; b < BJ_EXAM_BINS; b++) {
        out[30 + 3 * b] = (double)r->bins[b].count;
        if (!r->bins[b].count) continue; /* NaN */
        out[31 + 3 * b] = r->bins[b].predicted;
        out[32 + 3 * b] = r->bins[b].actual;
    }
}

static int same_reports(const bj_exam_report *a, const bj_exam_report *b, double tolerance) {
    double x[NUMBERS], y[NUMBERS];
    list_numbers(x, a);
    list_numbers(y, b);
    for (int i = 0; i < NUMBERS; i++)
        if (!(fabs(x[i] - y[i]) <= tolerance)) {
            fprintf(stderr, "number %d: %.17g and %.17g\n", i, x[i], y[i]);
            return 0;
        }
    return 1;
}

/* --------------------------------------------------------------------------------- forecasters */

/* Predicts constant velocity from the last position, on two branches. */
static bj_status go_on(void *context, double *weights, double *trajectories, int64_t first,
                       int count, bj_error *e) {
    int64_t *next = context;
    (void)e;
    CHECK(first == *next && count > 0);
    *next += count;
    for (int b = 0; b < count; b++) {
        const float *last = bj_cache_floats(cache, first + b).focal + 49 * 7;
        for (int k = 0; k < 2; k++) {
            weights[2 * b + k] = k ? .75 : .25;
            for (int t = 0; t < 60; t++)
                for (int i = 0; i < 2; i++)
                    trajectories[(2 * b + k) * ROW + 2 * t + i] =
                        (double)last[i] + .1 * (t + 1) * (double)last[2 + i];
        }
    }
    return BJ_OK;
}

/* Predicts all modes of the law. */
static bj_status tell_the_truth(void *context, double *weights, double *trajectories, int64_t first,
                                int count, bj_error *e) {
    (void)context, (void)e;
    memset(weights, 0, (size_t)count * 8 * sizeof *weights);
    memset(trajectories, 0, (size_t)count * 8 * ROW * sizeof *trajectories);
    for (int b = 0; b < count; b++) {
        const int64_t at = bj_law_find(law, bj_cache_info(cache, first + b).scenario_id);
        const bj_law_scene s = bj_law_at(law, at);
        for (int m = 0; m < s.modes; m++) {
            weights[8 * b + m] = s.weights[m];
            for (int i = 0; i < ROW; i++)
                trajectories[(8 * b + m) * ROW + i] = (double)s.means[m * ROW + i];
        }
    }
    return BJ_OK;
}

/* A model that predicts one scene at a time. */
typedef struct one_by_one {
    bj_loader *loader;
    bj_predictor *predictor;
} one_by_one;

static bj_status predict_each(void *context, double *weights, double *trajectories, int64_t first,
                              int count, bj_error *e) {
    const one_by_one *m = context;
    bj_real p[3], y[3 * ROW];
    for (int b = 0; b < count; b++) {
        const bj_batch *batch;
        const int64_t *number;
        BJ_TRY(bj_loader_batch(&batch, &number, m->loader, 0, first + b, e));
        CHECK(*number == first + b);
        BJ_TRY(bj_predict(m->predictor, batch, p, y, NULL, e));
        for (int i = 0; i < 3; i++) weights[3 * b + i] = (double)p[i];
        for (int i = 0; i < 3 * ROW; i++) trajectories[3 * b * ROW + i] = (double)y[i];
    }
    return BJ_OK;
}

/* A forecaster that predicts a straight branch, with an invalid value in one scene. */
typedef struct spoiled {
    int64_t scene;
    double weight, x;
} spoiled;

static bj_status spoil(void *context, double *weights, double *trajectories, int64_t first,
                       int count, bj_error *e) {
    const spoiled *s = context;
    for (int b = 0; b < count; b++) {
        const int here = first + b == s->scene;
        weights[b] = here ? s->weight : 1;
        for (int i = 0; i < ROW; i++) trajectories[b * ROW + i] = i % 2 ? 0 : i;
        if (here) trajectories[b * ROW + 7] = s->x;
    }
    if (s->scene == -2) return bj_fail(e, BJ_EIO, "no forecasts today");
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- tests */

static void test_baselines(void) {
    bj_exam *exam = open_exam((bj_exam_options){.seed = 3, .best_scenes = 3, .threads = 1});
    bj_exam_report velocity, modes, two, truth;
    int64_t next = 0;
    CHECK(bj_exam_scenes(exam) == SCENES && bj_exam_samples(exam) == SAMPLES);
    CHECK_OK(bj_exam_baseline(&velocity, exam, BJ_BASELINE_VELOCITY, 6, &err), err);
    CHECK_OK(bj_exam_baseline(&modes, exam, BJ_BASELINE_MODES, 8, &err), err);
    CHECK_OK(bj_exam_run(&truth, exam, 8, tell_the_truth, NULL, &err), err);
    CHECK_OK(bj_exam_run(&two, exam, 2, go_on, &next, &err), err);
    CHECK(next == SCENES && velocity.scenes == SCENES && velocity.realized == SCENES);
    CHECK(velocity.atoms == 1 && modes.atoms == 8 && two.atoms == 2);
    CHECK(same_reports(&modes, &truth, 1e-9));
    /* Splitting the forecast into two equal branches must not change its values. */
    CHECK_NEAR(two.discrepancy.mean, velocity.discrepancy.mean, 1e-9);
    CHECK_NEAR(two.realized_es.mean, velocity.realized_es.mean, 1e-9);
    CHECK_NEAR(two.recall, velocity.recall, 0);
    CHECK_NEAR(two.brier_excess, velocity.brier_excess, 1e-9);
    /* Check the forecast that consists of the means of the law's modes. */
    CHECK(modes.recall > .95 && modes.unexplained == 0 && modes.mass_error < 1e-9);
    CHECK(modes.discrepancy.mean < velocity.discrepancy.mean / 4);
    CHECK(modes.maneuver_error < .05 && velocity.maneuver_error > modes.maneuver_error);
    CHECK_NEAR(modes.floor.mean, velocity.floor.mean, 0); /* the same draws */
    CHECK_NEAR(modes.brier_floor, velocity.brier_floor, 0);
    const bj_exam_report *all[] = {&velocity, &modes, &two};
    for (int i = 0; i < 3; i++) {
        const bj_exam_report *r = all[i];
        CHECK(r->identity && r->difference.error > 0 && r->discrepancy.error > 0);
        CHECK_NEAR(r->difference.mean,
                   r->expected_es.mean - r->discrepancy.mean / 2 - r->floor.mean, 1e-9);
        CHECK_NEAR(r->tolerated, 5, .7);
        CHECK(fabs(r->surprise) < 5); /* the cache's futures are draws from the law */
        CHECK_NEAR(r->realized_es.mean, r->expected_es.mean, 6 * r->realized_es.error);
        CHECK(r->best_scenes == 3 && r->best.mean > -3 * r->best.error);
        CHECK(r->best.mean < r->best_own.mean + 3 * r->best.error);
        CHECK_NEAR(r->capacity + r->learning, 1, 1e-12);
        CHECK_NEAR(r->capacity, r->best.mean / r->best_own.mean, 1e-12);
        int64_t count = 0;
        double predicted = 0, actual = 0;
        for (int b = 0; b < BJ_EXAM_BINS; b++) {
            const bj_exam_bin *bin = &r->bins[b];
            count += bin->count;
            if (!bin->count) continue;
            CHECK(bin->predicted >= b / 10. - 1e-9 && bin->predicted <= (b + 1) / 10. + 1e-9);
            predicted += (double)bin->count * bin->predicted;
            actual += (double)bin->count * bin->actual;
        }
        CHECK(count == 4 * SCENES);
        CHECK_NEAR(predicted, SCENES, 1e-6); /* probabilities of a scene sum to one */
        CHECK_NEAR(actual, SCENES, 1e-6);
    }
    CHECK_NEAR(velocity.bins[0].predicted, 0, 0);
    CHECK_NEAR(velocity.calibration_error,
               ((double)velocity.bins[0].count * velocity.bins[0].actual +
                (double)velocity.bins[9].count * (1 - velocity.bins[9].actual)) /
                   (4 * SCENES),
               1e-9);
    bj_exam_free(exam);
}

static void test_model(void) {
    bj_arch arch = bj_cache_arch(cache);
    bj_model *model = NULL;
    bj_exam_report report, again;
    arch.embed = 16, arch.heads = 2, arch.token_hidden = 8, arch.latent = 16;
    arch.proj_hidden = 8, arch.atoms = 3, arch.atom_hidden = 8, arch.router_hidden = 8;
    arch.decoder_hidden = 8;
    CHECK_OK(bj_model_create(&model, &arch, 1, &err), err);
    bj_exam *exam = open_exam((bj_exam_options){.limit = 70, .threads = 2});
    CHECK_OK(bj_exam_model(&report, exam, model, &err), err);
    CHECK(report.scenes == 70 && report.atoms == 3 && report.identity);
    CHECK(report.discrepancy.mean > 1 && report.best_scenes == 0 && isnan(report.best.mean));
    CHECK(fabs(report.surprise) < 5);
    one_by_one each = {0};
    const bj_loader_options order = {.batch = 1};
    const bj_predictor_options how = {.max_batch = 1, .threads = 1};
    CHECK_OK(bj_loader_create(&each.loader, cache, &order, &err), err);
    CHECK_OK(bj_predictor_create(&each.predictor, model, &how, &err), err);
    CHECK_OK(bj_exam_run(&again, exam, 3, predict_each, &each, &err), err);
    CHECK_NEAR(again.discrepancy.mean, report.discrepancy.mean, 1e-6);
    CHECK_NEAR(again.realized_es.mean, report.realized_es.mean, 1e-6);
    bj_loader_free(each.loader);
    bj_predictor_free(each.predictor);
    bj_model_free(model);
    arch.obs = 20;
    CHECK_OK(bj_model_create(&model, &arch, 1, &err), err);
    CHECK(bj_exam_model(&report, exam, model, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "the model has 20 observed steps, but the scenes have 50");
    bj_model_free(model);
    bj_exam_free(exam);
}

static void test_threads(void) {
    bj_exam_report reports[3];
    for (int i = 0; i < 3; i++) {
        const bj_exam_options o = {
            .limit = 70, .samples = 16, .seed = 3, .best_scenes = 2, .threads = 1 + i};
        bj_exam *exam = open_exam(o);
        CHECK_OK(bj_exam_baseline(&reports[i], exam, BJ_BASELINE_MODES, 3, &err), err);
        bj_exam_free(exam);
    }
    CHECK(same_reports(&reports[0], &reports[1], 0));
    CHECK(same_reports(&reports[0], &reports[2], 0));
    bj_exam *exam = open_exam((bj_exam_options){.limit = 70, .samples = 16, .seed = 4});
    CHECK_OK(bj_exam_baseline(&reports[1], exam, BJ_BASELINE_MODES, 3, &err), err);
    CHECK(reports[0].discrepancy.mean != reports[1].discrepancy.mean); /* because the seeds
                                                                          differ */
    CHECK_NEAR(reports[0].discrepancy.mean, reports[1].discrepancy.mean,
               5 * hypot(reports[0].discrepancy.error, reports[1].discrepancy.error));
    bj_exam_free(exam);
}

/* Tests that the best atoms are computed for scenes 0, 14, ... of 70 and measured like any other
 * forecast. */
static void test_best_scenes(void) {
    enum { N = 5, K = 2 };
    const bj_exam_options o = {
        .limit = 70, .samples = 16, .seed = 3, .best_scenes = N, .threads = 1};
    bj_exam *exam = open_exam(o);
    bj_exam_report report;
    bj_exam_scene measured;
    double p[K], y[K * ROW], own = 0, best = 0;
    const bj_exam_forecast forecast = {K, p, y};
    double *work = calloc(bj_exam_best_work(8, K), sizeof *work); /* more than needed for 16
                                                                     samples */
    CHECK_OK(bj_exam_baseline(&report, exam, BJ_BASELINE_MODES, K, &err), err);
    for (int i = 0; i < N && work; i++) {
        const bj_law_scene s = bj_law_at(law, 70 / N * i);
        bj_exam_truncate(p, y, K, &s);
        bj_exam_measure(&measured, &s, &forecast, 16, 3, work);
        own += measured.discrepancy.mean / N;
        bj_exam_best(p, y, K, &s, 3, work);
        bj_exam_measure(&measured, &s, &forecast, 16, 3, work);
        best += measured.discrepancy.mean / N;
    }
    free(work);
    CHECK(report.best_scenes == N);
    CHECK_NEAR(report.best_own.mean, own, 1e-9);
    CHECK_NEAR(report.best.mean, best, 1e-9);
    bj_exam_free(exam);
}

/* ------------------------------------------------------------------------------- rejected input */

static int stop_at_once(void *context, int64_t done, int64_t total) {
    (void)context;
    return done > 0 && done < total;
}

static void test_refusals(void) {
    bj_exam *exam = NULL;
    bj_exam_report report, straight;
    const int wrong[] = {12, 30, 4100, -4};
    for (int i = 0; i < 4; i++) {
        const bj_exam_options o = {.samples = wrong[i]};
        CHECK(bj_exam_create(&exam, cache, law, &o, &err) == BJ_EARG && !exam);
        CHECK_CONTAINS(err.message, "expected a multiple of 4 from 16 to 4096");
    }
    CHECK(bj_exam_create(&exam, cache, law, &(bj_exam_options){.limit = -1}, &err) == BJ_EARG);
    CHECK(bj_exam_create(&exam, cache, NULL, NULL, &err) == BJ_EARG);
    CHECK(bj_exam_create(&exam, NULL, law, NULL, NULL) == BJ_EARG);

    bj_cache *other = NULL;
    CHECK_OK(bj_cache_open(&other, other_path, 0, &err), err);
    CHECK(bj_exam_create(&exam, other, law, NULL, &err) == BJ_EFORMAT && !exam);
    CHECK_CONTAINS(err.message, "scenes) is not in the distribution file");
    CHECK_CONTAINS(err.message, "seed 5, split train");
    bj_cache_free(other);

    exam = open_exam((bj_exam_options){.samples = 16, .threads = 2});
    CHECK(bj_exam_run(&report, exam, 0, spoil, NULL, &err) == BJ_EARG);
    CHECK(bj_exam_run(&report, exam, BJ_MAX_ATOMS + 1, spoil, NULL, &err) == BJ_EARG);
    CHECK(bj_exam_run(&report, exam, 1, NULL, NULL, &err) == BJ_EARG);
    CHECK(bj_exam_baseline(&report, exam, BJ_BASELINES, 1, &err) == BJ_EARG);
    CHECK(!bj_baseline_name(BJ_BASELINES) && bj_baseline_name(BJ_BASELINE_MODES));
    const struct {
        spoiled s;
        bj_status status;
        const char *text;
    } cases[] = {{{-1, 1, 0}, BJ_OK, ""},
                 {{100, .9995, 0}, BJ_OK, ""},
                 {{100, .9, 0}, BJ_EARG, "sum to 0.9"},
                 {{100, -.5, 0}, BJ_EARG, "weight 0 of the forecast is -0.5"},
                 {{100, NAN, 0}, BJ_ENONFINITE, "weight 0 of the forecast is"},
                 {{100, 1, INFINITY}, BJ_ENONFINITE, "point 3 of branch 0 is inf"},
                 {{-2, 1, 0}, BJ_EIO, "no forecasts today"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spoiled s = cases[i].s;
        err.message[0] = '\0';
        CHECK(bj_exam_run(&report, exam, 1, spoil, &s, &err) == cases[i].status);
        if (i == 0) straight = report;
        if (i == 1) CHECK(same_reports(&straight, &report, 1e-9)); /* weights are renormalized */
        CHECK_CONTAINS(err.message, cases[i].text);
        if (s.scene == 100 && i != 1)
            CHECK_CONTAINS(err.message, bj_cache_info(cache, 100).scenario_id);
    }
    bj_exam_free(exam);
    exam = open_exam((bj_exam_options){.samples = 16, .progress = stop_at_once});
    CHECK(bj_exam_baseline(&report, exam, BJ_BASELINE_VELOCITY, 1, &err) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "stopped after 64 of 150 scenes");
    bj_exam_free(exam);
}

/* Tests that a changed byte in a mean is detected by the digest of its scene. */
static void test_damage(void) {
    char *text = NULL;
    size_t length = 0;
    bj_law *damaged = NULL;
    bj_exam *exam = NULL;
    bj_exam_report report;
    const bj_law_scene s = bj_law_at(law, 33);
    CHECK_OK(bj_file_read(&text, &length, law_path, 1 << 30, &err), err);
    char *at = NULL;
    for (size_t i = 0; i + ROW * sizeof(float) <= length && !at; i++)
        if (!memcmp(text + i, s.means, ROW * sizeof(float))) at = text + i;
    CHECK(at != NULL);
    if (at) at[40] ^= 1;
    FILE *file = fopen(other_path, "wb"); /* overwrites a file that is no longer needed */
    CHECK(file && fwrite(text, 1, length, file) == length && fclose(file) == 0);
    bj_free(text);
    CHECK_OK(bj_law_open(&damaged, other_path, &err), err);
    CHECK_OK(bj_exam_create(&exam, cache, damaged, &(bj_exam_options){.samples = 16}, &err), err);
    CHECK(bj_exam_baseline(&report, exam, BJ_BASELINE_VELOCITY, 1, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, s.scenario_id);
    CHECK_CONTAINS(err.message, "damaged");
    bj_exam_free(exam);
    bj_law_free(damaged);
}

static void test_memory(void) {
    const bj_exam_options o = {.samples = 16, .limit = 6, .best_scenes = 1, .threads = 1};
    const long live = bj_alloc_live();
    int failures = 0;
    for (long n = 0; n < 1000; n++) {
        bj_exam *exam = NULL;
        bj_exam_report report;
        bj_alloc_fail_after(n);
        bj_status status = bj_exam_create(&exam, cache, law, &o, &err);
        if (status == BJ_OK) status = bj_exam_baseline(&report, exam, BJ_BASELINE_MODES, 1, &err);
        bj_alloc_fail_after(-1);
        bj_exam_free(exam);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM);
        failures++;
    }
    CHECK_MSG(failures >= 7 && failures < 100, "%d", failures);
}

/* -------------------------------------------------------------------------------------- verdict */

/* Returns the report for one repeated scene whose identity is violated by `errors` standard errors
 * of the mean. */
static bj_exam_report verdict(int scenes, double errors) {
    bj_exam_sum sum;
    bj_exam_report report;
    bj_exam_result result = {.scene = {.modes = 1}};
    result.scene.predicted[BJ_STOP] = 1;
    result.scene.difference.variance = .04;
    result.scene.difference.mean = errors * .2 / sqrt(scenes);
    bj_exam_sum_start(&sum, 1, 16);
    for (int i = 0; i < scenes; i++) bj_exam_sum_add(&sum, &result);
    bj_exam_sum_report(&report, &sum);
    return report;
}

/* Tests the maneuver values. Squares use the product of two independent estimates of the true
 * probabilities. All other values use the mean of the two estimates. */
static void test_maneuvers(void) {
    bj_exam_sum sum;
    bj_exam_report r;
    const bj_exam_result result = {.scene = {.modes = 1,
                                             .predicted = {.1, .6, .3, 0},
                                             .actual = {{.2, .5, .3, 0}, {.3, .5, .2, 0}}}};
    bj_exam_sum_start(&sum, 1, 16);
    bj_exam_sum_add(&sum, &result);
    bj_exam_sum_add(&sum, &result);
    bj_exam_sum_report(&r, &sum);
    CHECK_NEAR(r.maneuver_error, (.15 + .1 + .05) / 2, 1e-12);
    CHECK_NEAR(r.brier_excess, .1 * .2 + .1 * .1 + 0 * .1, 1e-12);
    CHECK_NEAR(r.brier_floor, (.2 * .7 + .3 * .8) / 2 + .5 * .5 + (.3 * .8 + .2 * .7) / 2, 1e-12);
    CHECK_NEAR(r.calibration_error, (.15 + .1 + .05) / 4, 1e-12);
    CHECK(r.bins[0].count == 2 && r.bins[1].count == 2 && r.bins[6].count == 2);
    CHECK_NEAR(r.bins[1].actual, .25, 1e-12);
}

static void test_verdict(void) {
    bj_exam_report r = verdict(10000, 4.9);
    CHECK(r.identity);
    CHECK_NEAR(r.difference.error, .002, 1e-9);
    CHECK_NEAR(r.tolerated, 5, .01);
    CHECK(!verdict(10000, 5.1).identity && !verdict(10000, -5.1).identity);
    /* With 15 degrees of freedom, the t quantile at 1 - 2.8665e-7 is 8.32. */
    r = verdict(1, 8);
    CHECK_NEAR(r.tolerated, 8.32, .1);
    CHECK(r.identity && !verdict(1, 9).identity);
    CHECK(isnan(r.realized_es.mean) && isnan(r.surprise) && r.realized == 0);
    CHECK(isnan(r.discrepancy_spread) && r.bins[9].count == 1 && r.bins[0].count == 3);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(cache_path, sizeof cache_path, "%s/world.bjc", folder);
    snprintf(law_path, sizeof law_path, "%s.law.safetensors", cache_path);
    snprintf(other_path, sizeof other_path, "%s/other.bjc", folder);
    make_world(cache_path, SCENES, NULL);
    make_world(other_path, 3, "val");
    CHECK_OK(bj_cache_open(&cache, cache_path, 0, &err), err);
    CHECK_OK(bj_law_open(&law, law_path, &err), err);
    if (cache && law) {
        test_baselines();
        test_model();
        test_threads();
        test_best_scenes();
        test_refusals();
        test_damage();
        test_memory();
        test_maneuvers();
        test_verdict();
    }
    bj_law_free(law);
    bj_cache_free(cache);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return test_report("exam");
}
