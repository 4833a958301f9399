/* body_gru.h - gate activations, the GRU cell and its gradient, and a whole step of one row. */
#ifndef BJ_KERNELS_BODY_GRU_H
#define BJ_KERNELS_BODY_GRU_H

#include "kernels/body_half.h"

/* r = sigmoid(a), z = sigmoid(b); tanh. In float they work on e^-|x|, which cannot overflow. */
#ifdef BJ_DOUBLE
INLINE void sigmoid_two(vec *r, vec *z, vec a, vec b) {
    UNROLL for (int i = 0; i < LANES; i++) {
        (*r)[i] = 1 / (1 + exp(-a[i]));
        (*z)[i] = 1 / (1 + exp(-b[i]));
    }
}
INLINE vec tanh_vec(vec x) {
    UNROLL for (int i = 0; i < LANES; i++) x[i] = tanh(x[i]);
    return x;
}
#else
INLINE vec magnitude(vec x) { return (vec)((ivec)x & 0x7fffffff); }

/* e^x = scale * (1 + rest) for x <= 0, scale a power of two; relative error below 2e-7 down to
 * e^-87, where it stays. NaN passes. */
INLINE void exp_parts(vec *scale, vec *rest, vec x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = BJ_BODY_MAX(splat(-87.0f), x);
    const vec shifted = x * 1.44269504088896341f + magic;
    const vec n = shifted - magic;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    *rest = p * (r * r) + r;
    /* the low bits of `shifted` hold n; 1.0f is 127 << 23 */
    *scale = (vec)(((ivec)shifted << 23) + 0x3f800000);
}

/* x < 0 ? e : 1, by the sign bit */
INLINE vec negative_or_one(vec x, vec e) {
    const ivec sign = (ivec)x >> 31;
    return (vec)(((ivec)e & sign) | (0x3f800000 & ~sign));
}

/* One division for both: 1 + e^-|x| lies between 1 and 2. */
INLINE void sigmoid_two(vec *r, vec *z, vec a, vec b) {
    vec scale_a, rest_a, scale_b, rest_b;
    exp_parts(&scale_a, &rest_a, -magnitude(a));
    exp_parts(&scale_b, &rest_b, -magnitude(b));
    const vec e_a = scale_a * rest_a + scale_a, e_b = scale_b * rest_b + scale_b;
    const vec one_a = 1 + e_a, one_b = 1 + e_b, inverse = 1 / (one_a * one_b);
    *r = negative_or_one(a, e_a) * (one_b * inverse);
    *z = negative_or_one(b, e_b) * (one_a * inverse);
}

/* With m = e^-2|x| - 1, kept without cancellation, |tanh| = -m / (2 + m). */
INLINE vec tanh_vec(vec x) {
    vec scale, rest;
    exp_parts(&scale, &rest, -2 * magnitude(x));
    const vec m = scale * rest + (scale - 1), size = -m / (2 + m);
    return (vec)((ivec)size | ((ivec)x & (int32_t)0x80000000));
}
#endif

INLINE void gru_gates_part(bj_real *at, int E, int n) {
    vec r, z;
    sigmoid_two(&r, &z, load_n(at, n), load_n(at + E, n));
    store_n(at, r, n);
    store_n(at + E, z, n);
}

INLINE void gru_state_part(bj_real *at, bj_real *h_out, const bj_real *h, int E, int n) {
    const vec r = load_n(at, n), z = load_n(at + E, n);
    const vec c = tanh_vec(load_n(at + 3 * E, n) + r * load_n(at + 2 * E, n));
    /* c + z (h - c) contracts in one way only: gru_row has the same bits */
    store_n(h_out, c + z * (load_n(h, n) - c), n);
    store_n(at + 3 * E, c, n);
}

/* Two passes over a row: half the chain of dependent operations in each, so that more of them
 * overlap. */
static void gru_cell(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *h,
                     size_t ldh, int M, int E) {
    for (int m = 0; m < M; m++, gates += ldg, h_out += ldo, h += ldh) {
        int e = 0;
        for (; e + LANES <= E; e += LANES) gru_gates_part(gates + e, E, LANES);
        if (e < E) gru_gates_part(gates + e, E, E - e);
        for (e = 0; e + LANES <= E; e += LANES)
            gru_state_part(gates + e, h_out + e, h + e, E, LANES);
        if (e < E) gru_state_part(gates + e, h_out + e, h + e, E, E - e);
    }
}

INLINE void gru_cell_backward_part(bj_real *at, bj_real *dh, const bj_real *h, int E, int n) {
    const vec r = load_n(at, n), z = load_n(at + E, n);
    const vec hn = load_n(at + 2 * E, n), c = load_n(at + 3 * E, n), d = load_n(dh, n);
    /* forward: h_out = c + z (h - c) */
    const vec dz = d * (load_n(h, n) - c) * z * (1 - z);
    /* forward: c = tanh(in + r hn) */
    const vec din = d * (1 - z) * (1 - c * c);
    store_n(at, din * hn * r * (1 - r), n);
    store_n(at + E, dz, n);
    store_n(at + 2 * E, din * r, n);
    store_n(at + 3 * E, din, n);
    store_n(dh, d * z, n);
}

static void gru_cell_backward(bj_real *gates, size_t ldg, bj_real *dh, size_t lddh,
                              const bj_real *h, size_t ldh, int M, int E) {
    for (int m = 0; m < M; m++, gates += ldg, dh += lddh, h += ldh) {
        int e = 0;
        for (; e + LANES <= E; e += LANES)
            gru_cell_backward_part(gates + e, dh + e, h + e, E, LANES);
        if (e < E) gru_cell_backward_part(gates + e, dh + e, h + e, E, E - e);
    }
}

/* ------------------------------------------------------------------------------ a step of a row */

/* Groups of two vectors of units. A group holds b_hn, then for every entry of the state row the
 * weights of r, z and n: the input's for n before `lead`, the state's from there on. The two
 * vectors of a pair are stored interleaved, which splits a 16-bit pair by one shift and one mask;
 * in registers the first vector of a group holds its even units, the second its odd ones. */
enum { UNITS = 2 * LANES };

static size_t gru_row_size(int lead, int E) {
    return (size_t)((E + UNITS - 1) / UNITS) * UNITS * (size_t)(1 + 3 * (lead + E));
}

static void gru_row_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                         const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    for (int u = 0; u < E; u += UNITS) {
        for (int k = -1; k < lead + E; k++) {
            for (int gate = k < 0 ? 2 : 0; gate < 3; gate++, packed += UNITS) {
                for (int j = 0; j < UNITS; j++) {
                    const int o = gate * E + u + j;
                    if (u + j >= E) packed[j] = 0;
                    else if (k < 0) packed[j] = b_hh[o];
                    else if (k < I) packed[j] = w_ih[o * I + k];
                    else if (k == I) packed[j] = gate < 2 ? b_ih[o] + b_hh[o] : b_ih[o];
                    else packed[j] = k < lead ? 0 : w_hh[(size_t)o * E + (size_t)(k - lead)];
                }
            }
        }
    }
}

/* Full precision takes the units as they lie; 16-bit splits them into even and odd. */
INLINE void unit_pair(vec pair[2], const bj_real *packed, const uint16_t *half, size_t at,
                      int is_half) {
    if (is_half) widen_pairs(&pair[0], &pair[1], half + at);
    else pair[0] = load(packed + at), pair[1] = load(packed + at + LANES);
}

INLINE void add_unit_pair(vec sum[2], vec x, const bj_real *packed, const uint16_t *half, size_t at,
                          int is_half) {
    vec w[2];
    unit_pair(w, packed, half, at, is_half);
    sum[0] += x * w[0];
    sum[1] += x * w[1];
}

INLINE void unit_store(bj_real *to, const vec pair[2], int n, int is_half) {
    bj_real unit[UNITS];
    UNROLL for (int i = 0; i < LANES; i++) {
        unit[is_half ? 2 * i : i] = pair[0][i];
        unit[is_half ? 2 * i + 1 : LANES + i] = pair[1][i];
    }
    memcpy(to, unit, (size_t)(n < UNITS ? n : UNITS) * sizeof *to);
}

INLINE void unit_load(vec pair[2], const bj_real *from, int n, int is_half) {
    bj_real unit[UNITS] = {0};
    memcpy(unit, from, (size_t)(n < UNITS ? n : UNITS) * sizeof *from);
    UNROLL for (int i = 0; i < LANES; i++) {
        pair[0][i] = unit[is_half ? 2 * i : i];
        pair[1][i] = unit[is_half ? 2 * i + 1 : LANES + i];
    }
}

/* `groups` groups from unit u on, side by side: six chains of sums are too few to hide the latency
 * of a multiply-add. */
INLINE void gru_groups(bj_real *h_out, const bj_real *row, const bj_real *packed,
                       const uint16_t *half, int lead, int E, int u, int groups, int is_half) {
    const size_t group = (size_t)UNITS * (size_t)(1 + 3 * (lead + E));
    size_t at = (size_t)(u / UNITS) * group;
    vec r[2][2] = {{{0}}}, z[2][2] = {{{0}}}, in[2][2] = {{{0}}}, hn[2][2];
    UNROLL for (int g = 0; g < groups; g++) {
        unit_pair(hn[g], packed, half, at + (size_t)g * group, is_half);
    }
    at += UNITS;
    for (int k = 0; k < lead; k++, at += 3 * UNITS) {
        const vec x = splat(row[k]);
        UNROLL for (int g = 0; g < groups; g++) {
            const size_t from = at + (size_t)g * group;
            add_unit_pair(r[g], x, packed, half, from, is_half);
            add_unit_pair(z[g], x, packed, half, from + UNITS, is_half);
            add_unit_pair(in[g], x, packed, half, from + 2 * UNITS, is_half);
        }
    }
    for (int k = lead; k < lead + E; k++, at += 3 * UNITS) {
        const vec x = splat(row[k]);
        UNROLL for (int g = 0; g < groups; g++) {
            const size_t from = at + (size_t)g * group;
            add_unit_pair(r[g], x, packed, half, from, is_half);
            add_unit_pair(z[g], x, packed, half, from + UNITS, is_half);
            add_unit_pair(hn[g], x, packed, half, from + 2 * UNITS, is_half);
        }
    }
    UNROLL for (int g = 0; g < groups; g++) {
        const int unit = u + g * UNITS;
        vec h[2];
        unit_load(h, row + lead + unit, E - unit, is_half);
        UNROLL for (int j = 0; j < 2; j++) {
            vec reset, keep;
            sigmoid_two(&reset, &keep, r[g][j], z[g][j]);
            const vec c = tanh_vec(in[g][j] + reset * hn[g][j]);
            h[j] = c + keep * (h[j] - c);
        }
        unit_store(h_out + unit, h, E - unit, is_half);
    }
}

INLINE void gru_units(bj_real *h_out, const bj_real *row, const bj_real *packed,
                      const uint16_t *half, int lead, int E, int u0, int u1, int is_half) {
    int u = u0;
    for (; u1 - u > UNITS; u += 2 * UNITS)
        gru_groups(h_out, row, packed, half, lead, E, u, 2, is_half);
    if (u < u1) gru_groups(h_out, row, packed, half, lead, E, u, 1, is_half);
}

static void gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed,
                    const uint16_t *half, int lead, int E, int u0, int u1) {
    if (half) gru_units(h_out, row, packed, half, lead, E, u0, u1, 1);
    else gru_units(h_out, row, packed, half, lead, E, u0, u1, 0);
}

#endif
