/* plot_list.h - every plot of a campaign, for the page and for the files of `bjepa figures`.
 *
 * A plot is a row of panels that are drawn one by one. On the page each panel is an <svg> of its
 * own, so that the page can wrap them and text stays readable on a phone; a figure for a paper is
 * one sheet with all of them, lettered (a), (b), ...
 *
 * Colors stand in the SVG as attributes, which every renderer understands, and again as classes:
 * cli/assets/plot.css gives those to a page that switches between light and dark.
 * Tests: tests/cli/test_plot.c, tests/cli/figures.sh
 */
#ifndef BJEPA_PLOT_LIST_H
#define BJEPA_PLOT_LIST_H

#include <stdio.h>

#include "report_data.h"

struct plot;

/* Where the numbers of a plot come from. */
typedef enum report_source {
    REPORT_FROM_EVALUATION, /* report_numbers */
    REPORT_FROM_TRAINING,
    REPORT_FROM_AUDIT,
    REPORT_FROM_TRUTH
} report_source;

typedef struct report_plot {
    const char *name;    /* of the file: "summary" */
    const char *title;   /* as a heading */
    const char *caption; /* explanation of the plot in plain text */
    report_source source;
    int columns;                            /* panels side by side in a sheet */
    int width, height;                      /* of a panel */
    int (*panels)(const report_data *data); /* 0: there is nothing to draw */
    void (*draw)(struct plot *plot, const report_data *data, int panel);
} report_plot;

extern const report_plot report_plots[]; /* up to a name of NULL */

const report_plot *report_plot_find(const char *name); /* or NULL */
/* Describes the source in words, such as "map audit, 287 of 300 scenes". */
const char *report_plot_source(char text[REPORT_SOURCE_SIZE], const report_plot *plot,
                               const report_data *data);
/* Writes one panel as an <svg class="plot"> element with viewBox and size, without an XML
 * declaration. */
void report_plot_panel(FILE *to, const report_plot *plot, const report_data *data, int panel);
/* All panels as one <svg>. */
void report_plot_sheet(FILE *to, const report_plot *plot, const report_data *data);

#endif
