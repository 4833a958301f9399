/* cache_resume.c - determines how much of an interrupted run is usable, and continues from there.
 *
 *   1. Rows are valid up to the first row that is incomplete, out of order, or refers to missing
 *      bytes.
 *   2. Rows written after the last sync are checked against their digests, because after a power
 *      failure a row may be on disk although its data is not.
 *   3. Every file is truncated after the last valid row. Names and maps are loaded from the rows.
 *
 * Test: tests/data/test_cache_resume.c
 */
#define _XOPEN_SOURCE 700 /* pread, ftruncate */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/cache_partial.h"

void bj_cache_row_check(uint8_t check[BJ_CACHE_HASH], const bj_cache_row *row) {
    bj_sha256_block(check, row, BJ_ROW_SIZE - BJ_CACHE_HASH);
}

bj_status bj_cache_row_at(const bj_cache_row **out, bj_cache_writer *w, int64_t item,
                          bj_error *err) {
    if (item < w->row_first || item >= w->row_first + w->row_count) {
        const int64_t left = w->at.items - item;
        const int64_t count = left < BJ_ROWS_READ ? left : BJ_ROWS_READ;
        w->row_count = 0;
        BJ_TRY(bj_cache_get(w, BJ_FILE_JOURNAL, w->rows, (size_t)count * BJ_ROW_SIZE,
                            item * BJ_ROW_SIZE, err));
        w->row_first = item;
        w->row_count = count;
    }
    *out = &w->rows[item - w->row_first];
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- rule 1 */

/* Returns 1 if the row is a valid continuation of the extent `before`. */
static int follows(const bj_cache_row *row, const bj_cache_extent *before) {
    const bj_cache_sizes *a = &before->sizes, *b = &row->after.sizes;
    if (row->after.items != before->items + 1 || row->durable < 0 || row->durable > before->items)
        return 0;
    if (row->kind == BJ_ROW_REJECT)
        return !memcmp(a, b, sizeof *a) && row->after.rejects > before->rejects;
    return row->kind == BJ_ROW_SCENE && b->scenes == a->scenes + 1 &&
           row->record_start == a->floats &&
           b->floats == a->floats + bj_cache_record_floats(BJ_AV2_OBS, BJ_AV2_POINTS,
                                                           row->neighbors, row->polylines) &&
           b->maps >= a->maps && b->maps <= a->maps + 1 && row->map >= 0 && row->map < b->maps &&
           b->rings >= a->rings && b->doubles >= a->doubles && b->centimeters >= a->centimeters &&
           row->after.rejects == before->rejects && row->neighbors >= 0 &&
           row->neighbors <= BJ_AV2_NEIGHBORS && row->polylines >= 0 &&
           row->polylines <= BJ_AV2_POLYLINES;
}

static int fits(const bj_cache_extent *extent, const int64_t size[BJ_FILES]) {
    for (int f = 0; f < BJ_FILES; f++)
        if (bj_cache_file_end((bj_cache_file)f, extent) > size[f]) return 0;
    return 1;
}

/* Sets w->at to the extent after the last valid row, and *durable to the number of items that were
 * synced when that row was written. */
static bj_status follow_journal(bj_cache_writer *w, int64_t *durable, const int64_t size[BJ_FILES],
                                bj_error *err) {
    bj_cache_extent at = {0};
    uint8_t check[BJ_CACHE_HASH];
    *durable = 0;
    w->at.items = size[BJ_FILE_JOURNAL] / BJ_ROW_SIZE; /* limit of bj_cache_row_at */
    for (int64_t i = 0, n = w->at.items; i < n; i++) {
        const bj_cache_row *row;
        BJ_TRY(bj_cache_row_at(&row, w, i, err));
        bj_cache_row_check(check, row);
        if (memcmp(check, row->check, sizeof check) || !follows(row, &at) ||
            !fits(&row->after, size))
            break;
        at = row->after;
        *durable = row->durable;
    }
    w->at = at;
    w->row_count = 0;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- rule 2 */

/* Hashes the points of a ring piece by piece. Points in centimeters and in meters are in two
 * different files. */
static bj_status hash_ring(bj_sha256 *hash, bj_cache_writer *w, const bj_cache_ring_row *ring,
                           bj_error *err) {
    unsigned char piece[4096];
    const bj_cache_file file = ring->exact ? BJ_FILE_POINTS_CM : BJ_FILE_POINTS;
    const int64_t point = (int64_t)bj_cache_point_size(ring->exact != 0);
    bj_cache_add_ring_head(hash, ring->count, ring->exact);
    int64_t at = ring->start * point, left = ring->count * point;
    while (left > 0) {
        const size_t n = left < (int64_t)sizeof piece ? (size_t)left : sizeof piece;
        BJ_TRY(bj_cache_get(w, file, piece, n, at, err));
        bj_sha256_update(hash, piece, n);
        at += (int64_t)n;
        left -= (int64_t)n;
    }
    return BJ_OK;
}

/* Checks the map that was added with this scene against its digest. */
static bj_status check_map(int *good, bj_cache_writer *w, const bj_cache_extent *before,
                           const bj_cache_extent *after, bj_error *err) {
    bj_cache_map_row map;
    bj_sha256 hash;
    uint8_t digest[BJ_CACHE_HASH];
    int64_t doubles = before->sizes.doubles, centimeters = before->sizes.centimeters;
    *good = 0;
    BJ_TRY(bj_cache_get(w, BJ_FILE_MAPS, &map, sizeof map, before->sizes.maps * (int64_t)sizeof map,
                        err));
    if (map.first_ring != before->sizes.rings) return BJ_OK;
    bj_sha256_init(&hash);
    for (int64_t r = before->sizes.rings; r < after->sizes.rings; r++) {
        bj_cache_ring_row ring;
        BJ_TRY(bj_cache_get(w, BJ_FILE_RINGS, &ring, sizeof ring, r * (int64_t)sizeof ring, err));
        int64_t *next = ring.exact ? &centimeters : &doubles;
        const int64_t end = ring.exact ? after->sizes.centimeters : after->sizes.doubles;
        if ((ring.exact & ~1) || ring.count < 0 || ring.start != *next || ring.count > end - *next)
            return BJ_OK;
        *next += ring.count;
        BJ_TRY(hash_ring(&hash, w, &ring, err));
    }
    bj_sha256_final_bytes(&hash, digest);
    *good = !memcmp(digest, map.digest, sizeof digest) && doubles == after->sizes.doubles &&
            centimeters == after->sizes.centimeters;
    return BJ_OK;
}

/* Checks the content of an item against its row. `room` is a buffer for one record. */
static bj_status check_item(int *good, bj_cache_writer *w, const bj_cache_row *row,
                            const bj_cache_extent *before, float *room, bj_error *err) {
    uint8_t digest[BJ_CACHE_HASH];
    if (row->kind == BJ_ROW_REJECT) {
        int64_t at = before->rejects, left = row->after.rejects - at;
        bj_sha256 hash;
        bj_sha256_init(&hash);
        while (left > 0) {
            const size_t most = BJ_RECORD_MAX * sizeof *room;
            const size_t n = left < (int64_t)most ? (size_t)left : most;
            BJ_TRY(bj_cache_get(w, BJ_FILE_REJECTS, room, n, at, err));
            bj_sha256_update(&hash, room, n);
            at += (int64_t)n;
            left -= (int64_t)n;
        }
        bj_sha256_final_bytes(&hash, digest);
        *good = !memcmp(digest, row->content_sha256, sizeof digest);
        return BJ_OK;
    }
    const int64_t floats = row->after.sizes.floats - before->sizes.floats;
    BJ_TRY(bj_cache_get(w, BJ_FILE_RECORDS, room, (size_t)floats * sizeof *room,
                        BJ_CACHE_HEADER + before->sizes.floats * (int64_t)sizeof *room, err));
    bj_cache_scene_digest(digest, room, floats, row->future, BJ_AV2_FUTURE);
    *good = !memcmp(digest, row->content_sha256, sizeof digest);
    if (*good && row->after.sizes.maps > before->sizes.maps)
        BJ_TRY(check_map(good, w, before, &row->after, err));
    return BJ_OK;
}

static bj_status check_tail(bj_cache_writer *w, int64_t first, bj_error *err) {
    bj_cache_extent before = {0};
    float *room = NULL;
    bj_status status;
    int good = 1;
    if (first > 0) {
        const bj_cache_row *row;
        BJ_TRY(bj_cache_row_at(&row, w, first - 1, err));
        before = row->after;
    }
    BJ_TRY(BJ_ALLOC(room, BJ_RECORD_MAX, err));
    status = BJ_OK;
    for (int64_t i = first; i < w->at.items && good && status == BJ_OK; i++) {
        const bj_cache_row *row;
        BJ_GOTO(status, done, bj_cache_row_at(&row, w, i, err));
        BJ_GOTO(status, done, check_item(&good, w, row, &before, room, err));
        if (good) before = row->after;
    }
    if (!good) w->at = before;
    w->row_count = 0;
done:
    bj_free(room);
    return status;
}

/* ------------------------------------------------------------------------------------- rule 3 */

static bj_status load(bj_cache_writer *w, bj_error *err) {
    for (int64_t i = 0; i < w->at.items; i++) {
        const bj_cache_row *row;
        BJ_TRY(bj_cache_row_at(&row, w, i, err));
        if (row->kind != BJ_ROW_SCENE) continue;
        memcpy(w->last_id, row->scenario_id, sizeof w->last_id);
        bj_cache_table_keep(&w->cities, row->city);
        bj_cache_table_keep(&w->types, row->focal_type);
    }
    for (int64_t m = 0; m < w->at.sizes.maps; m++) {
        bj_cache_map_row map;
        BJ_TRY(bj_cache_get(w, BJ_FILE_MAPS, &map, sizeof map, m * (int64_t)sizeof map, err));
        BJ_TRY(bj_cache_keep_map(w, m, map.digest, err));
    }
    return BJ_OK;
}

bj_status bj_cache_resume(bj_cache_writer *w, bj_error *err) {
    int64_t size[BJ_FILES], durable = 0;
    for (int f = 0; f < BJ_FILES; f++) {
        struct stat info;
        if (fstat(w->fd[f], &info))
            return bj_cache_file_failed(w, (bj_cache_file)f, errno, "examine", err);
        size[f] = (int64_t)info.st_size;
    }
    BJ_TRY(follow_journal(w, &durable, size, err));
    if (durable > w->at.items) durable = w->at.items;
    BJ_TRY(check_tail(w, durable, err));
    for (int f = 0; f < BJ_FILES; f++)
        if (ftruncate(w->fd[f], (off_t)bj_cache_file_end((bj_cache_file)f, &w->at)))
            return bj_cache_file_failed(w, (bj_cache_file)f, errno, "cut", err);
    w->durable = durable < w->at.items ? durable : w->at.items;
    return load(w, err);
}
