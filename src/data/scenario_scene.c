/* scenario_scene.c - reads scenario files as scenes, and converts between scene and city frame.
 *
 *   FOLDER/scenario_ID.parquet + FOLDER/log_map_archive_ID.json  ->  bj_features  ->  bj_scene
 *
 * Reading and features are the same as for a cache, so predictions from the files and from a cache
 * are bit-identical. The path may be the folder or its parquet file. A list of scenarios reuses the
 * buffers of its readers.
 *
 * Frame   city = origin + R(heading) point,   point = R(-heading) (city - origin)
 * Test    tests/data/test_scenario_scene.c
 */
#define _POSIX_C_SOURCE 200809L /* stat, opendir */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/sha256.h"
#include "data/features.h"
#include "data/scenario_list.h"
#include "data/scene_view.h"
#include "data/walk.h"

enum { PATH_SIZE = 4096, MAP_LIMIT = 1 << 30 };

static const char scenario_prefix[] = "scenario_", scenario_suffix[] = ".parquet";
static const char map_prefix[] = "log_map_archive_", map_suffix[] = ".json";

struct bj_scenario_scene {
    char id[BJ_SCENARIO_NAME], city[BJ_SCENARIO_NAME];
    char focal_id[BJ_SCENARIO_NAME], focal_type[BJ_SCENARIO_NAME];
    unsigned char map_sha256[BJ_SHA256_BYTES];
    bj_features features;
    bj_batch batch;
    bj_scene scene;
    bj_real *room; /* double builds only */
    int rings;
    int *ring_end; /* (rings) index after the last point of the ring */
    bj_point *rim; /* (ring_end[rings - 1]) ring points in city coordinates */
};

/* ---------------------------------------------------------------------------------------- files */

typedef struct files {
    char scenario[PATH_SIZE], map[PATH_SIZE];
    char id[BJ_SCENARIO_NAME]; /* id in the file names */
} files;

/* Extracts the id if `name` has the form "scenario_ID.parquet". */
static int id_of(char id[BJ_SCENARIO_NAME], const char *name) {
    const size_t n = strlen(name), head = sizeof scenario_prefix - 1;
    const size_t tail = sizeof scenario_suffix - 1;
    if (n <= head + tail || n - head - tail >= BJ_SCENARIO_NAME) return 0;
    if (strncmp(name, scenario_prefix, head) || strcmp(name + n - tail, scenario_suffix)) return 0;
    memcpy(id, name + head, n - head - tail);
    id[n - head - tail] = '\0';
    return 1;
}

static bj_status set_paths(files *f, const char *folder, int length, const char *id,
                           bj_error *err) {
    const int n = snprintf(f->scenario, PATH_SIZE, "%.*s/%s%s%s", length, folder, scenario_prefix,
                           id, scenario_suffix);
    const int m =
        snprintf(f->map, PATH_SIZE, "%.*s/%s%s%s", length, folder, map_prefix, id, map_suffix);
    if (n >= PATH_SIZE || m >= PATH_SIZE)
        return BJ_FAIL(err, BJ_EARG, "%.64s...: the path has %d characters, expected at most %d",
                       folder, n > m ? n : m, PATH_SIZE - 1);
    return BJ_OK;
}

/* Finds the only scenario file of a folder. */
static bj_status look_into(files *f, const char *folder, bj_error *err) {
    DIR *stream = opendir(folder);
    if (!stream) return BJ_FAIL(err, BJ_EIO, "%s: cannot open: %s", folder, strerror(errno));
    int found = 0;
    char id[BJ_SCENARIO_NAME], other[BJ_SCENARIO_NAME] = "";
    const struct dirent *entry;
    while ((entry = readdir(stream)))
        if (id_of(id, entry->d_name)) {
            if (found++) memcpy(other, id, sizeof id);
            else memcpy(f->id, id, sizeof id);
        }
    closedir(stream);
    if (!found)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: found no %sID%s, expected a scenario folder", folder,
                       scenario_prefix, scenario_suffix);
    if (found > 1)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: found scenarios %s and %s, expected one scenario per folder",
                       folder, f->id, other);
    return set_paths(f, folder, (int)strlen(folder), f->id, err);
}

static bj_status find_files(files *f, const char *path, bj_error *err) {
    struct stat info;
    if (stat(path, &info)) return BJ_FAIL(err, BJ_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return look_into(f, path, err);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!id_of(f->id, name))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: expected a scenario folder or a file named %sID%s",
                       path, scenario_prefix, scenario_suffix);
    return slash ? set_paths(f, path, (int)(slash - path), f->id, err)
                 : set_paths(f, ".", 1, f->id, err);
}

/* -------------------------------------------------------------------------------------- reading */

typedef struct readers {
    bj_scenario_reader *scenario;
    bj_map_reader *map;
    bj_features_maker *features;
    char *map_text;
    size_t map_room;
    bj_map last; /* the most recently read map; `map` owns its arrays */
} readers;

static void release(readers *r) {
    bj_scenario_reader_free(r->scenario);
    bj_map_reader_free(r->map);
    bj_features_maker_free(r->features);
    bj_free(r->map_text);
}

static bj_status create_readers(readers *r, bj_error *err) {
    BJ_TRY(bj_scenario_reader_create(&r->scenario, err));
    BJ_TRY(bj_map_reader_create(&r->map, err));
    return bj_features_maker_create(&r->features, err);
}

static bj_status copy_rings(bj_scenario_scene *s, const bj_map *map, bj_error *err) {
    size_t points = 0;
    for (int a = 0; a < map->area_count; a++) points += (size_t)map->areas[a].ring.count;
    if (!points) return BJ_OK;
    if (points > INT_MAX)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the drivable areas have %zu points, expected at most %d",
                       s->id, points, INT_MAX);
    BJ_TRY(BJ_ALLOC(s->ring_end, (size_t)map->area_count, err));
    BJ_TRY(BJ_ALLOC(s->rim, points, err));
    for (int a = 0, at = 0; a < map->area_count; a++) {
        const bj_points *ring = &map->areas[a].ring;
        memcpy(s->rim + at, ring->at, (size_t)ring->count * sizeof *ring->at);
        s->ring_end[a] = at += ring->count;
    }
    s->rings = map->area_count;
    return BJ_OK;
}

static bj_status read_files(bj_scenario_scene *s, readers *r, const files *f, bj_error *err) {
    bj_scenario scenario;
    size_t size;
    BJ_TRY(bj_scenario_read(&scenario, r->scenario, f->scenario, err));
    bj_scenario_name(s->id, scenario.id);
    bj_scenario_name(s->city, scenario.city);
    bj_scenario_name(s->focal_id, scenario.track_id[scenario.focal]);
    bj_scenario_name(s->focal_type, scenario.type[scenario.focal]);
    if (strcmp(s->id, f->id))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the scenario inside is '%s', expected '%s'",
                       f->scenario, s->id, f->id);
    BJ_TRY(bj_file_read_again(&r->map_text, &r->map_room, &size, f->map, MAP_LIMIT, err));
    bj_sha256_block(s->map_sha256, r->map_text, size);
    BJ_TRY(bj_map_read_memory(&r->last, r->map, r->map_text, size, f->map, err));
    BJ_TRY(copy_rings(s, &r->last, err));
    return bj_features_make(&s->features, r->features, &scenario, &r->last, f->scenario, err);
}

static bj_status open_files(bj_scenario_scene **out, readers *r, const files *f, bj_error *err) {
    bj_scenario_scene *s;
    bj_status status;
    const bj_arch arch = bj_arch_paper();
    *out = NULL;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    if (BJ_REAL_IS_DOUBLE) BJ_GOTO(status, fail, BJ_ALLOC(s->room, bj_scene_room(&arch), err));
    BJ_GOTO(status, fail, read_files(s, r, f, err));
    const bj_scene_info info = bj_scenario_info(s);
    s->scene = bj_scene_view(s->room, &arch, &info, bj_scenario_floats(s));
    s->batch = (bj_batch){.B = 1, .scenes = &s->scene};
    *out = s;
    return BJ_OK;
fail:
    bj_scenario_free(s);
    return status;
}

/* -------------------------------------------------------------------------------------- handles */

void bj_scenario_free(bj_scenario_scene *s) {
    if (!s) return;
    bj_free(s->room);
    bj_free(s->ring_end);
    bj_free(s->rim);
    bj_free(s);
}

bj_status bj_scenario_open(bj_scenario_scene **out, const char *folder, bj_error *err) {
    files f;
    readers r = {0};
    bj_status status;
    *out = NULL;
    BJ_TRY(find_files(&f, folder, err));
    BJ_GOTO(status, done, create_readers(&r, err));
    status = open_files(out, &r, &f, err);
done:
    release(&r);
    return status;
}

const bj_batch *bj_scenario_batch(const bj_scenario_scene *s) { return &s->batch; }

bj_scene_info bj_scenario_info(const bj_scenario_scene *s) {
    const bj_features *f = &s->features;
    return (bj_scene_info){.scenario_id = s->id,
                           .city = s->city,
                           .focal_id = s->focal_id,
                           .focal_type = s->focal_type,
                           .origin = {f->origin[0], f->origin[1]},
                           .heading = f->heading,
                           .neighbors = f->neighbors,
                           .polylines = f->polylines,
                           .neighbors_available = f->neighbors_available,
                           .polylines_available = f->polylines_available,
                           .has_future = f->future_valid != 0,
                           .focal_valid = f->focal_valid,
                           .future_valid = f->future_valid,
                           .map = -1,
                           .map_sha256 = s->map_sha256};
}

bj_scene_floats bj_scenario_floats(const bj_scenario_scene *s) {
    const bj_features *f = &s->features;
    return (bj_scene_floats){.focal = f->focal,
                             .neighbors = f->neighbor[0],
                             .polylines = f->polyline[0],
                             .future = f->future_valid ? f->future : NULL};
}

int bj_scenario_rings(const bj_scenario_scene *s) { return s->rings; }

static int ring_start(const bj_scenario_scene *s, int ring) {
    return ring ? s->ring_end[ring - 1] : 0;
}

int bj_scenario_ring_size(const bj_scenario_scene *s, int ring) {
    return s->ring_end[ring] - ring_start(s, ring);
}

void bj_scenario_ring(double *points, const bj_scenario_scene *s, int ring) {
    const bj_point *at = s->rim + ring_start(s, ring);
    for (int i = 0; i < bj_scenario_ring_size(s, ring); i++) {
        points[2 * i] = at[i].x;
        points[2 * i + 1] = at[i].y;
    }
}

/* ----------------------------------------------------------------------------------------- list */

struct bj_scenario_list {
    bj_walk *walk;
    readers readers;
};

void bj_scenario_list_free(bj_scenario_list *list) {
    if (!list) return;
    release(&list->readers);
    bj_walk_free(list->walk);
    bj_free(list);
}

bj_status bj_scenario_list_create(bj_scenario_list **out, const char *root, bj_error *err) {
    bj_scenario_list *list;
    bj_status status;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(list, 1, err));
    BJ_GOTO(status, fail, bj_walk_create(&list->walk, &root, 1, NULL, err));
    BJ_GOTO(status, fail, create_readers(&list->readers, err));
    *out = list;
    return BJ_OK;
fail:
    bj_scenario_list_free(list);
    return status;
}

int64_t bj_scenario_list_count(const bj_scenario_list *list) { return bj_walk_count(list->walk); }

const char *bj_scenario_list_id(const bj_scenario_list *list, int64_t index) {
    return bj_walk_id(list->walk, index);
}

bj_status bj_scenario_list_open(bj_scenario_scene **out, bj_scenario_list *list, int64_t index,
                                bj_error *err) {
    char folder[BJ_WALK_PATH];
    files f;
    *out = NULL;
    BJ_TRY(bj_walk_folder(folder, list->walk, index, err));
    const char *id = bj_walk_id(list->walk, index);
    snprintf(f.id, sizeof f.id, "%s", id);
    BJ_TRY(set_paths(&f, folder, (int)strlen(folder), id, err));
    return open_files(out, &list->readers, &f, err);
}

const bj_map *bj_scenario_list_map(const bj_scenario_list *list) { return &list->readers.last; }

/* ---------------------------------------------------------------------------------------- frame */

void bj_to_city(double *out, const double *points, int count, const double origin[2],
                double heading) {
    const double c = cos(heading), s = sin(heading);
    for (int i = 0; i < count; i++) {
        const double x = points[2 * i], y = points[2 * i + 1];
        out[2 * i] = c * x - s * y + origin[0];
        out[2 * i + 1] = s * x + c * y + origin[1];
    }
}

void bj_from_city(double *out, const double *points, int count, const double origin[2],
                  double heading) {
    const double c = cos(heading), s = sin(heading);
    for (int i = 0; i < count; i++) {
        const double x = points[2 * i] - origin[0], y = points[2 * i + 1] - origin[1];
        out[2 * i] = c * x + s * y;
        out[2 * i + 1] = -s * x + c * y;
    }
}
