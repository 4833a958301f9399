/* audit_case.h - random rings and a simple reference for point-in-ring tests.
 *
 * The reference loops over all edges of all rings and uses no index.
 */
#ifndef BJ_TESTS_AUDIT_CASE_H
#define BJ_TESTS_AUDIT_CASE_H

#include <math.h>
#include <stdlib.h>

#include <branchjepa/branchjepa.h>

static inline int case_in_ring(const bj_ring *ring, double x, double y, double tolerance) {
    double least = INFINITY;
    int odd = 0;
    for (int i = 0; i < ring->count; i++) {
        const double *a = ring->points + 2 * i;
        const double *b = ring->points + 2 * ((i + 1) % ring->count);
        if ((a[1] > y) != (b[1] > y)) {
            const double crossing = (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0];
            odd ^= x < crossing;
        }
        const double dx = b[0] - a[0], dy = b[1] - a[1], wx = x - a[0], wy = y - a[1];
        const double n2 = dx * dx + dy * dy;
        const double t = fmin(fmax((wx * dx + wy * dy) / (n2 > 0 ? n2 : 1), 0), 1);
        const double rx = wx - t * dx, ry = wy - t * dy;
        least = fmin(least, rx * rx + ry * ry);
    }
    return odd || sqrt(least) <= tolerance;
}

static inline int case_inside(const bj_ring *rings, int count, double x, double y,
                              double tolerance) {
    for (int r = 0; r < count; r++)
        if (case_in_ring(&rings[r], x, y, tolerance)) return 1;
    return 0;
}

static inline double case_between(bj_rng *rng, double low, double high) {
    return low + (high - low) * bj_rng_uniform(rng);
}

#endif
