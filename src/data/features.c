/* features.c - see features.h. The rule numbers are those in docs/DATA.md.
 *
 * The rows are read twice: first the rows at step 49, which determine the neighbors, then the rows
 * of the selected tracks. Later rows overwrite earlier ones, so the last row of a repeated (track,
 * step) wins.
 */
#include "data/features.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

enum { OBS = BJ_AV2_OBS, FUT = BJ_AV2_FUT, POINTS = BJ_AV2_POINTS, LAST = OBS - 1 };

typedef struct candidate { /* sorted by rank, kind and id, then by input order */
    double rank;
    int kind;
    int64_t id;
    int index; /* index of the track or the polyline; lanes come before crossings */
} candidate;

struct bj_features_maker {
    int64_t *last_row; /* (tracks) row at step 49, or -1 */
    int *slot;         /* (tracks) 0 focal, 1 .. neighbors, -1 unused */
    size_t last_row_room, slot_room;
    double *length; /* cumulative length; has room for the longest boundary so far */
    size_t length_room;
    bj_point (*line)[POINTS]; /* (lanes + crossings) resampled, in city coordinates */
    size_t lines_room;
};

bj_status bj_features_maker_create(bj_features_maker **out, bj_error *err) {
    return BJ_ALLOC(*out, 1, err);
}

void bj_features_maker_free(bj_features_maker *maker) {
    if (!maker) return;
    bj_free(maker->last_row);
    bj_free(maker->slot);
    bj_free(maker->length);
    bj_free(maker->line);
    bj_free(maker);
}

/* ---------------------------------------------------------------------------------------- frame */

typedef struct frame {
    double x, y, heading, c, s;
} frame;

static frame frame_at(const double origin[2], double heading) {
    return (frame){origin[0], origin[1], heading, cos(heading), sin(heading)};
}

static bj_point to_frame(const frame *f, double x, double y) {
    const double dx = x - f->x, dy = y - f->y;
    return (bj_point){f->c * dx + f->s * dy, -f->s * dx + f->c * dy};
}

/* -------------------------------------------------------------------------------------- ranking */

/* Returns the distance as an integer number of tenths of a millimeter. Distances that differ only
 * by rounding, such as those of mirrored boundaries, become equal with every compiler. */
double bj_features_rank(double squared_distance) {
    return floor(1e4 * sqrt(squared_distance) + 0.5);
}

static int comes_before(const candidate *a, const candidate *b) {
    if (a->rank != b->rank) return a->rank < b->rank;
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->id < b->id;
}

/* Inserts c into the sorted list of the `most` nearest candidates. Equal candidates keep their
 * input order. */
static int keep_nearest(candidate *nearest, int count, int most, candidate c) {
    int at = count < most ? count : most;
    while (at > 0 && comes_before(&c, &nearest[at - 1])) at--;
    if (at == most) return count;
    const int moved = (count < most ? count : most - 1) - at;
    memmove(nearest + at + 1, nearest + at, (size_t)moved * sizeof *nearest);
    nearest[at] = c;
    return count < most ? count + 1 : most;
}

/* --------------------------------------------------------------------------------------- tracks */

static int is_vehicle_like(bj_text type) {
    return (type.size == 7 && !memcmp(type.data, "vehicle", 7)) ||
           (type.size == 3 && !memcmp(type.data, "bus", 3));
}

static bj_status fail_track(const bj_scenario *scenario, int track, int64_t step, const char *label,
                            bj_error *err) {
    const bj_text id = scenario->track_id[track];
    return BJ_FAIL(err, BJ_ENONFINITE,
                   "%s: track '%.*s' at step %d: a value does not fit in a float", label,
                   (int)id.size, id.data, (int)step);
}

/* Rounds doubles to floats. Returns 0 if a number does not fit. */
static int to_floats(float *out, const double *values, int count) {
    int fits = 1;
    for (int i = 0; i < count; i++) {
        fits &= fabs(values[i]) <= FLT_MAX; /* false for NaN */
        out[i] = fits ? (float)values[i] : 0.0f;
    }
    return fits;
}

/* Rule 5: selects the neighbors and assigns a slot to every track. */
static void choose_neighbors(bj_features *out, bj_features_maker *maker,
                             const bj_scenario *scenario) {
    candidate nearest[BJ_AV2_NEIGHBORS + 1];
    int count = 0;
    for (int k = 0; k < scenario->tracks; k++) {
        const int64_t row = maker->last_row[k];
        maker->slot[k] = -1;
        if (row < 0 || k == scenario->focal) continue;
        const double dx = scenario->x[row] - out->origin[0], dy = scenario->y[row] - out->origin[1];
        const candidate c = {bj_features_rank(dx * dx + dy * dy), 0, 0, k};
        count = keep_nearest(nearest, count, BJ_AV2_NEIGHBORS, c);
        out->neighbors_available++;
    }
    maker->slot[scenario->focal] = 0;
    for (int i = 0; i < count; i++) {
        out->neighbor_track[i] = nearest[i].index;
        maker->slot[nearest[i].index] = i + 1;
    }
    for (int i = count; i < BJ_AV2_NEIGHBORS; i++) out->neighbor_track[i] = -1;
    out->neighbors = count;
}

/* Rules 3 to 6: fills the states of the focal track and the neighbors. */
static bj_status fill_tracks(bj_features *out, const bj_features_maker *maker,
                             const bj_scenario *scenario, const frame *f, const char *label,
                             bj_error *err) {
    float type[BJ_AV2_NEIGHBORS + 1] = {0};
    for (int i = 0; i < out->neighbors; i++)
        type[i + 1] = is_vehicle_like(scenario->type[out->neighbor_track[i]]) ? 0.0f : 1.0f;
    for (int64_t row = 0; row < scenario->rows; row++) {
        const int slot = maker->slot[scenario->track[row]];
        const int64_t step = scenario->step[row];
        if (slot < 0 || step >= OBS) continue;
        const bj_point p = to_frame(f, scenario->x[row], scenario->y[row]);
        const double vx = scenario->vx[row], vy = scenario->vy[row];
        const double turn = scenario->heading[row] - f->heading;
        const double state[6] = {p.x,       p.y,      f->c * vx + f->s * vy, -f->s * vx + f->c * vy,
                                 cos(turn), sin(turn)};
        float *to = (slot ? out->neighbor[slot - 1] : out->focal) + 7 * step;
        if (!to_floats(to, state, 6))
            return fail_track(scenario, scenario->track[row], step, label, err);
        to[6] = type[slot];
        *(slot ? &out->neighbor_valid[slot - 1] : &out->focal_valid) |= (uint64_t)1 << step;
    }
    return BJ_OK;
}

/* Rule 7: fills the future. Steps without a row are interpolated linearly between rows and keep the
 * last position after the last row. Without any rows, all positions are zero, which is the origin
 * of the frame. */
static bj_status fill_future(bj_features *out, const bj_scenario *scenario, const frame *f,
                             const char *label, bj_error *err) {
    double at[FUT][2];
    int before = -1;         /* last step with a row, counted from 50 */
    double from[2] = {0, 0}; /* position at step `before`; step 49 is the origin of the frame */
    for (int64_t row = 0; row < scenario->rows; row++) {
        const int64_t k = scenario->step[row] - OBS;
        if (scenario->track[row] != scenario->focal || k < 0) continue;
        const bj_point p = to_frame(f, scenario->x[row], scenario->y[row]);
        at[k][0] = p.x;
        at[k][1] = p.y;
        if (!to_floats(out->future, at[k], 2))
            return fail_track(scenario, scenario->focal, OBS + k, label, err);
        out->future_valid |= (uint64_t)1 << k;
    }
    for (int k = 0; k < FUT; k++) {
        if (!(out->future_valid >> k & 1)) continue;
        for (int i = before + 1; i < k; i++)
            for (int axis = 0; axis < 2; axis++)
                at[i][axis] = (at[k][axis] - from[axis]) / (k - before) * (i - before) + from[axis];
        memcpy(from, at[k], sizeof from);
        before = k;
    }
    for (int i = before + 1; i < FUT; i++) memcpy(at[i], from, sizeof from);
    for (int k = 0; k < FUT; k++)
        for (int axis = 0; axis < 2; axis++) out->future[2 * k + axis] = (float)at[k][axis];
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------------ map */

/* Rule 9: resamples the line to ten equidistant points. `length` has room for line.count
 * numbers. */
void bj_features_resample(bj_point out[POINTS], bj_points line, double *length) {
    const bj_point *p = line.at;
    const int m = line.count - 1;
    length[0] = 0;
    for (int i = 0; i < m; i++) {
        const double dx = p[i + 1].x - p[i].x, dy = p[i + 1].y - p[i].y;
        length[i + 1] = length[i] + sqrt(dx * dx + dy * dy);
    }
    int i = 0;
    out[0] = p[0];
    for (int k = 1; k < POINTS - 1; k++) {
        const double u = length[m] * k / (POINTS - 1);
        while (i < m && length[i + 1] <= u) i++;
        if (i == m) { /* the length is zero, so all points are the same */
            out[k] = p[m];
            continue;
        }
        const double part = (u - length[i]) / (length[i + 1] - length[i]);
        out[k].x = p[i].x + part * (p[i + 1].x - p[i].x);
        out[k].y = p[i].y + part * (p[i + 1].y - p[i].y);
    }
    out[POINTS - 1] = p[m];
}

/* Rule 10: computes the center line of a lane. */
void bj_features_center_line(bj_point out[POINTS], bj_points left, bj_points right,
                             double *length) {
    bj_point other[POINTS];
    bj_features_resample(out, left, length);
    bj_features_resample(other, right, length);
    for (int k = 0; k < POINTS; k++) {
        out[k].x = (out[k].x + other[k].x) / 2;
        out[k].y = (out[k].y + other[k].y) / 2;
    }
}

/* Returns the squared distance to the nearest point, or NaN if a squared distance is not finite. */
double bj_features_nearest_squared(const bj_point line[POINTS], const double origin[2]) {
    double best = INFINITY, all = 0;
    for (int k = 0; k < POINTS; k++) {
        const double dx = line[k].x - origin[0], dy = line[k].y - origin[1];
        const double d = dx * dx + dy * dy;
        if (d < best) best = d;
        all += d;
    }
    return isfinite(all) ? best : NAN;
}

/* Rules 10 to 12: fills one selected polyline. */
static int fill_polyline(float out[BJ_AV2_LINE], const bj_point line[POINTS], const frame *f,
                         float intersection, float crosswalk) {
    bj_point p[POINTS], tangent = {0, 0};
    int fits = 1;
    for (int k = 0; k < POINTS; k++) p[k] = to_frame(f, line[k].x, line[k].y);
    for (int k = 0; k < POINTS; k++) {
        if (k < POINTS - 1) { /* the last tangent repeats the previous one */
            const double dx = p[k + 1].x - p[k].x, dy = p[k + 1].y - p[k].y;
            const double size = sqrt(dx * dx + dy * dy);
            tangent = size < 1e-6 ? (bj_point){0, 0} : (bj_point){dx / size, dy / size};
        }
        const double values[4] = {p[k].x, p[k].y, tangent.x, tangent.y};
        fits &= to_floats(out + 6 * k, values, 4);
        out[6 * k + 4] = intersection;
        out[6 * k + 5] = crosswalk;
    }
    return fits;
}

static bj_status fail_polyline(const char *label, int is_crossing, int64_t id, bj_error *err) {
    return BJ_FAIL(err, BJ_ENONFINITE, "%s: %s %lld: coordinates do not fit in a float", label,
                   is_crossing ? "pedestrian crossing" : "lane segment", (long long)id);
}

static bj_status fill_polylines(bj_features *out, const bj_features_maker *maker, const bj_map *map,
                                const frame *f, const char *label, bj_error *err) {
    candidate nearest[BJ_AV2_POLYLINES + 1];
    const int lines = map->lane_count + map->crossing_count;
    int count = 0;
    for (int i = 0; i < lines; i++) {
        const int kind = i >= map->lane_count;
        const bj_lane *lane = kind ? NULL : &map->lanes[i];
        const bj_crossing *crossing = kind ? &map->crossings[i - map->lane_count] : NULL;
        const int64_t id = kind ? crossing->id : lane->id;
        const double squared = bj_features_nearest_squared(maker->line[i], out->origin);
        if (!isfinite(squared)) return fail_polyline(label, kind, id, err);
        const candidate c = {bj_features_rank(squared), kind, id, i};
        count = keep_nearest(nearest, count, BJ_AV2_POLYLINES, c);
    }
    for (int k = 0; k < count; k++) {
        const candidate *c = &nearest[k];
        const float intersection = !c->kind && map->lanes[c->index].is_intersection ? 1.0f : 0.0f;
        if (!fill_polyline(out->polyline[k], maker->line[c->index], f, intersection,
                           (float)c->kind))
            return fail_polyline(label, c->kind, c->id, err);
        out->polyline_id[k] = c->id;
    }
    for (int k = count; k < BJ_AV2_POLYLINES; k++) out->polyline_id[k] = -1;
    out->polylines = count;
    out->polylines_available = lines;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- scene */

bj_status bj_features_prepare(bj_features_maker *maker, const bj_map *map, bj_error *err) {
    int longest = 1;
    for (int i = 0; i < map->lane_count; i++) {
        if (map->lanes[i].left.count > longest) longest = map->lanes[i].left.count;
        if (map->lanes[i].right.count > longest) longest = map->lanes[i].right.count;
    }
    for (int i = 0; i < map->crossing_count; i++)
        if (map->crossings[i].edge.count > longest) longest = map->crossings[i].edge.count;
    BJ_RESERVE(maker->length, maker->length_room, (size_t)longest, err);
    BJ_RESERVE(maker->line, maker->lines_room,
               (size_t)map->lane_count + (size_t)map->crossing_count, err);
    for (int i = 0; i < map->lane_count; i++)
        bj_features_center_line(maker->line[i], map->lanes[i].left, map->lanes[i].right,
                                maker->length);
    for (int i = 0; i < map->crossing_count; i++)
        bj_features_resample(maker->line[map->lane_count + i], map->crossings[i].edge,
                             maker->length);
    return BJ_OK;
}

bj_status bj_features_make(bj_features *out, bj_features_maker *maker, const bj_scenario *scenario,
                           const bj_map *map, const char *label, bj_error *err) {
    BJ_TRY(bj_features_prepare(maker, map, err));
    return bj_features_make_prepared(out, maker, scenario, map, label, err);
}

bj_status bj_features_make_prepared(bj_features *out, bj_features_maker *maker,
                                    const bj_scenario *scenario, const bj_map *map,
                                    const char *label, bj_error *err) {
    const size_t tracks = (size_t)scenario->tracks;
    memset(out, 0, sizeof *out);
    BJ_RESERVE(maker->last_row, maker->last_row_room, tracks, err);
    BJ_RESERVE(maker->slot, maker->slot_room, tracks, err);
    for (int k = 0; k < scenario->tracks; k++) maker->last_row[k] = -1;
    for (int64_t row = 0; row < scenario->rows; row++)
        if (scenario->step[row] == LAST) maker->last_row[scenario->track[row]] = row;

    const int64_t here = maker->last_row[scenario->focal];
    if (here < 0) {
        const bj_text id = scenario->track_id[scenario->focal];
        return BJ_FAIL(err, BJ_EFORMAT, "%s: focal track '%.*s' has no row at step %d", label,
                       (int)id.size, id.data, LAST);
    }
    out->origin[0] = scenario->x[here];
    out->origin[1] = scenario->y[here];
    out->heading = scenario->heading[here];
    const frame f = frame_at(out->origin, out->heading);
    choose_neighbors(out, maker, scenario);
    BJ_TRY(fill_tracks(out, maker, scenario, &f, label, err));
    BJ_TRY(fill_future(out, scenario, &f, label, err));
    return fill_polylines(out, maker, map, &f, label, err);
}
