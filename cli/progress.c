/* progress.c - see progress.h. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 20, LINE = 80 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int is_terminal(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

cli_progress cli_progress_begin(const char *unit, long total) {
    const double now = seconds();
    return (cli_progress){unit, total, is_terminal(), now, now};
}

/* Overwrites what a longer line left behind. */
static void redraw(const char *line) {
    fprintf(stderr, "\r%-*.*s", LINE - 1, LINE - 1, line);
    fflush(stderr);
}

void cli_progress_show(cli_progress *p, long done, const char *note) {
    const double now = seconds(), spent = now - p->start;
    if (done < 1 || now - p->last < (p->terminal ? 0.1 : 5)) return;
    p->last = now;
    const double rate = (double)done / spent;
    const long left = (long)((double)(p->total - done) / rate + 0.5);
    if (!p->terminal) {
        fprintf(stderr, "%ld of %ld %s, %.0f/s, %ld s left, %s\n", done, p->total, p->unit, rate,
                left, note);
        return;
    }
    char bar[BAR + 1], line[256];
    const int full = (int)(BAR * done / p->total);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    snprintf(line, sizeof line, "[%s] %3ld %%  %.0f %s/s  %ld:%02ld left  %s", bar,
             100 * done / p->total, rate, p->unit, left / 60, left % 60, note);
    redraw(line);
}

void cli_progress_end(cli_progress *p, long done, const char *note) {
    const double spent = seconds() - p->start;
    if (p->terminal) {
        redraw("");
        fputc('\r', stderr);
    }
    fprintf(stderr, "%ld of %ld %s in %.1f s%s%s\n", done, p->total, p->unit, spent,
            *note ? ", " : "", note);
}
