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

int seed_view_arm(const seed_view *view, const char *name) {
    const int arm = bj_seeds_find_arm(view->seeds, name);
    if (arm >= 0) return arm;
    bj_nearest nearest = BJ_NEAREST(name);
    for (int i = 0; i < bj_seeds_arm_count(view->seeds); i++)
        bj_nearest_offer(&nearest, bj_seeds_arm(view->seeds, i));
    fprintf(stderr, "bjepa %s: %s: no arm '%s'", view->verb, view->path, name);
    if (nearest.best) fprintf(stderr, "; did you mean '%s'?", nearest.best);
    fputs("\nhint: its arms are", stderr);
    for (int i = 0; i < bj_seeds_arm_count(view->seeds); i++)
        fprintf(stderr, "%s %s", i ? "," : "", bj_seeds_arm(view->seeds, i));
    fputc('\n', stderr);
    return -1;
}

static int find_metric(const seed_view *view, const char *name) {
    const int metric = bj_seeds_find_metric(view->seeds, name);
    if (metric >= 0) return metric;
    bj_nearest nearest = BJ_NEAREST(name);
    for (int i = 0; i < bj_seeds_metric_count(view->seeds); i++)
        bj_nearest_offer(&nearest, bj_seeds_metric(view->seeds, i).name);
    fprintf(stderr, "bjepa %s: %s: no metric '%s'", view->verb, view->path, name);
    if (nearest.best) fprintf(stderr, "; did you mean '%s'?", nearest.best);
    fputs("\nhint: its metrics are", stderr);
    for (int i = 0; i < bj_seeds_metric_count(view->seeds); i++)
        fprintf(stderr, "%s %s", i ? "," : "", bj_seeds_metric(view->seeds, i).name);
    fputc('\n', stderr);
    return -1;
}

/* Resolves a list of names, each once, in the order given; an empty list means all of them. */
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

/* Runs whose latents collapsed have no values: whoever sees the table must know. */
static bj_status find_collapsed(seed_view *view, const char *path, bj_error *err) {
    bj_status status = bj_campaign_open(&view->campaign, path, err);
    const int runs = status == BJ_OK ? bj_campaign_runs(view->campaign) : 0;
    view->collapsed = calloc((size_t)runs + 1, sizeof *view->collapsed);
    if (status == BJ_OK && !view->collapsed) return cli_error(err, BJ_ENOMEM, "no memory left");
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
    fprintf(to, "%scollapsed, without a score:", before);
    for (int i = 0; i < view->collapsed_count; i++) {
        const bj_campaign_run run = bj_campaign_run_at(view->campaign, view->collapsed[i]);
        fprintf(to, "%s %s seed %llu", i ? "," : "", run.name,
                (unsigned long long)run.settings->seed);
    }
    fputs(after, to);
}

/* A campaign folder has its own values; anything else is a file. */
static int read_values(seed_view *view, const char *path) {
    char file[CLI_PATH_SIZE];
    bj_error err = {0};
    bj_status status = BJ_OK;
    if (cli_path(file, path, "campaign.json", &err) != BJ_OK) return cli_fail(view->verb, &err);
    const int campaign = cli_exists(file);
    if (!campaign && view->dev)
        return cli_misuse(view->verb, "--dev: %s is not the folder of a campaign", path);
    if (campaign && view->dev) status = find_collapsed(view, path, &err);
    if (status == BJ_OK) {
        char before[CLI_CELL_SIZE];
        snprintf(before, sizeof before, "bjepa %s: ", view->verb);
        print_collapsed(stderr, view, before, "\n");
        status = campaign
                     ? bj_campaign_seeds(&view->seeds, path,
                                         view->dev ? BJ_SEEDS_DEVELOPMENT : BJ_SEEDS_LOCKED, &err)
                     : bj_seeds_read(&view->seeds, path, &err);
    }
    if (status == BJ_OK) return CLI_CONTINUE;
    const int code = cli_fail(view->verb, &err);
    if (campaign && !view->dev && status == BJ_ELOCKED)
        fprintf(stderr, "hint: 'bjepa lock' and 'bjepa evaluate' come first; --dev shows the %s\n",
                SEED_VIEW_DEV);
    seed_view_close(view);
    return code;
}

int seed_view_open(seed_view *view, const char *path) {
    view->path = path;
    if (view->json) view->format = CLI_FORMAT_JSON;
    const int result = read_values(view, path);
    if (result != CLI_CONTINUE) return result;
    int code = choose(&view->metrics, &view->metric_count, view, &view->metric_names,
                      bj_seeds_metric_count(view->seeds), find_metric);
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
    case CLI_FORMAT_CSV:         /* a line of its own would be a record */
    case CLI_FORMAT_JSON: break; /* has members */
    }
    fprintf(stderr, "bjepa %s: %s: %s\n", view->verb, view->path, SEED_VIEW_DEV);
}

void seed_view_json(const seed_view *view) {
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
    view->seeds = NULL;
    view->metrics = view->arms = NULL;
}

int seed_view_fail(const seed_view *view, const bj_error *err, int incomplete) {
    const int code = cli_fail(view->verb, err);
    if (incomplete) fputs("hint: --partial goes on with the seeds that are there\n", stderr);
    return code;
}

int seed_view_digits(const seed_view *view, const bj_metric_info *metric) {
    return view->digits < 0 ? metric->digits : view->digits;
}

void seed_view_title(char title[CLI_CELL_SIZE], const bj_metric_info *metric) {
    const char *arrow = metric->better < 0   ? " " CLI_ARROW_DOWN
                        : metric->better > 0 ? " " CLI_ARROW_UP
                                             : "";
    snprintf(title, CLI_CELL_SIZE, "%s%s", metric->title, arrow);
}

const char *seed_view_better(int better) {
    return better < 0 ? "lower" : better > 0 ? "higher" : NULL;
}

void seed_view_mean(cli_grid *grid, const bj_summary *summary, int digits, int best) {
    char mean[CLI_FIXED_SIZE], sd[CLI_FIXED_SIZE];
    cli_fixed(mean, summary->mean, digits);
    if (isnan(summary->sd)) cli_grid_number(grid, best, "%s", mean);
    else
        cli_grid_number(grid, best, "%s " CLI_PLUS_MINUS " %s", mean,
                        cli_fixed(sd, summary->sd, digits));
}
