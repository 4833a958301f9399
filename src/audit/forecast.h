/* forecast.h - measures a forecast of the network against drivable areas.
 *
 * Used by the audit and by the locked evaluation, so both transform points and weights in the same
 * way. Test: tests/audit/test_audit.c
 */
#ifndef BJ_AUDIT_FORECAST_H
#define BJ_AUDIT_FORECAST_H

#include "core/status.h"

/* Measures weights (K) and trajectories (K,F,2) in the frame of the scene. Points are transformed to
 * city coordinates in double, and the weights are divided by their sum. room is (2,K,F,2). */
void bj_audit_forecast(bj_audit_scene *out, const bj_drivable *areas, const bj_scene_info *info,
                       int K, int F, const bj_real *weights, const bj_real *trajectories,
                       double *room);

#endif
