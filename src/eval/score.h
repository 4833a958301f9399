/* score.h - parts of a score: the check of a submission and its sums.
 *
 *   score_check.c    rows against the rules, truth against rows: violations
 *   score_values.c   one scene against its truth: official metrics and distribution
 *   score.c          both for a whole file, in groups
 *
 * docs/SCORE.md states every rule and formula.
 */
#ifndef BJ_EVAL_SCORE_H
#define BJ_EVAL_SCORE_H

#include "core/status.h"
#include "data/submission.h"
#include "data/truth.h"
#include "eval/forecast.h"

/* ---------------------------------------------------------------------------------- violations */

typedef struct bj_violations {
    bj_violation *list; /* (listed) the first ones */
    int listed, room;
    int64_t total, count[BJ_VIOLATION_KINDS];
} bj_violations;

void bj_violations_add(bj_violations *v, bj_violation_kind kind, int64_t row, const char *scenario,
                       const char *fmt, ...) BJ_PRINTF(5, 6);

/* Everything that can be said of a track without a truth; returns whether its modes can be scored:
 * 1 to BJ_MAX_ATOMS of them, 60 finite points each, probabilities within [0,1] that sum to one. */
int bj_check_track(bj_violations *v, const bj_submission *submission,
                   const bj_submission_track *track, int max_modes);
/* Whether the tracks [begin,end) of one scenario have the same modes. */
void bj_check_scenario(bj_violations *v, const bj_submission *submission, int64_t begin,
                       int64_t end);

/* -------------------------------------------------------------------------------------- values */

/* Modes of a track in both frames, in the order of the file. */
typedef struct bj_score_modes {
    int K;
    double p[BJ_MAX_ATOMS];
    double city[BJ_MAX_ATOMS * 2 * BJ_TRUTH_STEPS];  /* (K,60,2) */
    double local[BJ_MAX_ATOMS * 2 * BJ_TRUTH_STEPS]; /* (K,60,2) of the truth's frame */
} bj_score_modes;

void bj_score_take(bj_score_modes *out, const bj_submission *submission,
                   const bj_submission_track *track, const bj_truth_scene *truth);
/* The official metrics: scenes, modes and everything up to `distribution`. */
void bj_score_official(bj_score_values *out, const bj_score_modes *modes,
                       const bj_truth_scene *truth);

#endif
