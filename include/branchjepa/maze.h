/* maze.h - OGBench mazes: maps, true graphs, datasets, and metrics for predicted graphs.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/MAZES.md defines every number.
 * Shapes: C cells, S sources, K candidates per source, D latent width.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_MAZE_H
#define BRANCHJEPA_MAZE_H

/* --------------------------------------------------------------------------------------- mazes */

#define BJ_MAZE_UNIT 4.0    /* side of a cell; row i, column j is centered at (4j - 4, 4i - 4) */
#define BJ_MAZE_TRIGGER 1.5 /* distance from the cell center within which a teleporter triggers */
#define BJ_MAZE_THRESHOLD 0.5 /* a latent hits a cell if its cosine exceeds this value */
#define BJ_MAZE_WITHHELD 0.2  /* share of the unique edges withheld from training */
enum { BJ_MAZE_MAX_CELLS = 4096, BJ_MAZE_QUERIES = 300 };

/* A pair of cells: an edge of a graph, or the start and goal of a query. */
typedef struct bj_edge {
    int32_t from, to;
} bj_edge;

/* A maze. Cells are the free squares, numbered row by row. The maze owns all pointers. */
typedef struct bj_maze {
    const char *name;
    int rows, cols;
    int cells;              /* C */
    const int32_t *cell_at; /* (rows,cols) cell number, -1: wall */
    const int32_t *square;  /* (C,2) row and column */
    const double *center;   /* (C,2) x and y */
    int edge_count, teleport_count, retreat_count, in_count, out_count, task_count;
    const bj_edge *edges;     /* true graph, sorted; includes teleports */
    const uint8_t *graph;     /* (C,C) true graph; [u,v] is 1 if there is an edge from u to v */
    const bj_edge *teleports; /* edges from every entry cell to every exit cell, each with
                                 probability 1/3 */
    const bj_edge *retreats; /* edges from an entry cell back to its neighbors via the rim, which
                                are rare; not in `edges` unless the neighbor is an exit cell */
    const int32_t *ins, *outs; /* teleporter entry and exit cells */
    const bj_edge *tasks;      /* start and goal of the five official tasks */
} bj_maze;

/* Returns "medium", "large", "giant" or "teleport", or NULL for larger indices. */
BJ_API const char *bj_maze_name(int index);
/* Returns the maze name contained in a dataset's file name ("pointmaze-large-navigate-v0.npz"), or
 * NULL. */
BJ_API const char *bj_maze_guess(const char *path);
BJ_API BJ_CHECK bj_status bj_maze_create(bj_maze **out, const char *name, bj_error *err);
/* Creates a maze without teleporters or tasks from walls (rows,cols), where nonzero means wall. */
BJ_API BJ_CHECK bj_status bj_maze_from_walls(bj_maze **out, const char *name, const uint8_t *walls,
                                             int rows, int cols, bj_error *err);
BJ_API void bj_maze_free(bj_maze *maze);
/* Returns the cell that contains a position, or -1 for a wall, a position outside the map or
 * NaN. */
BJ_API int bj_maze_cell(const bj_maze *maze, double x, double y);

typedef enum bj_edge_kind {
    BJ_EDGE_REAL,     /* in the true graph */
    BJ_EDGE_RETREAT,  /* leaves a teleporter entry via its rim */
    BJ_EDGE_DIAGONAL, /* diagonal, across the corner of a square */
    BJ_EDGE_OTHER
} bj_edge_kind;
BJ_API bj_edge_kind bj_maze_edge_kind(const bj_maze *maze, bj_edge edge);
BJ_API const char *bj_edge_kind_name(bj_edge_kind kind); /* "real", "retreat", ... */

/* -------------------------------------------------------------------------------------- graphs */

/* A graph is a (C,C) matrix of 0 and 1, where [u,v] is the edge from u to v. */

/* Fills distance (C) with the number of edges from `start` by breadth-first search, or -1 if there
 * is no path. scratch is (C). */
BJ_API void bj_graph_distances(int32_t *distance, int32_t *scratch, const uint8_t *graph, int cells,
                               int start);
/* Returns all pairs of different cells with a path, sorted. The caller frees *out with
 * bj_edges_free. */
BJ_API BJ_CHECK bj_status bj_graph_pairs(bj_edge **out, int *count, const uint8_t *graph, int cells,
                                         bj_error *err);
BJ_API void bj_edges_free(bj_edge *edges);

/* The two query sets of an evaluation, drawn independently. */
typedef enum bj_query_set { BJ_QUERIES_PLAN, BJ_QUERIES_VERIFIED } bj_query_set;
/* Draws up to `limit` of the pairs with a path without replacement, sorted. The result depends only
 * on the graph, the set and the seed. */
BJ_API BJ_CHECK bj_status bj_graph_queries(bj_edge **out, int *count, const uint8_t *graph,
                                           int cells, int limit, bj_query_set set, uint64_t seed,
                                           bj_error *err);
/* Computes the share of queries that have a path, which is NaN if there are no queries. hit (count)
 * receives 1 for each query with a path and may be NULL. */
BJ_API BJ_CHECK bj_status bj_graph_routes(double *rate, uint8_t *hit, const uint8_t *graph,
                                          int cells, const bj_edge *queries, int count,
                                          bj_error *err);

/* ------------------------------------------------------------------------------ withheld edges */

/* Fills `order` with the seed's permutation of 0 .. count - 1, the order in which edges are
 * considered for withholding. */
BJ_API void bj_withhold_order(int32_t *order, int count, uint64_t seed);
/* Marks up to floor(fraction * count) of the unique edges as withheld (1 in held), in the given
 * order. Skips an edge if its source would have no edge left without it. *chosen receives the
 * number of marked edges. */
BJ_API BJ_CHECK bj_status bj_withhold(uint8_t *held, int *chosen, const bj_edge *edges, int count,
                                      const int32_t *order, double fraction, bj_error *err);

/* ------------------------------------------------------------------------------------- datasets */

/* Cells and episodes of an OGBench dataset. Only the cell of each step is kept in memory.
 * Observations are read from the file when requested. */
typedef struct bj_maze_data bj_maze_data;

typedef struct bj_maze_data_info {
    int64_t steps, episodes;
    int64_t outside;          /* number of steps in a wall or outside the map; these steps are
                                 skipped */
    int64_t crossings;        /* moves from one cell to another */
    int visited;              /* cells with at least one step */
    int sources;              /* cells with at least one outgoing edge */
    int edges;                /* unique directed edges */
    int open_end;             /* 1 if the last step is not marked as the end of an episode */
    int stride;               /* simulator steps between two rows */
    const char *positions;    /* name of the array that contains x and y */
    const char *observations; /* name of the observation array */
    int rank;                 /* rank of an observation: 1 for a state, 3 for an image */
    int shape[3];             /* (width), or (height,width,channels) */
} bj_maze_data_info;

/* Opens a dataset. x and y are the first two components of `observations`, or for images of `qpos`
 * or `states`. An episode ends where `terminals` is nonzero, or where `episode` changes. The maze
 * must outlive the data. */
BJ_API BJ_CHECK bj_status bj_maze_data_open(bj_maze_data **out, const char *path,
                                            const bj_maze *maze, bj_error *err);
BJ_API void bj_maze_data_free(bj_maze_data *data);
BJ_API bj_maze_data_info bj_maze_data_about(const bj_maze_data *data);
BJ_API const bj_maze *bj_maze_data_maze(const bj_maze_data *data);
BJ_API const int16_t *bj_maze_data_cells(const bj_maze_data *data);    /* (steps) -1: outside */
BJ_API const int64_t *bj_maze_data_episodes(const bj_maze_data *data); /* (episodes + 1) first
                                                                          steps */
BJ_API const bj_edge *bj_maze_data_edges(const bj_maze_data *data);    /* (edges) sorted */
BJ_API const int64_t *bj_maze_data_counts(const bj_maze_data *data);   /* (edges) crossings */
BJ_API BJ_CHECK bj_status bj_maze_data_positions(double *xy, bj_maze_data *data,
                                                 bj_error *err); /* (steps,2) */
/* Read rows [begin, end) of the observations into out (end - begin, components of an observation),
 * as bj_real values or, for images, as bytes. Reading is fast if `begin` is the end of the previous
 * call. A smaller `begin` restarts from the beginning of the file. */
BJ_API BJ_CHECK bj_status bj_maze_data_read(bj_real *out, bj_maze_data *data, int64_t begin,
                                            int64_t end, bj_error *err);
BJ_API BJ_CHECK bj_status bj_maze_data_read_bytes(uint8_t *out, bj_maze_data *data, int64_t begin,
                                                  int64_t end, bj_error *err);

/* ---------------------------------------------------------------------------------- transitions */

typedef enum bj_transition_kind {
    BJ_TRANSITION_STEP,    /* transitions to the row `horizon` steps later, in any cell */
    BJ_TRANSITION_CROSSING /* transitions to the first later row of the episode that is in another
                              cell */
} bj_transition_kind;

typedef struct bj_transition_options {
    bj_transition_kind kind;
    int horizon;         /* steps; 0: 1 */
    const uint8_t *held; /* (edges of the data) 1: withheld; NULL: none; read only during
                            creation */
    /* (episodes) 1: use this episode; NULL: use all. */
    const uint8_t *episodes;
} bj_transition_options;

/* Pairs of rows of the same episode, both inside a cell. Pairs that cross a withheld edge are left
 * out. */
typedef struct bj_transitions bj_transitions;

typedef struct bj_transition {
    int64_t from, to; /* rows */
} bj_transition;

BJ_API BJ_CHECK bj_status bj_transitions_create(bj_transitions **out, const bj_maze_data *data,
                                                const bj_transition_options *options,
                                                bj_error *err);
BJ_API void bj_transitions_free(bj_transitions *transitions);
BJ_API int64_t bj_transitions_count(const bj_transitions *transitions);
BJ_API int64_t bj_transitions_dropped(const bj_transitions *transitions); /* left out because of a
                                                                             withheld edge */
BJ_API bj_transition bj_transitions_at(const bj_transitions *transitions, int64_t index);

/* ------------------------------------------------------------------------------------- metrics */

/* The outputs of a predictor and the ground truth with which they are compared. */
typedef struct bj_graph_case {
    int cells, sources, K, D;
    const bj_real *latents;                /* (C,D) cell latents */
    const bj_real *candidates;             /* (S,K,D) all candidates, regardless of their weight */
    const int32_t *source_cells;           /* (S) several sources may share a cell */
    const uint8_t *graph;                  /* (C,C) true graph */
    const uint8_t *successors;             /* (C,C) successors for COV-R; NULL: graph */
    const bj_edge *held, *plan, *verified; /* withheld edges and the two query sets */
    int held_count, plan_count, verified_count;
} bj_graph_case;

typedef struct bj_graph_scores {
    int predicted_edges; /* between different cells */
    int sources_with_edges;
    double plan_all;             /* share of queries with a path in the predicted graph */
    double verified_route;       /* share of queries with a path of predicted edges that all exist
                                    in the true graph */
    double macro_precision;      /* share of a cell's predicted edges that exist in the true graph,
                                    averaged over cells with predicted edges */
    double macro_precision_self; /* like macro_precision, but an edge from a cell to itself counts
                                    as a false prediction */
    double held_recall;          /* share of withheld edges that are predicted */
    double cov_r;                /* raw COV-R: mean share of a source's successors that are hit by a
                                    candidate */
    double cov_three;            /* raw COV-R over sources with exactly three successors */
    double heads_three;          /* mean number of candidates that hit a successor, over the same
                                    sources */
} bj_graph_scores;               /* the mean of an empty set is NaN */

/* Optional detailed results. Each pointer may be NULL. */
typedef struct bj_graph_details {
    uint8_t *predicted; /* (C,C) predicted graph; on the diagonal, 1 means that a candidate of a
                           source hits the source's own cell */
    uint8_t *plan_hit, *verified_hit;
    double *precision, *precision_self; /* (C) NaN: no predicted edge */
    double *cov_r;                      /* (S) NaN: no successor */
} bj_graph_details;

BJ_API BJ_CHECK bj_status bj_graph_score(bj_graph_scores *out, const bj_graph_details *details,
                                         const bj_graph_case *input, bj_error *err);

/* Computes raw COV-R over frames of recorded episodes in two passes. The first pass adds all frames
 * with their target latents. The second pass adds the candidates of the frames that have a next
 * frame. */
typedef struct bj_frame_coverage bj_frame_coverage;

BJ_API BJ_CHECK bj_status bj_frame_coverage_create(bj_frame_coverage **out, int cells, int D,
                                                   bj_error *err);
BJ_API void bj_frame_coverage_free(bj_frame_coverage *coverage);
/* Adds a frame in `cell`. `next` is the cell of the episode's next frame, or -1 if there is
 * none. */
BJ_API BJ_CHECK bj_status bj_frame_coverage_target(bj_frame_coverage *coverage, int cell, int next,
                                                   const bj_real *latent, bj_error *err);
/* Adds the candidates (K,D) of a frame in `cell`. No target can be added after the first call. */
BJ_API BJ_CHECK bj_status bj_frame_coverage_predict(bj_frame_coverage *coverage, int cell,
                                                    const bj_real *candidates, int K,
                                                    bj_error *err);
/* Returns the latent (D) of a cell, the normalized mean of its frames. Returns NULL if the cell has
 * no frame or if no candidates have been added yet. */
BJ_API const double *bj_frame_coverage_latent(const bj_frame_coverage *coverage, int cell);
/* Averages over the frames of each cell, then over cells. per_cell (C), if not NULL, receives the
 * cell means, which are NaN for cells without frames. */
BJ_API double bj_frame_coverage_result(double *per_cell, const bj_frame_coverage *coverage);

#endif
