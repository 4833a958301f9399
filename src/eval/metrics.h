/* metrics.h - the accumulator of evaluation metrics, from inside the library.
 *
 * bj_metrics_add of the public interface takes what a network puts out. Forecasts that came from
 * elsewhere are measured first (eval/forecast.h) and counted here.
 */
#ifndef BJ_EVAL_METRICS_H
#define BJ_EVAL_METRICS_H

#include "core/status.h"
#include "eval/forecast.h"

/* What is known of a scene before it is counted. */
typedef struct bj_scene_values {
    bj_forecast_values forecast;
    double latent_es, neff_collision; /* 0 where there are no latents, or but one */
} bj_scene_values;

/* Refuses numbers of scene b that are not finite, and weights outside [0,1]. `future` (F,2) is the
 * scene's own. */
BJ_CHECK bj_status bj_metrics_check_scene(const bj_metrics *metrics, const bj_outputs *outputs,
                                          const bj_real *future, int b, bj_error *err);
/* The values of scene b, in the accumulator's scratch memory; counts nothing. */
void bj_metrics_measure(bj_scene_values *out, bj_metrics *metrics, const bj_outputs *outputs,
                        const bj_real *future, int b);

/* Counts a scene without latents; p (K) are its weights. */
void bj_metrics_count(bj_metrics *metrics, const bj_forecast_values *values, const double *p,
                      int K);
/* Counts the latents of a scene besides. */
void bj_metrics_count_latents(bj_metrics *metrics, const bj_scene_values *values);

/* Weight that each branch got in all, (K). */
const double *bj_metrics_mass(const bj_metrics *metrics);
void bj_metrics_calibration(bj_calibration_bin bins[BJ_CALIBRATION_BINS],
                            const bj_metrics *metrics);

#endif
