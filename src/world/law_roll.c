/* law_roll.c - computes the mean trajectory and the noise of a mode, and draws from the law.
 *
 * The mean is a simulation of the focal vehicle along the mode's route, together with up to three
 * vehicles ahead of it, starting from the observed state. The noise changes the distance traveled
 * and the lateral position. T and N are tangent and normal of the mean, and S is the distance
 * traveled since step 49:
 *
 *   factor 0   T 0.055 k S smooth(t / 2.5 s)
 *   factor 1   T 0.035 k S smooth(t / 2 s) cos(pi t / 6 s)
 *   factor 2   N 0.28 m smooth(S / 25 m)
 *   factor 3   N 0.12 m smooth(S / 15 m) sin(2 pi t / 6 s)
 *
 * k <= 1 keeps the spread below a third of the smallest gap to the vehicle ahead.
 */
#include "world/law.h"

#include <math.h>
#include <string.h>

static const double dt = 0.1;
static const int last = BJ_WORLD_OBSERVED - 1;

typedef struct car {
    int agent;
    double way, v, a, length, wanted; /* way: distance from the start of the route */
    double acceleration, braking, headway, offset;
} car;

typedef struct road {
    const bj_town *town;
    const int *lanes;
    int count;
    double start[BJ_WORLD_ROUTE + 1]; /* distance at which a lane starts */
} road;

static int lane_at(const road *r, double way) {
    int k = 0;
    while (k + 1 < r->count && way > r->start[k + 1]) k++;
    return k;
}

/* Returns the desired speed, limited by the speed limits here and ahead. */
static double speed_limit(const road *r, double way, double wanted) {
    for (int k = lane_at(r, way); k < r->count && r->start[k] < way + 60; k++) {
        const double ahead = r->start[k] - way;
        double limit = r->town->lanes[r->lanes[k]].speed * 1.08;
        if (ahead > 0) limit = sqrt(limit * limit + 2 * 1.5 * ahead);
        if (limit < wanted) wanted = limit;
    }
    return wanted;
}

/* Finds the vehicles ahead on the route, nearest first. */
static int find_leaders(car *cars, const road *r, double focal_way, const bj_traffic *tr,
                        const bj_rows *rows) {
    int n = 0;
    for (int i = 1; i < tr->count; i++) {
        const bj_agent *a = &tr->agents[i];
        if (a->kind == BJ_KIND_CYCLIST) continue;
        for (int k = 0; k < r->count; k++) {
            bj_on_lane place;
            if (!bj_view_on_lane(&place, tr, rows, i, r->lanes[k])) continue;
            const double rough = r->start[k] + place.rough;
            if (rough <= focal_way || rough > focal_way + 90) break;
            car c = {.agent = i,
                     .way = r->start[k] + place.s,
                     .length = a->length,
                     .acceleration = 1.6,
                     .braking = 2,
                     .headway = 1.2,
                     .offset = place.offset};
            bj_law_motion(&c.v, &c.a, rows[i]);
            c.wanted = c.v + 2 > 6 ? c.v + 2 : 6;
            int at = n < BJ_LAW_LEADERS ? n++ : BJ_LAW_LEADERS;
            if (at == BJ_LAW_LEADERS && cars[at - 1].way < c.way) break;
            if (at == BJ_LAW_LEADERS) at--;
            for (; at > 0 && cars[at - 1].way > c.way; at--) cars[at] = cars[at - 1];
            cars[at] = c;
            break;
        }
    }
    return n;
}

/* Advances a vehicle by one step. `stop` is the distance to the stop line along the route, or 1e9
 * if the vehicle may pass it. */
static void advance(car *c, const road *r, double gap, double ahead_v, double stop) {
    const double line = stop - c->way - c->length / 2;
    if (line < 1e8 && line > -1 && line + 1 < gap) gap = line + 1, ahead_v = 0;
    const double want = speed_limit(r, c->way, c->wanted);
    const double a =
        bj_idm(c->v, want, gap, c->v - ahead_v, c->acceleration, c->braking, c->headway);
    c->a += 0.35 * (a - c->a);
    if (a < -3) c->a = a;
    double v = c->v + c->a * dt;
    if (v < 0.02 && c->a <= 0) v = 0;
    if (v < 0) v = 0;
    c->way += 0.5 * (c->v + v) * dt;
    c->v = v;
}

static void note(bj_script *script, const road *r, const car *c, int step) {
    const int k = lane_at(r, c->way);
    script->lane[step] = r->lanes[k];
    script->s[step] = c->way - r->start[k];
    script->v[step] = c->v;
}

static void fill_factors(bj_mode *m, const double *way, double tangent[BJ_LAW_STEPS][2],
                         double narrowest) {
    const double end = way[BJ_LAW_STEPS - 1];
    double k = narrowest < 1e8 ? 0.33 * narrowest / (0.055 * end + 0.05) : 1;
    k = bj_world_clamp(k, 0.05, 1);
    /* Compute cos and sin of pi t / 6 s by repeated rotation. */
    double s0, c0, s1 = 0, c1 = 1;
    bj_world_sincos(&s0, &c0, BJ_PI * dt / 6);
    for (int t = 0; t < BJ_LAW_STEPS; t++) {
        const double tx = tangent[t][0], ty = tangent[t][1], time = dt * (t + 1);
        const double turned = c1 * c0 - s1 * s0;
        s1 = s1 * c0 + c1 * s0;
        c1 = turned;
        const double s2 = 2 * s1 * c1;
        const double shape[BJ_LAW_FACTORS] = {0.055 * k * way[t] * bj_world_smooth(time / 2.5),
                                              0.035 * k * way[t] * bj_world_smooth(time / 2) * c1,
                                              0.28 * bj_world_smooth(way[t] / 25),
                                              0.12 * bj_world_smooth(way[t] / 15) * s2};
        for (int f = 0; f < BJ_LAW_FACTORS; f++) {
            m->factor[f][t][0] = shape[f] * (f < 2 ? tx : -ty);
            m->factor[f][t][1] = shape[f] * (f < 2 ? ty : tx);
        }
    }
}

void bj_law_roll(bj_mode *m, const bj_observed *o, const bj_traffic *tr, const bj_rows *rows) {
    const bj_agent *focal = &tr->agents[0];
    const bj_row *now = &rows[0][last];
    road r = {tr->town, m->route, m->route_count, {0}};
    for (int i = 0; i < r.count; i++)
        r.start[i + 1] = r.start[i] + tr->town->lanes[r.lanes[i]].length;
    double begin, offset;
    bj_lane_project(tr->town, m->route[0], now->x, now->y, &begin, &offset);
    car cars[1 + BJ_LAW_LEADERS] = {{.agent = 0,
                                     .way = begin,
                                     .v = o->v,
                                     .a = bj_world_clamp(o->a, -3, 2),
                                     .length = focal->length,
                                     .wanted = m->wanted,
                                     .acceleration = 1.7,
                                     .braking = 2,
                                     .headway = 1.2}};
    const int n = 1 + find_leaders(cars + 1, &r, begin, tr, rows);
    const double line = begin + m->stop + focal->length / 2;
    /* Approach the center of the current or the next lane like a critically damped spring. */
    const double tau = m->shift < 0 || m->shift > 0 ? 1.0 : 0.9;
    const double fade = bj_world_exp(-dt / tau), away = offset - m->shift;
    double decay = 1, way[BJ_LAW_STEPS], tangent[BJ_LAW_STEPS][2], narrowest = 1e9;
    int waited = 0;
    for (int i = 0; i <= BJ_LAW_LEADERS; i++) m->scripts[i].agent = i < n ? cars[i].agent : -1;
    for (int t = 0; t < BJ_LAW_STEPS; t++) {
        if (cars[0].v < 0.4 && line - cars[0].way < 9) waited++;
        const double stop = m->stop < 1e8 && waited < m->hold ? line : 1e9;
        for (int i = n - 1; i >= 0; i--) {
            const double gap = i + 1 < n ? cars[i + 1].way - cars[i].way -
                                               (cars[i].length + cars[i + 1].length) / 2
                                         : 1e9;
            /* Leaders stop at the same line unless they have passed it or are too fast to stop. */
            const double room = line - cars[i].way - cars[i].length / 2;
            const int held = i == 0 || room > cars[i].v * cars[i].v / 9;
            if (i == 0 && gap < narrowest) narrowest = gap > 0.3 ? gap : 0.3;
            advance(&cars[i], &r, gap, i + 1 < n ? cars[i + 1].v : 0, held ? stop : 1e9);
        }
        const double time = dt * (t + 1);
        decay *= fade;
        const double moving = bj_world_clamp((cars[0].way - begin) / (0.5 + time), 0, 1);
        /* A standing vehicle does not move sideways. */
        const double side = m->shift + (away + (o->drift + away / tau) * time) * decay;
        const double kept = offset + (side - offset) * moving;
        const bj_pose p = bj_route_pose(tr->town, r.lanes, r.count, 0, cars[0].way, kept);
        m->mean[t][0] = p.x;
        m->mean[t][1] = p.y;
        m->heading[t] = p.heading;
        m->speed[t] = cars[0].v;
        tangent[t][0] = p.tx, tangent[t][1] = p.ty;
        way[t] = cars[0].way - begin;
        for (int i = 0; i < n; i++) note(&m->scripts[i], &r, &cars[i], BJ_WORLD_OBSERVED + t);
        for (int i = 1; i < n; i++) {
            const bj_pose q =
                bj_route_pose(tr->town, r.lanes, r.count, 0, cars[i].way, cars[i].offset);
            m->leader_path[i - 1][t] =
                (bj_motion){q.x, q.y, q.heading, cars[i].v * q.tx, cars[i].v * q.ty};
        }
    }
    fill_factors(m, way, tangent, narrowest);
}

/* ------------------------------------------------------------------------------------ the whole */

/* Returns the root mean square distance between the means of two modes. */
static double apart(const bj_mode *a, const bj_mode *b) {
    double sum = 0;
    for (int t = 0; t < BJ_LAW_STEPS; t++) {
        const double dx = a->mean[t][0] - b->mean[t][0], dy = a->mean[t][1] - b->mean[t][1];
        sum += dx * dx + dy * dy;
    }
    return sqrt(sum / BJ_LAW_STEPS);
}

void bj_law_make(bj_law_state *law, const bj_traffic *tr, const bj_rows *rows) {
    bj_law_observe(&law->observed, tr, rows);
    bj_law_weigh(law, tr);
    int n = 0;
    for (int i = 0; i < law->count; i++) {
        bj_mode *m = &law->modes[i];
        bj_law_roll(m, &law->observed, tr, rows);
        /* Modes whose means are nearly equal over six seconds are merged. */
        int same = -1;
        for (int k = 0; k < n && same < 0; k++)
            if (apart(m, &law->modes[k]) < 0.5) same = k;
        if (same < 0) {
            if (n != i) law->modes[n] = *m;
            n++;
            continue;
        }
        const double sum = law->modes[same].weight + m->weight;
        /* Version 2 keeps the first of two merged modes, so that distinct modes remain distinct. */
        if (tr->town->version == 1 && m->weight > law->modes[same].weight) law->modes[same] = *m;
        law->modes[same].weight = sum;
    }
    law->count = n;
    /* Sort by weight, most likely first. The sort is stable. */
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && law->modes[k].weight > law->modes[k - 1].weight; k--) {
            const bj_mode swap = law->modes[k];
            law->modes[k] = law->modes[k - 1];
            law->modes[k - 1] = swap;
        }
}

int bj_law_draw(const bj_law_state *law, bj_rng *rng, double smooth[BJ_LAW_STEPS][2]) {
    double u = bj_rng_uniform(rng), z[BJ_LAW_FACTORS];
    int mode = 0;
    for (; mode + 1 < law->count; mode++)
        if ((u -= law->modes[mode].weight) < 0) break;
    const bj_mode *m = &law->modes[mode];
    for (int f = 0; f < BJ_LAW_FACTORS; f++) z[f] = bj_world_normal(rng);
    for (int t = 0; t < BJ_LAW_STEPS; t++)
        for (int k = 0; k < 2; k++) {
            smooth[t][k] = m->mean[t][k];
            for (int f = 0; f < BJ_LAW_FACTORS; f++) smooth[t][k] += z[f] * m->factor[f][t][k];
        }
    return mode;
}
