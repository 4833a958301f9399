/* folder.h - writes one scene as an official scenario folder: a Parquet file and a map.
 *
 * The file has sixteen columns. Rows are grouped by track and ordered by step. Tracks are sorted by
 * id, compared as text.
 * Tests: tests/world/test_simulate.c, tests/world/peer_av2.py
 */
#ifndef BJ_WORLD_FOLDER_H
#define BJ_WORLD_FOLDER_H

#include "world/scene.h"

typedef struct bj_world_folder bj_world_folder; /* reuses its buffers */

BJ_CHECK bj_status bj_world_folder_create(bj_world_folder **out, const char *root, bj_error *err);
void bj_world_folder_free(bj_world_folder *folder); /* accepts NULL */
/* Writes ROOT/<id>/ with the Parquet file and the map. */
BJ_CHECK bj_status bj_world_folder_add(bj_world_folder *folder, const bj_world_scene *scene,
                                       const bj_town_text *map, bj_error *err);

#endif
