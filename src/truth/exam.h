/* exam.h - the forecast of one scene held against the law its future was drawn from.
 *
 * P is the forecast, atoms y_k with weights p_k; Q is the law, modes m with weights w_m and noise
 * around their means. With d the RMS distance over the 60 steps, X, X' from P and Y, Y' from Q:
 *
 *   discrepancy   D^2 = 2 E d(X,Y) - E d(X,X') - E d(Y,Y')
 *   floor         1/2 E d(Y,Y')
 *   expected      E of the Energy Score of P over Y = 1/2 D^2 + floor: the identity
 *
 * Expectations are exact over atoms and modes and sampled over the noise: M draws of each mode, cut
 * into groups of four. A group gives an unbiased estimate of each number (all pairs within the
 * group for E d(Y,Y')), so the spread of the groups is the Monte-Carlo error. Discrepancy, floor
 * and expected score come from three sets of draws of their own; otherwise the identity would hold
 * whatever they are. Draws depend on seed, purpose and scenario id alone: every forecaster meets
 * the same ones. docs/TRUTH.md has the definitions of everything else.
 *
 * Shapes  p (K)   y (K,60,2)   draws (modes,M,60,2)   everything in the frame of the scene, meters
 * Tests   tests/truth/test_exam_scene.c, test_exam_best.c, test_exam.c
 */
#ifndef BJ_TRUTH_EXAM_H
#define BJ_TRUTH_EXAM_H

#include <stdint.h>

#include "eval/forecast.h"

enum {
    BJ_EXAM_STEPS = BJ_SUBMISSION_STEPS,
    BJ_EXAM_ROW = 2 * BJ_EXAM_STEPS,
    BJ_EXAM_MODES = 64, /* more modes of a scene are refused */
    BJ_EXAM_GROUP = 4,
    BJ_EXAM_SAMPLES_MIN = 16,
    BJ_EXAM_SAMPLES_MAX = 4096
};

/* A forecast whose weights sum to one. */
typedef struct bj_exam_forecast {
    int K;
    const double *p, *y;
} bj_exam_forecast;

/* An estimate and the variance of its Monte-Carlo error. */
typedef struct bj_moment {
    double mean, variance;
} bj_moment;

typedef struct bj_exam_scene {
    /* bj_exam_measure */
    bj_moment discrepancy, floor, expected;
    bj_moment difference;           /* expected - (discrepancy / 2 + floor) */
    double score_variance;          /* of the Energy Score over futures of the law */
    double actual[2][BJ_MANEUVERS]; /* true probabilities, from two independent sets */
    /* bj_exam_modes */
    int modes, found;   /* found: a branch with at least 1 % is within 2 m RMS of its mean */
    double found_mass;  /* true mass of those */
    double mass_error;  /* total variation between the masses of modes, "elsewhere" included */
    double unexplained; /* predicted mass that is within 2 m RMS of no mode */
    double predicted[BJ_MANEUVERS];
} bj_exam_scene;

double bj_exam_distance(const double *a, const double *b); /* rows of 60 points */

/* n draws of every mode: draws (modes,n,60,2). `purpose` keeps sets apart. */
void bj_exam_draw(double *draws, const bj_law_scene *law, int n, uint64_t seed,
                  const char *purpose);

/* E d(Y,Y') from draws (modes,samples,60,2) of one group: different draws of a mode, all draws of
 * two modes. The weights may be those of a difference of two laws, which sum to zero. */
double bj_exam_law_distance(const bj_law_scene *law, const double *draws, int samples, int group);
/* Mean of the groups, and its variance by their spread. */
bj_moment bj_exam_moment(const double *groups, int n);

/* Doubles of `work` that M draws of the given number of modes take. */
size_t bj_exam_work(int modes, int samples);
void bj_exam_measure(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *forecast,
                     int samples, uint64_t seed, double *work);
void bj_exam_modes(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *forecast);

/* The best K atoms that were found: p (K), y (K,60,2). */
size_t bj_exam_best_work(int modes, int K);
void bj_exam_best(double *p, double *y, int K, const bj_law_scene *law, uint64_t seed,
                  double *work);

/* Discrepancy of two laws of one scene with the same number of factors; equal modes cancel. */
bj_status bj_exam_between(bj_moment *out, const bj_law_scene *a, const bj_law_scene *b, int samples,
                          uint64_t seed, bj_error *err);

/* The K heaviest modes, weights renormalized; with fewer modes the other atoms weigh nothing and
 * repeat the first. */
void bj_exam_truncate(double *p, double *y, int K, const bj_law_scene *law);

#endif
