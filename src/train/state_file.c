/* state_file.c - see state_file.h. Tests: tests/train/test_state.c, test_state_files.c */
#include "train/state_file.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/folder.h"

/* ------------------------------------------------------------------------------------- tensors */

static void add_tensor(bj_state_tensors *s, const char *prefix, const char *name, const bj_param *p,
                       bj_real *block) {
    char *full = s->names[s->count];
    snprintf(full, BJ_STATE_NAME, "%s%s", prefix, name);
    s->list[s->count++] = (bj_tensor){
        full, p->rank, {p->shape[0], p->shape[1]}, p->size, block ? block + p->offset : NULL};
}

void bj_state_tensors_reset(bj_state_tensors *s) {
    bj_free(s->list);
    bj_free(s->names);
}

bj_status bj_state_tensors_init(bj_state_tensors *s, const bj_layout *layout,
                                bj_state_blocks blocks, bj_error *err) {
    const size_t most = 3 * (size_t)layout->count, skipped = strlen("encoder.");
    *s = (bj_state_tensors){.variances = layout->count, .targets = 2 * layout->count};
    BJ_TRY(BJ_ALLOC(s->list, most, err));
    BJ_TRY(BJ_ALLOC(s->names, most, err));
    const bj_param *p = layout->params, *end = p + layout->count;
    for (p = layout->params; p < end; p++) add_tensor(s, "mean.", p->name, p, blocks.mean);
    for (p = layout->params; p < end; p++) add_tensor(s, "variance.", p->name, p, blocks.variance);
    for (p = layout->params; p < end; p++)
        if (p->part == BJ_PART_ENCODER)
            add_tensor(s, "target.", p->name + skipped, p, blocks.target);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- files */

bj_status bj_state_pair_open(bj_state_pair *p, const char *dir, bj_error *err) {
    char path[BJ_FOLDER_PATH];
    *p = (bj_state_pair){NULL, NULL};
    BJ_TRY(bj_folder_find(path, dir, BJ_CHECKPOINT_MODEL, err));
    BJ_TRY(bj_safetensors_open(&p->model_file, path, err));
    BJ_TRY(bj_folder_find(path, dir, BJ_CHECKPOINT_STATE, err));
    return bj_safetensors_open(&p->state_file, path, err);
}

void bj_state_pair_close(bj_state_pair *p) {
    bj_safetensors_close(p->state_file);
    bj_safetensors_close(p->model_file);
}

bj_status bj_state_pair_check(const bj_state_pair *p, bj_error *err) {
    const char *digest, *bound;
    BJ_TRY(bj_checkpoint_check_format(p->state_file, BJ_STATE_FORMAT, err));
    BJ_TRY(bj_checkpoint_metadata(&digest, p->model_file, BJ_CHECKPOINT_DIGEST, err));
    BJ_TRY(bj_checkpoint_metadata(&bound, p->state_file, BJ_STATE_MODEL_DIGEST, err));
    if (strcmp(digest, bound))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: belongs to another %s: its checksum is %s, expected %.64s",
                       bj_safetensors_path(p->state_file), BJ_CHECKPOINT_MODEL, digest, bound);
    return BJ_OK;
}
