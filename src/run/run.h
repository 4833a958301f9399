/* run.h - a training run while it lasts.
 *
 * The loop (train.c) owns one of these. Order of writing after an epoch:
 *   ckpt/best (if it is the best so far), metrics.jsonl and metrics.csv, ckpt/last
 * ckpt/last says how many epochs were evaluated. What a crash left ahead of it is dropped when the
 * run resumes, and comes out again with the same bits.
 */
#ifndef BJ_RUN_RUN_H
#define BJ_RUN_RUN_H

#include "core/json_doc.h"
#include "core/sha256.h"
#include "core/status.h"
#include "run/events.h"
#include "run/init.h"
#include "run/maze_source.h"

/* Sums over the updates of the epoch that is under way. */
typedef struct bj_epoch_sums {
    double updates, grad_norm, lr; /* lr: of the last update */
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
    bj_settings settings; /* as they were given */
    bj_arch arch;         /* theirs, with the sizes of the data */
    const bj_run_options *options;
    bj_cache *cache, *dev_cache; /* dev_cache is NULL where both are one */
    bj_loader *fit, *dev;
    bj_maze_source *maze; /* in place of caches and loaders; else NULL */
    const bj_scene_source *scenes;     /* in place of cache and loader `fit`; else NULL */
    const bj_scene_source *dev_scenes; /* in place of the loader `dev`; else NULL */
    bj_batch made, dev_made;           /* batches of the maze or of the sources */
    bj_model *model;
    bj_trainer *trainer;
    bj_events *events;
    int lock;       /* descriptor, or -1 */
    int64_t steps;  /* of an epoch */
    bj_plan plan;
    bj_epoch *rows; /* (bj_plan_end(&plan) + 1) epoch e in row e */
    int evaluated;  /* epochs with a row, epoch 0 not counted; -1: not even that */
    int best;       /* row of the chosen checkpoint, or -1 */
    bj_epoch_sums sums;
    double wall, started; /* seconds of earlier processes; clock when this one began */
    double saved, told;   /* clock of the last checkpoint, of the last status.json */
    double epoch_seconds; /* of training in this epoch, by this process */
    int64_t epoch_scenes;
    int64_t first_step;                /* of this process */
    bj_loss recent;                    /* of the last updates, for the progress line */
    char anchor_digest[BJ_SHA256_HEX]; /* stage B, when the run began; else "" */
    bj_init init;                      /* what this process loaded from the setting `init` */
    int stop;
} bj_train_run;

/* ----------------------------------------------------------------------------------- manifest.c */

BJ_CHECK bj_status bj_run_write_manifest(bj_train_run *r, bj_error *err);
/* Refuses to go on with a run that began with anything else that shows in its bits. */
BJ_CHECK bj_status bj_run_check_manifest(const bj_train_run *r, bj_error *err);
/* Fails if the target encoder that was loaded is not the one that the run began with. */
BJ_CHECK bj_status bj_run_check_target(const bj_train_run *r, bj_error *err);

/* --------------------------------------------------------------------------------- run_folder.c */

enum { BJ_RUN_FILE = 4096 };
BJ_CHECK bj_status bj_run_path(char path[BJ_RUN_FILE], const char *dir, const char *name,
                               bj_error *err);
/* The document as the file dir/name; frees it. */
BJ_CHECK bj_status bj_run_write_doc(bj_doc *doc, const char *dir, const char *name, bj_error *err);
/* Creates the folder with its parents, and takes the lock that a second process is refused by. */
BJ_CHECK bj_status bj_run_enter(int *lock, const char *dir, bj_error *err);
BJ_CHECK bj_status bj_run_write_result(const bj_train_run *r, bj_run_outcome outcome,
                                       bj_error *err);
/* For onlookers; not synced, and a failure is nobody's business. */
void bj_run_write_status(const bj_train_run *r, const bj_run_progress *p);
/* Seconds of earlier processes as status.json has them, or NaN. */
double bj_run_status_wall(const char *dir);
BJ_CHECK bj_status bj_run_note_failure(const bj_train_run *r, const char *message, bj_error *err);

/* -------------------------------------------------------------------------------------- state.c */

BJ_CHECK bj_status bj_run_save(const bj_train_run *r, const char *name, bj_error *err);
/* Goes on where ckpt/last stopped: weights, step, sums, rows. */
BJ_CHECK bj_status bj_run_restore(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------ develop.c */

/* Scenes, at most, of a batch of bj_train_run.dev: parts are exchanged within the first batch. */
enum { BJ_DEVELOP_BATCH = BJ_EXCHANGE_SCENES };
/* Fills the development part of a row: metrics, health, usage, exchange, gates. *stopped: asked to. */
BJ_CHECK bj_status bj_run_develop(bj_epoch *row, int *stopped, bj_train_run *r, bj_error *err);
/* The rows of its values are of the maze; see develop_maze.c. */
BJ_CHECK bj_status bj_run_develop_maze(bj_epoch *row, bj_train_run *r, bj_error *err);
/* Every gate of mazes: 0 means collapsed. */
int bj_run_separated(const bj_settings *settings, const bj_epoch *row);
/* Every gate of stage A: a value at its limit passes, NaN does not. */
int bj_run_passes(const bj_settings *settings, const bj_epoch *row);
/* What the checkpoint is chosen by: the lower the better. */
double bj_run_criterion(const bj_settings *settings, const bj_epoch *row);
/* What onlookers are told of an epoch: that, or of mazes raw COV-R, NaN where latents collapsed. */
double bj_run_shown(const bj_settings *settings, const bj_epoch *row);
/* The first row, of epoch 1 on, with the least criterion among the eligible ones, or -1. */
int bj_run_choose(const bj_settings *settings, const bj_epoch *rows, int count);
/* Returns 1 if training is over after these rows: the plan is complete, or patience ended it. */
int bj_run_over(const bj_settings *settings, const bj_plan *plan, const bj_epoch *rows, int count);

/* ------------------------------------------------------------------------------------- extend.c */

/* The plan of a run without extensions. */
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
/* Begins the extension that the options ask for, unless one of as many epochs is unfinished, and
 * removes a result.json that no longer applies. */
BJ_CHECK bj_status bj_run_extend(bj_train_run *r, bj_error *err);

/* ------------------------------------------------------------------------------------- source.c */

/* Caches with their loaders, scene sources, or transitions of a maze; steps of an epoch, sizes of the model. */
BJ_CHECK bj_status bj_run_open_data(bj_train_run *r, bj_error *err);
void bj_run_close_data(bj_train_run *r);
/* Batch `step` of epoch `epoch` to fit; numbers (B): of scenes in the cache, or of rows. */
BJ_CHECK bj_status bj_run_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                int64_t epoch, int64_t step, bj_error *err);
/* Development batches of an evaluation, each of at most BJ_DEVELOP_BATCH scenes. */
int64_t bj_run_dev_steps(const bj_train_run *r);
BJ_CHECK bj_status bj_run_dev_batch(const bj_batch **out, const int64_t **numbers, bj_train_run *r,
                                    int64_t step, bj_error *err);
/* Scenario id of a scene number of the training or, with `dev`, the development scenes. */
enum { BJ_RUN_ID = 64 };
void bj_run_scene_id(char id[BJ_RUN_ID], const bj_train_run *r, int dev, int64_t number);
const char *bj_run_data_digest(const bj_train_run *r);

/* Scenes to fit and to develop on, or transitions and cells. */
int64_t bj_run_fit_count(const bj_train_run *r);
int64_t bj_run_dev_count(const bj_train_run *r);

/* -------------------------------------------------------------------------------------- train.c */

/* Tells whoever listens where the run is, and remembers when it is asked to stop. */
bj_run_answer bj_run_tell(bj_train_run *r, const char *phase);
/* What the engine found, with epoch, place, and the scenario, or row, where only its number in the
 * batch was known; numbers (B) are those of the batch, of development scenes if `dev`. Returns the
 * code of `found`. */
bj_status bj_run_explain(const bj_train_run *r, const char *where, int dev, const int64_t *numbers, int B, const bj_error *found, bj_error *err);

#endif
