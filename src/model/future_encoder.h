/* future_encoder.h - the latents of true futures, and what the decoder makes of them.
 *
 *   future (F,2) --future view--> features (F,7) --target encoder--> z = c / |c| --decoder--> recon
 *
 * The future view has the map of the scene and no neighbors. A row's bits depend neither on the
 * batch nor on the number of workers, and are those of the training step.
 * Test: tests/model/test_future_encoder.c
 */
#ifndef BJ_MODEL_FUTURE_ENCODER_H
#define BJ_MODEL_FUTURE_ENCODER_H

#include "core/threads.h"
#include "model/model.h"

struct bj_target {
    bj_arch arch;
    size_t size;
    bj_real *weights; /* (size) the encoder's prefix of a block of arch's layout */
};

/* Zero weights, for whoever has some to fill in. */
BJ_CHECK bj_status bj_target_create_empty(bj_target **out, const bj_arch *arch,
                                          const bj_layout *layout, bj_error *err);

/* bj_future_encoder_create on workers of somebody else, who outlives it. */
BJ_CHECK bj_status bj_future_encoder_create_on(bj_future_encoder **out, const bj_model *model,
                                               const bj_target *target, int max_batch,
                                               const char *isa, bj_pool *pool, bj_error *err);

#endif
