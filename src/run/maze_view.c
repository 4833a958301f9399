/* maze_view.c - see maze_view.h. */
#include "run/maze_view.h"

#include <string.h>

#include "core/alloc.h"
#include "model/predictor.h"

bj_status bj_maze_view_open(bj_maze_view *v, const bj_model *model, const bj_target *target,
                            int most, int threads, const char *isa, bj_error *err) {
    const bj_arch *arch = bj_model_arch(model);
    *v = (bj_maze_view){.model = model,
                        .options = {.max_batch = most, .threads = threads, .isa = isa},
                        .K = arch->atoms,
                        .L = bj_arch_latents(arch),
                        .D = arch->latent};
    return bj_future_encoder_create(&v->encoder, model, target, &v->options, err);
}

void bj_maze_view_reset(bj_maze_view *v) {
    bj_predictor_free(v->predictor);
    bj_future_encoder_free(v->encoder);
    *v = (bj_maze_view){0};
}

static bj_status need_predictor(bj_maze_view *v, bj_error *err) {
    return v->predictor ? BJ_OK : bj_predictor_create(&v->predictor, v->model, &v->options, err);
}

bj_status bj_maze_view_look(bj_maze_view *v, bj_real *latents, bj_real *candidates,
                            bj_real *weights, const bj_pair *pairs, int64_t n, bj_error *err) {
    const int most = v->options.max_batch;
    if (candidates) BJ_TRY(need_predictor(v, err));
    for (int64_t i = 0; i < n; i += most) {
        const bj_batch batch = {.B = n - i < most ? (int)(n - i) : most, .pairs = pairs + i};
        const size_t at = (size_t)i, D = (size_t)v->D;
        if (latents) BJ_TRY(bj_future_encode(v->encoder, &batch, latents + at * D, NULL, err));
        if (candidates)
            BJ_TRY(bj_predict(v->predictor, &batch, weights + at * (size_t)v->K, NULL,
                              candidates + at * (size_t)v->L * D, err));
    }
    return BJ_OK;
}

bj_status bj_maze_view_encode(bj_maze_view *v, bj_real *contexts, const bj_pair *pairs, int64_t n,
                              bj_error *err) {
    const int most = v->options.max_batch;
    BJ_TRY(need_predictor(v, err));
    for (int64_t i = 0; i < n; i += most) {
        const bj_batch batch = {.B = n - i < most ? (int)(n - i) : most, .pairs = pairs + i};
        BJ_TRY(bj_predict_encode(v->predictor, &batch, contexts + (size_t)i * (size_t)v->D, err));
    }
    return BJ_OK;
}

bj_status bj_maze_view_go_on(bj_maze_view *v, bj_real *candidates, bj_real *weights,
                             const bj_real *contexts, int64_t n, bj_error *err) {
    const int most = v->options.max_batch;
    const size_t K = (size_t)v->K, L = (size_t)v->L, D = (size_t)v->D;
    BJ_TRY(need_predictor(v, err));
    for (int64_t i = 0; i < n; i += most) {
        const size_t at = (size_t)i;
        BJ_TRY(bj_predict_contexts(v->predictor, contexts + at * D,
                                   n - i < most ? (int)(n - i) : most, weights + at * K,
                                   candidates + at * L * D, err));
    }
    return BJ_OK;
}

bj_status bj_maze_center_pairs(bj_pair **out, const bj_maze *maze, bj_error *err) {
    const size_t C = (size_t)maze->cells;
    struct {
        bj_pair pair;
        bj_real xy[2];
    } *block; /* memory for all pairs, then for all centers */
    *out = NULL;
    BJ_TRY(BJ_ALLOC(block, C, err));
    bj_pair *pairs = (bj_pair *)block;
    bj_real *centers = (bj_real *)(pairs + C); /* (C,2) */
    for (size_t c = 0; c < C; c++) {
        centers[2 * c] = (bj_real)maze->center[2 * c];
        centers[2 * c + 1] = (bj_real)maze->center[2 * c + 1];
        pairs[c] = (bj_pair){.state = centers + 2 * c, .next = centers + 2 * c};
    }
    *out = pairs;
    return BJ_OK;
}

bj_status bj_maze_view_centers(bj_maze_view *v, bj_real *latents, bj_real *candidates,
                               bj_real *weights, const bj_maze *maze, bj_error *err) {
    bj_pair *pairs; /* (C) */
    BJ_TRY(bj_maze_center_pairs(&pairs, maze, err));
    const bj_status status =
        bj_maze_view_look(v, latents, candidates, weights, pairs, maze->cells, err);
    bj_free(pairs);
    return status;
}

int bj_maze_keep_sources(bj_real *candidates, int32_t *cells, const bj_maze_source *s, size_t row) {
    const bj_edge *edges = bj_maze_data_edges(s->data);
    int sources = 0;
    for (int k = 0; k < s->info.edges; k++) {
        if (sources && cells[sources - 1] == edges[k].from) continue;
        memmove(candidates + (size_t)sources * row, candidates + (size_t)edges[k].from * row,
                row * sizeof *candidates);
        cells[sources++] = edges[k].from;
    }
    return sources;
}

bj_graph_case bj_maze_source_case(const bj_maze_source *s, const bj_real *latents,
                                  const bj_real *candidates, const int32_t *cells, int sources,
                                  int L, int D) {
    return (bj_graph_case){.cells = s->maze->cells,
                           .sources = sources,
                           .K = L,
                           .D = D,
                           .latents = latents,
                           .candidates = candidates,
                           .source_cells = cells,
                           .graph = s->maze->graph,
                           .held = s->withheld,
                           .plan = s->plan,
                           .verified = s->verified,
                           .held_count = s->withheld_count,
                           .plan_count = s->plan_count,
                           .verified_count = s->verified_count};
}
