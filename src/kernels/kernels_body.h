/* kernels_body.h - vector kernels, compiled once per instruction set.
 *
 * The including file defines
 *   BJ_BODY_TABLE  name of the table      BJ_BODY_ISA    name of the instruction set
 *   BJ_BODY_BYTES  bytes per vector       BJ_BODY_ROWS   rows per register tile
 *   BJ_BODY_MAX(a, b), BJ_BODY_MIN(a, b)  elementwise on floats; b if either operand is NaN
 * The kernels are defined in body_*.h.
 */
#include "kernels/body_attention.h"
#include "kernels/body_gradient.h"
#include "kernels/body_gru.h"
#include "kernels/body_half.h"
#include "kernels/body_optimizer.h"

const bj_kernels BJ_BODY_TABLE = {
    .isa = BJ_BODY_ISA,
    .panel = PANEL,
    .packed_size = packed_size,
    .pack_kn = pack_kn,
    .pack_nk = pack_nk,
    .gemm = gemm,
    .gemm_columns = gemm_columns,
    .gradient = gradient,
    .column_sum = column_sum,
    .gru_size = gru_size,
    .gru_pack = gru_pack,
    .gru_step = gru_step,
    .gru_unstep = gru_unstep,
    .units = UNITS,
    .gru_row_size = gru_row_size,
    .gru_row_pack = gru_row_pack,
    .gru_row = gru_row,
    .narrow = narrow,
    .half_size = half_size,
    .narrow_panels = narrow_panels,
    .gemm_half = gemm_half,
    .scores = scores,
    .pool = pool,
    .pool_backward = pool_backward,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .ema = ema,
};
