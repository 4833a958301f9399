/* exam_sum.h - sums over scenes for a report, and functions of exam.c that forecasters use.
 *
 * Scenes are independent, so the variances of the Monte Carlo errors add up and are divided by the
 * squared number of scenes. The identity may be violated by up to 5 standard errors. With few
 * scenes, the standard error itself is uncertain, so the factor 5 is replaced by the Student t
 * quantile of the same probability, with Welch-Satterthwaite degrees of freedom.
 */
#ifndef BJ_TRUTH_EXAM_SUM_H
#define BJ_TRUTH_EXAM_SUM_H

#include "eval/score.h"
#include "truth/exam.h"

enum { BJ_EXAM_BLOCK = 64 /* scenes per call of a forecaster */ };

const bj_cache *bj_exam_cache(const bj_exam *exam); /* may be NULL */
const bj_truth *bj_exam_truth(const bj_exam *exam); /* NULL if only the law file is available */
const bj_law *bj_exam_laws(const bj_exam *exam);
/* Fills in information about a scene that the law does not contain. Without data, only the id and
 * the frame are set, and focal_id is NULL. */
void bj_exam_known(bj_truth_scene *out, const bj_exam *exam, int64_t scene);
int bj_exam_threads(const bj_exam *exam); /* from the options */
bj_law_scene bj_exam_law(const bj_exam *exam, int64_t scene);
uint64_t bj_exam_seed(const bj_exam *exam);
/* Calls the caller's progress function. Returns BJ_ELOCKED if the function requests a stop. */
bj_status bj_exam_progress(const bj_exam *exam, int64_t done, int64_t total, bj_error *err);

typedef struct bj_exam_result {
    bj_exam_scene scene;
    int has_future;
    double score; /* Energy Score of the realized future */
} bj_exam_result;

typedef struct bj_moment_sum {
    double mean, square; /* sums over scenes of the mean and of its square */
    double variance, variance_square;
} bj_moment_sum;

typedef struct bj_exam_sum {
    int K, groups;
    int64_t scenes, realized, modes, found, best_own_count;
    bj_moment_sum discrepancy, floor, expected, difference, best, best_own;
    double score, score_square, surprise, surprise_variance;
    double found_mass, mass_error, unexplained;
    double maneuver_error, brier_excess, brier_floor;
    bj_exam_bin bins[BJ_EXAM_BINS]; /* sums, not means */
} bj_exam_sum;

void bj_moment_sum_add(bj_moment_sum *sum, const bj_moment *moment);
bj_estimate bj_moment_sum_estimate(const bj_moment_sum *sum, int64_t scenes); /* NaN if
                                                                                 scenes is 0 */
/* Returns the standard error of the mean due to the choice of scenes, or NaN if there are fewer
 * than two scenes. */
double bj_moment_sum_spread(const bj_moment_sum *sum, int64_t scenes);

void bj_exam_sum_start(bj_exam_sum *sum, int K, int groups);
void bj_exam_sum_add(bj_exam_sum *sum, const bj_exam_result *result);
/* Adds a scene of the sample, with the forecaster's values and the discrepancy of the best
 * atoms. */
void bj_exam_sum_add_best(bj_exam_sum *sum, const bj_exam_scene *own, const bj_moment *best);
void bj_exam_sum_report(bj_exam_report *report, const bj_exam_sum *sum);

#endif
