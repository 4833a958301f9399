/* test_reader.c - tests the columns of the files in tests/parquet/files, and damaged files.
 *
 * Values are computed from the column and the row, with the same formulas as in
 * tests/parquet/make_files.py.
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "core/file.h"
#include "parquet/reader.h"
#include "support/test.h"

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "tests/parquet/files/%s.parquet", name);
    return path;
}

/* ------------------------------------------------------------------------------------ formulas */

static int64_t mixed(int64_t i) { return i * 7919 % 1009; }
static int is_null(int64_t i) { return i % 7 == 3 || i % 7 == 4; }

static int begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

static double number(const char *name, int64_t i) {
    if (begins(name, "flag")) return mixed(i) % 3 == 0;
    if (begins(name, "i32")) return (double)(mixed(i) - 500);
    if (begins(name, "u32")) return (double)(4000000000 + mixed(i));
    if (begins(name, "i64")) return (double)(mixed(i) - 500) * 1e12;
    if (begins(name, "step")) return (double)(i % 110);
    if (begins(name, "f32")) return (double)(mixed(i) - 500) / 8;
    if (begins(name, "f64")) return (double)(mixed(i) - 500) / 16;
    if (begins(name, "few")) return (double)(i % 5) / 4;
    return NAN;
}

/* Computes the text of a row and returns its size. */
static size_t text(char out[32], const char *name, int64_t i) {
    if (begins(name, "text")) return (size_t)snprintf(out, 32, "id-%d", (int)(mixed(i) % 23));
    if (begins(name, "track")) return (size_t)snprintf(out, 32, "%d", 138000 + (int)(i / 40));
    const unsigned char raw[4] = {(unsigned char)mixed(i), (unsigned char)(mixed(i) >> 8), 0, 255};
    memcpy(out, raw, 4);
    return 4;
}

/* ------------------------------------------------------------------------------- valid columns */

static void check_null_refused(bj_status status, const bj_error *err, const void *out) {
    CHECK_MSG(status == BJ_EFORMAT && !out, "%d", status);
    CHECK_CONTAINS(err->message, "row 3 is null, expected a value");
}

static void check_integers(bj_parquet *parquet, int column, const char *name, int nulls) {
    const int64_t *values, rows = bj_parquet_rows(parquet);
    const uint8_t *valid;
    bj_error err = {0};
    CHECK_OK(bj_parquet_read_int64(&values, &valid, parquet, column, &err), err);
    for (int64_t i = 0; values && i < rows; i++) {
        const int there = !nulls || !is_null(i);
        const int64_t want = there ? (int64_t)number(name, i) : 0;
        CHECK_MSG(values[i] == want && valid[i] == there, "%s, row %d: %lld", name, (int)i,
                  (long long)values[i]);
    }
    const bj_status status = bj_parquet_read_int64(&values, NULL, parquet, column, &err);
    if (nulls && rows > 3) check_null_refused(status, &err, values);
    else CHECK(status == BJ_OK && values);
}

static void check_doubles(bj_parquet *parquet, int column, const char *name, int nulls) {
    const double *values;
    const int64_t rows = bj_parquet_rows(parquet);
    const uint8_t *valid;
    bj_error err = {0};
    CHECK_OK(bj_parquet_read_double(&values, &valid, parquet, column, &err), err);
    for (int64_t i = 0; values && i < rows; i++) {
        const int there = !nulls || !is_null(i);
        const double want = there ? number(name, i) : 0;
        CHECK_MSG(values[i] == want && valid[i] == there, "%s, row %d: %g", name, (int)i,
                  values[i]);
    }
    const bj_status status = bj_parquet_read_double(&values, NULL, parquet, column, &err);
    if (nulls && rows > 3) check_null_refused(status, &err, values);
    else CHECK(status == BJ_OK && values);
}

static void check_texts(bj_parquet *parquet, int column, const char *name, int nulls) {
    const bj_text *texts;
    const uint8_t *valid;
    const int64_t rows = bj_parquet_rows(parquet);
    bj_error err = {0};
    char want[32];
    CHECK_OK(bj_parquet_read_text(&texts, &valid, parquet, column, &err), err);
    for (int64_t i = 0; texts && i < rows; i++) {
        const int there = !nulls || !is_null(i);
        const size_t size = there ? text(want, name, i) : 0;
        CHECK_MSG(valid[i] == there && texts[i].size == size && !memcmp(texts[i].data, want, size),
                  "%s, row %d: %.*s", name, (int)i, (int)texts[i].size, texts[i].data);
    }
    const int32_t *codes;
    int count, next = 0;
    const bj_status status = bj_parquet_read_codes(&codes, &texts, &count, parquet, column, &err);
    if (nulls && rows > 3) {
        check_null_refused(status, &err, codes);
        return;
    }
    CHECK_OK(status, err);
    for (int64_t i = 0; codes && i < rows; i++) {
        const size_t size = text(want, name, i);
        const bj_text *found = codes[i] >= 0 && codes[i] < count ? &texts[codes[i]] : NULL;
        CHECK_MSG(found && found->size == size && !memcmp(found->data, want, size),
                  "%s, row %d: code %d", name, (int)i, (int)codes[i]);
        CHECK(codes[i] <= next); /* codes are numbered in order of first appearance */
        next += codes[i] == next;
    }
    CHECK_MSG(next == count, "%s: %d codes used of %d", name, next, count);
}

static void check_list(bj_parquet *parquet, int column) {
    const int64_t *start, rows = bj_parquet_rows(parquet);
    const double *values;
    bj_error err = {0};
    int64_t at = 0;
    CHECK_OK(bj_parquet_read_double_list(&start, &values, parquet, column, &err), err);
    for (int64_t i = 0; start && i < rows; i++) {
        CHECK_MSG(start[i] == at, "list %d begins at %d", (int)i, (int)start[i]);
        for (int64_t j = 0; j < i % 4; j++, at++)
            CHECK_MSG(values[at] == (double)i + (double)j / 4, "list %d: %g", (int)i, values[at]);
    }
    CHECK(start && start[rows] == at);
}

/* Checks every column of a file. The column name determines the expected values. */
static void check_columns(bj_parquet *parquet, int64_t rows, int columns) {
    CHECK_MSG(bj_parquet_rows(parquet) == rows, "%lld", (long long)bj_parquet_rows(parquet));
    CHECK_MSG(bj_parquet_column_count(parquet) == columns, "%d", bj_parquet_column_count(parquet));
    for (int c = 0; c < bj_parquet_column_count(parquet); c++) {
        const bj_parquet_column *column = bj_parquet_column_at(parquet, c);
        const char *name = column->name;
        const int nulls = strstr(name, "_null") != NULL;
        CHECK(column->readable && bj_parquet_find(parquet, name) == c);
        CHECK(column->is_list == begins(name, "list"));
        CHECK(column->is_unsigned == (begins(name, "u32") && column->type == BJ_PARQUET_INT32));
        if (column->is_list) {
            check_list(parquet, c);
        } else if (begins(name, "text") || begins(name, "track") || begins(name, "raw")) {
            CHECK(column->is_text == !begins(name, "raw"));
            check_texts(parquet, c, name, nulls);
        } else if (column->type == BJ_PARQUET_BOOLEAN) {
            check_integers(parquet, c, name, nulls);
        } else {
            if (column->type == BJ_PARQUET_INT32 || column->type == BJ_PARQUET_INT64)
                check_integers(parquet, c, name, nulls);
            check_doubles(parquet, c, name, nulls);
        }
    }
}

static const struct {
    const char *name;
    int rows, columns;
} good[] = {
    {"arrow_default", 300, 16},    {"arrow_v1_plain", 300, 16},   {"arrow_v2_zstd", 300, 16},
    {"arrow_format1", 300, 15},    {"arrow_deltas_v2", 300, 15},  {"arrow_splits_v1", 300, 15},
    {"arrow_fallback", 300, 16},   {"arrow_required", 300, 12},   {"arrow_empty", 0, 16},
    {"arrow_one_row", 1, 12},      {"arrow_items", 300, 1},       {"arrow_exact_lists", 300, 1},
    {"arrow_categories", 300, 2},  {"polars_default", 300, 15},   {"polars_small", 300, 15},
    {"duckdb_default", 300, 16},   {"duckdb_v2", 300, 16},        {"fastparquet_default", 300, 12},
    {"hand_gzip", 100, 1},         {"hand_dictionary", 100, 1},   {"hand_list_two_levels", 40, 1},
    {"hand_list_repeated", 40, 1}, {"hand_list_odd_names", 40, 1}};
enum { GOOD = sizeof good / sizeof *good };

static void test_good_files(bj_parquet *parquet) {
    bj_error err = {0};
    for (int f = 0; f < GOOD; f++) {
        const int failed = test_failed;
        CHECK_OK(bj_parquet_open(parquet, path_of(good[f].name), &err), err);
        check_columns(parquet, good[f].rows, good[f].columns);
        if (test_failed > failed) fprintf(stderr, "in %s\n", good[f].name);
    }
}

/* Tests that columns stay valid while other columns are read, and that texts stay valid even after
 * a failed read. */
static void test_columns_stay(bj_parquet *parquet) {
    const double *f64, *list;
    const bj_text *texts;
    const int64_t *start, *steps;
    bj_error err = {0};
    int column;
    CHECK_OK(bj_parquet_open(parquet, path_of("arrow_fallback"), &err), err);
    CHECK_OK(bj_parquet_require(&column, parquet, "text", &err), err);
    CHECK_OK(bj_parquet_read_text(&texts, NULL, parquet, column, &err), err);
    CHECK_OK(bj_parquet_require(&column, parquet, "f64", &err), err);
    CHECK_OK(bj_parquet_read_double(&f64, NULL, parquet, column, &err), err);
    CHECK(bj_parquet_read_int64(&steps, NULL, parquet, column, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "column 'f64': contains DOUBLE, expected integers");
    CHECK_OK(bj_parquet_require(&column, parquet, "list", &err), err);
    CHECK_OK(bj_parquet_read_double_list(&start, &list, parquet, column, &err), err);
    CHECK_OK(bj_parquet_require(&column, parquet, "step", &err), err);
    CHECK_OK(bj_parquet_read_int64(&steps, NULL, parquet, column, &err), err);
    for (int64_t i = 0; i < 300; i++) {
        char want[32];
        const size_t size = text(want, "text", i);
        CHECK(texts[i].size == size && !memcmp(texts[i].data, want, size));
        CHECK(f64[i] == number("f64", i) && steps[i] == i % 110);
        CHECK(start[i + 1] - start[i] == i % 4);
    }
}

/* ------------------------------------------------------------------------------------ messages */

static void test_names(bj_parquet *parquet) {
    bj_error err = {0};
    int column = 7;
    CHECK_OK(bj_parquet_open(parquet, path_of("hand_gzip"), &err), err);
    CHECK(!strcmp(bj_parquet_created_by(parquet), "bytes by hand"));
    CHECK(!strcmp(bj_parquet_metadata(parquet, "made by"), "hand"));
    CHECK(!bj_parquet_metadata(parquet, "made"));
    CHECK_OK(bj_parquet_open(parquet, path_of("arrow_default"), &err), err);
    CHECK_CONTAINS(bj_parquet_created_by(parquet), "parquet-cpp-arrow");
    CHECK(bj_parquet_find(parquet, "i33") == -1);
    CHECK(bj_parquet_require(&column, parquet, "i33", &err) == BJ_EFORMAT && column == -1);
    CHECK_CONTAINS(err.message, "arrow_default.parquet: no column 'i33'; similar columns: 'i32', "
                                "'u32', 'i64'");
    const double *values;
    CHECK(bj_parquet_read_double(&values, NULL, parquet, 99, &err) == BJ_EARG && !values);
    CHECK(bj_parquet_read_double(&values, NULL, parquet, -1, &err) == BJ_EARG && !values);
    CHECK(bj_parquet_read_double(&values, NULL, parquet, bj_parquet_find(parquet, "list"), &err) ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "column 'list': contains lists, expected one value per row");
    CHECK(bj_parquet_read_double(&values, NULL, parquet, bj_parquet_find(parquet, "text"), &err) ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "column 'text': contains BYTE_ARRAY, expected numbers");
    const int64_t *start;
    CHECK(bj_parquet_read_double_list(&start, &values, parquet, bj_parquet_find(parquet, "f64"),
                                      &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "column 'f64': contains one value per row, expected lists");

    CHECK(bj_parquet_open(parquet, path_of("no such file"), &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "no such file");
    CHECK(bj_parquet_rows(parquet) == 0 && bj_parquet_column_count(parquet) == 0);
    CHECK(bj_parquet_read_double(&values, NULL, parquet, 0, NULL) == BJ_EARG);
    CHECK(bj_parquet_open(parquet, "tests/parquet/make_files.py", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "not a Parquet file");
}

/* Tests that every column of hand_refused fails with its own message, and that other columns can be
 * read. */
static void test_refused(bj_parquet *parquet) {
    static const struct {
        const char *name;
        bj_status status;
        const char *message;
    } cases[] = {
        {"lzo", BJ_EVERSION, "compression 3 (LZO) is not supported"},
        {"codec_99", BJ_EVERSION, "compression 99 (an unknown codec) is not supported"},
        {"encoding_77", BJ_EVERSION,
         "encoding 77 (an unknown encoding) of numbers is not supported"},
        {"delta_double", BJ_EVERSION, "encoding 5 (DELTA_BINARY_PACKED) of numbers is not"},
        {"packed_levels", BJ_EVERSION, "encoding 4 (BIT_PACKED) of definition levels is not"},
        {"encrypted", BJ_EVERSION, "encryption is not supported"},
        {"elsewhere", BJ_EVERSION, "data in another file is not supported"},
        {"group", BJ_EVERSION, "a group of fields is not supported"},
        {"deep", BJ_EVERSION, "a list of lists or of groups is not supported"},
        {"type_12", BJ_EVERSION, "an unknown type is not supported"},
        {"other_type", BJ_EFORMAT, "row group 0 has type 2, but the schema has 5"},
        {"no_dictionary", BJ_EFORMAT, "dictionary indices come before any dictionary"},
        {"bad_index", BJ_EFORMAT, "dictionary index 8, but the dictionary has 8 entries"},
        {"too_few", BJ_EFORMAT, "but its chunk has only 56 more"},
        {"pages_end", BJ_EFORMAT, "its pages end 4 values before the end of the chunk"},
        {"bad?name", BJ_EFORMAT, "plain values end too early"},
        {"null", BJ_EFORMAT, "row 5 is null, expected a value"},
        {"u64", BJ_EFORMAT, "an unsigned number above 2^63 - 1 is not supported"},
        {"two_dictionaries", BJ_EFORMAT, "a second dictionary"},
        {"short_dictionary", BJ_EFORMAT, "the dictionary ends too early"},
        {"long_page", BJ_EFORMAT, "has 16 values, but its chunk has only 8 more"},
        {"more_values", BJ_EFORMAT, "row group 0 has 16 values, expected 8"},
        {"long_chunk", BJ_EFORMAT, "row group 0 declares 1000000 bytes at "},
        {"long_streams", BJ_EFORMAT,
         "the size of the split streams differs from the size of the values"},
        {"more_deltas", BJ_EFORMAT,
         "the number of differences does not match the number of values"},
        {"long_text", BJ_EFORMAT, "a string exceeds its page"},
        {"keeps_more", BJ_EFORMAT, "the prefix of a string is longer than the previous string"},
        {"decimal", BJ_OK, ""},
        {"f64", BJ_OK, ""}};
    bj_error err = {0};
    CHECK_OK(bj_parquet_open(parquet, path_of("hand_refused"), &err), err);
    CHECK(bj_parquet_column_count(parquet) == sizeof cases / sizeof *cases);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *values = NULL;
        const int64_t *integers = NULL;
        const bj_text *texts = NULL;
        const int column = bj_parquet_find(parquet, cases[i].name);
        err = (bj_error){0};
        CHECK_MSG(column == (int)i, "%s is column %d", cases[i].name, column);
        const bj_parquet_type type = bj_parquet_column_at(parquet, column)->type;
        const bj_status status = !strcmp(cases[i].name, "u64")
                                     ? bj_parquet_read_int64(&integers, NULL, parquet, column, &err)
                                 : type == BJ_PARQUET_BYTE_ARRAY
                                     ? bj_parquet_read_text(&texts, NULL, parquet, column, &err)
                                     : bj_parquet_read_double(&values, NULL, parquet, column, &err);
        CHECK_MSG(status == cases[i].status, "%s: %d, %s", cases[i].name, status, err.message);
        CHECK_CONTAINS(err.message, cases[i].message);
        if (status == BJ_OK) continue;
        CHECK_CONTAINS(err.message, "hand_refused.parquet: column '");
        CHECK_CONTAINS(err.message, cases[i].name);
        CHECK(!values && !integers && !texts && err.code == status);
    }
    /* A failed read releases its memory. Otherwise this loop would reach the memory limit. */
    const int bad_index = bj_parquet_find(parquet, "bad_index");
    for (int i = 0; i < 100000; i++) {
        const double *values;
        if (bj_parquet_read_double(&values, NULL, parquet, bad_index, &err) == BJ_OK) break;
    }
    CHECK_CONTAINS(err.message, "dictionary index 8");
    /* Values above INT64_MAX can still be read as double. */
    const double *values;
    const int u64 = bj_parquet_find(parquet, "u64");
    CHECK_OK(bj_parquet_read_double(&values, NULL, parquet, u64, &err), err);
    CHECK(values && values[7] == 18446744073709551615.0);
    const int decimal = bj_parquet_find(parquet, "decimal");
    CHECK_OK(bj_parquet_read_double(&values, NULL, parquet, decimal, &err), err);
    CHECK(values && values[0] == -3 && values[4] == 1 && values[7] == 4);
    const int64_t *integers;
    CHECK(bj_parquet_read_int64(&integers, NULL, parquet, decimal, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "column 'decimal': contains decimals in INT32, expected integers");
}

static void test_bad_lists(bj_parquet *parquet) {
    static const struct {
        const char *name, *message;
    } cases[] = {{"goes_on", "a value continues a list that has not started or is empty"},
                 {"after_empty", "a value continues a list that has not started or is empty"},
                 {"more_rows", "has more lists than rows; 4 rows were read"},
                 {"fewer_rows", "row group 0 has 3 lists, expected 4"},
                 {"null_list", "row 2: the list is null, expected a value"},
                 {"null_element", "row 2: an element is null, expected a value"}};
    const int64_t *start;
    const double *values;
    bj_error err = {0};
    CHECK_OK(bj_parquet_open(parquet, path_of("hand_bad_lists"), &err), err);
    for (int i = 0; i < 6; i++) {
        CHECK(bj_parquet_find(parquet, cases[i].name) == i);
        CHECK(bj_parquet_read_double_list(&start, &values, parquet, i, &err) == BJ_EFORMAT);
        CHECK(!start && !values);
        CHECK_CONTAINS(err.message, cases[i].message);
    }
    CHECK_OK(bj_parquet_read_double_list(&start, &values, parquet, 6, &err), err);
    CHECK(start && start[0] == 0 && start[1] == 0 && start[2] == 1 && start[3] == 3);
    CHECK(start && start[4] == 6 && values[5] == 1);
}

/* ------------------------------------------------------------------------------- damaged files */

/* Reads every column with every read function. Returns the number of columns that could be read. */
static int read_everything(bj_parquet *parquet, bj_error *err) {
    int read = 0;
    for (int c = 0; c < bj_parquet_column_count(parquet); c++) {
        const int64_t *integers, *start;
        const double *doubles;
        const bj_text *texts;
        const int32_t *codes;
        const uint8_t *valid;
        int count, ok = 0;
        bj_status status[5];
        status[0] = bj_parquet_read_int64(&integers, &valid, parquet, c, err);
        status[1] = bj_parquet_read_double(&doubles, &valid, parquet, c, err);
        status[2] = bj_parquet_read_text(&texts, &valid, parquet, c, err);
        status[3] = bj_parquet_read_codes(&codes, &texts, &count, parquet, c, err);
        status[4] = bj_parquet_read_double_list(&start, &doubles, parquet, c, err);
        for (int i = 0; i < 5; i++) {
            ok |= status[i] == BJ_OK;
            CHECK_MSG(status[i] == BJ_OK || status[i] == BJ_EFORMAT || status[i] == BJ_EVERSION,
                      "%d: %s", status[i], err->message);
        }
        read += ok;
    }
    return read;
}

/* Like read_everything, for a buffer of exact size. Returns -1 if it cannot be opened. */
static int read_bytes(bj_parquet *parquet, const char *bytes, size_t size, bj_error *err) {
    char *exact = malloc(size ? size : 1);
    if (!exact) return -1;
    memcpy(exact, bytes, size);
    const bj_status status = bj_parquet_open_memory(parquet, exact, size, "bytes", err);
    CHECK(status == BJ_OK || status == BJ_EFORMAT || status == BJ_EVERSION);
    CHECK(status == BJ_OK || !strncmp(err->message, "bytes: ", 7));
    const int read = status == BJ_OK ? read_everything(parquet, err) : -1;
    bj_parquet_close(parquet);
    free(exact);
    return read;
}

static const char *const damaged[] = {"arrow_one_row", "hand_gzip", "hand_dictionary", "hand_v2",
                                      "hand_list_two_levels"};
enum { DAMAGED = sizeof damaged / sizeof *damaged };

static void test_truncated(bj_parquet *parquet) {
    for (int f = 0; f < DAMAGED; f++) {
        bj_error err = {0};
        char *bytes;
        size_t size;
        CHECK_OK(bj_file_read(&bytes, &size, path_of(damaged[f]), 1 << 20, &err), err);
        for (size_t n = 0; n < size; n++)
            CHECK_MSG(read_bytes(parquet, bytes, n, &err) == -1, "%s of %zu bytes", damaged[f], n);
        CHECK(read_bytes(parquet, bytes, size, &err) > 0);
        /* Remove bytes before the footer, but keep the start and the end. */
        for (size_t n = 4; n + 200 < size; n += 7) {
            memmove(bytes + n, bytes + n + 1, size - n - 1);
            size--;
            read_bytes(parquet, bytes, size, &err);
        }
        bj_free(bytes);
    }
}

/* Writes large numbers of every kind to every position of a file, so that every length, count and
 * offset becomes wrong at some point. */
static void test_blown_up(bj_parquet *parquet) {
    static const struct {
        const char *bytes;
        size_t size;
    } large[] = {{"\xff", 1},
                 {"\x7f", 1},
                 {"\xff\xff\xff\x7f", 4},     /* u32, varint of 28 bits */
                 {"\xfe\xff\xff\xff\x0f", 5}, /* zigzag varint, 2^31 - 1 */
                 {"\xff\xff\xff\xff\xff\xff\xff\xff", 8},
                 {"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10}}; /* 2^63 - 1 */
    int refused = 0, survived = 0;
    for (int f = 0; f < DAMAGED; f++) {
        bj_error err = {0};
        char *bytes, *copy;
        size_t size;
        CHECK_OK(bj_file_read(&bytes, &size, path_of(damaged[f]), 1 << 20, &err), err);
        copy = malloc(size + 16);
        if (!copy) break;
        for (size_t at = 0; at < size; at++)
            for (size_t l = 0; l < sizeof large / sizeof *large; l++) {
                /* Replace one byte, so that the following bytes keep their meaning, and repair the
                 * footer length. In every fourth case, overwrite as many bytes as the number
                 * has. */
                const size_t gone = (at + l) % 4 ? 1 : large[l].size;
                if (at + gone > size) continue;
                memcpy(copy, bytes, at);
                memcpy(copy + at, large[l].bytes, large[l].size);
                memcpy(copy + at + large[l].size, bytes + at + gone, size - at - gone);
                const size_t grown = size - gone + large[l].size;
                const unsigned footer =
                    (unsigned char)bytes[size - 8] | (unsigned)(unsigned char)bytes[size - 7] << 8;
                if (at < size - 8 && at >= size - 8 - footer) {
                    const size_t now = footer + large[l].size - gone;
                    copy[grown - 8] = (char)now;
                    copy[grown - 7] = (char)(now >> 8);
                }
                const int read = read_bytes(parquet, copy, grown, &err);
                refused += read < 0;
                survived += read > 0;
            }
        free(copy);
        bj_free(bytes);
    }
    CHECK_MSG(refused > 5000 && survived > 5000, "%d refused, %d survived", refused, survived);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Tests that small files with huge declared sizes are rejected by a size check, before any
 * allocation. */
static void test_lies(void) {
    static const struct {
        const char *name, *message;
    } lies[] = {{"lie_rows", "declares 1152921504606846976 x 8 bytes"},
                {"lie_list", "declares 1152921504606846984 x 4 bytes"},
                {"lie_run", "declares 2147483647 x 8 bytes"},
                {"lie_page_none", "(no compression) cannot unpack to 2147483647"},
                {"lie_page_snappy", "(snappy) cannot unpack to 2147483647"},
                {"lie_page_gzip", "(gzip) cannot unpack to 2147483647"},
                {"lie_page_zstd", "(zstd) cannot unpack to 2147483647"},
                {"lie_dictionary", "the dictionary ends too early"},
                {"lie_delta", "a block of differences ends too early"},
                {"lie_prefixes", "strings are longer than the file size allows"}};
    bj_parquet *parquet = NULL;
    bj_error err = {0};
    CHECK_OK(bj_parquet_create(&parquet, &err), err);
    for (size_t i = 0; parquet && i < sizeof lies / sizeof *lies; i++) {
        CHECK_OK(bj_parquet_open(parquet, path_of(lies[i].name), &err), err);
        const bj_parquet_column column = *bj_parquet_column_at(parquet, 0);
        const double begin = seconds();
        for (int round = 0; round < 20; round++) {
            const double *doubles;
            const int64_t *integers;
            const bj_text *texts;
            bj_status status;
            if (column.is_list)
                status = bj_parquet_read_double_list(&integers, &doubles, parquet, 0, &err);
            else if (column.type == BJ_PARQUET_BYTE_ARRAY)
                status = bj_parquet_read_text(&texts, NULL, parquet, 0, &err);
            else status = bj_parquet_read_double(&doubles, NULL, parquet, 0, &err);
            CHECK_MSG(status == BJ_EFORMAT, "%s: %d", lies[i].name, status);
        }
        /* Each read takes microseconds. The limit allows for sanitizers on a busy machine. */
        CHECK_MSG(seconds() - begin < 0.5, "%s: 20 times in %g s", lies[i].name, seconds() - begin);
        CHECK_CONTAINS(err.message, lies[i].message);
        CHECK_CONTAINS(err.message, lies[i].name);
    }
    CHECK(bj_parquet_open(parquet, path_of("lie_file_rows"), &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "the row groups have 8 rows, but the file header has 9");
    CHECK(bj_parquet_rows(parquet) == 0 && bj_parquet_column_count(parquet) == 0);
    CHECK(bj_parquet_open(parquet, path_of("lie_columns"), &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "row group 0 has 41 columns, but the schema has 1");
    bj_parquet_free(parquet);
}

/* -------------------------------------------------------------------------------------- memory */

static void test_allocations(void) {
    const long live = bj_alloc_live();
    bj_error err = {0};
    int failures = 0;
    for (long n = 0;; n++) {
        bj_parquet *parquet = NULL;
        bj_status status = BJ_OK;
        bj_alloc_fail_after(n);
        status = bj_parquet_create(&parquet, &err);
        static const char *const names[] = {"arrow_format1", "arrow_fallback", "arrow_v2_zstd"};
        for (int f = 0; f < 3 && status == BJ_OK; f++) {
            status = bj_parquet_open(parquet, path_of(names[f]), &err);
            const int count = status == BJ_OK ? bj_parquet_column_count(parquet) : 0;
            for (int c = 0; c < count && status == BJ_OK; c++) {
                const bj_parquet_column *column = bj_parquet_column_at(parquet, c);
                const double *doubles;
                const int64_t *integers;
                const bj_text *texts;
                const uint8_t *valid;
                if (column->is_list)
                    status = bj_parquet_read_double_list(&integers, &doubles, parquet, c, &err);
                else if (column->type == BJ_PARQUET_BOOLEAN)
                    status = bj_parquet_read_int64(&integers, &valid, parquet, c, &err);
                else if (column->type >= BJ_PARQUET_BYTE_ARRAY)
                    status = bj_parquet_read_text(&texts, &valid, parquet, c, &err);
                else status = bj_parquet_read_double(&doubles, &valid, parquet, c, &err);
            }
        }
        bj_alloc_fail_after(-1);
        bj_parquet_free(parquet);
        CHECK_MSG(bj_alloc_live() == live, "%ld blocks left behind", bj_alloc_live() - live);
        if (status == BJ_OK) break;
        CHECK_MSG(status == BJ_ENOMEM, "%d: %s", status, err.message);
        CHECK_CONTAINS(err.message, "out of memory");
        failures++;
        if (n > 1000) break;
    }
    CHECK_MSG(failures > 4 && failures < 1000, "%d", failures);
}

static void test_warm_reader_allocates_nothing(bj_parquet *parquet) {
    long before = 0;
    for (int round = 0; round < 4; round++) {
        if (round == 2) before = bj_alloc_count();
        for (int f = 0; f < GOOD; f++) {
            bj_error err = {0};
            CHECK_OK(bj_parquet_open(parquet, path_of(good[f].name), &err), err);
            CHECK(read_everything(parquet, &err) == good[f].columns);
        }
    }
    CHECK_MSG(bj_alloc_count() == before, "%ld allocations", bj_alloc_count() - before);
}

int main(void) {
    bj_parquet *parquet = NULL;
    bj_error err = {0};
    const long live = bj_alloc_live();
    CHECK_OK(bj_parquet_create(&parquet, &err), err);
    if (parquet) {
        test_good_files(parquet);
        test_columns_stay(parquet);
        test_names(parquet);
        test_refused(parquet);
        test_bad_lists(parquet);
        test_truncated(parquet);
        test_blown_up(parquet);
        test_warm_reader_allocates_nothing(parquet);
    }
    bj_parquet_free(parquet);
    bj_parquet_free(NULL);
    test_lies();
    test_allocations();
    CHECK_MSG(bj_alloc_live() == live, "%ld blocks left behind", bj_alloc_live() - live);
    return test_report("reader");
}
