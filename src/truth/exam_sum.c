/* exam_sum.c - see exam_sum.h. Test: tests/truth/test_exam.c */
#include "truth/exam_sum.h"

#include <math.h>

void bj_exam_sum_start(bj_exam_sum *sum, int K, int groups) {
    *sum = (bj_exam_sum){.K = K, .groups = groups};
}

void bj_moment_sum_add(bj_moment_sum *sum, const bj_moment *m) {
    sum->mean += m->mean;
    sum->square += m->mean * m->mean;
    sum->variance += m->variance;
    sum->variance_square += m->variance * m->variance;
}

static void add_maneuvers(bj_exam_sum *sum, const bj_exam_scene *s) {
    for (int c = 0; c < BJ_MANEUVERS; c++) {
        const double p = s->predicted[c], a = s->actual[0][c], b = s->actual[1][c];
        const double actual = (a + b) / 2;
        int bin = (int)(p * BJ_EXAM_BINS); /* [0,.1) ... [.9,1] */
        if (bin >= BJ_EXAM_BINS) bin = BJ_EXAM_BINS - 1;
        sum->bins[bin].count++;
        sum->bins[bin].predicted += p;
        sum->bins[bin].actual += actual;
        sum->maneuver_error += fabs(p - actual) / 2;
        /* Use products of two independent estimates, because the square of a single estimate is
         * biased by its variance. */
        sum->brier_excess += (p - a) * (p - b);
        sum->brier_floor += (a * (1 - b) + b * (1 - a)) / 2;
    }
}

void bj_exam_sum_add(bj_exam_sum *sum, const bj_exam_result *result) {
    const bj_exam_scene *s = &result->scene;
    sum->scenes++;
    bj_moment_sum_add(&sum->discrepancy, &s->discrepancy);
    bj_moment_sum_add(&sum->floor, &s->floor);
    bj_moment_sum_add(&sum->expected, &s->expected);
    bj_moment_sum_add(&sum->difference, &s->difference);
    sum->modes += s->modes;
    sum->found += s->found;
    sum->found_mass += s->found_mass;
    sum->mass_error += s->mass_error;
    sum->unexplained += s->unexplained;
    add_maneuvers(sum, s);
    if (!result->has_future) return;
    sum->realized++;
    sum->score += result->score;
    sum->score_square += result->score * result->score;
    sum->surprise += result->score - s->expected.mean;
    sum->surprise_variance += s->score_variance + s->expected.variance;
}

void bj_exam_sum_add_best(bj_exam_sum *sum, const bj_exam_scene *own, const bj_moment *best) {
    sum->best_own_count++;
    bj_moment_sum_add(&sum->best_own, &own->discrepancy);
    bj_moment_sum_add(&sum->best, best);
}

/* -------------------------------------------------------------------------------------- report */

bj_estimate bj_moment_sum_estimate(const bj_moment_sum *sum, int64_t n) {
    if (!n) return (bj_estimate){NAN, NAN};
    return (bj_estimate){sum->mean / (double)n, sqrt(sum->variance) / (double)n};
}

/* Returns the standard error of a mean over n scenes, estimated from their spread, or NaN if n <
 * 2. */
static double spread(double total, double squares, int64_t n) {
    const double count = (double)n, mean = total / count;
    if (n < 2) return NAN;
    const double variance = (squares - count * mean * mean) / (count - 1);
    return variance > 0 ? sqrt(variance / count) : 0;
}

double bj_moment_sum_spread(const bj_moment_sum *sum, int64_t n) {
    return spread(sum->mean, sum->square, n);
}

/* Returns the quantile of Student's t distribution that has the same tail probability as 5 standard
 * deviations of a normal distribution. */
static double tolerated(const bj_moment_sum *sum, int groups) {
    const double rare = 2.866515718791933e-7;
    if (!(sum->variance_square > 0)) return 5;
    double degrees = sum->variance * sum->variance / sum->variance_square * (groups - 1);
    if (degrees > 1e6) degrees = 1e6;
    if (degrees < 1) degrees = 1;
    const double t = -bj_student_quantile(rare, degrees);
    return t > 5 ? t : 5;
}

static void report_bins(bj_exam_report *r, const bj_exam_sum *sum) {
    r->calibration_error = 0;
    for (int i = 0; i < BJ_EXAM_BINS; i++) {
        const bj_exam_bin *from = &sum->bins[i];
        const double count = (double)from->count;
        r->bins[i] = (bj_exam_bin){from->count, from->count ? from->predicted / count : NAN,
                                   from->count ? from->actual / count : NAN};
        r->calibration_error += fabs(from->predicted - from->actual);
    }
    r->calibration_error /= (double)sum->scenes * BJ_MANEUVERS;
}

void bj_exam_sum_report(bj_exam_report *r, const bj_exam_sum *sum) {
    const double n = (double)sum->scenes;
    *r =
        (bj_exam_report){.scenes = sum->scenes,
                         .atoms = sum->K,
                         .discrepancy = bj_moment_sum_estimate(&sum->discrepancy, sum->scenes),
                         .discrepancy_spread = bj_moment_sum_spread(&sum->discrepancy, sum->scenes),
                         .floor = bj_moment_sum_estimate(&sum->floor, sum->scenes),
                         .expected_es = bj_moment_sum_estimate(&sum->expected, sum->scenes),
                         .difference = bj_moment_sum_estimate(&sum->difference, sum->scenes),
                         .tolerated = tolerated(&sum->difference, sum->groups),
                         .realized = sum->realized,
                         .best_scenes = sum->best_own_count,
                         .best = bj_moment_sum_estimate(&sum->best, sum->best_own_count),
                         .best_own = bj_moment_sum_estimate(&sum->best_own, sum->best_own_count),
                         .modes = sum->modes,
                         .recall = (double)sum->found / (double)sum->modes,
                         .recall_mass = sum->found_mass / n,
                         .mass_error = sum->mass_error / n,
                         .unexplained = sum->unexplained / n,
                         .maneuver_error = sum->maneuver_error / n,
                         .brier_excess = sum->brier_excess / n,
                         .brier_floor = sum->brier_floor / n};
    /* The last term allows for rounding, because a law without noise has a standard error of 0. */
    r->identity = fabs(r->difference.mean) <=
                  r->tolerated * r->difference.error + 1e-10 * (1 + fabs(r->expected_es.mean));
    r->capacity = r->best.mean / r->best_own.mean;
    r->learning = 1 - r->capacity;
    r->realized_es = (bj_estimate){NAN, NAN};
    r->surprise = NAN;
    report_bins(r, sum);
    if (!sum->realized) return;
    r->realized_es.mean = sum->score / (double)sum->realized;
    r->realized_es.error = spread(sum->score, sum->score_square, sum->realized);
    r->surprise = sum->surprise_variance > 0 ? sum->surprise / sqrt(sum->surprise_variance) : 0;
}
