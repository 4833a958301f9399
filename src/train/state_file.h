/* state_file.h - the two files of a checkpoint folder: their tensors, and that they belong
 * together.
 *
 *   model.safetensors   the model, as bj_model_save writes it
 *   state.safetensors   mean.P and variance.P for every parameter P, target.Q for every parameter
 *                       encoder.Q; as metadata model_sha256, the digest of the model beside it
 * train/state.c writes and reads both, train/target.c the target alone.
 */
#ifndef BJ_TRAIN_STATE_FILE_H
#define BJ_TRAIN_STATE_FILE_H

#include "model/checkpoint.h"
#include "model/params.h"

#define BJ_STATE_FORMAT "branchjepa-state"
#define BJ_STATE_MODEL_DIGEST "model_sha256" /* key of the digest of the model file */

/* ------------------------------------------------------------------------------------- tensors */

enum { BJ_STATE_NAME = BJ_PARAM_NAME + 16 };

/* Blocks in the layout of the model. */
typedef struct bj_state_blocks {
    bj_real *mean, *variance; /* (layout.size), NULL: known by name and shape alone */
    bj_real *target;          /* (layout.encoder_size) */
} bj_state_blocks;

/* Every tensor of a state file: means, then variances, then the target. */
typedef struct bj_state_tensors {
    bj_tensor *list; /* (count) */
    char (*names)[BJ_STATE_NAME];
    int count;
    int variances; /* index of the first one; there are as many as parameters */
    int targets;   /* index of the first one; the rest is of the target */
} bj_state_tensors;

/* After a failure too, _reset is due. */
BJ_CHECK bj_status bj_state_tensors_init(bj_state_tensors *s, const bj_layout *layout,
                                         bj_state_blocks blocks, bj_error *err);
void bj_state_tensors_reset(bj_state_tensors *s);

/* --------------------------------------------------------------------------------------- files */

typedef struct bj_state_pair {
    bj_safetensors *model_file, *state_file;
} bj_state_pair;

/* Opens both files of a folder. After a failure too, _close is due. */
BJ_CHECK bj_status bj_state_pair_open(bj_state_pair *p, const char *dir, bj_error *err);
void bj_state_pair_close(bj_state_pair *p);
/* Refuses a state file of another format, or one that was written beside another model. */
BJ_CHECK bj_status bj_state_pair_check(const bj_state_pair *p, bj_error *err);

#endif
