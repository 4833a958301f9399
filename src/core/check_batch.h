/* check_batch.h - checks a batch against the architecture. */
#ifndef BJ_CORE_CHECK_BATCH_H
#define BJ_CORE_CHECK_BATCH_H

#include <branchjepa/branchjepa.h>

/* Checks counts and pointers, but not the values in the arrays. */
BJ_CHECK bj_status bj_batch_check(const bj_batch *batch, const bj_arch *arch, int max_batch,
                                  int needs_future, bj_error *err);

/* Fails with BJ_ENONFINITE if scene b contains a NaN or infinity. The message names the scene and
 * the array. The future is checked if `with_future` is set and the scene has one. */
BJ_CHECK bj_status bj_scene_check(const bj_batch *batch, const bj_arch *arch, int b,
                                  int with_future, bj_error *err);
/* Returns the name of the first array of the scene that contains a NaN or infinity, or NULL. */
const char *bj_scene_nonfinite(const bj_scene *scene, const bj_arch *arch, int with_future);

/* Returns the name of the first array of the transition that contains a NaN or infinity, or NULL.
 * The second observation is checked if `with_next` is set. */
const char *bj_pair_nonfinite(const bj_pair *pair, const bj_arch *arch, int with_next);
/* Checks element b of the batch, which is a scene or a transition depending on the architecture. */
BJ_CHECK bj_status bj_element_check(const bj_batch *batch, const bj_arch *arch, int b, int with_next,
                                    bj_error *err);

#endif
