/* segment.h - squared distance from a point to a segment, in one order of operations.
 *
 *   d = b - a    t = clip((p - a) . d / |d|^2, 0, 1)    r = (p - a) - t d    |r|^2
 *
 * |d|^2 of a segment without length counts as 1, which makes t = 0. Every caller gets the bits of
 * the reference, which computes in double in this order.
 * Tests: tests/audit/test_drivable.c, test_proxy.c
 */
#ifndef BJ_AUDIT_SEGMENT_H
#define BJ_AUDIT_SEGMENT_H

#include <math.h>

static inline double bj_segment_length2(double dx, double dy) {
    const double n2 = dx * dx + dy * dy;
    return n2 > 0 ? n2 : 1;
}

/* w = p - a; n2 from above. */
static inline double bj_segment_distance2(double wx, double wy, double dx, double dy, double n2) {
    double t = (wx * dx + wy * dy) / n2;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const double rx = wx - t * dx, ry = wy - t * dy;
    return rx * rx + ry * ry;
}

/* The largest x with sqrt(x) <= distance, so that squares can be compared without a root. */
static inline double bj_square_limit(double distance) {
    double x = distance * distance;
    while (sqrt(x) > distance) x = nextafter(x, 0);
    while (sqrt(nextafter(x, INFINITY)) <= distance) x = nextafter(x, INFINITY);
    return x;
}

#endif
