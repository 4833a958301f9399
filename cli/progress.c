/* progress.c - see progress.h. */
#define _DEFAULT_SOURCE /* clock_gettime, isatty, winsize */
#include "progress.h"
#include "signals.h"

#include <math.h>
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

int cli_eta_add(cli_eta *eta, double now, double left) {
    enum { APART_S = 5 };
    const double end = now + left;
    if (!isfinite(left)) return 0;
    if (eta->stable) return 1;
    if (eta->at && now - eta->at < APART_S) return 0;
    eta->stable = eta->at && fabs(end - eta->end) <= .2 * left + 1;
    eta->at = now;
    eta->end = end;
    return eta->stable;
}

static int is_terminal(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

cli_progress cli_progress_begin_at(const char *unit, long total, long before) {
    const double now = cli_seconds();
    return (cli_progress){.unit = unit,
                          .total = total,
                          .terminal = is_terminal(),
                          .start = now,
                          .last = now,
                          .before = before};
}

cli_progress cli_progress_begin(const char *unit, long total) {
    return cli_progress_begin_at(unit, total, 0);
}

/* Returns the max length of a line. Writing to the last column of a terminal would make it
 * scroll. */
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

/* Writes "3:07 left  " or "2:03:07 left  ", or nothing as long as the estimate is not stable. */
static void time_text(char text[TIME], cli_progress *p, double left) {
    const long s = left >= 0 && left < 1e9 ? (long)(left + 0.5) : 0;
    text[0] = '\0';
    if (!cli_eta_add(&p->eta, p->last, left)) return;
    if (s < 3600) snprintf(text, TIME, "%ld:%02ld left  ", s / 60, s % 60);
    else snprintf(text, TIME, "%ld:%02ld:%02ld left  ", s / 3600, s / 60 % 60, s % 60);
}

/* Writes "187 s left, ", or nothing as long as the estimate is not stable. */
static void plain_time(char text[TIME], cli_progress *p, double left) {
    text[0] = '\0';
    if (cli_eta_add(&p->eta, p->last, left)) snprintf(text, TIME, "%.0f s left, ", left);
}

/* The bar fills the space that the text leaves. */
static void draw(cli_progress *p, long done, double rate, const char *unit, double left,
                 const char *note) {
    char bar[BAR_MOST + 1], text[LINE], line[LINE + BAR_MOST + 4], time[TIME];
    time_text(time, p, left);
    const int used = snprintf(text, sizeof text, "%3ld %%  %.0f %s/s  %s%s",
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
    char time[TIME];
    if (p->terminal) {
        draw(p, done, rate, p->unit, left, note);
        return;
    }
    plain_time(time, p, left);
    fprintf(stderr, "%ld of %ld %s, %.0f/s, %s%s\n", done, p->total, p->unit, rate, time, note);
}

void cli_progress_show_rate(cli_progress *p, long done, double rate, const char *unit, double left,
                            const char *note) {
    if (!due(p, done)) return;
    char time[TIME];
    if (p->terminal) {
        draw(p, done, rate, unit, left, note);
        return;
    }
    plain_time(time, p, left);
    fprintf(stderr, "%ld of %ld %s, %.0f %s/s, %s%s\n", done, p->total, p->unit, rate, unit, time,
            note);
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
