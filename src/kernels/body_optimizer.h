/* body_optimizer.h - AdamW and EMA updates, written as loops over the parameter block. */
#ifndef BJ_KERNELS_BODY_OPTIMIZER_H
#define BJ_KERNELS_BODY_OPTIMIZER_H

#include "kernels/body_vec.h"

static double sum_squares(const bj_real *x, size_t n) {
    double lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += (double)x[i + j] * x[i + j];
    for (; i < n; i++) lane[0] += (double)x[i] * x[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#ifdef BJ_DOUBLE
#define SQRT sqrt
#else
#define SQRT sqrtf
#endif

static inline void adamw_loop(bj_real *restrict w, bj_real *restrict m, bj_real *restrict v,
                              const bj_real *restrict g, const bj_real *restrict scale, int scaled,
                              size_t n, const bj_adamw_coefficients *k) {
    const bj_adamw_coefficients q = *k;
    for (size_t i = 0; i < n; i++) {
        const bj_real grad = g[i] * q.grad_scale;
        m[i] += (grad - m[i]) * (1 - q.beta1);
        v[i] = v[i] * q.beta2 + grad * grad * (1 - q.beta2);
        const bj_real step = q.step_size * m[i] / (SQRT(v[i]) * q.inv_sqrt_correction + q.eps);
        w[i] = w[i] * q.decay - (scaled ? scale[i] * step : step);
    }
}

static void adamw(bj_real *w, bj_real *m, bj_real *v, const bj_real *g, const bj_real *scale,
                  size_t n, const bj_adamw_coefficients *k) {
    if (scale) adamw_loop(w, m, v, g, scale, 1, n, k);
    else adamw_loop(w, m, v, g, NULL, 0, n, k);
}

static void ema(bj_real *restrict target, const bj_real *restrict w, size_t n, bj_real decay) {
    for (size_t i = 0; i < n; i++) target[i] = target[i] * decay + w[i] * (1 - decay);
}

#endif
