/* world_case.h - a town and a scene on the heap, shared by the tests of scenes and laws. */
#ifndef BJ_TESTS_WORLD_CASE_H
#define BJ_TESTS_WORLD_CASE_H

#include <stdlib.h>

#include "support/test.h"
#include "world/scene.h"

static bj_town *town;
static bj_world_scene *scene, *other;

static void case_open(void) {
    town = calloc(1, sizeof *town);
    scene = calloc(1, sizeof *scene);
    other = calloc(1, sizeof *other);
    if (!town || !scene || !other) exit(1);
}

static void case_close(void) {
    free(town);
    free(scene);
    free(other);
}

static int version = BJ_WORLD_VERSION; /* version of the scenes from make() */

/* Generates the scene with this index, and its town, from a seed. */
static inline void make(bj_world_scene *out, uint64_t seed, int64_t index, uint64_t draw) {
    bj_error err = {0};
    CHECK_OK(bj_town_make(town, version, seed, "train", index / BJ_WORLD_TOWN_SCENES, &err), err);
    bj_world_scene_make(out, town, seed, "train", index, draw);
}

#endif
