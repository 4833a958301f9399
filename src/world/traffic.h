/* traffic.h - the road users of a scene and their motion in steps of 0.1 s.
 *
 * A vehicle follows a route, which is a list of lanes. The Intelligent Driver Model computes its
 * acceleration from the nearest obstacle ahead: another road user, a stop line that it may not pass
 * yet, or a crossing in use. Pedestrians walk in straight lines. All other objects stand still.
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

const char *bj_kind_name(bj_kind kind); /* value of the column object_type */

typedef struct bj_motion {
    double x, y, heading, vx, vy;
} bj_motion;

typedef enum bj_mover { BJ_MOVER_STANDS, BJ_MOVER_WALKS, BJ_MOVER_DRIVES } bj_mover;

typedef struct bj_agent {
    bj_kind kind;
    bj_mover mover;
    double length;
    /* BJ_MOVER_DRIVES */
    int route[BJ_WORLD_ROUTE], route_count, at; /* current lane: route[at] */
    double s, v, a;                             /* arc length on the lane, speed, acceleration */
    double offset, drift; /* distance to the left of the center line, and the rate of change of this
                             distance */
    double wanted, headway, acceleration, braking;
    int halted; /* 1 if the vehicle has stopped at the line of an all-way stop */
    /* BJ_MOVER_WALKS: starts at `start` with velocity (vx, vy). BJ_MOVER_STANDS: stays at
     * `start`. */
    bj_pose start;
    double vx, vy;
    int from, until; /* walks between these steps */
    int crossing;    /* index of the crossing, or -1 */
    /* The recorded motion. */
    bj_motion path[BJ_WORLD_STEPS];
} bj_agent;

/* The lights of a junction. Group `first` (1 is the vertical street) has a green light until
 * `change`. Then all lights are red for two seconds before the other group gets a green light. */
typedef struct bj_light {
    int first, change;
} bj_light;

/* The prescribed motion of a vehicle, which is already stored in its path. The reactions of other
 * agents are based on these route positions. */
typedef struct bj_script {
    int agent, steps; /* agent is -1 if the script is unused */
    int lane[BJ_WORLD_STEPS];
    double s[BJ_WORLD_STEPS], v[BJ_WORLD_STEPS];
} bj_script;

typedef struct bj_traffic {
    const bj_town *town;
    bj_agent agents[BJ_WORLD_AGENTS]; /* agent 0 is the focal vehicle, agent 1 the ego vehicle */
    int count;
    bj_light lights[BJ_TOWN_NODES];
    /* State of the current step. */
    int step;
    int head[BJ_TOWN_LANES], behind[BJ_WORLD_AGENTS]; /* linked list per lane; -1 ends it */
    uint64_t taken[BJ_TOWN_NODES];                    /* occupied lanes of a junction, as bits */
    uint32_t walked;                                  /* crossings in use, as bits */
} bj_traffic;

void bj_traffic_reset(bj_traffic *traffic, const bj_town *town); /* removes all agents */
/* Moves all vehicles from step - 1 to `step` and stores their motion. If `step` is negative,
 * nothing is stored. Scripted agents follow their scripts. */
void bj_traffic_step(bj_traffic *traffic, int step, const bj_script *scripts, int script_count);
/* Stores the motion of all agents that are not driving. */
void bj_traffic_walkers(bj_traffic *traffic);

/* Returns 1 if the group has a green light at the step. */
int bj_light_green(const bj_light *light, int group, int step);
/* Returns the acceleration of the Intelligent Driver Model. `gap` is the free space to the
 * leader. */
double bj_idm(double v, double wanted, double gap, double closing, double acceleration,
              double braking, double headway);
/* Returns the pose on a route at arc length s from the start of route[at]. */
bj_pose bj_route_pose(const bj_town *town, const int *route, int count, int at, double s,
                      double offset);

#endif
