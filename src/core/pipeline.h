/* pipeline.h - produces items in parallel and consumes them in order.
 *
 * Worker threads write the items to slots. The calling thread consumes the slots in item order. At
 * most `slots` items are in flight, so memory stays bounded even if some items take much longer
 * than others. The result does not depend on the number of workers.
 * Test: tests/core/test_pipeline.c
 */
#ifndef BJ_CORE_PIPELINE_H
#define BJ_CORE_PIPELINE_H

#include <stdint.h>

#include "core/status.h"

typedef struct bj_pipeline {
    int64_t first, end; /* items first .. end - 1 */
    int jobs;           /* number of workers; <= 0 means one per core available to this process */
    int slots;          /* >= jobs */
    void *context;
    /* Fills slot `slot` with item `item`. Called on a worker thread. A slot is never used by two
     * threads at the same time. */
    void (*produce)(void *context, int64_t item, int slot, int worker);
    /* Consumes an item. Called on the calling thread, in item order. A failure stops the run. */
    bj_status (*consume)(void *context, int64_t item, int slot, bj_error *err);
} bj_pipeline;

/* Returns the number of workers of this pipeline, for sizing per-worker buffers. */
int bj_pipeline_workers(const bj_pipeline *pipeline);
BJ_CHECK bj_status bj_pipeline_run(const bj_pipeline *pipeline, bj_error *err);

#endif
