/* populate.h - places the road users of a scene: the focal vehicle, the ego vehicle and others.
 *
 * Uses the scene's own random generator, so a scene does not depend on earlier scenes.
 */
#ifndef BJ_WORLD_POPULATE_H
#define BJ_WORLD_POPULATE_H

#include "world/traffic.h"

/* Fills `traffic` with the road users of a town, in their state shortly before step 0. */
void bj_world_populate(bj_traffic *traffic, const bj_town *town, bj_rng *rng);

#endif
