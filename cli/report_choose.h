/* report_choose.h - selects the scenes of a page by their ids.
 *
 * Ids are sorted by a hash, and the first ones are taken. The selection does not depend on futures,
 * and adding scenes does not change the order of the existing ones.
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
