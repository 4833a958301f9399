/* test_maze_graph.c - tests that the graph file of a finished run is correct and that its scores
 * equal the metrics of the run. */
#define _XOPEN_SOURCE 700
#include "maze_case.h"

static int same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void check_scores(const bj_graph_scores *s, const bj_maze_values *row) {
    CHECK(same(s->plan_all, row->plan_all) && same(s->verified_route, row->verified_route));
    CHECK(same(s->macro_precision, row->macro_precision));
    CHECK(same(s->macro_precision_self, row->macro_precision_self));
    CHECK(same(s->held_recall, row->held_recall) && same(s->cov_r, row->cov_r));
    CHECK(s->predicted_edges == row->predicted_edges);
}

static int hits; /* candidates above the threshold, of all graphs */

/* Checks that the nearest cell of a candidate is an edge if and only if its cosine is above the
 * threshold. */
static void check_record(const bj_graph_record *r, const bj_maze_run *run) {
    const size_t C = (size_t)r->maze->cells;
    CHECK(r->K == bj_maze_run_candidates(run) && r->sources == 26);
    for (int s = 0; s < r->sources; s++) {
        double mass = 0;
        for (int k = 0; k < r->K; k++) {
            const bj_graph_candidate *c = &r->candidates[s * r->K + k];
            mass += c->mass;
            if (c->cosine <= 0.5 || c->cell == r->source_cells[s]) continue;
            CHECK(r->graph[(size_t)r->source_cells[s] * C + (size_t)c->cell]);
            hits++;
        }
        if (bj_maze_run_routed(run)) CHECK_NEAR(mass, 1, 1e-5);
        else CHECK(isnan(mass));
    }
    CHECK(r->held_count == r->seen_count / 5);
    for (int k = 0; k < r->held_count; k++) {
        int seen = 0;
        for (int i = 0; i < r->seen_count; i++)
            seen |= r->seen[i].from == r->held[k].from && r->seen[i].to == r->held[k].to;
        CHECK(seen);
    }
}

/* Withheld edges that are predicted, counted here. */
static void check_recall(const bj_graph_record *r, const bj_graph_scores *s) {
    int found = 0;
    for (int k = 0; k < r->held_count; k++)
        found += r->graph[r->held[k].from * r->maze->cells + r->held[k].to];
    CHECK(r->held_count > 5 && s->held_recall == (double)found / r->held_count);
    CHECK(s->plan_all >= 0 && s->verified_route >= 0 && s->verified_route <= 1);
}

static void check_file(const bj_graph_record *r) {
    char path[CASE_PATH];
    bj_graph_file *file = NULL;
    bj_error err = {0};
    CHECK_OK(bj_graph_save(case_path(path, "graph.json"), r, &err), err);
    CHECK_OK(bj_graph_open(&file, path, &err), err);
    if (!file) return;
    const bj_graph_record *back = bj_graph_of(file);
    const size_t C = (size_t)r->maze->cells;
    CHECK(back->edge_count == r->edge_count && back->held_count == r->held_count);
    CHECK(back->seen_count == r->seen_count && back->fact_count == r->fact_count);
    CHECK(back->K == r->K && back->sources == r->sources);
    CHECK(!memcmp(back->graph, r->graph, C * C));
    CHECK(!memcmp(back->crossings, r->crossings, (size_t)r->seen_count * sizeof *r->crossings));
    bj_graph_close(file);
}

static void check_arm(const char *data, const char *arm, const char *more) {
    char dir[CASE_PATH];
    const bj_settings s = settings_of(arm, more);
    const bj_run_report trained = run(&s, data, arm, 0, 1);
    bj_maze_run *r = NULL;
    bj_maze_graph *g = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_run_open(&r, case_path(dir, arm), NULL, &err), err);
    if (!r) return;
    CHECK_OK(bj_maze_graph_create(&g, r, &err), err);
    if (g) {
        const bj_graph_scores scores = bj_maze_graph_scores(g);
        const bj_epoch row = bj_maze_run_epoch(r);
        check_scores(&scores, &trained.best.maze);
        check_scores(&scores, &row.maze);
        check_record(bj_maze_graph_record(g), r);
        check_recall(bj_maze_graph_record(g), &scores);
        check_file(bj_maze_graph_record(g));
    }
    bj_maze_graph_free(g);
    bj_maze_run_free(r);
}

/* Tests that each source keeps its own candidates and masses if only a few cells have transitions.
 */
static void check_few(void) {
    enum { C = 26, L = 8, D = 24 };
    static const float xy[][2] = {{4, 0}, {4, 4}, {4, 0}, {4, 4}, {0, 4}, {4, 4}, {0, 4}, {0, 8}};
    static const uint8_t last[8] = {[7] = 1};
    static bj_real latents[C * D], candidates[C * L * D], masses[C * L];
    char path[CASE_PATH], dir[CASE_PATH];
    npz_maker m = {0};
    bj_maze_run *r = NULL;
    bj_maze_graph *g = NULL;
    bj_error err = {0};
    npz_add(&m, "observations", "<f4", "(8, 2)", xy, sizeof xy, NPZ_DEFLATED);
    npz_add(&m, "terminals", "|b1", "(8,)", last, sizeof last, NPZ_DEFLATED);
    npz_write(&m, case_path(path, "few-medium-v0.npz"));
    const bj_settings s = settings_of("maze-branch", "maze.withheld=0");
    run(&s, path, "few", 0, 1);
    CHECK_OK(bj_maze_run_open(&r, case_path(dir, "few"), NULL, &err), err);
    if (!r) return;
    CHECK_OK(bj_maze_run_centers(r, latents, candidates, masses, &err), err);
    CHECK_OK(bj_maze_graph_create(&g, r, &err), err);
    const bj_graph_record *record = g ? bj_maze_graph_record(g) : NULL;
    CHECK(record && record->sources == 3 && record->source_cells[0] > 0);
    for (int i = 0; record && i < record->sources * L; i++) {
        const bj_graph_candidate *c = &record->candidates[i];
        const int at = record->source_cells[i / L] * L + i % L;
        double dot = 0;
        for (int d = 0; c->cell >= 0 && d < D; d++)
            dot += (double)candidates[at * D + d] * (double)latents[c->cell * D + d];
        CHECK(c->mass == (double)masses[at]);
        CHECK_NEAR(c->cosine, dot, 1e-5);
    }
    bj_maze_graph_free(g);
    bj_maze_run_free(r);
}

int main(void) {
    char data[CASE_PATH];
    maze_case_begin(data);
    check_arm(data, "maze-branch", "train.updates=200");
    check_arm(data, "maze-mdn", "maze.horizon=3 train.updates=200");
    check_arm(data, "maze-standard", "");
    check_arm(data, "maze-fused", "");
    check_arm(data, "maze-variational", "model.noise=4 model.noise_hidden=8");
    check_arm(data, "maze-codebook", "maze.withheld=0.2 seed=3");
    check_few();
    CHECK(hits > 50);
    printf("%d candidates above the threshold\n", hits);
    return test_report("run.maze_graph");
}
