/* coverage.c - computes raw COV-R over frames of recorded episodes; see branchjepa/maze.h.
 *
 *   m[v]     mean of the target latents of all frames in cell v, normalized
 *   next[u]  cells of the next frames over all frames in cell u, u itself included if seen
 *   cov[u]   mean over the frames of u with candidates of
 *              |{v in next[u]: some candidate has cosine > 0.5 with m[v]}| / |next[u]|
 *   result   mean of cov over cells
 *
 * No frame is stored, so datasets of any size can be used.
 * Test: tests/maze/test_graph_score.c
 */
#include <math.h>

#include "core/alloc.h"
#include "maze/maze.h"

struct bj_frame_coverage {
    int cells, D, frozen;
    double *latent;    /* (C,D) sums, unit vectors once frozen */
    uint8_t *next;     /* (C,C) */
    uint8_t *hit;      /* (C) cells hit by the current frame */
    double *candidate; /* (D) */
    double *sum;       /* (C) sums of the fractions of frames */
    int64_t *frames;   /* (C) */
    uint8_t *seen;     /* (C) has a target */
};

bj_status bj_frame_coverage_create(bj_frame_coverage **out, int cells, int D, bj_error *err) {
    bj_frame_coverage *c;
    bj_status status;
    *out = NULL;
    if (cells < 1 || cells > BJ_MAZE_MAX_CELLS || D < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "frame coverage: found %d cells with latents of width %d, "
                       "expected at least one cell and a width of at least 1",
                       cells, D);
    const size_t C = (size_t)cells, width = (size_t)D;
    BJ_TRY(BJ_ALLOC(c, 1, err));
    c->cells = cells;
    c->D = D;
    BJ_GOTO(status, failed, BJ_ALLOC(c->latent, C * width, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->next, C * C, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->hit, C, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->candidate, width, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->sum, C, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->frames, C, err));
    BJ_GOTO(status, failed, BJ_ALLOC(c->seen, C, err));
    *out = c;
    return BJ_OK;
failed:
    bj_frame_coverage_free(c);
    return status;
}

void bj_frame_coverage_free(bj_frame_coverage *c) {
    if (!c) return;
    bj_free(c->latent);
    bj_free(c->next);
    bj_free(c->hit);
    bj_free(c->candidate);
    bj_free(c->sum);
    bj_free(c->frames);
    bj_free(c->seen);
    bj_free(c);
}

static bj_status check_cell(const bj_frame_coverage *c, int cell, int least, bj_error *err) {
    if (cell >= least && cell < c->cells) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "frame coverage: the cell is %d, expected %d to %d", cell, least,
                   c->cells - 1);
}

bj_status bj_frame_coverage_target(bj_frame_coverage *c, int cell, int next, const bj_real *latent,
                                   bj_error *err) {
    BJ_TRY(check_cell(c, cell, 0, err));
    BJ_TRY(check_cell(c, next, -1, err));
    if (c->frozen)
        return BJ_FAIL(err, BJ_EARG,
                       "frame coverage: targets must be added before the first candidates");
    double *sum = c->latent + (size_t)cell * (size_t)c->D;
    for (int d = 0; d < c->D; d++) {
        if (!isfinite(latent[d]))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "frame coverage: entry %d of a target latent is not finite", d);
        sum[d] += (double)latent[d];
    }
    c->seen[cell] = 1;
    if (next >= 0) c->next[(size_t)cell * (size_t)c->cells + (size_t)next] = 1;
    return BJ_OK;
}

static void freeze(bj_frame_coverage *c) {
    for (int v = 0; v < c->cells; v++) {
        double *m = c->latent + (size_t)v * (size_t)c->D;
        const double norm = sqrt(bj_maze_dot(m, m, c->D));
        for (int d = 0; d < c->D && norm > 0; d++) m[d] /= norm;
    }
    c->frozen = 1;
}

bj_status bj_frame_coverage_predict(bj_frame_coverage *c, int cell, const bj_real *candidates,
                                    int K, bj_error *err) {
    BJ_TRY(check_cell(c, cell, 0, err));
    if (K < 1)
        return BJ_FAIL(err, BJ_EARG, "frame coverage: found %d candidates, expected at least 1", K);
    if (!c->frozen) freeze(c);
    const uint8_t *next = c->next + (size_t)cell * (size_t)c->cells;
    int all = 0, covered = 0;
    for (int v = 0; v < c->cells; v++) c->hit[v] = 0;
    for (int k = 0; k < K; k++) {
        BJ_TRY(bj_maze_unit(c->candidate, candidates + (size_t)k * (size_t)c->D, c->D,
                            "frame coverage: candidate", k, err));
        for (int v = 0; v < c->cells; v++)
            if (next[v] && !c->hit[v])
                c->hit[v] = bj_maze_dot(c->candidate, c->latent + (size_t)v * (size_t)c->D, c->D) >
                            BJ_MAZE_THRESHOLD;
    }
    for (int v = 0; v < c->cells; v++) {
        all += next[v];
        covered += c->hit[v];
    }
    if (!all) return BJ_OK; /* nothing to cover: no fraction */
    c->sum[cell] += (double)covered / all;
    c->frames[cell]++;
    return BJ_OK;
}

double bj_frame_coverage_result(double *per_cell, const bj_frame_coverage *c) {
    double sum = 0;
    int cells = 0;
    for (int v = 0; v < c->cells; v++) {
        const double mean = c->frames[v] ? c->sum[v] / (double)c->frames[v] : (double)NAN;
        if (per_cell) per_cell[v] = mean;
        if (!c->frames[v]) continue;
        sum += mean;
        cells++;
    }
    return cells ? sum / cells : (double)NAN;
}

const double *bj_frame_coverage_latent(const bj_frame_coverage *c, int cell) {
    if (!c->frozen || cell < 0 || cell >= c->cells || !c->seen[cell]) return NULL;
    return c->latent + (size_t)cell * (size_t)c->D;
}
