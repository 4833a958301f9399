/* drivable.h - builds drivable areas from a parsed map; see also branchjepa/audit.h. */
#ifndef BJ_AUDIT_DRIVABLE_H
#define BJ_AUDIT_DRIVABLE_H

#include "core/status.h"
#include "data/map.h"

BJ_CHECK bj_status bj_drivable_set_map(bj_drivable *areas, const bj_map *map, double tolerance,
                                       bj_error *err);

#endif
