/* report_choose.h - which scenes a page shows: decided by their ids alone.
 *
 * Ids are ordered by a hash, and the first ones are taken. Nobody can steer that by looking at
 * futures, and more scenes of the same data never change the order of those that were there.
 * Tests: tests/cli/report.sh, tests/cli/view.sh
 */
#ifndef BJEPA_REPORT_CHOOSE_H
#define BJEPA_REPORT_CHOOSE_H

#include "cli.h"

/* Fills chosen[0 .. *result - 1] with at most `wanted` of `count` scenes. id(context, i) returns
 * the i-th id, or NULL for a scene to skip. */
BJ_CHECK bj_status report_choose(int64_t *chosen, int *result, int wanted, int64_t count,
                                 const char *(*id)(const void *context, int64_t index),
                                 const void *context, bj_error *err);

#endif
