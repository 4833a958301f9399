/* encoder_weights.c - connects an encoder to its weights, packs them for the kernels and allocates
 * the activations of its blocks. */
#include <string.h>

#include "model/encoder.h"

static bj_linear make_linear(bj_arena *arena, const bj_kernels *k, const bj_real *w,
                             const bj_real *b, int in, int out, int backward) {
    bj_linear l = {w, b, in, out, NULL, NULL};
    l.forward = bj_arena_take(arena, bj_linear_packed_size(k, in, out));
    if (backward) l.backward = bj_arena_take(arena, bj_linear_packed_size(k, in, out));
    return l;
}

/* Returns the number of columns of a head's packed matrix. */
static int head_width(const bj_encoder *e) { return e->factored ? e->arch->embed : e->W; }

void bj_encoder_init(bj_encoder *e, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                     const bj_layout *layout, const bj_real *weights, const bj_real *model,
                     unsigned use) {
    const int training = (use & BJ_ENCODER_TRAINED) != 0;
    if (arch->encoder != BJ_ENCODER_SCENE) {
        *e = (bj_encoder){.arch = arch, .k = k};
        bj_observer_init(&e->observer, arena, k, arch, layout, weights, model, training);
        return;
    }
    const int E = arch->embed, TH = arch->token_hidden, d = E / arch->heads;
    const int NH = use & BJ_ENCODER_OF_FUTURES ? 0 : TH, W = NH + TH + 2;
    const int I = BJ_FOCAL_FEATURES, lead = bj_gru_lead(I);
#define AT(id) (weights + bj_layout_offset(layout, BJ_P_##id, 0))
    *e = (bj_encoder){.arch = arch, .k = k, .NH = NH, .W = W, .ldt = bj_stride(W)};
    e->trained = training;
    e->factored = (use & BJ_ENCODER_FACTORED) != 0;
    e->gru = (bj_gru){.w_ih = AT(GRU_W_IH),
                      .w_hh = AT(GRU_W_HH),
                      .b_ih = AT(GRU_B_IH),
                      .b_hh = AT(GRU_B_HH),
                      .I = I,
                      .E = E,
                      .lead = lead};
    e->gru.packed = bj_arena_take(arena, k->gru_size(lead, E));
    if (training) e->gru.recurrent = bj_arena_take(arena, k->packed_size(E, 3 * E));

    e->linear[BJ_ENC_NEIGHBOR] = /* a future encoder uses only the bias */
        NH ? make_linear(arena, k, AT(NEIGHBOR_W1), AT(NEIGHBOR_B1), arch->obs * I, TH, 0)
           : (bj_linear){.b = AT(NEIGHBOR_B1)};
    e->linear[BJ_ENC_POLYLINE] = make_linear(arena, k, AT(POLYLINE_W1), AT(POLYLINE_B1),
                                             arch->points * BJ_POLYLINE_FEATURES, TH, 0);
    e->linear[BJ_ENC_QUERY] = make_linear(arena, k, AT(ATTN_W_IN), AT(ATTN_B_IN), E, E, training);
    e->linear[BJ_ENC_OUT] = make_linear(arena, k, AT(ATTN_W_OUT), AT(ATTN_B_OUT), E, E, training);
    e->linear[BJ_ENC_PROJ_IN] =
        make_linear(arena, k, AT(PROJ_W1), AT(PROJ_B1), 2 * E, arch->proj_hidden, training);
    e->linear[BJ_ENC_PROJ_OUT] =
        make_linear(arena, k, AT(PROJ_W2), AT(PROJ_B2), arch->proj_hidden, arch->latent, training);

    e->w2[0] = AT(NEIGHBOR_W2), e->b2[0] = AT(NEIGHBOR_B2);
    e->w2[1] = AT(POLYLINE_W2), e->b2[1] = AT(POLYLINE_B2);
    e->kv_w = AT(ATTN_W_IN) + (size_t)E * E;
    e->kv_b = AT(ATTN_B_IN) + E;
#undef AT
    e->joined = bj_arena_take(arena, (size_t)E * e->ldt);
    e->joined_kn = bj_arena_take(arena, k->packed_size(W, E));
    if (training || e->factored) e->joined_nk = bj_arena_take(arena, k->packed_size(E, W));
    if (!e->factored) e->folded = bj_arena_take(arena, 2 * (size_t)E * e->ldt);
    const int width = head_width(e);
    const size_t a = k->packed_size(width, d), b = k->packed_size(d, width);
    e->head_size = ((a > b ? a : b) + 15) / 16 * 16;
    const size_t heads = (size_t)arch->heads * e->head_size;
    e->m_kn = bj_arena_take(arena, heads);
    e->n_nk = bj_arena_take(arena, heads);
    if (training) {
        e->m_nk = bj_arena_take(arena, heads);
        e->n_kn = bj_arena_take(arena, heads);
    }
    e->dummy = bj_arena_take(arena, (size_t)TH);
}

unsigned bj_encoder_form(const bj_arch *arch, int B) {
    /* Operation counts in units of 6 E multiply-adds. Folding and its gradient take E W once. In
     * each of six products, a factored encoder takes G W + E per scene instead of W. */
    const long E = arch->embed, G = arch->heads, W = 2L * arch->token_hidden + 2;
    return B * ((G - 1) * W + E) < E * W ? BJ_ENCODER_FACTORED : 0;
}

bj_encoder_block bj_encoder_block_strides(const bj_arch *a) {
    return (bj_encoder_block){.lds = bj_stride(bj_gru_lead(BJ_FOCAL_FEATURES) + a->embed),
                              .ldg = bj_stride(4 * a->embed),
                              .ldr = bj_stride(a->token_hidden),
                              .lde = bj_stride(a->embed),
                              .ldj = bj_stride(2 * a->embed),
                              .ldp = bj_stride(a->proj_hidden),
                              .ldc = bj_stride(a->latent + a->action)};
}

void bj_encoder_block_take_state(bj_encoder_block *b, bj_arena *arena, size_t M) {
    b->state_step = M * b->lds;
    b->state = bj_arena_take(arena, 2 * b->state_step);
    b->gates = NULL;
}

void bj_encoder_block_take(bj_encoder_block *b, bj_arena *arena, const bj_encoder *e, size_t M) {
    if (e->observer.layers) {
        bj_observer_block_take(&b->observer, arena, &e->observer, M, 0);
        return;
    }
    const size_t G = (size_t)e->arch->heads;
    b->dummy_alpha = bj_arena_take(arena, M * G);
    b->q = bj_arena_take(arena, M * b->lde);
    b->a = bj_arena_take(arena, M * G * e->ldt);
    const size_t wide = M * G * e->ldt, narrow = M * G * b->lde;
    b->h = bj_arena_take(arena, e->trained ? 2 * wide : wide);
    b->da = e->trained && b->h ? b->h + wide : NULL;
    if (e->factored) {
        b->s = bj_arena_take(arena, narrow);
        b->dp = bj_arena_take(arena, e->trained ? narrow : 0);
        b->ds = bj_arena_take(arena, e->trained ? 2 * narrow : narrow);
        b->p = e->trained && b->ds ? b->ds + narrow : b->ds;
    }
    b->pooled = bj_arena_take(arena, M * b->lde);
    b->joint = bj_arena_take(arena, M * b->ldj);
    b->hidden = bj_arena_take(arena, M * b->ldp);
}

/* Round 0 prepares the GRU, every linear layer in both directions, U and the zero neighbor. Round 1
 * prepares M and N, or Wk and Wv, one head per item. */
int bj_encoder_prepare_items(const bj_encoder *e, int round) {
    if (e->observer.layers) return round == 0 ? bj_observer_prepare_items(&e->observer) : 0;
    return round == 0 ? 2 * BJ_ENC_LINEARS + 2 : 2 * e->arch->heads;
}

static void join_tokens(const bj_encoder *e) {
    const int E = e->arch->embed, TH = e->arch->token_hidden, NH = e->NH, W = e->W;
    const bj_real *b1 = e->linear[BJ_ENC_NEIGHBOR].b;
    for (int j = 0; j < TH; j++) e->dummy[j] = b1[j] <= 0 ? 0 : b1[j]; /* keeps NaN */
    for (int i = 0; i < E; i++) {
        bj_real *row = e->joined + (size_t)i * e->ldt;
        const bj_real *neighbor = e->w2[0] + (size_t)i * TH;
        memcpy(row, neighbor, (size_t)NH * sizeof *row);
        memcpy(row + NH, e->w2[1] + (size_t)i * TH, (size_t)TH * sizeof *row);
        row[W - 2] = 0;
        if (!NH) e->k->scores(row + W - 2, neighbor, (size_t)TH, e->dummy, (size_t)TH, 1, 1, TH);
        row[W - 2] += e->b2[0][i];
        row[W - 1] = e->b2[1][i];
    }
    e->k->pack_kn(e->joined_kn, e->joined, e->ldt, W, E);
    if (e->joined_nk) e->k->pack_nk(e->joined_nk, e->joined, e->ldt, E, W);
}

/* Computes M or N of a head, or takes Wk or Wv if the encoder is factored. Then packs the
 * matrix. */
static void prepare_head(const bj_encoder *e, int head, int values) {
    const bj_arch *arch = e->arch;
    const int E = arch->embed, d = E / arch->heads, W = e->W, width = head_width(e);
    const int first = values * E + head * d; /* first row of the head in kv_w and folded */
    const bj_real *rows = e->kv_w + (size_t)first * (size_t)E;
    size_t ld = (size_t)E;
    if (!e->factored) {
        bj_real *out = e->folded + (size_t)first * e->ldt;
        e->k->gemm(out, e->ldt, rows, ld, e->joined_kn, NULL, NULL, 0, d, W, E, 0);
        for (int i = 0; i < d && !values; i++)
            for (int s = 1; s <= 2; s++)
                out[(size_t)i * e->ldt + (size_t)(W - s)] += e->kv_b[first + i];
        rows = out;
        ld = e->ldt;
    }
    bj_real *kn = values ? e->n_kn : e->m_kn, *nk = values ? e->n_nk : e->m_nk;
    if (kn) e->k->pack_kn(kn + (size_t)head * e->head_size, rows, ld, width, d);
    /* the rows are stored as (d,width), so the packed transpose has N = d and K = width */
    if (nk) e->k->pack_nk(nk + (size_t)head * e->head_size, rows, ld, d, width);
}

void bj_encoder_prepare(const bj_encoder *e, int round, int item) {
    if (e->observer.layers) bj_observer_prepare(&e->observer, item);
    else if (round == 1) prepare_head(e, item / 2, item % 2);
    else if (item == 0) bj_gru_pack(e->k, &e->gru);
    else if (item == 1) join_tokens(e);
    else {
        const bj_linear *l = &e->linear[(item - 2) / 2];
        if (item % 2 == 0 && l->forward) bj_linear_pack_forward(e->k, l);
        if (item % 2 == 1 && l->backward) bj_linear_pack_backward(e->k, l);
    }
}
