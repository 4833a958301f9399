/* campaign_table.c - see campaign_table.h. Test: tests/cli/campaign.sh */
#define _DEFAULT_SOURCE /* ioctl, isatty */
#include "campaign_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json_out.h"
#include "progress.h"

enum { CELL = 9, NAME_COLUMN = 16, PLAIN_SECONDS = 10 };

/* --------------------------------------------------------------------------------------- totals */

/* Estimates the duration of a whole run from the running runs, or else from the finished ones. */
static double usual_seconds(const bj_run_record *records, int runs) {
    double sum[2] = {0, 0};
    int count[2] = {0, 0};
    for (int i = 0; i < runs; i++) {
        const bj_run_record *r = &records[i];
        if (r->state == BJ_STATE_RUNNING && r->eta_s > 0 && r->progress < 1) {
            sum[0] += r->eta_s / (1 - r->progress);
            count[0]++;
        } else if (r->state == BJ_STATE_DONE && r->attempts == 1 && r->updated > r->started) {
            sum[1] += r->updated - r->started;
            count[1]++;
        }
    }
    return count[0] ? sum[0] / count[0] : count[1] ? sum[1] / count[1] : NAN;
}

campaign_totals campaign_count(const bj_run_record *records, int runs, int slots) {
    campaign_totals t = {.eta_s = NAN};
    const double usual = usual_seconds(records, runs);
    double left = 0, longest = 0;
    for (int i = 0; i < runs; i++) {
        const bj_run_record *r = &records[i];
        double mine = 0;
        t.states[r->state]++;
        if (r->state == BJ_STATE_RUNNING) {
            if (r->scenes_per_s > 0) t.scenes_per_s += r->scenes_per_s;
            mine = r->eta_s >= 0 ? r->eta_s : usual;
        } else if (r->state == BJ_STATE_WAITING || r->state == BJ_STATE_STOPPED) {
            mine = usual * (1 - r->progress);
        }
        left += mine;
        if (mine > longest) longest = mine;
    }
    if (!slots) slots = t.states[BJ_STATE_RUNNING];
    if (t.states[BJ_STATE_RUNNING] && slots)
        t.eta_s = isnan(left) ? NAN : left / slots > longest ? left / slots : longest;
    return t;
}

static void duration(char text[32], double seconds) {
    const long s = (long)(seconds + .5);
    if (s >= 86400) snprintf(text, 32, "%ldd %ld:%02ld", s / 86400, s / 3600 % 24, s / 60 % 60);
    else if (s >= 3600) snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
}

void campaign_line(char line[CAMPAIGN_LINE], const bj_run_record *records, int runs, int slots,
                   cli_eta *eta) {
    static const struct {
        bj_run_state state;
        const char *word;
    } words[] = {{BJ_STATE_DONE, "done"},          {BJ_STATE_RUNNING, "running"},
                 {BJ_STATE_WAITING, "waiting"},    {BJ_STATE_STOPPED, "stopped"},
                 {BJ_STATE_FAILED, "failed"},      {BJ_STATE_NO_PASS, "without a pass"},
                 {BJ_STATE_COLLAPSED, "collapsed"}};
    const campaign_totals t = campaign_count(records, runs, slots);
    int at = snprintf(line, CAMPAIGN_LINE, "%d run%s", runs, runs == 1 ? "" : "s");
    const char *before = ": ";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!t.states[words[i].state]) continue;
        at += snprintf(line + at, CAMPAIGN_LINE - (size_t)at, "%s%d %s", before,
                       t.states[words[i].state], words[i].word);
        before = ", ";
    }
    if (t.scenes_per_s > 0)
        at += snprintf(line + at, CAMPAIGN_LINE - (size_t)at, "; %.0f scenes/s", t.scenes_per_s);
    if (isfinite(t.eta_s) && (!eta || cli_eta_add(eta, cli_seconds(), t.eta_s))) {
        char left[32];
        duration(left, t.eta_s);
        snprintf(line + at, CAMPAIGN_LINE - (size_t)at, "; %s left", left);
    }
}

/* ---------------------------------------------------------------------------------------- table */

typedef struct writer {
    FILE *to;
    int width, lines;
    char line[4096];
    size_t at;
} writer;

static void put(writer *w, const char *fmt, ...) CLI_PRINTF(2, 3);
static void put(writer *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(w->line + w->at, sizeof w->line - w->at, fmt, args);
    va_end(args);
    w->at += n > 0 ? (size_t)n : 0;
    if (w->at >= sizeof w->line) w->at = sizeof w->line - 1;
}

static void end_line(writer *w) {
    int size = (int)w->at;
    if (w->width && size > w->width - 1) size = w->width - 1;
    fprintf(w->to, "%.*s%s\n", size, w->line, w->width ? "\x1b[K" : "");
    w->at = 0;
    w->lines++;
}

static void cell(char text[16], const bj_run_record *r) {
    const double percent = 100 * r->progress;
    switch (r->state) {
    case BJ_STATE_WAITING: snprintf(text, 16, "."); break;
    case BJ_STATE_RUNNING: snprintf(text, 16, "%.0f%%", floor(percent)); break;
    case BJ_STATE_STOPPED: snprintf(text, 16, "(%.0f%%)", floor(percent)); break;
    case BJ_STATE_DONE:
        if (isfinite(r->best)) snprintf(text, 16, "%.3f", r->best);
        else snprintf(text, 16, "done");
        break;
    case BJ_STATE_NO_PASS: snprintf(text, 16, "no pass"); break;
    case BJ_STATE_COLLAPSED: snprintf(text, 16, "collapsed"); break;
    default: snprintf(text, 16, "FAILED"); break;
    }
}

/* Runs are sorted by seed, then by dataset, then by arm, so the rows of the table are the runs of
 * one seed. */
static int row_count(const bj_campaign *c) {
    const uint64_t seed = bj_campaign_run_at(c, 0).settings->seed;
    int n = 0;
    while (n < bj_campaign_runs(c) && bj_campaign_run_at(c, n).settings->seed == seed) n++;
    return n;
}

/* Returns 1 if the run ended without a score, which is explained below the table. */
static int has_failed(const bj_run_record *r) {
    return r->state == BJ_STATE_FAILED || r->state == BJ_STATE_NO_PASS ||
           r->state == BJ_STATE_COLLAPSED;
}

static void print_failures(writer *w, const bj_campaign *c, const bj_run_record *records) {
    for (int i = 0; i < bj_campaign_runs(c); i++) {
        if (!has_failed(&records[i])) continue;
        const bj_settings *s = bj_campaign_run_at(c, i).settings;
        put(w, "%s, seed %llu: %s", bj_campaign_run_at(c, i).name, (unsigned long long)s->seed,
            *records[i].message ? records[i].message : bj_run_state_name(records[i].state));
        end_line(w);
    }
}

int campaign_table_print(FILE *to, const bj_campaign *c, const bj_run_record *records, int slots,
                         int width, cli_eta *eta) {
    writer w = {.to = to, .width = width};
    char line[CAMPAIGN_LINE], text[24];
    const int runs = bj_campaign_runs(c), rows = row_count(c), seeds = runs / rows;
    campaign_line(line, records, runs, slots, eta);
    put(&w, "%s, %s", bj_campaign_name(c), line);
    end_line(&w);
    int name_width = NAME_COLUMN;
    for (int a = 0; a < rows; a++) {
        const int length = (int)strlen(bj_campaign_run_at(c, a).name);
        if (length > name_width) name_width = length;
    }
    put(&w, "%-*s", name_width, "arm");
    for (int s = 0; s < seeds; s++) {
        snprintf(text, sizeof text, "seed %llu",
                 (unsigned long long)bj_campaign_run_at(c, s * rows).settings->seed);
        put(&w, " %*s", CELL, text);
    }
    end_line(&w);
    for (int a = 0; a < rows; a++) {
        put(&w, "%-*s", name_width, bj_campaign_run_at(c, a).name);
        for (int s = 0; s < seeds; s++) {
            cell(text, &records[s * rows + a]);
            put(&w, " %*s", CELL, text);
        }
        end_line(&w);
    }
    print_failures(&w, c, records);
    return w.lines;
}

/* -------------------------------------------------------------------------------------- display */

campaign_display campaign_display_begin(int quiet) {
    const char *kind = getenv("TERM");
    const int terminal = isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
    return (campaign_display){.terminal = terminal, .quiet = quiet, .last = cli_seconds()};
}

void campaign_display_end(campaign_display *d) {
    if (d->lines) fprintf(stderr, "\x1b[%dA\x1b[J", d->lines);
    d->lines = 0;
    fflush(stderr);
}

static void draw(campaign_display *d, const bj_campaign *c, const bj_run_record *records,
                 int slots) {
    struct winsize size = {0};
    char line[CAMPAIGN_LINE];
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
        size.ws_col = 80, size.ws_row = 24;
    const int before = d->lines;
    if (before) fprintf(stderr, "\x1b[%dA", before);
    int failures = 0;
    for (int i = 0; i < bj_campaign_runs(c); i++) failures += has_failed(&records[i]);
    if (row_count(c) + 3 + failures > size.ws_row) { /* no room: one line */
        campaign_line(line, records, bj_campaign_runs(c), slots, &d->eta);
        fprintf(stderr, "%.*s\x1b[K\n", size.ws_col - 1, line);
        d->lines = 1;
    } else {
        d->lines = campaign_table_print(stderr, c, records, slots, size.ws_col, &d->eta);
    }
    if (d->lines < before) fputs("\x1b[J", stderr);
    fflush(stderr);
}

void campaign_display_show(campaign_display *d, const bj_campaign *c, const bj_run_record *records,
                           int slots) {
    char line[CAMPAIGN_LINE];
    const double now = cli_seconds();
    if (d->quiet || now - d->last < (d->terminal ? .5 : PLAIN_SECONDS)) return;
    d->last = now;
    if (d->terminal) {
        draw(d, c, records, slots);
        return;
    }
    campaign_line(line, records, bj_campaign_runs(c), slots, &d->eta);
    fprintf(stderr, "%s\n", line);
}

void campaign_display_note(campaign_display *d, const char *fmt, ...) {
    va_list args;
    if (d->quiet) return;
    campaign_display_end(d);
    if (d->terminal) fputs("\r\x1b[K", stderr); /* the terminal may have printed ^C */
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_run(FILE *to, const bj_campaign *c, int i, const bj_run_record *r) {
    const bj_campaign_run run = bj_campaign_run_at(c, i);
    fprintf(to, "{\"arm\":\"%s\",\"seed\":%llu,\"state\":\"%s\",\"dir\":", run.settings->arm,
            (unsigned long long)run.settings->seed, bj_run_state_name(r->state));
    cli_json_text(to, run.dir);
    if (bj_campaign_data_name(c, run.set)) {
        fputs(",\"data\":", to);
        cli_json_text(to, bj_campaign_data_name(c, run.set));
    }
    if (run.needs >= 0) fprintf(to, ",\"needs\":%d", run.needs);
    else fputs(",\"needs\":null", to);
    fputs(",\"host\":", to);
    cli_json_text(to, *r->host ? r->host : NULL);
    fprintf(to, ",\"pid\":%lld,\"attempts\":%d,\"epoch\":%d,\"epochs\":%d,\"best_epoch\":%d",
            (long long)r->pid, r->attempts, r->epoch, r->epochs, r->best_epoch);
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"started", r->started > 0 ? r->started : NAN},
                   {"updated", r->updated > 0 ? r->updated : NAN},
                   {"progress", r->progress},
                   {"scenes_per_s", r->scenes_per_s},
                   {"eta_s", r->eta_s},
                   {"dev", r->dev},
                   {"best", r->best}};
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        fprintf(to, ",\"%s\":", numbers[n].key);
        cli_json_double(to, numbers[n].value);
    }
    fputs(",\"message\":", to);
    cli_json_text(to, *r->message ? r->message : NULL);
    fputs(",\"name\":", to);
    cli_json_text(to, run.name);
    fputc('}', to);
}

void campaign_json(FILE *to, const bj_campaign *c, const bj_run_record *records) {
    const int runs = bj_campaign_runs(c);
    const campaign_totals t = campaign_count(records, runs, 0);
    fputs("{\"schema\":\"branchjepa.campaign-status/1\",\"name\":", to);
    cli_json_text(to, bj_campaign_name(c));
    fputs(",\"dir\":", to);
    cli_json_text(to, bj_campaign_dir(c));
    const int sets = bj_campaign_data_count(c);
    fputs(",\"data\":", to);
    cli_json_text(to, sets > 1 ? NULL : bj_campaign_data(c));
    fputs(",\"data_digest\":", to);
    cli_json_text(to, sets > 1 ? NULL : bj_campaign_data_digest(c));
    for (int i = 0; sets > 1 && i < sets; i++) {
        fputs(i ? "," : ",\"datasets\":[", to);
        cli_json_text(to, bj_campaign_data_name(c, i));
        if (i == sets - 1) fputc(']', to);
    }
    fprintf(to, ",\"count\":%d,\"states\":{", runs);
    for (int s = 0; s < BJ_STATES; s++)
        fprintf(to, "%s\"%s\":%d", s ? "," : "", bj_run_state_name((bj_run_state)s), t.states[s]);
    fputs("},\"scenes_per_s\":", to);
    cli_json_double(to, t.scenes_per_s);
    fputs(",\"eta_s\":", to);
    cli_json_double(to, t.eta_s);
    fputs(",\"runs\":[", to);
    for (int i = 0; i < runs; i++) {
        if (i) fputc(',', to);
        json_run(to, c, i, &records[i]);
    }
    fputs("]}\n", to);
}
