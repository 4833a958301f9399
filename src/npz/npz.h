/* npz.h - reads arrays of a NumPy archive (numpy.savez, savez_compressed) by rows.
 *
 * An archive is a ZIP whose members are .npy files. Opening an archive reads its directory and the
 * headers of its arrays. Numbers are read sequentially, any number of rows at a time, so a file may
 * be larger than memory. The CRC of a member is checked when its last row is read, so a corrupted
 * row is not detected before that.
 *
 *   bj_npz_open(&npz, path, err); bj_npz_rows_open(&rows, npz, "observations", err);
 *   while (bj_npz_rows_next(rows) < bj_npz_rows_array(rows)->npy.rows) bj_npz_rows_read(rows, ...);
 *
 * Test: tests/npz/test_npz.c, tests/npz/peer_numpy.py, tests/fuzz/fuzz_npz.c
 */
#ifndef BJ_NPZ_NPZ_H
#define BJ_NPZ_NPZ_H

#include "npz/npy.h"

typedef struct bj_npz bj_npz;

typedef struct bj_npz_array {
    const char *name;    /* without .npy */
    const char *problem; /* NULL if the array is readable; otherwise an error message, and npy is
                            zero */
    bj_npy npy;
    int member;    /* index in the ZIP */
    size_t header; /* bytes before the numbers */
} bj_npz_array;

/* Opens an archive. If an array is unreadable, only a request for it fails. Members that are not
 * .npy files are ignored. */
BJ_CHECK bj_status bj_npz_open(bj_npz **out, const char *path, bj_error *err);
BJ_CHECK bj_status bj_npz_open_memory(bj_npz **out, const void *data, size_t size, const char *name,
                                      bj_error *err);
void bj_npz_close(bj_npz *npz);
const char *bj_npz_path(const bj_npz *npz);
int bj_npz_count(const bj_npz *npz);
const bj_npz_array *bj_npz_at(const bj_npz *npz, int index);
/* Returns the array with that name, or NULL. */
const bj_npz_array *bj_npz_find(const bj_npz *npz, const char *name);
/* Returns an array. Fails if it is missing, unreadable or of another rank. A negative rank accepts
 * any rank. If the array is missing, the message lists the existing arrays. */
BJ_CHECK bj_status bj_npz_need(const bj_npz_array **out, const bj_npz *npz, const char *name,
                               int rank, bj_error *err);

/* ----------------------------------------------------------------------------------------- rows */

typedef struct bj_npz_rows bj_npz_rows;

/* Opens a reader. The archive must outlive it. Several readers may be open at once, even for the
 * same array. */
BJ_CHECK bj_status bj_npz_rows_open(bj_npz_rows **out, const bj_npz *npz, const char *name,
                                    bj_error *err);
void bj_npz_rows_close(bj_npz_rows *rows);
const bj_npz_array *bj_npz_rows_array(const bj_npz_rows *rows);
int64_t bj_npz_rows_next(const bj_npz_rows *rows); /* index of the next row */
BJ_CHECK bj_status bj_npz_rows_rewind(bj_npz_rows *rows, bj_error *err);
/* Reads the next `count` rows as stored in the file. `out` has room for count * row_bytes bytes. */
BJ_CHECK bj_status bj_npz_rows_read(bj_npz_rows *rows, void *out, int64_t count, bj_error *err);
/* Reads rows begin .. end - 1 and skips the rows before them. Fails if `begin` is less than the
 * index of the next row. To read earlier rows, call bj_npz_rows_rewind first. */
BJ_CHECK bj_status bj_npz_rows_range(bj_npz_rows *rows, void *out, int64_t begin, int64_t end,
                                     bj_error *err);

/* Reads a whole array as doubles. Fails if it has more than `limit` numbers. The caller frees
 * *out. */
BJ_CHECK bj_status bj_npz_doubles(double **out, const bj_npz *npz, const char *name, int64_t limit,
                                  bj_error *err);

#endif
