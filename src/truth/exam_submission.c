/* exam_submission.c - scores a submission file from any model; see bj_exam_submission.
 *
 * Any format violation is an error, because a scene that cannot be scored
 * would leave the mean over all scenes undefined. Points are rotated and
 * translated from the city frame to the scene frame in double.
 * Tests: tests/truth/test_exam_submission.c, tests/cli/truth.sh
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "truth/exam_sum.h"

enum { ROW = BJ_EXAM_ROW };

typedef struct submission_arm {
    const bj_exam *exam;
    const bj_submission *submission;
    bj_score_modes *modes;
    int K;
} submission_arm;

/* --------------------------------------------------------------------------------------- checks */

static bj_status fail_violation(const bj_submission *s, const bj_score *score, bj_error *err) {
    const bj_violation *v = bj_score_violation(score, 0);
    char row[32] = "no row";
    if (v->row >= 0) snprintf(row, sizeof row, "row %lld", (long long)v->row);
    return BJ_FAIL(err, BJ_EMISMATCH, "%s: %lld format violations; the first is %s, %s: %s",
                   bj_submission_path(s), (long long)bj_score_count(score).violations_total, row,
                   v->scenario_id ? v->scenario_id : "no scenario", v->message);
}

/* Checks that the submission contains every scenario of the law file, with one track each. */
static bj_status check_scenarios(const bj_law *law, const bj_submission *s, bj_error *err) {
    const char *const path = bj_submission_path(s);
    for (int64_t i = 0; i < bj_law_count(law); i++) {
        const char *const id = bj_law_at(law, i).scenario_id;
        const int64_t scenario = bj_submission_find(s, id);
        if (scenario < 0)
            return BJ_FAIL(err, BJ_EMISMATCH, "%s: scenario %s is not in the file", path, id);
        const int64_t first = bj_submission_first_track(s, scenario);
        const int64_t tracks = bj_submission_first_track(s, scenario + 1) - first;
        if (tracks != 1)
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: scenario %s has %lld tracks, expected 1, "
                           "because the focal track is unknown without data",
                           path, id, (long long)tracks);
    }
    for (int64_t i = 0; i < bj_submission_scenarios(s); i++)
        if (bj_law_find(law, bj_submission_scenario(s, i)) < 0)
            return BJ_FAIL(err, BJ_EMISMATCH, "%s: scenario %s is not in the distribution file",
                           path, bj_submission_scenario(s, i));
    return BJ_OK;
}

static bj_status check(const submission_arm *arm, int max_modes, bj_error *err) {
    const bj_truth *const truth = bj_exam_truth(arm->exam);
    const bj_score_options options = {.max_modes = max_modes, .listed = 1};
    bj_score *score;
    BJ_TRY(bj_score_create(&score, arm->submission, truth, &options, err));
    bj_status status = BJ_OK;
    if (bj_score_count(score).violations_total)
        status = fail_violation(arm->submission, score, err);
    else if (!truth) status = check_scenarios(bj_exam_laws(arm->exam), arm->submission, err);
    bj_score_free(score);
    return status;
}

/* ------------------------------------------------------------------------------------ forecasts */

/* Returns the rows of the focal track. It exists, because the file has been checked. */
static bj_submission_track track_of(const bj_submission *s, const bj_truth_scene *scene) {
    const int64_t scenario = bj_submission_find(s, scene->scenario_id);
    const int64_t track = scene->focal_id ? bj_submission_find_track(s, scenario, scene->focal_id)
                                          : bj_submission_first_track(s, scenario);
    return bj_submission_track_at(s, track);
}

static bj_status submission_forecast(void *context, double *weights, double *trajectories,
                                     int64_t first, int count, bj_error *err) {
    const submission_arm *arm = context;
    bj_score_modes *const m = arm->modes;
    (void)err;
    for (int b = 0; b < count; b++, weights += arm->K, trajectories += (size_t)arm->K * ROW) {
        bj_truth_scene scene;
        bj_exam_known(&scene, arm->exam, first + b);
        const bj_submission_track track = track_of(arm->submission, &scene);
        bj_score_take(m, arm->submission, &track, &scene);
        for (int k = 0; k < arm->K; k++) {
            const size_t from = k < m->K ? (size_t)k : 0;
            weights[k] = k < m->K ? m->p[k] : 0;
            memcpy(trajectories + (size_t)k * ROW, m->local + from * ROW, ROW * sizeof(double));
        }
    }
    return BJ_OK;
}

/* Returns the max number of modes per scene. */
static int most_modes(const submission_arm *arm) {
    int64_t most = 1;
    for (int64_t i = 0; i < bj_exam_scenes(arm->exam); i++) {
        bj_truth_scene scene;
        bj_exam_known(&scene, arm->exam, i);
        const int64_t count = track_of(arm->submission, &scene).count;
        if (count > most) most = count;
    }
    return (int)most;
}

bj_status bj_exam_submission(bj_exam_report *report, bj_exam *exam, const bj_submission *submission,
                             int max_modes, bj_error *err) {
    submission_arm arm = {.exam = exam, .submission = submission};
    if (!exam || !submission) return BJ_FAIL(err, BJ_EARG, "exam: exam or submission is missing");
    BJ_TRY(check(&arm, max_modes, err));
    arm.K = most_modes(&arm);
    BJ_TRY(BJ_ALLOC(arm.modes, 1, err));
    const bj_status status = bj_exam_run(report, exam, arm.K, submission_forecast, &arm, err);
    bj_free(arm.modes);
    return status;
}
