/* maze.h - the mazes of OGBench: maps, true graphs, datasets, and metrics of predicted graphs.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/MAZES.md defines every
 * number. Shapes: C cells, S sources, K candidates of a source, D latent width.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_MAZE_H
#define BRANCHJEPA_MAZE_H

/* --------------------------------------------------------------------------------------- mazes */

#define BJ_MAZE_UNIT 4.0    /* side of a cell; the center of row i, column j is (4j - 4, 4i - 4) */
#define BJ_MAZE_TRIGGER 1.5 /* a teleporter fires this near to the center of its cell */
#define BJ_MAZE_THRESHOLD 0.5 /* a cosine must exceed it to count */
#define BJ_MAZE_WITHHELD 0.2  /* share of the unique edges kept out of fitting */
enum { BJ_MAZE_MAX_CELLS = 4096, BJ_MAZE_QUERIES = 300 };

/* From one cell to another: an edge of a graph, or start and goal of a query. */
typedef struct bj_edge {
    int32_t from, to;
} bj_edge;

/* Cells are the free squares, numbered row by row. Everything lives as long as the maze. */
typedef struct bj_maze {
    const char *name;
    int rows, cols;
    int cells;              /* C */
    const int32_t *cell_at; /* (rows,cols) number of the cell, -1: wall */
    const int32_t *square;  /* (C,2) row and column */
    const double *center;   /* (C,2) x and y */
    int edge_count, teleport_count, retreat_count, in_count, out_count, task_count;
    const bj_edge *edges;     /* the true graph, sorted; teleports are among them */
    const uint8_t *graph;     /* (C,C) the same: [u,v] is 1 when there is an edge from u to v */
    const bj_edge *teleports; /* from every in cell to every out cell, one third each */
    const bj_edge *retreats; /* out of an in cell to its neighbors, from its rim: rare, not in edges
                                unless the neighbor is an out cell too */
    const int32_t *ins, *outs; /* teleporters */
    const bj_edge *tasks;      /* the five official ones, start and goal */
} bj_maze;

/* "medium", "large", "giant", "teleport"; NULL beyond them. */
BJ_API const char *bj_maze_name(int index);
/* The name of the maze in the name of a dataset, "pointmaze-large-navigate-v0.npz"; NULL: none. */
BJ_API const char *bj_maze_guess(const char *path);
BJ_API BJ_CHECK bj_status bj_maze_create(bj_maze **out, const char *name, bj_error *err);
/* Any other map without teleporters or tasks: walls (rows,cols), not 0 where there is a wall. */
BJ_API BJ_CHECK bj_status bj_maze_from_walls(bj_maze **out, const char *name, const uint8_t *walls,
                                             int rows, int cols, bj_error *err);
BJ_API void bj_maze_free(bj_maze *maze);
/* The cell a position belongs to; -1: a wall, outside, or not a number. */
BJ_API int bj_maze_cell(const bj_maze *maze, double x, double y);

typedef enum bj_edge_kind {
    BJ_EDGE_REAL,     /* in the true graph */
    BJ_EDGE_RETREAT,  /* back out of a teleporter's rim */
    BJ_EDGE_DIAGONAL, /* across the corner of a square */
    BJ_EDGE_OTHER
} bj_edge_kind;
BJ_API bj_edge_kind bj_maze_edge_kind(const bj_maze *maze, bj_edge edge);
BJ_API const char *bj_edge_kind_name(bj_edge_kind kind); /* "real", "retreat", ... */

/* -------------------------------------------------------------------------------------- graphs */

/* A graph is a matrix (C,C) of 0 and 1, [u,v] for u to v. */

/* distance (C): steps from start by breadth-first search, -1 where there is no path. scratch (C).
 */
BJ_API void bj_graph_distances(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                               int start);
/* All pairs of different cells with a path, sorted; the caller gives *out to bj_edges_free. */
BJ_API BJ_CHECK bj_status bj_graph_pairs(bj_edge **out, int *count, const uint8_t *graph, int cells,
                                         bj_error *err);
BJ_API void bj_edges_free(bj_edge *edges);

/* The two query sets of an evaluation, drawn apart from each other. */
typedef enum bj_query_set { BJ_QUERIES_PLAN, BJ_QUERIES_VERIFIED } bj_query_set;
/* Up to `limit` of these pairs without repetition, sorted, the same for the same seed. */
BJ_API BJ_CHECK bj_status bj_graph_queries(bj_edge **out, int *count, const uint8_t *graph,
                                           int cells, int limit, bj_query_set set, uint64_t seed,
                                           bj_error *err);
/* Share of the queries with a path, NaN without queries; hit (count), which may be NULL: which. */
BJ_API BJ_CHECK bj_status bj_graph_routes(double *rate, uint8_t *hit, const uint8_t *graph,
                                          int cells, const bj_edge *queries, int count,
                                          bj_error *err);

/* ------------------------------------------------------------------------------ withheld edges */

/* The order in which edges are considered: a permutation of 0 .. count - 1 from the seed. */
BJ_API void bj_withhold_order(int32_t *order, int count, uint64_t seed);
/* Marks (1 in held) up to floor(fraction * count) of the unique edges, in that order, passing over
 * an edge when its source would keep none. *chosen: how many. */
BJ_API BJ_CHECK bj_status bj_withhold(uint8_t *held, int *chosen, const bj_edge *edges, int count,
                                      const int32_t *order, double fraction, bj_error *err);

/* ------------------------------------------------------------------------------------- datasets */

/* Cells and episodes of an OGBench dataset. The file is read by rows, a cell a step is kept. */
typedef struct bj_maze_data bj_maze_data;

typedef struct bj_maze_data_info {
    int64_t steps, episodes;
    int64_t outside;          /* steps in a wall or beyond the map: passed over */
    int64_t crossings;        /* from one cell to another */
    int visited;              /* cells with at least one step */
    int sources;              /* cells with at least one edge out of them */
    int edges;                /* unique directed ones */
    int open_end;             /* the last step is not marked as the end of an episode */
    int stride;               /* simulator steps between two rows */
    const char *positions;    /* the array x and y come from */
    const char *observations; /* the array of observations */
    int rank;                 /* of an observation: 1 for a state, 3 for an image */
    int shape[3];             /* (width), or (height,width,channels) */
} bj_maze_data_info;

/* x and y are the first two numbers of `observations`, or for images of `qpos` or `states`;
 * episodes end where `terminals` is not 0, or where `episode` changes. The maze must outlive the
 * data. */
BJ_API BJ_CHECK bj_status bj_maze_data_open(bj_maze_data **out, const char *path,
                                            const bj_maze *maze, bj_error *err);
BJ_API void bj_maze_data_free(bj_maze_data *data);
BJ_API bj_maze_data_info bj_maze_data_about(const bj_maze_data *data);
BJ_API const bj_maze *bj_maze_data_maze(const bj_maze_data *data);
BJ_API const int16_t *bj_maze_data_cells(const bj_maze_data *data);    /* (steps) -1: outside */
BJ_API const int64_t *bj_maze_data_episodes(const bj_maze_data *data); /* (episodes + 1) begins */
BJ_API const bj_edge *bj_maze_data_edges(const bj_maze_data *data);    /* (edges) sorted */
BJ_API const int64_t *bj_maze_data_counts(const bj_maze_data *data);   /* (edges) crossings */
/* Rows [begin, end) of the observations, out (end - begin, numbers of an observation), as bj_reals
 * or, of images, as bytes. Going on where the last call ended is fast; going back starts over. */
BJ_API BJ_CHECK bj_status bj_maze_data_read(bj_real *out, bj_maze_data *data, int64_t begin,
                                            int64_t end, bj_error *err);
BJ_API BJ_CHECK bj_status bj_maze_data_read_bytes(uint8_t *out, bj_maze_data *data, int64_t begin,
                                                  int64_t end, bj_error *err);

/* ---------------------------------------------------------------------------------- transitions */

typedef enum bj_transition_kind {
    BJ_TRANSITION_STEP,    /* `horizon` steps ahead, wherever that is */
    BJ_TRANSITION_CROSSING /* the first later step of the episode in another cell */
} bj_transition_kind;

typedef struct bj_transition_options {
    bj_transition_kind kind;
    int horizon;         /* steps; 0: 1 */
    const uint8_t *held; /* (edges of the data) 1: withheld; NULL: none. Read while creating */
    /* Episodes to take, (episodes) 1: taken; NULL: all. */
    const uint8_t *episodes;
} bj_transition_options;

/* Pairs of rows of one episode, both in a cell. A pair that crosses a withheld edge on its way is
 * left out. */
typedef struct bj_transitions bj_transitions;

typedef struct bj_transition {
    int64_t from, to; /* rows */
} bj_transition;

BJ_API BJ_CHECK bj_status bj_transitions_create(bj_transitions **out, const bj_maze_data *data,
                                                const bj_transition_options *options,
                                                bj_error *err);
BJ_API void bj_transitions_free(bj_transitions *transitions);
BJ_API int64_t bj_transitions_count(const bj_transitions *transitions);
BJ_API int64_t bj_transitions_dropped(const bj_transitions *transitions); /* for a withheld edge */
BJ_API bj_transition bj_transitions_at(const bj_transitions *transitions, int64_t index);

/* ------------------------------------------------------------------------------------- metrics */

/* What a predictor says, and what it is held against. */
typedef struct bj_graph_case {
    int cells, sources, K, D;
    const bj_real *latents;                /* (C,D) of the cells */
    const bj_real *candidates;             /* (S,K,D) all heads, whatever their weight */
    const int32_t *source_cells;           /* (S) several sources may share a cell */
    const uint8_t *graph;                  /* (C,C) the true one */
    const uint8_t *successors;             /* (C,C) what COV-R looks for; NULL: graph */
    const bj_edge *held, *plan, *verified; /* withheld edges and the two query sets */
    int held_count, plan_count, verified_count;
} bj_graph_case;

typedef struct bj_graph_scores {
    int predicted_edges; /* between different cells */
    int sources_with_edges;
    double plan_all;             /* queries with a path in the predicted graph */
    double verified_route;       /* ... on predicted edges that are real */
    double macro_precision;      /* mean over proposing cells of the share of real edges */
    double macro_precision_self; /* the same where u to u is a false proposal */
    double held_recall;          /* withheld edges that are predicted */
    double cov_r;                /* raw COV-R: mean share of successors hit by a candidate */
    double cov_three;            /* the same over sources with exactly three successors */
    double heads_three;          /* over those: candidates that hit a successor, mean number */
} bj_graph_scores;               /* a mean over nothing is NaN */

/* Details for whoever wants them; each may be NULL. */
typedef struct bj_graph_details {
    uint8_t *predicted; /* (C,C) the diagonal: a candidate is its own cell */
    uint8_t *plan_hit, *verified_hit;
    double *precision, *precision_self; /* (C) NaN: nothing proposed */
    double *cov_r;                      /* (S) NaN: no successor */
} bj_graph_details;

BJ_API BJ_CHECK bj_status bj_graph_score(bj_graph_scores *out, const bj_graph_details *details,
                                         const bj_graph_case *input, bj_error *err);

/* Raw COV-R over frames of recorded episodes, in two passes: all frames with their target latents,
 * then the candidates of the frames that have a next one. */
typedef struct bj_frame_coverage bj_frame_coverage;

BJ_API BJ_CHECK bj_status bj_frame_coverage_create(bj_frame_coverage **out, int cells, int D,
                                                   bj_error *err);
BJ_API void bj_frame_coverage_free(bj_frame_coverage *coverage);
/* A frame in `cell`; the next frame of its episode lies in `next`, -1: there is none. */
BJ_API BJ_CHECK bj_status bj_frame_coverage_target(bj_frame_coverage *coverage, int cell, int next,
                                                   const bj_real *latent, bj_error *err);
/* The predictions (K,D) of a frame in `cell`. After the first call no target can be added. */
BJ_API BJ_CHECK bj_status bj_frame_coverage_predict(bj_frame_coverage *coverage, int cell,
                                                    const bj_real *candidates, int K,
                                                    bj_error *err);
/* The latent (D) of a cell: the unit mean of its frames. NULL: it has none, or nothing was
 * predicted yet. */
BJ_API const double *bj_frame_coverage_latent(const bj_frame_coverage *coverage, int cell);
/* Mean over cells of the mean over their frames; per_cell (C), which may be NULL: NaN where there
 * is no frame. */
BJ_API double bj_frame_coverage_result(double *per_cell, const bj_frame_coverage *coverage);

#endif
