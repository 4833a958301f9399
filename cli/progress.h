/* progress.h - how far a long command is, on stderr.
 *
 * On a terminal one line is redrawn; anywhere else a plain line appears about every five seconds.
 * Never more than 79 columns.
 */
#ifndef BJEPA_PROGRESS_H
#define BJEPA_PROGRESS_H

typedef struct cli_progress {
    const char *unit; /* what is counted, "steps" */
    long total;
    int terminal;
    double start, last; /* seconds of the monotonic clock */
} cli_progress;

cli_progress cli_progress_begin(const char *unit, long total);
/* Shows the state when it is time to; note is appended. */
void cli_progress_show(cli_progress *progress, long done, const char *note);
/* The line about the whole, or about where it stopped. */
void cli_progress_end(cli_progress *progress, long done, const char *note);

#endif
