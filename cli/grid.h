/* grid.h - prints a table of short texts as aligned text, Markdown or LaTeX.
 *
 * Cells are UTF-8. The sign +- (U+00B1) and the arrows become commands in LaTeX.
 * Test: tests/cli/table.sh
 */
#ifndef BJEPA_GRID_H
#define BJEPA_GRID_H

#include <stdio.h>

#include "cli.h"

typedef enum cli_format {
    CLI_FORMAT_TEXT,
    CLI_FORMAT_CSV,
    CLI_FORMAT_JSON,
    CLI_FORMAT_LATEX,
    CLI_FORMAT_MARKDOWN
} cli_format;
#define CLI_FORMAT_WORDS "text|csv|json|latex|markdown"

enum { CLI_CELL_SIZE = 96 };

typedef struct cli_cell {
    char text[CLI_CELL_SIZE];
    int number; /* math in LaTeX */
    int best;   /* bold; a star in plain text */
} cli_cell;

typedef struct cli_grid {
    int columns, left; /* the first `left` columns are left-aligned, all others right-aligned */
    int cells, room;   /* cells so far, row by row */
    int head;          /* heading rows; 0 means 1 */
    cli_cell *cell;
    int failed; /* memory ran out */
} cli_grid;

#define CLI_PLUS_MINUS "\xc2\xb1"
#define CLI_ARROW_DOWN "\xe2\x86\x93"
#define CLI_ARROW_UP "\xe2\x86\x91"

/* Appends a cell. Text that does not fit is truncated. */
void cli_grid_text(cli_grid *grid, const char *text);
void cli_grid_number(cli_grid *grid, int best, const char *fmt, ...) CLI_PRINTF(3, 4);
/* Prints the grid to stdout as text, LaTeX or Markdown, and frees it. If `groups` is set, a line
 * separates two rows whose first cells differ. Returns CLI_OK or, after a message, CLI_SYSTEM. */
int cli_grid_print(cli_grid *grid, const char *verb, cli_format format, int groups);

/* Formats a number with the given number of decimals, but never as "-0". A number that is not
 * finite becomes "-". */
enum { CLI_FIXED_SIZE = 40 };
const char *cli_fixed(char buffer[CLI_FIXED_SIZE], double value, int digits);

/* Writes a field of a CSV file, in quotes if necessary. An apostrophe is put before a text that a
 * spreadsheet would evaluate as a formula. */
void cli_csv_text(FILE *to, const char *text);
/* Prints a number that reads back as the same number, or nothing if it is not finite. */
void cli_csv_number(double value);

#endif
