/* points.c - distances within a weighted set of points, and their gradients.
 *
 * Sums use LANES partial sums of bj_real, which the compiler keeps in vector registers. The lanes
 * are then added in order, in double. The order of the additions depends only on n.
 * Test  tests/objective/test_energy_score.c
 */
#include "objective/points.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

bj_points bj_points_latent(const bj_objective_io *io, int b) {
    return (bj_points){.K = io->L,
                       .n = io->D,
                       .stride = io->ldu,
                       .x = io->u + (size_t)b * io->L * io->ldu,
                       .target = io->z + (size_t)b * io->ldu,
                       .weight = NULL,
                       .scale = 1};
}

bj_points bj_points_decoded(const bj_objective *objective, const bj_objective_io *io, int b) {
    return (bj_points){.K = io->K,
                       .n = 2 * io->F,
                       .stride = io->ldy,
                       .x = io->y + (size_t)b * io->K * io->ldy,
                       .target = io->future + (size_t)b * 2 * io->F,
                       .weight = objective->beta == 1 ? NULL : io->time_weight,
                       .scale = 1.0 / io->F};
}

double bj_sum_squares(const bj_real *a, const bj_real *b, int n) {
    bj_real lane[LANES] = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const bj_real t = a[i + j] - b[i + j];
            lane[j] += t * t;
        }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    for (; i < n; i++) {
        const double t = (double)a[i] - b[i];
        sum += t * t;
    }
    return sum;
}

/* Processes two time steps at a time in double. Used only for objectives with beta < 1. */
static double weighted_squares(const bj_real *a, const bj_real *b, const double *weight, int F) {
    double even = 0, odd = 0;
    int t = 0;
    for (; t + 2 <= F; t += 2, a += 4, b += 4) {
        const double x0 = a[0] - b[0], y0 = a[1] - b[1], x1 = a[2] - b[2], y1 = a[3] - b[3];
        even += weight[t] * (x0 * x0 + y0 * y0);
        odd += weight[t + 1] * (x1 * x1 + y1 * y1);
    }
    if (t < F) {
        const double x = a[0] - b[0], y = a[1] - b[1];
        even += weight[t] * (x * x + y * y);
    }
    return even + odd;
}

static double distance(const bj_points *points, const bj_real *a, const bj_real *b) {
    const double squared = points->weight ? weighted_squares(a, b, points->weight, points->n / 2)
                                          : points->scale * bj_sum_squares(a, b, points->n);
    return squared <= 1e-12 ? 0 : sqrt(squared); /* this comparison keeps NaN */
}

double bj_points_to_target(const bj_points *points, int k) {
    return distance(points, points->x + k * points->stride, points->target);
}

double bj_points_between(const bj_points *points, int k, int l) {
    return distance(points, points->x + k * points->stride, points->x + l * points->stride);
}

/* Processes whole rows, because the compiler can vectorize such long loops. */
static void pull_row(bj_real *restrict dx, const bj_real *restrict x, const bj_real *restrict to,
                     bj_real c, int n) {
    for (int i = 0; i < n; i++) dx[i] += c * (x[i] - to[i]);
}

static void pull_row_2(bj_real *restrict dx, const bj_real *restrict x,
                       const bj_real *restrict to_0, const bj_real *restrict to_1, bj_real c_0,
                       bj_real c_1, int n) {
    for (int i = 0; i < n; i++) dx[i] += c_0 * (x[i] - to_0[i]) + c_1 * (x[i] - to_1[i]);
}

void bj_points_gradient(bj_real *dx, const bj_real *pull, const double *reach,
                        const bj_points *points) {
    const int K = points->K, n = points->n;
    const bj_real scale = points->weight ? 1 : (bj_real)points->scale;
    for (int k = 0; k < K; k++) {
        const bj_real *x_k = points->x + k * points->stride;
        bj_real *dx_k = dx + k * points->stride;
        int others[BJ_MAX_ATOMS], count = 0;
        for (int l = 0; l < K; l++)
            if (l != k && pull[k * K + l] != 0) others[count++] = l;
        memset(dx_k, 0, (size_t)n * sizeof *dx_k);
        pull_row(dx_k, x_k, points->target, scale * (bj_real)reach[k], n);
        for (int i = 0; i + 1 < count; i += 2)
            pull_row_2(dx_k, x_k, points->x + others[i] * points->stride,
                       points->x + others[i + 1] * points->stride, scale * pull[k * K + others[i]],
                       scale * pull[k * K + others[i + 1]], n);
        if (count % 2)
            pull_row(dx_k, x_k, points->x + others[count - 1] * points->stride,
                     scale * pull[k * K + others[count - 1]], n);
        if (points->weight)
            for (int i = 0; i < n; i++) dx_k[i] *= (bj_real)points->weight[i / 2];
    }
}

void bj_points_gradient_target(bj_real *dx, const double *reach, const bj_points *points) {
    for (int k = 0; k < points->K; k++) {
        const bj_real *restrict x_k = points->x + k * points->stride, *restrict z = points->target;
        bj_real *restrict dx_k = dx + k * points->stride;
        if (reach[k] == 0) {
            memset(dx_k, 0, (size_t)points->n * sizeof *dx_k);
        } else if (points->weight) {
            for (int i = 0; i < points->n; i++)
                dx_k[i] = (bj_real)(reach[k] * points->weight[i / 2] * (x_k[i] - z[i]));
        } else {
            const bj_real c = (bj_real)(reach[k] * points->scale);
            for (int i = 0; i < points->n; i++) dx_k[i] = c * (x_k[i] - z[i]);
        }
    }
}

void bj_rows_clear(bj_real *x, int rows, int n, size_t stride) {
    for (int r = 0; r < rows; r++) memset(x + (size_t)r * stride, 0, (size_t)n * sizeof *x);
}
