/* maze_drive.h - mazes to act in: the point agent, driving by a predicted graph, files of mazes and
 * graphs, generated mazes with a chosen number of successors, splits and target-blind archives.
 *
 * Part of the public interface, beside <branchjepa/branchjepa.h>, which it includes and which does
 * not include it. docs/MAZES.md defines every number and every file.
 * Shapes: C cells, S sources or contexts, K candidates of each, D latent width.
 */
#ifndef BRANCHJEPA_MAZE_DRIVE_H
#define BRANCHJEPA_MAZE_DRIVE_H

#include <branchjepa/branchjepa.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
