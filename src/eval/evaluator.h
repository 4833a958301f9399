/* evaluator.h - internal access to the forecasts of an evaluator.
 *
 * Test: tests/campaign/test_locked.c
 */
#ifndef BJ_EVAL_EVALUATOR_H
#define BJ_EVAL_EVALUATOR_H

#include "core/status.h"

/* The forecasts of the last batch. */
typedef struct bj_evaluator_forecasts {
    int K, F;
    const bj_real *weights, *trajectories; /* (B,K), (B,K,F,2) */
} bj_evaluator_forecasts;

bj_evaluator_forecasts bj_evaluator_last(const bj_evaluator *evaluator);
/* Predicts a batch without measuring it. */
BJ_CHECK bj_status bj_evaluator_predict(bj_evaluator *evaluator, const bj_batch *batch,
                                        bj_error *err);

#endif
