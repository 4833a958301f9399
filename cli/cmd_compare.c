/* cmd_compare.c - bjepa compare: compares two arms of a campaign, paired by seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "seed_view.h"

typedef struct compare_options {
    seed_view view;
    const char *a, *b;
    double level;
    const char *path;
} compare_options;

static int parse(compare_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"a", 'a', CLI_TEXT, "ARM", &o->a, 0, 0, "first arm"},
        {"b", 'b', CLI_TEXT, "ARM", &o->b, 0, 0, "second arm, which is subtracted from the first"},
        {"level", 0, CLI_REAL, "P", &o->level, 0, 1, "coverage of the intervals"},
        SEED_VIEW_OPTIONS(&o->view),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "compare",
        .summary = "compare two arms, paired by seed, and print a minus b with paired-t intervals",
        .operands = "FILE.csv|CAMPAIGN_DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa compare data/paper/av2_seeds.csv --a fullset --b specialization\n"
                    "bjepa compare runs/demo-world --a fullset --b point\n"
                    "bjepa compare seeds.csv -a fullset -b mdn -m traj_es,brier --format latex\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    if (!o->a || !o->b) return cli_misuse("compare", "--%s is missing", o->a ? "b" : "a");
    if (!strcmp(o->a, o->b)) return cli_misuse("compare", "--a and --b are both '%s'", o->a);
    o->path = argv[1];
    return CLI_CONTINUE;
}

/* ----------------------------------------------------------------------------------- one metric */

typedef struct result {
    bj_metric_info metric;
    bj_comparison c;
} result;

/* Returns the number of seeds in which a is better, or lower if the metric has no direction of
 * improvement. */
static int agreeing(const bj_comparison *c) { return c->better > 0 ? c->higher : c->lower; }

static void print_row(cli_grid *grid, const seed_view *view, const result *r) {
    char title[CLI_CELL_SIZE], first[CLI_FIXED_SIZE], second[CLI_FIXED_SIZE];
    const int digits = seed_view_digits(view, &r->metric);
    seed_view_title(title, &r->metric, 1);
    cli_grid_text(grid, title);
    seed_view_mean(grid, &r->c.a, digits, 0, 0);
    seed_view_mean(grid, &r->c.b, digits, 0, 0);
    cli_grid_number(grid, 0, "%s", cli_fixed(first, r->c.difference.mean, digits));
    if (isnan(r->c.low)) cli_grid_number(grid, 0, "-");
    else
        cli_grid_number(grid, 0, "[%s, %s]", cli_fixed(first, r->c.low, digits),
                        cli_fixed(second, r->c.high, digits));
    if (isnan(r->c.improvement)) cli_grid_number(grid, 0, "-");
    else cli_grid_number(grid, 0, "%s %%", cli_fixed(first, 100 * r->c.improvement, 2));
    const int used = snprintf(title, sizeof title, "%d/%d %s", agreeing(&r->c), r->c.a.n,
                              r->c.better ? "better" : "lower");
    if (r->c.equal) snprintf(title + used, sizeof title - (size_t)used, ", %d equal", r->c.equal);
    cli_grid_text(grid, title);
}

static void print_csv(const result *r) {
    const bj_comparison *c = &r->c;
    const double numbers[] = {c->a.mean,          c->a.sd,          c->b.mean, c->b.sd,
                              c->difference.mean, c->difference.sd, c->low,    c->high,
                              c->improvement};
    cli_csv_text(stdout, r->metric.name);
    printf(",%d", c->a.n);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        putchar(',');
        cli_csv_number(numbers[i]);
    }
    printf(",%d,%d,%d\n", c->lower, c->equal, c->higher);
}

static void print_json(const result *r) {
    const bj_comparison *c = &r->c;
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"mean_a", c->a.mean},
                   {"sd_a", c->a.sd},
                   {"mean_b", c->b.mean},
                   {"sd_b", c->b.sd},
                   {"difference", c->difference.mean},
                   {"difference_sd", c->difference.sd},
                   {"low", c->low},
                   {"high", c->high},
                   {"improvement", c->improvement}};
    fputs("    {\"metric\": ", stdout);
    cli_json_text(stdout, r->metric.name);
    fputs(", \"better\": ", stdout);
    cli_json_text(stdout, seed_view_better(c->better));
    printf(", \"n\": %d", c->a.n);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        printf(", \"%s\": ", numbers[i].key);
        cli_json_double(stdout, numbers[i].value);
    }
    printf(", \"lower\": %d, \"equal\": %d, \"higher\": %d}", c->lower, c->equal, c->higher);
}

/* ---------------------------------------------------------------------------------- all of them */

static int print_grid(const compare_options *o, const result *results, int count) {
    char interval[CLI_CELL_SIZE];
    cli_grid grid = {.columns = 7, .left = 1};
    if (o->view.format == CLI_FORMAT_TEXT)
        printf("%s minus %s, paired by seed, mean " CLI_PLUS_MINUS " sample SD\n\n", o->a, o->b);
    snprintf(interval, sizeof interval, "%g %% interval", 100 * o->level);
    const char *const heading[] = {"metric", o->a,          o->b,   "difference",
                                   interval, "improvement", "seeds"};
    for (int i = 0; i < grid.columns; i++) cli_grid_text(&grid, heading[i]);
    for (int i = 0; i < count; i++) print_row(&grid, &o->view, &results[i]);
    return cli_grid_print(&grid, "compare", (cli_format)o->view.format, 0);
}

static int print_all(const compare_options *o, const result *results, int count) {
    seed_view_label(&o->view);
    if (o->view.format == CLI_FORMAT_CSV) {
        puts("metric,n,mean_a,sd_a,mean_b,sd_b,difference,difference_sd,low,high,improvement,lower,"
             "equal,higher");
        for (int i = 0; i < count; i++) print_csv(&results[i]);
        return CLI_OK;
    }
    if (o->view.format != CLI_FORMAT_JSON) return print_grid(o, results, count);
    fputs("{\"schema\": 1, \"type\": \"compare\", \"file\": ", stdout);
    cli_json_text(stdout, o->path);
    seed_view_json(&o->view);
    fputs(", \"a\": ", stdout);
    cli_json_text(stdout, o->a);
    fputs(", \"b\": ", stdout);
    cli_json_text(stdout, o->b);
    fputs(", \"level\": ", stdout);
    cli_json_double(stdout, o->level);
    fputs(",\n  \"metrics\": [\n", stdout);
    for (int i = 0; i < count; i++) {
        print_json(&results[i]);
        puts(i < count - 1 ? "," : "");
    }
    puts("  ]}");
    return CLI_OK;
}

static int measured(const bj_seeds *seeds, int arm, int metric) {
    return bj_seeds_summary(seeds, arm, metric).n > 0;
}

static int compare(const compare_options *o, result *results) {
    const seed_view *view = &o->view;
    const int a = seed_view_arm(view, o->a);
    const int b = a < 0 ? -1 : seed_view_arm(view, o->b);
    int count = 0, left_out = 0;
    if (b < 0) return CLI_USAGE;
    for (int i = 0; i < view->metric_count; i++) {
        const int metric = view->metrics[i], arms[2] = {a, b};
        bj_error err;
        result *r = &results[count];
        r->metric = bj_seeds_metric(view->seeds, metric);
        const int both = measured(view->seeds, a, metric) && measured(view->seeds, b, metric);
        if (!both && !view->metric_names.count) { /* nobody asked for it by name */
            fprintf(stderr, left_out++ ? ", %s" : "bjepa compare: not available in both arms: %s",
                    r->metric.name);
            continue;
        }
        if (bj_seeds_compare(&r->c, view->seeds, a, b, metric, o->level, view->partial, &err)) {
            if (left_out) fputc('\n', stderr);
            return seed_view_fail(view, &err,
                                  both && bj_seeds_check(view->seeds, arms, 2, metric, NULL));
        }
        count++;
    }
    if (left_out) fputc('\n', stderr);
    if (count) return print_all(o, results, count);
    fprintf(stderr, "bjepa compare: %s: no metric is available for both '%s' and '%s'\n", o->path,
            o->a, o->b);
    return CLI_DATA;
}

int cmd_compare(int argc, char **argv) {
    compare_options o = {.view = SEED_VIEW("compare"), .level = 0.95};
    int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    code = seed_view_open(&o.view, o.path);
    if (code != CLI_CONTINUE) return code;
    result *results = calloc((size_t)o.view.metric_count, sizeof *results);
    if (results) code = compare(&o, results);
    else {
        fputs("bjepa compare: out of memory\n", stderr);
        code = CLI_SYSTEM;
    }
    free(results);
    seed_view_close(&o.view);
    return code;
}
