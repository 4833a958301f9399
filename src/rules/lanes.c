/* lanes.c - lane-following: routes through the lane graph, each driven on and stopped.
 *
 * Where    A route starts on every lane whose centerline has a segment within 45 degrees of the
 * focal heading and not more than 0.5 m farther away than the nearest such lane, which must be
 *          within 4 m. Start lanes share the probability equally, and so do the successors at a
 * fork. A route ends when it is as long as the vehicle can travel in 6 s, or where the map ends;
 *          behind the last point it continues straight.
 * Go       constant speed v; below 2 m/s an acceleration of 1.5 m/s^2 from v. Probability 3/4, and
 *          1/2 below 2 m/s.
 * Stop     constant deceleration to a standstill 3 m before the first intersection ahead, if that
 * takes at most 4 m/s^2; otherwise 2 m/s^2. Probability: the remainder. Path     center(s) + offset
 * max(0, 1 - s / 20 m): the vehicle moves from its place to the centerline within 20 m. Set
 * Trajectories within 0.5 m RMS of an earlier one add their probability to it. The six most
 *          probable ones are kept, and their probabilities are divided by their sum.
 *
 * Limits   64 lanes of a route, 64 routes of a scene (depth first, in the order of the map file)
 * Edge     K is 0 if no lane is near enough
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "data/features.h"
#include "rules/rules.h"

enum {
    F = BJ_SUBMISSION_STEPS,
    ROW = BJ_RULE_ROW,
    POINTS = BJ_AV2_POINTS,
    LANES = 64,
    ROUTES = 64,
    MOST = 2 * ROUTES
};

#define DT 0.1             /* s between steps */
#define NEAREST 4.0        /* max distance in m to the nearest start lane */
#define MARGIN 0.5         /* max additional distance in m to other start lanes */
#define ALIGNED 0.70710678 /* cosine of 45 degrees */
#define SLOW 2.0           /* m/s */
#define START 1.5          /* m/s^2 below SLOW */
#define BRAKE 2.0          /* m/s^2 where no stopping place is ahead */
#define BRAKE_MAX 4.0      /* m/s^2 */
#define STOP_GAP 3.0       /* m from the stopping place to the intersection */
#define MERGE 20.0         /* m until the vehicle is on the centerline */
#define SAME 0.5           /* m RMS */

/* A centerline in the scene frame. */
typedef struct line {
    bj_point at[POINTS];
    double along[POINTS]; /* length up to each point */
} line;

struct bj_lane_rule {
    line *lines; /* (lanes of the map) */
    double *length;
    size_t lines_room, length_room;
    int count;
    double p[MOST], y[MOST][ROW];
};

bj_status bj_lane_rule_create(bj_lane_rule **out, bj_error *err) { return BJ_ALLOC(*out, 1, err); }

void bj_lane_rule_free(bj_lane_rule *rule) {
    if (!rule) return;
    bj_free(rule->lines);
    bj_free(rule->length);
    bj_free(rule);
}

/* --------------------------------------------------------------------------------- centerlines */

static void measure(line *l) {
    l->along[0] = 0;
    for (int i = 1; i < POINTS; i++)
        l->along[i] =
            l->along[i - 1] + hypot(l->at[i].x - l->at[i - 1].x, l->at[i].y - l->at[i - 1].y);
}

static bj_status make_lines(bj_lane_rule *rule, const bj_rule_scene *scene, bj_error *err) {
    const bj_map *map = scene->map;
    int longest = 1;
    for (int i = 0; i < map->lane_count; i++) {
        if (map->lanes[i].left.count > longest) longest = map->lanes[i].left.count;
        if (map->lanes[i].right.count > longest) longest = map->lanes[i].right.count;
    }
    BJ_RESERVE(rule->length, rule->length_room, (size_t)longest, err);
    BJ_RESERVE(rule->lines, rule->lines_room, (size_t)map->lane_count, err);
    for (int i = 0; i < map->lane_count; i++) {
        line *const l = &rule->lines[i];
        bj_features_center_line(l->at, map->lanes[i].left, map->lanes[i].right, rule->length);
        for (int k = 0; k < POINTS; k++) {
            const double city[2] = {l->at[k].x, l->at[k].y};
            double local[2];
            bj_from_city(local, city, 1, scene->origin, scene->heading);
            l->at[k] = (bj_point){local[0], local[1]};
        }
        measure(l);
    }
    return BJ_OK;
}

/* The point of a centerline that is nearest to the origin. */
typedef struct place {
    double distance, along;
    bj_point at;
} place;

/* Finds the nearest point on segments that point ahead. The distance is infinite if there is no
 * such segment. */
static place nearest_place(const line *l) {
    place best = {.distance = INFINITY};
    for (int i = 0; i + 1 < POINTS; i++) {
        const bj_point a = l->at[i];
        const double dx = l->at[i + 1].x - a.x, dy = l->at[i + 1].y - a.y, size = hypot(dx, dy);
        if (!(size > 1e-6) || dx / size < ALIGNED) continue;
        const double part = -(a.x * dx + a.y * dy) / (size * size);
        const double u = part < 0 ? 0 : part > 1 ? 1 : part;
        const bj_point at = {a.x + u * dx, a.y + u * dy};
        const double distance = hypot(at.x, at.y);
        if (distance < best.distance) best = (place){distance, l->along[i] + u * size, at};
    }
    return best;
}

/* -------------------------------------------------------------------------------------- routes */

typedef struct route {
    bj_lane_rule *rule;
    const bj_map *map;
    place start;
    double speed, reach; /* reach: distance in m that the vehicle covers in 6 s if it does not
                            brake */
    int lanes[LANES], depth, routes;
} route;

/* Returns the point at distance s along the route from its start. */
static bj_point point_at(const route *r, double s) {
    double left = r->start.along + s;
    const line *l = NULL;
    for (int d = 0; d < r->depth; d++) {
        l = &r->rule->lines[r->lanes[d]];
        if (left <= l->along[POINTS - 1] || d + 1 == r->depth) break;
        left -= l->along[POINTS - 1];
    }
    int i = 0;
    while (i + 2 < POINTS && l->along[i + 1] < left) i++;
    /* Beyond the end of the lane, extend the last segment of nonzero length. */
    while (i > 0 && !(l->along[i + 1] > l->along[i])) i--;
    const double size = l->along[i + 1] - l->along[i],
                 u = size > 0 ? (left - l->along[i]) / size : 0;
    return (bj_point){l->at[i].x + u * (l->at[i + 1].x - l->at[i].x),
                      l->at[i].y + u * (l->at[i + 1].y - l->at[i].y)};
}

/* Returns the distance to the first intersection that the route enters, or infinity. */
static double way_to_intersection(const route *r) {
    double way = -r->start.along;
    for (int d = 0; d + 1 < r->depth; d++) {
        way += r->rule->lines[r->lanes[d]].along[POINTS - 1];
        if (!r->map->lanes[r->lanes[d]].is_intersection &&
            r->map->lanes[r->lanes[d + 1]].is_intersection)
            return way;
    }
    return INFINITY;
}

static double go_way(double speed, double time) {
    return speed * time + (speed < SLOW ? START * time * time / 2 : 0);
}

static double stop_way(double speed, double brake, double time) {
    const double end = speed / brake;
    return time < end ? speed * time - brake * time * time / 2 : speed * end / 2;
}

static double rms(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < ROW; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / F);
}

/* Adds a trajectory. If a nearly identical one exists, adds the probability to that one instead.
 * brake is 0 if the vehicle does not brake. */
static void add(const route *r, double brake, double p) {
    bj_lane_rule *const rule = r->rule;
    double *const y = rule->y[rule->count];
    for (int t = 0; t < F; t++) {
        const double time = (t + 1) * DT;
        const double s = brake > 0 ? stop_way(r->speed, brake, time) : go_way(r->speed, time);
        const bj_point at = point_at(r, s);
        const double offset = s < MERGE ? 1 - s / MERGE : 0;
        y[2 * t] = at.x - offset * r->start.at.x;
        y[2 * t + 1] = at.y - offset * r->start.at.y;
    }
    for (int i = 0; i < rule->count; i++)
        if (rms(rule->y[i], y) <= SAME) {
            rule->p[i] += p;
            return;
        }
    rule->p[rule->count++] = p;
}

static void finish_route(route *r, double p) {
    const double go = r->speed < SLOW ? 1. / 2 : 3. / 4, way = way_to_intersection(r) - STOP_GAP;
    const double needed = r->speed * r->speed / (2 * way);
    r->routes++;
    add(r, 0, go * p);
    add(r, way > 0 && isfinite(way) && needed > 0 && needed <= BRAKE_MAX ? needed : BRAKE,
        (1 - go) * p);
}

static int find_lane(const bj_map *map, int64_t id) {
    for (int i = 0; i < map->lane_count; i++)
        if (map->lanes[i].id == id) return i;
    return -1;
}

/* Appends a lane to the route. `covered` is the distance to the first point of the lane. */
static void enter(route *r, int lane, double covered, double p) {
    if (r->routes == ROUTES) return;
    const bj_lane *const l = &r->map->lanes[lane];
    int present = 0;
    r->lanes[r->depth++] = lane;
    covered += r->rule->lines[lane].along[POINTS - 1];
    for (int i = 0; i < l->successor_count; i++)
        present += find_lane(r->map, l->successors[i]) >= 0;
    if (covered >= r->reach || r->depth == LANES || !present) finish_route(r, p);
    else
        for (int i = 0; i < l->successor_count; i++) {
            const int next = find_lane(r->map, l->successors[i]);
            if (next >= 0) enter(r, next, covered, p / present);
        }
    r->depth--;
}

/* ------------------------------------------------------------------------------------ the rule */

static void keep_heaviest(bj_rule_forecast *out, const bj_lane_rule *rule) {
    uint8_t taken[MOST] = {0};
    double sum = 0;
    for (out->K = 0; out->K < BJ_RULE_MODES && out->K < rule->count; out->K++) {
        int best = -1;
        for (int i = 0; i < rule->count; i++)
            if (!taken[i] && (best < 0 || rule->p[i] > rule->p[best])) best = i;
        taken[best] = 1;
        sum += out->p[out->K] = rule->p[best];
        memcpy(out->y[out->K], rule->y[best], sizeof rule->y[best]);
    }
    for (int k = 0; k < out->K; k++) out->p[k] /= sum;
}

bj_status bj_lane_rule_forecast(bj_rule_forecast *out, bj_lane_rule *rule,
                                const bj_rule_scene *scene, bj_error *err) {
    const float *last = scene->focal + (size_t)49 * BJ_FOCAL_FEATURES;
    const double speed = hypot((double)last[2], (double)last[3]);
    route r = {.rule = rule, .map = scene->map, .speed = speed, .reach = go_way(speed, F * DT)};
    double nearest = INFINITY;
    int starts = 0;
    BJ_TRY(make_lines(rule, scene, err));
    for (int i = 0; i < r.map->lane_count; i++)
        nearest = fmin(nearest, nearest_place(&rule->lines[i]).distance);
    rule->count = out->K = 0;
    if (nearest > NEAREST) return BJ_OK;
    for (int pass = 0; pass < 2; pass++) /* the first pass counts the start lanes */
        for (int i = 0, n = starts; i < r.map->lane_count; i++) {
            const place at = nearest_place(&rule->lines[i]);
            if (at.distance > nearest + MARGIN) continue;
            starts += !pass;
            r.start = at;
            if (pass) enter(&r, i, -at.along, 1. / n);
        }
    keep_heaviest(out, rule);
    return BJ_OK;
}
