/* forecast.h - metrics of the weighted forecast of one scene.
 *
 * With weights p, trajectories y_k, true future t, endpoints e_k and e_t:
 *
 *   ade_k, fde_k                     mean over steps and last step of |y_k - t|
 *   traj_obs                         sum_k p_k d(y_k, t), d the RMS distance over steps
 *   traj_disp                        1/2 sum_kl p_k p_l d(y_k, y_l)
 *   end_es                           sum_k p_k |e_k - e_t| - 1/2 sum_kl p_k p_l |e_k - e_l|
 *   exp_ade, exp_fde                 sum_k p_k ade_k, sum_k p_k fde_k
 *   brier, likeliest, confidence     from the maneuver distribution, which is the mass of the modes
 *                                    by endpoint: stop (< 2 m), left or right (30 degrees or more),
 *                                    else straight
 *   exp_entropy                      exp H(p)
 *   dedup_support                    exp H of the mass of endpoint clusters, linked within 1 m
 *
 * All values are in double, in meters, in the scene's frame with x ahead of the focal road user.
 * Shapes  p (K)   y (K,F,2)   t (F,2)
 * Edge    ties (largest weight, best, most likely) go to the lowest index; a squared distance of at
 *         most 1e-12 counts as zero, as in training
 * Tests   tests/eval/test_metrics.c, tests/eval/test_score.c
 */
#ifndef BJ_EVAL_FORECAST_H
#define BJ_EVAL_FORECAST_H

#include <branchjepa/branchjepa.h>

enum { BJ_MANEUVERS = 4 };
typedef enum bj_maneuver { BJ_STOP, BJ_STRAIGHT, BJ_LEFT, BJ_RIGHT } bj_maneuver;

typedef struct bj_forecast {
    int K, F; /* K <= BJ_MAX_ATOMS */
    const double *p, *y, *t;
} bj_forecast;

typedef struct bj_forecast_values {
    double ade[BJ_MAX_ATOMS], fde[BJ_MAX_ATOMS]; /* (K) */
    int top, least_ade, least_fde;               /* indices of the mode with the largest weight and
                                                    of the modes with the smallest errors */
    double traj_obs, traj_disp, end_es;
    double exp_ade, exp_fde;
    bj_maneuver truth, likeliest;
    double confidence, brier;
    double exp_entropy, dedup_support;
} bj_forecast_values;

/* Indices of the modes used by the Argoverse 2 metrics, chosen as in the av2 package. For K = 1
 * and K = 6, the best of the K most probable modes is chosen. Modes with equal probabilities keep
 * their order. If two modes have equal errors, the more probable one is chosen. */
typedef struct bj_official_modes {
    int top;                  /* K = 1 */
    int least_ade, least_fde; /* K = 6 */
} bj_official_modes;

/* p, ade and fde are (K). */
bj_official_modes bj_official_choose(const double *p, const double *ade, const double *fde, int K);
/* Returns (1 - p)^2, which the brier-* metrics add to the error of a mode. */
double bj_official_penalty(double p);

void bj_forecast_measure(bj_forecast_values *out, const bj_forecast *forecast);

bj_maneuver bj_maneuver_of(const double end[2]);
const char *bj_maneuver_name(bj_maneuver maneuver);

#endif
