/* town_junction.c - builds the lanes in junctions and roundabouts, and finds conflicts between
 * them.
 *
 * The leftmost lane turns left, the rightmost lane turns right, and every lane with a counterpart
 * goes straight. A single lane does all of these. If there is a left-turn lane, it is used for left
 * turns, and for U-turns if the street is wide enough.
 */
#include "world/town.h"

#include <math.h>

static const double ring_radius = 13, ring_half = 2.25, ring_gap = 0.48; /* gap in radians */

static void outward_unit(int arm, double unit[2]) {
    unit[0] = arm == 0 ? 1 : arm == 2 ? -1 : 0;
    unit[1] = arm == 1 ? 1 : arm == 3 ? -1 : 0;
}

/* Computes a cubic curve from p0 with tangent t0 to p1 with tangent t1. `near` and `far` are the
 * handle lengths. */
static void handle_curve(double c[4][2], const double p0[2], const double t0[2], const double p1[2],
                         const double t1[2], double near, double far) {
    for (int k = 0; k < 2; k++) {
        c[0][k] = p0[k];
        c[1][k] = p0[k] + near * t0[k];
        c[2][k] = p1[k] - far * t1[k];
        c[3][k] = p1[k];
    }
}

static void turn_curve(double c[4][2], const double p0[2], const double t0[2], const double p1[2],
                       const double t1[2], bj_move move) {
    const double dx = p1[0] - p0[0], dy = p1[1] - p0[1];
    const double along = dx * t0[0] + dy * t0[1], across = dx * t1[0] + dy * t1[1];
    if (move == BJ_MOVE_STRAIGHT) handle_curve(c, p0, t0, p1, t1, 0.4 * along, 0.4 * along);
    else if (move == BJ_MOVE_BACK) {
        const double width = sqrt(dx * dx + dy * dy);
        handle_curve(c, p0, t0, p1, t1, 0.667 * width, 0.667 * width);
    } else handle_curve(c, p0, t0, p1, t1, 0.6 * along, 0.6 * across);
}

static int add_turn(bj_town *town, int index, bj_road_lane *lane) {
    bj_node *node = &town->nodes[index];
    if (node->turn_count == BJ_TOWN_TURNS) {
        town->full = 1;
        return -1;
    }
    lane->street = -1;
    lane->node = index;
    lane->approach = -1;
    lane->left_lane = lane->right_lane = lane->change_left = lane->change_right = -1;
    lane->turn = node->turn_count;
    const int added = bj_town_add_lane(town, lane);
    if (added >= 0) node->turns[node->turn_count++] = added;
    return added;
}

static void join(bj_town *town, int index, int from, int to, int arm, int target) {
    if (from < 0 || to < 0) return;
    const bj_road_lane *a = &town->lanes[from], *b = &town->lanes[to];
    const bj_move move = (bj_move)((target - arm + 4) % 4);
    double t0[2], t1[2];
    outward_unit(arm, t0);
    outward_unit(target, t1);
    t0[0] = -t0[0], t0[1] = -t0[1];
    bj_road_lane lane = {.bike = a->bike, .arm = arm, .move = move};
    lane.speed = a->speed < b->speed ? a->speed : b->speed;
    turn_curve(lane.left, a->left[3], t0, b->left[0], t1, move);
    turn_curve(lane.right, a->right[3], t0, b->right[0], t1, move);
    const int added = add_turn(town, index, &lane);
    bj_town_connect(town, from, added);
    bj_town_connect(town, added, to);
}

static double distance(const bj_road_lane *in, const bj_road_lane *out) {
    const double x = in->left[3][0] + in->right[3][0] - out->left[0][0] - out->right[0][0];
    const double y = in->left[3][1] + in->right[3][1] - out->left[0][1] - out->right[0][1];
    return 0.5 * sqrt(x * x + y * y);
}

int bj_town_back_lane(const bj_town *town, const bj_arm *arm) {
    for (int q = 0; q < arm->out_count && arm->in_count; q++)
        if (distance(&town->lanes[arm->in[0]], &town->lanes[arm->out[q]]) > 6.4) return arm->out[q];
    return -1;
}

static void build_crossroads(bj_town *town, int index) {
    bj_node *node = &town->nodes[index];
    for (int a = 0; a < BJ_TOWN_ARMS; a++) {
        bj_arm *arm = &node->arms[a];
        if (!arm->present || !arm->in_count) continue;
        const int right = (a + 1) % 4, ahead = (a + 2) % 4, left = (a + 3) % 4;
        const bj_arm *to_right = &node->arms[right], *to_ahead = &node->arms[ahead],
                     *to_left = &node->arms[left];
        const int rights = to_right->present ? to_right->out_count : 0;
        const int aheads = to_ahead->present ? to_ahead->out_count : 0;
        const int lefts = to_left->present ? to_left->out_count : 0;
        const int n = arm->in_count;
        for (int i = 0; i < n; i++) {
            const int in = arm->in[i], plain = i - arm->pocket, pocket = arm->pocket && i == 0;
            const int alone = n - arm->pocket == 1;
            int moves = 0;
            if (lefts && (pocket || (!arm->pocket && i == 0))) {
                join(town, index, in, to_left->out[0], a, left);
                moves++;
            }
            const int keeps_straight = !pocket && (alone || plain > 0 || n == 2 || !lefts);
            if (aheads && keeps_straight) {
                join(town, index, in, to_ahead->out[plain < aheads ? plain : aheads - 1], a, ahead);
                moves++;
            }
            if (rights && i == n - 1) {
                join(town, index, in, to_right->out[rights - 1], a, right);
                moves++;
            }
            if (!moves) { /* use any exit */
                if (aheads) join(town, index, in, to_ahead->out[0], a, ahead);
                else if (rights) join(town, index, in, to_right->out[rights - 1], a, right);
                else if (lefts) join(town, index, in, to_left->out[0], a, left);
            }
            if (i == 0 && node->control == BJ_CONTROL_SIGNAL &&
                bj_world_chance(&town->rng, BJ_TOWN_BACK))
                join(town, index, in, bj_town_back_lane(town, arm), a, a);
        }
        if (arm->bike_in >= 0 && to_ahead->present)
            join(town, index, arm->bike_in, to_ahead->bike_out, a, ahead);
    }
}

/* ---------------------------------------------------------------------------------- roundabout */

/* Approximates the counterclockwise arc from angle a to angle b by a cubic curve. */
static void arc_curve(double c[4][2], const bj_node *node, double radius, double a, double b) {
    double sa, ca, sb, cb, st, ct;
    bj_world_sincos(&sa, &ca, a);
    bj_world_sincos(&sb, &cb, b);
    bj_world_sincos(&st, &ct, (b - a) / 4);
    const double handle = radius * 4 / 3 * st / ct;
    const double p0[2] = {node->x + radius * ca, node->y + radius * sa}, t0[2] = {-sa, ca};
    const double p1[2] = {node->x + radius * cb, node->y + radius * sb}, t1[2] = {-sb, cb};
    handle_curve(c, p0, t0, p1, t1, handle, handle);
}

static int add_arc(bj_town *town, int index, double from, double to, int arm) {
    bj_node *node = &town->nodes[index];
    bj_road_lane lane = {.arm = arm,
                         .move = BJ_MOVE_STRAIGHT,
                         .speed = 8,
                         .right_mark = BJ_MARK_NONE,
                         .left_mark = BJ_MARK_SOLID_YELLOW};
    arc_curve(lane.left, node, ring_radius - ring_half, from, to);
    arc_curve(lane.right, node, ring_radius + ring_half, from, to);
    return add_turn(town, index, &lane);
}

/* Connects a lane of an arm to the ring of a roundabout at the given angle. */
static void slip(bj_town *town, int index, int lane_index, int arc, int arm, double angle,
                 int enter) {
    const bj_road_lane *road = &town->lanes[lane_index];
    bj_road_lane lane = {.arm = arm, .move = BJ_MOVE_RIGHT, .speed = 8};
    double unit[2], s, c;
    outward_unit(arm, unit);
    bj_world_sincos(&s, &c, angle);
    const double tangent[2] = {-s, c};
    const bj_road_lane *ring = &town->lanes[arc];
    if (enter) {
        const double inward[2] = {-unit[0], -unit[1]};
        handle_curve(lane.left, road->left[3], inward, ring->left[0], tangent, 7.5, 5);
        handle_curve(lane.right, road->right[3], inward, ring->right[0], tangent, 6.5, 4);
    } else {
        handle_curve(lane.left, ring->left[3], tangent, road->left[0], unit, 5, 7.5);
        handle_curve(lane.right, ring->right[3], tangent, road->right[0], unit, 4, 6.5);
    }
    const int added = add_turn(town, index, &lane);
    if (enter) bj_town_connect(town, lane_index, added), bj_town_connect(town, added, arc);
    else bj_town_connect(town, arc, added), bj_town_connect(town, added, lane_index);
}

static void build_roundabout(bj_town *town, int index) {
    bj_node *node = &town->nodes[index];
    int arms[BJ_TOWN_ARMS], n = 0, inside[BJ_TOWN_ARMS], outside[BJ_TOWN_ARMS];
    for (int a = 0; a < BJ_TOWN_ARMS; a++)
        if (node->arms[a].present) arms[n++] = a;
    for (int i = 0; i < n; i++) {
        const double here = arms[i] * BJ_PI / 2;
        const double there = i + 1 < n ? arms[i + 1] * BJ_PI / 2 : arms[0] * BJ_PI / 2 + 2 * BJ_PI;
        inside[i] = add_arc(town, index, here - ring_gap, here + ring_gap, arms[i]);
        outside[i] = add_arc(town, index, here + ring_gap, there - ring_gap, arms[i]);
    }
    if (town->full) return;
    for (int i = 0; i < n; i++) {
        const int last = (i + n - 1) % n;
        bj_town_connect(town, inside[i], outside[i]);
        bj_town_connect(town, outside[last], inside[i]);
        const bj_arm *arm = &node->arms[arms[i]];
        const double here = arms[i] * BJ_PI / 2;
        if (arm->in_count) slip(town, index, arm->in[0], outside[i], arms[i], here + ring_gap, 1);
        if (arm->out_count)
            slip(town, index, arm->out[0], outside[last], arms[i], here - ring_gap, 0);
    }
}

void bj_town_build_junction(bj_town *town, int node) {
    if (town->full) return;
    if (town->nodes[node].control == BJ_CONTROL_ROUNDABOUT) build_roundabout(town, node);
    else build_crossroads(town, node);
}

/* ----------------------------------------------------------------------------------- conflicts */

static int too_close(const bj_town *town, const bj_road_lane *a, const bj_road_lane *b) {
    for (int i = 0; i <= a->steps; i++) {
        const bj_sample *p = &town->samples[a->first + i];
        for (int k = 0; k <= b->steps; k++) {
            const bj_sample *q = &town->samples[b->first + k];
            const double dx = p->x - q->x, dy = p->y - q->y;
            if (dx * dx + dy * dy < 2.4 * 2.4) return 1;
        }
    }
    return 0;
}

void bj_town_find_conflicts(bj_town *town) {
    for (int n = 0; n < town->node_count; n++) {
        const bj_node *node = &town->nodes[n];
        for (int i = 0; i < node->turn_count; i++)
            for (int k = 0; k < i; k++) {
                bj_road_lane *a = &town->lanes[node->turns[i]], *b = &town->lanes[node->turns[k]];
                /* Lanes that fork from the same lane are not in conflict. */
                if (a->prev_count && b->prev_count && a->prev[0] == b->prev[0]) continue;
                if (!too_close(town, a, b)) continue;
                a->conflicts |= (uint64_t)1 << b->turn;
                b->conflicts |= (uint64_t)1 << a->turn;
            }
    }
}
