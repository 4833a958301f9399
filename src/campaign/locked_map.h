/* locked_map.h - two parts of a locked evaluation that are not metrics of the future.
 *
 * Map summary   For scenes whose focal road user is a vehicle or a bus, compares the forecasts of the
 *               pass with the official drivable areas (src/audit): weighted share of points inside,
 *               weight of trajectories with at least 95 % of their points inside, and mass-weighted
 *               feasible support. Means over scenes, in scene order, so they do not depend on the
 *               number of threads. They are part of seed_table.json and run_summary.json.
 * Latency       Median time of predicting the first 64 scenes in one batch. Checkpoints alternate, so
 *               a change of the machine's speed affects all of them alike. The times are part of
 *               completion.json, which is not compared when an evaluation is repeated.
 * Test: tests/campaign/test_locked.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_MAP_H
#define BJ_CAMPAIGN_LOCKED_MAP_H

#include "campaign/locked_pass.h"

enum { BJ_LATENCY_BATCH = 64, BJ_LATENCY_REPETITIONS = 21 };

/* Returns the name of a map metric, or of the latency for index BJ_LOCKED_MAP. */
const char *bj_locked_extra_name(int index);

/* A worker pool and the sums over the scenes so far. */
typedef struct bj_locked_map bj_locked_map;

BJ_CHECK bj_status bj_locked_map_create(bj_locked_map **out, const bj_locked_results *results,
                                        int threads, bj_error *err);
void bj_locked_map_free(bj_locked_map *map);
/* Measures the last forecasts of every evaluator for a batch. */
BJ_CHECK bj_status bj_locked_map_add(bj_locked_map *map, const bj_scene_info *infos, int count,
                                     bj_error *err);
/* Stores the means in the results. With fewer than BJ_LOCK_LEAST scenes they are NaN. */
void bj_locked_map_finish(bj_locked_results *results, const bj_locked_map *map);

/* Measures the latency of every evaluator on a batch. */
BJ_CHECK bj_status bj_locked_latency(bj_locked_results *results, const bj_batch *batch,
                                     bj_error *err);

#endif
