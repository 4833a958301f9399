/* distinct.c - see distinct.h. Test: tests/parquet/test_writer.c */
#include "parquet/distinct.h"

#include <string.h>

#include "core/alloc.h"

void bj_distinct_free(bj_distinct *distinct) {
    bj_free(distinct->codes);
    bj_free(distinct->first);
    bj_free(distinct->table);
    *distinct = (bj_distinct){0};
}

/* Allocates arrays for `rows` rows and an empty table with at least twice `limit` slots. */
static bj_status prepare(bj_distinct *d, size_t *slots, int64_t rows, int64_t limit,
                         bj_error *err) {
    size_t wanted = 16;
    while (wanted < 2 * (size_t)limit + 2) wanted *= 2;
    if ((size_t)rows > d->room) {
        bj_free(d->codes);
        bj_free(d->first);
        d->codes = NULL;
        d->first = NULL;
        d->room = 0;
        BJ_TRY(BJ_ALLOC(d->codes, (size_t)rows, err));
        BJ_TRY(BJ_ALLOC(d->first, (size_t)rows, err));
        d->room = (size_t)rows;
    }
    if (wanted > d->table_room) {
        bj_free(d->table);
        d->table_room = 0;
        BJ_TRY(BJ_ALLOC(d->table, wanted, err));
        d->table_room = wanted;
    } else {
        memset(d->table, 0, wanted * sizeof *d->table);
    }
    *slots = wanted;
    d->count = 0;
    return BJ_OK;
}

/* Hashes one word. Doubles with integer values differ only in their high bits. Two shifts let all
 * bits affect the low bits, which select the slot. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash ^= word;
    hash = (hash ^ hash >> 33) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 33;
}

static uint64_t hash_text(const bj_text *text) {
    uint64_t hash = text->size, word;
    size_t i = 0;
    for (; i + 8 <= text->size; i += 8) {
        memcpy(&word, text->data + i, 8);
        hash = mix(hash, word);
    }
    word = 0;
    if (i < text->size) memcpy(&word, text->data + i, text->size - i);
    return mix(hash, word);
}

static int same_text(const bj_text *a, const bj_text *b) {
    return a->size == b->size &&
           (a->data == b->data || !a->size || !memcmp(a->data, b->data, a->size));
}

bj_status bj_distinct_texts(bj_distinct *d, int *found, const bj_text *texts, int64_t rows,
                            int64_t limit, bj_error *err) {
    size_t slots;
    BJ_TRY(prepare(d, &slots, rows, limit, err));
    *found = 1;
    for (int64_t r = 0; r < rows; r++) {
        /* Adjacent rows of a track have the same text. */
        if (r && texts[r].data == texts[r - 1].data && texts[r].size == texts[r - 1].size) {
            d->codes[r] = d->codes[r - 1];
            continue;
        }
        size_t slot = (size_t)hash_text(&texts[r]) & (slots - 1);
        while (d->table[slot] && !same_text(&texts[r], &texts[d->first[d->table[slot] - 1]]))
            slot = (slot + 1) & (slots - 1);
        if (!d->table[slot]) {
            if (d->count >= limit) {
                *found = 0;
                return BJ_OK;
            }
            d->first[d->count] = r;
            d->table[slot] = (uint32_t)++d->count;
        }
        d->codes[r] = (int32_t)d->table[slot] - 1;
    }
    return BJ_OK;
}

static uint64_t word_at(const void *words, int64_t row) {
    uint64_t word;
    memcpy(&word, (const unsigned char *)words + 8 * row, sizeof word);
    return word;
}

bj_status bj_distinct_words(bj_distinct *d, int *found, const void *words, int64_t rows,
                            int64_t limit, bj_error *err) {
    size_t slots;
    BJ_TRY(prepare(d, &slots, rows, limit, err));
    *found = 1;
    for (int64_t r = 0; r < rows; r++) {
        const uint64_t word = word_at(words, r);
        size_t slot = (size_t)mix(0, word) & (slots - 1);
        while (d->table[slot] && word != word_at(words, d->first[d->table[slot] - 1]))
            slot = (slot + 1) & (slots - 1);
        if (!d->table[slot]) {
            if (d->count >= limit) {
                *found = 0;
                return BJ_OK;
            }
            d->first[d->count] = r;
            d->table[slot] = (uint32_t)++d->count;
        }
        d->codes[r] = (int32_t)d->table[slot] - 1;
    }
    return BJ_OK;
}
