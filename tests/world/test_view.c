/* test_view.c - tests that the law of version 2 depends only on information in the features.
 *
 * test_blind overwrites everything that the features do not contain and computes the law again,
 * which must be bit-identical. test_decode computes the inputs of the law (lane, limit, stop line,
 * control, occupied crossing, vehicle ahead) from the feature arrays, with code that is independent
 * of the simulator, and compares them.
 */
#include "world_case.h"

enum { SCENES = 60 * BJ_WORLD_TOWN_SCENES, LAST = BJ_WORLD_OBSERVED - 1, POINTS = BJ_AV2_POINTS };

static const uint64_t needed = ((uint64_t)1 << 50) - ((uint64_t)1 << 38); /* steps 38 .. 49 */

static bj_town_text text;
static bj_map_reader *reader;
static bj_features_maker *maker;
static bj_features *features;
static bj_map map;

static void make_features(int64_t i) {
    bj_error err = {0};
    if (i % BJ_WORLD_TOWN_SCENES == 0) {
        make(scene, 51, i, 0);
        CHECK_OK(bj_town_write(&text, town, &err), err);
        CHECK_OK(bj_map_read_memory(&map, reader, text.text, text.size, "town", &err), err);
    } else {
        bj_world_scene_make(scene, town, 51, "train", i, 0);
    }
    CHECK_OK(bj_features_make(features, maker, &scene->scenario, &map, scene->id, &err), err);
}

/* ------------------------------------------------------------------------------------- blind */

static int lane_in_view(int lane) { return bj_view_lane(&scene->law.observed.view, lane); }

/* Overwrites the parts of the map that the features do not contain: lanes and crossings out of
 * view, the control of other junctions, and the layout of the town. */
static void blind_town(bj_town *t) {
    const bj_observed *o = &scene->law.observed;
    memset(t->streets, 0x5a, sizeof t->streets);
    memset(t->links, 0x5a, sizeof t->links);
    for (int i = 0; i < t->lane_count; i++) {
        bj_road_lane *l = &t->lanes[i];
        l->id = 7;
        l->turn = 3;
        l->conflicts = 0x5a5a5a;
        int n = 0;
        for (int k = 0; k < l->next_count; k++)
            if (lane_in_view(l->next[k])) l->next[n++] = l->next[k];
        l->next_count = n;
        if (lane_in_view(i)) continue;
        l->speed = 77;
        l->length = 1;
        l->crossing_count = 0;
        for (int k = 0; k <= l->steps; k++) t->samples[l->first + k] = (bj_sample){1, 2, 1, 0, 0};
    }
    for (int i = 0; i < t->crossing_count; i++)
        if (!(o->view.crossings >> i & 1)) memset(&t->crossings[i], 0, sizeof t->crossings[i]);
    for (int i = 0; i < t->node_count; i++) {
        bj_node *n = &t->nodes[i];
        if (i == o->node || n->control == BJ_CONTROL_ROUNDABOUT) continue;
        n->control = (n->control + 1) % BJ_CONTROL_ROUNDABOUT;
        n->major = !n->major;
    }
}

/* Overwrites the traffic that the features do not contain. `rows` are the rows of the kept
 * neighbors. */
static void blind_traffic(bj_traffic *tr, bj_rows rows[BJ_WORLD_AGENTS]) {
    memset(tr->lights, 0x5a, sizeof tr->lights);
    memset(tr->head, 0x5a, sizeof tr->head);
    tr->walked = ~tr->walked;
    for (int i = 0; i < tr->count; i++) {
        bj_agent *a = &tr->agents[i], blank = {.length = 4.8, .crossing = 1, .s = 3, .v = 4};
        const int vehicle = a->kind == BJ_KIND_VEHICLE || a->kind == BJ_KIND_BUS;
        blank.kind = vehicle ? BJ_KIND_VEHICLE : BJ_KIND_STATIC;
        *a = blank;
        rows[i] = NULL;
    }
    rows[0] = scene->rows[0];
    for (int i = 0; i < features->neighbors; i++)
        if ((features->neighbor_valid[i] & needed) == needed) {
            const int agent = scene->agent_of[features->neighbor_track[i]];
            rows[agent] = scene->rows[agent];
        }
}

static void check_same_law(const bj_law_state *a, const bj_law_state *b) {
    CHECK(a->count == b->count);
    for (int m = 0; m < a->count && a->count == b->count; m++) {
        const bj_mode *p = &a->modes[m], *q = &b->modes[m];
        CHECK(p->weight == q->weight && p->intent == q->intent);
        CHECK(!memcmp(p->mean, q->mean, sizeof p->mean));
        CHECK(!memcmp(p->factor, q->factor, sizeof p->factor));
    }
}

static void test_blind(bj_town *blind, bj_traffic *tr, bj_law_state *law) {
    bj_rows rows[BJ_WORLD_AGENTS];
    *blind = *town;
    *tr = scene->traffic;
    tr->town = blind;
    blind_town(blind);
    blind_traffic(tr, rows);
    bj_law_make(law, tr, rows);
    check_same_law(&scene->law, law);
}

/* ------------------------------------------------------------------------------------ polylines */

typedef struct point {
    double x, y;
} point;

static point at(int line, int k) {
    const float *p = features->polyline[line] + 6 * k;
    return (point){p[0], p[1]};
}

static point along(int line, int k) {
    const float *p = features->polyline[line] + 6 * k;
    return (point){p[2], p[3]};
}

static double dot(point a, point b) { return a.x * b.x + a.y * b.y; }
static double cross(point a, point b) { return a.x * b.y - a.y * b.x; }
static point minus(point a, point b) { return (point){a.x - b.x, a.y - b.y}; }
static double size(point a) { return sqrt(dot(a, a)); }
static int is_turn(int line) { return features->polyline[line][4] > 0.5f; }
static int is_crosswalk(int line) { return features->polyline[line][5] > 0.5f; }

static double reach_of(int line) {
    double least = 1e9;
    for (int k = 0; k < POINTS; k++) least = fmin(least, size(at(line, k)));
    return least;
}

/* Returns 1 if a polyline is nearer than the farthest of the 48 polylines in the features. */
static int in_view(int line) {
    return features->polylines < BJ_AV2_POLYLINES ||
           reach_of(line) < reach_of(BJ_AV2_POLYLINES - 1) - 1e-4;
}

static double length_of(int line) {
    double sum = 0;
    for (int k = 1; k < POINTS; k++) sum += size(minus(at(line, k), at(line, k - 1)));
    return sum;
}

typedef struct place {
    double s, offset, beyond;
    point t;
} place;

/* Returns the nearest position on a polyline, extended straight at its ends. */
static place project(int line, point p) {
    place best = {0};
    double least = 1e300, start = 0;
    for (int k = 0; k + 1 < POINTS; k++) {
        const point a = at(line, k), d = minus(at(line, k + 1), a), t = along(line, k);
        const double length = size(d), way = dot(minus(p, a), t);
        const double inside = fmin(fmax(way, k ? 0 : -1e9), k + 2 < POINTS ? length : 1e9);
        const double offset = cross(t, minus(p, a)), away = hypot(offset, way - inside);
        const double beyond = inside < 0 ? -inside : inside > length ? inside - length : 0;
        if (hypot(away, beyond) < least) {
            least = hypot(away, beyond);
            best = (place){start + inside, offset, beyond, t};
        }
        start += length;
    }
    return best;
}

/* Lists the polylines that start where this one ends. */
static int next_of(int line, int next[BJ_AV2_POLYLINES]) {
    int n = 0;
    for (int j = 0; j < features->polylines; j++)
        if (j != line && !is_crosswalk(j) && in_view(j) &&
            size(minus(at(j, 0), at(line, POINTS - 1))) < 0.02 &&
            dot(along(j, 0), along(line, POINTS - 1)) > 0.85)
            next[n++] = j;
    return n;
}

/* Chooses a successor at a fork: the rightmost lane of a street, or the leftmost lane in a
 * junction, which stays in a roundabout. */
static int go_on(int line) {
    int next[BJ_AV2_POLYLINES];
    const int n = next_of(line, next);
    int best = n ? next[0] : -1;
    for (int i = 1; i < n; i++) {
        const double turn = cross(along(best, 0), minus(at(next[i], 3), at(best, 0))) -
                            cross(along(best, 0), minus(at(best, 3), at(best, 0)));
        if (is_turn(best) ? turn > 0 : turn < 0) best = next[i];
    }
    return best;
}

/* ---------------------------------------------------------------------------------- visibility */

static int own_lane(double *second) {
    double least = 1e300;
    int best = -1;
    *second = 1e300;
    for (int j = 0; j < features->polylines; j++) {
        if (is_crosswalk(j) || !in_view(j)) continue;
        const place p = project(j, (point){0, 0});
        const double cost = p.offset * p.offset + p.beyond * p.beyond + 20 * (1 - p.t.x);
        if (cost < least) *second = least, least = cost, best = j;
        else if (cost < *second) *second = cost;
    }
    *second -= least;
    return best;
}

static double limit_of(int line) {
    double sharpest = 0;
    for (int k = 1; k + 1 < POINTS; k++) {
        const point a = minus(at(line, k), at(line, k - 1)),
                    b = minus(at(line, k + 1), at(line, k));
        sharpest = fmax(sharpest, fabs(atan2(cross(a, b), dot(a, b))) / ((size(a) + size(b)) / 2));
    }
    return fmax(2.5, fmin(12, sqrt(2.2 / sharpest)));
}

static int walks_on(int crosswalk) {
    const point a = at(crosswalk, 0), d = minus(at(crosswalk, POINTS - 1), a);
    const double length = size(d);
    for (int i = 0; i < features->neighbors; i++) {
        const float *now = features->neighbor[i] + 7 * LAST;
        const point p = {(double)now[0] - a.x, (double)now[1] - a.y}, h = {now[4], now[5]};
        if ((features->neighbor_valid[i] & needed) != needed || now[6] < 0.5f) continue;
        const double way = dot(p, d) / length;
        if (way >= 0 && way <= length && fabs(cross(d, p)) / length <= 4 &&
            fabs(dot(h, d)) / length > 0.7)
            return 1;
    }
    return 0;
}

/* Returns the position on a polyline at which a vehicle stops before a crosswalk, or 1e9 if they do
 * not cross. */
static double stop_before(int line, int crosswalk, int approach) {
    const point a = at(crosswalk, 0), d = minus(at(crosswalk, POINTS - 1), a);
    const double length = length_of(line);
    double start = 0;
    for (int k = 0; k + 1 < POINTS; k++) {
        const point p = at(line, k), t = along(line, k);
        const double step = size(minus(at(line, k + 1), p));
        const double most = approach && k + 2 == POINTS ? step + 8 : step;
        const double across = cross(d, t), way = cross(minus(a, p), d) / cross(t, d);
        const double where =
            dot(minus((point){p.x + way * t.x, p.y + way * t.y}, a), d) / dot(d, d);
        if (way >= 0 && way < most && where > 0 && where < 1) {
            const double s = start + way;
            if (is_turn(line)) return s > length - 9 ? length - 5.2 : 1e9;
            return s > length ? length - 0.3 : s - 1.2 - (across > 0 ? 0 : 3.2);
        }
        start += step;
    }
    return 1e9;
}

typedef struct seen {
    double line, walked, gap, lead_v;
    int approach; /* polyline, or -1 */
} seen;

static void see_vehicle(seen *out, int own, double s) {
    int next[BJ_AV2_POLYLINES];
    const int ahead = next_of(own, next) == 1;
    for (int i = 0; i < features->neighbors; i++)
        for (int k = 0; k <= ahead; k++) {
            const int line = k ? next[0] : own;
            const float *now = features->neighbor[i] + 7 * LAST;
            const point h = {now[4], now[5]};
            if ((features->neighbor_valid[i] & needed) != needed || now[6] > 0.5f) continue;
            const place p = project(line, (point){now[0], now[1]});
            if (p.beyond > 0 || fabs(p.offset) > 0.9 || dot(h, p.t) <= 0.5) continue;
            if (!k && p.s <= s) continue;
            const double gap = (k ? length_of(own) : 0) + p.s - s - 4.8;
            if (gap >= 45 || gap >= out->gap) continue;
            bj_row rows[BJ_WORLD_OBSERVED];
            double a;
            for (int t = 0; t < BJ_WORLD_OBSERVED; t++) {
                const float *r = features->neighbor[i] + 7 * t;
                rows[t] = (bj_row){r[0], r[1], 0, 0, atan2((double)r[5], (double)r[4])};
            }
            out->gap = gap;
            bj_law_motion(&out->lead_v, &a, rows);
        }
}

static seen look(int own) {
    seen out = {1e9, 1e9, 1e9, 0, -1};
    const double s = project(own, (point){0, 0}).s;
    double start = -s;
    for (int line = own, k = 0; k < 6 && line >= 0; k++) {
        const int next = go_on(line), approach = !is_turn(line) && next >= 0 && is_turn(next);
        for (int j = 0; j < features->polylines; j++) {
            if (!is_crosswalk(j) || !in_view(j)) continue;
            const double stop = start + stop_before(line, j, approach) - 2.4;
            if (stop > 0 && stop < out.walked && walks_on(j)) out.walked = stop;
        }
        start += length_of(line);
        if (approach) {
            out.line = start - 2.4;
            out.approach = line;
            break;
        }
        if (start > 120) break;
        line = next;
    }
    if (out.walked > 1e8) out.walked = 1e9;
    see_vehicle(&out, own, s);
    return out;
}

/* Returns how the junction after an approach is controlled, and whether the approach yields. */
static bj_control control_of(int approach, int *minor) {
    const point end = at(approach, POINTS - 1), t = along(approach, POINTS - 1);
    int next[BJ_AV2_POLYLINES], mine = 0, side = 0;
    const int inner = go_on(approach), n = next_of(inner, next);
    *minor = 0;
    for (int i = 0; i < n; i++)
        if (is_turn(next[i])) return BJ_CONTROL_ROUNDABOUT;
    for (int j = 0; j < features->polylines; j++) {
        if (!is_crosswalk(j) || !in_view(j)) continue;
        const point d = minus(at(j, POINTS - 1), at(j, 0));
        const point middle = {(at(j, 0).x + at(j, POINTS - 1).x) / 2 - end.x,
                              (at(j, 0).y + at(j, POINTS - 1).y) / 2 - end.y};
        const point ahead = {end.x + 4.2 * t.x, end.y + 4.2 * t.y};
        int inside = 0; /* the lanes of the junction end next to its crosswalks */
        for (int k = 0; k < features->polylines; k++)
            if (!is_crosswalk(k) && is_turn(k))
                for (int e = 0; e < POINTS; e += POINTS - 1) {
                    const place p = project(j, at(k, e));
                    inside |= p.beyond <= 0 && fabs(p.offset) < 9;
                }
        if (!inside) continue;
        const double turn = fabs(dot(d, t)) / size(d);
        const place own = project(j, ahead);
        if (turn < 0.7) mine |= own.beyond <= 0 && fabs(own.offset) < 4;
        else side |= dot(middle, t) > -5 && dot(middle, t) < 55 && fabs(cross(t, middle)) < 45;
    }
    *minor = mine && !side;
    return mine && side     ? BJ_CONTROL_SIGNAL
           : !mine && !side ? BJ_CONTROL_STOP
                            : BJ_CONTROL_PRIORITY;
}

/* ------------------------------------------------------------------------------------- compare */

typedef struct tally {
    int lanes, limits, lines, controls, walks, leaders; /* wrong results */
    int shown, classes[5], walked, led;                 /* number of cases */
} tally;

static int near(double a, double b, double tolerance) {
    return a > 1e8 || b > 1e8 ? (a > 1e8) == (b > 1e8) : fabs(a - b) < tolerance;
}

static void check_view(void) {
    const bj_view *view = &scene->law.observed.view;
    int lanes = 0, shown = 0;
    for (int j = 0; j < features->polylines; j++) {
        int found = -1;
        for (int i = 0; i < town->lane_count; i++)
            if (town->lanes[i].id == features->polyline_id[j]) found = lane_in_view(i);
        for (int i = 0; i < town->crossing_count; i++)
            if (town->crossings[i].id == features->polyline_id[j]) found = view->crossings >> i & 1;
        CHECK(found == in_view(j));
        shown += found;
    }
    for (int i = 0; i < town->lane_count; i++) lanes += lane_in_view(i);
    for (int i = 0; i < town->crossing_count; i++) lanes += view->crossings >> i & 1;
    CHECK(lanes == shown); /* the features contain everything in view */
}

static void test_decode(int64_t number, tally *t) {
    const bj_observed *o = &scene->law.observed;
    double second;
    check_view();
    const int own = own_lane(&second);
    if (own < 0 || features->polyline_id[own] != town->lanes[o->lane].id) {
        t->lanes += second > 0.15; /* near a fork both lanes are correct */
        return;
    }
    t->shown++;
    if (!near(limit_of(own), o->limit, 0.3 * o->limit)) {
        t->limits++;
        printf("scene %lld: limit %.2f, law %.2f\n", (long long)number, limit_of(own), o->limit);
    }
    const seen s = look(own);
    if (o->node >= 0) {
        const bj_node *node = &town->nodes[o->node];
        int minor = 0;
        t->classes[node->control + (node->control == BJ_CONTROL_PRIORITY && o->minor ? 2 : 0)]++;
        if (!near(s.line, o->line, 0.4)) {
            t->lines++;
            printf("scene %lld: line %.2f, law %.2f\n", (long long)number, s.line, o->line);
        } else if (control_of(s.approach, &minor) != node->control ||
                   (node->control == BJ_CONTROL_PRIORITY && minor != o->minor)) {
            t->controls++;
            printf("scene %lld: control %d %d, law %d %d\n", (long long)number,
                   control_of(s.approach, &minor), minor, node->control, o->minor);
        }
    }
    t->walked += o->walked < 1e8;
    if (!near(s.walked, o->walked, 0.8)) {
        t->walks++;
        printf("scene %lld: walked %.2f, law %.2f\n", (long long)number, s.walked, o->walked);
    }
    t->led += o->lead_gap < 1e8;
    if (!near(s.gap, o->lead_gap, 0.4) || !near(s.lead_v, o->lead_v, 0.05)) {
        t->leaders++;
        printf("scene %lld: gap %.2f %.2f, law %.2f %.2f\n", (long long)number, s.gap, s.lead_v,
               o->lead_gap, o->lead_v);
    }
}

int main(void) {
    bj_error err = {0};
    tally t = {0};
    case_open();
    features = calloc(1, sizeof *features);
    bj_town *blind = calloc(1, sizeof *blind);
    bj_traffic *tr = calloc(1, sizeof *tr);
    bj_law_state *law = calloc(1, sizeof *law);
    if (!features || !blind || !tr || !law) return 1;
    CHECK_OK(bj_map_reader_create(&reader, &err), err);
    CHECK_OK(bj_features_maker_create(&maker, &err), err);
    for (int64_t i = 0; i < SCENES; i++) {
        make_features(i);
        test_blind(blind, tr, law);
        test_decode(i, &t);
    }
    /* Every class must occur, nothing may be decoded incorrectly, and almost no lane may be
     * ambiguous. */
    CHECK_MSG(t.lanes + t.limits + t.lines + t.controls + t.walks + t.leaders == 0,
              "decoded incorrectly: %d lanes, %d limits, %d lines, "
              "%d controls, %d walks, %d leaders",
              t.lanes, t.limits, t.lines, t.controls, t.walks, t.leaders);
    CHECK_MSG(t.shown > 0.99 * SCENES, "lane found in %d of %d", t.shown, SCENES);
    for (int k = 0; k < 5; k++) CHECK_MSG(t.classes[k] > 40, "%d of class %d", t.classes[k], k);
    CHECK_MSG(t.walked > 100 && t.led > 400, "walked %d, led %d", t.walked, t.led);
    bj_features_maker_free(maker);
    bj_map_reader_free(reader);
    bj_town_text_free(&text);
    free(features);
    free(blind);
    free(tr);
    free(law);
    case_close();
    return test_report("world.view");
}
