/* test_safetensors.c - tests the reader and the writer of safetensors files.
 *
 * Runs the tests when called without arguments. tests/core/peer_safetensors.py passes arguments:
 *   write PATH      writes the sample file
 *   read PATH...    prints the contents of each file, or "PATH refused: MESSAGE"
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "support/test.h"

static char folder[] = "/tmp/test_safetensors.XXXXXX";
static char path[64];

/* ------------------------------------------------------------------------------- sample content */

static const double sample_f64[2] = {1.0 / 3, -2e300};
static const float sample_f32[2][3] = {{1, 2, 3}, {-0.5f, 1e-40f, 3e38f}};
static const uint16_t sample_f16[4] = {0x3c00, 0xc500, 0x0001, 0x7bff}; /* 1 -5 2^-24 65504 */
static const uint16_t sample_bf16[2] = {0x3f80, 0xc2f7};                /* 1 -123.5 */
static const int64_t sample_i64[1] = {INT64_MIN};
static const int32_t sample_i32[3] = {0, -7, INT32_MAX};
static const uint8_t sample_u8[5] = {0, 1, 2, 254, 255};
static const uint8_t sample_bool[2] = {1, 0};

/* The element sizes are not sorted, so the writer has to sort them. */
static const bj_tensor_view sample[] = {
    {.name = "mask", .dtype = BJ_DTYPE_U8, .rank = 1, .shape = {5}, .data = sample_u8},
    {.name = "w.weight", .dtype = BJ_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = sample_f32},
    {.name = "flag", .dtype = BJ_DTYPE_BOOL, .rank = 2, .shape = {1, 2}, .data = sample_bool},
    {.name = "exact", .dtype = BJ_DTYPE_F64, .rank = 1, .shape = {2}, .data = sample_f64},
    {.name = "half \"quoted\" \\ \xc3\xa9",
     .dtype = BJ_DTYPE_F16,
     .rank = 1,
     .shape = {4},
     .data = sample_f16},
    {.name = "brain", .dtype = BJ_DTYPE_BF16, .rank = 1, .shape = {2}, .data = sample_bf16},
    {.name = "scalar", .dtype = BJ_DTYPE_I64, .rank = 0, .data = sample_i64},
    {.name = "index", .dtype = BJ_DTYPE_I32, .rank = 1, .shape = {3}, .data = sample_i32},
    {.name = "nothing", .dtype = BJ_DTYPE_F32, .rank = 3, .shape = {4, 0, 2}},
};
static const bj_fact sample_facts[] = {
    {"model", "branch"}, {"text", "two\nlines, \"quotes\" and \xc3\xa9"}, {"empty", ""}};
enum { SAMPLES = sizeof sample / sizeof *sample, FACTS = 3 };

static bj_status write_sample(const char *where, bj_error *err) {
    return bj_safetensors_write(where, sample, SAMPLES, sample_facts, FACTS, err);
}

/* ----------------------------------------------------------------------------------- round trip */

static void test_round_trip(void) {
    static const char *const order[SAMPLES] = {"exact", "scalar",  "w.weight",
                                               "index", "nothing", "half \"quoted\" \\ \xc3\xa9",
                                               "brain", "mask",    "flag"};
    bj_error err = {0};
    bj_safetensors *st = NULL;
    CHECK_OK(write_sample(path, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    if (!st) return;
    CHECK(!strcmp(bj_safetensors_path(st), path));
    CHECK(bj_safetensors_count(st) == SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        const bj_tensor_view *view = bj_safetensors_at(st, i);
        CHECK_MSG(!strcmp(view->name, order[i]), "%s", view->name);
        CHECK(bj_safetensors_find(st, view->name) == view);
        CHECK((uintptr_t)view->data % bj_dtype_size(view->dtype) == 0);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const bj_tensor_view *view = bj_safetensors_find(st, sample[i].name);
        size_t count = 1;
        CHECK(view && view->dtype == sample[i].dtype && view->rank == sample[i].rank);
        if (!view) continue;
        for (int d = 0; d < view->rank; d++) {
            CHECK(view->shape[d] == sample[i].shape[d]);
            count *= (size_t)sample[i].shape[d];
        }
        CHECK(view->count == count && view->bytes == count * bj_dtype_size(view->dtype));
        CHECK(!count || !memcmp(view->data, sample[i].data, view->bytes));
    }
    CHECK(bj_safetensors_find(st, "absent") == NULL);
    CHECK(bj_safetensors_find(st, "__metadata__") == NULL);
    CHECK(bj_safetensors_metadata_count(st) == FACTS);
    for (int i = 0; i < FACTS; i++) {
        const char *value = bj_safetensors_metadata(st, sample_facts[i].key);
        CHECK(value && !strcmp(value, sample_facts[i].value));
        const bj_fact fact = bj_safetensors_metadata_at(st, i);
        CHECK(!strcmp(fact.value, bj_safetensors_metadata(st, fact.key)));
    }
    CHECK(bj_safetensors_metadata(st, "absent") == NULL);
    bj_safetensors_close(st);
    bj_safetensors_close(NULL);
}

static void test_deterministic_bytes(void) {
    bj_error err = {0};
    char *first, *second;
    size_t first_size, second_size;
    CHECK_OK(bj_file_read(&first, &first_size, path, 1 << 20, &err), err);
    CHECK_OK(write_sample(path, &err), err);
    CHECK_OK(bj_file_read(&second, &second_size, path, 1 << 20, &err), err);
    CHECK(first_size == second_size && !memcmp(first, second, first_size));
    uint64_t header = 0;
    memcpy(&header, first, 8);
    CHECK(header % 8 == 0);
    bj_free(first);
    bj_free(second);

    /* The smallest file, byte by byte. */
    static const uint8_t number[1] = {7};
    static const char expected[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
                                   "\"data_offsets\":[0,1]}}   \7";
    const bj_tensor_view one = {
        .name = "a", .dtype = BJ_DTYPE_U8, .rank = 1, .shape = {1}, .data = number};
    CHECK_OK(bj_safetensors_write(path, &one, 1, NULL, 0, &err), err);
    CHECK_OK(bj_file_read(&first, &first_size, path, 1 << 20, &err), err);
    CHECK_MSG(first_size == sizeof expected - 1 && !memcmp(first, expected, first_size), "%s",
              first + 8);
    bj_free(first);

    /* A file without tensors. */
    bj_safetensors *st = NULL;
    CHECK_OK(bj_safetensors_write(path, NULL, 0, NULL, 0, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    CHECK(st && bj_safetensors_count(st) == 0 && bj_safetensors_metadata_count(st) == 0);
    CHECK(st && !bj_safetensors_find(st, "a") && !bj_safetensors_metadata(st, "a"));
    bj_safetensors_close(st);
}

static void test_read_real(void) {
    bj_error err = {0};
    bj_safetensors *st = NULL;
    bj_real value[6];
    CHECK_OK(write_sample(path, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    if (!st) return;
    const int64_t shape[2] = {2, 3}, swapped[2] = {3, 2}, two[1] = {2}, four[1] = {4},
                  three[1] = {3}, none[3] = {4, 0, 2};
    CHECK_OK(bj_safetensors_read_real(value, st, "w.weight", 2, shape, &err), err);
    for (int i = 0; i < 6; i++) CHECK(value[i] == (bj_real)sample_f32[i / 3][i % 3]);
    CHECK_OK(bj_safetensors_read_real(value, st, sample[4].name, 1, four, &err), err);
    CHECK(value[0] == 1 && value[1] == -5 && value[2] == (bj_real)0x1p-24 && value[3] == 65504);
    CHECK_OK(bj_safetensors_read_real(value, st, "brain", 1, two, &err), err);
    CHECK(value[0] == 1 && value[1] == (bj_real)-123.5);
    CHECK_OK(bj_safetensors_read_real(value, st, "nothing", 3, none, &err), err);
#ifdef BJ_DOUBLE
    CHECK_OK(bj_safetensors_read_real(value, st, "exact", 1, two, &err), err);
    CHECK(value[0] == sample_f64[0] && value[1] == sample_f64[1]);
#else
    CHECK(bj_safetensors_read_real(value, st, "exact", 1, two, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "tensor 'exact': value 1 is -2e+300, too large for float");
    CHECK(value[0] == (bj_real)sample_f64[0]);
#endif
    CHECK(bj_safetensors_read_real(value, st, "w.weight", 2, swapped, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, path);
    CHECK_CONTAINS(err.message, "tensor 'w.weight': shape [2,3], expected [3,2]");
    CHECK(bj_safetensors_read_real(value, st, "w.weight", 1, two, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "shape [2,3], expected [2]");
    CHECK(bj_safetensors_read_real(value, st, "w.bias", 1, two, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "tensor 'w.bias': is missing");
    CHECK(bj_safetensors_read_real(value, st, "index", 1, three, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "tensor 'index': dtype I32, expected F64, F32, F16 or BF16");
    bj_safetensors_close(st);

    /* Tests that NaN and infinity are rejected in each float type. */
    const double bad_f64[3] = {1, 2, (double)NAN};
    const float bad_f32[3] = {1, -INFINITY, 2};
    const uint16_t bad_f16[3] = {0x7c00, 0, 0}, bad_bf16[3] = {0, 0, 0x7fc1};
    const bj_tensor_view bad[] = {
        {.name = "d", .dtype = BJ_DTYPE_F64, .rank = 1, .shape = {3}, .data = bad_f64},
        {.name = "s", .dtype = BJ_DTYPE_F32, .rank = 1, .shape = {3}, .data = bad_f32},
        {.name = "h", .dtype = BJ_DTYPE_F16, .rank = 1, .shape = {3}, .data = bad_f16},
        {.name = "b", .dtype = BJ_DTYPE_BF16, .rank = 1, .shape = {3}, .data = bad_bf16}};
    static const char *const messages[] = {"tensor 'd': value 2 is nan, expected a finite number",
                                           "tensor 's': value 1 is -inf", "'h': value 0 is inf",
                                           "'b': value 2 is nan"};
    CHECK_OK(bj_safetensors_write(path, bad, 4, NULL, 0, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    for (int i = 0; st && i < 4; i++) {
        CHECK(bj_safetensors_read_real(value, st, bad[i].name, 1, three, &err) == BJ_ENONFINITE);
        CHECK_CONTAINS(err.message, messages[i]);
    }
    bj_safetensors_close(st);
}

/* Compares the conversion of all finite half-precision numbers with the formula of the standard. */
static void test_every_half(void) {
    bj_error err = {0};
    bj_safetensors *st = NULL;
    static uint16_t bits[65536];
    int count = 0;
    for (unsigned i = 0; i < 65536; i++)
        if ((i >> 10 & 31) != 31) bits[count++] = (uint16_t)i;
    const bj_tensor_view view = {
        .name = "h", .dtype = BJ_DTYPE_F16, .rank = 1, .shape = {count}, .data = bits};
    static bj_real value[65536];
    const int64_t shape[1] = {count};
    CHECK_OK(bj_safetensors_write(path, &view, 1, NULL, 0, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    CHECK_OK(bj_safetensors_read_real(value, st, "h", 1, shape, &err), err);
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        const int exponent = bits[i] >> 10 & 31, fraction = bits[i] & 1023;
        const double size = exponent ? (1 + fraction / 1024.) * pow(2, exponent - 15)
                                     : fraction / 1024. * pow(2, -14);
        wrong += !((double)value[i] == (bits[i] & 0x8000 ? -size : size));
    }
    CHECK_MSG(wrong == 0, "%d of %d", wrong, count);
    bj_safetensors_close(st);
}

/* --------------------------------------------------------------------------------- bad headers */

/* Opens a file that consists of the header length, the header and `data` zero bytes. */
static bj_status open_text(const char *header, size_t data, bj_error *err) {
    static unsigned char file[4096];
    const size_t length = strlen(header);
    memset(file, 0, sizeof file);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(length >> 8 * i);
    memcpy(file + 8, header, length);
    bj_safetensors *st = NULL;
    const bj_status status =
        bj_safetensors_open_memory(&st, file, 8 + length + data, "some.file", err);
    CHECK((status == BJ_OK) == (st != NULL));
    bj_safetensors_close(st);
    return status;
}

#define INFO(dtype, shape, offsets)                                                                \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define A4 "\"a\":" INFO("F32", "[1]", "[0,4]")

static void test_refused_headers(void) {
    static const struct {
        const char *header;
        size_t data;
        const char *message; /* NULL if accepted */
    } cases[] = {
        {"{" A4 "}", 4, NULL},
        {"{" A4 "}   \n", 4, NULL},
        {"{}", 0, NULL},
        {"{\"__metadata__\":{}," A4 "}", 4, NULL},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4],\"dtype\":\"F32\"}}", 4, NULL},
        {"{\"\":" INFO("I8", "[]", "[0,1]") "}", 1, NULL},
        {"{\"z\":" INFO("U8", "[2]", "[4,6]") "," A4 "}", 6, NULL}, /* any order in the header */
        /* JSON */
        {"", 0, "some.file: header does not start with '{'"},
        {" {" A4 "}", 4, "header does not start with '{'"},
        {"[]", 0, "header does not start with '{'"},
        {"{" A4, 4, "not JSON at byte"},
        {"{" A4 ",}", 4, "not JSON at byte"},
        {"{" A4 "}{", 4, "not JSON at byte"},
        {"{" A4 "}\x01", 4, "not JSON at byte"},
        {"{\"\xff\":" INFO("F32", "[1]", "[0,4]") "}", 4, "not JSON at byte"},
        {"{\"a\":1,\"b\":1,\"c\":1,\"d\":1}", 0, "header of 25 bytes cannot describe 4 tensors"},
        /* names */
        {"{" A4 "," A4 "}", 4, "some.file: tensor 'a': is given twice"},
        {"{" A4 ",\"\\u0061\":" INFO("F32", "[1]", "[4,8]") "}", 8, "'a': is given twice"},
        {"{\"a\\u0000b\":" INFO("F32", "[1]", "[0,4]") "}", 4, "name has control characters"},
        {"{\"a\\u001b[2J\":" INFO("F32", "[1]", "[0,4]") "}", 4, "name has control characters"},
        /* fields */
        {"{\"a\":7}", 0, "tensor 'a': not a JSON object"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor 'a': dtype is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor 'a': shape is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor 'a': data_offsets is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "tensor 'a': dtype is given twice"},
        {"{\"a\":{\"dtype\":\"F32\",\"extra\":0,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "tensor 'a': a field other than"},
        {"{\"a\":" INFO("F31", "[1]", "[0,4]") "}", 4, "tensor 'a': dtype 'F31' is not known"},
        {"{\"a\":" INFO("f32", "[1]", "[0,4]") "}", 4, "dtype 'f32' is not known"},
        {"{\"a\":" INFO("F32\\u0000", "[1]", "[0,4]") "}", 4, "dtype is not known"},
        {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is not a string"},
        /* shapes */
        {"{\"a\":" INFO("F32", "1", "[0,4]") "}", 4, "tensor 'a': shape is not a list"},
        {"{\"a\":" INFO("F32", "[-1]", "[0,4]") "}", 4, "tensor 'a': shape[0] is not an integer"},
        {"{\"a\":" INFO("F32", "[1,1.0]", "[0,4]") "}", 4, "shape[1] is not an integer"},
        {"{\"a\":" INFO("F32", "[\"1\"]", "[0,4]") "}", 4, "shape[0] is not an integer"},
        {"{\"a\":" INFO("F32", "[9223372036854775808]", "[0,4]") "}", 4, "shape[0] is not"},
        {"{\"a\":" INFO("F32", "[99999999999999999999]", "[0,4]") "}", 4, "shape[0] is not"},
        {"{\"a\":" INFO("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4,
         "shape has 9 numbers, expected at most 8"},
        {"{\"a\":" INFO("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "more elements than"},
        {"{\"a\":" INFO("F32", "[4611686018427387905]", "[0,4]") "}", 4, "more elements than"},
        {"{\"a\":" INFO("F32", "[4294967296,4294967296,0]", "[0,0]") "}", 0, "more elements than"},
        {"{\"a\":" INFO("F32", "[0,4294967296,4294967296]", "[0,0]") "}", 0, "more elements than"},
        /* offsets */
        {"{\"a\":" INFO("F32", "[1]", "[0]") "}", 4, "data_offsets has 1 numbers, expected 2"},
        {"{\"a\":" INFO("F32", "[1]", "[0,4,8]") "}", 4, "data_offsets has 3 numbers"},
        {"{\"a\":" INFO("F32", "[1]", "[-4,0]") "}", 4, "data_offsets[0] is not an integer"},
        {"{\"a\":" INFO("F32", "[1]", "[4,0]") "}", 4, "data_offsets begin at 4, but end at 0"},
        {"{\"a\":" INFO("F32", "[2]", "[0,4]") "}", 4, "span 4 bytes, but the shape needs 8"},
        {"{\"a\":" INFO("F64", "[1]", "[0,4]") "}", 4, "span 4 bytes, but the shape needs 8"},
        {"{\"a\":" INFO("F32", "[0]", "[0,4]") "}", 4, "span 4 bytes, but the shape needs 0"},
        {"{" A4 "}", 3, "tensor 'a': data ends at byte 4, but the file has only 3 bytes"},
        {"{" A4 "}", 5, "tensor 'a': the last tensor ends at byte 4, but 1 more bytes follow"},
        {"{\"a\":" INFO("U8", "[0]", "[9223372036854775807,9223372036854775807]") "}", 0,
         "tensor 'a': data ends at byte 9223372036854775807, but the file has only 0 bytes"},
        {"{}", 1, "some.file: no tensors, but 1 bytes of data"},
        {"{\"a\":" INFO("F32", "[1]", "[4,8]") "}", 8,
         "'a': data begins at byte 4, but the previous tensor ends at byte 0: a gap"},
        {"{" A4 ",\"b\":" INFO("F32", "[1]", "[6,10]") "}", 10,
         "tensor 'b': data begins at byte 6, but the previous tensor ends at byte 4: a gap"},
        {"{" A4 ",\"b\":" INFO("F32", "[1]", "[2,6]") "}", 6,
         "tensor 'b': data begins at byte 2, but the previous tensor ends at byte 4: they overlap"},
        {"{" A4 ",\"b\":" INFO("F32", "[1]", "[0,4]") "}", 4, "tensor 'b': data begins at byte 0"},
        /* metadata */
        {"{\"__metadata__\":[]," A4 "}", 4, "__metadata__ is not a JSON object"},
        {"{\"__metadata__\":{\"k\":1}," A4 "}", 4, "metadata 'k' is not a string"},
        {"{\"__metadata__\":{\"k\":\"a\\u0000\"}," A4 "}", 4, "metadata 'k' is not a string or"},
        {"{\"__metadata__\":{\"k\\n\":\"\"}," A4 "}", 4, "a metadata key has control characters"},
        {"{\"__metadata__\":{\"k\":\"1\",\"j\":\"\",\"k\":\"1\"}," A4 "}", 4,
         "metadata 'k' is given twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}," A4 "}", 4, "__metadata__ is given twice"},
    };
    const long live = bj_alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_error err = {0};
        const bj_status status = open_text(cases[i].header, cases[i].data, &err);
        if (!cases[i].message) {
            CHECK_MSG(status == BJ_OK, "%s: %s", cases[i].header, err.message);
            continue;
        }
        CHECK_MSG(status == BJ_EFORMAT && err.code == status, "%s", cases[i].header);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK_CONTAINS(err.message, "some.file: ");
        CHECK(open_text(cases[i].header, cases[i].data, NULL) == BJ_EFORMAT);
    }
    CHECK(bj_alloc_live() == live);
}

static void test_refused_files(void) {
    bj_error err = {0};
    bj_safetensors *st = NULL;
    CHECK(bj_safetensors_open(&st, "/nonexistent/x.safetensors", &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "/nonexistent/x.safetensors: cannot open: No such file");
    CHECK(bj_safetensors_open_memory(&st, "1234567", 7, "m", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message,
                   "m: the file has 7 bytes, expected at least 8 for the header length");
    CHECK(bj_safetensors_open_memory(&st, "\x03\0\0\0\0\0\0\0{}", 10, "m", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "the header has 3 bytes according to its length field, but only 2 bytes follow");
    CHECK(bj_safetensors_open_memory(&st, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "m", &err) ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "the header has 18446744073709551615 bytes");

    /* Tests a header above the limit, in a sparse file that is large enough to contain it. */
    const uint64_t huge = BJ_SAFETENSORS_MAX_HEADER + 1;
    CHECK_OK(bj_file_write(path, &huge, sizeof huge, &err), err);
    CHECK(truncate(path, BJ_SAFETENSORS_MAX_HEADER + 100) == 0);
    CHECK(bj_safetensors_open(&st, path, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "the header has 100000001 bytes, expected at most 100000000");

    /* Tests that every truncation of a valid file is rejected, and so is one additional byte. */
    char *file;
    size_t size;
    CHECK_OK(write_sample(path, &err), err);
    CHECK_OK(bj_file_read(&file, &size, path, 1 << 20, &err), err);
    for (size_t n = 0; n < size; n++)
        CHECK(bj_safetensors_open_memory(&st, file, n, "m", &err) == BJ_EFORMAT && st == NULL);
    CHECK(bj_safetensors_open_memory(&st, file, size + 1, "m", &err) == BJ_EFORMAT);
    /* The data need not be aligned. */
    char *moved = bj_alloc(size + 1, 1);
    memcpy(moved + 1, file, size);
    CHECK_OK(bj_safetensors_open_memory(&st, moved + 1, size, "m", &err), err);
    bj_real value[6];
    const int64_t shape[2] = {2, 3};
    CHECK_OK(bj_safetensors_read_real(value, st, "w.weight", 2, shape, &err), err);
    CHECK(value[3] == (bj_real)-0.5);
    bj_safetensors_close(st);
    bj_free(moved);
    bj_free(file);

    /* Tests that messages show the end of a long path and still contain the tensor name. */
    char label[600], name[200];
    memset(label, 'p', sizeof label);
    memcpy(label + sizeof label - 5, "/end", 5);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_OK(bj_safetensors_open_memory(&st, "\x02\0\0\0\0\0\0\0{}", 10, label, &err), err);
    CHECK(bj_safetensors_read_real(value, st, name, 2, shape, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "pp/end: tensor 'nnnn");
    CHECK_CONTAINS(err.message, "nnn': is missing");
    bj_safetensors_close(st);
}

static void test_refused_writes(void) {
    static const float data[4];
    const bj_tensor_view good = {
        .name = "a", .dtype = BJ_DTYPE_F32, .rank = 1, .shape = {4}, .data = data};
    bj_tensor_view pair[2];
    bj_error err = {0};
    CHECK_OK(bj_safetensors_write(path, &good, 1, NULL, 0, &err), err);
    char *before, *after;
    size_t before_size, after_size;
    CHECK_OK(bj_file_read(&before, &before_size, path, 1 << 20, &err), err);

#define REFUSED(member, wrong, text)                                                               \
    do {                                                                                           \
        pair[0] = pair[1] = good;                                                                  \
        pair[1].name = "b";                                                                        \
        pair[1].member = wrong;                                                                    \
        CHECK(bj_safetensors_write(path, pair, 2, NULL, 0, &err) == BJ_EARG);                      \
        CHECK(err.code == BJ_EARG);                                                                \
        CHECK_CONTAINS(err.message, text);                                                         \
        CHECK_CONTAINS(err.message, path);                                                         \
    } while (0)
    REFUSED(name, "a", "tensor 'a': is given twice");
    REFUSED(name, NULL, "a tensor has no name");
    REFUSED(name, "b\n", "a tensor name has control characters");
    REFUSED(name, "\xff", "a tensor name or metadata cannot be written as JSON");
    REFUSED(name, "__metadata__", "metadata 'shape' is not a string");
    REFUSED(dtype, BJ_DTYPES, "tensor 'b': dtype 13 is not known");
    REFUSED(dtype, (bj_dtype)-1, "tensor 'b': dtype -1 is not known");
    REFUSED(rank, -1, "tensor 'b': -1 dimensions, expected 0 to 8");
    REFUSED(rank, 9, "tensor 'b': 9 dimensions, expected 0 to 8");
    REFUSED(shape[0], -4, "tensor 'b': dimension 0 is negative");
    REFUSED(shape[0], INT64_MAX, "tensor 'b': shape has more elements");
    REFUSED(shape[0], INT64_MAX / 4, "tensor 'b': data would end after 2^63 - 1 bytes");
    REFUSED(data, NULL, "tensor 'b': has no data");

    const bj_fact twice[2] = {{"k", "1"}, {"k", "2"}}, null[1] = {{"k", NULL}};
    CHECK(bj_safetensors_write(path, &good, 1, twice, 2, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "metadata 'k' is given twice");
    CHECK(bj_safetensors_write(path, &good, 1, null, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "metadata 0 has no key or no value");
    CHECK(bj_safetensors_write("/dev/full", &good, 1, NULL, 0, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "/dev/full: cannot write: No space left on device");
    static const float large[50000]; /* large enough that the write itself fails, not the commit */
    pair[0] = good;
    pair[0].shape[0] = 50000;
    pair[0].data = large;
    CHECK(bj_safetensors_write("/dev/full", pair, 1, NULL, 0, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "No space left on device");
    CHECK(bj_safetensors_write("/nonexistent/x", &good, 1, NULL, 0, &err) == BJ_EIO);

    CHECK_OK(bj_file_read(&after, &after_size, path, 1 << 20, &err), err);
    CHECK(before_size == after_size && !memcmp(before, after, before_size));
    bj_free(before);
    bj_free(after);
}

/* ---------------------------------------------------------------------------------- allocations */

static void test_allocation_failures(void) {
    bj_error err = {0};
    const long live = bj_alloc_live();
    int failures = 0;
    CHECK_OK(bj_safetensors_write(path, sample, 1, NULL, 0, &err), err);
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = write_sample(path, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        failures++;
        CHECK_MSG(status == BJ_ENOMEM && err.code == status, "%s", err.message);
        CHECK_CONTAINS(err.message, "out of memory");
        bj_safetensors *st = NULL;
        CHECK_OK(bj_safetensors_open(&st, path, &err), err);
        CHECK(st && bj_safetensors_count(st) == 1); /* the old file is still in place */
        bj_safetensors_close(st);
    }
    CHECK_MSG(failures >= 10, "%d", failures);
    failures = 0;
    for (long n = 0;; n++) {
        bj_safetensors *st = NULL;
        bj_alloc_fail_after(n);
        const bj_status status = bj_safetensors_open(&st, path, &err);
        bj_alloc_fail_after(-1);
        CHECK((status == BJ_OK) == (st != NULL));
        bj_safetensors_close(st);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        failures++;
        CHECK_MSG(status == BJ_ENOMEM && err.code == status, "%s", err.message);
        CHECK_CONTAINS(err.message, "out of memory");
    }
    CHECK_MSG(failures >= 6, "%d", failures);
}

/* Tests a file with many tensors, for which the JSON library must grow its buffers, and finds the
 * tensors by name. */
static void test_many(void) {
    enum { MANY = 3000 };
    static char names[MANY][12];
    static bj_tensor_view views[MANY];
    static int32_t data[MANY];
    bj_error err = {0};
    bj_safetensors *st = NULL;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i * 7919 % MANY);
        data[i] = i;
        views[i] = (bj_tensor_view){.name = names[i], .dtype = BJ_DTYPE_I32, .data = &data[i]};
    }
    CHECK_OK(bj_safetensors_write(path, views, MANY, NULL, 0, &err), err);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    int wrong = 0;
    for (int i = 0; st && i < MANY; i++) {
        const bj_tensor_view *view = bj_safetensors_find(st, names[i]);
        wrong += !view || view != bj_safetensors_at(st, i) || memcmp(view->data, &data[i], 4);
    }
    CHECK(st && wrong == 0);
    bj_safetensors_close(st);
}

/* -------------------------------------------------------------------------- for the peer script */

static void print_file(const char *where) {
    bj_error err = {0};
    bj_safetensors *st = NULL;
    if (bj_safetensors_open(&st, where, &err) != BJ_OK) {
        printf("%s refused: %s\n", where, err.message);
        return;
    }
    printf("%s ok %d\n", where, bj_safetensors_count(st));
    for (int i = 0; i < bj_safetensors_metadata_count(st); i++) {
        const bj_fact fact = bj_safetensors_metadata_at(st, i);
        printf("meta %zu %zu %s%s\n", strlen(fact.key), strlen(fact.value), fact.key, fact.value);
    }
    for (int i = 0; i < bj_safetensors_count(st); i++) {
        const bj_tensor_view *view = bj_safetensors_at(st, i);
        printf("tensor %s %d", bj_dtype_name(view->dtype), view->rank);
        for (int d = 0; d < view->rank; d++) printf(" %lld", (long long)view->shape[d]);
        printf(" x");
        for (size_t b = 0; b < view->bytes; b++)
            printf("%02x", ((const unsigned char *)view->data)[b]);
        printf(" %s\n", view->name);
    }
    bj_safetensors_close(st);
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc == 3 && !strcmp(argv[1], "write")) {
        if (write_sample(argv[2], &err) == BJ_OK) return 0;
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (argc > 2 && !strcmp(argv[1], "read")) {
        for (int i = 2; i < argc; i++) print_file(argv[i]);
        return 0;
    }
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/file", folder);
    const long live = bj_alloc_live();
    test_round_trip();
    test_deterministic_bytes();
    test_read_real();
    test_every_half();
    test_refused_headers();
    test_refused_files();
    test_refused_writes();
    test_allocation_failures();
    test_many();
    CHECK(bj_alloc_live() == live);
    CHECK(remove(path) == 0 && rmdir(folder) == 0);
    return test_report("safetensors");
}
