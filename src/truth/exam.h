/* exam.h - compares the forecast of one scene with the law from which its future was drawn.
 *
 * P is the forecast, with atoms y_k and weights p_k. Q is the law, with
 * modes m, weights w_m and noise around their means. With d the RMS
 * distance over the 60 steps, X, X' from P and Y, Y' from Q:
 *
 *   discrepancy   D^2 = 2 E d(X,Y) - E d(X,X') - E d(Y,Y')
 *   floor         1/2 E d(Y,Y')
 *   expected      E of the Energy Score of P over Y
 *   identity      expected = 1/2 D^2 + floor
 *
 * Expectations are exact over atoms and modes and sampled over the noise, with M draws per mode in
 * groups of four. Each group gives an unbiased estimate of each number (E d(Y,Y') uses all pairs
 * within the group), so the spread between groups gives the Monte Carlo error. Discrepancy, floor
 * and expected score use three independent sets of draws, because the identity would hold trivially
 * if they shared a set. Draws depend only on seed, purpose and scenario id, so all forecasters are
 * measured with the same draws. docs/TRUTH.md defines the other values.
 *
 * Shapes  p (K)   y (K,60,2)   draws (modes,M,60,2)   all in the frame of the scene, meters
 * Tests   tests/truth/test_exam_scene.c, test_exam_best.c, test_exam.c
 */
#ifndef BJ_TRUTH_EXAM_H
#define BJ_TRUTH_EXAM_H

#include <stdint.h>

#include "eval/forecast.h"

enum {
    BJ_EXAM_STEPS = BJ_SUBMISSION_STEPS,
    BJ_EXAM_ROW = 2 * BJ_EXAM_STEPS,
    BJ_EXAM_MODES = 64, /* max number of modes per scene */
    BJ_EXAM_GROUP = 4,
    BJ_EXAM_SAMPLES_MIN = 16,
    BJ_EXAM_SAMPLES_MAX = 4096
};

/* A forecast whose weights sum to one. */
typedef struct bj_exam_forecast {
    int K;
    const double *p, *y;
} bj_exam_forecast;

/* An estimate and the variance of its Monte Carlo error. */
typedef struct bj_moment {
    double mean, variance;
} bj_moment;

typedef struct bj_exam_scene {
    /* Set by bj_exam_measure. */
    bj_moment discrepancy, floor, expected;
    bj_moment difference;           /* expected - (discrepancy / 2 + floor) */
    double score_variance;          /* variance of the Energy Score over the futures of the law */
    double actual[2][BJ_MANEUVERS]; /* true maneuver probabilities, from two independent sets of
                                       draws */
    /* Set by bj_exam_modes. */
    int modes, found;   /* number of modes with a branch of weight >= 1 % within 2 m RMS of their
                           mean */
    double found_mass;  /* true mass of the found modes */
    double mass_error;  /* total variation distance between the mode masses; mass outside all modes
                           counts too */
    double unexplained; /* predicted mass that is farther than 2 m RMS from every mode */
    double predicted[BJ_MANEUVERS];
} bj_exam_scene;

double bj_exam_distance(const double *a, const double *b); /* rows of 60 points */

/* Draws n futures per mode: draws (modes,n,60,2). Each `purpose` has its own random stream. */
void bj_exam_draw(double *draws, const bj_law_scene *law, int n, uint64_t seed,
                  const char *purpose);

/* Returns E d(Y,Y') from one group of draws (modes,samples,60,2). Pairs within one mode use
 * different draws. Pairs from two modes use all draws. The weights may be the difference between
 * the weights of two laws, in which case they sum to zero. */
double bj_exam_law_distance(const bj_law_scene *law, const double *draws, int samples, int group);
/* Returns the mean over groups and its variance, estimated from their spread. */
bj_moment bj_exam_moment(const double *groups, int n);

/* Returns the size of the work array, in doubles, for M draws per mode. */
size_t bj_exam_work(int modes, int samples);
void bj_exam_measure(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *forecast,
                     int samples, uint64_t seed, double *work);
void bj_exam_modes(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *forecast);

/* Searches for the best K atoms. Returns the best ones found: p (K), y (K,60,2). */
size_t bj_exam_best_work(int modes, int K);
void bj_exam_best(double *p, double *y, int K, const bj_law_scene *law, uint64_t seed,
                  double *work);

/* Computes the discrepancy between two laws of one scene, which must have the same number of
 * factors. A mode with equal weights in both laws cancels out. */
bj_status bj_exam_between(bj_moment *out, const bj_law_scene *a, const bj_law_scene *b, int samples,
                          uint64_t seed, bj_error *err);

/* Returns the K modes with the largest weights, renormalized to sum to one. If the law has fewer
 * modes, the remaining atoms are copies of the first one with weight zero. */
void bj_exam_truncate(double *p, double *y, int K, const bj_law_scene *law);

#endif
