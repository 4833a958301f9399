/* plot_calibration.c - draws one small panel for each arm: the reliability of its most likely
 * maneuver, and the use of its branches. */
#include <math.h>
#include <stdlib.h>

#include "plot_panels.h"

/* --------------------------------------------------------------------------------- calibration */

static int calibrated(const report_data *data, int panel) {
    for (int a = 0; a < data->arms; a++)
        if (data->arm[a].has_bins && !panel--) return a;
    return -1;
}

int plot_calibration_panels(const report_data *data) {
    int panels = 0;
    while (calibrated(data, panels) >= 0) panels++;
    return panels;
}

/* Draws the number of scenes in each bin along the bottom. */
static void draw_counts(plot *p, const report_arm *arm) {
    double most = 0;
    char count[CLI_COUNT_SIZE], tip[PLOT_TIP_SIZE];
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) most = fmax(most, arm->bins[b].count);
    for (int b = 0; b < BJ_CALIBRATION_BINS && most > 0; b++) {
        const double left = plot_x(p, b / (double)BJ_CALIBRATION_BINS);
        const double right = plot_x(p, (b + 1) / (double)BJ_CALIBRATION_BINS);
        const double height = 0.22 * (p->bottom - p->top) * arm->bins[b].count / most;
        if (!(arm->bins[b].count > 0)) continue;
        snprintf(tip, sizeof tip, "probability %.1f to %.1f: %s forecasts", b / 10., (b + 1) / 10.,
                 cli_count(count, (size_t)arm->bins[b].count));
        plot_area(p, PLOT_STYLE_OTHER, 0.3, left + 1, p->bottom - height, right - left - 2, height,
                  tip);
    }
}

void plot_calibration_draw(plot *p, const report_data *data, int panel) {
    const int number = calibrated(data, panel), ece = bj_metric_find("ece");
    if (number < 0) return;
    const report_arm *arm = &data->arm[number];
    double x[BJ_CALIBRATION_BINS], y[BJ_CALIBRATION_BINS];
    char tip[PLOT_TIP_SIZE], text[PLOT_NUMBER_SIZE];
    int count = 0;
    plot_frame(p, arm->title, 42, 12, 34, 44);
    plot_range_x(p, 0, 1);
    plot_range_y(p, 0, 1, 0);
    plot_axis_y(p, 5);
    plot_axis_x(p, 5);
    plot_axis_names(p, "probability of the most likely maneuver", NULL);
    draw_counts(p, arm);
    plot_rule(p, PLOT_INK, 1, "4 3", plot_x(p, 0), plot_y(p, 0), plot_x(p, 1), plot_y(p, 1));
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
        if (!isfinite(arm->bins[b].confidence) || !isfinite(arm->bins[b].hits)) continue;
        x[count] = arm->bins[b].confidence;
        y[count++] = arm->bins[b].hits;
    }
    plot_curve(p, arm->style, 1.6, 0.9, x, y, count, NULL);
    for (int i = 0; i < count; i++) {
        snprintf(tip, sizeof tip, "%s: predicted %.3f, observed %.3f", arm->title, x[i], y[i]);
        plot_mark(p, arm->style, plot_x(p, x[i]), plot_y(p, y[i]), 4, tip);
    }
    const bj_summary s = report_summary(data, number, ece);
    if (s.n) {
        plot_text(p, p->left + 8, p->top + 16, "start", PLOT_INK, "ECE %s",
                  plot_number(text, s.mean, 4));
    }
}

/* --------------------------------------------------------------------------------------- usage */

static int used(const report_data *data, int panel) {
    for (int a = 0; a < data->arms; a++)
        if (data->arm[a].usage && data->arm[a].atoms > 1 && !panel--) return a;
    return -1;
}

int plot_usage_panels(const report_data *data) {
    int panels = 0;
    while (used(data, panels) >= 0) panels++;
    return panels;
}

static int by_share(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Branch 1 of one seed does not correspond to branch 1 of another seed, so branches are ranked by
 * their share. */
void plot_usage_draw(plot *p, const report_data *data, int panel) {
    const int number = used(data, panel);
    if (number < 0) return;
    const report_arm *arm = &data->arm[number];
    const int K = arm->atoms;
    double mean[BJ_MAX_ATOMS] = {0}, shares[BJ_MAX_ATOMS], most = 1. / K;
    char tip[PLOT_TIP_SIZE];
    int seeds = 0;
    for (int s = 0; s < data->seeds; s++) {
        if (!isfinite(arm->usage[(size_t)s * (size_t)K])) continue;
        for (int k = 0; k < K; k++) shares[k] = arm->usage[(size_t)s * (size_t)K + (size_t)k];
        qsort(shares, (size_t)K, sizeof *shares, by_share);
        for (int k = 0; k < K; k++) mean[k] += shares[k];
        most = fmax(most, shares[0]);
        seeds++;
    }
    plot_frame(p, arm->title, 46, 10, 34, 44);
    plot_range_x(p, 0, K);
    plot_range_y(p, 0, most, 1);
    plot_axis_y(p, 4);
    plot_rule(p, PLOT_SOFT, 1, NULL, p->left, p->bottom, p->right, p->bottom);
    plot_axis_names(p, "branches, most used first", NULL);
    const double width = (p->right - p->left) / K, half = fmin(16, 0.38 * width);
    for (int k = 0; k < K && seeds; k++) {
        const double x = plot_x(p, k + 0.5), y = plot_y(p, mean[k] / seeds);
        snprintf(tip, sizeof tip,
                 "%s: the branch with rank %d by weight has %.3f of the total weight", arm->title,
                 k + 1, mean[k] / seeds);
        plot_area(p, arm->style, 0.35, x - half, y, 2 * half, p->bottom - y, tip);
        if (K <= 12) plot_text(p, x, p->bottom + 16, "middle", PLOT_SOFT, "%d", k + 1);
    }
    for (int s = 0; s < data->seeds; s++) {
        if (!isfinite(arm->usage[(size_t)s * (size_t)K])) continue;
        for (int k = 0; k < K; k++) shares[k] = arm->usage[(size_t)s * (size_t)K + (size_t)k];
        qsort(shares, (size_t)K, sizeof *shares, by_share);
        for (int k = 0; k < K; k++) {
            const double shift = (s - (data->seeds - 1) / 2.) * fmin(4, half / data->seeds);
            snprintf(tip, sizeof tip, "%s, seed %lld: %.3f", arm->title, (long long)data->seed[s],
                     shares[k]);
            plot_mark(p, arm->style, plot_x(p, k + 0.5) + shift, plot_y(p, shares[k]), 2.4, tip);
        }
    }
    plot_rule(p, PLOT_INK, 1, "4 3", p->left, plot_y(p, 1. / K), p->right, plot_y(p, 1. / K));
}
