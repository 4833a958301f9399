/* params.h - the layout of all parameters in a model's single block of weights.
 *
 * The layout is built from params.def for an architecture. Tensors start at multiples of 16
 * elements. The gaps are zero and stay zero, so the optimizer, the EMA and norms can run over the
 * whole block. The encoder is a prefix of the block.
 */
#ifndef BJ_MODEL_PARAMS_H
#define BJ_MODEL_PARAMS_H

#include "core/real.h"
#include "core/status.h"

typedef enum bj_param_id {
#define PARAM(id, name, repeat, rows, cols, init, fan, part, when, scale, gain, muon) BJ_P_##id,
#include "model/params.def"
#undef PARAM
    BJ_P_COUNT
} bj_param_id;

/* Part of the network to which a tensor belongs. */
typedef enum bj_param_part {
    BJ_PART_ENCODER,
    BJ_PART_ATOMS,
    BJ_PART_ROUTER,
    BJ_PART_DECODER,
    BJ_PART_RESIDUAL,
    BJ_PART_SCALE_Z,
    BJ_PART_SCALE_Y,
    BJ_PART_INPUT, /* input standardization and codes, which get no gradient */
    BJ_PARTS
} bj_param_part;

/* Scale of conditioned training, which updates theta, where w = sigma theta. sigma follows from
 * units:
 *
 *   ONE     1
 *   TRACK   columns are the 7 features of track rows: 1/20 per meter, 1/5 per m/s, 1 for directions
 *           and flags, so that every channel is of order 1
 *   GATES   TRACK times sqrt(3 E / 7), because PyTorch draws GRU input weights for E inputs, but
 *           there are only 7
 *   MAP     columns are the 6 features of polyline points: 1/20 per meter, 1 for the other features
 *   LATENT  sqrt(D), because a latent of norm 1 has entries of about 1/sqrt(D)
 *   STEPS   rows 2t and 2t+1 are x and y at step t, and w_t = sigma (theta_0 + ... + theta_t);
 *           sigma = 5 m/s times dt, the size of a step
 */
typedef enum bj_param_scale {
    BJ_SCALE_ONE,
    BJ_SCALE_TRACK,
    BJ_SCALE_GATES,
    BJ_SCALE_MAP,
    BJ_SCALE_LATENT,
    BJ_SCALE_STEPS
} bj_param_scale;

enum { BJ_PARAM_NAME = 48 };

typedef struct bj_param {
    char name[BJ_PARAM_NAME];
    int rank, shape[2];
    size_t size, offset;
    bj_param_part part;
    bj_param_scale scale;
    int muon; /* number of matrices in the tensor that Muon may update; 0 if none */
    int init; /* private to params.c, like fan, sigma and gain */
    double fan, sigma, gain;
} bj_param;

typedef struct bj_layout {
    int count;
    bj_param *params;      /* (count) in block order */
    size_t size;           /* size of the block, including gaps */
    size_t encoder_size;   /* size of the encoder prefix, including gaps */
    int first[BJ_P_COUNT]; /* index of the first tensor with an id, -1 if absent */
} bj_layout;

BJ_CHECK bj_status bj_layout_init(bj_layout *layout, const bj_arch *arch, bj_error *err);
void bj_layout_reset(bj_layout *layout);

/* Returns the offset of tensor `index` with that id, which must exist. */
size_t bj_layout_offset(const bj_layout *layout, bj_param_id id, int index);

/* Returns sigma for the elements of a column. Scale ONE gives 1 for every column. */
double bj_param_sigma(const bj_param *param, int column);

/* Fills a zeroed block with PyTorch's default initialization. If `conditioned` is set, theta is
 * that initialization times the gain of the tensor, and the block receives w = sigma theta. */
void bj_layout_initialize(const bj_layout *layout, bj_real *weights, uint64_t seed,
                          int conditioned);

#endif
