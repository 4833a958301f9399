/* model.h - a model: an architecture, a layout and one block of weights. */
#ifndef BJ_MODEL_MODEL_H
#define BJ_MODEL_MODEL_H

#include "model/params.h"

struct bj_model {
    bj_arch arch;
    bj_layout layout;
    bj_real *weights; /* (layout.size) */
};

/* Creates a model with zero weights, which a loader fills. */
BJ_CHECK bj_status bj_model_create_empty(bj_model **out, const bj_arch *arch, bj_error *err);

#endif
