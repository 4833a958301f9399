/* npz_write.h - writes arrays in memory to a NumPy archive, like numpy.savez.
 *
 * Members are stored without compression and without dates, so equal arrays give equal bytes.
 * Archives of 4 GiB or more are rejected. Test: tests/npz/test_npz_write.c
 */
#ifndef BJ_NPZ_NPZ_WRITE_H
#define BJ_NPZ_NPZ_WRITE_H

#include "npz/npy.h"

typedef struct bj_npz_source {
    const char *name; /* without .npy */
    bj_npy_type type;
    int rank; /* 1 to 4 */
    int64_t shape[4];
    const void *data; /* row-major, little-endian */
} bj_npz_source;

/* Writes an archive. The file is published atomically (core/file.h). */
BJ_CHECK bj_status bj_npz_write(const char *path, const bj_npz_source *arrays, int count,
                                bj_error *err);

#endif
