/* town_map.c - writes the map of a town as JSON in the official layout, with drivable areas.
 *
 * There is one drivable area per junction: the junction and its streets up to the middle of the
 * link to the next junction. An area is a simple counterclockwise ring whose first point is not
 * repeated. Coordinates have two decimals.
 */
#include "world/town.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* ---------------------------------------------------------------------------------------- text */

/* Makes room for `more` bytes. */
static bj_status reserve(bj_town_text *out, size_t more, bj_error *err) {
    if (out->size + more <= out->room) return BJ_OK;
    char *larger;
    const size_t room = 2 * (out->size + more) + 65536;
    BJ_TRY(BJ_ALLOC(larger, room, err));
    if (out->size) memcpy(larger, out->text, out->size);
    bj_free(out->text);
    out->text = larger;
    out->room = room;
    return BJ_OK;
}

void bj_town_text_free(bj_town_text *text) {
    bj_free(text->text);
    *text = (bj_town_text){0};
}

/* The next three functions write into memory that has already been reserved. */
static void put(bj_town_text *out, const char *text) {
    const size_t n = strlen(text);
    memcpy(out->text + out->size, text, n);
    out->size += n;
}

static void put_integer(bj_town_text *out, int64_t value) {
    char digits[24];
    int n = 0;
    uint64_t rest = value < 0 ? (uint64_t)-value : (uint64_t)value;
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) digits[n++] = '-';
    while (n) out->text[out->size++] = digits[--n];
}

/* Writes a number of hundredths in the format of the official files: 12.5, 3.0, -0.04. */
static void put_cents(bj_town_text *out, double value) {
    int64_t cents = (int64_t)floor(value * 100 + 0.5);
    if (cents < 0) {
        out->text[out->size++] = '-';
        cents = -cents;
    }
    put_integer(out, cents / 100);
    out->text[out->size++] = '.';
    out->text[out->size++] = (char)('0' + cents / 10 % 10);
    if (cents % 10) out->text[out->size++] = (char)('0' + cents % 10);
}

enum { POINT_ROOM = 96 };

static void put_point(bj_town_text *out, const bj_town *town, double x, double y) {
    const double z =
        20 + town->slope[0] * (x - town->offset[0]) + town->slope[1] * (y - town->offset[1]);
    put(out, "{\"x\": ");
    put_cents(out, x);
    put(out, ", \"y\": ");
    put_cents(out, y);
    put(out, ", \"z\": ");
    put_cents(out, z);
    put(out, "}");
}

/* Returns 1 if a point must be omitted because it repeats the last or the first point of a line. */
static int repeats(int count, double x, double y, double last_x, double last_y, double first_x,
                   double first_y) {
    if (count && fabs(x - last_x) + fabs(y - last_y) < 0.05) return 1;
    return count > 2 && fabs(x - first_x) + fabs(y - first_y) < 0.05;
}

/* Writes consecutive points. Repeated points are written once. */
typedef struct line {
    bj_town_text *out;
    const bj_town *town;
    int count;
    double x, y, first_x, first_y;
} line;

static bj_status line_add(line *l, double u, double v, bj_error *err) {
    double x, y;
    bj_town_place(l->town, &x, &y, u, v);
    x = bj_world_cents(x), y = bj_world_cents(y);
    if (repeats(l->count, x, y, l->x, l->y, l->first_x, l->first_y)) return BJ_OK;
    BJ_TRY(reserve(l->out, POINT_ROOM, err));
    if (l->count++) put(l->out, ", ");
    else l->first_x = x, l->first_y = y;
    put_point(l->out, l->town, x, y);
    l->x = x, l->y = y;
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- areas */

/* Adds the points of a street's side at offset `w` between two positions, including both ends. */
static bj_status add_side(line *l, const bj_street *s, double u0, double u1, double w,
                          bj_error *err) {
    const int n = (int)(fabs(u1 - u0) / 6) + 1;
    for (int i = 0; i <= n; i++) {
        double p[2];
        bj_street_point(s, p, u0 + (u1 - u0) * i / n, w);
        BJ_TRY(line_add(l, p[0], p[1], err));
    }
    return BJ_OK;
}

/* Adds the end of an area, which runs from curb to curb. */
static bj_status add_end(line *l, const bj_street *s, double u, double w0, double w1,
                         bj_error *err) {
    const int n = (int)(fabs(w1 - w0) / 4) + 1;
    for (int i = 1; i < n; i++) {
        double p[2];
        bj_street_point(s, p, u, w0 + (w1 - w0) * i / n);
        BJ_TRY(line_add(l, p[0], p[1], err));
    }
    return BJ_OK;
}

static bj_status add_corner(line *l, const bj_node *node, int arm, int next, const double from[2],
                            const double to[2], bj_error *err) {
    if (node->control == BJ_CONTROL_ROUNDABOUT) {
        const double a = arm * BJ_PI / 2 + 0.62;
        const double b = (next > arm ? next : next + 4) * BJ_PI / 2 - 0.62;
        const int n = (int)((b - a) / 0.15) + 1;
        for (int i = 0; i <= n; i++) {
            double s, c;
            bj_world_sincos(&s, &c, a + (b - a) * i / n);
            BJ_TRY(line_add(l, node->x + 16.6 * c, node->y + 16.6 * s, err));
        }
        return BJ_OK;
    }
    const int adjacent = (next - arm + 4) % 4 == 1, n = adjacent ? 7 : 8;
    /* The handles are parallel to the curbs, which meet at a right angle. */
    double curve[4][2];
    const double meet[2] = {arm % 2 ? from[0] : to[0], arm % 2 ? to[1] : from[1]};
    for (int k = 0; k < 2; k++) {
        curve[0][k] = from[k];
        curve[1][k] =
            adjacent ? from[k] + 0.6 * (meet[k] - from[k]) : from[k] + (to[k] - from[k]) / 3;
        curve[2][k] = adjacent ? to[k] + 0.6 * (meet[k] - to[k]) : to[k] + (from[k] - to[k]) / 3;
        curve[3][k] = to[k];
    }
    for (int i = 1; i < n; i++) {
        double p[2];
        bj_curve_point(p, curve[0], (double)i / n);
        BJ_TRY(line_add(l, p[0], p[1], err));
    }
    return BJ_OK;
}

static void side_of(const bj_street *s, const bj_arm *arm, double *right, double *left) {
    *right = arm->outward > 0 ? s->edge_right : -s->edge_left;
    *left = arm->outward > 0 ? -s->edge_left : s->edge_right;
}

static bj_status write_area(bj_town_text *out, const bj_town *town, const bj_node *node,
                            bj_error *err) {
    line l = {out, town, 0, 0, 0, 0, 0};
    for (int a = 0; a < BJ_TOWN_ARMS; a++) {
        const bj_arm *arm = &node->arms[a];
        if (!arm->present) continue;
        const bj_street *s = &town->streets[arm->street];
        const double u = a % 2 ? node->y : node->x;
        double right, left, from[2], to[2];
        side_of(s, arm, &right, &left);
        const double near = u + arm->outward * arm->inner, far = u + arm->outward * arm->outer;
        BJ_TRY(add_side(&l, s, near, far, right, err));
        BJ_TRY(add_end(&l, s, far, right, left, err));
        BJ_TRY(add_side(&l, s, far, near, left, err));
        int next = (a + 1) % 4;
        while (!node->arms[next].present) next = (next + 1) % 4;
        const bj_arm *other = &node->arms[next];
        const bj_street *o = &town->streets[other->street];
        double other_right, other_left;
        side_of(o, other, &other_right, &other_left);
        bj_street_point(s, from, near, left);
        bj_street_point(o, to, (next % 2 ? node->y : node->x) + other->outward * other->inner,
                        other_right);
        BJ_TRY(add_corner(&l, node, a, next, from, to, err));
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- lanes */

static const char *mark_name(bj_mark mark) {
    static const char *const names[] = {"NONE",         "SOLID_WHITE",         "DASHED_WHITE",
                                        "SOLID_YELLOW", "DOUBLE_SOLID_YELLOW", "DASHED_YELLOW"};
    return names[mark];
}

int bj_town_boundary(bj_point points[BJ_TOWN_BOUNDARY], const bj_town *town,
                     const bj_road_lane *lane, const double *curve) {
    /* In version 2 the points are dense enough to show where a left-turn lane begins, even if the
     * lane is short. */
    const int fine = lane->node >= 0 || (town->version > 1 && lane->length < 22);
    const int n = (int)(lane->length / (fine ? 2.2 : 7.5)) + 1;
    int count = 0;
    for (int i = 0; i <= n && count < BJ_TOWN_BOUNDARY; i++) {
        double p[2], x, y;
        bj_curve_point(p, curve, (double)i / n);
        bj_town_place(town, &x, &y, p[0], p[1]);
        x = bj_world_cents(x), y = bj_world_cents(y);
        const bj_point last = points[count ? count - 1 : 0];
        if (!repeats(count, x, y, last.x, last.y, points[0].x, points[0].y))
            points[count++] = (bj_point){x, y};
    }
    return count;
}

static bj_status write_boundary(bj_town_text *out, const bj_town *town, const bj_road_lane *lane,
                                const double *curve, bj_error *err) {
    bj_point points[BJ_TOWN_BOUNDARY];
    const int count = bj_town_boundary(points, town, lane, curve);
    BJ_TRY(reserve(out, (size_t)count * POINT_ROOM, err));
    for (int i = 0; i < count; i++) {
        if (i) put(out, ", ");
        put_point(out, town, points[i].x, points[i].y);
    }
    return BJ_OK;
}

void bj_town_make_lines(bj_town *town) {
    bj_point left[BJ_TOWN_BOUNDARY], right[BJ_TOWN_BOUNDARY];
    double scratch[BJ_TOWN_BOUNDARY];
    for (int i = 0; i < town->lane_count; i++) {
        const bj_road_lane *lane = &town->lanes[i];
        const int lefts = bj_town_boundary(left, town, lane, lane->left[0]);
        const int rights = bj_town_boundary(right, town, lane, lane->right[0]);
        bj_features_center_line(town->lines[i], (bj_points){left, lefts},
                                (bj_points){right, rights}, scratch);
    }
    for (int i = 0; i < town->crossing_count; i++) {
        const bj_town_crossing *c = &town->crossings[i];
        for (int e = 0; e < 2; e++) left[e] = (bj_point){c->edge[0][e][0], c->edge[0][e][1]};
        bj_features_resample(town->lines[town->lane_count + i], (bj_points){left, 2}, scratch);
    }
}

static void put_neighbor(bj_town_text *out, const bj_town *town, int lane) {
    if (lane < 0) put(out, "null");
    else put_integer(out, town->lanes[lane].id);
}

static void put_ids(bj_town_text *out, const bj_town *town, const int *lanes, int count) {
    put(out, "[");
    for (int i = 0; i < count; i++) {
        if (i) put(out, ", ");
        put_integer(out, town->lanes[lanes[i]].id);
    }
    put(out, "]");
}

static bj_status write_lane(bj_town_text *out, const bj_town *town, const bj_road_lane *lane,
                            bj_error *err) {
    BJ_TRY(reserve(out, 1024, err));
    put(out, "\"");
    put_integer(out, lane->id);
    put(out, "\": {\"centerline\": [");
    const int stride = lane->node >= 0 ? 2 : 3;
    for (int i = 0; i <= lane->steps;) {
        const bj_sample *p = &town->samples[lane->first + i];
        BJ_TRY(reserve(out, POINT_ROOM, err));
        if (i) put(out, ", ");
        put_point(out, town, bj_world_cents(p->x), bj_world_cents(p->y));
        i = i == lane->steps || i + stride < lane->steps ? i + stride : lane->steps;
    }
    BJ_TRY(reserve(out, 256, err));
    put(out, "], \"id\": ");
    put_integer(out, lane->id);
    put(out, lane->node >= 0 ? ", \"is_intersection\": true" : ", \"is_intersection\": false");
    put(out, lane->bike ? ", \"lane_type\": \"BIKE\"" : ", \"lane_type\": \"VEHICLE\"");
    put(out, ", \"left_lane_boundary\": [");
    BJ_TRY(write_boundary(out, town, lane, lane->left[0], err));
    BJ_TRY(reserve(out, 256, err));
    put(out, "], \"left_lane_mark_type\": \"");
    put(out, mark_name(lane->left_mark));
    put(out, "\", \"left_neighbor_id\": ");
    put_neighbor(out, town, lane->left_lane);
    put(out, ", \"predecessors\": ");
    put_ids(out, town, lane->prev, lane->prev_count);
    put(out, ", \"right_lane_boundary\": [");
    BJ_TRY(write_boundary(out, town, lane, lane->right[0], err));
    BJ_TRY(reserve(out, 512, err));
    put(out, "], \"right_lane_mark_type\": \"");
    put(out, mark_name(lane->right_mark));
    put(out, "\", \"right_neighbor_id\": ");
    put_neighbor(out, town, lane->right_lane);
    put(out, ", \"successors\": ");
    put_ids(out, town, lane->next, lane->next_count);
    put(out, "}");
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- file */

static void put_edge(bj_town_text *out, const bj_town *town, const double edge[2][2]) {
    put(out, "[");
    put_point(out, town, edge[0][0], edge[0][1]);
    put(out, ", ");
    put_point(out, town, edge[1][0], edge[1][1]);
    put(out, "]");
}

bj_status bj_town_write(bj_town_text *out, const bj_town *town, bj_error *err) {
    out->size = 0;
    BJ_TRY(reserve(out, 256, err));
    put(out, "{\"drivable_areas\": {");
    for (int i = 0; i < town->node_count; i++) {
        BJ_TRY(reserve(out, 128, err));
        if (i) put(out, ", ");
        put(out, "\"");
        put_integer(out, town->next_id + i);
        put(out, "\": {\"area_boundary\": [");
        BJ_TRY(write_area(out, town, &town->nodes[i], err));
        BJ_TRY(reserve(out, 128, err));
        put(out, "], \"id\": ");
        put_integer(out, town->next_id + i);
        put(out, "}");
    }
    BJ_TRY(reserve(out, 128, err));
    put(out, "}, \"lane_segments\": {");
    for (int i = 0; i < town->lane_count; i++) {
        if (i) put(out, ", ");
        BJ_TRY(write_lane(out, town, &town->lanes[i], err));
        BJ_TRY(reserve(out, 128, err));
    }
    put(out, "}, \"pedestrian_crossings\": {");
    for (int i = 0; i < town->crossing_count; i++) {
        const bj_town_crossing *c = &town->crossings[i];
        BJ_TRY(reserve(out, 1024, err));
        if (i) put(out, ", ");
        put(out, "\"");
        put_integer(out, c->id);
        put(out, "\": {\"edge1\": ");
        put_edge(out, town, c->edge[0]);
        put(out, ", \"edge2\": ");
        put_edge(out, town, c->edge[1]);
        put(out, ", \"id\": ");
        put_integer(out, c->id);
        put(out, "}");
    }
    BJ_TRY(reserve(out, 16, err));
    put(out, "}}");
    return BJ_OK;
}
