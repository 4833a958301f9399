/* safetensors.h - reads and writes named tensors in the safetensors format.
 *
 *   8 bytes   N, the header size, little-endian
 *   N bytes   JSON object: {"__metadata__": {key: string}, name: {"dtype": "F32", "shape": [2,3],
 *             "data_offsets": [begin, end]}, ...}, padded with spaces
 *   data      little-endian, row-major; offsets are relative to the start of the data
 *
 * The reader checks everything before it returns a tensor:
 *   1. The header is inside the file, has at most BJ_SAFETENSORS_MAX_HEADER bytes, starts with '{'
 *      and is strict JSON in UTF-8.
 *   2. Tensor names and metadata keys are unique and contain no control characters. Metadata values
 *      are strings without zero bytes.
 *   3. Every tensor has a known dtype, at most BJ_SAFETENSORS_MAX_RANK dimensions whose product
 *      does not overflow, and offsets whose difference is the tensor's size in bytes.
 *   4. Sorted by offset, the tensors cover the data exactly, without gaps, overlaps or trailing
 *      bytes.
 * The reference implementation accepts every file that this reader accepts. The converse does not
 * hold for exotic dtypes, control characters and unknown fields. See docs/FORMAT.md for details.
 *
 * Data in files from other writers may be unaligned, so read it with memcpy or
 * bj_safetensors_read_real.
 * Tests: tests/core/test_safetensors.c, tests/fuzz/fuzz_safetensors.c
 */
#ifndef BJ_CORE_SAFETENSORS_H
#define BJ_CORE_SAFETENSORS_H

#include "core/real.h"
#include "core/status.h"

enum { BJ_SAFETENSORS_MAX_RANK = 8, BJ_SAFETENSORS_MAX_HEADER = 100000000 };

/* In the order of the table in safetensors.c. */
typedef enum bj_dtype {
    BJ_DTYPE_BOOL,
    BJ_DTYPE_U8,
    BJ_DTYPE_I8,
    BJ_DTYPE_U16,
    BJ_DTYPE_I16,
    BJ_DTYPE_F16,
    BJ_DTYPE_BF16,
    BJ_DTYPE_U32,
    BJ_DTYPE_I32,
    BJ_DTYPE_F32,
    BJ_DTYPE_U64,
    BJ_DTYPE_I64,
    BJ_DTYPE_F64,
    BJ_DTYPES,
    BJ_DTYPE_REAL = BJ_REAL_IS_DOUBLE ? BJ_DTYPE_F64 : BJ_DTYPE_F32 /* dtype of bj_real */
} bj_dtype;

const char *bj_dtype_name(bj_dtype dtype);
size_t bj_dtype_size(bj_dtype dtype);

/* A tensor in a file, or a tensor to be written. */
typedef struct bj_tensor_view {
    const char *name;
    bj_dtype dtype;
    int rank; /* 0 for a scalar */
    int64_t shape[BJ_SAFETENSORS_MAX_RANK];
    size_t count;     /* product of the shape; ignored by the writer */
    size_t bytes;     /* count * dtype size; ignored by the writer */
    const void *data; /* may be unaligned */
} bj_tensor_view;

/* ------------------------------------------------------------------------------------- reading */

typedef struct bj_safetensors bj_safetensors;

/* Maps a file. Views and strings are valid until bj_safetensors_close. */
BJ_CHECK bj_status bj_safetensors_open(bj_safetensors **out, const char *path, bj_error *err);
/* Opens a file in memory. The memory must remain valid until bj_safetensors_close. Messages show
 * `label` instead of a path. */
BJ_CHECK bj_status bj_safetensors_open_memory(bj_safetensors **out, const void *data, size_t size,
                                              const char *label, bj_error *err);
void bj_safetensors_close(bj_safetensors *st); /* accepts NULL */

const char *bj_safetensors_path(const bj_safetensors *st);
/* Tensors, ordered by data offset. */
int bj_safetensors_count(const bj_safetensors *st);
const bj_tensor_view *bj_safetensors_at(const bj_safetensors *st, int index);
const bj_tensor_view *bj_safetensors_find(const bj_safetensors *st, const char *name); /* or NULL */
/* Metadata entries, ordered by key. */
int bj_safetensors_metadata_count(const bj_safetensors *st);
bj_fact bj_safetensors_metadata_at(const bj_safetensors *st, int index);
const char *bj_safetensors_metadata(const bj_safetensors *st, const char *key); /* or NULL */

/* Finds the tensor `name`. Fails if it is missing or has another shape. */
BJ_CHECK bj_status bj_safetensors_require(const bj_tensor_view **out, const bj_safetensors *st,
                                          const char *name, int rank, const int64_t *shape,
                                          bj_error *err);
/* Copies the tensor `name` of dtype F64, F32, F16 or BF16 into dst, rounded to bj_real. Fails if
 * the shape differs or if a value is not finite before or after rounding. The message contains the
 * index of the invalid value. */
BJ_CHECK bj_status bj_safetensors_read_real(bj_real *dst, const bj_safetensors *st,
                                            const char *name, int rank, const int64_t *shape,
                                            bj_error *err);

/* ------------------------------------------------------------------------------------- writing */

/* Writes a file atomically (see core/file.h). Equal input produces equal bytes. Metadata entries
 * keep the given order. Tensors are ordered by element size, largest first, so that each one is
 * aligned to its element size; tensors of equal element size keep the given order. The header is
 * padded to a multiple of 8 bytes. */
BJ_CHECK bj_status bj_safetensors_write(const char *path, const bj_tensor_view *tensors, int count,
                                        const bj_fact *metadata, int metadata_count, bj_error *err);

#endif
