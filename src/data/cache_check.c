/* cache_check.c - checks that a file is a cache with a valid index. See cache.h for the rules. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "data/cache_internal.h"

static bj_status refuse(const bj_cache *c, bj_error *err, int64_t scene, const char *what) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: scene %lld: %s", bj_safetensors_path(c->file),
                   (long long)scene, what);
}

/* ----------------------------------------------------------------------------------------- facts
 */

static bj_status need_fact(const char **out, const bj_cache *c, const char *key, bj_error *err) {
    *out = bj_safetensors_metadata(c->file, key);
    if (*out) return BJ_OK;
    return BJ_FAIL(err, BJ_EFORMAT, "%s: not a cache: metadata '%s' is missing",
                   bj_safetensors_path(c->file), key);
}

static bj_status need_number(int64_t *out, const bj_cache *c, const char *key, int64_t least,
                             int64_t most, bj_error *err) {
    const char *text;
    char *end;
    BJ_TRY(need_fact(&text, c, key, err));
    const long long value = strtoll(text, &end, 10);
    char again[24];
    snprintf(again, sizeof again, "%lld", value);
    if (strcmp(again, text) || value < least || value > most)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is '%.40s', expected %lld to %lld",
                       bj_safetensors_path(c->file), key, text, (long long)least, (long long)most);
    *out = value;
    return BJ_OK;
}

static int is_printable(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return 0;
    return 1;
}

/* Reads a JSON list of names. */
static bj_status read_table(bj_cache_names *out, const bj_cache *c, const char *key,
                            bj_error *err) {
    const char *text;
    char label[256];
    BJ_TRY(need_fact(&text, c, key, err));
    snprintf(label, sizeof label, "%.200s: metadata '%s'", bj_safetensors_path(c->file), key);
    BJ_TRY(bj_json_parse(&out->doc, text, strlen(text), label, err));
    yyjson_val *list = yyjson_doc_get_root(out->doc);
    const size_t count = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || count > 256)
        return BJ_FAIL(err, BJ_EFORMAT, "%s is not a list of at most 256 names", label);
    BJ_TRY(BJ_ALLOC(out->text, count, err));
    yyjson_arr_iter items = yyjson_arr_iter_with(list);
    for (yyjson_val *item; (item = yyjson_arr_iter_next(&items));) {
        const char *name = yyjson_get_str(item);
        if (!name || strlen(name) != yyjson_get_len(item) || !*name ||
            strlen(name) >= BJ_CACHE_NAME || !is_printable(name, strlen(name)))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: entry %d is not a name of 1 to %d bytes", label,
                           out->count, BJ_CACHE_NAME - 1);
        out->text[out->count++] = name;
    }
    return BJ_OK;
}

static bj_status read_facts(bj_cache *c, bj_error *err) {
    const char *path = bj_safetensors_path(c->file), *format, *version, *features, *dt;
    int64_t obs, fut, neighbors, polylines, points;
    BJ_TRY(need_fact(&format, c, "format", err));
    if (strcmp(format, BJ_CACHE_FORMAT))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: format is '%.40s', expected '%s'", path, format,
                       BJ_CACHE_FORMAT);
    BJ_TRY(need_fact(&version, c, "version", err));
    if (strcmp(version, BJ_CACHE_VERSION))
        return BJ_FAIL(err, BJ_EVERSION, "%s: version is '%.40s', this program reads '%s'", path,
                       version, BJ_CACHE_VERSION);
    BJ_TRY(need_fact(&features, c, "features", err));
    /* Steps are bits of a 64-bit mask, and counts must fit in one byte. */
    BJ_TRY(need_number(&obs, c, "obs", 1, 64, err));
    BJ_TRY(need_number(&fut, c, "fut", 1, 64, err));
    BJ_TRY(need_number(&neighbors, c, "neighbors", 0, 255, err));
    BJ_TRY(need_number(&polylines, c, "polylines", 0, 255, err));
    BJ_TRY(need_number(&points, c, "points", 1, 1000, err));
    c->arch = bj_arch_paper();
    c->arch.obs = (int)obs;
    c->arch.fut = (int)fut;
    c->arch.neighbors = (int)neighbors;
    c->arch.polylines = (int)polylines;
    c->arch.points = (int)points;
    BJ_TRY(need_fact(&dt, c, "dt", err));
    if (!bj_json_number_read(&c->arch.dt, dt) || !(c->arch.dt > 0))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata 'dt' is '%.40s', expected a positive number",
                       path, dt);
    BJ_TRY(need_number(&c->sizes.scenes, c, "scenes", 1, INT64_MAX / 4096, err));
    BJ_TRY(need_number(&c->sizes.maps, c, "maps", 1, c->sizes.scenes, err));
    BJ_TRY(read_table(&c->cities, c, "cities", err));
    return read_table(&c->types, c, "types", err);
}

/* --------------------------------------------------------------------------------------- tensors
 */

/* Reads a size that is only stored as the first dimension of a tensor. */
static bj_status read_size(int64_t *out, const bj_cache *c, bj_cache_column column, bj_error *err) {
    const bj_tensor_view *view = bj_safetensors_find(c->file, bj_cache_columns[column].name);
    if (!view || view->rank < 1)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor '%s' is missing", bj_safetensors_path(c->file),
                       bj_cache_columns[column].name);
    *out = view->shape[0];
    return BJ_OK;
}

static bj_status read_columns(bj_cache *c, bj_error *err) {
    const char *path = bj_safetensors_path(c->file);
    BJ_TRY(read_size(&c->sizes.floats, c, BJ_COLUMN_RECORDS, err));
    BJ_TRY(read_size(&c->sizes.rings, c, BJ_COLUMN_RING_START, err));
    BJ_TRY(read_size(&c->sizes.doubles, c, BJ_COLUMN_POINTS, err));
    BJ_TRY(read_size(&c->sizes.centimeters, c, BJ_COLUMN_POINTS_CM, err));
    if (bj_safetensors_count(c->file) != BJ_COLUMNS)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %d tensors, expected %d", path,
                       bj_safetensors_count(c->file), BJ_COLUMNS);
    for (int i = 0; i < BJ_COLUMNS; i++) {
        const bj_cache_column_info *info = &bj_cache_columns[i];
        const bj_tensor_view *view;
        int64_t shape[3];
        const int rank = bj_cache_shape(shape, (bj_cache_column)i, &c->sizes, c->arch.fut);
        BJ_TRY(bj_safetensors_require(&view, c->file, info->name, rank, shape, err));
        if (view->dtype != info->dtype)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor '%s' is %s, expected %s", path, info->name,
                           bj_dtype_name(view->dtype), bj_dtype_name(info->dtype));
        if ((uintptr_t)view->data % bj_dtype_size(info->dtype))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor '%s' is not aligned to %zu bytes", path,
                           info->name, bj_dtype_size(info->dtype));
        c->column[i] = view->data;
    }
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- index
 */

static int is_name(const char *name) {
    const char *end = memchr(name, '\0', BJ_CACHE_NAME);
    if (!end || end == name || !is_printable(name, (size_t)(end - name))) return 0;
    for (const char *c = end; c < name + BJ_CACHE_NAME; c++)
        if (*c) return 0;
    return 1;
}

static uint64_t bits_below(int count) {
    return count >= 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

static bj_status check_scene(const bj_cache *c, int64_t s, int64_t start, bj_error *err) {
    const char *id = COLUMN(c, char, SCENARIO_ID) + s * BJ_CACHE_NAME;
    const int neighbors = COLUMN(c, uint8_t, NEIGHBORS)[s];
    const int polylines = COLUMN(c, uint8_t, POLYLINES)[s];
    const uint64_t seen = COLUMN(c, uint64_t, FOCAL_VALID)[s];
    if (!is_name(id)) return refuse(c, err, s, "its id is not a zero-padded printable string");
    if (s > 0 && strcmp(id - BJ_CACHE_NAME, id) >= 0)
        return refuse(c, err, s, "its id is not greater than the previous id");
    if (!is_name(COLUMN(c, char, FOCAL_ID) + s * BJ_CACHE_NAME))
        return refuse(c, err, s, "the id of its focal track is not a zero-padded printable string");
    if (neighbors > c->arch.neighbors || polylines > c->arch.polylines)
        return refuse(c, err, s, "more neighbors or polylines than the metadata allows");
    if (COLUMN(c, int32_t, NEIGHBORS_AVAILABLE)[s] < neighbors ||
        COLUMN(c, int32_t, POLYLINES_AVAILABLE)[s] < polylines)
        return refuse(c, err, s, "more neighbors or polylines used than available");
    if (COLUMN(c, int64_t, RECORD_START)[s] != start)
        return refuse(c, err, s, "its record does not begin where the previous record ends");
    if (COLUMN(c, uint8_t, CITY)[s] >= c->cities.count ||
        COLUMN(c, uint8_t, FOCAL_TYPE)[s] >= c->types.count)
        return refuse(c, err, s, "its city or type is not in the table");
    if (COLUMN(c, int64_t, MAP)[s] < 0 || COLUMN(c, int64_t, MAP)[s] >= c->sizes.maps)
        return refuse(c, err, s, "its map is not in the file");
    if (!isfinite(COLUMN(c, double, ORIGIN)[2 * s]) ||
        !isfinite(COLUMN(c, double, ORIGIN)[2 * s + 1]) || !isfinite(COLUMN(c, double, HEADING)[s]))
        return refuse(c, err, s, "its origin or heading is not finite");
    if ((seen & ~bits_below(c->arch.obs)) || !(seen >> (c->arch.obs - 1)))
        return refuse(c, err, s,
                      "focal_valid marks steps that do not exist, or lacks the last observed step");
    if (COLUMN(c, uint64_t, FUTURE_VALID)[s] & ~bits_below(c->arch.fut))
        return refuse(c, err, s, "future_valid marks steps that do not exist");
    return BJ_OK;
}

static bj_status check_scenes(const bj_cache *c, bj_error *err) {
    int64_t start = 0;
    for (int64_t s = 0; s < c->sizes.scenes; s++) {
        BJ_TRY(check_scene(c, s, start, err));
        start +=
            bj_cache_record_floats(c->arch.obs, c->arch.points, COLUMN(c, uint8_t, NEIGHBORS)[s],
                                   COLUMN(c, uint8_t, POLYLINES)[s]);
        if (start > c->sizes.floats)
            return refuse(c, err, s, "its record extends past the end of the records");
    }
    if (start != c->sizes.floats)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the records have %lld floats, but the scenes need %lld",
                       bj_safetensors_path(c->file), (long long)c->sizes.floats, (long long)start);
    return BJ_OK;
}

static bj_status check_rings(const bj_cache *c, bj_error *err) {
    const char *path = bj_safetensors_path(c->file);
    const int64_t *first = COLUMN(c, int64_t, MAP_RING_START);
    int64_t next[2] = {0, 0}; /* doubles, centimeters */
    const int64_t end[2] = {c->sizes.doubles, c->sizes.centimeters};
    for (int64_t m = 0; m < c->sizes.maps; m++)
        if (first[m] < 0 || first[m + 1] < first[m] || first[m + 1] - first[m] > INT_MAX ||
            (m == 0 && first[0] != 0))
            return BJ_FAIL(
                err, BJ_EFORMAT,
                "%s: map %lld: its rings do not start where the rings of the previous map end",
                path, (long long)m);
    if (first[c->sizes.maps] != c->sizes.rings)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the file has %lld rings, but the maps have %lld", path,
                       (long long)c->sizes.rings, (long long)first[c->sizes.maps]);
    for (int64_t r = 0; r < c->sizes.rings; r++) {
        const int exact = COLUMN(c, uint8_t, RING_EXACT)[r];
        const int32_t count = COLUMN(c, int32_t, RING_COUNT)[r];
        if (exact > 1 || count < 1 || COLUMN(c, int64_t, RING_START)[r] != next[exact] ||
            count > end[exact] - next[exact])
            return BJ_FAIL(
                err, BJ_EFORMAT,
                "%s: ring %lld: its points do not start where the points of the previous ring end",
                path, (long long)r);
        next[exact] += count;
    }
    if (next[0] != end[0] || next[1] != end[1])
        return BJ_FAIL(err, BJ_EFORMAT, "%s: some points belong to no ring", path);
    return BJ_OK;
}

static bj_status check_digest(bj_cache *c, int flags, bj_error *err) {
    const char *stated;
    const int count = bj_safetensors_metadata_count(c->file);
    bj_fact *facts = NULL;
    bj_sha256 hash;
    BJ_TRY(need_fact(&stated, c, "digest", err));
    BJ_TRY(BJ_ALLOC(facts, (size_t)count, err));
    for (int i = 0; i < count; i++) facts[i] = bj_safetensors_metadata_at(c->file, i);
    bj_cache_digest_begin(&hash, facts, count);
    for (int i = 0; i < BJ_COLUMNS; i++) {
        if (bj_cache_columns[i].is_content) continue;
        const bj_tensor_view *view = bj_safetensors_find(c->file, bj_cache_columns[i].name);
        bj_cache_digest_column(&hash, (bj_cache_column)i, &c->sizes, c->arch.fut);
        bj_sha256_update(&hash, view->data, view->bytes);
    }
    bj_sha256_final(&hash, c->digest);
    bj_free(facts);
    if (strcmp(c->digest, stated) && !(flags & BJ_CACHE_UNCHECKED))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the index is damaged: its digest is %.16s..., expected %.16s...",
                       bj_safetensors_path(c->file), c->digest, stated);
    return BJ_OK;
}

bj_status bj_cache_check(bj_cache *c, int flags, bj_error *err) {
    BJ_TRY(read_facts(c, err));
    BJ_TRY(read_columns(c, err));
    BJ_TRY(check_scenes(c, err));
    BJ_TRY(check_rings(c, err));
    return check_digest(c, flags, err);
}
