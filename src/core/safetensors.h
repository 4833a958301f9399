/* safetensors.h - named tensors in a file: the format of the Python package of that name.
 *
 *   8 bytes   N, the size of the header, little-endian
 *   N bytes   JSON object: {"__metadata__": {key: string}, name: {"dtype": "F32", "shape": [2,3],
 *             "data_offsets": [begin, end]}, ...}, padded with spaces
 *   the rest  the data; offsets count from here; little-endian, row-major
 *
 * The reader trusts nothing. What it hands out has been checked:
 *   1. The header lies inside the file, has at most BJ_SAFETENSORS_MAX_HEADER bytes, starts with
 *      '{' and is strict JSON in UTF-8.
 *   2. Tensor names, and metadata keys, are unique and free of control characters; metadata values
 *      are strings without zero bytes.
 *   3. Every tensor has a known dtype, at most BJ_SAFETENSORS_MAX_RANK dimensions whose product
 *      does not overflow, and offsets whose distance is its size in bytes.
 *   4. In the order of their offsets the tensors cover the data exactly: no hole, no overlap, no
 *      byte after the last one.
 * Everything accepted here is accepted by the reference implementation; the reverse fails for
 * exotic dtypes, control characters and unknown fields. docs/FORMAT.md says it in full.
 *
 * Data may be unaligned in files of other writers: read it with memcpy or bj_safetensors_read_real.
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
    BJ_DTYPE_REAL = BJ_REAL_IS_DOUBLE ? BJ_DTYPE_F64 : BJ_DTYPE_F32 /* what bj_real is */
} bj_dtype;

const char *bj_dtype_name(bj_dtype dtype);
size_t bj_dtype_size(bj_dtype dtype);

/* One tensor of a file, or one to be written. */
typedef struct bj_tensor_view {
    const char *name;
    bj_dtype dtype;
    int rank; /* 0: a single number */
    int64_t shape[BJ_SAFETENSORS_MAX_RANK];
    size_t count;     /* product of the shape; the writer computes its own */
    size_t bytes;     /* count * size of the dtype; the same */
    const void *data; /* possibly unaligned */
} bj_tensor_view;

/* ------------------------------------------------------------------------------------- reading */

typedef struct bj_safetensors bj_safetensors;

/* Maps the file until _close; views and strings live as long. */
BJ_CHECK bj_status bj_safetensors_open(bj_safetensors **out, const char *path, bj_error *err);
/* The same for a file in memory, which stays the caller's; `label` stands for the path. */
BJ_CHECK bj_status bj_safetensors_open_memory(bj_safetensors **out, const void *data, size_t size,
                                              const char *label, bj_error *err);
void bj_safetensors_close(bj_safetensors *st); /* accepts NULL */

const char *bj_safetensors_path(const bj_safetensors *st);
/* Tensors in the order of their data. */
int bj_safetensors_count(const bj_safetensors *st);
const bj_tensor_view *bj_safetensors_at(const bj_safetensors *st, int index);
const bj_tensor_view *bj_safetensors_find(const bj_safetensors *st, const char *name); /* or NULL */
/* Metadata in the order of their keys. */
int bj_safetensors_metadata_count(const bj_safetensors *st);
bj_fact bj_safetensors_metadata_at(const bj_safetensors *st, int index);
const char *bj_safetensors_metadata(const bj_safetensors *st, const char *key); /* or NULL */

/* The tensor of that name and shape, or a message that says what there is instead. */
BJ_CHECK bj_status bj_safetensors_require(const bj_tensor_view **out, const bj_safetensors *st,
                                          const char *name, int rank, const int64_t *shape,
                                          bj_error *err);
/* Copies a tensor of F64, F32, F16 or BF16 of that shape into dst (product of the shape), rounded
 * to bj_real. A value that is not finite, before or after rounding, is refused with its index. */
BJ_CHECK bj_status bj_safetensors_read_real(bj_real *dst, const bj_safetensors *st,
                                            const char *name, int rank, const int64_t *shape,
                                            bj_error *err);

/* ------------------------------------------------------------------------------------- writing */

/* Writes atomically (core/file.h). The same input gives the same bytes: metadata in the order
 * given; tensors by size of their dtype, largest first, so that each is aligned to it, and
 * otherwise in the order given. The header is padded to a multiple of 8. */
BJ_CHECK bj_status bj_safetensors_write(const char *path, const bj_tensor_view *tensors, int count,
                                        const bj_fact *metadata, int metadata_count, bj_error *err);

#endif
