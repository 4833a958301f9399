/* grid.c - see grid.h. */
#include "grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"

/* -------------------------------------------------------------------------------------- filling */

static cli_cell *add_cell(cli_grid *grid) {
    if (grid->cells == grid->room) {
        const int room = grid->room ? 2 * grid->room : 256;
        cli_cell *larger = realloc(grid->cell, (size_t)room * sizeof *larger);
        if (!larger) {
            grid->failed = 1;
            return NULL;
        }
        grid->cell = larger;
        grid->room = room;
    }
    cli_cell *cell = &grid->cell[grid->cells++];
    *cell = (cli_cell){.number = 0};
    return cell;
}

void cli_grid_text(cli_grid *grid, const char *text) {
    cli_cell *cell = add_cell(grid);
    if (cell) snprintf(cell->text, sizeof cell->text, "%s", text);
}

void cli_grid_number(cli_grid *grid, int best, const char *fmt, ...) {
    cli_cell *cell = add_cell(grid);
    va_list args;
    if (!cell) return;
    va_start(args, fmt);
    vsnprintf(cell->text, sizeof cell->text, fmt, args);
    va_end(args);
    cell->number = 1;
    cell->best = best;
}

const char *cli_fixed(char buffer[CLI_FIXED_SIZE], double value, int digits) {
    if (!isfinite(value)) return strcpy(buffer, "-");
    if (fabs(value) < 1e15) snprintf(buffer, CLI_FIXED_SIZE, "%.*f", digits, value);
    else snprintf(buffer, CLI_FIXED_SIZE, "%.*e", digits, value);
    if (buffer[0] == '-' && buffer[1 + strspn(buffer + 1, "0.")] == '\0')
        memmove(buffer, buffer + 1, strlen(buffer));
    return buffer;
}

/* ------------------------------------------------------------------------------------- printing */

/* Counts the characters of a UTF-8 text, which are the bytes that are not continuation bytes. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void spaces(int count) { printf("%*s", count > 0 ? count : 0, ""); }

static void print_text(const cli_grid *grid, const int *width, int row, int groups) {
    const cli_cell *cell = &grid->cell[row * grid->columns];
    if (groups && row > (grid->head ? grid->head : 1) && strcmp(cell->text, cell[-grid->columns].text)) putchar('\n');
    int used = grid->columns; /* without the empty cells at the end */
    while (used > 1 && !*cell[used - 1].text) used--;
    for (int c = 0; c < used; c++) {
        const int rest = width[c] - width_of(cell[c].text);
        const int last = c == used - 1;
        if (c >= grid->left) spaces(rest);
        fputs(cell[c].text, stdout);
        if (c >= grid->left) fputs(cell[c].best ? "*" : last ? "" : " ", stdout);
        else if (!last) spaces(rest);
        if (!last) fputs(c >= grid->left ? " " : "  ", stdout);
    }
    putchar('\n');
}

static void print_markdown(const cli_grid *grid, int row) {
    for (int c = 0; c < grid->columns; c++) {
        const cli_cell *cell = &grid->cell[row * grid->columns + c];
        fputs(c ? " " : "| ", stdout);
        if (cell->best) fputs("**", stdout);
        for (const char *t = cell->text; *t; t++) {
            if (strchr("|*_\\`<", *t)) putchar('\\');
            putchar(*t);
        }
        fputs(cell->best ? "** |" : " |", stdout);
    }
    putchar('\n');
    if (row) return;
    for (int c = 0; c < grid->columns; c++) fputs(c < grid->left ? "|---" : "|---:", stdout);
    puts("|");
}

/* Writes one character of a cell. Returns its number of bytes. */
static int latex_character(const char *t, int math) {
    static const struct {
        const char *sign, *command;
    } signs[] = {
        {CLI_PLUS_MINUS, "\\pm"}, {CLI_ARROW_DOWN, "\\downarrow"}, {CLI_ARROW_UP, "\\uparrow"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t length = strlen(signs[i].sign);
        if (strncmp(t, signs[i].sign, length)) continue;
        printf(math ? "{%s}" : "$%s$", signs[i].command);
        return (int)length;
    }
    if (*t == '\\') fputs("\\textbackslash{}", stdout);
    else if (*t == '~' || *t == '^') printf("\\%c{}", *t);
    else if (strchr("&%$#_{}", *t)) printf("\\%c", *t);
    else putchar(*t);
    return 1;
}

static void print_latex(const cli_grid *grid, int row, int rows, int groups) {
    const cli_cell *cell = &grid->cell[row * grid->columns];
    if (!row) {
        fputs("\\begin{tabular}{@{}", stdout);
        for (int c = 0; c < grid->columns; c++) putchar(c < grid->left ? 'l' : 'r');
        fputs("@{}}\n\\toprule\n", stdout);
    } else if (row == 1 || (groups && strcmp(cell->text, cell[-grid->columns].text))) {
        fputs("\\midrule\n", stdout);
    }
    for (int c = 0; c < grid->columns; c++) {
        const int math = cell[c].number && strcmp(cell[c].text, "-");
        fputs(c ? " & " : "", stdout);
        fputs(math ? cell[c].best ? "$\\mathbf{" : "$" : "", stdout);
        for (const char *t = cell[c].text; *t;) t += latex_character(t, math);
        fputs(math ? cell[c].best ? "}$" : "$" : "", stdout);
    }
    puts("\\\\");
    if (row == rows - 1) puts("\\bottomrule\n\\end{tabular}");
}

int cli_grid_print(cli_grid *grid, const char *verb, cli_format format, int groups) {
    const int rows = grid->columns ? grid->cells / grid->columns : 0;
    int *width = calloc((size_t)grid->columns + 1, sizeof *width);
    if (grid->failed || !width) {
        fprintf(stderr, "bjepa %s: out of memory for the table\n", verb);
        free(width);
        free(grid->cell);
        return CLI_SYSTEM;
    }
    for (int i = 0; i < rows * grid->columns; i++) {
        const int w = width_of(grid->cell[i].text);
        if (w > width[i % grid->columns]) width[i % grid->columns] = w;
    }
    for (int row = 0; row < rows; row++) {
        if (format == CLI_FORMAT_LATEX) print_latex(grid, row, rows, groups);
        else if (format == CLI_FORMAT_MARKDOWN) print_markdown(grid, row);
        else print_text(grid, width, row, groups);
    }
    free(width);
    free(grid->cell);
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------------ CSV */

void cli_csv_text(FILE *to, const char *text) {
    const int formula = *text && strchr("=+-@\t\r", *text) != NULL;
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    if (formula) putc('\'', to);
    for (; *text; text++) {
        if (*text == '"') putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

void cli_csv_number(double value) {
    if (isfinite(value)) cli_json_double(stdout, value);
}
