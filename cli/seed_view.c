/* seed_view.c - see seed_view.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "seed_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json_out.h"
#include "output.h"

enum { NAME_SIZE = 64 };

static const char *arm_name(const seed_view *view, int i) { return bj_seeds_arm(view->seeds, i); }

static const char *metric_name(const seed_view *view, int i) {
    return bj_seeds_metric(view->seeds, i).name;
}

/* Prints that there is no arm or metric of that name, the nearest one, and all of them. Returns
 * -1. */
static int report_unknown(const seed_view *view, const char *what, const char *name, int count,
                          const char *(*name_at)(const seed_view *, int)) {
    bj_nearest nearest = BJ_NEAREST(name);
    for (int i = 0; i < count; i++) bj_nearest_offer(&nearest, name_at(view, i));
    fprintf(stderr, "bjepa %s: %s: no %s '%s'", view->verb, view->path, what, name);
    if (nearest.best) fprintf(stderr, "; did you mean '%s'?", nearest.best);
    fprintf(stderr, "\nhint: its %ss are", what);
    for (int i = 0; i < count; i++) fprintf(stderr, "%s %s", i ? "," : "", name_at(view, i));
    fputc('\n', stderr);
    return -1;
}

int seed_view_arm(const seed_view *view, const char *name) {
    const int arm = bj_seeds_find_arm(view->seeds, name);
    if (arm >= 0) return arm;
    return report_unknown(view, "arm", name, bj_seeds_arm_count(view->seeds), arm_name);
}

static int find_metric(const seed_view *view, const char *name) {
    const int metric = bj_seeds_find_metric(view->seeds, name);
    if (metric >= 0) return metric;
    return report_unknown(view, "metric", name, bj_seeds_metric_count(view->seeds), metric_name);
}

/* Resolves a list of names in the order given and without duplicates. An empty list means all
 * names. */
static int choose(int **out, int *count, const seed_view *view, const cli_list *list, int all,
                  int (*find)(const seed_view *, const char *)) {
    int *chosen = calloc((size_t)all, sizeof *chosen), n = 0;
    *out = chosen;
    if (!chosen) {
        fprintf(stderr, "bjepa %s: out of memory\n", view->verb);
        return CLI_SYSTEM;
    }
    for (int i = 0; i < list->count; i++)
        for (const char *item = list->items[i];; item++) {
            char name[NAME_SIZE];
            const size_t length = strcspn(item, ",");
            snprintf(name, sizeof name, "%.*s", (int)length, item);
            const int index = find(view, name);
            if (index < 0) return CLI_USAGE;
            int known = 0;
            for (int k = 0; k < n; k++) known |= chosen[k] == index;
            if (!known) chosen[n++] = index;
            item += length;
            if (!*item) break;
        }
    if (!list->count)
        for (; n < all; n++) chosen[n] = n;
    *count = n;
    return CLI_CONTINUE;
}

/* Lists the runs whose latents collapsed. They have no values, so the table must mention them. */
static bj_status find_collapsed(seed_view *view, bj_error *err) {
    bj_status status = BJ_OK;
    const int runs = bj_campaign_runs(view->campaign);
    view->collapsed = calloc((size_t)runs + 1, sizeof *view->collapsed);
    if (!view->collapsed) return cli_error(err, BJ_ENOMEM, "out of memory");
    for (int i = 0; status == BJ_OK && i < runs; i++) {
        bj_run_record record = {.state = BJ_STATE_WAITING};
        status = bj_campaign_look(&record, view->campaign, i, err);
        if (record.state == BJ_STATE_COLLAPSED) view->collapsed[view->collapsed_count++] = i;
    }
    return status;
}

static void print_collapsed(FILE *to, const seed_view *view, const char *before,
                            const char *after) {
    if (!view->collapsed_count) return;
    fprintf(to, "%scollapsed runs, which have no score:", before);
    for (int i = 0; i < view->collapsed_count; i++) {
        const bj_campaign_run run = bj_campaign_run_at(view->campaign, view->collapsed[i]);
        fprintf(to, "%s %s seed %llu", i ? "," : "", run.name,
                (unsigned long long)run.settings->seed);
    }
    fputs(after, to);
}

/* Finds the number of branches of every arm: from the campaign, or else from the built-in arm of that
 * name. */
static int find_atoms(seed_view *view) {
    const int arms = bj_seeds_arm_count(view->seeds);
    view->atoms = calloc((size_t)arms + 1, sizeof *view->atoms);
    if (!view->atoms) {
        fprintf(stderr, "bjepa %s: out of memory\n", view->verb);
        return CLI_SYSTEM;
    }
    for (int a = 0; a < arms; a++) {
        const char *name = bj_seeds_arm(view->seeds, a);
        for (int i = 0; view->campaign && i < bj_campaign_runs(view->campaign); i++) {
            const bj_campaign_run run = bj_campaign_run_at(view->campaign, i);
            if (!strcmp(run.name, name)) view->atoms[a] = run.settings->arch.atoms;
        }
        bj_settings settings;
        const bj_assignment arm = {"arm", name, "arm"};
        if (!view->atoms[a] && bj_arm_find(name) >= 0 &&
            bj_settings_resolve(&settings, NULL, &arm, 1, NULL) == BJ_OK)
            view->atoms[a] = settings.arch.atoms;
    }
    return CLI_CONTINUE;
}

/* Reads the values of a locked evaluation, which is verified first. */
static bj_status read_locked(seed_view *view, const char *path, bj_error *err) {
    bj_locked *locked;
    bj_locked_report report;
    bj_status status = bj_locked_open(&locked, &report, path, err);
    if (status != BJ_OK) return status;
    status = bj_locked_seeds(&view->seeds, locked, err);
    bj_locked_free(locked);
    view->verified = status == BJ_OK && !report.missing;
    if (report.missing) cli_warn_missing(path, &report);
    return status;
}

/* Reads the values of a campaign folder or of a file. */
static int read_values(seed_view *view, const char *path) {
    char file[CLI_PATH_SIZE];
    bj_error err = {0};
    bj_status status = BJ_OK;
    if (cli_path(file, path, "campaign.json", &err) != BJ_OK) return cli_fail(view->verb, &err);
    const int campaign = cli_exists(file);
    if (!campaign && view->dev)
        return cli_misuse(view->verb, "--dev: %s is not a campaign folder", path);
    if (campaign) status = bj_campaign_open(&view->campaign, path, &err);
    if (status == BJ_OK && campaign && view->dev) status = find_collapsed(view, &err);
    if (status == BJ_OK) {
        char before[CLI_CELL_SIZE];
        snprintf(before, sizeof before, "bjepa %s: ", view->verb);
        print_collapsed(stderr, view, before, "\n");
        status = !campaign ? bj_seeds_read(&view->seeds, path, &err)
                 : view->dev
                     ? bj_campaign_seeds(&view->seeds, path, BJ_SEEDS_DEVELOPMENT, &err)
                     : read_locked(view, path, &err);
    }
    if (status == BJ_OK) return CLI_CONTINUE;
    const int code = cli_fail(view->verb, &err);
    if (!campaign && cli_path(file, path, "manifest.json", &err) == BJ_OK && cli_exists(file))
        fprintf(stderr, "hint: %s is a single run; use 'bjepa report %s' to show it\n", path, path);
    if (campaign && !view->dev && status == BJ_ELOCKED)
        fprintf(stderr, "hint: run 'bjepa lock' and 'bjepa lock run' first; --dev shows the %s\n",
                SEED_VIEW_DEV);
    seed_view_close(view);
    return code;
}

/* Chooses the metrics: the named ones, all of them without names or for 'all', or only the main
 * metrics in text tables. */
static int choose_metrics(seed_view *view) {
    static const char *const names[][6] = {
        {"traj_es", "traj_obs", "exp_ade", "top1_ade", "brier", "dedup_support"},
        {"plan_all", "verified_route", "macro_precision", "held_recall", "cov_r", "separated"}};
    static const cli_list none;
    const int every = view->metric_names.count == 1 && !strcmp(view->metric_names.items[0], "all");
    const int code =
        choose(&view->metrics, &view->metric_count, view, every ? &none : &view->metric_names,
               bj_seeds_metric_count(view->seeds), find_metric);
    const int table = view->format != CLI_FORMAT_CSV && view->format != CLI_FORMAT_JSON;
    if (code != CLI_CONTINUE || view->metric_names.count || !view->main_metrics || !table)
        return code;
    int count = 0;
    for (size_t set = 0; !count && set < sizeof names / sizeof *names; set++)
        for (int i = 0; i < 6; i++) {
            const int metric = bj_seeds_find_metric(view->seeds, names[set][i]);
            if (metric >= 0) view->metrics[count++] = metric;
        }
    if (!count) return code; /* a table of other metrics */
    view->metric_count = count;
    view->compact = view->format == CLI_FORMAT_TEXT;
    return code;
}

int seed_view_open(seed_view *view, const char *path) {
    view->path = path;
    if (view->json) view->format = CLI_FORMAT_JSON;
    const int result = read_values(view, path);
    if (result != CLI_CONTINUE) return result;
    int code = find_atoms(view);
    if (code == CLI_CONTINUE) code = choose_metrics(view);
    if (code == CLI_CONTINUE)
        code = choose(&view->arms, &view->arm_count, view, &view->arm_names,
                      bj_seeds_arm_count(view->seeds), seed_view_arm);
    if (code != CLI_CONTINUE) seed_view_close(view);
    return code;
}

void seed_view_label(const seed_view *view) {
    if (!view->dev) return;
    switch ((cli_format)view->format) {
    case CLI_FORMAT_TEXT:
        puts(SEED_VIEW_DEV);
        print_collapsed(stdout, view, "", "\n");
        break;
    case CLI_FORMAT_LATEX:
        puts("% " SEED_VIEW_DEV);
        print_collapsed(stdout, view, "% ", "\n");
        break;
    case CLI_FORMAT_MARKDOWN:
        puts("*" SEED_VIEW_DEV "*\n");
        print_collapsed(stdout, view, "*", "*\n\n");
        break;
    case CLI_FORMAT_CSV:         /* a separate line would be read as a record */
    case CLI_FORMAT_JSON: break; /* has members */
    }
    fprintf(stderr, "bjepa %s: %s: %s\n", view->verb, view->path, SEED_VIEW_DEV);
}

void seed_view_json(const seed_view *view) {
    if (view->campaign && !view->dev)
        printf(", \"verified\": %s", view->verified ? "true" : "false");
    if (!view->dev) return;
    fputs(", \"split\": \"" SEED_VIEW_DEV "\", \"collapsed\": [", stdout);
    for (int i = 0; i < view->collapsed_count; i++) {
        const bj_campaign_run run = bj_campaign_run_at(view->campaign, view->collapsed[i]);
        fputs(i ? ", {\"arm\": " : "{\"arm\": ", stdout);
        cli_json_text(stdout, run.name);
        printf(", \"seed\": %llu}", (unsigned long long)run.settings->seed);
    }
    putchar(']');
}

void seed_view_close(seed_view *view) {
    bj_campaign_free(view->campaign);
    free(view->collapsed);
    view->campaign = NULL;
    view->collapsed = NULL;
    bj_seeds_free(view->seeds);
    free(view->metrics);
    free(view->arms);
    free(view->atoms);
    view->seeds = NULL;
    view->metrics = view->arms = view->atoms = NULL;
}

int seed_view_fail(const seed_view *view, const bj_error *err, int incomplete) {
    const int code = cli_fail(view->verb, err);
    if (incomplete) fputs("hint: --partial uses the seeds that exist\n", stderr);
    return code;
}

int seed_view_digits(const seed_view *view, const bj_metric_info *metric) {
    if (view->digits >= 0) return view->digits;
    return view->compact && metric->digits > 3 ? 3 : metric->digits;
}

void seed_view_title(char title[CLI_CELL_SIZE], const bj_metric_info *metric, int unit) {
    const char *arrow = metric->better < 0   ? " " CLI_ARROW_DOWN
                        : metric->better > 0 ? " " CLI_ARROW_UP
                                             : "";
    const int shown = unit && *metric->unit;
    snprintf(title, CLI_CELL_SIZE, "%s%s%s%s%s", metric->title, shown ? " (" : "",
             shown ? metric->unit : "", shown ? ")" : "", arrow);
}

const char *seed_view_better(int better) {
    return better < 0 ? "lower" : better > 0 ? "higher" : NULL;
}

void seed_view_mean(cli_grid *grid, const bj_summary *summary, int digits, int best,
                    int compact) {
    char mean[CLI_FIXED_SIZE], sd[CLI_FIXED_SIZE];
    cli_fixed(mean, summary->mean, digits);
    if (isnan(summary->sd)) cli_grid_number(grid, best, "%s", mean);
    else
        cli_grid_number(grid, best, compact ? "%s" CLI_PLUS_MINUS "%s" : "%s " CLI_PLUS_MINUS " %s",
                        mean, cli_fixed(sd, summary->sd, digits));
}
