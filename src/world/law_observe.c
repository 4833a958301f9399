/* law_observe.c - computes the inputs of the law, see bj_observed in law.h. */
#include "world/law.h"

#include <math.h>

static const int last = BJ_WORLD_OBSERVED - 1;

void bj_law_motion(double *v, double *a, bj_rows rows) {
    /* Fit a line to the speeds along the heading, at times -0.95 .. -0.05 s. */
    double speed = 0, slope = 0;
    for (int k = 0; k < 10; k++) {
        const bj_row *p = &rows[last - 10 + k], *q = p + 1;
        double s, c;
        bj_world_sincos(&s, &c, (p->heading + q->heading) / 2);
        if (fabs(p->heading - q->heading) > 3) bj_world_sincos(&s, &c, q->heading);
        const double step = ((q->x - p->x) * c + (q->y - p->y) * s) * 10, t = -0.95 + 0.1 * k;
        speed += step;
        slope += step * (t + 0.5);
    }
    *a = slope / 0.825; /* sum of (t + 0.5)^2 over the ten times */
    *v = speed / 10 + 0.5 * *a;
    if (*v < 0.15) *v = 0, *a = 0;
}

static void see_leader(bj_observed *o, const bj_traffic *tr, const bj_rows *rows) {
    const bj_town *town = tr->town;
    const bj_road_lane *lane = &town->lanes[o->lane];
    int next[BJ_TOWN_SUCC];
    const int ahead = bj_view_next(&o->view, lane, next) == 1;
    double best = 45;
    for (int i = 1; i < tr->count; i++)
        for (int k = 0; k <= ahead; k++) {
            const double sizes = (tr->agents[i].length + tr->agents[0].length) / 2;
            const double start = k ? lane->length : 0;
            bj_on_lane place;
            if (!bj_view_on_lane(&place, tr, rows, i, k ? next[0] : o->lane)) continue;
            if (!k && place.rough <= o->s) continue;
            const double gap = start + place.rough - o->s - sizes;
            if (gap >= best) continue;
            double a;
            best = gap;
            o->lead_gap = start + place.s - o->s - sizes;
            bj_law_motion(&o->lead_v, &a, rows[i]);
        }
}

/* Finds the stop line and the next occupied crossing, up to the first fork of the lanes. */
static void see_lines(bj_observed *o, const bj_traffic *tr, const bj_rows *rows) {
    const bj_town *town = tr->town;
    const double half = tr->agents[0].length / 2;
    double start = -o->s;
    for (int lane = o->lane, k = 0; k < 6; k++) {
        const bj_road_lane *l = &town->lanes[lane];
        for (int c = 0; c < l->crossing_count; c++) {
            const double at = start + l->crossing_at[c] - half;
            if (at > 0 && at < o->walked && (o->view.crossings >> l->crossing[c] & 1) &&
                bj_view_walked(tr, rows, l->crossing[c]))
                o->walked = at;
        }
        start += l->length;
        if (l->approach >= 0) {
            if (!bj_view_junction(&o->view, town, &rows[0][last], lane)) break;
            o->line = start - half;
            o->node = l->approach;
            const bj_road_lane *from = town->version > 1 ? l : &town->lanes[o->lane];
            o->minor = from->approach == o->node && from->arm % 2 != town->nodes[o->node].major;
            break;
        }
        int next[BJ_TOWN_SUCC];
        if (!bj_view_next(&o->view, l, next) || start > 120) break;
        lane = next[0];
    }
}

void bj_law_observe(bj_observed *o, const bj_traffic *tr, const bj_rows *rows) {
    const bj_town *town = tr->town;
    const bj_agent *focal = &tr->agents[0];
    const bj_row *now = &rows[0][last], *before = now - 3;
    bj_view_make(&o->view, town, now);
    o->lane = bj_view_own_lane(&o->view, tr, now);
    bj_lane_project(town, o->lane, now->x, now->y, &o->s, &o->offset);
    bj_law_motion(&o->v, &o->a, rows[0]);
    o->limit = town->lanes[o->lane].speed;
    const bj_pose middle = town->version > 1 ? bj_lane_pose(town, o->lane, o->s - 0.15 * o->v, 0)
                                             : bj_route_pose(town, focal->route, focal->route_count,
                                                             focal->at, o->s - 0.15 * o->v, 0);
    o->drift =
        o->v < 1 ? 0 : ((now->y - before->y) * middle.tx - (now->x - before->x) * middle.ty) / 0.3;
    o->line = o->walked = o->lead_gap = 1e9;
    o->lead_v = 0;
    o->node = -1;
    o->minor = 0;
    see_lines(o, tr, rows);
    see_leader(o, tr, rows);
}
