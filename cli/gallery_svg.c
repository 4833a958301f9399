/* gallery_svg.c - see gallery_svg.h.
 *
 * The ground of a case is a definition that both panels use. Each panel is drawn from back to
 * front: ground, forecasts, observed past, focal road user. Then follow hindsight, if any, badges
 * with the numbers of the branches, their weights, captions, scale bars and the legend.
 */
#include "gallery_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gallery_page.h"

#define POINT "#d95f02"
#define GROUND "#f7f6f2"
#define AREA "#e4e2dc"
#define LANE "#a9a6a0"
#define USER "#7f8a96"
#define SMALL "#b08d57"
#define INK "#26252b"

/* The colors differ by at least 18 units of CIE Lab from each other, from the road and from the
 * orange of the point model, for normal vision and for each of three kinds of color blindness.
 * Branches are also numbered. */
static const struct {
    const char *fill, *ink;
} branch_colors[] = {{"#332288", "#fff"}, {"#117733", "#fff"}, {"#aa3377", "#fff"},
                     {"#56b4e9", INK},    {"#661100", "#fff"}, {"#cc79a7", INK}};
enum { COLORS = 6 };

static const char style[] =
    "text{font-family:system-ui,'DejaVu Sans',sans-serif;fill:" INK "}\n"
    ".edge{fill:none;stroke:#c9c6be;stroke-width:2.4;stroke-linejoin:round}\n"
    ".area{fill:" AREA ";stroke:none}\n"
    ".lane{fill:none;stroke:" LANE ";stroke-width:.8}.inner{opacity:.5}\n"
    ".arrow{fill:none;stroke:" LANE ";stroke-width:1}\n"
    ".crosswalk{fill:none;stroke:#77746c;stroke-width:1.8;stroke-dasharray:2 3;opacity:.6}\n"
    ".track{fill:none;stroke:" USER ";stroke-width:1.3;stroke-linecap:round;opacity:.5}\n"
    ".small-track{stroke:" SMALL "}\n"
    ".vehicle{fill:" USER ";stroke:#fff;stroke-width:.7}\n"
    ".other{fill:" SMALL ";stroke:#fff;stroke-width:.7}\n"
    ".past{fill:none;stroke:" INK ";stroke-width:2.2;stroke-linecap:round}\n"
    ".focal{fill:" INK ";stroke:#fff;stroke-width:1}\n"
    ".path{fill:none;stroke-linecap:round;stroke-linejoin:round}\n"
    ".bar{fill:none;stroke:" INK ";stroke-width:1.2}\n"
    ".frame{fill:none;stroke:#b9b6ae;stroke-width:1}\n"
    ".halo{paint-order:stroke;stroke:" GROUND ";stroke-width:3;stroke-linejoin:round}\n";

static void put_style(FILE *to, double u, double legend_unit) {
    fprintf(
        to,
        "<style>\n%s.title{font-size:16px;font-weight:600}.note{font-size:11.5px;fill:#55534d}\n"
        ".letter{font-size:%.1fpx;font-weight:700}.small{font-size:%.1fpx}"
        ".key{font-size:%.1fpx}.badge{font-weight:700;text-anchor:middle}\n</style>\n",
        style, 13 * u, 9.6 * u, 9.6 * legend_unit);
}

static const char *color_of(int model, int k) {
    return model == BJ_GALLERY_POINT ? POINT : branch_colors[k % COLORS].fill;
}

/* Maps the frame of a scene to the pixels of a panel. Forward is up. */
static double panel_x(const gallery_panel *p, double y) { return svg_y(&p->window, y); }
static double panel_y(const gallery_panel *p, double x) { return p->height - svg_x(&p->window, x); }

/* ------------------------------------------------------------------------------------ forecasts */

/* Returns the opacity, from .3 for a branch without weight to 1 for the largest weight. */
static double opacity_of(const double *weights, int K, int k) {
    double most = 0;
    for (int i = 0; i < K; i++) most = fmax(most, weights[i]);
    return most > 0 ? 0.3 + 0.7 * fmin(1, weights[k] / most) : 1;
}

static double reach(const double *path, int F) { return hypot(path[2 * F - 2], path[2 * F - 1]); }

static void draw_path(FILE *to, const gallery_panel *p, const double *path, int F,
                      const char *attributes) {
    fprintf(to, "<path class=\"path\" %s d=\"M%.1f %.1f", attributes, panel_x(p, 0), panel_y(p, 0));
    for (int t = 0; t < F; t++)
        fprintf(to, "L%.1f %.1f", panel_x(p, path[2 * t + 1]), panel_y(p, path[2 * t]));
    fputs("\"/>\n", to);
}

/* Returns whether path a is drawn below path b. Paths that reach farther, by quarters of the
 * largest reach, are drawn below. If two paths reach about as far, the one with the smaller weight
 * is drawn below. */
static int is_below(const double *weights, const double *all, int F, int a, int b, double most) {
    const int far_a = (int)(4 * reach(all + (size_t)a * 2 * (size_t)F, F) / most);
    const int far_b = (int)(4 * reach(all + (size_t)b * 2 * (size_t)F, F) / most);
    return far_a != far_b ? far_a > far_b : weights[a] < weights[b];
}

/* Each path has a light border, so that paths that share a lane can be told apart. */
static void draw_paths(FILE *to, const gallery_panel *p, const gallery_scene *s, int K, double u) {
    const int F = s->ground.sizes.fut;
    const double *weights = s->chosen->weights[p->model], *all = s->chosen->trajectories[p->model];
    double most = 1; /* m */
    int drawn[BJ_MAX_ATOMS] = {0};
    for (int k = 0; k < K; k++) most = fmax(most, reach(all + (size_t)k * 2 * (size_t)F, F));
    for (int i = 0; i < K; i++) {
        int k = -1;
        char attributes[96];
        for (int j = 0; j < K; j++)
            if (!drawn[j] && (k < 0 || is_below(weights, all, F, j, k, most))) k = j;
        const double *path = all + (size_t)k * 2 * (size_t)F;
        drawn[k] = 1;
        snprintf(attributes, sizeof attributes, "stroke=\"" AREA "\" stroke-width=\"%.1f\"",
                 3.8 * u);
        draw_path(to, p, path, F, attributes);
        snprintf(attributes, sizeof attributes,
                 "stroke=\"%s\" stroke-width=\"%.1f\" opacity=\"%.2f\"", color_of(p->model, k),
                 2.6 * u, opacity_of(weights, K, k));
        fprintf(to, "<g><title>candidate %d, weight %.3f</title>\n", k + 1, weights[k]);
        draw_path(to, p, path, F, attributes);
        fputs("</g>\n", to);
    }
}

static void draw_panel(FILE *to, const gallery_panel *p, const gallery_scene *s, int K, double u) {
    fprintf(to, "<g transform=\"translate(%.1f %.1f)\" clip-path=\"url(#panel)\">\n", p->x, p->y);
    fprintf(to, "<rect width=\"%d\" height=\"%d\" fill=\"" GROUND "\"/>\n", p->width, p->height);
    fprintf(to, "<use href=\"#ground-%d\"/>\n", p->place + 1);
    draw_paths(to, p, s, K, u);
    fprintf(to, "<use href=\"#focal-%d\"/>\n</g>\n", p->place + 1);
}

/* The scene is drawn heading right, in its own frame, and then rotated as a whole. */
static bj_status define_ground(FILE *to, const gallery_panel *p, const gallery_scene *s,
                               bj_error *err) {
    fprintf(to, "<g id=\"ground-%d\" transform=\"matrix(0 -1 1 0 0 %d)\">\n", p->place + 1,
            p->height);
    const bj_status status = scene_svg_ground(to, &p->window, &s->ground, err);
    fprintf(to, "</g>\n<g id=\"focal-%d\" transform=\"matrix(0 -1 1 0 0 %d)\">\n", p->place + 1,
            p->height);
    scene_svg_past(to, &p->window, &s->ground);
    scene_svg_focal(to, &p->window, &s->ground);
    fputs("</g>\n", to);
    return status;
}

/* --------------------------------------------------------------------------------------- badges */

typedef struct badge {
    double x, y;       /* where it is drawn */
    double at_x, at_y; /* the end of its path */
} badge;

/* Moves overlapping badges apart and keeps them in the panel. */
static void spread(badge *list, int n, double r, const gallery_panel *p) {
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < n; i++) {
            for (int j = i + 1; j < n; j++) {
                double dx = list[j].x - list[i].x, dy = list[j].y - list[i].y;
                double d = sqrt(dx * dx + dy * dy);
                if (d >= 2 * r + 1) continue;
                if (d < 1e-3) dx = 1, dy = 0, d = 1;
                const double push = (2 * r + 1 - fmin(d, 2 * r + 1)) / 2 + 0.05;
                list[i].x -= push * dx / d, list[i].y -= push * dy / d;
                list[j].x += push * dx / d, list[j].y += push * dy / d;
            }
            list[i].x = fmin(fmax(list[i].x, r + 2), p->width - r - 2);
            list[i].y = fmin(fmax(list[i].y, r + 2), p->height - r - 2);
        }
}

static void draw_badge(FILE *to, double x, double y, double r, int k) {
    fprintf(
        to,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"#fff\" "
        "stroke-width=\"1\"/><text class=\"badge\" style=\"fill:%s;font-size:%.1fpx\" x=\"%.1f\" "
        "y=\"%.1f\">%d</text>\n",
        x, y, r, branch_colors[k % COLORS].fill, branch_colors[k % COLORS].ink, 1.4 * r, x,
        y + 0.5 * r, k + 1);
}

static void draw_badges(FILE *to, const gallery_panel *p, const gallery_scene *s, int K, double u) {
    const int F = s->ground.sizes.fut;
    const double r = 5.6 * u;
    badge list[BJ_MAX_ATOMS];
    for (int k = 0; k < K; k++) {
        const double *end =
            s->chosen->trajectories[p->model] + 2 * ((size_t)(k + 1) * (size_t)F - 1);
        const double x = panel_x(p, end[1]), y = panel_y(p, end[0]);
        list[k] = (badge){x, y, x, y};
    }
    spread(list, K, r, p);
    for (int k = 0; k < K; k++)
        if (hypot(list[k].x - list[k].at_x, list[k].y - list[k].at_y) > r)
            fprintf(to,
                    "<path stroke=\"%s\" stroke-width=\"1\" d=\"M%.1f %.1fL%.1f %.1f\"/>"
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"%s\"/>\n",
                    color_of(p->model, k), list[k].at_x, list[k].at_y, list[k].x, list[k].y,
                    list[k].at_x, list[k].at_y, color_of(p->model, k));
    for (int k = 0; k < K; k++) draw_badge(to, list[k].x, list[k].y, r, k);
}

static void draw_end(FILE *to, const gallery_panel *p, const gallery_scene *s, double u) {
    const double *end = s->chosen->trajectories[p->model] + 2 * (size_t)s->ground.sizes.fut - 2;
    fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"" POINT "\" stroke=\"#fff\"/>\n",
            panel_x(p, end[1]), panel_y(p, end[0]), 3.6 * u);
}

/* Draws the weights below the panel, next to the numbers of their branches. If there are too many,
 * only the largest weights are drawn. */
static void draw_weights(FILE *to, const gallery_panel *p, const double *weights, int K, double u) {
    const int room = (int)(p->width / (30 * u)), n = K < room ? K : room;
    const double step = p->width / (double)(n > 0 ? n : 1), r = 4.8 * u;
    int taken[BJ_MAX_ATOMS] = {0};
    for (int i = 0; i < n; i++) {
        int next = 0;
        if (K <= room) next = i;
        else
            for (int k = 0; k < K; k++)
                if (!taken[k] && (taken[next] || weights[k] > weights[next])) next = k;
        taken[next] = 1;
        const double x = i * step + r + 1, y = p->height + 12 * u;
        draw_badge(to, x, y, r, next);
        char text[16];
        snprintf(text, sizeof text, "%.2f", weights[next]);
        fprintf(to, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + r + 1.5 * u,
                y + 3.4 * u, text[0] == '0' ? text + 1 : text);
    }
}

/* --------------------------------------------------------------------------------------- labels */

static void label_panel(FILE *to, const gallery_panel *p, const gallery_scene *s,
                        const gallery_look *look, double u) {
    const int K = look->K[p->model];
    fprintf(to, "<g transform=\"translate(%.1f %.1f)\">\n", p->x, p->y);
    fprintf(to, "<rect class=\"frame\" width=\"%d\" height=\"%d\"/>\n", p->width, p->height);
    fprintf(to, "<text class=\"small\" x=\"1\" y=\"%.1f\">", -4.5 * u);
    svg_text(to, look->model[p->model]);
    fprintf(to, ", K=%d</text>\n", K);
    if (K == 1) draw_end(to, p, s, u);
    else {
        draw_badges(to, p, s, K, u);
        draw_weights(to, p, s->chosen->weights[p->model], K, u);
    }
    if (p->model == BJ_GALLERY_POINT)
        svg_scale_bar(to, &p->window, (int)(6 * u), p->height - (int)(6 * u), p->width / 3,
                      "class=\"bar\"", "class=\"small halo\"");
    fputs("</g>\n", to);
}

static void caption_pair(FILE *to, const gallery_panel *p, const gallery_scene *s, int is_alone,
                         double u) {
    char letter[8], maneuvers[48];
    const bj_scene_info *info = &s->ground.info;
    const float *now = s->ground.at.focal + (size_t)(s->ground.sizes.obs - 1) * BJ_FOCAL_FEATURES;
    const double y = p->y - 19 * u;
    fprintf(to, "<text class=\"letter\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", p->x, y,
            gallery_letter(letter, p->place));
    fprintf(to, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">", p->x + 15 * u, y);
    svg_text(to, gallery_maneuvers(maneuvers, s->chosen->maneuvers));
    fprintf(to, " &#183; %.1f m/s &#183; ", hypot((double)now[2], (double)now[3]));
    if (is_alone) {
        svg_text(to, info->focal_type);
        fputs(" in ", to);
        svg_text(to, info->city);
    } else fprintf(to, "%.8s", info->scenario_id);
    fputs("</text>\n", to);
}

/* --------------------------------------------------------------------------------------- legend */

typedef struct legend {
    FILE *to;
    double x, y, unit;
} legend;

static void legend_text(legend *l, const char *text) {
    fprintf(l->to, "<text class=\"key\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", l->x,
            l->y + 3.6 * l->unit, text);
    l->x += (5.3 * (double)strlen(text) + 13) * l->unit;
}

static void legend_line(legend *l, const char *attributes, const char *text) {
    fprintf(l->to, "<path %s d=\"M%.1f %.1fh%.1f\"/>\n", attributes, l->x, l->y, 22 * l->unit);
    l->x += 28 * l->unit;
    legend_text(l, text);
}

static void legend_user(legend *l, const char *attributes, int is_small, const char *text) {
    const svg_window w = {{0, 1, 0, 0}, 3.4 * l->unit};
    fprintf(l->to, "<g transform=\"translate(%.1f %.1f)\">", l->x + 8 * l->unit, l->y);
    svg_user(l->to, &w, 0, 0, 0, is_small, attributes);
    fputs("</g>\n", l->to);
    l->x += 21 * l->unit;
    legend_text(l, text);
}

static void draw_legend(FILE *to, const gallery_page *page, const gallery_look *look) {
    const double u = page->unit;
    legend l = {to, page->margin, page->legend + 10 * u, u};
    char attributes[64];
    snprintf(attributes, sizeof attributes,
             "class=\"path\" stroke=\"" POINT "\" stroke-width=\"%.1f\"", 2.3 * u);
    legend_line(&l, "class=\"past\"", "observed past");
    legend_line(&l, attributes, "one future");
    for (int k = 0; k < (look->K[BJ_GALLERY_BRANCH] < COLORS ? look->K[BJ_GALLERY_BRANCH] : COLORS);
         k++)
        draw_badge(to, l.x + (5 + 11 * k) * u, l.y, 4.8 * u, k);
    l.x += 71 * u;
    legend_text(&l, "branches; lower weights are fainter");
    legend_user(&l, "class=\"vehicle\"", 0, "vehicle");
    legend_user(&l, "class=\"other\"", 1, "other user");
    legend_line(&l, "class=\"lane\"", "lane");
    legend_line(&l, "class=\"crosswalk\"", "crosswalk");
    fprintf(to, "<path class=\"bar\" d=\"M%.1f %.1fv%.1fm%.1f %.1fl%.1f %.1fl%.1f %.1f\"/>\n",
            l.x + 4 * u, l.y + 6 * u, -12 * u, -3 * u, 4 * u, 3 * u, -4 * u, 3 * u, 4 * u);
    l.x += 13 * u;
    legend_text(&l, "direction of travel");
}

/* ---------------------------------------------------------------------------------------- sheet */

static void put_head(FILE *to, const gallery_sheet *sheet, const gallery_page *page,
                     const gallery_look *look) {
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\">\n<title>",
            page->width, page->height, page->width, page->height);
    svg_text(to, sheet->title);
    fputs("</title>\n", to);
    put_style(to, sheet->unit, page->unit);
    fprintf(to,
            "<clipPath id=\"panel\"><rect width=\"%d\" height=\"%d\"/></clipPath>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"%.0f\" y=\"24\">",
            sheet->width, sheet->height, page->margin);
    svg_text(to, sheet->title);
    fprintf(to, "</text>\n<text class=\"note\" x=\"%.0f\" y=\"42\">", page->margin);
    svg_text(to, look->note);
    fputs("</text>\n", to);
}

bj_status gallery_svg_write(FILE *to, const gallery_sheet *sheet, const gallery_look *look,
                            bj_error *err) {
    const gallery_page page = gallery_page_of(sheet);
    const double u = sheet->unit;
    bj_status status = BJ_OK;
    gallery_panel *panels = calloc(2 * (size_t)sheet->count + 1, sizeof *panels);
    if (!panels) return cli_error(err, BJ_ENOMEM, "out of memory");
    gallery_layout(panels, sheet, look);
    put_head(to, sheet, &page, look);
    fputs("<defs>\n", to);
    for (int i = 0; i < sheet->count && status == BJ_OK; i++)
        status = define_ground(to, &panels[2 * i], &look->scenes[panels[2 * i].place], err);
    fputs("</defs>\n", to);
    for (int i = 0; i < 2 * sheet->count; i++)
        draw_panel(to, &panels[i], &look->scenes[panels[i].place], look->K[panels[i].model], u);
    fputs(GALLERY_LABELS, to);
    for (int i = 0; i < 2 * sheet->count; i++) {
        const gallery_scene *scene = &look->scenes[panels[i].place];
        if (i % 2 == 0) caption_pair(to, &panels[i], scene, sheet->count == 1, u);
        label_panel(to, &panels[i], scene, look, u);
    }
    draw_legend(to, &page, look);
    fputs("</g>\n</svg>\n", to);
    free(panels);
    return status;
}
