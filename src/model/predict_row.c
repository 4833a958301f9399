/* predict_row.c - prediction of one scene by all workers together, for the lowest latency.
 *
 * Every product is split by columns, so each worker reads its own part of the weights. A worker's
 * part of the GRU stays in its L2 cache during all steps. Workers synchronize after every stage.
 * Attention is split by heads and needs no synchronization within the stage. The results are
 * bit-identical to those of the block path.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "model/predictor.h"
#include "nn/attention.h"
#include "nn/normalize.h"

/* ---------------------------------------------------------------------------------- preparation */

static bj_row_weights row_linear(const bj_linear *l) {
    return (bj_row_weights){l->forward, l->b, l->in, l->out};
}

void bj_row_path_init(bj_predictor *p) {
    const bj_encoder *e = &p->encoder;
    const bj_network *n = &p->network;
    const int E = p->arch.embed, G = p->arch.heads, d = E / G, W = e->W;
    bj_row_path *r = &p->row;
    for (int i = 0; i < BJ_ENC_LINEARS; i++) r->linear[i] = row_linear(&e->linear[i]);
    for (int g = 0; g < G; g++) {
        const size_t at = (size_t)g * e->head_size;
        r->m[g] = (bj_row_weights){e->m_kn + at, NULL, d, W};
        r->n[g] = (bj_row_weights){e->n_nk + at, e->kv_b + E + g * d, W, d};
    }
    for (int i = 0; i < n->L; i++) {
        r->atom_in[i] = row_linear(&n->atom_in[i]);
        r->atom_out[i] = row_linear(&n->atom_out[i]);
    }
    for (int i = 0; n->step_scale && i < p->arch.atoms; i++)
        r->residual[i] = row_linear(&n->residual[i]);
    r->router_in = row_linear(&n->router_in);
    r->router_out = row_linear(&n->router_out);
    r->decoder_in = row_linear(&n->decoder_in);
    r->decoder_out = row_linear(&n->decoder_out);
}

void bj_row_path_take(bj_predictor *p, bj_arena *arena) {
    const bj_arch *a = &p->arch;
    const size_t G = (size_t)a->heads, L = (size_t)p->network.L, K = (size_t)a->atoms;
    const size_t E = (size_t)a->embed, line = 2 * (size_t)a->fut, TH = (size_t)a->token_hidden;
    const size_t rows[2] = {(size_t)a->neighbors, (size_t)a->polylines};
    bj_row_path *r = &p->row;
    for (int i = 0; i < 2; i++) {
        r->row[i] = bj_arena_take(arena, (size_t)p->encoder.gru.lead + E);
        r->r[i] = bj_arena_take(arena, (rows[i] + 1) * TH);
        r->alpha[i] = bj_arena_take(arena, (rows[i] + 1) * G);
    }
    r->q = bj_arena_take(arena, E);
    r->a = bj_arena_take(arena, G * p->encoder.ldt);
    r->h = bj_arena_take(arena, G * p->encoder.ldt);
    r->pooled = bj_arena_take(arena, E);
    r->joint = bj_arena_take(arena, 2 * E);
    r->hidden = bj_arena_take(arena, (size_t)a->proj_hidden);
    r->context = bj_arena_take(arena, (size_t)a->latent);
    r->atom_hidden = bj_arena_take(arena, L * (size_t)a->atom_hidden);
    r->u = bj_arena_take(arena, L * (size_t)a->latent);
    r->inverse = bj_arena_take(arena, L);
    r->router_hidden = bj_arena_take(arena, (size_t)a->router_hidden);
    r->logits = bj_arena_take(arena, K);
    r->decoder_hidden = bj_arena_take(arena, L * (size_t)p->network.decoder_in.out);
    if (p->network.step_scale) {
        r->base = bj_arena_take(arena, line);
        r->residual_y = bj_arena_take(arena, K * line);
    }
}

/* --------------------------------------------------------------------------------------- stages */

typedef struct team {
    const bj_predictor *p;
    int member, members;
} team;

/* Determines which of n units of work are assigned to this member. Units are assigned in groups of
 * `size`. */
static void share(int *begin, int *end, int n, int size, const team *t) {
    const int groups = (n + size - 1) / size;
    *begin = groups * t->member / t->members * size;
    *end = groups * (t->member + 1) / t->members * size;
    if (*begin > n) *begin = n;
    if (*end > n) *end = n;
}

static void columns(const bj_predictor *p, bj_real *c, size_t ldc, const bj_real *a, size_t lda,
                    const bj_row_weights *w, int M, int flags, int n0, int n1) {
    if (n0 >= n1) return;
    p->k->gemm_columns(c, ldc, a, lda, w->packed, w->bias, M, w->out, w->in, flags, n0, n1);
}

/* Computes this member's columns of a matrix product with M contiguous rows. */
static void product(const team *t, bj_real *c, const bj_real *a, const bj_row_weights *w, int M,
                    int flags) {
    int n0, n1;
    share(&n0, &n1, w->out, t->p->k->panel, t);
    columns(t->p, c, (size_t)w->out, a, (size_t)w->in, w, M, flags, n0, n1);
}

static void meet(const team *t) {
    if (t->members > 1) bj_team_wait(t->p->pool);
}

static const bj_scene *scene_of(const bj_predictor *p) { return &p->batch->scenes[p->scene]; }

static void stage_tokens(const team *t) {
    const bj_predictor *p = t->p;
    const bj_scene *scene = scene_of(p);
    const bj_real *features[2] = {scene->neighbors, scene->polylines};
    const int rows[2] = {scene->neighbor_count, scene->polyline_count};
    for (int s = 0; s < 2; s++) {
        const bj_row_weights *w = &p->row.linear[s == 0 ? BJ_ENC_NEIGHBOR : BJ_ENC_POLYLINE];
        if (rows[s] > 0) product(t, p->row.r[s], features[s], w, rows[s], BJ_GEMM_RELU);
    }
}

/* Writes [x | 1 | pad] of a GRU step and leaves h unchanged. */
static void set_input(const bj_predictor *p, bj_real *row, int step) {
    const bj_gru *g = &p->encoder.gru;
    const bj_real *x = scene_of(p)->focal + (size_t)step * (size_t)g->I;
    memcpy(row, x, (size_t)g->I * sizeof *row);
    row[g->I] = 1;
    for (int i = g->I + 1; i < g->lead; i++) row[i] = 0;
}

/* Runs the GRU and returns the row with the last state. */
static const bj_real *stage_gru(const team *t) {
    const bj_predictor *p = t->p;
    const bj_gru *g = &p->encoder.gru;
    int u0, u1;
    share(&u0, &u1, g->E, p->k->units, t);
    if (t->member == 0) {
        set_input(p, p->row.row[0], 0);
        memset(p->row.row[0] + g->lead, 0, (size_t)g->E * sizeof(bj_real));
    }
    meet(t);
    for (int step = 0; step < p->arch.obs; step++) {
        bj_real *next = p->row.row[(step + 1) % 2];
        if (u0 < u1)
            p->k->gru_row(next + g->lead, p->row.row[step % 2], g->packed, g->lead, g->E, u0, u1);
        if (t->member == 0 && step + 1 < p->arch.obs) set_input(p, next, step + 1);
        meet(t);
    }
    return p->row.row[p->arch.obs % 2] + g->lead;
}

static void stage_query(const team *t, const bj_real *state) {
    const bj_predictor *p = t->p;
    const int E = p->arch.embed, d = E / p->arch.heads;
    const bj_real scale = (bj_real)(1.0 / sqrt((double)d));
    int n0, n1;
    share(&n0, &n1, E, p->k->panel, t);
    columns(p, p->row.q, (size_t)E, state, (size_t)E, &p->row.linear[BJ_ENC_QUERY], 1, 0, n0, n1);
    for (int i = n0; i < n1; i++) p->row.q[i] *= scale;
    if (t->member == 0) memcpy(p->row.joint, state, (size_t)E * sizeof *state);
}

/* Sets up the tokens for head g, which uses its own array of attention weights. */
static void head_tokens(bj_tokens tokens[2], const bj_predictor *p, int g) {
    const bj_row_path *r = &p->row;
    const int TH = p->arch.token_hidden;
    const int rows[2] = {scene_of(p)->neighbor_count, scene_of(p)->polyline_count};
    tokens[0] = (bj_tokens){.r = rows[0] ? r->r[0] : p->encoder.dummy,
                            .alpha = r->alpha[0] + (size_t)g * ((size_t)p->arch.neighbors + 1),
                            .S = rows[0] ? rows[0] : 1,
                            .TH = TH};
    tokens[1] = (bj_tokens){.r = r->r[1],
                            .alpha = r->alpha[1] + (size_t)g * ((size_t)p->arch.polylines + 1),
                            .S = rows[1],
                            .TH = TH};
}

/* Computes the heads of this member, from the folded query to the pooled values. */
static void stage_attention(const team *t) {
    const bj_predictor *p = t->p;
    const bj_encoder *e = &p->encoder;
    const bj_row_path *r = &p->row;
    const int G = p->arch.heads, TH = p->arch.token_hidden, d = p->arch.embed / G, W = e->W;
    for (int g = t->member; g < G; g += t->members) {
        bj_real *a = r->a + (size_t)g * e->ldt, *h = r->h + (size_t)g * e->ldt;
        bj_tokens tokens[2];
        head_tokens(tokens, p, g);
        columns(p, a, (size_t)W, r->q + g * d, (size_t)d, &r->m[g], 1, 0, 0, W);
        bj_attention_forward(p->k, h, a, e->ldt, tokens, (size_t)TH, 1);
        columns(p, r->pooled + g * d, (size_t)d, h, (size_t)W, &r->n[g], 1, 0, 0, d);
    }
}

/* Writes encoder statistics. All heads and the context must have been computed. */
static void stage_encoding(const team *t) {
    const bj_predictor *p = t->p;
    const int G = p->arch.heads;
    bj_tokens tokens[2];
    double sum = 0;
    if (!p->encodings || t->member) return;
    for (int g = 0; g < G; g++) {
        head_tokens(tokens, p, g);
        sum += bj_attention_entropy(tokens, 0, 1);
    }
    p->encodings[p->scene] =
        (bj_encoding){sum / G, bj_context_norm(p->row.context, p->arch.latent)};
}

/* Returns the i-th atom to compute. Every second call uses the reverse order, because a shared
 * cache still contains the weights that were read last. */
static int atom_at(const bj_predictor *p, int i) { return p->calls % 2 ? p->network.L - 1 - i : i; }

static void stage_atoms_in(const team *t) {
    const bj_row_path *r = &t->p->row;
    for (int j = 0; j < t->p->network.L; j++) {
        const int i = atom_at(t->p, j);
        product(t, r->atom_hidden + (size_t)i * (size_t)r->atom_in[i].out, r->context,
                &r->atom_in[i], 1, BJ_GEMM_RELU);
    }
    if (r->router_in.out) product(t, r->router_hidden, r->context, &r->router_in, 1, BJ_GEMM_RELU);
}

static void stage_atoms_out(const team *t) {
    const bj_row_path *r = &t->p->row;
    for (int j = 0; j < t->p->network.L; j++) {
        const int i = atom_at(t->p, j);
        product(t, r->u + (size_t)i * (size_t)r->atom_out[i].out,
                r->atom_hidden + (size_t)i * (size_t)r->atom_out[i].in, &r->atom_out[i], 1, 0);
    }
    if (r->router_out.out) product(t, r->logits, r->router_hidden, &r->router_out, 1, 0);
    else if (t->member == 0) r->logits[0] = 0; /* K = 1 */
}

static void stage_normalize(const team *t) {
    const bj_predictor *p = t->p;
    const bj_row_path *r = &p->row;
    const size_t D = (size_t)p->arch.latent, L = (size_t)p->network.L, scene = (size_t)p->scene;
    for (size_t i = (size_t)t->member; i < L; i += (size_t)t->members) {
        bj_normalize_forward(r->u + i * D, D, r->inverse + i, 1, p->arch.latent);
        if (p->atoms) memcpy(p->atoms + (scene * L + i) * D, r->u + i * D, D * sizeof *r->u);
    }
    if (t->member == 0)
        bj_weigh_row(p->weights + scene * (size_t)p->arch.atoms, r->logits, &p->arch);
}

static void stage_decode(const team *t) {
    const bj_predictor *p = t->p;
    const bj_row_path *r = &p->row;
    const int K = p->arch.atoms, F = p->arch.fut;
    const size_t line = 2 * (size_t)F;
    bj_real *out = p->trajectories + (size_t)p->scene * (size_t)K * line;
    if (!p->network.step_scale) {
        product(t, out, r->decoder_hidden, &r->decoder_out, K, 0);
        return;
    }
    product(t, r->base, r->decoder_hidden, &r->decoder_out, 1, 0);
    for (int i = 0; i < K; i++)
        product(t, r->residual_y + (size_t)i * line, r->decoder_hidden, &r->residual[i], 1, 0);
    meet(t);
    if (t->member == 0)
        for (int i = 0; i < K; i++)
            bj_network_add_residual(&p->network, out + (size_t)i * line, r->base,
                                    r->residual_y + (size_t)i * line, i);
}

void bj_predict_row(void *predictor, int member, int members) {
    const bj_predictor *p = predictor;
    const bj_row_path *r = &p->row;
    const team all = {p, member, members}, *t = &all;
    stage_tokens(t);
    const bj_real *state = stage_gru(t);
    stage_query(t, state);
    meet(t);
    stage_attention(t);
    meet(t);
    product(t, r->joint + p->arch.embed, r->pooled, &r->linear[BJ_ENC_OUT], 1, 0);
    meet(t);
    product(t, r->hidden, r->joint, &r->linear[BJ_ENC_PROJ_IN], 1, BJ_GEMM_RELU);
    meet(t);
    product(t, r->context, r->hidden, &r->linear[BJ_ENC_PROJ_OUT], 1, 0);
    meet(t);
    stage_encoding(t);
    stage_atoms_in(t);
    meet(t);
    stage_atoms_out(t);
    meet(t);
    stage_normalize(t);
    meet(t);
    product(t, r->decoder_hidden, r->u, &r->decoder_in, p->network.L, BJ_GEMM_RELU);
    meet(t);
    stage_decode(t);
}
