/* gru.c - see gru.h. */
#include "nn/gru.h"

#include <string.h>

void bj_gru_pack(const bj_kernels *k, const bj_gru *g) {
    k->gru_pack(g->packed, g->w_ih, g->w_hh, g->b_ih, g->b_hh, g->I, g->lead, g->E);
    if (g->recurrent) k->pack_kn(g->recurrent, g->w_hh, (size_t)g->E, g->E, 3 * g->E);
}

const bj_real *bj_gru_forward(const bj_kernels *k, bj_real *state, size_t state_step, size_t lds,
                              bj_real *gates, size_t gates_step, size_t ldg, const bj_real *x,
                              size_t ldx, const bj_gru *g, int M, int T) {
    const int E = g->E, I = g->I, lead = g->lead;
    bj_real *now = state;
    for (int m = 0; m < M; m++) memset(now + (size_t)m * lds, 0, (size_t)(lead + E) * sizeof *x);
    for (int t = 0; t < T; t++) {
        bj_real *next = state + (size_t)(gates ? t + 1 : (t + 1) % 2) * state_step;
        for (int m = 0; m < M; m++) {
            bj_real *row = now + (size_t)m * lds;
            memcpy(row, x + (size_t)m * ldx + (size_t)t * I, (size_t)I * sizeof *row);
            row[I] = 1;
            for (int i = I + 1; i < lead; i++) row[i] = 0;
        }
        k->gru_step(gates ? gates + (size_t)t * gates_step : NULL, ldg, next + lead, lds, now, lds,
                    g->packed, lead, E, M, t == 0);
        now = next;
    }
    return now + lead;
}

void bj_gru_backward(const bj_kernels *k, bj_real *dh, size_t lddh, bj_real *gates,
                     size_t gates_step, size_t ldg, const bj_real *state, size_t state_step,
                     size_t lds, const bj_gru *g, int M, int T) {
    const bj_real *after = NULL;
    for (int t = T - 1; t >= 0; t--) {
        bj_real *gates_t = gates + (size_t)t * gates_step;
        k->gru_unstep(dh, lddh, after, gates_t, ldg, state + (size_t)t * state_step + g->lead, lds,
                      g->recurrent, g->E, M);
        after = gates_t;
    }
}
