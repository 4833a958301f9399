/* progress.c - see progress.h. */
#define _DEFAULT_SOURCE /* clock_gettime, isatty, winsize */
#include "progress.h"
#include "signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR_MOST = 20, BAR_LEAST = 4, COLUMNS = 80, LINE = 256, TIME = 32 };

double cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int is_terminal(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

cli_progress cli_progress_begin_at(const char *unit, long total, long before) {
    const double now = cli_seconds();
    return (cli_progress){unit, total, is_terminal(), now, now, before};
}

cli_progress cli_progress_begin(const char *unit, long total) {
    return cli_progress_begin_at(unit, total, 0);
}

/* Columns a line may have: the last one of a terminal would make it scroll. */
static int width(void) {
    struct winsize size;
    const int known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    const int columns = known ? size.ws_col : COLUMNS;
    return (columns < LINE ? columns : LINE) - 1;
}

/* Overwrites what a longer line left behind. */
static void redraw(const char *line) {
    const int columns = width();
    fprintf(stderr, "\r%-*.*s", columns, columns, line);
    fflush(stderr);
}

static int due(cli_progress *p, long done) {
    const double now = cli_seconds();
    if (done <= p->before || now - p->last < (p->terminal ? 0.1 : 5)) return 0;
    p->last = now;
    return 1;
}

/* 3:07, 2:03:07 */
static void time_text(char text[TIME], double left) {
    const long s = left >= 0 && left < 1e9 ? (long)(left + 0.5) : 0;
    if (s < 3600) snprintf(text, TIME, "%ld:%02ld", s / 60, s % 60);
    else snprintf(text, TIME, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

/* The bar takes the room that the text leaves. */
static void draw(const cli_progress *p, long done, double rate, const char *unit, double left,
                 const char *note) {
    char bar[BAR_MOST + 1], text[LINE], line[LINE + BAR_MOST + 4], time[TIME];
    time_text(time, left);
    const int used = snprintf(text, sizeof text, "%3ld %%  %.0f %s/s  %s left  %s",
                              100 * done / p->total, rate, unit, time, note);
    const int room = width() - used - 3;
    const int size = room < BAR_LEAST ? BAR_LEAST : room > BAR_MOST ? BAR_MOST : room;
    memset(bar, '.', (size_t)size);
    memset(bar, '#', (size_t)(size * done / p->total));
    bar[size] = '\0';
    snprintf(line, sizeof line, "[%s] %s", bar, text);
    redraw(line);
}

void cli_progress_show(cli_progress *p, long done, const char *note) {
    if (!due(p, done)) return;
    const double rate = (double)(done - p->before) / (p->last - p->start);
    const double left = (double)(p->total - done) / rate;
    if (p->terminal) draw(p, done, rate, p->unit, left, note);
    else
        fprintf(stderr, "%ld of %ld %s, %.0f/s, %ld s left, %s\n", done, p->total, p->unit, rate,
                (long)(left + 0.5), note);
}

void cli_progress_show_rate(cli_progress *p, long done, double rate, const char *unit, double left,
                            const char *note) {
    if (!due(p, done)) return;
    if (p->terminal) draw(p, done, rate, unit, left, note);
    else
        fprintf(stderr, "%ld of %ld %s, %.0f %s/s, %.0f s left, %s\n", done, p->total, p->unit,
                rate, unit, left, note);
}

void cli_progress_clear(const cli_progress *p) {
    if (!p->terminal) return;
    redraw("");
    fputc('\r', stderr);
}

int cli_watch_show(void *watch, int64_t done, int64_t total) {
    cli_watch *w = watch;
    w->progress.total = (long)total;
    if (!w->quiet) cli_progress_show(&w->progress, (long)done, w->note);
    return cli_stop != 0;
}

void cli_progress_end(cli_progress *p, long done, const char *note) {
    const double spent = cli_seconds() - p->start;
    cli_progress_clear(p);
    fprintf(stderr, "%ld of %ld %s in %.1f s%s%s\n", done, p->total, p->unit, spent,
            *note ? ", " : "", note);
}
