/* npz.h - reads arrays of a NumPy archive, for tests that compare with stored references.
 *
 * An archive is a ZIP file without compression, as numpy.savez writes it. Each member is an .npy
 * file of version 1 in C order and little endian. Offsets and sizes come from the central
 * directory. Unknown content is rejected, and members must be inside the file, but this code is not
 * meant for untrusted files.
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
    long count;       /* number of elements */
    size_t size;      /* bytes per element */
    const void *data; /* not aligned, so use npz_number or memcpy */
} npz_array;

typedef struct npz {
    char *bytes;
    int count;
    npz_array array[NPZ_MEMBERS];
} npz;

/* Returns 1 on success. Otherwise, prints the reason to stderr and returns 0. */
int npz_open(npz *out, const char *path);
void npz_close(npz *archive);
const npz_array *npz_find(const npz *archive, const char *name); /* NULL if not found */
/* Returns element i of an array of f4, f8, u1, i4 or i8, and NaN for other types. */
double npz_number(const npz_array *array, long i);

#endif
