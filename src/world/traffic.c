/* traffic.c - see traffic.h.
 *
 * A step first records the positions of all agents on lanes, junctions and crossings, and then
 * moves every agent based on these records. The result does not depend on the order of the agents.
 */
#include "world/traffic.h"

#include <math.h>
#include <string.h>

static const double dt = 0.1;

const char *bj_kind_name(bj_kind kind) {
    static const char *const names[BJ_KINDS] = {
        "vehicle",    "bus",    "motorcyclist", "cyclist",
        "pedestrian", "static", "construction", "riderless_bicycle"};
    return names[kind];
}

void bj_traffic_reset(bj_traffic *traffic, const bj_town *town) {
    traffic->town = town;
    traffic->count = 0;
    traffic->step = 0;
    for (int i = 0; i < town->lane_count; i++) traffic->head[i] = -1;
}

int bj_light_green(const bj_light *light, int group, int step) {
    if (step < light->change) return group == light->first;
    return step >= light->change + 20 && group != light->first;
}

double bj_idm(double v, double wanted, double gap, double closing, double acceleration,
              double braking, double headway) {
    if (wanted < 0.5) wanted = 0.5;
    const double ratio = v / wanted, square = ratio * ratio;
    double a = ratio < 1 ? acceleration * (1 - square * square)
                         : -bj_world_clamp(1.5 * (v - wanted), 0, 2.5);
    if (gap < 200) {
        double reach = 2 + v * headway + v * closing / (2 * sqrt(acceleration * braking));
        if (reach < 1) reach = 1;
        if (gap < 0.3) gap = 0.3;
        a -= acceleration * (reach / gap) * (reach / gap);
    }
    return bj_world_clamp(a, -6, acceleration);
}

bj_pose bj_route_pose(const bj_town *town, const int *route, int count, int at, double s,
                      double offset) {
    while (at + 1 < count && s > town->lanes[route[at]].length)
        s -= town->lanes[route[at++]].length;
    while (at > 0 && s < 0) s += town->lanes[route[--at]].length;
    return bj_lane_pose(town, route[at], s, offset);
}

/* ---------------------------------------------------------------------------------- occupancy */

static void note_everybody(bj_traffic *tr) {
    const bj_town *town = tr->town;
    memset(tr->taken, 0, sizeof tr->taken);
    tr->walked = 0;
    for (int i = 0; i < tr->count; i++) {
        bj_agent *a = &tr->agents[i];
        if (a->mover == BJ_MOVER_DRIVES) {
            const int lane = a->route[a->at];
            tr->behind[i] = tr->head[lane];
            tr->head[lane] = i;
            const bj_road_lane *l = &town->lanes[lane];
            if (l->node >= 0) tr->taken[l->node] |= (uint64_t)1 << l->turn;
        } else if (a->crossing >= 0 && tr->step > a->from - 8 && tr->step < a->until - 8) {
            tr->walked |= (uint32_t)1 << a->crossing;
        }
    }
}

static void forget_everybody(bj_traffic *tr) {
    for (int i = 0; i < tr->count; i++)
        if (tr->agents[i].mover == BJ_MOVER_DRIVES)
            tr->head[tr->agents[i].route[tr->agents[i].at]] = -1;
}

/* -------------------------------------------------------------------------------- right of way */

/* Returns 1 if lane `mine` yields to traffic on lane `other` of the same junction. */
static int yields(const bj_node *node, const bj_road_lane *mine, const bj_road_lane *other) {
    const int left = mine->move == BJ_MOVE_LEFT || mine->move == BJ_MOVE_BACK;
    const int other_left = other->move == BJ_MOVE_LEFT || other->move == BJ_MOVE_BACK;
    if (node->control == BJ_CONTROL_PRIORITY) {
        const int minor = mine->arm % 2 != node->major, other_minor = other->arm % 2 != node->major;
        if (minor != other_minor) return minor;
    }
    return left && !other_left;
}

static int may_enter(const bj_traffic *tr, int agent, const bj_road_lane *approach, int turn_lane,
                     double distance) {
    const bj_agent *me = &tr->agents[agent];
    const bj_road_lane *mine = &tr->town->lanes[turn_lane];
    const bj_node *node = &tr->town->nodes[mine->node];
    if (distance < me->v * me->v / 9 - 0.5) return 1; /* too late to stop */
    if (node->control == BJ_CONTROL_SIGNAL &&
        !bj_light_green(&tr->lights[mine->node], approach->arm % 2, tr->step))
        return 0;
    if (node->control == BJ_CONTROL_STOP && !me->halted) return 0;
    if (tr->taken[mine->node] & mine->conflicts) return 0;
    if (node->control == BJ_CONTROL_ROUNDABOUT) return 1;
    for (int i = 0; i < tr->count; i++) {
        const bj_agent *you = &tr->agents[i];
        if (i == agent || you->mover != BJ_MOVER_DRIVES || you->at + 1 >= you->route_count)
            continue;
        const bj_road_lane *from = &tr->town->lanes[you->route[you->at]];
        if (from->approach != mine->node) continue;
        const bj_road_lane *theirs = &tr->town->lanes[you->route[you->at + 1]];
        if (!(mine->conflicts >> theirs->turn & 1)) continue;
        const double to_go = from->length - you->s;
        if (node->control == BJ_CONTROL_STOP) {
            if (you->halted && (to_go < distance || (to_go <= distance && i < agent))) return 0;
            continue;
        }
        if (node->control == BJ_CONTROL_SIGNAL &&
            !bj_light_green(&tr->lights[mine->node], from->arm % 2, tr->step))
            continue;
        if (yields(node, mine, theirs) && to_go < 4 * you->v + 3) return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------------------------- driving */

typedef struct ahead {
    double gap, speed, wanted;
} ahead;

static void obstacle(ahead *a, double gap, double speed) {
    if (gap < a->gap) a->gap = gap, a->speed = speed;
}

static void see_lane(const bj_traffic *tr, int agent, int lane, double start, double reach_in,
                     ahead *view) {
    const bj_agent *me = &tr->agents[agent];
    for (int i = tr->head[lane]; i >= 0; i = tr->behind[i]) {
        const bj_agent *you = &tr->agents[i];
        const double gap = start + you->s;
        if (i == agent || gap <= 0 || you->s > reach_in) continue;
        const int narrow = you->kind == BJ_KIND_CYCLIST ||
                           (you->kind == BJ_KIND_MOTORCYCLIST && tr->town->version > 1);
        if (narrow && me->kind != BJ_KIND_CYCLIST && you->offset < -0.9)
            continue; /* a cyclist rides at the edge, so there is room to pass */
        obstacle(view, gap - (me->length + you->length) / 2, you->v);
    }
}

static ahead look_ahead(const bj_traffic *tr, int agent) {
    const bj_town *town = tr->town;
    const bj_agent *me = &tr->agents[agent];
    const double horizon = 25 + me->v * 3 + me->v * me->v / 4, half = me->length / 2;
    ahead view = {1e9, 0, me->wanted};
    double start = -me->s; /* distance to the start of the lane */
    for (int k = me->at; k < me->route_count && start < horizon; k++) {
        const bj_road_lane *lane = &town->lanes[me->route[k]];
        double limit = lane->speed * 1.08;
        if (start > 0) limit = sqrt(limit * limit + 2 * 1.5 * start);
        if (limit < view.wanted) view.wanted = limit;
        see_lane(tr, agent, me->route[k], start, 1e9, &view);
        for (int c = 0; c < lane->crossing_count; c++) {
            const double line = start + lane->crossing_at[c] - half;
            if ((tr->walked >> lane->crossing[c] & 1) && line > me->v * me->v / 10 - 1)
                obstacle(&view, line + 1.5, 0);
        }
        const double end = start + lane->length;
        if (lane->approach >= 0 && k + 1 < me->route_count) {
            const double line = end - half;
            for (int b = 0; b < lane->next_count; b++) /* consider vehicles that have just turned
                                                          off */
                if (lane->next[b] != me->route[k + 1])
                    see_lane(tr, agent, lane->next[b], end, 5, &view);
            if (line < 8 + 2 * me->v + me->v * me->v / 4 && line > -1.5 &&
                !may_enter(tr, agent, lane, me->route[k + 1], line)) {
                obstacle(&view, line + 1.2, 0);
                break;
            }
        }
        start = end;
    }
    return view;
}

static void drive(bj_traffic *tr, int agent) {
    bj_agent *me = &tr->agents[agent];
    const ahead view = look_ahead(tr, agent);
    const double a = bj_idm(me->v, view.wanted, view.gap, me->v - view.speed, me->acceleration,
                            me->braking, me->headway);
    me->a += 0.35 * (a - me->a);
    if (a < -3) me->a = a; /* apply hard braking without smoothing */
}

static void move(bj_traffic *tr, bj_agent *me) {
    const bj_town *town = tr->town;
    double v = me->v + me->a * dt;
    if (v < 0.02 && me->a <= 0) v = 0;
    if (v < 0) v = 0;
    me->s += 0.5 * (me->v + v) * dt;
    me->v = v;
    const bj_road_lane *lane = &town->lanes[me->route[me->at]];
    if (lane->approach >= 0 && v < 0.4 && lane->length - me->s < 9) me->halted = 1;
    while (me->s > lane->length && me->at + 1 < me->route_count) {
        me->s -= lane->length;
        me->at++;
        lane = &town->lanes[me->route[me->at]];
        if (lane->node < 0) me->halted = 0;
    }
    me->offset += me->drift * dt * bj_world_clamp(v / 4, 0, 1);
}

static void store(bj_traffic *tr, bj_agent *me, int step) {
    const bj_pose p = bj_lane_pose(tr->town, me->route[me->at], me->s, me->offset);
    const double side = me->drift * bj_world_clamp(me->v / 4, 0, 1);
    const double v = me->v * (1 - p.bend * me->offset); /* the inside of a curve is shorter */
    me->path[step] =
        (bj_motion){p.x, p.y, p.heading, v * p.tx - side * p.ty, v * p.ty + side * p.tx};
}

void bj_traffic_step(bj_traffic *tr, int step, const bj_script *scripts, int script_count) {
    tr->step = step;
    uint64_t scripted = 0;
    for (int i = 0; i < script_count; i++)
        if (scripts[i].agent >= 0) scripted |= (uint64_t)1 << scripts[i].agent;
    note_everybody(tr);
    for (int i = 0; i < tr->count; i++)
        if (tr->agents[i].mover == BJ_MOVER_DRIVES && !(scripted >> i & 1)) drive(tr, i);
    forget_everybody(tr);
    for (int i = 0; i < tr->count; i++) {
        bj_agent *me = &tr->agents[i];
        if (me->mover != BJ_MOVER_DRIVES || (scripted >> i & 1)) continue;
        move(tr, me);
        if (step >= 0) store(tr, me, step);
    }
    for (int k = 0; k < script_count; k++) {
        const bj_script *script = &scripts[k];
        if (script->agent < 0) continue;
        bj_agent *me = &tr->agents[script->agent];
        for (me->at = 0; me->at + 1 < me->route_count; me->at++)
            if (me->route[me->at] == script->lane[step]) break;
        me->s = script->s[step];
        me->v = script->v[step];
    }
}

void bj_traffic_walkers(bj_traffic *tr) {
    for (int i = 0; i < tr->count; i++) {
        bj_agent *a = &tr->agents[i];
        if (a->mover == BJ_MOVER_DRIVES) continue;
        for (int t = 0; t < BJ_WORLD_STEPS; t++) {
            const int walked = a->mover == BJ_MOVER_STANDS || t <= a->from ? 0
                               : t < a->until                              ? t - a->from
                                                                           : a->until - a->from;
            const int going = a->mover == BJ_MOVER_WALKS && t >= a->from && t < a->until;
            a->path[t] =
                (bj_motion){a->start.x + a->vx * dt * walked, a->start.y + a->vy * dt * walked,
                            a->start.heading, going ? a->vx : 0, going ? a->vy : 0};
        }
    }
}
