/* gru.c - see gru.h. */
#include "nn/gru.h"

#include <string.h>

size_t bj_gru_joined_size(int I, int E) {
    const size_t lead = (size_t)bj_gru_lead(I), e = (size_t)E;
    return 2 * e * (lead + e) + e * (lead - (size_t)I + e) + e * (size_t)(I + 1);
}

void bj_gru_pack(const bj_kernels *k, const bj_gru *g) {
    const int E = g->E, I = g->I, lead = g->lead;
    const size_t wide = (size_t)(lead + E), tail = (size_t)(lead - I + E), narrow = (size_t)(I + 1);
    bj_real *rz = g->joined, *hn = rz + 2 * (size_t)E * wide, *in = hn + (size_t)E * tail;
    for (int o = 0; o < 3 * E; o++) {
        const bj_real *w_i = g->w_ih + (size_t)o * I, *w_h = g->w_hh + (size_t)o * E;
        if (o < 2 * E) {
            bj_real *row = rz + (size_t)o * wide;
            memcpy(row, w_i, (size_t)I * sizeof *row);
            row[I] = g->b_ih[o] + g->b_hh[o];
            for (int i = I + 1; i < lead; i++) row[i] = 0;
            memcpy(row + lead, w_h, (size_t)E * sizeof *row);
        } else {
            bj_real *row = hn + (size_t)(o - 2 * E) * tail;
            row[0] = g->b_hh[o];
            for (int i = 1; i < lead - I; i++) row[i] = 0;
            memcpy(row + lead - I, w_h, (size_t)E * sizeof *row);
            row = in + (size_t)(o - 2 * E) * narrow;
            memcpy(row, w_i, (size_t)I * sizeof *row);
            row[I] = g->b_ih[o];
        }
    }
    k->pack_nk(g->rz, rz, wide, 2 * E, (int)wide);
    k->pack_nk(g->hn, hn, tail, E, (int)tail);
    k->pack_nk(g->in, in, narrow, E, (int)narrow);
    if (g->recurrent) k->pack_kn(g->recurrent, g->w_hh, (size_t)E, E, 3 * E);
}

void bj_gru_forward(const bj_kernels *k, bj_real *state, size_t state_step, size_t lds,
                    bj_real *gates, size_t gates_step, size_t ldg, const bj_real *x, size_t ldx,
                    const bj_gru *g, int M, int T) {
    const int E = g->E, I = g->I, lead = g->lead;
    for (int m = 0; m < M; m++) memset(state + (size_t)m * lds, 0, (size_t)(lead + E) * sizeof *x);
    for (int t = 0; t < T; t++, state += state_step, gates += gates_step) {
        for (int m = 0; m < M; m++) {
            bj_real *row = state + (size_t)m * lds;
            memcpy(row, x + (size_t)m * ldx + (size_t)t * I, (size_t)I * sizeof *row);
            row[I] = 1;
            for (int i = I + 1; i < lead; i++) row[i] = 0;
        }
        k->gemm(gates, ldg, state, lds, g->rz, NULL, NULL, 0, M, 2 * E, lead + E, 0);
        k->gemm(gates + 2 * E, ldg, state + I, lds, g->hn, NULL, NULL, 0, M, E, lead - I + E, 0);
        k->gemm(gates + 3 * E, ldg, state, lds, g->in, NULL, NULL, 0, M, E, I + 1, 0);
        k->gru_cell(gates, ldg, state + state_step + lead, lds, state + lead, lds, M, E);
    }
}

void bj_gru_backward(const bj_kernels *k, bj_real *dh, size_t lddh, bj_real *gates,
                     size_t gates_step, size_t ldg, const bj_real *state, size_t state_step,
                     size_t lds, const bj_gru *g, int M, int T) {
    const int E = g->E;
    for (int t = T - 1; t >= 0; t--) {
        bj_real *gates_t = gates + (size_t)t * gates_step;
        k->gru_cell_backward(gates_t, ldg, dh, lddh, state + (size_t)t * state_step + g->lead, lds,
                             M, E);
        /* forward: r, z, hn each added W h; nothing is left of h before the first step */
        if (t > 0)
            k->gemm(dh, lddh, gates_t, ldg, g->recurrent, NULL, NULL, 0, M, E, 3 * E, BJ_GEMM_ADD);
    }
}
