/* report_scenes.h - scenes with everybody's weighted futures, as the JSON that a page's scene
 * browser reads (cli/assets/scene.js; docs/REPORT.md has the format).
 *
 * Scenes and forecasts are added first; what happened and the law of the futures enter in calls of
 * their own, so that a caller can choose and predict without having them at hand. Positions are
 * whole centimeters in the frame of the scene, the first pair of a line absolute, the others as
 * steps.
 * Tests: tests/cli/view.sh, tests/cli/report.sh, tests/report/
 */
#ifndef BJEPA_REPORT_SCENES_H
#define BJEPA_REPORT_SCENES_H

#include "cli.h"

#include <stdio.h>

/* Whose futures: one choice of the browser. */
typedef struct report_model {
    const char *arm, *title;
    int64_t seed; /* negative: there are none */
} report_model;

typedef struct report_scenes report_scenes;

/* Describes a scene. Futures in `at` are not read. */
typedef struct report_scene {
    bj_arch sizes; /* obs, fut, points, dt */
    bj_scene_info info;
    bj_scene_floats at;
    const bj_cache *cache;             /* where the drivable areas are: of info.map, */
    const bj_scenario_scene *scenario; /* or of this one; both NULL: none */
} report_scene;

/* Model names must outlive the scenes. */
BJ_CHECK bj_status report_scenes_create(report_scenes **out, const report_model *models, int count,
                                        bj_error *err);
void report_scenes_free(report_scenes *scenes);
int report_scenes_count(const report_scenes *scenes);

/* Appends a scene, whose index is the previous count. All scenes have the same sizes. */
BJ_CHECK bj_status report_scenes_add(report_scenes *scenes, const report_scene *scene,
                                     bj_error *err);
/* Adds the forecast of a model: weights (K), trajectories (K,F,2) in the frame of the scene. */
BJ_CHECK bj_status report_scenes_forecast(report_scenes *scenes, int scene, int model, int K,
                                          const double *weights, const double *trajectories,
                                          bj_error *err);
/* Adds the true future (F,2), and which of its steps were observed. */
BJ_CHECK bj_status report_scenes_future(report_scenes *scenes, int scene, const float *future,
                                        uint64_t valid, bj_error *err);
/* Adds the law from which the future was drawn, if the law file contains the scene, and sets
 * *found. Fails if the frame of the law differs from `info`, because the law then belongs to other
 * data. */
BJ_CHECK bj_status report_scenes_law(report_scenes *scenes, int scene, const bj_law *law,
                                     const bj_scene_info *info, int *found, bj_error *err);

/* Sorts scenes whose predicted futures end far apart to the front, and drops scenes that would make
 * the JSON longer than `most` bytes. Returns the number of dropped scenes. Scene indices are
 * invalid afterwards. */
int report_scenes_fit(report_scenes *scenes, size_t most);
/* Writes the JSON, safe inside a script element. */
BJ_CHECK bj_status report_scenes_write(FILE *to, const report_scenes *scenes, bj_error *err);

#endif
