/* body_gru.h - GRU kernels: gate activations, a step for many rows, its gradient, and a step for
 * one row. */
#ifndef BJ_KERNELS_BODY_GRU_H
#define BJ_KERNELS_BODY_GRU_H

#include "kernels/body_gemm.h"

/* Gate activations r = sigmoid(a) and z = sigmoid(b), and the tanh function. */
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
/* Computes tanh x = p / q, where p / x and q are polynomials in x^2. The minimax relative error is
 * 2e-8 for |x| <= 9. Beyond that, tanh rounds to 1 in float. Including rounding, the error is below
 * 4e-7, at half the cost of an exponential that is accurate to 2e-7. NaN is preserved. */
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
 * `lead` and those of the state from `lead` on. In mixed precision, the weights of the state are
 * words. The input has few entries, so its weights and the biases stay in single precision. */
INLINE size_t gru_groups_size(int units, int lead, int E, int mixed) {
    const int depth = lead + (mixed ? words_of(E) : E);
    return (size_t)((E + units - 1) / units) * (size_t)units * (size_t)(1 + 3 * depth);
}

INLINE void gru_pack_groups(bj_real *packed, int units, const bj_real *w_ih, const bj_real *w_hh,
                            const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E,
                            int mixed) {
    const int depth = mixed ? words_of(E) : E;
    for (int u = 0; u < E; u += units) {
        const int whole = E % (LANES * (1 + mixed)) == 0 && u + units <= E;
        for (int k = -1; k < (whole ? lead : lead + depth); k++) {
            for (int gate = k < 0 ? 2 : 0; gate < 3; gate++, packed += units) {
                for (int j = 0; j < units; j++) {
                    const int o = gate * E + u + j, h = (k - lead) * (1 + mixed);
                    const bj_real *w = w_hh + (size_t)o * (size_t)E + h;
                    if (u + j >= E) packed[j] = 0;
                    else if (k < 0) packed[j] = b_hh[o];
                    else if (k < I) packed[j] = w_ih[o * I + k];
                    else if (k == I) packed[j] = gate < 2 ? b_ih[o] + b_hh[o] : b_ih[o];
                    else if (k < lead) packed[j] = 0;
                    else packed[j] = mixed ? word_of(w[0], h + 1 < E ? w[1] : 0) : w[0];
                }
            }
        }
        if (!whole) continue;
        for (int j = 0; j < 3 * units; j += LANES)
            pack_rows(packed + j, 3 * units,
                      w_hh + (size_t)(j / units * E + u + j % units) * (size_t)E, (size_t)E, depth,
                      mixed);
        packed += 3 * units * depth;
    }
}

static size_t gru_size(int lead, int E) { return gru_groups_size(LANES, lead, E, 0); }

static void gru_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                     const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    gru_pack_groups(packed, LANES, w_ih, w_hh, b_ih, b_hh, I, lead, E, 0);
}

/* The rows of a GRU step, restricted to a group of units. */
typedef struct gru_block {
    bj_real *gates, *h_out;      /* outputs of the group; gates may be NULL */
    const bj_real *state, *h;    /* complete state rows, and the part of h in them that belongs to
                                    the group */
    const bj_real *from;         /* operand of the recurrent product: h, or h as words */
    size_t ldg, ldo, lds, ldf;
    int lead, depth, E;          /* depth: length of the recurrent product */
} gru_block;

/* Computes mr rows of a group with n valid units. The gates stay in registers until they have the
 * form that the backward pass needs. */
INLINE void gru_tile(const gru_block *b, const bj_real *group, int mr, int n, int mixed) {
    vec sum[TALL][WIDTH] = {{{0}}}, in[ROWS]; /* sums of r, z and n */
    UNROLL for (int i = 0; i < mr; i++) { /* prefetch the next group's output */
        __builtin_prefetch(b->h_out + (size_t)i * b->ldo + LANES, 1);
        if (!b->gates) continue;
        UNROLL for (int gate = 0; gate < 4; gate++) {
            __builtin_prefetch(b->gates + (size_t)i * b->ldg + gate * b->E + LANES, 1);
        }
    }
    const vec b_hn = load(group);
    tile_sum(sum, b->state, b->lds, group + LANES, PANEL, b->lead, mr, 3, 0);
    UNROLL for (int i = 0; i < mr; i++) in[i] = sum[i][2], sum[i][2] = b_hn;
    tile_sum(sum, b->from, b->ldf, group + LANES + b->lead * PANEL, PANEL, b->depth, mr, 3, mixed);
    /* Two passes keep the dependency chains short and let them overlap. */
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
        /* c + z (h - c) can be contracted in only one way, so gru_row gives bit-identical
         * results */
        store_n(b->h_out + (size_t)i * b->ldo, c + sum[i][1] * (h - c), n);
        if (b->gates) store_n(b->gates + (size_t)i * b->ldg + 3 * b->E, c, n);
    }
}

/* Computes all rows of a group while its weights stay in the L1 cache. */
INLINE void gru_rows_of(gru_block b, const bj_real *group, int M, int n, int mixed) {
    for (int m = 0, mr; m < M; m += mr) {
        mr = 1;
#if BJ_BODY_ROWS == 8
        if (n >= LANES && M - m >= 8) mr = 8, gru_tile(&b, group, 8, LANES, mixed);
        else
#endif
            if (n >= LANES && M - m >= 4 && rows_of_tile(mixed) >= 4)
            mr = 4, gru_tile(&b, group, 4, LANES, mixed);
        else if (n >= LANES && M - m >= 3 && rows_of_tile(mixed) == 3)
            mr = 3, gru_tile(&b, group, 3, LANES, mixed);
        else gru_tile(&b, group, 1, n, mixed);
        b.state += (size_t)mr * b.lds;
        b.h += (size_t)mr * b.lds;
        b.from += (size_t)mr * b.ldf;
        b.h_out += (size_t)mr * b.ldo;
        if (b.gates) b.gates += (size_t)mr * b.ldg;
    }
}

/* Computes all groups. The recurrent product reads `from` (M,depth). */
INLINE void gru_groups_of(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo,
                          const bj_real *state, size_t lds, const bj_real *from, size_t ldf,
                          const bj_real *packed, int lead, int E, int depth, int M, int first,
                          int mixed) {
    for (int u = 0; u < E; u += LANES, packed += LANES * (1 + 3 * (lead + depth))) {
        const gru_block b = {.gates = gates ? gates + u : NULL,
                             .ldg = ldg,
                             .h_out = h_out + u,
                             .ldo = ldo,
                             .state = state,
                             .h = state + lead + u,
                             .lds = lds,
                             .from = from,
                             .ldf = ldf,
                             .lead = lead,
                             .depth = first ? 0 : depth,
                             .E = E};
        gru_rows_of(b, packed, M, E - u, mixed);
    }
}

static void gru_step(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo, const bj_real *state,
                     size_t lds, const bj_real *packed, int lead, int E, int M, int first) {
    gru_groups_of(gates, ldg, h_out, ldo, state, lds, state + lead, lds, packed, lead, E, E, M,
                  first, 0);
}

/* ------------------------------------------------------------------------------------- backward */

/* Replaces the gates with their gradients, given the gradient d of the new state. Returns the part
 * of d that passes directly to the old state. */
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

/* Computes the gradient for mr rows and n units of a panel. gates and h belong to this step, and
 * dgates (mr,depth) belongs to the step after it. */
INLINE void gru_unstep_tile(bj_real *dh, size_t lddh, const bj_real *dgates, size_t ldd,
                            bj_real *gates, size_t ldg, const bj_real *h, size_t ldh,
                            const bj_real *panel, int E, int depth, int mr, int nv, int n,
                            int mixed) {
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
    if (dgates) tile_sum(acc, dgates, ldd, panel, nv * LANES, depth, mr, nv, mixed);
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            const int left = n - j * LANES;
            const vec d = gru_gates_backward(gates + (size_t)i * ldg + j * LANES, acc[i][j],
                                             h + (size_t)i * ldh + j * LANES, E, left);
            store_n(dh + (size_t)i * lddh + j * LANES, d, left);
        }
    }
}

INLINE void gru_unstep_of(bj_real *dh, size_t lddh, const bj_real *dgates, size_t ldd,
                          bj_real *gates, size_t ldg, const bj_real *h, size_t ldh,
                          const bj_real *recurrent, int E, int depth, int M, int mixed) {
    for (int u = 0; u < E; u += PANEL) {
        const bj_real *panel = recurrent + (size_t)u * (size_t)depth;
        const int n = E - u < PANEL ? E - u : PANEL, nv = (n + LANES - 1) / LANES;
        for (int m = 0, mr; m < M; m += mr) {
            enum { SPLIT = 3 }; /* rows of a tile if words are split */
            const int most = rows_of_tile(mixed);
            mr = n == nv * LANES && M - m >= most ? most : 1;
#define UNSTEP(rows, vectors, units)                                                               \
    gru_unstep_tile(dh + (size_t)m * lddh + u, lddh, dgates ? dgates + (size_t)m * ldd : NULL,     \
                    ldd, gates + (size_t)m * ldg + u, ldg, h + (size_t)m * ldh + u, ldh, panel, E, \
                    depth, rows, vectors, units, mixed)
            if (mr == SPLIT && nv == 3) UNSTEP(SPLIT, 3, PANEL);
            else if (mr == SPLIT && nv == 2) UNSTEP(SPLIT, 2, 2 * LANES);
            else if (mr == SPLIT) UNSTEP(SPLIT, 1, LANES);
            else if (mr == ROWS && nv == 3) UNSTEP(ROWS, 3, PANEL);
            else if (mr == ROWS && nv == 2) UNSTEP(ROWS, 2, 2 * LANES);
            else if (mr == ROWS) UNSTEP(ROWS, 1, LANES);
            else if (nv == 3) UNSTEP(1, 3, n);
            else if (nv == 2) UNSTEP(1, 2, n);
            else UNSTEP(1, 1, n);
#undef UNSTEP
        }
    }
}

static void gru_unstep(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates, size_t ldg,
                       const bj_real *h, size_t ldh, const bj_real *recurrent, int E, int M) {
    gru_unstep_of(dh, lddh, dgates, ldg, gates, ldg, h, ldh, recurrent, E, 3 * E, M, 0);
}

/* ----------------------------------------------------------------------------- step for one row */

/* Adds the product of x and the weights at offset `at` of every group to the sums. */
INLINE void gru_row_part(vec sum[4][3], vec x, const bj_real *at, size_t group, int groups,
                         int part, int mixed) {
    UNROLL for (int g = 0; g < groups; g++) {
        UNROLL for (int j = 0; j < 3; j++) {
            const vec w = operand(load(at + (size_t)g * group + j * LANES), part, mixed);
            sum[g][j] = add_product(sum[g][j], x, w, mixed);
        }
    }
}

/* Computes `groups` groups of LANES units at once, starting at unit u. A single group has only
 * three independent sums, which is too few to hide the latency of a multiply-add. `from` is the
 * operand of the recurrent product. */
INLINE void gru_row_groups(bj_real *h_out, const bj_real *row, const bj_real *from,
                           const bj_real *packed, int lead, int E, int depth, int u, int groups,
                           int mixed) {
    const size_t group = (size_t)LANES * (size_t)(1 + 3 * (lead + depth));
    const bj_real *at = packed + (size_t)(u / LANES) * group;
    vec sum[4][3] = {{{0}}}, in[4], b_hn[4]; /* sums of r, z and n */
    UNROLL for (int g = 0; g < groups; g++) b_hn[g] = load(at + (size_t)g * group);
    at += LANES;
    for (int k = 0; k < lead; k++, at += PANEL)
        gru_row_part(sum, splat(row[k]), at, group, groups, 0, 0);
    UNROLL for (int g = 0; g < groups; g++) in[g] = sum[g][2], sum[g][2] = b_hn[g];
    for (int k = 0; k < depth; k++, at += PANEL) {
        gru_row_part(sum, left_operand(from, k, 0, mixed), at, group, groups, 0, mixed);
        if (mixed && PARTS == 2)
            gru_row_part(sum, left_operand(from, k, 1, mixed), at, group, groups, 1, mixed);
    }
    UNROLL for (int g = 0; g < groups; g++) {
        const int unit = u + g * LANES, n = E - unit;
        vec reset, keep;
        sigmoid_two(&reset, &keep, sum[g][0], sum[g][1]);
        const vec c = tanh_vec(in[g] + reset * sum[g][2]), h = load_n(row + lead + unit, n);
        store_n(h_out + unit, c + keep * (h - c), n);
    }
}

INLINE void gru_row_of(bj_real *h_out, const bj_real *row, const bj_real *from,
                       const bj_real *packed, int lead, int E, int depth, int u0, int u1,
                       int mixed) {
    int u = u0;
    for (; u1 - u > 3 * LANES; u += 4 * LANES)
        gru_row_groups(h_out, row, from, packed, lead, E, depth, u, 4, mixed);
    for (; u1 - u > LANES; u += 2 * LANES)
        gru_row_groups(h_out, row, from, packed, lead, E, depth, u, 2, mixed);
    if (u < u1) gru_row_groups(h_out, row, from, packed, lead, E, depth, u, 1, mixed);
}

static void gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed, int lead, int E,
                    int u0, int u1) {
    gru_row_of(h_out, row, row + lead, packed, lead, E, E, u0, u1, 0);
}

/* ------------------------------------------------------------------------------ mixed precision */

#ifndef BJ_DOUBLE

static size_t mixed_gru_size(int lead, int E) { return gru_groups_size(LANES, lead, E, 1); }

static void mixed_gru_pack(bj_real *packed, const bj_real *w_ih, const bj_real *w_hh,
                           const bj_real *b_ih, const bj_real *b_hh, int I, int lead, int E) {
    gru_pack_groups(packed, LANES, w_ih, w_hh, b_ih, b_hh, I, lead, E, 1);
}

/* Returns a row stride for words such that consecutive rows do not map to the same cache sets. */
static int word_stride(int words) { return ((PARTS * words + 15) / 16 | 1) * 16; }

static int words_fit(int stride, int M) {
    const int fit = WORD_COUNT / stride < 1 ? 1 : WORD_COUNT / stride;
    return fit < M ? fit : M;
}

static void mixed_gru_step(bj_real *gates, size_t ldg, bj_real *h_out, size_t ldo,
                           const bj_real *state, size_t lds, const bj_real *packed, int lead, int E,
                           int M, int first) {
    _Alignas(64) bj_real words[WORD_COUNT];
    const int depth = words_of(E), stride = word_stride(depth);
    for (int m = 0, rows; m < M; m += rows) {
        rows = words_fit(stride, M - m);
        const bj_real *from = state + (size_t)m * lds;
        if (!first) round_rows(words, (size_t)stride, from + lead, lds, rows, E);
        gru_groups_of(gates ? gates + (size_t)m * ldg : NULL, ldg, h_out + (size_t)m * ldo, ldo,
                      from, lds, words, (size_t)stride, packed, lead, E, depth, rows, first, 1);
    }
}

static void mixed_gru_unstep(bj_real *dh, size_t lddh, const bj_real *dgates, bj_real *gates,
                             size_t ldg, const bj_real *h, size_t ldh, const bj_real *recurrent,
                             int E, int M) {
    _Alignas(64) bj_real words[WORD_COUNT];
    const int depth = words_of(3 * E), stride = word_stride(depth);
    for (int m = 0, rows; m < M; m += rows) {
        const size_t at = (size_t)m;
        rows = words_fit(stride, M - m);
        if (dgates) round_rows(words, (size_t)stride, dgates + at * ldg, ldg, rows, 3 * E);
        gru_unstep_of(dh + at * lddh, lddh, dgates ? words : NULL, (size_t)stride, gates + at * ldg,
                      ldg, h + at * ldh, ldh, recurrent, E, depth, rows, 1);
    }
}

static void mixed_gru_row(bj_real *h_out, const bj_real *row, const bj_real *packed, int lead,
                          int E, int u0, int u1) {
    _Alignas(64) bj_real words[WORD_COUNT];
    round_rows(words, 0, row + lead, 0, 1, E);
    gru_row_of(h_out, row, words, packed, lead, E, words_of(E), u0, u1, 1);
}

#endif

#endif
