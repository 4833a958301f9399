/* cache_writer.c - writes a cache scene by scene. cache_writer.h is the interface, cache_partial.h
 * describes the files. Test: tests/data/test_cache_resume.c */
#define _XOPEN_SOURCE 700 /* pread, pwrite, fdatasync */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/utf8.h"
#include "data/cache_partial.h"

_Static_assert(sizeof(bj_cache_row) == BJ_ROW_SIZE, "rows of the journal have a fixed size");
_Static_assert(sizeof(bj_cache_map_row) == 40 && sizeof(bj_cache_ring_row) == 16, "no padding");

enum {
    SYNC_SECONDS = 5,
    FOLDER_SHOWN = 4096, /* max bytes of a path in a reject line; TEXT_SHOWN is the limit for other
                            texts */
    TEXT_SHOWN = 600,
    LINE_ROOM = 6 * (FOLDER_SHOWN + 3 * TEXT_SHOWN) + 128 /* an escaped byte takes up to six
                                                             bytes */
};

const char *const bj_cache_file_names[BJ_FILES] = {
    [BJ_FILE_RECORDS] = "records", [BJ_FILE_JOURNAL] = "journal", [BJ_FILE_MAPS] = "maps",
    [BJ_FILE_RINGS] = "rings",     [BJ_FILE_POINTS] = "points",   [BJ_FILE_POINTS_CM] = "points_cm",
    [BJ_FILE_REJECTS] = "rejects",
};

/* ----------------------------------------------------------------------------------------- files
 */

int64_t bj_cache_file_end(bj_cache_file file, const bj_cache_extent *e) {
    switch (file) {
    case BJ_FILE_RECORDS: return BJ_CACHE_HEADER + e->sizes.floats * (int64_t)sizeof(float);
    case BJ_FILE_JOURNAL: return e->items * BJ_ROW_SIZE;
    case BJ_FILE_MAPS: return e->sizes.maps * (int64_t)sizeof(bj_cache_map_row);
    case BJ_FILE_RINGS: return e->sizes.rings * (int64_t)sizeof(bj_cache_ring_row);
    case BJ_FILE_POINTS: return e->sizes.doubles * (int64_t)bj_cache_point_size(0);
    case BJ_FILE_POINTS_CM: return e->sizes.centimeters * (int64_t)bj_cache_point_size(1);
    case BJ_FILE_REJECTS: return e->rejects;
    case BJ_FILES: break;
    }
    return 0;
}

bj_status bj_cache_file_failed(const bj_cache_writer *w, bj_cache_file file, int number,
                               const char *what, bj_error *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", w->partial, bj_cache_file_names[file]);
    return bj_file_fail(err, number, path, what);
}

bj_status bj_cache_put(bj_cache_writer *w, bj_cache_file file, const void *data, size_t size,
                       int64_t at, bj_error *err) {
    const char *from = data;
    while (size) {
        const ssize_t done = pwrite(w->fd[file], from, size, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return bj_cache_file_failed(w, file, errno, "write", err);
        from += done;
        at += done;
        size -= (size_t)done;
    }
    return BJ_OK;
}

bj_status bj_cache_get(bj_cache_writer *w, bj_cache_file file, void *data, size_t size, int64_t at,
                       bj_error *err) {
    char *to = data;
    while (size) {
        const ssize_t done = pread(w->fd[file], to, size, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return bj_cache_file_failed(w, file, errno, "read", err);
        if (done == 0) return bj_cache_file_failed(w, file, EIO, "read past the end", err);
        to += done;
        at += done;
        size -= (size_t)done;
    }
    return BJ_OK;
}

/* Appends to a file, at a distance of `ahead` bytes from its end at the current extent. */
static bj_status append(bj_cache_writer *w, bj_cache_file file, const void *data, size_t size,
                        int64_t ahead, bj_error *err) {
    return bj_cache_put(w, file, data, size, bj_cache_file_end(file, &w->at) + ahead, err);
}

/* ---------------------------------------------------------------------------------- tables, maps
 */

int bj_cache_table_find(const bj_cache_table *table, const char *text) {
    for (int i = 0; i < table->count; i++)
        if (!strcmp(table->text[i], text)) return i;
    return -1;
}

void bj_cache_table_keep(bj_cache_table *table, const char *text) {
    if (bj_cache_table_find(table, text) >= 0 || table->count == BJ_CACHE_TABLE) return;
    memcpy(table->text[table->count++], text, strlen(text) + 1);
}

static int table_takes(const bj_cache_table *table, const char *text) {
    return table->count < BJ_CACHE_TABLE || bj_cache_table_find(table, text) >= 0;
}

static uint64_t place_of(const uint8_t digest[BJ_CACHE_HASH]) {
    uint64_t value;
    memcpy(&value, digest, sizeof value);
    return value;
}

int64_t bj_cache_find_map(const bj_cache_writer *w, const uint8_t digest[BJ_CACHE_HASH]) {
    if (!w->table_room) return -1;
    const uint64_t mask = (uint64_t)w->table_room - 1;
    for (uint64_t at = place_of(digest) & mask; w->table[at] >= 0; at = (at + 1) & mask)
        if (!memcmp(w->digests[w->table[at]], digest, BJ_CACHE_HASH)) return w->table[at];
    return -1;
}

static void enter_map(bj_cache_writer *w, int64_t number) {
    const uint64_t mask = (uint64_t)w->table_room - 1;
    uint64_t at = place_of(w->digests[number]) & mask;
    while (w->table[at] >= 0) at = (at + 1) & mask;
    w->table[at] = (int32_t)number;
}

/* Doubles the capacity. The hash table is at most half full. */
static bj_status grow_maps(bj_cache_writer *w, int64_t count, bj_error *err) {
    const int64_t room = w->digest_room ? 2 * w->digest_room : 1024;
    uint8_t(*digests)[BJ_CACHE_HASH] = NULL;
    int32_t *table = NULL;
    if (room > INT32_MAX / 4)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: more than %lld maps", w->path, (long long)count);
    BJ_TRY(BJ_ALLOC(digests, (size_t)room, err));
    const bj_status status = BJ_ALLOC(table, 2 * (size_t)room, err);
    if (status != BJ_OK) {
        bj_free(digests);
        return status;
    }
    if (count) memcpy(digests, w->digests, (size_t)count * sizeof *digests);
    bj_free(w->digests);
    bj_free(w->table);
    w->digests = digests;
    w->digest_room = room;
    w->table = table;
    w->table_room = 2 * room;
    for (int64_t i = 0; i < w->table_room; i++) table[i] = -1;
    for (int64_t i = 0; i < count; i++) enter_map(w, i);
    return BJ_OK;
}

bj_status bj_cache_keep_map(bj_cache_writer *w, int64_t number, const uint8_t digest[BJ_CACHE_HASH],
                            bj_error *err) {
    if (number >= w->digest_room) BJ_TRY(grow_maps(w, number, err));
    memcpy(w->digests[number], digest, BJ_CACHE_HASH);
    enter_map(w, number);
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- adding
 */

static bj_status sync_files(bj_cache_writer *w, bj_error *err) {
    for (int f = 0; f < BJ_FILES; f++)
        if (fdatasync(w->fd[f]))
            return bj_cache_file_failed(w, (bj_cache_file)f, errno, "sync", err);
    w->durable = w->at.items;
    w->synced = bj_seconds();
    return BJ_OK;
}

/* Writes the journal row, which makes the item's data valid. */
static bj_status write_row(bj_cache_writer *w, bj_cache_row *row, const bj_cache_extent *after,
                           bj_error *err) {
    row->after = *after;
    row->durable = w->durable;
    bj_cache_row_check(row->check, row);
    BJ_TRY(append(w, BJ_FILE_JOURNAL, row, BJ_ROW_SIZE, 0, err));
    w->at = *after;
    w->row_count = 0;
    return bj_seconds() - w->synced > SYNC_SECONDS ? sync_files(w, err) : BJ_OK;
}

static bj_status append_map(bj_cache_writer *w, bj_cache_extent *after, const bj_cache_bytes *bytes,
                            bj_error *err) {
    const bj_cache_sizes *at = &w->at.sizes;
    bj_cache_map_row map = {.first_ring = at->rings};
    memcpy(map.digest, bytes->map_digest, sizeof map.digest);
    for (int i = 0; i < bytes->ring_count; i++) {
        bj_cache_ring_row ring = bytes->rings[i];
        ring.start += ring.exact ? at->centimeters : at->doubles;
        BJ_TRY(append(w, BJ_FILE_RINGS, &ring, sizeof ring, i * (int64_t)sizeof ring, err));
    }
    BJ_TRY(append(w, BJ_FILE_POINTS, bytes->doubles,
                  (size_t)bytes->double_count * bj_cache_point_size(0), 0, err));
    BJ_TRY(append(w, BJ_FILE_POINTS_CM, bytes->centimeters,
                  (size_t)bytes->centimeter_count * bj_cache_point_size(1), 0, err));
    BJ_TRY(append(w, BJ_FILE_MAPS, &map, sizeof map, 0, err));
    after->sizes.maps++;
    after->sizes.rings += bytes->ring_count;
    after->sizes.doubles += bytes->double_count;
    after->sizes.centimeters += bytes->centimeter_count;
    return bj_cache_keep_map(w, at->maps, bytes->map_digest, err);
}

bj_status bj_cache_writer_add(bj_cache_writer *w, const bj_cache_bytes *bytes, bj_error *err) {
    bj_cache_row row = bytes->row;
    bj_cache_extent after = w->at;
    if (strcmp(row.scenario_id, w->last_id) <= 0)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: scene '%s' comes after '%s', but ids must be in ascending order",
                       w->path, row.scenario_id, w->last_id);
    if (!table_takes(&w->cities, row.city) || !table_takes(&w->types, row.focal_type))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "city '%s' or type '%s' cannot be added, "
                       "because a cache contains at most %d cities and as many types",
                       row.city, row.focal_type, BJ_CACHE_TABLE);
    row.record_start = w->at.sizes.floats;
    row.map = bj_cache_find_map(w, bytes->map_digest);
    BJ_TRY(
        append(w, BJ_FILE_RECORDS, bytes->record, (size_t)bytes->floats * sizeof(float), 0, err));
    if (row.map < 0) {
        row.map = w->at.sizes.maps;
        BJ_TRY(append_map(w, &after, bytes, err));
    }
    after.sizes.scenes++;
    after.sizes.floats += bytes->floats;
    after.items++;
    BJ_TRY(write_row(w, &row, &after, err));
    memcpy(w->last_id, row.scenario_id, sizeof w->last_id);
    bj_cache_table_keep(&w->cities, row.city);
    bj_cache_table_keep(&w->types, row.focal_type);
    return BJ_OK;
}

/* Appends up to `most` bytes of a text as a JSON string. Invalid UTF-8 becomes U+FFFD. */
static size_t put_text(char *line, size_t at, const char *text, size_t most) {
    size_t left = strlen(text);
    if (left > most) left = most;
    line[at++] = '"';
    for (size_t n; left; text += n, left -= n) {
        const unsigned char c = (unsigned char)*text;
        n = bj_utf8_sequence(text, left);
        if (n == 0) {
            at += (size_t)snprintf(line + at, 8, "\\ufffd");
            n = 1;
        } else if (c < 0x20 || c == 0x7f) {
            at += (size_t)snprintf(line + at, 8, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') line[at++] = '\\';
            memcpy(line + at, text, n);
            at += n;
        }
    }
    line[at++] = '"';
    return at;
}

bj_status bj_cache_writer_reject(bj_cache_writer *w, const char *item, const char *folder,
                                 const char *code, const char *reason, bj_error *err) {
    const char *const keys[] = {"scenario_id", "folder", "code", "reason"};
    const char *const values[] = {item, folder, code, reason};
    char line[LINE_ROOM];
    size_t size = (size_t)snprintf(line, sizeof line, "{\"schema\":1");
    for (int i = 0; i < 4; i++) {
        size += (size_t)snprintf(line + size, sizeof line - size, ",\"%s\":", keys[i]);
        size = put_text(line, size, values[i], i == 1 ? FOLDER_SHOWN : TEXT_SHOWN);
    }
    size += (size_t)snprintf(line + size, sizeof line - size, "}\n");

    bj_cache_row row = {.kind = BJ_ROW_REJECT};
    bj_cache_extent after = w->at;
    snprintf(row.scenario_id, sizeof row.scenario_id, "%s", item);
    bj_sha256_block(row.content_sha256, line, size);
    BJ_TRY(append(w, BJ_FILE_REJECTS, line, size, 0, err));
    after.items++;
    after.rejects += (int64_t)size;
    return write_row(w, &row, &after, err);
}

int64_t bj_cache_writer_items(const bj_cache_writer *w) { return w->at.items; }
int64_t bj_cache_writer_scenes(const bj_cache_writer *w) { return w->at.sizes.scenes; }

bj_status bj_cache_writer_item(const char **name, bj_cache_writer *w, int64_t item, bj_error *err) {
    const bj_cache_row *row;
    BJ_TRY(bj_cache_row_at(&row, w, item, err));
    *name = row->scenario_id;
    return BJ_OK;
}
