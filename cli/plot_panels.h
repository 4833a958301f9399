/* plot_panels.h - the functions behind the table in plot_list.c, which count and draw panels. */
#ifndef BJEPA_PLOT_PANELS_H
#define BJEPA_PLOT_PANELS_H

#include "plot.h"
#include "report_data.h"

int plot_summary_panels(const report_data *data); /* plot_arms.c */
void plot_summary_draw(plot *p, const report_data *data, int panel);
int plot_support_panels(const report_data *data);
void plot_support_draw(plot *p, const report_data *data, int panel);

int plot_learning_panels(const report_data *data); /* plot_curves.c */
void plot_learning_draw(plot *p, const report_data *data, int panel);
int plot_maze_panels(const report_data *data);
void plot_maze_draw(plot *p, const report_data *data, int panel);
int plot_looks_panels(const report_data *data);
void plot_looks_draw(plot *p, const report_data *data, int panel);
int plot_losses_panels(const report_data *data);
void plot_losses_draw(plot *p, const report_data *data, int panel);
/* Return how much an exchange increases the trajectory Energy Score, in percent; NaN: not measured. */
double plot_exchange_map(const bj_epoch *epoch);
double plot_exchange_neighbors(const bj_epoch *epoch);
double plot_exchange_focal(const bj_epoch *epoch);

int plot_exchange_panels(const report_data *data); /* plot_exchange.c */
void plot_exchange_draw(plot *p, const report_data *data, int panel);

int plot_calibration_panels(const report_data *data); /* plot_calibration.c */
void plot_calibration_draw(plot *p, const report_data *data, int panel);
int plot_usage_panels(const report_data *data);
void plot_usage_draw(plot *p, const report_data *data, int panel);

int plot_audit_panels(const report_data *data); /* plot_results.c */
void plot_audit_draw(plot *p, const report_data *data, int panel);
int plot_truth_panels(const report_data *data);
void plot_truth_draw(plot *p, const report_data *data, int panel);

#endif
