/* seed_table.h - prints the table of means over seeds for `table` and `lock run`. */
#ifndef BJEPA_SEED_TABLE_H
#define BJEPA_SEED_TABLE_H

#include "seed_view.h"

/* Prints mean and sample SD of every chosen arm and metric as text, LaTeX or Markdown. Returns the
 * exit code. */
int seed_table_print(const seed_view *view);
/* Appends the titles of the chosen metrics to the heading. For text, a second row has the units. */
void seed_table_heading(cli_grid *grid, const seed_view *view, const char *first,
                        const char *second);

#endif
