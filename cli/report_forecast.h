/* report_forecast.h - scenes for a report, and what every run of the campaign predicts for them.
 *
 * Invariants
 *   1. Scenes are chosen by a hash of their ids and predicted from a cache that was opened blind;
 *      what happened is read afterwards, from a second handle.
 *   2. Held-out scenes are shown only once the locked evaluation is over.
 * Test: tests/cli/report.sh
 */
#ifndef BJEPA_REPORT_FORECAST_H
#define BJEPA_REPORT_FORECAST_H

#include "report_data.h"
#include "report_pretrained.h"
#include "report_scenes.h"

typedef struct report_forecast_options {
    const char *cache; /* NULL: held-out scenes of an evaluated campaign, else development scenes */
    const char *law;   /* NULL: the file beside the cache, if there is one */
    int count;         /* most scenes; 0: none */
    int threads;
    size_t most; /* bytes of JSON */
    const report_pretrained *pretrained; /* shown first; its model may be NULL */
} report_forecast_options;

typedef enum report_origin { REPORT_GIVEN, REPORT_HELD_OUT, REPORT_DEVELOPMENT } report_origin;

typedef struct report_forecasts {
    report_scenes *scenes; /* NULL: there are none, and `reason` says why */
    report_model *models;
    int model_count;
    report_origin origin;
    int64_t available; /* scenes to choose from */
    int dropped;       /* for the size of the page */
    int laws;          /* scenes with a law */
    char reason[600];
} report_forecasts;

/* A cache that was not named and cannot be read is a reason, not a failure. */
BJ_CHECK bj_status report_forecasts_make(report_forecasts *out, const report_data *data,
                                         const report_forecast_options *options, bj_error *err);
void report_forecasts_free(report_forecasts *forecasts);

#endif
