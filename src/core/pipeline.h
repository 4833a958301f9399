/* pipeline.h - work done in any order, results taken in order.
 *
 * Items 0 .. n-1 are produced by workers, several at a time, each into a slot; the calling thread
 * consumes the slots in the order of the items. At most `slots` items are under way, so memory stays
 * bounded however uneven the items are. What is consumed does not depend on the number of workers.
 * Test: tests/core/test_pipeline.c
 */
#ifndef BJ_CORE_PIPELINE_H
#define BJ_CORE_PIPELINE_H

#include <stdint.h>

#include "core/status.h"

typedef struct bj_pipeline {
    int64_t first, end; /* items first .. end - 1 */
    int jobs;           /* workers; <= 0: one per core this process may use */
    int slots;          /* >= jobs */
    void *context;
    /* On a worker: fills slot `slot` with item `item`. Each slot is used by one thread at a time. */
    void (*produce)(void *context, int64_t item, int slot, int worker);
    /* On the calling thread, in order. A failure stops the run. */
    bj_status (*consume)(void *context, int64_t item, int slot, bj_error *err);
} bj_pipeline;

/* Workers this pipeline will use, to size what `produce` needs. */
int bj_pipeline_workers(const bj_pipeline *pipeline);
BJ_CHECK bj_status bj_pipeline_run(const bj_pipeline *pipeline, bj_error *err);

#endif
