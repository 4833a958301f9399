/* body_gru.h - gate activations, a GRU step for many rows, its gradient, and a step for one row. */
#ifndef BJ_KERNELS_BODY_GRU_H
#define BJ_KERNELS_BODY_GRU_H

#include "kernels/body_half.h"

/* Gate activations: r = sigmoid(a) and z = sigmoid(b), and tanh. */
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
/* Computes tanh x = p / q, where p / x and q are polynomials in x^2. Their minimax relative error
 * is 2e-8 for |x| <= 9, and beyond that tanh rounds to 1 in float. Including rounding, the error is
 * below 4e-7, at half the cost of an exponential that is accurate to 2e-7. NaN is preserved. */
INLINE void tanh_ratio(vec *p, vec *q, vec x) {
    x = BJ_BODY_MIN(splat(9.0f), BJ_BODY_MAX(splat(-9.0f), x));
    const vec u = x * x;
    vec a = splat(1.33546397e-8f), b = splat(7.77654909e-7f);
    a = a * u + 2.06090656e-5f;
    b = b * u + 3.28563312e-4f;
    a = a * u + 3.49558708e-3f;
    b = b * u + 2.58769782e-2f;
    a = a * u + 1.33810248e-1f;
    b = b * u + 4.67143403e-1f;
    a = a * u + 9.99999979e-1f;
    *p = x * a;
    *q = b * u + 1;
}

/* Computes sigmoid x = (1 + tanh (x / 2)) / 2 for two vectors with one division. */
INLINE void sigmoid_two(vec *r, vec *z, vec a, vec b) {
    vec p_a, q_a, p_b, q_b;
    tanh_ratio(&p_a, &q_a, a * 0.5f);
    tanh_ratio(&p_b, &q_b, b * 0.5f);
    const vec half = 0.5f / (q_a * q_b);
    *r = p_a * q_b * half + 0.5f;
    *z = p_b * q_a * half + 0.5f;
}

INLINE vec tanh_vec(vec x) {
    vec p, q;
    tanh_ratio(&p, &q, x);
    return p / q;
}
#endif

/* --------------------------------------------------------------------------- step for many rows */

/* Weights are stored in groups of `units` units. A group consists of b_hn, followed by the weights
 * of r, z and n for every entry of the state row. The weights of n are those of the input before
 * `lead` and those of the state from `lead` on. */
static size_t gru_groups_size(int units, int lead, int E) {
    return (size_t)((E + units - 1) / units) * (size_t)units * (size_t)(1 + 3 * (lead + E));
}

static void gru_pack_groups(bj_real *packed, int units, const bj_real *w_ih, const bj_real *w_hh,
                            const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    for (int u = 0; u < E; u += units) {
        const int whole = E % LANES == 0 && u + units <= E;
        for (int k = -1; k < (whole ? lead : lead + E); k++) {
            for (int gate = k < 0 ? 2 : 0; gate < 3; gate++, packed += units) {
                for (int j = 0; j < units; j++) {
                    const int o = gate * E + u + j;
                    if (u + j >= E) packed[j] = 0;
                    else if (k < 0) packed[j] = b_hh[o];
                    else if (k < I) packed[j] = w_ih[o * I + k];
                    else if (k == I) packed[j] = gate < 2 ? b_ih[o] + b_hh[o] : b_ih[o];
                    else packed[j] = k < lead ? 0 : w_hh[(size_t)o * E + (size_t)(k - lead)];
                }
            }
        }
        if (!whole) continue;
        for (int j = 0; j < 3 * units; j += LANES)
            pack_rows(packed + j, 3 * units,
                      w_hh + (size_t)(j / units * E + u + j % units) * (size_t)E, (size_t)E, E);
        packed += 3 * units * E;
    }
}

static size_t gru_size(int lead, int E) { return gru_groups_size(LANES, lead, E); }

static void gru_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                     const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    gru_pack_groups(packed, LANES, w_ih, w_hh, b_ih, b_hh, I, lead, E);
}

/* Rows of a step, restricted to a group of units. */
typedef struct gru_block {
    bj_real *gates, *h_out;    /* of the group; gates may be NULL */
    const bj_real *state, *h;  /* complete rows, and the group's part of h in them */
    size_t ldg, ldo, lds;
    int lead, depth, E;        /* depth: length of the product with h */
} gru_block;

/* Computes mr rows of a group with n valid units. The gates stay in registers until they have the
 * form that backward needs. */
INLINE void gru_tile(const gru_block *b, const bj_real *group, int mr, int n) {
    vec sum[TALL][WIDTH] = {{{0}}}, in[ROWS]; /* sums of r, z and n */
    UNROLL for (int i = 0; i < mr; i++) { /* prefetch the next group's output */
        __builtin_prefetch(b->h_out + (size_t)i * b->ldo + LANES, 1);
        if (!b->gates) continue;
        UNROLL for (int gate = 0; gate < 4; gate++) {
            __builtin_prefetch(b->gates + (size_t)i * b->ldg + gate * b->E + LANES, 1);
        }
    }
    const vec b_hn = load(group);
    tile_sum(sum, b->state, b->lds, group + LANES, PANEL, b->lead, mr, 3);
    UNROLL for (int i = 0; i < mr; i++) in[i] = sum[i][2], sum[i][2] = b_hn;
    tile_sum(sum, b->state + b->lead, b->lds, group + LANES + b->lead * PANEL, PANEL, b->depth, mr,
             3);
    /* Two passes keep the chains of dependent operations short and let them overlap. */
    UNROLL for (int i = 0; i < mr; i++) {
        sigmoid_two(&sum[i][0], &sum[i][1], sum[i][0], sum[i][1]);
        in[i] += sum[i][0] * sum[i][2];
        if (!b->gates) continue;
        bj_real *at = b->gates + (size_t)i * b->ldg;
        store_n(at, sum[i][0], n);
        store_n(at + b->E, sum[i][1], n);
        store_n(at + 2 * b->E, sum[i][2], n);
    }
    UNROLL for (int i = 0; i < mr; i++) {
        const vec c = tanh_vec(in[i]), h = load_n(b->h + (size_t)i * b->lds, n);
        /* c + z (h - c) can be contracted in only one way, so gru_row computes the same bits */
        store_n(b->h_out + (size_t)i * b->ldo, c + sum[i][1] * (h - c), n);
        if (b->gates) store_n(b->gates + (size_t)i * b->ldg + 3 * b->E, c, n);
    }
}

#define GRU_TILE(mr)                                                                               \
    static void gru_tile_##mr(const gru_block *b, const bj_real *group) {                          \
        gru_tile(b, group, mr, LANES);                                                             \
    }
GRU_TILE(4)
#if BJ_BODY_ROWS == 8
GRU_TILE(8)
#endif
#undef GRU_TILE

/* Computes all rows of a group, whose weights stay in the L1 cache. */
static void gru_rows(gru_block b, const bj_real *group, int M, int n) {
    for (int m = 0, mr; m < M; m += mr) {
        mr = 1;
#if BJ_BODY_ROWS == 8
        if (n >= LANES && M - m >= 8) mr = 8, gru_tile_8(&b, group);
        else
#endif
            if (n >= LANES && M - m >= 4) mr = 4, gru_tile_4(&b, group);
        else gru_tile(&b, group, 1, n);
        b.state += (size_t)mr * b.lds;
        b.h += (size_t)mr * b.lds;
        b.h_out += (size_t)mr * b.ldo;
        if (b.gates) b.gates += (size_t)mr * b.ldg;
    }
}

static void gru_step(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *state,
                     size_t lds, const bj_real *packed, int lead, int E, int M, int first) {
    for (int u = 0; u < E; u += LANES, packed += LANES * (1 + 3 * (lead + E))) {
        const gru_block b = {.gates = gates ? gates + u : NULL,
                             .ldg = ldg,
                             .h_out = h_out + u,
                             .ldo = ldo,
                             .state = state,
                             .h = state + lead + u,
                             .lds = lds,
                             .lead = lead,
                             .depth = first ? 0 : E,
                             .E = E};
        gru_rows(b, packed, M, E - u);
    }
}

/* ------------------------------------------------------------------------------------- backward */

/* Replaces the gates with their gradients, given the gradient d of the new state. Returns the part
 * of d that reaches the old state directly. */
INLINE vec gru_gates_backward(bj_real *at, vec d, const bj_real *h, int E, int n) {
    const vec r = load_n(at, n), z = load_n(at + E, n);
    const vec hn = load_n(at + 2 * E, n), c = load_n(at + 3 * E, n);
    /* forward: h_out = c + z (h - c) */
    const vec dz = d * (load_n(h, n) - c) * z * (1 - z);
    /* forward: c = tanh(in + r hn) */
    const vec din = d * (1 - z) * (1 - c * c);
    store_n(at, din * hn * r * (1 - r), n);
    store_n(at + E, dz, n);
    store_n(at + 2 * E, din * r, n);
    store_n(at + 3 * E, din, n);
    return d * z;
}

/* Computes the gradient of mr rows and n units of a panel. gates and h belong to the current step,
 * dgates to the step after it. */
INLINE void gru_unstep_tile(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates,
                            size_t ldg, const bj_real *h, size_t ldh, const bj_real *panel, int E,
                            int mr, int nv, int n) {
    vec acc[TALL][WIDTH];
    UNROLL for (int i = 0; i < mr; i++) { /* prefetch while the sums are computed */
        const bj_real *last = gates + (size_t)i * ldg + n - 1, *state = h + (size_t)i * ldh;
        UNROLL for (int gate = 0; gate < 4; gate++) {
            __builtin_prefetch(last + gate * E - (n - 1), 1);
            __builtin_prefetch(last + gate * E, 1);
        }
        __builtin_prefetch(state);
        __builtin_prefetch(state + n - 1);
    }
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            acc[i][j] = load_n(dh + (size_t)i * lddh + j * LANES, n - j * LANES);
        }
    }
    if (dgates) tile_sum(acc, dgates, ldg, panel, nv * LANES, 3 * E, mr, nv);
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int left = n - j * LANES;
            const vec d = gru_gates_backward(gates + (size_t)i * ldg + j * LANES, acc[i][j],
                                             h + (size_t)i * ldh + j * LANES, E, left);
            store_n(dh + (size_t)i * lddh + j * LANES, d, left);
        }
    }
}

static void gru_unstep(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates, size_t ldg,
                       const bj_real *h, size_t ldh, const bj_real *recurrent, int E, int M) {
    for (int u = 0; u < E; u += PANEL) {
        const bj_real *panel = recurrent + (size_t)u * 3 * E;
        const int n = E - u < PANEL ? E - u : PANEL, nv = (n + LANES - 1) / LANES;
        for (int m = 0, mr; m < M; m += mr) {
            mr = n == nv * LANES && M - m >= ROWS ? ROWS : 1;
#define UNSTEP(rows, vectors, units)                                                               \
    gru_unstep_tile(dh + (size_t)m * lddh + u, lddh, dgates ? dgates + (size_t)m * ldg : NULL,     \
                    gates + (size_t)m * ldg + u, ldg, h + (size_t)m * ldh + u, ldh, panel, E,      \
                    rows, vectors, units)
            if (mr == ROWS && nv == 3) UNSTEP(ROWS, 3, PANEL);
            else if (mr == ROWS && nv == 2) UNSTEP(ROWS, 2, 2 * LANES);
            else if (mr == ROWS) UNSTEP(ROWS, 1, LANES);
            else if (nv == 3) UNSTEP(1, 3, n);
            else if (nv == 2) UNSTEP(1, 2, n);
            else UNSTEP(1, 1, n);
#undef UNSTEP
        }
    }
}

/* ----------------------------------------------------------------------------- step for one row */

/* Groups of two vectors of units. 16-bit weights of the two vectors are read as interleaved pairs,
 * which one shift and one mask split. In registers, the first vector then contains the even units
 * of the group and the second vector the odd ones. */
enum { UNITS = 2 * LANES };

static size_t gru_row_size(int lead, int E) { return gru_groups_size(UNITS, lead, E); }

static void gru_row_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                         const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    gru_pack_groups(packed, UNITS, w_ih, w_hh, b_ih, b_hh, I, lead, E);
}

/* Loads two vectors of weights. Full-precision units are loaded in order, 16-bit units are split
 * into even and odd ones. */
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

/* Computes `groups` groups at once, starting at unit u, because the six chains of sums of a single
 * group do not hide the latency of a multiply-add. */
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
