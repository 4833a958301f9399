/* cache_format.h - what writer and reader of a cache agree on: the tensors, the facts, the digests.
 *
 * A cache is one safetensors file. Its tensors, in this order, are the rows of bj_cache_columns;
 * docs/DATA.md says what each means.
 * Tests: tests/data/test_cache.c
 */
#ifndef BJ_DATA_CACHE_FORMAT_H
#define BJ_DATA_CACHE_FORMAT_H

#include <stdint.h>

#include "core/safetensors.h"
#include "core/sha256.h"

#define BJ_CACHE_FORMAT "branchjepa-cache"
#define BJ_CACHE_VERSION "1"

enum {
    BJ_CACHE_HEADER = 65536, /* bytes before the records: length, header, spaces */
    BJ_CACHE_ALIGN = 16,     /* floats a record is a multiple of */
    BJ_CACHE_NAME = 64,      /* bytes of an id with its terminator */
    BJ_CACHE_TABLE = 64,     /* cities, and types, at most */
    BJ_CACHE_HASH = BJ_SHA256_BYTES
};

typedef enum bj_cache_column {
    BJ_COLUMN_RECORDS,
    BJ_COLUMN_RECORD_START,
    BJ_COLUMN_ORIGIN,
    BJ_COLUMN_HEADING,
    BJ_COLUMN_FOCAL_VALID,
    BJ_COLUMN_FUTURE_VALID,
    BJ_COLUMN_MAP,
    BJ_COLUMN_MAP_RING_START,
    BJ_COLUMN_RING_START,
    BJ_COLUMN_POINTS,
    BJ_COLUMN_FUTURE,
    BJ_COLUMN_NEIGHBORS_AVAILABLE,
    BJ_COLUMN_POLYLINES_AVAILABLE,
    BJ_COLUMN_RING_COUNT,
    BJ_COLUMN_POINTS_CM,
    BJ_COLUMN_NEIGHBORS,
    BJ_COLUMN_POLYLINES,
    BJ_COLUMN_CITY,
    BJ_COLUMN_FOCAL_TYPE,
    BJ_COLUMN_RING_EXACT,
    BJ_COLUMN_SCENARIO_ID,
    BJ_COLUMN_FOCAL_ID,
    BJ_COLUMN_MAP_SHA256,
    BJ_COLUMN_SCENE_SHA256,
    BJ_COLUMN_MAP_DIGEST,
    BJ_COLUMNS
} bj_cache_column;

/* How many of everything there are; also the state of a cache that is being written. */
typedef struct bj_cache_sizes {
    int64_t scenes;
    int64_t floats;      /* of all records */
    int64_t maps, rings; /* distinct drivable areas, and their rings */
    int64_t doubles;     /* points of rings stored in double */
    int64_t centimeters; /* points of rings stored in centimeters */
} bj_cache_sizes;

/* What the first dimension of a tensor counts. */
typedef enum bj_cache_per {
    BJ_PER_FLOAT,
    BJ_PER_SCENE,
    BJ_PER_MAP,
    BJ_PER_MAP_AND_END, /* one more than maps */
    BJ_PER_RING,
    BJ_PER_DOUBLE,
    BJ_PER_CENTIMETER
} bj_cache_per;

typedef struct bj_cache_column_info {
    const char *name;
    bj_dtype dtype;
    bj_cache_per per;
    int width;      /* second dimension, 0: none */
    int is_content; /* not in the digest of the index: has digests of its own */
} bj_cache_column_info;

extern const bj_cache_column_info bj_cache_columns[BJ_COLUMNS];

/* Fills shape and returns the rank; fut is the number of future steps. */
int bj_cache_shape(int64_t shape[3], bj_cache_column column, const bj_cache_sizes *sizes, int fut);

/* Floats of a record, padding included. */
int64_t bj_cache_record_floats(int obs, int points, int neighbors, int polylines);

/* SHA-256 of a record (padding included) and its future. */
BJ_CHECK bj_status bj_cache_scene_digest(uint8_t digest[BJ_CACHE_HASH], bj_sha256 *hash,
                                         const float *record, int64_t floats, const float *future,
                                         int future_floats, bj_error *err);
/* A map's digest is the SHA-256 of its rings in order, each added here: count and kind, then the
 * points, (count,2) of int32_t centimeters or of double. */
BJ_CHECK bj_status bj_cache_add_ring_head(bj_sha256 *hash, int32_t count, int exact, bj_error *err);
BJ_CHECK bj_status bj_cache_add_ring(bj_sha256 *hash, int32_t count, int exact, const void *points,
                                     bj_error *err);
size_t bj_cache_point_size(int exact); /* bytes */

/* Start of the digest of the index: facts sorted by key, "digest" left out. */
BJ_CHECK bj_status bj_cache_digest_begin(bj_sha256 *hash, const bj_fact *facts, int count,
                                         bj_error *err);
/* Line that stands before the bytes of a column there. */
BJ_CHECK bj_status bj_cache_digest_column(bj_sha256 *hash, bj_cache_column column,
                                          const bj_cache_sizes *sizes, int fut, bj_error *err);

#endif
