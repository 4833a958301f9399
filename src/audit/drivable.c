/* drivable.c - tests whether points are inside a union of filled rings, with a tolerance.
 *
 * A point is inside if, for any ring, it is inside by the even-odd rule or at most the tolerance
 * away from an edge. The ray to the right of (x,y) crosses an edge (i,j) if
 *
 *   (y_i > y) != (y_j > y)   and   x < (x_j - x_i) (y - y_i) / (y_j - y_i) + x_i
 *
 * The map is divided into rows of equal height. Each row lists, ring by ring,
 * the edges that can affect a point in the row, so a query examines only one
 * row. Official maps have about 640 edges, and a row has about a dozen.
 *
 * Invariants
 *   1. The result is bit-identical to that of a loop over all edges with the formulas above.
 *      Edges are skipped and comparisons shortened only if the point is farther from the edge than
 *      `reach`, which is the tolerance plus a margin much larger than all rounding errors.
 *   2. Row numbers are a monotone function of y, so a point is in the rows of every edge within
 *      reach, regardless of rounding.
 *   3. Memory is bounded by the number of edges, because the number of rows is reduced until edges
 *      are listed at most LISTED times on average.
 *   4. Queries do not change the state.
 * Tests: tests/audit/test_drivable.c, tests/audit/peer_drivable.py
 */
#include "audit/drivable.h"

#include <math.h>

#include "audit/segment.h"
#include "core/alloc.h"

enum { LISTED = 16, ROWS_MAX = 4096, EDGES_MAX = 1 << 26 };

typedef struct edge {
    double x0, y0, y1, dx, dy, n2;
    double left, right, bottom, top; /* bounds of the edge, extended by reach */
    int ring;
} edge;

struct bj_drivable {
    double limit; /* max squared distance within the tolerance */
    double reach;
    double left, right, bottom, top; /* bounds of all edges, extended by reach */
    double rows_per_meter;
    int edge_count, rows;
    edge *edges;    /* (edge_count) ring by ring */
    int32_t *list;  /* edges of row 0, of row 1, ... */
    int32_t *start; /* (rows + 1) offsets into the list */
    size_t edge_room, list_room, start_room;
    double *points; /* rings copied from a cache */
    bj_ring *rings;
    size_t point_room, ring_room;
};

bj_status bj_drivable_create(bj_drivable **out, bj_error *err) {
    BJ_TRY(BJ_ALLOC(*out, 1, err));
    return BJ_OK;
}

void bj_drivable_free(bj_drivable *d) {
    if (!d) return;
    bj_free(d->edges);
    bj_free(d->list);
    bj_free(d->start);
    bj_free(d->points);
    bj_free(d->rings);
    bj_free(d);
}

/* ------------------------------------------------------------------------------------ preparing */

static bj_status check(double *largest, int *edges, const bj_ring *rings, int count,
                       double tolerance, bj_error *err) {
    int64_t total = 0;
    *largest = 0;
    if (!(tolerance >= 0 && tolerance <= 1e6))
        return BJ_FAIL(err, BJ_EARG, "drivable areas: tolerance is %g m, expected 0 to 1e6",
                       tolerance);
    if (count < 0 || (count && !rings))
        return BJ_FAIL(err, BJ_EARG,
                       "drivable areas: the ring count (%d) is negative, or the rings are NULL",
                       count);
    for (int r = 0; r < count; r++) {
        if (rings[r].count < 1)
            return BJ_FAIL(err, BJ_EARG,
                           "drivable areas: ring %d has %d points, expected at least 1", r,
                           rings[r].count);
        for (int64_t i = 0; i < 2 * (int64_t)rings[r].count; i++) {
            const double size = fabs(rings[r].points[i]);
            if (!(size <= 1e100)) /* limited, so that squares are finite */
                return BJ_FAIL(err, BJ_ENONFINITE,
                               "drivable areas: ring %d: point %lld is %g, "
                               "expected a magnitude of at most 1e100",
                               r, (long long)(i / 2), rings[r].points[i]);
            if (size > *largest) *largest = size;
        }
        total += rings[r].count;
    }
    if (total > EDGES_MAX)
        return BJ_FAIL(err, BJ_EARG, "drivable areas: %lld points, expected at most %d",
                       (long long)total, EDGES_MAX);
    *edges = (int)total;
    return BJ_OK;
}

static edge make_edge(const double *a, const double *b, int ring, double reach) {
    const double dx = b[0] - a[0], dy = b[1] - a[1];
    return (edge){.x0 = a[0],
                  .y0 = a[1],
                  .y1 = b[1],
                  .dx = dx,
                  .dy = dy,
                  .n2 = bj_segment_length2(dx, dy),
                  .left = fmin(a[0], b[0]) - reach,
                  .right = fmax(a[0], b[0]) + reach,
                  .bottom = fmin(a[1], b[1]) - reach,
                  .top = fmax(a[1], b[1]) + reach,
                  .ring = ring};
}

static void take_edges(bj_drivable *d, const bj_ring *rings, int count) {
    int n = 0;
    d->left = d->bottom = INFINITY;
    d->right = d->top = -INFINITY;
    for (int r = 0; r < count; r++)
        for (int i = 0; i < rings[r].count; i++) {
            const int next = i + 1 < rings[r].count ? i + 1 : 0;
            const edge e = make_edge(rings[r].points + 2 * (size_t)i,
                                     rings[r].points + 2 * (size_t)next, r, d->reach);
            d->edges[n++] = e;
            d->left = fmin(d->left, e.left);
            d->right = fmax(d->right, e.right);
            d->bottom = fmin(d->bottom, e.bottom);
            d->top = fmax(d->top, e.top);
        }
}

/* Returns the row that contains y, which must be between bottom and top. The row is a monotone
 * function of y. */
static int row_of(const bj_drivable *d, double y) {
    const double row = (y - d->bottom) * d->rows_per_meter;
    return row < d->rows - 1 ? (int)row : d->rows - 1;
}

/* Chooses the number of rows. Returns the total length of the row lists. */
static int64_t choose_rows(bj_drivable *d) {
    d->rows = d->edge_count < ROWS_MAX ? d->edge_count : ROWS_MAX;
    for (;; d->rows /= 2) {
        int64_t listed = 0;
        d->rows_per_meter = d->top > d->bottom ? d->rows / (d->top - d->bottom) : 0;
        for (int i = 0; i < d->edge_count; i++)
            listed += row_of(d, d->edges[i].top) - row_of(d, d->edges[i].bottom) + 1;
        if (d->rows == 1 || listed <= (int64_t)LISTED * d->edge_count) return listed;
    }
}

/* Fills the lists with a stable counting sort. */
static void fill_rows(bj_drivable *d, int64_t listed) {
    for (int r = 0; r <= d->rows; r++) d->start[r] = 0;
    for (int i = 0; i < d->edge_count; i++) {
        const int last = row_of(d, d->edges[i].top);
        for (int r = row_of(d, d->edges[i].bottom); r <= last; r++) d->start[r + 1]++;
    }
    for (int r = 0; r < d->rows; r++) d->start[r + 1] += d->start[r];
    for (int i = d->edge_count - 1; i >= 0; i--) { /* iterate backward, because the end of each list
                                                      is decremented to its beginning */
        const int last = row_of(d, d->edges[i].top);
        for (int r = row_of(d, d->edges[i].bottom); r <= last; r++) d->list[--d->start[r + 1]] = i;
    }
    for (int r = 0; r < d->rows; r++) d->start[r] = d->start[r + 1];
    d->start[d->rows] = (int32_t)listed;
}

bj_status bj_drivable_set_rings(bj_drivable *d, const bj_ring *rings, int count, double tolerance,
                                bj_error *err) {
    double largest = 0;
    int edges = 0;
    d->edge_count = 0; /* so that it stays empty after a failure */
    BJ_TRY(check(&largest, &edges, rings, count, tolerance, err));
    if (!edges) return BJ_OK;
    BJ_RESERVE(d->edges, d->edge_room, (size_t)edges, err);
    d->limit = bj_square_limit(tolerance);
    d->reach = tolerance + 1e-6 + 1e-12 * largest;
    take_edges(d, rings, count);
    d->edge_count = edges;
    const int64_t listed = choose_rows(d);
    d->edge_count = 0;
    BJ_RESERVE(d->list, d->list_room, (size_t)listed, err);
    BJ_RESERVE(d->start, d->start_room, (size_t)d->rows + 1, err);
    d->edge_count = edges;
    fill_rows(d, listed);
    return BJ_OK;
}

bj_status bj_drivable_set_cache(bj_drivable *d, const bj_cache *cache, int64_t map,
                                double tolerance, bj_error *err) {
    const int count = bj_cache_rings(cache, map);
    int64_t total = 0;
    d->edge_count = 0;
    BJ_TRY(bj_cache_check_map(cache, map, err));
    for (int r = 0; r < count; r++) total += bj_cache_ring_size(cache, map, r);
    BJ_RESERVE(d->points, d->point_room, 2 * (size_t)total, err);
    BJ_RESERVE(d->rings, d->ring_room, (size_t)count, err);
    double *at = d->points;
    for (int r = 0; r < count; r++) {
        d->rings[r] = (bj_ring){at, bj_cache_ring_size(cache, map, r)};
        bj_cache_ring(at, cache, map, r);
        at += 2 * (size_t)d->rings[r].count;
    }
    return bj_drivable_set_rings(d, d->rings, count, tolerance, err);
}

bj_status bj_drivable_set_map(bj_drivable *d, const bj_map *map, double tolerance, bj_error *err) {
    d->edge_count = 0;
    BJ_RESERVE(d->rings, d->ring_room, (size_t)map->area_count, err);
    for (int r = 0; r < map->area_count; r++)
        d->rings[r] = (bj_ring){&map->areas[r].ring.at->x, map->areas[r].ring.count};
    return bj_drivable_set_rings(d, d->rings, map->area_count, tolerance, err);
}

bj_status bj_drivable_set_file(bj_drivable *d, const char *path, double tolerance, bj_error *err) {
    bj_map_reader *reader;
    bj_map map;
    d->edge_count = 0;
    BJ_TRY(bj_map_reader_create(&reader, err));
    bj_status status = bj_map_read(&map, reader, path, err);
    if (status == BJ_OK) status = bj_drivable_set_map(d, &map, tolerance, err);
    bj_map_reader_free(reader);
    return status;
}

/* ------------------------------------------------------------------------------------ questions */

int bj_drivable_inside(const bj_drivable *d, double x, double y) {
    if (!d->edge_count) return 0;
    if (!(x >= d->left && x <= d->right && y >= d->bottom && y <= d->top)) return 0;
    const int row = row_of(d, y);
    int ring = -1, odd = 0;
    for (int32_t i = d->start[row]; i < d->start[row + 1]; i++) {
        const edge *e = &d->edges[d->list[i]];
        if (e->ring != ring) {
            if (odd) return 1;
            ring = e->ring;
        }
        if (x > e->right) continue; /* the edge is neither crossed nor within reach */
        if ((e->y0 > y) != (e->y1 > y))
            odd ^= x < e->left || x < e->dx * (y - e->y0) / e->dy + e->x0;
        if (x >= e->left && y >= e->bottom && y <= e->top &&
            bj_segment_distance2(x - e->x0, y - e->y0, e->dx, e->dy, e->n2) <= d->limit)
            return 1;
    }
    return odd;
}

int64_t bj_drivable_contains(uint8_t *inside, const bj_drivable *areas, const double *points,
                             int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const int is = bj_drivable_inside(areas, points[2 * i], points[2 * i + 1]);
        if (inside) inside[i] = (uint8_t)is;
        count += is;
    }
    return count;
}
