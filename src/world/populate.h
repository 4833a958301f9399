/* populate.h - who is in a scene at its beginning: the focal vehicle, the ego vehicle, the others.
 *
 * Drawn from the scene's own generator, so a scene does not depend on those before it.
 */
#ifndef BJ_WORLD_POPULATE_H
#define BJ_WORLD_POPULATE_H

#include "world/traffic.h"

/* Fills the traffic of a town; everybody is where they are a little before step 0. */
void bj_world_populate(bj_traffic *traffic, const bj_town *town, bj_rng *rng);

#endif
