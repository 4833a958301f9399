/* maze_view.h - computes the outputs of a maze model and its target encoder for any observations.
 *
 * Target latents belong to the second observations of pairs, candidates and weights to the first.
 * The evaluation during training (develop_maze.c) and finished runs (maze_run.c) both use this
 * interface, so they get the same bits.
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
    bj_predictor *predictor; /* created when it is first needed, because a codebook may be fitted
                                before */
    int K, L, D;
} bj_maze_view;

/* Creates a view. `most` is the max number of observations per call of the model. */
BJ_CHECK bj_status bj_maze_view_open(bj_maze_view *view, const bj_model *model,
                                     const bj_target *target, int most, int threads,
                                     const char *isa, bj_error *err);
void bj_maze_view_reset(bj_maze_view *view);

/* Computes latents (n,D), which may be NULL, and candidates (n,L,D) and weights (n,K), which are
 * both given or both NULL. */
BJ_CHECK bj_status bj_maze_view_look(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                     bj_real *weights, const bj_pair *pairs, int64_t n,
                                     bj_error *err);

/* Compute the contexts (n,D) of the first observations, which atoms and router read, and the
 * predictions from any contexts. */
BJ_CHECK bj_status bj_maze_view_encode(bj_maze_view *view, bj_real *contexts, const bj_pair *pairs,
                                       int64_t n, bj_error *err);
BJ_CHECK bj_status bj_maze_view_go_on(bj_maze_view *view, bj_real *candidates, bj_real *weights,
                                      const bj_real *contexts, int64_t n, bj_error *err);

/* Returns the centers of all cells as pairs (C) in one block, which the caller frees with bj_free.
 */
BJ_CHECK bj_status bj_maze_center_pairs(bj_pair **out, const bj_maze *maze, bj_error *err);
/* Computes the outputs at the centers of all cells for models of x and y: latents (C,D), candidates
 * (C,L,D), weights (C,K). */
BJ_CHECK bj_status bj_maze_view_centers(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                        bj_real *weights, const bj_maze *maze, bj_error *err);

/* Moves the candidates of the cells that have a transition to consecutive rows of `row` numbers.
 * Sets cells (C) to these cells and returns their number S. */
int bj_maze_keep_sources(bj_real *candidates, int32_t *cells, const bj_maze_source *source,
                         size_t row);

/* Returns the reference for graph scores: the true graph, withheld edges and queries of the run. */
bj_graph_case bj_maze_source_case(const bj_maze_source *source, const bj_real *latents,
                                  const bj_real *candidates, const int32_t *cells, int sources,
                                  int L, int D);

#endif
