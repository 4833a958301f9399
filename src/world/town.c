/* town.c - the layout of a town: streets, junctions, and the lanes between them.
 *
 * One or two streets run along each axis. A street has one to three lanes per direction, or is
 * one-way. It may have bicycle lanes, parking bays, and a median that ends in left-turn lanes. A
 * street may end at another street in a three-way junction. Every junction has at least three arms.
 */
#include "world/town.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { INTERVALS = 3 };

static const double size_half = 130, corner = 7, gutter = 0.6, bay_width = 2.3;
static const double ring_inner = 26;    /* distance between the stop line and the center of a
                                           roundabout */
static const double visible_limit = 12; /* speed limit of every street in version 2, m/s */

/* ------------------------------------------------------------------------------------ building */

int bj_town_add_lane(bj_town *town, const bj_road_lane *lane) {
    if (town->lane_count == BJ_TOWN_LANES) {
        town->full = 1;
        return -1;
    }
    town->lanes[town->lane_count] = *lane;
    town->lanes[town->lane_count].id = town->next_id++;
    return town->lane_count++;
}

void bj_town_connect(bj_town *town, int from, int to) {
    if (from < 0 || to < 0) return;
    bj_road_lane *a = &town->lanes[from], *b = &town->lanes[to];
    if (a->next_count == BJ_TOWN_SUCC || b->prev_count == BJ_TOWN_SUCC) {
        town->full = 1;
        return;
    }
    a->next[a->next_count++] = to;
    b->prev[b->prev_count++] = from;
}

/* ------------------------------------------------------------------------------------- streets */

void bj_street_speeds(const bj_street *s, int *low, int *high) {
    *low = s->forward == 1 ? 8 : 11;
    *high = s->forward == 1 ? 12 : 16;
}

static void draw_street(bj_town *town, bj_street *s, int vertical, double at) {
    bj_rng *rng = &town->rng;
    memset(s, 0, sizeof *s);
    s->vertical = vertical;
    s->at = at;
    s->lane_width = 0.1 * bj_world_integer(rng, 31, 36);
    const int one_way = bj_world_chance(rng, 0.16);
    const double kind = bj_rng_uniform(rng);
    s->forward = kind < 0.45 ? 1 : kind < 0.9 ? 2 : 3;
    if (!one_way) {
        s->back = s->forward;
        if (s->forward < 3 && bj_world_chance(rng, 0.35)) {
            s->turn_pockets = 1;
            s->half_median = 1.6;
        } else if (s->forward > 1 && bj_world_chance(rng, 0.25)) {
            s->half_median = 0.1 * bj_world_integer(rng, 8, 25);
        }
    } else {
        s->half_median = -0.5 * s->forward * s->lane_width;
    }
    s->bike = s->forward < 3 && bj_world_chance(rng, 0.22);
    s->park_right = bj_world_chance(rng, s->forward == 1 ? 0.7 : 0.35);
    s->park_left = bj_world_chance(rng, s->forward == 1 ? 0.6 : 0.3);
    const double side = s->forward * s->lane_width + s->half_median;
    s->edge_right = side + (s->bike ? BJ_TOWN_BIKE : 0) + (s->park_right ? bay_width : 0) + gutter;
    s->edge_left =
        side + (s->bike && !one_way ? BJ_TOWN_BIKE : 0) + (s->park_left ? bay_width : 0) + gutter;
    int low, high;
    bj_street_speeds(s, &low, &high);
    s->speed = bj_world_integer(rng, low, high);
    if (town->version > 1) s->speed = visible_limit;
}

static void draw_place(bj_town *town) {
    bj_rng *rng = &town->rng;
    const double angle = bj_world_uniform(rng, -BJ_PI, BJ_PI);
    bj_world_sincos(&town->sine, &town->cosine, angle);
    for (int i = 0; i < 2; i++) {
        const double length = bj_world_uniform(rng, 190, 420);
        /* Draw the slope of the bend instead of its amplitude, because the slope distorts
         * right-angled corners. */
        const double steep = bj_world_chance(rng, 0.3) ? 0.03 : bj_world_uniform(rng, 0.08, 0.36);
        town->wave[i] = 2 * BJ_PI / length;
        town->bend[i] = steep / town->wave[i];
        town->phase[i] = bj_world_uniform(rng, 0, 2 * BJ_PI);
        town->offset[i] = bj_world_cents(bj_world_uniform(rng, 500, 9000));
        town->slope[i] = bj_world_uniform(rng, -0.03, 0.03);
    }
}

/* -------------------------------------------------------------------------------------- layout */

static void place_nodes(bj_town *town) {
    const int horizontals = town->street_count - town->verticals;
    for (int i = 0; i < town->verticals; i++)
        for (int j = 0; j < horizontals; j++) {
            bj_node *node = &town->nodes[town->node_count++];
            node->vertical = i;
            node->horizontal = town->verticals + j;
            node->x = town->streets[i].at;
            node->y = town->streets[node->horizontal].at;
            for (int a = 0; a < BJ_TOWN_ARMS; a++) {
                bj_arm *arm = &node->arms[a];
                arm->present = 1;
                arm->street = a % 2 ? node->vertical : node->horizontal;
                arm->outward = a < 2 ? 1 : -1;
                arm->bike_in = arm->bike_out = arm->crossing = -1;
            }
        }
}

static int arm_count(const bj_node *node) {
    int n = 0;
    for (int a = 0; a < BJ_TOWN_ARMS; a++) n += node->arms[a].present;
    return n;
}

/* Cumulative thresholds for a uniform random number: roundabout if it is below `round`, signal
 * below `signal`, stop sign below `stop`, otherwise priority. */
typedef struct control_draw {
    double round, signal, stop;
} control_draw;

static control_draw control_draw_of(const bj_town *town, const bj_node *node) {
    const bj_street *v = &town->streets[node->vertical], *h = &town->streets[node->horizontal];
    const int small = v->forward == 1 && h->forward == 1 && v->back && h->back;
    const double signal = v->forward + h->forward > 2 ? 0.8 : 0.65;
    const double round = town->node_count == 1 ? 0.6 : 0.4;
    return (control_draw){small && !v->bike && !h->bike ? round : 0, signal, small ? 0.9 : signal};
}

static void choose_control(bj_town *town, bj_node *node) {
    const bj_street *v = &town->streets[node->vertical], *h = &town->streets[node->horizontal];
    bj_rng *rng = &town->rng;
    const double draw = bj_rng_uniform(rng);
    const control_draw below = control_draw_of(town, node);
    node->control = draw < below.round    ? BJ_CONTROL_ROUNDABOUT
                    : draw < below.signal ? BJ_CONTROL_SIGNAL
                    : draw < below.stop   ? BJ_CONTROL_STOP
                                          : BJ_CONTROL_PRIORITY;
    node->major =
        v->forward > h->forward || (v->forward == h->forward && bj_world_chance(rng, 0.5));
    /* A street that ends at a junction yields. */
    for (int a = 0; a < BJ_TOWN_ARMS; a++)
        if (!node->arms[a].present) node->major = a % 2 == 0;
    const double round = node->control == BJ_CONTROL_ROUNDABOUT;
    node->arms[0].inner = round > 0 ? ring_inner : v->edge_right + corner;
    node->arms[1].inner = round > 0 ? ring_inner : h->edge_left + corner;
    node->arms[2].inner = round > 0 ? ring_inner : v->edge_left + corner;
    node->arms[3].inner = round > 0 ? ring_inner : h->edge_right + corner;
}

/* Lists the junctions along a street in ascending order, at most two. */
static int nodes_of(const bj_town *town, int street, int nodes[2]) {
    int n = 0;
    for (int i = 0; i < town->node_count; i++)
        if (town->nodes[i].vertical == street || town->nodes[i].horizontal == street)
            nodes[n++] = i;
    return n;
}

static void drop_arms(bj_town *town) {
    for (int s = 0; s < town->street_count; s++) {
        int nodes[2];
        const int n = nodes_of(town, s, nodes), axis = town->streets[s].vertical;
        for (int i = 0; i <= n; i++) {
            bj_node *below = i > 0 ? &town->nodes[nodes[i - 1]] : NULL;
            bj_node *above = i < n ? &town->nodes[nodes[i]] : NULL;
            if (!bj_world_chance(&town->rng, below && above ? 0.1 : 0.2)) continue;
            if ((below && arm_count(below) < 4) || (above && arm_count(above) < 4)) continue;
            if (below) below->arms[axis ? 1 : 0].present = 0;
            if (above) above->arms[axis ? 3 : 2].present = 0;
        }
    }
}

static void lay_links(bj_town *town) {
    for (int s = 0; s < town->street_count; s++) {
        int nodes[2];
        const int n = nodes_of(town, s, nodes), axis = town->streets[s].vertical;
        for (int i = 0; i <= n; i++) {
            const int from = i > 0 ? nodes[i - 1] : -1, to = i < n ? nodes[i] : -1;
            bj_arm *start = from >= 0 ? &town->nodes[from].arms[axis ? 1 : 0] : NULL;
            bj_arm *end = to >= 0 ? &town->nodes[to].arms[axis ? 3 : 2] : NULL;
            if ((start && !start->present) || (end && !end->present)) continue;
            const double u0 = from >= 0 ? (axis ? town->nodes[from].y : town->nodes[from].x) : 0;
            const double u1 = to >= 0 ? (axis ? town->nodes[to].y : town->nodes[to].x) : 0;
            bj_link *link = &town->links[town->link_count++];
            *link = (bj_link){s,
                              from,
                              to,
                              start ? u0 + start->inner : -town->half_size,
                              end ? u1 - end->inner : town->half_size,
                              0};
            const double middle = (link->start + link->end) / 2;
            if (start) start->outer = end ? middle - u0 : town->half_size - u0;
            if (end) end->outer = start ? u1 - middle : u1 + town->half_size;
        }
    }
}

static double crossing_share(bj_control control) {
    return control == BJ_CONTROL_SIGNAL ? 0.85 : 0.55;
}

/* Returns 1 if an arm gets a crossing. In version 2, the crossings of a junction reveal how it is
 * controlled: a signal has crossings on all arms, a stop sign has none, and a priority junction has
 * them on the arms that yield. */
static int has_crossing(bj_town *town, const bj_node *node, int arm) {
    const int drawn = bj_world_chance(&town->rng, crossing_share(node->control));
    if (town->version == 1 || node->control == BJ_CONTROL_ROUNDABOUT) return drawn;
    if (node->control == BJ_CONTROL_PRIORITY) return arm % 2 != node->major;
    return node->control == BJ_CONTROL_SIGNAL;
}

static void cross_arms(bj_town *town, int index) {
    bj_node *node = &town->nodes[index];
    for (int a = 0; a < BJ_TOWN_ARMS; a++) {
        bj_arm *arm = &node->arms[a];
        if (!arm->present) continue;
        const bj_street *street = &town->streets[arm->street];
        const double u = a % 2 ? node->y : node->x, near = u + arm->outward * (arm->inner - 4.2);
        bj_town_crossing_edge(town, street, near, arm->place);
        if (has_crossing(town, node, a))
            arm->crossing = bj_town_add_crossing(town, street, near,
                                                 u + arm->outward * (arm->inner - 1), index);
    }
}

bj_control_odds bj_town_control_odds(const bj_town *town, int index) {
    const bj_node *node = &town->nodes[index];
    const bj_street *v = &town->streets[node->vertical], *h = &town->streets[node->horizontal];
    const control_draw below = control_draw_of(town, node);
    bj_control_odds odds = {below.signal - below.round, below.stop - below.signal, 1 - below.stop,
                            v->forward == h->forward ? 0.5 : v->forward > h->forward};
    for (int a = 0; a < BJ_TOWN_ARMS; a++) {
        const bj_arm *arm = &node->arms[a];
        if (!arm->present) {
            odds.vertical = a % 2 == 0;
            continue;
        }
        const double with = crossing_share(BJ_CONTROL_SIGNAL),
                     other = crossing_share(BJ_CONTROL_STOP);
        odds.signal *= arm->crossing >= 0 ? with / other : (1 - with) / (1 - other);
        if (bj_town_back_lane(town, arm) >= 0) odds.signal *= 1 - BJ_TOWN_BACK;
    }
    for (int i = 0; i < node->turn_count; i++) /* only signals have U-turn lanes */
        if (town->lanes[node->turns[i]].move == BJ_MOVE_BACK) odds.stop = odds.priority = 0;
    const double sum = odds.signal + odds.stop + odds.priority;
    odds.signal /= sum, odds.stop /= sum, odds.priority /= sum;
    return odds;
}

/* Registers the crossing of an arm with the lanes that enter or leave the junction there. */
static void note_arm_crossings(bj_town *town) {
    for (int n = 0; n < town->node_count; n++) {
        const bj_node *node = &town->nodes[n];
        for (int a = 0; a < BJ_TOWN_ARMS; a++) {
            const bj_arm *arm = &node->arms[a];
            for (int i = 0; i < arm->in_count; i++)
                bj_town_note_crossing(town, arm->in[i], arm->crossing,
                                      town->lanes[arm->in[i]].length - 0.3);
            for (int i = 0; i < arm->out_count; i++) {
                const bj_road_lane *out = &town->lanes[arm->out[i]];
                for (int k = 0; k < out->prev_count; k++)
                    if (town->lanes[out->prev[k]].node == n)
                        bj_town_note_crossing(town, out->prev[k], arm->crossing,
                                              town->lanes[out->prev[k]].length - 5.2);
            }
        }
    }
}

/* Computes where vehicles stop for a crossing between two junctions, based on the edge of the
 * crossing in the features. */
static void place_crossing_stops(bj_town *town) {
    for (int i = 0; i < town->lane_count; i++) {
        bj_road_lane *l = &town->lanes[i];
        for (int k = 0; k < l->crossing_count; k++) {
            double(*edge)[2] = town->crossings[l->crossing[k]].edge[0];
            const double dx = edge[1][0] - edge[0][0], dy = edge[1][1] - edge[0][1];
            double s = l->length / 2, across = 0;
            for (int step = 0; step < 4; step++) {
                const bj_pose p = bj_lane_pose(town, i, s, 0);
                across = dx * p.ty - dy * p.tx; /* positive along the street, negative against it */
                s -= (dx * (p.y - edge[0][1]) - dy * (p.x - edge[0][0])) / across;
            }
            l->crossing_at[k] = s - 1.2 - (across > 0 ? 0 : 3.2);
        }
    }
}

static const char *draw_city(bj_rng *rng, const char *split) {
    static const char *const train[] = {"aldermoor", "brinkhaven", "corvale", "dunmere"};
    static const char *const val[] = {"eastwick", "farholm"};
    static const char *const test[] = {"graypoint", "hollowford"};
    static const char *const other[] = {"ironbridge", "juniper-bay"};
    if (!strcmp(split, "train")) return train[bj_world_integer(rng, 0, 3)];
    if (!strcmp(split, "val")) return val[bj_world_integer(rng, 0, 1)];
    if (!strcmp(split, "test")) return test[bj_world_integer(rng, 0, 1)];
    return other[bj_world_integer(rng, 0, 1)];
}

bj_status bj_town_make(bj_town *town, int version, uint64_t seed, const char *split, int64_t number,
                       bj_error *err) {
    const uint64_t key = bj_world_hash(seed, bj_world_hash_text(split), (uint64_t)number, 0x70776e);
    memset(town, 0, offsetof(bj_town, lanes)); /* the large arrays that follow are filled below */
    town->lane_count = town->sample_count = town->crossing_count = town->bay_count = town->full = 0;
    town->version = version;
    town->key = key;
    town->rng = bj_rng_seed(key);
    town->next_id = 100000000 + (int64_t)(key % 800000000);
    town->half_size = size_half;
    bj_rng *rng = &town->rng;
    town->city = draw_city(rng, split);
    draw_place(town);
    const double draw = bj_rng_uniform(rng);
    const int verticals = draw < 0.3 ? 1 : 2, horizontals = draw < 0.7 ? 1 : 2;
    town->verticals = verticals;
    for (int i = 0; i < verticals + horizontals; i++) {
        const int vertical = i < verticals, many = vertical ? verticals : horizontals;
        const int k = vertical ? i : i - verticals;
        const double at = many == 1 ? bj_world_uniform(rng, -25, 25)
                                    : (k ? 1 : -1) * bj_world_uniform(rng, 42, 66);
        draw_street(town, &town->streets[town->street_count++], vertical, at);
    }
    place_nodes(town);
    drop_arms(town);
    int round = 0;
    for (int i = 0; i < town->node_count; i++) {
        choose_control(town, &town->nodes[i]);
        round |= town->nodes[i].control == BJ_CONTROL_ROUNDABOUT;
    }
    if (round) /* limit the bend so that a roundabout stays round */
        for (int i = 0; i < 2; i++)
            if (town->bend[i] * town->wave[i] > 0.1) town->bend[i] = 0.1 / town->wave[i];
    lay_links(town);
    for (int i = 0; i < town->link_count; i++) bj_town_build_link(town, i);
    for (int i = 0; i < town->node_count; i++) {
        cross_arms(town, i);
        bj_town_build_junction(town, i);
    }
    bj_town_sample(town);
    if (version > 1 && !town->full) place_crossing_stops(town);
    note_arm_crossings(town);
    bj_town_find_conflicts(town);
    if (version > 1 && !town->full) bj_town_make_lines(town);
    if (town->full)
        return BJ_FAIL(err, BJ_EARG,
                       "simulated world: town %lld of seed %llu is too large for its tables",
                       (long long)number, (unsigned long long)seed);
    return BJ_OK;
}
