/* view.h - declarations shared by the files of bjepa view.
 *
 *   cmd_view.c     options, which scenes, the page
 *   view_scenes.c  scenes of a folder or a cache
 *   view_source.c  forecasts of a submission file, or of a model that predicts
 */
#ifndef BJEPA_VIEW_H
#define BJEPA_VIEW_H

#include "report_scenes.h"

/* --------------------------------------------------------------------------------------- scenes */

/* A source of scenes. A cache is opened blind, so its futures cannot be read through this
 * source. */
typedef struct view_scenes {
    const char *path;
    bj_scenario_list *list; /* NULL: a cache */
    bj_cache *cache;
    bj_loader *loader; /* of the cache; step i is scene i */
} view_scenes;

BJ_CHECK bj_status view_scenes_open(view_scenes *scenes, const char *path, bj_error *err);
void view_scenes_close(view_scenes *scenes);
int64_t view_scenes_count(const view_scenes *scenes);
const char *view_scenes_id(const view_scenes *scenes, int64_t index);
bj_arch view_scenes_sizes(const view_scenes *scenes);

/* One scene, which is valid until it is closed or the next one is opened. */
typedef struct view_scene {
    report_scene shown;
    const bj_batch *batch;
    bj_scenario_scene *owned; /* NULL: of a cache */
} view_scene;

BJ_CHECK bj_status view_scene_open(view_scene *scene, const view_scenes *scenes, int64_t index,
                                   bj_error *err);
void view_scene_close(view_scene *scene);

/* ------------------------------------------------------------------------------------ forecasts */

enum { VIEW_TITLE_SIZE = 96, VIEW_ABOUT_SIZE = 320 };

/* Whose forecasts. */
typedef struct view_source {
    const char *name; /* as given */
    char title[VIEW_TITLE_SIZE];
    char about
        [VIEW_ABOUT_SIZE];     /* origin of a model; empty if its file does not contain it */
    bj_submission *submission; /* NULL: a model */
    bj_predictor *predictor;
    bj_arch arch; /* of the model */
    bj_real *weights, *paths;
} view_source;

/* One forecast in the frame of a scene. K is 0 if there is none. */
typedef struct view_forecast {
    int K, steps;    /* steps of a path */
    double *weights; /* (BJ_MAX_ATOMS) */
    double *paths;   /* (BJ_MAX_ATOMS, steps, 2) */
} view_forecast;

BJ_CHECK bj_status view_forecast_create(view_forecast *forecast, int steps, bj_error *err);
void view_forecast_free(view_forecast *forecast);

/* Opens a submission or a model. A model is a folder, a file that ends in .safetensors, or
 * `builtin`. */
BJ_CHECK bj_status view_source_open(view_source *source, const char *operand, int threads,
                                    bj_error *err);
void view_source_close(view_source *source);
/* Fails if forecasts of the source cannot be drawn in scenes of these sizes. */
BJ_CHECK bj_status view_source_fits(const view_source *source, const bj_arch *scenes,
                                    bj_error *err);
/* Returns 1 if the source has or can compute a forecast for that scenario. */
int view_source_has(const view_source *source, const char *scenario_id);
/* Reads or predicts the forecast for a scene. `scene` is a batch of one. It is not read for a
 * submission. */
BJ_CHECK bj_status view_source_forecast(view_forecast *out, const view_source *source,
                                        const bj_scene_info *info, const bj_batch *scene,
                                        bj_error *err);

#endif
