/* target.c - the target encoder of a training run, from a trainer or from a checkpoint.
 *
 * The whole checkpoint folder is checked before its target is used: the model and its checksum, the
 * model digest in the state file, every state tensor, and the state file's checksum. Optimizer
 * moments are checked but not loaded. Files with another precision are accepted and rounded,
 * because the target is not trained further.
 * Test: tests/train/test_target.c
 */
#include <string.h>

#include "model/future_encoder.h"
#include "train/state_file.h"
#include "train/trainer.h"

bj_status bj_target_from_trainer(bj_target **out, const bj_trainer *t, bj_error *err) {
    BJ_TRY(bj_target_create_empty(out, &t->model->arch, &t->model->layout, err));
    memcpy((*out)->weights, t->target_weights, (*out)->size * sizeof(bj_real));
    return BJ_OK;
}

/* Resources held while the files are read. */
typedef struct loading {
    bj_model *model;
    bj_state_tensors tensors;
    bj_target *target;
} loading;

static bj_status load(loading *l, const bj_state_pair *files, bj_error *err) {
    BJ_TRY(bj_model_read(&l->model, files->model_file, err));
    BJ_TRY(bj_state_pair_check(files, err));
    const bj_safetensors *st = files->state_file;
    const bj_layout *layout = &l->model->layout;
    BJ_TRY(bj_target_create_empty(&l->target, &l->model->arch, layout, err));
    const bj_state_blocks blocks = {.target = l->target->weights};
    BJ_TRY(bj_state_tensors_init(&l->tensors, layout, blocks, err));
    BJ_TRY(bj_checkpoint_check_tensors(st, l->tensors.list, l->tensors.count, err));
    BJ_TRY(bj_checkpoint_read_tensors(st, l->tensors.list + l->tensors.targets,
                                      l->tensors.count - l->tensors.targets, err));
    return bj_checkpoint_check_digest(st, err);
}

bj_status bj_state_pair_load(bj_model **model, bj_target **target, const bj_state_pair *files,
                             bj_error *err) {
    loading l = {0};
    *target = NULL;
    if (model) *model = NULL;
    const bj_status status = load(&l, files, err);
    bj_state_tensors_reset(&l.tensors);
    if (status == BJ_OK) {
        *target = l.target;
        if (!model) bj_model_free(l.model);
        else *model = l.model;
        return BJ_OK;
    }
    bj_target_free(l.target);
    bj_model_free(l.model);
    return status;
}

bj_status bj_target_load(bj_target **out, const char *checkpoint_dir, bj_error *err) {
    bj_state_pair files;
    if (!out || !checkpoint_dir)
        return BJ_FAIL(err, BJ_EARG, "target: output or folder is missing");
    *out = NULL;
    bj_status status = bj_state_pair_open(&files, checkpoint_dir, err);
    if (status == BJ_OK) status = bj_state_pair_load(NULL, out, &files, err);
    bj_state_pair_close(&files);
    return status;
}
