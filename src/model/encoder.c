/* encoder.c - forward and backward passes over a block of scenes; see encoder.h. */
#include "model/encoder.h"

#include <math.h>
#include <string.h>

#include "nn/attention.h"

enum { GROUP = 4 /* number of scenes whose tokens stay in the L2 cache until attention reads
                    them */ };

void bj_future_view(bj_real *features, const bj_real *future, int M, int F, double dt) {
    for (int m = 0; m < M; m++, future += 2 * F) {
        for (int t = 0; t < F; t++, features += BJ_FOCAL_FEATURES) {
            const int s = t < F - 1 ? t : F - 2; /* the last difference is repeated */
            const double vx = ((double)future[2 * s + 2] - (double)future[2 * s]) / dt;
            const double vy = ((double)future[2 * s + 3] - (double)future[2 * s + 1]) / dt;
            const double speed = sqrt(vx * vx + vy * vy), scale = speed < 1e-12 ? 1e-12 : speed;
            features[0] = future[2 * t];
            features[1] = future[2 * t + 1];
            features[2] = (bj_real)vx;
            features[3] = (bj_real)vy;
            features[4] = (bj_real)(vx / scale);
            features[5] = (bj_real)(vy / scale);
            features[6] = 0;
        }
    }
}

/* Sets up the tokens of scene m. A scene without neighbors gets the zero neighbor. */
static void scene_tokens(bj_tokens tokens[2], const bj_encoder *e, const bj_encoder_block *b,
                         int m) {
    const int G = e->arch->heads;
    const int *start[2] = {b->neighbor_start, b->polyline_start};
    for (int s = 0; s < 2; s++) {
        const int none = s == 0 && (!b->neighbors || start[0][m] == start[0][m + 1]);
        const size_t row = none ? 0 : (size_t)(start[s][m] - start[s][0]);
        tokens[s].TH = s == 0 ? e->NH : e->arch->token_hidden;
        tokens[s].S = none ? 1 : start[s][m + 1] - start[s][m];
        tokens[s].r = none ? e->dummy : b->r[s] + row * b->ldr;
        tokens[s].alpha = none ? b->dummy_alpha + (size_t)m * G : b->alpha[s] + row * G;
        tokens[s].dscore = b->dscore[s];
        tokens[s].dr = NULL;
        if (b->dr[s])
            tokens[s].dr = none ? b->dummy_dr + (size_t)m * b->ldr : b->dr[s] + row * b->ldr;
    }
}

/* Computes the hidden token rows of scenes [m0,m1). */
static void token_hidden(const bj_encoder *e, const bj_encoder_block *b, int m0, int m1) {
    const bj_real *features[2] = {b->neighbors, b->polylines};
    const int *start[2] = {b->neighbor_start, b->polyline_start};
    for (int s = 0; s < 2; s++) {
        const bj_linear *l = &e->linear[s == 0 ? BJ_ENC_NEIGHBOR : BJ_ENC_POLYLINE];
        if (!features[s]) continue;
        const size_t first = (size_t)start[s][m0];
        bj_linear_forward(e->k, b->r[s] + (first - (size_t)start[s][0]) * b->ldr, b->ldr,
                          features[s] + first * (size_t)l->in, (size_t)l->in, l,
                          start[s][m1] - start[s][m0], BJ_GEMM_RELU);
    }
}

/* Rows of a block of scenes that have one part per head. `ld` is the row stride, and `head` is the
 * stride between parts. */
typedef struct head_rows {
    bj_real *at;
    size_t ld, head;
} head_rows;

static head_rows by_width(const bj_encoder *e, bj_real *at) { /* (M,G,W) */
    return (head_rows){at, (size_t)e->arch->heads * e->ldt, e->ldt};
}

static head_rows by_embed(const bj_encoder *e, bj_real *at, size_t lde) { /* (M,G,E) */
    return (head_rows){at, (size_t)e->arch->heads * lde, lde};
}

static head_rows within_embed(const bj_encoder *e, bj_real *at, size_t lde) { /* (M,E) = (M,G,d) */
    return (head_rows){at, lde, (size_t)(e->arch->embed / e->arch->heads)};
}

/* Computes y_g (M,N) = x_g (M,K) times the packed matrix of head g. Adds bias (G,N) if it is not
 * NULL. */
static void each_head(const bj_encoder *e, head_rows y, int N, head_rows x, int K,
                      const bj_real *packed, const bj_real *bias, int M) {
    for (int g = 0; g < e->arch->heads; g++)
        e->k->gemm(y.at + (size_t)g * y.head, y.ld, x.at + (size_t)g * x.head, x.ld,
                   packed + (size_t)g * e->head_size, bias ? bias + g * N : NULL, NULL, 0, M, N, K,
                   0);
}

/* Computes y (M,G,W) = x_g Wk_g U, or x_g Wv_g U if `values` is set, for x (M,E). A factored
 * encoder stores x_g Wk_g in `between` (M,G,E). */
static void to_tokens(const bj_encoder *e, bj_real *y, bj_real *between, bj_real *x, size_t lde,
                      int values, int M) {
    const int E = e->arch->embed, G = e->arch->heads, d = E / G, W = e->W;
    const bj_real *packed = values ? e->n_kn : e->m_kn;
    const head_rows from = within_embed(e, x, lde);
    if (!e->factored) {
        each_head(e, by_width(e, y), W, from, d, packed, NULL, M);
        return;
    }
    each_head(e, by_embed(e, between, lde), E, from, d, packed, NULL, M);
    e->k->gemm(y, e->ldt, between, lde, e->joined_kn, NULL, NULL, 0, M * G, W, E, 0);
    for (int row = 0; row < M * G && !values; row++) { /* bk is added to the last two columns of
                                                          M_g */
        const bj_real *q = x + (size_t)(row / G) * lde + row % G * d;
        bj_real sum = 0;
        for (int i = 0; i < d; i++) sum += q[i] * e->kv_b[row % G * d + i];
        for (int s = 1; s <= 2; s++) y[(size_t)row * e->ldt + (size_t)(W - s)] += sum;
    }
}

/* Computes y (M,E) = Wk_g U x_g, or Wv_g U x_g if `values` is set, plus bias, for x (M,G,W). A
 * factored encoder stores U x_g in `between` (M,G,E). */
static void from_tokens(const bj_encoder *e, bj_real *y, bj_real *between, bj_real *x, size_t lde,
                        int values, const bj_real *bias, int M) {
    const int E = e->arch->embed, G = e->arch->heads, d = E / G, W = e->W;
    const bj_real *packed = values ? e->n_nk : e->m_nk;
    const head_rows to = within_embed(e, y, lde);
    if (!e->factored) {
        each_head(e, to, d, by_width(e, x), W, packed, bias, M);
        return;
    }
    e->k->gemm(between, lde, x, e->ldt, e->joined_nk, NULL, NULL, 0, M * G, E, W, 0);
    each_head(e, to, d, by_embed(e, between, lde), E, packed, bias, M);
    for (int row = 0; row < M * G && !values; row++) {
        bj_real *q = y + (size_t)(row / G) * lde + row % G * d;
        const bj_real *last = x + (size_t)row * e->ldt + (W - 2);
        for (int i = 0; i < d; i++) q[i] += (last[0] + last[1]) * e->kv_b[row % G * d + i];
    }
}

void bj_encoder_forward(const bj_encoder *e, const bj_encoder_block *b) {
    if (e->observer.layers) {
        bj_observer_forward(&e->observer, &b->observer, b->context, b->ldc, b->M);
        return;
    }
    const bj_kernels *k = e->k;
    const int E = e->arch->embed, G = e->arch->heads, d = E / G;
    const int M = b->M, I = BJ_FOCAL_FEATURES;
    const size_t ldg = (size_t)G * e->ldt; /* scene stride of a and h */
    const bj_real scale = (bj_real)(1.0 / sqrt((double)d));

    const bj_real *last =
        bj_gru_forward(k, b->state, b->state_step, b->lds, b->gates, b->gates_step, b->ldg,
                       b->focal, (size_t)b->T * I, &e->gru, M, b->T);
    for (int m = 0; m < M; m++)
        memcpy(b->joint + (size_t)m * b->ldj, last + (size_t)m * b->lds, (size_t)E * sizeof *last);

    bj_linear_forward(k, b->q, b->lde, b->joint, b->ldj, &e->linear[BJ_ENC_QUERY], M, 0);
    for (int m = 0; m < M; m++)
        for (int i = 0; i < E; i++) b->q[(size_t)m * b->lde + i] *= scale;
    to_tokens(e, b->a, b->p, b->q, b->lde, 0, M);

    for (int m = 0; m < M; m++) {
        bj_tokens tokens[2];
        if (m % GROUP == 0) token_hidden(e, b, m, m + GROUP < M ? m + GROUP : M);
        scene_tokens(tokens, e, b, m);
        bj_attention_forward(k, b->h + (size_t)m * ldg, b->a + (size_t)m * ldg, e->ldt, tokens,
                             b->ldr, G);
    }
    from_tokens(e, b->pooled, b->s, b->h, b->lde, 1, e->kv_b + E, M);
    bj_linear_forward(k, b->joint + E, b->ldj, b->pooled, b->lde, &e->linear[BJ_ENC_OUT], M, 0);

    bj_linear_forward(k, b->hidden, b->ldp, b->joint, b->ldj, &e->linear[BJ_ENC_PROJ_IN], M,
                      BJ_GEMM_RELU);
    bj_linear_forward(k, b->context, b->ldc, b->hidden, b->ldp, &e->linear[BJ_ENC_PROJ_OUT], M, 0);
}

double bj_encoder_entropy(const bj_encoder *e, const bj_encoder_block *b, int m) {
    const int G = e->arch->heads;
    bj_tokens tokens[2];
    double sum = 0;
    scene_tokens(tokens, e, b, m);
    for (int g = 0; g < G; g++) sum += bj_attention_entropy(tokens, g, G);
    return sum / G;
}

void bj_encoder_backward(const bj_encoder *e, const bj_encoder_block *b, const bj_real *dcontext) {
    if (e->observer.layers) {
        bj_observer_backward(&e->observer, &b->observer, dcontext, b->ldc, b->M);
        return;
    }
    const bj_kernels *k = e->k;
    const int E = e->arch->embed, G = e->arch->heads, d = E / G, TH = e->arch->token_hidden;
    const int M = b->M;
    const size_t ldg = (size_t)G * e->ldt;
    const bj_real scale = (bj_real)(1.0 / sqrt((double)d));

    /* forward: context = proj([h_T | o]) */
    bj_linear_backward(k, b->dhidden, b->ldp, dcontext, b->ldc, b->hidden, b->ldp,
                       &e->linear[BJ_ENC_PROJ_OUT], M, 0);
    bj_linear_backward(k, b->djoint, b->ldj, b->dhidden, b->ldp, NULL, 0,
                       &e->linear[BJ_ENC_PROJ_IN], M, 0);
    /* forward: o = out(pooled), pooled_g = N_g h_g + bv_g */
    bj_linear_backward(k, b->dpooled, b->lde, b->djoint + E, b->ldj, NULL, 0,
                       &e->linear[BJ_ENC_OUT], M, 0);
    to_tokens(e, b->dh, b->ds, b->dpooled, b->lde, 1, M);
    for (int m = 0; m < M; m++) {
        bj_tokens tokens[2];
        scene_tokens(tokens, e, b, m);
        if (tokens[0].r != e->dummy)
            memset(b->dummy_dr + (size_t)m * b->ldr, 0, (size_t)TH * sizeof *b->dummy_dr);
        bj_attention_backward(k, b->da + (size_t)m * ldg, b->dh + (size_t)m * ldg,
                              b->a + (size_t)m * ldg, e->ldt, tokens, b->ldr, G);
    }
    /* forward: a_g = M_g^T q_g, q = scale * query(h_T) */
    from_tokens(e, b->dq, b->dp, b->da, b->lde, 0, NULL, M);
    for (int m = 0; m < M; m++)
        for (int i = 0; i < E; i++) b->dq[(size_t)m * b->lde + i] *= scale;
    bj_linear_backward(k, b->djoint, b->ldj, b->dq, b->lde, NULL, 0, &e->linear[BJ_ENC_QUERY], M,
                       BJ_GEMM_ADD);
    /* forward: h_T = GRU(focal) */
    bj_gru_backward(k, b->djoint, b->ldj, b->gates, b->gates_step, b->ldg, b->state, b->state_step,
                    b->lds, &e->gru, M, b->T);
}
