/* maze_view.h - a maze's model and its target encoder, asked about any observations.
 *
 * Target latents are of the second observations of pairs, candidates and weights of the first.
 * While a run trains its evaluation looks through one of these (develop_maze.c), afterwards whoever
 * opens the finished run (maze_run.c): both see the same bits.
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
    bj_predictor *predictor; /* made when it is first needed: a codebook may be fitted before */
    int K, L, D;
} bj_maze_view;

/* `most`: observations that are looked at together. */
BJ_CHECK bj_status bj_maze_view_open(bj_maze_view *view, const bj_model *model,
                                     const bj_target *target, int most, int threads,
                                     const char *isa, bj_error *err);
void bj_maze_view_reset(bj_maze_view *view);

/* latents (n,D), or NULL; candidates (n,L,D) and weights (n,K), both or neither. */
BJ_CHECK bj_status bj_maze_view_look(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                     bj_real *weights, const bj_pair *pairs, int64_t n,
                                     bj_error *err);

/* Contexts (n,D) of the first observations, as atoms and router see them; and what is predicted
 * from such contexts, which need not be of observations. */
BJ_CHECK bj_status bj_maze_view_encode(bj_maze_view *view, bj_real *contexts, const bj_pair *pairs,
                                       int64_t n, bj_error *err);
BJ_CHECK bj_status bj_maze_view_go_on(bj_maze_view *view, bj_real *candidates, bj_real *weights,
                                      const bj_real *contexts, int64_t n, bj_error *err);

/* The centers of all cells as pairs (C), one block for bj_free. */
BJ_CHECK bj_status bj_maze_center_pairs(bj_pair **out, const bj_maze *maze, bj_error *err);
/* The same at the centers of all cells, for models of x and y: latents (C,D), candidates (C,L,D),
 * weights (C,K). */
BJ_CHECK bj_status bj_maze_view_centers(bj_maze_view *view, bj_real *latents, bj_real *candidates,
                                        bj_real *weights, const bj_maze *maze, bj_error *err);

/* Moves the candidates of the cells the data leaves, rows of `row` numbers, side by side; cells (C)
 * receives these cells. Returns how many there are: S. */
int bj_maze_keep_sources(bj_real *candidates, int32_t *cells, const bj_maze_source *source,
                         size_t row);

/* What a graph is scored by: the true one, withheld edges and queries of the run. */
bj_graph_case bj_maze_source_case(const bj_maze_source *source, const bj_real *latents,
                                  const bj_real *candidates, const int32_t *cells, int sources,
                                  int L, int D);

#endif
