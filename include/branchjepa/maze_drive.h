/* maze_drive.h - mazes beyond the graph metrics: the point agent, driving with a predicted graph,
 * maze and graph files, generated mazes, episode splits and target-blind archives.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/MAZES.md defines every number and
 * every file. Shapes: C cells, S sources or contexts, K candidates per source or context, D latent
 * width.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_MAZE_DRIVE_H
#define BRANCHJEPA_MAZE_DRIVE_H

/* --------------------------------------------------------------------------------- maze files */

enum { BJ_MAZE_MAX_PORTS = 64, BJ_MAZE_MAX_TASKS = 64 };

/* Description of a maze without cell numbers. A square is a pair of row and column. */
typedef struct bj_maze_plan {
    const char *name;
    int rows, cols;
    const uint8_t *walls;                /* (rows,cols) nonzero: wall */
    const int32_t *ins, *outs;           /* (in_count,2), (out_count,2) teleporter entry and exit
                                            squares */
    const int32_t *tasks;                /* (task_count,4) start and goal squares */
    int in_count, out_count, task_count; /* in_count and out_count must both be 0 or both be
                                            positive */
} bj_maze_plan;

BJ_API BJ_CHECK bj_status bj_maze_from_plan(bj_maze **out, const bj_maze_plan *plan, bj_error *err);
/* Opens an official maze by name, or a file written by bj_maze_save if the argument contains '/' or
 * '.'. */
BJ_API BJ_CHECK bj_status bj_maze_open(bj_maze **out, const char *name_or_path, bj_error *err);
BJ_API BJ_CHECK bj_status bj_maze_save(const char *path, const bj_maze *maze, bj_error *err);

/* --------------------------------------------------------------------------------- point agent */

#define BJ_POINT_RADIUS 0.7 /* radius of the ball */
#define BJ_POINT_STRIDE 0.2 /* distance per step for an action of 1; a step is 0.1 s */
#define BJ_POINT_GOAL 1.0   /* distance at which a goal is reached */
enum { BJ_POINT_STEPS = 1000 /* step limit of an official episode */ };

/* Performs one step of OGBench's point agent. xy moves by 0.2 * action, whose components are
 * clipped to [-1, 1], and soft contacts push it out of walls. xy must be finite and not inside a
 * wall. */
BJ_API void bj_point_step(double xy[2], const bj_maze *maze, const double action[2]);

/* An episode of the official environment with noisy start and goal, teleporters and a success
 * test. */
typedef struct bj_point_env {
    const bj_maze *maze;
    double xy[2];       /* position of the agent */
    double observed[2]; /* last observed position, taken before a teleporter moves the agent */
    double goal[2];
    int steps, teleports;
    bj_rng rng; /* generator for the teleporters */
} bj_point_env;

/* Starts an episode. Start and goal are at most 1 away from the centers of the task's cells, in x
 * and in y. */
BJ_API void bj_point_reset(bj_point_env *env, const bj_maze *maze, bj_edge task, bj_rng rng);
/* Performs one step. Returns 1 if the agent is within 1.0 of the goal. Teleporters act after this
 * test. */
BJ_API int bj_point_act(bj_point_env *env, const double action[2]);

/* ------------------------------------------------------------------------------------- driving */

typedef struct bj_drive_options {
    int episodes; /* episodes per task; 0: 20 */
    int steps;    /* step limit per episode; 0: BJ_POINT_STEPS */
    /* Number of steps without leaving a cell after which the current edge is dropped for the rest
     * of the episode. 0: edges are never dropped. */
    int patience;
    uint64_t seed; /* seed for starts, goals and teleporters, which do not depend on the graph */
} bj_drive_options;

typedef struct bj_drive_task {
    bj_edge task;
    int distance; /* number of edges from start to goal in the graph; -1: no path */
    int episodes, successes;
    int teleports;     /* in all episodes */
    int replans;       /* number of times a cell outside the planned path was entered */
    int given_up;      /* edges dropped after `patience` steps */
    double mean_steps; /* over successful episodes, NaN if there are none */
} bj_drive_task;

typedef struct bj_drive_result {
    int tasks;
    bj_drive_task task[BJ_MAZE_MAX_TASKS];
    int episodes, successes;
    double success;    /* share of all episodes, NaN if there are none */
    double mean_steps; /* over successful episodes, NaN if there are none */
} bj_drive_result;

/* Drives the tasks of a maze with a graph (C,C). The subgoal is the next cell on a shortest path. A
 * new path is computed when the agent enters a cell outside the path. */
BJ_API BJ_CHECK bj_status bj_maze_drive(bj_drive_result *out, const bj_maze *maze,
                                        const uint8_t *graph, const bj_drive_options *options,
                                        bj_error *err);
/* Drives one episode of bj_maze_drive and records positions (limit + 1, 2), of which the first
 * *steps + 1 are filled. *reached is 1 if the goal was reached. */
BJ_API BJ_CHECK bj_status bj_maze_drive_episode(double *positions, int *steps, int *reached,
                                                double goal[2], const bj_maze *maze,
                                                const uint8_t *graph, int task, int episode,
                                                const bj_drive_options *options, bj_error *err);
/* Fills graph (C,C) with the true graph without teleporter edges, so that plans avoid
 * teleporters. */
BJ_API void bj_maze_on_foot(uint8_t *graph, const bj_maze *maze);

/* --------------------------------------------------------------------------------- graph files */

/* A candidate of a source, described by the cell with the nearest latent. */
typedef struct bj_graph_candidate {
    int32_t cell;  /* -1: the candidate is a zero vector */
    double cosine; /* cosine between the candidate and that latent */
    double mass;   /* router mass, NaN without a router */
} bj_graph_candidate;

/* Predicted graph of a maze. Pointers belong to the caller, or to the bj_graph_file. */
typedef struct bj_graph_record {
    const bj_maze *maze;
    const bj_edge *edges; /* (edge_count) sorted, unique, without self-loops */
    int edge_count;
    const uint8_t *graph; /* (C,C) the edges as a matrix; ignored by bj_graph_save and may be NULL
                             there */
    const bj_edge *held;  /* (held_count) edges withheld from training, sorted */
    int held_count;
    const bj_edge *seen;                  /* (seen_count) edges in the dataset, sorted */
    const int64_t *crossings;             /* (seen_count) number of crossings per edge */
    int seen_count;                       /* 0: unknown */
    int sources, K;                       /* 0: no candidates */
    const int32_t *source_cells;          /* (S) ascending */
    const bj_graph_candidate *candidates; /* (S,K) */
    const bj_fact *facts;                 /* origin of the graph */
    int fact_count;
} bj_graph_record;

/* Write and read a JSON file with schema "branchjepa.graph/1". */
BJ_API BJ_CHECK bj_status bj_graph_save(const char *path, const bj_graph_record *record,
                                        bj_error *err);
typedef struct bj_graph_file bj_graph_file;
BJ_API BJ_CHECK bj_status bj_graph_open(bj_graph_file **out, const char *path, bj_error *err);
BJ_API void bj_graph_close(bj_graph_file *file);
BJ_API const bj_graph_record *bj_graph_of(const bj_graph_file *file);

/* Fills out (S,K) with the nearest cell and the cosine of every candidate. mass (S,K) may be
 * NULL. */
BJ_API BJ_CHECK bj_status bj_graph_candidates(bj_graph_candidate *out, const bj_graph_case *input,
                                              const bj_real *mass, bj_error *err);
/* Returns the edges of a graph (C,C) without its diagonal, sorted. The caller frees *out with
 * bj_edges_free. */
BJ_API BJ_CHECK bj_status bj_graph_edges(bj_edge **out, int *count, const uint8_t *graph, int cells,
                                         bj_error *err);

/* ----------------------------------------------------------------------------- generated mazes */

typedef struct bj_generate_options {
    int rows, cols; /* number of corridors; n corridors give a side of 2n + 1 squares; 0: 4 and 5
                       corridors */
    int branches;   /* successors of each junction cell, 2 to 8 */
    int junctions;  /* number of junction cells; 0: 4 */
    double loops;   /* share of the remaining walls that are removed; must be below 1 */
    uint64_t seed;
} bj_generate_options;

/* Generates a maze in which `junctions` cells have exactly `branches` successors each. These cells
 * are teleporter entries that share their exits. Every cell can be reached from every other cell.
 * Five tasks are drawn. */
BJ_API BJ_CHECK bj_status bj_maze_generate(bj_maze **out, const bj_generate_options *options,
                                           bj_error *err);

typedef struct bj_walk_options {
    int episodes; /* 0: 1000 */
    int steps;    /* rows per episode; 0: 1001 */
    double noise; /* standard deviation of the action noise; negative: 0.5 */
    uint64_t seed;
} bj_walk_options;

/* Writes random walks between random goals, following the recipe of OGBench's `navigate` datasets,
 * as an .npz file with observations, actions, terminals and qpos. */
BJ_API BJ_CHECK bj_status bj_maze_walk(const char *path, const bj_maze *maze,
                                       const bj_walk_options *options, bj_error *err);

/* -------------------------------------------------------------------------------- episode split */

#define BJ_MAZE_TRAINING 0.7 /* share of the episodes used for training */
enum { BJ_MAZE_HORIZON = 8, BJ_MAZE_STRIDE = 25 };

/* Sets training (episodes) to 1 for floor(share * count) episodes, chosen by the seed's
 * permutation. */
BJ_API BJ_CHECK bj_status bj_episode_split(uint8_t *training, int64_t count, double share,
                                           uint64_t seed, bj_error *err);
/* Returns the contexts of an audit. A context is a row of an episode that is not marked in
 * `training` (NULL: any episode). It is followed by `horizon` frames in the same episode, `stride`
 * rows apart, and all of them are inside a cell. Contexts are horizon * stride rows apart, starting
 * at the first row of an episode. The caller frees *out with bj_rows_free.
 */
BJ_API BJ_CHECK bj_status bj_audit_contexts(int64_t **out, int64_t *count, const bj_maze_data *data,
                                            const uint8_t *training, int stride, int horizon,
                                            bj_error *err);
BJ_API void bj_rows_free(int64_t *rows);

/* ------------------------------------------------------------------------ target-blind archives */

/* The outputs of a predictor for fixed contexts. They depend on nothing else. */
typedef struct bj_emissions {
    const bj_maze *maze;
    int contexts, K, D;
    const int32_t *context_cells; /* (S) in the fixed order */
    const bj_real *candidates;    /* (S,K,D) */
    const bj_real *mass;          /* (S,K) router masses, sum 1 */
    const bj_real *point;         /* (S,D) single output of a second predictor for comparison; NULL:
                                     none */
    const bj_real *latents;       /* (C,D) latents of all cells, including cells that are not
                                     successors */
    const bj_real *point_latents; /* (C,D) cell latents of the second predictor, which has a latent
                                     space of its own; NULL: same as latents */
    const bj_fact *facts;
    int fact_count;
} bj_emissions;

/* Writes the emissions and returns the SHA-256 of the file. Does not read a dataset. */
BJ_API BJ_CHECK bj_status bj_archive_emit(char sha256[65], const char *path,
                                          const bj_emissions *emissions, bj_error *err);

/* Writes the emissions from a safetensors file with the tensors context_cells (S), candidates
 * (S,K,D), mass (S,K), latents (C,D) and optionally point (S,D) and point_latents (C,D). */
BJ_API BJ_CHECK bj_status bj_archive_emit_file(char sha256[65], const char *path,
                                               const char *latents, const bj_maze *maze,
                                               bj_error *err);

/* Number of successors of a context, and how many of them were hit. */
typedef struct bj_archive_context {
    int32_t cell;
    int successors, hit, point_hit; /* number of successors hit by a candidate, and by the single
                                       output */
    double coverage;                /* share hit by a candidate, NaN without successors */
    double mass_on_support;         /* router mass of candidates that hit a successor */
} bj_archive_context;

typedef struct bj_archive_report {
    char emissions_sha256[65], data_sha256[65],
        sha256[65]; /* hashes of the two inputs and of the result */
    int contexts, K, has_point;
    bj_archive_context *context;     /* (S) freed by bj_archive_report_reset */
    double coverage, point_coverage; /* means over contexts with successors, NaN if there are
                                        none */
} bj_archive_report;

/* Writes the second file of an archive. Hashes the emissions first, then opens the dataset and
 * writes the successors with their crossings and the hash. `expected`, which may be NULL, is the
 * previously published hash of the emissions. */
BJ_API BJ_CHECK bj_status bj_archive_reveal(bj_archive_report *out, const char *path,
                                            const char *emissions, const char *expected,
                                            const bj_maze *maze, const char *dataset,
                                            bj_error *err);
/* Fails with BJ_EMISMATCH if the emissions do not have the hash stored in the second file. */
BJ_API BJ_CHECK bj_status bj_archive_check(const char *path, const char *emissions, bj_error *err);
BJ_API void bj_archive_report_reset(bj_archive_report *report);

#endif
