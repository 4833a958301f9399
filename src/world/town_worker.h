/* town_worker.h - the scratch memory in which one worker generates towns, scenes and features. */
#ifndef BJ_WORLD_TOWN_WORKER_H
#define BJ_WORLD_TOWN_WORKER_H

#include "data/features.h"
#include "world/scene.h"

typedef struct bj_town_worker {
    bj_town *town;
    bj_world_scene *scene;
    bj_town_text text; /* the town's map as official JSON */
    bj_map_reader *maps;
    bj_features_maker *maker;
    bj_features *features;
} bj_town_worker;

/* Allocates the scratch memory of a zeroed worker. Call bj_town_worker_reset even after a failure. */
BJ_CHECK bj_status bj_town_worker_init(bj_town_worker *w, bj_error *err);
void bj_town_worker_reset(bj_town_worker *w);

/* Generates town `number`, writes its map to w->text and reads it back. `map` is valid until the
 * worker generates another town. */
BJ_CHECK bj_status bj_town_worker_make(bj_town_worker *w, bj_map *map, int version, uint64_t seed,
                                       const char *split, int64_t number, bj_error *err);

#endif
