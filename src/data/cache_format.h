/* cache_format.h - the tensors, facts and digests of a cache, shared by writer and reader.
 *
 * A cache is one safetensors file. bj_cache_columns lists its tensors in file order. docs/DATA.md
 * describes each tensor.
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
    BJ_CACHE_HEADER = 65536, /* bytes before the records: length, JSON header, padding */
    BJ_CACHE_ALIGN = 16,     /* record sizes are a multiple of this many floats */
    BJ_CACHE_NAME = 64,      /* bytes of an id including the terminator */
    BJ_CACHE_TABLE = 64,     /* max number of cities, and of types */
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

/* Element counts of a cache. They also track the size of a cache that is being written. */
typedef struct bj_cache_sizes {
    int64_t scenes;
    int64_t floats;      /* total over all records */
    int64_t maps, rings; /* distinct drivable areas and their rings */
    int64_t doubles;     /* ring points stored as double */
    int64_t centimeters; /* ring points stored in centimeters */
} bj_cache_sizes;

/* Meaning of a tensor's first dimension. */
typedef enum bj_cache_per {
    BJ_PER_FLOAT,
    BJ_PER_SCENE,
    BJ_PER_MAP,
    BJ_PER_MAP_AND_END, /* number of maps plus one */
    BJ_PER_RING,
    BJ_PER_DOUBLE,
    BJ_PER_CENTIMETER
} bj_cache_per;

typedef struct bj_cache_column_info {
    const char *name;
    bj_dtype dtype;
    bj_cache_per per;
    int width;      /* second dimension, 0 if there is none */
    int is_content; /* 1: not part of the index digest, because the content has its own digests */
} bj_cache_column_info;

extern const bj_cache_column_info bj_cache_columns[BJ_COLUMNS];

/* Fills shape and returns the rank. `fut` is the number of future steps. */
int bj_cache_shape(int64_t shape[3], bj_cache_column column, const bj_cache_sizes *sizes, int fut);

/* Returns the number of floats in a record, including padding. */
int64_t bj_cache_record_floats(int obs, int points, int neighbors, int polylines);

/* Computes the SHA-256 of a record (including padding) and its future. */
void bj_cache_scene_digest(uint8_t digest[BJ_CACHE_HASH], const float *record, int64_t floats,
                           const float *future, int future_floats);
/* Adds one ring to a map digest. A map digest is the SHA-256 of its rings in order. Each ring
 * contributes its count and kind (bj_cache_add_ring_head) and then its points, shape (count,2), as
 * int32_t centimeters or as double. */
void bj_cache_add_ring_head(bj_sha256 *hash, int32_t count, int exact);
void bj_cache_add_ring(bj_sha256 *hash, int32_t count, int exact, const void *points);
size_t bj_cache_point_size(int exact); /* in bytes */

/* Starts the index digest with the facts sorted by key. The fact "digest" is left out. */
void bj_cache_digest_begin(bj_sha256 *hash, const bj_fact *facts, int count);
/* Adds the header line that precedes the bytes of a column in the index digest. */
void bj_cache_digest_column(bj_sha256 *hash, bj_cache_column column, const bj_cache_sizes *sizes,
                            int fut);

#endif
