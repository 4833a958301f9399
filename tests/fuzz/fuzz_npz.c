/* fuzz_npz.c - fuzz target of the NumPy archive reader.
 *
 * For any input, the reader must fail with a message or list arrays. Reading the rows of an array,
 * in pieces of any size, must reach the end or fail with a message. A second read must give the
 * same result. Memory must stay within the bound given by the file size. Violations abort.
 * Corpus: tests/fuzz/corpus/npz
 */
#include <string.h>

#include "core/alloc.h"
#include "fuzz.h"
#include "npz/npz.h"

/* Bytes per read, and the max size of an array that is read. A compressed array may unpack to a
 * thousand times its size. */
enum { PIECE = 1 << 16, MOST = 1 << 24 };

static unsigned char piece[PIECE];

/* Reads the rows of an array. Returns the status and adds the bytes to *sum. */
static bj_status read_rows(bj_npz_rows *rows, int64_t step, unsigned *sum, bj_error *err) {
    const bj_npy *npy = &bj_npz_rows_array(rows)->npy;
    while (bj_npz_rows_next(rows) < npy->rows) {
        const int64_t at = bj_npz_rows_next(rows), left = npy->rows - at;
        const int64_t n = left < step ? left : step;
        const bj_status status = bj_npz_rows_read(rows, piece, n, err);
        if (status != BJ_OK) return status;
        demand(bj_npz_rows_next(rows) == at + n);
        for (size_t i = 0; i < (size_t)n * npy->row_bytes; i++) *sum = *sum * 31 + piece[i];
    }
    return BJ_OK;
}

static void examine_array(const bj_npz *npz, const bj_npz_array *a) {
    bj_npz_rows *rows = NULL;
    bj_error err = {0};
    demand(bj_npz_find(npz, a->name) == a);
    if (a->problem) {
        demand(!strncmp(a->problem, "fuzz: ", 6));
        demand(bj_npz_rows_open(&rows, npz, a->name, &err) == BJ_EFORMAT && !rows);
        return;
    }
    const bj_npy *npy = &a->npy;
    demand(npy->rank >= 0 && npy->rank <= BJ_NPY_RANK && npy->rows >= 0 && npy->width >= 0);
    demand(npy->row_bytes == (size_t)npy->width * bj_npy_size(npy->type));
    bj_status status = bj_npz_rows_open(&rows, npz, a->name, &err);
    if (status != BJ_OK) {
        demand(status == BJ_EFORMAT && !rows && !strncmp(err.message, "fuzz: ", 6));
        return;
    }
    if (npy->row_bytes && npy->row_bytes <= PIECE && (uint64_t)npy->rows <= MOST / npy->row_bytes) {
        const int64_t most = (int64_t)(PIECE / npy->row_bytes);
        unsigned first = 0, second = 0;
        status = read_rows(rows, most, &first, &err);
        demand(status == BJ_OK || status == BJ_EFORMAT);
        if (status == BJ_EFORMAT) {
            demand(!strncmp(err.message, "fuzz: ", 6));
            demand(bj_npz_rows_read(rows, piece, 1, &err) == BJ_EFORMAT); /* later reads fail too */
        }
        demand(bj_npz_rows_rewind(rows, &err) == BJ_OK);
        const bj_status again = read_rows(rows, most / 3 + 1, &second, &err);
        demand(again == status && (status != BJ_OK || first == second));
        if (status == BJ_OK && npy->rows > 1) { /* skipping rows reaches the same position */
            demand(bj_npz_rows_rewind(rows, &err) == BJ_OK);
            demand(bj_npz_rows_range(rows, piece, npy->rows - 1, npy->rows, &err) == BJ_OK);
        }
    }
    bj_npz_rows_close(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_npz *npz = NULL;
    bj_error err = {0};
    const bj_status status = bj_npz_open_memory(&npz, data, size, "fuzz", &err);
    fuzz_accepted = 0;
    if (status == BJ_OK) {
        for (int i = 0; i < bj_npz_count(npz); i++) {
            examine_array(npz, bj_npz_at(npz, i));
            fuzz_accepted |= !bj_npz_at(npz, i)->problem;
        }
        bj_npz_close(npz);
    } else {
        demand(npz == NULL && status == BJ_EFORMAT && err.code == status);
        demand(!strncmp(err.message, "fuzz: ", 6));
    }
    demand(bj_alloc_live() == live);
    return 0;
}
