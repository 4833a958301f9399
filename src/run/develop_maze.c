/* develop_maze.c - evaluates a maze model's graph, and checks whether its latents have collapsed.
 *
 * For states of x and y, cell latents are the outputs of the target encoder at the centers of the
 * cells, and candidates are all predictions at the centers of the cells that have a transition in
 * the data. docs/MAZES.md defines the metrics. Other states and images have no observation at a
 * cell center, so raw COV-R is computed over evenly spaced recorded frames, from held-out episodes
 * if there are any.
 *
 * A model has collapsed if its latents (of cells or frames) fail a gate: mean standard deviation,
 * share of flat dimensions, entropy rank, or separation, which is the share of pairs of cells whose
 * cosine is at most the edge threshold. If all cells are closer than the threshold, COV-R is 1 for
 * any predictor. A row that fails a gate is not eligible.
 *
 * This file also fits a codebook to the target latents of the transitions' ends, by k-means on the
 * sphere. The initial codes are drawn far apart from each other and depend only on the seed.
 * Test: tests/run/test_maze_train.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "maze/maze.h"
#include "run/maze_view.h"
#include "run/run.h"

enum { FRAMES = 4000 /* max frames for COV-R and for fitting a codebook */, CODE_ROUNDS = 50 };

/* Observations and the outputs for them. */
typedef struct look {
    bj_train_run *r;
    bj_maze_view view;
    bj_pair *pairs;      /* (n) pairs for frames; NULL for cell centers */
    bj_real *latents;    /* (n,D) target latents */
    bj_real *candidates; /* (n,L,D) */
    bj_real *weights;    /* (n,K) */
    int n;
} look;

static void look_reset(look *l) {
    bj_free(l->weights);
    bj_free(l->candidates);
    bj_free(l->latents);
    bj_free(l->pairs);
    bj_maze_view_reset(&l->view);
}

/* Allocates the arrays for n observations. */
static bj_status look_init(look *l, bj_train_run *r, int n, bj_error *err) {
    bj_target *target;
    l->r = r;
    l->n = n;
    BJ_TRY(bj_target_from_trainer(&target, r->trainer, err));
    const bj_status status = bj_maze_view_open(&l->view, r->model, target, n, r->options->threads,
                                               r->options->isa, err);
    bj_target_free(target);
    BJ_TRY(status);
    const size_t rows = (size_t)n, D = (size_t)l->view.D;
    BJ_TRY(BJ_ALLOC(l->latents, rows * D, err));
    BJ_TRY(BJ_ALLOC(l->weights, rows * (size_t)l->view.K, err));
    return BJ_ALLOC(l->candidates, rows * (size_t)l->view.L * D, err);
}

/* ------------------------------------------------------------------------------------ codebook */

static double cosine(const bj_real *a, const bj_real *b, size_t D) {
    double sum = 0;
    for (size_t d = 0; d < D; d++) sum += (double)a[d] * (double)b[d];
    return sum;
}

static int nearest(const bj_real *codes, int K, const bj_real *x, size_t D, double *best) {
    int at = 0;
    *best = -2;
    for (int k = 0; k < K; k++) {
        const double c = cosine(codes + (size_t)k * D, x, D);
        if (c > *best) *best = c, at = k;
    }
    return at;
}

/* Fits codes (K,D) to unit latents x (n,D) with k-means++: each initial code is drawn with a
 * probability proportional to its squared distance from the earlier codes. Then codes are replaced
 * by the mean of their nearest latents until nothing changes. */
static bj_status fit_codes(bj_real *codes, int K, const bj_real *x, int n, size_t D, uint64_t seed,
                           bj_error *err) {
    bj_rng rng = bj_rng_named(seed, "codebook");
    double *sum;
    int *owner;
    BJ_TRY(BJ_ALLOC(sum, D, err));
    const bj_status status = BJ_ALLOC(owner, (size_t)n, err);
    for (int k = 0; status == BJ_OK && k < K; k++) {
        double total = 0, best;
        for (int i = 0; i < n && k; i++) {
            nearest(codes, k, x + (size_t)i * D, D, &best);
            total += fmax(2 - 2 * best, 0);
        }
        double left = bj_rng_uniform(&rng) * (k ? total : n);
        int chosen = 0;
        for (int i = 0; i < n && left >= 0; i++) {
            if (k) nearest(codes, k, x + (size_t)i * D, D, &best);
            left -= k ? fmax(2 - 2 * best, 0) : 1;
            chosen = i;
        }
        memcpy(codes + (size_t)k * D, x + (size_t)chosen * D, D * sizeof *codes);
    }
    for (int round = 0, moved = 1; status == BJ_OK && moved && round < CODE_ROUNDS; round++) {
        moved = 0;
        for (int i = 0; i < n; i++) {
            double best;
            const int k = nearest(codes, K, x + (size_t)i * D, D, &best);
            moved |= round == 0 || owner[i] != k;
            owner[i] = k;
        }
        for (int k = 0; k < K; k++) {
            double squares = 0;
            memset(sum, 0, D * sizeof *sum);
            for (int i = 0; i < n; i++)
                for (size_t d = 0; owner[i] == k && d < D; d++) sum[d] += (double)x[(size_t)i * D + d];
            for (size_t d = 0; d < D; d++) squares += sum[d] * sum[d];
            for (size_t d = 0; d < D && squares > 0; d++) /* a code without nearest latents does not
                                                             change */
                codes[(size_t)k * D + d] = (bj_real)(sum[d] / sqrt(squares));
        }
    }
    bj_free(owner);
    bj_free(sum);
    return status;
}

static bj_status fit_codebook(bj_train_run *r, bj_error *err) {
    const int64_t count = bj_transitions_count(r->maze->transitions);
    const int n = (int)(count < FRAMES ? count : FRAMES);
    look l = {0};
    bj_tensor codes;
    bj_status status;
    BJ_GOTO(status, done, bj_model_find(&codes, r->model, "codebook", err));
    BJ_GOTO(status, done, look_init(&l, r, n, err));
    BJ_GOTO(status, done, BJ_ALLOC(l.pairs, (size_t)n, err));
    for (int i = 0; i < n; i++) l.pairs[i] = bj_maze_source_pair(r->maze, i * (count / n));
    BJ_GOTO(status, done, bj_maze_view_look(&l.view, l.latents, NULL, NULL, l.pairs, n, err));
    status = fit_codes(codes.data, codes.shape[0], l.latents, n, (size_t)codes.shape[1],
                       r->settings.seed, err);
done:
    look_reset(&l);
    return status;
}

/* --------------------------------------------------------------------------------------- graph */

static void separation(bj_maze_values *out, const bj_real *latents, int cells, size_t D) {
    int64_t apart = 0, pairs = 0;
    out->closest = -1;
    for (int u = 0; u < cells; u++)
        for (int v = 0; v < u; v++, pairs++) {
            const double c = cosine(latents + (size_t)u * D, latents + (size_t)v * D, D);
            apart += c <= BJ_MAZE_THRESHOLD;
            out->closest = fmax(out->closest, c);
        }
    out->separated = (double)apart / (double)pairs;
}

static bj_status judge_graph(bj_epoch *row, look *l, bj_error *err) {
    const bj_maze_source *s = l->r->maze;
    const bj_arch *a = &l->r->arch;
    const int C = s->maze->cells;
    bj_graph_scores scores;
    int32_t *cells;
    BJ_TRY(bj_latent_health_measure(&row->health, l->latents, (size_t)a->latent, C, a->latent, err));
    separation(&row->maze, l->latents, C, (size_t)a->latent);
    BJ_TRY(BJ_ALLOC(cells, (size_t)C, err));
    const int L = l->view.L, D = l->view.D;
    const int sources = bj_maze_keep_sources(l->candidates, cells, s, (size_t)L * (size_t)D);
    const bj_graph_case input =
        bj_maze_source_case(s, l->latents, l->candidates, cells, sources, L, D);
    const bj_status status = bj_graph_score(&scores, NULL, &input, err);
    bj_free(cells);
    BJ_TRY(status);
    row->maze.plan_all = scores.plan_all;
    row->maze.verified_route = scores.verified_route;
    row->maze.macro_precision = scores.macro_precision;
    row->maze.macro_precision_self = scores.macro_precision_self;
    row->maze.held_recall = scores.held_recall;
    row->maze.cov_r = scores.cov_r;
    row->maze.cov_three = scores.cov_three;
    row->maze.heads_three = scores.heads_three;
    row->maze.predicted_edges = scores.predicted_edges;
    return BJ_OK;
}

static bj_status centers(bj_epoch *row, bj_train_run *r, bj_error *err) {
    const bj_maze *m = r->maze->maze;
    look l = {0};
    bj_status status;
    BJ_GOTO(status, done, look_init(&l, r, m->cells, err));
    BJ_GOTO(status, done,
            bj_maze_view_centers(&l.view, l.latents, l.candidates, l.weights, m, err));
    row->dev.scenes = m->cells;
    double usage[BJ_MAX_ATOMS] = {0};
    const int K = r->arch.atoms;
    for (int i = 0; i < m->cells * K; i++) usage[i % K] += (double)l.weights[i] / m->cells;
    row->usage_least = row->usage_most = usage[0];
    for (int k = 1; k < K; k++) {
        row->usage_least = fmin(row->usage_least, usage[k]);
        row->usage_most = fmax(row->usage_most, usage[k]);
    }
    status = judge_graph(row, &l, err);
done:
    look_reset(&l);
    return status;
}

/* -------------------------------------------------------------------------------------- frames */

/* Computes how well the normalized mean latents of the cells are separated. Only cells with frames
 * are used. */
static void separation_of_means(bj_maze_values *out, const bj_frame_coverage *coverage, int cells,
                                int D) {
    int64_t apart = 0, pairs = 0;
    out->closest = -1;
    for (int u = 0; u < cells; u++)
        for (int v = 0; v < u; v++) {
            const double *a = bj_frame_coverage_latent(coverage, u);
            const double *b = bj_frame_coverage_latent(coverage, v);
            if (!a || !b) continue;
            const double c = bj_maze_dot(a, b, D);
            apart += c <= BJ_MAZE_THRESHOLD;
            out->closest = fmax(out->closest, c);
            pairs++;
        }
    out->separated = pairs ? (double)apart / (double)pairs : 0; /* a single cell is not a maze */
}

static bj_status cover(bj_maze_values *out, const look *l, const int64_t *rows, bj_error *err) {
    const bj_maze_source *s = l->r->maze;
    const bj_arch *a = &l->r->arch;
    const int16_t *cells = bj_maze_data_cells(s->data);
    const int64_t *episodes = bj_maze_data_episodes(s->data);
    const size_t D = (size_t)a->latent, L = (size_t)bj_arch_latents(a);
    const int64_t ahead = l->r->settings.horizon ? l->r->settings.horizon : 1;
    bj_frame_coverage *coverage;
    bj_status status;
    BJ_TRY(bj_frame_coverage_create(&coverage, s->maze->cells, a->latent, err));
    int64_t e = 0;
    for (int i = 0; i < l->n; i++) {
        while (rows[i] >= episodes[e + 1]) e++;
        const int64_t to = rows[i] + ahead;
        const int next = to < episodes[e + 1] ? cells[to] : -1;
        if (cells[rows[i]] < 0) continue;
        BJ_GOTO(status, done,
                bj_frame_coverage_target(coverage, cells[rows[i]], next,
                                         l->latents + (size_t)i * D, err));
    }
    e = 0;
    for (int i = 0; i < l->n; i++) {
        while (rows[i] >= episodes[e + 1]) e++;
        if (cells[rows[i]] < 0 || rows[i] + ahead >= episodes[e + 1]) continue;
        BJ_GOTO(status, done,
                bj_frame_coverage_predict(coverage, cells[rows[i]],
                                          l->candidates + (size_t)i * L * D, (int)L, err));
    }
    out->cov_r = bj_frame_coverage_result(NULL, coverage);
    separation_of_means(out, coverage, s->maze->cells, a->latent);
    status = BJ_OK;
done:
    bj_frame_coverage_free(coverage);
    return status;
}

static bj_status frames(bj_epoch *row, bj_train_run *r, bj_error *err) {
    const bj_maze_source *s = r->maze;
    look l = {0};
    int64_t *rows = NULL;
    int n;
    bj_status status;
    BJ_GOTO(status, done, bj_maze_source_frames(&rows, &n, s, FRAMES, err));
    BJ_GOTO(status, done, look_init(&l, r, n, err));
    BJ_GOTO(status, done, BJ_ALLOC(l.pairs, (size_t)n, err));
    for (int i = 0; i < n; i++) l.pairs[i] = bj_maze_source_row(s, rows[i]);
    BJ_GOTO(status, done,
            bj_maze_view_look(&l.view, l.latents, l.candidates, l.weights, l.pairs, n, err));
    const int D = r->arch.latent, used = n < BJ_HEALTH_SCENES ? n : BJ_HEALTH_SCENES;
    BJ_GOTO(status, done,
            bj_latent_health_measure(&row->health, l.latents, (size_t)D, used, D, err));
    row->dev.scenes = n;
    status = cover(&row->maze, &l, rows, err);
done:
    bj_free(rows);
    look_reset(&l);
    return status;
}

/* ------------------------------------------------------------------------------------- verdict */

int bj_run_separated(const bj_settings *s, const bj_epoch *row) {
    return row->health.mean_std >= s->gate_std && row->health.low_std_fraction <= s->gate_low_std &&
           row->health.entropy_rank >= s->gate_rank &&
           !(row->maze.separated < s->gate_separated);
}

bj_status bj_run_develop_maze(bj_epoch *row, bj_train_run *r, bj_error *err) {
    if (r->arch.kind == BJ_MODEL_CODEBOOK) BJ_TRY(fit_codebook(r, err));
    row->usage_least = row->usage_most = row->decoder_ade = row->decoder_fde = NAN;
    const int points = r->arch.encoder == BJ_ENCODER_STATE && r->maze->numbers == 2;
    BJ_TRY(points ? centers(row, r, err) : frames(row, r, err));
    row->eligible = bj_run_separated(&r->settings, row);
    return BJ_OK;
}
