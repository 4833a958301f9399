/* seed_table.c - see seed_table.h. Test: tests/cli/table.sh */
#include "seed_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void seed_table_heading(cli_grid *grid, const seed_view *view, const char *first,
                        const char *second) {
    const int text = view->format == CLI_FORMAT_TEXT;
    int units = 0;
    cli_grid_text(grid, first);
    cli_grid_text(grid, second);
    for (int m = 0; m < view->metric_count; m++) {
        char title[CLI_CELL_SIZE];
        const bj_metric_info info = bj_seeds_metric(view->seeds, view->metrics[m]);
        seed_view_title(title, &info, !text);
        cli_grid_text(grid, title);
        units |= *info.unit != '\0';
    }
    grid->head = 1;
    if (!text || !units) return;
    grid->head = 2;
    cli_grid_text(grid, "");
    cli_grid_text(grid, "");
    for (int m = 0; m < view->metric_count; m++)
        cli_grid_text(grid, bj_seeds_metric(view->seeds, view->metrics[m]).unit);
}

/* Returns 1 if two arms, "SET/ARM" or "ARM", belong to the same dataset. */
static int same_set(const char *a, const char *b) {
    const char *end = strchr(a, '/'), *other = strchr(b, '/');
    const size_t length = end ? (size_t)(end - a) : 0;
    return length == (other ? (size_t)(other - b) : 0) && !strncmp(a, b, length);
}

/* Returns 1 if two arms may be ranked against each other: they have the same dataset and the same
 * number of branches. A single trajectory and a distribution are not comparable by distance. */
static int comparable(const seed_view *view, int a, int b) {
    return view->atoms[a] == view->atoms[b] &&
           same_set(bj_seeds_arm(view->seeds, a), bj_seeds_arm(view->seeds, b));
}

/* Returns 1 if the arm has the best mean of the comparable arms shown, and there are several. */
static int is_best(const seed_view *view, const bj_metric_info *info, int arm, int metric,
                   double mean) {
    int others = 0;
    if (!info->better || isnan(mean)) return 0;
    for (int i = 0; i < view->arm_count; i++) {
        if (!comparable(view, view->arms[i], arm)) continue;
        const bj_summary s = bj_seeds_summary(view->seeds, view->arms[i], metric);
        if (info->better * s.mean > info->better * mean) return 0;
        others += s.n > 0;
    }
    return others > 1;
}

/* Appends the number of seeds: "5", or "3-5" if it differs between metrics. */
static void add_counts(cli_grid *grid, const seed_view *view, int arm) {
    int fewest = 0, most = 0;
    for (int m = 0; m < view->metric_count; m++) {
        const int n = bj_seeds_summary(view->seeds, arm, view->metrics[m]).n;
        if (n && (!fewest || n < fewest)) fewest = n;
        if (n > most) most = n;
    }
    if (fewest == most) cli_grid_number(grid, 0, "%d", most);
    else cli_grid_number(grid, 0, "%d-%d", fewest, most);
}

/* Returns 1 if the arms shown have different numbers of branches. */
static int mixed(const seed_view *view) {
    for (int i = 1; i < view->arm_count; i++)
        if (view->atoms[view->arms[i]] != view->atoms[view->arms[0]]) return 1;
    return 0;
}

int seed_table_print(const seed_view *view) {
    cli_grid grid = {.columns = view->metric_count + 2, .left = 1};
    int starred = 0;
    seed_table_heading(&grid, view, "arm", "n");
    for (int i = 0; i < view->arm_count; i++) {
        cli_grid_text(&grid, bj_seeds_arm(view->seeds, view->arms[i]));
        add_counts(&grid, view, view->arms[i]);
        for (int m = 0; m < view->metric_count; m++) {
            const bj_metric_info info = bj_seeds_metric(view->seeds, view->metrics[m]);
            const bj_summary s = bj_seeds_summary(view->seeds, view->arms[i], view->metrics[m]);
            const int best = is_best(view, &info, view->arms[i], view->metrics[m], s.mean);
            starred |= best;
            seed_view_mean(&grid, &s, seed_view_digits(view, &info), best, view->compact);
        }
    }
    const int code = cli_grid_print(&grid, view->verb, (cli_format)view->format, 0);
    if (view->format == CLI_FORMAT_TEXT && starred && code == CLI_OK)
        puts(mixed(view) ? "\n* best mean among the arms with the same number of branches K"
                         : "\n* best mean of the arms shown");
    return code;
}
