/* map.h - the static map of a scenario: lane segments, pedestrian crossings, drivable areas.
 *
 * Only x and y of a point are kept, in city coordinates. All points are stored in one array, and a
 * bj_points is a slice of it. Objects keep the order of the file.
 * Tests: tests/data/test_map.c; fuzz target: tests/fuzz/fuzz_map.c
 */
#ifndef BJ_DATA_MAP_H
#define BJ_DATA_MAP_H

#include <stdint.h>

#include "core/status.h"

typedef struct bj_point {
    double x, y;
} bj_point;

typedef struct bj_points {
    const bj_point *at; /* (count) */
    int count;
} bj_points;

typedef struct bj_lane {
    int64_t id;
    int is_intersection;
    bj_points left, right;     /* boundaries, at least one point each */
    const int64_t *successors; /* (successor_count) lane ids, which need not be in the map */
    int successor_count;
} bj_lane;

typedef struct bj_crossing {
    int64_t id;
    bj_points edge; /* edge1 */
} bj_crossing;

typedef struct bj_area {
    int64_t id;
    bj_points ring; /* the first point is not repeated at the end of a ring */
} bj_area;

typedef struct bj_map {
    const bj_lane *lanes;
    const bj_crossing *crossings;
    const bj_area *areas;
    int lane_count, crossing_count, area_count;
} bj_map;

/* Reads maps and reuses its buffers from one map to the next. */
typedef struct bj_map_reader bj_map_reader;

BJ_CHECK bj_status bj_map_reader_create(bj_map_reader **out, bj_error *err);
void bj_map_reader_free(bj_map_reader *reader); /* accepts NULL */
/* Reads a map, which is valid until the next read. Keys may come in any order, and unknown keys are
 * ignored. lane_segments and drivable_areas are required. pedestrian_crossings and a lane's
 * successors are optional. Fails if a field is missing, repeated or invalid, if a key or id is
 * repeated, if a ring has fewer than three points, or if a number is not finite. The message
 * contains the file, object and field. See docs/DATA.md. */
BJ_CHECK bj_status bj_map_read(bj_map *out, bj_map_reader *reader, const char *path, bj_error *err);
BJ_CHECK bj_status bj_map_read_memory(bj_map *out, bj_map_reader *reader, const void *data,
                                      size_t size, const char *label, bj_error *err);

#endif
