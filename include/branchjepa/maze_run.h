/* maze_run.h - outputs of a finished maze run: latents, candidates, masses and the predicted graph.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/MAZES.md contains the
 * definitions. Shapes: n observations, C cells, D latent width, L candidates per observation.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_MAZE_RUN_H
#define BRANCHJEPA_MAZE_RUN_H

typedef struct bj_maze_run bj_maze_run;

typedef struct bj_maze_run_options {
    const char *data; /* dataset; NULL: the path stored in the run */
    const char *maze; /* name or file; NULL: the maze of the run; a file is in the dataset's
                         folder */
    int collapsed;    /* nonzero: accept a run whose latents collapsed */
    int most;         /* max observations per batch; 0: 256 */
    int threads;      /* 0: one per available core; does not change the results */
    const char *isa;  /* as in bj_trainer_options */
} bj_maze_run_options;

/* Opens a run folder and checks settings, weights and target against each other. Fails with
 * BJ_ELOCKED if the run is not finished or its latents collapsed. Does not open the dataset.
 * options may be NULL. */
BJ_API BJ_CHECK bj_status bj_maze_run_open(bj_maze_run **out, const char *dir,
                                           const bj_maze_run_options *options, bj_error *err);
BJ_API void bj_maze_run_free(bj_maze_run *run);

/* The run owns the returned pointers. */
BJ_API const bj_run *bj_maze_run_folder(const bj_maze_run *run); /* settings, facts, epochs */
BJ_API const bj_maze *bj_maze_run_maze(const bj_maze_run *run);
BJ_API const bj_arch *bj_maze_run_arch(const bj_maze_run *run);
BJ_API bj_epoch bj_maze_run_epoch(const bj_maze_run *run); /* epoch of the loaded weights */
BJ_API int bj_maze_run_collapsed(const bj_maze_run *run);
BJ_API int bj_maze_run_candidates(const bj_maze_run *run); /* L */
/* Returns 1 if the masses of the candidates come from a router, and 0 if they are all 1/L. */
BJ_API int bj_maze_run_routed(const bj_maze_run *run);
/* Returns 1 if x and y are the model's only inputs, so it can be evaluated at cell centers. */
BJ_API int bj_maze_run_sees_points(const bj_maze_run *run);

/* Computes target latents (n,D) for the pairs' second observations, and candidates (n,L,D) and
 * masses (n,L) for their first observations. Each output may be NULL. */
BJ_API BJ_CHECK bj_status bj_maze_run_look(bj_maze_run *run, bj_real *latents, bj_real *candidates,
                                           bj_real *masses, const bj_pair *pairs, int64_t n,
                                           bj_error *err);
/* Computes latents (C,D), candidates (C,L,D) and masses (C,L) at the centers of all cells. */
BJ_API BJ_CHECK bj_status bj_maze_run_centers(bj_maze_run *run, bj_real *latents,
                                              bj_real *candidates, bj_real *masses, bj_error *err);

/* Returns the dataset. The first call opens it and fails with BJ_EMISMATCH if the run was trained
 * on other data. */
BJ_API BJ_CHECK bj_status bj_maze_run_data(bj_maze_data **out, bj_maze_run *run, bj_error *err);
/* Returns a pair in which both observations are the given dataset row. Valid only after
 * bj_maze_run_data. */
BJ_API bj_pair bj_maze_run_row(const bj_maze_run *run, int64_t row);

/* The graph predicted by a run, in the form used by bj_graph_save: candidates of all cells with an
 * outgoing edge in the dataset, edges, withheld edges, crossings and origin. Supported only for
 * runs whose inputs are x and y alone. Opens the dataset. The run must outlive the graph. */
typedef struct bj_maze_graph bj_maze_graph;
BJ_API BJ_CHECK bj_status bj_maze_graph_create(bj_maze_graph **out, bj_maze_run *run,
                                               bj_error *err);
BJ_API void bj_maze_graph_free(bj_maze_graph *graph);
BJ_API const bj_graph_record *bj_maze_graph_record(const bj_maze_graph *graph);
BJ_API bj_graph_scores bj_maze_graph_scores(const bj_maze_graph *graph); /* same values as in the
                                                                            run's metrics */

#endif
