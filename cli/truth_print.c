/* truth_print.c - prints the exam of all arms as text and as JSON. */
#include "truth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json_out.h"

enum { NAME = 26 };

/* The end of a long path is more informative than its beginning. */
static void print_name(const char *name) {
    const size_t length = strlen(name);
    if (length <= NAME) printf("%-*s", NAME, name);
    else printf("...%s", name + length - (NAME - 3));
}

/* "0.1234 +- 0.0012" */
static void print_estimate(const bj_estimate *e) { printf("%9.4f +- %.4f", e->mean, e->error); }

static void print_distance(const truth_result *t) {
    printf("\ndistance to the true distribution (m)\n%-*s%4s%19s%19s%19s%19s\n", NAME, "", "K", "discrepancy",
           "expected ES", "1/2 discr. + bound", "realized ES");
    for (int i = 0; i < t->arms; i++) {
        const bj_exam_report *r = &t->arm[i].report;
        print_name(t->arm[i].name);
        printf("%4d", r->atoms);
        print_estimate(&r->discrepancy);
        print_estimate(&r->expected_es);
        printf("%19.4f", r->discrepancy.mean / 2 + r->floor.mean);
        if (r->realized) print_estimate(&r->realized_es);
        else printf("%19s", "-");
        putchar('\n');
    }
    if (t->inputs.scenes) {
        print_name("inputs alone");
        printf("%4s", "-");
        print_estimate(&t->inputs.discrepancy);
        puts("");
    }
    printf("floor: 1/2 E d(Y,Y') =");
    print_estimate(&t->arm[0].report.floor);
    puts("\nidentity check: expected ES minus (1/2 discrepancy + floor), in m");
    for (int i = 0; i < t->arms; i++) {
        const bj_exam_report *r = &t->arm[i].report;
        print_name(t->arm[i].name);
        printf("%12.5f +- %.5f, %s the tolerance of %.1f standard errors\n", r->difference.mean, r->difference.error,
               r->identity ? "within" : "OUTSIDE", r->tolerated);
    }
}

static void print_inputs(const truth_result *t) {
    const bj_blind_report *r = &t->inputs;
    char a[CLI_COUNT_SIZE];
    if (!r->scenes) return;
    printf("inputs alone: lower bound for any model with these inputs "
           "(world version %d, %s scenes)\n",
           t->world, cli_count(a, (size_t)r->scenes));
    printf("  junction control");
    print_estimate(&r->control);
    printf("\n  speed limits    ");
    print_estimate(&r->limits);
    putchar('\n');
    if (t->arm[0].report.best_scenes)
        puts("  for a model with K atoms, add the discrepancy of the best K atoms");
}

static void print_best(const truth_result *t) {
    if (!t->arm[0].report.best_scenes) return;
    printf("\nbest K atoms, discrepancy on %lld scenes\n%-*s%19s%19s%11s%11s\n",
           (long long)t->arm[0].report.best_scenes, NAME, "", "arm", "best", "capacity",
           "learning");
    for (int i = 0; i < t->arms; i++) {
        const bj_exam_report *r = &t->arm[i].report;
        print_name(t->arm[i].name);
        print_estimate(&r->best_own);
        print_estimate(&r->best);
        printf("%10.1f%%%10.1f%%\n", 100 * r->capacity, 100 * r->learning);
    }
}

static void print_modes(const truth_result *t) {
    printf("\ntrue modes found within 2 m RMS (%lld modes), and maneuver probabilities\n"
           "%-*s%8s%9s%12s%13s%10s%14s%8s\n",
           (long long)t->arm[0].report.modes, NAME, "", "recall", "by mass", "mass error",
           "unexplained", "maneuver", "Brier excess", "ECE");
    for (int i = 0; i < t->arms; i++) {
        const bj_exam_report *r = &t->arm[i].report;
        print_name(t->arm[i].name);
        printf("%8.4f%9.4f%12.4f%13.4f%10.4f%14.4f%8.4f\n", r->recall, r->recall_mass,
               r->mass_error, r->unexplained, r->maneuver_error, r->brier_excess,
               r->calibration_error);
    }
    printf("Brier score of the true probabilities: %.4f\n", t->arm[0].report.brier_floor);
}

static void print_bins(const truth_arm *arm) {
    printf("\nmaneuver probabilities of %s\n%-*s%10s%12s%10s\n", arm->name, NAME, "", "count",
           "predicted", "true");
    for (int b = 0; b < BJ_EXAM_BINS; b++) {
        const bj_exam_bin *bin = &arm->report.bins[b];
        printf("  %.1f - %.1f%*s%10lld", b / 10., (b + 1) / 10., NAME - 11, "",
               (long long)bin->count);
        if (bin->count) printf("%12.4f%10.4f\n", bin->predicted, bin->actual);
        else printf("%12s%10s\n", "-", "-");
    }
}

/* ----------------------------------------------------------------------------- seeds of a campaign
 */

typedef struct column {
    const char *title;
    double (*value)(const bj_exam_report *report);
} column;

#define COLUMN(name, expression)                                                                   \
    static double name(const bj_exam_report *r) { return expression; }
COLUMN(discrepancy, r->discrepancy.mean)
COLUMN(expected_es, r->expected_es.mean)
COLUMN(recall, r->recall)
COLUMN(recall_mass, r->recall_mass)
COLUMN(mass_error, r->mass_error)
COLUMN(unexplained, r->unexplained)
COLUMN(brier_excess, r->brier_excess)
COLUMN(calibration, r->calibration_error)
#undef COLUMN

static const column columns[] = {
    {"discrepancy", discrepancy},   {"expected ES", expected_es}, {"recall", recall},
    {"by mass", recall_mass},       {"mass error", mass_error},   {"unexplained", unexplained},
    {"Brier excess", brier_excess}, {"ECE", calibration},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Returns whether entry i belongs to the arm of entry `of`. A checkpoint outside a campaign is an
 * arm of its own. */
static int same_arm(const truth_result *t, int i, int of) {
    const cli_checkpoint *a = t->arm[i].run, *b = t->arm[of].run;
    return i == of || (a && b && !strcmp(a->arm, b->arm));
}

/* Sample SD, as in every table over seeds. */
static void print_spread(const truth_result *t, int of, int seeds, const column *c) {
    double mean = 0, square = 0;
    for (int i = of; i < t->arms; i++)
        if (same_arm(t, i, of)) mean += c->value(&t->arm[i].report) / seeds;
    for (int i = of; i < t->arms; i++)
        if (same_arm(t, i, of)) square += pow(c->value(&t->arm[i].report) - mean, 2);
    if (seeds > 1) printf("%9.4f +- %.4f", mean, sqrt(square / (seeds - 1)));
    else printf("%9.4f%10s", mean, "");
}

static void print_arms(const truth_result *t) {
    int of_campaign = 0;
    for (int i = 0; i < t->arms; i++) of_campaign += t->arm[i].run != NULL;
    if (!of_campaign) return;
    printf("\nmean +- SD over seeds\n%-18s%6s", "", "seeds");
    for (int c = 0; c < COLUMNS; c++) printf("%19s", columns[c].title);
    putchar('\n');
    for (int i = 0; i < t->arms; i++) {
        int seeds = 0, first = i;
        for (int j = 0; j < t->arms; j++)
            if (same_arm(t, j, i)) first = j < first ? j : first, seeds++;
        if (first < i) continue;
        printf("%-18.18s%6d", t->arm[i].run ? t->arm[i].run->arm : t->arm[i].name, seeds);
        for (int c = 0; c < COLUMNS; c++) print_spread(t, i, seeds, &columns[c]);
        putchar('\n');
    }
}

void truth_print_text(const truth_result *t) {
    char a[CLI_COUNT_SIZE];
    printf("%s: %s scenes, %d draws per mode, seed %llu\n",
           t->cache  ? t->cache
           : t->data ? t->data
                     : t->law,
           cli_count(a, (size_t)t->scenes), t->samples, (unsigned long long)t->seed);
    printf("%s: true distributions of %s scenes\n", t->law, cli_count(a, (size_t)t->law_scenes));
    print_distance(t);
    print_inputs(t);
    print_best(t);
    print_modes(t);
    print_arms(t);
    for (int i = 0; i < t->arms && (!t->detailed || i < t->detailed); i++)
        if (!t->arm[i].run) print_bins(&t->arm[i]);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_number(const char *name, double value) {
    printf(",\"%s\":", name);
    cli_json_double(stdout, value);
}

static void json_estimate(const char *name, const bj_estimate *e) {
    printf(",\"%s\":{\"mean\":", name);
    cli_json_double(stdout, e->mean);
    printf(",\"error\":");
    cli_json_double(stdout, e->error);
    putchar('}');
}

static void json_arm(const truth_arm *arm) {
    const bj_exam_report *r = &arm->report;
    printf("{\"name\":");
    cli_json_text(stdout, arm->name);
    printf(",\"atoms\":%d,\"scenes\":%lld", r->atoms, (long long)r->scenes);
    json_estimate("discrepancy", &r->discrepancy);
    json_number("discrepancy_spread", r->discrepancy_spread);
    json_estimate("floor", &r->floor);
    json_estimate("expected_es", &r->expected_es);
    json_estimate("difference", &r->difference);
    json_number("tolerated", r->tolerated);
    printf(",\"identity\":%s,\"realized\":%lld", r->identity ? "true" : "false",
           (long long)r->realized);
    json_estimate("realized_es", &r->realized_es);
    json_number("surprise", r->surprise);
    printf(",\"best_scenes\":%lld", (long long)r->best_scenes);
    json_estimate("best", &r->best);
    json_estimate("best_own", &r->best_own);
    json_number("capacity", r->capacity);
    json_number("learning", r->learning);
    printf(",\"modes\":%lld", (long long)r->modes);
    json_number("recall", r->recall);
    json_number("recall_mass", r->recall_mass);
    json_number("mass_error", r->mass_error);
    json_number("unexplained", r->unexplained);
    json_number("maneuver_error", r->maneuver_error);
    json_number("brier_excess", r->brier_excess);
    json_number("brier_floor", r->brier_floor);
    json_number("calibration_error", r->calibration_error);
    printf(",\"bins\":[");
    for (int b = 0; b < BJ_EXAM_BINS; b++) {
        printf("%s{\"count\":%lld", b ? "," : "", (long long)r->bins[b].count);
        json_number("predicted", r->bins[b].predicted);
        json_number("true", r->bins[b].actual);
        putchar('}');
    }
    printf("]}");
}

void truth_print_json(const truth_result *t) {
    printf("{\"schema\":1,\"type\":\"truth\",\"%s\":", t->cache ? "cache" : "data");
    cli_json_text(stdout, t->cache ? t->cache : t->data);
    printf(",\"law\":");
    cli_json_text(stdout, t->law);
    printf(",\"scenes\":%lld,\"law_scenes\":%lld,\"samples\":%d,\"seed\":%llu",
           (long long)t->scenes, (long long)t->law_scenes, t->samples, (unsigned long long)t->seed);
    if (t->inputs.scenes) {
        printf(",\"inputs\":{\"world\":%d,\"scenes\":%lld", t->world, (long long)t->inputs.scenes);
        json_estimate("discrepancy", &t->inputs.discrepancy);
        json_number("discrepancy_spread", t->inputs.spread);
        json_estimate("control", &t->inputs.control);
        json_estimate("limits", &t->inputs.limits);
        putchar('}');
    }
    printf(",\"arms\":[");
    for (int i = 0; i < t->arms; i++) {
        if (i) putchar(',');
        json_arm(&t->arm[i]);
    }
    puts("]}");
}
