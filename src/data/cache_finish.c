/* cache_finish.c - turns PATH.partial into PATH: writes the index and the header, then renames.
 *
 * The records are already in the file. The columns are appended in batches read from the journal,
 * so memory does not grow with the number of scenes. The header is written into the space reserved
 * for it. If the process is killed here, the next process resumes from the folder. It truncates the
 * index and writes it again.
 * Tests: tests/data/test_cache.c, tests/data/test_cache_resume.c
 */
#define _XOPEN_SOURCE 700 /* renameat */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors_internal.h"
#include "data/cache_partial.h"

enum {
    PIECE = 1 << 18, /* bytes copied or hashed at a time */
    OWN_FACTS = 14,  /* in addition to the caller's facts */
    NUMBER = 24
};

typedef struct finish {
    bj_cache_writer *w;
    bj_safetensors_entry entry[BJ_COLUMNS];
    int64_t data_size; /* bytes after the header */
    unsigned char *piece;
    char scenes[NUMBER], maps[NUMBER], size[5][NUMBER];
    char *cities, *types;
    bj_fact *facts;
    int fact_count;
    char digest[BJ_SHA256_HEX];
    int64_t without_future;
} finish;

/* ---------------------------------------------------------------------------------------- layout
 */

static bj_status lay_out(finish *f, bj_error *err) {
    const bj_cache_sizes *sizes = &f->w->at.sizes;
    size_t at = 0;
    for (int i = 0; i < BJ_COLUMNS; i++) {
        bj_tensor_view *view = &f->entry[i].view;
        view->name = bj_cache_columns[i].name;
        view->dtype = bj_cache_columns[i].dtype;
        view->rank = bj_cache_shape(view->shape, (bj_cache_column)i, sizes, BJ_AV2_FUT);
        if (!bj_tensor_view_measure(view))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: too large", f->w->path);
        f->entry[i].begin = at;
        f->entry[i].end = at += view->bytes;
    }
    f->data_size = (int64_t)at;
    return BJ_OK;
}

/* Writes `size` bytes to a column at offset `at`. */
static bj_status put_column(finish *f, bj_cache_column column, const void *data, size_t size,
                            int64_t at, bj_error *err) {
    return bj_cache_put(f->w, BJ_FILE_RECORDS, data, size,
                        BJ_CACHE_HEADER + (int64_t)f->entry[column].begin + at, err);
}

/* --------------------------------------------------------------------------------------- columns
 */

/* Columns whose values are copied from a field of the journal row. */
#define FIELD(column, field)                                                                       \
    { BJ_COLUMN_##column, offsetof(bj_cache_row, field) }
static const struct {
    bj_cache_column column;
    size_t offset;
} fields[] = {
    FIELD(RECORD_START, record_start),
    FIELD(ORIGIN, origin),
    FIELD(HEADING, heading),
    FIELD(FOCAL_VALID, focal_valid),
    FIELD(FUTURE_VALID, future_valid),
    FIELD(MAP, map),
    FIELD(FUTURE, future),
    FIELD(NEIGHBORS_AVAILABLE, neighbors_available),
    FIELD(POLYLINES_AVAILABLE, polylines_available),
    FIELD(SCENARIO_ID, scenario_id),
    FIELD(FOCAL_ID, focal_id),
    FIELD(MAP_SHA256, map_sha256),
    FIELD(SCENE_SHA256, content_sha256),
};
#undef FIELD
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Returns the number of bytes per scene in a column. */
static size_t element(const finish *f, bj_cache_column column) {
    return f->entry[column].view.bytes / (size_t)f->w->at.sizes.scenes;
}

/* Writes the columns of `count` consecutive scenes, starting with scene `first`. */
static bj_status put_scenes(finish *f, const bj_cache_row *const *rows, int count, int64_t first,
                            bj_error *err) {
    for (int k = 0; k < FIELDS; k++) {
        const size_t size = element(f, fields[k].column);
        for (int i = 0; i < count; i++)
            memcpy(f->piece + (size_t)i * size, (const char *)rows[i] + fields[k].offset, size);
        BJ_TRY(put_column(f, fields[k].column, f->piece, (size_t)count * size,
                          first * (int64_t)size, err));
    }
    uint8_t small[4][BJ_ROWS_READ];
    static const bj_cache_column columns[4] = {BJ_COLUMN_NEIGHBORS, BJ_COLUMN_POLYLINES,
                                               BJ_COLUMN_CITY, BJ_COLUMN_FOCAL_TYPE};
    for (int i = 0; i < count; i++) {
        small[0][i] = (uint8_t)rows[i]->neighbors;
        small[1][i] = (uint8_t)rows[i]->polylines;
        small[2][i] = (uint8_t)bj_cache_table_find(&f->w->cities, rows[i]->city);
        small[3][i] = (uint8_t)bj_cache_table_find(&f->w->types, rows[i]->focal_type);
        f->without_future += rows[i]->future_valid == 0;
    }
    for (int k = 0; k < 4; k++)
        BJ_TRY(put_column(f, columns[k], small[k], (size_t)count, first, err));
    return BJ_OK;
}

static bj_status put_scene_columns(finish *f, bj_error *err) {
    bj_cache_writer *w = f->w;
    const bj_cache_row *rows[BJ_ROWS_READ];
    int64_t scene = 0;
    for (int64_t i = 0; i < w->at.items;) {
        int count = 0;
        const bj_cache_row *row;
        /* Row pointers stay valid until a row outside the buffered range is requested. */
        BJ_TRY(bj_cache_row_at(&row, w, i, err));
        const int64_t end = w->row_first + w->row_count;
        for (; i < end; i++) {
            BJ_TRY(bj_cache_row_at(&row, w, i, err));
            if (row->kind == BJ_ROW_SCENE) rows[count++] = row;
        }
        BJ_TRY(put_scenes(f, rows, count, scene, err));
        scene += count;
    }
    return BJ_OK;
}

static bj_status put_map_columns(finish *f, bj_error *err) {
    bj_cache_writer *w = f->w;
    const bj_cache_sizes *sizes = &w->at.sizes;
    enum { ROWS = 1024 };
    struct {
        bj_cache_map_row maps[ROWS];
        bj_cache_ring_row rings[ROWS];
        int64_t wide[ROWS];
        int32_t counts[ROWS];
        uint8_t digests[ROWS][BJ_CACHE_HASH], exact[ROWS];
    } * room;
    bj_status status;
    BJ_TRY(BJ_ALLOC(room, 1, err));
    for (int64_t at = 0; at < sizes->maps; at += ROWS) {
        const size_t n = (size_t)(sizes->maps - at < ROWS ? sizes->maps - at : ROWS);
        BJ_GOTO(status, done,
                bj_cache_get(w, BJ_FILE_MAPS, room->maps, n * sizeof *room->maps,
                             at * (int64_t)sizeof *room->maps, err));
        for (size_t i = 0; i < n; i++) {
            room->wide[i] = room->maps[i].first_ring;
            memcpy(room->digests[i], room->maps[i].digest, BJ_CACHE_HASH);
        }
        BJ_GOTO(status, done,
                put_column(f, BJ_COLUMN_MAP_RING_START, room->wide, n * sizeof *room->wide, at * 8,
                           err));
        BJ_GOTO(status, done,
                put_column(f, BJ_COLUMN_MAP_DIGEST, room->digests, n * BJ_CACHE_HASH,
                           at * BJ_CACHE_HASH, err));
    }
    BJ_GOTO(status, done,
            put_column(f, BJ_COLUMN_MAP_RING_START, &sizes->rings, sizeof sizes->rings,
                       sizes->maps * 8, err));
    for (int64_t at = 0; at < sizes->rings; at += ROWS) {
        const size_t n = (size_t)(sizes->rings - at < ROWS ? sizes->rings - at : ROWS);
        BJ_GOTO(status, done,
                bj_cache_get(w, BJ_FILE_RINGS, room->rings, n * sizeof *room->rings,
                             at * (int64_t)sizeof *room->rings, err));
        for (size_t i = 0; i < n; i++) {
            room->wide[i] = room->rings[i].start;
            room->counts[i] = room->rings[i].count;
            room->exact[i] = (uint8_t)room->rings[i].exact;
        }
        BJ_GOTO(
            status, done,
            put_column(f, BJ_COLUMN_RING_START, room->wide, n * sizeof *room->wide, at * 8, err));
        BJ_GOTO(status, done,
                put_column(f, BJ_COLUMN_RING_COUNT, room->counts, n * sizeof *room->counts, at * 4,
                           err));
        BJ_GOTO(status, done, put_column(f, BJ_COLUMN_RING_EXACT, room->exact, n, at, err));
    }
    status = BJ_OK;
done:
    bj_free(room);
    return status;
}

static bj_status copy_points(finish *f, bj_cache_column column, bj_cache_file file, bj_error *err) {
    const int64_t size = bj_cache_file_end(file, &f->w->at);
    for (int64_t at = 0; at < size; at += PIECE) {
        const size_t n = (size_t)(size - at < PIECE ? size - at : PIECE);
        BJ_TRY(bj_cache_get(f->w, file, f->piece, n, at, err));
        BJ_TRY(put_column(f, column, f->piece, n, at, err));
    }
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- header
 */

static bj_status table_text(char **out, const bj_cache_table *table, bj_error *err) {
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&bj_json_alc);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    int ok = list != NULL;
    for (int i = 0; i < table->count && ok; i++)
        ok = yyjson_mut_arr_add_str(doc, list, table->text[i]);
    yyjson_mut_doc_set_root(doc, list);
    *out = ok ? yyjson_mut_write_opts(doc, YYJSON_WRITE_NOFLAG, &bj_json_alc, NULL, NULL) : NULL;
    yyjson_mut_doc_free(doc);
    return *out ? BJ_OK : bj_alloc_failed((size_t)table->count, BJ_CACHE_NAME, err);
}

static bj_status collect_facts(finish *f, bj_error *err) {
    static const int sizes[5] = {BJ_AV2_OBS, BJ_AV2_FUT, BJ_AV2_NEIGHBORS, BJ_AV2_POLYLINES,
                                 BJ_AV2_POINTS};
    const bj_cache_writer *w = f->w;
    for (int i = 0; i < 5; i++) snprintf(f->size[i], NUMBER, "%d", sizes[i]);
    snprintf(f->scenes, NUMBER, "%lld", (long long)w->at.sizes.scenes);
    snprintf(f->maps, NUMBER, "%lld", (long long)w->at.sizes.maps);
    BJ_TRY(table_text(&f->cities, &w->cities, err));
    BJ_TRY(table_text(&f->types, &w->types, err));
    const bj_fact own[OWN_FACTS] = {{"format", BJ_CACHE_FORMAT},
                                    {"version", BJ_CACHE_VERSION},
                                    {"features", BJ_FEATURES_VERSION},
                                    {"obs", f->size[0]},
                                    {"fut", f->size[1]},
                                    {"neighbors", f->size[2]},
                                    {"polylines", f->size[3]},
                                    {"points", f->size[4]},
                                    {"dt", "0.1"},
                                    {"scenes", f->scenes},
                                    {"maps", f->maps},
                                    {"cities", f->cities},
                                    {"types", f->types},
                                    {"digest", f->digest}};
    BJ_TRY(BJ_ALLOC(f->facts, (size_t)(OWN_FACTS + w->fact_count), err));
    memcpy(f->facts, own, sizeof own);
    if (w->fact_count)
        memcpy(f->facts + OWN_FACTS, w->facts, (size_t)w->fact_count * sizeof *w->facts);
    f->fact_count = OWN_FACTS + w->fact_count;
    return BJ_OK;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(((const bj_fact *)a)->key, ((const bj_fact *)b)->key);
}

/* Computes the index digest from the columns read back from the file, not from memory. */
static bj_status compute_digest(finish *f, bj_error *err) {
    bj_sha256 hash;
    qsort(f->facts, (size_t)f->fact_count, sizeof *f->facts, compare_keys);
    bj_cache_digest_begin(&hash, f->facts, f->fact_count);
    for (int i = 0; i < BJ_COLUMNS; i++) {
        if (bj_cache_columns[i].is_content) continue;
        bj_cache_digest_column(&hash, (bj_cache_column)i, &f->w->at.sizes, BJ_AV2_FUT);
        const int64_t begin = BJ_CACHE_HEADER + (int64_t)f->entry[i].begin;
        const int64_t size = (int64_t)f->entry[i].view.bytes;
        for (int64_t at = 0; at < size; at += PIECE) {
            const size_t n = (size_t)(size - at < PIECE ? size - at : PIECE);
            BJ_TRY(bj_cache_get(f->w, BJ_FILE_RECORDS, f->piece, n, begin + at, err));
            bj_sha256_update(&hash, f->piece, n);
        }
    }
    bj_sha256_final(&hash, f->digest);
    return BJ_OK;
}

static bj_status put_header(finish *f, bj_error *err) {
    const char *path = f->w->path;
    char *text = NULL;
    size_t size = 0;
    BJ_TRY(bj_safetensors_format_header(&text, &size, path, f->entry, BJ_COLUMNS, f->facts,
                                        f->fact_count, err));
    bj_status status = BJ_OK;
    if (size > BJ_CACHE_HEADER - 8)
        status = BJ_FAIL(err, BJ_EARG, "%s: the header has %zu bytes, expected at most %d", path,
                         size, BJ_CACHE_HEADER - 8);
    if (status == BJ_OK) {
        memset(f->piece, ' ', BJ_CACHE_HEADER);
        for (int i = 0; i < 8; i++)
            f->piece[i] = (unsigned char)((uint64_t)(BJ_CACHE_HEADER - 8) >> 8 * i);
        memcpy(f->piece + 8, text, size);
        status = bj_cache_put(f->w, BJ_FILE_RECORDS, f->piece, BJ_CACHE_HEADER, 0, err);
    }
    bj_free(text);
    return status;
}

/* ------------------------------------------------------------------------------------ publishing
 */

static bj_status publish_rejects(bj_cache_writer *w, bj_error *err) {
    static const char suffix[] = ".rejects.jsonl";
    char path[PATH_MAX];
    unsigned char piece[8192];
    bj_file_writer *writer = NULL;
    bj_status status = BJ_OK;
    if (snprintf(path, sizeof path, "%s%s", w->path, suffix) >= (int)sizeof path)
        return bj_file_fail(err, ENAMETOOLONG, w->path, "create the list of rejects");
    if (w->at.rejects == 0) {
        if (unlink(path) && errno != ENOENT)
            return bj_file_fail(err, errno, path,
                                "remove the list of rejected scenes from an earlier run");
        return BJ_OK;
    }
    BJ_TRY(bj_file_writer_open(&writer, path, err));
    for (int64_t at = 0; at < w->at.rejects; at += (int64_t)sizeof piece) {
        const int64_t left = w->at.rejects - at;
        const size_t n = left < (int64_t)sizeof piece ? (size_t)left : sizeof piece;
        BJ_GOTO(status, failed, bj_cache_get(w, BJ_FILE_REJECTS, piece, n, at, err));
        BJ_GOTO(status, failed, bj_file_writer_write(writer, piece, n, err));
    }
    return bj_file_writer_commit(&writer, err);
failed:
    bj_file_writer_abort(&writer);
    return status;
}

/* Opens the finished file with the reader, so an invalid file is never published. */
static bj_status look_at_it(const bj_cache_writer *w, bj_error *err) {
    char path[PATH_MAX];
    bj_cache *cache = NULL;
    if (snprintf(path, sizeof path, "%s/%s", w->partial, bj_cache_file_names[BJ_FILE_RECORDS]) >=
        (int)sizeof path)
        return bj_file_fail(err, ENAMETOOLONG, w->path, "open");
    const bj_status status = bj_cache_open(&cache, path, 1, err);
    bj_cache_free(cache);
    return status;
}

static bj_status publish(finish *f, bj_error *err) {
    bj_cache_writer *w = f->w;
    if (fsync(w->fd[BJ_FILE_RECORDS]))
        return bj_cache_file_failed(w, BJ_FILE_RECORDS, errno, "sync", err);
    BJ_TRY(look_at_it(w, err));
    BJ_TRY(publish_rejects(w, err));
    if (renameat(w->folder, bj_cache_file_names[BJ_FILE_RECORDS], w->parent, w->name))
        return bj_file_fail(err, errno, w->path, "rename the finished cache");
    BJ_TRY(
        bj_file_sync_folder(w->parent, w->path, "sync the directory of the finished cache", err));
    bj_cache_remove_partial(w->parent, w->below, w->folder);
    return BJ_OK;
}

static bj_status write_file(finish *f, bj_error *err) {
    BJ_TRY(BJ_ALLOC(f->piece, PIECE, err));
    BJ_TRY(lay_out(f, err));
    BJ_TRY(put_scene_columns(f, err));
    BJ_TRY(put_map_columns(f, err));
    BJ_TRY(copy_points(f, BJ_COLUMN_POINTS, BJ_FILE_POINTS, err));
    BJ_TRY(copy_points(f, BJ_COLUMN_POINTS_CM, BJ_FILE_POINTS_CM, err));
    BJ_TRY(collect_facts(f, err));
    BJ_TRY(compute_digest(f, err));
    return put_header(f, err);
}

/* Handles a run in which no scene was usable: publishes the rejects, removes the folder and
 * fails. */
static bj_status give_up(bj_cache_writer *w, bj_error *err) {
    BJ_TRY(publish_rejects(w, err));
    bj_cache_remove_partial(w->parent, w->below, w->folder);
    if (w->at.items == 0) return BJ_FAIL(err, BJ_EFORMAT, "%s: no scenes", w->path);
    return BJ_FAIL(err, BJ_EFORMAT,
                   "%s: none of the %lld scenes could be used; see %s.rejects.jsonl", w->path,
                   (long long)w->at.items, w->name);
}

bj_status bj_cache_writer_finish(bj_cache_writer **writer, bj_prep_report *report, bj_error *err) {
    finish f = {.w = *writer};
    bj_status status;
    report->accepted = f.w->at.sizes.scenes;
    report->rejected = f.w->at.items - f.w->at.sizes.scenes;
    if (f.w->at.sizes.scenes == 0) {
        status = give_up(f.w, err);
        goto done;
    }
    BJ_GOTO(status, done, write_file(&f, err));
    BJ_GOTO(status, done, publish(&f, err));
    report->without_future = f.without_future;
    report->maps = f.w->at.sizes.maps;
    report->bytes = BJ_CACHE_HEADER + f.data_size;
    memcpy(report->digest, f.digest, sizeof report->digest);
done:
    bj_free(f.piece);
    bj_free(f.cities);
    bj_free(f.types);
    bj_free(f.facts);
    bj_cache_writer_close(writer);
    return status;
}
