/* npz.h - arrays of a NumPy archive (numpy.savez, savez_compressed), read by rows.
 *
 * An archive is a ZIP whose members are .npy files. Opening one reads its directory and the headers
 * of its arrays; numbers are read forward, as many rows at a time as the caller has room for, so
 * that a file may be larger than memory. The CRC of a member is checked when its last row is read:
 * what came before is only then known to be sound.
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
    const char *name; /* without .npy */
    const char
        *problem; /* why it cannot be read, a whole message; NULL: it can. npy is zero then */
    bj_npy npy;
    int member;    /* in the ZIP */
    size_t header; /* bytes before the numbers */
} bj_npz_array;

/* An array that cannot be read does not spoil the others: it is refused when it is asked for.
 * Members that are no .npy files are passed over. */
BJ_CHECK bj_status bj_npz_open(bj_npz **out, const char *path, bj_error *err);
BJ_CHECK bj_status bj_npz_open_memory(bj_npz **out, const void *data, size_t size, const char *name,
                                      bj_error *err);
void bj_npz_close(bj_npz *npz);
const char *bj_npz_path(const bj_npz *npz);
int bj_npz_count(const bj_npz *npz);
const bj_npz_array *bj_npz_at(const bj_npz *npz, int index);
/* NULL when there is none of that name. */
const bj_npz_array *bj_npz_find(const bj_npz *npz, const char *name);
/* The array, or a message: what is wrong with it, or which arrays there are instead. rank < 0: any.
 */
BJ_CHECK bj_status bj_npz_need(const bj_npz_array **out, const bj_npz *npz, const char *name,
                               int rank, bj_error *err);

/* ----------------------------------------------------------------------------------------- rows */

typedef struct bj_npz_rows bj_npz_rows;

/* The archive must outlive it. Several may be open at once, for one array too. */
BJ_CHECK bj_status bj_npz_rows_open(bj_npz_rows **out, const bj_npz *npz, const char *name,
                                    bj_error *err);
void bj_npz_rows_close(bj_npz_rows *rows);
const bj_npz_array *bj_npz_rows_array(const bj_npz_rows *rows);
int64_t bj_npz_rows_next(const bj_npz_rows *rows); /* number of the next row */
BJ_CHECK bj_status bj_npz_rows_rewind(bj_npz_rows *rows, bj_error *err);
/* The next `count` rows as they lie in the file; out has count * row_bytes bytes. */
BJ_CHECK bj_status bj_npz_rows_read(bj_npz_rows *rows, void *out, int64_t count, bj_error *err);
/* Rows begin .. end - 1. What lies between is passed over, and begin may not lie behind the next
 * row: rewind first. */
BJ_CHECK bj_status bj_npz_rows_range(bj_npz_rows *rows, void *out, int64_t begin, int64_t end,
                                     bj_error *err);

/* A whole array as doubles, for small ones: at most `limit` numbers. The caller frees *out. */
BJ_CHECK bj_status bj_npz_doubles(double **out, const bj_npz *npz, const char *name, int64_t limit,
                                  bj_error *err);

#endif
