/* run.h - one training run: arm, settings and folder.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/TRAINING.md explains arms,
 * settings and the files of a run.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_RUN_H
#define BRANCHJEPA_RUN_H

/* ------------------------------------------------------------------------------------ settings */

enum { BJ_NAME_SIZE = 48, BJ_RUN_PATH_SIZE = 1024 };

/* All settings of a run except its data. Every setting has a key (bj_setting_at). */
typedef struct bj_settings {
    char arm[BJ_NAME_SIZE];
    char recipe[BJ_NAME_SIZE]; /* "paper", "fast", "small" */
    uint64_t seed;             /* seed of weights and data order */
    bj_arch arch;
    bj_objective objective;
    bj_optim optim;
    double lr;
    int batch, epochs, warmup; /* warmup in epochs */
    int warmup_updates;        /* warm-up in updates; 0: use warmup */
    char schedule[BJ_NAME_SIZE]; /* "cosine", "linear", "trapezoid", "constant" */
    char precision[BJ_NAME_SIZE]; /* "single", "mixed" */
    double decay;              /* share of the updates in which the trapezoid schedule decays */
    int patience;              /* number of epochs without improvement after which the run ends; 0:
                                  never end early */
    double save_minutes;       /* minutes between checkpoints within an epoch */
    /* Stage A: an epoch is eligible if it passes every gate. */
    double gate_ade, gate_fde, gate_std, gate_low_std, gate_rank;
    char anchor[BJ_RUN_PATH_SIZE]; /* stage B: checkpoint folder of a stage A run */
    char init[BJ_RUN_PATH_SIZE];   /* checkpoint to initialize from; "": none */
    char init_parts[128];          /* parts loaded from `init`; "": see docs/TRAINING.md */
    char init_sha256[65];          /* SHA-256 of the model file in `init`; "": will be filled in
                                      when the run starts */
    int updates; /* updates per epoch for mazes and unlimited scene sources; for caches, the number
                    of batches */
    /* Mazes. */
    int horizon;           /* steps per transition; 0: to the next cell */
    int middle;            /* 1: use the observation halfway through the visit to the next cell; 0:
                              use the first one. Used only if horizon is 0 */
    int balance;           /* 1: sample pairs of cells uniformly; 0: sample transitions uniformly */
    double withheld;       /* share of the unique edges withheld from training */
    double held_out;       /* share of the episodes that are withheld from training and used for
                              evaluation */
    uint64_t split_seed;   /* seed that selects the withheld episodes; the same for all runs of a
                              campaign */
    double gate_separated; /* min share of cell pairs with a cosine of at most .5 */
} bj_settings;

/* An arm, which consists of an objective and its model. */
typedef struct bj_arm_info {
    const char *name, *title, *summary;
    const char *family; /* "main", "mdn", "ablation", "anchor", "maze" */
} bj_arm_info;

BJ_API int bj_arm_count(void);
BJ_API bj_arm_info bj_arm_at(int index);
BJ_API int bj_arm_find(const char *name); /* index, or -1 */

typedef struct bj_recipe_info {
    const char *name, *summary;
} bj_recipe_info;

BJ_API int bj_recipe_count(void);
BJ_API bj_recipe_info bj_recipe_at(int index);

typedef enum bj_setting_type { BJ_SETTING_INT, BJ_SETTING_SEED, BJ_SETTING_REAL, BJ_SETTING_TEXT }
    bj_setting_type;

typedef struct bj_setting_info {
    const char *key; /* for example "optim.lr" */
    bj_setting_type type;
    double least, most; /* allowed range of numbers */
    int above;          /* 1: `least` itself is not allowed */
    const char *help;
} bj_setting_info;

BJ_API int bj_setting_count(void);
BJ_API bj_setting_info bj_setting_at(int index);
BJ_API int bj_setting_find(const char *key); /* index, or -1 */

/* An unparsed key and value. `origin` is where it was set, such as "--set" or "run.yaml:12". */
typedef struct bj_assignment {
    const char *key, *value, *origin;
} bj_assignment;

/* Resolves settings: applies the defaults of the arm and the recipe, then the assignments in order,
 * so that later ones take precedence. "arm" is required. The default of "recipe" is "paper", and
 * that of "seed" is 0. Fails if a key is unknown, if a value has the wrong type or if settings are
 * inconsistent. The message contains the origin of the assignment and, for an unknown key, suggests
 * the nearest key. origins (bj_setting_count), if not NULL, receives the origin of every value:
 * "paper", "default" if the paper does not specify it, "arm mdn", "recipe small", or the origin of
 * an assignment. */
BJ_API BJ_CHECK bj_status bj_settings_resolve(bj_settings *out, const char **origins,
                                              const bj_assignment *list, int count, bj_error *err);
/* Writes the value of a setting as text that resolves to the same value. */
enum { BJ_SETTING_TEXT_SIZE = BJ_RUN_PATH_SIZE };
BJ_API void bj_setting_text(char text[BJ_SETTING_TEXT_SIZE], const bj_settings *settings,
                            int index);
/* Computes the SHA-256 over all keys and values, as 64 hex digits. The anchor is represented by its
 * path. Settings that were added in later versions are left out if they have their default
 * value. */
BJ_API BJ_CHECK bj_status bj_settings_digest(char hex[65], const bj_settings *settings,
                                             bj_error *err);
/* Writes all keys and values as one JSON object, nested at the dots. */
BJ_API BJ_CHECK bj_status bj_settings_write(const bj_settings *settings, const char *path,
                                            bj_error *err);

/* A YAML or JSON file flattened to assignments. "optim: {lr: 3e-4}" becomes optim.lr = 3e-4, and
 * sequence items become key.0, key.1 and so on. Values are kept as written. */
typedef struct bj_config bj_config;
BJ_API BJ_CHECK bj_status bj_config_read(bj_config **out, const char *path, bj_error *err);
BJ_API void bj_config_free(bj_config *config);
BJ_API int bj_config_count(const bj_config *config);
BJ_API bj_assignment bj_config_at(const bj_config *config, int index);
BJ_API const char *bj_config_get(const bj_config *config, const char *key); /* value, or NULL */

/* ------------------------------------------------------------------------------------- history */

/* Metrics of a maze predictor's graph and cell latents (docs/MAZES.md). A metric that does not
 * apply is NaN. Models with inputs other than x and y have only cov_r, separated and closest, which
 * are computed over recorded frames. */
typedef struct bj_maze_values {
    double plan_all, verified_route, macro_precision, macro_precision_self, held_recall, cov_r;
    double predicted_edges;
    double separated; /* share of cell pairs whose latents have a cosine of at most .5 */
    double closest;   /* largest cosine between two cells */
    double cov_three, heads_three; /* COV-R and number of candidates that hit a successor, for cells
                                      with three successors */
} bj_maze_values;

/* Returns how many of the `dev` development scenes are used for the exchange losses after an epoch
 * of `fit` scenes: fit / 32, but at least 128 and at most BJ_EXCHANGE_SCENES. The first scenes are
 * used. */
enum { BJ_EXCHANGE_SCENES = 512 };
BJ_API int bj_exchange_scenes(int64_t fit, int64_t dev);

/* One line of metrics.jsonl with the results of an epoch. Epoch 0 is the state before the first
 * step. */
typedef struct bj_epoch {
    int epoch;
    int64_t step;            /* updates done */
    double lr;               /* learning rate of the last update */
    double grad_norm;        /* mean over the epoch's updates, before clipping */
    bj_loss train;           /* means over the epoch's updates */
    bj_metric_values dev;    /* metrics on development scenes; NaN for stage A and mazes */
    bj_latent_health health; /* of the target latents on development scenes */
    bj_encoder_values encoder;   /* of the online encoder on development scenes */
    bj_exchange_values exchange; /* on the first bj_exchange_scenes development scenes */
    double usage_least, usage_most;  /* smallest and largest weight share of any branch, on
                                        development scenes */
    double decoder_ade, decoder_fde; /* stage A, on development scenes; otherwise NaN */
    bj_maze_values maze;     /* NaN except for mazes */
    int eligible;            /* stage A: passed every gate; mazes: not collapsed; otherwise 1 */
    int best;                /* 1: the best checkpoint so far is from this epoch */
    double wall_s;           /* seconds since the start of the run, excluding pauses */
    double scenes_per_s;     /* training speed in this epoch */
} bj_epoch;

/* Returns 1 if the model ignores the map in this epoch: exchanging the focal tracks increases the
 * trajectory Energy Score by at least 20 %, so the model has learned to forecast, but exchanging
 * the maps increases it by less than 2 %. Models learn to use the focal track first, so the result
 * is always 0 in the first half of the run, except after the first tenth if at least 1,000 updates
 * are done. */
BJ_API int bj_epoch_blind(const bj_settings *settings, const bj_epoch *row);

/* ----------------------------------------------------------------------------------------- run */

typedef struct bj_run_progress {
    const char *phase; /* "train", "evaluate", "save" */
    int epoch, epochs;
    int64_t step, steps;   /* updates done and planned in the run */
    double scenes_per_s, eta_s;
    bj_loss loss;          /* mean over the last steps */
    const bj_epoch *last, *best; /* NULL if there is none */
} bj_run_progress;

typedef enum bj_run_answer {
    BJ_RUN_GO_ON,
    BJ_RUN_STOP, /* save and stop; the run can be resumed */
    BJ_RUN_SAVE  /* save and continue */
} bj_run_answer;

/* A scene source: a function that returns scenes, used instead of a cache, for example for
 * simulated scenes (fresh.h). */
typedef struct bj_scene_source {
    const char *name;   /* name, recorded in manifest.json */
    const char *digest; /* 64 digits that identify the scenes and their order */
    int64_t scenes;     /* number of scenes, at positions 0 .. scenes - 1; 0: unlimited */
    bj_arch arch;       /* scene sizes; other fields are ignored */
    void *context;
    /* Returns the scenes at positions first .. first + count - 1 and their numbers (count). The
     * arrays are valid until the next call. */
    bj_status (*read)(const bj_scene **scenes, const int64_t **numbers, void *context,
                      int64_t first, int count, bj_error *err);
    /* Writes the scenario id of a scene number. */
    void (*id)(char id[64], void *context, int64_t number);
} bj_scene_source;

typedef struct bj_run_options {
    const char *data;   /* cache that contains fit and development scenes, or a maze dataset */
    const char *dev;    /* separate cache with development scenes; all scenes of `data` are then fit
                           scenes; may be NULL */
    /* Source of fit scenes, each of which is used once; NULL: fit scenes are read from `data`. With
     * a source, `data` is its name, and development scenes come from `dev` if given, otherwise from
     * dev_scenes. */
    const bj_scene_source *scenes, *dev_scenes;
    const char *dir;    /* folder to create; it must not contain a run unless `resume` is set */
    const char *maze;   /* maze name; NULL: derived from the dataset's name */
    const char *config; /* file to copy into the run folder; may be NULL */
    int resume;         /* continue a stopped run, or start a new one if there is none */
    int extend;         /* epochs to add to a finished run, with their own learning rate cycle; 0:
                           none. If the run has an unfinished extension of that length, it is
                           resumed */
    int threads;
    const char *isa;
    /* Called after every step and periodically during an evaluation. May be NULL. */
    bj_run_answer (*progress)(void *context, const bj_run_progress *progress);
    /* Called with a line of text at the start of the run, for example about loaded tensors or an
     * extension. May be NULL. */
    void (*note)(void *context, const char *line);
    void *context;
} bj_run_options;

typedef enum bj_run_outcome {
    BJ_RUN_DONE,    /* all epochs done, or patience exceeded */
    BJ_RUN_STOPPED, /* stopped by progress */
    BJ_RUN_NO_PASS, /* stage A: all epochs are done, but none passed every gate, so there is no
                       checkpoint */
    BJ_RUN_COLLAPSED /* mazes: all epochs are done, but the latents of the last one collapsed, so
                        there is no score */
} bj_run_outcome;

typedef struct bj_run_report {
    bj_run_outcome outcome;
    int epochs;      /* done */
    int64_t step;
    int resumed_at;  /* epoch at which a resumed run continued; -1 for a new run */
    bj_epoch best;   /* valid for BJ_RUN_DONE */
    int64_t fit, dev; /* scenes, or transitions and cells for mazes */
} bj_run_report;

/* Trains a model. Fails with BJ_ENONFINITE if a loss or gradient is not finite. ckpt/last then
 * contains the state before that step, and resuming would repeat the same step. */
BJ_API BJ_CHECK bj_status bj_run_train(bj_run_report *report, const bj_settings *settings,
                                       const bj_run_options *options, bj_error *err);

/* A run on disk, finished or not. */
typedef struct bj_run bj_run;

BJ_API BJ_CHECK bj_status bj_run_open(bj_run **out, const char *dir, bj_error *err);
BJ_API void bj_run_free(bj_run *run);
BJ_API const bj_settings *bj_run_settings(const bj_run *run);
/* Returns a value of manifest.json as text ("data.digest", "initial.sha256", "order.sha256", ...),
 * or NULL. */
BJ_API const char *bj_run_fact(const bj_run *run, const char *key);
BJ_API int bj_run_epochs(const bj_run *run); /* rows of metrics.jsonl */
BJ_API bj_epoch bj_run_epoch(const bj_run *run, int index);
BJ_API int bj_run_finished(const bj_run *run); /* result.json exists */
BJ_API int bj_run_collapsed(const bj_run *run); /* outcome was BJ_RUN_COLLAPSED, so there is no
                                                   score */
BJ_API int bj_run_best(const bj_run *run); /* index of the chosen epoch's row, or -1 */
BJ_API int bj_run_planned(const bj_run *run);  /* last planned epoch, including extensions */
BJ_API int bj_run_extended(const bj_run *run); /* epochs in all extensions */
/* Returns 1 if all planned epochs have a row, or if patience ended the run early. */
BJ_API int bj_run_complete(const bj_run *run);

/* Resolves `model` to a model file: the file itself, or the file in a checkpoint folder or in
 * ckpt/best or ckpt/last of a run. */
BJ_API BJ_CHECK bj_status bj_model_path(char *path, size_t size, const char *model, bj_error *err);

#endif
