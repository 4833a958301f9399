/* run.h - the state of a running training run.
 *
 * The loop (train.c) owns it. Order of writing after an epoch:
 *   ckpt/best (if it is the best so far), metrics.jsonl and metrics.csv, ckpt/last
 * ckpt/last contains the number of evaluated epochs. If a crash left newer files, their epochs are
 * discarded when the run resumes, and are computed again with the same bits.
 */
#ifndef BJ_RUN_RUN_H
#define BJ_RUN_RUN_H

#include "core/json_doc.h"
#include "core/sha256.h"
#include "core/status.h"
#include "run/events.h"
#include "run/init.h"
#include "run/maze_source.h"

/* Sums over the updates of the current epoch. */
typedef struct bj_epoch_sums {
    double updates, grad_norm, lr; /* lr of the last update */
    bj_loss loss;
} bj_epoch_sums;

/* Epochs with one cycle of the learning rate: begin + 1 to begin + epochs. See extend.c. */
typedef struct bj_segment {
    int begin, epochs;
} bj_segment;

/* The segments of a run: train.epochs, then its extensions. */
enum { BJ_PLAN_SIZE = 64 };
typedef struct bj_plan {
    bj_segment segment[BJ_PLAN_SIZE];
    int count;
} bj_plan;

typedef struct bj_train_run {
    bj_settings settings; /* as given by the caller */
    bj_arch arch;         /* architecture of the settings with the sizes of the data */
    const bj_run_options *options;
    bj_cache *cache, *dev_cache; /* dev_cache is NULL if both are in one cache */
    bj_loader *fit, *dev;
    bj_maze_source *maze; /* replaces caches and loaders; otherwise NULL */
    const bj_scene_source *scenes;     /* replaces cache and loader `fit`; otherwise NULL */
    const bj_scene_source *dev_scenes; /* replaces the loader `dev`; otherwise NULL */
    bj_batch made, dev_made;           /* batches of the maze or of the sources */
    bj_model *model;
    bj_trainer *trainer;
    bj_events *events;
    int lock;       /* descriptor, or -1 */
    int64_t steps;  /* updates per epoch */
    bj_plan plan;
    bj_epoch *rows; /* (bj_plan_end(&plan) + 1) epoch e in row e */
    int evaluated;  /* last epoch with a row; -1 if epoch 0 has none */
    int best;       /* row of the chosen checkpoint, or -1 */
    bj_epoch_sums sums;
    double wall, started; /* seconds of earlier processes; clock at the start of this process */
    double saved, told;   /* clock at the last checkpoint and at the last status.json */
    double epoch_seconds; /* training seconds of this process in this epoch */
    int64_t epoch_scenes;
    int64_t first_step;                /* updates of this process */
    bj_loss recent;                    /* scenes per second of the last updates, for the progress
                                          line */
    char anchor_digest[BJ_SHA256_HEX]; /* stage B: anchor digest at the start of the run; otherwise
                                          "" */
    bj_init init;                      /* what this process loaded from the setting `init` */
    int stop;
} bj_train_run;

/* ----------------------------------------------------------------------------------- manifest.c */

BJ_CHECK bj_status bj_run_write_manifest(bj_train_run *r, bj_error *err);
/* Fails if the run was started with different settings, data or anything else that affects its
 * bits. */
BJ_CHECK bj_status bj_run_check_manifest(const bj_train_run *r, bj_error *err);
/* Fails if the loaded target encoder differs from the one at the start of the run. */
BJ_CHECK bj_status bj_run_check_target(const bj_train_run *r, bj_error *err);

/* --------------------------------------------------------------------------------- run_folder.c */

enum { BJ_RUN_FILE = 4096 };
BJ_CHECK bj_status bj_run_path(char path[BJ_RUN_FILE], const char *dir, const char *name,
                               bj_error *err);
/* Writes the document to the file dir/name and frees it. */
BJ_CHECK bj_status bj_run_write_doc(bj_doc *doc, const char *dir, const char *name, bj_error *err);
/* Creates the folder with its parents and locks it. Fails if another process has the lock. */
BJ_CHECK bj_status bj_run_enter(int *lock, const char *dir, bj_error *err);
BJ_CHECK bj_status bj_run_write_result(const bj_train_run *r, bj_run_outcome outcome,
                                       bj_error *err);
/* Writes status.json for external monitors. It is not synced, and failures are ignored. */
void bj_run_write_status(const bj_train_run *r, const bj_run_progress *p);
/* Returns the seconds of earlier processes from status.json, or NaN. */
double bj_run_status_wall(const char *dir);
BJ_CHECK bj_status bj_run_note_failure(const bj_train_run *r, const char *message, bj_error *err);

/* -------------------------------------------------------------------------------------- state.c */

BJ_CHECK bj_status bj_run_save(const bj_train_run *r, const char *name, bj_error *err);
/* Loads weights, step, sums and rows from ckpt/last. */
BJ_CHECK bj_status bj_run_restore(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------ develop.c */

/* Max scenes per batch of bj_train_run.dev. Parts are exchanged within the first batch. */
enum { BJ_DEVELOP_BATCH = BJ_EXCHANGE_SCENES };
/* Fills the development part of a row: metrics, health, usage, exchange, gates. Sets *stopped if
 * the caller asked to stop. */
BJ_CHECK bj_status bj_run_develop(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err);
/* Fills the maze values of a row; see develop_maze.c. */
BJ_CHECK bj_status bj_run_develop_maze(bj_epoch *row, bj_train_run *r, bj_error *err);
/* Checks every gate of mazes. Returns 0 if the latents have collapsed. */
int bj_run_separated(const bj_settings *settings, const bj_epoch *row);
/* Checks every gate of stage A. A value at its limit passes, NaN does not. */
int bj_run_passes(const bj_settings *settings, const bj_epoch *row);
/* Returns the value by which the checkpoint is chosen. Lower is better. */
double bj_run_criterion(const bj_settings *settings, const bj_epoch *row);
/* Returns the value of an epoch for progress output: that value, or raw COV-R for mazes, which is
 * NaN if the latents have collapsed. */
double bj_run_shown(const bj_settings *settings, const bj_epoch *row);
/* Returns the first eligible row from epoch 1 on with the lowest criterion, or -1. */
int bj_run_choose(const bj_settings *settings, const bj_epoch *rows, int count);
/* Returns 1 if training is over after these rows: the plan is complete, or patience ended it. */
int bj_run_over(const bj_settings *settings, const bj_plan *plan, const bj_epoch *rows, int count);

/* ------------------------------------------------------------------------------------- extend.c */

/* Returns the plan of a run without extensions. */
bj_plan bj_plan_of(const bj_settings *settings);
/* Returns the segment that update number `step`, from 0, belongs to. */
bj_segment bj_plan_at(const bj_plan *plan, int64_t step, int64_t steps_per_epoch);
/* Returns the learning rate schedule of a segment, whose updates are counted from its first one. */
bj_schedule bj_segment_schedule(bj_segment segment, const bj_settings *settings,
                                int64_t steps_per_epoch);
/* Returns the last epoch of a plan. */
int bj_plan_end(const bj_plan *plan);
/* Reads the plan of a run from its settings and its manifest, which is the file `path`. */
BJ_CHECK bj_status bj_plan_read(bj_plan *out, const bj_config *manifest,
                                const bj_settings *settings, const char *path, bj_error *err);
/* Reads the plan of the run in the folder of `r`. */
BJ_CHECK bj_status bj_run_read_plan(bj_train_run *r, bj_error *err);
/* Starts the extension that the options request, unless an extension with the same number of epochs
 * is unfinished. Removes a result.json that no longer applies. */
BJ_CHECK bj_status bj_run_extend(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------- source.c */

/* Opens caches with their loaders, scene sources, or maze transitions. Sets the steps per epoch and
 * the sizes of the model. */
BJ_CHECK bj_status bj_run_open_data(bj_train_run *r, bj_error *err);
void bj_run_close_data(bj_train_run *r);
/* Returns training batch `step` of epoch `epoch`. numbers (B) are scene numbers in the cache, or
 * rows. */
BJ_CHECK bj_status bj_run_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                int64_t epoch, int64_t step, bj_error *err);
/* Return the development batches, each with at most BJ_DEVELOP_BATCH scenes. */
int64_t bj_run_dev_steps(const bj_train_run *r);
BJ_CHECK bj_status bj_run_dev_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                    int64_t step, bj_error *err);
/* Returns the scenario id of a scene number among the training scenes or, with `dev`, the
 * development scenes. */
enum { BJ_RUN_ID = 64 };
void bj_run_scene_id(char id[BJ_RUN_ID], const bj_train_run *r, int dev, int64_t number);
const char *bj_run_data_digest(const bj_train_run *r);

/* Return the numbers of training and development scenes, or of transitions and cells. */
int64_t bj_run_fit_count(const bj_train_run *r);
int64_t bj_run_dev_count(const bj_train_run *r);

/* -------------------------------------------------------------------------------------- train.c */

/* Reports the progress to the caller and stores whether the caller asked to stop. */
bj_run_answer bj_run_tell(bj_train_run *r, const char *phase);
/* Copies the error `found` and adds epoch and update, and the scenario or row instead of its number
 * in the batch. numbers (B) are those of the batch, of development scenes if `dev`. Returns the
 * code of `found`. */
bj_status bj_run_explain(const bj_train_run *r, const char *where, int dev, const int64_t *numbers, int B, const bj_error *found, bj_error *err);

#endif
