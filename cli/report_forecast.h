/* report_forecast.h - selects the scenes of a report and predicts them with every run of the
 * campaign.
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
    const char *cache; /* NULL: held-out scenes if the campaign has been evaluated, otherwise
                          development scenes */
    const char *law;   /* NULL: the file next to the cache, if it exists */
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

/* If a cache that the user did not name cannot be read, the reason is stored, and this is not an
 * error. */
BJ_CHECK bj_status report_forecasts_make(report_forecasts *out, const report_data *data,
                                         const report_forecast_options *options, bj_error *err);
void report_forecasts_free(report_forecasts *forecasts);

#endif
