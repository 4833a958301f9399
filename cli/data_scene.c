/* data_scene.c - see data_scene.h. */
#include "data_scene.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bj_status by_number(int64_t *index, const bj_cache *cache, const char *path,
                           const char *name, bj_error *err) {
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(name + 1, &end, 10), count = bj_cache_count(cache);
    if (end == name + 1 || *end || errno || number < 0 || number >= count)
        return cli_error(err, BJ_EARG, "%s: found scene number '%s', expected '#0' to '#%lld'",
                         path, name, count - 1);
    *index = number;
    return BJ_OK;
}

/* Returns the first scene whose id is not less than `name`. Ids are in ascending order. */
static int64_t first_from(const bj_cache *cache, const char *name) {
    int64_t low = 0, high = bj_cache_count(cache);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(bj_cache_info(cache, middle).scenario_id, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int begins(const bj_cache *cache, int64_t index, const char *name) {
    return index < bj_cache_count(cache) &&
           !strncmp(bj_cache_info(cache, index).scenario_id, name, strlen(name));
}

bj_status data_find_scene(int64_t *index, const bj_cache *cache, const char *path, const char *name,
                          bj_error *err) {
    if (name[0] == '#') return by_number(index, cache, path, name, err);
    *index = bj_cache_find(cache, name);
    if (*index >= 0) return BJ_OK;
    *index = first_from(cache, name);
    if (*name && begins(cache, *index, name)) {
        if (!begins(cache, *index + 1, name)) return BJ_OK;
        return cli_error(err, BJ_EARG, "%s: several scene ids begin with '%s': '%s', '%s', ...", path,
                         name, bj_cache_info(cache, *index).scenario_id,
                         bj_cache_info(cache, *index + 1).scenario_id);
    }
    bj_nearest nearest = BJ_NEAREST(name);
    for (int64_t i = 0; i < bj_cache_count(cache); i++)
        bj_nearest_offer(&nearest, bj_cache_info(cache, i).scenario_id);
    return cli_error(err, BJ_EARG, "%s: no scene '%s' among %lld scenes%s%s%s", path, name,
                     (long long)bj_cache_count(cache), nearest.best ? "; did you mean '" : "",
                     nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

data_maneuver data_maneuver_of(double x, double y) {
    const double degrees = atan2(y, x) * 57.29577951308232;
    if (sqrt(x * x + y * y) < 2) return DATA_STOP;
    return degrees >= 30 ? DATA_LEFT : degrees <= -30 ? DATA_RIGHT : DATA_STRAIGHT;
}

const char *data_maneuver_name(data_maneuver maneuver) {
    static const char *const names[DATA_MANEUVERS] = {"stop", "straight", "left", "right"};
    return names[maneuver];
}
