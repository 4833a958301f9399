/* maze_draw.c - see maze_draw.h. */
#include "maze_draw.h"

#include <math.h>
#include <stdlib.h>

#include "svg.h"

typedef struct point {
    double x, y;
} point;

static point center(const bj_maze *m, int cell) {
    return (point){(m->square[2 * cell + 1] + 0.5) * MAZE_UNIT,
                   (m->square[2 * cell] + 0.5) * MAZE_UNIT};
}

int maze_source(const bj_graph_record *r, int cell) {
    for (int s = 0; s < r->sources; s++)
        if (r->source_cells[s] == cell) return s;
    return -1;
}

/* --------------------------------------------------------------------------------------- ground */

static void draw_walls(FILE *to, const bj_maze *m) {
    fprintf(to, "<rect class=\"m-floor\" fill=\"#fbfbf9\" width=\"%d\" height=\"%d\"/>\n",
            m->cols * MAZE_UNIT, m->rows * MAZE_UNIT);
    fputs("<path class=\"m-wall\" fill=\"#c9ced4\" d=\"", to);
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->cols; j++) {
            int end = j;
            while (end < m->cols && m->cell_at[i * m->cols + end] < 0) end++;
            if (end == j) continue;
            fprintf(to, "M%d %dh%dv%dh%dz", j * MAZE_UNIT, i * MAZE_UNIT, (end - j) * MAZE_UNIT,
                    (int)MAZE_UNIT, -(end - j) * MAZE_UNIT);
            j = end;
        }
    fputs("\"/>\n", to);
}

static void draw_ports(FILE *to, const bj_maze *m) {
    for (int k = 0; k < m->in_count; k++) {
        const point p = center(m, m->ins[k]);
        fprintf(
            to,
            "<g class=\"m-port\" fill=\"none\" stroke=\"#8a6fd1\" stroke-width=\"2\"><circle "
            "cx=\"%.0f\" cy=\"%.0f\" r=\"18\"/><circle cx=\"%.0f\" cy=\"%.0f\" r=\"14\"/></g>\n",
            p.x, p.y, p.x, p.y);
    }
    for (int k = 0; k < m->out_count; k++) {
        const point p = center(m, m->outs[k]);
        fprintf(to,
                "<g class=\"m-port\" fill=\"none\" stroke=\"#8a6fd1\" stroke-width=\"2\"><circle "
                "cx=\"%.0f\" cy=\"%.0f\" r=\"18\" stroke-dasharray=\"3 4\"/></g>\n",
                p.x, p.y);
    }
}

void maze_draw_ground(FILE *to, const bj_maze *m) {
    draw_walls(to, m);
    draw_ports(to, m);
}

/* ---------------------------------------------------------------------------------------- edges */

typedef enum look { LOOK_REAL, LOOK_FALSE, LOOK_MISSING } look;

/* Draws an edge from u to v, to the right of the line between the centers, so that both directions
 * have room. */
static void draw_edge(FILE *to, const bj_maze *m, bj_edge e, look how) {
    static const char *const paint[] = {
        "class=\"m-edge m-real\" stroke=\"#0072b2\" stroke-width=\"2.4\"",
        "class=\"m-edge m-false\" stroke=\"#d55e00\" stroke-width=\"2.4\" stroke-dasharray=\"6 4\"",
        "class=\"m-edge m-missing\" stroke=\"#5b6673\" stroke-width=\"1.6\" stroke-dasharray=\"1 "
        "4\""};
    const point a = center(m, e.from), b = center(m, e.to);
    const double dx = b.x - a.x, dy = b.y - a.y, far = hypot(dx, dy);
    const double ux = dx / far, uy = dy / far, side = far < 1.5 * MAZE_UNIT ? 5 : 8;
    const double bend = far < 1.5 * MAZE_UNIT ? 0 : 0.16 * far; /* jumps are arcs */
    const point p = {a.x + 15 * ux - side * uy, a.y + 15 * uy + side * ux};
    const point q = {b.x - 15 * ux - side * uy, b.y - 15 * uy + side * ux};
    const point c = {(p.x + q.x) / 2 - bend * uy, (p.y + q.y) / 2 + bend * ux};
    const double end = hypot(q.x - c.x, q.y - c.y); /* the direction it arrives from */
    const double hx = (q.x - c.x) / end, hy = (q.y - c.y) / end;
    fprintf(to, "<g %s fill=\"none\" stroke-linecap=\"round\" data-from=\"%d\" data-to=\"%d\">",
            paint[how], (int)e.from, (int)e.to);
    fprintf(to, "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>", p.x, p.y, c.x, c.y, q.x, q.y);
    if (how != LOOK_MISSING)
        fprintf(to, "<path stroke-dasharray=\"none\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>",
                q.x - 6 * hx + 4 * hy, q.y - 6 * hy - 4 * hx, q.x, q.y, q.x - 6 * hx - 4 * hy,
                q.y - 6 * hy + 4 * hx);
    if (how == LOOK_FALSE) {
        const point mid = {(p.x + 2 * c.x + q.x) / 4, (p.y + 2 * c.y + q.y) / 4};
        fprintf(to, "<path stroke-dasharray=\"none\" d=\"M%.1f %.1fl8 8M%.1f %.1fl8 -8\"/>",
                mid.x - 4, mid.y - 4, mid.x - 4, mid.y + 4);
    }
    fputs("</g>\n", to);
}

static void draw_edges(FILE *to, const bj_graph_record *r) {
    const bj_maze *m = r->maze;
    const size_t C = (size_t)m->cells;
    for (int k = 0; k < m->edge_count; k++)
        if (!r->graph[(size_t)m->edges[k].from * C + (size_t)m->edges[k].to])
            draw_edge(to, m, m->edges[k], LOOK_MISSING);
    for (int pass = LOOK_REAL; pass <= LOOK_FALSE; pass++) /* false ones on top */
        for (int k = 0; k < r->edge_count; k++) {
            const bj_edge e = r->edges[k];
            const look how = m->graph[(size_t)e.from * C + (size_t)e.to] ? LOOK_REAL : LOOK_FALSE;
            if ((int)how == pass) draw_edge(to, m, e, how);
        }
}

/* ---------------------------------------------------------------------------------------- cells */

static void draw_cells(FILE *to, const bj_graph_record *r, int source, int page) {
    const bj_maze *m = r->maze;
    const size_t C = (size_t)m->cells;
    for (int u = 0; u < m->cells; u++) {
        const point p = center(m, u);
        int edges = 0, real = 0;
        for (size_t v = 0; v < C; v++) {
            const int there = r->graph[(size_t)u * C + v] && v != (size_t)u;
            edges += there;
            real += there && m->graph[(size_t)u * C + v];
        }
        if (page)
            fprintf(
                to,
                "<g class=\"m-cell\" role=\"button\" tabindex=\"-1\" aria-pressed=\"false\" "
                "data-cell=\"%d\" aria-label=\"Cell %d, row %d, column %d: %d predicted edge%s, "
                "%d real\"><rect class=\"m-hit\" fill=\"transparent\" x=\"%.0f\" y=\"%.0f\" "
                "width=\"%d\" height=\"%d\"/>",
                u, u, (int)m->square[2 * u], (int)m->square[2 * u + 1], edges,
                edges == 1 ? "" : "s", real, p.x - MAZE_UNIT / 2.0, p.y - MAZE_UNIT / 2.0,
                (int)MAZE_UNIT, (int)MAZE_UNIT);
        else fputs("<g>", to);
        fprintf(to,
                "<circle class=\"m-dot\" fill=\"#ffffff\" stroke=\"%s\" stroke-width=\"%s\" "
                "cx=\"%.0f\" cy=\"%.0f\" r=\"10\"/><text class=\"m-number\" fill=\"#1c2530\" "
                "x=\"%.0f\" y=\"%.1f\" text-anchor=\"middle\">%d</text></g>\n",
                u == source && !page ? "#1c2530" : "#8a94a0", u == source && !page ? "3.5" : "1",
                p.x, p.y, p.x, p.y + 3.6, u);
    }
}

/* Draws the candidates of the source as triangles in the nearest cells. */
static void draw_candidates(FILE *to, const bj_graph_record *r, int source) {
    const int s = maze_source(r, source);
    if (s < 0) return;
    for (int k = 0; k < r->K; k++) {
        const bj_graph_candidate *c = &r->candidates[s * r->K + k];
        if (c->cell < 0) continue;
        const point p = center(r->maze, c->cell);
        const double angle = 6.283185307179586 * k / r->K - 1.5707963267948966;
        fprintf(to,
                "<path class=\"m-candidate\" fill=\"%s\" stroke=\"#0072b2\" stroke-width=\"1.5\" "
                "d=\"M%.1f %.1fl5 9h-10z\"/>\n",
                c->cosine > BJ_MAZE_THRESHOLD ? "#0072b2" : "#ffffff", p.x + 17 * cos(angle),
                p.y + 17 * sin(angle) - 5);
    }
}

static void draw_legend(FILE *to, const bj_graph_record *r, int source, int top) {
    static const struct {
        const char *line, *text;
    } rows[] = {{"stroke=\"#0072b2\" stroke-width=\"2.4\"", "predicted and real"},
                {"stroke=\"#d55e00\" stroke-width=\"2.4\" stroke-dasharray=\"6 4\"",
                 "predicted, false (with a cross)"},
                {"stroke=\"#5b6673\" stroke-width=\"1.6\" stroke-dasharray=\"1 4\"",
                 "real, not predicted"}};
    for (int k = 0; k < 3; k++)
        fprintf(to,
                "<path fill=\"none\" %s d=\"M14 %dh36\"/><text x=\"58\" y=\"%d\" "
                "fill=\"#1c2530\">%s</text>\n",
                rows[k].line, top + 18 + 20 * k, top + 22 + 20 * k, rows[k].text);
    if (source < 0 || maze_source(r, source) < 0) return;
    fprintf(to,
            "<path fill=\"#0072b2\" stroke=\"#0072b2\" d=\"M32 %dl5 9h-10z\"/><text x=\"58\" "
            "y=\"%d\" fill=\"#1c2530\">candidates of cell %d; filled: cosine above 0.5</text>\n",
            top + 73, top + 82, source);
}

void maze_draw(FILE *to, const bj_graph_record *r, int source, int page) {
    const bj_maze *m = r->maze;
    const int width = m->cols * MAZE_UNIT, height = m->rows * MAZE_UNIT;
    const int legend = page ? 0 : source >= 0 && maze_source(r, source) >= 0 ? 96 : 74;
    if (page)
        fprintf(to,
                "<svg id=\"maze\" class=\"maze\" viewBox=\"0 0 %d %d\" role=\"group\" "
                "aria-label=\"Maze ",
                width, height);
    else
        fprintf(
            to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 "
            "%d %d\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"Maze ",
            width, height + legend, width, height + legend);
    svg_text(to, m->name);
    fputs("\">\n", to);
    if (!page)
        fprintf(to, "<rect fill=\"#ffffff\" width=\"%d\" height=\"%d\"/>\n", width,
                height + legend);
    maze_draw_ground(to, m);
    fputs("<g id=\"edges\">\n", to);
    draw_edges(to, r);
    fputs("</g>\n<g font-size=\"10\">\n", to);
    draw_cells(to, r, source, page);
    fputs("</g>\n", to);
    if (page) {
        fputs("<g id=\"marks\"></g><g id=\"route\"></g>\n", to);
    } else {
        draw_candidates(to, r, source);
        draw_legend(to, r, source, height);
    }
    fputs("</svg>\n", to);
}
