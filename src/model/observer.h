/* observer.h - the encoder for states and images up to the context: a chain of linear layers.
 *
 *   state  x -> [x^ | sin, cos of octaves] --mlp.0--> --mlp.2--> --proj.0--> --proj.2--> context
 *          x^ = (x - mean) / scale;  octave j of the first `waves` components: angle pi/4 2^j x^
 *   image  4x4 pixels --patch.0--> 4x4 patches --patch.2--> all blocks --mlp.0--> ... as above
 *          pixel = (byte / 255 - mean) / scale, per channel
 * with ReLU between layers. A patch layer is a convolution whose stride equals its width, so it is
 * a linear layer over rows. Pixels are stored patch by patch, so the outputs of 16 patches are
 * contiguous and form one input row of the next layer. Layer i has rows[i] rows per observation,
 * and group[i] of its output rows form one input row of layer i + 1.
 *
 * Shapes  x[i] (M,rows[i],in_i) row stride ldx[i]; context (M,D) row stride ldc
 * Test    tests/train/test_observed.c, tests/train/peer_observed.py
 */
#ifndef BJ_MODEL_OBSERVER_H
#define BJ_MODEL_OBSERVER_H

#include "core/arena.h"
#include "model/params.h"
#include "nn/linear.h"

enum { BJ_OBSERVER_LAYERS = 6, BJ_PATCH = 4 };

typedef struct bj_observer {
    const bj_arch *arch;
    const bj_kernels *k;
    int layers;
    bj_linear layer[BJ_OBSERVER_LAYERS];
    bj_param_id weight[BJ_OBSERVER_LAYERS], bias[BJ_OBSERVER_LAYERS];
    int rows[BJ_OBSERVER_LAYERS], group[BJ_OBSERVER_LAYERS];
    const bj_real *inputs[2];    /* input.mean and input.scale; read by bj_observer_prepare */
    bj_real *mean, *scale;       /* (state) or (channels), copies of inputs */
    bj_real *levels;             /* (channels,256) images: standardized value of each byte */
} bj_observer;

/* `inputs` is the block that contains input.mean and input.scale. It is a separate argument because
 * the block of a target contains only its encoder. */
void bj_observer_init(bj_observer *o, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                      const bj_layout *layout, const bj_real *weights, const bj_real *inputs,
                      int training);
/* Repacks the weights after a change. The items may run in any order. */
int bj_observer_prepare_items(const bj_observer *o);
void bj_observer_prepare(const bj_observer *o, int item);

/* Activations of M observations. */
typedef struct bj_observer_block {
    const bj_pair *pairs; /* (M) */
    int successor;        /* 1: encode the second observation of each pair */
    bj_real *x[BJ_OBSERVER_LAYERS];
    bj_real *dx[BJ_OBSERVER_LAYERS]; /* dx[0] is NULL; without a backward pass, all entries are
                                        NULL */
    size_t ldx[BJ_OBSERVER_LAYERS];
} bj_observer_block;

/* Allocates the rows of M observations. */
void bj_observer_block_take(bj_observer_block *b, bj_arena *arena, const bj_observer *o, size_t M,
                            int training);
/* Moves the block to the observations starting at `first`. */
void bj_observer_block_shift(bj_observer_block *b, const bj_observer *o, size_t first);

void bj_observer_forward(const bj_observer *o, const bj_observer_block *b, bj_real *context,
                         size_t ldc, int M);
void bj_observer_backward(const bj_observer *o, const bj_observer_block *b, const bj_real *dcontext,
                          size_t ldc, int M);

#endif
