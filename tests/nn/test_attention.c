/* test_attention.c - compares folded single-query attention with attention that computes keys and
 * values, and backward with finite differences. */
#include "nn/attention.h"

#include "nn_case.h"

enum { PAD = 3 };

/* A test case with one scene. The hidden rows are relu(p), so that the ReLU mask of the backward
 * pass is also tested. The loss is sum(weight * h). */
typedef struct scene {
    const bj_kernels *k;
    int S[2], G, TH, W;
    size_t ldt, ldr;
    bj_real *a, *p[2], *weight;               /* (G,W) (S,TH) (G,W) */
    bj_real *r[2], *alpha[2], *dscore[2], *h; /* (S,TH) (S,G) (S,G) (G,W) */
    bj_real *da, *dp[2];
} scene;

static scene make(const bj_kernels *k, int neighbors, int polylines, int G, int TH, double scale) {
    bj_rng rng = bj_rng_seed((uint64_t)(10000 * neighbors + 100 * polylines + 10 * G + TH));
    scene s = {.k = k, .S = {neighbors, polylines}, .G = G, .TH = TH, .W = 2 * TH + 2};
    s.ldt = (size_t)(s.W + PAD), s.ldr = (size_t)(TH + PAD);
    s.a = nn_normal(&rng, G, s.W, s.ldt, scale / sqrt(TH));
    s.weight = nn_normal(&rng, G, s.W, s.ldt, 1);
    s.h = nn_array((size_t)G * s.ldt, MARKER);
    s.da = nn_array((size_t)G * s.ldt, MARKER);
    for (int i = 0; i < 2; i++) {
        const size_t n = (size_t)s.S[i];
        s.p[i] = nn_normal(&rng, s.S[i], TH, s.ldr, 1);
        for (size_t j = 0; j < n * s.ldr; j++) /* keep away from the kink of the ReLU */
            if (fabs((double)s.p[i][j]) < 0.02) s.p[i][j] = (bj_real)0.02;
        s.r[i] = nn_array(n * s.ldr, MARKER);
        s.dp[i] = nn_array(n * s.ldr, MARKER);
        s.alpha[i] = nn_array(n * (size_t)G, MARKER);
        s.dscore[i] = nn_array(n * (size_t)G, MARKER);
    }
    return s;
}

static void release(scene *s) {
    bj_free(s->a), bj_free(s->weight), bj_free(s->h), bj_free(s->da);
    for (int i = 0; i < 2; i++)
        bj_free(s->p[i]), bj_free(s->r[i]), bj_free(s->dp[i]), bj_free(s->alpha[i]),
            bj_free(s->dscore[i]);
}

static void tokens_of(bj_tokens tokens[2], const scene *s, int backward) {
    for (int i = 0; i < 2; i++)
        tokens[i] = (bj_tokens){s->r[i], s->alpha[i], backward ? s->dp[i] : NULL,
                                backward ? s->dscore[i] : NULL, s->S[i], s->TH};
}

static double loss(void *context) {
    scene *s = context;
    bj_tokens tokens[2];
    for (int i = 0; i < 2; i++)
        for (int t = 0; t < s->S[i]; t++)
            for (int j = 0; j < s->TH; j++) {
                const size_t at = (size_t)t * s->ldr + (size_t)j;
                s->r[i][at] = s->p[i][at] > 0 ? s->p[i][at] : 0;
            }
    tokens_of(tokens, s, 0);
    bj_attention_forward(s->k, s->h, s->a, s->ldt, tokens, s->ldr, s->G);
    double sum = 0;
    for (int g = 0; g < s->G; g++)
        for (int w = 0; w < s->W; w++)
            sum += (double)s->h[(size_t)g * s->ldt + (size_t)w] *
                   (double)s->weight[(size_t)g * s->ldt + (size_t)w];
    return sum;
}

static void gradient(void *context) {
    scene *s = context;
    bj_tokens tokens[2];
    loss(s);
    tokens_of(tokens, s, 1);
    bj_attention_backward(s->k, s->da, s->weight, s->a, s->ldt, tokens, s->ldr, s->G);
}

/* Checks that the weights of a head sum to one, and that the last two entries of h are the shares
 * of the two kinds. */
static void check_weights(const scene *s) {
    for (int g = 0; g < s->G; g++) {
        double share[2] = {0, 0};
        for (int i = 0; i < 2; i++)
            for (int t = 0; t < s->S[i]; t++) {
                const double alpha = s->alpha[i][t * s->G + g];
                CHECK(alpha >= 0 && alpha <= 1 + nn_tolerance());
                share[i] += alpha;
            }
        CHECK_NEAR(share[0] + share[1], 1, nn_tolerance());
        for (int i = 0; i < 2; i++)
            CHECK_NEAR(s->h[(size_t)g * s->ldt + (size_t)(2 * s->TH + i)], share[i],
                       nn_tolerance());
    }
}

static void test_gradient(const bj_kernels *k, int neighbors, int polylines, int G, int TH) {
    scene s = make(k, neighbors, polylines, G, TH, 2);
    loss(&s);
    check_weights(&s);
    gradient(&s);
    CHECK(nn_untouched(s.h, G, s.W, s.ldt) && nn_untouched(s.da, G, s.W, s.ldt));
    for (int i = 0; i < 2; i++) CHECK(nn_untouched(s.dp[i], s.S[i], TH, s.ldr));
    /* A single token gets all the weight for every query, so `a` is not checked then. */
    gradcheck_array arrays[3] = {
        {.name = "a", .x = s.a, .dx = s.da, .rows = G, .cols = s.W, .stride = s.ldt}};
    int count = neighbors + polylines > 1;
    for (int i = 0; i < 2; i++)
        if (s.S[i])
            arrays[count++] = (gradcheck_array){.name = i ? "polylines" : "neighbors",
                                                .x = s.p[i],
                                                .dx = s.dp[i],
                                                .rows = s.S[i],
                                                .cols = TH,
                                                .stride = s.ldr};
    if (neighbors + polylines == 1)
        for (int g = 0; g < G; g++)
            for (int w = 0; w < s.W; w++)
                CHECK_NEAR(s.da[(size_t)g * s.ldt + (size_t)w], 0, 100 * nn_tolerance());
    char name[80];
    snprintf(name, sizeof name, "%s attention %d+%d tokens, %d heads, %d wide", k->isa, neighbors,
             polylines, G, TH);
    const gradcheck_case c = {.name = name,
                              .loss = loss,
                              .gradient = gradient,
                              .context = &s,
                              .arrays = arrays,
                              .count = count,
                              .tol = 1e-7,
                              .probes = 100};
    gradcheck(&c);
    release(&s);
}

/* ----------------------------------------------------------------------------------- unfolded */

/* Computes multi-head attention of one query over tokens x_t = W2_s r_t + b2_s, with explicit keys
 * and values. */
typedef struct plain {
    int E, G, TH;
    double *q;                 /* (E) already scaled by 1/sqrt(d) */
    double *w2[2], *b2[2];     /* (E,TH) (E) */
    double *wk, *bk, *wv, *bv; /* (E,E) (E) */
} plain;

static double *normals(bj_rng *rng, int n, double scale) {
    double *x = bj_alloc((size_t)n, sizeof *x);
    if (!x) exit(1);
    for (int i = 0; i < n; i++) x[i] = scale * bj_rng_normal(rng);
    return x;
}

static plain plain_make(int E, int G, int TH) {
    bj_rng rng = bj_rng_seed((uint64_t)(E * 100 + G));
    plain p = {.E = E, .G = G, .TH = TH};
    p.q = normals(&rng, E, 1);
    for (int s = 0; s < 2; s++) {
        p.w2[s] = normals(&rng, E * TH, 1 / sqrt(TH));
        p.b2[s] = normals(&rng, E, 0.5);
    }
    p.wk = normals(&rng, E * E, 1 / sqrt(E)), p.bk = normals(&rng, E, 0.5);
    p.wv = normals(&rng, E * E, 1 / sqrt(E)), p.bv = normals(&rng, E, 0.5);
    return p;
}

static void plain_free(plain *p) {
    bj_free(p->q), bj_free(p->wk), bj_free(p->bk), bj_free(p->wv), bj_free(p->bv);
    for (int s = 0; s < 2; s++) bj_free(p->w2[s]), bj_free(p->b2[s]);
}

static void plain_pooled(double *pooled, const plain *p, const scene *s) {
    const int E = p->E, d = E / p->G, S = s->S[0] + s->S[1];
    double *x = bj_alloc((size_t)(S * E), sizeof *x), *key = bj_alloc((size_t)(S * E), sizeof *key);
    double *value = bj_alloc((size_t)(S * E), sizeof *value);
    double *score = bj_alloc((size_t)S, sizeof *score);
    for (int t = 0; t < S; t++) {
        const int kind = t >= s->S[0];
        const bj_real *r = s->r[kind] + (size_t)(t - kind * s->S[0]) * s->ldr;
        for (int e = 0; e < E; e++) {
            x[t * E + e] = p->b2[kind][e];
            for (int j = 0; j < p->TH; j++)
                x[t * E + e] += p->w2[kind][e * p->TH + j] * (double)r[j];
        }
        for (int e = 0; e < E; e++) {
            key[t * E + e] = p->bk[e], value[t * E + e] = p->bv[e];
            for (int i = 0; i < E; i++) {
                key[t * E + e] += p->wk[e * E + i] * x[t * E + i];
                value[t * E + e] += p->wv[e * E + i] * x[t * E + i];
            }
        }
    }
    for (int g = 0; g < p->G; g++) {
        double most = -HUGE_VAL, sum = 0;
        for (int t = 0; t < S; t++) {
            score[t] = 0;
            for (int i = g * d; i < (g + 1) * d; i++) score[t] += p->q[i] * key[t * E + i];
            most = fmax(most, score[t]);
        }
        for (int t = 0; t < S; t++) sum += score[t] = exp(score[t] - most);
        for (int i = g * d; i < (g + 1) * d; i++) {
            pooled[i] = 0;
            for (int t = 0; t < S; t++) pooled[i] += score[t] / sum * value[t * E + i];
        }
    }
    bj_free(x), bj_free(key), bj_free(value), bj_free(score);
}

/* Returns entry e of column w of U = [W2_n | W2_p | b2_n | b2_p]. */
static double joined(const plain *p, int e, int w) {
    const int TH = p->TH;
    return w < 2 * TH ? p->w2[w / TH][e * TH + w % TH] : p->b2[w - 2 * TH][e];
}

/* Computes a_g = M_g^T q_g with M_g = Wk_g U + bk_g on the last two columns. */
static void fold_query(scene *s, const plain *p) {
    const int E = p->E, d = E / p->G;
    for (int g = 0; g < p->G; g++)
        for (int w = 0; w < s->W; w++) {
            double a = 0;
            for (int i = g * d; i < (g + 1) * d; i++) {
                double m = w >= 2 * p->TH ? p->bk[i] : 0;
                for (int e = 0; e < E; e++) m += p->wk[i * E + e] * joined(p, e, w);
                a += m * p->q[i];
            }
            s->a[(size_t)g * s->ldt + (size_t)w] = (bj_real)a;
        }
}

/* Computes pooled_g = N_g h_g + bv_g with N_g = Wv_g U. */
static double unfold_pooled(const scene *s, const plain *p, int i) {
    const int E = p->E, g = i / (E / p->G);
    double sum = p->bv[i];
    for (int w = 0; w < s->W; w++) {
        double n = 0;
        for (int e = 0; e < E; e++) n += p->wv[i * E + e] * joined(p, e, w);
        sum += n * (double)s->h[(size_t)g * s->ldt + (size_t)w];
    }
    return sum;
}

static void test_unfolded(const bj_kernels *k, int neighbors, int polylines, int E, int G, int TH) {
    scene s = make(k, neighbors, polylines, G, TH, 1);
    plain p = plain_make(E, G, TH);
    double *pooled = bj_alloc((size_t)E, sizeof *pooled), worst = 0;
    fold_query(&s, &p);
    loss(&s);
    check_weights(&s);
    plain_pooled(pooled, &p, &s);
    for (int i = 0; i < E; i++) {
        const double off = fabs(unfold_pooled(&s, &p, i) - pooled[i]);
        if (!(off <= worst)) worst = isnan(off) ? HUGE_VAL : off;
    }
    CHECK_MSG(worst <= 10 * nn_tolerance(),
              "%s: %d+%d tokens, %d heads: "
              "the pooled output is off by %g",
              k->isa, neighbors, polylines, G, worst);
    bj_free(pooled);
    plain_free(&p);
    release(&s);
}

/* Tests scores in the hundreds. The softmax must not overflow, and one token gets all the
 * weight. */
static void test_large_scores(const bj_kernels *k) {
    scene s = make(k, 5, 9, 2, 16, 800);
    loss(&s);
    check_weights(&s);
    for (int g = 0; g < 2; g++) {
        double most = 0;
        for (int i = 0; i < 2; i++)
            for (int t = 0; t < s.S[i]; t++) most = fmax(most, s.alpha[i][t * 2 + g]);
        CHECK(most > 0.99);
    }
    gradient(&s);
    for (int g = 0; g < 2; g++)
        for (int w = 0; w < s.W; w++) CHECK(isfinite(s.da[(size_t)g * s.ldt + (size_t)w]));
    s.p[1][3] = (bj_real)INFINITY; /* must affect the result */
    CHECK(!isfinite(loss(&s)));
    release(&s);
}

int main(void) {
    for (int i = 0; bj_kernels_at(i); i++) {
        const bj_kernels *k = bj_kernels_at(i);
        test_gradient(k, 1, 0, 2, 5); /* only the zero neighbor */
        test_gradient(k, 0, 1, 1, 8);
        test_gradient(k, 3, 0, 2, 16);
        test_gradient(k, 0, 6, 4, 24);
        test_gradient(k, 2, 3, 1, 1);
        test_gradient(k, 4, 5, 7, 11);
        test_gradient(k, 16, 48, 4, 33); /* a large number of tokens */
        test_unfolded(k, 1, 0, 8, 2, 5);
        test_unfolded(k, 0, 4, 6, 1, 8);
        test_unfolded(k, 3, 0, 12, 4, 16);
        test_unfolded(k, 2, 7, 21, 7, 37);
        test_unfolded(k, 16, 48, 16, 1, 24);
        test_large_scores(k);
    }
    return test_report("attention");
}
