/* maze_drive.h - mazes to act in: the point agent, driving by a predicted graph, files of mazes and
 * graphs, generated mazes with a chosen number of successors, splits and target-blind archives.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/MAZES.md defines every
 * number and every file. Shapes: C cells, S sources or contexts, K candidates of each, D latent
 * width.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_MAZE_DRIVE_H
#define BRANCHJEPA_MAZE_DRIVE_H

/* --------------------------------------------------------------------------------- maze files */

enum { BJ_MAZE_MAX_PORTS = 64, BJ_MAZE_MAX_TASKS = 64 };

/* A maze before its cells are numbered. Squares are pairs of row and column. */
typedef struct bj_maze_plan {
    const char *name;
    int rows, cols;
    const uint8_t *walls;                /* (rows,cols) not 0: wall */
    const int32_t *ins, *outs;           /* (in_count,2), (out_count,2) squares of teleporters */
    const int32_t *tasks;                /* (task_count,4) squares of start and goal */
    int in_count, out_count, task_count; /* in cells without out cells, or the reverse: refused */
} bj_maze_plan;

BJ_API BJ_CHECK bj_status bj_maze_from_plan(bj_maze **out, const bj_maze_plan *plan, bj_error *err);
/* An official maze by its name, or a file of bj_maze_save: whatever has a '/' or a '.' in it. */
BJ_API BJ_CHECK bj_status bj_maze_open(bj_maze **out, const char *name_or_path, bj_error *err);
BJ_API BJ_CHECK bj_status bj_maze_save(const char *path, const bj_maze *maze, bj_error *err);

/* --------------------------------------------------------------------------------- point agent */

#define BJ_POINT_RADIUS 0.7 /* of the ball */
#define BJ_POINT_STRIDE 0.2 /* an action of 1 moves it so far; a step is 0.1 s */
#define BJ_POINT_GOAL 1.0   /* a goal is reached this near to it */
enum { BJ_POINT_STEPS = 1000 /* limit of an official episode */ };

/* One step of OGBench's point agent: xy moves by 0.2 * action, each number of it clipped to -1 to
 * 1, and soft contacts push it back out of walls. xy must be finite and not inside a wall. */
BJ_API void bj_point_step(double xy[2], const bj_maze *maze, const double action[2]);

/* An episode of the official environment: noisy start and goal, teleporters, success. */
typedef struct bj_point_env {
    const bj_maze *maze;
    double xy[2];       /* where the agent is */
    double observed[2]; /* where it was seen: taken before a teleporter moves it */
    double goal[2];
    int steps, teleports;
    bj_rng rng; /* of the teleporters */
} bj_point_env;

/* Start and goal lie up to 1 from the centers of the two cells, in x and in y. */
BJ_API void bj_point_reset(bj_point_env *env, const bj_maze *maze, bj_edge task, bj_rng rng);
/* 1 when the agent came to within 1.0 of the goal; teleporters fire after that. */
BJ_API int bj_point_act(bj_point_env *env, const double action[2]);

/* ------------------------------------------------------------------------------------- driving */

typedef struct bj_drive_options {
    int episodes; /* of each task; 0: 20 */
    int steps;    /* limit of an episode; 0: BJ_POINT_STEPS */
    /* An edge that did not lead out of its cell for so many steps is given up for the rest of the
     * episode; 0: every edge is trusted for ever. */
    int patience;
    uint64_t seed; /* of starts, goals and teleporters: the same whatever the graph */
} bj_drive_options;

typedef struct bj_drive_task {
    bj_edge task;
    int distance; /* edges from start to goal in the graph, -1: no path */
    int episodes, successes;
    int teleports;     /* of all episodes */
    int replans;       /* a cell was entered that the plan did not name */
    int given_up;      /* edges */
    double mean_steps; /* of the successful episodes, NaN without one */
} bj_drive_task;

typedef struct bj_drive_result {
    int tasks;
    bj_drive_task task[BJ_MAZE_MAX_TASKS];
    int episodes, successes;
    double success;    /* share of all episodes, NaN without one */
    double mean_steps; /* of the successful ones, NaN without one */
} bj_drive_result;

/* Drives the tasks of a maze by a graph (C,C): the next cell on a shortest path is the subgoal, and
 * a new path is looked for in every cell entered off the path. */
BJ_API BJ_CHECK bj_status bj_maze_drive(bj_drive_result *out, const bj_maze *maze,
                                        const uint8_t *graph, const bj_drive_options *options,
                                        bj_error *err);
/* One of those episodes, with positions (limit + 1, 2) from the start on, of which *steps + 1 are
 * filled; *reached: the goal was. */
BJ_API BJ_CHECK bj_status bj_maze_drive_episode(double *positions, int *steps, int *reached,
                                                double goal[2], const bj_maze *maze,
                                                const uint8_t *graph, int task, int episode,
                                                const bj_drive_options *options, bj_error *err);
/* The true graph without the teleporters' edges, (C,C): whoever plans with it walks around them. */
BJ_API void bj_maze_on_foot(uint8_t *graph, const bj_maze *maze);

/* --------------------------------------------------------------------------------- graph files */

/* A candidate of a source, by the cell whose latent is nearest to it. */
typedef struct bj_graph_candidate {
    int32_t cell;  /* -1: a vector of zeros */
    double cosine; /* with that latent */
    double mass;   /* of the router, NaN: there is none */
} bj_graph_candidate;

/* What a predictor says of a maze. Pointers are the caller's, or the file's. */
typedef struct bj_graph_record {
    const bj_maze *maze;
    const bj_edge *edges; /* (edge_count) sorted, unique, no cell to itself */
    int edge_count;
    const uint8_t *graph; /* (C,C) the same; not read by bj_graph_save, may be NULL there */
    const bj_edge *held;  /* (held_count) sorted: withheld from fitting */
    int held_count;
    const bj_edge *seen;                  /* (seen_count) sorted: the successors a dataset has */
    const int64_t *crossings;             /* (seen_count) how often */
    int seen_count;                       /* 0: not known */
    int sources, K;                       /* 0: without candidates */
    const int32_t *source_cells;          /* (S) ascending */
    const bj_graph_candidate *candidates; /* (S,K) */
    const bj_fact *facts;                 /* where it comes from, as texts */
    int fact_count;
} bj_graph_record;

/* Writes or reads a JSON file, "branchjepa.graph/1". */
BJ_API BJ_CHECK bj_status bj_graph_save(const char *path, const bj_graph_record *record,
                                        bj_error *err);
typedef struct bj_graph_file bj_graph_file;
BJ_API BJ_CHECK bj_status bj_graph_open(bj_graph_file **out, const char *path, bj_error *err);
BJ_API void bj_graph_close(bj_graph_file *file);
BJ_API const bj_graph_record *bj_graph_of(const bj_graph_file *file);

/* Nearest cells and cosines of all candidates of a case, out (S,K); mass (S,K) may be NULL. */
BJ_API BJ_CHECK bj_status bj_graph_candidates(bj_graph_candidate *out, const bj_graph_case *input,
                                              const bj_real *mass, bj_error *err);
/* The edges of a graph (C,C) without its diagonal, sorted; the caller gives *out to bj_edges_free.
 */
BJ_API BJ_CHECK bj_status bj_graph_edges(bj_edge **out, int *count, const uint8_t *graph, int cells,
                                         bj_error *err);

/* ----------------------------------------------------------------------------- generated mazes */

typedef struct bj_generate_options {
    int rows, cols; /* of corridors, the map has 2n + 1 squares a side; 0: 4 and 5 */
    int branches;   /* successors of each designated cell, 2 to 8 */
    int junctions;  /* designated cells; 0: 4 */
    double loops;   /* share of the remaining walls that are opened, below 1 */
    uint64_t seed;
} bj_generate_options;

/* A maze in which `junctions` cells have exactly `branches` successors each: teleporters to the
 * same cells. Every cell can be reached from every other; five tasks are drawn. */
BJ_API BJ_CHECK bj_status bj_maze_generate(bj_maze **out, const bj_generate_options *options,
                                           bj_error *err);

typedef struct bj_walk_options {
    int episodes; /* 0: 1000 */
    int steps;    /* rows of an episode; 0: 1001 */
    double noise; /* standard deviation added to an action; negative: 0.5 */
    uint64_t seed;
} bj_walk_options;

/* Walks from random goal to random goal, by the recipe of OGBench's `navigate` sets, as an .npz of
 * observations, actions, terminals and qpos. */
BJ_API BJ_CHECK bj_status bj_maze_walk(const char *path, const bj_maze *maze,
                                       const bj_walk_options *options, bj_error *err);

/* -------------------------------------------------------------------------------- episode split */

#define BJ_MAZE_TRAINING 0.7 /* share of the episodes */
enum { BJ_MAZE_HORIZON = 8, BJ_MAZE_STRIDE = 25 };

/* training (episodes): 1 for floor(share * count) of them, chosen by a permutation of the seed. */
BJ_API BJ_CHECK bj_status bj_episode_split(uint8_t *training, int64_t count, double share,
                                           uint64_t seed, bj_error *err);
/* Contexts of an audit: rows of the episodes not marked in `training` (NULL: of all) that have
 * `horizon` frames after them, `stride` rows apart, in the same episode, all of them in a cell.
 * Every horizon * stride rows, from the first of an episode; the caller gives *out to bj_rows_free.
 */
BJ_API BJ_CHECK bj_status bj_audit_contexts(int64_t **out, int64_t *count, const bj_maze_data *data,
                                            const uint8_t *training, int stride, int horizon,
                                            bj_error *err);
BJ_API void bj_rows_free(int64_t *rows);

/* ------------------------------------------------------------------------ target-blind archives */

/* What a predictor emits at contexts that were fixed before, all of it from the context alone. */
typedef struct bj_emissions {
    const bj_maze *maze;
    int contexts, K, D;
    const int32_t *context_cells; /* (S) in the order they were fixed in */
    const bj_real *candidates;    /* (S,K,D) */
    const bj_real *mass;          /* (S,K) of the router, sums to 1 */
    const bj_real *point;         /* (S,D) one output of another predictor beside it; NULL: none */
    const bj_real *latents;       /* (C,D) of all cells, successors or not */
    const bj_real *point_latents; /* (C,D) of all cells as the other predictor has them, which has
                                     a latent space of its own; NULL: latents */
    const bj_fact *facts;
    int fact_count;
} bj_emissions;

/* Writes the emissions and says the SHA-256 of the file. Nothing here has seen a dataset. */
BJ_API BJ_CHECK bj_status bj_archive_emit(char sha256[65], const char *path,
                                          const bj_emissions *emissions, bj_error *err);

/* The same from a safetensors file of latents with the tensors context_cells (S), candidates
 * (S,K,D), mass (S,K), latents (C,D) and, where there are such, point (S,D) and point_latents
 * (C,D). */
BJ_API BJ_CHECK bj_status bj_archive_emit_file(char sha256[65], const char *path,
                                               const char *latents, const bj_maze *maze,
                                               bj_error *err);

/* The successors of a context and what hit them. */
typedef struct bj_archive_context {
    int32_t cell;
    int successors, hit, point_hit; /* point_hit: by the one output */
    double coverage;                /* share hit by a candidate, NaN without successors */
    double mass_on_support;         /* router mass of candidates that hit a successor */
} bj_archive_context;

typedef struct bj_archive_report {
    char emissions_sha256[65], data_sha256[65],
        sha256[65]; /* of the two inputs and of the result */
    int contexts, K, has_point;
    bj_archive_context *context;     /* (S) for bj_archive_report_reset */
    double coverage, point_coverage; /* means over contexts that have successors, NaN: none */
} bj_archive_report;

/* Second file: hashes the emissions first, then opens the dataset, and writes the successors with
 * their crossings beside the hash. `expected`, which may be NULL, is the hash announced before. */
BJ_API BJ_CHECK bj_status bj_archive_reveal(bj_archive_report *out, const char *path,
                                            const char *emissions, const char *expected,
                                            const bj_maze *maze, const char *dataset,
                                            bj_error *err);
/* BJ_EMISMATCH: the emissions are not those that were named in the second file. */
BJ_API BJ_CHECK bj_status bj_archive_check(const char *path, const char *emissions, bj_error *err);
BJ_API void bj_archive_report_reset(bj_archive_report *report);

#endif
