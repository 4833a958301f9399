/* graph_score.c - compares a predicted graph of cells with the true graph; see branchjepa/maze.h.
 *
 *   hit[s,v]        1 if some candidate of source s has cosine > 0.5 with the latent of cell v
 *   predicted[u,v]  1 if a source in cell u hits v
 *   heads[s]        candidates of s with cosine > 0.5 with a successor
 *   precision[u]    |{v != u: predicted and real}| / |{v != u: predicted}|; _self counts v = u
 *   cov_r[s]        |{v: hit and successor of s}| / |{v: successor of s}|
 *
 * Cosines are computed in double from normalized vectors. A vector of zeros has cosine 0 with every
 * vector. A number that is not finite is an error.
 * Test: tests/maze/test_graph_score.c, tests/verify/test_maze_parity.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/maze.h"

bj_status bj_maze_unit(double *out, const bj_real *x, int D, const char *what, int number,
                       bj_error *err) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += (double)x[d] * (double)x[d];
    if (!isfinite(sum))
        return BJ_FAIL(err, BJ_ENONFINITE, "%s %d contains a number that is not finite", what,
                       number);
    const double norm = sqrt(sum);
    for (int d = 0; d < D; d++) out[d] = sum > 0 ? (double)x[d] / norm : 0;
    return BJ_OK;
}

double bj_maze_dot(const double *a, const double *b, int D) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += a[d] * b[d];
    return sum;
}

/* --------------------------------------------------------------------------------------- checks */

static bj_status check_pairs(const bj_edge *pairs, int count, int cells, const char *what,
                             bj_error *err) {
    if (count < 0 || (count && !pairs))
        return BJ_FAIL(err, BJ_EARG,
                       "graph metrics: a count is negative or its list is NULL: %d %s", count,
                       what);
    for (int k = 0; k < count; k++)
        if (pairs[k].from < 0 || pairs[k].from >= cells || pairs[k].to < 0 || pairs[k].to >= cells)
            return BJ_FAIL(err, BJ_EARG,
                           "graph metrics: %s: pair %d is (%d, %d), expected cells 0 to %d", what,
                           k, (int)pairs[k].from, (int)pairs[k].to, cells - 1);
    return BJ_OK;
}

static bj_status check(const bj_graph_case *c, bj_error *err) {
    if (c->cells < 1 || c->cells > BJ_MAZE_MAX_CELLS)
        return BJ_FAIL(err, BJ_EARG, "graph metrics: %d cells, expected 1 to %d", c->cells,
                       (int)BJ_MAZE_MAX_CELLS);
    if (c->sources < 0 || c->K < 1 || c->D < 1)
        return BJ_FAIL(
            err, BJ_EARG,
            "graph metrics: a size is out of range: %d sources, %d candidates of width %d",
            c->sources, c->K, c->D);
    for (int s = 0; s < c->sources; s++)
        if (c->source_cells[s] < 0 || c->source_cells[s] >= c->cells)
            return BJ_FAIL(err, BJ_EARG,
                           "graph metrics: source %d is in cell %d, expected a cell from 0 to %d",
                           s, (int)c->source_cells[s], c->cells - 1);
    BJ_TRY(check_pairs(c->held, c->held_count, c->cells, "withheld edges", err));
    BJ_TRY(check_pairs(c->plan, c->plan_count, c->cells, "planning queries", err));
    return check_pairs(c->verified, c->verified_count, c->cells, "verified queries", err);
}

/* ------------------------------------------------------------------------------------- decoding */

/* Returns a row (C) that marks the successors of a source for COV-R. */
static const uint8_t *successors_of(const bj_graph_case *c, int source) {
    const uint8_t *graph = c->successors ? c->successors : c->graph;
    return graph + (size_t)c->source_cells[source] * (size_t)c->cells;
}

/* hit (S,C), heads (S) */
static bj_status decode(uint8_t *hit, int32_t *heads, const bj_graph_case *c, bj_error *err) {
    const size_t C = (size_t)c->cells, D = (size_t)c->D, K = (size_t)c->K;
    double *latents = NULL, *candidate = NULL;
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(latents, C * D, err));
    BJ_GOTO(status, done, BJ_ALLOC(candidate, D, err));
    for (size_t v = 0; v < C; v++)
        BJ_GOTO(status, done,
                bj_maze_unit(latents + v * D, c->latents + v * D, c->D,
                             "graph metrics: the latent of cell", (int)v, err));
    for (size_t i = 0; i < (size_t)c->sources * K; i++) {
        uint8_t *row = hit + i / K * C;
        BJ_GOTO(status, done,
                bj_maze_unit(candidate, c->candidates + i * D, c->D,
                             "graph metrics: a candidate of source", (int)(i / K), err));
        const uint8_t *next = successors_of(c, (int)(i / K));
        int real = 0;
        for (size_t v = 0; v < C; v++) {
            const int near = bj_maze_dot(candidate, latents + v * D, c->D) > BJ_MAZE_THRESHOLD;
            row[v] |= (uint8_t)near;
            real |= near && next[v];
        }
        heads[i / K] += real;
    }
done:
    bj_free(latents);
    bj_free(candidate);
    return status;
}

/* -------------------------------------------------------------------------------------- metrics */

/* Returns the mean precision over cells that predict an edge. `per` (C) may be NULL. */
static double macro_precision(double *per, const uint8_t *predicted, const uint8_t *graph,
                              int cells, int self) {
    double sum = 0;
    int proposing = 0;
    for (int u = 0; u < cells; u++) {
        const size_t at = (size_t)u * (size_t)cells;
        int proposed = 0, real = 0;
        for (int v = 0; v < cells; v++) {
            if (!predicted[at + (size_t)v] || (v == u && !self)) continue;
            proposed++;
            real += v != u && graph[at + (size_t)v];
        }
        if (per) per[u] = proposed ? (double)real / proposed : (double)NAN;
        if (!proposed) continue;
        sum += (double)real / proposed;
        proposing++;
    }
    return proposing ? sum / proposing : (double)NAN;
}

/* Computes cov_r over all sources, and cov_three and heads_three over sources with three
 * successors. */
static void coverage(bj_graph_scores *out, double *per, const uint8_t *hit, const int32_t *heads,
                     const bj_graph_case *c) {
    const size_t C = (size_t)c->cells;
    double sum = 0, sum_three = 0, heads_three = 0;
    int contexts = 0, three = 0;
    for (int s = 0; s < c->sources; s++) {
        const uint8_t *next = successors_of(c, s), *found = hit + (size_t)s * C;
        int all = 0, covered = 0;
        for (size_t v = 0; v < C; v++) {
            all += next[v] != 0;
            covered += next[v] && found[v];
        }
        const double share = all ? (double)covered / all : (double)NAN;
        if (per) per[s] = share;
        if (!all) continue;
        sum += share;
        contexts++;
        if (all != 3) continue;
        sum_three += share;
        heads_three += heads[s];
        three++;
    }
    out->cov_r = contexts ? sum / contexts : (double)NAN;
    out->cov_three = three ? sum_three / three : (double)NAN;
    out->heads_three = three ? heads_three / three : (double)NAN;
}

static bj_status measure(bj_graph_scores *out, const bj_graph_details *d, const bj_graph_case *c,
                         uint8_t *predicted, uint8_t *verified, const uint8_t *hit,
                         const int32_t *heads, bj_error *err) {
    const size_t C = (size_t)c->cells;
    memset(predicted, 0, C * C);
    for (int s = 0; s < c->sources; s++)
        for (size_t v = 0; v < C; v++)
            predicted[(size_t)c->source_cells[s] * C + v] |= hit[(size_t)s * C + v];
    for (size_t u = 0; u < C; u++) {
        int edges = 0;
        for (size_t v = 0; v < C; v++) {
            edges += v != u && predicted[u * C + v];
            verified[u * C + v] = predicted[u * C + v] && c->graph[u * C + v];
        }
        out->predicted_edges += edges;
        out->sources_with_edges += edges > 0;
    }
    BJ_TRY(bj_graph_routes(&out->plan_all, d->plan_hit, predicted, c->cells, c->plan, c->plan_count,
                           err));
    BJ_TRY(bj_graph_routes(&out->verified_route, d->verified_hit, verified, c->cells, c->verified,
                           c->verified_count, err));
    out->macro_precision = macro_precision(d->precision, predicted, c->graph, c->cells, 0);
    out->macro_precision_self =
        macro_precision(d->precision_self, predicted, c->graph, c->cells, 1);
    int recalled = 0;
    for (int k = 0; k < c->held_count; k++)
        recalled += predicted[(size_t)c->held[k].from * C + (size_t)c->held[k].to];
    out->held_recall = c->held_count ? (double)recalled / c->held_count : (double)NAN;
    coverage(out, d->cov_r, hit, heads, c);
    return BJ_OK;
}

bj_status bj_graph_score(bj_graph_scores *out, const bj_graph_details *details,
                         const bj_graph_case *input, bj_error *err) {
    static const bj_graph_details none = {0};
    const bj_graph_details *d = details ? details : &none;
    uint8_t *hit = NULL, *predicted = NULL, *verified = NULL;
    int32_t *heads = NULL;
    bj_status status;
    *out = (bj_graph_scores){0};
    BJ_TRY(check(input, err));
    const size_t C = (size_t)input->cells;
    BJ_GOTO(status, done, BJ_ALLOC(hit, (size_t)input->sources * C, err));
    BJ_GOTO(status, done, BJ_ALLOC(heads, (size_t)input->sources, err));
    BJ_GOTO(status, done, BJ_ALLOC(verified, C * C, err));
    if (!d->predicted) BJ_GOTO(status, done, BJ_ALLOC(predicted, C * C, err));
    BJ_GOTO(status, done, decode(hit, heads, input, err));
    status =
        measure(out, d, input, d->predicted ? d->predicted : predicted, verified, hit, heads, err);
done:
    bj_free(hit);
    bj_free(heads);
    bj_free(verified);
    bj_free(predicted);
    return status;
}
