/* folder.c - see folder.h. */
#define _POSIX_C_SOURCE 200809L /* mkdir */
#include "world/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "parquet/writer.h"

enum { PATH_SIZE = 4096, COLUMNS = 16 };

static const bj_parquet_field fields[COLUMNS] = {
    {"observed", BJ_PARQUET_BOOLEAN, 0, 0},
    {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"object_type", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"object_category", BJ_PARQUET_INT64, 0, 1},
    {"timestep", BJ_PARQUET_INT64, 0, 1},
    {"position_x", BJ_PARQUET_DOUBLE, 0, 0},
    {"position_y", BJ_PARQUET_DOUBLE, 0, 0},
    {"heading", BJ_PARQUET_DOUBLE, 0, 0},
    {"velocity_x", BJ_PARQUET_DOUBLE, 0, 0},
    {"velocity_y", BJ_PARQUET_DOUBLE, 0, 0},
    {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"start_timestamp", BJ_PARQUET_DOUBLE, 0, 1},
    {"end_timestamp", BJ_PARQUET_DOUBLE, 0, 1},
    {"num_timestamps", BJ_PARQUET_INT64, 0, 1},
    {"focal_track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"city", BJ_PARQUET_BYTE_ARRAY, 0, 1},
};

struct bj_world_folder {
    char *root;
    bj_parquet_writer *writer;
    uint8_t observed[BJ_WORLD_ROWS];
    int64_t category[BJ_WORLD_ROWS], steps[BJ_WORLD_ROWS];
    double start[BJ_WORLD_ROWS], end[BJ_WORLD_ROWS];
    bj_text track[BJ_WORLD_ROWS], type[BJ_WORLD_ROWS], id[BJ_WORLD_ROWS];
    bj_text focal[BJ_WORLD_ROWS], city[BJ_WORLD_ROWS];
};

bj_status bj_world_folder_create(bj_world_folder **out, const char *root, bj_error *err) {
    bj_world_folder *f;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(f, 1, err));
    f->root = bj_strdup(root);
    bj_status status = f->root ? BJ_OK : bj_alloc_failed(strlen(root) + 1, 1, err);
    if (status == BJ_OK)
        status = bj_parquet_writer_create(&f->writer, fields, COLUMNS, BJ_PARQUET_SNAPPY, err);
    if (status != BJ_OK) {
        bj_world_folder_free(f);
        return status;
    }
    *out = f;
    return BJ_OK;
}

void bj_world_folder_free(bj_world_folder *f) {
    if (!f) return;
    bj_parquet_writer_free(f->writer);
    bj_free(f->root);
    bj_free(f);
}

static bj_status write_rows(bj_world_folder *f, const bj_world_scene *scene, bj_error *err) {
    const bj_scenario *s = &scene->scenario;
    for (int64_t r = 0; r < s->rows; r++) {
        const int track = s->track[r];
        f->observed[r] = s->step[r] < BJ_WORLD_OBSERVED;
        f->category[r] = scene->category[scene->agent_of[track]];
        f->steps[r] = BJ_WORLD_STEPS;
        f->start[r] = scene->start_timestamp;
        f->end[r] = scene->start_timestamp + 1.09e10;
        f->track[r] = s->track_id[track];
        f->type[r] = s->type[track];
        f->id[r] = s->id;
        f->focal[r] = s->track_id[s->focal];
        f->city[r] = s->city;
    }
    const bj_parquet_data data[COLUMNS] = {
        {.booleans = f->observed}, {.texts = f->track},     {.texts = f->type},
        {.integers = f->category}, {.integers = s->step},   {.doubles = s->x},
        {.doubles = s->y},         {.doubles = s->heading}, {.doubles = s->vx},
        {.doubles = s->vy},        {.texts = f->id},        {.doubles = f->start},
        {.doubles = f->end},       {.integers = f->steps},  {.texts = f->focal},
        {.texts = f->city}};
    return bj_parquet_writer_rows(f->writer, s->rows, data, NULL, err);
}

bj_status bj_world_folder_add(bj_world_folder *f, const bj_world_scene *scene,
                              const bj_town_text *map, bj_error *err) {
    char path[PATH_SIZE];
    const int n = snprintf(path, PATH_SIZE, "%s/%s", f->root, scene->id);
    if (n + 80 >= PATH_SIZE) return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", f->root);
    if (mkdir(path, 0777) && errno != EEXIST)
        return BJ_FAIL(err, BJ_EIO, "%s: cannot create the folder: %s", path, strerror(errno));
    snprintf(path + n, PATH_SIZE - (size_t)n, "/log_map_archive_%s.json", scene->id);
    BJ_TRY(bj_file_write(path, map->text, map->size, err));
    snprintf(path + n, PATH_SIZE - (size_t)n, "/scenario_%s.parquet", scene->id);
    BJ_TRY(bj_parquet_writer_open(f->writer, path, err));
    BJ_TRY(write_rows(f, scene, err));
    return bj_parquet_writer_commit(f->writer, err);
}
