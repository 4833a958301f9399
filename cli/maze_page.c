/* maze_page.c - see maze_page.h.
 *
 * The picture is drawn here (maze_draw.c), so that it is there without JavaScript; what changes by
 * a click comes from the JSON at the end of the page, which cli/assets/maze.js reads:
 *
 *   {"cells": [[i, j], ...], "edges": [[u, v, real], ...], "successors": [[v, n, ...], ...] by
 * cell, "seen": true where successors are a dataset's, "sources": {cell: [[v, cosine, mass], ...]},
 *    "source": cell, "drives": [{start, goal, xy, steps, reached, path: [x, y, ...]}, ...]}
 *
 * Positions are in squares, every second step of a drive.
 */
#include "maze_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "maze_draw.h"
#include "report_page.h"

enum { EVERY = 2 };

/* ----------------------------------------------------------------------------------------- data */

static void put_number(FILE *to, double value) {
    if (isfinite(value)) fprintf(to, "%.4g", value);
    else fputs("null", to);
}

/* Writes the successors of a cell as [cell, crossings]. The number of crossings is 0 if only the
 * true graph is known. */
static void put_successors(FILE *to, const bj_graph_record *r) {
    const bj_maze *m = r->maze;
    const bj_edge *edges = r->seen_count ? r->seen : m->edges;
    const int count = r->seen_count ? r->seen_count : m->edge_count;
    for (int u = 0, k = 0; u < m->cells; u++) {
        fputs(u ? ",[" : "[", to);
        for (int first = 1; k < count && edges[k].from == u; k++, first = 0)
            fprintf(to, "%s[%d,%lld]", first ? "" : ",", (int)edges[k].to,
                    r->seen_count ? (long long)r->crossings[k] : 0);
        fputs("]", to);
    }
}

static void put_sources(FILE *to, const bj_graph_record *r) {
    for (int s = 0; s < r->sources; s++) {
        fprintf(to, "%s\"%d\":[", s ? "," : "", (int)r->source_cells[s]);
        for (int k = 0; k < r->K; k++) {
            const bj_graph_candidate *c = &r->candidates[s * r->K + k];
            fprintf(to, "%s[%d,", k ? "," : "", (int)c->cell);
            put_number(to, c->cosine);
            fputs(",", to);
            put_number(to, c->mass);
            fputs("]", to);
        }
        fputs("]", to);
    }
}

static double in_squares(double meters) { return meters / BJ_MAZE_UNIT + 1.5; }

static bj_status put_drive(FILE *to, const maze_page *page, double *positions, int task,
                           bj_error *err) {
    const bj_maze *m = page->record->maze;
    double goal[2];
    int steps, reached;
    const bj_status status = bj_maze_drive_episode(positions, &steps, &reached, goal, m,
                                                   page->record->graph, task, 0, &page->drive, err);
    if (status != BJ_OK) return status;
    fprintf(to,
            "%s\n{\"start\":%d,\"goal\":%d,\"xy\":[%.2f,%.2f],\"steps\":%d,\"reached\":%s,"
            "\"every\":%d,\"path\":[",
            task ? "," : "", (int)m->tasks[task].from, (int)m->tasks[task].to, in_squares(goal[0]),
            in_squares(goal[1]), steps, reached ? "true" : "false", (int)EVERY);
    for (int t = 0;; t = t + EVERY < steps ? t + EVERY : steps) { /* the last one is kept */
        fprintf(to, "%s%.2f,%.2f", t ? "," : "", in_squares(positions[2 * t]),
                in_squares(positions[2 * t + 1]));
        if (t >= steps) break;
    }
    fputs("]}", to);
    return BJ_OK;
}

bj_status maze_page_data(FILE *to, const maze_page *page, bj_error *err) {
    const bj_graph_record *r = page->record;
    const bj_maze *m = r->maze;
    const int limit = page->drive.steps ? page->drive.steps : BJ_POINT_STEPS;
    bj_status status = BJ_OK;
    fputs("{\"cells\":[", to);
    for (int u = 0; u < m->cells; u++)
        fprintf(to, "%s[%d,%d]", u ? "," : "", (int)m->square[2 * u], (int)m->square[2 * u + 1]);
    fputs("],\n\"edges\":[", to);
    for (int k = 0; k < r->edge_count; k++)
        fprintf(to, "%s[%d,%d,%d]", k ? "," : "", (int)r->edges[k].from, (int)r->edges[k].to,
                m->graph[(size_t)r->edges[k].from * (size_t)m->cells + (size_t)r->edges[k].to]);
    fprintf(to, "],\n\"seen\":%s,\"successors\":[", r->seen_count ? "true" : "false");
    put_successors(to, r);
    fputs("],\n\"sources\":{", to);
    put_sources(to, r);
    fprintf(to, "},\n\"source\":%d,\"threshold\":%g,\"drives\":[", page->source, BJ_MAZE_THRESHOLD);
    double *positions = malloc(2 * ((size_t)limit + 1) * sizeof *positions);
    if (!positions) return cli_error(err, BJ_ENOMEM, "out of memory for %d steps", limit);
    for (int t = 0; t < m->task_count && status == BJ_OK; t++)
        status = put_drive(to, page, positions, t, err);
    fputs("]}", to);
    free(positions);
    return status;
}

/* ----------------------------------------------------------------------------------------- page */

static void put_card(FILE *to, const char *what, const char *fmt, double value, double of) {
    char text[64];
    snprintf(text, sizeof text, fmt, value, of);
    fprintf(to, "<div><div class=\"what\">%s</div><div class=\"big\">%s</div></div>\n", what, text);
}

void maze_page_summary(FILE *to, const maze_page *page) {
    const bj_graph_record *r = page->record;
    const bj_maze *m = r->maze;
    int real = 0;
    for (int k = 0; k < r->edge_count; k++)
        real += m->graph[(size_t)r->edges[k].from * (size_t)m->cells + (size_t)r->edges[k].to];
    fputs("<div class=\"cards\">\n", to);
    put_card(to, "predicted edges", "%.0f", r->edge_count, 0);
    put_card(to, "real edges", "%.0f", real, 0);
    put_card(to, "false", "%.0f", r->edge_count - real, 0);
    put_card(to, "true edges found", "%.0f of %.0f", real, m->edge_count);
    fputs("</div>\n", to);
}

void maze_page_picture(FILE *to, const maze_page *page) {
    maze_draw(to, page->record, page->source, 1);
}

int maze_richest(const bj_graph_record *r) {
    int best = 0, most = -1;
    for (int u = 0, k = 0; u < r->maze->cells; u++) {
        int n = 0;
        for (; k < r->edge_count && r->edges[k].from == u; k++) n++;
        if (r->sources && maze_source(r, u) < 0) continue;
        if (n > most) {
            most = n;
            best = u;
        }
    }
    return best;
}

static void put_facts(FILE *to, const maze_page *page) {
    const bj_graph_record *r = page->record;
    fputs("<section id=\"provenance\"><h2>Provenance</h2>\n"
          "<div class=\"scroll\"><table class=\"facts\"><tbody><tr><th scope=\"row\">file</th><td>",
          to);
    report_text(to, page->file);
    fputs("</td></tr>\n<tr><th scope=\"row\">maze</th><td>", to);
    report_text(to, r->maze->name);
    fputs("</td></tr>\n", to);
    for (int k = 0; k < r->fact_count; k++) {
        fputs("<tr><th scope=\"row\">", to);
        report_text(to, r->facts[k].key);
        fputs("</th><td>", to);
        report_text(to, r->facts[k].value);
        fputs("</td></tr>\n", to);
    }
    fputs("</tbody></table></div></section>\n", to);
}

static bj_status fill_section(FILE *to, const char *name, void *context, bj_error *err) {
    const maze_page *page = context;
    (void)err;
    if (!strcmp(name, "picture")) maze_page_picture(to, page);
    if (!strcmp(name, "summary")) maze_page_summary(to, page);
    return BJ_OK;
}

static bj_status fill(FILE *to, const char *name, void *context, bj_error *err) {
    const maze_page *page = context;
    if (!strcmp(name, "title")) {
        fputs("Graph of maze ", to);
        report_text(to, page->record->maze->name);
    } else if (!strcmp(name, "navigation")) {
        fputs("<a href=\"#graph\">Graph</a><a href=\"#provenance\">Provenance</a>", to);
    } else if (!strcmp(name, "sections")) {
        fputs("<h1>Predicted graph of maze ", to);
        report_text(to, page->record->maze->name);
        fputs("</h1>\n", to);
        const bj_status status = report_template(to, "maze.html", fill_section, context, err);
        if (status != BJ_OK) return status;
        put_facts(to, page);
    } else if (!strcmp(name, "footer")) {
        fprintf(to, "<p>Written by bjepa %s. This file is self-contained and works offline.</p>",
                bj_version());
    } else if (!strcmp(name, "scenes")) {
        return maze_page_data(to, page, err);
    }
    return BJ_OK;
}

bj_status maze_page_write(FILE *to, const maze_page *page, bj_error *err) {
    static const char *const styles[] = {"report.css", "maze.css", NULL};
    static const char *const scripts[] = {"report.js", "maze.js", NULL};
    maze_page copy = *page;
    return report_page_write_with(to, styles, scripts, fill, &copy, err);
}
