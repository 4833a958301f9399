/* audit_print.c - prints an audit as text, JSON and CSV. */
#include "audit.h"

#include <math.h>
#include <stdlib.h>

#include "grid.h"
#include "json_out.h"

/* Masses are printed in percent, as in the paper. Files contain fractions. */
static double scale(int metric) {
    return metric == BJ_AUDIT_POINT_MASS || metric == BJ_AUDIT_TRAJECTORY_MASS ? 100 : 1;
}

/* Writes the title of a metric and its unit. */
static void title_of(char title[CLI_CELL_SIZE], int metric) {
    const bj_metric_info info = bj_audit_metric_at(metric);
    const char *unit = scale(metric) > 1 ? "%" : info.unit;
    snprintf(title, CLI_CELL_SIZE, "%s%s%s", info.title, *unit ? ", " : "", unit);
}

static const char *const headings[BJ_AUDIT_METRICS] = {
    [BJ_AUDIT_POINT_MASS] = "points %",
    [BJ_AUDIT_TRAJECTORY_MASS] = "traj. %",
    [BJ_AUDIT_UNIQUE_SUPPORT] = "unique",
    [BJ_AUDIT_ENTROPY_SUPPORT] = "entropy",
    [BJ_AUDIT_MASS_WEIGHTED_SUPPORT] = "weighted",
    [BJ_AUDIT_TRAJECTORY_DIVERSITY] = "traj. div. m",
    [BJ_AUDIT_ENDPOINT_DIVERSITY] = "end. div. m"};

static const char *fixed(char buffer[CLI_FIXED_SIZE], double value, int metric) {
    return cli_fixed(buffer, scale(metric) * value, 3);
}

static void print_legend(void) {
    puts("\n"
         "points: weight (%) of the points inside drivable areas\n"
         "traj.: weight (%) of the trajectories with at least 95 % of their points inside\n"
         "unique, entropy, weighted: number of distinct feasible branches;\n"
         "scenes without feasible branches count as 0\n"
         "div.: weighted distance between feasible branches (m)");
}

/* ----------------------------------------------------------------------------------------- text */

static int print_arms(const bj_audit *audit) {
    cli_grid grid = {.columns = 2 + BJ_AUDIT_METRICS, .left = 1};
    cli_grid_text(&grid, "arm");
    cli_grid_text(&grid, "seeds");
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) cli_grid_text(&grid, headings[m]);
    for (int i = 0; i < bj_audit_arms(audit); i++) {
        cli_grid_text(&grid, bj_audit_arm(audit, i));
        cli_grid_number(&grid, 0, "%d", bj_audit_seeds(audit, i));
        for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
            const bj_audit_summary s = bj_audit_summarize(audit, i, m);
            char mean[CLI_FIXED_SIZE], sd[CLI_FIXED_SIZE];
            if (s.n > 1)
                cli_grid_number(&grid, 0, "%s " CLI_PLUS_MINUS " %s", fixed(mean, s.mean, m),
                                fixed(sd, s.sd, m));
            else cli_grid_number(&grid, 0, "%s", fixed(mean, s.mean, m));
        }
    }
    return cli_grid_print(&grid, "audit", CLI_FORMAT_TEXT, 0);
}

static int print_comparison(const bj_audit *audit, const audit_comparison *c,
                            const audit_options *o) {
    cli_grid grid = {.columns = 5, .left = 1};
    char text[CLI_FIXED_SIZE], low[CLI_FIXED_SIZE], high[CLI_FIXED_SIZE];
    printf("\n"
           "%s minus %s: per-scene values, averaged over seeds; "
           "%d bootstrap resamples of the scenes, seed %llu\n",
           bj_audit_arm(audit, c->a), bj_audit_arm(audit, c->b), o->resamples,
           (unsigned long long)o->seed);
    cli_grid_text(&grid, "");
    cli_grid_text(&grid, "a");
    cli_grid_text(&grid, "b");
    cli_grid_text(&grid, "a - b");
    cli_grid_text(&grid, "95 % interval");
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        const bj_bootstrap *d = &c->metric[m];
        char title[CLI_CELL_SIZE];
        title_of(title, m);
        cli_grid_text(&grid, title);
        cli_grid_number(&grid, 0, "%s", fixed(text, bj_audit_summarize(audit, c->a, m).mean, m));
        cli_grid_number(&grid, 0, "%s", fixed(text, bj_audit_summarize(audit, c->b, m).mean, m));
        cli_grid_number(&grid, 0, "%s", fixed(text, d->mean, m));
        cli_grid_number(&grid, 0, "[%s, %s]", fixed(low, d->low, m), fixed(high, d->high, m));
    }
    return cli_grid_print(&grid, "audit", CLI_FORMAT_TEXT, 0);
}

int audit_print_text(const bj_audit *audit, const audit_comparison *comparison,
                     const audit_options *o) {
    const bj_audit_counts c = bj_audit_count(audit);
    char a[CLI_COUNT_SIZE], b[CLI_COUNT_SIZE], d[CLI_COUNT_SIZE];
    printf("%s: %s scenes, %s of them with a vehicle or bus as the focal road user\n"
           "focal positions inside drivable areas: %s of %s (tolerance %g m)\n"
           "\n",
           o->data, cli_count(a, (size_t)c.total), cli_count(b, (size_t)c.scenes),
           cli_count(d, (size_t)c.origins), b, BJ_AUDIT_TOLERANCE);
    int code = print_arms(audit);
    print_legend();
    puts(CLI_PLUS_MINUS ": population SD over seeds");
    if (code == CLI_OK && comparison) code = print_comparison(audit, comparison, o);
    return code;
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_count(const char *name, int64_t value) {
    printf(",\"%s\":%lld", name, (long long)value);
}

static void json_text(const char *name, const char *text) {
    printf(",\"%s\":", name);
    cli_json_text(stdout, text);
}

static void json_metric(int metric, double value) {
    printf("%s\"%s\":", metric ? "," : "", bj_audit_metric_at(metric).name);
    cli_json_double(stdout, value);
}

static void json_report(const bj_audit_report *r) {
    printf("{\"seed\":%lld,\"atoms\":%d,\"empty\":%lld,", (long long)r->seed, r->atoms,
           (long long)r->empty);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) json_metric(m, r->mean[m]);
    putchar('}');
}

static void json_arm(const bj_audit *audit, int arm) {
    printf("%s{\"arm\":", arm ? "," : "");
    cli_json_text(stdout, bj_audit_arm(audit, arm));
    printf(",\"seeds\":[");
    for (int i = 0; i < bj_audit_seeds(audit, arm); i++) {
        const bj_audit_report r = bj_audit_report_at(audit, arm, i);
        if (i) putchar(',');
        json_report(&r);
    }
    printf("],\"mean\":{");
    for (int m = 0; m < BJ_AUDIT_METRICS; m++)
        json_metric(m, bj_audit_summarize(audit, arm, m).mean);
    printf("},\"population_sd\":{");
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) json_metric(m, bj_audit_summarize(audit, arm, m).sd);
    printf("}}");
}

static void json_comparison(const bj_audit *audit, const audit_comparison *c,
                            const audit_options *o) {
    printf(",\"comparison\":{\"a\":");
    cli_json_text(stdout, bj_audit_arm(audit, c->a));
    json_text("b", bj_audit_arm(audit, c->b));
    printf(",\"resamples\":%d,\"seed\":%llu,\"level\":%g,\"metrics\":{", o->resamples,
           (unsigned long long)o->seed, c->level);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        const bj_bootstrap *d = &c->metric[m];
        printf("%s\"%s\":{\"difference\":", m ? "," : "", bj_audit_metric_at(m).name);
        cli_json_double(stdout, d->mean);
        printf(",\"low\":");
        cli_json_double(stdout, d->low);
        printf(",\"high\":");
        cli_json_double(stdout, d->high);
        printf(",\"se\":");
        cli_json_double(stdout, d->se);
        putchar('}');
    }
    printf("}}");
}

void audit_print_json(const bj_audit *audit, const audit_comparison *comparison,
                      const audit_options *o) {
    const bj_audit_counts c = bj_audit_count(audit);
    printf("{\"schema\":1,\"type\":\"audit\"");
    json_text("data", o->data);
    json_text("scenes_digest", bj_audit_digest(audit));
    json_count("total", c.total);
    json_count("scenes", c.scenes);
    json_count("origins_inside", c.origins);
    printf(",\"tolerance\":%g,\"arms\":[", BJ_AUDIT_TOLERANCE);
    for (int i = 0; i < bj_audit_arms(audit); i++) json_arm(audit, i);
    putchar(']');
    if (comparison) json_comparison(audit, comparison, o);
    puts("}");
}

/* ------------------------------------------------------------------------------------------ CSV */

void audit_print_csv(const bj_audit *audit) {
    puts("arm,seed,metric,value");
    for (int i = 0; i < bj_audit_arms(audit); i++)
        for (int s = 0; s < bj_audit_seeds(audit, i); s++) {
            const bj_audit_report r = bj_audit_report_at(audit, i, s);
            for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
                cli_csv_text(stdout, bj_audit_arm(audit, i));
                printf(",%lld,%s,", (long long)r.seed, bj_audit_metric_at(m).name);
                cli_csv_number(r.mean[m]);
                putchar('\n');
            }
        }
}

static void row_heading(FILE *to, const char *first) {
    fputs(first, to);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) fprintf(to, ",%s", bj_audit_metric_at(m).name);
    fputc('\n', to);
}

bj_status audit_print_rows(FILE *to, const bj_audit *audit, bj_error *err) {
    const int64_t n = bj_audit_count(audit).scenes;
    double *values = malloc(BJ_AUDIT_METRICS * (size_t)n * sizeof *values);
    if (!values) return cli_error(err, BJ_ENOMEM, "out of memory for the per-scene values");
    row_heading(to, "arm,scenario_id");
    for (int i = 0; i < bj_audit_arms(audit); i++) {
        for (int m = 0; m < BJ_AUDIT_METRICS; m++) bj_audit_values(values + m * n, audit, i, m);
        for (int64_t s = 0; s < n; s++) {
            cli_csv_text(to, bj_audit_arm(audit, i));
            putc(',', to);
            cli_csv_text(to, bj_audit_scenario_id(audit, s));
            for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
                fputc(',', to);
                cli_json_double(to, values[m * n + s]);
            }
            fputc('\n', to);
        }
    }
    free(values);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------- submissions */

void audit_print_submission(const bj_submission_audit *audit, const audit_options *o) {
    const bj_submission_counts c = bj_submission_audit_count(audit);
    printf("%s against %s: %lld scenarios, %lld audited", o->submission, o->av2, (long long)c.total,
           (long long)c.outcomes[BJ_AUDITED]);
    for (int i = BJ_AUDITED + 1; i < BJ_AUDIT_OUTCOMES; i++)
        if (c.outcomes[i])
            printf(", %lld %s", (long long)c.outcomes[i],
                   bj_audit_outcome_name((bj_audit_outcome)i));
    printf("\nfocal positions inside drivable areas: %lld of %lld (tolerance %g m)\n"
           "scenes without a feasible candidate: %lld\n",
           (long long)c.origins, (long long)c.outcomes[BJ_AUDITED], BJ_AUDIT_TOLERANCE,
           (long long)c.empty);
    if (!c.outcomes[BJ_AUDITED]) return;
    putchar('\n');
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        char text[CLI_FIXED_SIZE], title[CLI_CELL_SIZE];
        title_of(title, m);
        printf("%-48s%10s\n", title, fixed(text, bj_submission_audit_mean(audit, m), m));
    }
}

void audit_print_submission_json(const bj_submission_audit *audit, const audit_options *o) {
    const bj_submission_counts c = bj_submission_audit_count(audit);
    printf("{\"schema\":1,\"type\":\"submission_audit\"");
    json_text("file", o->submission);
    json_text("av2", o->av2);
    json_count("total", c.total);
    json_count("audited", c.outcomes[BJ_AUDITED]);
    json_count("other_type", c.outcomes[BJ_AUDIT_OTHER_TYPE]);
    json_count("missing", c.outcomes[BJ_AUDIT_MISSING]);
    json_count("malformed", c.outcomes[BJ_AUDIT_MALFORMED]);
    json_count("unreadable", c.outcomes[BJ_AUDIT_UNREADABLE]);
    json_count("unknown", c.unknown);
    json_count("origins_inside", c.origins);
    json_count("empty", c.empty);
    printf(",\"tolerance\":%g,\"mean\":{", BJ_AUDIT_TOLERANCE);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) json_metric(m, bj_submission_audit_mean(audit, m));
    puts("}}");
}

void audit_print_submission_csv(const bj_submission_audit *audit) {
    puts("metric,value");
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        printf("%s,", bj_audit_metric_at(m).name);
        cli_csv_number(bj_submission_audit_mean(audit, m));
        putchar('\n');
    }
}

void audit_print_submission_rows(FILE *to, const bj_submission_audit *audit) {
    row_heading(to, "scenario_id,track_id,type,outcome,origin_inside,modes,contained");
    for (int64_t i = 0; i < bj_submission_audit_count(audit).total; i++) {
        const bj_submission_scene s = bj_submission_audit_at(audit, i);
        cli_csv_text(to, s.scenario_id);
        putc(',', to);
        cli_csv_text(to, s.focal_id);
        putc(',', to);
        cli_csv_text(to, s.focal_type);
        fprintf(to, ",%s,", bj_audit_outcome_name(s.outcome));
        if (s.audit) fprintf(to, "%d,%d,%d", s.origin_inside, s.audit->K, s.audit->contained);
        else fputs(",,", to);
        for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
            fputc(',', to);
            if (s.audit) cli_json_double(to, s.audit->value[m]);
        }
        fputc('\n', to);
    }
}
