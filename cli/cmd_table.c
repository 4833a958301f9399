/* cmd_table.c - bjepa table: prints the mean and SD over the seeds of every arm, or the value of
 * every seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "seed_table.h"

typedef struct table_options {
    seed_view view;
    int per_seed;
    const char *path;
} table_options;

static int parse(table_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"arms", 'a', CLI_LIST, "NAME", &o->view.arm_names, 0, 0,
         "arms to show, separated by commas; may be repeated"},
        {"per-seed", 0, CLI_FLAG, NULL, &o->per_seed, 0, 0,
         "print every seed, not only mean and SD"},
        SEED_VIEW_OPTIONS(&o->view),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "table",
        .summary =
            "print the mean and sample SD of each arm over its seeds, or the value for each seed",
        .operands = "FILE.csv|CAMPAIGN_DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa table data/paper/av2_seeds.csv\n"
                    "bjepa table runs/demo-world\n"
                    "bjepa table runs/demo-world -m all\n"
                    "bjepa table runs/demo-world --dev --partial\n"
                    "bjepa table seeds.csv --arms fullset,mdn -m traj_es -m brier --per-seed\n"
                    "bjepa table seeds.csv --format latex >table.tex\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    o->path = argv[1];
    return result;
}

/* --------------------------------------------------------------------------------- text and TeX */

static int print_seeds(const seed_view *view) {
    cli_grid grid = {.columns = view->metric_count + 2, .left = 2};
    char text[CLI_FIXED_SIZE];
    seed_table_heading(&grid, view, "arm", "seed");
    for (int i = 0; i < view->arm_count; i++) {
        const int arm = view->arms[i];
        const int seeds = bj_seeds_count(view->seeds);
        for (int row = 0; row < seeds + 2; row++) { /* the seeds, then mean and SD */
            int there = row >= seeds;
            for (int m = 0; m < view->metric_count && !there; m++)
                there = !isnan(bj_seeds_value(view->seeds, arm, view->metrics[m], row));
            if (!there) continue;
            snprintf(text, sizeof text, "%lld",
                     row < seeds ? (long long)bj_seeds_seed(view->seeds, row) : 0LL);
            cli_grid_text(&grid, bj_seeds_arm(view->seeds, arm));
            cli_grid_text(&grid, row < seeds ? text : row == seeds ? "mean" : "SD");
            for (int m = 0; m < view->metric_count; m++) {
                const int metric = view->metrics[m];
                const bj_metric_info info = bj_seeds_metric(view->seeds, metric);
                const bj_summary s = bj_seeds_summary(view->seeds, arm, metric);
                const double value = row < seeds    ? bj_seeds_value(view->seeds, arm, metric, row)
                                     : row == seeds ? s.mean
                                                    : s.sd;
                cli_grid_number(&grid, 0, "%s",
                                cli_fixed(text, value, seed_view_digits(view, &info)));
            }
        }
    }
    if (view->format == CLI_FORMAT_TEXT) printf("%s\n\n", view->path);
    return cli_grid_print(&grid, "table", (cli_format)view->format, 1);
}

/* --------------------------------------------------------------------------------- CSV and JSON */

/* Prints one value of one seed. CSV output can be read by bj_seeds_read. */
static void write_value(const seed_view *view, int arm, int metric, int seed, int json, int first) {
    const char *name = bj_seeds_metric(view->seeds, metric).name;
    const char *arm_name = bj_seeds_arm(view->seeds, arm);
    const long long number = (long long)bj_seeds_seed(view->seeds, seed);
    const double value = bj_seeds_value(view->seeds, arm, metric, seed);
    if (json) {
        fputs(first ? "    {\"arm\": " : ",\n    {\"arm\": ", stdout);
        cli_json_text(stdout, arm_name);
        printf(", \"seed\": %lld, \"metric\": ", number);
        cli_json_text(stdout, name);
        fputs(", \"value\": ", stdout);
        cli_json_double(stdout, value);
        putchar('}');
        return;
    }
    cli_csv_text(stdout, arm_name);
    printf(",%lld,", number);
    cli_csv_text(stdout, name);
    putchar(',');
    cli_csv_number(value);
    putchar('\n');
}

static void write_summary(const seed_view *view, int arm, int metric, const bj_summary *s, int json,
                          int first) {
    static const char *const keys[] = {"mean", "sd", "lowest", "highest"};
    const double numbers[] = {s->mean, s->sd, s->lowest, s->highest};
    const char *name = bj_seeds_metric(view->seeds, metric).name;
    if (json) {
        fputs(first ? "    {\"arm\": " : ",\n    {\"arm\": ", stdout);
        cli_json_text(stdout, bj_seeds_arm(view->seeds, arm));
        fputs(", \"metric\": ", stdout);
        cli_json_text(stdout, name);
        printf(", \"n\": %d", s->n);
    } else {
        cli_csv_text(stdout, bj_seeds_arm(view->seeds, arm));
        putchar(',');
        cli_csv_text(stdout, name);
        printf(",%d", s->n);
    }
    for (int i = 0; i < 4; i++) {
        if (json) printf(", \"%s\": ", keys[i]);
        else putchar(',');
        if (json) cli_json_double(stdout, numbers[i]);
        else cli_csv_number(numbers[i]);
    }
    putchar(json ? '}' : '\n');
}

static void write_rows(const table_options *o, int json) {
    const seed_view *view = &o->view;
    int first = 1;
    for (int i = 0; i < view->arm_count; i++)
        for (int m = 0; m < view->metric_count; m++) {
            const int arm = view->arms[i], metric = view->metrics[m];
            const bj_summary s = bj_seeds_summary(view->seeds, arm, metric);
            if (!s.n) continue;
            if (!o->per_seed) write_summary(view, arm, metric, &s, json, first);
            for (int k = 0; o->per_seed && k < bj_seeds_count(view->seeds); k++) {
                if (isnan(bj_seeds_value(view->seeds, arm, metric, k))) continue;
                write_value(view, arm, metric, k, json, first);
                first = 0;
            }
            first = 0;
        }
}

static int write_json(const table_options *o) {
    const seed_view *view = &o->view;
    printf("{\"schema\": 1, \"type\": \"%s\", \"file\": ", o->per_seed ? "seeds" : "table");
    cli_json_text(stdout, o->path);
    seed_view_json(view);
    fputs(",\n  \"metrics\": [\n", stdout);
    for (int m = 0; m < view->metric_count; m++) {
        const bj_metric_info info = bj_seeds_metric(view->seeds, view->metrics[m]);
        fputs("    {\"name\": ", stdout);
        cli_json_text(stdout, info.name);
        fputs(", \"title\": ", stdout);
        cli_json_text(stdout, info.title);
        fputs(", \"better\": ", stdout);
        cli_json_text(stdout, seed_view_better(info.better));
        printf(", \"digits\": %d, \"unit\": ", info.digits);
        cli_json_text(stdout, info.unit);
        printf("}%s\n", m < view->metric_count - 1 ? "," : "");
    }
    fputs("  ],\n  \"rows\": [\n", stdout);
    write_rows(o, 1);
    puts("\n  ]}");
    return CLI_OK;
}

static int print_all(const table_options *o) {
    const seed_view *view = &o->view;
    for (int m = 0; m < view->metric_count && !view->partial; m++) {
        bj_error err;
        if (bj_seeds_check(view->seeds, view->arms, view->arm_count, view->metrics[m], &err))
            return seed_view_fail(view, &err, 1);
    }
    seed_view_label(view);
    if (view->format == CLI_FORMAT_JSON) return write_json(o);
    if (view->format != CLI_FORMAT_CSV) {
        if (view->format == CLI_FORMAT_TEXT && !o->per_seed)
            printf("%s: mean " CLI_PLUS_MINUS " sample SD over n seeds\n\n", view->path);
        return o->per_seed ? print_seeds(view) : seed_table_print(view);
    }
    puts(o->per_seed ? "arm,seed,metric,value" : "arm,metric,n,mean,sd,lowest,highest");
    write_rows(o, 0);
    return CLI_OK;
}

int cmd_table(int argc, char **argv) {
    table_options o = {.view = SEED_VIEW("table")};
    o.view.main_metrics = 1;
    int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    code = seed_view_open(&o.view, o.path);
    if (code != CLI_CONTINUE) return code;
    code = print_all(&o);
    seed_view_close(&o.view);
    return code;
}
