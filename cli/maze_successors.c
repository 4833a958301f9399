/* maze_successors.c - see maze_successors.h. */
#include "maze_successors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <branchjepa/maze_drive.h>
#include <yyjson.h>

#include "maze_draw.h"
#include "svg.h"

enum { PANELS = 3 /* in a row */, GAP = 16, HEAD = 26, LEGEND = 72, MOST_BYTES = 64 << 20 };
#define SCALE 0.5
#define ACTIVE 0.01 /* least mass of a candidate that is drawn */

/* Returns NULL if the file is not a JSON file of at most MOST_BYTES. */
static yyjson_doc *read_doc(const char *path) {
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode) || info.st_size > MOST_BYTES) return NULL;
    return yyjson_read_file(path, 0, NULL, NULL);
}

int maze_successors_is(const char *path) {
    yyjson_doc *doc = read_doc(path);
    const char *schema = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "schema"));
    const int is = schema && !strcmp(schema, MAZE_SUCCESSORS_SCHEMA);
    yyjson_doc_free(doc);
    return is;
}

/* ------------------------------------------------------------------------------------ checking */

static bj_status bad(const char *path, int context, const char *what, bj_error *err) {
    return cli_error(err, BJ_EFORMAT, "%s: context %d: %s", path, context, what);
}

static int is_cell(yyjson_val *value, const bj_maze *m) {
    return yyjson_is_int(value) && yyjson_get_num(value) >= 0 && yyjson_get_num(value) < m->cells;
}

/* Checks the rows of a list, which contain a cell followed by at least `numbers` numbers. */
static int are_rows(yyjson_val *list, const bj_maze *m, size_t numbers) {
    if (!yyjson_is_arr(list)) return 0;
    for (size_t i = 0; i < yyjson_arr_size(list); i++) {
        yyjson_val *row = yyjson_arr_get(list, i);
        if (!yyjson_is_arr(row) || !is_cell(yyjson_arr_get(row, 0), m)) return 0;
        for (size_t k = 1; k <= numbers; k++)
            if (!yyjson_is_num(yyjson_arr_get(row, k))) return 0;
    }
    return 1;
}

static bj_status check(yyjson_val *contexts, const bj_maze *m, const char *path, bj_error *err) {
    if (!yyjson_is_arr(contexts) || !yyjson_arr_size(contexts) || yyjson_arr_size(contexts) > 1024)
        return cli_error(err, BJ_EFORMAT, "%s: 'contexts' must be a list of 1 to 1024 elements",
                         path);
    for (size_t i = 0; i < yyjson_arr_size(contexts); i++) {
        yyjson_val *c = yyjson_arr_get(contexts, i), *point = yyjson_obj_get(c, "point");
        if (!is_cell(yyjson_obj_get(c, "cell"), m)) return bad(path, (int)i, "no cell", err);
        if (!are_rows(yyjson_obj_get(c, "successors"), m, 2))
            return bad(path, (int)i,
                       "each element of 'successors' must have cell, crossings and hit", err);
        if (!are_rows(yyjson_obj_get(c, "candidates"), m, 3))
            return bad(path, (int)i,
                       "each element of 'candidates' must have cell, cosine, mass and hit", err);
        if (point && (!yyjson_is_arr(point) || !is_cell(yyjson_arr_get(point, 0), m)))
            return bad(path, (int)i, "'point' must have a cell and its cosine", err);
    }
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- drawing */

static double number(yyjson_val *row, size_t at) { return yyjson_get_num(yyjson_arr_get(row, at)); }

static void place(double *x, double *y, const bj_maze *m, yyjson_val *cell) {
    const int c = (int)yyjson_get_num(cell);
    *x = (m->square[2 * c + 1] + 0.5) * MAZE_UNIT;
    *y = (m->square[2 * c] + 0.5) * MAZE_UNIT;
}

static void draw_successors(FILE *to, const bj_maze *m, yyjson_val *list) {
    double total = 0, x, y;
    for (size_t i = 0; i < yyjson_arr_size(list); i++) total += number(yyjson_arr_get(list, i), 1);
    for (size_t i = 0; i < yyjson_arr_size(list); i++) {
        yyjson_val *row = yyjson_arr_get(list, i);
        place(&x, &y, m, yyjson_arr_get(row, 0));
        fprintf(to,
                "<circle class=\"successor\" fill=\"#009e73\" fill-opacity=\"0.35\" "
                "stroke=\"#009e73\" stroke-width=\"3\" cx=\"%.0f\" cy=\"%.0f\" r=\"%.1f\"/>\n",
                x, y, 23 * sqrt(number(row, 1) / fmax(total, 1)));
    }
}

/* Triangles of several candidates in one cell are placed around its center. */
static void draw_candidates(FILE *to, const bj_maze *m, yyjson_val *list) {
    const size_t K = yyjson_arr_size(list);
    for (size_t k = 0; k < K; k++) {
        yyjson_val *row = yyjson_arr_get(list, k);
        const double mass = number(row, 2);
        double x, y;
        if (!(mass >= ACTIVE)) continue;
        place(&x, &y, m, yyjson_arr_get(row, 0));
        int same = 0, before = 0; /* number of active candidates in that cell, and how many of them
                                     come earlier */
        for (size_t i = 0; i < K; i++) {
            yyjson_val *other = yyjson_arr_get(list, i);
            if (!(number(other, 2) >= ACTIVE) || number(other, 0) != number(row, 0)) continue;
            same++;
            before += i < k;
        }
        const double angle = 6.283185307179586 * before / same - 1.5707963267948966;
        const double off = same > 1 ? 13 : 0, r = 20 * sqrt(fmin(mass, 1));
        x += off * cos(angle);
        y += off * sin(angle);
        fprintf(to,
                "<path class=\"candidate\" fill=\"%s\" stroke=\"#0072b2\" stroke-width=\"2.5\" "
                "d=\"M%.1f %.1fL%.1f %.1fH%.1fZ\"/>\n",
                number(row, 3) > 0 ? "#0072b2" : "#ffffff", x, y - r, x + 0.87 * r, y + 0.5 * r,
                x - 0.87 * r);
    }
}

static void draw_context(FILE *to, const bj_maze *m, yyjson_val *c) {
    yyjson_val *point = yyjson_obj_get(c, "point"), *coverage = yyjson_obj_get(c, "coverage");
    double x, y;
    fprintf(to, "<text x=\"0\" y=\"-8\" fill=\"#1c2530\">cell %d",
            (int)yyjson_get_num(yyjson_obj_get(c, "cell")));
    if (yyjson_is_num(coverage)) fprintf(to, ": %.0f %% covered", 100 * yyjson_get_num(coverage));
    fprintf(to, "</text>\n<g transform=\"scale(%g)\">\n", SCALE);
    maze_draw_ground(to, m);
    place(&x, &y, m, yyjson_obj_get(c, "cell"));
    fprintf(to,
            "<rect fill=\"none\" stroke=\"#1c2530\" stroke-width=\"4\" x=\"%.0f\" y=\"%.0f\" "
            "width=\"28\" height=\"28\"/>\n",
            x - 14, y - 14);
    draw_successors(to, m, yyjson_obj_get(c, "successors"));
    draw_candidates(to, m, yyjson_obj_get(c, "candidates"));
    if (point) {
        place(&x, &y, m, yyjson_arr_get(point, 0));
        fprintf(to,
                "<path class=\"point\" fill=\"none\" stroke=\"#c2182b\" stroke-width=\"5\" "
                "d=\"M%.0f %.0fl20 20m0 -20l-20 20\"/>\n",
                x - 10, y - 10);
    }
    fputs("</g>\n", to);
}

static void draw_legend(FILE *to, int top, int has_point) {
    fprintf(to,
            "<circle fill=\"#009e73\" fill-opacity=\"0.35\" stroke=\"#009e73\" "
            "stroke-width=\"2\" cx=\"22\" cy=\"%d\" r=\"7\"/><text x=\"38\" y=\"%d\">successors of "
            "the dataset; area: share of crossings</text>\n",
            top + 8, top + 12);
    fprintf(
        to,
        "<path fill=\"#0072b2\" stroke=\"#0072b2\" d=\"M22 %dl7 12h-14z\"/><text x=\"38\" "
        "y=\"%d\">"
        "candidates with at least 1 %% of the mass; area: mass; filled: hits a successor</text>\n",
        top + 22, top + 32);
    if (has_point)
        fprintf(to,
                "<path fill=\"none\" stroke=\"#c2182b\" stroke-width=\"3\" d=\"M16 %dl12 12m0 "
                "-12l-12 12\"/><text x=\"38\" y=\"%d\">the model with one output</text>\n",
                top + 42, top + 52);
}

static void draw(FILE *to, const bj_maze *m, yyjson_val *contexts) {
    const int n = (int)yyjson_arr_size(contexts), columns = n < PANELS ? n : PANELS;
    const int w = (int)(m->cols * MAZE_UNIT * SCALE), h = (int)(m->rows * MAZE_UNIT * SCALE);
    const int rows = (n + columns - 1) / columns;
    int width = columns * (w + GAP) + GAP, height = rows * (h + HEAD + GAP) + LEGEND;
    if (width < 600) width = 600; /* room for the legend */
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"Emissions "
            "and successors in maze ",
            width, height, width, height);
    svg_text(to, m->name);
    fprintf(to, "\">\n<rect fill=\"#ffffff\" width=\"%d\" height=\"%d\"/>\n", width, height);
    int has_point = 0;
    for (int i = 0; i < n; i++) {
        yyjson_val *c = yyjson_arr_get(contexts, (size_t)i);
        has_point |= yyjson_obj_get(c, "point") != NULL;
        fprintf(to, "<g class=\"context\" transform=\"translate(%d %d)\">\n",
                GAP + i % columns * (w + GAP), HEAD + i / columns * (h + HEAD + GAP));
        draw_context(to, m, c);
        fputs("</g>\n", to);
    }
    draw_legend(to, height - LEGEND + 8, has_point);
    fputs("</svg>\n", to);
}

bj_status maze_successors_draw(FILE *to, const char *path, const char *maze, bj_error *err) {
    yyjson_doc *doc = read_doc(path);
    yyjson_val *root = yyjson_doc_get_root(doc), *contexts = yyjson_obj_get(root, "contexts");
    const char *name = yyjson_get_str(yyjson_obj_get(root, "maze"));
    bj_maze *m = NULL;
    bj_status status;
    if (!name) status = cli_error(err, BJ_EFORMAT, "%s: does not name its maze", path);
    else status = bj_maze_open(&m, maze ? maze : name, err);
    if (status == BJ_OK && strcmp(m->name, name))
        status = cli_error(err, BJ_EARG, "%s: contains successors in maze '%s', expected '%s'", path, name,
                           m->name);
    if (status == BJ_OK) status = check(contexts, m, path, err);
    if (status == BJ_OK) draw(to, m, contexts);
    bj_maze_free(m);
    yyjson_doc_free(doc);
    return status;
}
