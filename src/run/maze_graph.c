/* maze_graph.c - creates the record of a graph file, with its scores, from a finished run.
 *
 * Latents, candidates and the reference graph are computed by the code that evaluates a run during
 * training (maze_view.h, maze_source.h), so the scores equal those in metrics.jsonl exactly on the
 * same instruction set.
 * Test: tests/run/test_maze_graph.c, tests/cli/maze_graph.sh
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/maze.h"
#include "run/maze_run.h"

enum { FACTS = 9, FACT = 96 };

struct bj_maze_graph {
    bj_graph_record record;
    bj_graph_scores scores;
    uint8_t *predicted; /* (C,C) */
    bj_edge *edges;
    int32_t *cells;                 /* (S) */
    bj_graph_candidate *candidates; /* (S,L) */
    bj_fact facts[FACTS];
    char seed[FACT], updates[FACT];
};

/* Arrays that are needed only while a graph is created. */
typedef struct parts {
    bj_real *latents;    /* (C,D) */
    bj_real *candidates; /* (C,L,D), later only those of the sources */
    bj_real *masses;     /* (C,L), later only those of the sources */
} parts;

static void add_facts(bj_maze_graph *g, const bj_maze_run *r) {
    const bj_settings *s = bj_run_settings(r->run);
    const char *arm = s->arm;
    snprintf(g->seed, sizeof g->seed, "%llu", (unsigned long long)s->seed);
    snprintf(g->updates, sizeof g->updates, "%lld", (long long)bj_maze_run_epoch(r).step);
    const bj_fact facts[FACTS] = {{"predictor", strncmp(arm, "maze-", 5) ? arm : arm + 5},
                                  {"seed", g->seed},
                                  {"updates", g->updates},
                                  {"latents", r->collapsed ? "collapsed" : "separated"},
                                  {"run", r->dir},
                                  {"settings_sha256", bj_run_fact(r->run, "settings.sha256")},
                                  {"weights_sha256", r->checkpoint},
                                  {"data_sha256", r->source->digest},
                                  {"version", bj_run_fact(r->run, "version")}};
    for (int k = 0; k < FACTS; k++)
        if (facts[k].value) g->facts[g->record.fact_count++] = facts[k];
}

/* Copies the masses of the sources to consecutive rows. Returns NULL if the model has no router. */
static const bj_real *keep_masses(parts *p, const bj_maze_run *r, const int32_t *cells,
                                  int sources) {
    const size_t L = (size_t)r->view.L;
    if (!bj_maze_run_routed(r)) return NULL;
    for (int s = 0; s < sources; s++)
        memmove(p->masses + (size_t)s * L, p->masses + (size_t)cells[s] * L, L * sizeof *p->masses);
    return p->masses;
}

static bj_status build(bj_maze_graph *g, parts *p, bj_maze_run *r, bj_error *err) {
    const bj_maze_source *s = r->source;
    const size_t C = (size_t)r->maze->cells, L = (size_t)r->view.L, D = (size_t)r->view.D;
    BJ_TRY(BJ_ALLOC(p->latents, C * D, err));
    BJ_TRY(BJ_ALLOC(p->candidates, C * L * D, err));
    BJ_TRY(BJ_ALLOC(p->masses, C * L, err));
    BJ_TRY(BJ_ALLOC(g->cells, C, err));
    BJ_TRY(BJ_ALLOC(g->candidates, C * L, err));
    BJ_TRY(BJ_ALLOC(g->predicted, C * C, err));
    BJ_TRY(bj_maze_run_centers(r, p->latents, p->candidates, p->masses, err));
    const int sources = bj_maze_keep_sources(p->candidates, g->cells, s, L * D);
    const bj_graph_case input =
        bj_maze_source_case(s, p->latents, p->candidates, g->cells, sources, r->view.L, r->view.D);
    const bj_graph_details details = {.predicted = g->predicted};
    BJ_TRY(bj_graph_score(&g->scores, &details, &input, err));
    BJ_TRY(bj_graph_candidates(g->candidates, &input, keep_masses(p, r, g->cells, sources), err));
    int edges;
    BJ_TRY(bj_graph_edges(&g->edges, &edges, g->predicted, r->maze->cells, err));
    for (size_t u = 0; u < C; u++) g->predicted[u * C + u] = 0; /* in the order of a graph file */
    g->record = (bj_graph_record){.maze = r->maze,
                                  .edges = g->edges,
                                  .edge_count = edges,
                                  .graph = g->predicted,
                                  .held = s->withheld,
                                  .held_count = s->withheld_count,
                                  .seen = bj_maze_data_edges(s->data),
                                  .crossings = bj_maze_data_counts(s->data),
                                  .seen_count = s->info.edges,
                                  .sources = sources,
                                  .K = r->view.L,
                                  .source_cells = g->cells,
                                  .candidates = g->candidates,
                                  .facts = g->facts};
    add_facts(g, r);
    return BJ_OK;
}

bj_status bj_maze_graph_create(bj_maze_graph **out, bj_maze_run *run, bj_error *err) {
    bj_maze_graph *g;
    parts p = {0};
    *out = NULL;
    if (!bj_maze_run_sees_points(run))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the run uses observations other than x and y, "
                       "so it has frame coverage but no graph",
                       run->dir);
    BJ_TRY(bj_maze_run_need_source(run, err));
    BJ_TRY(BJ_ALLOC(g, 1, err));
    const bj_status status = build(g, &p, run, err);
    bj_free(p.masses);
    bj_free(p.candidates);
    bj_free(p.latents);
    if (status == BJ_OK) *out = g;
    else bj_maze_graph_free(g);
    return status;
}

void bj_maze_graph_free(bj_maze_graph *g) {
    if (!g) return;
    bj_free(g->candidates);
    bj_free(g->cells);
    bj_edges_free(g->edges);
    bj_free(g->predicted);
    bj_free(g);
}

const bj_graph_record *bj_maze_graph_record(const bj_maze_graph *g) { return &g->record; }
bj_graph_scores bj_maze_graph_scores(const bj_maze_graph *g) { return g->scores; }
