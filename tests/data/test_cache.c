/* test_cache.c - tests that a cache returns the scenes that were written, and that damage is
 * detected. */
#define _XOPEN_SOURCE 700
#include "cache_case.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "data/cache.h"
#include "data/cache_format.h"

enum { ITEMS = 14 };

static char folder[64];
static char path[80], rejects[100], other[80];

/* ----------------------------------------------------------------------------------- round trip */

static void compare_rings(const bj_cache *cache, int64_t map, const case_scene *s) {
    CHECK(bj_cache_rings(cache, map) == s->map.area_count);
    for (int r = 0; r < s->map.area_count && r < bj_cache_rings(cache, map); r++) {
        double points[CASE_POINTS][2];
        const bj_points ring = s->areas[r].ring;
        CHECK(bj_cache_ring_size(cache, map, r) == ring.count);
        if (bj_cache_ring_size(cache, map, r) > CASE_POINTS) continue;
        bj_cache_ring(points[0], cache, map, r);
        CHECK(!memcmp(points, ring.at, (size_t)ring.count * sizeof *ring.at));
    }
}

static void compare_scene(const bj_cache *cache, int64_t index, int number) {
    case_scene *s = bj_alloc(1, sizeof *s);
    bj_error err = {0};
    CHECK(s != NULL);
    if (!s) return;
    case_draw(s, number);
    const bj_features *f = &s->features;
    const bj_scene_info info = bj_cache_info(cache, index);
    const bj_scene_floats at = bj_cache_floats(cache, index);
    CHECK(!strcmp(info.scenario_id, s->id) && !strcmp(info.focal_id, s->focal));
    CHECK(!strcmp(info.city, s->scenario.city.data) && !strcmp(info.focal_type, s->types[1].data));
    CHECK(!memcmp(info.origin, f->origin, sizeof info.origin) && info.heading == f->heading);
    CHECK(info.neighbors == f->neighbors && info.polylines == f->polylines);
    CHECK(info.neighbors_available == f->neighbors_available);
    CHECK(info.polylines_available == f->polylines_available);
    CHECK(info.focal_valid == f->focal_valid && info.future_valid == f->future_valid);
    CHECK(info.has_future == (f->future_valid != 0));
    CHECK(!memcmp(info.map_sha256, s->map_sha256, 32));
    CHECK(!memcmp(at.focal, f->focal, sizeof f->focal));
    CHECK(!memcmp(at.neighbors, f->neighbor, (size_t)f->neighbors * sizeof f->neighbor[0]));
    CHECK(!memcmp(at.polylines, f->polyline, (size_t)f->polylines * sizeof f->polyline[0]));
    CHECK((at.future != NULL) == info.has_future);
    if (at.future) CHECK(!memcmp(at.future, f->future, sizeof f->future));
    CHECK((uintptr_t)at.focal % 64 == 0);
    compare_rings(cache, info.map, s);
    CHECK(bj_cache_find(cache, s->id) == index);
    CHECK_OK(bj_cache_verify(cache, index, &err), err);
    bj_free(s);
}

static void test_round_trip(void) {
    bj_prep_report report = {0};
    bj_error err = {0};
    bj_cache *cache = NULL;
    int scenes = 0, shared = -1;
    CHECK_OK(case_write(path, ITEMS, 1, &report, &err), err);
    CHECK_OK(bj_cache_open(&cache, path, 0, &err), err);
    if (!cache) return;
    for (int i = 0; i < ITEMS; i++)
        if (!case_is_reject(i)) compare_scene(cache, scenes++, i);
    CHECK(bj_cache_count(cache) == scenes && report.accepted == scenes);
    CHECK(report.rejected == ITEMS - scenes && report.without_future == 3);
    for (int i = 0; i < scenes; i++) { /* scenes 2, 5 and 11 share a map, and item 8 is a reject */
        const bj_scene_info info = bj_cache_info(cache, i);
        const int number = atoi(info.scenario_id + 6);
        if (number == 2) shared = (int)info.map;
        CHECK((number % 3 == 2) == (shared >= 0 && info.map == shared));
    }
    CHECK(report.maps == scenes - 2);
    CHECK(bj_cache_find(cache, "scene-00003") == -1 && bj_cache_find(cache, "") == -1);
    CHECK(bj_cache_find(cache, "zzz") == -1);
    CHECK(!strcmp(bj_cache_fact(cache, "split"), "train"));
    CHECK(!strcmp(bj_cache_fact(cache, "features"), BJ_FEATURES_VERSION));
    CHECK(!bj_cache_fact(cache, "nothing"));
    CHECK(!strcmp(bj_cache_digest(cache), report.digest));
    const bj_arch arch = bj_cache_arch(cache), paper = bj_arch_paper();
    CHECK(arch.obs == 50 && arch.fut == 60 && arch.neighbors == 16 && arch.polylines == 48);
    CHECK(arch.points == 10 && arch.dt == 0.1 && arch.latent == paper.latent);
    CHECK(bj_cache_verify(cache, -1, &err) == BJ_EARG);
    CHECK(bj_cache_verify(cache, scenes, &err) == BJ_EARG);
    bj_cache_free(cache);
    bj_cache_free(NULL);
}

/* Tests that the features of a scene take at most 36 kB. */
static void test_size(void) {
    CHECK(bj_cache_record_floats(50, 10, 16, 48) * 4 <= 36000);
    CHECK(bj_cache_record_floats(50, 10, 0, 0) == 352);
    CHECK(bj_cache_most_bytes(1000) > 1000 * 36000 && bj_cache_most_bytes(1000) < 1000 * 37000);
}

static void test_blind(void) {
    bj_cache *cache = NULL;
    bj_error err = {0};
    CHECK_OK(bj_cache_open(&cache, path, 1, &err), err);
    if (!cache) return;
    for (int64_t i = 0; i < bj_cache_count(cache); i++) {
        CHECK(bj_cache_floats(cache, i).future == NULL);
        CHECK(bj_cache_verify(cache, i, &err) == BJ_ELOCKED);
    }
    CHECK_CONTAINS(err.message, "opened without futures");
    CHECK(bj_cache_info(cache, 0).has_future); /* the existence of a future is not hidden */
    bj_cache_free(cache);
}

static void test_rejects(void) {
    char *text = NULL;
    size_t size = 0;
    bj_error err = {0};
    int lines = 0;
    CHECK_OK(bj_file_read(&text, &size, rejects, 1 << 20, &err), err);
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1, lines++) {
        yyjson_doc *doc = NULL;
        CHECK_OK(bj_json_parse(&doc, line, (size_t)(end - line), "line", &err), err);
        yyjson_val *root = yyjson_doc_get_root(doc);
        CHECK(yyjson_get_int(yyjson_obj_get(root, "schema")) == 1);
        CHECK(yyjson_equals_str(yyjson_obj_get(root, "code"), "parquet"));
        CHECK(yyjson_equals_str(yyjson_obj_get(root, "reason"), "no rows"));
        CHECK(yyjson_equals_str(yyjson_obj_get(root, "folder"),
                                "/data/\"odd\"\n\xef\xbf\xbd folder"));
        if (lines == 0)
            CHECK(yyjson_equals_str(yyjson_obj_get(root, "scenario_id"), "scene-00003"));
        yyjson_doc_free(doc);
    }
    CHECK(lines == 3);
    bj_free(text);
}

/* --------------------------------------------------------------------------------------- damage */

static char *content;
static size_t content_size;

/* Returns the file offset of a tensor's byte. */
static size_t place(const char *tensor, size_t byte) {
    bj_safetensors *st = NULL;
    bj_error err = {0};
    size_t at = 0;
    CHECK_OK(bj_safetensors_open_memory(&st, content, content_size, "x", &err), err);
    const bj_tensor_view *view = st ? bj_safetensors_find(st, tensor) : NULL;
    CHECK(view && byte < view->bytes);
    if (view) at = (size_t)((const char *)view->data - content) + byte;
    bj_safetensors_close(st);
    return at;
}

static bj_status open_content(bj_cache **cache, int flags, bj_error *err) {
    return bj_cache_open_memory(cache, content, content_size, "memory", flags, err);
}

/* Tests that the checks on first use detect the same damage as bj_cache_verify, also with a blind
 * handle and when they are repeated. */
static void expect_on_use(uint32_t bad, const char *what) {
    for (int blind = 0; blind < 2; blind++) {
        bj_cache *cache = NULL;
        bj_error err = {0};
        CHECK_OK(open_content(&cache, blind ? BJ_CACHE_BLIND : 0, &err), err);
        for (int64_t i = 0; cache && i < 2 * bj_cache_count(cache); i++) {
            const int64_t scene = i / 2;
            bj_status status = bj_cache_check_scene(cache, scene, &err);
            CHECK(bj_cache_is_checked(cache, scene) == (status == BJ_OK));
            if (status == BJ_OK)
                status = bj_cache_check_map(cache, bj_cache_info(cache, scene).map, &err);
            CHECK_MSG((status != BJ_OK) == (bad >> scene & 1), "scene %d, blind %d", (int)scene,
                      blind);
            if (status == BJ_OK) continue;
            CHECK(status == BJ_EFORMAT);
            CHECK_CONTAINS(err.message, what);
        }
        bj_cache_free(cache);
    }
}

/* Flips a bit and checks that the index is still valid and that exactly the scenes in the mask
 * `bad` are reported as damaged. */
static void expect_damage(size_t at, uint32_t bad, const char *what) {
    bj_cache *cache = NULL;
    bj_error err = {0};
    content[at] ^= 0x10;
    expect_on_use(bad, what);
    CHECK_OK(open_content(&cache, 0, &err), err);
    for (int64_t i = 0; cache && i < bj_cache_count(cache); i++) {
        const bj_status status = bj_cache_verify(cache, i, &err);
        CHECK_MSG((status != BJ_OK) == (bad >> i & 1), "byte %zu: scene %d", at, (int)i);
        if (status == BJ_OK) continue;
        CHECK(status == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, bj_cache_info(cache, i).scenario_id);
        CHECK_CONTAINS(err.message, what);
    }
    bj_cache_free(cache);
    content[at] ^= 0x10;
}

static void test_damaged_content(void) {
    bj_cache *cache = NULL;
    bj_error err = {0};
    CHECK_OK(open_content(&cache, 0, &err), err);
    if (!cache) return;
    const char *records = content + place("records", 0);
    for (int64_t i = 0; i < bj_cache_count(cache); i++) {
        const size_t start = (size_t)((const char *)bj_cache_floats(cache, i).focal - records);
        const size_t end =
            i + 1 < bj_cache_count(cache)
                ? (size_t)((const char *)bj_cache_floats(cache, i + 1).focal - records)
                : place("record_start", 0) - place("records", 0);
        const size_t bytes[] = {start, start + 777, (start + end) / 2, end - 1};
        for (int k = 0; k < 4; k++)
            expect_damage(place("records", bytes[k]), 1u << i, "features or future");
        expect_damage(place("future", 480 * (size_t)i), 1u << i, "features or future");
        expect_damage(place("future", 480 * (size_t)i + 479), 1u << i, "features or future");
    }
    /* The first ring belongs to scene 0. */
    expect_damage(place("points_cm", 3), 1u << 0, "drivable areas");
    const int64_t common = bj_cache_info(cache, 2).map;
    uint32_t shared = 0;
    size_t shared_at = 0;
    for (int64_t i = 0; i < bj_cache_count(cache); i++)
        if (bj_cache_info(cache, i).map == common) shared |= 1u << i;
    for (int64_t m = 0; m < common; m++) /* earlier maps are in centimeters */
        for (int r = 0; r < bj_cache_rings(cache, m); r++)
            shared_at += 8 * (size_t)bj_cache_ring_size(cache, m, r);
    CHECK(shared == (1u << 2 | 1u << 4 | 1u << 9));
    expect_damage(place("points_cm", shared_at), shared, "drivable areas");
    bj_cache_free(cache);
}

/* Tests that damage to any index column or to the header is detected. */
static void test_damaged_index(void) {
    bj_error err = {0};
    bj_cache *cache = NULL;
    for (int c = 0; c < BJ_COLUMNS; c++) {
        if (bj_cache_columns[c].is_content) continue;
        const size_t begin = place(bj_cache_columns[c].name, 0);
        size_t end = content_size;
        for (int d = 0; d < BJ_COLUMNS; d++) {
            const size_t next = place(bj_cache_columns[d].name, 0);
            if (next > begin && next < end) end = next;
        }
        const size_t step = (end - begin) / 25 + 1;
        for (size_t at = begin; at < end; at += step) {
            content[at] ^= 1;
            CHECK(open_content(&cache, 0, &err) == BJ_EFORMAT && !cache);
            content[at] ^= 1;
        }
        content[end - 1] ^= 1;
        CHECK(open_content(&cache, 0, &err) == BJ_EFORMAT);
        content[end - 1] ^= 1;
    }
    CHECK_CONTAINS(err.message, "the index is damaged");
    for (size_t at = 0; at < BJ_CACHE_HEADER; at += at < 3600 ? 3 : 4999) {
        content[at] ^= 1;
        const bj_status status = open_content(&cache, 0, &err);
        CHECK_MSG(status == BJ_EFORMAT || status == BJ_EVERSION, "byte %zu: %d", at, (int)status);
        content[at] ^= 1;
    }
    const size_t whole = content_size;
    for (size_t size = 0; size < whole; size += size < 100 ? 1 : whole / 300) {
        content_size = size;
        CHECK(open_content(&cache, 0, &err) == BJ_EFORMAT);
    }
    content_size = whole;
    CHECK_OK(open_content(&cache, 0, &err), err); /* the content is restored */
    bj_cache_free(cache);
}

/* -------------------------------------------------------------------------- inconsistent files */

/* Overwrites a part of the index with an inconsistent value. The digest check is disabled, so the
 * inconsistency itself must be detected. */
static void expect_lie(const char *tensor, size_t byte, const void *lie, size_t size,
                       const char *message) {
    char before[64];
    const size_t at = place(tensor, byte);
    bj_cache *cache = NULL;
    bj_error err = {0};
    memcpy(before, content + at, size);
    memcpy(content + at, lie, size);
    CHECK(open_content(&cache, BJ_CACHE_UNCHECKED, &err) == BJ_EFORMAT && !cache);
    CHECK_CONTAINS(err.message, message);
    memcpy(content + at, before, size);
}

static void test_lies(void) {
    const int64_t far = (int64_t)1 << 60, minus = -1, one = 1;
    const uint8_t big = 200, two = 2;
    const int32_t none = 0, huge = INT32_MAX, few = -5;
    const double infinite = INFINITY, nan = NAN;
    const uint64_t no_last = 1, all = UINT64_MAX;
    expect_lie("record_start", 8, &far, 8, "scene 1: its record does not begin");
    expect_lie("record_start", 0, &one, 8, "scene 0: its record does not begin");
    expect_lie("neighbors", 1, &big, 1, "more neighbors or polylines than the metadata allows");
    expect_lie("polylines", 0, &big, 1,
               "scene 0: more neighbors or polylines than the metadata allows");
    expect_lie("polylines", 10, &two, 1, "floats, but the scenes need");
    expect_lie("neighbors_available", 4, &few, 4, "scene 1: more neighbors or polylines used");
    expect_lie("polylines_available", 4, &few, 4, "scene 1: more neighbors or polylines used");
    expect_lie("city", 3, &big, 1, "scene 3: its city or type");
    expect_lie("focal_type", 3, &big, 1, "scene 3: its city or type");
    expect_lie("map", 16, &far, 8, "scene 2: its map");
    expect_lie("map", 16, &minus, 8, "scene 2: its map");
    expect_lie("origin", 8, &infinite, 8, "scene 0: its origin");
    expect_lie("heading", 8, &nan, 8, "scene 1: its origin or heading");
    expect_lie("focal_valid", 8, &no_last, 8, "scene 1: focal_valid");
    expect_lie("focal_valid", 8, &all, 8, "scene 1: focal_valid");
    expect_lie("future_valid", 8, &all, 8, "scene 1: future_valid");
    expect_lie("scenario_id", 64, "scene-00000", 11,
               "scene 1: its id is not greater than the previous id");
    expect_lie("scenario_id", 64, "\n", 1, "scene 1: its id is not");
    expect_lie("scenario_id", 127, "x", 1, "scene 1: its id is not"); /* padding */
    expect_lie("focal_id", 64, "", 1, "scene 1: the id of its focal track");
    expect_lie("map_ring_start", 0, &one, 8, "map 0: its rings");
    expect_lie("map_ring_start", 8, &far, 8, "map 0: its rings");
    expect_lie("map_ring_start", 8, &minus, 8, "map 0: its rings");
    expect_lie("ring_start", 8, &far, 8, "ring 1: its points");
    expect_lie("ring_count", 4, &none, 4, "ring 1: its points");
    expect_lie("ring_count", 0, &huge, 4, "ring 0: its points");
    expect_lie("ring_count", 4, &few, 4, "ring 1: its points");
    expect_lie("ring_exact", 0, &two, 1, "ring 0: its points");
    const size_t last = place("points_cm", 0) - place("ring_count", 0) - sizeof(int32_t);
    int32_t fewer;
    memcpy(&fewer, content + place("ring_count", last), sizeof fewer);
    fewer--;
    expect_lie("ring_count", last, &fewer, 4, "some points belong to no ring");
}

/* Like expect_lie, but for the header text. `lie` must have the same length as `text`. */
static void expect_header_lie(const char *text, const char *lie, bj_status want,
                              const char *message) {
    char *at = NULL;
    bj_cache *cache = NULL;
    bj_error err = {0};
    for (size_t i = 8; i < BJ_CACHE_HEADER - 100 && !at; i++)
        if (!memcmp(content + i, text, strlen(text))) at = content + i;
    CHECK_MSG(at && strlen(text) == strlen(lie), "%s", text);
    if (!at) return;
    memcpy(at, lie, strlen(lie));
    const bj_status status = open_content(&cache, BJ_CACHE_UNCHECKED, &err);
    CHECK_MSG(status == want && !cache, "%s: %d", lie, (int)status);
    CHECK_CONTAINS(err.message, message);
    memcpy(at, text, strlen(text));
}

static void test_header_lies(void) {
    expect_header_lie("\"version\":\"1\"", "\"version\":\"2\"", BJ_EVERSION, "version is '2'");
    expect_header_lie("branchjepa-cache", "branchjepa-cachf", BJ_EFORMAT, "format is");
    expect_header_lie("\"format\"", "\"formal\"", BJ_EFORMAT, "metadata 'format' is missing");
    expect_header_lie("\"obs\":\"50\"", "\"obs\":\"65\"", BJ_EFORMAT, "metadata 'obs' is '65'");
    expect_header_lie("\"obs\":\"50\"", "\"obs\":\" 5\"", BJ_EFORMAT, "metadata 'obs' is ' 5'");
    expect_header_lie("\"fut\":\"60\"", "\"fut\":\"6x\"", BJ_EFORMAT, "metadata 'fut' is '6x'");
    expect_header_lie("\"fut\":\"60\"", "\"fut\":\"59\"", BJ_EFORMAT, "future");
    expect_header_lie("\"scenes\":\"11\"", "\"scenes\":\"12\"", BJ_EFORMAT, "record_start");
    expect_header_lie("\"scenes\":\"11\"", "\"scenes\":\"-1\"", BJ_EFORMAT, "metadata 'scenes'");
    expect_header_lie("\"maps\":\"9\"", "\"maps\":\"8\"", BJ_EFORMAT, "map_ring_start");
    expect_header_lie("\"dt\":\"0.1\"", "\"dt\":\"0.0\"", BJ_EFORMAT, "metadata 'dt'");
    expect_header_lie("\"cities\":\"[", "\"cities\":\"{", BJ_EFORMAT, "metadata 'cities'");
    expect_header_lie("[\\\"austin\\\"", "[        77", BJ_EFORMAT, "entry 0 is not a name");
    expect_header_lie("\"heading\":{\"dtype\":\"F64\"", "\"heading\":{\"dtype\":\"I64\"",
                      BJ_EFORMAT, "tensor 'heading' is I64, expected F64");
    expect_header_lie("\"map_digest\":", "\"map_digesx\":", BJ_EFORMAT, "map_digest");
    expect_header_lie("\"digest\":", "\"digesx\":", BJ_EFORMAT, "metadata 'digest'");
}

/* ------------------------------------------------------------------------------- rejected input */

static void refuse_name(bj_cache_bytes *bytes, case_scene *s, bj_text *name, const char *text,
                        size_t size, const char *message) {
    const bj_text before = *name;
    bj_error err = {0};
    *name = (bj_text){text, size};
    CHECK(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, &err) ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, message);
    *name = before;
}

static void test_refused_names(void) {
    bj_cache_bytes *bytes = NULL;
    case_scene *s = NULL;
    bj_error err = {0};
    char longest[64];
    memset(longest, 'x', sizeof longest);
    CHECK_OK(bj_cache_bytes_create(&bytes, &err), err);
    CHECK_OK(BJ_ALLOC(s, 1, &err), err);
    case_draw(s, 1);
    refuse_name(bytes, s, &s->scenario.id, "", 0, "scenario id has 0 bytes");
    refuse_name(bytes, s, &s->scenario.id, longest, 64, "scenario id has 64 bytes");
    refuse_name(bytes, s, &s->scenario.city, "a\tb", 3, "city: byte 1 is 0x09");
    refuse_name(bytes, s, &s->scenario.city, "a\x7f", 2, "city: byte 1 is 0x7f");
    refuse_name(bytes, s, &s->scenario.city, "a\0b", 3, "city: byte 1 is 0x00");
    refuse_name(bytes, s, &s->tracks[1], "\xc0\x80", 2, "focal track id: byte 0 is 0xc0");
    refuse_name(bytes, s, &s->tracks[1], "\xed\xa0\x80", 3, "focal track id: byte 0 is 0xed");
    refuse_name(bytes, s, &s->types[1], "\xe2\x82", 2, "type of the focal track: byte 0 is 0xe2");
    refuse_name(bytes, s, &s->types[1], "\xf4\x90\x80\x80", 4, "byte 0 is 0xf4");
    s->scenario.id = (bj_text){longest, 63};
    CHECK_OK(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, &err), err);
    s->areas[0].ring.count = 0;
    CHECK(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, &err) ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "drivable area 0 has no points");
    bj_cache_bytes_free(bytes);
    bj_free(s);
}

/* Tests that a scene is rejected if there are too many different cities, and that other scenes are
 * still accepted. */
static void test_many_cities(void) {
    bj_cache_writer *w = NULL;
    bj_cache_bytes *bytes = NULL;
    case_scene *s = NULL;
    bj_prep_report report = {0};
    bj_error err = {0};
    bj_cache *cache = NULL;
    CHECK_OK(bj_cache_writer_open(&w, other, NULL, 0, 0, &err), err);
    CHECK_OK(bj_cache_bytes_create(&bytes, &err), err);
    CHECK_OK(BJ_ALLOC(s, 1, &err), err);
    for (int i = 0; i < BJ_CACHE_TABLE + 2; i++) {
        char city[64];
        case_draw(s, i);
        memset(city, '"', sizeof city); /* gives the longest possible header */
        snprintf(city + 50, 14, "%d", i < 65 ? i : 0);
        s->scenario.city = case_text(city);
        char type[64];
        memset(type, '\\', sizeof type);
        snprintf(type + 50, 14, "%d", i % 64);
        s->types[1] = case_text(type);
        CHECK_OK(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, &err),
                 err);
        const bj_status status = bj_cache_writer_add(w, bytes, &err);
        CHECK(status == (i == 64 ? BJ_EFORMAT : BJ_OK));
    }
    CHECK(bj_cache_writer_add(w, bytes, &err) == BJ_EARG); /* the id is repeated */
    CHECK_CONTAINS(err.message, "ids must be in ascending order");
    CHECK_OK(bj_cache_writer_finish(&w, &report, &err), err);
    CHECK(report.accepted == 65);
    CHECK_OK(bj_cache_open(&cache, other, 0, &err), err);
    if (cache) CHECK_CONTAINS(bj_cache_info(cache, 63).city, "\"\"63");
    bj_cache_free(cache);
    bj_cache_bytes_free(bytes);
    bj_free(s);
    CHECK(unlink(other) == 0);
}

static void test_no_scene(void) {
    bj_cache_writer *w = NULL;
    bj_prep_report report = {0};
    bj_error err = {0};
    char list[100];
    snprintf(list, sizeof list, "%s.rejects.jsonl", other);
    CHECK_OK(bj_cache_writer_open(&w, other, NULL, 0, 0, &err), err);
    CHECK_OK(bj_cache_writer_reject(w, "a", "folder", "map", "why", &err), err);
    CHECK(bj_cache_writer_finish(&w, &report, &err) == BJ_EFORMAT && !w);
    CHECK_CONTAINS(err.message, "none of the 1 scenes");
    CHECK(access(other, F_OK) != 0 && access(list, F_OK) == 0);
    /* A later run without rejects removes the old reject list. */
    CHECK_OK(case_write(other, 2, 1, &report, &err), err);
    CHECK(report.rejected == 0 && access(list, F_OK) != 0);
    CHECK(unlink(other) == 0);
    const bj_fact bad[] = {{"key", "two\nlines"}};
    CHECK(bj_cache_writer_open(&w, other, bad, 1, 0, &err) == BJ_EARG);
}

/* Tests that every failed allocation is reported and leaks nothing, and that the next attempt
 * succeeds. */
static void test_no_memory(void) {
    bj_error err = {0};
    bj_prep_report report = {0};
    bj_cache *cache = NULL;
    const long live = bj_alloc_live();
    int failures = 0;
    for (long n = 0; n < 1000; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_cache_open(&cache, path, 0, &err);
        bj_alloc_fail_after(-1);
        bj_cache_free(cache);
        cache = NULL;
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM);
        failures++;
    }
    CHECK(failures > 10);
    failures = 0;
    for (long n = 0; n < 1000; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = case_write(other, ITEMS, 1, &report, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        CHECK_MSG(status == BJ_ENOMEM, "%s", err.message);
        failures++;
    }
    CHECK(failures > 20);
    CHECK(case_same(path, other));
    CHECK(unlink(other) == 0);
}

int main(void) {
    const long live = bj_alloc_live();
    bj_error err = {0};
    if (!case_folder(folder, "test_cache")) return 1;
    snprintf(path, sizeof path, "%s/scenes.bjc", folder);
    snprintf(other, sizeof other, "%s/other.bjc", folder);
    snprintf(rejects, sizeof rejects, "%s.rejects.jsonl", path);
    test_round_trip();
    test_size();
    test_blind();
    test_rejects();
    CHECK_OK(bj_file_read(&content, &content_size, path, 1 << 28, &err), err);
    if (content) {
        test_damaged_content();
        test_damaged_index();
        test_lies();
        test_header_lies();
    }
    bj_free(content);
    test_refused_names();
    test_many_cities();
    test_no_scene();
    test_no_memory();
    CHECK(bj_alloc_live() == live);
    case_remove(folder);
    return test_report("cache");
}
