/* town_shape.c - maps the layout plane to city coordinates, and samples the center lines.
 *
 *   x' = x + b0 sin(k0 y + f0)        y' = y + b1 sin(k1 x' + f1)        then rotated and
 *   translated
 *
 * Each of the two steps is invertible, so the mapping is one-to-one for any amount of bending.
 */
#include "world/town.h"

#include <math.h>

void bj_town_place(const bj_town *town, double *x, double *y, double u, double v) {
    double s, c;
    bj_world_sincos(&s, &c, town->wave[0] * v + town->phase[0]);
    u += town->bend[0] * s;
    bj_world_sincos(&s, &c, town->wave[1] * u + town->phase[1]);
    v += town->bend[1] * s;
    *x = town->offset[0] + town->cosine * u - town->sine * v;
    *y = town->offset[1] + town->sine * u + town->cosine * v;
}

void bj_curve_point(double p[2], const double *curve, double t) {
    const double r = 1 - t, a = r * r * r, b = 3 * r * r * t, c = 3 * r * t * t, d = t * t * t;
    for (int k = 0; k < 2; k++)
        p[k] = a * curve[k] + b * curve[2 + k] + c * curve[4 + k] + d * curve[6 + k];
}

/* Computes the lane center at parameter t in city coordinates. */
static void middle(const bj_town *town, const bj_road_lane *lane, double t, double *x, double *y) {
    double l[2], r[2];
    bj_curve_point(l, lane->left[0], t);
    bj_curve_point(r, lane->right[0], t);
    bj_town_place(town, x, y, (l[0] + r[0]) / 2, (l[1] + r[1]) / 2);
}

enum { DENSE = 48 };

static void sample_lane(bj_town *town, bj_road_lane *lane) {
    double at[DENSE + 1], x0, y0;
    const double dx = lane->left[3][0] - lane->left[0][0], dy = lane->left[3][1] - lane->left[0][1];
    const double ex = lane->right[3][0] - lane->right[0][0],
                 ey = lane->right[3][1] - lane->right[0][1];
    const double guess = sqrt(dx * dx + dy * dy) + sqrt(ex * ex + ey * ey); /* twice the length */
    const int dense = lane->node >= 0 ? DENSE / 2 : (int)bj_world_clamp(guess / 3, 6, DENSE);
    at[0] = 0;
    middle(town, lane, 0, &x0, &y0);
    for (int i = 1; i <= dense; i++) {
        double x, y;
        middle(town, lane, (double)i / dense, &x, &y);
        at[i] = at[i - 1] + sqrt((x - x0) * (x - x0) + (y - y0) * (y - y0));
        x0 = x, y0 = y;
    }
    lane->length = at[dense];
    lane->steps = (int)(lane->length / (lane->node >= 0 ? 1.25 : 3)) + 1;
    lane->spacing = lane->length / lane->steps;
    lane->first = town->sample_count;
    if (town->sample_count + lane->steps + 1 > BJ_TOWN_SAMPLES) {
        town->full = 1;
        return;
    }
    double sharpest = 0;
    for (int i = 0, k = 0; i <= lane->steps; i++) {
        const double want = lane->length * i / lane->steps;
        while (k < dense - 1 && at[k + 1] < want) k++;
        const double t = (k + (want - at[k]) / (at[k + 1] - at[k])) / dense;
        bj_sample *p = &town->samples[town->sample_count++];
        double ax, ay, bx, by;
        middle(town, lane, t, &p->x, &p->y);
        middle(town, lane, t - 1e-3, &ax, &ay);
        middle(town, lane, t + 1e-3, &bx, &by);
        const double norm = sqrt((bx - ax) * (bx - ax) + (by - ay) * (by - ay));
        p->tx = (bx - ax) / norm;
        p->ty = (by - ay) / norm;
        if (i == 0) {
            p->heading = bj_world_atan2(p->ty, p->tx);
            continue;
        }
        const bj_sample *q = p - 1;
        const double turn =
            bj_world_atan2(q->tx * p->ty - q->ty * p->tx, q->tx * p->tx + q->ty * p->ty);
        p->heading = q->heading + turn;
        const double bend = fabs(turn) / lane->spacing;
        if (bend > sharpest) sharpest = bend;
    }
    /* Limit the lateral acceleration to 2.2 m/s^2. */
    lane->curve_speed = sharpest > 1e-9 ? sqrt(2.2 / sharpest) : 1e9;
    if (sharpest * lane->speed * lane->speed > 2.2) lane->speed = lane->curve_speed;
    if (lane->speed < 2.5) lane->speed = 2.5;
}

void bj_town_sample(bj_town *town) {
    for (int i = 0; i < town->lane_count && !town->full; i++) sample_lane(town, &town->lanes[i]);
}

bj_pose bj_lane_pose(const bj_town *town, int lane, double s, double offset) {
    const bj_road_lane *l = &town->lanes[lane];
    const bj_sample *first = &town->samples[l->first];
    bj_pose pose;
    double tx, ty;
    if (s <= 0 || s >= l->length) {
        const bj_sample *end = s <= 0 ? first : first + l->steps;
        const double beyond = s <= 0 ? s : s - l->length;
        tx = end->tx, ty = end->ty;
        pose = (bj_pose){end->x + beyond * tx, end->y + beyond * ty, end->heading, 0, 0, 0};
    } else {
        int i = (int)(s / l->spacing);
        if (i >= l->steps) i = l->steps - 1;
        const bj_sample *p = first + i, *q = p + 1;
        const double d = l->spacing, t = s / d - i, r = 1 - t;
        const double h00 = (1 + 2 * t) * r * r, h10 = t * r * r * d, h01 = t * t * (3 - 2 * t),
                     h11 = -t * t * r * d;
        tx = p->tx + t * (q->tx - p->tx);
        ty = p->ty + t * (q->ty - p->ty);
        const double unit = 1.5 - 0.5 * (tx * tx + ty * ty); /* about 1 / length, near 1 */
        tx *= unit, ty *= unit;
        pose.x = h00 * p->x + h10 * p->tx + h01 * q->x + h11 * q->tx;
        pose.y = h00 * p->y + h10 * p->ty + h01 * q->y + h11 * q->ty;
        pose.heading = p->heading + t * (q->heading - p->heading);
        pose.bend = (q->heading - p->heading) / d;
    }
    pose.x -= offset * ty;
    pose.y += offset * tx;
    pose.tx = tx;
    pose.ty = ty;
    return pose;
}

void bj_lane_project(const bj_town *town, int lane, double x, double y, double *s, double *offset) {
    const bj_road_lane *l = &town->lanes[lane];
    const bj_sample *first = &town->samples[l->first];
    double best = 1e300;
    int at = 0;
    for (int i = 0; i <= l->steps; i++) {
        const double dx = x - first[i].x, dy = y - first[i].y, d = dx * dx + dy * dy;
        if (d < best) best = d, at = i;
    }
    /* Newton iteration along the curve, in which each step is the tangential part of the
     * residual. */
    double guess = at * l->spacing;
    for (int k = 0; k < 3; k++) {
        const bj_pose p = bj_lane_pose(town, lane, guess, 0);
        guess += (x - p.x) * p.tx + (y - p.y) * p.ty;
        *offset = (y - p.y) * p.tx - (x - p.x) * p.ty;
    }
    *s = guess;
}
