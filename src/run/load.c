/* load.c - see load.h. */
#include "run/load.h"

#include "train/state_file.h"

bj_status bj_run_load(bj_model **model, bj_target **target, bj_safetensors *model_file,
                      bj_safetensors *state_file, bj_error *err) {
    const bj_state_pair files = {model_file, state_file};
    return bj_state_pair_load(model, target, &files, err);
}
