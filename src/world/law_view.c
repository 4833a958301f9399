/* law_view.c - determines which parts of the map and the traffic the features contain, for version
 * 2.
 *
 * The features contain the 48 polylines nearest to the focal vehicle, without lane types and
 * markings. They distinguish vehicles and buses from all other road users, but contain no sizes.
 * The rules here use only this information. tests/world/test_view.c computes the same results from
 * the features alone.
 */
#include "world/law.h"

#include <math.h>
#include <string.h>

static const int last = BJ_WORLD_OBSERVED - 1;

void bj_view_make(bj_view *view, const bj_town *town, const bj_row *focal) {
    enum { SHOWN = BJ_AV2_POLYLINES };
    const double origin[2] = {focal->x, focal->y};
    const int count = town->lane_count + town->crossing_count;
    double rank[BJ_TOWN_LANES + BJ_TOWN_CROSSINGS], nearest[SHOWN];
    memset(view, 0, sizeof *view);
    view->reach = 1e300;
    for (int i = 0; i < count && town->version > 1; i++) {
        rank[i] = bj_features_rank(bj_features_nearest_squared(town->lines[i], origin));
        int at = i < SHOWN ? i : SHOWN;
        for (; at > 0 && nearest[at - 1] > rank[i]; at--)
            if (at < SHOWN) nearest[at] = nearest[at - 1];
        if (at < SHOWN) nearest[at] = rank[i];
    }
    if (town->version > 1 && count >= SHOWN) view->reach = nearest[SHOWN - 1];
    for (int i = 0; i < count; i++) {
        if (town->version > 1 && !(rank[i] < view->reach)) continue;
        if (i < town->lane_count) view->lanes[i / 64] |= (uint64_t)1 << i % 64;
        else view->crossings |= (uint32_t)1 << (i - town->lane_count);
    }
}

int bj_view_next(const bj_view *view, const bj_road_lane *lane, int next[BJ_TOWN_SUCC]) {
    int count = 0;
    for (int i = 0; i < lane->next_count; i++)
        if (bj_view_lane(view, lane->next[i])) next[count++] = lane->next[i];
    return count;
}

/* Returns 1 if a point may be within `margin` of the lane. The test may return 1 for points that
 * are farther away. */
static int is_near(const bj_town *town, int lane, const bj_row *r, double margin) {
    const bj_road_lane *l = &town->lanes[lane];
    const bj_sample *middle = &town->samples[l->first + l->steps / 2];
    const double dx = r->x - middle->x, dy = r->y - middle->y;
    const double most = l->length / 2 + l->spacing + margin;
    return dx * dx + dy * dy < most * most;
}

/* Returns the lane with the lowest cost, which is the squared distance plus 20 m^2 (1 - cos(angle
 * to the lane)). */
int bj_view_own_lane(const bj_view *view, const bj_traffic *tr, const bj_row *focal) {
    const bj_town *town = tr->town;
    int best = tr->agents[0].route[tr->agents[0].at];
    if (town->version == 1) return best;
    double least = 1e300, sine, cosine;
    bj_world_sincos(&sine, &cosine, focal->heading);
    for (int i = 0; i < town->lane_count; i++) {
        const double length = town->lanes[i].length;
        double s, offset;
        if (!bj_view_lane(view, i) || town->lanes[i].bike || !is_near(town, i, focal, 40)) continue;
        bj_lane_project(town, i, focal->x, focal->y, &s, &offset);
        const bj_pose p = bj_lane_pose(town, i, s, 0);
        const double beyond = s < 0 ? s : s > length ? s - length : 0;
        const double cost =
            offset * offset + beyond * beyond + 20 * (1 - cosine * p.tx - sine * p.ty);
        if (cost < least) least = cost, best = i;
    }
    return best;
}

/* Returns 1 if the crossing of the arm is in view or, for an arm without a crossing, if its place
 * is in view. */
static int shows(const bj_view *view, const bj_arm *arm, const bj_row *focal) {
    const bj_point ends[2] = {{arm->place[0][0], arm->place[0][1]},
                              {arm->place[1][0], arm->place[1][1]}};
    const double origin[2] = {focal->x, focal->y};
    bj_point line[BJ_AV2_POINTS];
    double scratch[2];
    bj_features_resample(line, (bj_points){ends, 2}, scratch);
    return bj_features_rank(bj_features_nearest_squared(line, origin)) < view->reach;
}

int bj_view_junction(const bj_view *view, const bj_town *town, const bj_row *focal, int lane) {
    const bj_road_lane *l = &town->lanes[lane];
    const bj_node *node = &town->nodes[l->approach];
    if (town->version == 1) return 1;
    if (node->control == BJ_CONTROL_ROUNDABOUT) /* the entry and the ring are in view */
        return l->next_count && bj_view_lane(view, l->next[0]) &&
               bj_view_lane(view, town->lanes[l->next[0]].next[0]);
    const bj_arm *side = &node->arms[(l->arm + 1) % BJ_TOWN_ARMS];
    if (!side->present) side = &node->arms[(l->arm + 3) % BJ_TOWN_ARMS];
    return shows(view, &node->arms[l->arm], focal) && shows(view, side, focal);
}

static int is_vehicle(const bj_agent *a) {
    return a->kind == BJ_KIND_VEHICLE || a->kind == BJ_KIND_BUS;
}

int bj_view_walked(const bj_traffic *tr, const bj_rows *rows, int crossing) {
    if (tr->town->version == 1) return tr->walked >> crossing & 1;
    const double(*edge)[2] = tr->town->crossings[crossing].edge[0];
    const double ex = edge[1][0] - edge[0][0], ey = edge[1][1] - edge[0][1];
    const double size = sqrt(ex * ex + ey * ey), ux = ex / size, uy = ey / size;
    for (int i = 1; i < tr->count; i++) {
        if (!rows[i] || is_vehicle(&tr->agents[i])) continue;
        const bj_row *r = &rows[i][last];
        const double dx = r->x - edge[0][0], dy = r->y - edge[0][1], along = dx * ux + dy * uy;
        double s, c;
        if (along < 0 || along > size || fabs(ux * dy - uy * dx) > 4) continue;
        bj_world_sincos(&s, &c, r->heading);
        if (fabs(c * ux + s * uy) > 0.7) return 1;
    }
    return 0;
}

int bj_view_on_lane(bj_on_lane *out, const bj_traffic *tr, const bj_rows *rows, int i, int lane) {
    const bj_town *town = tr->town;
    const bj_agent *a = &tr->agents[i];
    if (!rows[i]) return 0;
    const bj_row *r = &rows[i][last];
    if (town->version == 1) {
        if (a->mover != BJ_MOVER_DRIVES || a->route[a->at] != lane) return 0;
        bj_lane_project(town, lane, r->x, r->y, &out->s, &out->offset);
        out->rough = a->s;
        return 1;
    }
    if (!is_vehicle(a) || !is_near(town, lane, r, 1)) return 0;
    bj_lane_project(town, lane, r->x, r->y, &out->s, &out->offset);
    if (out->s < 0 || out->s > town->lanes[lane].length || fabs(out->offset) > 0.9) return 0;
    out->rough = out->s;
    double sine, cosine;
    bj_world_sincos(&sine, &cosine, r->heading);
    const bj_pose p = bj_lane_pose(town, lane, out->s, 0);
    return p.tx * cosine + p.ty * sine > 0.5;
}
