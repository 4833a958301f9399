/* variational.c - see variational.h. */
#include "model/variational.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "nn/normalize.h"

void bj_variational_take(bj_network_block *b, bj_arena *arena, const bj_network *n, size_t M,
                         int training) {
    const size_t V = (size_t)n->arch->noise;
    b->ldn = bj_stride(n->arch->noise_hidden);
    b->ldp = bj_stride(n->posterior_in.in);
    b->ldg = bj_stride(n->atom_in[0].in);
    b->prior = bj_arena_take(arena, M * 2 * V);
    b->prior_hidden = bj_arena_take(arena, M * b->ldn);
    b->generator_x = bj_arena_take(arena, M * b->ldg);
    if (!training) return;
    b->eps = bj_arena_take(arena, M * V);
    b->posterior = bj_arena_take(arena, M * 2 * V);
    b->posterior_hidden = bj_arena_take(arena, M * b->ldn);
    b->posterior_x = bj_arena_take(arena, M * b->ldp);
    b->dprior = bj_arena_take(arena, M * 2 * V);
    b->dposterior = bj_arena_take(arena, M * 2 * V);
    b->dprior_hidden = bj_arena_take(arena, M * b->ldn);
    b->dposterior_hidden = bj_arena_take(arena, M * b->ldn);
    b->dposterior_x = bj_arena_take(arena, M * b->ldp);
    b->dgenerator_x = bj_arena_take(arena, M * b->ldg);
}

void bj_variational_shift(bj_network_block *b, const bj_network *n, size_t first) {
    const size_t V = (size_t)n->arch->noise;
    bj_real **const pairs[] = {&b->prior, &b->posterior, &b->dprior, &b->dposterior};
    bj_real **const hidden[] = {&b->prior_hidden, &b->posterior_hidden, &b->dprior_hidden,
                                &b->dposterior_hidden};
    for (int i = 0; i < 4; i++) {
        *pairs[i] += first * 2 * V;
        *hidden[i] += first * b->ldn;
    }
    b->eps += first * V;
    b->posterior_x += first * b->ldp;
    b->dposterior_x += first * b->ldp;
    b->generator_x += first * b->ldg;
    b->dgenerator_x += first * b->ldg;
}

/* ------------------------------------------------------------------------------------- forward */

void bj_variational_prior(const bj_network *n, const bj_network_block *b) {
    bj_linear_forward(n->k, b->prior_hidden, b->ldn, b->context, b->ldc, &n->prior_in, b->M,
                      BJ_GEMM_RELU);
    bj_linear_forward(n->k, b->prior, 2 * (size_t)n->arch->noise, b->prior_hidden, b->ldn,
                      &n->prior_out, b->M, 0);
}

/* Fills x with rows [c | extra]. */
static void join(bj_real *x, size_t ldx, const bj_network_block *b, int C, const bj_real *extra,
                 size_t lde, int n) {
    for (size_t m = 0; m < (size_t)b->M; m++) {
        memcpy(x + m * ldx, b->context + m * b->ldc, (size_t)C * sizeof *x);
        if (extra) memcpy(x + m * ldx + C, extra + m * lde, (size_t)n * sizeof *x);
    }
}

/* Computes u = normalize(generator(generator_x)). */
static void generate(const bj_network *n, const bj_network_block *b) {
    bj_linear_forward(n->k, b->atom_hidden, b->lda, b->generator_x, b->ldg, &n->atom_in[0], b->M,
                      BJ_GEMM_RELU);
    bj_linear_forward(n->k, b->u, b->ldu, b->atom_hidden, b->lda, &n->atom_out[0], b->M, 0);
    bj_normalize_forward(b->u, b->ldu, b->inverse, b->M, n->arch->latent);
}

void bj_variational_forward_block(const bj_network *n, const bj_network_block *b) {
    const int V = n->arch->noise, C = n->prior_in.in, D = n->arch->latent;
    bj_variational_prior(n, b);
    join(b->posterior_x, b->ldp, b, C, b->z, b->ldu, D);
    bj_linear_forward(n->k, b->posterior_hidden, b->ldn, b->posterior_x, b->ldp, &n->posterior_in,
                      b->M, BJ_GEMM_RELU);
    bj_linear_forward(n->k, b->posterior, 2 * (size_t)V, b->posterior_hidden, b->ldn,
                      &n->posterior_out, b->M, 0);
    join(b->generator_x, b->ldg, b, C, NULL, 0, 0);
    for (size_t m = 0; m < (size_t)b->M; m++) {
        const bj_real *q = b->posterior + m * 2 * (size_t)V, *eps = b->eps + m * (size_t)V;
        bj_real *w = b->generator_x + m * b->ldg + C;
        for (int i = 0; i < V; i++)
            w[i] = (bj_real)((double)q[i] + exp((double)q[V + i]) * (double)eps[i]);
    }
    generate(n, b);
}

/* ------------------------------------------------------------------------------------ backward */

void bj_variational_backward_block(const bj_network *n, const bj_network_block *b) {
    const int V = n->arch->noise, C = n->prior_in.in, M = b->M;
    const size_t V2 = 2 * (size_t)V;
    /* forward: u = generator([c | w]) */
    bj_linear_backward(n->k, b->datom_hidden, b->lda, b->du, b->ldu, b->atom_hidden, b->lda,
                       &n->atom_out[0], M, 0);
    bj_linear_backward(n->k, b->dgenerator_x, b->ldg, b->datom_hidden, b->lda, NULL, 0,
                       &n->atom_in[0], M, 0);
    for (size_t m = 0; m < (size_t)M; m++) {
        /* forward: w = m_q + exp(s_q) eps */
        const bj_real *dw = b->dgenerator_x + m * b->ldg + C, *eps = b->eps + m * (size_t)V;
        const bj_real *s = b->posterior + m * V2 + V;
        bj_real *dq = b->dposterior + m * V2;
        for (int i = 0; i < V; i++) {
            dq[i] += dw[i];
            dq[V + i] += (bj_real)((double)dw[i] * exp((double)s[i]) * (double)eps[i]);
        }
    }
    bj_linear_backward(n->k, b->dposterior_hidden, b->ldn, b->dposterior, V2, b->posterior_hidden,
                       b->ldn, &n->posterior_out, M, 0);
    bj_linear_backward(n->k, b->dposterior_x, b->ldp, b->dposterior_hidden, b->ldn, NULL, 0,
                       &n->posterior_in, M, 0);
    bj_linear_backward(n->k, b->dprior_hidden, b->ldn, b->dprior, V2, b->prior_hidden, b->ldn,
                       &n->prior_out, M, 0);
    bj_linear_backward(n->k, b->dcontext, b->ldc, b->dprior_hidden, b->ldn, NULL, 0, &n->prior_in,
                       M, 0);
    for (size_t m = 0; m < (size_t)M; m++)
        for (int i = 0; i < C; i++)
            b->dcontext[m * b->ldc + (size_t)i] += b->dgenerator_x[m * b->ldg + (size_t)i] +
                                                   b->dposterior_x[m * b->ldp + (size_t)i];
}

/* ------------------------------------------------------------------------------------- readout */

void bj_variational_noise(bj_real *eps, int V, int j) {
    bj_rng rng = bj_rng_named((uint64_t)j, "readout of the prior");
    for (int i = 0; i < V; i++) eps[i] = (bj_real)(float)bj_rng_normal(&rng);
}

void bj_variational_read(const bj_network *n, const bj_network_block *b, int j,
                         const bj_real *eps) {
    const int V = n->arch->noise, C = n->prior_in.in;
    join(b->generator_x, b->ldg, b, C, NULL, 0, 0);
    for (size_t m = 0; m < (size_t)b->M; m++) {
        const bj_real *p = b->prior + m * 2 * (size_t)V;
        bj_real *w = b->generator_x + m * b->ldg + C;
        for (int i = 0; i < V; i++)
            w[i] = j ? (bj_real)((double)p[i] + exp((double)p[V + i]) * (double)eps[i]) : p[i];
    }
    generate(n, b);
}
