/* maze_audit_draw.c - see maze_audit_draw.h. */
#include "maze_audit_draw.h"

#include <math.h>
#include <string.h>

#include "maze_draw.h"
#include "plot.h"
#include "svg.h"

static void begin(FILE *to, const char *label, double width, double height) {
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, 'DejaVu Sans', "
            "sans-serif\" font-size=\"13\" aria-label=\"",
            width, height, width, height);
    svg_text(to, label);
    fprintf(to, "\">\n<rect fill=\"#ffffff\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
}

/* ---------------------------------------------------------------------------------------- curves
 */

enum { PANELS = 4, LINES = 4, PANEL_WIDTH = 420, PANEL_HEIGHT = 330, GAP = 16 };
/* Determines for which arms a line is drawn: every arm, arms with several rollouts, or only the
 * first arm. */
typedef enum who { EACH_ARM, EACH_SET, FIRST_ARM } who;

static const struct {
    const char *title;
    int from_zero_to_one;
    struct {
        const char *value, *label;
        who of;
        int style; /* style of the first arm; the second arm has the style four places later */
    } line[LINES];
} panels[PANELS] = {
    {"Distance to the latent of the true frame",
     0,
     {{"distance", "by mass", EACH_ARM, 0},
      {"best_distance", "nearest", EACH_SET, 1},
      {"stay_distance", "staying", FIRST_ARM, 6}}},
    {"Hits: cosine above 0.5",
     1,
     {{"hit", "contexts", EACH_ARM, 0}, {"hit_mass", "mass", EACH_SET, 1}}},
    {"Position error of the probe",
     0,
     {{"error", "by mass", EACH_ARM, 0},
      {"best_error", "nearest", EACH_SET, 1},
      {"stay_error", "staying", FIRST_ARM, 6},
      {"probe_error", "probe alone", FIRST_ARM, 7}}},
    {"Mass inside walls",
     1,
     {{"wall_mass", "by mass", EACH_ARM, 0}, {"probe_wall", "probe alone", FIRST_ARM, 7}}},
};

static int value_index(const char *name) {
    int i = 0;
    while (bj_rollout_name(i) && strcmp(bj_rollout_name(i), name)) i++;
    return i;
}

static double value_at(const bj_rollout_audit *a, int arm, const char *name, int h) {
    return bj_rollout_value(&a->arm[arm].steps[h], value_index(name));
}

typedef struct entry {
    int arm, style;
    const char *value;
    char label[80];
} entry;

/* The lines of a panel. */
static int list_lines(entry *out, const bj_rollout_audit *a, int panel) {
    int n = 0;
    for (int i = 0; i < LINES && panels[panel].line[i].value; i++)
        for (int arm = 0; arm < a->arms; arm++) {
            const who of = panels[panel].line[i].of;
            if ((of == FIRST_ARM && arm) || (of == EACH_SET && a->arm[arm].L < 2)) continue;
            entry *e = &out[n++];
            e->arm = arm;
            e->style = panels[panel].line[i].style + (of == FIRST_ARM ? 0 : 4 * arm);
            e->value = panels[panel].line[i].value;
            if (of == FIRST_ARM)
                snprintf(e->label, sizeof e->label, "%s", panels[panel].line[i].label);
            else
                snprintf(e->label, sizeof e->label, "%s, %s", a->arm[arm].arm,
                         panels[panel].line[i].label);
        }
    return n;
}

static void draw_panel(plot *p, const bj_rollout_audit *a, int panel) {
    entry list[LINES * BJ_ROLLOUT_ARMS];
    const int n = list_lines(list, a, panel), H = a->horizon;
    int styles[LINES * BJ_ROLLOUT_ARMS];
    const char *names[LINES * BJ_ROLLOUT_ARMS];
    double x[BJ_ROLLOUT_MAX_HORIZON], y[BJ_ROLLOUT_MAX_HORIZON], high = 0;
    for (int i = 0; i < n; i++) {
        styles[i] = list[i].style;
        names[i] = list[i].label;
        for (int h = 0; h < H; h++) high = fmax(high, value_at(a, list[i].arm, list[i].value, h));
    }
    plot measure_only = *p;
    measure_only.to = NULL;
    const double legend = plot_legend(&measure_only, 0, styles, names, n);
    plot_frame(p, panels[panel].title, 52, 14, 34, 46 + legend);
    plot_range_x(p, 1, H > 1 ? H : 2);
    plot_range_y(p, 0, panels[panel].from_zero_to_one ? 1 : 1.05 * high, 0);
    plot_axis_y(p, 5);
    plot_axis_x(p, H < 8 ? H : 8);
    plot_axis_names(p, "frames after the context", NULL);
    for (int i = 0; i < n; i++) {
        for (int h = 0; h < H; h++) {
            x[h] = h + 1;
            y[h] = value_at(a, list[i].arm, list[i].value, h);
        }
        plot_curve(p, styles[i], 1.8, 1, x, y, H, names[i]);
        for (int h = 0; h < H && H <= 16; h++)
            if (isfinite(y[h])) plot_mark(p, styles[i], plot_x(p, x[h]), plot_y(p, y[h]), 3, NULL);
    }
    plot_legend(p, p->height - legend - 4, styles, names, n);
}

void maze_audit_curves(FILE *to, const bj_rollout_audit *a) {
    const double width = 2 * PANEL_WIDTH + 3 * GAP, height = 2 * PANEL_HEIGHT + 3 * GAP + 20;
    plot sheet = {.to = to, .width = width, .height = height};
    char count[CLI_COUNT_SIZE];
    begin(to, "Rollouts on held-out episodes", width, height);
    for (int i = 0; i < PANELS; i++) {
        plot p = {
            .to = to, .width = PANEL_WIDTH, .height = PANEL_HEIGHT, .letter = (char)('a' + i)};
        fprintf(to, "<g transform=\"translate(%d %d)\">\n", GAP + i % 2 * (PANEL_WIDTH + GAP),
                GAP + i / 2 * (PANEL_HEIGHT + GAP));
        draw_panel(&p, a, i);
        fputs("</g>\n", to);
    }
    plot_text(&sheet, GAP + 6, height - GAP, "start", PLOT_SOFT,
              "means over all %s eligible contexts in %lld held-out episodes, "
              "maze %s, %d steps between frames",
              cli_count(count, (size_t)a->contexts), (long long)a->held_episodes, a->maze->name,
              a->stride);
    fputs("</svg>\n", to);
}

/* --------------------------------------------------------------------------------------- context
 */

static double pixel(double x) { return (x + 1.5 * BJ_MAZE_UNIT) / BJ_MAZE_UNIT * MAZE_UNIT; }

static const double *at(const bj_rollout_audit *a, const bj_rollout_arm *arm, int h, int l) {
    return h ? arm->paths + 2 * ((size_t)(h - 1) * (size_t)arm->L + (size_t)l) : a->truth;
}

/* Everything that is drawn for an arm is clipped, because probed positions may be outside of the
 * maze. */
static svg_bounds extent_of(const bj_rollout_audit *a) {
    svg_bounds b = {0, a->maze->cols * MAZE_UNIT, 0, a->maze->rows * MAZE_UNIT};
    for (int i = 0; i < a->arms; i++)
        for (int h = 1; h <= a->horizon; h++)
            for (int l = 0; l < a->arm[i].L; l++) {
                const double *q = at(a, &a->arm[i], h, l);
                b.x0 = fmin(b.x0, pixel(q[0]) - 8), b.x1 = fmax(b.x1, pixel(q[0]) + 8);
                b.y0 = fmin(b.y0, pixel(q[1]) - 8), b.y1 = fmax(b.y1, pixel(q[1]) + 8);
            }
    return b;
}

static void draw_rollouts(FILE *to, const bj_rollout_audit *a, const bj_rollout_arm *arm) {
    for (int l = 0; l < arm->L; l++) {
        const double root = sqrt(arm->mass[l]); /* area, not width, is the mass */
        fprintf(to,
                "<path class=\"a-rollout\" fill=\"none\" stroke=\"#0072b2\" stroke-opacity=\"0.7\" "
                "stroke-width=\"%.2f\" d=\"",
                0.5 + 3 * root);
        for (int h = 0; h <= a->horizon; h++)
            fprintf(to, "%s%.1f %.1f", h ? "L" : "M", pixel(at(a, arm, h, l)[0]),
                    pixel(at(a, arm, h, l)[1]));
        fprintf(to, "\"><title>rollout %d, mass %.3f</title></path>\n", l, arm->mass[l]);
    }
    for (int l = 0; l < arm->L; l++)
        for (int h = 1; h <= a->horizon; h++) {
            const double *q = at(a, arm, h, l), x = pixel(q[0]), y = pixel(q[1]);
            const double r = 1.5 + 6 * sqrt(arm->mass[l]);
            if (bj_maze_cell(a->maze, q[0], q[1]) >= 0)
                fprintf(to,
                        "<path class=\"a-node\" fill=\"#0072b2\" fill-opacity=\"0.85\" "
                        "stroke=\"#ffffff\" stroke-width=\"0.8\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\">",
                        x, y - r, 0.9 * r, 1.6 * r, -1.8 * r);
            else
                fprintf(to,
                        "<path class=\"a-wall\" fill=\"none\" stroke=\"#c4161c\" "
                        "stroke-width=\"2\" d=\"M%.1f %.1fl%.1f %.1fM%.1f %.1fl%.1f %.1f\">",
                        x - r, y - r, 2 * r, 2 * r, x - r, y + r, 2 * r, -2 * r);
            fprintf(to, "<title>rollout %d, frame %d, mass %.3f: (%.2f, %.2f)</title></path>\n", l,
                    h, arm->mass[l], q[0], q[1]);
        }
}

static void draw_truth(FILE *to, const bj_rollout_audit *a) {
    fputs("<path class=\"a-truth\" fill=\"none\" stroke=\"#007a53\" stroke-width=\"2.4\" d=\"", to);
    for (int h = 0; h <= a->horizon; h++)
        fprintf(to, "%s%.1f %.1f", h ? "L" : "M", pixel(a->truth[2 * h]),
                pixel(a->truth[2 * h + 1]));
    fputs("\"/>\n", to);
    for (int h = 0; h <= a->horizon; h++) {
        const double x = pixel(a->truth[2 * h]), y = pixel(a->truth[2 * h + 1]);
        fprintf(to,
                "<circle fill=\"%s\" stroke=\"#007a53\" stroke-width=\"2\" cx=\"%.1f\" cy=\"%.1f\" "
                "r=\"8\"/><text fill=\"%s\" font-size=\"10\" text-anchor=\"middle\" x=\"%.1f\" "
                "y=\"%.1f\">%d</text>\n",
                h ? "#ffffff" : "#007a53", x, y, h ? "#1c2530" : "#ffffff", x, y + 3.5, h);
    }
}

static void draw_legend(FILE *to, const bj_rollout_audit *a, double x, double y) {
    fprintf(to, "<g transform=\"translate(%.0f %.0f)\" fill=\"#1c2530\">\n", x, y);
    fputs("<circle fill=\"#ffffff\" stroke=\"#007a53\" stroke-width=\"2\" cx=\"10\" cy=\"0\" "
          "r=\"7\"/>",
          to);
    fprintf(to,
            "<text x=\"28\" y=\"4\">true frames, %d steps apart; frame 0 is the context</text>\n",
            a->stride);
    fputs("<path fill=\"#0072b2\" d=\"M10 13l6 11h-12z\"/><text x=\"28\" y=\"24\">"
          "rollout positions from a linear probe; size: router mass at the first frame</text>\n"
          "<path fill=\"none\" stroke=\"#c4161c\" stroke-width=\"2\" d=\"M4 34l12 12M4 46l12 "
          "-12\"/><text x=\"28\" y=\"44\">"
          "position inside a wall; lines connect frames and are not paths</text>\n"
          "</g>\n",
          to);
}

void maze_audit_context(FILE *to, const bj_rollout_audit *a) {
    const svg_bounds b = extent_of(a);
    const double wide = b.x1 - b.x0, high = b.y1 - b.y0;
    const double width = a->arms * (wide + GAP) + GAP, height = high + 2 * GAP + 20 + 74;
    char label[120];
    snprintf(label, sizeof label, "First context in the fixed order: episode %lld, row %lld",
             (long long)a->first_episode, (long long)a->first_row);
    begin(to, label, width, height);
    for (int i = 0; i < a->arms; i++) {
        const bj_rollout_arm *arm = &a->arm[i];
        fprintf(to,
                "<text x=\"%.0f\" y=\"%d\" fill=\"#1c2530\" font-weight=\"600\">%s, seed %llu: "
                "%d rollout%s</text>\n<g transform=\"translate(%.1f %.1f)\">\n",
                GAP + i * (wide + GAP), GAP + 8, arm->arm, (unsigned long long)arm->seed, arm->L,
                arm->L == 1 ? "" : "s", GAP + i * (wide + GAP) - b.x0, GAP + 20 - b.y0);
        maze_draw_ground(to, a->maze);
        draw_rollouts(to, a, arm);
        draw_truth(to, a);
        fputs("</g>\n", to);
    }
    draw_legend(to, a, GAP, high + 2 * GAP + 24);
    fputs("</svg>\n", to);
}
