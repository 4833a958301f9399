/* plot_list.c - see plot_list.h. */
#include "plot_list.h"

#include <string.h>

#include "plot_panels.h"
#include "svg.h"

enum { GAP = 16, FOOT = 20 }; /* between panels of a sheet; for what the numbers are */

const report_plot report_plots[] = {
    {"summary", "Every seed of every arm",
     "Marks are seeds, and bars are means. "
     "The dashed line is the mean of the reference arm, which is specialization if it exists. "
     "The band of another arm is that mean plus the paired-t 95 % interval "
     "of the difference over seeds. "
     "If a band does not contain the line, the arms differ. "
     "Arrows mark values far outside the axis. "
     "No panel uses a branch that was chosen with hindsight.",
     REPORT_FROM_EVALUATION, 3, 340, 280, plot_summary_panels, plot_summary_draw},
    {"support", "Effective number of branches",
     "Mean and sample SD, over seeds, of the effective number of branches. Marks are seeds. "
     "From left to right: by the entropy of the weights, "
     "after merging latents within 0.10 of each other, "
     "and after merging trajectories that end within 1 m of each other. "
     "The dotted line is the number of branches K.",
     REPORT_FROM_EVALUATION, 3, 340, 270, plot_support_panels, plot_support_draw},
    {"usage", "Use of the branches",
     "Share of each branch in the total weight, sorted within each seed. "
     "Bars are means, and marks are seeds. The dashed line marks equal shares.",
     REPORT_FROM_EVALUATION, 4, 270, 220, plot_usage_panels, plot_usage_draw},
    {"calibration", "Calibration",
     "Reliability of the most likely maneuver (stop, straight, left, right): "
     "observed frequency against predicted probability, in ten bins. "
     "Forecasts on the dashed line are calibrated; forecasts below it are overconfident. "
     "Gray bars show the number of forecasts in each bin. The ECE is the mean over seeds.",
     REPORT_FROM_EVALUATION, 4, 270, 250, plot_calibration_panels, plot_calibration_draw},
    {"exchange", "Use of the inputs",
     "Increase of the trajectory Energy Score of the chosen checkpoint, in percent, "
     "when an input is exchanged between development scenes. "
     "Bars are means, and marks are seeds. "
     "If a bar is near zero, the model does not use that input.",
     REPORT_FROM_TRAINING, 3, 340, 270, plot_exchange_panels, plot_exchange_draw},
    {"exchange-curves", "Use of the inputs by epoch",
     "Increase of the Energy Score after each epoch, with one line per run. "
     "The other panels show two problems of the encoder: "
     "attention to a single token, and a context norm that keeps growing. "
     "A model with either problem cannot use the map.",
     REPORT_FROM_TRAINING, 3, 340, 300, plot_looks_panels, plot_looks_draw},
    {"learning", "Learning curves",
     "One line per run. The mark is the epoch of the chosen checkpoint, "
     "which has the lowest trajectory Energy Score on the development scenes. "
     "The effective rank is the number of directions that the latents use; "
     "a rank of one means that they have collapsed.",
     REPORT_FROM_TRAINING, 2, 420, 330, plot_learning_panels, plot_learning_draw},
    {"maze-curves", "Graph metrics by epoch",
     "One line per run; epoch 0 is before training. "
     "The mark is the last epoch, which is the result. "
     "A line without a mark belongs to a run that has no score because its latents collapsed.",
     REPORT_FROM_TRAINING, 2, 420, 330, plot_maze_panels, plot_maze_draw},
    {"losses", "Training losses",
     "Arms minimize different objectives, so values cannot be compared between panels.",
     REPORT_FROM_TRAINING, 4, 270, 210, plot_losses_panels, plot_losses_draw},
    {"audit", "Map audit",
     "Comparison of the forecasts with the drivable areas of the raw maps. "
     "The true future is not read. "
     "Marks are seeds, and whiskers are the population SD over seeds. "
     "Differences have the 95 % interval of a paired bootstrap over scenes.",
     REPORT_FROM_AUDIT, 4, 340, 286, plot_audit_panels, plot_audit_draw},
    {"truth", "Comparison with the true distribution",
     "The true distribution of each simulated future is known. "
     "The panels show the distance between the predicted and the true distribution, "
     "the expected Energy Score, the share of true modes found within 2 m, "
     "and the errors of the maneuver probabilities.",
     REPORT_FROM_TRUTH, 3, 340, 286, plot_truth_panels, plot_truth_draw},
    {NULL, NULL, NULL, REPORT_FROM_EVALUATION, 0, 0, 0, NULL, NULL},
};

const report_plot *report_plot_find(const char *name) {
    for (const report_plot *kind = report_plots; kind->name; kind++)
        if (!strcmp(kind->name, name)) return kind;
    return NULL;
}

const char *report_plot_source(char text[REPORT_SOURCE_SIZE], const report_plot *kind,
                               const report_data *data) {
    char a[CLI_COUNT_SIZE], b[CLI_COUNT_SIZE];
    const char *outside = data->locked ? "; a separate file, not part of the locked evaluation" : "";
    switch (kind->source) {
    case REPORT_FROM_EVALUATION: break;
    case REPORT_FROM_TRAINING:
        snprintf(text, REPORT_SOURCE_SIZE,
                 report_is_maze(data) ? "training runs, compared with the true graph of their maze"
                                      : "training runs and their development scenes");
        return text;
    case REPORT_FROM_AUDIT:
        snprintf(text, REPORT_SOURCE_SIZE, "map audit, %s of %s scenes (vehicles and buses)%s",
                 cli_count(a, data->audit ? (size_t)data->audit->scenes : 0),
                 cli_count(b, data->audit ? (size_t)data->audit->total : 0), outside);
        return text;
    case REPORT_FROM_TRUTH:
        snprintf(text, REPORT_SOURCE_SIZE, "%s simulated scenes, %d draws per mode%s",
                 cli_count(a, data->truth ? (size_t)data->truth->scenes : 0),
                 data->truth ? data->truth->samples : 0, outside);
        return text;
    }
    return report_numbers(text, data);
}

/* Writes the svg element with its size, and the background. */
static void begin(FILE *to, const char *label, int width, int height) {
    fprintf(to,
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, 'DejaVu Sans', "
            "sans-serif\" aria-label=\"",
            width, height, width, height);
    svg_text(to, label);
    fprintf(to, "\">\n<rect class=\"p-ground\" fill=\"#ffffff\" width=\"%d\" height=\"%d\"/>\n",
            width, height);
}

void report_plot_panel(FILE *to, const report_plot *kind, const report_data *data, int panel) {
    plot p = {.to = to, .width = kind->width, .height = kind->height};
    char label[PLOT_TIP_SIZE];
    snprintf(label, sizeof label, "%s, panel %d of %d", kind->title, panel + 1, kind->panels(data));
    begin(to, label, kind->width, kind->height);
    kind->draw(&p, data, panel);
    fputs("</svg>\n", to);
}

void report_plot_sheet(FILE *to, const report_plot *kind, const report_data *data) {
    const int panels = kind->panels(data);
    const int columns = panels < kind->columns ? panels : kind->columns;
    const int rows = columns ? (panels + columns - 1) / columns : 0;
    char numbers[REPORT_SOURCE_SIZE], about[REPORT_SOURCE_SIZE + BJ_NAME_SIZE + 4];
    const int width = columns * (kind->width + GAP) + GAP;
    const int height = rows * (kind->height + GAP) + GAP + FOOT;
    report_plot_source(numbers, kind, data);
    if (data->runs) snprintf(about, sizeof about, "%s: %s", data->name, numbers);
    else snprintf(about, sizeof about, "%s", numbers);
    begin(to, kind->title, width, height);
    plot sheet = {.to = to, .width = width, .height = height};
    for (int i = 0; i < panels; i++) {
        const int x = GAP + i % columns * (kind->width + GAP);
        const int y = GAP + i / columns * (kind->height + GAP);
        plot p = {.to = to, .width = kind->width, .height = kind->height};
        if (panels > 1 && i < 26) p.letter = (char)('a' + i);
        fprintf(to, "<g transform=\"translate(%d %d)\">\n", x, y);
        kind->draw(&p, data, i);
        fputs("</g>\n", to);
    }
    plot_text(&sheet, GAP + 6, height - GAP, "start", PLOT_SOFT, "%s", about);
    fputs("</svg>\n", to);
}
