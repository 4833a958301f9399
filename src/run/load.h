/* load.h - loads a checkpoint whose two files the caller has opened, for example in memory.
 *
 * Test: tests/campaign/test_locked.c
 */
#ifndef BJ_RUN_LOAD_H
#define BJ_RUN_LOAD_H

#include "core/safetensors.h"

/* Checks both files completely and returns the model and the target encoder. */
BJ_CHECK bj_status bj_run_load(bj_model **model, bj_target **target, bj_safetensors *model_file,
                               bj_safetensors *state_file, bj_error *err);

#endif
