/* demo_picture.c - drawings of the demo's page as inline SVG: scenes with their futures, curves.
 *
 * A scene keeps one scale for both axes, x to the right (where the vehicle is heading), y up. Its
 * window is what the futures need; map and neighbors appear as far as they fall into it. Colors and
 * strokes are classes of the page's style sheet.
 */
#include "demo.h"
#include "svg.h"

#include <math.h>
#include <stdlib.h>

enum { PANEL_WIDTH = 380, PANEL_HEIGHT = 280, CHART_WIDTH = 560, CHART_HEIGHT = 260 };

/* --------------------------------------------------------------------------------------- window */

static void include_path(svg_bounds *b, const bj_real *path, int n) {
    for (int i = 0; i < n; i++) svg_include(b, (double)path[2 * i], (double)path[2 * i + 1]);
}

/* Room around the futures, then more of whatever the picture's proportions leave over. */
static svg_window fit_window(svg_bounds b) {
    enum { LEFT = 40, RIGHT = 46, VERTICAL = 30 }; /* pixels; labels stand on the right */
    const double smallest = 22;                    /* m: vehicles keep a sensible size */
    const double room = PANEL_WIDTH - LEFT - RIGHT;
    double scale = fmin(room / (b.x1 - b.x0), (PANEL_HEIGHT - 2 * VERTICAL) / (b.y1 - b.y0));
    scale = fmin(scale, PANEL_WIDTH / smallest);
    const double x = (b.x0 + b.x1) / 2 + (RIGHT - LEFT) / (2 * scale), y = (b.y0 + b.y1) / 2;
    const double width = PANEL_WIDTH / scale, height = PANEL_HEIGHT / scale;
    return (svg_window){{x - width / 2, x + width / 2, y - height / 2, y + height / 2}, scale};
}

/* --------------------------------------------------------------------------------------- shapes */

/* A line through n points, `stride` numbers apart. */
static void draw_path(FILE *to, const svg_window *w, const bj_real *points, int n, int stride,
                      const char *attributes) {
    fprintf(to, "<path %s d=\"", attributes);
    for (int i = 0; i < n; i++)
        fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', svg_x(w, (double)points[i * stride]),
                svg_y(w, (double)points[i * stride + 1]));
    fputs("\"/>\n", to);
}

static int is_visible(const svg_window *w, const bj_real *points, int n, int stride) {
    for (int i = 0; i < n; i++) {
        const double x = (double)points[i * stride], y = (double)points[i * stride + 1];
        if (x > w->b.x0 && x < w->b.x1 && y > w->b.y0 && y < w->b.y1) return 1;
    }
    return 0;
}

/* Road users at their true size: a car, or a disk for the others. */
static void draw_user(FILE *to, const svg_window *w, const bj_real *state, const char *class) {
    const double length = 4.6 * w->scale, width = 1.9 * w->scale, radius = 0.6 * w->scale;
    const double degrees = -atan2((double)state[5], (double)state[4]) * 57.29577951308232;
    fprintf(to, "<g transform=\"translate(%.1f %.1f)", svg_x(w, (double)state[0]),
            svg_y(w, (double)state[1]));
    if (state[6] > 0)
        fprintf(to, "\"><circle class=\"%s\" r=\"%.1f\"/></g>\n", class, fmax(radius, 2.5));
    else
        fprintf(to,
                " rotate(%.1f)\"><rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\" rx=\"%.1f\"/></g>\n",
                degrees, class, -length / 2, -width / 2, length, width, width / 4);
}

static void draw_map(FILE *to, const demo *d, const svg_window *w, const bj_scene *s) {
    const int Q = d->run[0].arch.points;
    for (int p = 0; p < s->polyline_count; p++) {
        const bj_real *line = s->polylines + (size_t)p * (size_t)Q * BJ_POLYLINE_FEATURES;
        if (is_visible(w, line, Q, BJ_POLYLINE_FEATURES))
            draw_path(to, w, line, Q, BJ_POLYLINE_FEATURES,
                      line[5] > 0 ? "class=\"map crosswalk\"" : "class=\"map\"");
    }
}

static void draw_neighbors(FILE *to, const demo *d, const svg_window *w, const bj_scene *s) {
    const int T = d->run[0].arch.obs;
    for (int n = 0; n < s->neighbor_count; n++) {
        const bj_real *track = s->neighbors + (size_t)n * (size_t)T * BJ_FOCAL_FEATURES;
        int first = 0; /* steps before it was seen are zero, heading included */
        while (first < T - 1 && track[first * BJ_FOCAL_FEATURES + 4] == 0 &&
               track[first * BJ_FOCAL_FEATURES + 5] == 0)
            first++;
        const bj_real *seen = track + first * BJ_FOCAL_FEATURES;
        if (!is_visible(w, seen, T - first, BJ_FOCAL_FEATURES)) continue;
        draw_path(to, w, seen, T - first, BJ_FOCAL_FEATURES, "class=\"track\"");
        draw_user(to, w, track + (T - 1) * BJ_FOCAL_FEATURES, "neighbor");
    }
}

/* ------------------------------------------------------------------------------------- branches */

typedef struct branch {
    const bj_real *path;
    double weight, label_y;
    int k;
} branch;

static int by_weight(const void *a, const void *b) {
    const branch *x = a, *y = b;
    return x->weight != y->weight ? (x->weight > y->weight) - (x->weight < y->weight) : x->k - y->k;
}

static int by_label(const void *a, const void *b) {
    const branch *x = a, *y = b;
    return x->label_y != y->label_y ? (x->label_y > y->label_y) - (x->label_y < y->label_y)
                                    : x->k - y->k;
}

/* Lightest first, so that the heavier ones lie on top. */
static void draw_branches(FILE *to, const svg_window *w, branch *list, int K, int F) {
    qsort(list, (size_t)K, sizeof *list, by_weight);
    const double most = list[K - 1].weight;
    for (int i = 0; i < K; i++) {
        const branch *b = &list[i];
        char attributes[96];
        snprintf(attributes, sizeof attributes,
                 "class=\"branch\" stroke-width=\"%.2f\" opacity=\"%.2f\"", 1.2 + 8 * b->weight,
                 0.3 + 0.6 * b->weight / most);
        fprintf(to, "<g><title>branch %d, weight %.3f</title>\n", b->k + 1, b->weight);
        draw_path(to, w, b->path, F, 2, attributes);
        fprintf(to, "<circle class=\"end\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/></g>\n",
                svg_x(w, (double)b->path[2 * F - 2]), svg_y(w, (double)b->path[2 * F - 1]),
                1.8 + 6 * b->weight);
    }
}

/* The weights beside the ends, moved apart where ends lie close together. */
static void draw_labels(FILE *to, const svg_window *w, branch *list, int K, int F) {
    const double apart = 12;
    for (int i = 0; i < K; i++) list[i].label_y = svg_y(w, (double)list[i].path[2 * F - 1]) + 3.5;
    qsort(list, (size_t)K, sizeof *list, by_label);
    for (int round = 0; round < 100; round++)
        for (int i = 0; i + 1 < K; i++) {
            const double overlap = apart - (list[i + 1].label_y - list[i].label_y);
            if (overlap <= 0) continue;
            list[i].label_y -= overlap / 2;
            list[i + 1].label_y += overlap / 2;
        }
    for (int i = 0; i < K; i++)
        fprintf(to, "<text class=\"weight\" x=\"%.1f\" y=\"%.1f\">%.0f %%</text>\n",
                svg_x(w, (double)list[i].path[2 * F - 2]) + 7, list[i].label_y,
                100 * list[i].weight);
}

void demo_draw_scene(FILE *to, const demo *d, int index) {
    const demo_run *set = &d->run[DEMO_FULLSET], *point = &d->run[DEMO_POINT];
    const int K = set->arch.atoms, F = set->arch.fut, T = set->arch.obs;
    const size_t line = 2 * (size_t)F;
    const bj_scene *s = demo_scene_at(d, index);
    const bj_real *paths = set->paths + (size_t)index * (size_t)K * line;
    const bj_real *single = point->paths + (size_t)index * line;
    const bj_real *future = s->future, *past = s->focal;
    branch list[BJ_MAX_ATOMS];
    svg_bounds b = {0, 0, 0, 0};
    include_path(&b, paths, K * F);
    include_path(&b, single, F);
    include_path(&b, future, F);
    const svg_window w = fit_window(b);
    for (int k = 0; k < K; k++)
        list[k] = (branch){paths + (size_t)k * line,
                           (double)set->weights[(size_t)index * (size_t)K + (size_t)k], 0, k};

    fprintf(to,
            "<figure>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"held-out scene %d\">\n"
            "<clipPath id=\"clip%d\"><rect width=\"%d\" height=\"%d\" rx=\"8\"/></clipPath>\n"
            "<g clip-path=\"url(#clip%d)\">\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n",
            PANEL_WIDTH, PANEL_HEIGHT, index, index, PANEL_WIDTH, PANEL_HEIGHT, index, PANEL_WIDTH,
            PANEL_HEIGHT);
    draw_map(to, d, &w, s);
    draw_neighbors(to, d, &w, s);
    draw_branches(to, &w, list, K, F);
    draw_path(to, &w, past, T, BJ_FOCAL_FEATURES, "class=\"past\"");
    draw_path(to, &w, single, F, 2, "class=\"point\"");
    draw_path(to, &w, future, F, 2, "class=\"future\"");
    draw_user(to, &w, past + (T - 1) * BJ_FOCAL_FEATURES, "focal");
    draw_labels(to, &w, list, K, F);
    svg_scale_bar(to, &w, 14, PANEL_HEIGHT - 14, PANEL_WIDTH / 4, "class=\"bar\"",
                  "class=\"small\"");
    fprintf(to, "</g>\n</svg>\n<figcaption>held-out scene %d, %.1f m/s</figcaption>\n</figure>\n",
            index, demo_speed(d, index));
}

/* --------------------------------------------------------------------------------------- curves */

enum { BINS = 140, LEFT_MARGIN = 44, RIGHT_MARGIN = 12, TOP_MARGIN = 12, BOTTOM_MARGIN = 28 };

/* Mean, smallest and largest value of a stretch of steps. */
typedef struct bin {
    double step, mean, low, high;
} bin;

static int make_bins(bin bins[BINS], const double *values, int n) {
    const int count = n < BINS ? n : BINS;
    for (int i = 0; i < count; i++) {
        const int begin = (int)((long)n * i / count), end = (int)((long)n * (i + 1) / count);
        bin b = {(begin + end + 1) / 2.0, 0, values[begin], values[begin]};
        for (int j = begin; j < end; j++) {
            b.mean += values[j] / (end - begin);
            b.low = fmin(b.low, values[j]);
            b.high = fmax(b.high, values[j]);
        }
        bins[i] = b;
    }
    return count;
}

typedef struct axes {
    double steps, low, high; /* the vertical one is logarithmic */
} axes;

static double chart_x(const axes *a, double step) {
    return LEFT_MARGIN + step / a->steps * (CHART_WIDTH - LEFT_MARGIN - RIGHT_MARGIN);
}

static double chart_y(const axes *a, double value) {
    const double share = log(fmax(value, a->low) / a->low) / log(a->high / a->low);
    return CHART_HEIGHT - BOTTOM_MARGIN - share * (CHART_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN);
}

static void draw_axes(FILE *to, const axes *a) {
    const double digits[] = {1, 2, 5};
    for (int power = -6; power <= 6; power++)
        for (int i = 0; i < 3; i++) {
            const double value = digits[i] * pow(10, power), y = chart_y(a, value);
            if (value < a->low || value > a->high) continue;
            fprintf(to,
                    "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"small\" x=\"%d\" "
                    "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    LEFT_MARGIN, y, CHART_WIDTH - RIGHT_MARGIN, LEFT_MARGIN - 7, y + 4, value);
        }
    const double tick = svg_round_length(fmax(a->steps / 3, 1));
    for (double step = 0; step <= a->steps; step += tick)
        fprintf(to, "<text class=\"small\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%g</text>\n",
                chart_x(a, step), CHART_HEIGHT - BOTTOM_MARGIN + 18,
                step + tick > a->steps && a->steps - step < tick / 4 ? "end" : "middle", step);
}

static void draw_curve(FILE *to, const axes *a, const bin *bins, int n, int run) {
    const char *class = run == DEMO_FULLSET ? "branch" : "point";
    fprintf(to, "<path class=\"%s range\" d=\"", class);
    for (int i = 0; i < n; i++)
        fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', chart_x(a, bins[i].step),
                chart_y(a, bins[i].high));
    for (int i = n - 1; i >= 0; i--)
        fprintf(to, "L%.1f %.1f", chart_x(a, bins[i].step), chart_y(a, bins[i].low));
    fprintf(to, "Z\"/>\n<path class=\"%s curve\" d=\"", class);
    for (int i = 0; i < n; i++)
        fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', chart_x(a, bins[i].step),
                chart_y(a, bins[i].mean));
    fputs("\"/>\n", to);
}

void demo_draw_curves(FILE *to, const demo *d, const double *const curve[DEMO_RUNS],
                      const char *title) {
    bin bins[DEMO_RUNS][BINS];
    axes a = {d->steps, INFINITY, 0};
    int n = 0;
    for (int r = 0; r < DEMO_RUNS; r++) {
        n = make_bins(bins[r], curve[r], d->steps);
        for (int i = 0; i < n; i++) {
            a.low = fmin(a.low, bins[r][i].low);
            a.high = fmax(a.high, bins[r][i].high);
        }
    }
    a.low = fmax(a.low, 1e-6) * 0.93; /* a logarithm needs something positive */
    a.high = fmax(a.high, a.low) * 1.05;
    fprintf(to, "<figure>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
            CHART_WIDTH, CHART_HEIGHT, title);
    draw_axes(to, &a);
    for (int r = DEMO_RUNS - 1; r >= 0; r--) draw_curve(to, &a, bins[r], n, r);
    fprintf(to, "</svg>\n<figcaption>%s</figcaption>\n</figure>\n", title);
}
