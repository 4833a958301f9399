/* test_npz.c - tests archives in NumPy's format, and many kinds of invalid archives.
 *
 *   test_npz dump FILE...     prints the content for tests/npz/peer_numpy.py: a line "file PATH",
 *                             then "array NAME TYPE SHAPE CRC-32 of its numbers" or
 *                             "refused NAME MESSAGE"; numbers are read in pieces of odd sizes
 *   test_npz time FILE NAME   reads an array in blocks of rows, prints rows and seconds
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "npz/npz.h"
#include "npz/npz_case.h"
#include "test.h"

/* ---------------------------------------------------------------------------------------- tools */

static void dump_array(const bj_npz *npz, const bj_npz_array *a) {
    bj_npz_rows *rows = NULL;
    bj_error err = {0};
    unsigned long crc = 0;
    int64_t piece = 1;
    char *raw = NULL;
    size_t room = 0;
    bj_status status = bj_npz_rows_open(&rows, npz, a->name, &err);
    while (status == BJ_OK && bj_npz_rows_next(rows) < a->npy.rows && a->npy.row_bytes) {
        const int64_t left = a->npy.rows - bj_npz_rows_next(rows), n = left < piece ? left : piece;
        if (room < (size_t)n * a->npy.row_bytes) {
            room = (size_t)n * a->npy.row_bytes;
            raw = realloc(raw, room);
            if (!raw) abort();
        }
        status = bj_npz_rows_read(rows, raw, n, &err);
        if (status == BJ_OK) crc = crc32(crc, (Bytef *)raw, (uInt)((size_t)n * a->npy.row_bytes));
        piece = piece * 3 + 1;
        if (piece > 5000) piece = 7;
    }
    free(raw);
    bj_npz_rows_close(rows);
    if (status != BJ_OK) {
        printf("refused %s %s\n", a->name, err.message);
        return;
    }
    printf("array %s %s (", a->name, bj_npy_name(a->npy.type));
    for (int d = 0; d < a->npy.rank; d++)
        printf("%s%lld", d ? "," : "", (long long)a->npy.shape[d]);
    printf(") %08lx\n", crc);
}

static int dump(int count, char **paths) {
    for (int i = 0; i < count; i++) {
        bj_npz *npz = NULL;
        bj_error err;
        printf("file %s\n", paths[i]);
        if (bj_npz_open(&npz, paths[i], &err) != BJ_OK) {
            printf("refused * %s\n", err.message);
            continue;
        }
        for (int k = 0; k < bj_npz_count(npz); k++) {
            const bj_npz_array *a = bj_npz_at(npz, k);
            if (a->problem) printf("refused %s %s\n", a->name, a->problem);
            else dump_array(npz, a);
        }
        bj_npz_close(npz);
    }
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure(const char *path, const char *name) {
    bj_npz *npz = NULL;
    bj_npz_rows *rows = NULL;
    bj_error err = {0};
    const double start = now();
    bj_status status = bj_npz_open(&npz, path, &err);
    if (status == BJ_OK) status = bj_npz_rows_open(&rows, npz, name, &err);
    if (status != BJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        bj_npz_close(npz);
        return 1;
    }
    const bj_npy *npy = &bj_npz_rows_array(rows)->npy;
    const int64_t block = npy->row_bytes < 1 << 18 ? (1 << 18) / (int64_t)npy->row_bytes : 1;
    char *raw = malloc((size_t)block * npy->row_bytes);
    while (status == BJ_OK && raw && bj_npz_rows_next(rows) < npy->rows) {
        const int64_t left = npy->rows - bj_npz_rows_next(rows);
        status = bj_npz_rows_read(rows, raw, left < block ? left : block, &err);
    }
    const double seconds = now() - start;
    printf("%lld %.6f\n", (long long)npy->rows, seconds);
    free(raw);
    bj_npz_rows_close(rows);
    bj_npz_close(npz);
    return status != BJ_OK;
}

/* -------------------------------------------------------------------------------- valid archives
 */

static const float numbers[6] = {1, -2.5f, 3, 4, 5, 1e-30f};

/* Reads the array x of a finished archive and compares it with `numbers` (3,2). */
static void check_numbers(const void *bytes, size_t size) {
    bj_npz *npz = NULL;
    bj_npz_rows *rows = NULL;
    bj_error err = {0};
    float found[6] = {0};
    CHECK_OK(bj_npz_open_memory(&npz, bytes, size, "here", &err), err);
    if (!npz) return;
    const bj_npz_array *a = bj_npz_find(npz, "x");
    CHECK(a && !a->problem);
    if (a && !a->problem) {
        CHECK(a->npy.type == BJ_NPY_F32 && a->npy.rank == 2 && a->npy.rows == 3);
        CHECK(a->npy.shape[0] == 3 && a->npy.shape[1] == 2 && a->npy.width == 2);
        CHECK(a->npy.row_bytes == 8);
        CHECK_OK(bj_npz_rows_open(&rows, npz, "x", &err), err);
        CHECK_OK(bj_npz_rows_read(rows, found, 1, &err), err);
        CHECK(bj_npz_rows_next(rows) == 1);
        CHECK_OK(bj_npz_rows_read(rows, found + 2, 2, &err), err);
        CHECK(!memcmp(found, numbers, sizeof found));
        CHECK(bj_npz_rows_read(rows, found, 1, &err) == BJ_EARG);
        CHECK_CONTAINS(err.message, "1 rows requested, 0 remain");
        /* Read again, and read a range that skips a row. */
        CHECK_OK(bj_npz_rows_rewind(rows, &err), err);
        CHECK_OK(bj_npz_rows_range(rows, found, 2, 3, &err), err);
        CHECK(!memcmp(found, numbers + 4, 8));
        CHECK(bj_npz_rows_range(rows, found, 0, 1, &err) == BJ_EARG);
        CHECK_OK(bj_npz_rows_rewind(rows, &err), err);
        CHECK_OK(bj_npz_rows_range(rows, found, 1, 2, &err), err);
        CHECK(!memcmp(found, numbers + 2, 8));
        bj_npz_rows_close(rows);
        double *values = NULL;
        CHECK_OK(bj_npz_doubles(&values, npz, "x", 6, &err), err);
        for (int i = 0; values && i < 6; i++) CHECK(values[i] == (double)numbers[i]);
        bj_free(values);
        CHECK(bj_npz_doubles(&values, npz, "x", 5, &err) == BJ_EFORMAT && !values);
        CHECK_CONTAINS(err.message, "has 6 numbers, expected at most 5");
    }
    bj_npz_close(npz);
}

static void test_good(void) {
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
        "{\"shape\":(3,2),\"descr\":\"<f4\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 3L , 2L , ) , 'descr' : '<f4' }  "};
    for (int method = 0; method <= 8; method += 8)
        for (int zip64 = 0; zip64 < 2; zip64++)
            for (int h = 0; h < 3; h++)
                for (int version = 1; version <= 3; version++) {
                    npz_maker m = {.zip64 = zip64,
                                   .comment = h ? "a PK\5\6 remark of no use" : NULL};
                    const npz_lie lie = {.zip64 = zip64};
                    npz_add_raw(&m, "note.txt", "hello", 5, 0, NULL);
                    npz_add_header(&m, "x", headers[h], version, numbers, 24, method, &lie);
                    npz_finish(&m);
                    check_numbers(m.bytes, m.size);
                    free(m.bytes);
                }
}

static void test_types(void) {
    const double f8 = -1.25;
    const int32_t i4 = -7;
    const int64_t i8 = INT64_C(-5000000000);
    const uint8_t u1 = 200, b1 = 9;
    npz_maker m = {0};
    bj_npz *npz = NULL;
    bj_error err = {0};
    double *value = NULL;
    npz_add(&m, "f8", "<f8", "()", &f8, 8, 0);
    npz_add(&m, "i4", "<i4", "(1,)", &i4, 4, 8);
    npz_add(&m, "i8", "<i8", "(1, 1)", &i8, 8, 0);
    npz_add(&m, "u1", "|u1", "(1, 1, 1, 1)", &u1, 1, 8);
    npz_add(&m, "b1", "|b1", "()", &b1, 1, 0);
    npz_add(&m, "none", "<f4", "(0, 5)", "", 0, 8);
    npz_add(&m, "flat", "<f4", "(7, 0)", "", 0, 0);
    npz_finish(&m);
    CHECK_OK(bj_npz_open_memory(&npz, m.bytes, m.size, "here", &err), err);
    const struct {
        const char *name;
        bj_npy_type type;
        double value;
    } want[] = {{"f8", BJ_NPY_F64, f8},
                {"i4", BJ_NPY_I32, i4},
                {"i8", BJ_NPY_I64, (double)i8},
                {"u1", BJ_NPY_U8, u1},
                {"b1", BJ_NPY_BOOL, 1}};
    for (size_t k = 0; npz && k < sizeof want / sizeof *want; k++) {
        bj_real real = 0;
        CHECK_OK(bj_npz_doubles(&value, npz, want[k].name, 1, &err), err);
        CHECK(value && *value == want[k].value);
        CHECK(bj_npz_find(npz, want[k].name)->npy.type == want[k].type);
        bj_npy_reals(&real, value, BJ_NPY_F64, 1);
        CHECK(real == (bj_real)want[k].value);
        bj_free(value);
    }
    if (npz) {
        CHECK(bj_npz_count(npz) == 7);
        CHECK(bj_npz_find(npz, "none")->npy.rows == 0 && bj_npz_find(npz, "none")->npy.width == 5);
        CHECK(bj_npz_find(npz, "flat")->npy.rows == 7 && bj_npz_find(npz, "flat")->npy.width == 0);
        CHECK_OK(bj_npz_doubles(&value, npz, "none", 0, &err), err);
        bj_free(value);
        CHECK_OK(bj_npz_doubles(&value, npz, "flat", 0, &err), err);
        bj_free(value);
        CHECK(bj_npz_need(NULL, npz, "x", -1, &err) == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, "here: no array 'x'; the file contains: f8, i4, i8");
        CHECK(bj_npz_need(NULL, npz, "i8", 1, &err) == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, "has 2 dimensions, expected 1");
    }
    bj_npz_close(npz);
    free(m.bytes);
}

/* Tests members larger than the buffers, read in pieces of all sizes. */
static void test_large(void) {
    enum { ROWS = 70001 };
    int32_t *values = malloc(ROWS * sizeof *values), *found = malloc(ROWS * sizeof *found);
    uint32_t x = 1;
    for (int i = 0; values && i < ROWS; i++)
        values[i] = (int32_t)(i % 3 ? (x = x * 1664525u + 1013904223u) >> 8 : 0);
    for (int method = 0; values && found && method <= 8; method += 8) {
        npz_maker m = {0};
        bj_npz *npz = NULL;
        bj_npz_rows *rows = NULL;
        bj_error err = {0};
        npz_add(&m, "x", "<i4", "(70001,)", values, ROWS * sizeof *values, method);
        npz_finish(&m);
        CHECK_OK(bj_npz_open_memory(&npz, m.bytes, m.size, "here", &err), err);
        CHECK_OK(bj_npz_rows_open(&rows, npz, "x", &err), err);
        memset(found, 0, ROWS * sizeof *found);
        const long count = bj_alloc_count();
        for (int64_t at = 0, n = 1; rows && at < ROWS; at += n, n = n * 5 % 30011) {
            if (n > ROWS - at) n = ROWS - at;
            CHECK_OK(bj_npz_rows_read(rows, found + at, n, &err), err);
        }
        CHECK(bj_alloc_count() <= count + 1); /* zlib's window, once */
        CHECK(!memcmp(found, values, ROWS * sizeof *values));
        bj_npz_rows_close(rows);
        bj_npz_close(npz);
        free(m.bytes);
    }
    free(values);
    free(found);
}

/* ------------------------------------------------------------------------------ invalid archives
 */

/* Checks that the array x is rejected with this message, either at opening or while it is read. */
static void refuse_array(npz_maker *m, const char *message) {
    bj_npz *npz = NULL;
    bj_npz_rows *rows = NULL;
    bj_error err = {0};
    float found[6];
    npz_finish(m);
    CHECK_OK(bj_npz_open_memory(&npz, m->bytes, m->size, "here", &err), err);
    bj_status status = npz ? bj_npz_rows_open(&rows, npz, "x", &err) : BJ_OK;
    if (npz && status == BJ_OK) {
        status = bj_npz_rows_read(rows, found, 3, &err);
        CHECK(bj_npz_rows_read(rows, found, 0, &err) != BJ_EIO); /* must not crash after a
                                                                    failure */
    }
    CHECK_MSG(status == BJ_EFORMAT, "accepted, expected '%s'", message);
    if (status == BJ_EFORMAT) {
        bj_npz_rows_close(rows);
        rows = NULL;
        if (bj_npz_rows_open(&rows, npz, "x", &err) == BJ_OK)
            status = bj_npz_rows_read(rows, found, 3, &err);
        CHECK_CONTAINS(err.message, "here: member 'x");
        CHECK_CONTAINS(err.message, message);
    }
    bj_npz_rows_close(rows);
    bj_npz_close(npz);
    free(m->bytes);
    memset(m, 0, sizeof *m);
}

static void refuse_header(const char *header, const char *message) {
    npz_maker m = {0};
    npz_add_header(&m, "x", header, 1, numbers, 24, NPZ_DEFLATED, NULL);
    refuse_array(&m, message);
}

static void refuse_lie(npz_lie lie, int method, const char *message) {
    npz_maker m = {0};
    npz_add_header(&m, "x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 1,
                   numbers, 24, method, &lie);
    refuse_array(&m, message);
}

static void test_headers(void) {
    refuse_header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }",
                  "Fortran order, expected C order");
    refuse_header("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }", "big-endian");
    refuse_header("{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }", "Python objects");
    refuse_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", "records");
    refuse_header("{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }",
                  "the type is '<f2'");
    refuse_header("{'descr': '<U6', 'fortran_order': False, 'shape': (1,), }", "the type is '<U6'");
    refuse_header("{'descr': 'f4', 'fortran_order': False, 'shape': (3, 2), }", "the type is 'f4'");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }",
                  "24 bytes of numbers, expected 36 for its shape");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", "expected 16");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2), }", "a size");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6), }", "',' or ')'");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", "a tuple");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3 2), }", "',' or ')'");
    refuse_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 2), }", "True or False");
    refuse_header("{'descr': '<f4', 'shape': (3, 2), }", "lacks 'fortran_order'");
    refuse_header("{'descr': '<f4', 'descr': '<f4', 'shape': (3, 2), }", "'descr' twice");
    refuse_header("{'descr': '<f4', 'name': 'x', 'shape': (3, 2), }", "'name' that is not known");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } x", "nothing after");
    refuse_header("'descr'", "a dictionary");
    refuse_header("{'descr': '<f4", "the type of its numbers");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, "
                  "4294967296), }",
                  "more than 2^63");
    refuse_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }",
        "more than 2^63");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
                  "below 2^63");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6), }",
                  "more than 8 dimensions");
    npz_maker m = {0};
    npz_add_header(&m, "x", "{}", 4, numbers, 24, 0, NULL);
    refuse_array(&m, "version is 4.0");
    npz_add_raw(&m, "x.npy", "\x93NUMPZ\1\0\2\0{}\n", 13, 0, NULL);
    refuse_array(&m, "does not begin with the .npy signature");
    npz_add_raw(&m, "x.npy", "\x93NUMPY\1\0", 8, 0, NULL);
    refuse_array(&m, "has 8 bytes, which is too short");
    npz_add_raw(&m, "x.npy", "\x93NUMPY\1\0\x40\0{}\n", 13, 0, NULL);
    refuse_array(&m, "but its header alone has 74");
    npz_add_raw(&m, "x.npy", "\x93NUMPY\2\0\0\0\1\1", 12, 0, NULL);
    refuse_array(&m, "header has 16842752 bytes");
}

static void test_members(void) {
    refuse_lie((npz_lie){.crc = 1}, NPZ_STORED, "CRC-32 is");
    refuse_lie((npz_lie){.crc = 1}, NPZ_DEFLATED, "CRC-32 is");
    refuse_lie((npz_lie){.flags = 1}, NPZ_DEFLATED, "is encrypted");
    refuse_lie((npz_lie){.method = 13}, NPZ_DEFLATED, "compression method 12 (bzip2)");
    refuse_lie((npz_lie){.method = 78}, NPZ_STORED, "compression method 77 (unknown)");
    refuse_lie((npz_lie){.local = 1}, NPZ_STORED, "no local header");
    refuse_lie((npz_lie){.size = 4}, NPZ_STORED, "the stored data has");
    refuse_lie((npz_lie){.size = 4}, NPZ_DEFLATED, "28 bytes of numbers, expected 24");
    refuse_lie((npz_lie){.cut = 9}, NPZ_DEFLATED, "its compressed data ends after");
    refuse_lie((npz_lie){.packed = -1}, NPZ_DEFLATED, "has no end");
    refuse_lie((npz_lie){.packed = -5, .size = -5}, NPZ_STORED, "19 bytes of numbers");
    /* Test a local header with another name than in the directory, then damaged compressed data. */
    npz_maker m = {0};
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    memcpy(m.bytes + 30, "y", 1);
    refuse_array(&m, "has a different name");
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    m.bytes[m.size - 3] ^= 0x55;
    refuse_array(&m, "member 'x");
    /* The stream unpacks to more bytes than the directory declares, although the shape is
     * correct. */
    uint8_t longer[200];
    memset(longer, 7, sizeof longer);
    npz_maker inner = {0};
    npz_add_header(&inner, "x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 1,
                   longer, 28, NPZ_STORED, NULL);
    npz_add_raw(&m, "x.npy", inner.bytes + 30 + 5 + 5, inner.size - 40, NPZ_DEFLATED,
                &(npz_lie){.size = -4});
    refuse_array(&m, "unpacks to more than");
    free(inner.bytes);
}

static void refuse_archive(const void *bytes, size_t size, const char *message) {
    bj_npz *npz = NULL;
    bj_error err = {0};
    CHECK(bj_npz_open_memory(&npz, bytes, size, "here", &err) == BJ_EFORMAT && !npz);
    CHECK_CONTAINS(err.message, "here: ");
    CHECK_CONTAINS(err.message, message);
    bj_npz_close(npz);
}

static void test_archives(void) {
    npz_maker m = {0};
    bj_npz *npz = NULL;
    bj_error err = {0};
    refuse_archive("", 0, "no ZIP directory");
    refuse_archive("hello, world: this is not an archive at all", 43, "no ZIP directory");
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    npz_add(&m, "y", "<f4", "(3, 2)", numbers, 24, NPZ_STORED);
    npz_finish(&m);
    for (size_t cut = 1; cut < m.size; cut++) { /* test every truncation */
        CHECK(bj_npz_open_memory(&npz, m.bytes, m.size - cut, "here", &err) == BJ_EFORMAT);
        bj_npz_close(npz);
    }
    uint8_t *end = m.bytes + m.size - 22;
    end[8] = end[10] = 3;
    refuse_archive(m.bytes, m.size, "a directory of 3 members does not fit in 102 bytes");
    end[-102] = 'Q';
    end[8] = end[10] = 2;
    refuse_archive(m.bytes, m.size, "directory entry 0 is damaged");
    end[-102] = 'P';
    end[8] = end[10] = 1;
    refuse_archive(m.bytes, m.size, "bytes after the 1 directory entries");
    end[8] = end[10] = 2;
    end[4] = 1;
    refuse_archive(m.bytes, m.size, "several disks");
    end[4] = 0;
    end[16]++;
    refuse_archive(m.bytes, m.size, "the directory has");
    end[16]--;
    free(m.bytes);
    memset(&m, 0, sizeof m);

    m.zip64 = 1; /* test a directory that overlaps the next record */
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    npz_finish(&m);
    m.bytes[m.size - 22 - 20 - 56 + 40]++;
    refuse_archive(m.bytes, m.size, "the directory has 52 bytes and starts at");
    m.bytes[m.size - 22 - 20 - 56 + 40]--;
    m.bytes[m.size - 22 - 20 + 8]++;
    refuse_archive(m.bytes, m.size, "ZIP64 end record");
    free(m.bytes);
    memset(&m, 0, sizeof m);

    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    npz_finish(&m);
    refuse_archive(m.bytes, m.size, "two members are named 'x.npy'");
    free(m.bytes);
    memset(&m, 0, sizeof m);

    npz_add_header(&m, "x", "{}", 1, numbers, 24, 0, &(npz_lie){.packed = 4000, .size = 4000});
    npz_finish(&m);
    refuse_archive(m.bytes, m.size, "expected it to end before");
    free(m.bytes);
    memset(&m, 0, sizeof m);

    /* An unreadable array must not affect other arrays. */
    npz_add(&m, "bad", "<U3", "(3,)", numbers, 24, NPZ_DEFLATED);
    npz_add(&m, "x", "<f4", "(3, 2)", numbers, 24, NPZ_DEFLATED);
    npz_finish(&m);
    check_numbers(m.bytes, m.size);
    CHECK_OK(bj_npz_open_memory(&npz, m.bytes, m.size, "here", &err), err);
    CHECK(npz && bj_npz_count(npz) == 2 && bj_npz_at(npz, 0)->problem);
    bj_npz_close(npz);
    /* Every failed allocation must be reported. */
    for (long n = 0; n < 40; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_npz_open_memory(&npz, m.bytes, m.size, "here", &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || (status == BJ_ENOMEM && !npz));
        bj_npz_close(npz);
        if (status == BJ_OK) break;
        CHECK(n < 39);
    }
    free(m.bytes);

    CHECK(bj_npz_open(&npz, "tests/none.npz", &err) == BJ_EIO && !npz);
    CHECK_CONTAINS(err.message, "tests/none.npz");
    CHECK(bj_npz_open(&npz, "tests", &err) == BJ_EIO && !npz);
    CHECK(bj_npz_open(&npz, "/dev/null", &err) == BJ_EIO && !npz);
    CHECK(bj_npz_open(&npz, "README.md", &err) == BJ_EFORMAT && !npz);
    CHECK_CONTAINS(err.message, "README.md: found no ZIP directory");
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "dump")) return dump(argc - 2, argv + 2);
    if (argc == 4 && !strcmp(argv[1], "time")) return measure(argv[2], argv[3]);
    const long live = bj_alloc_live();
    test_good();
    test_types();
    test_large();
    test_headers();
    test_members();
    test_archives();
    CHECK(bj_alloc_live() == live);
    return test_report("npz");
}
