/* town.h - a piece of a made-up city: streets, junctions, lanes, crossings, parking bays.
 *
 * A town is laid out in a plane of its own, in which streets run along x or y, and is then bent,
 * turned and moved into city coordinates by a smooth one-to-one map (bj_town_place). Lanes are
 * pairs of cubic curves in that plane, so neighbors share boundaries, and lanes that follow each
 * other share end points and tangents, whatever the bending.
 *
 * A town depends on (version, seed, split, number) alone. It is about 240 m across: the local map
 * of its scenes. Traffic keeps to the right. Test: tests/world/test_town.c
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
    BJ_TOWN_SUCC = 8,      /* lanes that may follow a lane, or lead into one */
    BJ_TOWN_ARM_LANES = 8, /* lanes of one direction of a street, bicycle lane included */
    BJ_TOWN_TURNS = 64,    /* lanes inside one junction: bits of a word */
    BJ_TOWN_BOUNDARY = 64  /* points of a lane's boundary */
};

#define BJ_TOWN_BIKE 1.6 /* width of a bicycle lane, m */
#define BJ_TOWN_BACK 0.6 /* share of the arms of a signal that have a lane to turn back */

typedef enum bj_control {
    BJ_CONTROL_SIGNAL,
    BJ_CONTROL_STOP,      /* everybody stops */
    BJ_CONTROL_PRIORITY,  /* one of the streets yields */
    BJ_CONTROL_ROUNDABOUT /* who enters yields */
} bj_control;

/* Relation of the arm a lane leads to, counted counterclockwise from where it comes from. */
typedef enum bj_move { BJ_MOVE_BACK, BJ_MOVE_RIGHT, BJ_MOVE_STRAIGHT, BJ_MOVE_LEFT } bj_move;

typedef enum bj_mark {
    BJ_MARK_NONE,
    BJ_MARK_SOLID_WHITE,
    BJ_MARK_DASHED_WHITE,
    BJ_MARK_SOLID_YELLOW,
    BJ_MARK_DOUBLE_YELLOW,
    BJ_MARK_DASHED_YELLOW
} bj_mark;

/* A point of the center line; samples of a lane are equally far apart along it. */
typedef struct bj_sample {
    double x, y, tx, ty; /* position and unit tangent */
    double heading;      /* continuous along the lane */
} bj_sample;

typedef struct bj_road_lane {
    int64_t id;
    int bike;
    int street;   /* street it belongs to, or -1 in a junction */
    int node;     /* junction it lies in, or -1 */
    int approach; /* junction it leads into as its last lane, or -1 */
    int arm;      /* arm of that junction it comes from; for lanes in a junction too */
    bj_move move; /* of a lane in a junction */
    bj_mark left_mark, right_mark;
    double left[4][2], right[4][2]; /* control points of the boundaries, in the layout plane */
    int left_lane, right_lane;      /* neighbors, or -1; the left one may run the other way */
    int change_left, change_right;  /* neighbors of the same direction, or -1 */
    int next[BJ_TOWN_SUCC], next_count;
    int prev[BJ_TOWN_SUCC], prev_count;
    int first, steps; /* samples first .. first + steps */
    double length, spacing;
    double speed;                    /* limit from law and curvature, m/s ... */
    double curve_speed;              /* ... and from curvature alone; 1e9 if straight */
    int turn;                        /* bit of a lane in a junction */
    uint64_t conflicts;              /* lanes of the junction that cross or join it */
    int crossing[2], crossing_count; /* crossings on it ... */
    double crossing_at[2];           /* ... and where one stops before them */
} bj_road_lane;

typedef struct bj_street {
    int vertical;
    double at;          /* y of a horizontal street, x of a vertical one */
    int forward, back;  /* car lanes; forward is +x or +y; back is 0 in a one-way street */
    double half_median; /* negative in a one-way street: its lanes start left of the axis */
    double lane_width;
    int bike, turn_pockets;
    int park_right, park_left;
    double edge_right, edge_left; /* curbs: w from -edge_left to edge_right */
    double speed;
} bj_street;

typedef struct bj_arm {
    int present, street;
    int outward;  /* 1: leads away in the street's forward direction, else -1 */
    double inner; /* stop line, from the center of the junction */
    double outer; /* middle of the street to the next junction, or end of the map */
    int in[BJ_TOWN_ARM_LANES], in_count; /* car lanes, left to right */
    int out[BJ_TOWN_ARM_LANES], out_count;
    int bike_in, bike_out, pocket; /* -1, -1, 0 without */
    int crossing;                  /* or -1 */
    double place[2][2];            /* where the first edge of a crossing is, or would be */
} bj_arm;

typedef struct bj_node {
    double x, y;              /* layout plane */
    int vertical, horizontal; /* streets */
    bj_control control;
    int major;                 /* 1: the vertical street has priority */
    bj_arm arms[BJ_TOWN_ARMS]; /* east, north, west, south */
    int turns[BJ_TOWN_TURNS], turn_count;
} bj_node;

typedef struct bj_link {
    int street, from, to; /* junctions, or -1 */
    double start, end;    /* along the street */
    double crossing_at;   /* of a crossing between the junctions; 0 without */
} bj_link;

typedef struct bj_town_crossing {
    int64_t id;
    double edge[2][2][2]; /* edge, end, x y: as stored, two decimals */
    double walk[2][2];    /* from sidewalk to sidewalk */
    int node;             /* or -1 */
} bj_town_crossing;

typedef struct bj_pose {
    double x, y, heading;
    double tx, ty; /* unit vector along the lane */
    double bend;   /* its turn to the left per meter; these three are 0 off the lanes */
} bj_pose;

typedef struct bj_town {
    int version; /* of the world: 1 or 2 */
    uint64_t key;
    const char *city;
    bj_rng rng;                     /* of the layout while it is made */
    double offset[2], cosine, sine; /* place in the city */
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
    bj_pose bays[BJ_TOWN_BAYS]; /* places to park */
    int bay_count;
    /* Version 2: the polylines that features are made of, lanes first. */
    bj_point lines[BJ_TOWN_LANES + BJ_TOWN_CROSSINGS][BJ_AV2_POINTS];
    int64_t next_id;
    int full; /* one of the arrays was too small: the town is refused */
} bj_town;

BJ_CHECK bj_status bj_town_make(bj_town *town, int version, uint64_t seed, const char *split,
                                int64_t number, bj_error *err);

/* ------------------------------------------------------------------------------------ geometry */

/* Layout plane -> city coordinates. */
void bj_town_place(const bj_town *town, double *x, double *y, double u, double v);
/* Point `w` to the right of the street's axis at `u`, in the layout plane. */
static inline void bj_street_point(const bj_street *s, double p[2], double u, double w) {
    p[0] = s->vertical ? s->at + w : u;
    p[1] = s->vertical ? u : s->at - w;
}
/* Point of a cubic with control points curve (4,2). */
void bj_curve_point(double p[2], const double *curve, double t);
/* Center line at arc length s, `offset` to the left of it; s beyond the ends goes straight on. */
bj_pose bj_lane_pose(const bj_town *town, int lane, double s, double offset);
/* Arc length of the point of the center line nearest to (x, y), and how far left of it that is. */
void bj_lane_project(const bj_town *town, int lane, double x, double y, double *s, double *offset);

/* -------------------------------------------------------------------------- what features hide */

typedef struct bj_control_odds {
    double signal, stop, priority; /* sum to one */
    double vertical;               /* given priority: the vertical street has it */
} bj_control_odds;

/* Computes how likely each control of a junction of version 1 that is no roundabout is, given what
 * features show: its streets, its arms, its crossings and its lanes that turn back. */
bj_control_odds bj_town_control_odds(const bj_town *town, int node);
/* Finds the range of the limits that a street of version 1 is drawn from. */
void bj_street_speeds(const bj_street *street, int *low, int *high);
/* Returns the out lane that a signal's arm may turn back into, or -1. */
int bj_town_back_lane(const bj_town *town, const bj_arm *arm);

/* --------------------------------------------------------------------------- parts of building */

int bj_town_add_lane(bj_town *town, const bj_road_lane *lane); /* index, or -1: full */
void bj_town_connect(bj_town *town, int from, int to);
void bj_town_build_link(bj_town *town, int link);
void bj_town_build_junction(bj_town *town, int node);
/* Finds the ends of a crossing's edge over the street at `u`, as the map stores them. */
void bj_town_crossing_edge(const bj_town *town, const bj_street *street, double u,
                           double edge[2][2]);
/* A crossing over the street between u0 and u1; index, or -1: full. */
int bj_town_add_crossing(bj_town *town, const bj_street *street, double u0, double u1, int node);
void bj_town_note_crossing(bj_town *town, int lane, int crossing, double at);
void bj_town_sample(bj_town *town); /* center lines, lengths, speeds */
void bj_town_find_conflicts(bj_town *town);

/* ----------------------------------------------------------------------------------------- map */

/* The map as JSON in the official layout, two decimals; `text` grows as needed (core/alloc.h). */
typedef struct bj_town_text {
    char *text;
    size_t size, room;
} bj_town_text;

/* Finds the points of a lane's boundary as the map stores them, and returns their count. */
int bj_town_boundary(bj_point points[BJ_TOWN_BOUNDARY], const bj_town *town,
                     const bj_road_lane *lane, const double *curve);
/* Fills town->lines. */
void bj_town_make_lines(bj_town *town);
BJ_CHECK bj_status bj_town_write(bj_town_text *out, const bj_town *town, bj_error *err);
void bj_town_text_free(bj_town_text *text);

#endif
