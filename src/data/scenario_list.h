/* scenario_list.h - access to the map of an open scenario, for code that needs the lane graph. */
#ifndef BJ_DATA_SCENARIO_LIST_H
#define BJ_DATA_SCENARIO_LIST_H

#include <branchjepa/branchjepa.h>

#include "data/map.h"

/* Returns the map of the most recently opened scenario, which is valid until the next
 * bj_scenario_list_open. */
const bj_map *bj_scenario_list_map(const bj_scenario_list *list);

#endif
