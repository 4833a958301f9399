/* metrics.h - internal interface of the metrics accumulator.
 *
 * The public bj_metrics_add takes the outputs of a network. Forecasts from other sources are
 * measured with eval/forecast.h first and then added here.
 */
#ifndef BJ_EVAL_METRICS_H
#define BJ_EVAL_METRICS_H

#include "core/status.h"
#include "eval/forecast.h"

/* Values of one scene before they are added to the sums. */
typedef struct bj_scene_values {
    bj_forecast_values forecast;
    double latent_es, neff_collision; /* 0 if there are no latents; neff_collision is also 0 if
                                         there is only one latent */
} bj_scene_values;

/* Fails if a value of scene b is not finite or a weight is outside [0,1].
 * `future` (F,2) is the true future of scene b. */
BJ_CHECK bj_status bj_metrics_check_scene(const bj_metrics *metrics, const bj_outputs *outputs,
                                          const bj_real *future, int b, bj_error *err);
/* Computes the values of scene b without adding them to the sums. Uses the accumulator's scratch
 * memory. */
void bj_metrics_measure(bj_scene_values *out, bj_metrics *metrics, const bj_outputs *outputs,
                        const bj_real *future, int b);

/* Adds a scene to the sums, without its latents. p (K) contains its weights. */
void bj_metrics_count(bj_metrics *metrics, const bj_forecast_values *values, const double *p,
                      int K);
/* Adds the latent values of a scene to the sums. Must be called in addition to bj_metrics_count. */
void bj_metrics_count_latents(bj_metrics *metrics, const bj_scene_values *values);

/* Returns the total weight of each branch, (K). */
const double *bj_metrics_mass(const bj_metrics *metrics);
void bj_metrics_calibration(bj_calibration_bin bins[BJ_CALIBRATION_BINS],
                            const bj_metrics *metrics);

#endif
