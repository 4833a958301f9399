/* checkpoint.h - safetensors files that vouch for themselves.
 *
 * A checkpoint is a safetensors file (core/safetensors.h) whose metadata say what it is:
 *   format, format_version   which kind of checkpoint, and how it is to be read
 *   the architecture         one entry for each field of bj_arch, named like it; `model` is its
 * kind run facts                whatever the caller adds sha256                   digest of all
 * other metadata and all tensors docs/FORMAT.md has the bytes that are hashed. bj_model_save and
 * bj_model_load of branchjepa.h are built on this; so is everything else that has to belong to a
 * model. Test: tests/model/test_checkpoint.c
 */
#ifndef BJ_MODEL_CHECKPOINT_H
#define BJ_MODEL_CHECKPOINT_H

#include "core/safetensors.h"

enum { BJ_ARCH_FACTS = 18, BJ_ARCH_FACT_SIZE = 40 };

/* An architecture as metadata. The facts point into the same struct: do not copy it. */
typedef struct bj_arch_facts {
    bj_fact fact[BJ_ARCH_FACTS];
    char text[BJ_ARCH_FACTS][BJ_ARCH_FACT_SIZE];
} bj_arch_facts;

BJ_CHECK bj_status bj_arch_to_facts(bj_arch_facts *out, const bj_arch *arch, bj_error *err);
/* Every field must be there and pass bj_arch_check. */
BJ_CHECK bj_status bj_arch_from_metadata(bj_arch *out, const bj_safetensors *st, bj_error *err);

/* Writes tensors and facts under `format`, version 1, with their digest. */
BJ_CHECK bj_status bj_checkpoint_write(const char *path, const char *format,
                                       const bj_tensor_view *tensors, int count,
                                       const bj_fact *facts, int facts_count, bj_error *err);
/* Refuses a file of another format or a newer version. */
BJ_CHECK bj_status bj_checkpoint_check_format(const bj_safetensors *st, const char *format,
                                              bj_error *err);
/* Refuses a file whose content is not what was written. */
BJ_CHECK bj_status bj_checkpoint_check_digest(const bj_safetensors *st, bj_error *err);

#endif
