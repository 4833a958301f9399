/* forecast.h - what the weighted forecast of one scene is worth.
 *
 * With weights p, trajectories y_k, true future t, endpoints e_k and e_t:
 *
 *   ade_k, fde_k                     mean over steps and last step of |y_k - t|
 *   traj_obs                         sum_k p_k d(y_k, t), d the RMS distance over steps
 *   traj_disp                        1/2 sum_kl p_k p_l d(y_k, y_l)
 *   end_es                           sum_k p_k |e_k - e_t| - 1/2 sum_kl p_k p_l |e_k - e_l|
 *   exp_ade, exp_fde                 sum_k p_k ade_k, sum_k p_k fde_k
 *   brier, likeliest, confidence     of the maneuver distribution: the mass of the modes whose
 *                                    endpoints say stop (< 2 m), left, right (30 degrees or more)
 *                                    or straight
 *   exp_entropy                      exp H(p)
 *   dedup_support                    exp H of the mass of endpoint clusters, linked within 1 m
 *
 * Everything is in double, in the frame of the scene: x ahead of the focal road user, in meters.
 * Shapes  p (K)   y (K,F,2)   t (F,2)
 * Edge    ties (heaviest, best, likeliest) go to the first index; a squared distance d^2 of at most
 *         1e-12 counts as zero, as in training
 * Tests   tests/eval/test_metrics.c, tests/eval/test_score.c
 */
#ifndef BJ_EVAL_FORECAST_H
#define BJ_EVAL_FORECAST_H

#include <branchjepa/branchjepa.h>

enum { BJ_MANEUVERS = 4 };
typedef enum bj_maneuver { BJ_STOP, BJ_STRAIGHT, BJ_LEFT, BJ_RIGHT } bj_maneuver;

typedef struct bj_forecast {
    int K, F; /* K at most BJ_MAX_ATOMS */
    const double *p, *y, *t;
} bj_forecast;

typedef struct bj_forecast_values {
    double ade[BJ_MAX_ATOMS], fde[BJ_MAX_ATOMS]; /* (K) */
    int top, least_ade, least_fde;               /* modes: heaviest and best */
    double traj_obs, traj_disp, end_es;
    double exp_ade, exp_fde;
    bj_maneuver truth, likeliest;
    double confidence, brier;
    double exp_entropy, dedup_support;
} bj_forecast_values;

void bj_forecast_measure(bj_forecast_values *out, const bj_forecast *forecast);

bj_maneuver bj_maneuver_of(const double end[2]);
const char *bj_maneuver_name(bj_maneuver maneuver);

#endif
