/* column.c - see column.h. */
#include "parquet/column.h"

#include <string.h>

#include "parquet/hybrid.h"

#define REFUSE(column, ...) bj_pages_refuse(&(column)->pages, BJ_EFORMAT, __VA_ARGS__)

static size_t size_of(bj_form form) { return form == BJ_FORM_TEXT ? sizeof(bj_text) : 8; }

static const char *const type_names[] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                         "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};

static bj_status check_form(const bj_column *column, int is_list, bj_form form) {
    static const unsigned accepted[] = {
        [BJ_FORM_INT64] = 1 << BJ_PARQUET_BOOLEAN | 1 << BJ_PARQUET_INT32 | 1 << BJ_PARQUET_INT64,
        [BJ_FORM_DOUBLE] = 1 << BJ_PARQUET_INT32 | 1 << BJ_PARQUET_INT64 | 1 << BJ_PARQUET_FLOAT |
                           1 << BJ_PARQUET_DOUBLE,
        [BJ_FORM_TEXT] =
            1 << BJ_PARQUET_INT96 | 1 << BJ_PARQUET_BYTE_ARRAY | 1 << BJ_PARQUET_FIXED};
    static const char *const wanted[] = {
        [BJ_FORM_INT64] = "integers", [BJ_FORM_DOUBLE] = "numbers", [BJ_FORM_TEXT] = "text"};
    const bj_leaf *leaf = column->pages.leaf;
    if (leaf->obstacle)
        return bj_pages_refuse(&column->pages, BJ_EVERSION, "%s is not supported", leaf->obstacle);
    if (leaf->column.is_list != is_list)
        return REFUSE(column, "contains %s, expected %s", is_list ? "one value per row" : "lists",
                      is_list ? "lists" : "one value per row");
    if (!(accepted[form] >> leaf->column.type & 1) || (form == BJ_FORM_INT64 && leaf->scale > 0))
        return REFUSE(column, "contains %s%s, expected %s", leaf->scale >= 0 ? "decimals in " : "",
                      type_names[leaf->column.type], wanted[form]);
    return BJ_OK;
}

bj_status bj_column_start(bj_column *column, bj_parquet *parquet, int index, int is_list,
                          bj_form form, bj_error *err) {
    const bj_footer *footer = &parquet->footer;
    bj_store *store = &parquet->store;
    *column = (bj_column){.form = form};
    if (index < 0 || index >= footer->count)
        return BJ_FAIL(err, BJ_EARG, "%s: no column %d of %d",
                       parquet->label ? parquet->label : "no file", index, footer->count);
    const bj_leaf *leaf = &footer->columns[index];
    bj_pages_start(&column->pages, parquet, leaf, err);
    BJ_TRY(check_form(column, is_list, form));
    for (int g = 0; g < footer->groups; g++) {
        BJ_TRY(bj_pages_open(&column->pages, g)); /* check all sizes before allocating */
        const uint64_t values = (uint64_t)column->pages.chunk->values;
        if (values > SIZE_MAX / 2) return REFUSE(column, "has more values than memory has bytes");
        if (values > column->most) column->most = (size_t)values;
    }
    const size_t room = column->most + BJ_HYBRID_ROOM;
    BJ_TRY(BJ_STORE(column->indices, store, room, err));
    if (leaf->max_def) BJ_TRY(BJ_STORE(column->def, store, room, err));
    if (leaf->max_rep) BJ_TRY(BJ_STORE(column->rep, store, room, err));
    return BJ_OK;
}

bj_status bj_column_indices(size_t count, bj_column *column, const bj_page *page) {
    uint32_t *indices = column->indices, highest = 0;
    if (!column->dictionary)
        return bj_pages_judge(&column->pages, "dictionary indices come before any dictionary");
    if (!count) return BJ_OK;
    if (!page->values_size) return bj_pages_judge(&column->pages, "dictionary indices are missing");
    BJ_TRY(
        bj_pages_judge(&column->pages, bj_hybrid_decode(indices, count, page->values[0],
                                                        page->values + 1, page->values_size - 1)));
    for (size_t i = 0; i < count; i++) highest = indices[i] > highest ? indices[i] : highest;
    if (highest >= column->entries)
        return REFUSE(column, "found dictionary index %lu, but the dictionary has %zu entries",
                      (unsigned long)highest, column->entries);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- levels */

static bj_status decode_levels(uint32_t *out, size_t count, int highest, const uint8_t *in,
                               size_t size, const bj_column *column) {
    const int width = highest > 1 ? 2 : 1; /* lists have at most three levels */
    uint32_t found = 0;
    BJ_TRY(bj_pages_judge(&column->pages, bj_hybrid_decode(out, count, width, in, size)));
    for (size_t i = 0; i < count; i++) found = out[i] > found ? out[i] : found;
    return bj_pages_judge(&column->pages,
                          found > (uint32_t)highest ? "a level exceeds the maximum level" : NULL);
}

/* Counts the non-null values of a flat page. column->def is filled only if there are nulls. */
static bj_status count_present(size_t *present, bj_column *column, const bj_page *page) {
    *present = page->count;
    if (!column->def || bj_hybrid_is_constant(page->count, 1, 1, page->def, page->def_size))
        return BJ_OK;
    BJ_TRY(decode_levels(column->def, page->count, 1, page->def, page->def_size, column));
    *present = 0;
    for (size_t i = 0; i < page->count; i++) *present += column->def[i];
    return BJ_OK;
}

static bj_status refuse_null(const bj_column *column) {
    size_t i = 0;
    while (column->def[i]) i++;
    return REFUSE(column, "row %lld is null, expected a value",
                  (long long)column->row + (long long)i);
}

/* ------------------------------------------------------------------------------------- columns */

static bj_status open_chunk(bj_column *column, int group) {
    column->dictionary = NULL;
    column->entries = 0;
    return bj_pages_open(&column->pages, group);
}

/* Reads the next data page, and the dictionary page before it if there is one. */
static bj_status next_page(bj_page *page, bj_column *column) {
    for (;;) {
        BJ_TRY(bj_pages_next(page, &column->pages));
        if (!page->is_dictionary) return BJ_OK;
        if (page->encoding != BJ_ENCODING_PLAIN && page->encoding != BJ_ENCODING_PLAIN_DICTIONARY)
            return bj_pages_unsupported(&column->pages, page, "a dictionary");
        if (column->dictionary) return bj_pages_judge(&column->pages, "a second dictionary");
        BJ_TRY(column->form == BJ_FORM_TEXT ? bj_texts_dictionary(column, page)
                                            : bj_numbers_dictionary(column, page));
    }
}

static bj_status decode(void *out, size_t count, bj_column *column, const bj_page *page) {
    return column->form == BJ_FORM_TEXT ? bj_texts_decode(out, count, column, page)
                                        : bj_numbers_decode(out, count, column, page);
}

/* Distributes the first `present` elements over `count` positions. Element i moves to the i-th
 * position whose level is 1. Null positions become zero. */
static void spread_words(uint64_t *out, size_t present, size_t count, const uint32_t *def) {
    for (size_t i = count; i-- > 0;) out[i] = def[i] ? out[--present] : 0;
}

static void spread_texts(bj_text *out, size_t present, size_t count, const uint32_t *def) {
    for (size_t i = count; i-- > 0;) out[i] = def[i] ? out[--present] : (bj_text){"", 0};
}

static bj_status read_page(char *out, uint8_t *valid, bj_column *column, const bj_page *page) {
    size_t present;
    BJ_TRY(count_present(&present, column, page));
    if (present < page->count && !valid) return refuse_null(column);
    BJ_TRY(decode(out, present, column, page));
    if (valid) memset(valid, 1, page->count);
    if (present == page->count) return BJ_OK;
    for (size_t i = 0; i < page->count; i++) valid[i] = (uint8_t)column->def[i];
    if (column->form == BJ_FORM_TEXT)
        spread_texts((bj_text *)(void *)out, present, page->count, column->def);
    else spread_words((uint64_t *)(void *)out, present, page->count, column->def);
    return BJ_OK;
}

bj_status bj_column_read(void *out, uint8_t *valid, bj_column *column) {
    bj_store *store = &column->pages.parquet->store;
    const int groups = column->pages.parquet->footer.groups;
    const int keeps_pages = column->form == BJ_FORM_TEXT;
    const size_t size = size_of(column->form);
    for (int g = 0; g < groups; g++) {
        const bj_store_mark chunk = bj_store_here(store);
        BJ_TRY(open_chunk(column, g));
        while (column->pages.left) {
            bj_page page;
            bj_store_mark here = bj_store_here(store);
            const void *dictionary = column->dictionary;
            BJ_TRY(next_page(&page, column));
            BJ_TRY(read_page((char *)out + (size_t)column->row * size,
                             valid ? valid + column->row : NULL, column, &page));
            column->row += (int64_t)page.count;
            if (!keeps_pages && dictionary == column->dictionary) bj_store_release(store, here);
        }
        if (!keeps_pages) bj_store_release(store, chunk);
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- codes */

static bj_status code_page(int32_t *codes, bj_vocabulary *vocabulary, int32_t *of_index,
                           bj_column *column, const bj_page *page) {
    bj_store *store = &column->pages.parquet->store;
    bj_error *err = column->pages.err;
    if (bj_page_is_coded(page)) {
        const bj_text *texts = column->dictionary;
        BJ_TRY(bj_column_indices(page->count, column, page));
        for (size_t i = 0; i < page->count; i++) {
            const uint32_t index = column->indices[i];
            if (of_index[index] < 0)
                BJ_TRY(bj_vocabulary_code(&of_index[index], vocabulary, texts[index], store, err));
            codes[i] = of_index[index];
        }
        return BJ_OK;
    }
    bj_text *texts;
    BJ_TRY(BJ_STORE(texts, store, page->count, err));
    BJ_TRY(bj_texts_decode(texts, page->count, column, page));
    for (size_t i = 0; i < page->count; i++) {
        if (i && texts[i].size == texts[i - 1].size && /* the rows of a track are usually
                                                          adjacent */
            !memcmp(texts[i].data, texts[i - 1].data, texts[i].size))
            codes[i] = codes[i - 1];
        else BJ_TRY(bj_vocabulary_code(&codes[i], vocabulary, texts[i], store, err));
    }
    return BJ_OK;
}

bj_status bj_column_read_codes(int32_t *codes, bj_vocabulary *vocabulary, bj_column *column) {
    bj_store *store = &column->pages.parquet->store;
    const int groups = column->pages.parquet->footer.groups;
    for (int g = 0; g < groups; g++) {
        int32_t *of_index = NULL; /* (entries) code of a dictionary entry, or -1 */
        BJ_TRY(open_chunk(column, g));
        while (column->pages.left) {
            bj_page page;
            size_t present;
            BJ_TRY(next_page(&page, column));
            BJ_TRY(count_present(&present, column, &page));
            if (present < page.count) return refuse_null(column);
            if (column->dictionary && !of_index) {
                BJ_TRY(BJ_STORE(of_index, store, column->entries, column->pages.err));
                memset(of_index, -1, column->entries * sizeof *of_index);
            }
            BJ_TRY(code_page(codes + column->row, vocabulary, of_index, column, &page));
            column->row += (int64_t)page.count;
        }
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- lists */

bj_status bj_column_values(size_t *out, const bj_column *column) {
    const bj_footer *footer = &column->pages.parquet->footer;
    const size_t each = (size_t)footer->chunks_each, chunk = (size_t)column->pages.leaf->chunk;
    size_t sum = 0;
    for (size_t g = 0; g < (size_t)footer->groups; g++) {
        const size_t values = (size_t)footer->chunks[g * each + chunk].values;
        if (values > SIZE_MAX / 2 - sum)
            return REFUSE(column, "has more values than memory has bytes");
        sum += values;
    }
    *out = sum;
    return BJ_OK;
}

/* Converts levels to row starts, given `values` values in earlier pages. Sets *present to the
 * number of values in this page. */
static bj_status walk_levels(int64_t *start, size_t *present, size_t values, int64_t last_row,
                             bj_column *column, const bj_page *page, int *open) {
    const uint32_t there = (uint32_t)column->pages.leaf->max_def;
    const uint32_t empty = (uint32_t)column->pages.leaf->list_def;
    const uint32_t *def = column->def, *rep = column->rep;
    const size_t before = values;
    for (size_t i = 0; i < page->count; i++) {
        if (!rep[i]) {
            if (column->row == last_row)
                return REFUSE(column, "the column has more lists than rows; %lld rows were read",
                              (long long)last_row);
            start[column->row++] = (int64_t)values;
        } else if (!*open) {
            return bj_pages_judge(&column->pages,
                                  "a value continues a list that has not started or is empty");
        }
        *open = def[i] != empty;
        if (def[i] == there) {
            values++;
        } else if (def[i] != empty) {
            return REFUSE(column, "row %lld: %s null, expected a value", (long long)column->row - 1,
                          def[i] < empty ? "the list is" : "an element is");
        }
    }
    *present = values - before;
    return BJ_OK;
}

bj_status bj_column_read_list(int64_t *start, void *values, bj_column *column) {
    const bj_leaf *leaf = column->pages.leaf;
    const bj_footer *footer = &column->pages.parquet->footer;
    bj_store *store = &column->pages.parquet->store;
    uint64_t *out = values;
    size_t count = 0;
    int64_t last_row = 0;
    for (int g = 0; g < footer->groups; g++) {
        const bj_store_mark chunk = bj_store_here(store);
        int open = 0; /* a list may continue in the next page */
        last_row += footer->group_rows[g];
        BJ_TRY(open_chunk(column, g));
        while (column->pages.left) {
            bj_page page;
            size_t present = 0;
            const bj_store_mark here = bj_store_here(store);
            const void *dictionary = column->dictionary;
            BJ_TRY(next_page(&page, column));
            BJ_TRY(decode_levels(column->rep, page.count, 1, page.rep, page.rep_size, column));
            BJ_TRY(decode_levels(column->def, page.count, leaf->max_def, page.def, page.def_size,
                                 column));
            BJ_TRY(walk_levels(start, &present, count, last_row, column, &page, &open));
            BJ_TRY(bj_numbers_decode(out + count, present, column, &page));
            count += present;
            if (dictionary == column->dictionary) bj_store_release(store, here);
        }
        bj_store_release(store, chunk);
        if (column->row != last_row)
            return REFUSE(column, "row group %d has %lld lists, expected %lld", g,
                          (long long)(column->row - last_row + footer->group_rows[g]),
                          (long long)footer->group_rows[g]);
    }
    start[column->row] = (int64_t)count;
    return BJ_OK;
}
