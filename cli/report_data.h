/* report_data.h - what report and figures show of a campaign, collected once.
 *
 * A campaign folder gives everything: arms and seeds of its grid, the numbers of its locked
 * evaluation or, before there is one, those of the development split, the history of every run, and
 * the results of `bjepa audit --json` and `bjepa truth --json` where they lie in the folder as
 * audit.json and truth.json. A run folder gives its history and the numbers of its development
 * scenes. A seed table (CSV) gives numbers alone.
 *
 * Invariants
 *   1. Numbers of the locked evaluation and of the development split are never mixed: `locked` says
 *      which ones all of `value` are, and report_numbers says so in words.
 *   2. Whatever is not known is NaN, NULL, -1 or 0 items, never a guess.
 *   3. Arms keep the order of the campaign, seeds are sorted, metrics have the numbers of
 *      bj_metric_at. With several datasets, which only campaigns of mazes may have here, an arm is
 *      there once for each of them, as "SET/ARM".
 * Test: tests/cli/figures.sh, tests/cli/test_plot.c
 */
#ifndef BJEPA_REPORT_DATA_H
#define BJEPA_REPORT_DATA_H

#include "output.h"

#define REPORT_AUDIT_FILE "audit.json"
#define REPORT_TRUTH_FILE "truth.json"

enum { REPORT_TITLE_SIZE = 80, REPORT_SOURCE_SIZE = 256 };

typedef struct report_arm {
    char name[BJ_NAME_SIZE], title[REPORT_TITLE_SIZE];
    const char *label; /* short, for columns and legends */
    int style;         /* of its marks in every plot, see plot.h */
    int set;           /* dataset of the campaign; an arm that was trained on several datasets has
                          several entries */
    int atoms;         /* branches; 0: not known */
    int forecasts;     /* 0: stage A of the frozen anchor, which has no forecasts */
    int maze;          /* 1: a model of mazes */
    bj_counts counts;  /* parameters; zeros: not known */
    int has_bins;      /* calibration over all seeds, of the locked evaluation */
    bj_calibration_bin bins[BJ_CALIBRATION_BINS];
    double *usage; /* (seeds,atoms) shares of the weight, NaN if unknown; NULL: none */
} report_arm;

typedef struct report_run {
    int arm, seed; /* numbers of both */
    const char *dir;
    bj_run *run;                /* history, settings and facts; NULL: the run has not started */
    int finished, epochs, best; /* as bj_run_finished, bj_run_epochs, bj_run_best */
} report_run;

/* The map audit. Metrics are those of bj_audit_metric_at. */
typedef struct report_audit_arm {
    char name[BJ_NAME_SIZE], title[REPORT_TITLE_SIZE];
    int style, seeds;
    double mean[BJ_AUDIT_METRICS], sd[BJ_AUDIT_METRICS]; /* population SD over seeds */
    double *value;                                       /* (seeds,BJ_AUDIT_METRICS) */
    int64_t *seed;                                       /* (seeds) */
} report_audit_arm;

typedef struct report_audit {
    int64_t total, scenes, origins;
    int arms;
    report_audit_arm *arm;
    int a, b; /* indices of the two arms of a comparison, a - b; -1: none */
    int resamples;
    bj_bootstrap difference[BJ_AUDIT_METRICS];
} report_audit;

/* The exam against the law of simulated scenes. */
typedef struct report_truth_entry {
    char name[REPORT_TITLE_SIZE]; /* as in the file, or the arm's title */
    int arm;                      /* arm of the campaign, or -1 for a baseline or another
                                     checkpoint */
    int64_t seed;                 /* -1: not of the campaign */
    int style;
    bj_exam_report report;
} report_truth_entry;

typedef struct report_truth {
    int64_t scenes;
    int samples, entries;
    report_truth_entry *entry;
} report_truth;

/* The contents of lock.json and completion.json. Strings are empty if the files do not exist. A
 * SHA-256 has 64 digits. */
typedef struct report_protocol {
    char lock_sha256[65], summary_sha256[65], seeds_sha256[65];
    char evaluator_sha256[65], evaluator_version[32];
    char data[CLI_PATH_SIZE], data_sha256[65], data_digest[65]; /* held out; digest of bj_cache */
    char isa[32], started[40], finished[40];
} report_protocol;

typedef struct report_data {
    char name[BJ_NAME_SIZE], source[CLI_PATH_SIZE]; /* of the campaign; folder or file */
    int locked;   /* 1: the numbers are of the locked evaluation, whose files agree */
    int verified; /* 1: also every locked file is there and unchanged, as the badge says */
    bj_locked *evaluation; /* NULL unless locked */
    int64_t scenes; /* behind the numbers; 0: not known */
    int arms, seeds, runs;
    report_arm *arm;
    int64_t *seed;
    report_run *run;             /* sorted by seed, then in the order of the arms */
    double *value;               /* (arms,bj_metric_count(),seeds) */
    int specialization, fullset; /* arms to compare with; -1: not there */
    bj_campaign *campaign;       /* NULL: a seed table, or one run */
    report_protocol protocol;
    report_audit *audit; /* NULL: none */
    report_truth *truth;
} report_data;

/* Opens a campaign folder, a run folder or a seed table. */
BJ_CHECK bj_status report_data_open(report_data **out, const char *path, bj_error *err);
void report_data_free(report_data *data);

/* Describes the source of the numbers: "locked evaluation, 4,000 held-out scenes", "evaluation, 4,000
 * held-out scenes, not verified: locked files are missing", or "development scenes, not the locked
 * evaluation". */
const char *report_numbers(char text[REPORT_SOURCE_SIZE], const report_data *data);

/* Return the number of datasets, the name of one or NULL, and the digest of the training data ("":
 * unknown). */
int report_set_count(const report_data *data);
const char *report_set_name(const report_data *data, int set);
const char *report_training_digest(const report_data *data);

/* `metric` is an index of bj_metric_at. Returns NaN if there is no value. */
double report_value(const report_data *data, int arm, int metric, int seed);
bj_summary report_summary(const report_data *data, int arm, int metric);
/* Computes a - b over the seeds that both arms have, with a 95 % paired-t interval. Returns 0 if
 * there are fewer than two such seeds. */
int report_compare(bj_comparison *out, const report_data *data, int a, int b, int metric);
/* Returns the reference arm: specialization, else full-set, else an arm with a single branch, else
 * -1. */
int report_reference(const report_data *data);
/* Returns 1 for a campaign of maze runs, which have a different page. */
int report_is_maze(const report_data *data);
int report_find_arm(const report_data *data, const char *name); /* or -1 */

/* ----------------------------------------------------------------------------------- the paper */

/* A number of the paper, with mean and SD over seeds. It is taken from the paper, or computed if
 * only the values of seeds are printed. */
typedef struct report_paper {
    double mean, sd; /* SD is NaN where it has none */
    int digits;      /* decimals */
    int dev;         /* 1: from the paper's development split; 0: from the official validation
                        split, or the map audit */
} report_paper;

/* Returns 0 if the paper has no number for this arm and metric. Includes the metrics of the map
 * audit. If both splits have a number, `dev` selects one. */
int report_paper_find(report_paper *out, const char *arm, const char *metric, int dev);

#endif
