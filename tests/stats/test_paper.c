/* test_paper.c - tests that the paper's per-seed tables give its published means, SDs and
 * intervals.
 *
 * data/paper/published.csv lists the numbers that the paper prints, digit for digit. The values
 * computed from the per-seed tables must print the same digits. If they do not, the column
 * `recomputed` contains the digits that they print instead, and the difference must be small enough
 * to be explained by the rounding of the per-seed values.
 */
#include <stdlib.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "core/file.h"
#include "stats/csv.h"
#include "support/test.h"

enum { FILE_, WHERE, QUANTITY, METRIC, A, B, PRINTED, RECOMPUTED, COLUMNS };
enum { PUBLISHED = 140, ROUNDED = 8 };

static bj_seeds *seeds;
static char seeds_file[64];

static void open_seeds(const char *file) {
    char path[128];
    bj_error err = {0};
    if (!strcmp(seeds_file, file)) return;
    bj_seeds_free(seeds);
    seeds = NULL;
    snprintf(path, sizeof path, "data/paper/%s", file);
    snprintf(seeds_file, sizeof seeds_file, "%s", file);
    CHECK_OK(bj_seeds_read(&seeds, path, &err), err);
}

/* Returns half a unit of the last digit of an arm's values. */
static double rounding_of(int arm, int metric) {
    double unit = 1;
    for (int digits = 0; digits < 8; digits++, unit /= 10) {
        int whole = 1;
        for (int i = 0; i < bj_seeds_count(seeds); i++) {
            const double value = bj_seeds_value(seeds, arm, metric, i) / unit;
            if (fabs(value - round(value)) > 1e-5) whole = 0;
        }
        if (whole) break;
    }
    return unit / 2;
}

/* Computes a quantity. *slack receives the largest change of the quantity that the rounding of the
 * per-seed values can cause. */
static double compute(double *slack, const char *quantity, int a, int b, int metric) {
    const bj_summary s = bj_seeds_summary(seeds, a, metric);
    bj_comparison c;
    bj_error err = {0};
    *slack = rounding_of(a, metric);
    if (!strcmp(quantity, "mean")) return s.mean;
    if (!strcmp(quantity, "sd")) return s.sd;
    if (!strcmp(quantity, "lowest")) return s.lowest;
    if (!strcmp(quantity, "highest")) return s.highest;
    CHECK_OK(bj_seeds_compare(&c, seeds, a, b, metric, 0.95, 0, &err), err);
    const double other = rounding_of(b, metric);
    if (!strcmp(quantity, "improvement")) {
        *slack = 100 * (*slack + other * fabs(c.a.mean / c.b.mean)) / fabs(c.b.mean);
        return 100 * c.improvement;
    }
    *slack += other;
    if (!strcmp(quantity, "difference")) return c.difference.mean;
    if (!strcmp(quantity, "better")) return c.better < 0 ? c.lower : c.higher;
    /* The SD changes by at most slack sqrt(n / (n - 1)). */
    *slack *= 1 + bj_student_quantile(0.975, c.a.n - 1) / sqrt(c.a.n - 1);
    if (!strcmp(quantity, "low")) return c.low;
    CHECK_MSG(!strcmp(quantity, "high"), "%s", quantity);
    return c.high;
}

static int check_row(char *const *field) {
    char text[64];
    double slack;
    open_seeds(field[FILE_]);
    if (!seeds) return 0;
    const int a = bj_seeds_find_arm(seeds, field[A]), b = bj_seeds_find_arm(seeds, field[B]);
    const int metric = bj_seeds_find_metric(seeds, field[METRIC]);
    CHECK_MSG(a >= 0 && metric >= 0 && (b >= 0 || !*field[B]), "%s %s %s", field[A], field[B],
              field[METRIC]);
    if (a < 0 || metric < 0) return 0;
    const double value = compute(&slack, field[QUANTITY], a, b, metric);
    const char *point = strchr(field[PRINTED], '.');
    const int digits = point ? (int)strlen(point + 1) : 0;
    if (!strcmp(field[QUANTITY], "better"))
        snprintf(text, sizeof text, "%.0f/%d", value, bj_seeds_summary(seeds, a, metric).n);
    else snprintf(text, sizeof text, "%.*f", digits, value);
    const char *wanted = *field[RECOMPUTED] ? field[RECOMPUTED] : field[PRINTED];
    CHECK_MSG(!strcmp(text, wanted), "%s: %s of %s, %s %s: %s, expected %s", field[WHERE],
              field[QUANTITY], field[METRIC], field[A], field[B], text, wanted);
    if (!*field[RECOMPUTED]) return 0;
    CHECK(strcmp(field[RECOMPUTED], field[PRINTED]) != 0);
    CHECK_MSG(fabs(value - atof(field[PRINTED])) <= slack + 0.5 * pow(10, -digits),
              "%s: %s of %s: %.8f is too far from %s", field[WHERE], field[QUANTITY], field[METRIC],
              value, field[PRINTED]);
    return 1;
}

static void test_published(void) {
    static const char *const header[COLUMNS] = {"file", "where", "quantity", "metric",
                                                "a",    "b",     "printed",  "recomputed"};
    char *text = NULL;
    size_t size;
    int found = 0, rows = 0, rounded = 0;
    bj_csv csv;
    bj_error err = {0};
    CHECK_OK(bj_file_read(&text, &size, "data/paper/published.csv", 1 << 20, &err), err);
    if (!text) return;
    bj_csv_begin(&csv, text, size, "published.csv");
    CHECK_OK(bj_csv_next(&csv, &found, &err), err);
    for (int i = 0; i < COLUMNS && i < csv.count; i++) CHECK(!strcmp(csv.fields[i], header[i]));
    for (;;) {
        CHECK_OK(bj_csv_next(&csv, &found, &err), err);
        if (!found) break;
        CHECK(csv.count == COLUMNS);
        if (csv.count != COLUMNS) break;
        rounded += check_row(csv.fields);
        rows++;
    }
    CHECK_MSG(rows == PUBLISHED && rounded == ROUNDED, "%d rows, %d of them off", rows, rounded);
    bj_free(text);
    bj_seeds_free(seeds);
    seeds = NULL;
}

/* Tests the paper's main result, without published.csv. */
static void test_headline(void) {
    bj_seeds *s = NULL;
    bj_comparison c;
    bj_error err = {0};
    char text[64];
    CHECK_OK(bj_seeds_read(&s, "data/paper/av2_seeds.csv", &err), err);
    if (!s) return;
    CHECK(bj_seeds_arm_count(s) == 8 && bj_seeds_count(s) == 5 && bj_seeds_metric_count(s) == 9);
    CHECK_OK(bj_seeds_compare(&c, s, bj_seeds_find_arm(s, "fullset"),
                              bj_seeds_find_arm(s, "specialization"),
                              bj_seeds_find_metric(s, "traj_es"), 0.95, 0, &err),
             err);
    snprintf(text, sizeof text, "%.4f [%.4f, %.4f] %d/%d", c.difference.mean, c.low, c.high,
             c.lower, c.a.n);
    CHECK_MSG(!strcmp(text, "-0.1435 [-0.1574, -0.1295] 5/5"), "%s", text);
    bj_seeds_free(s);
}

int main(void) {
    test_published();
    test_headline();
    CHECK(bj_alloc_live() == 0);
    return test_report("paper");
}
