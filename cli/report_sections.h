/* report_sections.h - writes the sections of a report with texts, tables and plots, as HTML without
 * scripts.
 *
 * Names and texts from files are escaped. The output does not depend on the time or on paths, so
 * the same campaign always gives the same bytes.
 * Test: tests/cli/report.sh
 */
#ifndef BJEPA_REPORT_SECTIONS_H
#define BJEPA_REPORT_SECTIONS_H

#include "report_data.h"
#include "report_forecast.h"

void report_navigation(FILE *to, const report_data *data, int pretrained);
/* The title, and what these models do. */
void report_head(FILE *to, const report_data *data);
/* Describes the arms and the results. `title` is a separate heading, or NULL. */
void report_about(FILE *to, const report_data *data, const char *title);
/* What is said above the scene browser. */
void report_about_scenes(FILE *to, const report_forecasts *forecasts);
/* Writes the main metrics with intervals next to the paper's values, and a collapsed section with
 * all metrics and their meanings. */
void report_results(FILE *to, const report_data *data);
/* Every plot that has something to draw. */
void report_figures(FILE *to, const report_data *data);
/* Returns 1 if the models of all arms are known and their sizes differ by at most 1 %. */
int report_same_size(const report_data *data);
/* Parameter counts, then hashes, versions and settings (report_provenance.c). */
void report_parameters(FILE *to, const report_data *data);
BJ_CHECK bj_status report_provenance(FILE *to, const report_data *data, bj_error *err);

#endif
