/* cache_format.c - see cache_format.h. */
#include "data/cache_format.h"

#include <stdio.h>
#include <string.h>

/* Larger elements come first, so every tensor is aligned to its element size. */
/* clang-format off */
const bj_cache_column_info bj_cache_columns[BJ_COLUMNS] = {
    [BJ_COLUMN_RECORDS]             = {"records",             BJ_DTYPE_F32, BJ_PER_FLOAT, 0, 1},
    [BJ_COLUMN_RECORD_START]        = {"record_start",        BJ_DTYPE_I64, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_ORIGIN]              = {"origin",              BJ_DTYPE_F64, BJ_PER_SCENE, 2, 0},
    [BJ_COLUMN_HEADING]             = {"heading",             BJ_DTYPE_F64, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_FOCAL_VALID]         = {"focal_valid",         BJ_DTYPE_U64, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_FUTURE_VALID]        = {"future_valid",        BJ_DTYPE_U64, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_MAP]                 = {"map",                 BJ_DTYPE_I64, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_MAP_RING_START] = {"map_ring_start", BJ_DTYPE_I64, BJ_PER_MAP_AND_END, 0, 0},
    [BJ_COLUMN_RING_START]          = {"ring_start",          BJ_DTYPE_I64, BJ_PER_RING, 0, 0},
    [BJ_COLUMN_POINTS]              = {"points",              BJ_DTYPE_F64, BJ_PER_DOUBLE, 2, 1},
    [BJ_COLUMN_FUTURE]              = {"future",              BJ_DTYPE_F32, BJ_PER_SCENE, -1, 1},
    [BJ_COLUMN_NEIGHBORS_AVAILABLE] = {"neighbors_available", BJ_DTYPE_I32, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_POLYLINES_AVAILABLE] = {"polylines_available", BJ_DTYPE_I32, BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_RING_COUNT]          = {"ring_count",          BJ_DTYPE_I32, BJ_PER_RING, 0, 0},
    [BJ_COLUMN_POINTS_CM] = {"points_cm", BJ_DTYPE_I32, BJ_PER_CENTIMETER, 2, 1},
    [BJ_COLUMN_NEIGHBORS]           = {"neighbors",           BJ_DTYPE_U8,  BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_POLYLINES]           = {"polylines",           BJ_DTYPE_U8,  BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_CITY]                = {"city",                BJ_DTYPE_U8,  BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_FOCAL_TYPE]          = {"focal_type",          BJ_DTYPE_U8,  BJ_PER_SCENE, 0, 0},
    [BJ_COLUMN_RING_EXACT]          = {"ring_exact",          BJ_DTYPE_U8,  BJ_PER_RING, 0, 0},
    [BJ_COLUMN_SCENARIO_ID] = {"scenario_id", BJ_DTYPE_U8, BJ_PER_SCENE, BJ_CACHE_NAME, 0},
    [BJ_COLUMN_FOCAL_ID] = {"focal_id", BJ_DTYPE_U8, BJ_PER_SCENE, BJ_CACHE_NAME, 0},
    [BJ_COLUMN_MAP_SHA256] = {"map_sha256", BJ_DTYPE_U8, BJ_PER_SCENE, BJ_CACHE_HASH, 0},
    [BJ_COLUMN_SCENE_SHA256] = {"scene_sha256", BJ_DTYPE_U8, BJ_PER_SCENE, BJ_CACHE_HASH, 0},
    [BJ_COLUMN_MAP_DIGEST] = {"map_digest", BJ_DTYPE_U8, BJ_PER_MAP, BJ_CACHE_HASH, 0},
};
/* clang-format on */

int bj_cache_shape(int64_t shape[3], bj_cache_column column, const bj_cache_sizes *sizes, int fut) {
    const bj_cache_column_info *info = &bj_cache_columns[column];
    switch (info->per) {
    case BJ_PER_FLOAT: shape[0] = sizes->floats; break;
    case BJ_PER_SCENE: shape[0] = sizes->scenes; break;
    case BJ_PER_MAP: shape[0] = sizes->maps; break;
    case BJ_PER_MAP_AND_END: shape[0] = sizes->maps + 1; break;
    case BJ_PER_RING: shape[0] = sizes->rings; break;
    case BJ_PER_DOUBLE: shape[0] = sizes->doubles; break;
    case BJ_PER_CENTIMETER: shape[0] = sizes->centimeters; break;
    }
    if (info->width == 0) return 1;
    if (info->width > 0) {
        shape[1] = info->width;
        return 2;
    }
    shape[1] = fut; /* only the futures have a third dimension */
    shape[2] = 2;
    return 3;
}

int64_t bj_cache_record_floats(int obs, int points, int neighbors, int polylines) {
    const int64_t floats = (int64_t)obs * BJ_FOCAL_FEATURES * (1 + neighbors) +
                           (int64_t)points * BJ_POLYLINE_FEATURES * polylines;
    return (floats + BJ_CACHE_ALIGN - 1) / BJ_CACHE_ALIGN * BJ_CACHE_ALIGN;
}

void bj_cache_scene_digest(uint8_t digest[BJ_CACHE_HASH], const float *record, int64_t floats,
                           const float *future, int future_floats) {
    bj_sha256 hash;
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, record, (size_t)floats * sizeof *record);
    bj_sha256_update(&hash, future, (size_t)future_floats * sizeof *future);
    bj_sha256_final_bytes(&hash, digest);
}

size_t bj_cache_point_size(int exact) { return 2 * (exact ? sizeof(int32_t) : sizeof(double)); }

void bj_cache_add_ring_head(bj_sha256 *hash, int32_t count, int exact) {
    unsigned char head[5];
    memcpy(head, &count, 4);
    head[4] = (unsigned char)exact;
    bj_sha256_update(hash, head, sizeof head);
}

void bj_cache_add_ring(bj_sha256 *hash, int32_t count, int exact, const void *points) {
    bj_cache_add_ring_head(hash, count, exact);
    bj_sha256_update(hash, points, (size_t)count * bj_cache_point_size(exact));
}

void bj_cache_digest_begin(bj_sha256 *hash, const bj_fact *facts, int count) {
    bj_sha256_init(hash);
    for (int i = 0; i < count; i++) {
        if (!strcmp(facts[i].key, "digest")) continue;
        bj_sha256_update(hash, facts[i].key, strlen(facts[i].key) + 1);
        bj_sha256_update(hash, facts[i].value, strlen(facts[i].value) + 1);
    }
}

void bj_cache_digest_column(bj_sha256 *hash, bj_cache_column column, const bj_cache_sizes *sizes,
                            int fut) {
    int64_t shape[3];
    char line[160];
    const int rank = bj_cache_shape(shape, column, sizes, fut);
    int length = snprintf(line, sizeof line, "%s", bj_cache_columns[column].name);
    for (int i = 0; i < rank; i++)
        length +=
            snprintf(line + length, sizeof line - (size_t)length, " %lld", (long long)shape[i]);
    bj_sha256_update(hash, line, (size_t)length + 1);
}
