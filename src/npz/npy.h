/* npy.h - parses the header of an .npy array.
 *
 *   \x93NUMPY  major minor  length (2 bytes, 4 from version 2)  text of that length
 *
 * The text is a Python dictionary of literals, {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3, 4), }, followed by blanks and a newline. Little-endian float32, float64, int32, int64, uint8
 * and bool in C order are supported. Other types are rejected with a message that contains the
 * type.
 */
#ifndef BJ_NPZ_NPY_H
#define BJ_NPZ_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef enum bj_npy_type {
    BJ_NPY_F32,
    BJ_NPY_F64,
    BJ_NPY_I32,
    BJ_NPY_I64,
    BJ_NPY_U8,
    BJ_NPY_BOOL,
    BJ_NPY_TYPES
} bj_npy_type;

enum { BJ_NPY_RANK = 8, BJ_NPY_PREFIX = 12, BJ_NPY_MAX_HEADER = 64 * 1024 };

typedef struct bj_npy {
    bj_npy_type type;
    int rank; /* 0 for a single number */
    int64_t shape[BJ_NPY_RANK];
    int64_t rows;  /* shape[0], or 1 if rank is 0 */
    int64_t width; /* numbers per row */
    size_t row_bytes;
} bj_npy;

size_t bj_npy_size(bj_npy_type type);      /* bytes per number */
const char *bj_npy_name(bj_npy_type type); /* "float32", ... */

/* Determines the number of bytes before the array data. `prefix` contains the first BJ_NPY_PREFIX
 * bytes of the array. Sets *text to the offset of the header text. Messages start with `what`,
 * which names the file and the member. */
BJ_CHECK bj_status bj_npy_prefix(size_t *length, size_t *text, const uint8_t *prefix,
                                 const char *what, bj_error *err);
/* Parses `size` bytes of header text. */
BJ_CHECK bj_status bj_npy_parse(bj_npy *out, const char *text, size_t size, const char *what,
                                bj_error *err);

/* Convert unaligned numbers from the file to double or bj_real. Any nonzero bool byte becomes 1. */
void bj_npy_doubles(double *out, const void *raw, bj_npy_type type, size_t count);
void bj_npy_reals(bj_real *out, const void *raw, bj_npy_type type, size_t count);

#endif
