/* submission.h - the columns of the official challenge format, and the rule of its weights.
 *
 *   scenario_id              text
 *   track_id                 text
 *   probability              double
 *   predicted_trajectory_x   list of 60 doubles, city coordinates in meters
 *   predicted_trajectory_y   the same
 *
 * Columns are found by name; others are ignored. docs/SCORE.md
 * Tests: tests/eval/test_score.c, tests/eval/peer_score.py
 */
#ifndef BJ_DATA_SUBMISSION_H
#define BJ_DATA_SUBMISSION_H

#include <branchjepa/branchjepa.h>

/* |1 - sum| <= 1e-8 + 1e-5 |sum|: what numpy.isclose(1, sum) of the official reader says. */
int bj_sums_to_one(double sum);

/* Rows of one track of a scenario, in the order of the file. */
typedef struct bj_submission_track {
    int64_t scenario;    /* number; -1: the rows have no scenario id */
    const char *track;   /* id; NULL: the rows have none */
    const int64_t *rows; /* (count) */
    int64_t count;
} bj_submission_track;

/* All tracks, sorted by the number of their scenario; those without an id come first. */
int64_t bj_submission_tracks(const bj_submission *submission);
bj_submission_track bj_submission_track_at(const bj_submission *submission, int64_t index);
/* First track of a scenario; of the number of scenarios: the end of the last one. */
int64_t bj_submission_first_track(const bj_submission *submission, int64_t scenario);
/* Returns the index of the track with that id in a scenario, or -1. */
int64_t bj_submission_find_track(const bj_submission *submission, int64_t scenario, const char *id);
const char *bj_submission_path(const bj_submission *submission);

#endif
