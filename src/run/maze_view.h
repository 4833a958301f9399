/* maze_view.h - computes the outputs of a maze model and its target encoder for any observations.
 *
 * Target latents are computed from the second observation of a pair, candidates and weights from
 * the first. The evaluation during training (develop_maze.c) and finished runs (maze_run.c) both
 * use this interface, so their results are bit-identical.
 *
 * Shapes  C cells, S sources, n observations, D latent width, K weights, L candidates: K, or one.
 * Test: tests/run/test_maze_run.c, tests/run/test_maze_train.c
 */
#ifndef BJ_RUN_MAZE_VIEW_H
#define BJ_RUN_MAZE_VIEW_H

#include "run/maze_source.h"

typedef struct bj_maze_view {
    const bj_model *model; /* borrowed */
    bj_predictor_options options;
    bj_future_encoder *encoder;
    bj_predictor *predictor; /* created on first use, because a codebook may have to be fitted first
                                */
    int K, L, D;
} bj_maze_view;

/* Creates a view. `most` is the max number of observations in one call of the model. */
BJ_CHECK bj_status bj_maze_view_open(bj_maze_view *view, const bj_model *model,
                                     const bj_target *target, int most, int threads,
                                     const char *isa, bj_error *err);
void bj_maze_view_reset(bj_maze_view *view);

/* Computes latents (n,D), candidates (n,L,D) and weights (n,K). latents may be NULL. candidates and
 * weights may be NULL together. */
BJ_CHECK bj_status bj_maze_view_look(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                     bj_real *weights, const bj_pair *pairs, int64_t n,
                                     bj_error *err);

/* The first function computes the contexts (n,D) of the first observations. The second one computes
 * predictions from any contexts. */
BJ_CHECK bj_status bj_maze_view_encode(bj_maze_view *view, bj_real *contexts, const bj_pair *pairs,
                                       int64_t n, bj_error *err);
BJ_CHECK bj_status bj_maze_view_go_on(bj_maze_view *view, bj_real *candidates, bj_real *weights,
                                      const bj_real *contexts, int64_t n, bj_error *err);

/* Returns the centers of all cells as pairs (C) in one block, which the caller frees with bj_free.
 */
BJ_CHECK bj_status bj_maze_center_pairs(bj_pair **out, const bj_maze *maze, bj_error *err);
/* Computes the outputs at the centers of all cells: latents (C,D), candidates (C,L,D), weights
 * (C,K). The observations of the model must be x and y. */
BJ_CHECK bj_status bj_maze_view_centers(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                        bj_real *weights, const bj_maze *maze, bj_error *err);

/* Moves the candidates of the cells that have a transition to consecutive rows, each with `row`
 * numbers. Sets cells (C) to the indices of these cells and returns their number S. */
int bj_maze_keep_sources(bj_real *candidates, int32_t *cells, const bj_maze_source *source,
                         size_t row);

/* Returns the reference for graph scores: the true graph, withheld edges and queries of the run. */
bj_graph_case bj_maze_source_case(const bj_maze_source *source, const bj_real *latents,
                                  const bj_real *candidates, const int32_t *cells, int sources,
                                  int L, int D);

#endif
