/* scene.h - one simulated scene: who was there, what was seen of them, and the law of the future.
 *
 * Order of making, which is also what depends on what:
 *   1. everybody moves from a little before step 0 to step 49          (scene generator)
 *   2. what the sensor sees of that becomes rows                       (noise generators)
 *   3. the law is computed from rows and map                           (nothing random)
 *   4. one future is drawn; it becomes the focal track of steps 50-109 (generator of the draw)
 *   5. everybody else moves on around it
 * Hence steps 0-49 and the law are the same for every draw.
 * Tests: tests/world/test_scene.c, test_law.c
 */
#ifndef BJ_WORLD_SCENE_H
#define BJ_WORLD_SCENE_H

#include "data/scenario.h"
#include "world/law.h"

enum { BJ_WORLD_TOWN_SCENES = 32, BJ_WORLD_ROWS = BJ_WORLD_AGENTS * BJ_WORLD_STEPS };

typedef struct bj_world_scene {
    int64_t index;
    bj_traffic traffic;
    bj_law_state law;
    int mode; /* drawn */
    uint8_t seen[BJ_WORLD_AGENTS][BJ_WORLD_STEPS];
    bj_row rows[BJ_WORLD_AGENTS][BJ_WORLD_STEPS];
    bj_rng noise[BJ_WORLD_AGENTS]; /* of the sensor, with its slow errors */
    double slow[BJ_WORLD_AGENTS][3];
    int category[BJ_WORLD_AGENTS]; /* 3 focal, 2 scored, 1 unscored, 0 fragment */
    char id[BJ_SCENARIO_NAME], names[BJ_WORLD_AGENTS][16];
    double start_timestamp; /* nanoseconds */
    /* the same as a scenario, tracks sorted by name; points into this struct */
    bj_scenario scenario;
    int agent_of[BJ_WORLD_AGENTS]; /* agent of a track */
    bj_text track_id[BJ_WORLD_AGENTS], type[BJ_WORLD_AGENTS];
    int32_t track[BJ_WORLD_ROWS];
    int64_t step[BJ_WORLD_ROWS];
    double x[BJ_WORLD_ROWS], y[BJ_WORLD_ROWS], vx[BJ_WORLD_ROWS], vy[BJ_WORLD_ROWS];
    double heading[BJ_WORLD_ROWS];
} bj_world_scene;

/* Scene `index` of (seed, split), in the version of the town; town must be number
 * index / BJ_WORLD_TOWN_SCENES of them. Draw 0 is what the data shows; others are further futures
 * of the same prefix. */
void bj_world_scene_make(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                         const char *split, int64_t index, uint64_t draw);
/* Makes the part of draw 0 that features are computed from, with the same bits and without step 5:
 * rows up to step 49, and of the focal vehicle the positions of steps 50-109. */
void bj_world_scene_make_short(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                               const char *split, int64_t index);
/* Ascends with the index: its first eight digits. Differs between versions. */
void bj_world_scene_id(char id[BJ_SCENARIO_NAME], int version, uint64_t seed, const char *split,
                       int64_t index);

/* Fails unless the split has 1 to 31 letters, digits, '-' and '_'. */
BJ_CHECK bj_status bj_world_check_split(const char *split, bj_error *err);

/* Checks a version of the world and replaces 0 by the default. */
BJ_CHECK bj_status bj_world_choose_version(int *out, int version, bj_error *err);

/* Steps 1-3 of the above, and one future (steps 4): positions with jitter, in city coordinates. */
void bj_world_scene_observe(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                            const char *split, int64_t index);
int bj_world_scene_future(double future[BJ_LAW_STEPS][2], const bj_world_scene *scene,
                          uint64_t seed, const char *split, uint64_t draw);

/* Lists the rows the law looks at: those of agents seen in steps 38 to 49 (see bj_law_make). */
void bj_world_scene_rows(bj_rows rows[BJ_WORLD_AGENTS], const bj_world_scene *scene);

/* City coordinates -> frame of the scene: origin and heading of the focal row of step 49. */
void bj_world_scene_local(double *x, double *y, const bj_world_scene *scene);

#endif
