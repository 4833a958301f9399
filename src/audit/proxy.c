/* proxy.c - map check for galleries: compares points with the polylines in the network's input.
 *
 * A point is on the map if it is at most 3 m from a segment of a polyline. With o_k the share of
 * candidate k's points that are not on the map:
 *
 *   weighted_outside   sum_k p_k o_k
 *   compliant_mass     sum of p_k over candidates with o_k <= .10
 *   passes             weighted_outside <= .10 and compliant_mass >= .80
 *   strict             o_k = 0 for every k
 *
 * Without polylines every point is outside. No future is read.
 * Shapes  polylines (count,points,6), x and y first   p (K)   y (K,F,2), frame of the scene
 * Paper   Target-Blind Qualitative Protocol
 * Tests   tests/audit/test_proxy.c, test_audit_golden.c
 */
#include "audit/segment.h"
#include "core/status.h"

/* Returns 1 if p is at most the radius away from a segment of the polyline (Q,6). */
static int near_line(const float *line, int Q, const double p[2], double limit) {
    for (int q = 0; q + 1 < Q; q++, line += BJ_POLYLINE_FEATURES) {
        const double ax = line[0], ay = line[1];
        const double dx = line[BJ_POLYLINE_FEATURES] - ax, dy = line[BJ_POLYLINE_FEATURES + 1] - ay;
        const double n2 = bj_segment_length2(dx, dy);
        if (bj_segment_distance2(p[0] - ax, p[1] - ay, dx, dy, n2) <= limit) return 1;
    }
    return 0;
}

void bj_proxy_measure(bj_proxy *out, const float *polylines, int count, int points, int K, int F,
                      const double *p, const double *y) {
    const size_t size = (size_t)points * BJ_POLYLINE_FEATURES;
    const double limit = bj_square_limit(BJ_PROXY_RADIUS);
    int last = 0; /* a polyline near the previous point, which is often near the next point as
                     well */
    *out = (bj_proxy){.K = K, .strict = 1};
    for (int k = 0; k < K; k++) {
        int outside = 0;
        for (int t = 0; t < F; t++, y += 2) {
            int tried = 0;
            for (; tried < count; tried++, last = last + 1 < count ? last + 1 : 0)
                if (near_line(polylines + (size_t)last * size, points, y, limit)) break;
            outside += tried == count;
        }
        out->outside[k] = (double)outside / F;
        out->weighted_outside += p[k] * out->outside[k];
        if (out->outside[k] <= BJ_PROXY_OUTSIDE) out->compliant_mass += p[k];
        out->strict &= outside == 0;
    }
    out->passes = out->weighted_outside <= BJ_PROXY_OUTSIDE && out->compliant_mass >= BJ_PROXY_MASS;
}
