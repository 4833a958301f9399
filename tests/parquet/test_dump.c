/* test_dump.c - prints Parquet files for tests/parquet/peer_reader.py. Does nothing without
 * arguments.
 *
 *   test_dump FILE...
 *
 * Prints "file PATH rows N columns M" or "file PATH refused MESSAGE" for each file. For each column
 * prints "column NAME" and one line for every way to read it: the kind of the values, then the
 * values, or "refused" and the message. Values are 8-byte words in hexadecimal (the bits of
 * doubles), texts are "x" and their bytes, and a null is "-".
 */
#include <inttypes.h>

#include "parquet/reader.h"
#include "support/test.h"

static void print_text(bj_text text) {
    printf(" x");
    for (size_t i = 0; i < text.size; i++) printf("%02x", (unsigned char)text.data[i]);
}

static void print_words(const char *kind, const void *words, const uint8_t *valid, int64_t rows) {
    printf("%s", kind);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t word;
        memcpy(&word, (const char *)words + 8 * i, 8);
        if (valid && !valid[i]) printf(" -");
        else printf(" %" PRIx64, word);
    }
    putchar('\n');
}

static int dump_codes(bj_parquet *parquet, int index, bj_error *err) {
    const int32_t *codes;
    const bj_text *texts;
    int count;
    if (bj_parquet_read_codes(&codes, &texts, &count, parquet, index, err) != BJ_OK) return 0;
    printf("codes");
    for (int i = 0; i < count; i++) print_text(texts[i]);
    for (int64_t i = 0; i < bj_parquet_rows(parquet); i++) printf(" %d", (int)codes[i]);
    putchar('\n');
    return 1;
}

static int dump_texts(bj_parquet *parquet, int index, bj_error *err) {
    const bj_text *texts;
    const uint8_t *valid;
    if (bj_parquet_read_text(&texts, &valid, parquet, index, err) != BJ_OK) return 0;
    printf("text");
    for (int64_t i = 0; i < bj_parquet_rows(parquet); i++)
        if (valid[i]) print_text(texts[i]);
        else printf(" -");
    putchar('\n');
    return 1;
}

static int dump_list(bj_parquet *parquet, int index, bj_error *err) {
    const int64_t *start;
    const double *values;
    const int64_t rows = bj_parquet_rows(parquet);
    if (bj_parquet_read_double_list(&start, &values, parquet, index, err) != BJ_OK) return 0;
    printf("starts");
    for (int64_t i = 0; i <= rows; i++) printf(" %" PRId64, start[i]);
    putchar('\n');
    print_words("list", values, NULL, start[rows]);
    return 1;
}

static void dump_column(bj_parquet *parquet, int index) {
    const bj_parquet_column *column = bj_parquet_column_at(parquet, index);
    const int64_t rows = bj_parquet_rows(parquet), *integers;
    const double *doubles;
    const uint8_t *valid;
    bj_error err = {0};
    int any = 0;
    printf("column %s\n", column->name);
    if (bj_parquet_read_int64(&integers, &valid, parquet, index, &err) == BJ_OK) {
        print_words("int64", integers, valid, rows);
        any = 1;
    }
    if (bj_parquet_read_double(&doubles, &valid, parquet, index, &err) == BJ_OK) {
        print_words("double", doubles, valid, rows);
        any = 1;
    }
    any |= dump_texts(parquet, index, &err);
    any |= dump_codes(parquet, index, &err);
    any |= dump_list(parquet, index, &err);
    if (!any) printf("refused %s\n", err.message);
}

int main(int argc, char **argv) {
    bj_parquet *parquet = NULL;
    bj_error err = {0};
    if (bj_parquet_create(&parquet, &err) != BJ_OK) return 1;
    for (int i = 1; i < argc; i++) {
        if (bj_parquet_open(parquet, argv[i], &err) != BJ_OK) {
            printf("file %s refused %s\n", argv[i], err.message);
            continue;
        }
        const int count = bj_parquet_column_count(parquet);
        printf("file %s rows %" PRId64 " columns %d\n", argv[i], bj_parquet_rows(parquet), count);
        for (int c = 0; c < count; c++) dump_column(parquet, c);
    }
    bj_parquet_free(parquet);
    return 0;
}
