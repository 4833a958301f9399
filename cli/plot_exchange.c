/* plot_exchange.c - shows by arm which inputs the chosen checkpoints use: the increase of the
 * trajectory Energy Score when a part of the observation is exchanged between development scenes.
 * Curves by epoch are in plot_curves.c. Test: tests/cli/figures.sh
 */
#include <math.h>
#include <stdlib.h>

#include "grid.h"
#include "plot_columns.h"
#include "plot_panels.h"

static const struct {
    const char *title;
    double (*loss)(const bj_epoch *epoch);
} parts[] = {{"Exchanged map, increase in %", plot_exchange_map},
             {"Exchanged neighbors, increase in %", plot_exchange_neighbors},
             {"Exchanged focal track, increase in %", plot_exchange_focal}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Returns the loss of a run's chosen checkpoint, or NaN. */
static double loss_of(const report_run *run, int part) {
    if (!run->run || run->best < 0) return NAN;
    const bj_epoch epoch = bj_run_epoch(run->run, run->best);
    return parts[part].loss(&epoch);
}

/* Fills values and seeds (data->runs) of an arm's runs and returns the count. */
static int values_of(double *values, int64_t *seeds, const report_data *data, int arm, int part) {
    int count = 0;
    for (int r = 0; r < data->runs; r++) {
        const double loss = data->run[r].arm == arm ? loss_of(&data->run[r], part) : NAN;
        if (isnan(loss)) continue;
        values[count] = loss;
        seeds[count++] = data->seed[data->run[r].seed];
    }
    return count;
}

/* Returns the part that the panel shows, or -1: parts that were not measured have no panel. */
static int part_of(const report_data *data, int panel) {
    for (int part = 0; part < PARTS && !report_is_maze(data); part++) {
        int known = 0;
        for (int r = 0; r < data->runs && !known; r++) known = !isnan(loss_of(&data->run[r], part));
        if (known && !panel--) return part;
    }
    return -1;
}

int plot_exchange_panels(const report_data *data) {
    int panels = 0;
    while (part_of(data, panels) >= 0) panels++;
    return panels;
}

void plot_exchange_draw(plot *p, const report_data *data, int panel) {
    const int part = part_of(data, panel);
    const size_t runs = (size_t)data->runs;
    plot_column *columns = cli_alloc((size_t)data->arms + 1, sizeof *columns);
    double *values = cli_alloc(runs + 1, sizeof *values);
    int64_t *seeds = cli_alloc(runs + 1, sizeof *seeds);
    int count = 0, used = 0;
    for (int a = 0; a < data->arms && columns && values && seeds; a++) {
        const report_arm *arm = &data->arm[a];
        if (!arm->forecasts) continue;
        const int n = values_of(values + used, seeds + used, data, a, part);
        const bj_summary s = bj_summarize(values + used, n);
        columns[count++] = (plot_column){.name = arm->label,
                                         .title = arm->title,
                                         .style = arm->style,
                                         .values = values + used,
                                         .seeds = seeds + used,
                                         .count = n,
                                         .stride = 1,
                                         .mean = s.mean,
                                         .spread = s.sd,
                                         .low = NAN,
                                         .high = NAN};
        used += n;
    }
    const plot_columns look = {
        .title = parts[part].title, .digits = 1, .bars = 1, .reference = NAN, .limit = NAN};
    if (count) plot_columns_draw(p, &look, columns, count);
    free(columns);
    free(values);
    free(seeds);
}
