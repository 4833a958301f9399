/* town.h - part of a synthetic city: streets, junctions, lanes, crossings, parking bays.
 *
 * A town is laid out in a layout plane, in which streets run along x or y. A smooth one-to-one map
 * (bj_town_place) bends, rotates and translates it into city coordinates. Lane boundaries are cubic
 * curves in the layout plane. Neighboring lanes share boundaries, and consecutive lanes share end
 * points and tangents, so this also holds after bending.
 *
 * A town depends only on (version, seed, split, number). It is about 240 m wide and is the local
 * map of its scenes. Traffic drives on the right. Test: tests/world/test_town.c
 */
#ifndef BJ_WORLD_TOWN_H
#define BJ_WORLD_TOWN_H

#include <stdint.h>

#include "core/status.h"
#include "data/features.h"
#include "world/number.h"

enum {
    BJ_TOWN_STREETS = 4,
    BJ_TOWN_NODES = 4,
    BJ_TOWN_ARMS = 4,
    BJ_TOWN_LINKS = 12,
    BJ_TOWN_LANES = 512,
    BJ_TOWN_SAMPLES = 8192,
    BJ_TOWN_CROSSINGS = 32,
    BJ_TOWN_BAYS = 512,
    BJ_TOWN_SUCC = 8,      /* max successors or predecessors of a lane */
    BJ_TOWN_ARM_LANES = 8, /* lanes of one direction of a street, including the bicycle lane */
    BJ_TOWN_TURNS = 64,    /* lanes in one junction, limited by the 64-bit conflict mask */
    BJ_TOWN_BOUNDARY = 64  /* points of a lane boundary */
};

#define BJ_TOWN_BIKE 1.6 /* width of a bicycle lane, m */
#define BJ_TOWN_BACK 0.6 /* probability that an arm of a signalized junction has a U-turn lane */

typedef enum bj_control {
    BJ_CONTROL_SIGNAL,
    BJ_CONTROL_STOP,      /* all-way stop */
    BJ_CONTROL_PRIORITY,  /* one of the two streets yields */
    BJ_CONTROL_ROUNDABOUT /* entering traffic yields */
} bj_control;

/* The target arm of a lane relative to its source arm, counted counterclockwise. */
typedef enum bj_move { BJ_MOVE_BACK, BJ_MOVE_RIGHT, BJ_MOVE_STRAIGHT, BJ_MOVE_LEFT } bj_move;

typedef enum bj_mark {
    BJ_MARK_NONE,
    BJ_MARK_SOLID_WHITE,
    BJ_MARK_DASHED_WHITE,
    BJ_MARK_SOLID_YELLOW,
    BJ_MARK_DOUBLE_YELLOW,
    BJ_MARK_DASHED_YELLOW
} bj_mark;

/* A point on the center line. The samples of a lane are equidistant. */
typedef struct bj_sample {
    double x, y, tx, ty; /* position and unit tangent */
    double heading;      /* continuous along the lane */
} bj_sample;

typedef struct bj_road_lane {
    int64_t id;
    int bike;
    int street;   /* street of the lane, or -1 in a junction */
    int node;     /* junction that contains the lane, or -1 */
    int approach; /* junction at the end of the lane, or -1 */
    int arm;      /* arm through which the lane enters; also set for lanes in a junction */
    bj_move move; /* only for lanes in a junction */
    bj_mark left_mark, right_mark;
    double left[4][2], right[4][2]; /* control points of the boundaries in the layout plane */
    int left_lane, right_lane;      /* neighboring lanes or -1; the left one may lead in the
                                       opposite direction */
    int change_left, change_right;  /* neighbors in the same direction, or -1 */
    int next[BJ_TOWN_SUCC], next_count;
    int prev[BJ_TOWN_SUCC], prev_count;
    int first, steps; /* samples first .. first + steps */
    double length, spacing;
    double speed;                    /* speed limit including curvature, m/s */
    double curve_speed;              /* limit from curvature alone, 1e9 if straight */
    int turn;                        /* bit index of a lane in a junction */
    uint64_t conflicts;              /* junction lanes that cross or merge with this lane */
    int crossing[2], crossing_count; /* crossings on the lane */
    double crossing_at[2];           /* stopping points before the crossings */
} bj_road_lane;

typedef struct bj_street {
    int vertical;
    double at;          /* y of a horizontal street, x of a vertical street */
    int forward, back;  /* number of car lanes; forward is +x or +y; back is 0 for a one-way
                           street */
    double half_median; /* negative for a one-way street, because its lanes start left of the
                           axis */
    double lane_width;
    int bike, turn_pockets;
    int park_right, park_left;
    double edge_right, edge_left; /* curbs: w from -edge_left to edge_right */
    double speed;
} bj_street;

typedef struct bj_arm {
    int present, street;
    int outward;  /* 1 if the arm leaves in the street's forward direction, otherwise -1 */
    double inner; /* distance of the stop line from the junction center */
    double outer; /* distance to the middle of the link or the end of the map */
    int in[BJ_TOWN_ARM_LANES], in_count; /* car lanes, left to right */
    int out[BJ_TOWN_ARM_LANES], out_count;
    int bike_in, bike_out, pocket; /* -1, -1, 0 if absent */
    int crossing;                  /* or -1 */
    double place[2][2];            /* first edge of the crossing, or the place where it would be */
} bj_arm;

typedef struct bj_node {
    double x, y;              /* in the layout plane */
    int vertical, horizontal; /* streets */
    bj_control control;
    int major;                 /* 1 if the vertical street has priority */
    bj_arm arms[BJ_TOWN_ARMS]; /* east, north, west, south */
    int turns[BJ_TOWN_TURNS], turn_count;
} bj_node;

typedef struct bj_link {
    int street, from, to; /* junctions, or -1 */
    double start, end;    /* along the street */
    double crossing_at;   /* crossing between the junctions; 0 if there is none */
} bj_link;

typedef struct bj_town_crossing {
    int64_t id;
    double edge[2][2][2]; /* edge, end, (x, y), rounded to two decimals */
    double walk[2][2];    /* from sidewalk to sidewalk */
    int node;             /* or -1 */
} bj_town_crossing;

typedef struct bj_pose {
    double x, y, heading;
    double tx, ty; /* unit vector along the lane */
    double bend;   /* curvature, positive for left turns; the last three fields are 0 outside of
                      lanes */
} bj_pose;

typedef struct bj_town {
    int version; /* version of the world, 1 or 2 */
    uint64_t key;
    const char *city;
    bj_rng rng;                     /* generator of the layout */
    double offset[2], cosine, sine; /* position and rotation in the city */
    double bend[2], wave[2], phase[2], slope[2];
    double half_size;
    bj_street streets[BJ_TOWN_STREETS];
    int street_count, verticals;
    bj_node nodes[BJ_TOWN_NODES];
    int node_count;
    bj_link links[BJ_TOWN_LINKS];
    int link_count;
    bj_road_lane lanes[BJ_TOWN_LANES];
    int lane_count;
    bj_sample samples[BJ_TOWN_SAMPLES];
    int sample_count;
    bj_town_crossing crossings[BJ_TOWN_CROSSINGS];
    int crossing_count;
    bj_pose bays[BJ_TOWN_BAYS]; /* parking positions */
    int bay_count;
    /* Version 2: the polylines of the features, with lanes first. */
    bj_point lines[BJ_TOWN_LANES + BJ_TOWN_CROSSINGS][BJ_AV2_POINTS];
    int64_t next_id;
    int full; /* 1 if an array was too small; bj_town_make then fails */
} bj_town;

BJ_CHECK bj_status bj_town_make(bj_town *town, int version, uint64_t seed, const char *split,
                                int64_t number, bj_error *err);

/* ------------------------------------------------------------------------------------ geometry */

/* Maps the layout plane to city coordinates. */
void bj_town_place(const bj_town *town, double *x, double *y, double u, double v);
/* Returns the point at distance `u` along the street and `w` to the right of its axis, in the
 * layout plane. */
static inline void bj_street_point(const bj_street *s, double p[2], double u, double w) {
    p[0] = s->vertical ? s->at + w : u;
    p[1] = s->vertical ? u : s->at - w;
}
/* Evaluates a cubic with control points curve (4,2). */
void bj_curve_point(double p[2], const double *curve, double t);
/* Returns the pose at arc length s, shifted by `offset` to the left of the center line. The lane is
 * extended straight beyond its ends. */
bj_pose bj_lane_pose(const bj_town *town, int lane, double s, double offset);
/* Computes the arc length of the nearest point on the center line, and the signed distance to its
 * left. */
void bj_lane_project(const bj_town *town, int lane, double x, double y, double *s, double *offset);

/* -------------------------------------------------------------------------------- hidden parts */

typedef struct bj_control_odds {
    double signal, stop, priority; /* sum to one */
    double vertical;               /* probability that the vertical street has priority at a
                                      junction with a priority street */
} bj_control_odds;

/* Computes the probability of each control of a version-1 junction that is not a roundabout, given
 * its features: streets, arms, crossings and U-turn lanes. */
bj_control_odds bj_town_control_odds(const bj_town *town, int node);
/* Returns the range from which the speed limit of a version-1 street is drawn. */
void bj_street_speeds(const bj_street *street, int *low, int *high);
/* Returns the U-turn lane of an arm at a signalized junction, or -1. */
int bj_town_back_lane(const bj_town *town, const bj_arm *arm);

/* --------------------------------------------------------------------------- parts of building */

int bj_town_add_lane(bj_town *town, const bj_road_lane *lane); /* index, or -1 if full */
void bj_town_connect(bj_town *town, int from, int to);
void bj_town_build_link(bj_town *town, int link);
void bj_town_build_junction(bj_town *town, int node);
/* Computes the end points of the edge of a crossing at `u`, rounded as in the map. */
void bj_town_crossing_edge(const bj_town *town, const bj_street *street, double u,
                           double edge[2][2]);
/* Adds a crossing over the street between u0 and u1. Returns its index, or -1 if there is no
 * room. */
int bj_town_add_crossing(bj_town *town, const bj_street *street, double u0, double u1, int node);
void bj_town_note_crossing(bj_town *town, int lane, int crossing, double at);
void bj_town_sample(bj_town *town); /* computes center lines, lengths, speeds */
void bj_town_find_conflicts(bj_town *town);

/* ----------------------------------------------------------------------------------------- map */

/* Writes the map as JSON in the official layout, with two decimals. `text` grows as needed
 * (core/alloc.h). */
typedef struct bj_town_text {
    char *text;
    size_t size, room;
} bj_town_text;

/* Computes the points of a lane boundary, rounded as in the map. Returns the number of points. */
int bj_town_boundary(bj_point points[BJ_TOWN_BOUNDARY], const bj_town *town,
                     const bj_road_lane *lane, const double *curve);
/* Fills town->lines. */
void bj_town_make_lines(bj_town *town);
BJ_CHECK bj_status bj_town_write(bj_town_text *out, const bj_town *town, bj_error *err);
void bj_town_text_free(bj_town_text *text);

#endif
