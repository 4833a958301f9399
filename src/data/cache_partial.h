/* cache_partial.h - a cache under construction in the folder PATH.partial. Private to
 * cache_encode.c, cache_open.c, cache_resume.c, cache_writer.c and cache_finish.c.
 *
 *   facts      settings of the run; created last and removed last
 *   records    the future cache file: BJ_CACHE_HEADER reserved bytes, then the records
 *   journal    one bj_cache_row per item (scene or reject), in order
 *   maps       one bj_cache_map_row per distinct drivable area
 *   rings      one bj_cache_ring_row per ring
 *   points, points_cm   the points of the rings
 *   rejects    the lines of PATH.rejects.jsonl
 *
 * Invariants
 *   1. An item's data is written to the other files before its row. A complete row therefore
 *      implies complete data. The row also stores the length of every file after the item.
 *   2. Every row contains its own SHA-256. Data after the last complete row is ignored, and a
 *      process that resumes the run truncates every file there.
 *   3. The first row.durable items were synced to disk before that row was written. Later items may
 *      be damaged by a power failure, so they are used only if their digests match.
 *   4. The writer holds a lock (flock) on the folder. A folder without records, but with facts,
 *      was left by a process that was killed after publishing the cache. If it has no facts either,
 *      it is the last trace of that process or of one that was killed when it began.
 *   5. No other names are ever written or removed in the folder.
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

/* The end of every file after an item. */
typedef struct bj_cache_extent {
    bj_cache_sizes sizes;
    int64_t items;   /* scenes and rejects */
    int64_t rejects; /* size of the rejects file in bytes */
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
    uint8_t content_sha256[BJ_CACHE_HASH]; /* SHA-256 of the record and the future, or of the reject
                                              line */
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
    int64_t start; /* index of the first point, counted among all points of this kind */
    int32_t count, exact;
} bj_cache_ring_row;

struct bj_cache_bytes {
    bj_cache_row row; /* without the fields that depend on the position */
    float record[BJ_RECORD_MAX];
    int64_t floats;
    bj_cache_ring_row *rings; /* start is relative to this scene, per kind */
    double *doubles;          /* (double_count,2) */
    int32_t *centimeters;     /* (centimeter_count,2) */
    int ring_count, double_count, centimeter_count;
    int ring_room, point_room;
    uint8_t map_digest[BJ_CACHE_HASH];
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

/* Distinct texts, in the order of their first use by a scene. */
typedef struct bj_cache_table {
    int count;
    char text[BJ_CACHE_TABLE][BJ_CACHE_NAME];
} bj_cache_table;

struct bj_cache_writer {
    char *path;               /* final path with symbolic links resolved */
    char *partial;            /* PATH.partial, for messages */
    int parent;               /* parent directory of the cache and the folder */
    char name[BJ_FILE_NAME];  /* name of the cache in parent */
    char below[BJ_FILE_NAME]; /* name of the folder in parent */
    int folder;               /* the locked folder */
    int fd[BJ_FILES];
    bj_fact *facts; /* copies of the caller's facts */
    int fact_count;
    bj_cache_extent at;
    int64_t durable;
    double synced; /* time of the last sync in seconds */
    char last_id[BJ_CACHE_NAME];
    bj_cache_table cities, types;
    /* Digests of the maps so far, and a hash table of map numbers (-1 in empty slots). */
    uint8_t (*digests)[BJ_CACHE_HASH];
    int32_t *table;
    int64_t digest_room, table_room;
    bj_cache_row *rows; /* buffered journal rows row_first .. row_first + row_count - 1 */
    int64_t row_first, row_count;
};

enum { BJ_ROWS_READ = 256 };

/* Write or read `size` bytes at offset `at` of a file. A short read is an error. */
BJ_CHECK bj_status bj_cache_put(bj_cache_writer *w, bj_cache_file file, const void *data,
                                size_t size, int64_t at, bj_error *err);
BJ_CHECK bj_status bj_cache_get(bj_cache_writer *w, bj_cache_file file, void *data, size_t size,
                                int64_t at, bj_error *err);
bj_status bj_cache_file_failed(const bj_cache_writer *w, bj_cache_file file, int number,
                               const char *what, bj_error *err);
/* Returns the size of a file in bytes at the given extent. */
int64_t bj_cache_file_end(bj_cache_file file, const bj_cache_extent *extent);
/* Returns a journal row, which is valid until the next call. Rows are read in batches. */
BJ_CHECK bj_status bj_cache_row_at(const bj_cache_row **out, bj_cache_writer *w, int64_t item,
                                   bj_error *err);
/* Computes the SHA-256 of a row without its last field. */
void bj_cache_row_check(uint8_t check[BJ_CACHE_HASH], const bj_cache_row *row);
/* Determines how much of an interrupted run is usable, and continues from there. */
BJ_CHECK bj_status bj_cache_resume(bj_cache_writer *w, bj_error *err);
/* bj_cache_table_find returns the index of a text, or -1. bj_cache_table_keep adds a text unless
 * the table already contains it or is full. */
int bj_cache_table_find(const bj_cache_table *table, const char *text);
void bj_cache_table_keep(bj_cache_table *table, const char *text);
/* bj_cache_find_map returns the number of the map with that digest, or -1. bj_cache_keep_map adds a
 * new map under the next number. */
int64_t bj_cache_find_map(const bj_cache_writer *w, const uint8_t digest[BJ_CACHE_HASH]);
BJ_CHECK bj_status bj_cache_keep_map(bj_cache_writer *w, int64_t number,
                                     const uint8_t digest[BJ_CACHE_HASH], bj_error *err);
/* Removes the files, and the folder if it is then empty. */
void bj_cache_remove_partial(int parent, const char *below, int folder);
void bj_cache_writer_free(bj_cache_writer *w);

#endif
