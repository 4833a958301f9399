/* body_half.h - weights stored in 16 bits (bfloat16), and matrix products with them. */
#ifndef BJ_KERNELS_BODY_HALF_H
#define BJ_KERNELS_BODY_HALF_H

#include "kernels/body_gemm.h"

/* Widens a vector of pairs. The two numbers of a pair are adjacent, so one shift and one mask are
 * enough. */
#ifdef BJ_DOUBLE
INLINE void widen_pairs(vec *first, vec *second, const uint16_t *p) {
    UNROLL for (int i = 0; i < 2 * LANES; i++) {
        const uint32_t bits = (uint32_t)p[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (i % 2) (*second)[i / 2] = value;
        else (*first)[i / 2] = value;
    }
}
#else
typedef uint32_t word_u __attribute__((vector_size(BJ_BODY_BYTES), aligned(2), may_alias));
INLINE void widen_pairs(vec *first, vec *second, const uint16_t *p) {
    const word_u both = *(const word_u *)p;
    *first = (vec)(both << 16);
    *second = (vec)(both & 0xffff0000u);
}
#endif

static void narrow(uint16_t *half, bj_real *full, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float value = (float)full[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits += 0x7fff + (bits >> 16 & 1); /* weights are finite, so NaN is not handled */
        if (half) half[i] = (uint16_t)(bits >> 16);
        bits &= 0xffff0000u;
        float rounded;
        memcpy(&rounded, &bits, sizeof rounded);
        full[i] = rounded;
    }
}

/* Returns the size of the panels. They are laid out as in full precision, except that rows
 * k and k + 1 of a panel are interleaved. An odd K is padded. */
static size_t half_size(int N, int K) { return (size_t)round_up(N) * (size_t)((K + 1) / 2 * 2); }

static void narrow_panels(uint16_t *half, bj_real *packed, int N, int K) {
    uint16_t rounded[PANEL];
    for (int n = 0; n < N; n += PANEL) {
        const int width = round_up(N - n < PANEL ? N - n : PANEL);
        for (int k = 0; k < K; k++, packed += width) {
            narrow(rounded, packed, (size_t)width);
            for (int j = 0; j < width; j++) half[(k / 2 * width + j) * 2 + k % 2] = rounded[j];
        }
        for (int j = 0; j < width && K % 2; j++) half[(K / 2 * width + j) * 2 + 1] = 0;
        half += (size_t)width * (size_t)((K + 1) / 2 * 2);
    }
}

/* Multiplies one row by `panels` complete panels at once. The panels are `step` elements apart. */
INLINE void row_of_half_panels(const product *p, const uint16_t *panel, size_t step, int K,
                               int panels) {
    vec acc[3][WIDTH];
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            const int at = i * PANEL + j * LANES;
            acc[i][j] = (p->flags & BJ_GEMM_ADD) ? load(p->c + at)
                        : p->bias                ? load(p->bias + at)
                                                 : (vec){0};
        }
    }
    for (int k = 0; k < K; k += 2, panel += 2 * PANEL) {
        const vec x = splat(p->a[k]), y = k + 1 < K ? splat(p->a[k + 1]) : (vec){0};
        UNROLL for (int i = 0; i < panels; i++) {
            UNROLL for (int j = 0; j < WIDTH; j++) {
                vec first, second;
                widen_pairs(&first, &second, panel + (size_t)i * step + 2 * j * LANES);
                acc[i][j] += x * first;
                acc[i][j] += y * second;
            }
        }
    }
    UNROLL for (int i = 0; i < panels; i++) {
        UNROLL for (int j = 0; j < WIDTH; j++) {
            vec v = acc[i][j];
            if (p->flags & BJ_GEMM_RELU) v = where_positive(v, v);
            store(p->c + i * PANEL + j * LANES, v);
        }
    }
}

static void gemm_half(bj_real *c, size_t ldc, const bj_real *a, size_t lda, const uint16_t *half,
                      const bj_real *bias, int M, int N, int K, int flags, int n0, int n1) {
    const size_t even = (size_t)((K + 1) / 2 * 2);
    for (int n = n0; n < n1;) {
        const int width = N - n < PANEL ? N - n : PANEL, padded = round_up(width);
        const uint16_t *panel = half + (size_t)n * even;
        product p = {.c = c + n, .ldc = ldc, .a = a, .lda = lda, .bias = bias ? bias + n : NULL,
                     .first = 1, .last = 1, .flags = flags};
        if (M == 1 && n1 - n >= 3 * PANEL) { /* enough sums to hide the latency */
            row_of_half_panels(&p, panel, even * PANEL, K, 3);
            n += 3 * PANEL;
            continue;
        }
        if (M == 1 && n1 - n >= 2 * PANEL) {
            row_of_half_panels(&p, panel, even * PANEL, K, 2);
            n += 2 * PANEL;
            continue;
        }
        if (M == 1 && width == PANEL) {
            row_of_half_panels(&p, panel, 0, K, 1);
            n += PANEL;
            continue;
        }
        enum { DEPTH = 256 }; /* rows widened at a time */
        bj_real wide[(DEPTH + 1) * PANEL];
        for (int k = 0; k < K; k += DEPTH) {
            const int depth = K - k < DEPTH ? K - k : DEPTH;
            const uint16_t *from = panel + (size_t)k * padded;
            for (int i = 0; i < (depth + 1) / 2; i++) {
                for (int j = 0; j < padded; j += LANES, from += 2 * LANES) {
                    vec first, second;
                    widen_pairs(&first, &second, from);
                    store(wide + (2 * i) * padded + j, first);
                    store(wide + (2 * i + 1) * padded + j, second);
                }
            }
            p.a = a + k;
            p.first = k == 0;
            p.last = k + depth == K;
            rows_of_panel(p, wide, width, M, depth);
        }
        n += PANEL;
    }
}

#endif
