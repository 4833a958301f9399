/* normalize.c - see normalize.h. Dot products use eight lanes that are added in a fixed order. */
#include "nn/normalize.h"

#include <math.h>

static double dot(const bj_real *x, const bj_real *y, int n) {
    bj_real lane[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += x[i + j] * y[i + j];
    double sum = 0;
    for (int j = 0; j < 8; j++) sum += (double)lane[j];
    for (; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

void bj_normalize_forward(bj_real *a, size_t ld, bj_real *inverse, int M, int D) {
    const double floor = 1e-12;
    for (int m = 0; m < M; m++, a += ld) {
        const double size = sqrt(dot(a, a, D));
        /* write NaN instead of zeros, so that an overflow of the norm is detected */
        const bj_real scale =
            isinf(size) ? (bj_real)NAN : (bj_real)(1.0 / (size < floor ? floor : size));
        inverse[m] = size < floor ? -scale : scale;
        for (int d = 0; d < D; d++) a[d] *= scale;
    }
}

void bj_normalize_backward(bj_real *du, size_t ld, const bj_real *u, const bj_real *inverse, int M,
                           int D) {
    for (int m = 0; m < M; m++, du += ld, u += ld) {
        /* forward: u = a / |a|, so the component of du along u has no effect */
        const bj_real along = inverse[m] < 0 ? 0 : (bj_real)dot(du, u, D);
        const bj_real scale = inverse[m] < 0 ? -inverse[m] : inverse[m];
        for (int d = 0; d < D; d++) du[d] = (du[d] - along * u[d]) * scale;
    }
}
