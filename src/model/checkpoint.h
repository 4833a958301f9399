/* checkpoint.h - safetensors files with a format name, an architecture and a checksum.
 *
 * A checkpoint is a safetensors file (core/safetensors.h) of floating-point tensors with these
 * metadata entries:
 *   - format, format_version: the kind of checkpoint and its version
 *   - entries required by the format; for a model, one entry per field of bj_arch with the field's
 *     name (`model` is the field `kind`)
 *   - entries added by the caller
 *   - sha256: digest of all other metadata and all tensors
 * docs/FORMAT.md defines the hashed bytes. bj_model_save and bj_model_load of branchjepa.h use this
 * module, and so does the training state (train/state.c).
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

/* An architecture as metadata. Sizes of state and image encoders are left out for scene encoders.
 * The metadata entries point into the struct, so it must not be copied. */
typedef struct bj_arch_facts {
    bj_fact fact[BJ_ARCH_FACTS];
    int count;
    char text[BJ_ARCH_FACTS][BJ_ARCH_FACT_SIZE];
} bj_arch_facts;

BJ_CHECK bj_status bj_arch_to_facts(bj_arch_facts *out, const bj_arch *arch, bj_error *err);
/* Fails unless every field is present and the architecture passes bj_arch_check. */
BJ_CHECK bj_status bj_arch_from_metadata(bj_arch *out, const bj_safetensors *st, bj_error *err);

/* -------------------------------------------------------------------------------------- writing */

/* Fails if a tensor contains a value that is not finite. `path` is the destination, for the
 * message. */
BJ_CHECK bj_status bj_checkpoint_check_finite(const char *path, const bj_tensor *tensors, int count,
                                              bj_error *err);
/* Writes tensors and metadata in `format`, version 1, together with their digest. Fails if a value
 * is not finite. */
BJ_CHECK bj_status bj_checkpoint_write(const char *path, const char *format,
                                       const bj_tensor *tensors, int count, const bj_fact *facts,
                                       int facts_count, bj_error *err);
/* Writes views of any floating-point dtype, like bj_checkpoint_write. The caller must have checked
 * that all values are finite. */
BJ_CHECK bj_status bj_checkpoint_write_views(const char *path, const char *format,
                                             const bj_tensor_view *views, int count,
                                             const bj_fact *facts, int facts_count, bj_error *err);
/* Computes the digest of the tensors without any metadata. */
BJ_CHECK bj_status bj_checkpoint_digest(char hex[BJ_SHA256_HEX], const bj_tensor *tensors,
                                        int count, bj_error *err);

/* -------------------------------------------------------------------------------------- reading */

/* Fails if the file has another format or another version. */
BJ_CHECK bj_status bj_checkpoint_check_format(const bj_safetensors *st, const char *format,
                                              bj_error *err);
/* Fails if a tensor is missing in the file or has another shape, or if the file contains additional
 * tensors. */
BJ_CHECK bj_status bj_checkpoint_check_tensors(const bj_safetensors *st, const bj_tensor *tensors,
                                               int count, bj_error *err);
/* Reads the tensors from the file. Fails if a value is not finite. */
BJ_CHECK bj_status bj_checkpoint_read_tensors(const bj_safetensors *st, const bj_tensor *tensors,
                                              int count, bj_error *err);
/* Fails if the digest of the content differs from the stored digest. */
BJ_CHECK bj_status bj_checkpoint_check_digest(const bj_safetensors *st, bj_error *err);

/* Returns a metadata entry. Fails if it is missing. */
BJ_CHECK bj_status bj_checkpoint_metadata(const char **out, const bj_safetensors *st,
                                          const char *key, bj_error *err);
/* Sets the message "FILE: metadata 'KEY' is 'VALUE', expected EXPECTED" and returns `code`. */
bj_status bj_checkpoint_refuse(bj_error *err, bj_status code, const bj_safetensors *st,
                               const char *key, const char *value, const char *expected);

/* Loads a model from an open file. Used by bj_model_load. */
BJ_CHECK bj_status bj_model_read(bj_model **out, const bj_safetensors *st, bj_error *err);

#endif
