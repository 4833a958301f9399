/* body_attention.h - single-query attention: scores, pooling and their gradients. */
#ifndef BJ_KERNELS_BODY_ATTENTION_H
#define BJ_KERNELS_BODY_ATTENTION_H

#include "kernels/body_vec.h"

INLINE bj_real lane_sum(vec v) {
    bj_real sum = 0;
    for (int i = 0; i < LANES; i++) sum += v[i];
    return sum;
}

/* Computes the scores of sr tokens and sg heads, each a dot product of width W. */
INLINE void score_tile(bj_real *scores, int G, const bj_real *r, size_t ldr, const bj_real *a,
                       size_t lda, int W, int sr, int sg) {
    vec acc[2][4] = {{{0}}};
    int w = 0;
    for (; w + LANES <= W; w += LANES) {
        vec x[2];
        UNROLL for (int i = 0; i < sr; i++) x[i] = load(r + (size_t)i * ldr + w);
        UNROLL for (int g = 0; g < sg; g++) {
            const vec y = load(a + (size_t)g * lda + w);
            UNROLL for (int i = 0; i < sr; i++) acc[i][g] += x[i] * y;
        }
    }
    if (w < W) {
        for (int i = 0; i < sr; i++)
            for (int g = 0; g < sg; g++)
                acc[i][g] += load_part(r + (size_t)i * ldr + w, W - w) *
                             load_part(a + (size_t)g * lda + w, W - w);
    }
    UNROLL for (int i = 0; i < sr; i++) {
        UNROLL for (int g = 0; g < sg; g++) scores[i * G + g] = lane_sum(acc[i][g]);
    }
}

static void scores(bj_real *out, const bj_real *r, size_t ldr, const bj_real *a, size_t lda, int S,
                   int G, int W) {
    int s = 0;
    for (; s + 2 <= S; s += 2, out += 2 * G, r += 2 * ldr) {
        int g = 0;
        for (; g + 4 <= G; g += 4) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 2, 4);
        for (; g < G; g++) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 2, 1);
    }
    if (s < S) {
        int g = 0;
        for (; g + 4 <= G; g += 4) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 1, 4);
        for (; g < G; g++) score_tile(out + g, G, r, ldr, a + g * lda, lda, W, 1, 1);
    }
}

INLINE void pool_tile(bj_real *pooled, size_t ldp, const bj_real *weight, int G, const bj_real *r,
                      size_t ldr, int S, int width, int sg, int nv) {
    vec acc[4][WIDTH] = {{{0}}};
    for (int s = 0; s < S; s++, weight += G, r += ldr) {
        vec x[WIDTH];
        UNROLL for (int j = 0; j < nv; j++) x[j] = load_n(r + j * LANES, width - j * LANES);
        UNROLL for (int g = 0; g < sg; g++) {
            const vec y = splat(weight[g]);
            UNROLL for (int j = 0; j < nv; j++) acc[g][j] += y * x[j];
        }
    }
    UNROLL for (int g = 0; g < sg; g++) {
        UNROLL for (int j = 0; j < nv; j++) {
            store_n(pooled + (size_t)g * ldp + j * LANES, acc[g][j], width - j * LANES);
        }
    }
}

static void pool(bj_real *pooled, size_t ldp, const bj_real *weight, const bj_real *r, size_t ldr,
                 int S, int G, int W) {
    int w = 0;
    for (; w + PANEL <= W; w += PANEL) {
        int g = 0;
        for (; g + 4 <= G; g += 4)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, PANEL, 4, WIDTH);
        for (; g < G; g++)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, PANEL, 1, WIDTH);
    }
    for (; w < W; w += LANES)
        for (int g = 0; g < G; g++)
            pool_tile(pooled + g * ldp + w, ldp, weight + g, G, r + w, ldr, S, W - w, 1, 1);
}

INLINE void pool_backward_tile(bj_real *dr, size_t lddr, const bj_real *alpha,
                               const bj_real *dscore, const bj_real *dpooled, size_t ldp,
                               const bj_real *a, size_t lda, const bj_real *r, size_t ldr, int G,
                               int width, int sr, int nv) {
    vec acc[4][2] = {{{0}}};
    for (int g = 0; g < G; g++, dpooled += ldp, a += lda) {
        UNROLL for (int j = 0; j < nv; j++) {
            const vec x = load_n(dpooled + j * LANES, width - j * LANES);
            const vec y = load_n(a + j * LANES, width - j * LANES);
            UNROLL for (int i = 0; i < sr; i++) {
                acc[i][j] += alpha[i * G + g] * x;
                acc[i][j] += dscore[i * G + g] * y;
            }
        }
    }
    UNROLL for (int i = 0; i < sr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int left = width - j * LANES;
            const vec gate = load_n(r + (size_t)i * ldr + j * LANES, left);
            store_n(dr + (size_t)i * lddr + j * LANES, where_positive(gate, acc[i][j]), left);
        }
    }
}

static void pool_backward(bj_real *dr, size_t lddr, const bj_real *alpha, const bj_real *dscore,
                          const bj_real *dpooled, size_t ldp, const bj_real *a, size_t lda,
                          const bj_real *r, size_t ldr, int S, int G, int W) {
    for (int s = 0, step; s < S; s += step) {
        step = S - s >= 4 ? 4 : 1;
        for (int w = 0, columns; w < W; w += columns) {
            columns = W - w >= 2 * LANES ? 2 * LANES : LANES;
#define CALL(sr, nv)                                                                               \
    pool_backward_tile(dr + w, lddr, alpha, dscore, dpooled + w, ldp, a + w, lda, r + w, ldr, G,   \
                       W - w < columns ? W - w : columns, sr, nv)
            if (step == 4 && columns == 2 * LANES) CALL(4, 2);
            else if (step == 4) CALL(4, 1);
            else if (columns == 2 * LANES) CALL(1, 2);
            else CALL(1, 1);
#undef CALL
        }
        dr += (size_t)step * lddr;
        r += (size_t)step * ldr;
        alpha += step * G;
        dscore += step * G;
    }
}

#endif
