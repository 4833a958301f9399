/* scene.h - one simulated scene: the road users, the sensor's rows, and the law of the future.
 *
 * A scene is generated in this order, and each part depends only on earlier parts:
 *   1. all road users move from shortly before step 0 to step 49       (scene generator)
 *   2. the sensor converts this to rows                                (noise generators)
 *   3. the law is computed from rows and map                           (deterministic)
 *   4. one future is drawn for the focal track, steps 50-109           (generator of the draw)
 *   5. the other road users continue and react to it
 * Steps 0-49 and the law are therefore the same for every draw.
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
    int mode; /* the drawn mode */
    uint8_t seen[BJ_WORLD_AGENTS][BJ_WORLD_STEPS];
    bj_row rows[BJ_WORLD_AGENTS][BJ_WORLD_STEPS];
    bj_rng noise[BJ_WORLD_AGENTS]; /* sensor noise and its slow errors */
    double slow[BJ_WORLD_AGENTS][3];
    int category[BJ_WORLD_AGENTS]; /* 3 focal, 2 scored, 1 unscored, 0 fragment */
    char id[BJ_SCENARIO_NAME], names[BJ_WORLD_AGENTS][16];
    double start_timestamp; /* in nanoseconds */
    /* The scene as a scenario, with tracks sorted by name. Its pointers refer to this struct. */
    bj_scenario scenario;
    int agent_of[BJ_WORLD_AGENTS]; /* agent index of a track */
    bj_text track_id[BJ_WORLD_AGENTS], type[BJ_WORLD_AGENTS];
    int32_t track[BJ_WORLD_ROWS];
    int64_t step[BJ_WORLD_ROWS];
    double x[BJ_WORLD_ROWS], y[BJ_WORLD_ROWS], vx[BJ_WORLD_ROWS], vy[BJ_WORLD_ROWS];
    double heading[BJ_WORLD_ROWS];
} bj_world_scene;

/* Generates scene `index` of (seed, split) in the town's version of the world. `town` must be town
 * number index / BJ_WORLD_TOWN_SCENES. Draw 0 is the future that is stored in the data. Other draws
 * are alternative futures of the same past. */
void bj_world_scene_make(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                         const char *split, int64_t index, uint64_t draw);
/* Generates only the part of draw 0 that the features need: rows up to step 49, and the focal
 * positions at steps 50-109. Part 5 is skipped. The results are bit-identical. */
void bj_world_scene_make_short(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                               const char *split, int64_t index);
/* Computes the scene id. Ids ascend with the index, whose digits are the first eight characters.
 * Ids differ between versions of the world. */
void bj_world_scene_id(char id[BJ_SCENARIO_NAME], int version, uint64_t seed, const char *split,
                       int64_t index);

/* Fails unless the split name consists of 1 to 31 letters, digits, '-' or '_'. */
BJ_CHECK bj_status bj_world_check_split(const char *split, bj_error *err);

/* Checks a version of the world and replaces 0 with the default. */
BJ_CHECK bj_status bj_world_choose_version(int *out, int version, bj_error *err);

/* bj_world_scene_observe generates parts 1-3. bj_world_scene_future draws one future (part 4) and
 * returns its mode. Positions include jitter and are in city coordinates. */
void bj_world_scene_observe(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                            const char *split, int64_t index);
int bj_world_scene_future(double future[BJ_LAW_STEPS][2], const bj_world_scene *scene,
                          uint64_t seed, const char *split, uint64_t draw);

/* Lists the rows that the law reads, which are the rows of agents that are visible in all steps
 * from 38 to 49 (see bj_law_make). */
void bj_world_scene_rows(bj_rows rows[BJ_WORLD_AGENTS], const bj_world_scene *scene);

/* Transforms city coordinates to the scene frame, which is defined by the position and heading of
 * the focal row at step 49. */
void bj_world_scene_local(double *x, double *y, const bj_world_scene *scene);

#endif
