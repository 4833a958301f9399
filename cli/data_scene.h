/* data_scene.h - which scene of a cache a user means. */
#ifndef BJEPA_DATA_SCENE_H
#define BJEPA_DATA_SCENE_H

#include "cli.h"

/* By scenario id, by the beginning of one that no other id shares, or by number: "#12". `path` of
 * the cache opens the message; a wrong id brings up the nearest one. */
BJ_CHECK bj_status data_find_scene(int64_t *index, const bj_cache *cache, const char *path,
                                   const char *name, bj_error *err);

/* How a future ends: nearer than 2 m, or 30 degrees or more to a side, as the metrics have it. */
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
