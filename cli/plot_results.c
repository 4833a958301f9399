/* plot_results.c - draws the results of the map audit, and of the comparison with the law of
 * simulated scenes, by arm. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "plot_columns.h"
#include "plot_panels.h"

/* --------------------------------------------------------------------------------------- audit */

static const char *const audit_titles[BJ_AUDIT_METRICS] = {
    [BJ_AUDIT_POINT_MASS] = "Drivable point mass, % " CLI_ARROW_UP,
    [BJ_AUDIT_TRAJECTORY_MASS] = "Drivable trajectory mass, % " CLI_ARROW_UP,
    [BJ_AUDIT_UNIQUE_SUPPORT] = "Feasible unique support " CLI_ARROW_UP,
    [BJ_AUDIT_ENTROPY_SUPPORT] = "Feasible entropy support " CLI_ARROW_UP,
    [BJ_AUDIT_MASS_WEIGHTED_SUPPORT] = "Mass-weighted feasible support " CLI_ARROW_UP,
    [BJ_AUDIT_TRAJECTORY_DIVERSITY] = "Feasible trajectory diversity, m " CLI_ARROW_UP,
    [BJ_AUDIT_ENDPOINT_DIVERSITY] = "Feasible endpoint diversity, m " CLI_ARROW_UP};

int plot_audit_panels(const report_data *data) {
    return data->audit && data->audit->arms ? BJ_AUDIT_METRICS : 0;
}

void plot_audit_draw(plot *p, const report_data *data, int panel) {
    const report_audit *audit = data->audit;
    const int percent = panel == BJ_AUDIT_POINT_MASS || panel == BJ_AUDIT_TRAJECTORY_MASS;
    const double scale = percent ? 100 : 1;
    const bj_bootstrap *d = &audit->difference[panel];
    size_t total = 0, used = 0;
    for (int i = 0; i < audit->arms; i++) total += (size_t)audit->arm[i].seeds;
    plot_column *columns = cli_alloc((size_t)audit->arms + 1, sizeof *columns);
    double *values = cli_alloc(total + 1, sizeof *values);
    char note[PLOT_TIP_SIZE] = "", a[PLOT_NUMBER_SIZE], b[PLOT_NUMBER_SIZE], c[PLOT_NUMBER_SIZE];
    for (int i = 0; i < audit->arms && columns && values; i++) {
        const report_audit_arm *arm = &audit->arm[i];
        for (int s = 0; s < arm->seeds; s++)
            values[used + (size_t)s] = scale * arm->value[s * BJ_AUDIT_METRICS + panel];
        columns[i] = (plot_column){.name = plot_label(arm->name),
                                   .title = arm->title,
                                   .style = arm->style,
                                   .values = values + used,
                                   .seeds = arm->seed,
                                   .count = arm->seeds,
                                   .stride = 1,
                                   .mean = scale * arm->mean[panel],
                                   .spread = arm->seeds > 1 ? scale * arm->sd[panel] : NAN,
                                   .low = NAN,
                                   .high = NAN};
        used += (size_t)arm->seeds;
    }
    if (audit->a >= 0)
        snprintf(note, sizeof note, "%s minus %s: %s [%s, %s]",
                 plot_label(audit->arm[audit->a].name), plot_label(audit->arm[audit->b].name),
                 plot_number(a, scale * d->mean, 3), plot_number(b, scale * d->low, 3),
                 plot_number(c, scale * d->high, 3));
    const plot_columns look = {.title = audit_titles[panel],
                               .note = *note ? note : NULL,
                               .digits = 3,
                               .bars = !percent, /* on a linear axis, shares near 100 % would all
                                                    look the same */
                               .reference = NAN,
                               .limit = NAN};
    if (columns && values) plot_columns_draw(p, &look, columns, audit->arms);
    free(columns);
    free(values);
}

/* --------------------------------------------------------------------------------------- truth */

typedef enum truth_metric {
    DISCREPANCY,
    EXPECTED_ES,
    RECALL,
    RECALL_MASS,
    MANEUVER,
    CALIBRATION,
    TRUTH_METRICS
} truth_metric;

static const struct {
    const char *title;
    int digits, bars;
} truth_look[TRUTH_METRICS] = {
    [DISCREPANCY] = {"Energy discrepancy, m " CLI_ARROW_DOWN, 4, 1},
    [EXPECTED_ES] = {"Expected Energy Score, m " CLI_ARROW_DOWN, 4, 0},
    [RECALL] = {"True modes found, share " CLI_ARROW_UP, 4, 1},
    [RECALL_MASS] = {"True mass of the modes found " CLI_ARROW_UP, 4, 1},
    [MANEUVER] = {"Maneuvers, total variation " CLI_ARROW_DOWN, 4, 1},
    [CALIBRATION] = {"Maneuver calibration error " CLI_ARROW_DOWN, 4, 1},
};

int plot_truth_panels(const report_data *data) {
    return data->truth && data->truth->entries ? TRUTH_METRICS : 0;
}

static double truth_value(const bj_exam_report *r, truth_metric metric) {
    switch (metric) {
    case DISCREPANCY: return r->discrepancy.mean;
    case EXPECTED_ES: return r->expected_es.mean;
    case RECALL: return r->recall;
    case RECALL_MASS: return r->recall_mass;
    case MANEUVER: return r->maneuver_error;
    case CALIBRATION: return r->calibration_error;
    case TRUTH_METRICS: break;
    }
    return NAN;
}

/* Entries of one arm of the campaign share a column, with one mark each. All other entries have
 * their own column. */
static int truth_columns(plot_column *columns, double *values, int64_t *seeds,
                         const report_data *data, truth_metric metric) {
    const report_truth *truth = data->truth;
    int count = 0, used = 0;
    for (int i = 0; i < truth->entries; i++) {
        const report_truth_entry *entry = &truth->entry[i];
        const int first = used;
        int known = 0;
        for (int j = 0; j < i; j++) known |= entry->arm >= 0 && truth->entry[j].arm == entry->arm;
        if (known) continue;
        for (int j = i; j < truth->entries; j++) {
            if (j > i && (entry->arm < 0 || truth->entry[j].arm != entry->arm)) continue;
            values[used] = truth_value(&truth->entry[j].report, metric);
            seeds[used++] = truth->entry[j].seed;
        }
        const bj_summary s = bj_summarize(values + first, used - first);
        columns[count++] =
            (plot_column){.name = entry->arm >= 0 ? data->arm[entry->arm].label : entry->name,
                          .title = entry->name,
                          .style = entry->style,
                          .values = values + first,
                          .seeds = seeds + first,
                          .count = entry->arm >= 0 ? used - first : 0,
                          .stride = 1,
                          .mean = s.mean,
                          .spread = s.sd,
                          .low = NAN,
                          .high = NAN,
                          .apart = entry->report.atoms == 1 && !truth_look[metric].bars};
    }
    return count;
}

void plot_truth_draw(plot *p, const report_data *data, int panel) {
    const size_t entries = (size_t)data->truth->entries;
    plot_column *columns = cli_alloc(entries + 1, sizeof *columns);
    double *values = cli_alloc(entries + 1, sizeof *values);
    int64_t *seeds = cli_alloc(entries + 1, sizeof *seeds);
    if (columns && values && seeds) {
        const int count = truth_columns(columns, values, seeds, data, (truth_metric)panel);
        plot_columns look = {.title = truth_look[panel].title,
                             .digits = truth_look[panel].digits,
                             .bars = truth_look[panel].bars,
                             .reference = NAN,
                             .limit = NAN};
        if (panel == EXPECTED_ES) { /* nobody can be below it */
            look.reference = data->truth->entry[0].report.floor.mean;
            look.note = "dashed: the true distribution";
        }
        plot_columns_draw(p, &look, columns, count);
    }
    free(columns);
    free(values);
    free(seeds);
}
