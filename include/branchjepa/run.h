/* run.h - one training run: its arm, its settings, its folder.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/TRAINING.md explains arms,
 * settings and the files of a run.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_RUN_H
#define BRANCHJEPA_RUN_H

/* ------------------------------------------------------------------------------------ settings */

enum { BJ_NAME_SIZE = 48, BJ_RUN_PATH_SIZE = 1024 };

/* What decides a run, besides its data. Everything has a key (bj_setting_at). */
typedef struct bj_settings {
    char arm[BJ_NAME_SIZE];
    char recipe[BJ_NAME_SIZE]; /* "paper", "fast", "small" */
    uint64_t seed;             /* of weights and data order */
    bj_arch arch;
    bj_objective objective;
    bj_optim optim;
    double lr;
    int batch, epochs, warmup; /* warm-up in epochs */
    int warmup_updates;        /* warm-up in updates, unless 0 */
    char schedule[BJ_NAME_SIZE]; /* "cosine", "linear", "trapezoid" */
    double decay;              /* share of the updates in which the trapezoid falls */
    int patience;              /* epochs without a better checkpoint before the end; 0: all epochs */
    double save_minutes;       /* between checkpoints within an epoch */
    /* Stage A: an epoch is eligible when every gate is passed. */
    double gate_ade, gate_fde, gate_std, gate_low_std, gate_rank;
    char anchor[BJ_RUN_PATH_SIZE]; /* stage B: checkpoint folder of a stage A run */
    char init[BJ_RUN_PATH_SIZE];   /* checkpoint that the first weights come from; "": none */
    char init_parts[128];          /* parts that are loaded from it; "": see docs/TRAINING.md */
    char init_sha256[65];          /* of its model file; "": filled in when the run begins */
    int updates; /* of an epoch, for mazes and scenes without an end; caches: as many as there are
                    batches */
    /* Mazes. */
    int horizon;           /* a transition is so many steps long; 0: to the next cell */
    int middle;            /* 1: the next cell is seen half-way through its visit; 0: at its first
                              step. Only where horizon is 0 */
    int balance;           /* 1: every pair of cells is as likely as another; 0: every transition */
    double withheld;       /* share of the unique edges kept out of fitting */
    double held_out;       /* share of the episodes kept out of fitting; frames of them are judged */
    uint64_t split_seed;   /* which ones: the same for every seed of a campaign */
    double gate_separated; /* least share of pairs of cells with a cosine of at most .5 */
} bj_settings;

/* An arm: an objective with its model. */
typedef struct bj_arm_info {
    const char *name, *title, *summary;
    const char *family; /* "main", "mdn", "ablation", "anchor", "maze" */
} bj_arm_info;

BJ_API int bj_arm_count(void);
BJ_API bj_arm_info bj_arm_at(int index);
BJ_API int bj_arm_find(const char *name); /* its index, or -1 */

typedef struct bj_recipe_info {
    const char *name, *summary;
} bj_recipe_info;

BJ_API int bj_recipe_count(void);
BJ_API bj_recipe_info bj_recipe_at(int index);

typedef enum bj_setting_type { BJ_SETTING_INT, BJ_SETTING_SEED, BJ_SETTING_REAL, BJ_SETTING_TEXT }
    bj_setting_type;

typedef struct bj_setting_info {
    const char *key; /* "optim.lr" */
    bj_setting_type type;
    double least, most; /* of numbers */
    int above;          /* `least` itself is refused */
    const char *help;
} bj_setting_info;

BJ_API int bj_setting_count(void);
BJ_API bj_setting_info bj_setting_at(int index);
BJ_API int bj_setting_find(const char *key); /* its index, or -1 */

/* key = value, both as written; origin says where, "--set", "run.yaml:12". */
typedef struct bj_assignment {
    const char *key, *value, *origin;
} bj_assignment;

/* Defaults of arm and recipe, then the assignments; later ones win. "arm" must be among them,
 * "recipe" is "paper" and "seed" 0 unless they are. An unknown key, with the nearest known one, a
 * value of the wrong type and settings that do not fit together are refused by origin. origins
 * (bj_setting_count), when not NULL, receives where each value comes from: "paper", "default" where
 * the paper is silent, "arm mdn", "recipe small", or an origin of the list. */
BJ_API BJ_CHECK bj_status bj_settings_resolve(bj_settings *out, const char **origins,
                                              const bj_assignment *list, int count, bj_error *err);
/* The value of a setting as text that resolves to the same value. */
enum { BJ_SETTING_TEXT_SIZE = BJ_RUN_PATH_SIZE };
BJ_API void bj_setting_text(char text[BJ_SETTING_TEXT_SIZE], const bj_settings *settings, int index);
/* SHA-256 over all keys and values, 64 digits. The anchor counts by its path. Settings that came
 * later than others are left out while they have their defaults. */
BJ_API BJ_CHECK bj_status bj_settings_digest(char hex[65], const bj_settings *settings,
                                             bj_error *err);
/* All keys and values as one JSON object, nested at the dots, and back. */
BJ_API BJ_CHECK bj_status bj_settings_write(const bj_settings *settings, const char *path,
                                            bj_error *err);

/* A YAML or JSON file flattened to assignments: "optim: {lr: 3e-4}" is optim.lr = 3e-4, items of a
 * sequence are key.0, key.1 and so on. Values are kept as written. */
typedef struct bj_config bj_config;
BJ_API BJ_CHECK bj_status bj_config_read(bj_config **out, const char *path, bj_error *err);
BJ_API void bj_config_free(bj_config *config);
BJ_API int bj_config_count(const bj_config *config);
BJ_API bj_assignment bj_config_at(const bj_config *config, int index);
BJ_API const char *bj_config_get(const bj_config *config, const char *key); /* or NULL */

/* ------------------------------------------------------------------------------------- history */

/* What a maze's predictor makes of the graph, and the latents of its cells (docs/MAZES.md). NaN:
 * does not apply. Models of more than x and y have cov_r, separated and closest alone, over recorded
 * frames. */
typedef struct bj_maze_values {
    double plan_all, verified_route, macro_precision, macro_precision_self, held_recall, cov_r;
    double predicted_edges;
    double separated; /* share of pairs of cells whose latents have a cosine of at most .5 */
    double closest;   /* the largest cosine of two cells */
    double cov_three, heads_three; /* of cells with three successors: COV-R, heads that hit one */
} bj_maze_values;

/* Returns the number of development scenes, out of `dev`, on which parts are exchanged after an
 * epoch of `fit` scenes: the first fit / 32, but at least 128 and at most BJ_EXCHANGE_SCENES. */
enum { BJ_EXCHANGE_SCENES = 512 };
BJ_API int bj_exchange_scenes(int64_t fit, int64_t dev);

/* One line of metrics.jsonl: what is known after an epoch; epoch 0 is before the first step. */
typedef struct bj_epoch {
    int epoch;
    int64_t step;            /* updates done */
    double lr;               /* of the last update */
    double grad_norm;        /* mean over the epoch's updates, before clipping */
    bj_loss train;           /* means over the epoch's updates */
    bj_metric_values dev;    /* NaN for stage A and mazes */
    bj_latent_health health; /* of the target latents of development scenes */
    bj_encoder_values encoder;   /* of the online encoder on development scenes */
    bj_exchange_values exchange; /* on the first bj_exchange_scenes development scenes */
    double usage_least, usage_most;  /* shares of weight of branches, development scenes */
    double decoder_ade, decoder_fde; /* stage A, development scenes; else NaN */
    bj_maze_values maze;     /* NaN but for mazes */
    int eligible;            /* stage A: passed every gate; mazes: not collapsed; else 1 */
    int best;                /* 1: the checkpoint chosen so far is of this epoch */
    double wall_s;           /* since the run began, pauses not counted */
    double scenes_per_s;     /* of training in this epoch */
} bj_epoch;

/* Returns 1 if the model of the epoch is blind to the map: exchanging the focal tracks increases the
 * trajectory Energy Score by at least 20 %, so the model has learned to forecast, but exchanging the
 * maps increases it by less than 2 %. Models learn to read the focal track first, so an epoch counts
 * only in the second half of the run, or after the first tenth if at least 1,000 updates are done. */
BJ_API int bj_epoch_blind(const bj_settings *settings, const bj_epoch *row);

/* ----------------------------------------------------------------------------------------- run */

typedef struct bj_run_progress {
    const char *phase; /* "train", "evaluate", "save" */
    int epoch, epochs;
    int64_t step, steps;   /* of the run */
    double scenes_per_s, eta_s;
    bj_loss loss;          /* mean of the last steps */
    const bj_epoch *last, *best; /* NULL when there is none */
} bj_run_progress;

typedef enum bj_run_answer {
    BJ_RUN_GO_ON,
    BJ_RUN_STOP, /* save and leave, resumable */
    BJ_RUN_SAVE  /* save and go on */
} bj_run_answer;

/* Scenes that come from a function instead of a cache, such as simulated ones (fresh.h). */
typedef struct bj_scene_source {
    const char *name;   /* identity, recorded in manifest.json */
    const char *digest; /* 64 digits that change with any scene or with their order */
    int64_t scenes;     /* positions 0 .. scenes - 1 exist; 0: no end */
    bj_arch arch;       /* sizes of a scene; other fields are not read */
    void *context;
    /* Returns the scenes at positions first .. first + count - 1 and their numbers (count), both
     * valid until the next call. */
    bj_status (*read)(const bj_scene **scenes, const int64_t **numbers, void *context,
                      int64_t first, int count, bj_error *err);
    /* Writes the scenario id of a scene number. */
    void (*id)(char id[64], void *context, int64_t number);
} bj_scene_source;

typedef struct bj_run_options {
    const char *data;   /* cache with scenes to fit and to develop on; or a maze's dataset */
    const char *dev;    /* another cache for development, and all of `data` is fitted; or NULL */
    /* Scenes to fit, each seen once; then `data` is their name, and development scenes come from
     * `dev` or else from dev_scenes. NULL: none. */
    const bj_scene_source *scenes, *dev_scenes;
    const char *dir;    /* created; must not hold a run unless `resume` */
    const char *maze;   /* its name; NULL: the name of the dataset has it */
    const char *config; /* file that is kept in the run as it is; or NULL */
    int resume;         /* go on where a run stopped; begin when there is none */
    int extend;         /* epochs to add to a finished run, with a learning rate cycle of their own;
                           0: none. Continues an unfinished extension of as many epochs */
    int threads;
    const char *isa;
    /* Asked after every step and now and then during an evaluation. May be NULL. */
    bj_run_answer (*progress)(void *context, const bj_run_progress *progress);
    /* Called with a line about the start of the run: tensors that were loaded, an extension. May be
     * NULL. */
    void (*note)(void *context, const char *line);
    void *context;
} bj_run_options;

typedef enum bj_run_outcome {
    BJ_RUN_DONE,    /* all epochs, or patience is at its end */
    BJ_RUN_STOPPED, /* asked to */
    BJ_RUN_NO_PASS, /* stage A: all epochs, and none passed every gate: there is no checkpoint */
    BJ_RUN_COLLAPSED /* mazes: all epochs, and the latents of the last one have collapsed: its
                        numbers are no score */
} bj_run_outcome;

typedef struct bj_run_report {
    bj_run_outcome outcome;
    int epochs;      /* done */
    int64_t step;
    int resumed_at;  /* epoch a resumed run went on in; -1: a fresh one */
    bj_epoch best;   /* of outcome BJ_RUN_DONE */
    int64_t fit, dev; /* scenes; or transitions and cells */
} bj_run_report;

/* Trains. A loss or gradient that is not finite is BJ_ENONFINITE: the state before that step is in
 * ckpt/last, and resuming would meet the same step again. */
BJ_API BJ_CHECK bj_status bj_run_train(bj_run_report *report, const bj_settings *settings,
                                       const bj_run_options *options, bj_error *err);

/* A run on disk, finished or not. */
typedef struct bj_run bj_run;

BJ_API BJ_CHECK bj_status bj_run_open(bj_run **out, const char *dir, bj_error *err);
BJ_API void bj_run_free(bj_run *run);
BJ_API const bj_settings *bj_run_settings(const bj_run *run);
/* A fact of manifest.json as text ("data.digest", "initial.sha256", "order.sha256", ...), or NULL. */
BJ_API const char *bj_run_fact(const bj_run *run, const char *key);
BJ_API int bj_run_epochs(const bj_run *run); /* rows of metrics.jsonl */
BJ_API bj_epoch bj_run_epoch(const bj_run *run, int index);
BJ_API int bj_run_finished(const bj_run *run); /* result.json is there */
BJ_API int bj_run_collapsed(const bj_run *run); /* finished as BJ_RUN_COLLAPSED: it has no score */
BJ_API int bj_run_best(const bj_run *run); /* index of the chosen epoch's row, or -1 */
BJ_API int bj_run_planned(const bj_run *run);  /* the last epoch to train, extensions included */
BJ_API int bj_run_extended(const bj_run *run); /* epochs of all extensions */
/* Returns 1 if all planned epochs have a row, or if patience ended the run. */
BJ_API int bj_run_complete(const bj_run *run);

/* Finds the model file that `model` names: the file itself, or the one in a checkpoint folder or in
 * ckpt/best or ckpt/last of a run. */
BJ_API BJ_CHECK bj_status bj_model_path(char *path, size_t size, const char *model, bj_error *err);

#endif
