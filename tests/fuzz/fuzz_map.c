/* fuzz_map.c - fuzz target of the map reader.
 *
 * For any input, the reader must fail with a message, or return the same map as a slow reader based
 * on yyjson. Violations abort.
 * Corpus: tests/fuzz/corpus/map
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "data/map.h"
#include "fuzz_json.h"

static double number(yyjson_val *value) { /* raw values are text */
    demand(yyjson_is_raw(value));
    return strtod(yyjson_get_raw(value), NULL);
}

static void examine_points(bj_points ours, yyjson_val *list, int may_be_closed) {
    demand(yyjson_is_arr(list));
    const int count = (int)yyjson_arr_size(list);
    demand(ours.count == count || (may_be_closed && ours.count == count - 1));
    for (int i = 0; i < count; i++) {
        const bj_point *p =
            &ours.at[i < ours.count ? i : 0]; /* a closing point repeats the first */
        yyjson_val *point = yyjson_arr_get(list, (size_t)i);
        const double x = number(member(point, "x")), y = number(member(point, "y"));
        demand(isfinite(x) && isfinite(y) && p->x == x && p->y == y);
    }
}

/* Compares the successors of a lane, which may be missing. */
static void examine_ids(const bj_lane *lane, yyjson_val *list) {
    demand(list ? yyjson_is_arr(list) : lane->successor_count == 0);
    demand((size_t)lane->successor_count == yyjson_arr_size(list));
    for (int i = 0; i < lane->successor_count; i++) {
        yyjson_val *value = yyjson_arr_get(list, (size_t)i);
        demand(yyjson_is_raw(value));
        demand(strtoll(yyjson_get_raw(value), NULL, 10) == lane->successors[i]);
    }
}

/* Returns the i-th object of a section and checks its id. */
static yyjson_val *object_at(yyjson_val *section, int i, int64_t id) {
    yyjson_obj_iter items = yyjson_obj_iter_with(section);
    yyjson_val *key = NULL;
    for (int n = 0; n <= i; n++) key = yyjson_obj_iter_next(&items);
    demand(key != NULL);
    yyjson_val *object = yyjson_obj_iter_get_val(key), *value = member(object, "id");
    demand(yyjson_is_raw(value) && strtoll(yyjson_get_raw(value), NULL, 10) == id);
    return object;
}

static void examine(const bj_map *map, yyjson_doc *doc) {
    yyjson_val *root = yyjson_doc_get_root(doc), *crossings = member(root, "pedestrian_crossings");
    yyjson_val *lanes = member(root, "lane_segments"), *areas = member(root, "drivable_areas");
    demand(yyjson_is_obj(lanes) && (size_t)map->lane_count == yyjson_obj_size(lanes));
    demand(yyjson_is_obj(areas) && (size_t)map->area_count == yyjson_obj_size(areas));
    demand((size_t)map->crossing_count == (crossings ? yyjson_obj_size(crossings) : 0));
    for (int i = 0; i < map->lane_count; i++) {
        const bj_lane *lane = &map->lanes[i];
        yyjson_val *object = object_at(lanes, i, lane->id);
        yyjson_val *flag = member(object, "is_intersection");
        demand(yyjson_is_bool(flag) && yyjson_get_bool(flag) == (lane->is_intersection != 0));
        demand(lane->left.count > 0 && lane->right.count > 0);
        examine_points(lane->left, member(object, "left_lane_boundary"), 0);
        examine_points(lane->right, member(object, "right_lane_boundary"), 0);
        examine_ids(lane, member(object, "successors"));
    }
    for (int i = 0; i < map->crossing_count; i++) {
        const bj_crossing *crossing = &map->crossings[i];
        demand(crossing->edge.count > 0);
        examine_points(crossing->edge, member(object_at(crossings, i, crossing->id), "edge1"), 0);
    }
    for (int i = 0; i < map->area_count; i++) {
        const bj_points ring = map->areas[i].ring;
        demand(ring.count >= 3);
        examine_points(ring, member(object_at(areas, i, map->areas[i].id), "area_boundary"), 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_map_reader *reader = NULL;
    bj_map map;
    bj_error err = {0};
    demand(bj_map_reader_create(&reader, &err) == BJ_OK);
    const bj_status status = bj_map_read_memory(&map, reader, data, size, "fuzz", &err);
    yyjson_doc *doc = yyjson_read((const char *)data, size, YYJSON_READ_NUMBER_AS_RAW);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) {
        demand(doc != NULL);
        examine(&map, doc);
    } else {
        demand(status == BJ_EFORMAT && err.code == status && !strncmp(err.message, "fuzz: ", 6));
        demand(!map.lanes && !map.lane_count && !map.crossing_count && !map.area_count);
        /* If the message reports invalid JSON, yyjson must fail too. Only our reader limits the
         * nesting depth. */
        demand(!doc || strncmp(err.message, "fuzz: not JSON", 14) ||
               strstr(err.message, "nested too deeply"));
    }
    yyjson_doc_free(doc);
    bj_map_reader_free(reader);
    demand(bj_alloc_live() == live);
    return 0;
}
