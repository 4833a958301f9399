/* data_scene.h - finds the scene of a cache that a user has named. */
#ifndef BJEPA_DATA_SCENE_H
#define BJEPA_DATA_SCENE_H

#include "cli.h"

/* Finds a scene by its id, by a unique prefix of its id, or by its number, such as "#12". Messages
 * start with `path`, the path of the cache. If no id matches, the message suggests the nearest
 * one. */
BJ_CHECK bj_status data_find_scene(int64_t *index, const bj_cache *cache, const char *path,
                                   const char *name, bj_error *err);

/* Returns the maneuver at the end of a future, as in the metrics: stop within 2 m, left or right at
 * 30 degrees or more. */
typedef enum data_maneuver {
    DATA_STOP,
    DATA_STRAIGHT,
    DATA_LEFT,
    DATA_RIGHT,
    DATA_MANEUVERS
} data_maneuver;

data_maneuver data_maneuver_of(double x, double y);
const char *data_maneuver_name(data_maneuver maneuver);

#endif
