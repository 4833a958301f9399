/* state_file.h - the two files of a checkpoint folder, with a check that they belong together.
 *
 *   model.safetensors   the model, as written by bj_model_save
 *   state.safetensors   mean.P and variance.P for every parameter P, target.Q for every parameter
 *                       encoder.Q; metadata model_sha256 is the digest of the model file
 * train/state.c writes and reads both files. train/target.c reads only the target.
 */
#ifndef BJ_TRAIN_STATE_FILE_H
#define BJ_TRAIN_STATE_FILE_H

#include "model/checkpoint.h"
#include "model/params.h"

#define BJ_STATE_FORMAT "branchjepa-state"
#define BJ_STATE_MODEL_DIGEST "model_sha256" /* metadata key of the model file's digest */

/* ------------------------------------------------------------------------------------- tensors */

enum { BJ_STATE_NAME = BJ_PARAM_NAME + 16 };

/* Memory blocks in the model's layout. */
typedef struct bj_state_blocks {
    bj_real *mean, *variance; /* (layout.size), or NULL if only names and shapes are needed */
    bj_real *target;          /* (layout.encoder_size) */
} bj_state_blocks;

/* All tensors of a state file: means, then variances, then target tensors. */
typedef struct bj_state_tensors {
    bj_tensor *list; /* (count) */
    char (*names)[BJ_STATE_NAME];
    int count;
    int variances; /* index of the first variance; there is one variance per parameter */
    int targets;   /* index of the first target tensor; the target tensors come last */
} bj_state_tensors;

/* Initializes the tensor list. Call bj_state_tensors_reset even after a failure. */
BJ_CHECK bj_status bj_state_tensors_init(bj_state_tensors *s, const bj_layout *layout,
                                         bj_state_blocks blocks, bj_error *err);
void bj_state_tensors_reset(bj_state_tensors *s);

/* --------------------------------------------------------------------------------------- files */

typedef struct bj_state_pair {
    bj_safetensors *model_file, *state_file;
} bj_state_pair;

/* Opens both files of a folder. Call bj_state_pair_close even after a failure. */
BJ_CHECK bj_status bj_state_pair_open(bj_state_pair *p, const char *dir, bj_error *err);
void bj_state_pair_close(bj_state_pair *p);
/* Loads the target encoder and, unless model is NULL, the model from two open files, which are
 * checked completely. Defined in train/target.c. */
BJ_CHECK bj_status bj_state_pair_load(bj_model **model, bj_target **target,
                                      const bj_state_pair *files, bj_error *err);
/* Rejects a state file that has another format, or that belongs to a different model. */
BJ_CHECK bj_status bj_state_pair_check(const bj_state_pair *p, bj_error *err);

#endif
