/* score.h - internal interface for checking and scoring a submission.
 *
 *   score_check.c    checks the rows against the rules and reports violations
 *   score_values.c   computes the official metrics of one scene
 *   score.c          checks and scores a whole file, in groups
 *
 * docs/SCORE.md defines every rule and formula.
 */
#ifndef BJ_EVAL_SCORE_H
#define BJ_EVAL_SCORE_H

#include "core/status.h"
#include "data/submission.h"
#include "data/truth.h"
#include "eval/forecast.h"

/* ---------------------------------------------------------------------------------- violations */

typedef struct bj_violations {
    bj_violation *list; /* (listed) the first violations */
    int listed, room;
    int64_t total, count[BJ_VIOLATION_KINDS];
} bj_violations;

void bj_violations_add(bj_violations *v, bj_violation_kind kind, int64_t row, const char *scenario,
                       const char *fmt, ...) BJ_PRINTF(5, 6);

/* Checks a track without the ground truth. Returns 1 if its modes can be scored. This requires 1 to
 * BJ_MAX_ATOMS modes with 60 finite points each, and probabilities in [0,1] that sum to one. */
int bj_check_track(bj_violations *v, const bj_submission *submission,
                   const bj_submission_track *track, int max_modes);
/* Checks that the tracks [begin,end) of one scenario have the same number of modes and the same
 * probabilities. */
void bj_check_scenario(bj_violations *v, const bj_submission *submission, int64_t begin,
                       int64_t end);

/* -------------------------------------------------------------------------------------- values */

/* Modes of a track in both frames, in file order. */
typedef struct bj_score_modes {
    int K;
    double p[BJ_MAX_ATOMS];
    double city[BJ_MAX_ATOMS * 2 * BJ_TRUTH_STEPS];  /* (K,60,2) */
    double local[BJ_MAX_ATOMS * 2 * BJ_TRUTH_STEPS]; /* (K,60,2) in the frame of the ground truth */
} bj_score_modes;

void bj_score_take(bj_score_modes *out, const bj_submission *submission,
                   const bj_submission_track *track, const bj_truth_scene *truth);
/* Computes the official metrics: scenes, modes and all fields before `distribution`. */
void bj_score_official(bj_score_values *out, const bj_score_modes *modes,
                       const bj_truth_scene *truth);

#endif
