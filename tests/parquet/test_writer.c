/* test_writer.c - tests that our reader can read the files written by our writer.
 *
 * With arguments, for tests/parquet/peer_writer.py:
 *   write PATH SEED snappy|plain    writes random tables and prints them, one value per line
 *   scenario PATH ID                writes a small scenario with the official columns
 *   speed PATH FILES                writes scenario files and prints the rate
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "parquet/encode.h"
#include "parquet/writer.h"
#include "support/test.h"

static char folder[] = "/tmp/test_writer.XXXXXX";
static char path[64];

/* ------------------------------------------------------------------------------- random tables */

enum { COLUMNS = 8 };

static const bj_parquet_field columns[COLUMNS] = {
    {"flag", BJ_PARQUET_BOOLEAN, 0, 0},         {"number", BJ_PARQUET_INT64, 0, 0},
    {"code", BJ_PARQUET_INT64, 0, 1},           {"x", BJ_PARQUET_DOUBLE, 0, 0},
    {"level", BJ_PARQUET_DOUBLE, 0, 1},         {"name \xc3\xa9", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"free text", BJ_PARQUET_BYTE_ARRAY, 0, 0}, {"points", BJ_PARQUET_DOUBLE, 1, 0}};

typedef struct table {
    int64_t rows;
    uint8_t *flag;
    int64_t *number, *code, *start;
    double *x, *level, *points;
    bj_text *name, *text;
    char *pool;
} table;

static void table_free(table *t) {
    free(t->flag);
    free(t->number);
    free(t->code);
    free(t->start);
    free(t->x);
    free(t->level);
    free(t->points);
    free(t->name);
    free(t->text);
    free(t->pool);
}

static int64_t below(bj_rng *rng, int64_t n) { return (int64_t)(bj_rng_next(rng) % (uint64_t)n); }

/* Generates a table with `kinds` distinct names and codes, and lists of up to `longest`
 * elements. */
static table make_table(bj_rng *rng, int64_t rows, int64_t kinds, int64_t longest) {
    const size_t n = (size_t)rows + 1;
    table t = {.rows = rows};
    t.flag = calloc(n, 1);
    t.number = calloc(n, 8);
    t.code = calloc(n, 8);
    t.start = calloc(n, 8);
    t.x = calloc(n, 8);
    t.level = calloc(n, 8);
    t.points = calloc(n * (size_t)longest + 1, 8);
    t.name = calloc(n, sizeof *t.name);
    t.text = calloc(n, sizeof *t.text);
    t.pool = calloc(n, 32);
    for (int64_t r = 0, stay = 0; r < rows; r++) {
        char *name = t.pool + 32 * r, *text = name + 16;
        if (stay-- <= 0) stay = below(rng, 20);
        t.flag[r] = (uint8_t)(below(rng, 3) == 0 ? 7 : 0);
        t.number[r] = (int64_t)bj_rng_next(rng);
        t.code[r] = stay && r ? t.code[r - 1] : below(rng, kinds) - kinds / 2;
        t.x[r] = bj_rng_normal(rng) * 1e3;
        t.level[r] = r % 97 == 5 ? -0.0 : (double)t.code[r] / 8;
        snprintf(name, 16, "k%lld", (long long)t.code[r]);
        t.name[r] = (bj_text){name, t.code[r] ? strlen(name) : 0};
        snprintf(text, 16, "%llx", (unsigned long long)t.number[r] >> below(rng, 63));
        t.text[r] = (bj_text){text, strlen(text)};
        const int64_t size = below(rng, longest + 1);
        t.start[r + 1] = t.start[r] + size;
        for (int64_t i = t.start[r]; i < t.start[r + 1]; i++)
            t.points[i] = bj_rng_normal(rng) * 1e-3 + 1e4;
    }
    return t;
}

static bj_status put_rows(bj_parquet_writer *writer, const table *t, bj_error *err) {
    const bj_parquet_data data[COLUMNS] = {{.booleans = t->flag}, {.integers = t->number},
                                           {.integers = t->code}, {.doubles = t->x},
                                           {.doubles = t->level}, {.texts = t->name},
                                           {.texts = t->text},    {.doubles = t->points}};
    const int64_t *const starts[COLUMNS] = {[7] = t->start};
    return bj_parquet_writer_rows(writer, t->rows, data, starts, err);
}

static int same_text(bj_text a, bj_text b) {
    return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

/* Checks that the file contains the concatenated tables. */
static void check_file(bj_parquet *reader, const char *where, const table *tables, int count) {
    bj_error err = {0};
    const int64_t *flag, *number, *code, *start;
    const double *x, *level, *points;
    const bj_text *name, *text;
    int64_t rows = 0, wrong = 0;
    for (int i = 0; i < count; i++) rows += tables[i].rows;
    CHECK_OK(bj_parquet_open(reader, where, &err), err);
    CHECK(bj_parquet_rows(reader) == rows);
    CHECK(bj_parquet_column_count(reader) == COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        const bj_parquet_column *c = bj_parquet_column_at(reader, i);
        CHECK(!strcmp(c->name, columns[i].name) && c->type == columns[i].type && c->readable);
        CHECK(c->is_list == columns[i].is_list);
        CHECK(c->is_text == (c->type == BJ_PARQUET_BYTE_ARRAY));
    }
    CHECK_OK(bj_parquet_read_int64(&flag, NULL, reader, 0, &err), err);
    CHECK_OK(bj_parquet_read_int64(&number, NULL, reader, 1, &err), err);
    CHECK_OK(bj_parquet_read_int64(&code, NULL, reader, 2, &err), err);
    CHECK_OK(bj_parquet_read_double(&x, NULL, reader, 3, &err), err);
    CHECK_OK(bj_parquet_read_double(&level, NULL, reader, 4, &err), err);
    CHECK_OK(bj_parquet_read_text(&name, NULL, reader, 5, &err), err);
    CHECK_OK(bj_parquet_read_text(&text, NULL, reader, 6, &err), err);
    CHECK_OK(bj_parquet_read_double_list(&start, &points, reader, 7, &err), err);
    if (test_failed) return;
    for (int64_t i = 0, r = 0, p = 0; i < count; i++)
        for (int64_t k = 0; k < tables[i].rows; k++, r++) {
            const table *t = &tables[i];
            wrong += flag[r] != (t->flag[k] != 0) || number[r] != t->number[k] ||
                     code[r] != t->code[k] || x[r] != t->x[k] || level[r] != t->level[k] ||
                     !signbit(level[r]) != !signbit(t->level[k]) ||
                     !same_text(name[r], t->name[k]) || !same_text(text[r], t->text[k]);
            wrong += start[r] != p;
            for (int64_t j = t->start[k]; j < t->start[k + 1]; j++)
                wrong += points[p++] != t->points[j];
            wrong += start[r + 1] != p;
        }
    CHECK_MSG(wrong == 0, "%lld rows differ", (long long)wrong);
}

/* ------------------------------------------------------------------------------------ round trip
 */

/* Tests sizes around the page limit, few and many distinct values, several row groups and both
 * codecs, with one writer and one reader. */
static void test_round_trip(void) {
    static const struct {
        int64_t rows, kinds, longest;
    } cases[] = {{1, 1, 1},    {2, 1, 3},      {7, 3, 2},      {8, 2, 60},        {9, 9, 1},
                 {300, 2, 60}, {1000, 900, 5}, {4000, 257, 0}, {20000, 65537, 8}, {150000, 5, 3}};
    bj_rng rng = bj_rng_seed(1);
    bj_error err = {0};
    for (int codec = 0; codec < 2; codec++) {
        bj_parquet_writer *writer = NULL;
        bj_parquet *reader = NULL;
        CHECK_OK(bj_parquet_writer_create(&writer, columns, COLUMNS, (bj_parquet_codec)codec, &err),
                 err);
        CHECK_OK(bj_parquet_create(&reader, &err), err);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            table t[2];
            t[0] = make_table(&rng, cases[i].rows, cases[i].kinds, cases[i].longest);
            t[1] = make_table(&rng, 1 + cases[i].rows / 3, cases[i].kinds, 1 + cases[i].longest);
            CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
            CHECK_OK(put_rows(writer, &t[0], &err), err);
            if (i % 2) CHECK_OK(put_rows(writer, &t[1], &err), err);
            CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
            check_file(reader, path, t, i % 2 ? 2 : 1);
            table_free(&t[0]);
            table_free(&t[1]);
        }
        bj_parquet_writer_free(writer);
        bj_parquet_free(reader);
    }
}

/* Tests texts that start at the same address: twenty prefixes of one text, three times each. */
static void test_prefixes(void) {
    enum { SIZES = 20, ROWS = 3 * SIZES };
    static const char letters[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const bj_parquet_field field = {"text", BJ_PARQUET_BYTE_ARRAY, 0, 1};
    bj_text texts[ROWS];
    const bj_parquet_data data = {.texts = texts};
    const bj_text *seen = NULL;
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    bj_parquet *reader = NULL;
    for (int r = 0; r < ROWS; r++) texts[r] = (bj_text){letters, (size_t)(r * 7 % SIZES)};
    CHECK_OK(bj_parquet_writer_create(&writer, &field, 1, BJ_PARQUET_SNAPPY, &err), err);
    CHECK_OK(bj_parquet_create(&reader, &err), err);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK_OK(bj_parquet_writer_rows(writer, ROWS, &data, NULL, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK_OK(bj_parquet_open(reader, path, &err), err);
    CHECK_OK(bj_parquet_read_text(&seen, NULL, reader, 0, &err), err);
    for (int r = 0; seen && r < ROWS; r++) CHECK(same_text(seen[r], texts[r]));
    bj_parquet_writer_free(writer);
    bj_parquet_free(reader);
}

/* Tests that a page ends after a megabyte of values. The page size is the second number in the page
 * header. */
static void test_page_size(void) {
    enum { ROWS = 200000 };
    const bj_parquet_field field = {"n", BJ_PARQUET_INT64, 0, 0};
    bj_parquet_writer *writer = NULL;
    bj_error err = {0};
    char *file = NULL;
    size_t size = 0;
    int64_t *numbers = calloc(ROWS, sizeof *numbers);
    const bj_parquet_data data = {.integers = numbers};
    CHECK_OK(bj_parquet_writer_create(&writer, &field, 1, BJ_PARQUET_PLAIN_PAGES, &err), err);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK_OK(bj_parquet_writer_rows(writer, ROWS, &data, NULL, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK_OK(bj_file_read(&file, &size, path, 1 << 22, &err), err);
    uint64_t zigzag = 0;
    for (size_t i = 7, bit = 0; file && i < size; i++, bit += 7) {
        zigzag |= (uint64_t)(file[i] & 0x7f) << bit;
        if (!(file[i] & 0x80)) break;
    }
    CHECK_MSG(zigzag / 2 > 1 << 20 && zigzag / 2 < (1 << 20) + 64, "%llu bytes",
              (unsigned long long)zigzag / 2);
    bj_free(file);
    free(numbers);
    bj_parquet_writer_free(writer);
}

static void test_no_rows(void) {
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    bj_parquet *reader = NULL;
    CHECK_OK(bj_parquet_writer_create(&writer, columns, COLUMNS, BJ_PARQUET_SNAPPY, &err), err);
    CHECK_OK(bj_parquet_create(&reader, &err), err);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK_OK(bj_parquet_writer_rows(writer, 0, NULL, NULL, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK_OK(bj_parquet_open(reader, path, &err), err);
    CHECK(bj_parquet_rows(reader) == 0 && bj_parquet_column_count(reader) == COLUMNS);
    bj_parquet_writer_free(writer);
    bj_parquet_free(reader);
}

/* ------------------------------------------------------------------------------------ the bytes */

/* Tests every byte of a file with one column and two rows. */
static void test_bytes(void) {
    static const unsigned char expected[] = {
        'P', 'A', 'R', '1',
        /* page header: data page, 22 bytes, uncompressed */
        0x15, 0, 0x15, 44, 0x15, 44,
        /* 2 values, PLAIN, levels RLE and RLE */
        0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
        /* definition levels: 2 bytes, one run of two ones */
        2, 0, 0, 0, 4, 1,
        /* the values */
        5, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        /* footer: version 2; schema of two elements: the root with one child, and the column */
        0x15, 4, 0x19, 0x2c, 0x48, 6, 's', 'c', 'h', 'e', 'm', 'a', 0x15, 2, 0, 0x15, 4, 0x25, 2,
        0x18, 1, 'n', 0,
        /* 2 rows; one row group of one column */
        0x16, 4, 0x19, 0x1c, 0x19, 0x1c, 0x26, 0, 0x1c, 0x15, 4, 0x19, 0x25, 0, 6, 0x19, 0x18, 1,
        'n', 0x15, 0, 0x16, 4, 0x16, 78, 0x16, 78, 0x26, 8, 0, 0,
        /* bytes, rows, offset and stored bytes of the row group */
        0x16, 78, 0x16, 4, 0x26, 8, 0x16, 78, 0};
    const bj_parquet_field field = {"n", BJ_PARQUET_INT64, 0, 0};
    const int64_t numbers[2] = {5, -1};
    const bj_parquet_data data = {.integers = numbers};
    bj_parquet_writer *writer = NULL;
    bj_error err = {0};
    char *file = NULL;
    size_t size = 0, at = 0;
    CHECK_OK(bj_parquet_writer_create(&writer, &field, 1, BJ_PARQUET_PLAIN_PAGES, &err), err);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK_OK(bj_parquet_writer_rows(writer, 2, &data, NULL, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK_OK(bj_file_read(&file, &size, path, 1 << 20, &err), err);
    while (at < sizeof expected && at < size && (unsigned char)file[at] == expected[at]) at++;
    CHECK_MSG(at == sizeof expected, "byte %zu is %d, expected %d", at,
              at < size ? (unsigned char)file[at] : -1, expected[at < sizeof expected ? at : 0]);
    CHECK(size > 8 && !memcmp(file + size - 4, "PAR1", 4));
    bj_free(file);
    bj_parquet_writer_free(writer);
}

static void check_hybrid(const int32_t *values, size_t count, int width,
                         const unsigned char *expected, size_t size) {
    bj_bytes out = {0};
    bj_hybrid_values(&out, values, count, width);
    CHECK_MSG(out.size == size && (!size || !memcmp(out.data, expected, size)),
              "%zu bytes, expected %zu", out.size, size);
    bj_bytes_free(&out);
}

static void test_hybrid(void) {
    static const int32_t same[20] = {0};
    static const int32_t eight[8] = {0, 1, 2, 3, 4, 5, 6, 7}; /* the example in the specification */
    /* Five of the ten sevens fill the group that starts with three literals. The remaining five are
     * too few for a run, so they are packed with the following values. */
    static const int32_t mixed[13] = {1, 2, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    static const int32_t lent[16] = {1, 2, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    check_hybrid(same, 20, 1, (const unsigned char[]){40, 0}, 2);
    check_hybrid(same, 7, 9, (const unsigned char[]){3, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 10);
    check_hybrid(same, 8, 9, (const unsigned char[]){16, 0, 0}, 3);
    check_hybrid(eight, 8, 3, (const unsigned char[]){3, 0x88, 0xc6, 0xfa}, 4);
    check_hybrid(mixed, 13, 3, (const unsigned char[]){5, 0xd1, 0xfe, 0xff, 0xff, 0x7f, 0}, 7);
    check_hybrid(lent, 16, 3, (const unsigned char[]){3, 0xd1, 0xfe, 0xff, 16, 7}, 6);
    check_hybrid(same, 0, 3, NULL, 0);
}

static void test_same_bytes(void) {
    bj_rng rng = bj_rng_seed(5);
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    char *first = NULL, *second = NULL;
    size_t first_size = 0, second_size = 0;
    table t = make_table(&rng, 5000, 40, 6), other = make_table(&rng, 9000, 4000, 9);
    CHECK_OK(bj_parquet_writer_create(&writer, columns, COLUMNS, BJ_PARQUET_SNAPPY, &err), err);
    for (int pass = 0; pass < 2; pass++) { /* the second pass comes after another file, which must
                                              not affect the result */
        CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
        CHECK_OK(put_rows(writer, &t, &err), err);
        CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
        CHECK_OK(bj_file_read(pass ? &second : &first, pass ? &second_size : &first_size, path,
                              1 << 26, &err),
                 err);
        CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
        CHECK_OK(put_rows(writer, &other, &err), err);
        CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    }
    CHECK(first_size == second_size && !memcmp(first, second, first_size));
    /* Buffers are reused. Only the file itself (its path twice, and its writer) is allocated
     * again. */
    const long before = bj_alloc_count();
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK_OK(put_rows(writer, &t, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK_MSG(bj_alloc_count() - before <= 3, "%ld allocations", bj_alloc_count() - before);
    bj_free(first);
    bj_free(second);
    table_free(&t);
    table_free(&other);
    bj_parquet_writer_free(writer);
}

/* -------------------------------------------------------------------------------- rejected input
 */

static void refuse_fields(const bj_parquet_field *fields, int count, const char *part) {
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    CHECK(bj_parquet_writer_create(&writer, fields, count, BJ_PARQUET_SNAPPY, &err) == BJ_EARG);
    CHECK(writer == NULL);
    CHECK_CONTAINS(err.message, part);
}

static void test_refusals(void) {
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    refuse_fields((const bj_parquet_field[]){{"a", BJ_PARQUET_FLOAT, 0, 0}}, 1, "'a': type 4");
    refuse_fields((const bj_parquet_field[]){{"a", BJ_PARQUET_INT64, 1, 0}}, 1, "only doubles");
    refuse_fields((const bj_parquet_field[]){{"", BJ_PARQUET_INT64, 0, 0}}, 1, "column 0");
    refuse_fields(
        (const bj_parquet_field[]){{"a", BJ_PARQUET_INT64, 0, 0}, {"a", BJ_PARQUET_DOUBLE, 0, 0}},
        2, "two columns");
    refuse_fields(NULL, 0, "0 columns");

    const bj_parquet_field fields[2] = {{"n", BJ_PARQUET_INT64, 0, 0},
                                        {"l", BJ_PARQUET_DOUBLE, 1, 0}};
    const int64_t n[2] = {1, 2}, start[3] = {0, 1, 2}, back[3] = {0, 2, 1};
    const double d[2] = {1, 2};
    const bj_parquet_data data[2] = {{.integers = n}, {.doubles = d}}, holes[2] = {{.integers = n}};
    const int64_t *const right[2] = {NULL, start}, *const wrong[2] = {start, start},
                         *const falling[2] = {NULL, back};
    CHECK_OK(bj_parquet_writer_create(&writer, fields, 2, BJ_PARQUET_SNAPPY, &err), err);
    CHECK(bj_parquet_writer_rows(writer, 2, data, right, &err) == BJ_EARG);
    CHECK(bj_parquet_writer_commit(writer, &err) == BJ_EARG);
    unlink(path);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    CHECK(bj_parquet_writer_open(writer, path, &err) == BJ_EARG);
    CHECK(bj_parquet_writer_rows(writer, -1, data, right, &err) == BJ_EARG);
    CHECK(bj_parquet_writer_rows(writer, 2, holes, right, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'l' has no data");
    CHECK(bj_parquet_writer_rows(writer, 2, data, wrong, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'n' is not a list");
    CHECK(bj_parquet_writer_rows(writer, 2, data, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'l' is a list without starts");
    CHECK(bj_parquet_writer_rows(writer, 2, data, falling, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "row 1 has the invalid element range 2 to 1");
    /* The file stays usable after rejected arguments. */
    CHECK_OK(bj_parquet_writer_rows(writer, 2, data, right, &err), err);
    CHECK(access(path, F_OK) != 0);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    CHECK(access(path, F_OK) == 0);
    /* Freeing the writer discards an open file. */
    unlink(path);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    bj_parquet_writer_free(writer);
    bj_parquet_writer_free(NULL);
    CHECK(access(path, F_OK) != 0);
}

/* Tests that every failed allocation is reported as an error, leaks nothing and creates no file,
 * and that the writer stays usable. */
static void test_memory(void) {
    bj_rng rng = bj_rng_seed(9);
    table t = make_table(&rng, 500, 20, 4);
    const long live = bj_alloc_live();
    for (long n = 0;; n++) {
        bj_error err = {0};
        bj_parquet_writer *writer = NULL;
        unlink(path);
        bj_alloc_fail_after(n);
        bj_status status =
            bj_parquet_writer_create(&writer, columns, COLUMNS, BJ_PARQUET_SNAPPY, &err);
        if (status == BJ_OK) status = bj_parquet_writer_open(writer, path, &err);
        if (status == BJ_OK) status = put_rows(writer, &t, &err);
        if (status == BJ_OK) status = bj_parquet_writer_commit(writer, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) {
            bj_parquet_writer_free(writer);
            CHECK(n > 15);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM, "allocation %ld: %s", n, err.message);
        CHECK(access(path, F_OK) != 0);
        if (writer) {
            bj_error later = {0};
            if (bj_parquet_writer_commit(writer, &later) == BJ_OK) CHECK(!"commit of half a file");
            CHECK_OK(bj_parquet_writer_open(writer, path, &later), later);
            CHECK_OK(put_rows(writer, &t, &later), later);
            CHECK_OK(bj_parquet_writer_commit(writer, &later), later);
        }
        bj_parquet_writer_free(writer);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
    }
    CHECK(bj_alloc_live() == live);
    table_free(&t);
}

/* ----------------------------------------------------------------------------- output for peers */

static void print_text(bj_text text) {
    putchar('.');
    for (size_t i = 0; i < text.size; i++) printf("%02x", (unsigned char)text.data[i]);
}

static void print_table(const table *t) {
    for (int64_t r = 0; r < t->rows; r++) {
        printf("%d %lld %lld %a %a ", t->flag[r] != 0, (long long)t->number[r],
               (long long)t->code[r], t->x[r], t->level[r]);
        print_text(t->name[r]);
        putchar(' ');
        print_text(t->text[r]);
        for (int64_t i = t->start[r]; i < t->start[r + 1]; i++) printf(" %a", t->points[i]);
        putchar('\n');
    }
}

static int write_random(const char *where, const char *seed, const char *codec) {
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    const uint64_t number = strtoull(seed, NULL, 10);
    bj_rng rng = bj_rng_seed(number);
    const int groups = (int)below(&rng, 3) + 1;
    int bad = bj_parquet_writer_create(&writer, columns, COLUMNS,
                                       strcmp(codec, "plain") ? BJ_PARQUET_SNAPPY
                                                              : BJ_PARQUET_PLAIN_PAGES,
                                       &err) != BJ_OK ||
              bj_parquet_writer_open(writer, where, &err) != BJ_OK;
    for (int g = 0; g < groups && !bad; g++) {
        const int64_t rows = 1 + below(&rng, number % 12 ? 3000 : 40000);
        table t = make_table(&rng, rows, 1 + below(&rng, 1000), below(&rng, 12));
        bad = put_rows(writer, &t, &err) != BJ_OK;
        print_table(&t);
        table_free(&t);
    }
    bad = bad || bj_parquet_writer_commit(writer, &err) != BJ_OK;
    bj_parquet_writer_free(writer);
    if (bad) fprintf(stderr, "%s\n", err.message);
    return bad;
}

/* ------------------------------------------------------------------------------------- scenarios
 */

enum { SCENARIO = 18, STEPS = 110 };

static const bj_parquet_field scenario_fields[SCENARIO] = {
    {"observed", BJ_PARQUET_BOOLEAN, 0, 0},
    {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"object_type", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"object_category", BJ_PARQUET_INT64, 0, 1},
    {"timestep", BJ_PARQUET_INT64, 0, 1},
    {"position_x", BJ_PARQUET_DOUBLE, 0, 0},
    {"position_y", BJ_PARQUET_DOUBLE, 0, 0},
    {"heading", BJ_PARQUET_DOUBLE, 0, 0},
    {"velocity_x", BJ_PARQUET_DOUBLE, 0, 0},
    {"velocity_y", BJ_PARQUET_DOUBLE, 0, 0},
    {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"start_timestamp", BJ_PARQUET_DOUBLE, 0, 1},
    {"end_timestamp", BJ_PARQUET_DOUBLE, 0, 1},
    {"num_timestamps", BJ_PARQUET_INT64, 0, 1},
    {"focal_track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"city", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"map_id", BJ_PARQUET_INT64, 0, 1},
    {"slice_id", BJ_PARQUET_BYTE_ARRAY, 0, 1}};

/* Writes files with `tracks` tracks of vehicles that drive straight. Returns the total time in
 * seconds, or -1. */
static double write_scenarios(const char *where, const char *id, int tracks, int files) {
    const int64_t rows = (int64_t)tracks * STEPS;
    const size_t n = (size_t)rows;
    bj_error err = {0};
    bj_parquet_writer *writer = NULL;
    bj_rng rng = bj_rng_seed(3);
    struct timespec begin, end;
    uint8_t *observed = calloc(n, 1);
    int64_t *integers = calloc(4 * n, 8);
    double *doubles = calloc(7 * n, 8);
    bj_text *texts = calloc(6 * n, sizeof *texts);
    char(*names)[16] = calloc((size_t)tracks, sizeof *names);
    snprintf(names[0], sizeof *names, "AV");
    for (int i = 1; i < tracks; i++) snprintf(names[i], sizeof *names, "%d", 1000 + i);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t track = r / STEPS, step = r % STEPS;
        observed[r] = step < 50;
        integers[r] = track == 1 ? 3 : track < 4 ? 2 : 1;
        integers[n + (size_t)r] = step;
        integers[2 * n + (size_t)r] = STEPS;
        integers[3 * n + (size_t)r] = 12345;
        doubles[r] = 1000 + 3.0 * (double)track + (double)step * 0.5 + 0.01 * bj_rng_normal(&rng);
        doubles[n + (size_t)r] = -500 + 4.0 * (double)track + 0.01 * bj_rng_normal(&rng);
        doubles[2 * n + (size_t)r] = 0.01 * bj_rng_normal(&rng);
        doubles[3 * n + (size_t)r] = 5 + 0.1 * bj_rng_normal(&rng);
        doubles[4 * n + (size_t)r] = 0.1 * bj_rng_normal(&rng);
        doubles[5 * n + (size_t)r] = 3.15969e17;
        doubles[6 * n + (size_t)r] = 3.15969e17 + 1.09e10;
        texts[r] = (bj_text){names[track], strlen(names[track])};
        texts[n + (size_t)r] = track % 5 ? (bj_text){"vehicle", 7} : (bj_text){"pedestrian", 10};
        texts[2 * n + (size_t)r] = (bj_text){id, strlen(id)};
        texts[3 * n + (size_t)r] = (bj_text){names[tracks > 1], strlen(names[tracks > 1])};
        texts[4 * n + (size_t)r] = (bj_text){"austin", 6};
        texts[5 * n + (size_t)r] = (bj_text){"slice", 5};
    }
    const bj_parquet_data data[SCENARIO] = {
        {.booleans = observed},         {.texts = texts},
        {.texts = texts + n},           {.integers = integers},
        {.integers = integers + n},     {.doubles = doubles},
        {.doubles = doubles + n},       {.doubles = doubles + 2 * n},
        {.doubles = doubles + 3 * n},   {.doubles = doubles + 4 * n},
        {.texts = texts + 2 * n},       {.doubles = doubles + 5 * n},
        {.doubles = doubles + 6 * n},   {.integers = integers + 2 * n},
        {.texts = texts + 3 * n},       {.texts = texts + 4 * n},
        {.integers = integers + 3 * n}, {.texts = texts + 5 * n}};
    int bad = bj_parquet_writer_create(&writer, scenario_fields, SCENARIO, BJ_PARQUET_SNAPPY,
                                       &err) != BJ_OK;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < files && !bad; i++)
        bad = bj_parquet_writer_open(writer, where, &err) != BJ_OK ||
              bj_parquet_writer_rows(writer, rows, data, NULL, &err) != BJ_OK ||
              bj_parquet_writer_commit(writer, &err) != BJ_OK;
    clock_gettime(CLOCK_MONOTONIC, &end);
    bj_parquet_writer_free(writer);
    free(observed);
    free(integers);
    free(doubles);
    free(texts);
    free(names);
    if (bad) fprintf(stderr, "%s\n", err.message);
    return bad ? -1
               : (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "write")) return write_random(argv[2], argv[3], argv[4]);
    if (argc == 4 && !strcmp(argv[1], "scenario"))
        return write_scenarios(argv[2], argv[3], 12, 1) < 0;
    if (argc == 4 && !strcmp(argv[1], "speed")) {
        const int files = atoi(argv[3]);
        const double seconds = write_scenarios(argv[2], "speed", 40, files);
        printf("%d files of 4400 rows in %.3f s: %.0f files per second\n",
               files, seconds, files / seconds);
        return seconds < 0;
    }
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/file.parquet", folder);
    test_hybrid();
    test_bytes();
    test_no_rows();
    test_prefixes();
    test_page_size();
    test_round_trip();
    test_same_bytes();
    test_refusals();
    test_memory();
    unlink(path);
    CHECK(rmdir(folder) == 0); /* no other files are left */
    return test_report("writer");
}
