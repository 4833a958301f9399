/* town_link.c - builds the lanes, parking bays and crossings of a street between two junctions.
 *
 * All lanes of a link are divided into segments at the same positions. If the street has a median
 * with left-turn lanes, lane 0 forks 35 m before the stop line.
 */
#include "world/town.h"

#include <math.h>

/* --------------------------------------------------------------------------------------- links */

static int arm_towards(const bj_street *s, int outward) {
    return s->vertical ? (outward > 0 ? 1 : 3) : (outward > 0 ? 0 : 2);
}

/* Computes the segment boundaries along the street. They are at most `most` meters apart and
 * include the ends of the left-turn lanes. */
static int split_link(double splits[16], const bj_link *link, int pocket_from, int pocket_to,
                      double most) {
    int n = 0;
    splits[n++] = link->start;
    if (pocket_from) {
        splits[n++] = link->start + 20;
        splits[n++] = link->start + 35;
    }
    const double end = pocket_to ? link->end - 35 : link->end, begin = splits[n - 1];
    const int parts = (int)((end - begin) / most) + 1;
    for (int i = 1; i <= parts; i++) splits[n++] = begin + (end - begin) * i / parts;
    if (pocket_to) {
        splits[n++] = link->end - 20;
        splits[n++] = link->end;
    }
    return n;
}

static void straight_curve(const bj_street *s, double curve[4][2], double u0, double u1, double w0,
                           double w1) {
    /* A lateral shift is an S curve whose tangents at both ends are parallel to the street. */
    const double third = w0 < w1 || w0 > w1 ? 0.5 : 1.0 / 3;
    bj_street_point(s, curve[0], u0, w0);
    bj_street_point(s, curve[1], u0 + (u1 - u0) * third, w0);
    bj_street_point(s, curve[2], u1 - (u1 - u0) * third, w1);
    bj_street_point(s, curve[3], u1, w1);
}

/* Builds the lanes for one direction of a link. `way` is 1 along the street and -1 against it. */
static void build_way(bj_town *town, int link_index, const double *splits, int split_count, int way,
                      int pocket, int first_lane[BJ_TOWN_ARM_LANES][16]) {
    const bj_link *link = &town->links[link_index];
    const bj_street *s = &town->streets[link->street];
    const int cars = way > 0 ? s->forward : s->back, lanes = cars + (s->bike && cars ? 1 : 0);
    const int from = way > 0 ? link->from : link->to, to = way > 0 ? link->to : link->from;
    const int parts = split_count - 1;
    if (!cars) return;
    for (int i = 0; i < lanes; i++) {
        const int bike = i == cars;
        const double left = s->half_median + i * s->lane_width;
        const double right = left + (bike ? BJ_TOWN_BIKE : s->lane_width);
        for (int p = 0; p < parts; p++) {
            const double u0 = way > 0 ? splits[p] : splits[parts - p];
            const double u1 = way > 0 ? splits[p + 1] : splits[parts - p - 1];
            bj_road_lane lane = {.bike = bike,
                                 .street = link->street,
                                 .node = -1,
                                 .approach = -1,
                                 .arm = -1,
                                 .left_lane = -1,
                                 .right_lane = -1,
                                 .change_left = -1,
                                 .change_right = -1,
                                 .speed = bike ? 7 : s->speed};
            straight_curve(s, lane.left, u0, u1, way * left, way * left);
            straight_curve(s, lane.right, u0, u1, way * right, way * right);
            const int last = p == parts - 1 && to >= 0;
            lane.left_mark = i > 0 ? (last || bike ? BJ_MARK_SOLID_WHITE : BJ_MARK_DASHED_WHITE)
                             : !s->back ? BJ_MARK_SOLID_YELLOW
                                        : BJ_MARK_DOUBLE_YELLOW;
            lane.right_mark =
                i < lanes - 1 ? (last || i == cars - 1 ? BJ_MARK_SOLID_WHITE : BJ_MARK_DASHED_WHITE)
                : s->forward > 1 ? BJ_MARK_SOLID_WHITE
                                 : BJ_MARK_NONE;
            if (last) {
                lane.approach = to;
                lane.arm = arm_towards(s, -way);
            }
            const int index = bj_town_add_lane(town, &lane);
            if (index < 0) return;
            first_lane[i][p] = index;
            if (p > 0) bj_town_connect(town, first_lane[i][p - 1], index);
            if (i > 0) {
                bj_road_lane *me = &town->lanes[index], *other = &town->lanes[first_lane[i - 1][p]];
                me->left_lane = first_lane[i - 1][p];
                other->right_lane = index;
                if (!bike) me->change_left = first_lane[i - 1][p], other->change_right = index;
            }
        }
    }
    if (from >= 0) {
        bj_arm *arm = &town->nodes[from].arms[arm_towards(s, way)];
        for (int i = 0; i < cars; i++) arm->out[arm->out_count++] = first_lane[i][0];
        if (lanes > cars) arm->bike_out = first_lane[cars][0];
    }
    if (to < 0) return;
    bj_arm *arm = &town->nodes[to].arms[arm_towards(s, -way)];
    if (pocket && parts >= 3) {
        /* Lane 0 forks 35 m before the stop line. The new lane reaches the median 15 m later. */
        const double end = way > 0 ? splits[parts] : splits[0];
        bj_road_lane lane = {.street = link->street,
                             .node = -1,
                             .approach = -1,
                             .arm = -1,
                             .left_lane = -1,
                             .right_lane = -1,
                             .change_left = -1,
                             .change_right = -1,
                             .speed = s->speed,
                             .left_mark = BJ_MARK_SOLID_YELLOW,
                             .right_mark = BJ_MARK_SOLID_WHITE};
        const double m = s->half_median;
        straight_curve(s, lane.left, end - way * 35, end - way * 20, way * m, -way * m);
        straight_curve(s, lane.right, end - way * 35, end - way * 20, way * (m + s->lane_width),
                       way * m);
        const int taper = bj_town_add_lane(town, &lane);
        straight_curve(s, lane.left, end - way * 20, end, -way * m, -way * m);
        straight_curve(s, lane.right, end - way * 20, end, way * m, way * m);
        lane.approach = to;
        lane.arm = arm_towards(s, -way);
        lane.right_lane = first_lane[0][parts - 1];
        const int stand = bj_town_add_lane(town, &lane);
        bj_town_connect(town, first_lane[0][parts - 3], taper);
        bj_town_connect(town, taper, stand);
        if (stand >= 0) town->lanes[first_lane[0][parts - 1]].left_lane = stand;
        arm->pocket = 1;
        arm->in[arm->in_count++] = stand;
    }
    for (int i = 0; i < cars; i++) arm->in[arm->in_count++] = first_lane[i][parts - 1];
    if (lanes > cars) arm->bike_in = first_lane[cars][parts - 1];
}

static void add_bays(bj_town *town, const bj_link *link, const bj_street *s, int way) {
    if (!(way > 0 ? s->park_right : s->park_left)) return;
    const double edge = way > 0 ? s->edge_right : s->edge_left, w = way * (edge - 0.45 - 1.05);
    const double margin_from = link->from >= 0 ? 9 : 3, margin_to = link->to >= 0 ? 9 : 3;
    /* Parked cars face in the direction of the adjacent lane, which is the same on both sides of a
     * one-way street. */
    const double face = way > 0 || !s->back ? 1 : -1;
    for (double u = link->start + margin_from; u < link->end - margin_to; u += 6.2) {
        if (link->crossing_at < 0 || link->crossing_at > 0)
            if (fabs(u - link->crossing_at) < 6) continue;
        if (town->bay_count == BJ_TOWN_BAYS) return;
        double p[2], q[2], x0, y0, x1, y1;
        bj_street_point(s, p, u - 0.5 * face, w);
        bj_street_point(s, q, u + 0.5 * face, w);
        bj_town_place(town, &x0, &y0, p[0], p[1]);
        bj_town_place(town, &x1, &y1, q[0], q[1]);
        town->bays[town->bay_count++] =
            (bj_pose){(x0 + x1) / 2, (y0 + y1) / 2, bj_world_atan2(y1 - y0, x1 - x0), 0, 0, 0};
    }
}

/* ----------------------------------------------------------------------------------- crossings */

void bj_town_crossing_edge(const bj_town *town, const bj_street *s, double u, double edge[2][2]) {
    for (int e = 0; e < 2; e++) {
        double p[2], x, y;
        bj_street_point(s, p, u, e ? s->edge_right : -s->edge_left);
        bj_town_place(town, &x, &y, p[0], p[1]);
        edge[e][0] = bj_world_cents(x);
        edge[e][1] = bj_world_cents(y);
    }
}

int bj_town_add_crossing(bj_town *town, const bj_street *s, double u0, double u1, int node) {
    if (town->crossing_count == BJ_TOWN_CROSSINGS) return -1;
    bj_town_crossing *c = &town->crossings[town->crossing_count];
    c->id = town->next_id++;
    c->node = node;
    bj_town_crossing_edge(town, s, u0, c->edge[0]);
    bj_town_crossing_edge(town, s, u1, c->edge[1]);
    for (int e = 0; e < 2; e++) {
        double p[2];
        bj_street_point(s, p, (u0 + u1) / 2, e ? s->edge_right + 1.5 : -s->edge_left - 1.5);
        bj_town_place(town, &c->walk[e][0], &c->walk[e][1], p[0], p[1]);
    }
    return town->crossing_count++;
}

void bj_town_note_crossing(bj_town *town, int lane, int crossing, double at) {
    bj_road_lane *l = &town->lanes[lane];
    if (l->crossing_count == 2 || crossing < 0) return;
    l->crossing[l->crossing_count] = crossing;
    l->crossing_at[l->crossing_count++] = at;
}

void bj_town_build_link(bj_town *town, int index) {
    bj_link *link = &town->links[index];
    const bj_street *s = &town->streets[link->street];
    const double length = link->end - link->start;
    int pocket_to = s->turn_pockets && link->to >= 0 && length > 50 &&
                    town->nodes[link->to].control != BJ_CONTROL_ROUNDABOUT;
    int pocket_from = s->turn_pockets && s->back && link->from >= 0 && length > 50 &&
                      town->nodes[link->from].control != BJ_CONTROL_ROUNDABOUT;
    if (pocket_to && pocket_from && length < 85) pocket_from = 0;
    double splits[16];
    const int count = split_link(splits, link, pocket_from, pocket_to, town->version > 1 ? 60 : 30);
    int forward[BJ_TOWN_ARM_LANES][16], back[BJ_TOWN_ARM_LANES][16];
    build_way(town, index, splits, count, 1, pocket_to, forward);
    build_way(town, index, splits, count, -1, pocket_from, back);
    if (town->full) return;
    if (s->back && s->half_median < 0.3) /* opposite lanes are neighbors across the center line */
        for (int p = 0; p < count - 1; p++) {
            town->lanes[forward[0][p]].left_lane = back[0][count - 2 - p];
            town->lanes[back[0][count - 2 - p]].left_lane = forward[0][p];
        }
    if (length > 70 && !s->turn_pockets && bj_world_chance(&town->rng, 0.2)) {
        const int p = (count - 1) / 2;
        const double u = (splits[p] + splits[p + 1]) / 2;
        link->crossing_at = u;
        const int crossing = bj_town_add_crossing(town, s, u - 1.6, u + 1.6, -1);
        for (int i = 0; i < s->forward; i++)
            bj_town_note_crossing(town, forward[i][p], crossing, (u - 1.6 - splits[p]) - 1.2);
        for (int i = 0; i < s->back; i++)
            bj_town_note_crossing(town, back[i][count - 2 - p], crossing,
                                  (splits[p + 1] - u - 1.6) - 1.2);
    }
    add_bays(town, link, s, 1);
    add_bays(town, link, s, -1);
}
