/* reader.c - see reader.h. column.c reads a column with pages.c and numbers.c or texts.c. */
#include "parquet/reader.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "parquet/column.h"

enum { LABEL_SHOWN = 200, FREE_BYTES = 32 << 20, BYTES_A_BYTE = 256 };

/* -------------------------------------------------------------------------------------- opening */

bj_status bj_parquet_create(bj_parquet **out, bj_error *err) { return BJ_ALLOC(*out, 1, err); }

void bj_parquet_close(bj_parquet *parquet) {
    bj_file_map_close(&parquet->map);
    bj_store_reset(&parquet->store, 0, "");
    parquet->footer = (bj_footer){0};
    parquet->data = NULL;
    parquet->size = 0;
    parquet->label = NULL;
}

void bj_parquet_free(bj_parquet *parquet) {
    if (!parquet) return;
    bj_parquet_close(parquet);
    bj_store_free(&parquet->store);
    bj_codecs_free(&parquet->codecs);
    bj_free(parquet);
}

/* Returns the max number of bytes that the reader may allocate in total and may unpack for one
 * column. */
static size_t limit_of(size_t file_size) {
    const size_t most = SIZE_MAX / 4;
    return file_size > (most - FREE_BYTES) / BYTES_A_BYTE ? most
                                                          : FREE_BYTES + BYTES_A_BYTE * file_size;
}

static bj_status open_bytes(bj_parquet *parquet, const void *data, size_t size, const char *label,
                            bj_error *err) {
    const size_t length = strlen(label);
    if (length > LABEL_SHOWN) label += length - LABEL_SHOWN; /* the end of a path is more useful */
    bj_store_reset(&parquet->store, limit_of(size), label);
    BJ_TRY(BJ_STORE(parquet->label, &parquet->store, strlen(label) + 1, err));
    memcpy(parquet->label, label, strlen(label) + 1);
    parquet->store.label = parquet->label;
    parquet->data = data;
    parquet->size = size;
    return bj_footer_read(&parquet->footer, &parquet->store, data, size, parquet->label, err);
}

bj_status bj_parquet_open_memory(bj_parquet *parquet, const void *data, size_t size,
                                 const char *label, bj_error *err) {
    bj_parquet_close(parquet);
    const bj_status status = open_bytes(parquet, data, size, label, err);
    if (status != BJ_OK) bj_parquet_close(parquet);
    return status;
}

bj_status bj_parquet_open(bj_parquet *parquet, const char *path, bj_error *err) {
    bj_parquet_close(parquet);
    BJ_TRY(bj_file_map_open(&parquet->map, path, SIZE_MAX, err));
    const bj_status status = open_bytes(parquet, parquet->map.data, parquet->map.size, path, err);
    if (status != BJ_OK) bj_parquet_close(parquet);
    return status;
}

/* -------------------------------------------------------------------------------------- columns */

int64_t bj_parquet_rows(const bj_parquet *parquet) { return parquet->footer.rows; }
int bj_parquet_column_count(const bj_parquet *parquet) { return parquet->footer.count; }

const bj_parquet_column *bj_parquet_column_at(const bj_parquet *parquet, int index) {
    return &parquet->footer.columns[index].column;
}

int bj_parquet_find(const bj_parquet *parquet, const char *name) {
    for (int i = 0; i < parquet->footer.count; i++)
        if (!strcmp(parquet->footer.columns[i].column.name, name)) return i;
    return -1;
}

/* Returns the edit distance between a and b. Compares only the first 63 characters. */
static int edit_distance(const char *a, const char *b) {
    enum { MOST = 64 };
    int row[MOST], n = 0;
    for (; b[n] && n < MOST - 1; n++) row[n] = n;
    row[n] = n;
    for (int i = 0; a[i] && i < MOST; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 1; j <= n; j++) {
            const int above = row[j];
            int best = diagonal + (a[i] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

bj_status bj_parquet_require(int *index, const bj_parquet *parquet, const char *name,
                             bj_error *err) {
    enum { NEAREST = 3 };
    int best[NEAREST], distance[NEAREST], found = 0;
    char list[3 * 66 + 1] = "";
    *index = bj_parquet_find(parquet, name);
    if (*index >= 0) {
        for (int i = *index + 1; i < parquet->footer.count; i++)
            if (!strcmp(parquet->footer.columns[i].column.name, name))
                return BJ_FAIL(err, BJ_EFORMAT, "%s: column '%.80s' occurs twice", parquet->label,
                               name);
        return BJ_OK;
    }
    for (int i = 0; i < parquet->footer.count; i++) { /* insert into the nearest names */
        const int d = edit_distance(name, parquet->footer.columns[i].column.name);
        int at = found < NEAREST ? found++ : NEAREST;
        for (; at > 0 && d < distance[at - 1]; at--)
            if (at < NEAREST) best[at] = best[at - 1], distance[at] = distance[at - 1];
        if (at < NEAREST) best[at] = i, distance[at] = d;
    }
    for (int i = 0; i < found; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%.60s'", i ? ", " : "",
                 parquet->footer.columns[best[i]].column.name);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: no column '%.80s'%s%s", parquet->label, name,
                   found ? "; similar columns: " : ": it has none", list);
}

/* -------------------------------------------------------------------------------------- reading */

/* Reads a flat column. The arrays are allocated before the scratch memory of the column, so that
 * the scratch memory can be released afterwards, unless texts point into it. A failure releases
 * everything. */
static bj_status read_flat(void **out, const uint8_t **valid, bj_parquet *parquet, int index,
                           bj_form form, bj_error *err) {
    bj_store *store = &parquet->store;
    const bj_store_mark start = bj_store_here(store);
    const size_t rows = (size_t)parquet->footer.rows;
    bj_column column;
    char *values = NULL;
    uint8_t *there = NULL;
    bj_status status = BJ_OK;
    *out = NULL;
    if (valid) *valid = NULL;
    values = bj_store_take(store, rows, form == BJ_FORM_TEXT ? sizeof(bj_text) : 8, err);
    if (!values) status = store->failure;
    if (status == BJ_OK && valid) status = BJ_STORE(there, store, rows, err);
    const bj_store_mark scratch = bj_store_here(store);
    if (status == BJ_OK) status = bj_column_start(&column, parquet, index, 0, form, err);
    if (status == BJ_OK) status = bj_column_read(values, there, &column);
    if (status != BJ_OK) {
        bj_store_release(store, start);
        return status;
    }
    if (form != BJ_FORM_TEXT) bj_store_release(store, scratch);
    *out = values;
    if (valid) *valid = there;
    return BJ_OK;
}

bj_status bj_parquet_read_int64(const int64_t **out, const uint8_t **valid, bj_parquet *parquet,
                                int column, bj_error *err) {
    void *values;
    const bj_status status = read_flat(&values, valid, parquet, column, BJ_FORM_INT64, err);
    *out = values;
    return status;
}

bj_status bj_parquet_read_double(const double **out, const uint8_t **valid, bj_parquet *parquet,
                                 int column, bj_error *err) {
    void *values;
    const bj_status status = read_flat(&values, valid, parquet, column, BJ_FORM_DOUBLE, err);
    *out = values;
    return status;
}

bj_status bj_parquet_read_text(const bj_text **out, const uint8_t **valid, bj_parquet *parquet,
                               int column, bj_error *err) {
    void *values;
    const bj_status status = read_flat(&values, valid, parquet, column, BJ_FORM_TEXT, err);
    *out = values;
    return status;
}

bj_status bj_parquet_read_codes(const int32_t **codes, const bj_text **texts, int *count,
                                bj_parquet *parquet, int column, bj_error *err) {
    bj_store *store = &parquet->store;
    const bj_store_mark start = bj_store_here(store);
    bj_vocabulary vocabulary = {.seed = (uint64_t)(uintptr_t)parquet * 0x9e3779b97f4a7c15u};
    bj_column reading;
    int32_t *numbers;
    bj_status status;
    *codes = NULL;
    *texts = NULL;
    *count = 0;
    BJ_GOTO(status, fail, BJ_STORE(numbers, store, (size_t)parquet->footer.rows, err));
    BJ_GOTO(status, fail, bj_column_start(&reading, parquet, column, 0, BJ_FORM_TEXT, err));
    BJ_GOTO(status, fail, bj_column_read_codes(numbers, &vocabulary, &reading));
    if (!vocabulary.texts) BJ_GOTO(status, fail, BJ_STORE(vocabulary.texts, store, 0, err));
    *codes = numbers;
    *texts = vocabulary.texts;
    *count = vocabulary.count;
    return BJ_OK;
fail:
    bj_store_release(store, start);
    return status;
}

bj_status bj_parquet_read_double_list(const int64_t **start, const double **values,
                                      bj_parquet *parquet, int column, bj_error *err) {
    bj_store *store = &parquet->store;
    const bj_store_mark mark = bj_store_here(store);
    bj_column reading;
    int64_t *starts;
    double *numbers;
    size_t count;
    bj_status status;
    *start = NULL;
    *values = NULL;
    /* The first bj_column_start only determines the sizes. Its scratch memory is released and
     * allocated again after the arrays. */
    BJ_GOTO(status, fail, bj_column_start(&reading, parquet, column, 1, BJ_FORM_DOUBLE, err));
    BJ_GOTO(status, fail, bj_column_values(&count, &reading));
    bj_store_release(store, mark);
    BJ_GOTO(status, fail, BJ_STORE(starts, store, (size_t)parquet->footer.rows + 1, err));
    BJ_GOTO(status, fail, BJ_STORE(numbers, store, count, err));
    const bj_store_mark scratch = bj_store_here(store);
    BJ_GOTO(status, fail, bj_column_start(&reading, parquet, column, 1, BJ_FORM_DOUBLE, err));
    BJ_GOTO(status, fail, bj_column_read_list(starts, numbers, &reading));
    bj_store_release(store, scratch);
    *start = starts;
    *values = numbers;
    return BJ_OK;
fail:
    bj_store_release(store, mark);
    return status;
}

/* ------------------------------------------------------------------------------------- metadata */

const char *bj_parquet_metadata(const bj_parquet *parquet, const char *key) {
    for (int i = 0; i < parquet->footer.facts; i++)
        if (!strcmp(parquet->footer.keys[i], key)) return parquet->footer.values[i];
    return NULL;
}

const char *bj_parquet_created_by(const bj_parquet *parquet) { return parquet->footer.created_by; }
