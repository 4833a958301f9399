/* drivable.h - sets drivable areas from a parsed map; see
 * branchjepa/audit.h for all other functions. */
#ifndef BJ_AUDIT_DRIVABLE_H
#define BJ_AUDIT_DRIVABLE_H

#include "core/status.h"
#include "data/map.h"

BJ_CHECK bj_status bj_drivable_set_map(bj_drivable *areas, const bj_map *map, double tolerance,
                                       bj_error *err);

#endif
