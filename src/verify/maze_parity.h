/* maze_parity.h - checks golden files of the mazes, which are NumPy archives.
 *
 * A file contains inputs and the results of a reference, named expected_*. It is one of three
 * kinds, which are recognized by their arrays. Arrays may have any size: C cells, S sources, E
 * edges, N steps or frames.
 *
 *   candidates (S,K,D)  cells (C,D), sources (S), true_edges (E,2), held_edges, plan_queries,
 *                       verified_queries (.,2): every metric of bj_graph_scores and its details;
 *                       with edge_order (E), also kept_edges and held_edges
 *   xy (N,2)            terminals (N), maze_map, edge_order: expected_cells, _edges, _counts,
 *                       _kept, _held
 *   frame_candidates    (N,K,D), frame_targets (N,D), frame_cells, frame_next (N) with -1 for
 *                       none: expected_cov_r and expected_cov_r_per_cell
 *
 * Integers must be equal. float64 values must agree to 1e-12 and float32
 * values to 1e-6. NaN equals NaN.
 * Test: tests/verify/test_maze_parity.c
 */
#ifndef BJ_VERIFY_MAZE_PARITY_H
#define BJ_VERIFY_MAZE_PARITY_H

#include "core/status.h"

/* Checks a file like bj_parity_file. Group m of the report receives the largest difference. */
BJ_CHECK bj_status bj_maze_parity(bj_parity_report *report, const char *path, bj_error *err);

#endif
