/* map.c - see map.h. Reads the text in one pass. Skipped values must also be valid JSON.
 *
 *   {"lane_segments": {KEY: {"id", "is_intersection", "left_lane_boundary",
 *    "right_lane_boundary", "successors": [ID, ...]}},     successors may be missing
 *    "pedestrian_crossings": {KEY: {"id", "edge1"}},       may be missing
 *    "drivable_areas": {KEY: {"id", "area_boundary"}}}     boundaries and edges: [{"x", "y"}, ...]
 *
 * Memory: every object takes at least the *_BYTES below, so the text size bounds all counts. All
 * arrays are reserved before the first object is read, and they are not moved afterwards.
 */
#include "data/map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json_scan.h"

enum {
    MAX_BYTES = 64 << 20, /* max size of a map; official maps are smaller than 1 MB */
    POINT_BYTES = 14,     /* {"x":0,"y":0}, */
    CROSSING_BYTES = 34,  /* "":{"id":0,"edge1":[{"x":0,"y":0}]} */
    AREA_BYTES = 70,      /* "":{"id":0,"area_boundary":[{"x":0,"y":0},... two more ]} */
    ID_BYTES = 2,         /* 0, */
    LANE_BYTES = 110,     /* "":{"id":0,"is_intersection":true,"left_lane_boundary":[...],... */
    LABEL_SHOWN = 200,    /* a longer path is cut at its start */
    KEY_SHOWN = 40
};

typedef struct name {
    const char *text; /* NULL if there is none */
    size_t size;
} name;

#define NAME(text)                                                                                 \
    { text, sizeof(text) - 1 }

static int is(bj_json_text key, name n) {
    return key.size == n.size && n.text && !memcmp(key.at, n.text, n.size);
}

typedef enum section { LANES, CROSSINGS, AREAS, SECTIONS } section;
static const name section_names[SECTIONS] = {NAME("lane_segments"), NAME("pedestrian_crossings"),
                                             NAME("drivable_areas")};

struct bj_map_reader {
    char *text; /* the file content, zero-terminated */
    size_t text_room;
    bj_point *points;
    int64_t *ids; /* successors of all lanes */
    bj_lane *lanes;
    bj_crossing *crossings;
    bj_area *areas;
    size_t points_room, ids_room, lanes_room, crossings_room, areas_room;
    bj_json_text *keys; /* keys of the objects in the current section */
    uint32_t *table;    /* hash -> object + 1 */
    size_t keys_room, table_room;

    /* Read position. */
    bj_json_scan scan;
    const char *label;
    section section;
    bj_json_text key;
    size_t points_used, ids_used;
};

bj_status bj_map_reader_create(bj_map_reader **out, bj_error *err) {
    return BJ_ALLOC(*out, 1, err);
}

void bj_map_reader_free(bj_map_reader *reader) {
    if (!reader) return;
    bj_free(reader->text);
    bj_free(reader->points);
    bj_free(reader->ids);
    bj_free(reader->lanes);
    bj_free(reader->crossings);
    bj_free(reader->areas);
    bj_free(reader->keys);
    bj_free(reader->table);
    bj_free(reader);
}

/* ------------------------------------------------------------------------------------- messages */

/* Copies a key for a message. Bytes that are not printable ASCII become '?'. */
static void printable(char out[KEY_SHOWN + 1], bj_json_text text) {
    size_t n = text.size < KEY_SHOWN ? text.size : KEY_SHOWN;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.at[i];
        out[i] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    out[n] = '\0';
}

/* Fails with "FILE: SECTION 'KEY': detail". */
static bj_status refuse(const bj_map_reader *reader, bj_error *err, const char *fmt, ...)
    BJ_PRINTF(3, 4);
static bj_status refuse(const bj_map_reader *reader, bj_error *err, const char *fmt, ...) {
    char detail[160], key[KEY_SHOWN + 1];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    printable(key, reader->key);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: %s '%s': %s", reader->label,
                   section_names[reader->section].text, key, detail);
}

static bj_status broken(const bj_map_reader *reader, bj_error *err) {
    return bj_json_scan_fail(&reader->scan, reader->label, err);
}

/* Fails because the value of `field` has the wrong type. If the JSON is invalid, the message
 * reports that instead. */
static bj_status refuse_value(bj_map_reader *reader, bj_error *err, const char *field, long index,
                              const char *part, const char *expected) {
    if (bj_json_scan_skip(&reader->scan) < 0) return broken(reader, err);
    if (index < 0) return refuse(reader, err, "%s is not %s", field, expected);
    return refuse(reader, err, "%s[%ld]%s%s is not %s", field, index, *part ? "." : "", part,
                  expected);
}

/* -------------------------------------------------------------------------------------- points */

/* If the input continues with the given text of n bytes, skips the text and returns 1. */
static inline int pass(bj_json_scan *scan, const char *text, size_t n) {
    if ((size_t)(scan->end - scan->at) < n || memcmp(scan->at, text, n)) return 0;
    scan->at += n;
    return 1;
}

/* Reads one point in the layout of the official files, `{"x": 1.5, "y": 2.5, "z": 0.5}`. Returns 0
 * and consumes nothing if the layout differs. */
static inline int read_usual_point(bj_point *out, bj_json_scan *scan) {
    bj_json_scan s = *scan;
    double z;
    if (!pass(&s, "{\"x\": ", 6) || bj_json_scan_number(&s, &out->x) != 1) return 0;
    if (!pass(&s, ", \"y\": ", 7) || bj_json_scan_number(&s, &out->y) != 1) return 0;
    if (!pass(&s, ", \"z\": ", 7) || bj_json_scan_number(&s, &z) != 1) return 0;
    if (*s.at != '}') return 0;
    scan->at = s.at + 1;
    return 1;
}

static bj_status read_point(bj_point *out, bj_map_reader *reader, const char *field, long index,
                            bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    bj_json_text key;
    int more, has_x = 0, has_y = 0;
    if (!bj_json_scan_open(scan, '{'))
        return refuse_value(reader, err, field, index, "", "a point {\"x\": ..., \"y\": ...}");
    for (int first = 1; (more = bj_json_scan_key(scan, &key, &first)) > 0;) {
        const int is_x = key.size == 1 && key.at[0] == 'x';
        if (!is_x && !(key.size == 1 && key.at[0] == 'y')) {
            if (bj_json_scan_skip(scan) < 0) return broken(reader, err);
            continue;
        }
        const char *const axis = is_x ? "x" : "y";
        int *const has = is_x ? &has_x : &has_y;
        if (*has) return refuse(reader, err, "%s[%ld].%s is given twice", field, index, axis);
        *has = bj_json_scan_number(scan, is_x ? &out->x : &out->y);
        if (*has < 0) return broken(reader, err);
        if (!*has) return refuse_value(reader, err, field, index, axis, "a finite number");
    }
    if (more < 0) return broken(reader, err);
    if (!has_x || !has_y)
        return refuse(reader, err, "%s[%ld] has no %s", field, index, has_x ? "y" : "x");
    return BJ_OK;
}

static bj_status read_points(bj_points *out, bj_map_reader *reader, const char *field,
                             bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    bj_point *const begin = reader->points + reader->points_used;
    int more, count = 0;
    if (!bj_json_scan_open(scan, '['))
        return refuse_value(reader, err, field, -1, "", "a list of points");
    for (int first = 1; (more = bj_json_scan_item(scan, &first)) > 0; count++)
        if (!read_usual_point(begin + count, scan))
            BJ_TRY(read_point(begin + count, reader, field, count, err));
    if (more < 0) return broken(reader, err);
    if (!count) return refuse(reader, err, "%s has no points", field);
    *out = (bj_points){begin, count};
    reader->points_used += (size_t)count;
    return BJ_OK;
}

static bj_status read_ids(const int64_t **out, int *count, bj_map_reader *reader, const char *field,
                          bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    int64_t *const begin = reader->ids + reader->ids_used;
    int more, n = 0;
    if (!bj_json_scan_open(scan, '['))
        return refuse_value(reader, err, field, -1, "", "a list of ids");
    for (int first = 1; (more = bj_json_scan_item(scan, &first)) > 0; n++) {
        const int done = bj_json_scan_integer(scan, begin + n);
        if (done < 0) return broken(reader, err);
        if (!done) return refuse_value(reader, err, field, n, "", "a 64-bit integer");
    }
    if (more < 0) return broken(reader, err);
    *out = begin;
    *count = n;
    reader->ids_used += (size_t)n;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- objects */

enum { FIELDS = 5 };
typedef struct fields { /* the fields of an object that are read */
    name name[FIELDS];
} fields;

/* clang-format off */
enum { ID, FIRST_LINE, SECOND_LINE, FLAG, NEXT };
static const fields section_fields[SECTIONS] = {
    [LANES]     = {{NAME("id"), NAME("left_lane_boundary"), NAME("right_lane_boundary"),
                    NAME("is_intersection"), NAME("successors")}},
    [CROSSINGS] = {{NAME("id"), NAME("edge1"), {NULL, 0}, {NULL, 0}, {NULL, 0}}},
    [AREAS]     = {{NAME("id"), NAME("area_boundary"), {NULL, 0}, {NULL, 0}, {NULL, 0}}},
};
/* clang-format on */

typedef struct object {
    int64_t id;
    bj_points line[2];
    int flag;
    const int64_t *next; /* (next_count) */
    int next_count;
} object;

static bj_status read_field(object *out, bj_map_reader *reader, int field, const char *title,
                            bj_error *err) {
    if (field == FIRST_LINE || field == SECOND_LINE)
        return read_points(&out->line[field - FIRST_LINE], reader, title, err);
    if (field == NEXT) return read_ids(&out->next, &out->next_count, reader, title, err);
    const int done = field == ID ? bj_json_scan_integer(&reader->scan, &out->id)
                                 : bj_json_scan_bool(&reader->scan, &out->flag);
    if (done < 0) return broken(reader, err);
    if (!done)
        return refuse_value(reader, err, title, -1, "",
                            field == ID ? "a 64-bit integer" : "true or false");
    return BJ_OK;
}

/* Skips an unused field. Most unused bytes are points, for example in "centerline". */
static int skip_field(bj_json_scan *scan) {
    bj_point ignored;
    int more;
    if (!bj_json_scan_open(scan, '[')) return bj_json_scan_skip(scan);
    for (int first = 1; (more = bj_json_scan_item(scan, &first)) > 0;)
        if (!read_usual_point(&ignored, scan) && bj_json_scan_skip(scan) < 0) return -1;
    return more < 0 ? -1 : 1;
}

static bj_status read_object(object *out, bj_map_reader *reader, bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    const fields *f = &section_fields[reader->section];
    bj_json_text key;
    int more, has[FIELDS] = {0};
    if (!bj_json_scan_open(scan, '{')) {
        if (bj_json_scan_skip(scan) < 0) return broken(reader, err);
        return refuse(reader, err, "not an object");
    }
    for (int first = 1; (more = bj_json_scan_key(scan, &key, &first)) > 0;) {
        int i = 0;
        while (i < FIELDS && !is(key, f->name[i])) i++;
        if (i == FIELDS) {
            if (skip_field(scan) < 0) return broken(reader, err);
            continue;
        }
        if (has[i]) return refuse(reader, err, "%s is given twice", f->name[i].text);
        has[i] = 1;
        BJ_TRY(read_field(out, reader, i, f->name[i].text, err));
    }
    if (more < 0) return broken(reader, err);
    for (int i = 0; i < FIELDS; i++)
        if (f->name[i].text && !has[i] && i != NEXT)
            return refuse(reader, err, "%s is missing", f->name[i].text);
    return BJ_OK;
}

/* Adds an object to the map. If a ring repeats its first point at the end, removes the last
 * point. */
static bj_status keep_object(bj_map *map, bj_map_reader *reader, const object *o, bj_error *err) {
    switch (reader->section) {
    case LANES:
        reader->lanes[map->lane_count++] =
            (bj_lane){o->id, o->flag, o->line[0], o->line[1], o->next, o->next_count};
        break;
    case CROSSINGS:
        reader->crossings[map->crossing_count++] = (bj_crossing){o->id, o->line[0]};
        break;
    default: {
        bj_points ring = o->line[0];
        const bj_point first = ring.at[0], last = ring.at[ring.count - 1];
        if (ring.count > 1 && first.x == last.x && first.y == last.y) ring.count--;
        if (ring.count < 3)
            return refuse(reader, err,
                          "area_boundary has %d points, expected at least 3",
                          ring.count);
        reader->areas[map->area_count++] = (bj_area){o->id, ring};
    }
    }
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- sections */

static int64_t id_of(const bj_map_reader *reader, size_t i) {
    return reader->section == LANES       ? reader->lanes[i].id
           : reader->section == CROSSINGS ? reader->crossings[i].id
                                          : reader->areas[i].id;
}

static uint64_t mix(uint64_t hash) { /* splitmix64 finalizer */
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}

static uint64_t hash_text(bj_json_text text) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 0x100000001b3u;
    return mix(hash);
}

/* Checks that keys and ids are unique, because objects are looked up by key and id, and ids break
 * ties between equal distances. One open-addressing table is used, first for the keys and then for
 * the ids. */
static bj_status check_distinct(bj_map_reader *reader, size_t count, bj_error *err) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    BJ_RESERVE(reader->table, reader->table_room, slots, err);
    for (int by_id = 0; by_id < 2; by_id++) {
        memset(reader->table, 0, slots * sizeof *reader->table);
        for (size_t i = 0; i < count; i++) {
            const bj_json_text key = reader->keys[i];
            const int64_t id = id_of(reader, i);
            size_t at = (size_t)(by_id ? mix((uint64_t)id) : hash_text(key)) & (slots - 1);
            for (; reader->table[at]; at = (at + 1) & (slots - 1)) {
                const size_t other = reader->table[at] - 1;
                const bj_json_text k = reader->keys[other];
                reader->key = key;
                if (by_id && id_of(reader, other) == id)
                    return refuse(reader, err, "id %lld is given twice", (long long)id);
                if (!by_id && k.size == key.size && !memcmp(k.at, key.at, k.size))
                    return refuse(reader, err, "this key is given twice");
            }
            reader->table[at] = (uint32_t)i + 1;
        }
    }
    return BJ_OK;
}

static bj_status read_section(bj_map *map, bj_map_reader *reader, bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    size_t count = 0;
    int more;
    if (!bj_json_scan_open(scan, '{')) {
        if (bj_json_scan_skip(scan) < 0) return broken(reader, err);
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is not an object", reader->label,
                       section_names[reader->section].text);
    }
    for (int first = 1; (more = bj_json_scan_key(scan, &reader->key, &first)) > 0;) {
        object o = {0};
        BJ_TRY(read_object(&o, reader, err));
        BJ_TRY(keep_object(map, reader, &o, err));
        reader->keys[count++] = reader->key;
    }
    if (more < 0) return broken(reader, err);
    return check_distinct(reader, count, err);
}

/* ------------------------------------------------------------------------------------- the file */

static bj_status reserve(bj_map_reader *reader, size_t size, bj_error *err) {
    BJ_RESERVE(reader->points, reader->points_room, size / POINT_BYTES + 1, err);
    BJ_RESERVE(reader->ids, reader->ids_room, size / ID_BYTES + 1, err);
    BJ_RESERVE(reader->lanes, reader->lanes_room, size / LANE_BYTES + 1, err);
    BJ_RESERVE(reader->crossings, reader->crossings_room, size / CROSSING_BYTES + 1, err);
    BJ_RESERVE(reader->areas, reader->areas_room, size / AREA_BYTES + 1, err);
    BJ_RESERVE(reader->keys, reader->keys_room, size / CROSSING_BYTES + 1, err);
    return BJ_OK;
}

static bj_status read_text(bj_map *map, bj_map_reader *reader, size_t size, bj_error *err) {
    bj_json_scan *scan = &reader->scan;
    bj_json_text key;
    int more, has[SECTIONS] = {0};
    BJ_TRY(reserve(reader, size, err));
    reader->points_used = reader->ids_used = 0;
    bj_json_scan_begin(scan, reader->text, size);
    if (!bj_json_scan_open(scan, '{')) {
        if (bj_json_scan_skip(scan) < 0 || bj_json_scan_end(scan) < 0) return broken(reader, err);
        return BJ_FAIL(err, BJ_EFORMAT, "%s: not a JSON object", reader->label);
    }
    for (int first = 1; (more = bj_json_scan_key(scan, &key, &first)) > 0;) {
        int s = 0;
        while (s < SECTIONS && !is(key, section_names[s])) s++;
        if (s == SECTIONS) {
            if (bj_json_scan_skip(scan) < 0) return broken(reader, err);
            continue;
        }
        if (has[s])
            return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is given twice", reader->label,
                           section_names[s].text);
        has[s] = 1;
        reader->section = (section)s;
        BJ_TRY(read_section(map, reader, err));
    }
    if (more < 0 || bj_json_scan_end(scan) < 0) return broken(reader, err);
    for (int s = 0; s < SECTIONS; s++)
        if (!has[s] && s != CROSSINGS)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is missing", reader->label,
                           section_names[s].text);
    map->lanes = reader->lanes;
    map->crossings = reader->crossings;
    map->areas = reader->areas;
    return BJ_OK;
}

/* Reads a map from reader->text. `out` is filled only on success. */
static bj_status read_labeled(bj_map *out, bj_map_reader *reader, size_t size, const char *label,
                              bj_error *err) {
    const size_t length = strlen(label);
    bj_map map = {0};
    reader->label = length > LABEL_SHOWN ? label + length - LABEL_SHOWN : label;
    BJ_TRY(read_text(&map, reader, size, err));
    *out = map;
    return BJ_OK;
}

bj_status bj_map_read(bj_map *out, bj_map_reader *reader, const char *path, bj_error *err) {
    size_t size;
    *out = (bj_map){0};
    BJ_TRY(bj_file_read_again(&reader->text, &reader->text_room, &size, path, MAX_BYTES, err));
    return read_labeled(out, reader, size, path, err);
}

bj_status bj_map_read_memory(bj_map *out, bj_map_reader *reader, const void *data, size_t size,
                             const char *label, bj_error *err) {
    *out = (bj_map){0};
    if (size > MAX_BYTES)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: more than %d bytes", label, MAX_BYTES);
    BJ_RESERVE(reader->text, reader->text_room, size + 1, err);
    if (size) memcpy(reader->text, data, size);
    reader->text[size] = '\0';
    return read_labeled(out, reader, size, label, err);
}
