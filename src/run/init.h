/* init.h - starts a run from the weights of a checkpoint.
 *
 * The settings `init`, `init_parts` and `init_sha256` describe the checkpoint. Tensors are matched
 * by name and shape, part by part (bj_part_name):
 *   - encoder, decoder and input must match.
 *   - branches, router and residual must match if both models are of one kind (bj_model_kind) and
 *     both have one branch, or both several. Otherwise a part that does not match as a whole stays
 *     at its initialization. This is always allowed for learned scales.
 *   - if `init_parts` lists parts, those must match, and all other parts stay.
 * The target encoder is the checkpoint's if a folder with a training state was named, except for
 * stage A of the frozen anchor, which never trains it. Otherwise it is a copy of the online
 * encoder.
 * Test: tests/run/test_init.c, tests/cli/train_init.sh
 */
#ifndef BJ_RUN_INIT_H
#define BJ_RUN_INIT_H

#include "core/json_doc.h"
#include "core/sha256.h"
#include "model/params.h"

/* A tensor that was not loaded. */
typedef struct bj_init_note {
    bj_param_part part;
    char tensor[BJ_PARAM_NAME];
    char reason[160];
} bj_init_note;

/* The loaded tensors, for manifest.json and for messages. */
typedef struct bj_init {
    char file[4096]; /* the model file; "" if nothing was loaded */
    int count;       /* tensors of the model */
    int loaded;
    int part[BJ_PARTS];    /* loaded tensors of each part */
    int checkpoint_target; /* 1 if the target encoder comes from the checkpoint */
    char target_sha256[BJ_SHA256_HEX];
    bj_init_note *kept; /* (kept_count) tensors of the model that keep their initial values */
    int kept_count;
    bj_init_note *unused; /* (unused_count) tensors of the checkpoint that were not loaded */
    int unused_count;
} bj_init;

/* Returns the name of a part as used in settings and in manifest.json. */
const char *bj_part_name(int part);
/* Fails with BJ_EARG if a list of parts contains an unknown name. */
BJ_CHECK bj_status bj_init_check_parts(const char *parts, const char *origin, bj_error *err);

/* Sets init_sha256 to the digest of the model file of `init`. If it is already set, fails unless
 * the digest matches. */
BJ_CHECK bj_status bj_init_pin(bj_settings *settings, bj_error *err);
/* Copies init_sha256 from the settings stored in a run folder, unless it is already set. */
BJ_CHECK bj_status bj_init_recall(bj_settings *settings, const char *dir, bj_error *err);
/* Loads weights and the target encoder into a trainer that has not been updated yet. */
BJ_CHECK bj_status bj_init_load(bj_init *out, bj_model *model, bj_trainer *trainer,
                                const bj_settings *settings, bj_error *err);
void bj_init_reset(bj_init *init);
/* Adds the member "init" to a manifest. */
void bj_init_add(bj_doc *doc, yyjson_mut_val *root, const bj_init *init,
                 const bj_settings *settings);
/* Reports what was loaded, line by line. */
void bj_init_tell(const bj_init *init, const bj_run_options *options);

#endif
