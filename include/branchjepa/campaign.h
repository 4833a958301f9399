/* campaign.h - campaigns (arms times seeds), the run registry and the locked evaluation.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/CAMPAIGNS.md explains the files
 * and the protocol.
 *
 *   DIR/campaign.yaml       copy of the campaign file
 *   DIR/campaign.json       resolved grid: data, runs, settings; never changes afterwards
 *   DIR/registry*.sqlite    state of every run, one registry per shard
 *   DIR/runs/ARM/seed-S/    run folders, see run.h; runs/SET/ARM/seed-S/ with several datasets
 *   DIR/lock.json           hashes of everything that must not change before the evaluation
 *   DIR/locked/             the three files of the evaluation, perhaps with a signature
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_CAMPAIGN_H
#define BRANCHJEPA_CAMPAIGN_H

/* ------------------------------------------------------------------------------------ campaign */

typedef struct bj_campaign bj_campaign;

typedef struct bj_campaign_options {
    /* Replaces "data" in the campaign file. NULL: use "data" from the campaign file, relative to
     * that file. If this is a folder, the datasets listed under "data" must be in it. */
    const char *data;
    const char *dev;  /* as in bj_run_options, or NULL */
    const bj_assignment *set; /* settings for every run, applied after those of the campaign file */
    int set_count;
    int look; /* 1: resolve the grid without writing anything */
} bj_campaign_options;

/* Reads a campaign file and creates its grid in `dir`, which is created if necessary. If `dir`
 * already contains the same campaign, nothing changes. If it contains another campaign, the call
 * fails and the message names the difference. */
BJ_API BJ_CHECK bj_status bj_campaign_create(bj_campaign **out, const char *file, const char *dir,
                                             const bj_campaign_options *options, bj_error *err);
/* Opens an existing campaign folder. */
BJ_API BJ_CHECK bj_status bj_campaign_open(bj_campaign **out, const char *dir, bj_error *err);
BJ_API void bj_campaign_free(bj_campaign *campaign);
BJ_API const char *bj_campaign_name(const bj_campaign *campaign);
BJ_API const char *bj_campaign_dir(const bj_campaign *campaign);
/* Return the datasets. Most campaigns have only one, which all runs share. */
BJ_API int bj_campaign_data_count(const bj_campaign *campaign);
BJ_API const char *bj_campaign_data_name(const bj_campaign *campaign, int set); /* NULL if there is
                                                                                   only one */
BJ_API const char *bj_campaign_data(const bj_campaign *campaign); /* path of the first dataset */
BJ_API const char *bj_campaign_data_digest(const bj_campaign *campaign);
BJ_API const char *bj_campaign_dev(const bj_campaign *campaign); /* path, or NULL */

typedef struct bj_campaign_run {
    const bj_settings *settings; /* all settings, including arm and seed */
    const char *name; /* row name in tables: the arm, or "SET/ARM" with several datasets */
    int set;          /* index of the dataset */
    const char *data, *data_digest; /* path and digest of the dataset */
    const char *dir;             /* run folder inside the campaign folder */
    int needs;                   /* run that must be finished first, or -1; stage B needs stage A */
} bj_campaign_run;

/* Return the runs, ordered by seed, then dataset, then arm. */
BJ_API int bj_campaign_runs(const bj_campaign *campaign);
BJ_API bj_campaign_run bj_campaign_run_at(const bj_campaign *campaign, int index);

/* ------------------------------------------------------------------------------------ registry */

typedef enum bj_run_state {
    BJ_STATE_WAITING,
    BJ_STATE_RUNNING,
    BJ_STATE_STOPPED, /* interrupted, can be resumed */
    BJ_STATE_DONE,
    BJ_STATE_FAILED,  /* not retried unless requested */
    BJ_STATE_NO_PASS, /* stage A ended without an eligible epoch, so runs that need it cannot
                         start */
    BJ_STATE_COLLAPSED, /* mazes: the run is done, but its latents collapsed, so it has no score */
    BJ_STATES
} bj_run_state;

BJ_API const char *bj_run_state_name(bj_run_state state);

/* Registry entry of a run. Strings are zero-terminated and may be truncated. */
typedef struct bj_run_record {
    bj_run_state state;
    char host[64];
    int64_t pid;
    int attempts;
    double started, updated; /* seconds since 1970; 0: never */
    int epoch, epochs;
    double progress;     /* 0 to 1 */
    double scenes_per_s, eta_s;
    double dev, best;    /* selection metric (mazes: raw COV-R) of the last epoch and of the chosen
                            epoch; NaN if there is none */
    int best_epoch;      /* -1 if there is none */
    char message[256];   /* error message of a failed run */
} bj_run_record;

/* One shard of a campaign. Run i belongs to shard i % shards. */
typedef struct bj_registry bj_registry;

/* Opens a shard for the process that runs it. Fails if another live process has the shard open, or
 * if the data has changed since the campaign was created. Runs that a dead process left in the
 * state "running" are set to "stopped". The campaign must outlive the registry. */
BJ_API BJ_CHECK bj_status bj_registry_open(bj_registry **out, const bj_campaign *campaign,
                                           int shard, int shards, bj_error *err);
/* Moves a damaged registry aside, to NAME.damaged, so that bj_registry_open creates a new one. The
 * states of the runs are then read from the run folders; only the history is lost. Fails if another
 * live process has the shard open. */
BJ_API BJ_CHECK bj_status bj_registry_discard(const bj_campaign *campaign, int shard, int shards,
                                              bj_error *err);
BJ_API void bj_registry_free(bj_registry *registry);
BJ_API int bj_registry_owns(const bj_registry *registry, int run);
BJ_API BJ_CHECK bj_status bj_registry_get(bj_run_record *out, const bj_registry *registry, int run,
                                          bj_error *err);
BJ_API BJ_CHECK bj_status bj_registry_put(bj_registry *registry, int run,
                                          const bj_run_record *record, bj_error *err);
/* Updates a record from the run folder: the progress in status.json, or the final state of a
 * finished run. Other fields are unchanged. Fails with BJ_EMISMATCH if the folder contains another
 * run. */
BJ_API BJ_CHECK bj_status bj_campaign_look(bj_run_record *record, const bj_campaign *campaign,
                                           int run, bj_error *err);
/* Reads the records (bj_campaign_runs) of all runs from all registries of a campaign, for external
 * monitors. */
BJ_API BJ_CHECK bj_status bj_campaign_status(bj_run_record *records, const bj_campaign *campaign,
                                             bj_error *err);

/* ---------------------------------------------------------------------------- locked evaluation */

#define BJ_LOCK_FILE "lock.json"
#define BJ_LOCKED_DIR "locked"
#define BJ_LOCKED_SUMMARY "run_summary.json"
#define BJ_LOCKED_SEEDS "seed_table.json"
#define BJ_LOCKED_COMPLETION "completion.json"
#define BJ_LOCKED_SIGNATURE "completion.sig" /* optional: Ed25519 signature of completion.json */
#define BJ_LOCKED_KEY "completion.pub"       /* optional: public key of the signature, as PEM */

typedef struct bj_lock_options {
    const char *data;      /* held-out cache */
    const char *evaluator; /* path of the program that will run the evaluation */
    int (*progress)(void *context, int64_t done, int64_t total); /* in bytes; as in
                                                                    bj_submit_options */
    void *context;
} bj_lock_options;

typedef struct bj_lock_report {
    int runs, arms, seeds;
    int64_t scenes;
    char digest[65]; /* SHA-256 of lock.json */
} bj_lock_report;

/* Locks the campaign: stores the hashes of every chosen checkpoint, its settings and history, the
 * evaluator and the held-out data. Fails if a run is not done, if a checkpoint is not the one that
 * the development rule chooses, if training has seen the data, or if the campaign is already
 * locked. */
BJ_API BJ_CHECK bj_status bj_campaign_lock(bj_lock_report *report, const char *dir,
                                           const bj_lock_options *options, bj_error *err);

typedef struct bj_locked_options {
    const char *evaluator; /* path of this program */
    int threads;
    const char *isa;
    int (*progress)(void *context, const char *phase, int64_t done, int64_t total);
    void *context;
    /* Only for bj_campaign_verify: */
    int partial;     /* 1: missing locked files are counted instead of an error */
    int repeat;      /* 1: repeat the evaluation and compare its files, without publishing */
    const char *key; /* public key of the signature; NULL: BJ_LOCKED_KEY in the folder */
} bj_locked_options;

typedef struct bj_locked_report {
    int checkpoints;
    int64_t scenes;
    char digest[65]; /* SHA-256 of completion.json; "" before the evaluation */
    /* Only from bj_campaign_verify: */
    int files;          /* number of locked files */
    int missing;        /* how many of them were missing and could not be checked */
    char first[256];    /* path of the first missing file; may be truncated */
    int other_program;  /* 1: another program evaluated the campaign, so it was not compared */
    char evaluator[32]; /* version of the program that evaluated or will evaluate */
    char signer[65];    /* SHA-256 of the public key that signed; "": no signature */
} bj_locked_report;

/* Runs the locked evaluation, which is possible only once. Fails with BJ_ELOCKED if there is no
 * lock, if the campaign has already been evaluated or if progress stops the evaluation. Fails with
 * BJ_EMISMATCH if a hash differs from the lock. */
BJ_API BJ_CHECK bj_status bj_campaign_evaluate(bj_locked_report *report, const char *dir,
                                               const bj_locked_options *options, bj_error *err);
/* Checks the lock: its runs against campaign.json and against the facts in every checkpoint, and
 * the SHA-256 of every locked file. After the evaluation, also checks the result files against each
 * other and against the lock, and the signature if there is one. Fails with BJ_EMISMATCH or
 * BJ_EFORMAT and the name of the file, or with BJ_ELOCKED if lock.json or a result file is
 * missing. */
BJ_API BJ_CHECK bj_status bj_campaign_verify(bj_locked_report *report, const char *dir,
                                             const bj_locked_options *options, bj_error *err);

/* A verified evaluation. Programs that show its numbers read them through this type. */
typedef struct bj_locked bj_locked;

/* Verifies the evaluation like bj_campaign_verify with `partial` and without the evaluator, and
 * keeps the verified bytes. report may be NULL. Fails with BJ_ELOCKED if the campaign has not been
 * evaluated or if a result file is missing. */
BJ_API BJ_CHECK bj_status bj_locked_open(bj_locked **out, bj_locked_report *report,
                                         const char *dir, bj_error *err);
BJ_API void bj_locked_free(bj_locked *locked);
/* Returns the bytes of BJ_LOCK_FILE, BJ_LOCKED_SUMMARY, BJ_LOCKED_SEEDS or BJ_LOCKED_COMPLETION, or
 * NULL for another name. */
BJ_API const char *bj_locked_bytes(const bj_locked *locked, const char *name, size_t *size);
/* Creates a table from seed_table.json. */
BJ_API BJ_CHECK bj_status bj_locked_seeds(bj_seeds **out, const bj_locked *locked, bj_error *err);

/* Source of a campaign's values by arm, metric and seed. */
typedef enum bj_seed_source {
    BJ_SEEDS_LOCKED,     /* results of the locked evaluation; fails with BJ_ELOCKED if it has not
                            been run */
    BJ_SEEDS_DEVELOPMENT /* chosen checkpoints of finished runs on development scenes */
} bj_seed_source;

BJ_API BJ_CHECK bj_status bj_campaign_seeds(bj_seeds **out, const char *dir, bj_seed_source source,
                                            bj_error *err);

#endif
