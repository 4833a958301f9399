/* test_encoder.c - compares the context encoder, folded or factored, with a plain network in
 * double: GRU, both token networks, multi-head attention with keys and values, projection. */
#include "model/encoder.h"

#include "model/model.h"
#include "nn_case.h"

enum { T_OTHER = 9 /* number of steps of a view that is longer than the observed part */ };

typedef struct fixture {
    bj_arch arch;
    bj_model *model;
    bj_encoder encoder;
    bj_real *memory;
    bj_rng rng;
} fixture;

static fixture make(const bj_kernels *k, int embed, int heads, int token_hidden, unsigned use) {
    fixture f = {.rng = bj_rng_seed((uint64_t)(embed * 100 + heads))};
    bj_error err;
    f.arch = bj_arch_paper();
    f.arch.obs = 4, f.arch.fut = 5, f.arch.points = 3;
    f.arch.neighbors = 6, f.arch.polylines = 40;
    f.arch.embed = embed, f.arch.heads = heads, f.arch.token_hidden = token_hidden;
    f.arch.latent = 13, f.arch.proj_hidden = 10;
    f.arch.atoms = 1, f.arch.atom_hidden = f.arch.decoder_hidden = 2;
    if (bj_model_create(&f.model, &f.arch, 3, &err) != BJ_OK) exit(1);
    for (size_t i = 0; i < f.model->layout.encoder_size; i++) /* zero biases would hide errors */
        f.model->weights[i] += (bj_real)(0.1 * bj_rng_normal(&f.rng));
    bj_arena arena = {NULL, 0};
    bj_encoder_init(&f.encoder, &arena, k, &f.model->arch, &f.model->layout, f.model->weights,
                    f.model->weights, use);
    f.memory = nn_array(arena.used, MARKER);
    arena = (bj_arena){f.memory, 0};
    bj_encoder_init(&f.encoder, &arena, k, &f.model->arch, &f.model->layout, f.model->weights,
                    f.model->weights, use);
    for (int round = 0; round < BJ_ENCODER_ROUNDS; round++)
        for (int i = bj_encoder_prepare_items(&f.encoder, round) - 1; i >= 0; i--) /* any order */
            bj_encoder_prepare(&f.encoder, round, i);
    return f;
}

static void release(fixture *f) {
    bj_model_free(f->model);
    bj_free(f->memory);
}

/* M scenes with the given token counts, and their activations. */
typedef struct scenes {
    bj_encoder_block b;
    bj_real *focal, *neighbors, *polylines;
    int neighbor_start[8], polyline_start[8];
    bj_real *buffer[13];
    int buffers;
} scenes;

static bj_real *take(scenes *s, size_t n) {
    return s->buffer[s->buffers++] = nn_array(n + 1, MARKER);
}

static scenes make_scenes(fixture *f, int T, int M, const int *neighbors, const int *polylines) {
    const bj_arch *a = &f->arch;
    const size_t m = (size_t)M, G = (size_t)a->heads;
    scenes s = {.buffers = 0};
    s.neighbor_start[0] = s.polyline_start[0] = 0;
    for (int i = 0; i < M; i++) {
        s.neighbor_start[i + 1] = s.neighbor_start[i] + neighbors[i];
        s.polyline_start[i + 1] = s.polyline_start[i] + polylines[i];
    }
    const int N = s.neighbor_start[M], P = s.polyline_start[M];
    s.focal = nn_normal(&f->rng, M, T * 7, (size_t)(T * 7), 1);
    s.neighbors = nn_normal(&f->rng, N, a->obs * 7, (size_t)(a->obs * 7), 1);
    s.polylines = nn_normal(&f->rng, P, a->points * 6, (size_t)(a->points * 6), 1);
    bj_encoder_block *b = &s.b;
    *b = bj_encoder_block_strides(a);
    b->M = M;
    b->T = T;
    b->state_step = m * b->lds;
    b->state = take(&s, 2 * b->state_step);
    b->r[0] = take(&s, (size_t)N * b->ldr), b->r[1] = take(&s, (size_t)P * b->ldr);
    b->alpha[0] = take(&s, (size_t)N * G), b->alpha[1] = take(&s, (size_t)P * G);
    b->dummy_alpha = take(&s, m * G);
    b->q = take(&s, 2 * m * b->lde), b->pooled = b->q + m * b->lde;
    b->a = take(&s, m * G * f->encoder.ldt), b->h = take(&s, m * G * f->encoder.ldt);
    b->p = take(&s, 2 * m * G * b->lde), b->s = b->p + m * G * b->lde;
    b->joint = take(&s, m * (b->ldj + b->ldp)), b->hidden = b->joint + m * b->ldj;
    b->context = take(&s, m * b->ldc);
    return s;
}

/* Runs the encoder. The pointers are set first, because copying the struct moves the start
 * arrays. */
static void run(const fixture *f, scenes *s) {
    s->b.focal = s->focal;
    s->b.neighbors = s->neighbor_start[s->b.M] ? s->neighbors : NULL;
    s->b.polylines = s->polyline_start[s->b.M] ? s->polylines : NULL;
    s->b.neighbor_start = s->neighbor_start;
    s->b.polyline_start = s->polyline_start;
    bj_encoder_forward(&f->encoder, &s->b);
}

static void release_scenes(scenes *s) {
    bj_free(s->focal), bj_free(s->neighbors), bj_free(s->polylines);
    for (int i = 0; i < s->buffers; i++) bj_free(s->buffer[i]);
}

/* ------------------------------------------------------------------------------- plain network */

static const bj_real *weight(const fixture *f, const char *name) {
    bj_tensor t;
    char full[64];
    bj_error err;
    snprintf(full, sizeof full, "encoder.%s", name);
    if (bj_model_find(&t, f->model, full, &err) != BJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return t.data;
}

static void affine(double *y, const double *x, const bj_real *w, const bj_real *b, int in, int out,
                   int relu) {
    for (int o = 0; o < out; o++) {
        y[o] = b[o];
        for (int i = 0; i < in; i++) y[o] += (double)w[o * in + i] * x[i];
        if (relu && y[o] < 0) y[o] = 0;
    }
}

static void widen(double *to, const bj_real *from, int n) {
    for (int i = 0; i < n; i++) to[i] = (double)from[i];
}

enum { WIDE = 256, TOKENS = 64 };

/* Computes the tokens of scene m with a ReLU MLP per row. A scene without neighbors gets one
 * neighbor of zeros. */
static int plain_tokens(double x[TOKENS][WIDE], const fixture *f, const scenes *s, int m) {
    const bj_arch *a = &f->arch;
    double in[WIDE], hidden[WIDE];
    int S = 0;
    for (int kind = 0; kind < 2; kind++) {
        const int *start = kind ? s->polyline_start : s->neighbor_start;
        const bj_real *rows = kind ? s->polylines : s->neighbors;
        const int width = kind ? a->points * 6 : a->obs * 7, n = start[m + 1] - start[m];
        const char *part = kind ? "polyline" : "neighbor";
        char name[4][32];
        for (int i = 0; i < 4; i++)
            snprintf(name[i], sizeof name[i], "%s.%d.%s", part, i / 2 * 2,
                     i % 2 ? "bias" : "weight");
        for (int i = 0; i < (kind == 0 && n == 0 ? 1 : n); i++, S++) {
            memset(in, 0, sizeof in);
            if (n) widen(in, rows + (size_t)(start[m] + i) * (size_t)width, width);
            affine(hidden, in, weight(f, name[0]), weight(f, name[1]), width, a->token_hidden, 1);
            affine(x[S], hidden, weight(f, name[2]), weight(f, name[3]), a->token_hidden, a->embed,
                   0);
        }
    }
    return S;
}

static void plain_gru(double *h, const fixture *f, const bj_real *focal, int T) {
    const int E = f->arch.embed;
    double in[WIDE], rec[WIDE], x[7];
    for (int e = 0; e < E; e++) h[e] = 0;
    for (int t = 0; t < T; t++) {
        widen(x, focal + t * 7, 7);
        affine(in, x, weight(f, "gru.weight_ih_l0"), weight(f, "gru.bias_ih_l0"), 7, 3 * E, 0);
        affine(rec, h, weight(f, "gru.weight_hh_l0"), weight(f, "gru.bias_hh_l0"), E, 3 * E, 0);
        for (int e = 0; e < E; e++) {
            const double r = 1 / (1 + exp(-in[e] - rec[e]));
            const double z = 1 / (1 + exp(-in[E + e] - rec[E + e]));
            h[e] = (1 - z) * tanh(in[2 * E + e] + r * rec[2 * E + e]) + z * h[e];
        }
    }
}

static void plain_context(double *context, const fixture *f, const scenes *s, int m) {
    static double x[TOKENS][WIDE], key[TOKENS][WIDE], value[TOKENS][WIDE];
    const int E = f->arch.embed, G = f->arch.heads, d = E / G;
    const bj_real *w = weight(f, "attn.in_proj_weight"), *b = weight(f, "attn.in_proj_bias");
    double joint[2 * WIDE], q[WIDE], pooled[WIDE], hidden[WIDE], score[TOKENS];
    const int S = plain_tokens(x, f, s, m);
    plain_gru(joint, f, s->focal + (size_t)m * (size_t)s->b.T * 7, s->b.T);
    affine(q, joint, w, b, E, E, 0);
    for (int t = 0; t < S; t++) {
        affine(key[t], x[t], w + E * E, b + E, E, E, 0);
        affine(value[t], x[t], w + 2 * E * E, b + 2 * E, E, E, 0);
    }
    for (int g = 0; g < G; g++) {
        double sum = 0, most = -HUGE_VAL;
        for (int t = 0; t < S; t++) {
            score[t] = 0;
            for (int i = g * d; i < (g + 1) * d; i++) score[t] += q[i] * key[t][i] / sqrt(d);
            most = fmax(most, score[t]);
        }
        for (int t = 0; t < S; t++) sum += score[t] = exp(score[t] - most);
        for (int i = g * d; i < (g + 1) * d; i++) {
            pooled[i] = 0;
            for (int t = 0; t < S; t++) pooled[i] += score[t] / sum * value[t][i];
        }
    }
    affine(joint + E, pooled, weight(f, "attn.out_proj.weight"), weight(f, "attn.out_proj.bias"), E,
           E, 0);
    affine(hidden, joint, weight(f, "proj.0.weight"), weight(f, "proj.0.bias"), 2 * E,
           f->arch.proj_hidden, 1);
    affine(context, hidden, weight(f, "proj.2.weight"), weight(f, "proj.2.bias"),
           f->arch.proj_hidden, f->arch.latent, 0);
}

/* --------------------------------------------------------------------------------------- tests */

static void check_scenes(fixture *f, int T, int M, const int *neighbors, const int *polylines) {
    scenes s = make_scenes(f, T, M, neighbors, polylines);
    run(f, &s);
    for (int m = 0; m < M; m++) {
        double expected[WIDE];
        plain_context(expected, f, &s, m);
        const double off =
            nn_distance(s.b.context + (size_t)m * s.b.ldc, 0, expected, 0, 1, f->arch.latent);
        CHECK_MSG(off <= 10 * nn_tolerance(),
                  "%s: scene %d of %d, %d heads: "
                  "the context is off by %g",
                  f->encoder.k->isa, m, M, f->arch.heads, off);
    }
    CHECK(nn_untouched(s.b.context, M, f->arch.latent, s.b.ldc));
    release_scenes(&s);
}

/* Tests that a scene without neighbors gives the same bits as a scene with one neighbor of
 * zeros. */
static void check_zero_neighbor(fixture *f) {
    scenes none = make_scenes(f, f->arch.obs, 2, (int[]){0, 0}, (int[]){3, 0});
    scenes zero = make_scenes(f, f->arch.obs, 2, (int[]){1, 1}, (int[]){3, 0});
    scenes half = make_scenes(f, f->arch.obs, 2, (int[]){0, 1}, (int[]){3, 0});
    scenes *const same[] = {&none, &zero, &half};
    for (int i = 0; i < 3; i++) {
        memcpy(same[i]->focal, none.focal, 2 * (size_t)f->arch.obs * 7 * sizeof(bj_real));
        memcpy(same[i]->polylines, none.polylines,
               3 * (size_t)f->arch.points * 6 * sizeof(bj_real));
        memset(same[i]->neighbors, 0,
               (size_t)same[i]->neighbor_start[2] * (size_t)f->arch.obs * 7 * sizeof(bj_real));
        run(f, same[i]);
        for (int m = 0; m < 2; m++)
            CHECK_MSG(memcmp(same[i]->b.context + (size_t)m * none.b.ldc,
                             none.b.context + (size_t)m * none.b.ldc,
                             (size_t)f->arch.latent * sizeof(bj_real)) == 0,
                      "%s: scene %d, variant %d", f->encoder.k->isa, m, i);
    }
    for (int i = 0; i < 3; i++) release_scenes(same[i]);
}

static void test_encoder(const bj_kernels *k, int embed, int heads, int token_hidden,
                         unsigned form) {
    fixture f = make(k, embed, heads, token_hidden, BJ_ENCODER_TRAINED | form);
    check_scenes(&f, f.arch.obs, 1, (int[]){0}, (int[]){0}); /* only the zero neighbor */
    check_scenes(&f, f.arch.obs, 2, (int[]){0, 0}, (int[]){4, 1});
    check_scenes(&f, f.arch.obs, 3, (int[]){2, 1, 6}, (int[]){0, 0, 0});
    check_scenes(&f, f.arch.obs, 5, (int[]){6, 0, 3, 0, 1}, (int[]){40, 7, 0, 0, 2});
    check_scenes(&f, 1, 2, (int[]){1, 0}, (int[]){0, 2});
    check_scenes(&f, T_OTHER, 2, (int[]){0, 2}, (int[]){3, 5});
    check_zero_neighbor(&f);
    release(&f);
}

/* Tests the reduced encoder for views without neighbors. */
static void test_encoder_of_futures(const bj_kernels *k, int embed, int heads, int token_hidden,
                                    unsigned form) {
    fixture f = make(k, embed, heads, token_hidden, BJ_ENCODER_OF_FUTURES | form);
    check_scenes(&f, T_OTHER, 1, (int[]){0}, (int[]){0});
    check_scenes(&f, T_OTHER, 6, (int[6]){0}, (int[]){4, 1, 0, 40, 2, 3});
    release(&f);
}

int main(void) {
    static const unsigned forms[] = {0, BJ_ENCODER_FACTORED};
    for (int i = 0; bj_kernels_at(i); i++)
        for (int form = 0; form < 2; form++) {
            const bj_kernels *k = bj_kernels_at(i);
            test_encoder(k, 8, 2, 12, forms[form]);
            test_encoder(k, 5, 1, 7, forms[form]);
            test_encoder(k, 21, 7, 37, forms[form]);
            test_encoder(k, 32, 4, 48, forms[form]);
            test_encoder_of_futures(k, 21, 7, 37, forms[form]);
            test_encoder_of_futures(k, 32, 4, 48, forms[form]);
        }
    return test_report("encoder");
}
