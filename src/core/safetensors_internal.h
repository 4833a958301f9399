/* safetensors_internal.h - functions shared by the reader (safetensors.c), the writer
 * (safetensors_write.c) and data/cache_finish.c, which writes its own file layout. */
#ifndef BJ_CORE_SAFETENSORS_INTERNAL_H
#define BJ_CORE_SAFETENSORS_INTERNAL_H

#include "core/safetensors.h"

typedef struct bj_safetensors_entry {
    bj_tensor_view view;
    size_t begin, end; /* data_offsets */
} bj_safetensors_entry;

/* Returns the part of the path that is shown in messages. */
const char *bj_safetensors_label(const char *path);

/* Fails with "PATH: tensor 'NAME': DETAIL". */
bj_status bj_safetensors_refuse(bj_error *err, bj_status code, const char *path, const char *name,
                                const char *fmt, ...) BJ_PRINTF(5, 6);

/* Computes count and bytes from shape and dtype. Returns 0 if they do not fit in size_t. */
int bj_tensor_view_measure(bj_tensor_view *view);

/* Formats the header for the tensors in `order` and the metadata. The result is JSON, padded to a
 * multiple of 8 bytes. Release it with bj_free. */
BJ_CHECK bj_status bj_safetensors_format_header(char **out, size_t *out_size, const char *path,
                                                const bj_safetensors_entry *order, int count,
                                                const bj_fact *facts, int facts_count,
                                                bj_error *err);

/* Applies the reader's header checks, assuming data_size bytes of data. */
BJ_CHECK bj_status bj_safetensors_check_header(const char *path, const char *text, size_t size,
                                               size_t data_size, bj_error *err);

#endif
