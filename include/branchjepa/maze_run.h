/* maze_run.h - what a finished run says of its maze: latents, candidates, masses, its graph.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/MAZES.md has the
 * definitions. Shapes: n observations, C cells, D latent width, L candidates of an observation.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_MAZE_RUN_H
#define BRANCHJEPA_MAZE_RUN_H

typedef struct bj_maze_run bj_maze_run;

typedef struct bj_maze_run_options {
    const char *data; /* dataset; NULL: where the run found it */
    const char *maze; /* name or file; NULL: as the run had it; a file is beside the data */
    int collapsed;    /* not 0: a run whose latents have collapsed is opened too */
    int most;         /* observations that are looked at together; 0: 256 */
    int threads;      /* 0: one per available core; no number depends on it */
    const char *isa;  /* as in bj_trainer_options */
} bj_maze_run_options;

/* Opens a folder of bj_run_train: settings, weights and target, each checked against the others.
 * BJ_ELOCKED: it is not finished, or its latents have collapsed. The dataset is not touched.
 * options may be NULL. */
BJ_API BJ_CHECK bj_status bj_maze_run_open(bj_maze_run **out, const char *dir,
                                           const bj_maze_run_options *options, bj_error *err);
BJ_API void bj_maze_run_free(bj_maze_run *run);

/* Everything lives as long as the run. */
BJ_API const bj_run *bj_maze_run_folder(const bj_maze_run *run); /* settings, facts, epochs */
BJ_API const bj_maze *bj_maze_run_maze(const bj_maze_run *run);
BJ_API const bj_arch *bj_maze_run_arch(const bj_maze_run *run);
BJ_API bj_epoch bj_maze_run_epoch(const bj_maze_run *run); /* the row of these weights */
BJ_API int bj_maze_run_collapsed(const bj_maze_run *run);
BJ_API int bj_maze_run_candidates(const bj_maze_run *run); /* L */
/* 1: a router weighs the candidates. 0: their masses are 1/L. */
BJ_API int bj_maze_run_routed(const bj_maze_run *run);
/* 1: it sees x and y alone, and can be asked at the centers of cells. */
BJ_API int bj_maze_run_sees_points(const bj_maze_run *run);

/* Target latents (n,D) of the pairs' second observations; candidates (n,L,D) and masses (n,L) from
 * the first. Each of the three may be NULL. */
BJ_API BJ_CHECK bj_status bj_maze_run_look(bj_maze_run *run, bj_real *latents, bj_real *candidates,
                                           bj_real *masses, const bj_pair *pairs, int64_t n,
                                           bj_error *err);
/* The same at the centers of all cells: (C,D), (C,L,D), (C,L). */
BJ_API BJ_CHECK bj_status bj_maze_run_centers(bj_maze_run *run, bj_real *latents,
                                              bj_real *candidates, bj_real *masses, bj_error *err);

/* The dataset, opened by the first call, which refuses one that the run was not trained on
 * (BJ_EMISMATCH). */
BJ_API BJ_CHECK bj_status bj_maze_run_data(bj_maze_data **out, bj_maze_run *run, bj_error *err);
/* Row of it, as both observations of a pair; only after bj_maze_run_data. */
BJ_API bj_pair bj_maze_run_row(const bj_maze_run *run, int64_t row);

/* The graph a run predicts, as bj_graph_save writes it: candidates of the cells its dataset leaves,
 * edges, withheld edges, crossings of the dataset, where it comes from. For runs that see x and y
 * alone; opens the dataset. The run must outlive it. */
typedef struct bj_maze_graph bj_maze_graph;
BJ_API BJ_CHECK bj_status bj_maze_graph_create(bj_maze_graph **out, bj_maze_run *run,
                                               bj_error *err);
BJ_API void bj_maze_graph_free(bj_maze_graph *graph);
BJ_API const bj_graph_record *bj_maze_graph_record(const bj_maze_graph *graph);
BJ_API bj_graph_scores bj_maze_graph_scores(const bj_maze_graph *graph); /* as in its metrics */

#endif
