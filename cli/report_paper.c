/* report_paper.c - returns the paper's numbers, from the files of data/paper that are embedded in
 * the program.
 *
 *   tables.csv      means and SDs as printed
 *   av2_seeds.csv   every seed, for means that the paper does not print
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "embedded.h"
#include "report_data.h"

enum { FIELDS = 6, FIELD_SIZE = 64 };

/* Splits the line at `at` into fields, truncated to their size and empty if there are fewer. These
 * files contain no quotes. Returns the next line, or NULL after the last one. */
static const char *read_line(char fields[FIELDS][FIELD_SIZE], const char *at) {
    for (int f = 0; f < FIELDS; f++) {
        const size_t length = strcspn(at, ",\n");
        snprintf(fields[f], FIELD_SIZE, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    at += strcspn(at, "\n");
    return *at && at[1] ? at + 1 : NULL;
}

static int decimals(const char *number) {
    const char *dot = strchr(number, '.');
    return dot ? (int)strlen(dot + 1) : 0;
}

static const char *embedded_text(const char *name) {
    const cli_embedded *file = cli_embedded_find(name);
    return file ? file->bytes : NULL;
}

static int find_printed(report_paper *out, const char *arm, const char *metric, int dev) {
    enum { WHERE, SPLIT, ARM, METRIC, MEAN, SD };
    char f[FIELDS][FIELD_SIZE];
    int found = 0;
    for (const char *at = embedded_text("tables.csv"); at;) {
        at = read_line(f, at);
        if (strcmp(f[ARM], arm) || strcmp(f[METRIC], metric)) continue;
        const int is_dev = !strcmp(f[SPLIT], "dev");
        *out = (report_paper){atof(f[MEAN]), *f[SD] ? atof(f[SD]) : NAN, decimals(f[MEAN]), is_dev};
        found = 1;
        if (is_dev == dev) break;
    }
    return found;
}

static int find_seeds(report_paper *out, const char *arm, const char *metric) {
    enum { ARM, SEED, METRIC, VALUE, MOST = 16 };
    char f[FIELDS][FIELD_SIZE];
    double values[MOST];
    int n = 0, digits = 0;
    for (const char *at = embedded_text("av2_seeds.csv"); at;) {
        at = read_line(f, at);
        if (n == MOST || strcmp(f[ARM], arm) || strcmp(f[METRIC], metric)) continue;
        values[n++] = atof(f[VALUE]);
        if (decimals(f[VALUE]) > digits) digits = decimals(f[VALUE]);
    }
    if (!n) return 0;
    const bj_summary s = bj_summarize(values, n);
    *out = (report_paper){s.mean, s.sd, digits, 0};
    return 1;
}

int report_paper_find(report_paper *out, const char *arm, const char *metric, int dev) {
    return find_printed(out, arm, metric, dev) || find_seeds(out, arm, metric);
}
