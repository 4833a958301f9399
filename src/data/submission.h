/* submission.h - the columns of the official challenge format, and a check of the probabilities.
 *
 *   scenario_id              text
 *   track_id                 text
 *   probability              double
 *   predicted_trajectory_x   list of 60 doubles, city coordinates in meters
 *   predicted_trajectory_y   list of 60 doubles, city coordinates in meters
 *
 * Columns are found by name, and other columns are ignored. See docs/SCORE.md.
 * Tests: tests/eval/test_score.c, tests/eval/peer_score.py
 */
#ifndef BJ_DATA_SUBMISSION_H
#define BJ_DATA_SUBMISSION_H

#include <branchjepa/branchjepa.h>

/* Returns 1 if |1 - sum| <= 1e-8 + 1e-5 |sum|, which is the rule of the official reader,
 * numpy.isclose(1, sum). */
int bj_sums_to_one(double sum);

/* The rows of one track of a scenario, in file order. */
typedef struct bj_submission_track {
    int64_t scenario;    /* scenario index, -1 if the rows have no scenario id */
    const char *track;   /* id, NULL if the rows have none */
    const int64_t *rows; /* (count) */
    int64_t count;
} bj_submission_track;

/* Returns the number of tracks. Tracks are sorted by scenario index. Tracks without a scenario id
 * come first. */
int64_t bj_submission_tracks(const bj_submission *submission);
bj_submission_track bj_submission_track_at(const bj_submission *submission, int64_t index);
/* Returns the first track of a scenario, or the total track count if `scenario` is the number of
 * scenarios. */
int64_t bj_submission_first_track(const bj_submission *submission, int64_t scenario);
/* Returns the index of a scenario's track with that id, or -1. */
int64_t bj_submission_find_track(const bj_submission *submission, int64_t scenario, const char *id);
const char *bj_submission_path(const bj_submission *submission);

#endif
