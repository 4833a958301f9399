/* predict.h - declarations shared by the files of bjepa predict.
 *
 *   cmd_predict.c     options, the model, the loop
 *   predict_source.c  scenes from caches, scenario folders and trees of them
 *   predict_print.c   predictions as text, JSON lines, rows of a submission, or a picture
 */
#ifndef BJEPA_PREDICT_H
#define BJEPA_PREDICT_H

#include "cli.h"

#include <stdio.h>

enum { PREDICT_BATCH = 64 };

/* A scene on its way through the network. */
typedef struct predict_scene {
    bj_scene_info info;
    bj_scene_floats at;
    bj_scenario_scene *owned; /* NULL: it lies in a cache */
} predict_scene;

/* A source of scenes, which is one operand of the command. */
typedef struct predict_source {
    const char *path;
    bj_cache *cache;
    bj_loader *loader;
    bj_scenario_list *list;
    bj_scenario_scene *single; /* a parquet file, until it is handed out */
    bj_arch sizes;             /* of its scenes */
    int64_t next, end;         /* scenes, or batches of the loader */
    int refused, worst_code;   /* number of scenarios that could not be read, and the resulting exit
                                  code */
    /* the scenes handed out last */
    int count;
    predict_scene scenes[PREDICT_BATCH];
    bj_scene table[PREDICT_BATCH];
} predict_source;

/* Opens a source. `scene` names the only scene to read, or is NULL. A cache is opened blind unless
 * `sees` is set, because predictions need no future. */
BJ_CHECK bj_status predict_source_open(predict_source *s, const char *path, const char *scene,
                                       int sees, bj_error *err);
/* Returns the next scenes, at most `most`, which are valid until the next call. *batch is NULL
 * after the last one. Scenarios that cannot be read are reported on stderr and skipped. */
BJ_CHECK bj_status predict_source_next(const bj_batch **batch, bj_batch *room, predict_source *s,
                                       int most, bj_error *err);
void predict_source_close(predict_source *s);

/* One prediction. */
typedef struct predict_result {
    const predict_scene *scene;
    const bj_arch *arch;         /* of the model */
    const bj_real *weights;      /* (K) */
    const bj_real *trajectories; /* (K,F,2) */
    const bj_real *latents;      /* (latents,D), or NULL */
    int latent_count;
} predict_result;

void predict_print_text(FILE *to, const predict_result *r);
void predict_print_json(FILE *to, const predict_result *r); /* one line */
/* Writes rows like bjepa submit: weights divided by their sum in double, and city coordinates. */
BJ_CHECK bj_status predict_submit(bj_submission_writer *to, const predict_result *r, bj_error *err);
BJ_CHECK bj_status predict_draw(FILE *to, const predict_result *r, const bj_cache *cache,
                                bj_error *err);

#endif
