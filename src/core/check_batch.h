/* check_batch.h - is a batch what the architecture expects? */
#ifndef BJ_CORE_CHECK_BATCH_H
#define BJ_CORE_CHECK_BATCH_H

#include <branchjepa/branchjepa.h>

/* Sizes, row starts and pointers; not the numbers themselves. */
BJ_CHECK bj_status bj_batch_check(const bj_batch *batch, const bj_arch *arch, int max_batch,
                                  int needs_future, bj_error *err);

/* Refuses scene b if it holds a NaN or infinity, naming scene and array. */
BJ_CHECK bj_status bj_scene_check(const bj_batch *batch, const bj_arch *arch, int b, bj_error *err);
/* Name of the first array of scene b that holds a NaN or infinity, or NULL. */
const char *bj_scene_nonfinite(const bj_batch *batch, const bj_arch *arch, int b);

#endif
