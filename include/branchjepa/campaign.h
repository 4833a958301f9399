/* campaign.h - the grid of arms and seeds, its registry, and the locked evaluation.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/CAMPAIGNS.md explains files
 * and protocol.
 *
 *   DIR/campaign.yaml       the file as given
 *   DIR/campaign.json       the grid as resolved: data, runs, settings; never changes afterwards
 *   DIR/registry*.sqlite    what happened to every run, one registry for each shard
 *   DIR/runs/ARM/seed-S/    run folders, see run.h; runs/SET/ARM/seed-S/ with several datasets
 *   DIR/lock.json           hashes of everything that must not change before the evaluation
 *   DIR/locked/             the three files of the evaluation, and nothing else
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_CAMPAIGN_H
#define BRANCHJEPA_CAMPAIGN_H

/* ------------------------------------------------------------------------------------ campaign */

typedef struct bj_campaign bj_campaign;

typedef struct bj_campaign_options {
    /* NULL: "data" of the file, relative to the file. A file: that, whatever "data" says. A folder:
     * that of the datasets under "data". */
    const char *data;
    const char *dev;  /* as in bj_run_options, or NULL */
    const bj_assignment *set; /* for every run, after those of the file */
    int set_count;
    int look; /* write nothing: only to see the grid */
} bj_campaign_options;

/* Reads a campaign file and lays its grid down in `dir`, which is created. A folder that holds the
 * same campaign already is left as it is; another one is refused by naming the difference. */
BJ_API BJ_CHECK bj_status bj_campaign_create(bj_campaign **out, const char *file, const char *dir,
                                             const bj_campaign_options *options, bj_error *err);
/* One that is laid down already. */
BJ_API BJ_CHECK bj_status bj_campaign_open(bj_campaign **out, const char *dir, bj_error *err);
BJ_API void bj_campaign_free(bj_campaign *campaign);
BJ_API const char *bj_campaign_name(const bj_campaign *campaign);
BJ_API const char *bj_campaign_dir(const bj_campaign *campaign);
/* Datasets: one as a rule, and that is the one the runs have in common. */
BJ_API int bj_campaign_data_count(const bj_campaign *campaign);
BJ_API const char *bj_campaign_data_name(const bj_campaign *campaign, int set); /* NULL: only one */
BJ_API const char *bj_campaign_data(const bj_campaign *campaign); /* path of the first */
BJ_API const char *bj_campaign_data_digest(const bj_campaign *campaign);
BJ_API const char *bj_campaign_dev(const bj_campaign *campaign); /* path or NULL */

typedef struct bj_campaign_run {
    const bj_settings *settings; /* arm, seed and all the rest */
    const char *name; /* of its row in tables: the arm; "SET/ARM" with several datasets */
    int set;          /* dataset */
    const char *data, *data_digest; /* its path and digest */
    const char *dir;             /* of the run, below the campaign's */
    int needs;                   /* run that must be done before, or -1: stage B needs stage A */
} bj_campaign_run;

/* By seed, then by dataset, then in the order of the arms. */
BJ_API int bj_campaign_runs(const bj_campaign *campaign);
BJ_API bj_campaign_run bj_campaign_run_at(const bj_campaign *campaign, int index);

/* ------------------------------------------------------------------------------------ registry */

typedef enum bj_run_state {
    BJ_STATE_WAITING,
    BJ_STATE_RUNNING,
    BJ_STATE_STOPPED, /* interrupted, resumable */
    BJ_STATE_DONE,
    BJ_STATE_FAILED,  /* not tried again unless asked to */
    BJ_STATE_NO_PASS, /* stage A without an eligible epoch; what needs it cannot run */
    BJ_STATE_COLLAPSED, /* mazes: done, and its latents are no score */
    BJ_STATES
} bj_run_state;

BJ_API const char *bj_run_state_name(bj_run_state state);

/* What the registry knows of a run. Texts are kept short and end in '\0'. */
typedef struct bj_run_record {
    bj_run_state state;
    char host[64];
    int64_t pid;
    int attempts;
    double started, updated; /* seconds since 1970; 0: never */
    int epoch, epochs;
    double progress;     /* 0 to 1 */
    double scenes_per_s, eta_s;
    double dev, best;    /* selection metric (mazes: raw COV-R) of the last epoch, of the chosen
                            one; NaN */
    int best_epoch;      /* or -1 */
    char message[256];   /* of a failure */
} bj_run_record;

/* One shard of a campaign: run i belongs to shard i % shards. */
typedef struct bj_registry bj_registry;

/* For whoever runs the shard; a second one is refused while the first lives, and so is data that is
 * no longer what the campaign was laid down with. Runs that a process which is gone left as running
 * become stopped. The campaign must outlive the registry. */
BJ_API BJ_CHECK bj_status bj_registry_open(bj_registry **out, const bj_campaign *campaign, int shard,
                                           int shards, bj_error *err);
BJ_API void bj_registry_free(bj_registry *registry);
BJ_API int bj_registry_owns(const bj_registry *registry, int run);
BJ_API BJ_CHECK bj_status bj_registry_get(bj_run_record *out, const bj_registry *registry, int run,
                                          bj_error *err);
BJ_API BJ_CHECK bj_status bj_registry_put(bj_registry *registry, int run,
                                          const bj_run_record *record, bj_error *err);
/* What the folder of a run says: how far it is (status.json), or how it ended, which sets the state.
 * The rest of the record stays. A folder that holds another run is BJ_EMISMATCH. */
BJ_API BJ_CHECK bj_status bj_campaign_look(bj_run_record *record, const bj_campaign *campaign,
                                           int run, bj_error *err);
/* All runs of a campaign from all its registries, for onlookers: records (bj_campaign_runs). */
BJ_API BJ_CHECK bj_status bj_campaign_status(bj_run_record *records, const bj_campaign *campaign,
                                             bj_error *err);

/* ----------------------------------------------------------------------------- locked evaluation */

#define BJ_LOCK_FILE "lock.json"
#define BJ_LOCKED_DIR "locked"
#define BJ_LOCKED_SUMMARY "run_summary.json"
#define BJ_LOCKED_SEEDS "seed_table.json"
#define BJ_LOCKED_COMPLETION "completion.json"

typedef struct bj_lock_options {
    const char *data;      /* held-out cache */
    const char *evaluator; /* path of the program that will evaluate */
    int (*progress)(void *context, int64_t done, int64_t total); /* bytes; as in bj_submit_options */
    void *context;
} bj_lock_options;

typedef struct bj_lock_report {
    int runs, arms, seeds;
    int64_t scenes;
    char digest[65]; /* of lock.json */
} bj_lock_report;

/* Binds every chosen checkpoint, its settings and history, the evaluator and the held-out data by
 * their bytes. Refused: a grid with runs that are not done, a checkpoint that the development rule
 * did not choose, data that training has seen, a campaign that is locked already. */
BJ_API BJ_CHECK bj_status bj_campaign_lock(bj_lock_report *report, const char *dir,
                                           const bj_lock_options *options, bj_error *err);

typedef struct bj_locked_options {
    const char *evaluator; /* path of this program */
    int threads;
    const char *isa;
    int (*progress)(void *context, const char *phase, int64_t done, int64_t total);
    void *context;
} bj_locked_options;

typedef struct bj_locked_report {
    int checkpoints;
    int64_t scenes;
    char digest[65]; /* of completion.json */
} bj_locked_report;

/* The one pass. BJ_ELOCKED: no lock, a second time, stopped; BJ_EMISMATCH names the byte-wise change. */
BJ_API BJ_CHECK bj_status bj_campaign_evaluate(bj_locked_report *report, const char *dir,
                                               const bj_locked_options *options, bj_error *err);
/* Checks every hash of the lock and, after the evaluation, of its three files; evaluates nothing. */
BJ_API BJ_CHECK bj_status bj_campaign_verify(bj_locked_report *report, const char *dir,
                                             const bj_locked_options *options, bj_error *err);

/* The values of a campaign by arm, metric and seed, for the statistics of branchjepa.h. */
typedef enum bj_seed_source {
    BJ_SEEDS_LOCKED,     /* of the evaluation; BJ_ELOCKED: there was none yet */
    BJ_SEEDS_DEVELOPMENT /* of the chosen checkpoints on development scenes, of finished runs */
} bj_seed_source;

BJ_API BJ_CHECK bj_status bj_campaign_seeds(bj_seeds **out, const char *dir, bj_seed_source source,
                                            bj_error *err);

#endif
