/* plot.c - see plot.h. */
#include "plot.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "svg.h"

enum { TICK_FONT = 12, TITLE_FONT = 14 };
#define SLANT 35 /* degrees of names below columns */

/* -------------------------------------------------------------------------------------- styles */

typedef enum shape { CIRCLE, SQUARE, UP, DIAMOND, DOWN, PLUS, HEXAGON, STAR } shape;

typedef struct look {
    const char *color, *dash;
    shape shape;
} look;

/* The palette of Okabe and Ito without yellow, which is invisible on white, and with gray. Style 7
 * is the ink color: black on white, white on black. */
static const look looks[PLOT_STYLES] = {
    {"#0072b2", "", CIRCLE},         {"#56b4e9", "6 2", SQUARE}, {"#009e73", "5 3", UP},
    {"#cc79a7", "8 3 2 3", DIAMOND}, {"#d55e00", "", DOWN},      {"#e69f00", "3 2", PLUS},
    {"#808080", "2 2", HEXAGON},     {"#1c2530", "9 3", STAR},
};

static const struct {
    const char *arm, *label;
    int style;
} known[] = {
    {"fullset", "full-set", 0},
    {"uniform", "uniform", 1},
    {"softwta", "soft-WTA", 2},
    {"sinkhorn", "Sinkhorn", 3},
    {"specialization", "specialization", 4},
    {"mdn", "MDN", 5},
    {"point", "point K=1", 6},
    {"outputonly", "output-only", 7},
    {"anchor-a", "stage A", 2},
    {"anchor-b", "stage B, K=6", 0},
    {"anchor-b-point", "stage B, K=1", 6},
};
enum { KNOWN = sizeof known / sizeof *known };

int plot_style(const char *arm, int index) {
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(known[i].arm, arm)) return known[i].style;
    return (index % PLOT_STYLES + PLOT_STYLES) % PLOT_STYLES;
}

const char *plot_label(const char *arm) {
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(known[i].arm, arm)) return known[i].label;
    return arm;
}

/* ---------------------------------------------------------------------------------------- text */

const char *plot_number(char text[PLOT_NUMBER_SIZE], double value, int digits) {
    char plain[PLOT_NUMBER_SIZE - 4];
    snprintf(plain, sizeof plain, "%.*f", digits, value);
    const int negative = plain[0] == '-' && strspn(plain, "-0.") < strlen(plain);
    snprintf(text, PLOT_NUMBER_SIZE, "%s%s", negative ? "\xe2\x88\x92" : "",
             plain + (plain[0] == '-'));
    return text;
}

static const char *text_paint(plot_role role) {
    return role == PLOT_INK ? "class=\"p-ink\" fill=\"#1c2530\""
                            : "class=\"p-soft\" fill=\"#5b6673\"";
}

void plot_text(plot *p, double x, double y, const char *anchor, plot_role role, const char *fmt,
               ...) {
    char text[PLOT_TIP_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(p->to, "<text %s font-size=\"%d\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">",
            text_paint(role), TICK_FONT, anchor, x, y);
    svg_text(p->to, text);
    fputs("</text>\n", p->to);
}

static void write_tip(FILE *to, const char *tip) {
    if (!tip) return;
    fputs("<title>", to);
    svg_text(to, tip);
    fputs("</title>", to);
}

/* ---------------------------------------------------------------------------------------- axes */

plot_ticks plot_ticks_within(double low, double high, int wanted) {
    const double raw = (high - low) / (wanted > 1 ? wanted : 1);
    const double power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    const double step = power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
    plot_ticks t = {ceil(low / step - 1e-9) * step, step, 0, 0};
    t.count = (int)floor((high - t.first) / step + 1e-9) + 1;
    t.digits = (int)fmax(0, -floor(log10(step) + 1e-9));
    return t;
}

void plot_frame(plot *p, const char *title, double left, double right, double top, double bottom) {
    p->left = left;
    p->right = p->width - right;
    p->top = top;
    p->bottom = p->height - bottom;
    fprintf(p->to,
            "<text class=\"p-ink\" fill=\"#1c2530\" font-size=\"%d\" font-weight=\"600\" "
            "x=\"6\" y=\"18\">",
            TITLE_FONT);
    if (p->letter) fprintf(p->to, "(%c) ", p->letter);
    svg_text(p->to, title);
    fputs("</text>\n", p->to);
}

void plot_range_x(plot *p, double low, double high) {
    p->x0 = low;
    p->x1 = high > low ? high : low + 1;
}

void plot_range_y(plot *p, double low, double high, int round) {
    if (!isfinite(low) || !isfinite(high)) low = high = 0;
    /* A single value, or a difference that is only rounding, because its labels would have too many
     * digits. */
    const double least = 2e-3 * fmax(fabs(low), fabs(high));
    if (!(high - low > least)) {
        const double middle = (low + high) / 2, half = middle != 0 ? 0.05 * fabs(middle) : 0.5;
        low = middle - half;
        high = middle + half;
    }
    if (round) {
        const double step = plot_ticks_within(low, high, 5).step;
        low = floor(low / step + 1e-9) * step;
        high = ceil(high / step - 1e-9) * step;
    }
    p->y0 = low;
    p->y1 = high;
}

void plot_axis_y(plot *p, int wanted) {
    const plot_ticks t = plot_ticks_within(p->y0, p->y1, wanted);
    char text[PLOT_NUMBER_SIZE];
    for (int i = 0; i < t.count; i++) {
        const double value = t.first + i * t.step, y = plot_y(p, value);
        fprintf(p->to,
                "<path class=\"p-grid\" stroke=\"#e1e5ea\" stroke-width=\"1\" "
                "d=\"M%.1f %.1fH%.1f\"/>\n",
                p->left, y, p->right);
        plot_text(p, p->left - 6, y + 4, "end", PLOT_SOFT, "%s",
                  plot_number(text, value, t.digits));
    }
}

void plot_axis_x(plot *p, int wanted) {
    const plot_ticks t = plot_ticks_within(p->x0, p->x1, wanted);
    char text[PLOT_NUMBER_SIZE];
    plot_rule(p, PLOT_SOFT, 1, NULL, p->left, p->bottom, p->right, p->bottom);
    for (int i = 0; i < t.count; i++) {
        const double value = t.first + i * t.step, x = plot_x(p, value);
        plot_rule(p, PLOT_SOFT, 1, NULL, x, p->bottom, x, p->bottom + 4);
        plot_text(p, x, p->bottom + 17, "middle", PLOT_SOFT, "%s",
                  plot_number(text, value, t.digits));
    }
}

void plot_axis_names(plot *p, const char *x, const char *y) {
    if (x) plot_text(p, (p->left + p->right) / 2, p->bottom + 34, "middle", PLOT_SOFT, "%s", x);
    if (!y) return;
    fprintf(p->to,
            "<text %s font-size=\"%d\" text-anchor=\"middle\" transform=\"translate(13 %.1f) "
            "rotate(-90)\">",
            text_paint(PLOT_SOFT), TICK_FONT, (p->top + p->bottom) / 2);
    svg_text(p->to, y);
    fputs("</text>\n", p->to);
}

void plot_column_name(plot *p, double x, const char *name) {
    fprintf(p->to,
            "<text %s font-size=\"%d\" text-anchor=\"end\" transform=\"translate(%.1f %.1f) "
            "rotate(-%d)\">",
            text_paint(PLOT_INK), TICK_FONT, x + 4, p->bottom + 14, SLANT);
    svg_text(p->to, name);
    fputs("</text>\n", p->to);
}

/* ------------------------------------------------------------------------------------- drawing */

static void write_shape(FILE *to, shape s, double x, double y, double r) {
    static const double star[10][2] = {{0, -1.25},     {0.31, -0.43}, {1.19, -0.39}, {0.5, 0.16},
                                       {0.73, 1.01},   {0, 0.53},     {-0.73, 1.01}, {-0.5, 0.16},
                                       {-1.19, -0.39}, {-0.31, -0.43}};
    static const double hexagon[6][2] = {{1.05, 0},  {0.525, 0.91},   {-0.525, 0.91},
                                         {-1.05, 0}, {-0.525, -0.91}, {0.525, -0.91}};
    static const double square[4][2] = {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}};
    static const double up[3][2] = {{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}};
    static const double down[3][2] = {{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}};
    static const double diamond[4][2] = {{0, -1.25}, {1.1, 0}, {0, 1.25}, {-1.1, 0}};
    static const double plus[12][2] = {{-0.4, -1.1}, {0.4, -1.1}, {0.4, -0.4},  {1.1, -0.4},
                                       {1.1, 0.4},   {0.4, 0.4},  {0.4, 1.1},   {-0.4, 1.1},
                                       {-0.4, 0.4},  {-1.1, 0.4}, {-1.1, -0.4}, {-0.4, -0.4}};
    const double(*corner)[2] = NULL;
    int corners = 0;
    switch (s) {
    case CIRCLE: break;
    case SQUARE: corner = square, corners = 4; break;
    case UP: corner = up, corners = 3; break;
    case DIAMOND: corner = diamond, corners = 4; break;
    case DOWN: corner = down, corners = 3; break;
    case PLUS: corner = plus, corners = 12; break;
    case HEXAGON: corner = hexagon, corners = 6; break;
    case STAR: corner = star, corners = 10; break;
    }
    fputs(" d=\"", to);
    if (!corners)
        fprintf(to, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0", x - r, y, r, r,
                2 * r, r, r, -2 * r);
    for (int i = 0; i < corners; i++)
        fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', x + r * corner[i][0], y + r * corner[i][1]);
    fputs("Z\"", to);
}

void plot_mark(plot *p, int style, double x, double y, double radius, const char *tip) {
    fprintf(p->to,
            "<path class=\"p-f%d p-edge\" fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"0.8\"",
            style, looks[style].color);
    write_shape(p->to, looks[style].shape, x, y, radius);
    fputs(">", p->to);
    write_tip(p->to, tip);
    fputs("</path>\n", p->to);
}

void plot_area(plot *p, int style, double opacity, double x, double y, double width, double height,
               const char *tip) {
    fprintf(p->to,
            "<rect class=\"p-f%d\" fill=\"%s\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" "
            "width=\"%.1f\" height=\"%.1f\">",
            style, looks[style].color, opacity, x, y, width, height);
    write_tip(p->to, tip);
    fputs("</rect>\n", p->to);
}

void plot_rule(plot *p, plot_role role, double width, const char *dash, double x0, double y0,
               double x1, double y1) {
    fprintf(p->to, "<path class=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"",
            role == PLOT_INK ? "p-rule" : "p-axis", role == PLOT_INK ? "#1c2530" : "#8a94a0",
            width);
    if (dash) fprintf(p->to, " stroke-dasharray=\"%s\"", dash);
    fprintf(p->to, " d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x0, y0, x1, y1);
}

static void write_stroke(plot *p, int style, double width, double opacity, int dashed) {
    fprintf(p->to,
            "<path class=\"p-s%d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
            "stroke-opacity=\"%.2f\" stroke-linejoin=\"round\"",
            style, looks[style].color, width, opacity);
    if (dashed && *looks[style].dash) fprintf(p->to, " stroke-dasharray=\"%s\"", looks[style].dash);
}

void plot_bar(plot *p, int style, double width, double x0, double y0, double x1, double y1) {
    write_stroke(p, style, width, 1, 0);
    fprintf(p->to, " d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x0, y0, x1, y1);
}

/* Clips a segment to y0 <= y <= y1. Returns 0 if nothing is left. */
static int cut(const plot *p, double a[2], double b[2]) {
    double t0 = 0, t1 = 1;
    const double dy = b[1] - a[1], edges[2] = {p->y0, p->y1};
    for (int e = 0; e < 2; e++) {
        const double inside = e ? edges[e] - a[1] : a[1] - edges[e]; /* >= 0: a is on this side */
        const double slope = e ? -dy : dy;
        if (slope == 0) {
            if (inside < 0) return 0;
        } else if (slope > 0) t0 = fmax(t0, -inside / slope);
        else t1 = fmin(t1, -inside / slope);
    }
    if (t0 > t1) return 0;
    const double dx = b[0] - a[0], ax = a[0], ay = a[1];
    b[0] = ax + t1 * dx;
    b[1] = ay + t1 * dy;
    a[0] = ax + t0 * dx;
    a[1] = ay + t0 * dy;
    return 1;
}

void plot_curve(plot *p, int style, double width, double opacity, const double *x, const double *y,
                int count, const char *tip) {
    double last[2] = {NAN, NAN};
    int written = 0;
    for (int i = 1; i < count; i++) {
        double a[2] = {x[i - 1], y[i - 1]}, b[2] = {x[i], y[i]};
        if (!isfinite(a[1]) || !isfinite(b[1]) || !cut(p, a, b)) continue;
        if (!written++) {
            write_stroke(p, style, width, opacity, 1);
            fputs(" d=\"", p->to);
        }
        if (a[0] != last[0] || a[1] != last[1])
            fprintf(p->to, "M%.1f %.1f", plot_x(p, a[0]), plot_y(p, a[1]));
        fprintf(p->to, "L%.1f %.1f", plot_x(p, b[0]), plot_y(p, b[1]));
        last[0] = b[0];
        last[1] = b[1];
    }
    if (!written) return;
    fputs("\">", p->to);
    write_tip(p->to, tip);
    fputs("</path>\n", p->to);
}

double plot_legend(plot *p, double y, const int *styles, const char *const *names, int count) {
    enum { ROW = 17, SAMPLE = 26 };
    size_t longest = 1;
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) > longest) longest = strlen(names[i]);
    const double cell = SAMPLE + 8 + 6.4 * (double)longest + 8;
    const double room = p->width - 16;
    int columns = (int)(room / cell);
    if (columns < 1) columns = 1;
    const int rows = (count + columns - 1) / columns;
    for (int i = 0; i < count && p->to; i++) {
        const double x = 8 + (i % columns) * cell, line = y + (i / columns) * ROW + 8;
        write_stroke(p, styles[i], 1.8, 1, 1);
        fprintf(p->to, " d=\"M%.1f %.1fh%d\"/>\n", x, line, SAMPLE);
        plot_mark(p, styles[i], x + SAMPLE / 2., line, 4, NULL);
        plot_text(p, x + SAMPLE + 6, line + 4, "start", PLOT_INK, "%s", names[i]);
    }
    return rows * ROW;
}
