/* plot_arms.c - metrics of all arms side by side: the summary and the effective support.
 *
 * Summary   one mark for each seed, a bar at the mean; the dashed line is the mean of the reference
 *           arm, and the band of another arm is that mean plus the paired-t 95 % interval of the
 *           difference: a band that does not touch the line is a difference between the arms
 * Support   bars from zero with the sample SD over seeds
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "plot_columns.h"
#include "plot_panels.h"

typedef struct shown {
    const char *metric, *title;
} shown;

static const shown summary[] = {
    {"traj_es", "Trajectory Energy Score, m"},
    {"end_es", "Endpoint Energy Score, m"},
    {"exp_ade", "Expected ADE, m"},
    {"top1_ade", "Top-1 ADE, m"},
    {"brier", "Maneuver Brier score"},
    {"dedup_support", "Distinct endpoints (1 m)"},
};
static const shown support[] = {
    {"exp_entropy", "Effective branches by weight"},
    {"neff_collision", "Distinct latents (0.10)"},
    {"dedup_support", "Distinct endpoints (1 m)"},
};
enum { SUMMARY = sizeof summary / sizeof *summary, SUPPORT = sizeof support / sizeof *support };

static int measured(const report_data *data, int metric) {
    for (int a = 0; a < data->arms; a++)
        if (data->arm[a].forecasts && report_summary(data, a, metric).n) return 1;
    return 0;
}

/* Returns the metric of the panel among those that were measured. Sets *at to its entry unless `at`
 * is NULL. */
static int metric_of(const shown **at, const report_data *data, const shown *list, int count,
                     int panel) {
    for (int i = 0; i < count; i++) {
        const int metric = bj_metric_find(list[i].metric);
        if (metric < 0 || !measured(data, metric) || panel--) continue;
        *at = &list[i];
        return metric;
    }
    return -1;
}

static int count_measured(const report_data *data, const shown *list, int count) {
    int panels = 0;
    for (int i = 0; i < count; i++) {
        const int metric = bj_metric_find(list[i].metric);
        panels += metric >= 0 && measured(data, metric);
    }
    return panels;
}

static plot_column column_of(const report_data *data, int arm, int metric) {
    const report_arm *a = &data->arm[arm];
    const bj_summary s = report_summary(data, arm, metric);
    return (plot_column){
        .name = a->label,
        .title = a->title,
        .style = a->style,
        .values = data->value +
                  ((size_t)arm * (size_t)bj_metric_count() + (size_t)metric) * (size_t)data->seeds,
        .seeds = data->seed,
        .count = data->seeds,
        .stride = 1,
        .mean = s.n ? s.mean : NAN,
        .spread = NAN,
        .low = NAN,
        .high = NAN,
        .apart = a->atoms == 1,
    };
}

static void title_of(char title[CLI_CELL_SIZE], const shown *at, const bj_metric_info *info) {
    snprintf(title, CLI_CELL_SIZE, "%s%s", at->title,
             info->better < 0   ? " " CLI_ARROW_DOWN
             : info->better > 0 ? " " CLI_ARROW_UP
                                : "");
}

/* ------------------------------------------------------------------------------------- summary */

int plot_summary_panels(const report_data *data) { return count_measured(data, summary, SUMMARY); }

/* Returns the reference arm, which is specialization, or full-set if specialization was not
 * measured. */
static int reference_of(const report_data *data, int metric) {
    const int first = report_reference(data);
    if (first < 0 || report_summary(data, first, metric).n) return first;
    return data->fullset >= 0 && report_summary(data, data->fullset, metric).n ? data->fullset : -1;
}

static void add_band(plot_column *column, char tip[PLOT_TIP_SIZE], const report_data *data, int arm,
                     int reference, int metric) {
    const bj_metric_info info = bj_metric_at(metric);
    char a[PLOT_NUMBER_SIZE], b[PLOT_NUMBER_SIZE], c[PLOT_NUMBER_SIZE];
    bj_comparison d;
    if (reference < 0 || arm == reference || !report_compare(&d, data, arm, reference, metric))
        return;
    column->low = d.b.mean + d.low;
    column->high = d.b.mean + d.high;
    snprintf(tip, PLOT_TIP_SIZE, "%s minus %s: %s [%s, %s], lower in %d of %d seeds",
             data->arm[arm].title, data->arm[reference].title,
             plot_number(a, d.difference.mean, info.digits), plot_number(b, d.low, info.digits),
             plot_number(c, d.high, info.digits), d.lower, d.difference.n);
    column->band_tip = tip;
}

void plot_summary_draw(plot *p, const report_data *data, int panel) {
    const shown *at = NULL;
    const int metric = metric_of(&at, data, summary, SUMMARY, panel);
    plot_column *columns = cli_alloc((size_t)data->arms + 1, sizeof *columns);
    char(*tips)[PLOT_TIP_SIZE] = cli_alloc((size_t)data->arms + 1, sizeof *tips);
    const int reference = metric >= 0 ? reference_of(data, metric) : -1;
    int count = 0;
    if (metric >= 0 && columns && tips) {
        const bj_metric_info info = bj_metric_at(metric);
        char title[CLI_CELL_SIZE], note[CLI_CELL_SIZE];
        plot_columns look = {.title = title, .digits = info.digits, .reference = NAN, .limit = NAN};
        title_of(title, at, &info);
        for (int a = 0; a < data->arms; a++) {
            if (!data->arm[a].forecasts) continue;
            columns[count] = column_of(data, a, metric);
            add_band(&columns[count], tips[count], data, a, reference, metric);
            count++;
        }
        if (reference >= 0) {
            snprintf(note, sizeof note, "dashed: %s; bands: 95 %% interval of the difference",
                     data->arm[reference].label);
            look.note = note;
            look.reference = report_summary(data, reference, metric).mean;
        }
        plot_columns_draw(p, &look, columns, count);
    }
    free(columns);
    free(tips);
}

/* ------------------------------------------------------------------------------------- support */

int plot_support_panels(const report_data *data) { return count_measured(data, support, SUPPORT); }

void plot_support_draw(plot *p, const report_data *data, int panel) {
    const shown *at = NULL;
    const int metric = metric_of(&at, data, support, SUPPORT, panel);
    plot_column *columns = cli_alloc((size_t)data->arms + 1, sizeof *columns);
    int count = 0, atoms = 0;
    if (metric >= 0 && columns) {
        const bj_metric_info info = bj_metric_at(metric);
        char title[CLI_CELL_SIZE], limit[32];
        plot_columns look = {.title = title,
                             .digits = info.digits,
                             .bars = 1,
                             .reference = NAN,
                             .limit = NAN,
                             .limit_name = limit};
        title_of(title, at, &info);
        for (int a = 0; a < data->arms; a++) {
            if (!data->arm[a].forecasts) continue;
            columns[count] = column_of(data, a, metric);
            columns[count].spread = report_summary(data, a, metric).sd;
            columns[count].apart = 0;
            if (data->arm[a].atoms > atoms) atoms = data->arm[a].atoms;
            count++;
        }
        if (atoms > 1) {
            look.limit = atoms;
            snprintf(limit, sizeof limit, "K = %d", atoms);
        }
        plot_columns_draw(p, &look, columns, count);
    }
    free(columns);
}
