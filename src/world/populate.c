/* populate.c - see populate.h. */
#include "world/populate.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct maker {
    bj_traffic *tr;
    const bj_town *town;
    bj_rng *rng;
    double x, y; /* approximate position of the focal vehicle at the end of the observation */
} maker;

/* --------------------------------------------------------------------------------------- routes */

static int pick_next(const maker *m, const bj_road_lane *lane) {
    double share[BJ_TOWN_SUCC], sum = 0;
    for (int i = 0; i < lane->next_count; i++) {
        const bj_road_lane *next = &m->town->lanes[lane->next[i]];
        share[i] = next->node < 0                   ? (i ? 0.25 : 1)
                   : next->move == BJ_MOVE_STRAIGHT ? 0.5
                   : next->move == BJ_MOVE_BACK     ? 0.06
                                                    : 0.3;
        sum += share[i];
    }
    double draw = bj_rng_uniform(m->rng) * sum;
    for (int i = 0; i < lane->next_count; i++)
        if ((draw -= share[i]) < 0) return lane->next[i];
    return lane->next[0];
}

/* Appends lanes until the route is extended by `reach` or is full. */
static void extend_route(const maker *m, bj_agent *a, double reach) {
    double length = 0;
    while (a->route_count < BJ_WORLD_ROUTE && length < reach) {
        const bj_road_lane *lane = &m->town->lanes[a->route[a->route_count - 1]];
        if (!lane->next_count) return;
        const int next = pick_next(m, lane);
        a->route[a->route_count++] = next;
        length += m->town->lanes[next].length;
    }
}

static void driver(const maker *m, bj_agent *a, bj_kind kind) {
    memset(a, 0, offsetof(bj_agent, path));
    a->kind = kind;
    a->mover = BJ_MOVER_DRIVES;
    a->crossing = -1;
    a->length = kind == BJ_KIND_BUS            ? 11.5
                : kind == BJ_KIND_MOTORCYCLIST ? 2.2
                : kind == BJ_KIND_CYCLIST      ? 1.8
                                               : bj_world_uniform(m->rng, 4.2, 5.3);
    if (m->town->version > 1) a->length = 4.8; /* features contain no sizes */
    a->headway = bj_world_uniform(m->rng, 0.9, 1.7);
    a->acceleration = kind == BJ_KIND_BUS ? 1.0 : bj_world_uniform(m->rng, 1.2, 2.1);
    a->braking = bj_world_uniform(m->rng, 1.6, 2.4);
    a->offset = 0.18 * bj_world_normal(m->rng);
}

static double wanted_speed(const maker *m, bj_kind kind, double limit) {
    if (kind == BJ_KIND_CYCLIST) return bj_world_uniform(m->rng, 3.5, 6.5);
    return limit * (kind == BJ_KIND_BUS ? 0.8 : 1) * bj_world_uniform(m->rng, 0.72, 1.12);
}

/* ----------------------------------------------------------------------------------------- focal
 */

static void place_focal(maker *m) {
    bj_traffic *tr = m->tr;
    bj_agent *a = &tr->agents[tr->count++];
    const double type = bj_rng_uniform(m->rng);
    driver(m, a, type < 0.94 ? BJ_KIND_VEHICLE : type < 0.97 ? BJ_KIND_BUS : BJ_KIND_MOTORCYCLIST);
    /* Choose a lane that leads into a junction, and the lanes before it. */
    int lane = -1;
    for (int tries = 0; tries < 60 && lane < 0; tries++) {
        const bj_node *node = &m->town->nodes[bj_world_integer(m->rng, 0, m->town->node_count - 1)];
        const bj_arm *arm = &node->arms[bj_world_integer(m->rng, 0, 3)];
        if (!arm->present || !arm->in_count) continue;
        lane = arm->in[bj_world_integer(m->rng, 0, arm->in_count - 1)];
        /* Give most focal vehicles a green light, because scenes in which the vehicle waits at a
         * red light vary little. */
        const int group = m->town->lanes[lane].arm % 2;
        tr->lights[node - m->town->nodes].first = bj_world_chance(m->rng, 0.7) ? group : 1 - group;
    }
    if (lane < 0) lane = 0; /* all streets are one-way and lead off the map, so use any lane */
    int chain[BJ_WORLD_ROUTE], n = 0;
    double length = m->town->lanes[lane].length;
    const double limit = m->town->lanes[lane].speed;
    a->wanted = wanted_speed(m, a->kind, limit);
    const double style = bj_rng_uniform(m->rng);
    const double travel = a->wanted * 0.9 * 6.5; /* until the end of the observation */
    const double start = style < 0.38   ? travel + bj_world_uniform(m->rng, -4, 40)
                         : style < 0.66 ? travel - bj_world_uniform(m->rng, 0, 45)
                         : style < 0.82 ? travel + bj_world_uniform(m->rng, 40, 110)
                                        : bj_world_uniform(m->rng, 4, 25);
    chain[n++] = lane;
    while (length < start && n < 12) {
        const bj_road_lane *l = &m->town->lanes[chain[n - 1]];
        if (!l->prev_count) break;
        chain[n] = l->prev[bj_world_integer(m->rng, 0, l->prev_count - 1)];
        length += m->town->lanes[chain[n++]].length;
    }
    for (int i = 0; i < n; i++) a->route[i] = chain[n - 1 - i];
    a->route_count = n;
    extend_route(m, a, 260);
    a->s = bj_world_clamp(length - start, -12, 1e9); /* negative: enters from outside the map */
    while (a->s > m->town->lanes[a->route[a->at]].length && a->at + 1 < a->route_count)
        a->s -= m->town->lanes[a->route[a->at++]].length;
    a->v = a->wanted * (style >= 0.82    ? bj_world_uniform(m->rng, 0, 0.4)
                        : start < travel ? 0.9
                                         : bj_world_uniform(m->rng, 0.75, 1));
    const bj_pose p =
        bj_route_pose(m->town, a->route, a->route_count, a->at, a->s + travel * 0.8, 0);
    m->x = p.x, m->y = p.y;
}

/* -------------------------------------------------------------------------------- other drivers */

static int has_room(const maker *m, const bj_agent *a) {
    const bj_pose p = bj_route_pose(m->town, a->route, a->route_count, a->at, a->s, a->offset);
    for (int i = 0; i < m->tr->count; i++) {
        const bj_agent *b = &m->tr->agents[i];
        if (b == a || b->mover != BJ_MOVER_DRIVES) continue;
        const bj_pose q = bj_route_pose(m->town, b->route, b->route_count, b->at, b->s, b->offset);
        const double dx = p.x - q.x, dy = p.y - q.y;
        const int same = b->route[b->at] == a->route[a->at];
        const double space =
            same ? (a->length + b->length) / 2 + 6 + 0.6 * a->v : (a->length + b->length) / 2 - 1;
        if (dx * dx + dy * dy < space * space) return 0;
    }
    return 1;
}

/* Places a vehicle on a random lane near the focal vehicle. Returns 0 if no place was found. */
static int place_driver(maker *m, bj_kind kind, double radius) {
    bj_traffic *tr = m->tr;
    bj_agent *a = &tr->agents[tr->count];
    driver(m, a, kind);
    for (int tries = 0; tries < 12; tries++) {
        const int lane = bj_world_integer(m->rng, 0, m->town->lane_count - 1);
        const bj_road_lane *l = &m->town->lanes[lane];
        const double s = bj_world_uniform(m->rng, 0, l->length);
        if (l->bike != (kind == BJ_KIND_CYCLIST) && (l->bike || tries < 6)) continue;
        if (l->node >= 0) continue;
        const bj_sample *p = &m->town->samples[l->first];
        const double dx = p->x - m->x, dy = p->y - m->y;
        if (dx * dx + dy * dy > radius * radius) continue;
        a->route[0] = lane;
        a->route_count = 1;
        a->at = 0;
        a->s = s;
        /* The features do not distinguish motorcyclists from cyclists, so in version 2 both ride at
         * the edge of the lane. */
        if ((kind == BJ_KIND_CYCLIST && !l->bike) ||
            (kind == BJ_KIND_MOTORCYCLIST && m->town->version > 1))
            a->offset = -1.15;
        a->wanted = wanted_speed(m, kind, l->speed);
        a->v = a->wanted * bj_world_uniform(m->rng, 0.5, 1);
        if (l->approach >= 0 && m->town->nodes[l->approach].control != BJ_CONTROL_ROUNDABOUT &&
            bj_world_chance(m->rng, 0.5)) { /* wait at the stop line */
            a->s = l->length - a->length / 2 - 1;
            a->v = 0;
        }
        if (!has_room(m, a)) continue;
        extend_route(m, a, 200);
        tr->count++;
        return 1;
    }
    return 0;
}

/* Places a vehicle ahead of the focal vehicle, or behind it if `ahead` is negative. */
static void place_company(maker *m, double ahead) {
    bj_traffic *tr = m->tr;
    const bj_agent *focal = &tr->agents[0];
    bj_agent *a = &tr->agents[tr->count];
    driver(m, a, bj_world_chance(m->rng, 0.95) ? BJ_KIND_VEHICLE : BJ_KIND_BUS);
    double s = focal->s + ahead;
    int at = focal->at;
    if (ahead > 0) {
        while (at + 1 < focal->route_count && s > m->town->lanes[focal->route[at]].length)
            s -= m->town->lanes[focal->route[at++]].length;
        if (m->town->lanes[focal->route[at]].node >= 0) return;
    }
    a->route[0] = focal->route[at];
    a->route_count = 1;
    a->s = s;
    a->wanted = focal->wanted * bj_world_uniform(m->rng, 0.7, 1.1);
    a->v = focal->v * bj_world_uniform(m->rng, 0.8, 1.05);
    if (!has_room(m, a)) return;
    extend_route(m, a, 260);
    tr->count++;
}

/* ------------------------------------------------------------------------- pedestrians, objects */

static void stander(bj_agent *a, bj_kind kind, bj_pose at) {
    memset(a, 0, offsetof(bj_agent, path));
    a->kind = kind;
    a->mover = BJ_MOVER_STANDS;
    a->length = kind == BJ_KIND_VEHICLE ? 4.6 : 0.6;
    a->crossing = -1;
    a->start = at;
}

static void place_parked(maker *m, int wanted, double radius) {
    const bj_town *town = m->town;
    if (!town->bay_count) return;
    int used = bj_world_integer(m->rng, 0, town->bay_count - 1);
    for (int k = 0, placed = 0; k < town->bay_count && placed < wanted; k++) {
        const bj_pose *bay = &town->bays[(used + k) % town->bay_count];
        const double dx = bay->x - m->x, dy = bay->y - m->y;
        if (dx * dx + dy * dy > radius * radius || !bj_world_chance(m->rng, 0.55)) continue;
        bj_pose at = *bay;
        double s, c;
        bj_world_sincos(&s, &c, at.heading);
        const double along = bj_world_uniform(m->rng, -0.5, 0.5),
                     side = 0.12 * bj_world_jitter(m->rng);
        at.x += along * c - side * s;
        at.y += along * s + side * c;
        at.heading += 0.02 * bj_world_jitter(m->rng);
        stander(&m->tr->agents[m->tr->count++], BJ_KIND_VEHICLE, at);
        placed++;
    }
}

/* Finds a place on the sidewalk near the focal vehicle, with the heading along the sidewalk. */
static int sidewalk(const maker *m, bj_pose *out, double away, double radius) {
    for (int tries = 0; tries < 10; tries++) {
        const bj_link *link = &m->town->links[bj_world_integer(m->rng, 0, m->town->link_count - 1)];
        const bj_street *s = &m->town->streets[link->street];
        const double u = bj_world_uniform(m->rng, link->start, link->end);
        const double w = bj_world_chance(m->rng, 0.5) ? s->edge_right + away : -s->edge_left - away;
        double p[2], q[2], x, y;
        bj_street_point(s, p, u, w);
        bj_street_point(s, q, u + 1, w);
        bj_town_place(m->town, &out->x, &out->y, p[0], p[1]);
        const double dx = out->x - m->x, dy = out->y - m->y;
        if (dx * dx + dy * dy > radius * radius) continue;
        bj_town_place(m->town, &x, &y, q[0], q[1]);
        out->heading = bj_world_atan2(y - out->y, x - out->x);
        return 1;
    }
    return 0;
}

static void place_pedestrian(maker *m) {
    bj_agent *a = &m->tr->agents[m->tr->count];
    bj_pose at;
    if (!sidewalk(m, &at, bj_world_uniform(m->rng, 0.8, 3), 60)) return;
    stander(a, BJ_KIND_PEDESTRIAN, at);
    if (bj_world_chance(m->rng, 0.5)) a->start.heading += BJ_PI;
    const double speed = bj_world_clamp(1.3 + 0.25 * bj_world_normal(m->rng), 0.5, 2.6);
    if (bj_world_chance(m->rng, 0.8)) {
        double s, c;
        bj_world_sincos(&s, &c, a->start.heading);
        a->mover = BJ_MOVER_WALKS;
        a->vx = speed * c;
        a->vy = speed * s;
        a->from = 0;
        a->until = BJ_WORLD_STEPS;
    }
    m->tr->count++;
}

static void place_crosser(maker *m, int crossing) {
    bj_agent *a = &m->tr->agents[m->tr->count++];
    const bj_town_crossing *c = &m->town->crossings[crossing];
    const int back = bj_world_chance(m->rng, 0.5);
    const double *from = c->walk[back], *to = c->walk[!back];
    const double dx = to[0] - from[0], dy = to[1] - from[1], way = sqrt(dx * dx + dy * dy);
    const double speed = bj_world_clamp(1.4 + 0.2 * bj_world_normal(m->rng), 0.9, 2.4);
    const double side = 0.6 * bj_world_jitter(m->rng);
    const bj_pose at = {
        from[0] - side * dy / way, from[1] + side * dx / way, bj_world_atan2(dy, dx), 0, 0, 0};
    stander(a, BJ_KIND_PEDESTRIAN, at);
    a->mover = BJ_MOVER_WALKS;
    a->crossing = crossing;
    a->vx = speed * dx / way;
    a->vy = speed * dy / way;
    a->from = bj_world_integer(m->rng, -40, 80);
    a->until = a->from + (int)(way / speed * 10);
}

static int near_crossing(const maker *m) {
    if (!m->town->crossing_count) return -1;
    const int k = bj_world_integer(m->rng, 0, m->town->crossing_count - 1);
    const bj_town_crossing *c = &m->town->crossings[k];
    const double dx = c->walk[0][0] - m->x, dy = c->walk[0][1] - m->y;
    return dx * dx + dy * dy < 50 * 50 ? k : -1;
}

static void place_walkers(maker *m, int wanted) {
    for (int i = 0; i < wanted; i++) {
        const int crossing = bj_world_chance(m->rng, 0.3) ? near_crossing(m) : -1;
        if (crossing >= 0) place_crosser(m, crossing);
        else place_pedestrian(m);
    }
}

static void place_things(maker *m, int wanted) {
    static const bj_kind kinds[] = {BJ_KIND_STATIC, BJ_KIND_STATIC, BJ_KIND_CONSTRUCTION,
                                    BJ_KIND_RIDERLESS};
    for (int i = 0; i < wanted; i++) {
        bj_pose at;
        if (!sidewalk(m, &at, bj_world_uniform(m->rng, 0.3, 1.2), 60)) continue;
        stander(&m->tr->agents[m->tr->count++], kinds[bj_world_integer(m->rng, 0, 3)], at);
    }
}

/* ---------------------------------------------------------------------------------------- scene */

void bj_world_populate(bj_traffic *tr, const bj_town *town, bj_rng *rng) {
    maker m = {tr, town, rng, 0, 0};
    bj_traffic_reset(tr, town);
    for (int n = 0; n < town->node_count; n++) {
        tr->lights[n].first = bj_world_chance(rng, 0.5);
        tr->lights[n].change = bj_world_chance(rng, 0.45) ? bj_world_integer(rng, -10, 109) : 1000;
    }
    place_focal(&m);
    const int others = bj_world_chance(rng, 0.03)
                           ? bj_world_integer(rng, 0, 4)
                           : (int)bj_world_clamp(31 + 8 * bj_world_normal(rng), 3, 40);
    /* The ego vehicle always exists. */
    for (int tries = 0; tr->count < 2 && tries < 40; tries++)
        place_driver(&m, BJ_KIND_VEHICLE, 30 + 3 * tries);
    if (tr->count < 2) { /* no lane is free, so the ego vehicle stands at the side of the road */
        bj_pose at = {m.x + 40, m.y, 0, 0, 0, 0};
        sidewalk(&m, &at, 0.5, 1000);
        stander(&tr->agents[tr->count++], BJ_KIND_VEHICLE, at);
    }
    const int drivers = (int)(others * bj_world_uniform(rng, 0.3, 0.6));
    if (drivers > 0 && bj_world_chance(rng, 0.5)) place_company(&m, bj_world_uniform(rng, 12, 40));
    if (drivers > 1 && bj_world_chance(rng, 0.35))
        place_company(&m, -bj_world_uniform(rng, 12, 40));
    for (int i = 0; i < 2 * drivers && tr->count < 2 + drivers; i++) {
        const double draw = bj_rng_uniform(rng);
        place_driver(&m,
                     draw < 0.88   ? BJ_KIND_VEHICLE
                     : draw < 0.92 ? BJ_KIND_BUS
                     : draw < 0.95 ? BJ_KIND_MOTORCYCLIST
                                   : BJ_KIND_CYCLIST,
                     85);
    }
    const int rest = others - (tr->count - 2);
    if (rest <= 0) return;
    const int walkers = (int)(rest * bj_world_uniform(rng, 0.1, 0.6));
    const int things = (int)(rest * bj_world_uniform(rng, 0, 0.2));
    place_walkers(&m, walkers);
    place_things(&m, things);
    place_parked(&m, rest - walkers - things, 75);
}
