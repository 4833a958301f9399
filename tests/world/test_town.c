/* test_town.c - tests in many towns that lanes are connected, that drivable areas contain the
 * lanes, and that maps can be read. */
#include <stdlib.h>

#include "support/test.h"
#include "world/town.h"

enum { TOWNS = 60 };

static bj_town *town;
static bj_town_text text;
static bj_map_reader *reader;

static double gap(const double a[2], const double b[2]) {
    return fabs(a[0] - b[0]) + fabs(a[1] - b[1]);
}

/* Checks that consecutive lanes have the same end points, tangents and headings. */
static void check_lanes(int number) {
    for (int i = 0; i < town->lane_count; i++) {
        const bj_road_lane *l = &town->lanes[i];
        CHECK_MSG(l->length > 3 && l->length < (town->version > 1 ? 75 : 60),
                  "town %d lane %d: %g m", number, i, l->length);
        CHECK_MSG(l->speed >= 2.5 && l->speed <= 17, "town %d lane %d: %g m/s", number, i,
                  l->speed);
        CHECK_MSG(l->next_count > 0 || l->node < 0, "town %d: turn %d leads nowhere", number, i);
        for (int k = 0; k < l->next_count; k++) {
            const bj_road_lane *n = &town->lanes[l->next[k]];
            CHECK_MSG(gap(l->left[3], n->left[0]) < 1e-9 && gap(l->right[3], n->right[0]) < 1e-9,
                      "town %d: lanes %d and %d do not meet", number, i, l->next[k]);
            const bj_sample *end = &town->samples[l->first + l->steps];
            const bj_sample *start = &town->samples[n->first];
            CHECK_MSG(end->tx * start->tx + end->ty * start->ty > 0.9999,
                      "town %d: a kink between lanes %d and %d", number, i, l->next[k]);
            int back = 0;
            for (int q = 0; q < n->prev_count; q++) back |= n->prev[q] == i;
            CHECK(back);
        }
        if (l->change_left >= 0) {
            const bj_road_lane *o = &town->lanes[l->change_left];
            CHECK(gap(l->left[0], o->right[0]) < 1e-9 && gap(l->left[3], o->right[3]) < 1e-9);
            CHECK(o->change_right == i);
        }
        if (l->left_lane >= 0 && l->change_left < 0 && l->node < 0 && !l->bike) {
            const bj_road_lane *o =
                &town->lanes[l->left_lane]; /* opposite direction, or a left-turn lane */
            CHECK(gap(l->left[0], o->left[3]) < 1e-9 || gap(l->left[0], o->right[0]) < 1e-9);
        }
        for (int c = 0; c < l->crossing_count; c++)
            CHECK(l->crossing_at[c] > -6 && l->crossing_at[c] <= l->length);
    }
}

/* Checks that every lane has a successor, except bicycle lanes and lanes at the border of the map,
 * and that some lane turns into every street that leaves a junction. */
static void check_network(int number) {
    for (int i = 0; i < town->lane_count; i++) {
        const bj_road_lane *l = &town->lanes[i];
        const double *end = l->left[3], *start = l->left[0], border = town->half_size - 1e-9;
        CHECK_MSG(l->next_count || l->bike || fabs(end[0]) > border || fabs(end[1]) > border,
                  "town %d: lane %d ends in the middle", number, i);
        CHECK_MSG(l->prev_count || l->bike || fabs(start[0]) > border || fabs(start[1]) > border ||
                      l->node < 0,
                  "town %d: turn %d comes from nowhere", number, i);
    }
    for (int n = 0; n < town->node_count; n++) {
        const bj_node *node = &town->nodes[n];
        for (int a = 0; a < BJ_TOWN_ARMS && node->control != BJ_CONTROL_ROUNDABOUT; a++) {
            int seen[4] = {0};
            for (int k = 0; k < node->turn_count; k++) {
                const bj_road_lane *turn = &town->lanes[node->turns[k]];
                if (turn->arm == a && !turn->bike) seen[turn->move] = 1;
            }
            for (int move = BJ_MOVE_RIGHT; move <= BJ_MOVE_LEFT; move++) {
                const bj_arm *to = &node->arms[(a + move) % 4];
                const int wanted = node->arms[a].in_count && to->out_count;
                CHECK_MSG(seen[move] == wanted,
                          "town %d, junction %d: "
                          "move %d from arm %d is missing or unexpected",
                          number, n, move, a);
            }
        }
    }
}

/* Checks that computing a pose and projecting it back gives the same position, on the center line
 * and next to it. */
static void check_poses(void) {
    for (int i = 0; i < town->lane_count; i += 3) {
        const bj_road_lane *l = &town->lanes[i];
        for (int k = 1; k < 5; k++) {
            const double s = l->length * k / 5, side = 0.4 * (k - 2);
            const bj_pose p = bj_lane_pose(town, i, s, side);
            double at, offset;
            bj_lane_project(town, i, p.x, p.y, &at, &offset);
            CHECK_NEAR(at, s, 0.02);
            CHECK_NEAR(offset, side, 0.01);
        }
    }
}

/* ---------------------------------------------------------------------------------------- areas */

static double side_of(bj_point a, bj_point b, bj_point p) {
    return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

static double edge_distance(bj_point a, bj_point b, bj_point p) {
    const double dx = b.x - a.x, dy = b.y - a.y, n = dx * dx + dy * dy;
    double t = n > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / n : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(a.x + t * dx - p.x, a.y + t * dy - p.y);
}

/* Returns 1 if a point is inside an area or within the tolerance of the audits. */
static int drivable(const bj_map *map, bj_point p) {
    for (int i = 0; i < map->area_count; i++) {
        const bj_points ring = map->areas[i].ring;
        int inside = 0;
        for (int k = 0; k < ring.count; k++) {
            const bj_point a = ring.at[k], b = ring.at[(k + 1) % ring.count];
            if (edge_distance(a, b, p) <= 0.1) return 1;
            if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x)
                inside = !inside;
        }
        if (inside) return 1;
    }
    return 0;
}

static int rings_are_simple(const bj_map *map) {
    for (int i = 0; i < map->area_count; i++) {
        const bj_points r = map->areas[i].ring;
        if (r.count < 12) return 0;
        for (int a = 0; a < r.count; a++)
            for (int b = a + 2; b < r.count; b++) {
                if (a == 0 && b == r.count - 1) continue;
                const bj_point p = r.at[a], q = r.at[a + 1], s = r.at[b],
                               t = r.at[(b + 1) % r.count];
                if (side_of(p, q, s) * side_of(p, q, t) < 0 &&
                    side_of(s, t, p) * side_of(s, t, q) < 0)
                    return 0;
            }
    }
    return 1;
}

static void check_map(int number) {
    bj_map map;
    bj_error err = {0};
    CHECK_OK(bj_town_write(&text, town, &err), err);
    CHECK_OK(bj_map_read_memory(&map, reader, text.text, text.size, "town", &err), err);
    CHECK(map.lane_count == town->lane_count && map.area_count == town->node_count);
    CHECK(map.crossing_count == town->crossing_count);
    CHECK_MSG(rings_are_simple(&map), "town %d: an area crosses itself", number);
    int outside = 0;
    for (int i = 0; i < map.lane_count; i++) {
        CHECK(map.lanes[i].id == town->lanes[i].id);
        CHECK(map.lanes[i].is_intersection == (town->lanes[i].node >= 0));
        CHECK(map.lanes[i].left.count >= 2 && map.lanes[i].right.count >= 2);
        for (int k = 0; k < map.lanes[i].left.count; k++)
            outside += !drivable(&map, map.lanes[i].left.at[k]);
        for (int k = 0; k < map.lanes[i].right.count; k++)
            outside += !drivable(&map, map.lanes[i].right.at[k]);
    }
    CHECK_MSG(outside == 0, "town %d: %d lane points are outside the drivable areas", number,
              outside);
    for (int i = 0; i < town->bay_count; i++)
        CHECK(drivable(&map, (bj_point){town->bays[i].x, town->bays[i].y}));
}

/* Checks that the crossings of a junction in version 2 reveal how it is controlled. */
static void check_crossings(int number) {
    for (int i = 0; i < town->node_count; i++) {
        const bj_node *n = &town->nodes[i];
        if (n->control == BJ_CONTROL_ROUNDABOUT) continue;
        for (int a = 0; a < BJ_TOWN_ARMS; a++) {
            const int wanted = n->control == BJ_CONTROL_SIGNAL ||
                               (n->control == BJ_CONTROL_PRIORITY && a % 2 != n->major);
            if (n->arms[a].present)
                CHECK_MSG(wanted == (n->arms[a].crossing >= 0), "town %d junction %d arm %d",
                          number, i, a);
        }
    }
}

/* ---------------------------------------------------------------------------------- statistics */

typedef struct tally {
    int controls[4], moves[4], three_way, pockets, one_way, bikes, bays, crossings, lanes[4];
} tally;

static void count(tally *t) {
    for (int i = 0; i < town->node_count; i++) {
        const bj_node *n = &town->nodes[i];
        int arms = 0;
        t->controls[n->control]++;
        for (int a = 0; a < BJ_TOWN_ARMS; a++) {
            arms += n->arms[a].present;
            t->pockets += n->arms[a].pocket;
        }
        CHECK(arms >= 3);
        t->three_way += arms == 3;
        for (int k = 0; k < n->turn_count; k++) t->moves[town->lanes[n->turns[k]].move]++;
    }
    for (int i = 0; i < town->street_count; i++) {
        t->one_way += !town->streets[i].back;
        t->bikes += town->streets[i].bike;
        t->lanes[town->streets[i].forward]++;
    }
    t->bays += town->bay_count;
    t->crossings += town->crossing_count;
}

static void test_same_and_different(void) {
    bj_error err = {0};
    bj_town_text first = {0};
    CHECK_OK(bj_town_make(town, BJ_WORLD_VERSION, 5, "train", 3, &err), err);
    CHECK_OK(bj_town_write(&first, town, &err), err);
    CHECK_OK(bj_town_make(town, BJ_WORLD_VERSION, 5, "val", 3, &err), err);
    CHECK(!strcmp(town->city, "eastwick") || !strcmp(town->city, "farholm"));
    CHECK_OK(bj_town_write(&text, town, &err), err);
    CHECK(text.size != first.size || memcmp(text.text, first.text, text.size));
    CHECK_OK(bj_town_make(town, BJ_WORLD_VERSION, 5, "train", 3, &err), err);
    CHECK_OK(bj_town_write(&text, town, &err), err);
    CHECK(text.size == first.size && !memcmp(text.text, first.text, text.size));
    bj_town_text_free(&first);
}

int main(void) {
    bj_error err = {0};
    tally t = {0};
    town = calloc(1, sizeof *town);
    if (!town || bj_map_reader_create(&reader, &err) != BJ_OK) return 1;
    for (int i = 0; i < 2 * TOWNS; i++) {
        CHECK_OK(bj_town_make(town, 1 + i / TOWNS, 3, "train", i % TOWNS, &err), err);
        if (town->version > 1) check_crossings(i);
        check_lanes(i);
        check_network(i);
        check_poses();
        check_map(i);
        count(&t);
    }
    for (int k = 0; k < 4; k++) {
        CHECK_MSG(t.controls[k] > 0, "no junction with control %d", k);
        CHECK_MSG(t.moves[k] > 0, "no lane with move %d", k);
        CHECK_MSG(k == 0 || t.lanes[k] > 0, "no street with %d lanes", k);
    }
    CHECK(t.three_way > 0 && t.pockets > 0 && t.one_way > 0 && t.bikes > 0);
    CHECK(t.bays > TOWNS && t.crossings > TOWNS);
    test_same_and_different();
    bj_map_reader_free(reader);
    bj_town_text_free(&text);
    free(town);
    return test_report("world.town");
}
