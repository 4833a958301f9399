/* forecast.c - see forecast.h. */
#include "audit/forecast.h"

void bj_audit_forecast(bj_audit_scene *out, const bj_drivable *areas, const bj_scene_info *info,
                       int K, int F, const bj_real *weights, const bj_real *trajectories,
                       double *room) {
    const int n = 2 * K * F;
    double *const local = room, *const city = room + n;
    double p[BJ_MAX_ATOMS], sum = 0;
    for (int k = 0; k < K; k++) sum += weights[k];
    for (int k = 0; k < K; k++) p[k] = weights[k] / sum;
    for (int i = 0; i < n; i++) local[i] = trajectories[i];
    bj_to_city(city, local, K * F, info->origin, info->heading);
    bj_audit_measure(out, areas, K, F, p, city);
}
