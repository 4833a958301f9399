/* plot_columns.c - see plot_columns.h. */
#include "plot_columns.h"

#include <math.h>

enum { LEFT = 52, RIGHT = 8, TOP = 34, NOTE = 16, BOTTOM = 78 };

static double value_of(const plot_column *c, int i) { return c->values[i * c->stride]; }

static void include(double *low, double *high, double value) {
    if (!isfinite(value)) return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

static void include_column(double *low, double *high, const plot_column *c) {
    for (int i = 0; i < c->count; i++) include(low, high, value_of(c, i));
    include(low, high, c->mean);
    if (isfinite(c->spread)) {
        include(low, high, c->mean - c->spread);
        include(low, high, c->mean + c->spread);
    }
}

/* Bands may widen the axis, but not so far that the marks cannot be distinguished, because bands
 * are very wide with two seeds. Longer bands are cut off. */
static void include_bands(double *low, double *high, const plot_column *columns, int count) {
    const double most = 0.6 * (*high - *low), least = *low - most, highest = *high + most;
    for (int i = 0; i < count; i++) {
        if (columns[i].apart || !isfinite(columns[i].low) || !isfinite(columns[i].high)) continue;
        include(low, high, fmax(columns[i].low, least));
        include(low, high, fmin(columns[i].high, highest));
    }
}

static void set_range(plot *p, const plot_columns *panel, const plot_column *columns, int count) {
    double low = INFINITY, high = -INFINITY;
    int others = 0;
    for (int i = 0; i < count; i++) others += !columns[i].apart && isfinite(columns[i].mean);
    /* Leaving out an outlier helps only if at least two other columns are left to compare. */
    for (int i = 0; i < count; i++)
        if (!columns[i].apart || others < 2) include_column(&low, &high, &columns[i]);
    include(&low, &high, panel->reference);
    if (low < high) include_bands(&low, &high, columns, count);
    if (panel->bars) {
        include(&low, &high, 0);
        include(&low, &high, panel->limit);
        plot_range_y(p, fmin(low, 0), high, 1);
        return;
    }
    const double margin = 0.06 * (high - low);
    plot_range_y(p, low - margin, high + margin, 0);
}

/* A column that the range does not show. */
static void draw_outside(plot *p, const plot_columns *panel, const plot_column *c, double x,
                         double width) {
    const int above = c->mean > p->y1;
    const double edge = above ? p->top : p->bottom, into = above ? 1 : -1;
    char number[PLOT_NUMBER_SIZE], tip[PLOT_TIP_SIZE];
    snprintf(tip, sizeof tip, "%s: mean %s, outside the axis", c->title,
             plot_number(number, c->mean, panel->digits));
    plot_bar(p, c->style, 1.6, x, edge + into * 18, x, edge + into * 4);
    plot_bar(p, c->style, 1.6, x - 4, edge + into * 8, x, edge + into * 3);
    plot_bar(p, c->style, 1.6, x + 4, edge + into * 8, x, edge + into * 3);
    plot_mark(p, c->style, x, edge + into * 24, 4, tip);
    plot_text(p, fmin(x, p->right - 14), edge + into * 36 + (above ? 6 : 2), "middle", PLOT_INK,
              "%s", plot_number(number, c->mean, width < 30 ? 1 : 2));
}

static void draw_seeds(plot *p, const plot_columns *panel, const plot_column *c, double x,
                       double width, double radius) {
    const double step = fmin(5, 0.6 * width / (c->count > 1 ? c->count : 1));
    for (int i = 0; i < c->count; i++) {
        const double value = value_of(c, i);
        char number[PLOT_NUMBER_SIZE], tip[PLOT_TIP_SIZE];
        if (!isfinite(value)) continue;
        snprintf(tip, sizeof tip, "%s, seed %lld: %s", c->title, (long long)c->seeds[i],
                 plot_number(number, value, panel->digits));
        plot_mark(p, c->style, x + (i - (c->count - 1) / 2.) * step, plot_y(p, value), radius, tip);
    }
}

static void draw_column(plot *p, const plot_columns *panel, const plot_column *c, double x,
                        double width) {
    const double half = fmin(15, 0.38 * width);
    char a[PLOT_NUMBER_SIZE], b[PLOT_NUMBER_SIZE], tip[PLOT_TIP_SIZE];
    if (!isfinite(c->mean)) {
        plot_text(p, x, p->bottom - 6, "middle", PLOT_SOFT, "\xe2\x80\x93");
        return;
    }
    if (!panel->bars && (c->mean > p->y1 || c->mean < p->y0)) {
        draw_outside(p, panel, c, x, width);
        return;
    }
    const double y = plot_y(p, c->mean);
    snprintf(tip, sizeof tip, isfinite(c->spread) ? "%s: mean %s, SD %s" : "%s: %s", c->title,
             plot_number(a, c->mean, panel->digits),
             isfinite(c->spread) ? plot_number(b, c->spread, panel->digits) : "");
    if (panel->bars) {
        const double zero = plot_y(p, 0);
        plot_area(p, c->style, 0.35, x - half, fmin(y, zero), 2 * half, fabs(zero - y), tip);
    }
    if (isfinite(c->low) && isfinite(c->high)) {
        const double top = plot_y(p, fmin(c->high, p->y1)), end = plot_y(p, fmax(c->low, p->y0));
        plot_area(p, c->style, 0.22, x - half, top, 2 * half, fmax(end - top, 1), c->band_tip);
    }
    plot_bar(p, c->style, 2, x - half, y, x + half, y);
    if (isfinite(c->spread)) {
        const double upper = plot_y(p, c->mean + c->spread), lower = plot_y(p, c->mean - c->spread);
        plot_bar(p, c->style, 1.4, x, upper, x, lower);
        plot_bar(p, c->style, 1.4, x - 3, upper, x + 3, upper);
        plot_bar(p, c->style, 1.4, x - 3, lower, x + 3, lower);
    }
    draw_seeds(p, panel, c, x, width, panel->bars ? 2.6 : 3.6);
}

void plot_columns_draw(plot *p, const plot_columns *panel, const plot_column *columns, int count) {
    plot_frame(p, panel->title, LEFT, RIGHT, panel->note ? TOP + NOTE : TOP, BOTTOM);
    if (panel->note) plot_text(p, 6, TOP, "start", PLOT_SOFT, "%s", panel->note);
    plot_range_x(p, 0, count);
    set_range(p, panel, columns, count);
    plot_axis_y(p, 5);
    plot_rule(p, PLOT_SOFT, 1, NULL, p->left, p->bottom, p->right, p->bottom);
    if (isfinite(panel->reference)) {
        const double y = plot_y(p, panel->reference);
        plot_rule(p, PLOT_INK, 1, "4 3", p->left, y, p->right, y);
    }
    if (isfinite(panel->limit) && panel->limit >= p->y0 && panel->limit <= p->y1) {
        const double y = plot_y(p, panel->limit);
        plot_rule(p, PLOT_INK, 1, "1.5 3", p->left, y, p->right, y);
        if (panel->limit_name)
            plot_text(p, p->right, y - 4, "end", PLOT_SOFT, "%s", panel->limit_name);
    }
    const double width = (p->right - p->left) / (count ? count : 1);
    for (int i = 0; i < count; i++) {
        const double x = p->left + (i + 0.5) * width;
        draw_column(p, panel, &columns[i], x, width);
        plot_column_name(p, x, columns[i].name);
    }
}
