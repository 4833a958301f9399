/* fuzz_parquet.c - fuzz target of the Parquet reader.
 *
 * For any input, the reader must fail with a message, or return columns whose elements can all be
 * read within the memory limit. Reading a column again must give the same values. Violations abort.
 * Corpus: tests/fuzz/corpus/parquet, written by tests/parquet/make_files.py
 */
#include <string.h>

#include "core/alloc.h"
#include "fuzz.h"
#include "parquet/reader.h"

static volatile unsigned sink; /* prevents removal of the reads */

static void touch(const void *data, size_t size) {
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++) sum += ((const unsigned char *)data)[i];
    sink = sum;
}

static int refused(bj_status status, const bj_error *err, const void *out) {
    if (status == BJ_OK) {
        demand(out != NULL);
        return 0;
    }
    demand(!out && (status == BJ_EFORMAT || status == BJ_EVERSION) && err->code == status);
    demand(!strncmp(err->message, "fuzz: ", 6));
    return 1;
}

static void examine_text(bj_text text) {
    demand(text.data != NULL);
    touch(text.data, text.size);
}

static int examine_numbers(bj_parquet *parquet, int column) {
    const size_t rows = (size_t)bj_parquet_rows(parquet);
    const int64_t *integers;
    const double *doubles, *again;
    const uint8_t *valid;
    bj_error err = {0};
    int read = 0;
    bj_status status = bj_parquet_read_int64(&integers, &valid, parquet, column, &err);
    if (!refused(status, &err, integers)) {
        touch(integers, 8 * rows);
        for (size_t i = 0; i < rows; i++) demand(valid[i] == 1 || (!valid[i] && !integers[i]));
        read = 1;
    }
    status = bj_parquet_read_double(&doubles, &valid, parquet, column, &err);
    if (!refused(status, &err, doubles)) {
        int nulls = 0;
        touch(doubles, 8 * rows);
        for (size_t i = 0; i < rows; i++) {
            demand(valid[i] == 1 || (!valid[i] && doubles[i] == 0));
            nulls |= !valid[i];
        }
        status = bj_parquet_read_double(&again, NULL, parquet, column, &err);
        if (!refused(status, &err, again)) demand(!nulls && !memcmp(again, doubles, 8 * rows));
        else demand(nulls || strstr(err.message, "claims to hold") != NULL);
        read = 1;
    }
    return read;
}

static int examine_texts(bj_parquet *parquet, int column) {
    const size_t rows = (size_t)bj_parquet_rows(parquet);
    const bj_text *texts, *distinct;
    const uint8_t *valid;
    const int32_t *codes;
    bj_error err = {0};
    int count;
    bj_status status = bj_parquet_read_text(&texts, &valid, parquet, column, &err);
    if (refused(status, &err, texts)) return 0;
    for (size_t i = 0; i < rows; i++) {
        demand(valid[i] == 1 || (!valid[i] && !texts[i].size));
        if (i < 1000 || texts[i].data != texts[i - 1].data) examine_text(texts[i]);
    }
    status = bj_parquet_read_codes(&codes, &distinct, &count, parquet, column, &err);
    if (refused(status, &err, codes)) return 1;
    for (int i = 0; i < count; i++) examine_text(distinct[i]);
    int32_t next = 0;
    for (size_t i = 0; i < rows; i++) {
        demand(codes[i] >= 0 && codes[i] <= next && codes[i] < count);
        next += codes[i] == next;
        const bj_text code = distinct[codes[i]];
        demand(code.size == texts[i].size);
        demand(code.data == texts[i].data || i > 1000 ||
               !memcmp(code.data, texts[i].data, code.size));
    }
    demand(next == count);
    return 1;
}

static int examine_list(bj_parquet *parquet, int column) {
    const size_t rows = (size_t)bj_parquet_rows(parquet);
    const int64_t *start;
    const double *values;
    bj_error err = {0};
    const bj_status status = bj_parquet_read_double_list(&start, &values, parquet, column, &err);
    if (refused(status, &err, start)) return 0;
    demand(values && start[0] == 0);
    for (size_t i = 0; i < rows; i++) demand(start[i] <= start[i + 1]);
    touch(values, 8 * (size_t)start[rows]);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_parquet *parquet = NULL;
    bj_error err = {0};
    fuzz_accepted = 0;
    demand(bj_parquet_create(&parquet, &err) == BJ_OK);
    const bj_status status = bj_parquet_open_memory(parquet, data, size, "fuzz", &err);
    const int count = bj_parquet_column_count(parquet);
    if (refused(status, &err, status == BJ_OK ? data : NULL)) demand(!count);
    for (int c = 0; c < count && c < 64; c++) {
        const bj_parquet_column *column = bj_parquet_column_at(parquet, c);
        const int first = bj_parquet_find(parquet, column->name);
        int index;
        demand(first >= 0 && first <= c);
        demand(bj_parquet_require(&index, parquet, column->name, &err) == BJ_OK ||
               strstr(err.message, "twice") != NULL);
        const int read =
            examine_numbers(parquet, c) | examine_texts(parquet, c) | examine_list(parquet, c);
        demand(!read || column->readable);
        fuzz_accepted |= read;
    }
    bj_parquet_free(parquet);
    demand(bj_alloc_live() == live);
    return 0;
}
