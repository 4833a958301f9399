/* npz.h - arrays of a NumPy archive, for tests that compare with stored references.
 *
 * A ZIP whose members are stored without compression, as numpy.savez writes it, each an .npy file
 * of version 1 in C order and little endian. Offsets and sizes come from the central directory.
 * Not for untrusted files: it refuses what it does not know, and checks that members lie inside.
 */
#ifndef BJ_TESTS_NPZ_H
#define BJ_TESTS_NPZ_H

#include <stddef.h>

enum { NPZ_MEMBERS = 64, NPZ_RANK = 4 };

typedef struct npz_array {
    char name[64];  /* without .npy */
    char dtype[16]; /* as in the file: "<f4", "|u1", "|S24" */
    int rank;
    long shape[NPZ_RANK];
    long count;       /* elements */
    size_t size;      /* bytes of one */
    const void *data; /* not aligned: use npz_number or memcpy */
} npz_array;

typedef struct npz {
    char *bytes;
    int count;
    npz_array array[NPZ_MEMBERS];
} npz;

/* 1, or 0 with a reason on stderr. */
int npz_open(npz *out, const char *path);
void npz_close(npz *archive);
const npz_array *npz_find(const npz *archive, const char *name); /* or NULL */
/* Element i of an array of f4, f8, u1, i4 or i8; NaN for others. */
double npz_number(const npz_array *array, long i);

#endif
