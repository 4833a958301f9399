/* segment.h - squared distance from a point to a segment, with a fixed order of operations.
 *
 *   d = b - a    t = clip((p - a) . d / |d|^2, 0, 1)    r = (p - a) - t d    |r|^2
 *
 * For a segment of length zero, |d|^2 is set to 1, so t = 0. The results are bit-identical to those
 * of the reference, which computes in double in this order.
 * Tests: tests/audit/test_drivable.c, test_proxy.c
 */
#ifndef BJ_AUDIT_SEGMENT_H
#define BJ_AUDIT_SEGMENT_H

#include <math.h>

static inline double bj_segment_length2(double dx, double dy) {
    const double n2 = dx * dx + dy * dy;
    return n2 > 0 ? n2 : 1;
}

/* Returns the squared distance of point p from a segment, where w = p - a, and n2 is the result of
 * bj_segment_length2. */
static inline double bj_segment_distance2(double wx, double wy, double dx, double dy, double n2) {
    double t = (wx * dx + wy * dy) / n2;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    const double rx = wx - t * dx, ry = wy - t * dy;
    return rx * rx + ry * ry;
}

/* Returns the largest x with sqrt(x) <= distance, so that squared distances can be compared without
 * a square root. */
static inline double bj_square_limit(double distance) {
    double x = distance * distance;
    while (sqrt(x) > distance) x = nextafter(x, 0);
    while (sqrt(nextafter(x, INFINITY)) <= distance) x = nextafter(x, INFINITY);
    return x;
}

#endif
