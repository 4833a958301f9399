/* campaign_internal.h - what the files of this folder share: the grid, its file, its locks. */
#ifndef BJ_CAMPAIGN_INTERNAL_H
#define BJ_CAMPAIGN_INTERNAL_H

#include "core/status.h"

enum { BJ_CAMPAIGN_PATH = 4096, BJ_CAMPAIGN_SEEDS = 1000, BJ_CAMPAIGN_FILE = 64 << 20 };
enum { BJ_CAMPAIGN_ARMS = 256 };
enum { BJ_CAMPAIGN_SETS = 64, BJ_SET_NAME = 16 /* with an arm, a name fits a table of seeds */ };

typedef struct bj_grid_set {
    char *name; /* NULL: the only one */
    char *path; /* NULL: not known yet */
    char digest[65];
} bj_grid_set;

typedef struct bj_grid_run {
    bj_settings settings;
    char digest[65]; /* of the settings */
    char *label;     /* name of the arm in this campaign; NULL: settings.arm */
    char *name;      /* "LABEL" or "SET/LABEL" */
    char *dir;       /* the campaign's, "/runs/NAME/seed-S" */
    int needs;       /* or -1 */
    int set;         /* of sets */
} bj_grid_run;

struct bj_campaign {
    char *dir;        /* as given */
    char *root;       /* absolute: what stage B knows its anchor by */
    char *name, *dev; /* dev may be NULL */
    char dev_digest[65];
    char digest[65]; /* of campaign.json; empty: not created */
    int set_count, count;
    bj_grid_set *sets; /* (set_count) */
    bj_grid_run *runs; /* (count) by seed, then by dataset, then by arm */
};

/* "folder/name"; a result that does not fit is an error. */
BJ_CHECK bj_status bj_campaign_path(char path[BJ_CAMPAIGN_PATH], const char *folder,
                                    const char *name, bj_error *err);
/* A copy of a text. */
BJ_CHECK bj_status bj_campaign_text(char **out, const char *text, bj_error *err);
/* What datasets may be called. */
int bj_campaign_is_set_name(const char *name);
/* Sets name and dir of a run. */
BJ_CHECK bj_status bj_campaign_name_run(bj_campaign *campaign, int index, bj_error *err);
/* Refuses data that is not what the campaign was created with. */
BJ_CHECK bj_status bj_campaign_check_data(const bj_campaign *campaign, bj_error *err);
/* 1 for arms that start from a stage A run. */
int bj_campaign_is_stage_b(const char *arm);

/* ------------------------------------------------------------------------------ campaign_file.c */

/* Reads FILE.yaml: name, datasets and dev (as paths from here; NULL when not given) and all runs.
 */
BJ_CHECK bj_status bj_campaign_file_read(bj_campaign *campaign, const char *file,
                                         const bj_campaign_options *options, bj_error *err);

/* ------------------------------------------------------------------------------ campaign_json.c */

BJ_CHECK bj_status bj_campaign_json_write(const bj_campaign *campaign, char **text, size_t *size,
                                          bj_error *err);
/* Fills everything but dir and root. */
BJ_CHECK bj_status bj_campaign_json_read(bj_campaign *campaign, const char *path, bj_error *err);
/* Names the first difference (BJ_EMISMATCH); where data lies does not matter, what it holds does.
 */
BJ_CHECK bj_status bj_campaign_same(const bj_campaign *was, const bj_campaign *is, const char *file,
                                    bj_error *err);

/* -------------------------------------------------------------------------------------- owner.c */

/* Takes turns on a folder; for short steps. -1 where the file system has no locks. */
BJ_CHECK bj_status bj_campaign_turn(int *lock, const char *dir, bj_error *err);
void bj_campaign_turn_end(int lock);

/* Becomes the owner of a shard until bj_campaign_disown, or until the process is gone. */
BJ_CHECK bj_status bj_campaign_own(int *lock, const char *dir, int shard, int shards,
                                   bj_error *err);
void bj_campaign_disown(int lock);
/* 1 when somebody owns it. */
int bj_campaign_owned(const char *dir, int shard, int shards);

#endif
