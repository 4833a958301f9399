/* test_score.c - tests the checks and scores of submissions, with expected values calculated by
 * hand.
 *
 * Without arguments, runs the tests. With arguments, for
 * tests/cli/score.sh and tests/eval/peer_score.py:
 *   scenarios DIR        writes the scenarios of `world` to DIR
 *   submission PATH WHAT writes a submission for them: "good", or the name of one flaw
 *   rewrite IN OUT       reads a submission and writes it with bj_submission_writer
 *   large DIR SCENES     writes a cache and a submission of SCENES synthetic scenes
 */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <math.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/cache_writer.h"
#include "score_case.h"
#include "support/test.h"

static char folder[] = "/tmp/test_score.XXXXXX";
static char truth_folder[CASE_PATH], path[CASE_PATH], cache_path[CASE_PATH];

/* ---------------------------------------------------------------------------------------- world */

enum { SCENES = 4 };
static const char *const ids[SCENES] = {
    "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b",
    "00000000-0000-4000-8000-00000000000c", "00000000-0000-4000-8000-00000000000d"};

static case_scenario world[SCENES];

/* Makes four scenes. Scene a is complete and drives north. Scene b is a cyclist with gaps. Scene c
 * turns left slowly, with a gap, in another city. Scene d has no future. */
static void make_world(void) {
    const double north = 1.5707963267948966;
    world[0] = case_drive(ids[0], 100, 200, north);
    world[1] = case_drive(ids[1], -3000.5, 77.25, 0);
    for (int t = 52; t <= 54; t++) world[1].present[t] = 0;
    for (int t = 106; t < CASE_STEPS; t++) world[1].present[t] = 0;
    world[1].type = "cyclist";
    world[1].focal = "b17";
    world[1].speed = 3;
    world[2] = case_drive(ids[2], 5, 6, -2.5);
    for (int t = CASE_LAST + 1; t < CASE_STEPS; t++) { /* drives sideways, to the left */
        world[2].x[t] = 5 - sin(-2.5) * (t - CASE_LAST) * 0.2;
        world[2].y[t] = 6 + cos(-2.5) * (t - CASE_LAST) * 0.2;
    }
    world[2].present[CASE_LAST + 1] = 0; /* between the last observed row and the next */
    world[2].city = "pittsburgh";
    world[2].speed = 1;
    world[3] = case_drive(ids[3], 0, 0, 1);
    for (int t = CASE_LAST + 1; t < CASE_STEPS; t++) world[3].present[t] = 0;
}

static bj_status write_world(const char *where, bj_error *err) {
    bj_status status = BJ_OK;
    for (int i = 0; i < SCENES && status == BJ_OK; i++)
        status = case_write_scenario(where, &world[i], err);
    return status;
}

/* Makes a valid file. Scene a has three modes, all other scenes have one or two. */
static case_file good_file(void) {
    case_file f = {0};
    case_add(&f, &world[0], .5, 0, 1);
    case_row *late = case_add(&f, &world[0], .3, 0, 0);
    case_shift(late, &world[0], CASE_F - 1, 3);
    case_row *early = case_add(&f, &world[0], .2, 0, 4);
    case_shift(early, &world[0], CASE_F - 1, -3.5);
    case_add(&f, &world[1], 1, 0, 0);
    case_add(&f, &world[2], .25, 0, 2.5);
    case_add(&f, &world[2], .75, 0, -1.5);
    case_add(&f, &world[3], 1, 0, 0);
    return f;
}

/* Makes a file that is valid except for the given flaw. Returns 0 if the flaw is unknown. */
static const char *const flaws[] = {
    "good",   "points",       "nonfinite", "infinite", "negative", "above",       "nan",
    "sum",    "modes",        "duplicate", "track",    "unknown",  "missing",     "focal-missing",
    "no-ids", "inconsistent", "weights",   "shuffled", "points-x", "no-first-id", NULL};

static int make_file(case_file *f, const char *flaw) {
    *f = good_file();
    if (!strcmp(flaw, "good")) return 1;
    if (!strcmp(flaw, "points-x")) f->row[1].x_count = 61;
    else if (!strcmp(flaw, "no-first-id")) f->row[0].scenario = "";
    else if (!strcmp(flaw, "points")) f->row[1].y_count = 59;
    else if (!strcmp(flaw, "nonfinite")) f->row[2].y[7] = NAN;
    else if (!strcmp(flaw, "infinite")) f->row[2].x[59] = -INFINITY;
    else if (!strcmp(flaw, "negative")) f->row[0].p = -.5, f->row[1].p = 1.3;
    else if (!strcmp(flaw, "above")) f->row[3].p = 1.0000001;
    else if (!strcmp(flaw, "nan")) f->row[5].p = NAN;
    else if (!strcmp(flaw, "sum")) f->row[5].p = .7501;
    else if (!strcmp(flaw, "modes"))
        for (int k = 0; k < 7; k++) {
            if (k == 0) f->row[3].p = 1 / 8.0;
            else case_add(f, &world[1], 1 / 8.0 * (k == 6 ? 2 : 1), k, 0);
        }
    else if (!strcmp(flaw, "duplicate")) {
        f->row[5].p = .375;
        f->row[f->rows++] = f->row[5];
    } else if (!strcmp(flaw, "track")) {
        f->row[f->rows] = f->row[3];
        f->row[f->rows++].track = "other";
    } else if (!strcmp(flaw, "unknown")) {
        f->row[f->rows] = f->row[3];
        f->row[f->rows++].scenario = "00000000-0000-4000-8000-0000000000ff";
    } else if (!strcmp(flaw, "missing")) {
        f->row[3] = f->row[--f->rows];
    } else if (!strcmp(flaw, "focal-missing")) {
        f->row[3].track = "other";
    } else if (!strcmp(flaw, "no-ids")) {
        f->row[3].track = "";
        f->row[6].scenario = "";
    } else if (!strcmp(flaw, "inconsistent") || !strcmp(flaw, "weights")) {
        const int same = !strcmp(flaw, "weights");
        for (int k = 0; k < 3; k++) {
            if (k == 2 && !same) break;
            f->row[f->rows] = f->row[k];
            f->row[f->rows].p = same ? (k == 0 ? .4 : .3) : .5;
            f->row[f->rows++].track = "other";
        }
    } else if (!strcmp(flaw, "shuffled")) { /* rows of a scenario need not be adjacent */
        const case_row first = f->row[0];
        f->row[0] = f->row[5];
        f->row[5] = first;
    } else {
        return 0;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------- tools */

typedef struct scored {
    bj_submission *submission;
    bj_truth *truth;
    bj_score *score;
    bj_score_counts c;
} scored;

static void scored_free(scored *s) {
    bj_score_free(s->score);
    bj_truth_free(s->truth);
    bj_submission_free(s->submission);
}

/* Writes the file, opens it and scores it. */
static scored score_file(const case_file *f, const char *truth, int max_modes) {
    scored s = {0};
    bj_error err = {0};
    const bj_score_options options = {max_modes, 100};
    CHECK_OK(case_write_file(path, f, &err), err);
    CHECK_OK(bj_submission_open(&s.submission, path, &err), err);
    if (truth) CHECK_OK(bj_truth_open(&s.truth, truth, NULL, &err), err);
    if (s.submission)
        CHECK_OK(bj_score_create(&s.score, s.submission, s.truth, &options, &err), err);
    if (s.score) s.c = bj_score_count(s.score);
    return s;
}

static int total(const bj_score_counts *c) {
    return (int)(c->scored + c->missing + c->malformed + c->no_future + c->unreadable);
}

static const bj_score_values *scene(const scored *s, const char *id) {
    for (int64_t i = 0; i < bj_score_scenes(s->score); i++)
        if (!strcmp(bj_score_scene_at(s->score, i)->scenario_id, id))
            return &bj_score_scene_at(s->score, i)->values;
    static const bj_score_values none;
    CHECK_MSG(0, "scene %s was not scored", id);
    return &none;
}

static bj_score_values group(const scored *s, const char *by, const char *key) {
    for (int i = 0; i < bj_score_groups(s->score); i++) {
        const bj_score_group g = bj_score_group_at(s->score, i);
        if (!strcmp(g.by, by) && !strcmp(g.key, key)) return g.values;
    }
    return (bj_score_values){0};
}

/* ----------------------------------------------------------------------------- values by hand */

static void test_values(const char *truth, double tolerance) {
    const case_file f = good_file();
    scored s = score_file(&f, truth, 0);
    if (!s.score) return;
    CHECK(s.c.violations_total == 0 && s.c.rows == 7 && s.c.scenarios == 4);
    CHECK(s.c.truths == 4 && s.c.scored == 3 && s.c.no_future == 1 && total(&s.c) == 4);
    CHECK(s.c.gaps == 2);

    /* Scene a: the first mode is 1 m to the left everywhere. The second mode is exact except for
     * the last point. The third mode is off by 4 m everywhere except at the end, where it is off by
     * .5 m. */
    const bj_score_values *v = scene(&s, ids[0]);
    CHECK(v->modes == 3);
    CHECK_NEAR(v->min_ade_1, 1, tolerance);
    CHECK_NEAR(v->min_fde_1, 1, tolerance);
    CHECK(v->mr_1 == 0);
    CHECK_NEAR(v->brier_min_ade_1, 1.25, tolerance);
    CHECK_NEAR(v->brier_min_fde_1, 1.25, tolerance);
    CHECK_NEAR(v->min_ade_6, .05, tolerance);
    CHECK_NEAR(v->brier_min_ade_6, .05 + .49, tolerance);
    CHECK_NEAR(v->min_fde_6, .5, tolerance);
    CHECK_NEAR(v->min_ade_at_min_fde_6, 236.5 / 60, tolerance);
    CHECK_NEAR(v->brier_min_fde_6, .5 + .64, tolerance);
    CHECK(v->mr_6 == 0);
    const bj_metric_values *d = &v->distribution;
    const double rms_late = sqrt(9. / 60), rms_early = sqrt((59 * 16 + .25) / 60);
    const double fit = .5 * 1 + .3 * rms_late + .2 * rms_early;
    const double spread = .15 * sqrt((59 * 1 + 4) / 60.) + .1 * sqrt((59 * 9 + .25) / 60) +
                          .06 * sqrt((59 * 16 + 6.25) / 60);
    CHECK_NEAR(d->traj_obs, fit, tolerance);
    CHECK_NEAR(d->traj_disp, spread, tolerance);
    CHECK_NEAR(d->traj_es, fit - spread, tolerance);
    CHECK_NEAR(d->end_es, .5 + .9 + .1 - (.15 * 2 + .1 * .5 + .06 * 2.5), tolerance);
    CHECK_NEAR(d->exp_ade, .5 + .3 * .05 + .2 * 236.5 / 60, tolerance);
    CHECK_NEAR(d->exp_fde, 1.5, tolerance);
    CHECK_NEAR(d->brier, 0, tolerance); /* all modes and the true future go straight */
    CHECK_NEAR(d->exp_entropy, exp(-.5 * log(.5) - .3 * log(.3) - .2 * log(.2)), tolerance);
    /* The endpoints are 1, 3 and .5 m to the left, so the first and the third form one cluster. */
    CHECK_NEAR(d->dedup_support, exp(-.7 * log(.7) - .3 * log(.3)), tolerance);
    CHECK(isnan(d->latent_es) && isnan(d->neff_collision));

    /* Scene b: three gaps on a straight line are interpolated exactly. From step 106 on, the true
     * position stays at the last row, so the forecast is 1, 2, 3 and 4 m too far. */
    v = scene(&s, ids[1]);
    CHECK_NEAR(v->min_ade_1, 10. / 60, tolerance);
    CHECK_NEAR(v->min_fde_6, 4, tolerance);
    CHECK(v->mr_1 == 1 && v->mr_6 == 1);
    CHECK_NEAR(v->brier_min_fde_6, 4, tolerance);

    /* Scene c: the most probable mode is 1.5 m to the right and is also the best one. */
    v = scene(&s, ids[2]);
    CHECK_NEAR(v->min_ade_1, 1.5, tolerance);
    CHECK_NEAR(v->min_fde_1, 1.5, tolerance);
    CHECK_NEAR(v->min_fde_6, 1.5, tolerance);
    CHECK_NEAR(v->brier_min_fde_6, 1.5 + .0625, tolerance);

    /* Means and groups. */
    const bj_score_values all = group(&s, "all", "all");
    CHECK(all.scenes == 3);
    CHECK_NEAR(all.modes, 2, 0);
    CHECK_NEAR(all.min_fde_1, (1 + 4 + 1.5) / 3, tolerance);
    CHECK_NEAR(all.min_fde_6, (.5 + 4 + 1.5) / 3, tolerance);
    CHECK_NEAR(all.mr_6, 1. / 3, 1e-15);
    CHECK_NEAR(all.distribution.exp_fde, (1.5 + 4 + .25 * 2.5 + .75 * 1.5) / 3, tolerance);
    CHECK(group(&s, "maneuver", "straight").scenes == 2);
    CHECK(group(&s, "maneuver", "left").scenes == 1);
    CHECK_NEAR(group(&s, "maneuver", "left").min_fde_1, 1.5, tolerance);
    CHECK(group(&s, "type", "cyclist").scenes == 1 && group(&s, "type", "vehicle").scenes == 2);
    CHECK(group(&s, "city", "austin").scenes == 2 && group(&s, "city", "pittsburgh").scenes == 1);
    CHECK(group(&s, "speed", "0-2").scenes == 1 && group(&s, "speed", "2-5").scenes == 1);
    CHECK(group(&s, "speed", "10-15").scenes == 1);
    CHECK_NEAR(group(&s, "speed", "2-5").min_fde_6, 4, tolerance);
    CHECK(bj_score_groups(s.score) == 1 + 2 + 2 + 2 + 3);
    const char *const order[] = {"all",    "straight",   "left", "cyclist", "vehicle",
                                 "austin", "pittsburgh", "0-2",  "2-5",     "10-15"};
    for (int i = 0; i < bj_score_groups(s.score) && i < 10; i++)
        CHECK(!strcmp(bj_score_group_at(s.score, i).key, order[i]));
    scored_free(&s);
}

/* Tests which six modes are selected: the most probable ones, in row order
 * if the probabilities are equal. */
static void test_selection(void) {
    case_file f = {0};
    static const double p[8] = {.05, .2, .05, .2, .2, .1, .1, .1};
    static const double off[8] = {.125, 3, .25, 2, 3.5, 2.5, 1, 1.5};
    for (int k = 0; k < 8; k++) case_add(&f, &world[0], p[k], 0, off[k]);
    scored s = score_file(&f, truth_folder, 64);
    if (!s.score) return;
    CHECK(s.c.violations[BJ_VIOLATION_MODES] == 0);
    const bj_score_values *v = scene(&s, ids[0]);
    CHECK_NEAR(v->min_fde_1, 3, 1e-9); /* row 1, the first row with probability .2 */
    CHECK_NEAR(v->min_fde_6, 1, 1e-9); /* row 6; rows 0 and 2 are not selected */
    CHECK_NEAR(v->brier_min_fde_6, 1 + .81, 1e-9);
    CHECK_NEAR(v->distribution.min_fde, .125, 1e-9); /* over all modes */
    scored_free(&s);

    /* If two modes have the same endpoint, the more probable one is used, in any row order. */
    f.rows = 0;
    case_add(&f, &world[0], .4, 0, 1);
    case_row *same = case_add(&f, &world[0], .6, 0, 1);
    case_shift(same, &world[0], 0, 60);
    s = score_file(&f, truth_folder, 0);
    if (!s.score) return;
    v = scene(&s, ids[0]);
    CHECK_NEAR(v->brier_min_fde_6, 1 + .16, 1e-9);
    CHECK_NEAR(v->min_ade_at_min_fde_6, 2, 1e-9);
    CHECK_NEAR(v->min_ade_6, 1, 1e-9);
    CHECK_NEAR(v->brier_min_ade_6, 1 + .36, 1e-9);
    scored_free(&s);

    /* If two modes have the same trajectory, the more probable one is used. They are not
     * duplicates, because their probabilities differ. */
    f.rows = 0;
    case_add(&f, &world[0], .3, 0, 1);
    case_add(&f, &world[0], .7, 0, 1);
    s = score_file(&f, truth_folder, 0);
    if (!s.score) return;
    CHECK(s.c.violations[BJ_VIOLATION_DUPLICATE] == 0);
    CHECK_NEAR(scene(&s, ids[0])->brier_min_ade_6, 1 + .09, 1e-9);
    CHECK_NEAR(scene(&s, ids[0])->brier_min_fde_6, 1 + .09, 1e-9);
    scored_free(&s);

    /* Six modes are allowed. */
    f.rows = 0;
    for (int k = 0; k < 6; k++) case_add(&f, &world[0], k ? .125 : .375, 0, k);
    s = score_file(&f, NULL, 0);
    CHECK(s.c.violations_total == 0);
    scored_free(&s);

    /* A displacement of exactly 2 m is not a miss. */
    f.rows = 0;
    case_row *edge = case_add(&f, &world[1], 1, 0, 0);
    for (int k = 56; k < CASE_F; k++) edge->x[k] = -3000.5 + 56 + 2;
    s = score_file(&f, truth_folder, 0);
    if (!s.score) return;
    CHECK(scene(&s, ids[1])->min_fde_6 == 2 && scene(&s, ids[1])->mr_6 == 0);
    scored_free(&s);
}

/* --------------------------------------------------------------------------------------- checks */

static void expect(const char *flaw, bj_violation_kind kind, int64_t count, int64_t first_row,
                   int scored_scenes, const char *part) {
    case_file f;
    CHECK(make_file(&f, flaw));
    scored s = score_file(&f, truth_folder, 0);
    if (!s.score) return;
    CHECK_MSG(s.c.violations[kind] == count, "%s: %lld violations of kind %s, expected %lld", flaw,
              (long long)s.c.violations[kind], bj_violation_name(kind), (long long)count);
    CHECK_MSG(s.c.scored == scored_scenes, "%s: %lld scored, expected %d", flaw,
              (long long)s.c.scored, scored_scenes);
    CHECK_MSG(total(&s.c) == 4, "%s: %d of 4 scenes counted", flaw, total(&s.c));
    int listed = 0;
    for (int i = 0; i < bj_score_listed(s.score); i++) {
        const bj_violation *v = bj_score_violation(s.score, i);
        if (v->kind != kind || listed++) continue;
        CHECK_MSG(v->row == first_row, "%s: row %lld, expected %lld", flaw, (long long)v->row,
                  (long long)first_row);
        CHECK_CONTAINS(v->message, part);
    }
    CHECK_MSG(listed == count, "%s: %d listed", flaw, listed);
    CHECK(bj_score_listed(s.score) == s.c.violations_total);
    scored_free(&s);
}

static void test_violations(void) {
    expect("good", BJ_VIOLATION_SUM, 0, 0, 3, "");
    expect("shuffled", BJ_VIOLATION_SUM, 0, 0, 3, "");
    expect("points", BJ_VIOLATION_POINTS, 1, 1, 2, "60 x and 59 y values, expected 60");
    expect("nonfinite", BJ_VIOLATION_NONFINITE, 1, 2, 2, "y of point 7 is nan");
    expect("infinite", BJ_VIOLATION_NONFINITE, 1, 2, 2, "x of point 59 is -inf");
    expect("negative", BJ_VIOLATION_PROBABILITY, 2, 0, 2, "probability is -0.5, expected 0 to 1");
    expect("negative", BJ_VIOLATION_SUM, 0, 0, 2, "");
    expect("above", BJ_VIOLATION_PROBABILITY, 1, 3, 2, "probability is 1.0000001");
    expect("nan", BJ_VIOLATION_PROBABILITY, 1, 5, 2, "probability is nan");
    expect("nan", BJ_VIOLATION_SUM, 0, 0, 2, ""); /* reported once */
    expect("points-x", BJ_VIOLATION_POINTS, 1, 1, 2, "61 x and 60 y values, expected 60");
    expect("no-first-id", BJ_VIOLATION_ID, 1, 0, 2, "has no scenario_id");
    expect("no-first-id", BJ_VIOLATION_MISSING, 0, 0, 2, "");
    expect("sum", BJ_VIOLATION_SUM, 1, 4, 2, "2 modes of track '17' sum to 1.0001, expected 1");
    expect("modes", BJ_VIOLATION_MODES, 1, 12, 3, "track 'b17' has 7 modes, expected at most 6");
    expect("duplicate", BJ_VIOLATION_DUPLICATE, 1, 7, 3, "repeats row 5 of track '17'");
    expect("track", BJ_VIOLATION_TRACK, 1, 7, 3, "track 'other' (1 rows) is not the focal track");
    expect("unknown", BJ_VIOLATION_UNKNOWN, 1, 7, 3, "the ground truth contains no such scenario");
    expect("missing", BJ_VIOLATION_MISSING, 1, -1, 2, "its focal track is 'b17'");
    expect("focal-missing", BJ_VIOLATION_MISSING, 1, -1, 2, "no row for the focal track 'b17'");
    expect("focal-missing", BJ_VIOLATION_TRACK, 1, 3, 2, "which is 'b17'");
    expect("no-ids", BJ_VIOLATION_ID, 2, 6, 2, "has no scenario_id");
    expect("no-ids", BJ_VIOLATION_MISSING, 2, -1, 2, "no row for the focal track 'b17'");
    expect("inconsistent", BJ_VIOLATION_INCONSISTENT, 1, 7, 3,
           "track 'other' has 2 modes, but track '17' has 3");
    expect("weights", BJ_VIOLATION_INCONSISTENT, 1, 7, 3, "modes with different probabilities");

    /* The tolerance of the sum is that of numpy.isclose. */
    static const struct {
        double p;
        int64_t violations;
    } sums[] = {{1 - 1e-5, 0},        {1 - 1.002e-5, 1}, {1 - 1e-6, 0},
                {1 - 1.000995e-5, 1}, {.9999, 1},        {1, 0}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        case_file f = good_file();
        f.row[3].p = sums[i].p;
        scored s = score_file(&f, NULL, 0);
        CHECK_MSG(s.c.violations_total == sums[i].violations, "sum %.10f", sums[i].p);
        scored_free(&s);
    }
    /* The tolerance also applies above 1. */
    for (int k = 0; k < 2; k++) {
        case_file f = good_file();
        f.row[4].p = .5;
        f.row[5].p = .5 + (k ? 1.002e-5 : 1e-5);
        scored s = score_file(&f, NULL, 0);
        CHECK(s.c.violations_total == k && s.c.truths == -1 && !bj_score_groups(s.score));
        scored_free(&s);
    }
    /* `listed` limits the stored violations, not their count. */
    case_file f;
    make_file(&f, "no-ids");
    scored s = score_file(&f, truth_folder, 0);
    bj_score *few = NULL;
    bj_error err = {0};
    const bj_score_options one = {0, 1}, wrong = {65, 1};
    CHECK_OK(bj_score_create(&few, s.submission, s.truth, &one, &err), err);
    CHECK(few && bj_score_listed(few) == 1 && bj_score_count(few).violations_total == 4);
    bj_score_free(few);
    CHECK(bj_score_create(&few, s.submission, s.truth, &wrong, &err) == BJ_EARG && !few);
    scored_free(&s);
}

/* Tests unusable scenes in the ground truth and folders without scenes. */
static void test_truth(void) {
    bj_error err = {0};
    bj_truth *truth = NULL;
    char root[CASE_PATH + 16];
    snprintf(root, sizeof root, "%s/broken", folder);
    case_scenario blind = world[0], other = world[1];
    blind.present[CASE_LAST] = 0;
    CHECK_OK(case_write_scenario(root, &blind, &err), err);
    CHECK_OK(case_write_scenario(root, &other, &err), err);
    CHECK_OK(bj_truth_open(&truth, root, NULL, &err), err);
    CHECK(truth && bj_truth_count(truth) == 2 && bj_truth_failures(truth) == 1);
    if (truth) CHECK_CONTAINS(bj_truth_failure(truth, 0), "no row at step 49");
    bj_truth_free(truth);
    const case_file f = good_file();
    scored s = score_file(&f, root, 0);
    CHECK(s.c.unreadable == 1 && s.c.scored == 1 && s.c.unknown == 2 && s.c.truths == 2);
    scored_free(&s);
    snprintf(root, sizeof root, "%s/empty", folder);
    mkdir(root, 0777);
    CHECK(bj_truth_open(&truth, root, NULL, &err) == BJ_EFORMAT && !truth);
    CHECK_CONTAINS(err.message, "found no scenario");
    snprintf(root, sizeof root, "%s/none", folder);
    CHECK(bj_truth_open(&truth, root, NULL, &err) == BJ_EIO && !truth);
    CHECK(bj_truth_open(&truth, path, NULL, &err) != BJ_OK && !truth); /* not a cache */
}

/* -------------------------------------------------------------------------------------- writing */

static bj_status rewrite(const char *in, const char *out, bj_error *err) {
    bj_submission *s = NULL;
    bj_submission_writer *w = NULL;
    static double p[64], y[64 * 2 * CASE_F];
    bj_status status = bj_submission_open(&s, in, err);
    if (status == BJ_OK) status = bj_submission_writer_create(&w, out, err);
    for (int64_t i = 0; status == BJ_OK && i < bj_submission_scenarios(s); i++) {
        int64_t n, from = 0;
        const int64_t *rows = bj_submission_rows_of(&n, s, i);
        while (from < n && status == BJ_OK) { /* one track at a time */
            const bj_submission_row first = bj_submission_at(s, rows[from]);
            int K = 0;
            for (; from + K < n && K < 64; K++) {
                const bj_submission_row r = bj_submission_at(s, rows[from + K]);
                if (strcmp(r.track_id, first.track_id)) break;
                p[K] = r.probability;
                for (int t = 0; t < CASE_F; t++) {
                    y[(K * CASE_F + t) * 2] = r.x[t];
                    y[(K * CASE_F + t) * 2 + 1] = r.y[t];
                }
            }
            status = bj_submission_writer_add(w, first.scenario_id, first.track_id, K, p, y, err);
            from += K;
        }
    }
    if (status == BJ_OK) status = bj_submission_writer_commit(&w, err);
    bj_submission_writer_abort(&w);
    bj_submission_free(s);
    return status;
}

static void test_writer(void) {
    bj_error err = {0};
    bj_submission *a = NULL, *b = NULL;
    bj_submission_writer *w = NULL;
    char copy[CASE_PATH + 16];
    const case_file f = good_file();
    snprintf(copy, sizeof copy, "%s/copy.parquet", folder);
    CHECK_OK(case_write_file(path, &f, &err), err);
    CHECK_OK(rewrite(path, copy, &err), err);
    CHECK_OK(bj_submission_open(&a, path, &err), err);
    CHECK_OK(bj_submission_open(&b, copy, &err), err);
    if (!a || !b) return;
    CHECK(bj_submission_rows(b) == 7 && bj_submission_scenarios(b) == 4);
    for (int64_t r = 0; r < 7; r++) {
        const bj_submission_row x = bj_submission_at(a, r), y = bj_submission_at(b, r);
        CHECK(!strcmp(x.scenario_id, y.scenario_id) && !strcmp(x.track_id, y.track_id));
        CHECK(x.probability == y.probability && y.x_count == 60 && y.y_count == 60);
        CHECK(!memcmp(x.x, y.x, 60 * sizeof *x.x) && !memcmp(x.y, y.y, 60 * sizeof *x.y));
    }
    for (int i = 0; i < 4; i++) {
        CHECK(bj_submission_find(b, ids[i]) == i);
        CHECK(!strcmp(bj_submission_scenario(b, i), ids[i]));
    }
    CHECK(bj_submission_find(b, "") == -1 && bj_submission_find(b, "zz") == -1);
    bj_submission_free(a);
    bj_submission_free(b);

    /* Test many row groups: 3000 tracks with six modes each. */
    static double p[6] = {.1, .2, .3, .15, .15, .1}, y[6 * 2 * CASE_F];
    CHECK_OK(bj_submission_writer_create(&w, copy, &err), err);
    for (int i = 0; i < 3000 && w; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%d", (i * 7) % 3000);
        for (int k = 0; k < 6 * 2 * CASE_F; k++) y[k] = i + k / 1024.0;
        CHECK_OK(bj_submission_writer_add(w, id, "t", 6, p, y, &err), err);
    }
    CHECK_OK(bj_submission_writer_commit(&w, &err), err);
    CHECK(w == NULL);
    CHECK_OK(bj_submission_open(&b, copy, &err), err);
    CHECK(b && bj_submission_rows(b) == 18000 && bj_submission_scenarios(b) == 3000);
    for (int i = 0; b && i < 3000; i += 37) {
        char id[16];
        int64_t n;
        snprintf(id, sizeof id, "s%d", (i * 7) % 3000);
        CHECK(bj_submission_find(b, id) == i);
        const int64_t *rows = bj_submission_rows_of(&n, b, i);
        CHECK(n == 6 && rows[0] == 6 * i && rows[5] == 6 * i + 5);
        CHECK(bj_submission_at(b, rows[1]).y[3] == i + (120 + 7) / 1024.0);
    }
    bj_submission_free(b);

    /* The writer rejects rows that the check would report. */
    double bad_p[2] = {.5, .6}, bad_y[4 * CASE_F] = {0};
    CHECK_OK(bj_submission_writer_create(&w, copy, &err), err);
    CHECK(bj_submission_writer_add(w, "s", "t", 2, bad_p, bad_y, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "sum to 1.1");
    bad_p[1] = NAN;
    CHECK(bj_submission_writer_add(w, "s", "t", 2, bad_p, bad_y, &err) == BJ_ENONFINITE);
    bad_p[0] = -.5, bad_p[1] = 1.5;
    CHECK(bj_submission_writer_add(w, "s", "t", 2, bad_p, bad_y, &err) == BJ_EARG);
    bad_p[0] = bad_p[1] = .5;
    CHECK(bj_submission_writer_add(w, "", "t", 2, bad_p, bad_y, &err) == BJ_EARG);
    CHECK(bj_submission_writer_add(w, "s", "t", 0, bad_p, bad_y, &err) == BJ_EARG);
    bad_y[2 * CASE_F + 5] = INFINITY;
    CHECK(bj_submission_writer_add(w, "s", "t", 2, bad_p, bad_y, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "mode 1: the point at step 2");
    bj_submission_writer_abort(&w);
    CHECK(w == NULL);
    unlink(copy);
}

/* Tests files that are not submissions. */
static void test_columns(void) {
    bj_error err = {0};
    bj_submission *s = NULL;
    bj_parquet_writer *w = NULL;
    const bj_parquet_field fields[2] = {{"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 0},
                                        {"track_id", BJ_PARQUET_INT64, 0, 0}};
    const bj_text id = {"a", 1};
    const int64_t track = 1;
    const bj_parquet_data data[2] = {{.texts = &id}, {.integers = &track}};
    for (int columns = 1; columns <= 2; columns++) {
        CHECK_OK(bj_parquet_writer_create(&w, fields, columns, BJ_PARQUET_SNAPPY, &err), err);
        CHECK_OK(bj_parquet_writer_open(w, path, &err), err);
        CHECK_OK(bj_parquet_writer_rows(w, 1, data, NULL, &err), err);
        CHECK_OK(bj_parquet_writer_commit(w, &err), err);
        bj_parquet_writer_free(w);
        CHECK(bj_submission_open(&s, path, &err) == BJ_EFORMAT && !s);
        CHECK_CONTAINS(err.message, "track_id");
    }
    /* A file without rows has no invalid rows, but all scenes are missing. */
    const case_file none = {0};
    scored empty = score_file(&none, truth_folder, 0);
    CHECK(empty.c.rows == 0 && empty.c.missing == 4 && empty.c.scored == 0);
    scored_free(&empty);
}

/* Tests the failure of every allocation while opening and scoring. */
static void test_memory(void) {
    bj_error err = {0};
    bj_truth *truth = NULL;
    case_file f;
    make_file(&f, "inconsistent");
    CHECK_OK(case_write_file(path, &f, &err), err);
    const bj_truth_options quiet = {.threads = 1};
    CHECK_OK(bj_truth_open(&truth, truth_folder, &quiet, &err), err);
    const long live = bj_alloc_live();
    for (long n = 0; n < 2000; n++) {
        bj_submission *s = NULL;
        bj_score *score = NULL;
        const bj_score_options options = {0, 10};
        bj_alloc_fail_after(n);
        bj_status status = bj_submission_open(&s, path, &err);
        if (status == BJ_OK) status = bj_score_create(&score, s, truth, &options, &err);
        bj_alloc_fail_after(-1);
        bj_score_free(score);
        bj_submission_free(s);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
        if (status == BJ_OK) {
            CHECK(n > 20);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM, "allocation %ld: %s", n, err.message);
    }
    bj_truth_free(truth);
}

/* --------------------------------------------------------------------------------- large files */

/* Writes a cache and a submission that contains the true future and five shifted modes. */
static int write_large(const char *where, int64_t scenes) {
    bj_error err = {0};
    char file[CASE_PATH];
    bj_cache_writer *cache = NULL;
    bj_cache_bytes *bytes = NULL;
    bj_submission_writer *w = NULL;
    static bj_features f;
    const bj_map map = {0};
    const uint8_t sha[32] = {0};
    mkdir(where, 0777);
    snprintf(file, sizeof file, "%s/large.bjc", where);
    bj_status status = bj_cache_writer_open(&cache, file, NULL, 0, 1, &err);
    if (status == BJ_OK) status = bj_cache_bytes_create(&bytes, &err);
    snprintf(file, sizeof file, "%s/large.parquet", where);
    if (status == BJ_OK) status = bj_submission_writer_create(&w, file, &err);
    bj_rng rng = bj_rng_seed(1);
    for (int64_t i = 0; i < scenes && status == BJ_OK; i++) {
        char id[48];
        double p[6], sum = 0, local[6 * 2 * CASE_F], city[6 * 2 * CASE_F];
        const bj_text track = case_text("17"), type = case_text(i % 9 ? "vehicle" : "cyclist");
        snprintf(id, sizeof id, "%08llx-0000-4000-8000-000000000000", (unsigned long long)i);
        const bj_scenario s = {.id = case_text(id),
                               .city = case_text(i % 3 ? "austin" : "miami"),
                               .tracks = 1,
                               .track_id = &track,
                               .type = &type};
        memset(&f, 0, sizeof f);
        f.origin[0] = 5000 * bj_rng_normal(&rng);
        f.origin[1] = 5000 * bj_rng_normal(&rng);
        f.heading = bj_rng_normal(&rng);
        f.focal_valid = (UINT64_C(1) << 50) - 1;
        f.future_valid = (UINT64_C(1) << 60) - 1;
        const double v = 20 * bj_rng_uniform(&rng), turn = .02 * bj_rng_normal(&rng);
        f.focal[49 * 7 + 2] = (float)v;
        for (int t = 0; t < CASE_F; t++) {
            f.future[2 * t] = (float)(v * (t + 1) * .1 * cos(turn * t));
            f.future[2 * t + 1] = (float)(v * (t + 1) * .1 * sin(turn * t));
        }
        for (int k = 0; k < 6; k++) {
            const double grow = .05 * bj_rng_normal(&rng), bend = .1 * bj_rng_normal(&rng);
            sum += p[k] = bj_rng_uniform(&rng) + .01;
            for (int t = 0; t < CASE_F; t++) {
                local[(k * CASE_F + t) * 2] = f.future[2 * t] * (1 + grow);
                local[(k * CASE_F + t) * 2 + 1] = f.future[2 * t + 1] + bend * t;
            }
        }
        for (int k = 0; k < 6; k++) p[k] /= sum;
        bj_to_city(city, local, 6 * CASE_F, f.origin, f.heading);
        status = bj_cache_encode(bytes, &s, &map, &f, sha, &err);
        if (status == BJ_OK) status = bj_cache_writer_add(cache, bytes, &err);
        if (status == BJ_OK) status = bj_submission_writer_add(w, id, "17", 6, p, city, &err);
    }
    bj_prep_report report;
    if (status == BJ_OK) status = bj_cache_writer_finish(&cache, &report, &err);
    if (status == BJ_OK) status = bj_submission_writer_commit(&w, &err);
    bj_cache_writer_close(&cache);
    bj_submission_writer_abort(&w);
    bj_cache_bytes_free(bytes);
    if (status != BJ_OK) fprintf(stderr, "%s\n", err.message);
    return status != BJ_OK;
}

/* ----------------------------------------------------------------------------------------- main */

static int remove_entry(const char *name, const struct stat *info, int type, struct FTW *walk) {
    (void)info, (void)type, (void)walk;
    return remove(name);
}

static int work(int argc, char **argv) {
    bj_error err = {0};
    bj_status status = BJ_EARG;
    case_file f;
    if (argc == 3 && !strcmp(argv[1], "scenarios")) status = write_world(argv[2], &err);
    else if (argc == 4 && !strcmp(argv[1], "submission") && make_file(&f, argv[3]))
        status = case_write_file(argv[2], &f, &err);
    else if (argc == 4 && !strcmp(argv[1], "rewrite")) status = rewrite(argv[2], argv[3], &err);
    else if (argc == 4 && !strcmp(argv[1], "large"))
        return write_large(argv[2], strtol(argv[3], NULL, 10));
    if (status != BJ_OK) fprintf(stderr, "test_score %s: %s\n", argv[1], err.message);
    return status != BJ_OK;
}

int main(int argc, char **argv) {
    bj_error err = {0};
    make_world();
    if (argc > 1) return work(argc, argv);
    if (!mkdtemp(folder)) return 1;
    snprintf(truth_folder, sizeof truth_folder, "%s/val", folder);
    snprintf(path, sizeof path, "%s/submission.parquet", folder);
    snprintf(cache_path, sizeof cache_path, "%s/val.bjc", folder);
    CHECK_OK(write_world(truth_folder, &err), err);
    for (int i = 0; flaws[i]; i++) {
        case_file f;
        CHECK_MSG(make_file(&f, flaws[i]), "%s", flaws[i]);
    }
    test_values(truth_folder, 1e-9);
    test_selection();
    test_violations();
    test_truth();
    test_writer();
    test_columns();
    test_memory();

    /* Test the same ground truth from a cache, which has single precision in the scene's frame. */
    const char *const roots[1] = {truth_folder};
    const bj_prep_options prep = {.roots = roots, .root_count = 1, .jobs = 1};
    bj_prep_report report;
    CHECK_OK(bj_prep(&report, cache_path, &prep, &err), err);
    test_values(cache_path, 4e-6);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return test_report("score");
}
