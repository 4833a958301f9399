/* test_npz_write.c - tests that our reader can read the archives written by our writer.
 * tests/cli/maze_drive.sh loads an archive with NumPy. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "npz/npz.h"
#include "npz/npz_write.h"
#include "test.h"

static const float floats[] = {1, -2.5f, 3, 4, 5, 6};
static const double doubles[] = {0.1, 1e300};
static const int64_t longs[] = {-1, (int64_t)1 << 40};
static const int32_t ints[] = {7, -8, 9};
static const uint8_t bytes[] = {0, 1, 2, 255};

static const bj_npz_source sources[] = {
    {"f", BJ_NPY_F32, 2, {3, 2}, floats},     {"d", BJ_NPY_F64, 1, {2}, doubles},
    {"l", BJ_NPY_I64, 2, {1, 2}, longs},      {"i", BJ_NPY_I32, 1, {3}, ints},
    {"u", BJ_NPY_U8, 4, {1, 2, 2, 1}, bytes}, {"b", BJ_NPY_BOOL, 1, {2}, bytes},
    {"none", BJ_NPY_F32, 2, {0, 2}, floats}};
enum { COUNT = sizeof sources / sizeof *sources };

static void test_round_trip(const char *path) {
    bj_error err = {0};
    bj_npz *npz = NULL;
    CHECK_OK(bj_npz_write(path, sources, COUNT, &err), err);
    CHECK_OK(bj_npz_open(&npz, path, &err), err);
    if (!npz) return;
    CHECK(bj_npz_count(npz) == COUNT);
    for (int k = 0; k < COUNT; k++) {
        const bj_npz_array *a = NULL;
        double *values = NULL;
        CHECK_OK(bj_npz_need(&a, npz, sources[k].name, sources[k].rank, &err), err);
        if (!a) continue;
        size_t count = 1;
        for (int d = 0; d < a->npy.rank; d++) {
            CHECK(a->npy.shape[d] == sources[k].shape[d]);
            count *= (size_t)a->npy.shape[d];
        }
        CHECK(a->npy.type == sources[k].type && a->header % 64 == 0);
        CHECK_OK(bj_npz_doubles(&values, npz, sources[k].name, 100, &err), err);
        double want[8];
        bj_npy_doubles(want, sources[k].data, sources[k].type, count);
        if (values && count) CHECK(!memcmp(values, want, count * sizeof *values));
        bj_free(values);
    }
    bj_npz_close(npz);
}

static void test_same_bytes(const char *path) {
    bj_error err = {0};
    char *first = NULL, *second = NULL;
    size_t a = 0, b = 0;
    CHECK_OK(bj_npz_write(path, sources, COUNT, &err), err);
    CHECK_OK(bj_file_read(&first, &a, path, 1 << 20, &err), err);
    CHECK_OK(bj_npz_write(path, sources, COUNT, &err), err);
    CHECK_OK(bj_file_read(&second, &b, path, 1 << 20, &err), err);
    CHECK(first && second && a == b && !memcmp(first, second, a));
    bj_free(first);
    bj_free(second);
}

static void test_refused(const char *path) {
    bj_error err = {0};
    bj_npz_source bad = {"huge", BJ_NPY_F64, 2, {1 << 20, 1 << 10}, doubles};
    CHECK(bj_npz_write(path, &bad, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "array 'huge' is larger than the archive limit of 4 GiB");
    bad.shape[0] = -1;
    CHECK(bj_npz_write(path, &bad, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "a dimension of -1");
    bad.rank = 5;
    CHECK(bj_npz_write(path, &bad, 1, &err) == BJ_EARG);
    CHECK(bj_npz_write(path, sources, 0, &err) == BJ_EARG);
    CHECK(bj_npz_write("/nowhere/at/all.npz", sources, 1, &err) == BJ_EIO);
}

int main(void) {
    char path[] = "/tmp/test_npz_write_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    const long live = bj_alloc_live();
    test_round_trip(path);
    test_same_bytes(path);
    test_refused(path);
    CHECK(bj_alloc_live() == live);
    unlink(path);
    return test_report("npz_write");
}
