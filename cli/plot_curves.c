/* plot_curves.c - draws curves over epochs, with a thin line for each run and a mark at the epoch
 * whose checkpoint was chosen.
 *
 * The axis fits the values after the first tenth of the epochs, so the steep beginning may be
 * outside.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "plot_panels.h"

typedef struct curve {
    const char *title;
    int digits;
    double (*value)(const bj_epoch *epoch);
} curve;

static double dev_es(const bj_epoch *e) { return e->dev.traj_es; }
static double dev_support(const bj_epoch *e) { return e->dev.exp_entropy; }
static double rank_of(const bj_epoch *e) { return e->health.entropy_rank; }
static double decoder_ade(const bj_epoch *e) { return e->decoder_ade; }
static double train_loss(const bj_epoch *e) { return e->epoch > 0 ? e->train.total : NAN; }
static double train_rec(const bj_epoch *e) {
    return e->epoch > 0 && e->train.rec > 0 ? e->train.rec : NAN;
}

static const curve learning[] = {
    {"Development trajectory Energy Score, m " CLI_ARROW_DOWN, 4, dev_es},
    {"Reconstruction loss while training " CLI_ARROW_DOWN, 4, train_rec},
    {"Effective branches by weight", 3, dev_support},
    {"Effective rank of target latents", 2, rank_of},
    {"Decoder ADE of stage A, m " CLI_ARROW_DOWN, 4, decoder_ade},
};
enum { LEARNING = sizeof learning / sizeof *learning };

double plot_exchange_map(const bj_epoch *e) { return 100 * e->exchange.map / e->exchange.plain; }
double plot_exchange_neighbors(const bj_epoch *e) {
    return 100 * e->exchange.neighbors / e->exchange.plain;
}
double plot_exchange_focal(const bj_epoch *e) {
    return 100 * e->exchange.focal / e->exchange.plain;
}
static double attention_tokens(const bj_epoch *e) { return e->encoder.attention_tokens; }
static double context_norm(const bj_epoch *e) { return e->encoder.context_norm; }

static const curve looks[] = {
    {"Exchanged map, increase in %", 1, plot_exchange_map},
    {"Exchanged neighbors, increase in %", 1, plot_exchange_neighbors},
    {"Exchanged focal track, increase in %", 1, plot_exchange_focal},
    {"Effective number of attended tokens", 1, attention_tokens},
    {"Norm of the context", 1, context_norm},
};
enum { LOOKS = sizeof looks / sizeof *looks };

static double plan_all(const bj_epoch *e) { return 100 * e->maze.plan_all; }
static double verified(const bj_epoch *e) { return 100 * e->maze.verified_route; }
static double precision(const bj_epoch *e) { return 100 * e->maze.macro_precision; }
static double held_recall(const bj_epoch *e) { return 100 * e->maze.held_recall; }
static double cov_r(const bj_epoch *e) { return 100 * e->maze.cov_r; }
static double separated(const bj_epoch *e) { return 100 * e->maze.separated; }

static const curve maze[] = {
    {"planAll, % " CLI_ARROW_UP, 1, plan_all},
    {"Verified route, % " CLI_ARROW_UP, 1, verified},
    {"Macro transition precision, % " CLI_ARROW_UP, 1, precision},
    {"Withheld edges found, % " CLI_ARROW_UP, 1, held_recall},
    {"Raw COV-R, % " CLI_ARROW_UP, 1, cov_r},
    {"Separated pairs of cells, % " CLI_ARROW_UP, 1, separated},
    {"Effective rank of target latents", 2, rank_of},
};
enum { MAZE = sizeof maze / sizeof *maze };

/* Returns the values of a run, including epoch 0. The caller frees x, whose second half is y. */
static int run_curve(double **x, double **y, const report_run *run, const curve *c) {
    const int count = run->run ? run->epochs : 0;
    *x = count ? cli_alloc(2 * (size_t)count, sizeof **x) : NULL;
    if (!*x) return 0;
    *y = *x + count;
    for (int i = 0; i < count; i++) {
        const bj_epoch epoch = bj_run_epoch(run->run, i);
        (*x)[i] = epoch.epoch;
        (*y)[i] = c->value(&epoch);
    }
    return count;
}

typedef struct extent {
    double low, high, last; /* values after the beginning; last epoch */
} extent;

/* arm, set -1: all of them. */
static extent measure(const report_data *data, const curve *c, int arm, int set) {
    extent e = {INFINITY, -INFINITY, 0};
    for (int r = 0; r < data->runs; r++) {
        double *x, *y;
        if (arm >= 0 && data->run[r].arm != arm) continue;
        if (set >= 0 && data->arm[data->run[r].arm].set != set) continue;
        const int count = run_curve(&x, &y, &data->run[r], c);
        for (int i = 0; i < count; i++) {
            if (!isfinite(y[i])) continue;
            e.last = fmax(e.last, x[i]);
            if (x[i] < 1 || x[i] < 0.1 * x[count - 1]) continue;
            e.low = fmin(e.low, y[i]);
            e.high = fmax(e.high, y[i]);
        }
        free(x);
    }
    return e;
}

static int has_curve(const report_data *data, const curve *c, int arm, int set) {
    const extent e = measure(data, c, arm, set);
    return e.high >= e.low && e.last > 0;
}

static void draw_run(plot *p, const report_data *data, const report_run *run, const curve *c) {
    const report_arm *arm = &data->arm[run->arm];
    double *x, *y;
    char tip[PLOT_TIP_SIZE], number[PLOT_NUMBER_SIZE];
    const int count = run_curve(&x, &y, run, c);
    snprintf(tip, sizeof tip, "%s, seed %lld", arm->title, (long long)data->seed[run->seed]);
    plot_curve(p, arm->style, 1.2, 0.8, x, y, count, tip);
    if (count && run->best >= 0 && y[run->best] >= p->y0 && y[run->best] <= p->y1) {
        snprintf(tip, sizeof tip, "%s, seed %lld: %s at epoch %d, chosen", arm->title,
                 (long long)data->seed[run->seed], plot_number(number, y[run->best], c->digits),
                 (int)x[run->best]);
        plot_mark(p, arm->style, plot_x(p, x[run->best]), plot_y(p, y[run->best]), 3.2, tip);
    }
    free(x);
}

static void draw_axes(plot *p, const extent *e) {
    const double margin = 0.05 * (e->high - e->low);
    plot_range_x(p, 0, e->last);
    plot_range_y(p, e->low - margin, e->high + margin, 0);
    plot_axis_y(p, 5);
    plot_axis_x(p, e->last < 6 ? (int)e->last : 6); /* whole epochs */
    plot_axis_names(p, "epoch", NULL);
}

/* ------------------------------------------------------------------------------------ learning */

/* Returns the curve for a panel, counting only curves that have values, or NULL. */
static const curve *curve_at(const report_data *data, const curve *list, int count, int set,
                             int panel) {
    for (int i = 0; i < count; i++)
        if (has_curve(data, &list[i], -1, set) && !panel--) return &list[i];
    return NULL;
}

static int count_curves(const report_data *data, const curve *list, int count, int set) {
    int panels = 0;
    while (panels < count && curve_at(data, list, count, set, panels)) panels++;
    return panels;
}

/* Runs of one dataset, or of all (-1). */
static void draw_curves(plot *p, const report_data *data, const curve *c, int set,
                        const char *title) {
    int *styles = cli_alloc((size_t)data->arms + 1, sizeof *styles), count = 0;
    const char **names = cli_alloc((size_t)data->arms + 1, sizeof *names);
    if (c && styles && names) {
        const extent e = measure(data, c, -1, set);
        for (int a = 0; a < data->arms; a++) {
            if (!has_curve(data, c, a, set)) continue;
            styles[count] = data->arm[a].style;
            names[count++] = data->arm[a].label;
        }
        plot measure_only = *p;
        measure_only.to = NULL;
        const double legend = plot_legend(&measure_only, 0, styles, names, count);
        plot_frame(p, title, 52, 10, 34, 46 + legend);
        draw_axes(p, &e);
        for (int r = 0; r < data->runs; r++)
            if (set < 0 || data->arm[data->run[r].arm].set == set)
                draw_run(p, data, &data->run[r], c);
        plot_legend(p, p->height - legend - 4, styles, names, count);
    }
    free(styles);
    free(names);
}

int plot_learning_panels(const report_data *data) {
    return report_is_maze(data) ? 0 : count_curves(data, learning, LEARNING, -1);
}

void plot_learning_draw(plot *p, const report_data *data, int panel) {
    const curve *c = curve_at(data, learning, LEARNING, -1, panel);
    if (c) draw_curves(p, data, c, -1, c->title);
}

/* ------------------------------------------------------------------------------------ exchange */

int plot_looks_panels(const report_data *data) {
    return report_is_maze(data) ? 0 : count_curves(data, looks, LOOKS, -1);
}

void plot_looks_draw(plot *p, const report_data *data, int panel) {
    const curve *c = curve_at(data, looks, LOOKS, -1, panel);
    if (c) draw_curves(p, data, c, -1, c->title);
}

/* --------------------------------------------------------------------------------------- mazes */

/* Draws all curves of a dataset, then those of the next one. */
int plot_maze_panels(const report_data *data) {
    int panels = 0;
    if (!report_is_maze(data)) return 0;
    for (int set = 0; set < report_set_count(data); set++)
        panels += count_curves(data, maze, MAZE, set);
    return panels;
}

void plot_maze_draw(plot *p, const report_data *data, int panel) {
    const int sets = report_set_count(data);
    for (int set = 0; set < sets; set++) {
        const int here = count_curves(data, maze, MAZE, set);
        if (panel < here) {
            const curve *c = curve_at(data, maze, MAZE, set, panel);
            char title[128];
            snprintf(title, sizeof title, "%s%s%s",
                     sets > 1 ? report_set_name(data, set) : "",
                     sets > 1 ? ": " : "", c->title);
            draw_curves(p, data, c, set, title);
            return;
        }
        panel -= here;
    }
}

/* -------------------------------------------------------------------------------------- losses */

static const curve loss = {"", 4, train_loss};

static int loss_arm(const report_data *data, int panel) {
    for (int a = 0; a < data->arms; a++)
        if (has_curve(data, &loss, a, -1) && !panel--) return a;
    return -1;
}

int plot_losses_panels(const report_data *data) {
    int panels = 0;
    while (panels < data->arms && loss_arm(data, panels) >= 0) panels++;
    return panels;
}

void plot_losses_draw(plot *p, const report_data *data, int panel) {
    const int arm = loss_arm(data, panel);
    if (arm < 0) return;
    const extent e = measure(data, &loss, arm, -1);
    plot_frame(p, data->arm[arm].title, 52, 10, 34, 44);
    draw_axes(p, &e);
    for (int r = 0; r < data->runs; r++)
        if (data->run[r].arm == arm) draw_run(p, data, &data->run[r], &loss);
}
