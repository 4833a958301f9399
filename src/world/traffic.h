/* traffic.h - road users of a scene and how they move, step by step at 10 Hz.
 *
 * Whoever drives follows a route, a list of lanes, by its arc length: acceleration from the
 * Intelligent Driver Model towards the nearest thing ahead, which may be another road user, a stop
 * line one may not pass yet, or a crossing somebody walks on. Pedestrians walk straight lines;
 * everything else stands.
 * Test: tests/world/test_traffic.c
 */
#ifndef BJ_WORLD_TRAFFIC_H
#define BJ_WORLD_TRAFFIC_H

#include "world/town.h"

enum {
    BJ_WORLD_STEPS = 110,
    BJ_WORLD_OBSERVED = 50,
    BJ_WORLD_AGENTS = 42, /* the focal vehicle, the ego vehicle and 40 others */
    BJ_WORLD_ROUTE = 28
};

typedef enum bj_kind {
    BJ_KIND_VEHICLE,
    BJ_KIND_BUS,
    BJ_KIND_MOTORCYCLIST,
    BJ_KIND_CYCLIST,
    BJ_KIND_PEDESTRIAN,
    BJ_KIND_STATIC,
    BJ_KIND_CONSTRUCTION,
    BJ_KIND_RIDERLESS,
    BJ_KINDS
} bj_kind;

const char *bj_kind_name(bj_kind kind); /* as in the column object_type */

typedef struct bj_motion {
    double x, y, heading, vx, vy;
} bj_motion;

typedef enum bj_mover { BJ_MOVER_STANDS, BJ_MOVER_WALKS, BJ_MOVER_DRIVES } bj_mover;

typedef struct bj_agent {
    bj_kind kind;
    bj_mover mover;
    double length;
    /* drives */
    int route[BJ_WORLD_ROUTE], route_count, at; /* current lane: route[at] */
    double s, v, a;                             /* arc length in it, speed, acceleration */
    double offset, drift; /* left of the center line, and its change per second */
    double wanted, headway, acceleration, braking;
    int halted; /* has stopped before the line of an all-way stop */
    /* walks: from start at step 0 with (vx, vy); stands: start */
    bj_pose start;
    double vx, vy;
    int from, until; /* steps between which it walks */
    int crossing;    /* or -1 */
    /* what happened */
    bj_motion path[BJ_WORLD_STEPS];
} bj_agent;

/* Lights of a junction: group 1 (the vertical street) or 0 has green until `change`, then, after
 * two seconds, the other one. */
typedef struct bj_light {
    int first, change;
} bj_light;

/* A vehicle whose course is given: steps first .. 109, already stored in its path. Others see it at
 * these places of its route. */
typedef struct bj_script {
    int agent, steps; /* -1: none */
    int lane[BJ_WORLD_STEPS];
    double s[BJ_WORLD_STEPS], v[BJ_WORLD_STEPS];
} bj_script;

typedef struct bj_traffic {
    const bj_town *town;
    bj_agent agents[BJ_WORLD_AGENTS]; /* 0 is the focal vehicle, 1 the ego vehicle */
    int count;
    bj_light lights[BJ_TOWN_NODES];
    /* of the current step */
    int step;
    int head[BJ_TOWN_LANES], behind[BJ_WORLD_AGENTS]; /* who is on a lane, as a list; -1 ends it */
    uint64_t taken[BJ_TOWN_NODES]; /* lanes of a junction with somebody on them */
    uint32_t walked;               /* crossings with somebody on them */
} bj_traffic;

void bj_traffic_reset(bj_traffic *traffic, const bj_town *town); /* nobody there */
/* Moves everybody who drives from step - 1 to `step` and stores where they are; a negative step
 * stores nothing. Scripted agents are moved along their scripts. */
void bj_traffic_step(bj_traffic *traffic, int step, const bj_script *scripts, int script_count);
/* Stores the course of everybody who does not drive. */
void bj_traffic_walkers(bj_traffic *traffic);

/* 1: group `group` of the junction has green at the step. */
int bj_light_green(const bj_light *light, int group, int step);
/* Acceleration of the Intelligent Driver Model; gap is the free space to the leader. */
double bj_idm(double v, double wanted, double gap, double closing, double acceleration,
              double braking, double headway);
/* Pose on the agent's route: arc length s from the start of route[at]. */
bj_pose bj_route_pose(const bj_town *town, const int *route, int count, int at, double s,
                      double offset);

#endif
