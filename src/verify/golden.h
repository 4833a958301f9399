/* golden.h - reads the architecture, objective, weights and scenes of a golden file.
 *
 * Prefixes of tensors: w. weights, t. target encoder, x. batch. Prefixes of reference results: o.
 * outputs, l. loss parts, g. gradients, m. metrics, s. weights and st. target after `steps`
 * updates. Sizes and settings come from the metadata. A missing setting has the paper's default.
 */
#ifndef BJ_VERIFY_GOLDEN_H
#define BJ_VERIFY_GOLDEN_H

#include "core/safetensors.h"

typedef struct bj_golden {
    bj_safetensors *file;
    const char *name;
    bj_arch arch;
    bj_objective objective;
    bj_optim optim;
    double lr;
    int steps, B;
    bj_model *model;
    bj_scenes *scenes;
} bj_golden;

BJ_CHECK bj_status bj_golden_open(bj_golden *golden, const char *path, bj_error *err);
void bj_golden_reset(bj_golden *golden);
/* Copies the t. tensors to the trainer's target. */
BJ_CHECK bj_status bj_golden_load_target(const bj_golden *golden, bj_trainer *trainer,
                                         bj_error *err);

#endif
