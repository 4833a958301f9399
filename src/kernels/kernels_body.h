/* kernels_body.h - vector kernels, compiled once per instruction set.
 *
 * The including file defines
 *   BJ_BODY_TABLE, BJ_BODY_MIXED          names of the tables in single and mixed precision
 *   BJ_BODY_ISA    name of the instruction set
 *   BJ_BODY_BYTES  bytes per vector       BJ_BODY_ROWS   rows per register tile
 *   BJ_BODY_MAX(a, b), BJ_BODY_MIN(a, b)  elementwise on floats; b if either operand is NaN
 *   BJ_BODY_BF16                          optional: the instruction set multiplies bfloat16 pairs
 * The kernels are defined in body_*.h.
 */
#include "kernels/body_attention.h"
#include "kernels/body_gradient.h"
#include "kernels/body_gru.h"
#include "kernels/body_optimizer.h"

/* Functions that are the same in both precisions. */
#define COMMON                                                                                     \
    .isa = BJ_BODY_ISA, .single = &BJ_BODY_TABLE, .panel = PANEL, .column_sum = column_sum,        \
    .units = LANES, .scores = scores, .pool = pool, .pool_backward = pool_backward,                \
    .sum_squares = sum_squares, .adamw = adamw, .ema = ema

const bj_kernels BJ_BODY_TABLE = {
    COMMON,
#ifdef BJ_DOUBLE
    .mixed = &bj_mixed_c,
#else
    .mixed = &BJ_BODY_MIXED,
#endif
    .packed_size = packed_size,
    .pack_kn = pack_kn,
    .pack_nk = pack_nk,
    .gemm = gemm,
    .gemm_columns = gemm_columns,
    .gradient = gradient,
    .gru_size = gru_size,
    .gru_pack = gru_pack,
    .gru_step = gru_step,
    .gru_unstep = gru_unstep,
    .gru_row = gru_row,
};

#ifndef BJ_DOUBLE
const bj_kernels BJ_BODY_MIXED = {
    COMMON,
    .mixed = &BJ_BODY_MIXED,
    .packed_size = mixed_packed_size,
    .pack_kn = mixed_pack_kn,
    .pack_nk = mixed_pack_nk,
    .gemm = mixed_gemm,
    .gemm_columns = mixed_gemm_columns,
    .gradient = mixed_gradient,
    .gru_size = mixed_gru_size,
    .gru_pack = mixed_gru_pack,
    .gru_step = mixed_gru_step,
    .gru_unstep = mixed_gru_unstep,
    .gru_row = mixed_gru_row,
};
#endif

#undef COMMON
