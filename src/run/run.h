/* run.h - the state of a running training run.
 *
 * The loop (train.c) owns it. Order of writing after an epoch:
 *   ckpt/best (if it is the best so far), metrics.jsonl and metrics.csv, ckpt/last
 * ckpt/last contains the number of evaluated epochs. If a crash left newer files, the run discards
 * their epochs when it resumes and computes them again, with identical results.
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

/* A range of epochs with one learning-rate cycle: begin + 1 to begin + epochs. See extend.c. */
typedef struct bj_segment {
    int begin, epochs;
} bj_segment;

/* The segments of a run. The first one has train.epochs epochs; extensions follow. */
enum { BJ_PLAN_SIZE = 64 };
typedef struct bj_plan {
    bj_segment segment[BJ_PLAN_SIZE];
    int count;
} bj_plan;

typedef struct bj_train_run {
    bj_settings settings; /* as given by the caller */
    bj_arch arch;         /* architecture from the settings, with the sizes taken from the data */
    const bj_run_options *options;
    bj_cache *cache, *dev_cache; /* dev_cache is NULL if both sets of scenes are in one cache */
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
    int evaluated;  /* last evaluated epoch; -1 if epoch 0 has not been evaluated */
    int best;       /* row of the chosen checkpoint, or -1 */
    bj_epoch_sums sums;
    double wall, started; /* seconds used by earlier processes; clock at the start of this process
                             */
    double saved, told;   /* clock times of the last checkpoint and of the last status.json */
    double epoch_seconds; /* training seconds of this process in this epoch */
    int64_t epoch_scenes;
    int64_t first_step;                /* updates done before this process started */
    bj_loss recent;                    /* moving average of the loss, for the progress line */
    char anchor_digest[BJ_SHA256_HEX]; /* stage B: anchor digest at the start of the run; otherwise
                                          "" */
    bj_init init;                      /* what this process loaded from the setting `init` */
    int stop;
} bj_train_run;

/* ----------------------------------------------------------------------------------- manifest.c */

BJ_CHECK bj_status bj_run_write_manifest(bj_train_run *r, bj_error *err);
/* Fails if the settings, the data or anything else that affects the results differs from the start
 * of the run. */
BJ_CHECK bj_status bj_run_check_manifest(const bj_train_run *r, bj_error *err);
/* Fails if the loaded target encoder differs from the one at the start of the run. */
BJ_CHECK bj_status bj_run_check_target(const bj_train_run *r, bj_error *err);

/* --------------------------------------------------------------------------------- run_folder.c */

enum { BJ_RUN_FILE = 4096 };
BJ_CHECK bj_status bj_run_path(char path[BJ_RUN_FILE], const char *dir, const char *name,
                               bj_error *err);
/* Writes the document to the file dir/name and frees it. */
BJ_CHECK bj_status bj_run_write_doc(bj_doc *doc, const char *dir, const char *name, bj_error *err);
/* Creates the folder and its parents, and locks it. Fails if another process holds the lock. */
BJ_CHECK bj_status bj_run_enter(int *lock, const char *dir, bj_error *err);
BJ_CHECK bj_status bj_run_write_result(const bj_train_run *r, bj_run_outcome outcome,
                                       bj_error *err);
/* Writes status.json for external monitors. The file is not synced, and failures are ignored. */
void bj_run_write_status(const bj_train_run *r, const bj_run_progress *p);
/* Returns the seconds used by earlier processes according to status.json, or NaN. */
double bj_run_status_wall(const char *dir);
BJ_CHECK bj_status bj_run_note_failure(const bj_train_run *r, const char *message, bj_error *err);

/* -------------------------------------------------------------------------------------- state.c */

BJ_CHECK bj_status bj_run_save(const bj_train_run *r, const char *name, bj_error *err);
/* Loads weights, step, sums and rows from ckpt/last. */
BJ_CHECK bj_status bj_run_restore(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------ develop.c */

/* Max number of scenes in a batch of bj_train_run.dev. Parts are exchanged only within the first
 * batch. */
enum { BJ_DEVELOP_BATCH = BJ_EXCHANGE_SCENES };
/* Fills the development part of a row: metrics, health, usage, exchange, gates. Sets *stopped if
 * the caller asked to stop. */
BJ_CHECK bj_status bj_run_develop(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err);
/* Fills the maze values of a row; see develop_maze.c. */
BJ_CHECK bj_status bj_run_develop_maze(bj_epoch *row, bj_train_run *r, bj_error *err);
/* Checks every gate for mazes. Returns 0 if the latents have collapsed. */
int bj_run_separated(const bj_settings *settings, const bj_epoch *row);
/* Checks every gate for stage A. A value equal to its limit passes, NaN does not. */
int bj_run_passes(const bj_settings *settings, const bj_epoch *row);
/* Returns the value by which the checkpoint is chosen. Lower is better. */
double bj_run_criterion(const bj_settings *settings, const bj_epoch *row);
/* Returns the value of an epoch that progress output shows: the criterion or, for mazes, raw COV-R,
 * which is NaN if the latents have collapsed. */
double bj_run_shown(const bj_settings *settings, const bj_epoch *row);
/* Returns the eligible row with the lowest criterion, starting at epoch 1, or -1. The first row
 * wins a tie. */
int bj_run_choose(const bj_settings *settings, const bj_epoch *rows, int count);
/* Returns 1 if no training is left after these rows, because the plan is complete or patience has
 * run out. */
int bj_run_over(const bj_settings *settings, const bj_plan *plan, const bj_epoch *rows, int count);

/* ------------------------------------------------------------------------------------- extend.c */

/* Returns the plan of a run without extensions. */
bj_plan bj_plan_of(const bj_settings *settings);
/* Returns the segment that contains update `step`, counted from 0. */
bj_segment bj_plan_at(const bj_plan *plan, int64_t step, int64_t steps_per_epoch);
/* Returns the learning-rate schedule of a segment. Its updates are counted from the start of the
 * segment. */
bj_schedule bj_segment_schedule(bj_segment segment, const bj_settings *settings,
                                int64_t steps_per_epoch);
/* Returns the last epoch of a plan. */
int bj_plan_end(const bj_plan *plan);
/* Reads the plan of a run from its settings and its manifest. `path` is the manifest file. */
BJ_CHECK bj_status bj_plan_read(bj_plan *out, const bj_config *manifest,
                                const bj_settings *settings, const char *path, bj_error *err);
/* Reads the plan of the run in the folder of `r`. */
BJ_CHECK bj_status bj_run_read_plan(bj_train_run *r, bj_error *err);
/* Starts the extension requested by the options, unless an extension by the same number of epochs
 * is unfinished. Removes result.json if it no longer applies. */
BJ_CHECK bj_status bj_run_extend(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------- source.c */

/* Opens the data: caches with their loaders, scene sources, or maze transitions. Sets the number of
 * steps per epoch and the sizes of the model. */
BJ_CHECK bj_status bj_run_open_data(bj_train_run *r, bj_error *err);
void bj_run_close_data(bj_train_run *r);
/* Returns training batch `step` of epoch `epoch`. numbers (B) are scene numbers in the cache, or
 * rows for mazes. */
BJ_CHECK bj_status bj_run_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                int64_t epoch, int64_t step, bj_error *err);
/* Return the number of development batches and one of them. A batch has at most BJ_DEVELOP_BATCH
 * scenes. */
int64_t bj_run_dev_steps(const bj_train_run *r);
BJ_CHECK bj_status bj_run_dev_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                    int64_t step, bj_error *err);
/* Returns the scenario id of a scene. `number` counts the training scenes or, if `dev` is set, the
 * development scenes. */
enum { BJ_RUN_ID = 64 };
void bj_run_scene_id(char id[BJ_RUN_ID], const bj_train_run *r, int dev, int64_t number);
const char *bj_run_data_digest(const bj_train_run *r);

/* Return the number of training and development scenes or, for mazes, of transitions and cells. */
int64_t bj_run_fit_count(const bj_train_run *r);
int64_t bj_run_dev_count(const bj_train_run *r);

/* -------------------------------------------------------------------------------------- train.c */

/* Reports the progress to the caller and stores whether the caller asked to stop. */
bj_run_answer bj_run_tell(bj_train_run *r, const char *phase);
/* Copies the error `found` and adds the epoch and the update. Replaces the position in the batch by
 * the scenario or row. numbers (B) belong to the batch, which has development scenes if `dev` is
 * set. Returns the code of `found`. */
bj_status bj_run_explain(const bj_train_run *r, const char *where, int dev, const int64_t *numbers, int B, const bj_error *found, bj_error *err);

#endif
