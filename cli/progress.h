/* progress.h - shows the progress of a long command on stderr.
 *
 * On a terminal, one line is redrawn. Otherwise, a plain line is printed about every five seconds.
 * The line fits the terminal, or 80 columns if its width is unknown.
 */
#ifndef BJEPA_PROGRESS_H
#define BJEPA_PROGRESS_H

#include <stdint.h>

double cli_seconds(void); /* seconds of a monotonic clock */

/* Estimates of the remaining time. Early estimates are wrong, so they are shown only after two of them,
 * at least five seconds apart, agreed on the end to 20 % of the remaining time. */
typedef struct cli_eta {
    double at, end; /* when an estimate was made, and the end that it predicted; 0: none yet */
    int stable;
} cli_eta;

/* Adds an estimate of `left` seconds made at `now`. Returns 1 if it may be shown. */
int cli_eta_add(cli_eta *eta, double now, double left);

typedef struct cli_progress {
    const char *unit; /* what is counted, "steps" */
    long total;
    int terminal;
    double start, last; /* seconds of the monotonic clock */
    long before;        /* done by an earlier process */
    cli_eta eta;
} cli_progress;

cli_progress cli_progress_begin(const char *unit, long total);
/* Starts progress with `before` items already done, which do not count for the rate. */
cli_progress cli_progress_begin_at(const char *unit, long total, long before);
/* Makes room for a line of another kind. */
void cli_progress_clear(const cli_progress *progress);
/* Shows the state if it is time for an update. `note` is appended. */
void cli_progress_show(cli_progress *progress, long done, const char *note);
/* Shows the state with a given rate, in another unit, and the given number of seconds left. */
void cli_progress_show_rate(cli_progress *progress, long done, double rate, const char *unit,
                            double left, const char *note);
/* A progress callback for the library: shows `note` unless quiet, and returns whether a signal was
 * received. */
typedef struct cli_watch {
    cli_progress progress;
    const char *note;
    int quiet;
} cli_watch;
int cli_watch_show(void *watch, int64_t done, int64_t total);
/* Prints the final line about the whole command, or about the point at which it stopped. */
void cli_progress_end(cli_progress *progress, long done, const char *note);

#endif
