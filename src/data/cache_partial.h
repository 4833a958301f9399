/* cache_partial.h - a cache under construction: the folder PATH.partial. Shared by
 * cache_encode.c, cache_open.c, cache_resume.c, cache_writer.c and cache_finish.c alone.
 *
 *   facts      the settings of the run; the last file to appear, and the last to go
 *   records    the future cache: BJ_CACHE_HEADER bytes of nothing, then the records
 *   journal    one bj_cache_row for each item, scene or reject, in order
 *   maps       one bj_cache_map_row for each distinct drivable area
 *   rings      one bj_cache_ring_row for each ring
 *   points, points_cm   the points of the rings
 *   rejects    the lines of PATH.rejects.jsonl
 *
 * Invariants
 *   1. What an item adds to the other files is written before its row: a complete row vouches for
 *      all of it, and says how long every file was behind it.
 *   2. A row is its own witness (SHA-256). Behind the last complete row nothing counts: whoever
 *      continues cuts every file there.
 *   3. row.durable items were synced to disk before that row was written. After a power cut later
 *      ones are believed only as far as their digests are right.
 *   4. Whoever writes holds a lock (flock) on the folder. A folder with facts and without records
 * is what a process left that was killed after publishing the cache.
 *   5. Nothing but these names is ever written or removed in the folder.
 */
#ifndef BJ_DATA_CACHE_PARTIAL_H
#define BJ_DATA_CACHE_PARTIAL_H

#include <sys/types.h>

#include "core/file_internal.h"
#include "data/cache_format.h"
#include "data/cache_writer.h"

enum {
    BJ_ROW_SCENE = 1,
    BJ_ROW_REJECT = 2,
    BJ_ROW_SIZE = 1024,
    BJ_RECORD_MAX = (BJ_AV2_TRACK * (1 + BJ_AV2_NEIGHBORS) + BJ_AV2_LINE * BJ_AV2_POLYLINES +
                     BJ_CACHE_ALIGN - 1) /
                    BJ_CACHE_ALIGN * BJ_CACHE_ALIGN /* floats */
};

/* Where every file ends behind an item. */
typedef struct bj_cache_extent {
    bj_cache_sizes sizes;
    int64_t items;   /* scenes and rejects */
    int64_t rejects; /* bytes of lines about rejects */
} bj_cache_extent;

typedef struct bj_cache_row {
    uint32_t kind;
    int32_t neighbors, polylines, neighbors_available, polylines_available;
    int32_t zero;
    int64_t durable;
    bj_cache_extent after;
    double origin[2], heading;
    uint64_t focal_valid, future_valid;
    int64_t record_start, map;
    uint8_t map_sha256[BJ_CACHE_HASH];
    uint8_t content_sha256[BJ_CACHE_HASH]; /* of record and future, or of the line of a reject */
    char scenario_id[BJ_CACHE_NAME], focal_id[BJ_CACHE_NAME];
    char city[BJ_CACHE_NAME], focal_type[BJ_CACHE_NAME];
    float future[BJ_AV2_FUTURE];
    uint8_t reserved[40];
    uint8_t check[BJ_CACHE_HASH]; /* SHA-256 of everything above */
} bj_cache_row;

typedef struct bj_cache_map_row {
    uint8_t digest[BJ_CACHE_HASH];
    int64_t first_ring;
} bj_cache_map_row;

typedef struct bj_cache_ring_row {
    int64_t start; /* number of its first point among those of its kind */
    int32_t count, exact;
} bj_cache_ring_row;

struct bj_cache_bytes {
    bj_cache_row row; /* without what depends on its place */
    float record[BJ_RECORD_MAX];
    int64_t floats;
    bj_cache_ring_row *rings; /* start counts from 0 for each kind */
    double *doubles;          /* (double_count,2) */
    int32_t *centimeters;     /* (centimeter_count,2) */
    int ring_count, double_count, centimeter_count;
    int ring_room, point_room;
    uint8_t map_digest[BJ_CACHE_HASH];
    bj_sha256 hash;
};

typedef enum bj_cache_file {
    BJ_FILE_RECORDS,
    BJ_FILE_JOURNAL,
    BJ_FILE_MAPS,
    BJ_FILE_RINGS,
    BJ_FILE_POINTS,
    BJ_FILE_POINTS_CM,
    BJ_FILE_REJECTS,
    BJ_FILES
} bj_cache_file;

extern const char *const bj_cache_file_names[BJ_FILES];

/* Distinct texts in the order of their first scene. */
typedef struct bj_cache_table {
    int count;
    char text[BJ_CACHE_TABLE][BJ_CACHE_NAME];
} bj_cache_table;

struct bj_cache_writer {
    char *path;               /* final name, symbolic links followed */
    char *partial;            /* PATH.partial, for messages */
    int parent;               /* directory both lie in */
    char name[BJ_FILE_NAME];  /* of the cache in it */
    char below[BJ_FILE_NAME]; /* of the folder in it */
    int folder;               /* the folder itself, locked */
    int fd[BJ_FILES];
    bj_fact *facts; /* those of the caller; copies */
    int fact_count;
    bj_cache_extent at;
    int64_t durable;
    double synced; /* when, in seconds */
    char last_id[BJ_CACHE_NAME];
    bj_cache_table cities, types;
    /* maps so far: digests, and a hash table of their numbers (-1: empty) */
    uint8_t (*digests)[BJ_CACHE_HASH];
    int32_t *table;
    int64_t digest_room, table_room;
    bj_sha256 hash;
    bj_cache_row *rows; /* a stretch of the journal: rows row_first .. row_first + row_count - 1 */
    int64_t row_first, row_count;
};

enum { BJ_ROWS_READ = 256 };

/* Whole reads and writes at a place of a file; a short read is an error. */
BJ_CHECK bj_status bj_cache_put(bj_cache_writer *w, bj_cache_file file, const void *data,
                                size_t size, int64_t at, bj_error *err);
BJ_CHECK bj_status bj_cache_get(bj_cache_writer *w, bj_cache_file file, void *data, size_t size,
                                int64_t at, bj_error *err);
bj_status bj_cache_file_failed(const bj_cache_writer *w, bj_cache_file file, int number,
                               const char *what, bj_error *err);
/* Bytes of a file at that extent. */
int64_t bj_cache_file_end(bj_cache_file file, const bj_cache_extent *extent);
/* A row of the journal, read in stretches; lives until the next call. */
BJ_CHECK bj_status bj_cache_row_at(const bj_cache_row **out, bj_cache_writer *w, int64_t item,
                                   bj_error *err);
/* SHA-256 of a row without its last field. */
BJ_CHECK bj_status bj_cache_row_check(uint8_t check[BJ_CACHE_HASH], bj_sha256 *hash,
                                      const bj_cache_row *row, bj_error *err);
/* Finds how much of an earlier run is usable, and takes it over. */
BJ_CHECK bj_status bj_cache_resume(bj_cache_writer *w, bj_error *err);
/* Number of a text in the table, or -1; and adding it unless it is there or the table is full. */
int bj_cache_table_find(const bj_cache_table *table, const char *text);
void bj_cache_table_keep(bj_cache_table *table, const char *text);
/* Number of the map of that digest, or -1; and the next number for a new one. */
int64_t bj_cache_find_map(const bj_cache_writer *w, const uint8_t digest[BJ_CACHE_HASH]);
BJ_CHECK bj_status bj_cache_keep_map(bj_cache_writer *w, int64_t number,
                                     const uint8_t digest[BJ_CACHE_HASH], bj_error *err);
/* Removes the files, and the folder if nothing else is in it. */
void bj_cache_remove_partial(int parent, const char *below, int folder);
void bj_cache_writer_free(bj_cache_writer *w);

#endif
