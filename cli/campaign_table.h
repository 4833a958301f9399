/* campaign_table.h - shows the progress of a campaign, with arms in rows and seeds in columns.
 *
 * A cell contains the development value of the chosen checkpoint if the run is done, a percentage
 * if it is running or stopped, a dot if it is waiting, or a word. On a terminal, the table is
 * redrawn in place. Otherwise, one line is printed about every ten seconds.
 */
#ifndef BJEPA_CAMPAIGN_TABLE_H
#define BJEPA_CAMPAIGN_TABLE_H

#include <stdio.h>

#include "cli.h"
#include "progress.h"

typedef struct campaign_totals {
    int states[BJ_STATES];
    double scenes_per_s; /* of all that run */
    double eta_s;        /* estimated time until the last run is done; NaN if unknown */
} campaign_totals;

/* `slots` is the number of simultaneous runs; 0: the number of runs that are running now. */
campaign_totals campaign_count(const bj_run_record *records, int runs, int slots);

/* Writes "24 runs: 3 done, 2 running, 19 waiting; 812 scenes/s; 1:23:45 left". Leaves out the
 * remaining time unless `eta` is NULL or has a stable estimate. */
enum { CAMPAIGN_LINE = 256 };
void campaign_line(char line[CAMPAIGN_LINE], const bj_run_record *records, int runs, int slots,
                   cli_eta *eta);

/* Prints the name, the summary line, the table and the failures. Returns the number of lines. Lines
 * are cut at `width` columns unless `width` is 0. */
int campaign_table_print(FILE *to, const bj_campaign *campaign, const bj_run_record *records,
                         int slots, int width, cli_eta *eta);

typedef struct campaign_display {
    int terminal, quiet;
    int lines;   /* of the table on the screen */
    double last; /* seconds of the monotonic clock */
    cli_eta eta;
} campaign_display;

campaign_display campaign_display_begin(int quiet);
/* Shows the state when it is time to. */
void campaign_display_show(campaign_display *display, const bj_campaign *campaign,
                           const bj_run_record *records, int slots);
/* Prints a line about an event to stderr. If there is a table, the line appears above it. */
void campaign_display_note(campaign_display *display, const char *fmt, ...) CLI_PRINTF(2, 3);
/* Removes the table from the screen. */
void campaign_display_end(campaign_display *display);

/* One object with everything. */
void campaign_json(FILE *to, const bj_campaign *campaign, const bj_run_record *records);

/* Seconds of a clock that never goes back. */

#endif
