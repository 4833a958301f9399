/* plot_list.c - see plot_list.h. */
#include "plot_list.h"

#include <string.h>

#include "plot_panels.h"
#include "svg.h"

enum { GAP = 16, FOOT = 20 }; /* between panels of a sheet; for what the numbers are */

const report_plot report_plots[] = {
    {"summary", "Every seed of every arm",
     "One mark for each seed, a bar at the mean. The dashed line is the mean of the reference arm "
     "(specialization, if there is one); the band of another arm is that mean plus the paired-t 95 "
     "% "
     "interval of the difference over seeds: a band that misses the line is a difference between "
     "the arms. Arrows stand for values far outside of the axis. No panel uses a candidate that "
     "was "
     "chosen with the target.",
     REPORT_FROM_EVALUATION, 3, 340, 280, plot_summary_panels, plot_summary_draw},
    {"support", "How many alternatives there really are",
     "Effective number of branches, mean and sample SD over seeds, marks for the seeds: by the "
     "entropy of their probabilities, after discounting latents within 0.10 of each other, and "
     "after "
     "merging trajectories that end within 1 m of each other. Dotted: all K branches.",
     REPORT_FROM_EVALUATION, 3, 340, 270, plot_support_panels, plot_support_draw},
    {"usage", "What the branches are used for",
     "Share of all weight that each branch gets, ranked within a seed; bars are means, marks are "
     "seeds. Dashed: equal shares.",
     REPORT_FROM_EVALUATION, 4, 270, 220, plot_usage_panels, plot_usage_draw},
    {"calibration", "Does a probability mean what it says?",
     "Reliability of the likeliest maneuver (stop, straight, left, right) in ten bins: how often "
     "it "
     "was right against how probable it was said to be. On the dashed line, probabilities are "
     "true; "
     "below it, they promise too much. Gray: how many forecasts are in a bin. ECE is the mean over "
     "seeds.",
     REPORT_FROM_EVALUATION, 4, 270, 250, plot_calibration_panels, plot_calibration_draw},
    {"exchange", "What the models look at",
     "How much the trajectory Energy Score of a chosen checkpoint increases, in percent, when a "
     "part of the observation is exchanged between development scenes; bars are means, marks are "
     "seeds. A model with a bar near zero does not use that part.",
     REPORT_FROM_TRAINING, 3, 340, 270, plot_exchange_panels, plot_exchange_draw},
    {"exchange-curves", "What the models look at, epoch by epoch",
     "The same increase after every epoch, a line for each run, and two signs of trouble in the "
     "encoder: an attention that locks on one token, and a context whose norm grows without end. "
     "Either of them keeps the map out of the forecast.",
     REPORT_FROM_TRAINING, 3, 340, 300, plot_looks_panels, plot_looks_draw},
    {"learning", "Learning, epoch by epoch",
     "A line for each run; the mark is the epoch whose checkpoint was chosen, by the smallest "
     "trajectory Energy Score on development scenes. The rank counts the directions that "
     "latents really use; one would be a collapse.",
     REPORT_FROM_TRAINING, 2, 420, 330, plot_learning_panels, plot_learning_draw},
    {"maze-curves", "The graph, epoch by epoch",
     "A line for each run, epoch 0 is before training. The mark is the last epoch, which counts; a "
     "line without one is of a run whose latents have collapsed.",
     REPORT_FROM_TRAINING, 2, 420, 330, plot_maze_panels, plot_maze_draw},
    {"losses", "Training losses",
     "Each arm minimizes another objective: the heights of different panels cannot be compared, "
     "their shapes can.",
     REPORT_FROM_TRAINING, 4, 270, 210, plot_losses_panels, plot_losses_draw},
    {"audit", "Against the official drivable areas",
     "Predictions held against the polygons of the raw maps; the realized future is never read. "
     "Marks are seeds, whiskers the population SD over them. Differences have the 95 % interval of "
     "a paired bootstrap over scenes.",
     REPORT_FROM_AUDIT, 4, 340, 286, plot_audit_panels, plot_audit_draw},
    {"truth", "Against the law of the simulated futures",
     "The simulated world knows how probable every future was. Distance of the predicted "
     "distribution to it, the Energy Score it must be expected to get, true modes found within 2 "
     "m, "
     "and errors of maneuver probabilities.",
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
    switch (kind->source) {
    case REPORT_FROM_EVALUATION: break;
    case REPORT_FROM_TRAINING:
        snprintf(text, REPORT_SOURCE_SIZE,
                 report_is_maze(data) ? "training runs, held against the true graph of their maze"
                                      : "training runs and their development scenes");
        return text;
    case REPORT_FROM_AUDIT:
        snprintf(text, REPORT_SOURCE_SIZE, "map audit, %s of %s scenes: vehicles and buses",
                 cli_count(a, data->audit ? (size_t)data->audit->scenes : 0),
                 cli_count(b, data->audit ? (size_t)data->audit->total : 0));
        return text;
    case REPORT_FROM_TRUTH:
        snprintf(text, REPORT_SOURCE_SIZE, "exam on %s simulated scenes, %d draws of every mode",
                 cli_count(a, data->truth ? (size_t)data->truth->scenes : 0),
                 data->truth ? data->truth->samples : 0);
        return text;
    }
    return report_numbers(text, data);
}

/* The element, its size and the ground it is drawn on. */
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
