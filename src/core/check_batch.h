/* check_batch.h - is a batch what the architecture expects? */
#ifndef BJ_CORE_CHECK_BATCH_H
#define BJ_CORE_CHECK_BATCH_H

#include <branchjepa/branchjepa.h>

/* Counts and pointers; not the numbers themselves. */
BJ_CHECK bj_status bj_batch_check(const bj_batch *batch, const bj_arch *arch, int max_batch,
                                  int needs_future, bj_error *err);

/* Refuses scene b if it holds a NaN or infinity, naming scene and array. The future counts where
 * `with_future` is set and it is known. */
BJ_CHECK bj_status bj_scene_check(const bj_batch *batch, const bj_arch *arch, int b,
                                  int with_future, bj_error *err);
/* Name of the first array of a scene that holds a NaN or infinity, or NULL. */
const char *bj_scene_nonfinite(const bj_scene *scene, const bj_arch *arch, int with_future);

/* The same for a transition; with_next: its second observation counts too. */
const char *bj_pair_nonfinite(const bj_pair *pair, const bj_arch *arch, int with_next);
/* bj_scene_check for whatever the batch holds. */
BJ_CHECK bj_status bj_element_check(const bj_batch *batch, const bj_arch *arch, int b, int with_next,
                                    bj_error *err);

#endif
