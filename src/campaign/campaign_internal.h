/* campaign_internal.h - declarations shared by the files of src/campaign. */
#ifndef BJ_CAMPAIGN_INTERNAL_H
#define BJ_CAMPAIGN_INTERNAL_H

#include "core/status.h"

enum { BJ_CAMPAIGN_PATH = 4096, BJ_CAMPAIGN_SEEDS = 1000, BJ_CAMPAIGN_FILE = 64 << 20 };
enum { BJ_CAMPAIGN_ARMS = 256 };
enum { BJ_CAMPAIGN_SETS = 64, BJ_SET_NAME = 16 /* short enough that a seed table has room for it and
                                                  an arm name */ };

typedef struct bj_grid_set {
    char *name; /* NULL: the only one */
    char *path; /* NULL: not known yet */
    char digest[65];
} bj_grid_set;

typedef struct bj_grid_run {
    bj_settings settings;
    char digest[65]; /* digest of the settings */
    char *label;     /* name of the arm in this campaign; NULL: settings.arm */
    char *name;      /* "LABEL" or "SET/LABEL" */
    char *dir;       /* folder of the campaign and "/runs/NAME/seed-S" */
    int needs;       /* or -1 */
    int set;         /* of sets */
} bj_grid_run;

struct bj_campaign {
    char *dir;        /* as given */
    char *root;       /* absolute path, because stage B stores the path of its anchor */
    char *name, *dev; /* dev may be NULL */
    char dev_digest[65];
    char digest[65]; /* of campaign.json; empty: not created */
    int set_count, count;
    bj_grid_set *sets; /* (set_count) */
    bj_grid_run *runs; /* (count) sorted by seed, then by dataset, then by arm */
};

/* Writes "folder/name". Fails if the result does not fit. */
BJ_CHECK bj_status bj_campaign_path(char path[BJ_CAMPAIGN_PATH], const char *folder,
                                    const char *name, bj_error *err);
/* Returns a copy of a text. */
BJ_CHECK bj_status bj_campaign_text(char **out, const char *text, bj_error *err);
/* Checks the name of a dataset. */
int bj_campaign_is_set_name(const char *name);
/* Returns the name of a run's arm in this campaign. */
const char *bj_campaign_label(const bj_campaign *campaign, int run);
/* Sets name and dir of a run. */
BJ_CHECK bj_status bj_campaign_name_run(bj_campaign *campaign, int index, bj_error *err);
/* Fails if the data has changed since the campaign was created. */
BJ_CHECK bj_status bj_campaign_check_data(const bj_campaign *campaign, bj_error *err);
/* Returns 1 for arms that start from a stage A run. */
int bj_campaign_is_stage_b(const char *arm);

/* ------------------------------------------------------------------------------ campaign_file.c */

/* Reads FILE.yaml: the name, the paths of datasets and dev (NULL if not given) and all runs. */
BJ_CHECK bj_status bj_campaign_file_read(bj_campaign *campaign, const char *file,
                                         const bj_campaign_options *options, bj_error *err);

/* ------------------------------------------------------------------------------ campaign_json.c */

BJ_CHECK bj_status bj_campaign_json_write(const bj_campaign *campaign, char **text, size_t *size,
                                          bj_error *err);
/* Fills everything except dir and root. */
BJ_CHECK bj_status bj_campaign_json_read(bj_campaign *campaign, const char *path, bj_error *err);
/* Compares two campaigns. Fails with BJ_EMISMATCH and reports the first difference. The data may
 * have moved, but its content must be equal. */
BJ_CHECK bj_status bj_campaign_same(const bj_campaign *was, const bj_campaign *is, const char *file,
                                    bj_error *err);

/* -------------------------------------------------------------------------------------- owner.c */

/* Locks a folder for a short operation. Sets the lock to -1 if the file system has no locks. */
BJ_CHECK bj_status bj_campaign_turn(int *lock, const char *dir, bj_error *err);
void bj_campaign_turn_end(int lock);

/* Makes this process the owner of a shard until bj_campaign_disown or until it ends. */
BJ_CHECK bj_status bj_campaign_own(int *lock, const char *dir, int shard, int shards,
                                   bj_error *err);
void bj_campaign_disown(int lock);
/* Returns 1 if a process owns the shard. */
int bj_campaign_owned(const char *dir, int shard, int shards);

#endif
