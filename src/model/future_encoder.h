/* future_encoder.h - computes target latents of true futures and their reconstructions.
 *
 *   future (F,2) --future view--> features (F,7) --target encoder--> z = c / |c| --decoder--> recon
 *
 * The future view contains the scene's map and no neighbors. Each row is bit-identical to the
 * training step, for any batch and any number of workers.
 * Test: tests/model/test_future_encoder.c
 */
#ifndef BJ_MODEL_FUTURE_ENCODER_H
#define BJ_MODEL_FUTURE_ENCODER_H

#include "core/threads.h"
#include "model/model.h"

struct bj_target {
    bj_arch arch;
    size_t size;
    bj_real *weights; /* (size) encoder prefix of a weight block in arch's layout */
};

/* Creates a target with zero weights, which the caller fills. */
BJ_CHECK bj_status bj_target_create_empty(bj_target **out, const bj_arch *arch,
                                          const bj_layout *layout, bj_error *err);

/* Creates a future encoder that uses the caller's worker pool. The pool must outlive the
 * encoder. */
BJ_CHECK bj_status bj_future_encoder_create_on(bj_future_encoder **out, const bj_model *model,
                                               const bj_target *target, int max_batch,
                                               const char *isa, bj_pool *pool, bj_error *err);

#endif
