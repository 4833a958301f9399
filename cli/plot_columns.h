/* plot_columns.h - draws a panel with arms side by side: a mark for every seed, the mean, and a
 * band. */
#ifndef BJEPA_PLOT_COLUMNS_H
#define BJEPA_PLOT_COLUMNS_H

#include "plot.h"

typedef struct plot_column {
    const char *name;  /* below it */
    const char *title; /* in tooltips */
    int style;
    const double *values; /* (count) one value for each seed, `stride` apart; NaN: none */
    const int64_t *seeds; /* (count) */
    int count, stride;
    double mean;      /* NaN: nothing was measured */
    double spread;    /* length of the whisker on both sides of the mean; NaN: none */
    double low, high; /* band, in units of the axis; NaN: none */
    const char *band_tip;
    int apart; /* 1: does not affect the range; if it is outside, an arrow shows its value */
} plot_column;

typedef struct plot_columns {
    const char *title;
    const char *note; /* below the title; NULL: none */
    int digits;       /* in tooltips */
    int bars;         /* 1: draw bars from zero instead of fitting the range */
    double reference; /* dashed line; NaN: none */
    double limit;     /* dotted line, with its name; NaN: none */
    const char *limit_name;
} plot_columns;

void plot_columns_draw(plot *p, const plot_columns *panel, const plot_column *columns, int count);

#endif
