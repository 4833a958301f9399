/* checkpoint.h - safetensors files that vouch for themselves.
 *
 * A checkpoint is a safetensors file (core/safetensors.h) of floating-point tensors whose metadata
 * say what it is:
 *   - format, format_version: which kind of checkpoint, and how it is to be read;
 *   - what that kind requires; for a model the architecture, one entry for each field of bj_arch,
 *     named like it (`model` is its kind);
 *   - whatever the caller adds;
 *   - sha256: digest of all other metadata and all tensors.
 * docs/FORMAT.md has the bytes that are hashed. bj_model_save and bj_model_load of branchjepa.h are
 * built on this, and so is the training state (train/state.c).
 * Test: tests/model/test_checkpoint.c
 */
#ifndef BJ_MODEL_CHECKPOINT_H
#define BJ_MODEL_CHECKPOINT_H

#include "core/safetensors.h"
#include "core/sha256.h"

#define BJ_MODEL_FORMAT "branchjepa-model"
#define BJ_CHECKPOINT_DIGEST "sha256" /* key of the digest */

/* --------------------------------------------------------------------------------- architecture */

enum { BJ_ARCH_FACTS = 31, BJ_ARCH_FACT_SIZE = 40 };

/* An architecture as metadata; what only encoders of observations have is left out for scenes. The
 * facts point into the same struct: do not copy it. */
typedef struct bj_arch_facts {
    bj_fact fact[BJ_ARCH_FACTS];
    int count;
    char text[BJ_ARCH_FACTS][BJ_ARCH_FACT_SIZE];
} bj_arch_facts;

BJ_CHECK bj_status bj_arch_to_facts(bj_arch_facts *out, const bj_arch *arch, bj_error *err);
/* Every field must be there and pass bj_arch_check. */
BJ_CHECK bj_status bj_arch_from_metadata(bj_arch *out, const bj_safetensors *st, bj_error *err);

/* -------------------------------------------------------------------------------------- writing */

/* Refuses tensors with values that are not finite; `path` is where they were to go. */
BJ_CHECK bj_status bj_checkpoint_check_finite(const char *path, const bj_tensor *tensors, int count,
                                              bj_error *err);
/* Writes finite tensors and facts under `format`, version 1, with their digest. */
BJ_CHECK bj_status bj_checkpoint_write(const char *path, const char *format,
                                       const bj_tensor *tensors, int count, const bj_fact *facts,
                                       int facts_count, bj_error *err);
/* Writes views of any floating dtype like bj_checkpoint_write. The caller has checked the values. */
BJ_CHECK bj_status bj_checkpoint_write_views(const char *path, const char *format,
                                             const bj_tensor_view *views, int count,
                                             const bj_fact *facts, int facts_count, bj_error *err);
/* The digest of these tensors without any metadata. */
BJ_CHECK bj_status bj_checkpoint_digest(char hex[BJ_SHA256_HEX], const bj_tensor *tensors,
                                        int count, bj_error *err);

/* -------------------------------------------------------------------------------------- reading */

/* Refuses a file of another format or a newer version. */
BJ_CHECK bj_status bj_checkpoint_check_format(const bj_safetensors *st, const char *format,
                                              bj_error *err);
/* Refuses a file that lacks one of the tensors, has it in another shape, or has any other. */
BJ_CHECK bj_status bj_checkpoint_check_tensors(const bj_safetensors *st, const bj_tensor *tensors,
                                               int count, bj_error *err);
/* Fills the tensors from finite values of the file. */
BJ_CHECK bj_status bj_checkpoint_read_tensors(const bj_safetensors *st, const bj_tensor *tensors,
                                              int count, bj_error *err);
/* Refuses a file whose content is not what was written. */
BJ_CHECK bj_status bj_checkpoint_check_digest(const bj_safetensors *st, bj_error *err);

/* A metadata entry that must be there. */
BJ_CHECK bj_status bj_checkpoint_metadata(const char **out, const bj_safetensors *st,
                                          const char *key, bj_error *err);
/* "FILE: metadata 'KEY' is 'VALUE', expected EXPECTED". */
bj_status bj_checkpoint_refuse(bj_error *err, bj_status code, const bj_safetensors *st,
                               const char *key, const char *value, const char *expected);

/* All that bj_model_load does to an open file. */
BJ_CHECK bj_status bj_model_read(bj_model **out, const bj_safetensors *st, bj_error *err);

#endif
