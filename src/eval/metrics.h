/* metrics.h - the accumulator of evaluation metrics, from inside the library.
 *
 * bj_metrics_add of the public interface takes what a network puts out. Forecasts that came from
 * elsewhere are measured first (eval/forecast.h) and counted here.
 */
#ifndef BJ_EVAL_METRICS_H
#define BJ_EVAL_METRICS_H

#include "eval/forecast.h"

/* Counts a scene without latents; p (K) are its weights. */
void bj_metrics_count(bj_metrics *metrics, const bj_forecast_values *values, const double *p,
                      int K);

#endif
