/* scene_svg.c - see scene_svg.h.
 *
 * From back to front: drivable areas, lanes and crosswalks, neighbors with their tracks, weighted
 * futures, the focal past and future, the focal road user, then title, legend and scale bar.
 */
#include "scene_svg.h"

#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 720, HEADER = 46, STATE = BJ_FOCAL_FEATURES };

/* Colors are dark enough for the light background and can be distinguished by color-blind
 * readers. */
#define GROUND "#f7f6f2"
#define AREA "#e7e4dc"
#define AREA_EDGE "#cfcabd"
#define LANE "#a9a497"
#define VEHICLE "#5d7896"
#define OTHER "#b5651d"
#define PAST "#1c4fa1"
#define FUTURE "#12824c"
#define MODE "#9c2f86"
#define INK "#33312c"

static const char style[] =
    "<style>\n"
    "text{font-family:system-ui,'DejaVu Sans',sans-serif;fill:" INK "}\n"
    ".title{font-size:15px;font-weight:600}.small{font-size:12px}\n"
    ".edge{fill:none;stroke:" AREA_EDGE ";stroke-width:3;stroke-linejoin:round}\n"
    ".area{fill:" AREA ";stroke:none}\n"
    ".lane{fill:none;stroke:" LANE ";stroke-width:1}.inner{opacity:.55}\n"
    ".arrow{fill:none;stroke:" LANE ";stroke-width:1.2}\n"
    ".crosswalk{fill:none;stroke:" INK ";stroke-width:2.5;stroke-dasharray:3 4;opacity:.55}\n"
    ".track{fill:none;stroke:" VEHICLE ";stroke-width:1.8;stroke-linecap:round;opacity:.55}\n"
    ".small-track{stroke:" OTHER "}\n"
    ".vehicle{fill:" VEHICLE ";stroke:#fff;stroke-width:.8}\n"
    ".other{fill:" OTHER ";stroke:#fff;stroke-width:.8}\n"
    ".past{fill:none;stroke:" PAST ";stroke-width:3.2;stroke-linecap:round}\n"
    ".future{fill:none;stroke:" FUTURE ";stroke-width:3.2;stroke-linecap:round}\n"
    ".mode{fill:none;stroke:" MODE ";stroke-linecap:round}\n"
    ".focal{fill:" PAST ";stroke:#fff;stroke-width:1.2}\n"
    ".bar{fill:none;stroke:" INK ";stroke-width:1.5}\n"
    "</style>\n";

/* ----------------------------------------------------------------------------------------- data */

static int has_row(const float *state) { return state[4] != 0 || state[5] != 0; }

static const float *track_of(const scene_picture *p, int neighbor) {
    return p->at.neighbors + (size_t)neighbor * (size_t)p->sizes.obs * STATE;
}

/* The type flag of the focal track is always 0, so its type name is used instead. */
static int focal_is_small(const scene_picture *p) {
    return strcmp(p->info.focal_type, "vehicle") && strcmp(p->info.focal_type, "bus");
}

static double speed(const scene_picture *p) {
    const float *last = p->at.focal + (size_t)(p->sizes.obs - 1) * STATE;
    return hypot((double)last[2], (double)last[3]);
}

static svg_window choose_window(const scene_picture *p) {
    const double near = 45; /* m: neighbors that belong into the picture */
    svg_bounds b = {0, 0, 0, 0};
    for (int t = 0; t < p->sizes.obs; t++)
        if (has_row(p->at.focal + t * STATE))
            svg_include(&b, (double)p->at.focal[t * STATE], (double)p->at.focal[t * STATE + 1]);
    for (int t = 0; t < p->sizes.fut && p->at.future; t++)
        svg_include(&b, (double)p->at.future[2 * t], (double)p->at.future[2 * t + 1]);
    for (int i = 0; i < p->modes * p->sizes.fut; i++)
        svg_include(&b, p->paths[2 * i], p->paths[2 * i + 1]);
    for (int n = 0; n < p->info.neighbors; n++) {
        const float *now = track_of(p, n) + (size_t)(p->sizes.obs - 1) * STATE;
        if (hypot((double)now[0], (double)now[1]) < near)
            svg_include(&b, (double)now[0], (double)now[1]);
    }
    return svg_fit(b, 12, 80, WIDTH, HEIGHT);
}

/* ------------------------------------------------------------------------------------------ map */

/* Returns 1 if no part of the ring is visible. */
static int is_away(const svg_window *w, const double *points, int size) {
    svg_bounds b = {points[0], points[0], points[1], points[1]};
    for (int i = 1; i < size; i++) svg_include(&b, points[2 * i], points[2 * i + 1]);
    return b.x0 > w->b.x1 || b.x1 < w->b.x0 || b.y0 > w->b.y1 || b.y1 < w->b.y0;
}

/* Edges are drawn first and fills over them, so that no line is left where areas touch. */
static bj_status draw_areas(FILE *to, const svg_window *w, const scene_picture *p, bj_error *err) {
    const int rings = p->cache && p->info.map >= 0 ? bj_cache_rings(p->cache, p->info.map) : 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < rings; r++) {
            const int size = bj_cache_ring_size(p->cache, p->info.map, r);
            double *points = malloc(2 * sizeof *points * (size_t)(size > 0 ? size : 1));
            if (!points) return cli_error(err, BJ_ENOMEM, "out of memory for %d points", size);
            bj_cache_ring(points, p->cache, p->info.map, r);
            bj_from_city(points, points, size, p->info.origin, p->info.heading);
            if (size > 0 && !is_away(w, points, size))
                svg_path(to, w, points, size, 2, 1, pass ? "class=\"area\"" : "class=\"edge\"");
            free(points);
        }
    return BJ_OK;
}

static void draw_lane(FILE *to, const svg_window *w, const float *line, const double *points,
                      int Q) {
    svg_path(to, w, points, Q, 2, 0, line[4] > 0 ? "class=\"lane inner\"" : "class=\"lane\"");
    const float *middle = line + (size_t)(Q / 2) * BJ_POLYLINE_FEATURES;
    if (middle[2] == 0 && middle[3] == 0) return; /* no direction */
    fprintf(to,
            "<path class=\"arrow\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" "
            "d=\"M-4 -3L0 0L-4 3\"/>\n",
            svg_x(w, (double)middle[0]), svg_y(w, (double)middle[1]),
            -atan2((double)middle[3], (double)middle[2]) * 57.29577951308232);
}

static bj_status draw_lines(FILE *to, const svg_window *w, const scene_picture *p, bj_error *err) {
    const int Q = p->sizes.points;
    double *points = malloc(2 * sizeof *points * (size_t)Q);
    if (!points) return cli_error(err, BJ_ENOMEM, "out of memory for %d points", Q);
    for (int i = 0; i < p->info.polylines; i++) {
        const float *line = p->at.polylines + (size_t)i * (size_t)Q * BJ_POLYLINE_FEATURES;
        for (int q = 0; q < Q; q++)
            for (int c = 0; c < 2; c++)
                points[2 * q + c] = (double)line[q * BJ_POLYLINE_FEATURES + c];
        if (!svg_sees(w, points, Q, 2)) continue;
        if (line[5] > 0) svg_path(to, w, points, Q, 2, 0, "class=\"crosswalk\"");
        else draw_lane(to, w, line, points, Q);
    }
    free(points);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- tracks */

/* Steps without a row interrupt the line. */
static void draw_track(FILE *to, const svg_window *w, const float *track, int T,
                       const char *class) {
    int open = 0;
    fprintf(to, "<path class=\"%s\" d=\"", class);
    for (int t = 0; t < T; t++) {
        const float *state = track + t * STATE;
        if (has_row(state))
            fprintf(to, "%c%.1f %.1f", open ? 'L' : 'M', svg_x(w, (double)state[0]),
                    svg_y(w, (double)state[1]));
        open = has_row(state);
    }
    fputs("\"/>\n", to);
}

static void draw_neighbors(FILE *to, const svg_window *w, const scene_picture *p) {
    const int T = p->sizes.obs;
    for (int n = 0; n < p->info.neighbors; n++) {
        const float *now = track_of(p, n) + (size_t)(T - 1) * STATE;
        const int is_small = now[6] > 0;
        draw_track(to, w, track_of(p, n), T, is_small ? "track small-track" : "track");
        svg_user(to, w, (double)now[0], (double)now[1], atan2((double)now[5], (double)now[4]),
                 is_small, is_small ? "class=\"other\"" : "class=\"vehicle\"");
    }
}

/* Draws a dot for each second. The dot is hollow if the step was interpolated. */
static void draw_seconds(FILE *to, const svg_window *w, const scene_picture *p) {
    const int second = (int)lround(1 / p->sizes.dt);
    for (int t = second - 1; t < p->sizes.fut; t += second)
        fprintf(to,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" stroke=\"" FUTURE "\" fill=\"%s\"/>\n",
                svg_x(w, (double)p->at.future[2 * t]), svg_y(w, (double)p->at.future[2 * t + 1]),
                p->info.future_valid >> t & 1 ? "#fff" : "none");
}

static void draw_future(FILE *to, const svg_window *w, const scene_picture *p) {
    if (!p->at.future) return;
    fprintf(to, "<path class=\"future\" d=\"M%.1f %.1f", svg_x(w, 0), svg_y(w, 0));
    for (int t = 0; t < p->sizes.fut; t++)
        fprintf(to, "L%.1f %.1f", svg_x(w, (double)p->at.future[2 * t]),
                svg_y(w, (double)p->at.future[2 * t + 1]));
    fputs("\"/>\n", to);
    draw_seconds(to, w, p);
}

/* ---------------------------------------------------------------------------- weighted futures */

static void draw_modes(FILE *to, const svg_window *w, const scene_picture *p) {
    const int F = p->sizes.fut;
    double most = 0;
    for (int k = 0; k < p->modes; k++) most = fmax(most, p->weights[k]);
    for (int k = 0; k < p->modes; k++) {
        const double *path = p->paths + (size_t)k * 2 * (size_t)F, share = p->weights[k];
        char attributes[96];
        snprintf(attributes, sizeof attributes,
                 "class=\"mode\" stroke-width=\"%.2f\" opacity=\"%.2f\"", 1.5 + 8 * share,
                 0.25 + 0.65 * (most > 0 ? share / most : 0));
        fprintf(to, "<g><title>future %d, weight %.3f</title>\n", k + 1, share);
        svg_path(to, w, path, F, 2, 0, attributes);
        fprintf(to, "<circle fill=\"" MODE "\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/></g>\n",
                svg_x(w, path[2 * F - 2]), svg_y(w, path[2 * F - 1]), 2.2 + 6 * share);
    }
}

typedef struct label {
    double x, y, weight;
} label;

static int by_height(const void *a, const void *b) {
    const label *x = a, *y = b;
    return x->y != y->y ? (x->y > y->y) - (x->y < y->y) : (x->x > y->x) - (x->x < y->x);
}

/* Draws the weights next to the endpoints, and moves overlapping labels apart. */
static void draw_weights(FILE *to, const svg_window *w, const scene_picture *p) {
    const double apart = 13, wide = 44; /* pixels */
    label list[BJ_MAX_ATOMS];
    const int n = p->modes < BJ_MAX_ATOMS ? p->modes : BJ_MAX_ATOMS;
    for (int k = 0; k < n; k++) {
        const double *end = p->paths + (size_t)(k + 1) * 2 * (size_t)p->sizes.fut - 2;
        list[k] = (label){svg_x(w, end[0]) + 9, svg_y(w, end[1]) + 4, p->weights[k]};
    }
    if (n) qsort(list, (size_t)n, sizeof *list, by_height);
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++) {
                const double overlap = apart - (list[j].y - list[i].y);
                if (overlap <= 0 || fabs(list[j].x - list[i].x) > wide) continue;
                list[i].y -= overlap / 2;
                list[j].y += overlap / 2;
            }
    for (int k = 0; k < n; k++)
        fprintf(to,
                "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" paint-order=\"stroke\" "
                "stroke=\"" GROUND "\" stroke-width=\"3\">%.*f %%</text>\n",
                list[k].x, list[k].y, list[k].weight < 0.095 ? 1 : 0, 100 * list[k].weight);
}

/* --------------------------------------------------------------------------------------- legend */

static void draw_header(FILE *to, const scene_picture *p) {
    fprintf(to, "<text class=\"title\" x=\"16\" y=\"20\">");
    svg_text(to, p->info.scenario_id);
    fprintf(to, "</text>\n<text class=\"small\" x=\"16\" y=\"38\">");
    svg_text(to, p->info.city);
    fputs(" &#183; focal ", to);
    svg_text(to, p->info.focal_type);
    fputs(" ", to);
    svg_text(to, p->info.focal_id);
    fprintf(to, " &#183; %.1f m/s &#183; %d of %d neighbors &#183; %d of %d polylines%s</text>\n",
            speed(p), p->info.neighbors, p->info.neighbors_available, p->info.polylines,
            p->info.polylines_available, p->at.future ? "" : " &#183; future unknown");
}

typedef struct legend {
    FILE *to;
    int y;
} legend;

enum { LEGEND_WIDTH = 178, LEGEND_ROW = 20 };

static void legend_text(legend *l, const char *text) {
    fprintf(l->to, "<text class=\"small\" x=\"52\" y=\"%d\">", l->y + 4);
    svg_text(l->to, text);
    fputs("</text>\n", l->to);
    l->y += LEGEND_ROW;
}

static void legend_line(legend *l, const char *attributes, const char *text) {
    fprintf(l->to, "<path %s d=\"M12 %dH42\"/>\n", attributes, l->y);
    legend_text(l, text);
}

static void legend_user(legend *l, const char *attributes, int is_small, const char *text) {
    const svg_window w = {{0, 1, 0, 0}, 5};
    fprintf(l->to, "<g transform=\"translate(0 %d)\">", l->y);
    svg_user(l->to, &w, 27 / w.scale, 0, 0, is_small, attributes);
    fputs("</g>\n", l->to);
    legend_text(l, text);
}

static void draw_legend(FILE *to, const scene_picture *p) {
    const int rows = 6 + (p->at.future != NULL) + (p->modes > 0);
    legend l = {to, 18};
    fprintf(to,
            "<g transform=\"translate(%d 12)\">\n<rect width=\"%d\" height=\"%d\" rx=\"6\" "
            "fill=\"#fff\" fill-opacity=\".86\" stroke=\"" AREA_EDGE "\"/>\n",
            WIDTH - LEGEND_WIDTH - 12, LEGEND_WIDTH, rows * LEGEND_ROW + 14);
    legend_user(&l, "class=\"focal\"", focal_is_small(p), "focal");
    legend_line(&l, "class=\"past\"", "observed past");
    if (p->at.future) legend_line(&l, "class=\"future\"", "future, dot = 1 s");
    if (p->modes)
        legend_line(&l, "class=\"mode\" stroke-width=\"3.5\"",
                    p->modes_title ? p->modes_title : "predicted futures");
    legend_user(&l, "class=\"vehicle\"", 0, "vehicle or bus");
    legend_user(&l, "class=\"other\"", 1, "other road user");
    legend_line(&l, "class=\"lane\"", "lane center");
    legend_line(&l, "class=\"crosswalk\"", "crosswalk edge");
    fputs("</g>\n", to);
}

bj_status scene_svg_ground(FILE *to, const svg_window *w, const scene_picture *p, bj_error *err) {
    bj_status status = draw_areas(to, w, p, err);
    if (status == BJ_OK) status = draw_lines(to, w, p, err);
    draw_neighbors(to, w, p);
    return status;
}

void scene_svg_past(FILE *to, const svg_window *w, const scene_picture *p) {
    draw_track(to, w, p->at.focal, p->sizes.obs, "past");
}

void scene_svg_focal(FILE *to, const svg_window *w, const scene_picture *p) {
    const float *now = p->at.focal + (size_t)(p->sizes.obs - 1) * STATE;
    svg_user(to, w, 0, 0, atan2((double)now[5], (double)now[4]), focal_is_small(p),
             "class=\"focal\"");
}

bj_status scene_svg_write(FILE *to, const scene_picture *p, bj_error *err) {
    const svg_window w = choose_window(p);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\">\n<title>",
            WIDTH, HEIGHT + HEADER, WIDTH, HEIGHT + HEADER);
    svg_text(to, p->info.scenario_id);
    fprintf(to, "</title>\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", style);
    draw_header(to, p);
    fprintf(to,
            "<clipPath id=\"clip\"><rect width=\"%d\" height=\"%d\"/></clipPath>\n"
            "<g transform=\"translate(0 %d)\"><g clip-path=\"url(#clip)\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"" GROUND "\"/>\n",
            WIDTH, HEIGHT, HEADER, WIDTH, HEIGHT);
    const bj_status status = scene_svg_ground(to, &w, p, err);
    draw_modes(to, &w, p);
    scene_svg_past(to, &w, p);
    draw_future(to, &w, p);
    scene_svg_focal(to, &w, p);
    draw_weights(to, &w, p);
    fputs("</g>\n", to);
    draw_legend(to, p);
    svg_scale_bar(to, &w, 20, HEIGHT - 16, WIDTH / 5, "class=\"bar\"", "class=\"small\"");
    fputs("</g>\n</svg>\n", to);
    return status;
}
