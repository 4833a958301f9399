/* test_plot.c - tests that plots show the right numbers. Positions are read back from the SVG and
 * converted with its own axes. The paper's numbers must equal those in data/paper. No file may
 * contain NaN or infinity.
 */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include <stdlib.h>
#include <unistd.h>

#include "embedded.h"
#include "plot.h"
#include "plot_columns.h"
#include "plot_list.h"
#include "test.h"

/* ---------------------------------------------------------------------------------- reading SVG */

/* What `draw` writes; the caller frees it. */
typedef struct memory {
    char *text;
    size_t size;
    FILE *stream;
} memory;

static FILE *begin(memory *m) {
    m->text = NULL;
    m->stream = open_memstream(&m->text, &m->size);
    if (!m->stream) exit(1);
    return m->stream;
}

static const char *end(memory *m) {
    fclose(m->stream);
    return m->text;
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

/* Checks that elements are nested correctly, every attribute is quoted, and text has no bare '<' or
 * '&'. */
static int well_formed(const char *text) {
    char names[64][16];
    int depth = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '&' && strncmp(at, "&amp;", 5) && strncmp(at, "&lt;", 4) &&
            strncmp(at, "&gt;", 4) && strncmp(at, "&quot;", 6))
            return 0;
        if (*at != '<') continue;
        const int closing = at[1] == '/';
        char name[16];
        if (sscanf(at + 1 + closing, "%15[a-z]", name) != 1) return 0;
        if (closing && (!depth || strcmp(names[--depth], name))) return 0;
        int quoted = 0;
        for (at++; *at && (quoted || *at != '>'); at++) {
            if (*at == '"') quoted = !quoted;
            if (*at == '<') return 0;
        }
        if (!*at || quoted) return 0;
        if (!closing && at[-1] != '/') {
            if (depth == 64) return 0;
            snprintf(names[depth++], 16, "%s", name);
        }
    }
    return depth == 0;
}

/* Computes the axis of a panel, value = a + b * pixel, from its lowest and highest grid lines. */
typedef struct axis {
    double a, b;
    int lines;
} axis;

static axis read_axis(const char *svg) {
    double pixel[64], value[64];
    axis x = {0, 0, 0};
    for (const char *at = svg; (at = strstr(at, "class=\"p-grid\"")) && x.lines < 64; at++) {
        double y;
        char number[40];
        const char *text = strstr(at, "<text");
        if (sscanf(strstr(at, " d=\"M") + 5, "%*f %lfH", &y) != 1 || !text) continue;
        text = strchr(text, '>') + 1;
        const int minus = !strncmp(text, "\xe2\x88\x92", 3);
        if (sscanf(text + 3 * minus, "%39[^<]", number) != 1) continue;
        pixel[x.lines] = y;
        value[x.lines++] = minus ? -atof(number) : atof(number);
    }
    if (x.lines >= 2) {
        const int n = x.lines - 1;
        x.b = (value[n] - value[0]) / (pixel[n] - pixel[0]);
        x.a = value[0] - x.b * pixel[0];
    }
    return x;
}

/* Returns the number after the attribute, in the element whose tooltip or text begins at `tip`. */
static double attribute_before(const char *svg, const char *tip, const char *element,
                               const char *attribute) {
    const char *found = strstr(svg, tip), *at = NULL;
    for (const char *next = svg; found && (next = strstr(next, element)) && next < found; next++)
        at = next;
    const char *where = at ? strstr(at, attribute) : NULL;
    return where && where < found ? atof(where + strlen(attribute)) : NAN;
}

/* ------------------------------------------------------------------------------------ hand-made */

enum { ARMS = 4, SEEDS = 3 };

/* Creates a table of four arms and three seeds with only two metrics, traj_es and brier. */
static report_data *make_data(void) {
    static const char *const names[ARMS] = {"fullset", "specialization", "point", "a<b&\"c"};
    static const double es[ARMS][SEEDS] = {
        {2.0, 2.1, 1.9}, {2.3, 2.5, 2.4}, {9.0, 9.1, 9.2}, {2.2, NAN, 2.6}};
    report_data *d = calloc(1, sizeof *d);
    const int metrics = bj_metric_count(), traj_es = bj_metric_find("traj_es");
    const int brier = bj_metric_find("brier");
    d->arms = ARMS;
    d->seeds = SEEDS;
    d->arm = calloc(ARMS, sizeof *d->arm);
    d->seed = calloc(SEEDS, sizeof *d->seed);
    d->value = calloc((size_t)(ARMS * metrics * SEEDS), sizeof *d->value);
    for (int i = 0; i < ARMS * metrics * SEEDS; i++) d->value[i] = NAN;
    for (int a = 0; a < ARMS; a++) {
        report_arm *arm = &d->arm[a];
        snprintf(arm->name, sizeof arm->name, "%s", names[a]);
        snprintf(arm->title, sizeof arm->title, "%s", names[a]);
        arm->label = plot_label(arm->name);
        arm->style = plot_style(names[a], a);
        arm->forecasts = 1;
        arm->atoms = a == 2 ? 1 : 6;
        for (int s = 0; s < SEEDS; s++) {
            d->value[(a * metrics + traj_es) * SEEDS + s] = es[a][s];
            d->value[(a * metrics + brier) * SEEDS + s] = 0.1 + 0.01 * a;
        }
    }
    for (int s = 0; s < SEEDS; s++) d->seed[s] = 10 + s;
    snprintf(d->name, sizeof d->name, "hand-made");
    d->fullset = 0;
    d->specialization = 1;
    return d;
}

static void test_summary(void) {
    report_data *d = make_data();
    const report_plot *kind = report_plot_find("summary");
    memory m;
    CHECK(kind->panels(d) == 2); /* what was not measured has no panel */
    report_plot_panel(begin(&m), kind, d, 0);
    const char *svg = end(&m);
    CHECK(well_formed(svg));
    const axis x = read_axis(svg);
    CHECK_MSG(x.lines >= 3, "%d grid lines", x.lines);
    /* The path of a circle begins at its leftmost point, which has the same height as the
     * center. */
    static const double fullset[SEEDS] = {2.0, 2.1, 1.9};
    for (int s = 0; s < SEEDS; s++) {
        char tip[64];
        snprintf(tip, sizeof tip, "fullset, seed %d: %.4f", 10 + s, fullset[s]);
        const char *mark = strstr(svg, tip);
        CHECK_MSG(mark != NULL, "no mark '%s'", tip);
        if (!mark) continue;
        while (strncmp(mark, " d=\"M", 5)) mark--;
        double pixel = NAN;
        sscanf(mark + 5, "%*f %lf", &pixel);
        CHECK_NEAR(x.a + x.b * pixel, fullset[s], 0.006);
    }
    CHECK(!strstr(svg, "a<b"));
    CHECK_CONTAINS(svg, "a&lt;b&amp;&quot;c, seed 10: 2.2000");
    CHECK(!strstr(svg, "c, seed 11")); /* not measured */

    /* The band is the mean of the reference plus the paired-t interval, -0.4 +- 4.3027
     * 0.1/sqrt(3). */
    bj_comparison c;
    CHECK(report_compare(&c, d, 0, 1, bj_metric_find("traj_es")));
    CHECK_NEAR(c.low, -0.4 - 4.302653 * 0.1 / sqrt(3), 1e-6);
    const char *tip = "fullset minus specialization: \xe2\x88\x92"
                      "0.4000 [";
    const double top = attribute_before(svg, tip, "<rect", " y=\"");
    const double height = attribute_before(svg, tip, "<rect", " height=\"");
    CHECK_NEAR(x.a + x.b * top, 2.4 + c.high, 0.006);
    CHECK_NEAR(x.a + x.b * (top + height), 2.4 + c.low, 0.012);
    CHECK(!strstr(svg, "specialization less"));
    CHECK_CONTAINS(svg, "dashed: specialization");
    const char *dashed = strstr(svg, "stroke-dasharray=\"4 3\"");
    double line = NAN;
    CHECK(dashed && sscanf(strstr(dashed, " d=\"M"), " d=\"M%*f %lf", &line) == 1);
    CHECK_NEAR(x.a + x.b * line, 2.4, 0.006);

    /* A single outlier does not stretch the axis. It is drawn outside instead. */
    CHECK_CONTAINS(svg, "point: mean 9.1000, outside the axis");
    CHECK(x.a + x.b * 50 < 4);
    free(m.text);
    report_data_free(d);
}

static void test_all_plots(void) {
    report_data *d = make_data();
    memory m, again;
    report_audit *audit = d->audit = calloc(1, sizeof *audit);
    audit->arm = calloc(2, sizeof *audit->arm);
    audit->arms = 2;
    audit->a = 1;
    audit->b = 0;
    audit->scenes = 90;
    audit->total = 100;
    for (int i = 0; i < 2; i++) {
        report_audit_arm *arm = &audit->arm[i];
        snprintf(arm->name, sizeof arm->name, i ? "fullset" : "point");
        snprintf(arm->title, sizeof arm->title, i ? "full-set" : "point");
        arm->seeds = 2;
        arm->value = calloc(2 * BJ_AUDIT_METRICS, sizeof *arm->value);
        arm->seed = calloc(2, sizeof *arm->seed);
        for (int k = 0; k < BJ_AUDIT_METRICS; k++) {
            arm->value[k] = arm->value[BJ_AUDIT_METRICS + k] = arm->mean[k] = 0.5 + 0.25 * i;
            audit->difference[k] = (bj_bootstrap){0.25, 0.125, 0.375, 0.1};
        }
    }
    d->truth = calloc(1, sizeof *d->truth);
    d->truth->entry = calloc(3, sizeof *d->truth->entry);
    d->truth->entries = 3;
    for (int i = 0; i < 3; i++) {
        d->truth->entry[i].arm = i < 2 ? 0 : -1; /* two seeds of an arm, and a baseline */
        d->truth->entry[i].seed = 10 + i;
        snprintf(d->truth->entry[i].name, REPORT_TITLE_SIZE, i < 2 ? "full-set" : "true-modes");
        d->truth->entry[i].report.discrepancy.mean = 1 + i;
        d->truth->entry[i].report.recall = NAN;
    }
    d->arm[0].has_bins = 1;
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++)
        d->arm[0].bins[b] = (bj_calibration_bin){0, NAN, NAN};
    d->arm[0].bins[7] = (bj_calibration_bin){1234, .75, .5};
    d->arm[0].bins[9] = (bj_calibration_bin){5, NAN, NAN}; /* too few to be shown */
    d->arm[0].usage = calloc(SEEDS * 6, sizeof *d->arm[0].usage);
    for (int i = 0; i < 12; i++) d->arm[0].usage[i] = (i % 6 + 1) / 21.;
    for (int i = 12; i < 18; i++) d->arm[0].usage[i] = NAN; /* a seed without */

    int drawn = 0;
    for (const report_plot *kind = report_plots; kind->name; kind++) {
        const int panels = kind->panels(d);
        if (!panels) continue;
        drawn++;
        report_plot_sheet(begin(&m), kind, d);
        report_plot_sheet(begin(&again), kind, d);
        const char *svg = end(&m);
        CHECK_MSG(well_formed(svg), "%s", kind->name);
        CHECK(!strcmp(svg, end(&again)));
        CHECK_MSG(!strstr(svg, "nan") && !strstr(svg, "inf"), "%s has a number that is none",
                  kind->name);
        CHECK_MSG(count(svg, "<g transform") == panels, "%s: %d panels", kind->name, panels);
        CHECK(panels < 2 || strstr(svg, "(a) "));
        free(m.text);
        free(again.text);
    }
    CHECK(drawn == 5); /* there is no run, so there are no learning curves and no losses; there is
                          no support either */
    CHECK(report_plot_find("learning")->panels(d) == 0);

    report_plot_sheet(begin(&m), report_plot_find("audit"), d);
    end(&m);
    CHECK_CONTAINS(m.text, "full-set minus point K=1: 25.000 [12.500, 37.500]"); /* percent */
    CHECK_CONTAINS(m.text, "map audit, 90 of 100 scenes");
    CHECK_CONTAINS(m.text, "full-set, seed 0: 75.000");
    free(m.text);
    report_plot_sheet(begin(&m), report_plot_find("truth"), d);
    end(&m);
    CHECK_CONTAINS(m.text, "full-set: mean 1.5000, SD 0.7071");
    CHECK_CONTAINS(m.text, "true-modes: 3.0000");
    free(m.text);
    report_plot_sheet(begin(&m), report_plot_find("calibration"), d);
    end(&m);
    CHECK_CONTAINS(m.text, "predicted 0.750, observed 0.500");
    CHECK_CONTAINS(m.text, "probability 0.7 to 0.8: 1,234 forecasts");
    CHECK(count(m.text, ": predicted") == 1);
    free(m.text);
    report_plot_sheet(begin(&m), report_plot_find("usage"), d);
    end(&m);
    CHECK_CONTAINS(m.text, "rank 1 by weight has 0.286 of the total weight"); /* ranked: 6/21 */
    CHECK_CONTAINS(m.text, "rank 6 by weight has 0.048 of the total weight");
    CHECK(count(m.text, ", seed 1") == 12);
    free(m.text);
    report_data_free(d);
}

/* ---------------------------------------------------------------------------------------- parts */

static void test_ticks(void) {
    static const double ranges[][2] = {{0, 1}, {1.9, 2.6}, {-3, 7}, {0.0912, 0.0934}, {0, 12345}};
    char text[PLOT_NUMBER_SIZE], next[PLOT_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const double low = ranges[i][0], high = ranges[i][1];
        const plot_ticks t = plot_ticks_within(low, high, 5);
        CHECK_MSG(t.count >= 3 && t.count <= 8, "%g to %g: %d ticks", low, high, t.count);
        CHECK(t.first >= low - 1e-9 && t.first < low + t.step);
        CHECK(t.first + (t.count - 1) * t.step <= high + 1e-9);
        CHECK(t.first + t.count * t.step > high - 1e-9);
        for (int k = 0; k < t.count - 1; k++) /* labels tell ticks apart and are exact */
            CHECK(strcmp(plot_number(text, t.first + k * t.step, t.digits),
                         plot_number(next, t.first + (k + 1) * t.step, t.digits)));
        CHECK_NEAR(t.step * pow(10, t.digits), round(t.step * pow(10, t.digits)), 1e-6);
    }
    CHECK(!strcmp(plot_number(text, -0.001, 2), "0.00"));
    CHECK(!strcmp(plot_number(text, -1.5, 1), "\xe2\x88\x92"
                                              "1.5"));
    CHECK(!strcmp(plot_number(text, 2, 0), "2"));
}

/* Tests that rounding errors do not count as differences, and that nothing is drawn if there is no
 * number. */
static void test_range(void) {
    plot p = {.left = 0, .right = 100, .top = 0, .bottom = 100};
    plot_range_y(&p, 2, 2.5, 0);
    CHECK(p.y0 == 2 && p.y1 == 2.5);
    plot_range_y(&p, 2.1, 2.5, 1);
    CHECK_NEAR(p.y0, 2.1, 1e-12);
    plot_range_y(&p, 0.13, 0.97, 1);
    CHECK_NEAR(p.y0, 0, 1e-12);
    CHECK_NEAR(p.y1, 1, 1e-12);
    plot_range_y(&p, 1.8431372550, 1.8431372580, 0);
    CHECK(plot_ticks_within(p.y0, p.y1, 5).digits <= 2);
    plot_range_y(&p, 0, 0, 0);
    CHECK(p.y0 < 0 && p.y1 > 0);
    plot_range_y(&p, INFINITY, -INFINITY, 0);
    CHECK(isfinite(p.y0) && p.y1 > p.y0);
}

static void test_curve(void) {
    memory m;
    plot p = {.to = begin(&m),
              .left = 0,
              .right = 100,
              .top = 0,
              .bottom = 100,
              .x0 = 0,
              .x1 = 10,
              .y0 = 0,
              .y1 = 1};
    const double x[] = {-1, 0, 1, 2, 3, 4, 5}, y[] = {4, 3, 1, 0.5, NAN, 0.5, -0.5};
    plot_curve(&p, 0, 1, 1, x, y, 7, "tip");
    plot_curve(&p, 0, 1, 1, x, y, 1, "alone"); /* one point is no line */
    plot_curve(&p, 0, 1, 1, x, y, 2, "above"); /* nor is one that never enters */
    const char *svg = end(&m);
    /* the line enters at (1, 1) and passes (2, .5); after the gap, it runs from (4, .5) to (4.5,
     * 0), where it leaves */
    CHECK_CONTAINS(svg, "d=\"M10.0 0.0L10.0 0.0L20.0 50.0M40.0 50.0L45.0 100.0\"");
    CHECK(!strstr(svg, "alone") && !strstr(svg, "above"));
    free(m.text);
}

static void test_styles(void) {
    int seen[PLOT_STYLES] = {0};
    static const char *const arms[] = {"fullset",        "uniform", "softwta", "sinkhorn",
                                       "specialization", "mdn",     "point",   "outputonly"};
    for (int i = 0; i < PLOT_STYLES; i++) seen[plot_style(arms[i], 0)]++;
    for (int i = 0; i < PLOT_STYLES; i++) CHECK(seen[i] == 1); /* all different */
    for (int i = -3; i < 30; i++) {
        const int style = plot_style("other", i);
        CHECK(style >= 0 && style < PLOT_STYLES);
    }
    for (int i = 0; i < bj_arm_count(); i++) CHECK(*plot_label(bj_arm_at(i).name));
}

/* ------------------------------------------------------------------------------------- the paper
 */

static void test_embedded(void) {
    static const char *const files[] = {"published.csv", "av2_seeds.csv", "tables.csv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64];
        snprintf(path, sizeof path, "data/paper/%s", files[i]);
        const cli_embedded *file = cli_embedded_find(files[i]);
        FILE *from = fopen(path, "rb");
        CHECK_MSG(file && from, "%s", path);
        if (!file || !from) continue;
        char *bytes = malloc(file->size + 2);
        CHECK(fread(bytes, 1, file->size + 1, from) == file->size);
        CHECK(!memcmp(bytes, file->bytes, file->size) && file->bytes[file->size] == '\0');
        free(bytes);
        fclose(from);
    }
    CHECK(cli_embedded_find("plot.css") != NULL);
    CHECK(cli_embedded_find("nothing") == NULL);
}

/* Both files contain some of the same tables, and the shared values must be equal. */
static void test_published(void) {
    FILE *from = fopen("data/paper/published.csv", "r");
    char line[256], where[64], quantity[32], metric[32], arm[32], printed[32];
    int compared = 0;
    while (from && fgets(line, sizeof line, from)) {
        report_paper p;
        if (sscanf(line, "av2_seeds.csv,tab:%63[^,],%31[^,],%31[^,],%31[^,],,%31[^,\n]", where,
                   quantity, metric, arm, printed) != 5 ||
            strcmp(where, "joint"))
            continue;
        CHECK_MSG(report_paper_find(&p, arm, metric, 0), "%s %s", arm, metric);
        const double value = strcmp(quantity, "sd") ? p.mean : p.sd;
        CHECK_MSG(value == atof(printed), "%s %s %s: %g, published.csv has %s", arm, metric,
                  quantity, value, printed);
        compared++;
    }
    CHECK_MSG(compared >= 36, "%d numbers compared", compared);
    if (from) fclose(from);

    report_paper p;
    CHECK(report_paper_find(&p, "fullset", "traj_es", 1) && p.dev && p.mean == 2.05603);
    CHECK(p.digits == 5);
    CHECK(report_paper_find(&p, "mdn-z0.1-y1", "ece", 0) && p.dev && isnan(p.sd));
    CHECK(report_paper_find(&p, "fullset", "end_es", 0) && !p.dev); /* from its five seeds */
    CHECK_NEAR(p.mean, (4.0647 + 4.0479 + 4.0580 + 4.0575 + 4.0731) / 5, 1e-9);
    CHECK(report_paper_find(&p, "point", "trajectory_mass", 0) && p.mean == .98165);
    CHECK(!report_paper_find(&p, "fullset", "min_ade", 0));
    CHECK(!report_paper_find(&p, "nobody", "traj_es", 0));
    for (int i = 0; i < bj_arm_count(); i++) /* names of arms and metrics are ours */
        for (int k = 0; k < bj_metric_count(); k++)
            compared += report_paper_find(&p, bj_arm_at(i).name, bj_metric_at(k).name, 0);
    CHECK_MSG(compared > 36 + 150, "%d", compared);
}

static void test_table(void) {
    report_data *d;
    bj_comparison c;
    bj_error err;
    char text[REPORT_SOURCE_SIZE];
    CHECK_OK(report_data_open(&d, "data/paper/av2_seeds.csv", &err), err);
    CHECK(d->arms == 8 && d->seeds == 5 && !d->runs && !d->locked && !d->campaign);
    CHECK(report_compare(&c, d, d->fullset, d->specialization, bj_metric_find("traj_es")));
    CHECK_NEAR(c.difference.mean, -.1435, 5e-5);
    CHECK_NEAR(c.low, -.1574, 5e-5);
    CHECK_NEAR(c.high, -.1295, 5e-5);
    CHECK(report_reference(d) == d->specialization);
    CHECK(isnan(report_value(d, report_find_arm(d, "mdn"), bj_metric_find("exp_ade"), 0)));
    CHECK(!report_compare(&c, d, d->fullset, d->specialization, bj_metric_find("exp_ade")));
    CHECK_CONTAINS(report_numbers(text, d), "seed table av2_seeds.csv");
    report_data_free(d);
    CHECK(report_data_open(&d, "data/paper/nothing.csv", &err) != BJ_OK && !d);
    CHECK_CONTAINS(err.message, "nothing.csv");
}

int main(void) {
    test_ticks();
    test_range();
    test_curve();
    test_styles();
    test_summary();
    test_all_plots();
    test_embedded();
    test_published();
    test_table();
    return test_report("plot");
}
