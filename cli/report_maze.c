/* report_maze.c - see report_maze.h. */
#include "report_maze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "maze_page.h"
#include "maze_runs.h"
#include "report_page.h"
#include "report_sections.h"

/* --------------------------------------------------------------------------------------- graphs */

static void close_graph(report_maze_graph *g) {
    bj_maze_graph_free(g->graph);
    bj_maze_run_free(g->open);
    g->graph = NULL;
    g->open = NULL;
}

static bj_status open_graph(report_maze_graph *g, const char *dir, int threads, bj_error *err) {
    const bj_maze_run_options options = {.threads = threads};
    bj_status status = bj_maze_run_open(&g->open, dir, &options, err);
    if (status == BJ_OK) status = bj_maze_graph_create(&g->graph, g->open, err);
    if (status != BJ_OK) close_graph(g);
    return status;
}

/* Returns the run of an arm with the lowest seed that has a score, or -1. */
static int first_run(const report_data *d, int arm) {
    int best = -1;
    for (int r = 0; r < d->runs; r++) {
        const report_run *run = &d->run[r];
        if (run->arm != arm || !run->finished || bj_run_collapsed(run->run)) continue;
        if (best < 0 || run->seed < d->run[best].seed) best = r;
    }
    return best;
}

bj_status report_maze_make(report_maze *out, const report_data *d, int threads, bj_error *err) {
    *out = (report_maze){.data = d};
    out->graph = calloc((size_t)d->arms + 1, sizeof *out->graph);
    if (!out->graph) return cli_error(err, BJ_ENOMEM, "out of memory for %d graphs", d->arms);
    for (int a = 0; a < d->arms; a++) {
        report_maze_graph *g = &out->graph[out->graphs];
        bj_error why;
        g->run = first_run(d, a);
        if (g->run < 0)
            snprintf(out->reason, sizeof out->reason, "No run of %s has a score.", d->arm[a].title);
        else if (open_graph(g, d->run[g->run].dir, threads, &why) != BJ_OK)
            snprintf(out->reason, sizeof out->reason, "%s", why.message);
        else out->graphs++;
    }
    for (int g = 1; g < out->graphs; g++) /* the page opens with the first one */
        if (!strcmp(d->arm[d->run[out->graph[g].run].arm].name, "maze-branch")) {
            const report_maze_graph branch = out->graph[g];
            memmove(out->graph + 1, out->graph, (size_t)g * sizeof *out->graph);
            out->graph[0] = branch;
        }
    return BJ_OK;
}

void report_maze_free(report_maze *m) {
    for (int g = 0; g < m->graphs; g++) close_graph(&m->graph[g]);
    free(m->graph);
    *m = (report_maze){0};
}

static maze_page page_of(const report_maze *m, int g) {
    const bj_graph_record *r = bj_maze_graph_record(m->graph[g].graph);
    return (maze_page){m->data->run[m->graph[g].run].dir, r, maze_richest(r), {0}};
}

static const report_arm *arm_of(const report_maze *m, int g) {
    return &m->data->arm[m->data->run[m->graph[g].run].arm];
}

static long long seed_of(const report_maze *m, int g) {
    return (long long)m->data->seed[m->data->run[m->graph[g].run].seed];
}

/* Writes the list of predictors to choose from, and the pictures of all but the first for
 * maze.js. */
static void put_choice(FILE *to, const report_maze *m) {
    fputs("<p class=\"controls\"><label>Predictor <select id=\"predictor\">", to);
    for (int g = 0; g < m->graphs; g++) {
        fprintf(to, "<option value=\"%d\">", g);
        report_textf(to, "%s, seed %lld", arm_of(m, g)->title, seed_of(m, g));
        fputs("</option>", to);
    }
    fputs("</select></label></p>\n", to);
    for (int g = 0; g < m->graphs; g++) {
        const maze_page page = page_of(m, g);
        fprintf(to, "<template id=\"graph-%d\"><div>\n", g);
        maze_page_summary(to, &page);
        fputs("</div><div>\n", to);
        maze_page_picture(to, &page);
        fputs("</div></template>\n", to);
    }
}

static bj_status fill_graph(FILE *to, const char *name, void *context, bj_error *err) {
    const report_maze *m = context;
    const maze_page page = page_of(m, 0);
    (void)err;
    if (!strcmp(name, "picture")) maze_page_picture(to, &page);
    if (!strcmp(name, "summary")) maze_page_summary(to, &page);
    if (!strcmp(name, "choice")) put_choice(to, m);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- about */

static int count_collapsed(const report_data *d) {
    int n = 0;
    for (int r = 0; r < d->runs; r++) n += d->run[r].run && bj_run_collapsed(d->run[r].run);
    return n;
}

static void put_about(FILE *to, const report_maze *m) {
    const report_data *d = m->data;
    const int sets = report_set_count(d);
    int finished = 0;
    for (int r = 0; r < d->runs; r++) finished += d->run[r].finished;
    fputs("<section id=\"about\">\n<h1>", to);
    report_text(to, d->name);
    fputs("</h1>\n<p class=\"tags\"><span class=\"tag dev\">last epoch of every run</span> <span "
          "class=\"soft\">",
          to);
    if (sets > 1) fprintf(to, "%d datasets", sets);
    else
        fprintf(to, "training data <span class=\"hash\">%.16s</span>",
                report_training_digest(d));
    fputs("</span></p>\n", to);
    fputs("<p class=\"lead\">A predictor is trained on recorded walks through a maze "
          "and predicts the next cells of every cell. "
          "The predictions form a graph, which is compared with the true graph.</p>\n"
          "<div class=\"cards\">\n",
          to);
    fprintf(to,
            "<div><div class=\"what\">Predictors and seeds</div><div class=\"big\">%d \xc3\x97 "
            "%d</div><div class=\"what\">%d of %d runs finished</div></div>\n",
            d->arms / sets, d->seeds, finished, d->runs);
    fprintf(to,
            "<div><div class=\"what\">Collapsed</div><div class=\"big\">%d</div><div "
            "class=\"what\">of %d finished runs: no score</div></div>\n</div>\n</section>\n",
            count_collapsed(d), finished);
}

/* -------------------------------------------------------------------------------------- results */

static const struct {
    const char *metric, *title, *text;
    double scale;
    int digits;
} columns[] = {
    {"plan_all", "planAll %",
     "share of queries with a path in the predicted graph, including false edges", 100, 1},
    {"verified_route", "verified route %",
     "share of queries with a path of predicted edges that are real", 100, 1},
    {"macro_precision", "precision %",
     "share of real edges among the predicted edges of a cell, "
     "averaged over cells with predictions",
     100, 1},
    {"held_recall", "withheld %", "share of the edges withheld from training that were predicted",
     100, 1},
    {"cov_r", "raw COV-R %",
     "share of a cell's successors that a candidate hits, "
     "averaged over cells",
     100, 1},
    {"predicted_edges", "edges", "number of predicted edges between different cells", 1, 1},
    {"separated", "separated %",
     "share of the cell pairs whose latents have a cosine of at most 0.5", 100, 1},
    {"entropy_rank", "rank", "number of directions that the cell latents use", 1, 1},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static int is_measured(const report_data *d, int metric) {
    for (int a = 0; metric >= 0 && a < d->arms; a++)
        if (report_summary(d, a, metric).n) return 1;
    return 0;
}

static void put_cell(FILE *to, const report_data *d, int arm, int c) {
    const bj_summary s = report_summary(d, arm, bj_metric_find(columns[c].metric));
    char number[CLI_FIXED_SIZE];
    fputs("<td class=\"n\">", to);
    if (!s.n) fputs("\xe2\x80\x93", to);
    else fputs(cli_fixed(number, columns[c].scale * s.mean, columns[c].digits), to);
    if (s.n && isfinite(s.sd))
        fprintf(to, " <span class=\"soft\">\xc2\xb1 %s</span>",
                cli_fixed(number, columns[c].scale * s.sd, columns[c].digits));
    fputs("</td>", to);
}

/* Lists the number of seeds of an arm that have a score, and the seeds that collapsed. */
static void put_seeds(FILE *to, const report_data *d, int arm) {
    int scored = 0, collapsed = 0;
    for (int r = 0; r < d->runs; r++)
        scored += d->run[r].arm == arm && d->run[r].finished && !bj_run_collapsed(d->run[r].run);
    fprintf(to, "<td class=\"n\">%d", scored);
    for (int r = 0; r < d->runs; r++) {
        const report_run *run = &d->run[r];
        if (run->arm != arm || !run->run || !bj_run_collapsed(run->run)) continue;
        fprintf(to, "%s%lld", collapsed++ ? ", " : "<span class=\"ci\">collapsed: seed ",
                (long long)d->seed[run->seed]);
    }
    fprintf(to, "%s</td>", collapsed ? "</span>" : "");
}

static void put_results(FILE *to, const report_data *d) {
    int shown = 0;
    for (int c = 0; c < COLUMNS; c++) shown += is_measured(d, bj_metric_find(columns[c].metric));
    fputs("<section id=\"results\">\n<h2>Results</h2>\n", to);
    if (!shown) fputs("<p>There are no results yet, because no finished run has a score.</p>\n", to);
    fputs("<p class=\"note\">Mean \xc2\xb1 sample SD over seeds in the last epoch. "
          "A run whose latents have collapsed has no score; "
          "its seed is listed below the predictor.</p>\n"
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Metrics\"><table>\n"
          "<thead><tr><th scope=\"col\">predictor</th><th scope=\"col\" class=\"n\">seeds</th>",
          to);
    for (int c = 0; c < COLUMNS; c++)
        if (is_measured(d, bj_metric_find(columns[c].metric)))
            fprintf(to, "<th scope=\"col\" class=\"n\" title=\"%s\">%s</th>", columns[c].text,
                    columns[c].title);
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int a = 0; a < d->arms; a++) {
        fputs("<tr><th scope=\"row\">", to);
        report_text(to, d->arm[a].title);
        fputs("</th>", to);
        put_seeds(to, d, a);
        for (int c = 0; c < COLUMNS; c++)
            if (is_measured(d, bj_metric_find(columns[c].metric))) put_cell(to, d, a, c);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n"
          "<details><summary>Definitions</summary><div class=\"scroll\"><table><tbody>\n",
          to);
    for (int c = 0; c < COLUMNS; c++)
        if (is_measured(d, bj_metric_find(columns[c].metric)))
            fprintf(to, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", columns[c].title,
                    columns[c].text);
    fputs("</tbody></table></div></details>\n</section>\n", to);
}

/* ----------------------------------------------------------------------------------------- page */

static bj_status put_sections(FILE *to, report_maze *m, bj_error *err) {
    const report_data *d = m->data;
    bj_status status = BJ_OK;
    put_about(to, m);
    if (m->graphs) status = report_template(to, "maze.html", fill_graph, m, err);
    if (status != BJ_OK) return status;
    if (*m->reason) {
        fprintf(to, "<p class=\"notice shown\" id=\"no-graph\">%s graphs on this page. ",
                m->graphs ? "Not all predictors have" : "There are no");
        report_text(to, m->reason);
        fputs("</p>\n", to);
    }
    put_results(to, d);
    report_figures(to, d);
    report_parameters(to, d);
    return report_provenance(to, d, err);
}

static bj_status fill(FILE *to, const char *name, void *context, bj_error *err) {
    report_maze *m = context;
    bj_status status = BJ_OK;
    if (!strcmp(name, "title")) report_textf(to, "%s: Branch-JEPA report", m->data->name);
    else if (!strcmp(name, "navigation")) {
        if (m->graphs) fputs("<a href=\"#graph\">Graphs</a>", to);
        fputs("<a href=\"#results\">Results</a><a href=\"#maze-curves\">Learning</a><a "
              "href=\"#parameters\">Size</a><a href=\"#provenance\">Provenance</a>",
              to);
    } else if (!strcmp(name, "sections")) return put_sections(to, m, err);
    else if (!strcmp(name, "footer"))
        fprintf(to, "<p>Written by bjepa %s. This file is self-contained and works offline.</p>",
                bj_version());
    else if (!strcmp(name, "scenes")) {
        fputs("{\"graphs\":[", to);
        for (int g = 0; status == BJ_OK && g < m->graphs; g++) {
            const maze_page page = page_of(m, g);
            if (g) fputs(",\n", to);
            status = maze_page_data(to, &page, err);
        }
        fputs("]}", to);
    }
    return status;
}

bj_status report_maze_write(FILE *to, report_maze *m, bj_error *err) {
    static const char *const styles[] = {"report.css", "plot.css", "maze.css", NULL};
    static const char *const scripts[] = {"report.js", "maze.js", NULL};
    return report_page_write_with(to, styles, scripts, fill, m, err);
}
