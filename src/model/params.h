/* params.h - where every parameter lies in a model's one block of weights.
 *
 * Built from params.def for an architecture. Tensors start on multiples of 16 elements; the gaps
 * hold zeros and stay zero, so optimizer, EMA and norms may run over the whole block. The encoder
 * is a prefix of the block.
 */
#ifndef BJ_MODEL_PARAMS_H
#define BJ_MODEL_PARAMS_H

#include "core/real.h"
#include "core/status.h"

typedef enum bj_param_id {
#define PARAM(id, name, repeat, rows, cols, init, fan, part, when) BJ_P_##id,
#include "model/params.def"
#undef PARAM
    BJ_P_COUNT
} bj_param_id;

/* The part of the network a tensor belongs to. */
typedef enum bj_param_part {
    BJ_PART_ENCODER,
    BJ_PART_ATOMS,
    BJ_PART_ROUTER,
    BJ_PART_DECODER,
    BJ_PART_RESIDUAL,
    BJ_PART_SCALE_Z,
    BJ_PART_SCALE_Y,
    BJ_PART_INPUT, /* standardization and codes: no term reaches them */
    BJ_PARTS
} bj_param_part;

enum { BJ_PARAM_NAME = 48 };

typedef struct bj_param {
    char name[BJ_PARAM_NAME];
    int rank, shape[2];
    size_t size, offset;
    bj_param_part part;
    int init;       /* private to params.c */
    double fan;
} bj_param;

typedef struct bj_layout {
    int count;
    bj_param *params;           /* (count) in block order */
    size_t size;                /* of the block, gaps included */
    size_t encoder_size;        /* prefix of the block, gaps included */
    int first[BJ_P_COUNT];      /* index of an id's first tensor, -1 when absent */
} bj_layout;

BJ_CHECK bj_status bj_layout_init(bj_layout *layout, const bj_arch *arch, bj_error *err);
void bj_layout_reset(bj_layout *layout);

/* Offset of tensor `index` of id, which must exist. */
size_t bj_layout_offset(const bj_layout *layout, bj_param_id id, int index);

/* Fills a zeroed block with PyTorch's default distributions. */
void bj_layout_initialize(const bj_layout *layout, bj_real *weights, uint64_t seed);

#endif
