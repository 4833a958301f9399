/* npz_write.h - writes a NumPy archive of arrays that are in memory, as numpy.savez does.
 *
 * Members are stored, not compressed; no dates, so that the same arrays give the same bytes. An
 * archive stays below 4 GiB: larger ones are refused. Test: tests/npz/test_npz_write.c
 */
#ifndef BJ_NPZ_NPZ_WRITE_H
#define BJ_NPZ_NPZ_WRITE_H

#include "npz/npy.h"

typedef struct bj_npz_source {
    const char *name; /* without .npy */
    bj_npy_type type;
    int rank; /* 1 to 4 */
    int64_t shape[4];
    const void *data; /* row-major, in the machine's order, which is little-endian */
} bj_npz_source;

/* Published whole (core/file.h). */
BJ_CHECK bj_status bj_npz_write(const char *path, const bj_npz_source *arrays, int count,
                                bj_error *err);

#endif
