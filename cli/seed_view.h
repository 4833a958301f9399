/* seed_view.h - declarations shared by `compare` and `table`: the file, and the requested arms and
 * metrics. */
#ifndef BJEPA_SEED_VIEW_H
#define BJEPA_SEED_VIEW_H

#include "cli.h"
#include "grid.h"

typedef struct seed_view {
    const char *verb, *path;
    int format, json, digits, partial; /* digits < 0: the metric's own */
    int dev;                           /* development scenes of a campaign, not its evaluation */
    cli_list metric_names, arm_names;  /* items may contain several names separated by commas */
    bj_seeds *seeds;
    int *metrics, metric_count; /* chosen ones; all when none was asked for */
    int *arms, arm_count;
    int *atoms;       /* number of branches of every arm in `seeds`; 0: unknown */
    int main_metrics; /* 1: without a selection, text tables show only the main metrics */
    int compact;      /* 1: the main metrics are shown, in at most 100 columns */
    bj_campaign *campaign;           /* NULL for a file */
    int verified; /* 1: every locked file of the evaluation was there and is unchanged */
    int *collapsed, collapsed_count; /* runs without a score; with --dev only */
} seed_view;

/* The rows of the option table that both verbs have in common. */
/* clang-format off */
#define SEED_VIEW_OPTIONS(view)                                                                    \
    {"metric", 'm', CLI_LIST, "NAME", &(view)->metric_names, 0, 0,                                 \
     "metrics to show, separated by commas, or 'all'; may be repeated"},                           \
    {"format", 'f', CLI_CHOICE, CLI_FORMAT_WORDS, &(view)->format, 0, 0, "output format"},          \
    CLI_OPTION_JSON(&(view)->json),                                                                \
    {"digits", 0, CLI_INT, "N", &(view)->digits, 0, 12,                                            \
     "number of decimals (default: depends on the metric)"},                                       \
    {"partial", 0, CLI_FLAG, NULL, &(view)->partial, 0, 0,                                         \
     "accept arms with missing seeds"},                                                   \
    {"dev", 0, CLI_FLAG, NULL, &(view)->dev, 0, 0,                                                 \
     "use the development scenes of a campaign instead of the locked evaluation"}
#define SEED_VIEW(name) {.verb = (name), .digits = -1}
/* clang-format on */

/* What --dev shows, in words. */
#define SEED_VIEW_DEV "development split, not the locked evaluation"

/* Reads the file or the values of a campaign, and resolves names. Returns CLI_CONTINUE, or an exit
 * code after a message. */
int seed_view_open(seed_view *view, const char *path);
void seed_view_close(seed_view *view);
/* Writes which values --dev shows, and which collapsed runs are missing, as comments of the format.
 * Writes nothing without --dev. */
void seed_view_label(const seed_view *view);
/* Writes the same information as members of a JSON object, each preceded by a comma. */
void seed_view_json(const seed_view *view);

/* Returns the index of the arm, or -1 after a message that suggests the nearest name. */
int seed_view_arm(const seed_view *view, const char *name);
/* Prints the error, and how to continue without the missing seeds. Returns the exit code. */
int seed_view_fail(const seed_view *view, const bj_error *err, int incomplete);

/* Decimals of a metric. */
int seed_view_digits(const seed_view *view, const bj_metric_info *metric);
/* Writes a title with an arrow in the better direction and, if `unit`, the unit. */
void seed_view_title(char title[CLI_CELL_SIZE], const bj_metric_info *metric, int unit);
/* "lower", "higher", or NULL. */
const char *seed_view_better(int better);
/* Appends "2.0766 +- 0.0057", without the spaces if `compact`, or the mean alone if there is no SD. */
void seed_view_mean(cli_grid *grid, const bj_summary *summary, int digits, int best, int compact);

#endif
