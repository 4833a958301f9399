/* score.c - checks and scores a submission against the ground truth; see score.h, docs/SCORE.md.
 *
 * Invariants
 *   1. Scenes are added in the order of the ground truth, so the means do not depend on the order
 *      of the rows in the file.
 *   2. Each ground-truth scene is counted once, in the first of these categories that applies:
 *      unreadable, missing, malformed, without a future, scored.
 *   3. Each scene is in group 0 and in one group of each kind.
 * Test: tests/eval/test_score.c
 */
#include "eval/score.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "eval/groups.h"
#include "eval/metrics.h"

enum { NUMBERS = 13 }; /* numbers in bj_score_values before `distribution` */

struct bj_score {
    const bj_submission *submission;
    const bj_truth *truth;
    bj_violations violations;
    bj_score_counts counts;
    uint8_t *good; /* (tracks) 1 if the modes can be scored */
    bj_groups groups;
    bj_score_scene *scenes; /* (scene_count) */
    int64_t scene_count;
    bj_metrics *single; /* for the values of a single scene */
    bj_score_modes *modes;
};

/* Returns a pointer to number i of a bj_score_values, for computing sums. */
static double *number(bj_score_values *v, int i) {
    double *const all[NUMBERS] = {&v->scenes,          &v->modes,     &v->min_ade_1,
                                  &v->min_fde_1,       &v->mr_1,      &v->brier_min_ade_1,
                                  &v->brier_min_fde_1, &v->min_ade_6, &v->min_ade_at_min_fde_6,
                                  &v->min_fde_6,       &v->mr_6,      &v->brier_min_ade_6,
                                  &v->brier_min_fde_6};
    return all[i];
}

/* --------------------------------------------------------------------------------------- scenes */

static bj_status count_scene(bj_score *s, bj_score_values *v, const bj_forecast_values *f,
                             const bj_truth_scene *truth, bj_error *err) {
    const bj_scene_class scene = {f->truth, truth->focal_type, truth->city, truth->speed};
    bj_group *groups[BJ_GROUP_KINDS];
    BJ_TRY(bj_groups_admit(&s->groups, &scene, err));
    bj_groups_find(groups, &s->groups, &scene);
    for (int i = 0; i < BJ_GROUP_KINDS; i++) {
        for (int j = 0; j < NUMBERS; j++) groups[i]->sums[j] += *number(v, j);
        bj_metrics_count(groups[i]->metrics, f, s->modes->p, s->modes->K);
    }
    return BJ_OK;
}

static bj_status score_scene(bj_score *s, const bj_submission_track *track,
                             const bj_truth_scene *truth, bj_error *err) {
    bj_forecast_values f;
    bj_score_values v;
    bj_score_take(s->modes, s->submission, track, truth);
    bj_score_official(&v, s->modes, truth);
    const bj_forecast forecast = {s->modes->K, BJ_TRUTH_STEPS, s->modes->p, s->modes->local,
                                  truth->future};
    bj_forecast_measure(&f, &forecast);
    bj_metrics_reset(s->single);
    bj_metrics_count(s->single, &f, s->modes->p, s->modes->K);
    v.distribution = bj_metrics_values(s->single);

    const char *const maneuver = bj_maneuver_name(f.truth);
    const int bin = bj_speed_bin(truth->speed);
    BJ_TRY(count_scene(s, &v, &f, truth, err));
    s->scenes[s->scene_count++] = (bj_score_scene){.scenario_id = truth->scenario_id,
                                                   .track_id = truth->focal_id,
                                                   .maneuver = maneuver,
                                                   .type = truth->focal_type,
                                                   .city = truth->city,
                                                   .speed = bj_speed_bin_name(bin),
                                                   .gaps = truth->gaps,
                                                   .values = v};
    s->counts.scored++;
    s->counts.gaps += truth->gaps > 0;
    return BJ_OK;
}

static bj_status score_truth(bj_score *s, int64_t index, bj_error *err) {
    bj_truth_scene truth;
    BJ_TRY(bj_truth_check(s->truth, index, err));
    bj_truth_scene_at(&truth, s->truth, index);
    const int64_t scenario = bj_submission_find(s->submission, truth.scenario_id);
    if (truth.failure) { /* its focal track is also unknown */
        s->counts.unreadable++;
        return BJ_OK;
    }
    const int64_t track =
        scenario < 0 ? -1 : bj_submission_find_track(s->submission, scenario, truth.focal_id);
    if (track < 0) {
        bj_violations_add(&s->violations, BJ_VIOLATION_MISSING, -1, truth.scenario_id,
                          scenario < 0 ? "the scenario is not in the file; its focal track is '%s'"
                                       : "no row for the focal track '%s'",
                          truth.focal_id);
        s->counts.missing++;
        return BJ_OK;
    }
    if (!s->good[track]) {
        s->counts.malformed++;
        return BJ_OK;
    }
    if (!truth.has_future) {
        s->counts.no_future++;
        return BJ_OK;
    }
    const bj_submission_track t = bj_submission_track_at(s->submission, track);
    return score_scene(s, &t, &truth, err);
}

/* ---------------------------------------------------------------------------------------- check */

/* Checks a scenario's rows against the ground truth. */
static void check_against_truth(bj_score *s, int64_t scenario, int64_t begin, int64_t end) {
    const char *const id = bj_submission_scenario(s->submission, scenario);
    const int64_t index = bj_truth_find(s->truth, id);
    bj_submission_track t = bj_submission_track_at(s->submission, begin);
    if (index < 0) {
        bj_violations_add(&s->violations, BJ_VIOLATION_UNKNOWN, t.rows[0], id,
                          "the ground truth contains no such scenario");
        s->counts.unknown++;
        return;
    }
    bj_truth_scene truth;
    bj_truth_scene_at(&truth, s->truth, index);
    for (int64_t i = begin; i < end && !truth.failure; i++) {
        t = bj_submission_track_at(s->submission, i);
        if (t.track && strcmp(t.track, truth.focal_id))
            bj_violations_add(&s->violations, BJ_VIOLATION_TRACK, t.rows[0], id,
                              "track '%s' (%lld rows) is not the focal track, which is '%s'",
                              t.track, (long long)t.count, truth.focal_id);
    }
}

static void check_rows(bj_score *s, int max_modes) {
    const int64_t scenarios = bj_submission_scenarios(s->submission);
    for (int64_t i = -1; i < scenarios; i++) { /* -1: rows without a scenario */
        const int64_t begin = bj_submission_first_track(s->submission, i);
        const int64_t end = bj_submission_first_track(s->submission, i + 1);
        for (int64_t k = begin; k < end; k++) {
            const bj_submission_track t = bj_submission_track_at(s->submission, k);
            s->good[k] = (uint8_t)bj_check_track(&s->violations, s->submission, &t, max_modes);
        }
        if (i < 0) continue;
        bj_check_scenario(&s->violations, s->submission, begin, end);
        if (s->truth) check_against_truth(s, i, begin, end);
    }
}

/* --------------------------------------------------------------------------------------- handle */

static bj_status run(bj_score *s, const bj_score_options *options, bj_error *err) {
    const int max_modes = options && options->max_modes ? options->max_modes : BJ_SUBMISSION_MODES;
    const int listed = options ? options->listed : 0;
    if (max_modes < 1 || max_modes > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EARG, "score: max_modes is %d, expected 1 to %d", max_modes,
                       BJ_MAX_ATOMS);
    if (listed < 0)
        return BJ_FAIL(err, BJ_EARG, "score: listed is %d, expected at least 0", listed);
    BJ_TRY(BJ_ALLOC(s->violations.list, (size_t)listed, err));
    s->violations.room = listed;
    BJ_TRY(BJ_ALLOC(s->good, (size_t)bj_submission_tracks(s->submission), err));
    BJ_TRY(BJ_ALLOC(s->modes, 1, err));
    BJ_TRY(bj_metrics_create(&s->single, BJ_MAX_ATOMS, 0, 0, 1, err));
    s->counts.rows = bj_submission_rows(s->submission);
    s->counts.scenarios = bj_submission_scenarios(s->submission);
    s->counts.truths = s->truth ? bj_truth_count(s->truth) : -1;
    check_rows(s, max_modes);
    if (s->truth) {
        BJ_TRY(BJ_ALLOC(s->scenes, (size_t)bj_truth_count(s->truth), err));
        for (int64_t i = 0; i < bj_truth_count(s->truth); i++) BJ_TRY(score_truth(s, i, err));
    }
    s->counts.violations_total = s->violations.total;
    memcpy(s->counts.violations, s->violations.count, sizeof s->violations.count);
    return BJ_OK;
}

bj_status bj_score_create(bj_score **out, const bj_submission *submission, const bj_truth *truth,
                          const bj_score_options *options, bj_error *err) {
    bj_score *score;
    if (!out || !submission) return BJ_FAIL(err, BJ_EARG, "score: output or submission is missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(score, 1, err));
    score->submission = submission;
    score->truth = truth;
    score->groups = (bj_groups){.K = BJ_MAX_ATOMS, .sums = NUMBERS};
    const bj_status status = run(score, options, err);
    if (status != BJ_OK) {
        bj_score_free(score);
        return status;
    }
    *out = score;
    return BJ_OK;
}

void bj_score_free(bj_score *score) {
    if (!score) return;
    bj_groups_reset(&score->groups);
    bj_metrics_free(score->single);
    bj_free(score->scenes);
    bj_free(score->modes);
    bj_free(score->good);
    bj_free(score->violations.list);
    bj_free(score);
}

bj_score_counts bj_score_count(const bj_score *score) { return score->counts; }
int bj_score_listed(const bj_score *score) { return score->violations.listed; }

const bj_violation *bj_score_violation(const bj_score *score, int index) {
    return &score->violations.list[index];
}

int bj_score_groups(const bj_score *score) { return score->groups.count; }

bj_score_group bj_score_group_at(const bj_score *score, int index) {
    const bj_group *g = &score->groups.list[index];
    bj_score_group out = {.by = bj_group_by(g), .key = g->key};
    for (int i = 0; i < NUMBERS; i++)
        *number(&out.values, i) = i ? g->sums[i] / g->sums[0] : g->sums[0];
    out.values.distribution = bj_metrics_values(g->metrics);
    return out;
}

int64_t bj_score_scenes(const bj_score *score) { return score->scene_count; }

const bj_score_scene *bj_score_scene_at(const bj_score *score, int64_t index) {
    return &score->scenes[index];
}
