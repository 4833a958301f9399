/* law_observe.c - what the law knows of a scene: see bj_observed in law.h. */
#include "world/law.h"

#include <math.h>

static const int last = BJ_WORLD_OBSERVED - 1;

void bj_law_motion(double *v, double *a, bj_rows rows) {
    /* Steps of the way along the heading, at times -0.95 .. -0.05 s: a line through the speeds. */
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
    const bj_agent *focal = &tr->agents[0];
    double best = 45;
    for (int i = 1; i < tr->count; i++) {
        const bj_agent *you = &tr->agents[i];
        if (you->mover != BJ_MOVER_DRIVES || !rows[i]) continue;
        const bj_road_lane *lane = &town->lanes[o->lane];
        double start = 0;
        int found = you->route[you->at] == o->lane && you->s > o->s;
        if (!found && lane->next_count == 1 && you->route[you->at] == lane->next[0])
            found = 1, start = lane->length;
        if (!found) continue;
        const double gap = start + you->s - o->s - (you->length + focal->length) / 2;
        if (gap >= best) continue;
        double s, offset, a;
        bj_lane_project(town, you->route[you->at], rows[i][last].x, rows[i][last].y, &s, &offset);
        best = gap;
        o->lead_gap = start + s - o->s - (you->length + focal->length) / 2;
        bj_law_motion(&o->lead_v, &a, rows[i]);
    }
}

void bj_law_observe(bj_observed *o, const bj_traffic *tr, const bj_rows *rows) {
    const bj_town *town = tr->town;
    const bj_agent *focal = &tr->agents[0];
    const bj_row *now = &rows[0][last], *before = now - 3;
    o->lane = focal->route[focal->at];
    bj_lane_project(town, o->lane, now->x, now->y, &o->s, &o->offset);
    bj_law_motion(&o->v, &o->a, rows[0]);
    o->limit = town->lanes[o->lane].speed;
    const bj_pose middle =
        bj_route_pose(town, focal->route, focal->route_count, focal->at, o->s - 0.15 * o->v, 0);
    o->drift =
        o->v < 1 ? 0 : ((now->y - before->y) * middle.tx - (now->x - before->x) * middle.ty) / 0.3;
    o->line = o->walked = o->lead_gap = 1e9;
    o->lead_v = 0;
    o->node = -1;
    /* The lanes ahead, as far as they do not fork. */
    double start = -o->s;
    for (int lane = o->lane, k = 0; k < 6; k++) {
        const bj_road_lane *l = &town->lanes[lane];
        for (int c = 0; c < l->crossing_count; c++) {
            const double at = start + l->crossing_at[c] - focal->length / 2;
            if ((tr->walked >> l->crossing[c] & 1) && at > 0 && at < o->walked) o->walked = at;
        }
        start += l->length;
        if (l->approach >= 0) {
            o->line = start - focal->length / 2;
            o->node = l->approach;
            break;
        }
        if (!l->next_count || start > 120) break;
        lane = l->next[0];
    }
    see_leader(o, tr, rows);
}
