/* plot.h - one panel of a plot as SVG: axes, ticks, marks, lines, legends.
 *
 * Pixels run from the panel's upper left corner. Arms have styles: a color of the palette of Okabe
 * and Ito, a shape and a dash pattern, so that nothing depends on color alone. Colors are written
 * as attributes and repeated as classes (plot_list.h). Texts and tooltips are escaped; tooltips are
 * <title> elements. The same data gives the same bytes.
 */
#ifndef BJEPA_PLOT_H
#define BJEPA_PLOT_H

#include "cli.h"

#include <stdio.h>

typedef struct plot {
    FILE *to;
    double width, height;            /* of the panel */
    double left, right, top, bottom; /* edges of the axes, pixels */
    double x0, x1, y0, y1;           /* what they stand for */
    char letter;                     /* of the panel in its sheet, or 0 */
} plot;

enum { PLOT_STYLES = 8, PLOT_TIP_SIZE = 200 };
enum { PLOT_STYLE_OTHER = 6 }; /* gray, for what is no arm */

static inline double plot_x(const plot *p, double x) {
    return p->left + (x - p->x0) / (p->x1 - p->x0) * (p->right - p->left);
}
static inline double plot_y(const plot *p, double y) {
    return p->bottom - (y - p->y0) / (p->y1 - p->y0) * (p->bottom - p->top);
}

/* Returns the style of an arm by its name. `index` determines the style of names that have none of
 * their own. */
int plot_style(const char *arm, int index);
/* Returns a name that is short enough for a column label, such as "full-set". Unknown arms keep
 * their own name. */
const char *plot_label(const char *arm);

/* ---------------------------------------------------------------------------------------- axes */

typedef struct plot_ticks {
    double first, step;
    int count, digits; /* decimals of their labels */
} plot_ticks;

/* Fills in about `wanted` round numbers within [low, high]. */
plot_ticks plot_ticks_within(double low, double high, int wanted);
/* Draws the heading of the panel and places its axes. Margins are in pixels. */
void plot_frame(plot *p, const char *title, double left, double right, double top, double bottom);
/* Sets the range of the axis. If `round` is set, extends it to whole steps. A range of width zero
 * is widened. */
void plot_range_x(plot *p, double low, double high);
void plot_range_y(plot *p, double low, double high, int round);
/* Draw grid lines with numbers on the left, and numbers along the bottom. */
void plot_axis_y(plot *p, int wanted);
void plot_axis_x(plot *p, int wanted);
/* What the axes show; NULL: nothing. */
void plot_axis_names(plot *p, const char *x, const char *y);
/* Draws a slanted name below the column at pixel x. */
void plot_column_name(plot *p, double x, const char *name);

/* ------------------------------------------------------------------------------------- drawing */

typedef enum plot_role { PLOT_INK, PLOT_SOFT } plot_role;

/* anchor: "start", "middle" or "end". */
void plot_text(plot *p, double x, double y, const char *anchor, plot_role role, const char *fmt,
               ...) CLI_PRINTF(6, 7);
/* Draws the shape of a style at pixels (x, y). tip may be NULL. */
void plot_mark(plot *p, int style, double x, double y, double radius, const char *tip);
/* Draws a filled rectangle in the color of a style. */
void plot_area(plot *p, int style, double opacity, double x, double y, double width, double height,
               const char *tip);
/* Draws a straight line in pixels. `dash` is a value of stroke-dasharray or NULL. */
void plot_rule(plot *p, plot_role role, double width, const char *dash, double x0, double y0,
               double x1, double y1);
/* Draws a short line in the color of a style. */
void plot_bar(plot *p, int style, double width, double x0, double y0, double x1, double y1);
/* Draws a line through the points, in units of the axes. Parts outside of the axes and points that
 * are not finite are left out. */
void plot_curve(plot *p, int style, double width, double opacity, const double *x, const double *y,
                int count, const char *tip);
/* Draws a legend of lines and shapes with their names, in rows starting at pixel y. Returns the
 * height of `count` entries. If p->to is NULL, draws nothing. */
double plot_legend(plot *p, double y, const int *styles, const char *const *names, int count);

/* Formats a number with decimals, but never as "-0", and with a minus sign instead of a hyphen. */
enum { PLOT_NUMBER_SIZE = 48 };
const char *plot_number(char text[PLOT_NUMBER_SIZE], double value, int digits);

#endif
