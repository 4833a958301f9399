/* law_weigh.c - determines the modes of a scene and their weights.
 *
 * Two choices are made in sequence: the route (at forks of the lanes ahead, with the logits of
 * `fork_logit`) and the speed (`stop_logit` at a stop line or crossing, three options on the open
 * road). The weight of a mode is the product of the two probabilities. Modes below 1.5 percent are
 * dropped, and the remaining weights are normalized. The constants define the model. They are also
 * listed in docs/WORLD.md.
 */
#include "world/law.h"

#include <math.h>
#include <string.h>

static const double least = 0.015;

const char *bj_intent_name(bj_intent intent) {
    static const char *const names[BJ_INTENTS] = {"keep",  "slow",        "accelerate",  "stop",
                                                  "yield", "straight",    "left",        "right",
                                                  "back",  "change_left", "change_right"};
    return names[intent];
}

static double sigmoid(double z) { return 1 / (1 + bj_world_exp(-z)); }

/* --------------------------------------------------------------------------------------- routes */

enum { ROUTES = 24 };

typedef struct path {
    int lanes[BJ_WORLD_ROUTE], count;
    double share, length;
    int forked; /* 1 if the route has passed a fork in a junction */
} path;

typedef struct paths {
    const bj_town *town;
    const bj_observed *o;
    path list[ROUTES];
    int count;
    double reach;
} paths;

/* Returns the log-odds of continuing on `next`. `way` is the distance to the fork. */
static double fork_logit(const paths *p, const bj_road_lane *next, double way) {
    const bj_observed *o = p->o;
    const double near = bj_world_clamp((45 - way) / 35, 0, 1);
    const double slow = bj_world_clamp(1 - o->v / (o->limit + 0.1), 0, 1);
    const double brakes = bj_world_clamp(-o->a, -2, 2.5);
    const double side = near * bj_world_clamp(1.2 * o->offset + 2.0 * o->drift, -2, 2);
    if (next->node < 0) /* a left-turn lane that starts here */
        return next->left_mark == BJ_MARK_SOLID_YELLOW && next->move == 0
                   ? bj_world_clamp(-0.9 + 4 * near * o->drift, -4, 4)
                   : 0;
    switch (next->move) {
    case BJ_MOVE_STRAIGHT: return 0.7 + near * (0.6 - 1.6 * slow - 0.8 * brakes);
    case BJ_MOVE_LEFT: return near * (1.4 * slow + 0.5 * brakes) + side;
    case BJ_MOVE_RIGHT: return near * (1.6 * slow + 0.6 * brakes) - side;
    default: return -2.4 + near * (1.8 * slow + 0.6 * brakes) + side;
    }
}

static void walk(paths *p, path now) {
    const bj_road_lane *lane = &p->town->lanes[now.lanes[now.count - 1]];
    int next[BJ_TOWN_SUCC], count = bj_view_next(&p->o->view, lane, next);
    while (now.length < p->reach && count == 1 && now.count < BJ_WORLD_ROUTE) {
        now.lanes[now.count++] = next[0];
        lane = &p->town->lanes[next[0]];
        now.length += lane->length;
        count = bj_view_next(&p->o->view, lane, next);
    }
    if (now.length >= p->reach || !count || now.count == BJ_WORLD_ROUTE) {
        if (p->count < ROUTES) p->list[p->count++] = now;
        return;
    }
    double odds[BJ_TOWN_SUCC], sum = 0;
    for (int i = 0; i < count; i++) {
        const double z = fork_logit(p, &p->town->lanes[next[i]], now.length);
        sum += odds[i] = bj_world_exp(z);
    }
    for (int i = 0; i < count; i++) {
        const bj_road_lane *branch = &p->town->lanes[next[i]];
        path then = now;
        then.share *= odds[i] / sum;
        if (then.share < least / 2) continue;
        then.lanes[then.count++] = next[i];
        then.length += branch->length;
        then.forked |= branch->node >= 0;
        walk(p, then);
    }
}

/* Finds all routes within the horizon. Just after a stop line (in version 2, after any fork), lanes
 * that start at the same point still overlap, so routes along all of these lanes are included. */
static void find_paths(paths *p, const bj_town *town, const bj_observed *o, const bj_row *now) {
    const bj_road_lane *lane = &town->lanes[o->lane];
    int starts[BJ_TOWN_SUCC], n = 0;
    starts[n++] = o->lane;
    const int any = town->version > 1;
    if ((any || lane->node >= 0) && lane->prev_count && o->s < 9) {
        const bj_road_lane *from = &town->lanes[lane->prev[0]];
        for (int i = 0; i < from->next_count && (any || from->approach >= 0); i++) {
            if (from->next[i] == o->lane || !bj_view_lane(&o->view, from->next[i])) continue;
            double s, offset;
            bj_lane_project(town, from->next[i], now->x, now->y, &s, &offset);
            if (fabs(offset - o->offset) < 0.35 && fabs(s - o->s) < 0.5)
                starts[n++] = from->next[i];
        }
    }
    double odds[BJ_TOWN_SUCC], sum = 0;
    for (int i = 0; i < n; i++) {
        double s, offset;
        bj_lane_project(town, starts[i], now->x, now->y, &s, &offset);
        /* Lanes whose center is closer are more likely. */
        sum += odds[i] = bj_world_exp(
            n > 1 ? fork_logit(p, &town->lanes[starts[i]], 0) - 8 * offset * offset : 0);
    }
    for (int i = 0; i < n; i++) {
        path first = {.count = 1, .share = odds[i] / sum, .forked = n > 1};
        first.lanes[0] = starts[i];
        first.length = town->lanes[starts[i]].length - o->s;
        if (i == 0) p->list[0] = first; /* used if all routes are too unlikely */
        walk(p, first);
    }
    if (!p->count) p->count = 1;
}

/* Returns the intent of a route, based on its total turn. */
static bj_intent path_intent(const bj_town *town, const path *way) {
    int inside = 0;
    double turn = 0;
    for (int i = 0; i < way->count; i++) {
        const bj_road_lane *l = &town->lanes[way->lanes[i]];
        if (l->node < 0) {
            if (inside) break; /* only the first junction counts */
            continue;
        }
        inside = 1;
        turn += town->samples[l->first + l->steps].heading - town->samples[l->first].heading;
    }
    if (!inside) return BJ_INTENT_KEEP;
    /* A route that ends inside a roundabout has no known exit. */
    const bj_road_lane *end = &town->lanes[way->lanes[way->count - 1]];
    if (end->node >= 0 && town->nodes[end->node].control == BJ_CONTROL_ROUNDABOUT)
        return BJ_INTENT_STRAIGHT;
    if (turn > 2.4) return BJ_INTENT_BACK;
    return turn > 0.6 ? BJ_INTENT_LEFT : turn < -0.6 ? BJ_INTENT_RIGHT : BJ_INTENT_STRAIGHT;
}

/* ---------------------------------------------------------------------------------------- speed */

/* Returns the log-odds of stopping at the line or crossing ahead. */
static double stop_logit(const bj_town *town, const bj_observed *o) {
    const double way = o->walked < o->line ? o->walked : o->line;
    const double needed = o->v * o->v / (2 * (way > 1 ? way : 1));
    const double brakes = bj_world_clamp(-o->a, -2, 3);
    double z = -3.2;
    if (o->line < 1e8) {
        const bj_node *node = &town->nodes[o->node];
        z = node->control == BJ_CONTROL_SIGNAL     ? -1.3
            : node->control == BJ_CONTROL_STOP     ? 1.6
            : node->control == BJ_CONTROL_PRIORITY ? (o->minor ? 0.2 : -3.0)
                                                   : -1.2;
    }
    if (o->walked < 1e8) z += o->walked <= o->line ? 3 : 1.5;
    if (o->lead_gap < way && o->lead_v < 1) z += 1.2;
    if (o->v < 0.5) z += 0.4;
    else z += 1.3 * brakes + 0.5 * (needed > 0.8 ? brakes : 0) - 1.5 * (needed > 2.5);
    return z;
}

/* Adds a mode with default values. Returns NULL if it is too unlikely. */
static bj_mode *add_mode(bj_law_state *law, const path *way, bj_intent intent, double weight) {
    int at = law->count;
    if (!(weight >= least)) return NULL;
    if (at == BJ_LAW_MODES) { /* replace the least likely mode */
        at = 0;
        for (int i = 1; i < law->count; i++)
            if (law->modes[i].weight < law->modes[at].weight) at = i;
        if (law->modes[at].weight >= weight) return NULL;
    } else {
        law->count++;
    }
    bj_mode *m = &law->modes[at];
    const bj_observed *o = &law->observed;
    m->intent = intent;
    m->weight = weight;
    memcpy(m->route, way->lanes, sizeof m->route);
    m->route_count = way->count;
    m->stop = 1e9;
    m->hold = 1000;
    m->wanted = bj_world_clamp(o->v + 1.2, 0.8 * o->limit, 1.1 * o->limit);
    m->shift = 0;
    m->green = -1;
    return m;
}

/* ------------------------------------------------------------------------------------ open road */

/* Returns the odds of a lane change to the left (side 1) or right (side -1) relative to staying in
 * the lane. */
static double change_odds(const bj_law_state *law, const bj_town *town, int side) {
    const bj_observed *o = &law->observed;
    const bj_road_lane *lane = &town->lanes[o->lane];
    const int there = side > 0 ? lane->change_left : lane->change_right;
    if (there < 0 || lane->node >= 0 || o->v < 3 || o->line < 2 * o->v + 10) return 0;
    if (!bj_view_lane(&o->view, there)) return 0;
    const double blocked = o->lead_gap < 30 && o->lead_v < o->v - 0.5 ? 1.5 : 0;
    return bj_world_exp(bj_world_clamp(-3.6 + side * (7 * o->drift + o->offset) + blocked, -9, 4));
}

static void add_changes(bj_law_state *law, const path *way, double left, double right) {
    const double width = 3.3; /* distance between lane centers */
    bj_mode *m = add_mode(law, way, BJ_INTENT_CHANGE_LEFT, left);
    if (m) m->shift = width, m->wanted = law->observed.v + 0.5;
    m = add_mode(law, way, BJ_INTENT_CHANGE_RIGHT, right);
    if (m) m->shift = -width, m->wanted = law->observed.v + 0.5;
}

static void open_road(bj_law_state *law, const bj_town *town, const path *way) {
    const bj_observed *o = &law->observed;
    const double slow = bj_world_exp(bj_world_clamp(-3.7 - 2.6 * o->a, -6, 4));
    const double fast = bj_world_exp(
        bj_world_clamp(-3.9 + 2.6 * o->a + 2.5 * (0.8 - o->v / (o->limit + 0.1)), -6, 4));
    const double left = change_odds(law, town, 1), right = change_odds(law, town, -1);
    const double part = way->share / (1 + slow + fast + left + right);
    const bj_intent base = way->forked ? path_intent(town, way) : BJ_INTENT_KEEP;
    bj_mode *m = add_mode(law, way, base, part);
    if (m) m->wanted = o->v < 1.5 ? 0.6 * o->limit : o->v;
    m = add_mode(law, way, BJ_INTENT_SLOW, part * slow);
    if (m) m->wanted = 0.5 * o->v + 0.3;
    m = add_mode(law, way, BJ_INTENT_ACCELERATE, part * fast);
    if (m) m->wanted = 1.1 * (o->limit > o->v ? o->limit : o->v);
    add_changes(law, way, part * left, part * right);
}

/* Adds lane changes before a junction, after which the vehicle goes straight. Returns the
 * probability of staying in the lane. */
static double change_before_junction(bj_law_state *law, const paths *p, double goes) {
    const double left = change_odds(law, p->town, 1), right = change_odds(law, p->town, -1);
    const path *ahead = NULL;
    for (int i = 0; i < p->count; i++)
        if (path_intent(p->town, &p->list[i]) == BJ_INTENT_STRAIGHT &&
            (!ahead || p->list[i].share > ahead->share))
            ahead = &p->list[i];
    if (!ahead) return 1;
    const double part = goes / (1 + left + right);
    add_changes(law, ahead, part * left, part * right);
    return 1 / (1 + left + right);
}

/* ----------------------------------------------------------------------------------------- main */

void bj_law_weigh(bj_law_state *law, const bj_traffic *tr) {
    const bj_town *town = tr->town;
    const bj_observed *o = &law->observed;
    const bj_pose pose = bj_lane_pose(town, o->lane, o->s, o->offset);
    const bj_row now = {pose.x, pose.y, 0, 0, pose.heading};
    paths p = {.town = town, .o = o, .reach = bj_world_clamp(6.6 * o->v + 12, 25, 110)};
    find_paths(&p, town, o, &now);
    law->count = 0;
    const double way = o->walked < o->line ? o->walked : o->line;
    const int stoppable = way < 6 * o->v + 6 && way > o->v * o->v / 9 - 1 && way > -1;
    const double stops = stoppable ? sigmoid(stop_logit(town, o)) : 0;
    const int junction = o->line < 6 * o->v + 12;
    /* Returns the probability that a stopped vehicle continues within the horizon. */
    const bj_node *node = o->node >= 0 ? &town->nodes[o->node] : NULL;
    const double yields = !node || !junction                   ? 0.25
                          : node->control == BJ_CONTROL_SIGNAL ? 0.2
                          : node->control == BJ_CONTROL_STOP   ? 0.6
                                                               : 0.4;
    double most = 0;
    int top = 0;
    for (int i = 0; i < p.count; i++)
        if (p.list[i].share > most) most = p.list[i].share, top = i;
    if (stops > 0) {
        bj_mode *m = add_mode(law, &p.list[top], BJ_INTENT_STOP, stops * (1 - yields));
        if (m) m->stop = way, m->green = junction ? 0 : -1;
    }
    const double stays = junction ? change_before_junction(law, &p, 1 - stops) : 1;
    for (int i = 0; i < p.count; i++) {
        path *r = &p.list[i];
        if (stops > 0) {
            bj_mode *m = add_mode(law, r, BJ_INTENT_YIELD, stops * yields * r->share);
            if (m) {
                m->stop = way;
                m->hold = o->v < 0.5 ? 22 : 12;
                m->green = junction ? 1 : -1;
            }
        }
        r->share *= (1 - stops) * stays;
        if (!junction || r->share <= 0) {
            if (r->share > 0) open_road(law, town, r);
            continue;
        }
        bj_mode *m = add_mode(law, r, path_intent(town, r), r->share);
        if (m) m->green = 1;
    }
    if (!law->count) add_mode(law, &p.list[top], BJ_INTENT_KEEP, 1); /* many routes, none likely */
    double sum = 0;
    for (int i = 0; i < law->count; i++) sum += law->modes[i].weight;
    for (int i = 0; i < law->count; i++) law->modes[i].weight /= sum;
}
